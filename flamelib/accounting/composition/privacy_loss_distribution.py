r"""Sums of independent privacy losses on a grid: the delta of a composition, never below that of its parts.

A :class:`PrivacyLossDistribution` is the law of :math:`\log(p/q)` under P for a pair (P, Q), with what has no finite
loss kept apart.  The composition of T pairs has the law of the sum, and

.. math:: \delta(\varepsilon) = 1 - \prod_i (1-\pi_i) + E\big[(1-e^{\varepsilon-\ell})_+\big],

:math:`\pi_i` being the masses at infinity.  The law of the sum is a product of discrete Fourier transforms, each
raised to its power.  Losses are first tilted by :math:`e^{t\ell}` so that their mean is close to :math:`\varepsilon`:
the answer is then a sum over the bulk of the law, and round-off is relative to it, however small it is.  Errors have a
sign or a bound:

* what is wrapped into the window is positive; what lies outside is at most Chernoff's bound, which is added;
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

WINDOW_WIDTH = 14.0  # width of a window at first, in standard deviations
TAIL_MASS_WINDOW = 1e-9  # tilted mass outside a window, relative to the bulk
# Tilts beside the one in use, in units of one over the standard deviation; the small ones where tails are heavy.
TILT_RATES = (1 / 64, 1 / 16, 1 / 4, 1, 2, 4, 8, 16)
MAX_LOSS_EXPONENT = 300.0  # largest exponent in suffix sums
RTOL_ROOT = 1e-12  # relative step from a root of suffix sums to its safe side


@dataclass(frozen=True, slots=True)
class PrivacyLossDistribution:
    """P-masses at the losses ``step * index`` (ascending) and at infinity; ``nothing`` is Q's mass where P has none."""

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
        """The losses of (Q, P): each changes its sign and takes Q's mass."""
        masses = self.masses * np.exp(-self.losses) * (1 + 8 * UNIT)
        return PrivacyLossDistribution(self.step, -self.index[::-1], masses[::-1], self.nothing, self.infinity)

    def tilted(self, t: float) -> tuple[float, Reals]:
        """Logarithm of the mass under the tilt ``exp(t * loss)``, and the law tilted by it."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.masses) + t * self.losses
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        return top + math.log(total), np.asarray(weights / total)

    def moments(self, t: float) -> tuple[float, float, float]:
        """Logarithm of the tilted mass, mean and variance."""
        log_mass, law = self.tilted(t)
        losses = self.losses  # summed without the threads of a matrix product, which cost more than they save
        mean = float((law * losses).sum())
        return log_mass, mean, float((law * (losses - mean) ** 2).sum())


@dataclass(frozen=True, slots=True)
class Tilt:
    """The sum tilted by ``exp(t * loss)``: logarithm of its mass, mean, variance."""

    t: float
    log_mass: float
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class ComposedLosses:
    """Independent losses on one grid, each with the number of its copies."""

    parts: Sequence[tuple[PrivacyLossDistribution, int]]

    @property
    def step(self) -> float:
        """Distance of neighbouring losses."""
        return self.parts[0][0].step

    @property
    def most(self) -> float:
        """The largest finite loss of the sum, rounded up: beyond it nothing is lost."""
        return product_above(self.step, sum(times * int(part.index[-1]) for part, times in self.parts))

    @property
    def log_infinity(self) -> float:
        """Logarithm of the mass at infinity."""
        if any(part.infinity >= 1 for part, _ in self.parts):
            return 0.0
        log_kept = sum(times * math.log1p(-part.infinity) for part, times in self.parts)
        return math.log(-math.expm1(log_kept)) if log_kept < 0 else -math.inf

    def tilt(self, t: float) -> Tilt:
        """The sum tilted by a number of at least 0."""
        moments = np.array([times * np.array(part.moments(t)) for part, times in self.parts])
        return Tilt(t, *moments.sum(0).tolist())

    def tilt_to(self, epsilon: float) -> Tilt:
        """The tilt under which the mean is ``epsilon`` (0 where it is above without)."""
        return self._solve(lambda tilt: tilt.mean - epsilon)

    def tilt_for(self, log_delta: float) -> Tilt:
        """The tilt at which Chernoff's bound on the chance to exceed the mean is this delta.

        Where the largest loss alone is likelier, it is that of Chernoff's bound on delta itself, lower by ``1 + t``.
        """
        untilted = self.tilt(0.0).log_mass  # 0 but for what rounding masses up has made of very many copies
        found = self._solve(lambda tilt: tilt.t * tilt.mean - tilt.log_mass + untilted + log_delta)
        # Tilt times standard deviation below which the largest loss alone decides.
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
        """Logarithm of an upper bound on delta at ``epsilon``, whatever the tilt; by default the best."""
        infinite = self.log_infinity
        if epsilon >= self.most:
            return infinite
        return min(logaddexp(infinite, self.window(tilt or self.tilt_to(epsilon)).log_delta(epsilon)), 0.0)

    def profile(self) -> Callable[[float], float]:
        """Upper bounds on delta at many epsilons: those next to each other share a window, which is a tilt for all."""
        known: list[_Window] = []

        def delta(epsilon: float) -> float:
            if epsilon >= self.most:
                return math.exp(self.log_infinity)
            near = next((one for one in known if one.serves(epsilon)), None)
            if near is None:
                near = self.window(self.tilt_to(epsilon))
                known.append(near)
                # Points of all windows that are kept.
                while sum(len(one.law) for one in known) > 2**24 and len(known) > 1:
                    known.pop(0)
            return math.exp(min(logaddexp(self.log_infinity, near.log_delta(epsilon)), 0.0))

        return delta

    def epsilon(self, delta: float, at_most: float, tilt: Tilt | None = None) -> float:
        """Least epsilon found that keeps ``delta``; ``at_most`` where that is a guarantee anyway."""
        infinite = self.log_infinity
        spare = delta - math.exp(infinite)
        if not spare > 0:
            return at_most
        tilt = tilt or self.tilt_for(math.log(spare))
        reached = self.chernoff(delta, tilt)
        window = self.window(tilt)

        def log_delta(epsilon: float) -> float:
            return logaddexp(infinite, window.log_delta(epsilon)) if epsilon < self.most else infinite

        most = min(at_most, self.most, 1.0001 * reached)
        near = window.crossing(log_delta, delta, spare, 0.0, 1)
        return near if near <= most else smallest_epsilon(log_delta, delta, most)

    def log_delta_below(self, epsilon: float) -> float:
        """Logarithm of a lower bound on delta, for losses and masses that are not too large."""
        if epsilon >= self.most:
            return -math.inf
        return min(self.window(self.tilt_to(epsilon)).log_delta_below(epsilon), 0.0)

    def epsilon_below(self, delta: float) -> float:
        """Greatest epsilon found at which delta is at least this, for losses and masses that are not too large."""
        target = math.log(delta)
        first = self.tilt_for(target)
        # Parts of the tilt, in turn: a largest loss of almost no mass, or alone, gives too steep a tilt.
        for part in (
            1,
            4,
            16,
            64,
            256,
            1024,
            2**20,
        ):  # a largest loss of hardly any mass, or alone, calls for too steep a tilt
            tilt = self.tilt(first.t / part)
            window = self.window(tilt)
            sides = [
                tilt.mean - spreads * math.sqrt(tilt.variance) for spreads in (6, 4, 2)
            ]  # far below little is left
            lumps = [sides[0] - nats for nats in (0.5, 2.0, 8.0)]  # one largest loss rises to its mass within some nats
            near = window.crossing(window.log_delta_below, delta, delta, max(0.0, sides[0]), -1)
            if near <= self.most:
                return near
            for low in (max(0.0, end) for end in sides + lumps):
                if window.log_delta_below(low) >= target:
                    return _largest_at(window, delta, low, max(self.most, low))
            if part == 1 and self.log_delta_below(0.0) < target:
                return 0.0
        return 0.0

    def chernoff(self, delta: float, tilt: Tilt) -> float:
        """An epsilon that keeps ``delta`` by Chernoff's bound with this tilt; ``inf`` where there is none."""
        spare = delta - math.exp(self.log_infinity)
        if not (spare > 0 and tilt.t > 0):
            return math.inf
        return max(0.0, (tilt.log_mass - math.log(spare)) / tilt.t) * (1 + 64 * UNIT) + self._rounding(tilt) / tilt.t

    def chernoff_tilt(self, delta: float) -> Tilt:
        """The tilt at which :meth:`chernoff` is least, the round-off of very many copies counted."""
        spare = delta - math.exp(self.log_infinity)
        lost = self._rounding(Tilt(0.0, 0.0, 0.0, 0.0)) - math.log(spare if spare > 0 else delta)
        return self._solve(lambda tilt: tilt.t * tilt.mean - tilt.log_mass - lost)

    def log_chernoff(self, epsilon: float) -> float:
        """Logarithm of Chernoff's bound on delta at ``epsilon``."""
        tilt = self.tilt_to(epsilon)
        return logaddexp(self.log_infinity, tilt.log_mass - tilt.t * epsilon * (1 - 4 * UNIT) + self._rounding(tilt))

    def _rounding(self, tilt: Tilt) -> float:
        """Round-off of the logarithm of the tilted mass."""
        each = sum(times * (16 + 4 * tilt.t * part.step * int(part.index[-1])) for part, times in self.parts)
        return UNIT * (each + 16 * abs(tilt.log_mass) + 64)

    def window(self, tilt: Tilt) -> "_Window":
        """The tilted law on a window around its mean that is wide enough."""
        first, size, outside = self.extent(tilt)
        law, error = self._wave(tilt.t, first, size)
        return _Window(tilt, self.step, first, law, error, outside, self._rounding(tilt))

    def extent(self, tilt: Tilt) -> tuple[int, int, float]:
        """Where such a window begins, its size (16 million at most), and a bound on the tilted mass outside."""
        max_points = 2**23  # points of a window beyond which it is not widened
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

    def _wave(self, t: float, first: int, size: int) -> tuple[Reals, float]:
        """One period of the law of the tilted sum, and the Euclidean norm of its round-off."""
        logs, error = np.zeros(size // 2 + 1, dtype=complex), 0.0
        rounding = 5 * UNIT * math.log2(size)
        for part, times in self.parts:
            law = part.tilted(t)[1]
            wave = rfft(np.bincount(part.index % size, law, size))
            with np.errstate(divide="ignore"):
                logs.real += times * np.log(np.abs(wave))
            logs.imag += times * np.angle(wave)
            error += times * (rounding * float(np.linalg.norm(law)) + 16 * UNIT)
        law = np.roll(irfft(np.exp(logs, out=logs), size, overwrite_x=True), -(first % size))
        return np.maximum(law, 0), error + rounding

    def _outside(self, tilt: Tilt, sides: Sequence[Sequence[Tilt]], edges: Sequence[float]) -> float:
        """Chernoff's bounds on the tilted mass below the window (it wraps, harmlessly but for its size) and above."""
        total = 0.0
        for edge, others in zip(edges, sides, strict=True):
            logs = (one.log_mass - tilt.log_mass - (one.t - tilt.t) * edge for one in others)
            total += math.exp(min(0.0, *logs))
        return min(total, 1.0)


def _largest_at(window: "_Window", delta: float, low: float, high: float) -> float:
    """The greatest epsilon found between two at which delta is at least this, as it is at the lower one."""
    target = math.log(delta)
    return largest(lambda at: 2 * target - window.log_delta_below(at), delta, low, high)


@dataclass(frozen=True, slots=True)
class _Window:
    """The law of the tilted sum at the losses ``step * (first + i)``; ``error`` is the Euclidean norm of round-off."""

    tilt: Tilt
    step: float
    first: int
    law: Reals
    error: float
    outside: float
    rounding: float

    def serves(self, epsilon: float) -> bool:
        """Whether this tilt is nearly the best one there."""
        away = epsilon - self.tilt.mean
        # Distance from the mean up to which a window is used, in standard deviations.
        return (away < 0 and not self.tilt.t) or abs(away) <= 0.1 * math.sqrt(self.tilt.variance)

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of an upper bound on ``E[(1 - exp(epsilon - loss))_+]``; close where epsilon is near the mean."""
        return self._log_excess(epsilon, 1)

    def log_delta_below(self, epsilon: float) -> float:
        """Logarithm of a lower bound on the same: what could be wrong is taken off; ``-inf`` where nothing is left."""
        return self._log_excess(epsilon, -1)

    def crossing(
        self, bound: Callable[[float], float], delta: float, spare: float, at_least: float, side: int
    ) -> float:
        """An epsilon at which the bound of this side meets ``delta``, up to 1e-11; NaN where suffix sums find none.

        ``bound`` is the logarithm of what is asked of this window, ``spare``, and of the rest of ``delta``.
        """
        # P(loss > epsilon) - exp(epsilon) Q(loss > epsilon) = delta is solved in suffix sums.  That subtraction decides
        # nothing: an answer is an epsilon at which ``bound``, which is what any other search asks, is on its safe side.
        start = min(max(math.floor(at_least / self.step) - self.first, 0), len(self.law) - 1)
        losses = self.step * (self.first + np.arange(len(self.law) - 1, start - 1, -1)) - self.tilt.mean
        scale = self.tilt.log_mass - math.log(spare) - self.tilt.t * self.tilt.mean
        p = self.law[start:][::-1] * np.exp(np.minimum(scale - self.tilt.t * losses, MAX_LOSS_EXPONENT))
        q = np.cumsum(p * np.exp(np.minimum(-losses, MAX_LOSS_EXPONENT)))
        p, factors = np.cumsum(p), np.exp(np.minimum(losses, MAX_LOSS_EXPONENT))

        def root_at(level: float) -> float:
            reached = least_whole(lambda i: bool(p[i] - factors[i] * q[i] >= level), 0, len(p) - 1)
            rise = (p[reached - 1] - level) / q[reached - 1] if reached and q[reached - 1] > 0 else 0.0
            return (self.tilt.mean + math.log(rise)) * (1 + side * RTOL_ROOT) if rise > 0 else math.nan

        level, epsilon = 1.0, root_at(1.0)
        for _ in range(4):  # the bound exceeds the sums by nearly the same factor at the next root
            if not epsilon > at_least:
                break
            missed, last = bound(epsilon) - math.log(delta), epsilon
            level *= math.exp(min(-missed * delta / spare, 1.0))
            epsilon = root_at(level)
            if side * missed <= 0 and abs(epsilon - last) <= 8 * RTOL_ROOT * last:
                return last
        return math.nan

    def _log_excess(self, epsilon: float, side: int) -> float:
        exponent = 60.0  # exponent beyond which losses above epsilon do not count
        t = self.tilt.t
        start = max(math.floor(epsilon / self.step) - self.first, 0)
        far = (
            len(self.law)
            if t * self.step * len(self.law) <= exponent
            else start + 1 + math.ceil(exponent / (t * self.step))
        )
        # The product and the difference are rounded, which close above epsilon is as much as what is left of them.
        rounded = side * 4 * UNIT * (abs(epsilon) + self.step)
        losses = self.step * (self.first + np.arange(start, min(far, len(self.law))))
        excess = np.maximum(losses - epsilon + rounded, 0)
        weights = -np.expm1(-excess) * np.exp(-t * excess)
        total = float(self.law[start:far] @ weights) * (1 + side * len(self.law) * UNIT)
        total += side * (float(np.linalg.norm(weights)) * self.error + self.outside)
        total += 2 * math.exp(-exponent) if side > 0 else 0.0
        log_total = math.log(total) if total > 0 else -math.inf
        return self.tilt.log_mass - t * epsilon + log_total + side * (self.rounding + 16 * UNIT * t * epsilon)
