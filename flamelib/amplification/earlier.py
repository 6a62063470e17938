r"""Amplification by shuffling in closed form: bounds of other documents that the blanket paper is compared with.

Adjacency: one user's value is replaced.  Each answers ``inf`` where its theorem is silent.  Standard library only.
"""

import math

from flamelib.core.statements import states
from flamelib.core.vocabulary import check


@states("blanket", "erlingsson", item="Section 1, the earlier bound of Erlingsson et al. 2019", gives="upper")
def erlingsson(epsilon0: float, n_users: int, delta: float) -> float:
    r"""Central epsilon by the earlier bound for every local randomizer (upper).

    .. math:: \varepsilon = 12\,\varepsilon_0 \sqrt{\log(1/\delta)/n}

    for :math:`\varepsilon_0 \le \tfrac12`, :math:`n \ge 1000`, :math:`\delta \le 0.01` and a result of at most
    :math:`\varepsilon_0`; ``inf`` elsewhere.  Source: Erlingsson et al. 2019, as compared in the blanket paper.

    Examples
    --------
    >>> round(erlingsson(0.4, 5000, 1e-6), 10)
    0.2523130449
    """
    factor = _erlingsson_factor(n_users, delta)
    return factor * epsilon0 if epsilon0 <= 0.5 and factor <= 1 else math.inf


def erlingsson_epsilon0(n_users: int, epsilon: float, delta: float) -> float:
    """Greatest local budget, at most one half, for which :func:`erlingsson` gives ``epsilon``; 0 outside its regime.

    Examples
    --------
    >>> round(erlingsson_epsilon0(5000, 0.005, 1e-6), 10)
    0.0079266611
    """
    check(n_users=n_users, epsilon=epsilon, delta=delta)
    factor = _erlingsson_factor(n_users, delta)
    if factor > 1:
        return 0.0
    found = epsilon / factor
    while found <= 0.5 and factor * found > epsilon:
        found = math.nextafter(found, 0)
    return min(0.5, found)


def _erlingsson_factor(n_users: int, delta: float) -> float:
    if n_users < 1000 or not 0 < delta <= 0.01:
        return math.inf
    return 12 * math.sqrt(-math.log(delta) / n_users)


@states("blanket", "cheu", item="Section 1, the binary protocol of Cheu et al. 2019", gives="upper")
def cheu(blanket_mass: float, n_users: int, delta: float) -> float:
    r"""Central epsilon of shuffled binary response by Cheu et al. (upper).

    Every bit is replaced by a fair coin with probability ``blanket_mass`` :math:`= \lambda/n`:

    .. math:: \varepsilon = \sqrt{\frac{32\log(4/\delta)}{s}}\Big(1-\frac sn\Big),\qquad
              s = \lambda - \sqrt{2\lambda\log(2/\delta)},

    for :math:`14\log(4/\delta) \le \lambda \le n`; ``inf`` elsewhere.  Source: Cheu et al. 2019, as compared in
    the blanket paper.

    Examples
    --------
    >>> round(cheu(0.5, 1000, 1e-4), 4)
    0.5517
    """
    blankets = blanket_mass * n_users
    if delta == 0 or blankets < 14 * math.log(4 / delta):
        return math.inf
    surely = blankets - math.sqrt(2 * blankets * math.log(2 / delta))
    return math.sqrt(32 * math.log(4 / delta) / surely) * (1 - surely / n_users)


@states("clones", "2021-closed", item="2021, Theorem 3.1, closed form", gives="upper")
def clones_closed(epsilon0: float, n_users: int, delta: float) -> float:
    r"""Central epsilon after shuffling any local randomizer, by clones in closed form (upper).

    .. math:: \varepsilon = \log\Big(1+\frac{p-1}{p+1}\Big(\frac{8\sqrt{p\log(4/\delta)}}{\sqrt n}
              +\frac{8p}{n}\Big)\Big),\qquad p = e^{\varepsilon_0},

    for :math:`\varepsilon_0 \le \log\frac{n}{16\log(2/\delta)}`; ``inf`` elsewhere.
    Source: Feldman, McMillan, Talwar 2021, Theorem 3.1.

    Examples
    --------
    >>> round(clones_closed(4.0, 100_000, 1e-6), 6)
    0.534634
    """
    if delta == 0 or epsilon0 > math.log(n_users / (16 * math.log(2 / delta))):
        return math.inf
    p = math.exp(epsilon0)
    return math.log1p(math.tanh(epsilon0 / 2) * (8 * math.sqrt(p * math.log(4 / delta) / n_users) + 8 * p / n_users))
