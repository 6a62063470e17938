r"""Sums of independent privacy losses on a grid: the delta of a composition, never below that of its parts.

A :class:`Loss` is the law of :math:`\log(p/q)` under P for a pair (P, Q), with what has no finite loss kept apart.  The
composition of T pairs has the law of the sum, and

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
from flamelib.core.search import largest, root, smallest_epsilon

WIDTH = 14.0  # of a window at first, in standard deviations
WIDEST = 2**23  # points of a window that is not widened any more
NEARBY, MOST_KEPT = 0.1, 2**24  # how far from its mean a window is used, in standard deviations; points kept
NEGLIGIBLE = 1e-9  # tilted mass outside a window, relative to an answer that is a bulk
RATES = (
    1 / 64,
    1 / 16,
    1 / 4,
    1,
    2,
    4,
    8,
    16,
)  # in units of one over the deviation; the slow ones where tails are heavy
STEEPEST = 1e4  # largest tilt, in units of one over the step
GENTLER = (1, 4, 16, 64, 256, 1024, 2**20)  # parts of a tilt that are tried in turn
PEAKED = 0.3  # tilt times standard deviation below which the largest loss alone decides
FAR = 60.0  # exponent beyond which losses above epsilon do not count


@dataclass(frozen=True, slots=True)
class Loss:
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

    def swapped(self) -> "Loss":
        """The losses of (Q, P): each changes its sign and takes Q's mass."""
        masses = self.masses * np.exp(-self.losses) * (1 + 8 * UNIT)
        return Loss(self.step, -self.index[::-1], masses[::-1], self.nothing, self.infinity)

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
class LossSum:
    """Independent losses on one grid, each with the number of its copies."""

    parts: Sequence[tuple[Loss, int]]

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
        if found.t * math.sqrt(found.variance) >= PEAKED:
            return found
        return self._solve(lambda tilt: tilt.t * tilt.mean - tilt.log_mass + math.log1p(tilt.t) + untilted + log_delta)

    def _solve(self, rises: Callable[[Tilt], float]) -> Tilt:
        high, most = 1.0, STEEPEST / self.step
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
                while sum(len(one.law) for one in known) > MOST_KEPT and len(known) > 1:
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

        return smallest_epsilon(log_delta, delta, min(at_most, self.most, 1.0001 * reached))

    def log_delta_below(self, epsilon: float) -> float:
        """Logarithm of a lower bound on delta, for losses and masses that are not too large."""
        if epsilon >= self.most:
            return -math.inf
        return min(self.window(self.tilt_to(epsilon)).log_delta_below(epsilon), 0.0)

    def epsilon_below(self, delta: float) -> float:
        """Greatest epsilon found at which delta is at least this, for losses and masses that are not too large."""
        target = math.log(delta)
        first = self.tilt_for(target)
        for part in GENTLER:  # a largest loss of hardly any mass, or alone, calls for too steep a tilt
            tilt = self.tilt(first.t / part)
            window = self.window(tilt)
            sides = [
                tilt.mean - spreads * math.sqrt(tilt.variance) for spreads in (6, 4, 2)
            ]  # far below little is left
            lumps = [sides[0] - nats for nats in (0.5, 2.0, 8.0)]  # one largest loss rises to its mass within some nats
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
        spread = max(math.sqrt(tilt.variance), 1e-3 * self.step)
        lowest, highest = (sum(times * int(part.index[end]) for part, times in self.parts) for end in (0, -1))
        width = min(math.ceil(WIDTH * spread / self.step) + 64, WIDEST)
        sides = [[self.tilt(tilt.t + sign * rate / max(spread, self.step)) for rate in RATES] for sign in (-1, 1)]
        while width <= highest - lowest:
            size = next_fast_len(width, real=True)
            first = round(tilt.mean / self.step) - size // 2
            outside = self._outside(tilt, sides, (first * self.step, (first + size) * self.step))
            if outside <= NEGLIGIBLE / (1 + tilt.t * spread) or width > WIDEST:
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
        return (away < 0 and not self.tilt.t) or abs(away) <= NEARBY * math.sqrt(self.tilt.variance)

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of an upper bound on ``E[(1 - exp(epsilon - loss))_+]``; close where epsilon is near the mean."""
        return self._log_excess(epsilon, 1)

    def log_delta_below(self, epsilon: float) -> float:
        """Logarithm of a lower bound on the same: what could be wrong is taken off; ``-inf`` where nothing is left."""
        return self._log_excess(epsilon, -1)

    def _log_excess(self, epsilon: float, side: int) -> float:
        t = self.tilt.t
        start = max(math.floor(epsilon / self.step) - self.first, 0)
        far = len(self.law) if t * self.step * len(self.law) <= FAR else start + 1 + math.ceil(FAR / (t * self.step))
        # The product and the difference are rounded, which close above epsilon is as much as what is left of them.
        rounded = side * 4 * UNIT * (abs(epsilon) + self.step)
        losses = self.step * (self.first + np.arange(start, min(far, len(self.law))))
        excess = np.maximum(losses - epsilon + rounded, 0)
        weights = -np.expm1(-excess) * np.exp(-t * excess)
        total = float(self.law[start:far] @ weights) * (1 + side * len(self.law) * UNIT)
        total += side * (float(np.linalg.norm(weights)) * self.error + self.outside)
        total += 2 * math.exp(-FAR) if side > 0 else 0.0
        log_total = math.log(total) if total > 0 else -math.inf
        return self.tilt.log_mass - t * epsilon + log_total + side * (self.rounding + 16 * UNIT * t * epsilon)
