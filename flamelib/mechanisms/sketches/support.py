"""How many different items occur, from empty buckets: linear sketches of the support.

A bucket is empty where no item fell into it.  With :math:`w` buckets and :math:`F_0` items their expected number is
:math:`w (1 - 1/w)^{F_0}`, and the number of items is solved from it.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, Wholes, reals, wholes
from flamelib.core.vocabulary import Checked, check
from flamelib.mechanisms.sketches.hashing import PRIME, Hashes, times
from flamelib.mechanisms.sketches.linear import Table, shaped

_INDEPENDENCE = 8  # any so many items fall into buckets independently


@dataclass(frozen=True, slots=True)
class _Buckets(Checked):
    """One row of buckets."""

    columns: int
    seed: int

    @property
    def shape(self) -> tuple[int, ...]:
        """One row."""
        return (self.columns,)

    def places(self, items: ArrayLike) -> Wholes:
        """The bucket of each item, of shape (1, n)."""
        return Hashes(1, _INDEPENDENCE, self.seed).buckets(np.ravel(items), self.columns)


@dataclass(frozen=True, slots=True)
class LinearCounting(_Buckets):
    r"""How many different items occur: every item adds 1 to one bucket, and empty buckets are counted.

    .. math:: \hat F_0 = - w \ln (\#\{B_j = 0\} / w)

    with standard deviation :math:`\sqrt{w (e^t - t - 1)}` at :math:`t = F_0 / w` (:meth:`std`).  Under noise a bucket
    counts as empty below a threshold, which misses rare items; or the noise is taken out of the number of empty
    buckets, without bias (:meth:`unmixed`).

    Source: Whang, Vander-Zanden, Taylor 1990.
    """

    bound: ClassVar[int] = 1  # a user adds 1
    sensitivity: ClassVar[int] = 2  # two buckets change by 1

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """One bucket, 1."""
        places = self.places(items)
        return places, np.ones_like(places)

    def estimate(self, table: Table, threshold: float = 0.0) -> float:
        """The number of different items; buckets up to the threshold count as empty.  Infinite where none is."""
        empty = np.count_nonzero(reals("table", shaped(table, self.shape)) <= threshold)
        return _occupied_to_support(float(empty), self.columns)

    def unmixed(self, table: Table, decay: float) -> float:
        r"""The number of different items under discrete Laplace noise, by an unbiased count of empty buckets.

        The noise multiplies generating functions by :math:`(1-p)^2 / ((1 - pz)(1 - p/z))`, whose inverse is short:

        .. math:: \#\{B_j = 0\} \approx \frac{(1 + p^2) \#\{T_j = 0\} - p \#\{|T_j| = 1\}}{(1 - p)^2}
        """
        return _occupied_to_support(float(empty_weights(shaped(table, self.shape), decay).sum()), self.columns)

    def std(self, support: int) -> float:
        """Standard deviation of the estimate without noise, to leading order in the number of buckets."""
        load = support / self.columns
        return math.sqrt(self.columns * (math.expm1(load) - load))

    def unmixed_std(self, table: Table, support: int, decay: float) -> float:
        """Standard deviation of :meth:`unmixed` when noise is added to this table, to leading order."""
        true = np.abs(np.asarray(shaped(table, self.shape), dtype=np.int64))
        probability = (1 - decay) / (1 + decay)
        weights = zip((-1, 0, 1), empty_weights(np.array([-1, 0, 1]), decay), strict=True)
        second: Reals = sum(weight**2 * probability * decay ** np.abs(seen - true) for seen, weight in weights)
        noise = float((second - (true == 0)).sum())
        empty = self.columns * (1 - 1 / self.columns) ** support
        return math.hypot(self.std(support), self.columns / empty * math.sqrt(max(noise, 0.0)))


@dataclass(frozen=True, slots=True)
class WeightedCounting(_Buckets):
    r"""How many different items occur: every item adds its own random weight, never 0, to one bucket.

    Sums are taken modulo the prime :math:`p = 2^{61} - 1`.  A bucket with items in it sums to 0 with probability
    :math:`2/p` at most (for fewer than :math:`p` users), and its sum says nothing of how often they occur.  It
    works without noise only: after noise an empty bucket could not be told from a sum of weights.
    """

    bound: ClassVar[int] = PRIME - 1  # a user's weight is any residue but 0
    sensitivity: ClassVar[int] = 2 * (PRIME - 1)  # two buckets change by any residue
    modulus: ClassVar[int] = PRIME  # sums are residues of this prime

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """One bucket, and the item's weight."""
        weights = Hashes(1, 2, self.seed, part=1).values(np.ravel(items)) % np.uint64(PRIME - 1) + np.uint64(1)
        return self.places(items), weights.astype(np.int64)

    def table(self, items: ArrayLike, counts: ArrayLike | None = None) -> Wholes:
        """All buckets' sums modulo the prime, exactly, as somebody who sees all items adds them up."""
        [places], [weights] = self.cells(items)
        often = np.ones_like(weights) if counts is None else wholes("counts", counts, 0, 2**53)
        parts = times(weights.astype(np.uint64), often.astype(np.uint64)).astype(np.int64)
        low, high = (np.zeros(self.columns, dtype=np.int64) for _ in range(2))
        np.add.at(low, places, parts & (2**31 - 1))
        np.add.at(high, places, parts >> 31)
        carried = times(high.astype(np.uint64), np.full_like(high, 2**31, dtype=np.uint64))
        return ((carried + low.astype(np.uint64)) % np.uint64(PRIME)).astype(np.int64)

    def estimate(self, table: Table) -> float:
        """The number of different items, from the share of empty buckets."""
        return _occupied_to_support(int(np.count_nonzero(shaped(table, self.shape) == 0)), self.columns)


def empty_weights(counts: ArrayLike, decay: float) -> Reals:
    r"""For each noisy count, a number whose mean is 1 where the true count is 0, and 0 elsewhere.

    The noise is discrete Laplace, of mass proportional to decay^\|j\|.
    """
    p = check(decay=decay)["decay"]
    size = np.abs(wholes("counts", counts, -(2**53), 2**53))
    return np.asarray(np.select([size == 0, size == 1], [1 + p * p, -p], 0.0) / (1 - p) ** 2)


def _occupied_to_support(empty: float, columns: int) -> float:
    """How many different items leave so many buckets empty; infinite where none is left."""
    return -columns * math.log(min(empty, columns) / columns) + 0.0 if empty > 0 else math.inf
