r"""One budget split over the coordinates of a vector: FLAME's accounting, in closed form.

A user reports d coordinates (SS-Simple) or k of them (SS-Double, SS-Topk), each through its own randomizer of
budget ``epsilon0`` and its own shuffle.  The statements amplify one coordinate and then compose; all deltas are
per coordinate unless a function says otherwise.  ``n_buckets`` is always the size of the alphabet: where values are
rounded to 0..b it is b + 1.  Adjacency: one user's whole vector is replaced.  Standard library only.

Theorems 3 and 4 do not fit together.  Theorem 3 gives a coordinate the gain of sampling, which holds while nobody
knows who reports it, so that all d coordinates count; Theorem 4 counts 2k coordinates, as if the choice were known.
Each number is therefore a *value* and no guarantee; for top-k selection nothing is sampled at all.
"""

import math
from dataclasses import dataclass

from flamelib.amplification.closed_form import histogram_epsilon
from flamelib.amplification.sampling import sampled_epsilon
from flamelib.composition import Budget, least_epsilon
from flamelib.core.profiles import KaryProfile
from flamelib.core.statements import states
from flamelib.core.vocabulary import check


@dataclass(frozen=True, slots=True)
class CoordinateBudget:
    """Epsilon of one coordinate, before and after the gain of sampling; ``inf`` where the theorem is silent."""

    epsilon_unsampled: float
    epsilon: float


# --- one coordinate ---------------------------------------------------------------------------------


@states("flame", "lem-1", item="Lemma 1, shuffled k-ary response", gives="upper")
def shuffled_kary(n_users: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    r"""Central epsilon of shuffled k-ary response by the blanket theorem (upper).

    .. math:: \varepsilon = \sqrt{\frac{14\log(2/\delta)}{c}}, \qquad c = \frac{n-1}{e^{\varepsilon_0}+k-1},

    ``inf`` above 1, where the theorem is silent.  The theorem has a second branch, :math:`27/c`, that the lemma
    drops.  It never decides while :math:`\delta \le 2e^{-27/14} = 0.2907`; above, the larger of the two is answered.
    Below some :math:`\varepsilon_0` the answer exceeds :math:`\varepsilon_0` itself, which is then the better bound.

    Parameters
    ----------
    n_users : int, at least 2
    n_buckets : int, at least 2
    epsilon0 : float, positive
    delta : float in [0, 1]

    Source: Liu et al. 2021, Lemma 1, after Balle, Bell, Gascon, Nissim 2019, Theorem 3.1.

    Examples
    --------
    >>> round(shuffled_kary(1000, 2, 0.01, 5.011872336e-6 / 7851), 3)
    0.785
    """
    return histogram_epsilon(n_users, n_buckets, KaryProfile(epsilon0, n_buckets).mass, delta)


def sampled_kary(n_users: int, n_buckets: int, epsilon0: float, sampling_rate: float, delta: float) -> CoordinateBudget:
    r"""Theorem 2: shuffled k-ary response of :math:`n_s = \beta n` users drawn at random (upper).

    Lemma 1 for :math:`n_s` users at :math:`\delta/\beta`, then Lemma 4; as printed, without the second branch of
    the blanket theorem, which does not matter for :math:`\delta \le 0.2907\,\beta`.

    Parameters
    ----------
    n_users : int, at least 2
    n_buckets : int, at least 2
    epsilon0 : float, positive
    sampling_rate : float in (0, 1]
    delta : float in [0, 1]
        The theorem speaks below :math:`2\beta`.

    Source: Liu et al. 2021, Theorem 2, with the coordinate's budget in both places.

    Examples
    --------
    >>> round(sampled_kary(1_000_000, 2, 0.5, 0.02, 1e-8).epsilon, 9)
    0.003649469
    """
    check(n_users=n_users, n_buckets=n_buckets, epsilon0=epsilon0, sampling_rate=sampling_rate, delta=delta)
    return _sampled(n_buckets, epsilon0, sampling_rate * n_users, sampling_rate, delta)


@states("flame", "thm-3", item="Theorem 3, one coordinate after padding and sampling", gives="value")
def padded_kary(n_buckets: int, epsilon0: float, padded: int, sampling_rate: float, delta: float) -> CoordinateBudget:
    r"""Epsilon of one padded coordinate by the printed formula (value): shuffled, and shuffled and sampled.

    .. math:: \varepsilon_{ck} = \sqrt{\frac{14\log(2\beta/\delta)(e^{\varepsilon_0}+k-1)}{n_p-1}}, \qquad
              \varepsilon_{cd} = \log\big(1+\beta(e^{\varepsilon_{ck}}-1)\big).

    Both are ``inf`` where :math:`\varepsilon_{ck} > 1` or :math:`\delta \ge 2\beta`, outside the theorem.  No
    minimum with ``epsilon0`` is taken, below which :math:`\varepsilon_{ck}` need not lie.  For one coordinate and a
    random choice of coordinates the statement holds, since a user who is absent is replaced by a dummy; the vector's
    guarantee does not follow from it.

    Parameters
    ----------
    n_buckets : int, at least 2
    epsilon0 : float, positive
    padded : int, at least 2
        Messages of the coordinate, dummies included.
    sampling_rate : float in (0, 1]
    delta : float in [0, 1]
        After sampling, per coordinate; before sampling it is :math:`\delta/\beta`.

    Source: Liu et al. 2021, Theorem 3.

    Examples
    --------
    >>> found = padded_kary(2, 0.8, 1666, 0.02, 1e-9)
    >>> round(found.epsilon_unsampled, 6), round(found.epsilon, 6)
    (0.68902, 0.019641)
    """
    return _sampled(n_buckets, epsilon0, padded, sampling_rate, delta)


def _sampled(n_buckets: int, epsilon0: float, messages: float, rate: float, delta: float) -> CoordinateBudget:
    """Lemma 1 for so many messages at ``delta / rate``, and Lemma 4; the number of messages may be a fraction."""
    if messages <= 1 or not 0 < delta < 2 * rate:
        return CoordinateBudget(math.inf, math.inf)
    spread = 14 * math.log(2 * rate / delta) * (math.expm1(epsilon0) + n_buckets)
    epsilon = math.sqrt(spread / (messages - 1))
    if epsilon > 1:
        return CoordinateBudget(math.inf, math.inf)
    return CoordinateBudget(epsilon, sampled_epsilon(epsilon, rate))


# --- all coordinates --------------------------------------------------------------------------------


@states("flame", "thm-1", item="Theorem 1, all coordinates of SS-Simple", gives="upper")
def simple_vector(dimension: int, epsilon: float, delta: float) -> Budget:
    r"""Budget of a vector each of whose ``dimension`` coordinates is (epsilon, delta)-private (upper).

    .. math:: \Big(\min\big\{d\varepsilon,\ \varepsilon\sqrt{2d\log(1/\delta)}+d\varepsilon(e^{\varepsilon}-1)\big\},\
              (d+1)\delta\Big).

    A statement about composition: it holds for whatever bound gave ``epsilon`` and ``delta``, as long as every
    coordinate is shuffled on its own.

    Parameters
    ----------
    dimension : int, at least 1
    epsilon : float, at least 0
    delta : float in [0, 1]

    Returns
    -------
    Budget
        ``delta`` is at most 1.

    Source: Liu et al. 2021, Theorem 1.

    Examples
    --------
    >>> found = simple_vector(7850, 0.001, 6e-10)
    >>> round(found.epsilon, 6), f"{found.delta:.4g}"
    (0.58524, '4.711e-06')
    """
    return Budget(least_epsilon(epsilon, dimension, delta), min(1.0, (dimension + 1) * delta))


@states("flame", "thm-4", item="Theorem 4, all coordinates of SS-Double", gives="value")
def double_vector(kept: float, epsilon: float, delta: float) -> Budget:
    r"""Budget of a vector of SS-Double by the printed formula (value): :math:`t = 2k` coordinates are counted.

    .. math:: \Big(\min\big\{t\varepsilon,\ \varepsilon\sqrt{2t\log(1/\delta)}+t\varepsilon(e^{\varepsilon}-1)\big\},\
              (t+1)\delta\Big).

    With the ``epsilon`` of Theorem 3 it counts the gain of sampling and the small number of coordinates at once,
    which no proof supports.  A ``delta`` of 1 or more is printed as it comes out and promises nothing.

    Parameters
    ----------
    kept : float, positive
        Coordinates a user reports; need not be whole.
    epsilon : float, at least 0
    delta : float in [0, 1]

    Source: Liu et al. 2021, Theorem 4.

    Examples
    --------
    >>> found = double_vector(157, 0.00222589, 5.0118723e-6 / 315)
    >>> round(found.epsilon, 5), f"{found.delta:.4g}"
    (0.23793, '5.012e-06')
    """
    return Budget(least_epsilon(epsilon, 2 * kept, delta), (2 * kept + 1) * delta)
