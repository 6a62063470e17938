r"""What a split budget gains by shuffling: the ratios of FLAME's Figure 3, and the growth that its corollaries claim.

The ratios compare a user's local budget with the central one by the printed theorems
(:mod:`flamelib.amplification.coordinate_budgets`); Corollaries 1 to 3 give rates up to constants.  All are values and
no guarantees.  ``delta`` is the vector's.  Adjacency: one user's whole vector is replaced.  Standard library only.
"""

import math

from flamelib.amplification.coordinate_budgets import double_vector, padded_kary, shuffled_kary, simple_vector
from flamelib.core.vocabulary import DomainError, check


def simple_ratio(dimension: int, n_users: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    r"""Local over central epsilon of SS-Simple with k-ary response, by Lemma 1 and Theorem 1 (value).

    ``delta`` is the vector's; 0 where Lemma 1 is silent.  The local budget is :math:`d\varepsilon_0`, composed by the
    basic theorem, while the central one is composed by the advanced: a good part of the ratio is composition.

    Source: Liu et al. 2021, Figure 3.

    Examples
    --------
    >>> round(simple_ratio(75755, 5000, 2, 0.8, 0.01 / 5000**1.1), 5)
    2.55264
    """
    check(dimension=dimension, n_users=n_users, n_buckets=n_buckets, epsilon0=epsilon0, delta=delta)
    each = delta / (dimension + 1)
    epsilon = shuffled_kary(n_users, n_buckets, epsilon0, each)
    return 0.0 if math.isinf(epsilon) else dimension * epsilon0 / simple_vector(dimension, epsilon, each).epsilon


def double_ratio(dimension: int, kept: float, padded: int, n_buckets: int, epsilon0: float, delta: float) -> float:
    r"""Local over central epsilon of SS-Double with k-ary response, by Theorems 3 and 4 as printed (value).

    ``delta`` is the vector's; 0 where Theorem 3 is silent.

    Source: Liu et al. 2021, Figure 3.

    Examples
    --------
    >>> round(double_ratio(75755, 1515.1, 1666, 2, 0.8, 0.01 / 5000**1.1), 3)
    137.355
    """
    check(dimension=dimension, kept=kept, padded=padded, n_buckets=n_buckets, epsilon0=epsilon0, delta=delta)
    if kept > dimension:
        raise DomainError(f"kept must be a number in (0, {dimension}], at most dimension, got {kept!r}")
    each = delta / (2 * kept + 1)
    epsilon = padded_kary(n_buckets, epsilon0, padded, kept / dimension, each).epsilon
    return 0.0 if math.isinf(epsilon) else kept * epsilon0 / double_vector(kept, epsilon, each).epsilon


def generic_rate(epsilon0: float, n_users: int, delta: float) -> float:
    r"""What Corollary 1 puts into its :math:`O(\cdot)` (value): one coordinate, any randomizer.

    .. math:: \min(1, \varepsilon_0)\,e^{\varepsilon_0}\sqrt{\log(1/\delta)/n}

    for :math:`\varepsilon_0 \le \tfrac12\log(n/\log(1/\delta))`, ``inf`` above.

    Source: Liu et al. 2021, Corollary 1.

    Examples
    --------
    >>> round(generic_rate(0.5, 10_000, 1e-6), 9)
    0.030640843
    """
    check(epsilon0=epsilon0, n_users=n_users, delta=delta)
    tail = -math.log(delta) if delta > 0 else math.inf
    return _rate(epsilon0, n_users, tail, math.sqrt(tail / n_users))


def simple_rate(epsilon0: float, dimension: int, n_users: int, delta: float) -> float:
    r"""What Corollary 2 puts into its :math:`O(\cdot)` (value): the vector of SS-Simple, any randomizer.

    .. math:: \min(1, \varepsilon_0)\,e^{\varepsilon_0}\log(d/\delta)\sqrt{d/n}

    for :math:`\varepsilon_0 \le \tfrac12\log(n/\log((d+1)/\delta))`, ``inf`` above; ``delta`` is the vector's.

    Source: Liu et al. 2021, Corollary 2.

    Examples
    --------
    >>> round(simple_rate(0.01, 7850, 1000, 5e-6), 6)
    0.599222
    """
    check(epsilon0=epsilon0, dimension=dimension, n_users=n_users, delta=delta)
    if delta == 0:
        return math.inf
    size = math.log(dimension / delta) * math.sqrt(dimension / n_users)
    return _rate(epsilon0, n_users, math.log((dimension + 1) / delta), size)


def double_rate(epsilon0: float, dimension: int, sampling_rate: float, padded: int, delta: float) -> float:
    r"""What Corollary 3 puts into its :math:`O(\cdot)` (value): the vector of SS-Double, any randomizer.

    .. math:: \min(1, \varepsilon_0)\,e^{\varepsilon_0}\beta^{3/2}
              \sqrt{\tfrac d{n_p}\log\tfrac{\beta d}\delta\log\tfrac{\beta^2d}\delta}

    for :math:`\varepsilon_0 \le \tfrac12\log\big(n_p/\log\frac{2\beta^2d+\beta}\delta\big)`, ``inf`` above and
    where a logarithm is not positive; ``delta`` is the vector's.

    Source: Liu et al. 2021, Corollary 3.

    Examples
    --------
    >>> round(double_rate(0.5, 7850, 0.02, 333, 5e-6), 6)
    0.171858
    """
    check(epsilon0=epsilon0, dimension=dimension, sampling_rate=sampling_rate, padded=padded, delta=delta)
    many, few = sampling_rate * dimension, sampling_rate**2 * dimension
    if few <= delta:
        return math.inf
    size = math.sqrt(dimension / padded * _log_ratio(many, delta) * _log_ratio(few, delta))
    return _rate(epsilon0, padded, _log_ratio(2 * few + sampling_rate, delta), sampling_rate**1.5 * size)


def _rate(epsilon0: float, messages: int, tail: float, size: float) -> float:
    """The common shape of the corollaries; ``tail`` is the logarithm in their conditions."""
    if messages < tail * math.exp(2 * min(epsilon0, 300)):
        return math.inf
    return min(1.0, epsilon0) * math.exp(epsilon0) * size


def _log_ratio(over: float, under: float) -> float:
    return math.log(over) - math.log(under) if under > 0 else math.inf
