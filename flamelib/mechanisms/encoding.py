"""From a user's value to what is sent for it: moved into [0, 1], and rounded to a few levels or to whole numbers."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Reals, Wholes, reals
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError, check

_FINEST_GRID = 2**48  # neighbours on it are four times as far apart as the tolerance for rounding


def from_signed(values: ArrayLike, bound: float) -> Reals:
    """Values clipped to [-bound, bound] and mapped linearly to [0, 1]."""
    return (np.clip(reals("values", values), -check(clip_norm=bound)["clip_norm"], bound) / bound + 1) / 2


def round_randomly(values: ArrayLike, n_levels: int, rng: np.random.Generator) -> Wholes:
    r"""Whole numbers whose expectation is ``n_levels`` times the value in [0, 1]: the fixed-point encoding.

    .. math:: \bar x = \lfloor x k \rfloor + \mathrm{Ber}(x k - \lfloor x k \rfloor) \in \{0, \dots, k\}

    so the alphabet has :math:`k + 1` letters.  Source: Balle, Bell, Gascon, Nissim 2019, Algorithm 2.
    """
    n_levels = check(n_levels=n_levels)["n_levels"]
    scaled = reals("values", values, 0, 1) * n_levels
    below = np.floor(scaled)
    return (below + (rng.random(scaled.shape) < scaled - below)).astype(np.int64)


def floor_of_product(values: ArrayLike, scale: int) -> NDArray[Any]:
    """The largest whole number not above the product of a double in [0, 1] and the scale, exactly.

    In double precision 0.3 times 10 is 3; the double 0.3 is a little less than 3/10, so the answer is 2.  A scale above
    2^53 is multiplied with one fraction after the other, and the answers are Python's own whole numbers.
    """
    numbers = reals("values", values, 0, 1)
    if scale > LARGEST_WHOLE:
        exact = [math.floor(Fraction(x) * scale) for x in numbers.ravel().tolist()]
        return np.array(exact, dtype=object).reshape(numbers.shape)
    flat = numbers.ravel()
    product = flat * scale
    below = np.floor(product)
    whole = np.flatnonzero(below == product)  # only where rounding made it whole can a product be below its floor
    below[whole] -= _product_error(flat[whole], scale, product[whole]) < 0
    return below.astype(np.int64).reshape(numbers.shape)


def round_exactly(values: ArrayLike, scale: int, coins: Callable[[Reals], NDArray[np.bool_]]) -> NDArray[Any]:
    """The product rounded at random to one of its two whole neighbours: unbiased up to rounding.

    The floor is that of :func:`floor_of_product`; one is added with the remaining fraction, a double, as probability.
    ``coins`` turns probabilities into coins that show heads with them.
    """
    numbers, below = reals("values", values, 0, 1), floor_of_product(values, scale)
    if scale > LARGEST_WHOLE:
        pairs = zip(numbers.ravel().tolist(), below.ravel().tolist(), strict=True)
        rest = np.array([float(Fraction(x) * scale - whole) for x, whole in pairs]).reshape(numbers.shape)
    else:
        product = numbers * scale
        rest = product - below + _product_error(numbers, scale, product)
    return np.asarray(below + coins(rest))


def grid_multiples(values: ArrayLike, scale: int) -> NDArray[np.int64]:
    """Values in [0, 1] that are known to be multiples of 1 / scale, times the scale; others are refused."""
    numbers = reals("values", values, 0, 1)
    if scale > _FINEST_GRID:
        raise DomainError(f"scale must be a whole number in [1, {_FINEST_GRID}] for values on the grid, got {scale}")
    nearest = np.rint(numbers * scale)
    off = np.abs(numbers - nearest / scale) > 4 * np.finfo(np.float64).eps
    if off.any():
        raise DomainError(f"values must be multiples of 1 / {scale}, got {numbers[off].flat[0]}")
    return nearest.astype(np.int64)


def _product_error(x: Reals, scale: int, product: Reals) -> Reals:
    """What rounding took from the product, exactly (Dekker 1971): factors are cut into halves of 26 bits."""
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(np.float64(scale))
    return np.asarray(x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low))


def _halves(x: Any) -> tuple[Any, Any]:
    high = (2**27 + 1) * x - ((2**27 + 1) * x - x)
    return high, x - high
