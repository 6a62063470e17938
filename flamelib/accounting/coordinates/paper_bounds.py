"""One budget split over the coordinates of a vector: FLAME's accounting, in closed form.

A user reports d coordinates (SS-Simple) or k of them (SS-Double, SS-Topk), each through its own randomizer of
budget ``epsilon0`` and its own shuffle.  The statements amplify one coordinate and then compose; deltas are per
coordinate unless a function says otherwise.  ``n_buckets`` is the size of the alphabet: where values are rounded to
0..b it is b + 1.  Adjacency: one user's whole vector is replaced.  Standard library only.

Theorems 3 and 4 do not combine: amplification by sampling in the one requires that the choice of coordinates is secret,
so that all d coordinates are composed; the other composes 2k, as if the choice were public.  The vector's epsilon is
therefore a *value* and no guarantee, and so are the ratios of Figure 3 and the rates of Corollaries 1 to 3, which are
up to constants; top-k selection is no sampling.  Proofs and the counterexample: book, chapter on FLAME, "Accounting".
"""

import math
from dataclasses import dataclass

from flamelib.accounting.composition.closed_form import Budget, least_epsilon
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.shuffling.accuracy import summation_plan, summation_worst_mse
from flamelib.accounting.shuffling.closed_form import histogram_epsilon
from flamelib.core.logspace import product_above
from flamelib.core.profiles import KaryProfile
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, plainly


@dataclass(frozen=True, slots=True)
class CoordinateBudget:
    """Epsilon of one coordinate, before and after amplification by sampling; ``inf`` outside the theorem's regime."""

    epsilon_unsampled: float
    epsilon: float


# --- one coordinate ---------------------------------------------------------------------------------


@states("flame", "lem-1", item="Lemma 1, shuffled k-ary response", gives="upper", rests_on="proven")
def shuffled_kary(n_users: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    r"""Central epsilon of shuffled k-ary response by the blanket theorem (upper).

    .. math:: \varepsilon = \sqrt{\frac{14\log(2/\delta)}{c}}, \qquad c = \frac{n-1}{e^{\varepsilon_0}+k-1},

    ``inf`` above 1, outside the theorem's regime.  Its second branch, :math:`27/c`, which the lemma drops, is the
    larger one for :math:`\delta > 2e^{-27/14} = 0.2907` only; there it is the answer.  No minimum with ``epsilon0`` is
    taken.

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
    the blanket theorem, which does not matter for :math:`\delta \le 0.2907\,\beta`.  The answer is ``inf`` where delta
    is :math:`2\beta` or more.

    Source: Liu et al. 2021, Theorem 2, with the coordinate's budget in both places.
    """
    n_users, n_buckets, epsilon0, sampling_rate, delta = check(
        n_users=n_users, n_buckets=n_buckets, epsilon0=epsilon0, sampling_rate=sampling_rate, delta=delta
    ).values()
    return _sampled(n_buckets, epsilon0, sampling_rate * n_users, sampling_rate, delta)


@states("flame", "thm-3", item="Theorem 3, one coordinate after padding and sampling", gives="value")
def padded_kary(n_buckets: int, epsilon0: float, padded: int, sampling_rate: float, delta: float) -> CoordinateBudget:
    r"""Epsilon of one padded coordinate by the printed formula (value): shuffled, and shuffled and sampled.

    .. math:: \varepsilon_{ck} = \sqrt{\frac{14\log(2\beta/\delta)(e^{\varepsilon_0}+k-1)}{n_p-1}}, \qquad
              \varepsilon_{cd} = \log\big(1+\beta(e^{\varepsilon_{ck}}-1)\big).

    ``delta`` is after sampling; before, it is :math:`\delta/\beta`.  Both are ``inf`` where
    :math:`\varepsilon_{ck} > 1` or :math:`\delta \ge 2\beta`, outside the theorem; no minimum with ``epsilon0`` is
    taken.  For one coordinate and a random choice of coordinates the statement holds, an absent user being replaced by
    a dummy; the vector's guarantee does not follow from it.

    Source: Liu et al. 2021, Theorem 3.

    Examples
    --------
    >>> found = padded_kary(2, 0.8, 1666, 0.02, 1e-9)
    >>> round(found.epsilon_unsampled, 6), round(found.epsilon, 6)
    (0.68902, 0.019641)
    """
    return _sampled(n_buckets, epsilon0, padded, sampling_rate, delta)


def _sampled(n_buckets: int, epsilon0: float, messages: float, rate: float, delta: float) -> CoordinateBudget:
    """Lemma 1 for ``messages`` (a real number) at ``delta / rate``, then Lemma 4."""
    if messages <= 1 or not 0 < delta < 2 * rate:
        return CoordinateBudget(math.inf, math.inf)
    squared = 14 * math.log(2 * rate / delta) * (math.expm1(epsilon0) + n_buckets)
    epsilon = math.sqrt(squared / (messages - 1))
    if epsilon > 1:
        return CoordinateBudget(math.inf, math.inf)
    return CoordinateBudget(epsilon, sampled_epsilon(epsilon, rate))


# --- all coordinates --------------------------------------------------------------------------------


@states("flame", "thm-1", item="Theorem 1, all coordinates of SS-Simple", gives="upper", rests_on="proven")
def simple_vector(dimension: int, epsilon: float, delta: float) -> Budget:
    r"""Budget of a vector each of whose ``dimension`` coordinates is (epsilon, delta)-private (upper).

    .. math:: \Big(\min\big\{d\varepsilon,\ \varepsilon\sqrt{2d\log(1/\delta)}+d\varepsilon(e^{\varepsilon}-1)\big\},\
              (d+1)\delta\Big),

    delta at most 1.  A statement about composition: it holds for every valid ``epsilon`` and ``delta`` of a coordinate,
    provided that every coordinate is shuffled independently.

    Source: Liu et al. 2021, Theorem 1.

    Examples
    --------
    >>> found = simple_vector(7850, 0.001, 6e-10)
    >>> round(found.epsilon, 6), f"{found.delta:.4g}"
    (0.58524, '4.711e-06')
    """
    return Budget(least_epsilon(epsilon, dimension, delta), min(1.0, product_above(dimension + 1, delta)))


@states("flame", "thm-4", item="Theorem 4, all coordinates of SS-Double", gives="value")
def double_vector(kept: float, epsilon: float, delta: float) -> Budget:
    r"""Budget of a vector of SS-Double by the printed formula (value): :math:`t = 2k` coordinates are counted.

    .. math:: \Big(\min\big\{t\varepsilon,\ \varepsilon\sqrt{2t\log(1/\delta)}+t\varepsilon(e^{\varepsilon}-1)\big\},\
              (t+1)\delta\Big).

    With the ``epsilon`` of Theorem 3 it combines amplification by sampling with the smaller number of coordinates,
    which is not proven.  A ``delta`` of 1 or more is returned unchanged and is vacuous.

    Source: Liu et al. 2021, Theorem 4.

    Examples
    --------
    >>> found = double_vector(157, 0.00222589, 5.0118723e-6 / 315)
    >>> round(found.epsilon, 5), f"{found.delta:.4g}"
    (0.23793, '5.012e-06')
    """
    return Budget(least_epsilon(epsilon, 2 * kept, delta), (2 * kept + 1) * delta)


def simple_ratio(dimension: int, n_users: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    r"""Local over central epsilon of SS-Simple with k-ary response, by Lemma 1 and Theorem 1 (value).

    ``delta`` is the vector's; 0 outside the regime of Lemma 1.  The local budget :math:`d\varepsilon_0` is by basic
    composition, the central one by advanced composition, which explains a large part of the ratio.
    """
    dimension, n_users, n_buckets, epsilon0, delta = check(
        dimension=dimension, n_users=n_users, n_buckets=n_buckets, epsilon0=epsilon0, delta=delta
    ).values()
    share = delta / (dimension + 1)
    epsilon = shuffled_kary(n_users, n_buckets, epsilon0, share)
    return 0.0 if math.isinf(epsilon) else dimension * epsilon0 / simple_vector(dimension, epsilon, share).epsilon


def double_ratio(dimension: int, kept: float, padded: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    r"""Local over central epsilon of SS-Double with k-ary response, by Theorems 3 and 4 as printed (value).

    ``delta`` is the vector's; 0 outside the regime of Theorem 3.
    """
    dimension, kept, padded, n_buckets, epsilon0, delta = check(
        dimension=dimension, kept=kept, padded=padded, n_buckets=n_buckets, epsilon0=epsilon0, delta=delta
    ).values()
    if kept > dimension:
        raise DomainError(f"kept must be a number in (0, {dimension}], at most dimension, got {kept!r}")
    share = delta / (2 * kept + 1)
    epsilon = padded_kary(n_buckets, epsilon0, padded, kept / dimension, share).epsilon
    return 0.0 if math.isinf(epsilon) else kept * epsilon0 / double_vector(kept, epsilon, share).epsilon


def simple_rate(epsilon0: float, dimension: int, n_users: int, delta: float) -> float:
    r"""The argument of :math:`O(\cdot)` in Corollary 2 (value): the vector of SS-Simple, any randomizer.

    .. math:: \min(1, \varepsilon_0)\,e^{\varepsilon_0}\log(d/\delta)\sqrt{d/n}

    for :math:`\varepsilon_0 \le \tfrac12\log(n/\log((d+1)/\delta))`, ``inf`` above; ``delta`` is the vector's.
    """
    epsilon0, dimension, n_users, delta = check(
        epsilon0=epsilon0, dimension=dimension, n_users=n_users, delta=delta
    ).values()
    if delta == 0:
        return math.inf
    size = math.log(dimension / delta) * math.sqrt(dimension / n_users)
    return _rate(epsilon0, n_users, math.log((dimension + 1) / delta), size)


def double_rate(epsilon0: float, dimension: int, sampling_rate: float, padded: int, delta: float) -> float:
    r"""The argument of :math:`O(\cdot)` in Corollary 3 (value): the vector of SS-Double, any randomizer.

    .. math:: \min(1, \varepsilon_0)\,e^{\varepsilon_0}\beta^{3/2}
              \sqrt{\tfrac d{n_p}\log\tfrac{\beta d}\delta\log\tfrac{\beta^2d}\delta}

    for :math:`\varepsilon_0 \le \tfrac12\log\big(n_p/\log\frac{2\beta^2d+\beta}\delta\big)`, ``inf`` above and
    where a logarithm is not positive; ``delta`` is the vector's.
    """
    epsilon0, dimension, sampling_rate, padded, delta = check(
        epsilon0=epsilon0, dimension=dimension, sampling_rate=sampling_rate, padded=padded, delta=delta
    ).values()
    reported, resampled = sampling_rate * dimension, sampling_rate**2 * dimension
    if resampled <= delta:
        return math.inf
    size = math.sqrt(dimension / padded * _log_ratio(reported, delta) * _log_ratio(resampled, delta))
    return _rate(epsilon0, padded, _log_ratio(2 * resampled + sampling_rate, delta), sampling_rate**1.5 * size)


def _rate(epsilon0: float, messages: int, log_term: float, size: float) -> float:
    """The common form of the corollaries; ``log_term`` is the logarithm in their conditions."""
    if messages < log_term * math.exp(2 * min(epsilon0, 300)):
        return math.inf
    return min(1.0, epsilon0) * math.exp(epsilon0) * size


def _log_ratio(over: float, under: float) -> float:
    return math.log(over) - math.log(under) if under > 0 else math.inf


@plainly
def mean_deviation(padded: int, sampled: int, epsilon: float, delta: float) -> float:
    """Standard deviation of a coordinate's mean by Proposition 1 (value), inputs in [0, 1].

    The standard deviation of the best shuffled sum over ``padded`` users at (epsilon, delta) of the coordinate before
    sampling, divided by ``sampled``.  It treats dummies as users, so that it is below :func:`padded_deviation` for
    small blanket mass.

    Source: Liu et al. 2021, Proposition 1, after Balle, Bell, Gascon, Nissim 2019, Theorem 4.1.
    """
    _require_at_most(sampled, padded)
    return math.sqrt(summation_plan(padded, epsilon, delta).mse) / sampled


@plainly
def padded_deviation(padded: int, sampled: int, n_levels: int, blanket_mass: float) -> float:
    r"""Largest standard deviation of a padded coordinate's estimated mean (exact), inputs in [0, 1].

    The worst case of ``sampled`` users, and ``padded - sampled`` dummies uniform on {0, 1/b, ..., 1}, b being
    ``n_levels``: :math:`\frac1{n_s}\sqrt{V(n_s) + \frac{(n_p-n_s)(b+2)}{12\,b\,(1-\gamma)^2}}`, V the worst error of
    the users' sum.

    Source: Liu et al. 2021, Algorithm 3.
    """
    n_levels, blanket_mass = check(n_levels=n_levels, blanket_mass=blanket_mass).values()
    _require_at_most(sampled, padded)
    users = sampled * summation_worst_mse(2, n_levels, blanket_mass) / 2
    dummies = (padded - sampled) * (n_levels + 2) / (12 * n_levels * (1 - blanket_mass) ** 2)
    return math.sqrt(users + dummies) / sampled


def _require_at_most(sampled: int, padded: int) -> None:
    padded, sampled = check(padded=padded, sampled=sampled).values()
    if sampled > padded:
        raise DomainError(f"sampled must be a whole number in [1, {padded}], at most padded, got {sampled}")
