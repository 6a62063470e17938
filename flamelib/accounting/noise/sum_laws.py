r"""Distributions of the noise in a sum of values: masses and tails at every integer, on grids of any fineness.

Both distributions are symmetric and unimodal, as mixtures of such.

*Thinned noise*: each of n users adds, with probability q, a two-sided geometric variable of ratio p, of generating
function :math:`1-q+q\frac{(1-p)^2}{(1-pz)(1-p/z)}`.  It is :math:`g(z)g(1/z)` with
:math:`g(z)=1-\pi+\pi\frac{(1-p)z}{1-pz}` and :math:`\pi^2-(1+p)\pi+qp=0`.  So the sum is :math:`X-Y` of i.i.d. X, Y,
each the sum of :math:`\mathrm{Bin}(n,\pi)` variables 1 + Geo(p).  Expanding X,

.. math:: P(W=x) = p^x\sum_l A_l\binom{x-1}l\quad(x\ge1),\qquad A_l=\sum_i a_{i+l}w_i,\qquad
          a_l=\binom n{l+1}(1-\pi)^{n-l-1}\Big(\pi\frac{1-p}p\Big)^{l+1},

with :math:`\sum_iw_it^i=E[p^Y(1+t)^Y]=\big(h_0+\frac{h_1t}{1-\alpha t}\big)^n`, :math:`\alpha=\frac{p^2}{1-p^2}`,
:math:`h_0=1-\frac\pi{1+p}`, :math:`h_1=\frac{\pi p}{(1+p)(1-p^2)}`; tails are of the same form.  All terms are positive
and kept as logarithms; counts of X of total mass below ``exp(-LOG_LOST)`` are omitted (``log_lost``).  At 0,
:math:`\sum_j\mathrm{Bin}(n,q)(j)\,\kappa^jP_{j-1}(z)` by Legendre polynomials, :math:`\kappa=\frac{1-p}{1+p}`,
:math:`z=\frac{1+p^2}{1-p^2}`.

*Pólya noise*: shares of a fraction r of the planned users, :math:`X-Y` of negative binomial variables,
:math:`\big(\frac{(1-p)^2}{(1-pz)(1-p/z)}\big)^r`.  At r = 1 it is two-sided geometric; for r < 1, by the contour around
the branch cut, a mixture of geometric distributions:

.. math:: P(W=x) = \frac{\sin\pi r}\pi(1-p)^{2r}\,p^x\int_0^\infty\frac{(1+v)^{r-x-1}}{v^r(1-p^2+v)^r}\,dv .
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from flamelib.core.arrays import NODES, WEIGHTS, Reals, log_sum
from flamelib.core.binomial import log_tail
from flamelib.core.logspace import UNIT, log1mexp, logaddexp
from flamelib.core.search import least_whole
from flamelib.core.vocabulary import DomainError, check, keep

LOG_LOST = 200.0  # minus the logarithm of the omitted mass
MAX_SUMMANDS = 512  # summands, at most: the work is quadratic in them


class Noise(Protocol):
    r"""Interface of a noise distribution: ``concave`` means log-concave on x >= 1, else it is log-convex there.

    ``log_mass(x)`` and ``log_above(x)`` are the logarithms of :math:`P(W=x)` and :math:`P(W\ge x)` for x of at least 1,
    up to an omitted mass of at most ``exp(log_lost)``; ``log_atom`` is that of :math:`P(W=0)`; ``error(x)`` bounds
    their errors.
    """

    @property
    def decay(self) -> float: ...
    @property
    def concave(self) -> bool: ...
    @property
    def log_lost(self) -> float: ...
    @property
    def log_atom(self) -> float: ...
    def log_mass(self, x: int) -> float: ...
    def log_above(self, x: int) -> float: ...
    def error(self, x: int) -> float: ...


@dataclass(frozen=True)
class ThinnedNoise:
    """Sum over users who each add, with probability ``noise_rate``, a two-sided geometric variable.

    Refused for more than 512 summands, or where log-concavity on x >= 1 is not certain; by Vandermonde's identity it
    follows from that of the :math:`A_l`, which is checked.
    """

    n_users: int
    decay: float
    noise_rate: float
    concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep(self, **check(decay=self.decay, noise_rate=self.noise_rate))
        if self.last > MAX_SUMMANDS:
            raise DomainError(
                f"n_users times noise_rate must leave at most {MAX_SUMMANDS} numbers to add up, got {self.last}"
            )

    @cached_property
    def last(self) -> int:
        """Quantile of the number of summands, at tail mass ``exp(-LOG_LOST)``."""
        return rare_count(self.n_users, self.noise_rate)

    @property
    def log_lost(self) -> float:
        """Logarithm of a bound on the omitted mass."""
        return -LOG_LOST if self.last < self.n_users else -math.inf

    @cached_property
    def coefficients(self) -> tuple[Reals, Reals]:
        """Logarithms of the coefficients of masses and of tails."""
        p, q, n, count = self.decay, self.noise_rate, self.n_users, self.last
        root = math.sqrt((1 - p) ** 2 + 4 * p * (1 - q))
        log_p, log_gap = math.log(p), math.log(1 - p)
        log_part = math.log(2 / (1 + p + root)) + math.log(q) + log_p
        part, rest = math.exp(log_part), (1 - p + root) / 2
        log_rest = math.log(rest) if rest < 0.5 else math.log1p(-part)
        first = _binomial_terms(n, count, log_rest, log_part + log_gap - log_p)[1:]
        log_odds = log_part + log_p - log_gap - 2 * math.log1p(p)
        split = _binomial_terms(n, count, math.log1p(-part / (1 + p)), log_odds)
        alpha = 2 * log_p - log_gap - math.log1p(p)
        tilted = [split[0]]
        for m in range(1, count):
            j = np.arange(m)
            tilted.append(log_sum(split[1 : m + 1] + (m - 1 - j) * alpha + _log_choose(m - 1, m)))
        masses = _correlated(first, np.array(tilted))
        # Second differences of logarithms, beyond round-off.
        if (2 * masses[1:-1] - masses[:-2] - masses[2:] < 1e-9).any():
            raise DomainError(f"n_users and noise_rate must give noise that is log-concave from 1 on, got {self}")
        powers = np.arange(count)
        return masses, _correlated(masses, powers * log_p - (powers + 1) * log_gap)

    @cached_property
    def log_atom(self) -> float:
        """``log P(W = 0)`` (upper bound), by the recursion of ratios of Legendre polynomials, stable beyond 1."""
        p, q = self.decay, self.noise_rate
        mean = (1 + p * p) / ((1 - p) * (1 + p))
        log_total, log_legendre, ratio = -math.inf, 0.0, 1.0
        if q < 1:
            counts = _binomial_terms(self.n_users, self.last, math.log1p(-q), math.log(q))
            log_total = float(counts[0])
        else:
            counts = np.where(np.arange(self.last + 1) == self.n_users, 0.0, -np.inf)
        log_step = math.log1p(-p) - math.log1p(p)
        for j in range(1, self.last + 1):
            log_total = logaddexp(log_total, float(counts[j]) + j * log_step + log_legendre)
            ratio = mean if j == 1 else ((2 * j - 1) * mean - (j - 1) / ratio) / j
            log_legendre += math.log(ratio)
        return logaddexp(log_total, self.log_lost)

    @property
    def log_mean(self) -> float:
        r"""Logarithm of :math:`E|W|`, which is :math:`2\sum_{x\ge1}P(W\ge x)`."""
        odds = math.log(self.decay) - math.log(1 - self.decay)
        tails = self.coefficients[1]
        return math.log(2) + log_sum(tails + (np.arange(len(tails)) + 1) * odds)

    def log_mass(self, x: int) -> float:
        """``log P(W = x)``."""
        return self._at(x, self.coefficients[0])

    def log_above(self, x: int) -> float:
        """``log P(W >= x)``."""
        return self._at(x, self.coefficients[1])

    def error(self, x: int) -> float:
        """A few units of rounding of the largest logarithms; no cancellation."""
        size = max(float(np.abs(logs).max()) for logs in self.coefficients) - x * math.log(self.decay)
        return 8 * UNIT * (size + self.last * math.log(x + 1.0))

    def _at(self, x: int, logs: Reals) -> float:
        return x * math.log(self.decay) + log_sum(logs + _log_choose(x - 1, len(logs)))


@dataclass(frozen=True)
class PolyaNoise:
    """Sum of the Pólya shares of ``n_users``, of which ``planned`` add up to a two-sided geometric variable.

    More shares than planned are a post-processing of those planned.
    """

    n_users: int
    planned: int
    decay: float
    log_lost: ClassVar[float] = -math.inf

    @property
    def concave(self) -> bool:
        """Two-sided geometric noise is both; with fewer shares it is log-convex."""
        return self.n_users >= self.planned

    @cached_property
    def log_atom(self) -> float:
        """``log P(W = 0)``."""
        return math.log1p(-self.decay) - math.log1p(self.decay) if self.concave else self.log_between(0, 1)

    def log_mass(self, x: int) -> float:
        """``log P(W = x)``."""
        return x * math.log(self.decay) + self.log_atom if self.concave else self.log_between(x, 1)

    def log_above(self, x: int) -> float:
        """``log P(W >= x)``."""
        return x * math.log(self.decay) - math.log1p(self.decay) if self.concave else self.log_between(x, math.inf)

    def error(self, x: int) -> float:
        """Bound on the error of a logarithm, 1e-11 by quadrature."""
        return (0.0 if self.concave else 1e-11) + 8 * UNIT * (1 - x * math.log(self.decay))

    def log_between(self, x: int, count: float) -> float:
        """``log P(x <= W < x + count)`` for fewer shares than planned.

        Composite Gauss rule in log v; below and beyond the panels the integrand is a power of v.
        """
        high = 44.0  # upper end of the panels in log v
        p, r, lacking = self.decay, self.n_users / self.planned, (self.planned - self.n_users) / self.planned
        gap, wide, log_p = 1 - p, (1 - p) * (1 + p), math.log(self.decay)
        low = math.log(1e-18) + min(math.log(gap), -math.log(x + 1.0))
        edges = np.linspace(low, high, 1 + math.ceil((high - low) / 2.0))  # width of a panel: 2
        half = np.diff(edges)[:, None] / 2
        u = (edges[:-1, None] + half + half * NODES).ravel()
        v = np.exp(u)
        log_factor = np.log(-np.expm1(float(count) * (log_p - np.log1p(v)))) - np.log(v + gap)
        logs = lacking * u - r * np.log(v + wide) + (r - x) * np.log1p(v) + log_factor
        below = lacking * low - math.log(lacking) - r * math.log(wide) + log1mexp(-count * log_p) - math.log(gap)
        beyond = -r * high - math.log(r) if x == 0 else -math.inf
        total = log_sum(np.append(logs + np.log((half * WEIGHTS).ravel()), [below, beyond]))
        return math.log(math.sin(math.pi * min(r, lacking)) / math.pi) + 2 * r * math.log(gap) + x * log_p + total


def log_from(noise: Noise, x: int) -> float:
    """``log P(W >= x)`` for every integer x, by symmetry."""
    return noise.log_above(x) if x >= 1 else log1mexp(-noise.log_above(1 - x))


def rare_count(n_users: int, rate: float) -> int:
    """Least k with ``P[Bin(n_users, rate) > k] <= exp(-LOG_LOST)``."""
    first = math.floor(n_users * rate)

    def is_rare(count: int) -> bool:
        return float(log_tail(np.array(count + 1.0), n_users, rate)) <= -LOG_LOST

    return max(least_whole(is_rare, first, max(first, n_users)), 1)


def _log_choose(total: int, count: int) -> Reals:
    """``log C(total, j)`` for j from 0 to ``count - 1``."""
    below = np.arange(count - 1)
    with np.errstate(divide="ignore"):
        return np.append(0.0, np.cumsum(np.log(np.maximum(float(total) - below, 0.0) / (below + 1))))


def _binomial_terms(n_users: int, count: int, log_rest: float, log_part: float) -> Reals:
    """Logarithms of ``C(n, j) rest^(n-j) part^j`` for j from 0 to ``count``."""
    j = np.arange(count + 1)
    return np.asarray(_log_choose(n_users, count + 1) + (n_users - j) * log_rest + j * log_part)


def _correlated(left: Reals, right: Reals) -> Reals:
    """``sum_i left[m + i] right[i]`` of logarithms, at every m."""
    return np.array([log_sum(left[m:] + right[: len(left) - m]) for m in range(len(left))])
