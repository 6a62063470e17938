r"""Error of the mean of a padded coordinate: as FLAME's Proposition 1 counts it, and exactly.

Dummies are noise: a padded coordinate holds ``sampled`` messages of users among ``padded`` in all, and its sum is
divided by the former.  Inputs lie in [0, 1].  Standard library only.
"""

import math

from flamelib.accuracy import summation_plan, summation_worst_mse
from flamelib.core.vocabulary import DomainError, check


def mean_deviation(padded: int, sampled: int, epsilon: float, delta: float) -> float:
    r"""Deviation of a coordinate's mean as Proposition 1 counts it (value), inputs in [0, 1].

    The standard deviation of the best shuffled sum over ``padded`` users at (epsilon, delta), divided by ``sampled``.
    It takes dummies for users.  A dummy ignores its input with probability 1, a user with the blanket mass only, so
    that this lies below :func:`padded_deviation` where the mass is small.

    Parameters
    ----------
    padded : int, at least 2
        Messages of the coordinate, dummies included.
    sampled : int, from 1 to ``padded``
        Those of users.
    epsilon, delta : float
        Of the coordinate, before sampling; in the regime of the blanket theorem.

    Source: Liu et al. 2021, Proposition 1, after Balle, Bell, Gascon, Nissim 2019, Theorem 4.1.

    Examples
    --------
    >>> round(mean_deviation(100_000, 50_000, 1.0, 1e-6), 9)
    0.000615998
    """
    _not_above(sampled, padded)
    return math.sqrt(summation_plan(padded, epsilon, delta).mse) / sampled


def padded_deviation(padded: int, sampled: int, n_levels: int, blanket_mass: float) -> float:
    r"""Largest standard deviation of a padded coordinate's estimated mean (exact), inputs in [0, 1].

    The worst case of ``sampled`` users, and ``padded - sampled`` dummies uniform on {0, 1/b, ..., 1}, b being
    ``n_levels``:

    .. math:: \frac1{n_s}\sqrt{V(n_s) + \frac{(n_p-n_s)(b+2)}{12\,b\,(1-\gamma)^2}}

    Source: Liu et al. 2021, Algorithm 3, with the error of :func:`flamelib.accuracy.summation_worst_mse`.

    Examples
    --------
    >>> round(padded_deviation(333, 20, 1, 0.5), 9)
    0.91241438
    """
    check(n_levels=n_levels, blanket_mass=blanket_mass)
    _not_above(sampled, padded)
    users = sampled * summation_worst_mse(2, n_levels, blanket_mass) / 2
    dummies = (padded - sampled) * (n_levels + 2) / (12 * n_levels * (1 - blanket_mass) ** 2)
    return math.sqrt(users + dummies) / sampled


def _not_above(sampled: int, padded: int) -> None:
    check(padded=padded, sampled=sampled)
    if sampled > padded:
        raise DomainError(f"sampled must be a whole number in [1, {padded}], at most padded, got {sampled}")
