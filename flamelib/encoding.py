"""From a user's value to what a randomizer takes: clipping, and unbiased rounding to a few levels."""

import numpy as np
from numpy.typing import ArrayLike

from flamelib._arrays import Reals, Wholes, reals
from flamelib._validate import check


def clip(values: ArrayLike) -> Reals:
    """The values moved to the nearest point of [0, 1].

    Parameters
    ----------
    values : array_like of finite numbers, any shape

    Returns
    -------
    ndarray of float64, same shape

    Raises
    ------
    DomainError
        For NaN, infinities and values that are no numbers.

    Examples
    --------
    >>> clip([-2, 0.25, 7])
    array([0.  , 0.25, 1.  ])
    """
    return np.clip(reals("values", values), 0.0, 1.0)


def round_randomly(values: ArrayLike, n_levels: int, rng: np.random.Generator) -> Wholes:
    r"""Whole numbers whose expectation is ``n_levels`` times the value: the fixed-point encoding.

    .. math:: \bar x = \lfloor x k \rfloor + \mathrm{Ber}(x k - \lfloor x k \rfloor) \in \{0, \dots, k\}

    so the alphabet has :math:`k + 1` letters.  Unbiased: :math:`E[\bar x] / k = x`.

    Parameters
    ----------
    values : array_like of numbers in [0, 1], any shape
    n_levels : int, at least 1
        The paper's :math:`k`.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, same shape, in {0, ..., n_levels}

    Notes
    -----
    Balle, Bell, Gascon, Nissim 2019, Algorithm 2.

    Examples
    --------
    >>> round_randomly([0.0, 0.5, 1.0], 4, np.random.default_rng(0))
    array([0, 2, 4])
    """
    n_levels = check(n_levels=n_levels)["n_levels"]
    scaled = reals("values", values, 0, 1) * n_levels
    below = np.floor(scaled)
    return (below + (rng.random(scaled.shape) < scaled - below)).astype(np.int64)
