"""A sum of independent variables on one vertical line: saddle point, powers of the transform, rates of decay.

What :mod:`flamelib.amplification.inversion` integrates; the notation is explained there.
"""

import math

import numpy as np
from scipy.optimize import brentq

from flamelib.laws import AtomicLaw, Complex, LossLaw, Real

ROUNDING = 16 * 2.0**-53
NEGLIGIBLE = 1e-9


class Tilted:
    """The sum tilted by ``exp(t S)``, t at the saddle point."""

    def __init__(self, law: LossLaw, n_users: int) -> None:
        self.law, self.n, self.mass = law, n_users, law.mass
        self.values, self.weights = law.points
        self.active, self.passive = parted(law)
        self.span = _span(law)
        self.t = self._saddle()
        growth = self._growth(self.t)
        self.moment, self.log_scale = 1 + growth, self.n * math.log1p(growth)
        tilted = self.mass * self.weights * np.exp(self.t * self.values) / self.moment
        self.spread = float(tilted @ np.abs(self.values))
        self.feet = self._feet(tilted)
        self.width = (self.feet[-1][1] ** 2 * math.pi**2 / 4 + 2 / self.t**2) ** -0.5
        self.nobody = self._nobody()
        self.scale = (1 - self.nobody) * self.width / (self.t**2 * math.sqrt(2 * math.pi))

    def _saddle(self) -> float:
        """Where the integrand is least on the points; any t > 0 is valid, this one is efficient."""
        size = self.mass * float(self.weights @ self.values**2)
        low = high = math.log(1 / math.sqrt(self.n * size))
        end = math.log(700 / self.values.max())
        while self._slope(low) > 0:
            low -= 1
        while self._slope(high) < 0 and high < end:
            high = min(high + 1, end)
        return math.exp(brentq(self._slope, low, high, xtol=1e-3) if self._slope(high) > 0 else high)

    def _slope(self, log_t: float) -> float:
        r"""Slope in t of :math:`\log((M^n - N)/t^2)`, with :math:`M^n/N = e^x`."""
        t, n = math.exp(log_t), self.n
        gain, gain_slope = self._tilted(self.active, t)
        idle, idle_slope = self._tilted(self.passive, t)
        idle += self.law.kept
        if idle == 0:
            return n * gain_slope / gain - 2 / t
        x = n * math.log1p(gain / idle)
        x_slope = n * (gain_slope - gain / idle * idle_slope) / (idle + gain)
        return n * idle_slope / idle + x_slope / -math.expm1(-x) - 2 / t

    def _tilted(self, law: LossLaw, t: float) -> tuple[float, float]:
        """``mass E e^{tL}`` over the points of a part, and its slope."""
        values, weights = law.points
        growth = self.mass * weights * np.exp(np.minimum(t * values, 700))
        return float(growth.sum()), float(growth @ values)

    def _feet(self, tilted: Real) -> list[tuple[float, float]]:
        r"""Stretches of the line from its foot with a Gaussian rate of decay on each, longest first.

        :math:`|M(t+iy)/M(t)|^2 = 1 - 4\sum_{i<j} p_i p_j \sin^2(y(x_i-x_j)/2)` with p the tilted chances of one
        user's contribution x, and :math:`\sin^2 u \ge (2u/\pi)^2` for :math:`|u| \le \pi/2`: so with V the part of the
        variance from pairs at most D apart, its n-th power is below :math:`e^{-2nVy^2/\pi^2}` for
        :math:`|y| \le \pi/D`.
        """
        values, chances = np.append(self.values, 0.0), np.append(tilted, self.law.kept / self.moment)
        apart, span = np.abs(np.subtract.outer(values, values)), float(np.ptp(values))
        together = np.multiply.outer(chances, chances) * apart**2
        sizes = [size for size in (0.125 * span, 0.25 * span, float(np.abs(values).max())) if size < span]
        parts = [(size, float(together[apart <= 1.000001 * size].sum()) / 2) for size in (*sizes, span)]
        return [(math.pi / (1.000001 * size), 1.998 / math.pi * math.sqrt(self.n * part)) for size, part in parts]

    def _growth(self, t: float) -> float:
        """``M(t) - 1``: on the points where they stand for the law, else in closed form."""
        if t <= self.law.reach:
            return self.mass * float(self.weights @ np.expm1(t * self.values))
        return self.mass * float(self.law.transform(np.array([t + 0j]))[0].real)

    def _nobody(self) -> float:
        """Tilted chance that no user contributes anything positive; 0 where it does not count."""
        self.idle = self.law.kept + self._tilted(self.passive, self.t)[0]
        atomic = isinstance(self.active, AtomicLaw)
        self.gain = self._tilted(self.active, self.t)[0] if atomic else self.moment - self.law.kept
        log_share = self.n * math.log1p(-self.gain / self.moment) if self.gain < self.moment else -math.inf
        return math.exp(log_share) if log_share > 2 * math.log(NEGLIGIBLE) else 0.0

    def _powers(self, y: Real) -> Complex:
        """``(M(t+iy)/M(t))^n``, less the event that nobody contributes anything positive where that counts."""
        if not self.nobody:
            return np.asarray(np.exp(self.n * _log1p(self.mass * self.law.turn(self.t, y) / self.moment)))
        idle = self.mass * self.passive.turn(self.t, y) / self.idle
        gain = (self.gain + self.mass * self.active.turn(self.t, y)) / self.idle
        alone, together = self.n * _log1p(idle), self.n * _log1p(idle + gain)
        ratio = self.n * _log1p(gain / np.where(idle == -1, 1, 1 + idle))
        near = (ratio.real < 1) & (idle != -1)
        close = np.exp(alone) * np.expm1(np.where(near, ratio, 0))
        return np.asarray(self.nobody * np.where(near, close, np.exp(together) - np.exp(alone)))


def parted(law: LossLaw) -> tuple[LossLaw, AtomicLaw]:
    """The part of a law that may be positive, and an atomic part that is not (empty for noise)."""
    if not isinstance(law, AtomicLaw):
        return law, AtomicLaw(np.zeros(0), np.zeros(0), law.mass, law.kept)
    gains = law.values > 0
    active, passive = (AtomicLaw(law.values[part], law.weights[part], law.mass, law.kept) for part in (gains, ~gains))
    return active, passive


def _span(law: LossLaw) -> float:
    """Spacing of the lattice that all values lie on, where they are a few equal steps from 0; else 0."""
    sizes = np.unique(np.abs(law.values[law.values != 0])) if isinstance(law, AtomicLaw) else np.zeros(0)
    return float(sizes[0]) if len(sizes) == 1 else 0.0


def _log1p(z: Complex) -> Complex:
    """``log(1 + z)`` without cancellation; finite also where 1 + z is 0."""
    squared = np.maximum(2 * z.real + np.abs(z) ** 2, np.nextafter(-1, 0))
    return np.asarray(0.5 * np.log1p(squared) + 1j * np.arctan2(z.imag, 1 + z.real))
