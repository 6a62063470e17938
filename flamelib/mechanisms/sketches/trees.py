"""Trees of counters: quantiles by halves, and frequent items found letter by letter.

An item is a number of :math:`L` digits to some base; level :math:`l` counts items by their first :math:`l` digits.  The
root, level 0, would count all users, whose number is public, and is left out.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, Wholes, reals, wholes
from flamelib.core.vocabulary import DomainError, check, keep
from flamelib.mechanisms.sketches.counts import CountMin, CountSketch
from flamelib.mechanisms.sketches.hashing import PRIME
from flamelib.mechanisms.sketches.linear import MOST_COUNTERS, Table, shaped


@dataclass(frozen=True, slots=True)
class DyadicQuantiles:
    r"""Ranks and quantiles of whole numbers in {0, ..., 2^levels - 1}: a counter for every node of a binary tree.

    The number of users below a value is the sum of at most ``levels`` counters, exact without noise.  A user adds 1 to
    one node of every level, and replacing its value changes two nodes of a level.

    Source: Cormode, Muthukrishnan 2005, Section 4.2; Hay et al. 2010 (noise).
    """

    bound: ClassVar[int] = 1  # a user adds 1
    levels: int

    def __post_init__(self) -> None:
        keep(self, **check(levels=self.levels))
        if 2 ** (self.levels + 1) > MOST_COUNTERS:
            raise DomainError(f"levels must be a whole number in [1, 27], got {self.levels}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Level by level from 2 nodes to 2^levels, in one row."""
        return (2 ** (self.levels + 1) - 2,)

    @property
    def sensitivity(self) -> int:
        """Two nodes of every level change by 1."""
        return 2 * self.levels

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """The ancestors of each item, 1 each."""
        depth = np.arange(1, self.levels + 1)[:, None]
        nodes = wholes("items", np.ravel(items), 0, 2**self.levels - 1) >> (self.levels - depth)
        return nodes + 2**depth - 2, np.ones_like(nodes)

    def rank(self, table: Table, values: ArrayLike) -> Reals:
        """How many users hold less than each value, which may be any in {0, ..., 2^levels}."""
        counters = reals("table", shaped(table, self.shape))
        end = wholes("values", np.ravel(values), 0, 2**self.levels)
        total = np.zeros(end.shape)
        for depth in range(1, self.levels + 1):
            node = end >> (self.levels - depth)
            # The left half of the parent lies below the value where the value is in the right half.
            total += np.where(node & 1, counters[np.maximum(node - 1, 0) + 2**depth - 2], 0.0)
        return total + np.where(end == 2**self.levels, counters[0] + counters[1], 0.0)

    def quantile(self, table: Table, share: float, n_users: int) -> int:
        """The least value that at least this share of the users do not exceed; found from the root down."""
        counters, n_users = reals("table", shaped(table, self.shape)), check(n_users=n_users)["n_users"]
        wanted, node = max(1.0, math.ceil(float(reals("share", share, 0, 1)) * n_users)), 0
        for depth in range(1, self.levels + 1):
            node *= 2
            below = counters[node + 2**depth - 2]
            if below < wanted:
                wanted, node = wanted - below, node + 1
        return node


@dataclass(frozen=True, slots=True)
class PrefixSearch:
    r"""Frequent items of a large domain that nobody has to list beforehand: a sketch for every length of prefix.

    An item is a number of ``levels`` digits to ``base``; level :math:`l` holds a sketch of its first :math:`l` digits.
    The analyzer starts at the empty prefix, appends every digit, and follows what occurs often enough.

    ``signed`` chooses Count-Sketch, whose errors are without bias, for noisy tables.  With Count-Min and no noise an
    item as frequent as the threshold is never missed, for no prefix of it is rarer and no count is too small.
    ``ended`` says that after a digit 0 only zeros follow, as in words that are filled up
    (:func:`flamelib.mechanisms.sketches.hashing.numbered`).

    Source: Cormode, Muthukrishnan 2005, Section 4.1.
    """

    bound: ClassVar[int] = 1  # a user adds or takes 1
    base: int
    levels: int
    columns: int
    rows: int
    seed: int
    signed: bool = False
    ended: bool = False

    def __post_init__(self) -> None:
        keep(self, **check(base=self.base, levels=self.levels, columns=self.columns, rows=self.rows, seed=self.seed))
        if self.base**self.levels >= PRIME:
            raise DomainError(f"base to the power of levels must be below 2^61 - 1, got {self.base}^{self.levels}")
        if math.prod(self.shape) > MOST_COUNTERS:
            raise DomainError(f"levels times rows times columns must be at most 2^28, got {self.shape}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels, rows and columns."""
        return self.levels, self.rows, self.columns

    @property
    def sensitivity(self) -> int:
        """Two counters of every row of every level change by 1, or one by 2."""
        return 2 * self.rows * self.levels

    def level(self, length: int) -> CountMin | CountSketch:
        """The sketch of prefixes of this length, 1 to ``levels``."""
        kind = CountSketch if self.signed else CountMin
        return kind(self.columns, self.rows, self.seed + length - 1)

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """What every level's sketch says of the item's prefix."""
        digits = wholes("items", np.ravel(items), 0, self.base**self.levels - 1)
        size = self.rows * self.columns
        parts = []
        for length in range(1, self.levels + 1):
            places, added = self.level(length).cells(digits // self.base ** (self.levels - length))
            parts.append((places + (length - 1) * size, added))
        return np.concatenate([places for places, _ in parts]), np.concatenate([added for _, added in parts])

    def search(self, table: Table, threshold: float, most: int = 10_000) -> dict[int, float]:
        """Items whose estimate, and that of all their prefixes, reaches the threshold, the most frequent first.

        At any length at most ``most`` prefixes are followed: those of the largest estimates.
        """
        if not threshold > 0 or not math.isfinite(threshold):
            raise DomainError(f"threshold must be a number above 0, got {threshold}")
        counters, prefixes, found = shaped(table, self.shape), np.zeros(1, dtype=np.int64), np.zeros(1)
        for length in range(1, self.levels + 1):
            longer = self._extended(prefixes, length)
            found = self.level(length).estimate(counters[length - 1], longer)
            kept = np.argsort(-found, kind="stable")[:most]
            kept = kept[found[kept] >= threshold]
            prefixes, found = longer[kept], found[kept]
        return dict(zip(prefixes.tolist(), found.tolist(), strict=True))

    def _extended(self, prefixes: Wholes, length: int) -> Wholes:
        longer = prefixes[:, None] * self.base + np.arange(self.base)
        if self.ended and length > 1:
            return np.asarray(longer[(prefixes[:, None] % self.base > 0) | (np.arange(self.base) == 0)])
        return longer.ravel()
