r"""Shuffled Gaussian noise by an integral around a cut in the s-plane, with an estimated error.

Under Gaussian noise the amplification variable L has log-normal tails, so that :math:`E\,e^{sL}` exists on the
imaginary axis only.  With :math:`M(s) = 1 + \gamma E[e^{sL}-1]`, continued analytically from above, and S the sum of n
users as in :mod:`flamelib.accounting.shuffling.bromwich`,

.. math:: E[S_+] = \frac1\pi \int_0^t \frac{\mathrm{Im}\,M(x+i0)^n}{x^2}\,dx
          + \frac1\pi\,\mathrm{Im}\int_t^{\infty e^{i\varphi}} \frac{M(s)^n - (1-\gamma)^n}{s^2}\,ds :

the integral along the *lip* of the cut is the contribution of the tail of L, along the *ray* from t that of the bulk.
At the t where :math:`|M^n/s^2|` is least on the lip neither part cancels, so delta keeps its relative accuracy however
small it is.  The distribution is not truncated, and the constant :math:`(1-\gamma)^n` (the probability of no blanket
message) drops out exactly.

*Errors.*  Both integrals run over the logarithm of the distance, in panels with 16 nodes.  Every panel is halved until
whole and halves agree, and then computed once more with a finer rule for M; the error stated is the sum over panels of
the changes by halving and by the finer rule.  It is an estimate, not a proof, but a generous one: for analytic
integrands the finer value is better by many orders of magnitude.  Added are the tails beyond the last panels, those of
the quadrature of M, and a bound on round-off, part by part (the imaginary part of M on the lip has terms of its own
size).

*The distribution.*  Write u for the log-likelihood ratio of the two inputs, up to a shift:
:math:`(\tfrac12-y)/\sigma^2` with the blanket as reference, :math:`(1-y)/\sigma^2` with a user who holds 1.  On either
half-line (*leg*; u from 0 up)

.. math:: L = L_0 + P\,(e^{\pm u} - 1), \qquad \text{density } c\, e^{-\kappa u - \sigma^2 u^2/2} .

All of it is analytic in u.  On a path that is turned to :math:`\operatorname{Im}u=\pi-\arg s` where P is positive, or
to :math:`-\arg s` where it is negative, the integrand falls doubly exponentially, which continues the transform to
:math:`0\le\arg s\le\pi/2`.  At real s the path stays real up to the larger root of :math:`sPe^u=\sigma^2u+\kappa`.
"""

import cmath
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, wofz

from flamelib.accounting.shuffling.bromwich import Bracket
from flamelib.core.arrays import Complexes, Reals
from flamelib.core.logspace import LOG_OMITTED, ROUNDING_32, SMALLEST, UNIT

Parts = tuple[Reals, Reals]

PATH_GRID = np.linspace(0, 1, 97) ** 4  # grid on a path for the magnitude of the integrand
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)  # Gauss-Legendre rule of a panel
RAY_DIRECTION = cmath.exp(1j * math.radians(75))  # direction of the ray
RTOL_PANEL = 1e-10  # tolerance of a panel, relative to the integral
LOG_NEGLIGIBLE = 36.0  # minus the logarithm of a negligible integrand, relative to the largest
LOG_RAY_LENGTH = 40.0  # length of the ray, in logarithms of the distance
# Largest noise_std in the numerics (larger ones cancel); delta decreases in noise_std.
MAX_NOISE_STD = 1e6
MIN_LOG_EXCESS = -700.0  # log E[S_+] below which a bound at a smaller epsilon is returned


@dataclass(frozen=True, slots=True)
class _Rule:
    """Composite Gauss-Legendre rule on [0, 1]."""

    nodes: Reals
    weights: Reals

    @classmethod
    def of(cls, nodes: int, panels: int) -> "_Rule":
        x, w = np.polynomial.legendre.leggauss(nodes)
        unit_nodes = (np.arange(panels)[:, None] + (x + 1) / 2).ravel() / panels
        return cls(unit_nodes, np.tile(w / 2, panels) / panels)


COARSE, FINE = _Rule.of(12, 4), _Rule.of(18, 4)  # for M
Integrand = Callable[[Reals, _Rule], Parts]


@dataclass(frozen=True, slots=True)
class _Leg:
    """One half-line: ``L = start + size * expm1(sign * u)``."""

    start: float
    size: float
    sign: int

    def values(self, u: Complexes) -> Complexes:
        return np.asarray(self.start + self.size * _exp(self.sign * u, less_one=True))


@dataclass(frozen=True)
class GaussianLaw:
    """Gaussian noise on [0, 1], inputs 0 and 1; reference the blanket, or else a user who holds 1.

    Of the values held by all other users, 1 maximises the divergence for inputs in this order (on grids of values, two
    to a million users): its likelihood ratio has the heaviest tail.  Absence, of probability ``1 - rate``, is an atom
    at ``-mass * expm1(epsilon)``.
    """

    noise_std: float
    epsilon: float
    blanket: bool
    rate: float = 1.0

    @property
    def mass(self) -> float:
        return math.erfc(1 / (2 * math.sqrt(2) * self.noise_std)) if self.blanket else 1.0

    @property
    def kept(self) -> float:
        """Probability of a non-blanket message: ``1 - mass`` at rate 1, without cancellation."""
        return self.rate * math.erf(1 / (2 * math.sqrt(2) * self.noise_std)) if self.blanket else 0.0

    @cached_property
    def legs(self) -> tuple[_Leg, _Leg]:
        """The leg towards large L first."""
        if self.blanket:
            start = -self.mass * math.expm1(self.epsilon)
            return _Leg(start, self.mass, 1), _Leg(start, -self.mass * math.exp(self.epsilon), 1)
        shift = -1 / (2 * self.noise_std**2)
        start = math.expm1(shift) - math.expm1(self.epsilon)
        return _Leg(start, math.exp(shift), 1), _Leg(start, math.exp(shift), -1)

    @property
    def kappa(self) -> float:
        r"""The linear coefficient :math:`\kappa` of the density's exponent."""
        return 0.5 if self.blanket else 0.0

    @property
    def height(self) -> float:
        """The density at ``u = 0``."""
        flat = self.noise_std / math.sqrt(2 * math.pi)
        return flat * math.exp(-1 / (8 * self.noise_std**2)) / self.mass if self.blanket else flat

    @property
    def max_s(self) -> float:
        """Largest real s: the saddle point is bounded away from 0, and no ``e^{sL}`` overflows."""
        min_saddle = 2.5  # least saddle point
        by_saddle = (self.noise_std**2 * min_saddle + self.kappa) * math.exp(-min_saddle)
        return min(by_saddle, 8.0 * self.noise_std) / self.legs[0].size

    @property
    def max_u(self) -> float:
        """A u beyond which the mass under either input is negligible."""
        return (0.5 if self.blanket else 1.0) / self.noise_std**2 + 10 / self.noise_std

    def transform(self, s: Complexes, rule: _Rule, less_one: bool) -> tuple[Complexes, Complexes]:
        """``mass E[e^{sL}]``, or ``mass E[e^{sL} - 1]`` (either without cancellation), for ``0 <= arg s <= pi/2``.

        Absence is included.  Second, the sums of absolute values of the real and of the imaginary parts of all terms.
        """
        total, size = np.zeros(s.shape, complex), np.zeros(s.shape, complex)
        near = np.angle(s) < 0.8  # argument of s up to which the path is real as far as the saddle point
        upward, downward = self.legs
        everywhere = np.ones(s.shape, bool)
        for leg, here, real_first in ((upward, near, True), (upward, ~near, False), (downward, everywhere, False)):
            if here.any():
                found = self._along(leg, s[here], real_first, rule, less_one)
                total[here] += found[0]
                size[here] += found[1]
        scale = self.rate * self.mass * self.height
        absent = (1 - self.rate) * (np.expm1 if less_one else np.exp)(-self.mass * math.expm1(self.epsilon) * s)
        sizes = np.abs(absent.real) + 1j * np.abs(absent.imag)
        return np.asarray(scale * total + absent), np.asarray(scale * size + sizes)

    def _along(
        self, leg: _Leg, s: Complexes, real_first: bool, rule: _Rule, less_one: bool
    ) -> tuple[Complexes, Complexes]:
        path = self._path(leg, s, real_first)
        pieces = self._pieces(leg, s, path)
        total = -self._beyond(path.at(pieces[-1][1])) if less_one else np.zeros(s.shape, complex)
        size = np.zeros(s.shape, complex)
        for low, high in pieces:
            first = path.at(low)
            step = (path.at(high) - first)[:, None]
            u = first[:, None] + step * rule.nodes
            terms = step * _exp(s[:, None] * leg.values(u), less_one) * self._density(u)
            total += terms @ rule.weights
            size += np.abs(terms.real) @ rule.weights + 1j * (np.abs(terms.imag) @ rule.weights)
        return total, size

    def _path(self, leg: _Leg, s: Complexes, real_first: bool) -> "_Path":
        """Real up to the saddle point and then of steepest descent, or sloping from the start."""
        slope_length = 0.7  # length of the slope from a saddle point, in units of its height
        height = (math.pi if leg is self.legs[0] else 0.0) - np.angle(s)
        size, variance = np.abs(s * leg.size), self.noise_std**2
        if real_first:
            saddle = np.maximum(np.log(2 * variance / size), 1.0)
            for _ in range(40):
                saddle = np.maximum(np.log((variance * saddle + self.kappa) / size), 1e-9)
            return _Path(saddle, saddle + slope_length * height, np.full(s.shape, 1 / slope_length))
        length = np.maximum(1.6 * np.abs(height), 1e-9)  # length of the slope from 0, in units of its height
        if leg.sign > 0:
            length = np.maximum(length, np.log(1.5 / size))
        return _Path(np.zeros(s.shape), length, height / length)

    def _pieces(self, leg: _Leg, s: Complexes, path: "_Path") -> list[tuple[Reals, Reals]]:
        """Subintervals where ``e^{sL}`` times the density is not negligible, relative to maximum or saddle point."""

        def exponent(v: Reals) -> Reals:
            u = path.at(v)
            with np.errstate(over="ignore", invalid="ignore"):
                log_growth = np.nan_to_num((s * leg.values(u)).real, nan=-np.inf)
            return np.asarray(log_growth - (self.kappa * u + self.noise_std**2 / 2 * u * u).real)

        reach = 20 / self.noise_std
        v = PATH_GRID[:, None] * (np.minimum(path.corner, path.start + 3 * reach) + 1.5 * reach)
        sizes = exponent(v)
        real = np.where(v <= path.start, sizes, -np.inf)
        # A saddle value below exp(-650) would underflow.
        top = np.where(path.start > 0, np.maximum(exponent(path.start), -650.0), sizes.max(axis=0))
        end = _last(v, sizes, np.minimum(top, sizes.max(axis=0)) - LOG_OMITTED)
        corner = np.minimum(path.corner, end)
        if not path.start.any():
            return [(0 * end, corner / 2), (corner / 2, corner), (corner, end)]
        bulk = np.minimum(_last(v, real, real.max(axis=0) - LOG_OMITTED), np.minimum(path.start, end))
        return [(0 * end, bulk / 2), (bulk / 2, bulk), (np.minimum(path.start, end), corner), (corner, end)]

    def _density(self, u: Complexes) -> Complexes:
        return _exp(-(self.kappa + self.noise_std**2 / 2 * u) * u)

    def _beyond(self, u: Complexes) -> Complexes:
        """Integral of the density from ``u`` to infinity."""
        z = (self.noise_std * u + self.kappa / self.noise_std) / math.sqrt(2)
        return np.asarray(math.sqrt(math.pi / 2) / self.noise_std * self._density(u) * wofz(1j * z))


def _exp(z: Complexes, less_one: bool = False) -> Complexes:
    r"""``exp(z)``, or ``exp(z) - 1`` without cancellation, by real functions (faster).

    With t the tangent of half the phase, its cosine is :math:`\frac{1-t^2}{1+t^2}` and its sine
    :math:`\frac{2t}{1+t^2}`.
    """
    t = np.tan(0.5 * z.imag)
    square, share = t * t, 1 / (1 + t * t)
    result, size = np.empty(z.shape, complex), np.exp(z.real)
    result.real = (np.expm1(z.real) * (1 - square) - 2 * square if less_one else size * (1 - square)) * share
    result.imag = 2 * size * t * share
    return result


def _last(v: Reals, sizes: Reals, threshold: Reals) -> Reals:
    """By column, the grid point after the last one with a magnitude above the threshold."""
    index = len(v) - np.argmax((sizes > threshold)[::-1], axis=0)
    return np.asarray(np.take_along_axis(v, np.minimum(index, len(v) - 1)[None], 0)[0])


@dataclass(frozen=True, slots=True)
class _Path:
    """Paths in the u-plane, one per s: real up to ``start``, then sloping up to ``corner``, then horizontal."""

    start: Reals
    corner: Reals
    slope: Reals

    def at(self, v: Reals) -> Complexes:
        """The point with real part ``v``."""
        return np.asarray(v + 1j * self.slope * (np.clip(v, self.start, self.corner) - self.start))


def bracket(law: GaussianLaw, n_users: int, close: float = RTOL_PANEL) -> Bracket:
    """Bracket of the log divergence ``log(E[S_+] / (mass n))``, of width about ``close``.

    Where E[S_+] underflows, the upper bound is that of a smaller epsilon, or of one unshuffled message.
    """
    single = _unshuffled(law)
    if law.noise_std < 0.07:  # noise_std below which the bound is that of one unshuffled message
        return Bracket(-math.inf, single)
    if law.noise_std > MAX_NOISE_STD:
        return Bracket(-math.inf, min(single, bracket(replace(law, noise_std=MAX_NOISE_STD), n_users, close).high))
    with np.errstate(over="ignore", invalid="ignore"):
        cut = _Cut(_representable(law), n_users)
        if cut.law == law and cut.unit > MIN_LOG_EXCESS:
            found = cut.bracket(close)
            rough = close if close > RTOL_PANEL else 0.0  # the error estimate of a coarse sum may be too small
            return Bracket(min(found.low, single) - rough, min(single, found.high + rough))
        # min(x, nan) is x: a bound that overflows is ignored.
        return Bracket(-math.inf, min(single, _largest_representable(cut.law, n_users).bracket(close).high))


def quick(law: GaussianLaw, n_users: int) -> float:
    """Uncertified log divergence, for the search of the epsilon at which to certify."""
    single = _unshuffled(law)
    if law.noise_std < 0.07:
        return single
    with np.errstate(over="ignore", invalid="ignore"):
        cut = _Cut(_representable(law), n_users)
        return min(cut.quick() if cut.unit > MIN_LOG_EXCESS else cut.common, single)


def _representable(law: GaussianLaw) -> GaussianLaw:
    """The distribution at an epsilon at which likelihood ratios do not overflow."""
    return replace(law, epsilon=min(law.epsilon, 600.0 - law.max_u))  # largest log-likelihood ratio


def _largest_representable(law: GaussianLaw, n_users: int) -> "_Cut":
    """The integrals at about the largest epsilon with ``log E[S_+] > MIN_LOG_EXCESS``."""
    low, high, best = 0.0, law.epsilon, _Cut(replace(law, epsilon=0.0), n_users)
    for _ in range(10):
        middle = (low + high) / 2
        cut = _Cut(replace(law, epsilon=middle), n_users)
        low, high, best = (middle, high, cut) if cut.unit > MIN_LOG_EXCESS else (low, middle, best)
    return best


def _unshuffled(law: GaussianLaw) -> float:
    """Log divergence of one message, sent with probability ``rate``: an upper bound for every n by convexity."""
    shift, half = law.epsilon * law.noise_std, 1 / (2 * law.noise_std)
    first, second = float(log_ndtr(half - shift)), law.epsilon + float(log_ndtr(-half - shift))
    slack = 64 * UNIT * (1 + abs(first))
    remainder = -math.expm1(min(second - first, 0.0)) + slack
    return first + math.log(remainder) + slack + math.log(law.rate)


@dataclass(frozen=True, slots=True)
class _Panels:
    """Panels in the logarithm of the distance, for one of the two integrals."""

    edges: Reals
    integrand: Integrand

    def sums(self, low: Reals, high: Reals, rule: _Rule) -> Parts:
        """Integral and round-off on each panel from ``low`` to ``high``."""
        half = (high - low) / 2
        node = (low + half)[:, None] + half[:, None] * NODES
        value, rounding = self.integrand(node.ravel(), rule)
        return (value.reshape(node.shape) @ WEIGHTS) * half, (rounding.reshape(node.shape) @ WEIGHTS) * half

    def quick(self) -> float:
        return float(self.sums(self.edges[:-1], self.edges[1:], COARSE)[0].sum())

    def integral(self, close: float) -> tuple[float, float]:
        """Integral and error: panels are halved until the change is at most ``close``, or the round-off.

        The value is that of the finer rule for M: among a few users both sums of the coarse one may be equally wrong.
        """
        halvings = 12  # halvings of a panel at most
        low, high = self.edges[:-1], self.edges[1:]
        whole = self.sums(low, high, COARSE)[0]
        total = error = 0.0
        for depth in range(halvings):
            middle, count = (low + high) / 2, len(low)
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            halves, rounding = self.sums(low, high, COARSE)
            if depth == 3 and not np.isfinite(halves).all():
                return math.nan, math.nan
            change = np.abs(halves[:count] + halves[count:] - whole)
            tolerance = np.maximum(close, rounding[:count] + rounding[count:])  # halving does not reduce the round-off
            done = (change <= tolerance) | (depth == halvings - 1) | (count > 1000)  # panels at once
            settled, open_ = np.concatenate([done, done]), np.concatenate([~done, ~done])
            fine, rounding = self.sums(low[settled], high[settled], FINE)
            total += float(fine.sum())
            error += float(change[done].sum() + np.abs(fine - halves[settled]).sum() + rounding.sum())
            low, high, whole = low[open_], high[open_], halves[open_]
            if done.all():
                break
        return total, error


class _Cut:
    """The two integrals, in units of ``exp(unit)``; powers ``M^n`` in units of ``exp(base)``.

    Where ``M^n`` may be close to its constant, the probability of no blanket message, the constant is the base, against
    cancellation.
    """

    def __init__(self, law: GaussianLaw, n_users: int) -> None:
        max_few = 700.0  # bound of n_users or -log P[no blanket message] where M, not M - 1, is computed
        self.law, self.n = law, n_users
        log_null = n_users * math.log(law.kept) if law.blanket else -math.inf
        self.is_few = log_null > -max_few if law.blanket else n_users <= max_few
        self.base = log_null if self.is_few and law.blanket else 0.0
        self.constant = math.exp(log_null - self.base)
        x = law.max_s * np.exp(-np.linspace(0, self._depth(), 2 + math.ceil(self._depth())))
        logs, _ = self._powers(x.astype(np.complex128), COARSE)
        self.t = self._ray_start(x, logs)
        at_t, _ = self._powers(np.array([self.t]).astype(np.complex128), COARSE)
        lip = x < self.t
        self.log_r = np.concatenate([[0.0], np.log(self.t / x[lip])])
        self.log_lip = _jump(np.concatenate([at_t, logs[lip]])) - np.log(np.concatenate([[self.t], x[lip]]))
        self.unit = self.base + max(float(self.log_lip.max()), float(self._size(at_t)[0]) - math.log(self.t))

    @property
    def common(self) -> float:
        """Logarithm of the unit of delta."""
        return self.unit - math.log(self.law.mass * self.n)

    def _depth(self) -> float:
        """Length of the lip, in logarithms, on which the integrand may be non-negligible."""
        largest = max(self.law.max_u, self.law.epsilon + math.log(self.n) + 10 / self.law.noise_std)
        return max(math.log(self.law.max_s * self.law.legs[0].size) + largest + 5, 10.0)

    def _ray_start(self, x: Reals, logs: Complexes) -> float:
        """Starting point t of the ray: the minimum of ``|M^n - constant| / x^2``, to a few percent.

        Restricted to phases of ``M^n`` of at most 1.5: beyond, the integrand on the lip oscillates.
        """
        excluded = np.logical_or.accumulate((np.abs(logs.imag) > 1.5)[::-1])[::-1]
        sizes = self._size(logs) - 2 * np.log(x)
        excluded[1:] |= np.isnan(sizes[:-1])  # a ray from there would overflow
        excluded = np.logical_or.accumulate((excluded | np.isnan(sizes))[::-1])[::-1]
        best = int(np.argmin(np.where(excluded, np.inf, sizes)))
        ends = np.log(x[[max(best - 1, int(excluded.sum())), min(best + 1, len(x) - 1)]])
        fine = np.exp(np.linspace(ends[0], ends[1], 25))
        found = self._size(self._powers(fine + 0j, COARSE)[0]) - 2 * np.log(fine)
        return float(fine[int(np.argmin(np.where(np.isnan(found), np.inf, found)))])

    def _size(self, logs: Complexes) -> Reals:
        return np.asarray(np.log(np.maximum(np.abs(self._less_constant(logs)), 1e-300)))

    def _less_constant(self, logs: Complexes) -> Complexes:
        """``M^n`` minus its constant, whose integral is 0."""
        capped = np.minimum(logs.real, 700) + 1j * logs.imag
        return np.asarray(np.expm1(capped) if self.constant == 1 else np.exp(capped) - self.constant)

    def _powers(self, s: Complexes, rule: _Rule) -> tuple[Complexes, Complexes]:
        """Logarithm of ``M^n``, and the round-off of its real and imaginary part."""
        increment, size = self.law.transform(s, rule, less_one=not self.is_few)
        if self.is_few and not self.law.blanket:
            increment = np.where(increment == 0, 1e-300, increment)
            logs, modulus = np.log(increment), np.abs(increment)
        else:
            rest = self.law.kept if self.is_few else 1.0
            increment, size = increment / rest, size / rest
            squared = np.maximum(2 * increment.real + np.abs(increment) ** 2, np.nextafter(-1, 0))
            logs = 0.5 * np.log1p(squared) + 1j * np.arctan2(increment.imag, 1 + increment.real)
            modulus = np.abs(1 + increment)
        omitted = (0 if self.is_few else math.exp(-LOG_OMITTED)) * (1 + 1j * (s.imag > 0))
        rounding = (ROUNDING_32 * size + omitted) / np.maximum(modulus, 1e-300)
        return self.n * logs, self.n * (rounding + ROUNDING_32 * (np.abs(logs.real) + 1j * np.abs(logs.imag)))

    def _lip(self, log_r: Reals, rule: _Rule) -> Parts:
        x = self.t * np.exp(-log_r)
        logs, rounding = self._powers(x.astype(np.complex128), rule)
        scale = np.exp(np.minimum(logs.real + self.base - self.unit, 700)) / (math.pi * x)
        sine = np.sin(logs.imag)
        return scale * sine, scale * (np.abs(sine) * rounding.real + rounding.imag)

    def _ray(self, log_r: Reals, rule: _Rule) -> Parts:
        value, rounding = self._on_ray(log_r, rule)
        return value.imag, rounding

    def _on_ray(self, log_r: Reals, rule: _Rule) -> tuple[Complexes, Reals]:
        s = np.asarray(self.t * (1 + np.expm1(log_r) * RAY_DIRECTION))
        logs, rounding = self._powers(s, rule)
        jacobian = (
            RAY_DIRECTION * (self.t / s) * np.exp(log_r) / (math.pi * s) * math.exp(min(self.base - self.unit, 700))
        )
        size = np.exp(np.minimum(logs.real, 700)) * np.abs(jacobian)
        return self._less_constant(logs) * jacobian, size * np.expm1(np.minimum(rounding.real + rounding.imag, 700))

    def _pieces(self) -> list[_Panels]:
        """Panels where the integrands are within ``exp(-LOG_NEGLIGIBLE)`` of the unit."""
        pieces = []
        used = np.flatnonzero(self.log_lip + self.base > self.unit - LOG_NEGLIGIBLE)
        if len(used):
            low, high = self.log_r[max(used[0] - 1, 0)], self.log_r[min(used[-1] + 1, len(self.log_r) - 1)]
            pieces.append(_Panels(np.linspace(low, high, 2 + math.ceil(high - low)), self._lip))
        log_r = np.linspace(0, LOG_RAY_LENGTH, 61)
        used = np.flatnonzero(np.abs(self._on_ray(log_r, COARSE)[0]) > math.exp(-LOG_NEGLIGIBLE))
        if len(used):
            high = log_r[min(used[-1] + 1, len(log_r) - 1)]
            pieces.append(_Panels(np.linspace(0, high, 2 + math.ceil(2 * high)), self._ray))
        return pieces

    def quick(self) -> float:
        total = sum(piece.quick() for piece in self._pieces())
        # On underflow or overflow the least positive double, so that a search continues at a smaller epsilon.
        return self.common + math.log(total if 0 < total < math.inf else SMALLEST)

    def bracket(self, close: float) -> Bracket:
        found = [piece.integral(close) for piece in self._pieces()]
        total = sum(value for value, _ in found)
        error = sum(error for _, error in found) + (LOG_RAY_LENGTH + self._depth()) * math.exp(-LOG_NEGLIGIBLE)
        slack = ROUNDING_32 * (abs(self.unit) + abs(self.common) + 8)
        if math.isnan(total + error):
            return Bracket(-math.inf, math.inf)
        low, high = (math.log(end) if end > 0 else -math.inf for end in (total - error, total + error))
        return Bracket(self.common + low - slack, self.common + high + slack)


def _jump(logs: Complexes) -> Reals:
    """``log`` of an upper bound on ``|Im M^n|``."""
    return np.asarray(logs.real + np.log(np.clip(np.abs(logs.imag), 1e-300, 1)))
