r"""Linear sketches: a user's item becomes a vector of whole numbers, and the sum of all vectors answers questions.

A sketch knows which counters an item touches and by how much (``cells``); its table is the sum of all users' vectors,
whoever adds them up.  Linearity is what secure aggregation needs, and what rules out sketches of maxima such as
HyperLogLog: a maximum is no sum.  Hash functions are public (:mod:`flamelib.mechanisms.sketches.hashing`).

``sensitivity`` is the largest change of the table in the :math:`\ell_1` norm when one user's item is replaced, and
``bound`` the largest entry of a user's vector in absolute value.  No epsilon is computed here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core import binomial
from flamelib.core.arrays import Wholes, reals, wholes
from flamelib.core.vocabulary import Checked, DomainError, check
from flamelib.mechanisms.sketches.hashing import PRIME

MOST_COUNTERS = 2**28  # 2 GiB of 64-bit whole numbers
Table = NDArray[Any]


class Sketch(Protocol):
    """What every linear sketch can be asked."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the table."""

    @property
    def bound(self) -> int:
        """Largest entry of a user's vector, in absolute value."""

    @property
    def sensitivity(self) -> int:
        """Largest change of the table, in the sum of absolute values, when one user's item is replaced."""

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """Numbers of the counters that each item touches and what it adds there, both of shape (touched, n)."""


def contributions(sketch: Sketch, items: ArrayLike) -> Wholes:
    """The vectors that users send in: one row for each user's item, one column for each counter."""
    places, added = sketch.cells(items)
    vectors = np.zeros((places.shape[1], math.prod(sketch.shape)), dtype=np.int64)
    np.add.at(vectors, (np.arange(places.shape[1]), places), added)
    return vectors


def direct_table(sketch: Sketch, items: ArrayLike, counts: ArrayLike | None = None) -> Wholes:
    """The table as somebody who sees all items adds it up, exactly; ``counts`` says how often each, negative or not."""
    places, added = sketch.cells(items)
    weighted = added if counts is None else added * wholes("counts", counts, -(2**53), 2**53)
    table = np.zeros(math.prod(sketch.shape), dtype=np.int64)
    np.add.at(table, places, weighted)
    return table.reshape(sketch.shape)


def majority_failure(rate: float, rows: int) -> float:
    """Upper bound on the probability that at least half of independent rows fail, so that their median may fail."""
    rows = check(rows=rows)["rows"]
    return min(1.0, float(binomial.sf((rows + 1) // 2 - 1, rows, reals("rate", rate, 0, 1))) * (1 + 1e-9))


@dataclass(frozen=True, slots=True)
class Total(Checked):
    """The sum of values from [0, 1], each rounded to {0, ..., scale} steps: one counter and no hashing."""

    scale: int

    @property
    def shape(self) -> tuple[int, ...]:
        """One counter."""
        return (1,)

    @property
    def bound(self) -> int:
        """A user adds the number of steps at most."""
        return self.scale

    @property
    def sensitivity(self) -> int:
        """A value may change from 0 to 1, or back."""
        return self.scale

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """The counter, and the rounded value."""
        steps = wholes("items", np.ravel(items), 0, self.scale)[None]
        return np.zeros_like(steps), steps

    def estimate(self, table: Table) -> float:
        """The sum of the values."""
        return float(shaped(table, self.shape)[0]) / self.scale


def shaped(table: Table, shape: tuple[int, ...]) -> Table:
    """The table as an array; refuses another shape than the sketch has."""
    if np.shape(table) != shape:
        raise DomainError(f"table must have shape {shape}, got {np.shape(table)}")
    return np.asarray(table)


def distinct(items: ArrayLike) -> tuple[Wholes, Wholes]:
    """The different items, in increasing order, and how often each occurs."""
    found, counts = np.unique(wholes("items", items, 0, PRIME - 1), return_counts=True)
    return found, counts.astype(np.int64)


def moments(counts: Sequence[int] | Wholes) -> tuple[float, float]:
    r"""Sums of squares and of fourth powers of counts, :math:`F_2` and :math:`F_4`."""
    squares = np.square(reals("counts", counts))
    return float(squares.sum()), float(np.square(squares).sum())
