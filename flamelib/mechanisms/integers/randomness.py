r"""Where randomness comes from: a numpy generator for simulation, or the operating system for release.

Both have the interface of :class:`Randomness`, so that a protocol is written once.  :class:`Simulation` can be
repeated from a seed and is quick; but whoever sees a few of its numbers can compute the others, so it protects
nothing.  :class:`Release` cannot be repeated, and nobody can compute its numbers from others.  Both are exact as far
as their bits are uniform: residues are unbiased for every modulus, orders uniform over all permutations.
"""

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Bytes, Shape, reals
from flamelib.core.extras import extra
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.integers.modular import LARGEST_MACHINE, Residues, residues

Tossed = Callable[[int], Bytes]

CACHED = 2**17  # messages that the processor's cache holds
_BLOCK = 2**14  # messages dealt to buckets at once, a power of two
_BUCKETS = 2**8  # a power of two, so that a digit is the end of a byte
_KEYED = 2**16  # bytes drawn under one key


class Randomness(Protocol):
    """What a protocol asks of its source of randomness."""

    def uniform(self, modulus: int, shape: Shape) -> Residues:
        """Independent, uniform residues in {0, ..., modulus - 1}."""

    def coins(self, rate: ArrayLike, shape: Shape) -> NDArray[np.bool_]:
        """Independent coins that show heads with the given probability, or probabilities."""

    def permuted(self, messages: Residues) -> Residues:
        """A copy in uniformly random order along the last axis, every row on its own."""

    def spawn(self, n: int) -> Sequence[Self]:
        """Independent sources, one for each party."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """Repeatable randomness from a numpy generator: for experiments, never for release."""

    rng: np.random.Generator

    def uniform(self, modulus: int, shape: Shape) -> Residues:
        """Uniform residues: numpy's are unbiased up to 2^62; beyond, its bytes are rejected until they fit."""
        if modulus <= LARGEST_MACHINE:
            return self.rng.integers(0, modulus, size=shape, dtype=np.int64)
        return _large(self._tossed, modulus, shape)

    def coins(self, rate: ArrayLike, shape: Shape) -> NDArray[np.bool_]:
        """Coins whose probability is met up to the resolution of a uniform double, 2^-53."""
        return np.asarray(self.rng.random(shape) < reals("rate", rate, 0, 1))

    def permuted(self, messages: Residues) -> Residues:
        """Uniformly random order; long rows are dealt to buckets first, which the cache holds."""
        return _permuted(messages, self._tossed, lambda rows: np.asarray(self.rng.permuted(rows, axis=-1)))

    def _tossed(self, count: int) -> Bytes:
        return self.rng.integers(0, 2**64, size=-(-count // 8), dtype=np.uint64).view(np.uint8)[:count]

    def spawn(self, n: int) -> list["Simulation"]:
        """Children of the generator."""
        return [Simulation(child) for child in self.rng.spawn(n)]


@dataclass(frozen=True, slots=True)
class Release:
    """Randomness fit for release: cannot be repeated, cannot be predicted, and nothing is rounded.

    Bits are ChaCha20's key stream under keys of 32 bytes from the operating system, a fresh key for every 64 KiB that
    is kept nowhere.  To tell them from uniform bits, given all others, one would have to tell ChaCha20 from a random
    function; the operating systems' own generators rest on the same assumption, and are several times slower.
    Keys from anywhere but the operating system are for experiments that are to be repeated.
    """

    keys: Callable[[int], bytes] = secrets.token_bytes

    def __post_init__(self) -> None:
        if not callable(self.keys):
            raise DomainError(f"keys must be callable with a number of bytes, got {self.keys!r}")

    def uniform(self, modulus: int, shape: Shape) -> Residues:
        """Uniform residues: 63-bit words below the largest multiple of the modulus, drawn again where they are not."""
        if modulus > LARGEST_MACHINE:
            return _large(self._tossed, modulus, shape)
        found = np.empty(math.prod(np.atleast_1d(shape).tolist()), dtype=np.int64)
        for start in range(0, found.size, at_once := _KEYED // 8):
            part = found[start : start + at_once]
            part[:] = self._below(modulus, part.size)
        return found.reshape(shape)

    def coins(self, rate: ArrayLike, shape: Shape) -> NDArray[np.bool_]:
        """Coins of exactly the given probability, every double being a rational number with a power of two below."""
        reached = np.broadcast_to(reals("rate", rate, 0, 1) * 2.0**62, shape)
        whole = np.floor(reached).astype(np.int64)
        drawn = self.uniform(2**62, shape)
        heads = np.asarray(drawn < whole)
        level = (drawn == whole) & (reached > whole)  # 62 bits have not settled these
        if level.any():
            heads[level] = self.coins((reached - whole)[level], int(level.sum()))
        return heads

    def permuted(self, messages: Residues) -> Residues:
        """Uniformly random order: that of random 63-bit keys, all drawn again if two in a row are equal."""
        return _permuted(messages, self._tossed, self._by_keys)

    def spawn(self, n: int) -> list["Release"]:
        """One source of keys serves every party."""
        return [self] * n

    def _tossed(self, count: int) -> Bytes:
        with extra("sealing"):
            from nacl.utils import randombytes_deterministic
        parts = (min(_KEYED, count - start) for start in range(0, count, _KEYED))
        return np.frombuffer(b"".join(randombytes_deterministic(n, self.keys(32)) for n in parts), dtype=np.uint8)

    def _words(self, count: int) -> Residues:
        """Uniform 63-bit words."""
        return self._tossed(8 * count).view(np.int64) & (2**63 - 1)

    def _below(self, modulus: int, count: int) -> Residues:
        words, limit = self._words(count), 2**63 // modulus * modulus
        while limit < 2**63 and (beyond := np.flatnonzero(words >= limit)).size:
            words[beyond] = self._words(beyond.size)
        return residues(words, modulus)

    def _by_keys(self, rows: Residues) -> Residues:
        while True:
            keys = self._words(rows.size).reshape(rows.shape)
            order = keys.argsort(axis=-1)
            keys = np.take_along_axis(keys, order, axis=-1)
            if not (keys[..., 1:] == keys[..., :-1]).any():
                return np.take_along_axis(rows, order, axis=-1)


def _large(tossed: Tossed, modulus: int, shape: Shape) -> Residues:
    """Uniform residues of a large modulus, as Python's whole numbers, by rejection."""
    bits = (modulus - 1).bit_length()
    found = np.empty(shape, dtype=object)
    for place in np.ndindex(found.shape):
        while (word := int.from_bytes(tossed(bits // 8 + 1).tobytes(), "big") & (2**bits - 1)) >= modulus:
            pass
        found[place] = word
    return found


# --- uniformly random orders ------------------------------------------------------------------------


def _permuted(messages: Residues, tossed: Tossed, ordered: Callable[[Residues], Residues]) -> Residues:
    """Rows in uniformly random order, long ones by way of buckets (Rao 1961, Sandelius 1962).

    Every message is dealt to a bucket of its own random digit, and every bucket is put in uniformly random order.  By
    symmetry every order of the messages is equally likely, exactly: given how many messages each bucket gets, which
    ones these are is uniform, and so is their order.  Nothing moves further than the cache reaches.
    """
    if messages.shape[-1] <= CACHED:
        return ordered(messages)
    rows = np.empty(messages.shape, messages.dtype).reshape(-1, messages.shape[-1])
    for row, given in zip(rows, messages.reshape(rows.shape), strict=True):
        for start, end in pairwise(_deal(given, row, tossed)):
            row[start:end] = _permuted(row[start:end], tossed, ordered)
    return rows.reshape(messages.shape)


def _deal(messages: Residues, dealt: Residues, tossed: Tossed) -> list[int]:
    """Sort messages by random digits, into ``dealt``; where the buckets start, and the last one ends.

    Every block is sorted by digit, and its runs are written behind those of the same buckets that came before.
    """
    digits, starts = tossed(messages.size) & np.uint8(_BUCKETS - 1), range(0, messages.size, _BLOCK)
    counts = np.array([np.bincount(digits[start : start + _BLOCK], minlength=_BUCKETS) for start in starts])
    places = np.concatenate([[0], counts.T.cumsum()])
    moved = places[:-1].reshape(_BUCKETS, -1).T - (counts.cumsum(axis=1) - counts)
    within = np.arange(_BLOCK)
    for start, count, by in zip(starts, counts, moved, strict=True):
        order = digits[start : start + _BLOCK].argsort(kind="stable")
        dealt[np.repeat(by, count) + within[: order.size]] = messages[start : start + _BLOCK][order]
    return [int(place) for place in places[:: len(counts)]]
