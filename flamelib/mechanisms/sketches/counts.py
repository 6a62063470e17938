"""How often an item occurs, and sums of squares: rows of counters, each with a hash function of its own."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, Wholes, reals
from flamelib.core.vocabulary import DomainError, check, keep
from flamelib.mechanisms.sketches.hashing import Hashes
from flamelib.mechanisms.sketches.linear import MOST_COUNTERS, Table, shaped


@dataclass(frozen=True, slots=True)
class _Hashed:
    """Rows of counters; one hash function a row."""

    bound: ClassVar[int] = 1  # a user adds or takes 1 at each counter
    columns: int
    rows: int
    seed: int

    def __post_init__(self) -> None:
        keep(self, **check(columns=self.columns, rows=self.rows, seed=self.seed))
        if self.columns * self.rows > MOST_COUNTERS:
            raise DomainError(f"rows times columns must be at most 2^28, got {self.rows} times {self.columns}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.rows, self.columns

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
class CountMin(_Hashed):
    r"""How often an item occurs, from above: every item adds 1 to one counter of each row.

    Without noise :math:`f_x \le \hat f_x`, and :math:`\hat f_x \le f_x + \alpha n` but for probability :math:`\xi`,
    with :math:`w = \lceil e / \alpha \rceil` columns and :math:`D = \lceil \ln(1/\xi) \rceil` rows.

    Source: Cormode, Muthukrishnan 2005.
    """

    @classmethod
    def within(cls, accuracy: float, failure: float, seed: int) -> Self:
        """The smallest sketch of this form with the guarantee."""
        accuracy, failure = check(accuracy=accuracy, failure=failure).values()
        return cls(math.ceil(math.e / accuracy), math.ceil(-math.log(failure)), seed)

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """One counter of each row, 1 each."""
        places = self.places(items)
        return places, np.ones_like(places)

    def estimate(self, table: Table, items: ArrayLike, rule: str = "min") -> Reals:
        """How often each item occurs: the least counter of all rows, or, better under noise, their ``median``."""
        if rule not in ("min", "median"):
            raise DomainError(f"rule must be one of min, median, got {rule!r}")
        found = self.read(table, items)
        return found.min(axis=0) if rule == "min" else np.asarray(np.median(found, axis=0))


@dataclass(frozen=True, slots=True)
class CountSketch(_Hashed):
    r"""How often an item occurs, without bias: every item adds its sign to one counter of each row.

    A row is off by :math:`\sqrt{(F_2 - f_x^2) / w}` in standard deviation; the median of :math:`D` rows is within
    :math:`\alpha \lVert f \rVert_2` unless half of the rows are off by more, each with a probability of at most
    :math:`1 / (w \alpha^2)` by Chebyshev's inequality.  The sum of squares of a row has mean
    :math:`F_2` and variance :math:`2 (F_2^2 - F_4) / w`.

    Source: Charikar, Chen, Farach-Colton 2004; Thorup, Zhang 2004 (second moment).
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


@dataclass(frozen=True, slots=True)
class SecondMoment(_Hashed):
    r"""Sum of squares of all counts by random signs: every item adds its sign to every counter.

    .. math:: Z = \sum_x s(x) f_x, \qquad E Z^2 = F_2, \qquad \mathrm{Var} Z^2 = 2 (F_2^2 - F_4) \le 2 F_2^2

    with 4-wise independent signs.  The estimate is the median over rows of the mean over their columns.  A user
    touches every counter, so the sensitivity is :math:`2 D w`, against :math:`2 D` of
    :meth:`CountSketch.second_moment`, which has the same variance without noise.  Source: Alon, Matias, Szegedy 1999.
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
