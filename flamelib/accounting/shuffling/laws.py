r"""Distributions of the amplification variable :math:`L = r - e^{\varepsilon} r'` of one message of another user.

:math:`r, r'` are the likelihood ratios of the pair of values against a *reference* distribution: the blanket (a user
contributes with probability ``mass``) or that of a user who holds a fixed value (``mass`` 1).  Gaussian noise has no
moment generating function: :mod:`flamelib.accounting.shuffling.gaussian_branch_cut`.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import wofz

from flamelib.core.arrays import NODES, WEIGHTS, Complexes, Flags, Reals
from flamelib.core.profiles import AnyProfile, ClonedProfile, KaryProfile, LaplaceProfile, SupportProfile


class LossLaw(Protocol):
    r"""Interface of the inversion in :mod:`flamelib.accounting.shuffling.bromwich`.

    * ``points``: atoms and quadrature nodes (values, weights), with a bound ``quadrature_error(size)`` of the error of
      :math:`E\,e^{sL}` for :math:`|s| \le` ``size``; used for :math:`|s| \le` ``reach``;
    * ``transform(s)``: :math:`E\,e^{sL} - 1` for complex ``s`` of any size;
    * ``increment(t, y)``: :math:`E\,e^{tL}(e^{iyL} - 1)`, without cancellation for small y;
    * ``decay(t)``: numbers a, c with :math:`|E\,e^{(t+iy)L}| \le a + c/y` for every y > 0;
    * ``kept``: one minus ``mass``, without cancellation.
    """

    @property
    def mass(self) -> float: ...
    @property
    def kept(self) -> float: ...
    @property
    def points(self) -> tuple[Reals, Reals]: ...
    @property
    def reach(self) -> float: ...
    def transform(self, s: Complexes) -> Complexes: ...
    def increment(self, t: float, y: Reals) -> Complexes: ...
    def decay(self, t: float) -> tuple[float, float]: ...
    def quadrature_error(self, size: float) -> float: ...


@dataclass(frozen=True)
class AtomicLaw:
    """Finitely many values: shape (atoms,), with weights that sum to one."""

    values: Reals
    weights: Reals
    mass: float
    kept: float
    reach: float = math.inf

    @property
    def points(self) -> tuple[Reals, Reals]:
        return self.values, self.weights

    def transform(self, s: Complexes) -> Complexes:
        return np.asarray(np.expm1(np.multiply.outer(s, self.values)) @ self.weights)

    def increment(self, t: float, y: Reals) -> Complexes:
        return _increment(self.values, self.weights * np.exp(t * self.values), y)

    def decay(self, t: float) -> tuple[float, float]:
        return float(self.weights @ np.exp(t * self.values)), 0.0

    def quadrature_error(self, size: float) -> float:
        return 0.0


def kary_blanket(profile: KaryProfile, epsilon: float) -> AtomicLaw:
    """K-ary response against its blanket: the atoms of both values of the pair, and of any third bucket."""
    k, mass = profile.n_buckets, profile.mass
    values = mass * _atom_values(profile.epsilon0, epsilon)
    return AtomicLaw(values, np.array([1, 1, k - 2]) / k, mass, profile.kept)


def _atom_values(epsilon0: float, epsilon: float) -> Reals:
    """``(p - e, 1 - e p, 1 - e)`` for ``p = exp(epsilon0)``, ``e = exp(epsilon)``, without cancellation."""
    first = math.exp(epsilon) * math.expm1(epsilon0 - epsilon)
    return np.array([first, -math.expm1(epsilon + epsilon0), -math.expm1(epsilon)])


def support_blanket(profile: SupportProfile, epsilon: float) -> AtomicLaw:
    """Messages that support values against their blanket: one of the pair alone, both but not all, neither or all."""
    p, (_, neither, alone, two, everything, _) = math.exp(profile.epsilon0), profile.shares
    plus, minus, none = _atom_values(profile.epsilon0, epsilon)
    probs = np.array([alone, alone, two - everything, neither + p * everything]) / profile.lift
    values = profile.mass * np.array([plus, minus, p * none, none])
    return AtomicLaw(values[probs > 0], probs[probs > 0], profile.mass, profile.kept)


def support_classes(profile: SupportProfile, kind: int) -> tuple[Reals, Flags]:
    """Base probabilities by supported subset of three values, or of two: shapes (classes,) and (classes, values)."""
    shares = profile.shares
    ways = shares.triples[kind] if profile.n_buckets > 2 else (shares.none, shares.alone, shares.two)
    flags = np.array(list(itertools.product((False, True), repeat=len(ways) - 1)))
    probs = np.array(ways)[flags.sum(axis=1)]
    return probs[probs > 0], flags[probs > 0]


def support_others(profile: SupportProfile, epsilon: float, holds: int, kind: int = 0) -> AtomicLaw:
    """Reference: all other users hold the first value (0), the second (1) or a third one (2), by kind of triple."""
    p = math.exp(profile.epsilon0)
    plus, minus, none = _atom_values(profile.epsilon0, epsilon)
    probs, flags = support_classes(profile, kind)
    first, second = flags[:, 0], flags[:, 1]
    values = np.where(first & second, p * none, np.where(first, plus, np.where(second, minus, none)))
    ratio = np.where(flags[:, holds], p, 1.0)
    return AtomicLaw(values / ratio, profile.base * probs * ratio, 1.0, 0.0)


def clone_blanket(epsilon0: float, epsilon: float, mass: float, kept: float) -> AtomicLaw:
    """Two-point blanket of the clone reduction: ``mass`` is the clone probability, ``kept = 1 - mass``."""
    values = _atom_values(epsilon0, epsilon)[:2] / (0.5 * (math.exp(epsilon0) + 1))
    return AtomicLaw(values, np.array([0.5, 0.5]), mass, kept)


def blanket_law(randomizer: KaryProfile | SupportProfile | LaplaceProfile | AnyProfile) -> Callable[[float], LossLaw]:
    """Distribution of L by epsilon for the worst pair: against the blanket, or clones for any randomizer."""
    match randomizer:
        case KaryProfile():
            return lambda at: kary_blanket(randomizer, at)
        case SupportProfile():
            return lambda at: support_blanket(randomizer, at)
        case LaplaceProfile():
            return lambda at: LaplaceLaw(randomizer.epsilon0, at, 0.5, randomizer.mass)
        case ClonedProfile(epsilon0):
            masses = 2 / (math.exp(epsilon0) + 1), math.tanh(epsilon0 / 2)
            return lambda at: clone_blanket(epsilon0, at, *masses)
        case AnyProfile(epsilon0):
            return lambda at: clone_blanket(epsilon0, at, math.exp(-epsilon0), -math.expm1(-epsilon0))


def kary_others(profile: KaryProfile, epsilon: float, holds: str) -> AtomicLaw:
    """Reference: all other users hold the ``first`` value, the ``second`` or a ``third`` one."""
    p, k = math.exp(profile.epsilon0), profile.n_buckets
    base = 1 / (math.expm1(profile.epsilon0) + k)
    plus, minus, none = _atom_values(profile.epsilon0, epsilon)
    if holds == "first":
        values, probs = [plus / p, minus, none], [p, 1, k - 2]
    elif holds == "second":
        values, probs = [plus, minus / p, none], [1, p, k - 2]
    else:
        values, probs = [plus, minus, none, none / p], [1, 1, k - 3, p]
    return AtomicLaw(np.array(values), base * np.array(probs), 1.0, 0.0)


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
            x, w = _panels(np.linspace(0, 2 * depth, 1 + math.ceil(2 * depth)))
            values.append(factor * np.expm1(top - x) + shift)
            weights.append(0.25 * w * np.exp(x / 2 - depth))
        return np.concatenate(values), np.concatenate(weights)

    @property
    def kept(self) -> float:
        return 1 - self.mass

    def quadrature_error(self, size: float) -> float:
        panels = 2 * math.ceil(self.epsilon0) + 2
        return 0.25 * panels * _gauss_error(lambda rho: size * self.max_coefficient * math.exp((rho + 1 / rho) / 4))

    def transform(self, s: Complexes) -> Complexes:
        return np.asarray(sum(self._side(s, *side) for side in self.sides) - 1)

    def increment(self, t: float, y: Reals) -> Complexes:
        near = np.hypot(t, y) <= self.reach
        total = np.empty(y.shape, complex)
        values, weights = self.points
        total[near] = _increment(values, weights * np.exp(t * values), y[near])
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


def _increment(values: Reals, weights: Reals, y: Reals) -> Complexes:
    r"""``sum_j weights_j (exp(i y values_j) - 1)`` without cancellation, in blocks of bounded memory.

    By :math:`\sin^2 = t^2/(1+t^2)` and :math:`\sin\cos = t/(1+t^2)` with :math:`t = \tan`, ten times faster than sine
    and cosine; the relative error is a few units of rounding, near poles of t as well.
    """
    total = np.empty(y.shape, complex)
    for chunk in np.array_split(np.arange(len(y)), 1 + len(y) * len(values) // 1_000_000):
        tangent = np.tan(np.multiply.outer(y[chunk], 0.5 * values))
        ratio = tangent / (1 + tangent * tangent)
        total[chunk] = -2 * ((tangent * ratio) @ weights) + 2j * (ratio @ weights)
    return total


def _panels(edges: Reals) -> tuple[Reals, Reals]:
    """Gauss-Legendre nodes and weights on consecutive panels, flat."""
    half = np.diff(edges)[:, None] / 2
    return ((edges[:-1, None] + half) + half * NODES).ravel(), (half * WEIGHTS).ravel()


def _gauss_error(log_bound: Callable[[float], float]) -> float:
    r"""Error of the Gauss rule for integrands below ``exp(growth(rho))`` on the Bernstein ellipse ``rho``, unit weight.

    Classical estimate: at most :math:`\tfrac{64}{15} e^{growth} \rho^{-2 N} / (1 - \rho^{-2})` with N nodes, for every
    :math:`\rho > 1`; the best of a few is returned.
    """

    def bound(rho: float) -> float:
        return math.log(64 / 15 / (1 - rho**-2)) + log_bound(rho) - 2 * len(NODES) * math.log(rho)

    return math.exp(min(bound(rho) for rho in (2.0, 3.0, 4.0, 6.0)))
