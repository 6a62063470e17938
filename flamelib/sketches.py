r"""Linear sketches: a user's item becomes a vector of whole numbers, and the sum of all vectors answers questions.

A sketch knows which counters an item touches and by how much (``cells``); its table is the sum of all users' vectors,
whoever adds them up.  Linearity is what secure aggregation needs, and what rules out sketches of maxima such as
HyperLogLog: a maximum is no sum.  Hash functions are public (:mod:`flamelib.hashing`).

``sensitivity`` is the largest change of the table in the :math:`\ell_1` norm when one user's item is replaced, and
``bound`` the largest entry of a user's vector in absolute value.  No epsilon is computed here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from flamelib._arrays import Reals, Wholes, reals, wholes
from flamelib._validate import DomainError, check
from flamelib.hashing import PRIME, Hashes

MOST_COUNTERS = 2**28
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
    """The vectors that users send in: one row for each user's item, one column for each counter.

    Parameters
    ----------
    sketch : Sketch
    items : array of n whole numbers

    Returns
    -------
    array of shape (n, counters)

    Examples
    --------
    >>> contributions(CountSketch(columns=4, rows=1, seed=1), [3, 4])
    array([[ 0,  0, -1,  0],
           [ 0, -1,  0,  0]])
    """
    places, added = sketch.cells(items)
    vectors = np.zeros((places.shape[1], math.prod(sketch.shape)), dtype=np.int64)
    np.add.at(vectors, (np.arange(places.shape[1]), places), added)
    return vectors


def direct_table(sketch: Sketch, items: ArrayLike, counts: ArrayLike | None = None) -> Wholes:
    """The table as somebody who sees all items adds it up, exactly; ``counts`` says how often each, negative or not.

    Examples
    --------
    >>> direct_table(CountMin(columns=4, rows=2, seed=1), [3, 4, 3])
    array([[0, 0, 0, 3],
           [0, 3, 0, 0]])
    """
    places, added = sketch.cells(items)
    weighted = added if counts is None else added * wholes("counts", counts, -(2**53), 2**53)
    table = np.zeros(math.prod(sketch.shape), dtype=np.int64)
    np.add.at(table, places, weighted)
    return table.reshape(sketch.shape)


def majority_failure(rate: float, rows: int) -> float:
    """Chance, from above, that at least half of independent rows fail: what a median of rows does not survive.

    >>> [round(majority_failure(0.25, rows), 6) for rows in (1, 3, 9)]
    [0.25, 0.15625, 0.048927]
    """
    check(rows=rows)
    return min(1.0, float(binom.sf((rows + 1) // 2 - 1, rows, reals("rate", rate, 0, 1))) * (1 + 1e-9))


@dataclass(frozen=True, slots=True)
class Total:
    r"""The sum of values from [0, 1], each rounded to a whole number of steps: one counter and no hashing.

    Items are the rounded values, in {0, ..., scale}; see :func:`flamelib.encoding.round_randomly`.

    Examples
    --------
    >>> sketch = Total(scale=100)
    >>> sketch.estimate(direct_table(sketch, [25, 100])), sketch.sensitivity
    (1.25, 100)
    """

    scale: int

    def __post_init__(self) -> None:
        check(scale=self.scale)

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
        """From 0 to 1, or back."""
        return self.scale

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """The counter, and the rounded value."""
        steps = wholes("items", np.ravel(items), 0, self.scale)[None]
        return np.zeros_like(steps), steps

    def estimate(self, table: Table) -> float:
        """The sum of the values."""
        return float(shaped(table, self.shape)[0]) / self.scale


@dataclass(frozen=True, slots=True)
class Hashed:
    """Rows of counters; one hash function a row."""

    columns: int
    rows: int
    seed: int

    def __post_init__(self) -> None:
        check(columns=self.columns, rows=self.rows, seed=self.seed)
        if self.columns * self.rows > MOST_COUNTERS:
            raise DomainError(f"rows times columns must be at most 2^28, got {self.rows} times {self.columns}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def bound(self) -> int:
        """A user adds or takes 1."""
        return 1

    @property
    def sensitivity(self) -> int:
        """Two counters of every row change by 1, or one by 2."""
        return 2 * self.rows

    def places(self, items: ArrayLike) -> Wholes:
        """Numbers of the counters that each item touches, one in every row, of shape (rows, n)."""
        starts = self.columns * np.arange(self.rows)[:, None]
        return np.asarray(starts + Hashes(self.rows, 2, self.seed).buckets(np.ravel(items), self.columns))

    def read(self, table: Table, items: ArrayLike) -> Reals:
        """The counters that each item touches, of shape (rows, n)."""
        return np.asarray(shaped(table, self.shape).ravel()[self.places(items)], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class CountMin(Hashed):
    r"""How often an item occurs, from above: every item adds 1 to one counter of each row.

    Without noise :math:`f_x \le \hat f_x`, and :math:`\hat f_x \le f_x + \alpha n` but for probability :math:`\xi`,
    with :math:`w = \lceil e / \alpha \rceil` columns and :math:`D = \lceil \ln(1/\xi) \rceil` rows.

    Source: Cormode, Muthukrishnan 2005.

    Examples
    --------
    >>> sketch = CountMin.within(accuracy=0.01, failure=0.01, seed=1)
    >>> sketch.shape, sketch.sensitivity
    ((5, 272), 10)
    >>> sketch.estimate(direct_table(sketch, [7] * 30 + [8] * 5), [7, 8, 9])
    array([30.,  5.,  0.])
    """

    @classmethod
    def within(cls, accuracy: float, failure: float, seed: int) -> Self:
        """The smallest sketch of this form with the guarantee."""
        check(accuracy=accuracy, failure=failure)
        return cls(math.ceil(math.e / accuracy), math.ceil(-math.log(failure)), seed)

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """One counter of each row, 1 each."""
        places = self.places(items)
        return places, np.ones_like(places)

    def estimate(self, table: Table, items: ArrayLike, rule: str = "min") -> Reals:
        """How often each item occurs: the least counter of all rows, or their median where noise was added.

        With noise the least of several counters is too small on average; the median is not drawn down by it.
        """
        if rule not in ("min", "median"):
            raise DomainError(f"rule must be one of min, median, got {rule!r}")
        found = self.read(table, items)
        return found.min(axis=0) if rule == "min" else np.asarray(np.median(found, axis=0))

    def excess(self, n_users: int) -> float:
        """Mean of what other items add to a counter, from above: Markov's inequality bounds a row by it."""
        return float(check(n_users=n_users)["n_users"] / self.columns)

    def failure(self, n_users: int, error: float) -> float:
        """Chance, from above, that an item is overestimated by more than ``error`` without noise."""
        return min(1.0, (self.excess(n_users) / error) ** self.rows) if error > 0 else 1.0


@dataclass(frozen=True, slots=True)
class CountSketch(Hashed):
    r"""How often an item occurs, without bias: every item adds its sign to one counter of each row.

    A row is off by :math:`\sqrt{(F_2 - f_x^2) / w}` in standard deviation; the median of :math:`D` rows is within
    :math:`\alpha \lVert f \rVert_2` but for the chance of :meth:`failure`.  The sum of squares of a row has mean
    :math:`F_2` and variance :math:`2 (F_2^2 - F_4) / w`.

    Source: Charikar, Chen, Farach-Colton 2004; Thorup, Zhang 2004 (second moment).

    Examples
    --------
    >>> sketch = CountSketch(columns=300, rows=5, seed=1)
    >>> table = direct_table(sketch, [7] * 30 + [8] * 5)
    >>> sketch.estimate(table, [7, 8, 9]), sketch.second_moment(table)
    (array([30.,  5.,  0.]), 925.0)
    """

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """One counter of each row, +1 or -1."""
        return self.places(items), self._signs(items)

    def _signs(self, items: ArrayLike) -> Wholes:
        return Hashes(self.rows, 4, self.seed, part=1).signs(np.ravel(items))

    def estimate(self, table: Table, items: ArrayLike) -> Reals:
        """How often each item occurs: the median over rows of sign times counter."""
        return np.asarray(np.median(self._signs(items) * self.read(table, items), axis=0))

    def second_moment(self, table: Table, noise_variance: float = 0.0) -> float:
        """Sum of the squares of all counts: the median over rows of the sum of squares, less what noise adds."""
        squares = np.square(reals("table", shaped(table, self.shape))).sum(axis=1)
        return float(np.median(squares) - self.columns * noise_variance)

    def failure(self, accuracy: float) -> float:
        r"""Chance, from above, that an estimate errs by more than :math:`\alpha \lVert f \rVert_2`, by Chebyshev's."""
        check(accuracy=accuracy)
        return majority_failure(min(1.0, 1 / (self.columns * accuracy**2)), self.rows)


@dataclass(frozen=True, slots=True)
class SecondMoment(Hashed):
    r"""Sum of squares of all counts by random signs: every item adds its sign to every counter.

    .. math:: Z = \sum_x s(x) f_x, \qquad E Z^2 = F_2, \qquad \mathrm{Var} Z^2 = 2 (F_2^2 - F_4) \le 2 F_2^2

    with 4-wise independent signs.  The mean over the columns of a row, then the median over rows.  A user touches
    every counter, so the sensitivity is :math:`2 D w`, against :math:`2 D` of :meth:`CountSketch.second_moment`, which
    has the same variance without noise.

    Source: Alon, Matias, Szegedy 1999.

    Examples
    --------
    >>> sketch = SecondMoment(columns=200, rows=3, seed=1)
    >>> sketch.estimate(direct_table(sketch, [7] * 30 + [8] * 5)), sketch.sensitivity
    (916.0, 1200)
    """

    @property
    def sensitivity(self) -> int:
        """Every counter may turn from -1 to +1."""
        return 2 * self.rows * self.columns

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """All counters, +1 or -1."""
        signs = Hashes(self.rows * self.columns, 4, self.seed).signs(np.ravel(items))
        return np.broadcast_to(np.arange(len(signs))[:, None], signs.shape), signs

    def estimate(self, table: Table, noise_variance: float = 0.0) -> float:
        """Sum of the squares of all counts; the variance of the noise of a counter is taken off."""
        means = np.square(reals("table", shaped(table, self.shape))).mean(axis=1)
        return float(np.median(means) - noise_variance)


def shaped(table: Table, shape: tuple[int, ...]) -> Table:
    """The table as an array; refuses another shape than the sketch has."""
    if np.shape(table) != shape:
        raise DomainError(f"table must have shape {shape}, got {np.shape(table)}")
    return np.asarray(table)


def distinct(items: ArrayLike) -> tuple[Wholes, Wholes]:
    """The different items, in increasing order, and how often each occurs.

    >>> [part.tolist() for part in distinct([3, 1, 3])]
    [[1, 3], [1, 2]]
    """
    found, counts = np.unique(wholes("items", items, 0, PRIME - 1), return_counts=True)
    return found, counts.astype(np.int64)


def moments(counts: Sequence[int] | Wholes) -> tuple[float, float]:
    r"""Sums of squares and of fourth powers of counts, :math:`F_2` and :math:`F_4`.

    >>> moments([30, 5])
    (925.0, 810625.0)
    """
    squares = np.square(reals("counts", counts))
    return float(squares.sum()), float(np.square(squares).sum())
