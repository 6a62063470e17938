r"""Exact divergence of shuffled binary randomized response, and the search for its worst data set.

With m ones among the other n-1 users, the count T of their reported ones is distributed as
Bin(m, 1-q) + Bin(n-1-m, q), :math:`q = 1/(1+e^{\varepsilon_0})`, and the divergence is

.. math:: D(m) = \max_j\ \alpha P(T = j-1) - (\beta-\alpha) P(T \ge j),\qquad
          \alpha = q(e^{\varepsilon_0}-e^{\varepsilon}),\ \beta = q(e^{\varepsilon_0+\varepsilon}-1):

the optimal test is a threshold, at the mode of T tilted by :math:`\beta/\alpha`.  Maximising over all m covers both
directions.  Point probabilities and tails are a contour integral on the circle through the tilt, at a cost that does
not depend on n.

Up to ``MAX_EXHAUSTIVE`` users every m is evaluated.  Above, branch and bound: an interval of m is excluded by an upper
bound below the largest D so far; the others are subdivided and, once short, evaluated.  Where very many m remain, their
upper bound is the width of the bracket.  The upper bounds are proven: the finite sum for D(m) at integer thresholds
extends to real m and thresholds, and on an interval it exceeds its larger endpoint by at most an eighth of the squared
length times a bound on its second derivative, the sum of moduli.  It is bounded in two ways: *along* the tilted mean,
where its maximum over real thresholds is a smooth envelope of D, and *across* it at the few integer thresholds near
the mode, on short intervals.  Where the tilted mean has a nearly rational slope, of denominator ``stride``, the m of
one residue class are compared with each other.

Proofs: book, chapter on the privacy blanket, section on how the blanket divergence is computed.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from flamelib.accounting.shuffling.bromwich import NO_DELTA, Bracket
from flamelib.core.arrays import Complexes, Reals, Wholes
from flamelib.core.logspace import ROUNDING_16
from flamelib.core.vocabulary import plainly

MAX_EXHAUSTIVE = 1500  # values of m, at most, that are all evaluated
N_COVER = 256  # intervals of m of the quick upper bound
# Thresholds relative to the best one: a geometric grid of ratio 1.15.
THRESHOLD_GRID = np.sort(np.concatenate([[0.0], *(sign * 1e-4 * 1.15 ** np.arange(72) for sign in (1, -1))]))


@plainly
def worst(epsilon0: float, n_users: int, epsilon: float) -> Bracket:
    """Bracket of the log divergence, maximised over the other users and both directions."""
    if epsilon >= epsilon0:
        return NO_DELTA
    pair = Pair(epsilon0, n_users, epsilon)
    if n_users <= MAX_EXHAUSTIVE:
        return pair.best_of(np.arange(n_users))
    return pair.searched()


@plainly
def ceiling(epsilon0: float, n_users: int, epsilon: float) -> float:
    """Quick upper bound of :func:`worst` by dropping users: about that of 1 % fewer users."""
    if epsilon >= epsilon0 or n_users <= N_COVER:
        return worst(epsilon0, n_users, epsilon).high
    width = -(-n_users // N_COVER)
    starts = np.minimum(np.arange(0, n_users, width), n_users - width)
    return Pair(epsilon0, n_users - width + 1, epsilon).best_of(starts).high


@plainly
def at_the_end(epsilon0: float, n_users: int, epsilon: float) -> float:
    """Log divergence when all other users hold the same value."""
    if epsilon >= epsilon0:
        return -math.inf
    return Pair(epsilon0, n_users, epsilon).best_of(np.array([0, n_users - 1])).high


@dataclass(frozen=True)
class Pair:
    """The pair of neighbouring data sets, for every number m of ones among the other users."""

    epsilon0: float
    n_users: int
    epsilon: float

    @cached_property
    def odds(self) -> float:
        """``log(beta / alpha)`` without cancellation."""
        epsilon0, epsilon = self.epsilon0, self.epsilon
        return math.log(math.expm1(epsilon0 + epsilon)) - epsilon - math.log(math.expm1(epsilon0 - epsilon))

    def report_probabilities(self, tilt: float) -> tuple[float, float]:
        """Tilted probabilities of reporting a one, for a user who holds a one, and a zero."""
        up, down = (1 / (1 + math.exp(-tilt - sign * self.epsilon0)) for sign in (1, -1))
        return up, down

    def tilted(self, ones: Wholes, tilt: float) -> tuple[Reals, Reals]:
        """Mean and standard deviation of T tilted by ``exp(tilt * T)``."""
        up, down = self.report_probabilities(tilt)
        zeros = self.n_users - 1 - ones
        return ones * up + zeros * down, np.sqrt(ones * up * (1 - up) + zeros * down * (1 - down))

    def best_of(self, ones: Wholes) -> Bracket:
        """Bracket of the largest log D(m) over these m."""
        logs, error = self.divergence(ones)
        return Bracket(float(logs.max()) - error, float(logs.max()) + error)

    def divergence(self, ones: Wholes) -> tuple[Reals, float]:
        """``log D(m)`` and its error: the tilted mode is the tilted mean, rounded down or up."""
        below = np.minimum(np.floor(self.tilted(ones, self.odds)[0]), self.n_users - 2)
        logs, error = self.log_divergence(ones, below, np.array([0.0, 1.0]))
        return np.asarray(logs.max(0)), error

    def searched(self) -> Bracket:
        """Branch and bound over m: see the module."""
        (starts, stops), low = self.intervals(), -math.inf
        for _ in range(8):  # refinements at most
            found = self.bounded(starts, stops)
            low = max(low, found.low, self.best_of(self.aligned(found.top, found.offset)).low)
            high, open_ = max(low, float(found.bounds.max())), found.bounds >= low
            starts, stops = starts[open_], stops[open_]
            lengths = (stops - starts) // self.stride
            size = int(lengths.sum())
            if high - low <= 1e-7 or size <= MAX_EXHAUSTIVE or 8 * len(starts) > MAX_EXHAUSTIVE:
                break
            edges = starts[:, None] + self.stride * np.linspace(0, lengths, 9, axis=1).astype(np.int64)
            starts, stops = edges[:, :-1].ravel(), edges[:, 1:].ravel()
            starts, stops = starts[stops > starts], stops[stops > starts]
        if size > 4 * MAX_EXHAUSTIVE:
            return Bracket(low, high)
        ones = [np.arange(start, stop + 1, self.stride) for start, stop in zip(starts, stops, strict=True)]
        last = self.best_of(np.unique(np.concatenate(ones)))
        return Bracket(max(low, last.low), max(low, last.high))

    @cached_property
    def stride(self) -> int:
        """Denominator of the slope of the tilted mean where it is nearly rational for all m; else 1."""
        up, down = self.report_probabilities(self.odds)
        for stride in range(1, min(8, self.n_users // 2) + 1):  # largest denominator
            if abs(up - down - round(stride * (up - down)) / stride) * self.n_users < 1:
                return stride
        return 1

    def intervals(self) -> tuple[Wholes, Wholes]:
        """Intervals of m by residue class modulo the stride, shorter towards both ends."""
        last, stride = self.n_users - 1, self.stride
        steps = 2 ** np.arange(int(math.log2(self.n_users / 50)))
        grid = np.concatenate([[0], steps, np.linspace(0, last, 40).astype(np.int64), last - steps, [last]]) // stride
        rows = [i + stride * np.unique(np.minimum(grid, (last - i) // stride)) for i in range(stride)]
        return np.concatenate([row[:-1] for row in rows]), np.concatenate([row[1:] for row in rows])

    def bounded(self, starts: Wholes, stops: Wholes) -> "_IntervalBounds":
        """Upper bounds of log D(m) on closed intervals of m; distributions of similar width share a quadrature."""
        bounds, low, peak, top, ideal = np.empty(len(starts)), -math.inf, -math.inf, 0, 0.0
        groups = self.width_group(starts)
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            ones, inverse = np.unique(np.concatenate([starts[members], stops[members]]), return_inverse=True)
            left, right = inverse[: len(members)], inverse[len(members) :]
            sums = _Quadrature.of(self, ones)
            tops, offsets = sums.over_thresholds()
            bounds[members] = np.minimum(sums.along(left, right, tops), sums.across(left, right)) + sums.error
            low = max(low, float(sums.logs(np.floor(sums.mean), np.array([0.0, 1.0])).max()) - sums.error)
            if tops.max() > peak:
                peak, top, ideal = tops.max(), int(ones[tops.argmax()]), float(offsets[tops.argmax()])
        return _IntervalBounds(bounds, low, top, ideal)

    def aligned(self, top: int, offset: float) -> Wholes:
        """Values of m around the top whose optimal real threshold is nearly an integer."""
        chosen = []
        for radius in (50, 1000, 30_000):
            ones = np.arange(max(top - radius, 0), min(top + radius, self.n_users - 1) + 1)
            ideal = self.tilted(ones, self.odds)[0] + offset
            chosen.append(ones[np.argsort(np.abs(ideal - np.round(ideal)), kind="stable")[:100]])
        return np.unique(np.concatenate(chosen))

    def log_divergence(self, ones: Wholes, center: Reals, offsets: Reals) -> tuple[Reals, float]:
        """``log(alpha P(T = mode) - (beta - alpha) P(T > mode))``, and a bound on its error.

        One column per m, one row per offset of the mode from its center.
        """
        logs, error = np.empty((len(offsets), len(ones))), 0.0
        groups = self.width_group(ones)
        for group in np.unique(groups):
            members = groups == group
            sums = _Quadrature.of(self, ones[members])
            logs[:, members] = sums.logs(center[members], offsets)
            error = max(error, sums.error)
        return logs, error

    def width_group(self, ones: Wholes) -> Reals:
        """Group of m by the standard deviation of the tilted T, in factors of 4."""
        return np.asarray(np.floor(0.5 * np.log2(np.maximum(self.tilted(ones, self.odds)[1], 0.5))))


@dataclass(frozen=True)
class _IntervalBounds:
    """Upper bounds on intervals of m; a lower bound of max D; the endpoint of the highest envelope, its threshold."""

    bounds: Reals
    low: float
    top: int
    offset: float


@dataclass(frozen=True)
class _Quadrature:
    """Quadrature for D(m), all these m: an entire function of m and of the threshold."""

    ones: Wholes
    mean: Reals
    slope: float
    stride: int
    tilt: float
    angle: Reals
    factor: Complexes
    log_scale: Reals
    phases: Complexes
    rate: Complexes
    error: float

    @classmethod
    def of(cls, pair: Pair, ones: Wholes) -> Self:
        up_mean, down_mean = pair.report_probabilities(pair.odds)
        mean, spread = pair.tilted(ones, pair.odds)
        tilt = max(pair.odds, 1 / max(float(spread.max()), 1.0))
        spread = np.maximum(pair.tilted(ones, tilt)[1], 0.5)
        angle, weight = _angles(float(spread.min()), float(spread.max()))
        q = 1 / (1 + math.exp(pair.epsilon0))
        (up, phase_up), (down, phase_down) = _transform(1 - q, tilt, angle), _transform(q, tilt, angle)
        zeros = pair.n_users - 1 - ones
        log_scale, phases = ones * up + zeros * down, np.exp(np.outer(ones, phase_up) + np.outer(zeros, phase_down))
        tail_factor = np.exp(-1j * angle) / -np.expm1(-(tilt + 1j * angle))
        gained = q * math.exp(pair.epsilon) * math.expm1(pair.epsilon0 - pair.epsilon)
        lost = math.expm1(pair.epsilon) * math.exp(-tilt)
        factor, rate = weight * (gained - lost * tail_factor), up - down + phase_up - phase_down
        error = _rounding(pair.n_users, tilt, spread, float(np.abs(log_scale).max()))
        return cls(ones, mean, up_mean - down_mean, pair.stride, tilt, angle, factor, log_scale, phases, rate, error)

    @property
    def points(self) -> Complexes:
        """Logarithms of the nodes on the circle."""
        return np.asarray(self.tilt + 1j * self.angle, complex)

    def logs(self, center: Reals, offsets: Reals, rows: Wholes | slice = slice(None)) -> Reals:
        """``log D``: one column per m, one row per offset of the mode from its center."""
        factor = self.factor[:, None] * np.exp(-1j * np.outer(self.angle, offsets))
        value = (self.phases[rows] * np.exp(-1j * np.outer(center, self.angle))) @ factor
        scale = self.log_scale[rows] - self.tilt * (center + offsets[:, None])
        return np.asarray(np.log(np.maximum(value.real, 1e-320)).T + scale)

    def log_curvature(self, rate: Complexes, center: Reals, rows: Wholes | slice = slice(None)) -> Reals:
        """Logarithm of an eighth of a bound on the second derivative, for exponents with these derivatives."""
        total = np.abs(self.phases[rows]) @ np.abs(self.factor * rate**2)
        return np.asarray(np.log(total / 8) + self.log_scale[rows] - self.tilt * center)

    def along(self, left: Wholes, right: Wholes, tops: Reals) -> Reals:
        """Upper bound on intervals by the envelope: at a fixed offset of the threshold from the tilted mean."""
        curvature = self.log_curvature(self.rate - self.points * self.slope, self.mean - 1)
        excess = np.maximum(curvature[left], curvature[right]) + 2 * np.log(self.ones[right] - self.ones[left])
        return np.asarray(np.logaddexp(np.maximum(tops[left], tops[right]), excess))

    def across(self, left: Wholes, right: Wholes) -> Reals:
        """Upper bound on short intervals at integer thresholds that are linear in m; else ``inf``."""
        shift, width = round(self.stride * self.slope), self.ones[right] - self.ones[left]
        offset = shift * (width // self.stride)
        aligned = self.mean[right] - offset
        first = np.floor(np.minimum(self.mean[left], aligned))
        offsets, rate = np.array([0.0, 1.0, 2.0]), self.rate - self.points * (shift / self.stride)
        logs, curvature = np.empty((2, 2, len(offsets), len(left)))
        for end, (rows, center) in enumerate(((left, first), (right, first + offset))):
            logs[end] = self.logs(center, offsets, rows)
            curvature[end] = self.log_curvature(rate, center, rows) - self.tilt * offsets[:, None]
        found = np.logaddexp(logs.max(0), curvature.max(0) + 2 * np.log(width)).max(0)
        return np.where(np.abs(self.mean[left] - aligned) < 1, found, math.inf)

    def over_thresholds(self) -> tuple[Reals, Reals]:
        """Maximum over real thresholds within 1 of the tilted mean (upper bound), and its approximate offset."""
        best, offsets = np.zeros(len(self.mean)), np.linspace(-1, 1, 17)
        for spread in (0.125, 0.02, 0.02):
            logs = self.logs(self.mean + best, offsets)
            middle = np.clip(logs.argmax(0), 1, len(logs) - 2)
            left, here, right = (np.take_along_axis(logs, (middle + k)[None], 0)[0] for k in (-1, 0, 1))
            vertex = np.clip(0.5 * (right - left) / np.maximum(2 * here - left - right, 1e-300), -1, 1)
            best = np.clip(best + offsets[middle] + spread * vertex, -1, 1)
            offsets = np.array([-0.02, 0.0, 0.02])
        logs = self.logs(self.mean + best, THRESHOLD_GRID)
        t = best + THRESHOLD_GRID[:, None]
        excess = self.log_curvature(self.points, self.mean + t[:-1]) + 2 * np.log(np.diff(THRESHOLD_GRID))[:, None]
        between = np.logaddexp(np.maximum(logs[:-1], logs[1:]), excess)
        return np.asarray(np.where((t[1:] >= -1) & (t[:-1] <= 1), between, -math.inf).max(0)), best


def _rounding(n_users: int, tilt: float, spread: Reals, log_scale: float) -> float:
    """Round-off of ``log D``: of the phases, times the cancellation of the two terms of D, and of the scale."""
    cancelled = 1 + 2 / min(1.0, tilt * float(spread.max())) ** 2
    return ROUNDING_16 * (cancelled * (14 * n_users / float(spread.min()) + 200) + log_scale)


def _angles(narrow: float, wide: float) -> tuple[Reals, Reals]:
    """Trapezoid nodes on the half circle and weights over pi; truncated at 14 deviations of the narrowest T."""
    step = 0.15 / wide
    if 14 / narrow < math.pi:
        angle = np.arange(0, 14 / narrow, step)
        weight = np.full(len(angle), step / math.pi)
    else:
        count = math.ceil(math.pi / step) + 32
        angle = np.linspace(0, math.pi, count + 1)
        weight = np.full(count + 1, 1 / count)
        weight[-1] /= 2
    weight[0] /= 2
    return angle, weight


def _transform(prob: float, tilt: float, angle: Reals) -> tuple[float, Complexes]:
    """Generating function G of one bit: ``log G(r)``, and ``log(G(r e^{i angle}) / G(r))``."""
    tilted = prob * math.exp(tilt) / (1 + prob * math.expm1(tilt))
    increment = tilted * np.expm1(1j * angle)
    squared = 2 * increment.real + np.abs(increment) ** 2
    log_modulus = np.log(np.maximum(np.abs(1 + increment), 1e-150))
    log_size = np.where(squared > -0.5, 0.5 * np.log1p(np.maximum(squared, -0.5)), log_modulus)
    return math.log1p(prob * math.expm1(tilt)), log_size + 1j * np.arctan2(increment.imag, 1 + increment.real)
