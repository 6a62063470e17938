r"""Local randomizers whose messages support some of the values: samplers, and what a message supports.

Each message is :math:`e^{\varepsilon_0}` times as likely for the values that it supports
(:class:`flamelib.core.profiles.SupportProfile`), so that the analyzer counts supports.  The samplers serve simulation
and draw from a numpy generator in double precision.

Source: Erlingsson, Pihur, Korolova 2014 (RAPPOR, the one-hot vector alone); Wang, Blocki, Li, Jha 2017 (optimized unary
encoding, local hashing); Ye, Barg 2018 (subset selection); Acharya, Sun, Zhang 2019 (Hadamard response).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Flags, Reals, Wholes, wholes
from flamelib.core.profiles import HadamardProfile, HashingProfile, RapporProfile, SubsetProfile, UnaryProfile
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError


class _Supports:
    """Messages that support values."""

    __slots__ = ()

    def estimate(self: Any, messages: NDArray[Any]) -> Reals:
        """Unbiased number of users who hold each value, from all users' messages."""
        own, other = self.base * math.exp(self.epsilon0), self.base
        gap = (own - other) * self.shares.alone
        counts = np.asarray(self.supported(messages)).sum(axis=0)
        return np.asarray((counts - len(messages) * (self.shares.one * own - gap)) / gap)


class _Flags(_Supports):
    """Messages that are flags, one for each value."""

    __slots__ = ()

    def supported(self, messages: Flags) -> Flags:
        """Which values each message supports."""
        return messages


@dataclass(frozen=True, slots=True)
class Rappor(_Flags, RapporProfile):
    """Send the one-hot vector of the value, every bit flipped with probability ``1 / (exp(epsilon0 / 2) + 1)``.

    Examples
    --------
    >>> import numpy as np
    >>> Rappor(2.0, 4).sample([0, 3], np.random.default_rng(0)).shape
    (2, 4)
    """

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Flags:
        """Bits of each value's message, along a last axis of their own."""
        own = _one_hot(values, self.n_buckets)
        return np.asarray(own ^ (rng.random(own.shape) < 1 / (math.exp(self.epsilon0 / 2) + 1)))


@dataclass(frozen=True, slots=True)
class OptimizedUnary(_Flags, UnaryProfile):
    """Send a bit for each value: 1 with probability one half for the user's own, ``1/(exp(epsilon0)+1)`` for others."""

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Flags:
        """Bits of each value's message, along a last axis of their own."""
        own = _one_hot(values, self.n_buckets)
        return np.asarray(rng.random(own.shape) < np.where(own, 0.5, 1 / (math.exp(self.epsilon0) + 1)))


@dataclass(frozen=True, slots=True)
class SubsetSelection(_Flags, SubsetProfile):
    """Send a set of ``size`` values; one that holds the user's own is ``exp(epsilon0)`` times as likely as others."""

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Flags:
        """Which values are in each set, along a last axis of their own."""
        own = _one_hot(values, self.n_buckets)
        chosen = rng.random((*own.shape[:-1], 1)) < math.exp(self.epsilon0) * self.base * self.shares.one
        order = np.where(own, np.where(chosen, -1.0, 2.0), rng.random(own.shape))
        last = np.partition(order, self.size - 1, axis=-1)[..., self.size - 1 : self.size]
        return np.asarray(order <= last)


@dataclass(frozen=True, slots=True)
class HadamardResponse(_Supports, HadamardProfile):
    """Send a column of the Hadamard matrix: with odds of ``exp(epsilon0)`` one in which row ``value + 1`` has +1."""

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Wholes:
        """A column for each value: whole numbers below ``size``."""
        rows = wholes("values", values, 0, self.n_buckets - 1) + 1
        columns = rng.integers(self.size, size=rows.shape)
        wanted = rng.random(rows.shape) * (math.exp(-self.epsilon0) + 1) < 1  # whether +1 is wanted
        # To turn the lowest bit of the row turns the sign.
        return np.where(_positive(rows, columns) == wanted, columns, columns ^ (rows & -rows))

    def supported(self, messages: Wholes) -> Flags:
        """Which values each message supports: those whose row has +1 there."""
        return _positive(np.arange(1, self.n_buckets + 1), np.asarray(messages)[..., None])


@dataclass(frozen=True, slots=True)
class LocalHashing(_Supports, HashingProfile):
    """Send a hash function, uniform among all, and the hash of the value by k-ary response on ``range`` numbers."""

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Wholes:
        """Rows of ``n_buckets + 1`` numbers: the hash of every value, then the report."""
        held = wholes("values", values, 0, self.n_buckets - 1)
        if self.range > LARGEST_WHOLE:
            raise DomainError(f"epsilon0 must be at most 36 to draw hash functions, got {self.epsilon0!r}")
        hashes = rng.integers(self.range, size=(*held.shape, self.n_buckets))
        own = np.take_along_axis(hashes, held[..., None], axis=-1)[..., 0]
        other = rng.integers(self.range - 1, size=held.shape)
        other += other >= own
        kept = rng.random(held.shape) * (1 + (self.range - 1) * math.exp(-self.epsilon0)) < 1
        return np.concatenate([hashes, np.where(kept, own, other)[..., None]], axis=-1)

    def supported(self, messages: Wholes) -> Flags:
        """Which values each message supports: those whose hash is the report."""
        rows = np.asarray(messages)
        return np.asarray(rows[..., :-1] == rows[..., -1:])


def _one_hot(values: ArrayLike, n_buckets: int) -> Flags:
    held = wholes("values", values, 0, n_buckets - 1)
    return np.asarray(held[..., None] == np.arange(n_buckets))


def _positive(rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Flags:
    """Whether the entry of Sylvester's matrix is +1: an even number of ones in the common bits."""
    common = rows & columns
    for shift in (32, 16, 8, 4, 2, 1):
        common = common ^ (common >> shift)
    return np.asarray(common & 1 == 0)
