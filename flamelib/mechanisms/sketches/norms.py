r"""Norms and entropy from sums of heavy-tailed draws: linear sketches with real weights, cut off and put on a grid.

Every item has a draw :math:`R_{xj}` of its own for each counter :math:`j`; a user sends the draw of its item, cut off
at :math:`\pm c` and rounded to multiples of :math:`1/g`, as a whole number.  Rounding moves a counter by
:math:`n / (2g)` at most.  Cutting off costs bias, and a larger :math:`c` costs sensitivity: noise for privacy
grows with :math:`c` and with the number of counters.  Draws of different items are taken to be independent
(:func:`flamelib.mechanisms.sketches.hashing.keyed_uniforms`).
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gamma, gammaincc

from flamelib.core.arrays import Reals, Wholes, reals
from flamelib.core.vocabulary import DomainError, check, keep
from flamelib.mechanisms.sketches.hashing import keyed_uniforms
from flamelib.mechanisms.sketches.linear import MOST_COUNTERS, Table, majority_failure, shaped

_TOP = 6.0  # larger draws of StableEntropy have probability below exp(-exp(5))


@dataclass(frozen=True, slots=True)
class _Stable(ABC):
    """Rows of one counter each, every one a sum of draws in [-cutoff, top]."""

    rows: int
    cutoff: float
    grid: int
    seed: int

    def __post_init__(self) -> None:
        keep(self, **check(rows=self.rows, cutoff=self.cutoff, grid=self.grid, seed=self.seed))
        if self.rows > MOST_COUNTERS or self.cutoff * self.grid > 2**40:
            raise DomainError("rows must be at most 2^28, and cutoff * grid at most 2^40")

    @property
    def shape(self) -> tuple[int, ...]:
        """A counter for each row."""
        return (self.rows,)

    @property
    def top(self) -> float:
        """The largest draw that is sent."""
        return self.cutoff

    @property
    def bound(self) -> int:
        """The largest draw on the grid."""
        return round(max(self.cutoff, self.top) * self.grid)

    @property
    def sensitivity(self) -> int:
        """Every counter may move from one end to the other."""
        return self.rows * (round(self.cutoff * self.grid) + round(self.top * self.grid))

    @abstractmethod
    def draws(self, items: ArrayLike) -> Reals:
        """The draws of each item before they are cut off, of shape (rows, n)."""

    def cells(self, items: ArrayLike) -> tuple[Wholes, Wholes]:
        """All counters, and the draws on the grid."""
        drawn = np.clip(self.draws(items), -self.cutoff, self.top)
        places = np.broadcast_to(np.arange(self.rows)[:, None], drawn.shape)
        return places, np.rint(drawn * self.grid).astype(np.int64)


@dataclass(frozen=True, slots=True)
class CauchyNorm(_Stable):
    r"""Sum of absolute values of signed counts: the median over counters of a sum of Cauchy draws.

    Counts of one crowd add up to the number of users, which is known; the norm is of interest for the difference of two
    crowds, one of which sends the negative of its draws: :math:`\lVert f - g \rVert_1`.  Without a cutoff
    :math:`|z_j|` is distributed as :math:`\lVert f \rVert_1 |C|`, whose median is the norm.  Source: Indyk 2006.
    """

    def draws(self, items: ArrayLike) -> Reals:
        """Standard Cauchy."""
        return np.tan(np.pi * (keyed_uniforms(np.ravel(items), self.rows, self.seed) - 0.5))

    def estimate(self, table: Table) -> float:
        """The norm: the median of the counters' absolute values."""
        return float(np.median(np.abs(reals("table", shaped(table, self.shape)))) / self.grid)

    def failure(self, accuracy: float, support: int, rounding: float = 0.0) -> float:
        r"""Upper bound on the probability of an error of more than the fraction :math:`\alpha` of the norm.

        A counter fails if one of its ``support`` draws was cut off, :math:`P(|C| > c) \le 2 / (\pi c)` each, or if the
        exact sum lies on the wrong side of the norm times :math:`1 \pm (\alpha - r)`, where :math:`r`, the
        ``rounding``, is what rounding may move a counter, as a fraction of the norm.  Half of all counters have to
        fail.
        """
        accuracy, support = check(accuracy=accuracy, support=support).values()
        room = accuracy - float(reals("rounding", rounding, 0))
        if room <= 0:
            return 1.0
        broken = min(1.0, support * 2 / (math.pi * self.cutoff))
        above = 1 - 2 / math.pi * math.atan(1 + room)
        below = 2 / math.pi * math.atan(1 - room)
        return min(1.0, sum(majority_failure(min(1.0, wrong + broken), self.rows) for wrong in (above, below)))


@dataclass(frozen=True, slots=True)
class StableEntropy(_Stable):
    r"""Entropy of the items' frequencies, in nats, from draws of the stable law of index 1 that is skewed to the left.

    .. math:: R = \frac{v}{\tan v} + \ln \frac{w \sin v}{v}, \quad v \sim U(0, \pi),\ w \sim \mathrm{Exp}(1), \qquad
        E e^{\theta R} = \theta^\theta

    so :math:`y_j = \sum_x \frac{f_x}{n} R_{xj}` has :math:`E e^{y_j} = e^{-H}` and
    :math:`\hat H = -\ln \frac 1K \sum_j e^{y_j}` the standard deviation :math:`\sqrt{3 / K}`, to leading order.  Draws
    above 6 have probability below :math:`e^{-e^5}` and are cut off unseen; the cutoff below makes :math:`\hat H` too
    small, by :meth:`bias`.

    Source: Clifford, Cosma 2013.
    """

    @property
    def top(self) -> float:
        """The largest draw that is sent."""
        return _TOP

    def draws(self, items: ArrayLike) -> Reals:
        """Stable of index 1, skewed to the left."""
        first, second = np.split(keyed_uniforms(np.ravel(items), 2 * self.rows, self.seed), 2)
        v = np.pi * first
        return v / np.tan(v) + np.log(-np.log(second) * np.sin(v) / v)

    def estimate(self, table: Table, n_users: int, decay: float = 0.0) -> float:
        r"""The entropy in nats; ``decay`` of discrete Laplace noise on the counters, if there is some, is divided out.

        Noise :math:`W` multiplies :math:`e^{y_j}` by :math:`e^{sW}`, :math:`s = 1 / (gn)`, with the mean
        :math:`\frac{(1 - p)^2}{(1 - p e^s)(1 - p e^{-s})}`, infinite for :math:`p e^s \ge 1`.
        """
        step = 1 / (self.grid * check(n_users=n_users)["n_users"])
        y = reals("table", shaped(table, self.shape)) * step
        return math.log(self.rows * _noise_factor(decay, step)) - float(np.logaddexp.reduce(y))

    def bias(self, counts: ArrayLike) -> float:
        r"""How much the cutoff lowers :math:`-\ln E e^{y_j}`: exact up to quadrature and the draws above 6.

        The expectation is a product over items, each :math:`E e^{p_x \max(R, -c)}`.
        """
        found, often = np.unique(reals("counts", counts, 0), return_counts=True)
        shares = found / (found @ often)
        return math.fsum(
            many * math.log(_cut_moment(share, self.cutoff) / share**share)
            for share, many in zip(shares.tolist(), often.tolist(), strict=True)
            if share > 0
        )

    def std(self, n_users: int, decay: float = 0.0) -> float:
        """Standard deviation of the estimate, to leading order in the number of counters; infinite under much noise."""
        step = 1 / (self.grid * check(n_users=n_users)["n_users"])
        square = _noise_factor(decay, 2 * step)
        if math.isinf(square):
            return square
        return math.sqrt((4 * square / _noise_factor(decay, step) ** 2 - 1) / self.rows)


def _noise_factor(decay: float, step: float) -> float:
    r"""Mean of :math:`e^{sW}` for discrete Laplace noise; infinite where the noise is too wide for that."""
    if decay != 0:
        decay = check(decay=decay)["decay"]
    if decay * math.exp(min(step, 700.0)) >= 1:
        return math.inf
    return (1 - decay) ** 2 / ((1 - decay * math.exp(step)) * (1 - decay * math.exp(-step)))


def _cut_moment(theta: float, cutoff: float) -> float:
    r"""Mean of :math:`e^{\theta \max(R, -c)}` for the stable law of :class:`StableEntropy`, by quadrature."""

    from scipy.integrate import quad

    def given(log_gap: float) -> float:
        gap = math.exp(log_gap)
        v = math.pi - gap
        base = v / math.tan(v) + math.log(math.sin(v) / v)
        edge = math.exp(min(-cutoff - base, 700.0))
        kept = math.exp(theta * base) * gamma(1 + theta) * gammaincc(1 + theta, edge)
        return float(gap / math.pi * (kept - math.exp(-theta * cutoff) * math.expm1(-edge)))

    found, _ = quad(given, -40.0, math.log(math.pi) - 1e-12, limit=200, points=[-math.log(cutoff + 1)], epsabs=1e-12)
    return float(found)
