r"""Sums of independent privacy losses on a grid: upper and lower bounds of the delta of a composition.

A :class:`PrivacyLossDistribution` is the distribution of :math:`\log(p/q)` under P for a pair (P, Q), with a mass at
infinity.  The losses of a composition of T pairs add up, and

.. math:: \delta(\varepsilon) = 1 - \prod_i (1-\pi_i) + E\big[(1-e^{\varepsilon-\ell})_+\big],

:math:`\pi_i` being the masses at infinity.  The characteristic function of the sum is a product of discrete Fourier
transforms to the powers of their multiplicities.  Losses are first tilted by :math:`e^{t\ell}` so that their mean is
close to :math:`\varepsilon`: delta is then a sum over the bulk of the tilted distribution, with a round-off relative to
it.  Errors have a sign or a bound:

* aliases are positive; the mass outside the window is at most the Chernoff bound, which is added;
* the transform of N numbers is taken to have a relative error below :math:`5u\log_2N` in the Euclidean norm (u the
  unit of round-off), a T-th power multiplies it by T, and a sum with weights is wrong by at most that error times their
  Euclidean norm: added.

Proof: book, chapter on FLAME, section on how a vector's budget is computed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from flamelib.core.arrays import Reals, Wholes
from flamelib.core.logspace import UNIT, logaddexp, product_above
from flamelib.core.search import largest, least_whole, root, smallest_epsilon

WINDOW_WIDTH = 14.0  # initial width of a window, in standard deviations
TAIL_MASS_WINDOW = 1e-9  # tilted mass outside a window, relative to the bulk
# Differences of the tilts of Chernoff bounds, in units of one over the standard deviation; small for heavy tails.
TILT_RATES = (1 / 64, 1 / 16, 1 / 4, 1, 2, 4, 8, 16)
MAX_LOSS_EXPONENT = 300.0  # largest exponent in suffix sums
RTOL_ROOT = 1e-12  # relative shift of a root of suffix sums to its safe side


@dataclass(frozen=True, slots=True)
class PrivacyLossDistribution:
    """P-masses at the losses ``step * index`` (ascending) and at infinity; ``nothing`` is the Q-mass where p = 0."""

    step: float
    index: Wholes
    masses: Reals
    infinity: float
    nothing: float

    @property
    def losses(self) -> Reals:
        """The finite losses."""
        return np.asarray(self.step * self.index)

    def swapped(self) -> "PrivacyLossDistribution":
        """The distribution of (Q, P): losses of opposite sign, with Q-masses."""
        masses = self.masses * np.exp(-self.losses) * (1 + 8 * UNIT)
        return PrivacyLossDistribution(self.step, -self.index[::-1], masses[::-1], self.nothing, self.infinity)

    def tilted(self, t: float) -> tuple[float, Reals]:
        """Cumulant ``log E[exp(t * loss)]`` of the finite losses, and the tilted distribution."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses) + t * self.losses
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        return top + math.log(total), np.asarray(weights / total)

    def moments(self, t: float) -> tuple[float, float, float]:
        """Cumulant at t, and the mean and variance of the tilted losses."""
        log_mass, law = self.tilted(t)
        losses = self.losses  # no matrix product: its threads are slower
        mean = float((law * losses).sum())
        return log_mass, mean, float((law * (losses - mean) ** 2).sum())


@dataclass(frozen=True, slots=True)
class Tilt:
    """The sum tilted by ``exp(t * loss)``: cumulant (log mass), mean, variance."""

    t: float
    log_mass: float
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class ComposedLosses:
    """Independent losses on one grid, with multiplicities."""

    parts: Sequence[tuple[PrivacyLossDistribution, int]]

    @property
    def step(self) -> float:
        """Grid spacing of the losses."""
        return self.parts[0][0].step

    @property
    def most(self) -> float:
        """The largest finite loss of the sum, rounded up."""
        return product_above(self.step, sum(times * int(part.index[-1]) for part, times in self.parts))

    @property
    def log_infinity(self) -> float:
        """Logarithm of the mass at infinity."""
        if any(part.infinity >= 1 for part, _ in self.parts):
            return 0.0
        log_kept = sum(times * math.log1p(-part.infinity) for part, times in self.parts)
        return math.log(-math.expm1(log_kept)) if log_kept < 0 else -math.inf

    def tilt(self, t: float) -> Tilt:
        """The sum under the tilt ``t >= 0``."""
        moments = np.array([times * np.array(part.moments(t)) for part, times in self.parts])
        return Tilt(t, *moments.sum(0).tolist())

    def tilt_to(self, epsilon: float) -> Tilt:
        """The tilt of mean ``epsilon`` (0 where the untilted mean is larger)."""
        return self._solve(lambda tilt: tilt.mean - epsilon)

    def tilt_for(self, log_delta: float) -> Tilt:
        """The tilt whose Chernoff bound on P(sum >= tilted mean) is delta.

        Where the largest loss dominates, that of the Chernoff bound on delta, smaller by a factor ``1 + t``.
        """
        untilted = self.tilt(0.0).log_mass  # above 0 by rounding up masses of many copies
        found = self._solve(lambda tilt: tilt.t * tilt.mean - tilt.log_mass + untilted + log_delta)
        # Below 0.3 the largest loss dominates.
        if found.t * math.sqrt(found.variance) >= 0.3:
            return found
        return self._solve(lambda tilt: tilt.t * tilt.mean - tilt.log_mass + math.log1p(tilt.t) + untilted + log_delta)

    def _solve(self, rises: Callable[[Tilt], float]) -> Tilt:
        high, most = 1.0, 1e4 / self.step  # largest tilt, in units of 1/step
        if rises(self.tilt(0.0)) >= 0:
            return self.tilt(0.0)
        while rises(self.tilt(high)) < 0:
            if high >= most:
                return self.tilt(high)
            high *= 4
        return self.tilt(root(lambda t: rises(self.tilt(t)), 0.0, high, xtol=1e-9 * high, rtol=1e-6))

    def log_delta(self, epsilon: float, tilt: Tilt | None = None) -> float:
        """Log delta at ``epsilon`` (upper bound), valid for every tilt; by default the best one."""
        infinite = self.log_infinity
        if epsilon >= self.most:
            return infinite
        return min(logaddexp(infinite, self.window(tilt or self.tilt_to(epsilon)).log_delta(epsilon)), 0.0)

    def profile(self) -> Callable[[float], float]:
        """Delta as a function of epsilon (upper bound); epsilons near each other share a window."""
        windows: list[_Window] = []

        def delta(epsilon: float) -> float:
            if epsilon >= self.most:
                return math.exp(self.log_infinity)
            window = next((cached for cached in windows if cached.covers(epsilon)), None)
            if window is None:
                window = self.window(self.tilt_to(epsilon))
                windows.append(window)
                # At most 2^24 points in the cache.
                while sum(len(cached.law) for cached in windows) > 2**24 and len(windows) > 1:
                    windows.pop(0)
            return math.exp(min(logaddexp(self.log_infinity, window.log_delta(epsilon)), 0.0))

        return delta

    def epsilon(self, delta: float, at_most: float, tilt: Tilt | None = None) -> float:
        """Least epsilon found that keeps ``delta``, at most ``at_most``."""
        infinite = self.log_infinity
        spare = delta - math.exp(infinite)
        if not spare > 0:
            return at_most
        tilt = tilt or self.tilt_for(math.log(spare))
        by_chernoff = self.chernoff(delta, tilt)
        window = self.window(tilt)

        def log_delta(epsilon: float) -> float:
            return logaddexp(infinite, window.log_delta(epsilon)) if epsilon < self.most else infinite

        most = min(at_most, self.most, 1.0001 * by_chernoff)
        crossing = window.crossing(log_delta, delta, spare, 0.0, 1)
        return crossing if crossing <= most else smallest_epsilon(log_delta, delta, most)

    def log_delta_below(self, epsilon: float) -> float:
        """Log delta (lower bound), for optimistic losses and masses."""
        if epsilon >= self.most:
            return -math.inf
        return min(self.window(self.tilt_to(epsilon)).log_delta_below(epsilon), 0.0)

    def epsilon_below(self, delta: float) -> float:
        """Greatest epsilon found at which delta is at least this (lower bound), for optimistic losses and masses."""
        target = math.log(delta)
        first = self.tilt_for(target)
        for part in (
            1,
            4,
            16,
            64,
            256,
            1024,
            2**20,
        ):  # fractions of the tilt: a largest loss of tiny mass, or alone, makes it too large
            tilt = self.tilt(first.t / part)
            window = self.window(tilt)
            sides = [
                tilt.mean - spreads * math.sqrt(tilt.variance) for spreads in (6, 4, 2)
            ]  # candidates below the mean
            single = [sides[0] - nats for nats in (0.5, 2.0, 8.0)]  # a single largest loss
            crossing = window.crossing(window.log_delta_below, delta, delta, max(0.0, sides[0]), -1)
            if crossing <= self.most:
                return crossing
            for low in (max(0.0, end) for end in sides + single):
                if window.log_delta_below(low) >= target:
                    return _largest_at(window, delta, low, max(self.most, low))
            if part == 1 and self.log_delta_below(0.0) < target:
                return 0.0
        return 0.0

    def chernoff(self, delta: float, tilt: Tilt) -> float:
        """Epsilon at ``delta`` by the Chernoff bound with this tilt; ``inf`` where there is none."""
        spare = delta - math.exp(self.log_infinity)
        if not (spare > 0 and tilt.t > 0):
            return math.inf
        return max(0.0, (tilt.log_mass - math.log(spare)) / tilt.t) * (1 + 64 * UNIT) + self._rounding(tilt) / tilt.t

    def chernoff_tilt(self, delta: float) -> Tilt:
        """The tilt that minimises :meth:`chernoff`, round-off included."""
        spare = delta - math.exp(self.log_infinity)
        offset = self._rounding(Tilt(0.0, 0.0, 0.0, 0.0)) - math.log(spare if spare > 0 else delta)
        return self._solve(lambda tilt: tilt.t * tilt.mean - tilt.log_mass - offset)

    def log_chernoff(self, epsilon: float) -> float:
        """Chernoff bound of log delta at ``epsilon``."""
        tilt = self.tilt_to(epsilon)
        return logaddexp(self.log_infinity, tilt.log_mass - tilt.t * epsilon * (1 - 4 * UNIT) + self._rounding(tilt))

    def _rounding(self, tilt: Tilt) -> float:
        """Round-off of the cumulant."""
        total = sum(times * (16 + 4 * tilt.t * part.step * int(part.index[-1])) for part, times in self.parts)
        return UNIT * (total + 16 * abs(tilt.log_mass) + 64)

    def window(self, tilt: Tilt) -> "_Window":
        """The tilted distribution on a sufficiently wide window around its mean."""
        first, size, outside = self.extent(tilt)
        pmf, error = self._period(tilt.t, first, size)
        return _Window(tilt, self.step, first, pmf, error, outside, self._rounding(tilt))

    def extent(self, tilt: Tilt) -> tuple[int, int, float]:
        """First index of such a window, its size (16 million at most), and a bound on the tilted mass outside."""
        max_points = 2**23  # points of a window, at most, that is still widened
        spread = max(math.sqrt(tilt.variance), 1e-3 * self.step)
        lowest, highest = (sum(times * int(part.index[end]) for part, times in self.parts) for end in (0, -1))
        width = min(math.ceil(WINDOW_WIDTH * spread / self.step) + 64, max_points)
        sides = [[self.tilt(tilt.t + sign * rate / max(spread, self.step)) for rate in TILT_RATES] for sign in (-1, 1)]
        while width <= highest - lowest:
            size = next_fast_len(width, real=True)
            first = round(tilt.mean / self.step) - size // 2
            outside = self._outside(tilt, sides, (first * self.step, (first + size) * self.step))
            if outside <= TAIL_MASS_WINDOW / (1 + tilt.t * spread) or width > max_points:
                return first, size, outside
            width *= 2
        return lowest, next_fast_len(highest - lowest + 1, real=True), 0.0

    def _period(self, t: float, first: int, size: int) -> tuple[Reals, float]:
        """One period of the distribution of the tilted sum, and the Euclidean norm of its round-off."""
        logs, error = np.zeros(size // 2 + 1, dtype=complex), 0.0
        rounding = 5 * UNIT * math.log2(size)
        for part, times in self.parts:
            pmf = part.tilted(t)[1]
            transform = rfft(np.bincount(part.index % size, pmf, size))
            with np.errstate(divide="ignore"):
                logs.real += times * np.log(np.abs(transform))
            logs.imag += times * np.angle(transform)
            error += times * (rounding * float(np.linalg.norm(pmf)) + 16 * UNIT)
        pmf = np.roll(irfft(np.exp(logs, out=logs), size, overwrite_x=True), -(first % size))
        return np.maximum(pmf, 0), error + rounding

    def _outside(self, tilt: Tilt, sides: Sequence[Sequence[Tilt]], edges: Sequence[float]) -> float:
        """Chernoff bounds on the tilted mass below the window (it is aliased) and above."""
        total = 0.0
        for edge, tilts in zip(edges, sides, strict=True):
            logs = (other.log_mass - tilt.log_mass - (other.t - tilt.t) * edge for other in tilts)
            total += math.exp(min(0.0, *logs))
        return min(total, 1.0)


def _largest_at(window: "_Window", delta: float, low: float, high: float) -> float:
    """Greatest epsilon found in [low, high] with a lower bound of delta of at least ``delta``, as at ``low``."""
    target = math.log(delta)
    return largest(lambda at: 2 * target - window.log_delta_below(at), delta, low, high)


@dataclass(frozen=True, slots=True)
class _Window:
    """Tilted distribution of the sum at losses ``step * (first + i)``; ``error`` is the Euclidean norm of round-off."""

    tilt: Tilt
    step: float
    first: int
    law: Reals
    error: float
    outside: float
    rounding: float

    def covers(self, epsilon: float) -> bool:
        """Whether this tilt is nearly optimal: epsilon within a tenth of a standard deviation of the mean."""
        distance = epsilon - self.tilt.mean
        return (distance < 0 and not self.tilt.t) or abs(distance) <= 0.1 * math.sqrt(self.tilt.variance)

    def log_delta(self, epsilon: float) -> float:
        """``log E[(1 - exp(epsilon - loss))_+]`` (upper bound), tight for epsilon near the mean."""
        return self._log_excess(epsilon, 1)

    def log_delta_below(self, epsilon: float) -> float:
        """The same (lower bound): minus all errors; ``-inf`` where the difference is not positive."""
        return self._log_excess(epsilon, -1)

    def crossing(
        self, bound: Callable[[float], float], delta: float, spare: float, at_least: float, side: int
    ) -> float:
        """Root of ``bound(epsilon) = log(delta)`` on its safe side, up to 1e-11; NaN where suffix sums find none.

        ``spare`` is the part of ``delta`` of this window, ``bound`` the logarithm of all of it.
        """
        # P(loss > epsilon) - exp(epsilon) Q(loss > epsilon) = delta is solved in suffix sums; the answer is verified by
        # ``bound``, so that the cancellation of that difference does not matter.
        start = min(max(math.floor(at_least / self.step) - self.first, 0), len(self.law) - 1)
        losses = self.step * (self.first + np.arange(len(self.law) - 1, start - 1, -1)) - self.tilt.mean
        scale = self.tilt.log_mass - math.log(spare) - self.tilt.t * self.tilt.mean
        p = self.law[start:][::-1] * np.exp(np.minimum(scale - self.tilt.t * losses, MAX_LOSS_EXPONENT))
        q = np.cumsum(p * np.exp(np.minimum(-losses, MAX_LOSS_EXPONENT)))
        p, factors = np.cumsum(p), np.exp(np.minimum(losses, MAX_LOSS_EXPONENT))

        def root_at(level: float) -> float:
            index = least_whole(lambda i: bool(p[i] - factors[i] * q[i] >= level), 0, len(p) - 1)
            with np.errstate(over="ignore"):  # beyond all doubles where q is denormal
                ratio = (p[index - 1] - level) / q[index - 1] if index and q[index - 1] > 0 else 0.0
            return (self.tilt.mean + math.log(ratio)) * (1 + side * RTOL_ROOT) if ratio > 0 else math.nan

        level, epsilon = 1.0, root_at(1.0)
        for _ in range(4):  # the ratio of bound and sums hardly changes
            if not epsilon > at_least:
                break
            excess, previous = bound(epsilon) - math.log(delta), epsilon
            level *= math.exp(min(-excess * delta / spare, 1.0))
            epsilon = root_at(level)
            if side * excess <= 0 and abs(epsilon - previous) <= 8 * RTOL_ROOT * previous:
                return previous
        return math.nan

    def _log_excess(self, epsilon: float, side: int) -> float:
        exponent = 60.0  # minus the logarithm of a negligible weight
        t = self.tilt.t
        start = max(math.floor(epsilon / self.step) - self.first, 0)
        stop = (
            len(self.law)
            if t * self.step * len(self.law) <= exponent
            else start + 1 + math.ceil(exponent / (t * self.step))
        )
        # Rounding of product and difference, which cancel just above epsilon.
        shift = side * 4 * UNIT * (abs(epsilon) + self.step)
        losses = self.step * (self.first + np.arange(start, min(stop, len(self.law))))
        excess = np.maximum(losses - epsilon + shift, 0)
        weights = -np.expm1(-excess) * np.exp(-t * excess)
        total = float(self.law[start:stop] @ weights) * (1 + side * len(self.law) * UNIT)
        total += side * (float(np.linalg.norm(weights)) * self.error + self.outside)
        total += 2 * math.exp(-exponent) if side > 0 else 0.0
        log_total = math.log(total) if total > 0 else -math.inf
        return self.tilt.log_mass - t * epsilon + log_total + side * (self.rounding + 16 * UNIT * t * epsilon)
