"""Arrays: names for their types, one rule of quadrature, sums of logarithms, checks of dtype, range and shape."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.vocabulary import DomainError

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)  # Gauss and Legendre on [-1, 1]: exact up to degree 47

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]
Complexes = NDArray[np.complex128]
Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Shape = int | tuple[int, ...]

_LARGEST = float(np.finfo(np.float64).max)  # the largest double: a bound that refuses infinities alone


def reals(name: str, values: ArrayLike, low: float = -_LARGEST, high: float = _LARGEST) -> Reals:
    """The values as an array of floats, every one a finite number in [low, high]."""
    domain = "finite numbers" if high == _LARGEST else f"numbers in [{low:g}, {high:g}]"
    array = _numeric(name, values, "fiu", domain)
    if (low, high) != (-_LARGEST, _LARGEST) or not _adds_up(array):
        _within(name, array, low, high, domain)
    return array.astype(np.float64, copy=False)


def wholes(name: str, values: ArrayLike, low: int, high: int) -> Wholes:
    """The values as an array of 64-bit whole numbers in {low, ..., high}; floats are refused, not truncated."""
    domain = f"whole numbers in [{low}, {high}]"
    array = _numeric(name, values, "iu", domain)
    _within(name, array, low, high, domain)
    return array.astype(np.int64, copy=False)


def one_per_user(name: str, array: NDArray[Any], n_users: int) -> None:
    """Refuse anything but a vector with one entry for each user."""
    if array.shape != (n_users,):
        raise DomainError(f"{name} must have shape ({n_users},), one entry for each user, got {array.shape}")


def no_mask(name: str, values: ArrayLike, domain: str = "numbers") -> None:
    """Refuse masked entries, alone or in a list: an array made of them would count what stands under the mask."""
    rows = values if isinstance(values, list | tuple) else ()
    if np.ma.is_masked(values) or any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise DomainError(f"{name} must be {domain}, got masked entries")


def log_sum(logs: Reals) -> float:
    """``log(sum(exp(logs)))``, at least one being finite."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _numeric(name: str, values: ArrayLike, kinds: str, domain: str) -> NDArray[Any]:
    no_mask(name, values, domain)
    try:
        array = np.asarray(values)
    except ValueError:
        raise DomainError(f"{name} must be {domain} in a rectangular array") from None
    if array.size and array.dtype.kind not in kinds:
        raise DomainError(f"{name} must be {domain}, got dtype {array.dtype}")
    return array if array.dtype.kind in kinds else array.astype(np.int64)


def _adds_up(array: NDArray[Any]) -> bool:
    """Whether the sum is finite: then every entry is, and one pass over the array was enough to know."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()))


def _within(name: str, array: NDArray[Any], low: float, high: float, domain: str) -> None:
    if array.size and not (array.min() >= low and array.max() <= high):  # written so that NaN fails too
        culprit = array[~((array >= low) & (array <= high))].flat[0]
        raise DomainError(f"{name} must be {domain}, got {culprit}")
