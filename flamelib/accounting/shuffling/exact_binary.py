r"""Exact divergence of shuffled binary randomized response, and the search for its worst data set.

With m ones among the other n-1 users the count T of reported ones, other users only, is
Bin(m, 1-q) + Bin(n-1-m, q), :math:`q = 1/(1+e^{\varepsilon_0})`, and the divergence is

.. math:: D(m) = \max_j\ \alpha P(T = j-1) - (\beta-\alpha) P(T \ge j),\qquad
          \alpha = q(e^{\varepsilon_0}-e^{\varepsilon}),\ \beta = q(e^{\varepsilon_0+\varepsilon}-1):

the best test is a threshold, the one at which the law of T tilted by :math:`\beta/\alpha` has its mode.  All m in one
direction are all m in both.  Point probabilities and tails come from a contour integral on the circle through the tilt,
at a cost that does not depend on n.

Up to ``MAX_EXHAUSTIVE`` users every m is tried.  Above, the best D so far rules out every stretch of m whose upper
bound is lower; what is left is cut finer and, once short, tried in full.  Where very many m are left, the rest is the
width of the bracket.  The upper bounds are proven: the finite sum that D(m) is at whole thresholds makes sense at all
real m and thresholds, and between two ends it is above the higher one by at most an eighth of the squared distance
times a bound on its second derivative, the sum of moduli.  It is followed in two ways: *along* the tilted mean, where
its maximum over real thresholds is a smooth envelope of D, and *across* it at the few whole thresholds that matter
between ends near each other.  Where the tilted mean comes back in step with the whole numbers every few m, only these
are compared with each other.

Why: book, chapter on the privacy blanket, section on how the blanket divergence is computed.
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

MAX_EXHAUSTIVE = 1500  # numbers of ones up to which every one is tried
N_COVER = 256  # stretches of numbers of ones of the quick ceiling
# Thresholds around the best one: each is a seventh farther away than the one before.
THRESHOLD_GRID = np.sort(np.concatenate([[0.0], *(sign * 1e-4 * 1.15 ** np.arange(72) for sign in (1, -1))]))


@plainly
def worst(epsilon0: float, n_users: int, epsilon: float) -> Bracket:
    """Bracket of the logarithm of the divergence, maximized over the other users and both directions."""
    if epsilon >= epsilon0:
        return NO_DELTA
    pair = Pair(epsilon0, n_users, epsilon)
    if n_users <= MAX_EXHAUSTIVE:
        return pair.best_of(np.arange(n_users))
    return pair.searched()


@plainly
def ceiling(epsilon0: float, n_users: int, epsilon: float) -> float:
    """Upper end of the same by dropping users, and by nothing else: about that of 1 % fewer users, and quick."""
    if epsilon >= epsilon0 or n_users <= N_COVER:
        return worst(epsilon0, n_users, epsilon).high
    width = -(-n_users // N_COVER)
    starts = np.minimum(np.arange(0, n_users, width), n_users - width)
    return Pair(epsilon0, n_users - width + 1, epsilon).best_of(starts).high


@plainly
def at_the_end(epsilon0: float, n_users: int, epsilon: float) -> float:
    """Logarithm of the divergence when all other users hold the same value."""
    if epsilon >= epsilon0:
        return -math.inf
    return Pair(epsilon0, n_users, epsilon).best_of(np.array([0, n_users - 1])).high


@dataclass(frozen=True)
class Pair:
    """The two values in question, for every number m of ones among the other users."""

    epsilon0: float
    n_users: int
    epsilon: float

    @cached_property
    def odds(self) -> float:
        """``log(beta / alpha)`` without cancellation."""
        epsilon0, epsilon = self.epsilon0, self.epsilon
        return math.log(math.expm1(epsilon0 + epsilon)) - epsilon - math.log(math.expm1(epsilon0 - epsilon))

    def chances(self, tilt: float) -> tuple[float, float]:
        """Of a one being reported by a user who holds a one, and a zero, tilted."""
        up, down = (1 / (1 + math.exp(-tilt - sign * self.epsilon0)) for sign in (1, -1))
        return up, down

    def tilted(self, ones: Wholes, tilt: float) -> tuple[Reals, Reals]:
        """Mean and standard deviation of T tilted by ``exp(tilt * T)``."""
        up, down = self.chances(tilt)
        zeros = self.n_users - 1 - ones
        return ones * up + zeros * down, np.sqrt(ones * up * (1 - up) + zeros * down * (1 - down))

    def best_of(self, ones: Wholes) -> Bracket:
        """The largest D(m) among these m."""
        logs, error = self.divergence(ones)
        return Bracket(float(logs.max()) - error, float(logs.max()) + error)

    def divergence(self, ones: Wholes) -> tuple[Reals, float]:
        """Logarithm of D(m), and the error: the tilted mode is the tilted mean, rounded down or up."""
        below = np.minimum(np.floor(self.tilted(ones, self.odds)[0]), self.n_users - 2)
        logs, error = self.log_divergence(ones, below, np.array([0.0, 1.0]))
        return np.asarray(logs.max(0)), error

    def searched(self) -> Bracket:
        """Branch and bound over m: see the module."""
        (starts, stops), low = self.stretches(), -math.inf
        for _ in range(8):  # refinements at most
            found = self.bounded(starts, stops)
            low = max(low, found.low, self.best_of(self.aligned(found.top, found.ideal)).low)
            high, left = max(low, float(found.bounds.max())), found.bounds >= low
            starts, stops = starts[left], stops[left]
            counts = (stops - starts) // self.stride
            size = int(counts.sum())
            # Width of the bracket of the logarithm of the divergence.
            if high - low <= 1e-7 or size <= MAX_EXHAUSTIVE or 8 * len(starts) > MAX_EXHAUSTIVE:
                break
            edges = starts[:, None] + self.stride * np.linspace(0, counts, 9, axis=1).astype(np.int64)
            starts, stops = edges[:, :-1].ravel(), edges[:, 1:].ravel()
            starts, stops = starts[stops > starts], stops[stops > starts]
        if size > 4 * MAX_EXHAUSTIVE:
            return Bracket(low, high)
        ones = [np.arange(start, stop + 1, self.stride) for start, stop in zip(starts, stops, strict=True)]
        last = self.best_of(np.unique(np.concatenate(ones)))
        return Bracket(max(low, last.low), max(low, last.high))

    @cached_property
    def stride(self) -> int:
        """Ones after which the ideal threshold is back in step with the lattice, from end to end; else 1."""
        often, seldom = self.chances(self.odds)
        for stride in range(1, min(8, self.n_users // 2) + 1):  # longest way back into step with the lattice
            if abs(often - seldom - round(stride * (often - seldom)) / stride) * self.n_users < 1:
                return stride
        return 1

    def stretches(self) -> tuple[Wholes, Wholes]:
        """First and last of some numbers of ones, a stride apart, closer to each other towards the ends."""
        last, stride = self.n_users - 1, self.stride
        near = 2 ** np.arange(int(math.log2(self.n_users / 50)))
        places = np.concatenate([[0], near, np.linspace(0, last, 40).astype(np.int64), last - near, [last]]) // stride
        rows = [i + stride * np.unique(np.minimum(places, (last - i) // stride)) for i in range(stride)]
        return np.concatenate([row[:-1] for row in rows]), np.concatenate([row[1:] for row in rows])

    def bounded(self, starts: Wholes, stops: Wholes) -> "_Bounds":
        """Upper bounds of all D(m) on stretches of m, ends included; those of laws alike in width share a sum."""
        bounds, low, peak, top, ideal = np.empty(len(starts)), -math.inf, -math.inf, 0, 0.0
        octave = self.octave(starts)
        for group in np.unique(octave):
            here = np.flatnonzero(octave == group)
            ones, back = np.unique(np.concatenate([starts[here], stops[here]]), return_inverse=True)
            left, right = back[: len(here)], back[len(here) :]
            sums = _Sums.of(self, ones)
            tops, offsets = sums.over_thresholds()
            bounds[here] = np.minimum(sums.along(left, right, tops), sums.across(left, right)) + sums.error
            low = max(low, float(sums.logs(np.floor(sums.mean), np.array([0.0, 1.0])).max()) - sums.error)
            if tops.max() > peak:
                peak, top, ideal = tops.max(), int(ones[tops.argmax()]), float(offsets[tops.argmax()])
        return _Bounds(bounds, low, top, ideal)

    def aligned(self, top: int, offset: float) -> Wholes:
        """Numbers of ones around the top whose ideal threshold is nearly whole."""
        chosen = []
        for radius in (50, 1000, 30_000):
            ones = np.arange(max(top - radius, 0), min(top + radius, self.n_users - 1) + 1)
            ideal = self.tilted(ones, self.odds)[0] + offset
            chosen.append(ones[np.argsort(np.abs(ideal - np.round(ideal)), kind="stable")[:100]])
        return np.unique(np.concatenate(chosen))

    def log_divergence(self, ones: Wholes, center: Reals, offsets: Reals) -> tuple[Reals, float]:
        """Logarithm of ``alpha P(T = mode) - (beta - alpha) P(T > mode)``, and a bound on its error.

        One column per m, one row per offset of the mode from its center.  Laws of different width are summed apart.
        """
        logs, error = np.empty((len(offsets), len(ones))), 0.0
        octave = self.octave(ones)
        for group in np.unique(octave):
            here = octave == group
            sums = _Sums.of(self, ones[here])
            logs[:, here] = sums.logs(center[here], offsets)
            error = max(error, sums.error)
        return logs, error

    def octave(self, ones: Wholes) -> Reals:
        """Numbers of ones whose laws are alike in width."""
        return np.asarray(np.floor(0.5 * np.log2(np.maximum(self.tilted(ones, self.odds)[1], 0.5))))


@dataclass(frozen=True)
class _Bounds:
    """Upper bounds on stretches of m; a D(m) from below; the end with the highest envelope, and where its top is."""

    bounds: Reals
    low: float
    top: int
    ideal: float


@dataclass(frozen=True)
class _Sums:
    """One finite sum for all these m: D(m) at whole thresholds, and entire in m and in the threshold."""

    ones: Wholes
    mean: Reals
    slope: float
    stride: int
    tilt: float
    angle: Reals
    factor: Complexes
    log_scale: Reals
    turns: Complexes
    rate: Complexes
    error: float

    @classmethod
    def of(cls, pair: Pair, ones: Wholes) -> Self:
        often, seldom = pair.chances(pair.odds)
        mean, spread = pair.tilted(ones, pair.odds)
        tilt = max(pair.odds, 1 / max(float(spread.max()), 1.0))
        spread = np.maximum(pair.tilted(ones, tilt)[1], 0.5)
        angle, weight = _angles(float(spread.min()), float(spread.max()))
        q = 1 / (1 + math.exp(pair.epsilon0))
        (up, turn_up), (down, turn_down) = _transform(1 - q, tilt, angle), _transform(q, tilt, angle)
        zeros = pair.n_users - 1 - ones
        log_scale, turns = ones * up + zeros * down, np.exp(np.outer(ones, turn_up) + np.outer(zeros, turn_down))
        tail_factor = np.exp(-1j * angle) / -np.expm1(-(tilt + 1j * angle))
        gained = q * math.exp(pair.epsilon) * math.expm1(pair.epsilon0 - pair.epsilon)
        lost = math.expm1(pair.epsilon) * math.exp(-tilt)
        factor, rate = weight * (gained - lost * tail_factor), up - down + turn_up - turn_down
        error = _rounding(pair.n_users, tilt, spread, float(np.abs(log_scale).max()))
        return cls(ones, mean, often - seldom, pair.stride, tilt, angle, factor, log_scale, turns, rate, error)

    @property
    def points(self) -> Complexes:
        """Logarithms of the points of the circle."""
        return np.asarray(self.tilt + 1j * self.angle, complex)

    def logs(self, center: Reals, offsets: Reals, rows: Wholes | slice = slice(None)) -> Reals:
        """Logarithms of the sums: one column per m, one row per offset of the mode from its center."""
        factor = self.factor[:, None] * np.exp(-1j * np.outer(self.angle, offsets))
        value = (self.turns[rows] * np.exp(-1j * np.outer(center, self.angle))) @ factor
        scale = self.log_scale[rows] - self.tilt * (center + offsets[:, None])
        return np.asarray(np.log(np.maximum(value.real, 1e-320)).T + scale)

    def bend(self, rate: Complexes, center: Reals, rows: Wholes | slice = slice(None)) -> Reals:
        """Logarithm of an eighth of the most that the second derivative can be, where exponents change at this rate."""
        total = np.abs(self.turns[rows]) @ np.abs(self.factor * rate**2)
        return np.asarray(np.log(total / 8) + self.log_scale[rows] - self.tilt * center)

    def along(self, left: Wholes, right: Wholes, tops: Reals) -> Reals:
        """Upper bound between these m by the envelope: at a fixed distance of the threshold from the tilted mean."""
        bend = self.bend(self.rate - self.points * self.slope, self.mean - 1)
        excess = np.maximum(bend[left], bend[right]) + 2 * np.log(self.ones[right] - self.ones[left])
        return np.asarray(np.logaddexp(np.maximum(tops[left], tops[right]), excess))

    def across(self, left: Wholes, right: Wholes) -> Reals:
        """Upper bound between these m, a stride apart, at whole thresholds in step with m; near each other only."""
        pace, width = round(self.stride * self.slope), self.ones[right] - self.ones[left]
        climb = pace * (width // self.stride)
        moved = self.mean[right] - climb
        first = np.floor(np.minimum(self.mean[left], moved))
        offsets, rate = np.array([0.0, 1.0, 2.0]), self.rate - self.points * (pace / self.stride)
        logs, bend = np.empty((2, 2, len(offsets), len(left)))
        for end, (rows, center) in enumerate(((left, first), (right, first + climb))):
            logs[end] = self.logs(center, offsets, rows)
            bend[end] = self.bend(rate, center, rows) - self.tilt * offsets[:, None]
        found = np.logaddexp(logs.max(0), bend.max(0) + 2 * np.log(width)).max(0)
        return np.where(np.abs(self.mean[left] - moved) < 1, found, math.inf)

    def over_thresholds(self) -> tuple[Reals, Reals]:
        """Upper bound over the real thresholds within 1 of the tilted mean, and where about the largest is."""
        best, offsets = np.zeros(len(self.mean)), np.linspace(-1, 1, 17)
        for spread in (0.125, 0.02, 0.02):
            logs = self.logs(self.mean + best, offsets)
            middle = np.clip(logs.argmax(0), 1, len(logs) - 2)
            left, here, right = (np.take_along_axis(logs, (middle + k)[None], 0)[0] for k in (-1, 0, 1))
            lean = np.clip(0.5 * (right - left) / np.maximum(2 * here - left - right, 1e-300), -1, 1)
            best = np.clip(best + offsets[middle] + spread * lean, -1, 1)
            offsets = np.array([-0.02, 0.0, 0.02])
        logs = self.logs(self.mean + best, THRESHOLD_GRID)
        place = best + THRESHOLD_GRID[:, None]
        excess = self.bend(self.points, self.mean + place[:-1]) + 2 * np.log(np.diff(THRESHOLD_GRID))[:, None]
        between = np.logaddexp(np.maximum(logs[:-1], logs[1:]), excess)
        return np.asarray(np.where((place[1:] >= -1) & (place[:-1] <= 1), between, -math.inf).max(0)), best


def _rounding(n_users: int, tilt: float, spread: Reals, log_scale: float) -> float:
    """Round-off of the logarithm: of the phases, times the cancellation between gain and loss, and of the scale."""
    cancelled = 1 + 2 / min(1.0, tilt * float(spread.max())) ** 2
    return ROUNDING_16 * (cancelled * (14 * n_users / float(spread.min()) + 200) + log_scale)


def _angles(narrow: float, wide: float) -> tuple[Reals, Reals]:
    """Half circle of angles with trapezoid weights over pi; cut at 14 standard deviations of the narrowest law."""
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


def _transform(chance: float, tilt: float, angle: Reals) -> tuple[float, Complexes]:
    """Of one user's bit: ``log G(r)``, and ``log(G(r e^{i angle}) / G(r))``."""
    tilted = chance * math.exp(tilt) / (1 + chance * math.expm1(tilt))
    turn = tilted * np.expm1(1j * angle)
    squared = 2 * turn.real + np.abs(turn) ** 2
    small = np.log(np.maximum(np.abs(1 + turn), 1e-150))
    size = np.where(squared > -0.5, 0.5 * np.log1p(np.maximum(squared, -0.5)), small)
    return math.log1p(chance * math.expm1(tilt)), size + 1j * np.arctan2(turn.imag, 1 + turn.real)
