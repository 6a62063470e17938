r"""Law of the amplification variable under Gaussian noise on [0, 1], with its transform off the imaginary axis.

Write u for the log-likelihood ratio of the two inputs, up to a shift: :math:`(\tfrac12-y)/\sigma^2` with the blanket
as reference, :math:`(1-y)/\sigma^2` with a user who holds 1.  On either half-line (*leg*; u counted from 0 upwards)

.. math:: L = L_0 + P\,(e^{\pm u} - 1), \qquad \text{density } c\, e^{-\kappa u - \sigma^2 u^2/2} .

L has log-normal tails, so :math:`E\,e^{sL}` exists on the imaginary axis only.  But all is analytic in u: on a path
of integration that is turned to :math:`\mathrm{Im}\,u = \pi - \arg s` (P > 0) or :math:`-\arg s` (P < 0) the integrand
falls doubly exponentially, which continues the transform to the sector :math:`0 \le \arg s \le \pi/2`.  At real s > 0
the continuation has an imaginary part: what rare large values of L contribute.  There the path stays real up to the
saddle point, the larger root of :math:`sPe^u = \sigma^2u + \kappa`, at which :math:`e^{sL}` begins to outgrow the
density, and leaves the axis at that point; so the imaginary part is a sum of terms of its own size.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import wofz

from flamelib.laws import Complex, Real

NEGLIGIBLE = 45.0
FAINTEST = 250.0
NEAR = 0.8
STEEP, SHALLOW = 0.7, 1.6
SADDLE, STEEPEST = 2.5, 8.0
SCAN = np.linspace(0, 1, 97) ** 4


@dataclass(frozen=True, slots=True)
class Rule:
    """Composite Gauss-Legendre rule on [0, 1]."""

    places: Real
    weights: Real

    @classmethod
    def of(cls, nodes: int, panels: int) -> "Rule":
        x, w = np.polynomial.legendre.leggauss(nodes)
        places = (np.arange(panels)[:, None] + (x + 1) / 2).ravel() / panels
        return cls(places, np.tile(w / 2, panels) / panels)


@dataclass(frozen=True, slots=True)
class Leg:
    """One half-line: ``L = start + size * expm1(sign * u)``."""

    start: float
    size: float
    sign: int

    def values(self, u: Complex) -> Complex:
        return np.asarray(self.start + self.size * np.expm1(self.sign * u))


@dataclass(frozen=True)
class GaussianLaw:
    """Gaussian noise on [0, 1], inputs 0 and 1; reference the blanket, or else a user who holds 1.

    Of all values that the other users may hold in common, 1 gives most away for inputs in this order (seen on grids
    of values, two to a million users): its likelihood ratio has the longest tail.
    """

    noise_std: float
    epsilon: float
    blanket: bool

    @property
    def mass(self) -> float:
        return math.erfc(1 / (2 * math.sqrt(2) * self.noise_std)) if self.blanket else 1.0

    @property
    def kept(self) -> float:
        """One minus ``mass``, without cancellation."""
        return math.erf(1 / (2 * math.sqrt(2) * self.noise_std)) if self.blanket else 0.0

    @cached_property
    def legs(self) -> tuple[Leg, Leg]:
        """The leg towards large L first."""
        if self.blanket:
            start = -self.mass * math.expm1(self.epsilon)
            return Leg(start, self.mass, 1), Leg(start, -self.mass * math.exp(self.epsilon), 1)
        shift = -1 / (2 * self.noise_std**2)
        start = math.expm1(shift) - math.expm1(self.epsilon)
        return Leg(start, math.exp(shift), 1), Leg(start, math.exp(shift), -1)

    @property
    def slant(self) -> float:
        r"""The linear coefficient :math:`\kappa` of the density's exponent."""
        return 0.5 if self.blanket else 0.0

    @property
    def height(self) -> float:
        """The density at ``u = 0``."""
        flat = self.noise_std / math.sqrt(2 * math.pi)
        return flat * math.exp(-1 / (8 * self.noise_std**2)) / self.mass if self.blanket else flat

    @property
    def farthest(self) -> float:
        """The largest real s of use: the saddle point is well apart from 0, and no ``e^{sL}`` overflows."""
        apart = (self.noise_std**2 * SADDLE + self.slant) * math.exp(-SADDLE)
        return min(apart, STEEPEST * self.noise_std) / self.legs[0].size

    @property
    def longest(self) -> float:
        """A u beyond which the law of either input has no mass that matters."""
        return (0.5 if self.blanket else 1.0) / self.noise_std**2 + 10 / self.noise_std

    def transform(self, s: Complex, rule: Rule, less_one: bool) -> tuple[Complex, Complex]:
        """``mass E[e^{sL}]``, or ``mass E[e^{sL} - 1]`` (either without cancellation), for ``0 <= arg s <= pi/2``.

        Second, the sums of the absolute real and imaginary parts of what has been added up.
        """
        total, size = np.zeros(s.shape, complex), np.zeros(s.shape, complex)
        near = np.angle(s) < NEAR
        upward, downward = self.legs
        everywhere = np.ones(s.shape, bool)
        for leg, here, real_first in ((upward, near, True), (upward, ~near, False), (downward, everywhere, False)):
            if here.any():
                found = self._along(leg, s[here], real_first, rule, less_one)
                total[here] += found[0]
                size[here] += found[1]
        scale = self.mass * self.height
        return np.asarray(scale * total), np.asarray(scale * size)

    def _along(self, leg: Leg, s: Complex, real_first: bool, rule: Rule, less_one: bool) -> tuple[Complex, Complex]:
        path = self._path(leg, s, real_first)
        pieces = self._pieces(leg, s, path)
        total = -self._beyond(path.at(pieces[-1][1])) if less_one else np.zeros(s.shape, complex)
        size = np.zeros(s.shape, complex)
        grown = np.expm1 if less_one else np.exp
        for low, high in pieces:
            first = path.at(low)
            step = (path.at(high) - first)[:, None]
            u = first[:, None] + step * rule.places
            terms = step * grown(s[:, None] * leg.values(u)) * self._density(u)
            total += terms @ rule.weights
            size += np.abs(terms.real) @ rule.weights + 1j * (np.abs(terms.imag) @ rule.weights)
        return total, size

    def _path(self, leg: Leg, s: Complex, real_first: bool) -> "_Path":
        """Real up to the saddle point and then steep, or turned from the start."""
        turn = (math.pi if leg is self.legs[0] else 0.0) - np.angle(s)
        size, stiff = np.abs(s * leg.size), self.noise_std**2
        if real_first:
            saddle = np.maximum(np.log(2 * stiff / size), 1.0)
            for _ in range(40):
                saddle = np.maximum(np.log((stiff * saddle + self.slant) / size), 1e-9)
            return _Path(saddle, saddle + STEEP * turn, np.full(s.shape, 1 / STEEP))
        length = np.maximum(SHALLOW * np.abs(turn), 1e-9)
        if leg.sign > 0:
            length = np.maximum(length, np.log(1.5 / size))
        return _Path(np.zeros(s.shape), length, turn / length)

    def _pieces(self, leg: Leg, s: Complex, path: "_Path") -> list[tuple[Real, Real]]:
        """Where on the path ``e^{sL}`` times the density matters: against its maximum, or its size at the saddle."""

        def exponent(v: Real) -> Real:
            u = path.at(v)
            with np.errstate(over="ignore", invalid="ignore"):
                grown = np.nan_to_num((s * leg.values(u)).real, nan=-np.inf)
            return np.asarray(grown - (self.slant * u + self.noise_std**2 / 2 * u * u).real)

        reach = 20 / self.noise_std
        v = SCAN[:, None] * (np.minimum(path.corner, path.start + 3 * reach) + 1.5 * reach)
        sizes = exponent(v)
        real = np.where(v <= path.start, sizes, -np.inf)
        top = np.where(path.start > 0, np.maximum(exponent(path.start), -FAINTEST), sizes.max(axis=0))
        stop = _last(v, sizes, np.minimum(top, sizes.max(axis=0)) - NEGLIGIBLE)
        corner = np.minimum(path.corner, stop)
        if not path.start.any():
            return [(0 * stop, corner / 2), (corner / 2, corner), (corner, stop)]
        bulk = np.minimum(_last(v, real, real.max(axis=0) - NEGLIGIBLE), np.minimum(path.start, stop))
        return [(0 * stop, bulk / 2), (bulk / 2, bulk), (np.minimum(path.start, stop), corner), (corner, stop)]

    def _density(self, u: Complex) -> Complex:
        return np.asarray(np.exp(-(self.slant + self.noise_std**2 / 2 * u) * u))

    def _beyond(self, u: Complex) -> Complex:
        """Density integrated from ``u`` on."""
        scaled = (self.noise_std * u + self.slant / self.noise_std) / math.sqrt(2)
        return np.asarray(math.sqrt(math.pi / 2) / self.noise_std * self._density(u) * wofz(1j * scaled))


def _last(v: Real, sizes: Real, floor: Real) -> Real:
    """In each column, the place after the last one whose size is above the floor."""
    index = len(v) - np.argmax((sizes > floor)[::-1], axis=0)
    return np.asarray(np.take_along_axis(v, np.minimum(index, len(v) - 1)[None], 0)[0])


@dataclass(frozen=True, slots=True)
class _Path:
    """Paths in the u-plane, one per s: real up to ``start``, then sloping up to ``corner``, then horizontal."""

    start: Real
    corner: Real
    slope: Real

    def at(self, v: Real) -> Complex:
        """The point with real part ``v``."""
        return np.asarray(v + 1j * self.slope * (np.clip(v, self.start, self.corner) - self.start))
