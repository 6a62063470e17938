r"""Amplification by shuffling in closed form: the blanket paper's bounds and their relatives.

Adjacency everywhere: one user's value is replaced.  Each pair of budgets takes exactly one of ``epsilon`` and
``delta`` and answers with the other; an upper answer is never below what its lemma says.  Everything is computed by
logarithms, so that delta may be ``1e-300`` and the number of users ``1e15``; a positive bound below the smallest
double is answered as that double.  An ``epsilon`` of at least the local budget costs no delta at all (pure local
privacy survives shuffling), and a bound that never reaches ``delta`` below the local budget answers the local budget.
Standard library only: the same source runs in a browser.
"""

import math
from collections.abc import Callable

from flamelib.amplification.earlier import cheu, clones_closed, erlingsson, erlingsson_epsilon0
from flamelib.amplification.loss_variable import BoundedProfile, LossShape, loss_shape
from flamelib.amplification.tail_bounds import LogDelta, bennett_curve, hoeffding_curve, withdrawn_curve
from flamelib.core.logspace import probability
from flamelib.core.profiles import GaussianProfile, KaryProfile, LaplaceProfile, Profile
from flamelib.core.search import largest, smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

__all__ = [
    "bennett", "bennett_log_delta", "bennett_withdrawn", "blanket_mass", "blankets_needed", "cheu", "clones_closed",
    "erlingsson", "erlingsson_epsilon0", "histogram_blanket_mass", "histogram_epsilon", "hoeffding",
    "hoeffding_log_delta", "kary_epsilon0", "largest_epsilon0",
]  # fmt: skip

Curve = Callable[[LossShape, int], LogDelta]


@states("blanket", "lem-5.1", item="Section 5, blanket mass of standard randomizers", gives="exact", adjacency="none",
        randomizers=("kary", "laplace", "gaussian"))  # fmt: skip
def blanket_mass(randomizer: KaryProfile | LaplaceProfile | GaussianProfile) -> float:
    r"""Probability that a message can be taken to ignore its input (exact).

    .. math:: \gamma = \frac{k}{e^{\varepsilon_0}+k-1}, \qquad e^{-\varepsilon_0/2}, \qquad 2\Phi(-\tfrac{1}{2\sigma})

    for k-ary response, Laplace noise of scale :math:`1/\varepsilon_0` and Gaussian noise of standard deviation
    :math:`\sigma` on inputs in [0, 1].  Source: Balle, Bell, Gascon, Nissim 2019, Section 5.

    Examples
    --------
    >>> round(blanket_mass(LaplaceProfile(epsilon0=1.0)), 12)
    0.606530659713
    """
    return randomizer.mass


@states("blanket", "thm-3.1", item="Theorem 3.1", gives="value")
def histogram_blanket_mass(n_users: int, n_buckets: int, epsilon: float, delta: float) -> float:
    r"""Blanket mass at which shuffled k-ary response is (epsilon, delta)-private by Theorem 3.1.

    .. math:: \gamma = \frac{k}{n-1}\max\Big\{\frac{14\log(2/\delta)}{\varepsilon^2},\ \frac{27}{\varepsilon}\Big\}.

    Parameters
    ----------
    n_users : int, at least 2
    n_buckets : int
        Size of the alphabet, at least 2 (one more than the finest message of a summation).
    epsilon : float
        In (0, 1]: the theorem's regime.
    delta : float
        In (0, 1].

    Raises
    ------
    DomainError
        Outside the regime, or where the mass would exceed 1: the theorem says nothing for so few users.

    Source: Balle, Bell, Gascon, Nissim 2019, Theorem 3.1.

    Examples
    --------
    >>> round(histogram_blanket_mass(1000, 10, 1.0, 0.5), 12)
    0.27027027027
    """
    if not 0 < epsilon <= 1:
        raise DomainError(f"epsilon must be a number in (0, 1] for Theorem 3.1, got {epsilon!r}")
    if delta == 0:
        raise DomainError("delta must be a number in (0, 1] for Theorem 3.1, got 0")
    needed = blankets_needed(n_buckets, epsilon, delta)
    if needed > n_users - 1:
        least = math.ceil(needed) + 1 if needed < 2**53 else needed
        raise DomainError(
            f"n_users must be at least {least:.16g} for Theorem 3.1 at these n_buckets, epsilon and delta "
            f"(the blanket mass may not exceed 1), got {n_users}"
        )
    return needed / (n_users - 1)


def blankets_needed(n_buckets: int, epsilon: float, delta: float) -> float:
    r"""Expected number of blanket messages that Theorem 3.1 asks for: its mass times :math:`n - 1`."""
    check(n_buckets=n_buckets, epsilon=epsilon, delta=delta)
    if epsilon == 0 or delta == 0:
        return math.inf
    return n_buckets * max(14 * math.log(2 / delta) / epsilon / epsilon, 27 / epsilon)


def histogram_epsilon(n_users: int, n_buckets: int, blanket_mass: float, delta: float) -> float:
    r"""Least epsilon that Theorem 3.1 gives k-ary response of this blanket mass: its inverse (upper).

    .. math:: \varepsilon = \max\Big\{\sqrt{\frac{14\log(2/\delta)}{c}},\ \frac{27}{c}\Big\}, \qquad
              c = \frac{(n-1)\gamma}{k},

    ``inf`` above 1, where the theorem is silent.  Source: Balle, Bell, Gascon, Nissim 2019, Theorem 3.1.

    Examples
    --------
    >>> round(histogram_epsilon(10_000, 10, 0.5, 1e-6), 9)
    0.637403361
    """
    check(n_users=n_users, n_buckets=n_buckets, blanket_mass=blanket_mass, delta=delta)
    if delta == 0:
        return math.inf
    per_bucket = (n_users - 1) * blanket_mass / n_buckets
    epsilon = max(math.sqrt(14 * math.log(2 / delta) / per_bucket), 27 / per_bucket)
    while epsilon <= 1 and blankets_needed(n_buckets, epsilon, delta) > (n_users - 1) * blanket_mass:
        epsilon = math.nextafter(epsilon, math.inf)
    return epsilon if epsilon <= 1 else math.inf


def kary_epsilon0(n_buckets: int, blanket_mass: float) -> float:
    r"""Local budget of k-ary response with this blanket mass: :math:`\log(1 + k(1-\gamma)/\gamma)` (exact).

    Source: Balle, Bell, Gascon, Nissim 2019, Algorithm 1.

    Examples
    --------
    >>> round(kary_epsilon0(2, KaryProfile(epsilon0=1.5, n_buckets=2).mass), 12)
    1.5
    """
    check(n_buckets=n_buckets, blanket_mass=blanket_mass)
    return math.log1p(n_buckets * (1 - blanket_mass) / blanket_mass)


@states("blanket", "lem-hoeffding", item="Section 5, bound by Hoeffding's inequality", gives="upper",
        randomizers=("kary", "laplace", "any"))  # fmt: skip
def hoeffding(
    randomizer: BoundedProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> float:
    r"""Central delta at ``epsilon``, or epsilon at ``delta``, by Hoeffding's inequality (upper).

    With :math:`a = e^{\varepsilon}-1`, blanket mass :math:`\gamma` and :math:`b` the range of the amplification
    variable,

    .. math:: \delta = \frac{b^2}{4a\gamma n}\Big(1-\gamma\big(1-e^{-2a^2/b^2}\big)\Big)^n ,

    at most 1.  The formula falls and, beyond :math:`\varepsilon = \log 3`, may rise again; epsilon is sought on the
    falling side, so that it is the least one at which the formula meets ``delta``.

    Parameters
    ----------
    randomizer : KaryProfile, LaplaceProfile or AnyProfile
        ``any`` takes the authors' generic constants for every randomizer of that local budget.
    n_users : int, at least 2
    epsilon, delta : float
        Exactly one: ``epsilon`` at least 0, ``delta`` in [0, 1].

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5.

    Examples
    --------
    >>> from flamelib.core.profiles import AnyProfile
    >>> round(hoeffding(AnyProfile(0.4), 5000, epsilon=0.005), 10)
    0.0379424719
    >>> round(hoeffding(LaplaceProfile(0.4), 5000, delta=1e-6), 10)
    0.0242334546
    """
    return _answer(hoeffding_curve, randomizer, n_users, epsilon, delta)


def hoeffding_log_delta(randomizer: BoundedProfile, n_users: int, epsilon: float) -> float:
    """Logarithm of the delta of :func:`hoeffding`, at most 0; ``-inf`` from the local budget on."""
    return _log_delta(hoeffding_curve(loss_shape(randomizer), n_users), randomizer.epsilon0, epsilon)


@states("blanket", "lem-bennett", item="Section 5, bound by Bennett's inequality, as corrected by its authors",
        gives="upper", randomizers=("kary", "laplace", "any"))  # fmt: skip
def bennett(
    randomizer: BoundedProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> float:
    r"""Central delta at ``epsilon``, or epsilon at ``delta``, by Bennett's inequality (upper; corrected form).

    With :math:`a = e^{\varepsilon}-1`, :math:`b_+` the greatest value and :math:`c` the second moment of the
    amplification variable, :math:`\phi(u) = (1+u)\log(1+u)-u` and
    :math:`x = \exp(-\tfrac{c}{b_+^2}\phi(\tfrac{ab_+}{c}))`,

    .. math:: \delta = \frac{b_+}{\gamma n \log(1+ab_+/c)}\Big[(1-\gamma+\gamma x)^n-(1-\gamma)^n\Big],

    at most 1.  Computed through :math:`u = ab_+/c` as :math:`\tfrac{b_+}{\log(1+u)} = \tfrac{c}{a}\tfrac{u}{\log(1+u)}`
    and :math:`\log x = -\tfrac{a^2}{c}\tfrac{\phi(u)}{u^2}`, which stay finite as :math:`b_+ \to 0`.

    Parameters
    ----------
    randomizer : KaryProfile, LaplaceProfile or AnyProfile
    n_users : int, at least 2
    epsilon, delta : float
        Exactly one: ``epsilon`` at least 0, ``delta`` in [0, 1].

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5, in the form of the authors' correction of July 2020.

    Examples
    --------
    >>> round(bennett(KaryProfile(0.4, 100), 5000, delta=1e-6), 10)
    0.0035207898
    """
    return _answer(bennett_curve, randomizer, n_users, epsilon, delta)


def bennett_log_delta(randomizer: BoundedProfile, n_users: int, epsilon: float) -> float:
    """Logarithm of the delta of :func:`bennett`, at most 0; ``-inf`` from the local budget on."""
    return _log_delta(bennett_curve(loss_shape(randomizer), n_users), randomizer.epsilon0, epsilon)


@states("flame", "bennett-withdrawn", item="the bound by Bennett's inequality as it stood before its correction",
        gives="value", randomizers=("kary", "laplace"))  # fmt: skip
def bennett_withdrawn(
    randomizer: KaryProfile | LaplaceProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> float:
    r"""The withdrawn form of :func:`bennett`, kept to reproduce what was computed with it (**not a bound**).

    Each term of the sum over the number :math:`m` of blanket users is divided by :math:`a m`:

    .. math:: \frac{b_+}{a\,\gamma n \log(1+ab_+/c)}\ E\Big[\frac{x^M}{M}\mathbf 1_{M\ge1}\Big], \qquad
              M \sim \mathrm{Bin}(n, \gamma).

    Parameters
    ----------
    randomizer : KaryProfile or LaplaceProfile
    n_users : int, at least 2
    epsilon, delta : float
        Exactly one: ``epsilon`` at least 0, ``delta`` in [0, 1].

    Source: the blanket authors' code before July 2020; used by FLAME (Liu et al. 2021).

    Examples
    --------
    >>> round(bennett_withdrawn(LaplaceProfile(0.5), 333, delta=8e-7), 4)
    0.1056
    """
    return _answer(withdrawn_curve, randomizer, n_users, epsilon, delta)


def largest_epsilon0(
    bound: Callable[..., float],
    profile_of: Callable[[float], Profile],
    n_users: int,
    epsilon: float,
    delta: float,
    at_most: float = 10.0,
) -> float:
    """Greatest local budget at which the bound still gives (epsilon, delta): never too large.

    Parameters
    ----------
    bound : callable
        An amplification bound of this library, asked for its delta: ``bound(randomizer, n_users, epsilon=...)``.
    profile_of : callable
        The randomizer for a local budget, such as ``LaplaceProfile``.
    n_users : int, at least 2
    epsilon, delta : float
        The central guarantee wanted.  The answer is at least ``epsilon``: a local budget of that size needs no
        shuffling.
    at_most : float
        End of the search.

    Examples
    --------
    >>> round(largest_epsilon0(hoeffding, LaplaceProfile, 5000, 0.005, 1e-6), 10)
    0.0992714425
    """
    check(n_users=n_users, epsilon=epsilon, delta=delta, epsilon0=at_most)

    def log_delta(epsilon0: float) -> float:
        found = bound(profile_of(epsilon0), n_users, epsilon=epsilon) if epsilon0 > epsilon else 0.0
        return math.log(found) if found > 0 else -math.inf

    return largest(log_delta, delta, min(epsilon, at_most), at_most)


def _log_delta(curve: LogDelta, epsilon0: float, epsilon: float) -> float:
    """The curve, at most 0, and no delta from the local budget on."""
    if epsilon >= epsilon0:
        return -math.inf
    return min(0.0, curve(epsilon)) if epsilon > 0 else 0.0


def _answer(
    bound: Curve, randomizer: BoundedProfile, n_users: int, epsilon: float | None, delta: float | None
) -> float:
    """The half of the pair that was not given; the door has seen to it that one was."""
    curve = bound(loss_shape(randomizer), n_users)
    if epsilon is not None:
        return probability(_log_delta(curve, randomizer.epsilon0, epsilon))
    # Uncapped up to the local budget itself: the search needs the curve's slope, and its valley if it has one.
    return smallest_epsilon(
        lambda trial: curve(trial) if trial > 0 else math.inf, delta or 0.0, at_most=randomizer.epsilon0, rises=True
    )
