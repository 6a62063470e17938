r"""Laplace noise on a value in [0, 1], as the accounts see it."""

import functools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import wofz

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.accounting.shuffling.analysis import BlanketAnalysis, rounded_down, subsampled
from flamelib.accounting.shuffling.brackets import RTOL_NOISE, LawAt, estimate
from flamelib.accounting.shuffling.bromwich import RTOL_TIGHT
from flamelib.accounting.shuffling.discrete import KaryAnalysis
from flamelib.accounting.shuffling.laws import LossLaw, gauss_error, increments, panels
from flamelib.core.arrays import Complexes, Reals
from flamelib.core.profiles import KaryProfile


class LaplaceAnalysis(BlanketAnalysis):
    """By the blanket of a user at one half; from below all others hold the worst value found."""

    @property
    def rtol_lower(self) -> float:  # type: ignore[override]
        return RTOL_NOISE if self.epsilon0 > 10.0 else RTOL_TIGHT

    def blanket(self, epsilon: float) -> "LaplaceLaw":
        return LaplaceLaw(self.epsilon0, epsilon, 0.5, self.randomizer.mass)

    def others(self, n_users: int, epsilon: float | None, delta: float | None) -> LawAt:
        at = self.estimated_epsilon(n_users, epsilon, delta)
        if at is None:
            return self.blanket

        @functools.cache
        def log_delta(holds: float) -> float:
            return estimate(self._holding(holds), n_users)(at)

        best, step = max((i / 8 for i in range(9)), key=log_delta), 1 / 8
        while step > 1e-4:
            step /= 2
            best = max((best, max(best - step, 0.0), min(best + step, 1.0)), key=log_delta)
        return self._holding(best)

    def _holding(self, value: float) -> LawAt:
        return lambda epsilon: LaplaceLaw(self.epsilon0, epsilon, value, 1.0)

    def min_blankets(self, mass: float) -> float:
        return 10.0

    def witnesses(self, n_users: int, rate: float, equal_inputs: bool = False) -> list[DominatingPair]:
        """Of the indicator of a message above 1/2, binary response of the values 0 and 1."""
        budget = rounded_down(math.log1p(2 * math.expm1(self.epsilon0 / 2)))
        return KaryAnalysis(KaryProfile(budget, 2)).witnesses(n_users, rate) if budget else []

    def laws_of_equal_inputs(self, rate: float) -> list[LawAt]:
        return [functools.partial(self._joining, rate, value) for value in (0.0, 1.0)]

    def _joining(self, rate: float, value: float, epsilon: float) -> LossLaw:
        return subsampled(LaplaceLaw(self.epsilon0, epsilon, value, 1.0), rate, -math.expm1(epsilon))


# One side of the reference: depth d, and L = factor * expm1(top - x) + shift.
Side = tuple[float, float, float, float]


@dataclass(frozen=True)
class LaplaceLaw:
    r"""Laplace noise on [0, 1], inputs 0 and 1, reference a user at ``center``.

    With :math:`d = \varepsilon_0 c` below the center and :math:`\bar d = \varepsilon_0 (1-c)` above it, and ``x`` the
    distance in log-likelihood from the end point,

    .. math:: L = e^{\varepsilon - \bar d}(e^{\varepsilon_0-\varepsilon-x}-1)\ \text{below},\qquad
              L = -e^{-d}(e^{\varepsilon_0+\varepsilon-x}-1)\ \text{above},

    with an atom :math:`\tfrac12 e^{-d}` at ``x = 0`` and density :math:`\tfrac14 e^{-d+x/2}` on :math:`[0, 2d]`
    (above: :math:`\bar d`).  The blanket is the center one half with mass :math:`e^{-\varepsilon_0/2}`.
    """

    epsilon0: float
    epsilon: float
    center: float
    mass: float

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """Both sides of the center: see :data:`Side`."""
        below, above = self.epsilon0 * self.center, self.epsilon0 * (1 - self.center)
        return (
            (below, math.exp(self.epsilon - above), self.epsilon0 - self.epsilon, 0.0),
            (above, -math.exp(-below), self.epsilon0 + self.epsilon, 0.0),
        )

    @cached_property
    def max_coefficient(self) -> float:
        """Largest coefficient of ``exp(-x)`` in L."""
        return max(abs(factor) * math.exp(top) for _, factor, top, _ in self.sides)

    @property
    def reach(self) -> float:
        return 10 / self.max_coefficient

    @cached_property
    def points(self) -> tuple[Reals, Reals]:
        values, weights = [], []
        for depth, factor, top, shift in self.sides:
            values.append(np.array([factor * math.expm1(top) + shift]))
            weights.append(np.array([0.5 * math.exp(-depth)]))
            x, w = panels(np.linspace(0, 2 * depth, 1 + math.ceil(2 * depth)))
            values.append(factor * np.expm1(top - x) + shift)
            weights.append(0.25 * w * np.exp(x / 2 - depth))
        return np.concatenate(values), np.concatenate(weights)

    @property
    def kept(self) -> float:
        return 1 - self.mass

    def quadrature_error(self, size: float) -> float:
        panels = 2 * math.ceil(self.epsilon0) + 2
        return 0.25 * panels * gauss_error(lambda rho: size * self.max_coefficient * math.exp((rho + 1 / rho) / 4))

    def transform(self, s: Complexes) -> Complexes:
        return np.asarray(sum(self._side(s, *side) for side in self.sides) - 1)

    def increment(self, t: float, y: Reals) -> Complexes:
        near = np.hypot(t, y) <= self.reach
        total = np.empty(y.shape, complex)
        values, weights = self.points
        total[near] = increments(values, weights * np.exp(t * values), y[near])
        if not near.all():
            total[~near] = self.transform(np.asarray(t + 1j * y[~near], complex)) - self.transform(np.array([t + 0j]))
        return total

    def decay(self, t: float) -> tuple[float, float]:
        r"""Atoms, then one integration by parts: density over slope is :math:`\tfrac14 e^{3x/2-d}` over a constant."""
        atoms = smooth = 0.0
        for depth, factor, top, shift in self.sides:
            if factor == 0:
                atoms += 0.5 * math.exp(t * shift)
                continue
            ends = [t * (factor * math.expm1(top - x) + shift) for x in (0.0, 2 * depth)]
            atoms += 0.5 * math.exp(-depth + ends[0])
            smooth += math.exp(2 * depth + max(ends)) / abs(factor * math.exp(top))
        return atoms, smooth

    def _side(self, s: Complexes, depth: float, factor: float, top: float, shift: float) -> Complexes:
        """One side in closed form: parts, then the error function of complex argument (scaled, by ``wofz``)."""
        at_top, at_end = (np.exp(s * (factor * math.expm1(end) + shift)) for end in (top, top - 2 * depth))
        root = np.sqrt(-s * factor * math.exp(top))
        tail = at_end * wofz(1j * root * math.exp(-depth)) - at_top * wofz(1j * root)
        smooth = 0.5 * (at_end - math.exp(-depth) * at_top - math.sqrt(math.pi) * math.exp(-depth) * root * tail)
        return np.asarray(0.5 * math.exp(-depth) * at_top + smooth)


@dataclass(frozen=True)
class PaddedLaplaceLaw(LaplaceLaw):
    r"""Laplace noise among dummies: :math:`L = g(r_0-1) - l(r_1-1) - h` with ``gain``, ``loss`` and ``growth``.

    A message that is present with probability a under P, b under Q, and else replaced by a draw from the blanket, has
    :math:`(1-a+a\,r_0) - e^{\varepsilon}(1-b+b\,r_1)`: :math:`g = a`,
    :math:`l = e^{\varepsilon}b`, :math:`h = e^\varepsilon-1`, all three up to a common factor.  Below the center
    :math:`r_0 = e^{\varepsilon_0/2-x}` and :math:`r_1 = e^{-\varepsilon_0/2}`, above it the reverse.
    """

    gain: float
    loss: float
    growth: float

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """Both sides of the center, one half."""
        half, missing = self.epsilon0 / 2, -math.expm1(-self.epsilon0 / 2)
        below = (half, self.gain, half, self.loss * missing - self.growth)
        return below, (half, -self.loss, half, -self.gain * missing - self.growth)

    def quadrature_error(self, size: float) -> float:
        """That of :class:`LaplaceLaw`, times the exponential of the constant part of L."""
        constant = max(shift - factor for _, factor, _, shift in self.sides)
        return super().quadrature_error(size) * math.exp(size * max(constant, 0.0))
