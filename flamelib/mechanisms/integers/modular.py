r"""Whole numbers modulo N, of any size: residues, their sums, and what they stand for around zero.

Residues are 64-bit whole numbers for moduli up to :math:`2^{62}`, so that two of them can be added, and Python's own
whole numbers (arrays of objects) beyond.
"""

from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import no_mask
from flamelib.core.vocabulary import DomainError

Residues = NDArray[Any]

LARGEST_MACHINE = 2**62  # so that two residues add up within 64 bits


def residue_type(modulus: int) -> type:
    """The type of arrays of residues: 64-bit whole numbers as long as two of them can be added."""
    return np.int64 if modulus <= LARGEST_MACHINE else object


def whole_numbers(name: str, values: ArrayLike, domain: str = "whole numbers") -> Residues:
    """The values as an array of whole numbers of any size: 64-bit, or Python's own.

    Numpy alone makes doubles of a list with numbers on both sides of 2^63.
    """
    no_mask(name, values, domain)
    try:
        array: Residues = np.asarray(values)
        if array.dtype.kind in "biu":
            return array
        exact = array if isinstance(values, np.ndarray | np.generic) else np.asarray(values, dtype=object)
        return np.array([index(one) for one in exact.flat], dtype=object).reshape(exact.shape)
    except (TypeError, ValueError):
        raise DomainError(f"{name} must be {domain}, got {values!r}"[:200]) from None


def residues(wholes: ArrayLike, modulus: int) -> Residues:
    """Whole numbers of any sign and size modulo ``modulus``, in its type; anything else is refused, never truncated."""
    array = whole_numbers("wholes", wholes)
    if array.dtype in (object, np.uint64) or modulus > LARGEST_MACHINE:
        return np.asarray(array.astype(object) % modulus).astype(residue_type(modulus))
    array = array.astype(np.int64, copy=False)
    multiple = np.asarray(array // modulus)  # numpy divides by one number quickly, but has no quick remainder
    multiple *= modulus
    return np.asarray(array - multiple)


def add_up(messages: Residues, modulus: int, axis: int = -1) -> Residues:
    """The sum of residues modulo ``modulus`` along an axis; no sum on the way is too large for its type."""
    return residues(congruent_sum(messages, modulus, axis), modulus)


def congruent_sum(messages: Residues, modulus: int, axis: int = -1) -> Residues:
    """The same up to a multiple of the modulus, and below 2^63: partial sums are reduced until that is so.

    It is for sums to which something is still added before they are reduced, since to reduce costs more than to add.
    """
    at_once = max(2, (2**63 - 1) // modulus)
    while messages.dtype != object and messages.shape[axis] > at_once:
        starts = np.arange(0, messages.shape[axis], at_once)
        messages = residues(np.add.reduceat(messages, starts, axis=axis), modulus)
    return np.asarray(messages.sum(axis=axis))


def reduced(name: str, values: ArrayLike, modulus: int) -> Residues:
    """Residues in their type; other whole numbers are refused, under the name of the argument."""
    domain = f"whole numbers from 0 to modulus - 1 = {modulus - 1}"
    found = whole_numbers(name, values, domain)
    if found.size and not (found.min() >= 0 and found.max() < modulus):
        raise DomainError(f"{name} must be {domain}")
    return found.astype(residue_type(modulus), copy=False)


def signed(z: Residues, largest: int, modulus: int) -> Residues:
    """Residues above ``largest`` stand for negative numbers: the modulus is subtracted from them."""
    one = np.atleast_1d(z)
    return np.where(one > largest, one - modulus, one).reshape(z.shape)


def centred(totals: ArrayLike, modulus: int) -> Residues:
    """Residues as the congruent whole numbers that are nearest to 0."""
    return signed(residues(totals, modulus), modulus // 2, modulus)
