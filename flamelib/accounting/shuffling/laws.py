r"""Distributions of the amplification variable :math:`L = r - e^{\varepsilon} r'` of one message of another user.

:math:`r, r'` are the likelihood ratios of the pair of values against a *reference* distribution: the blanket (a user
contributes with probability ``mass``) or that of a user who holds a fixed value (``mass`` 1).  Gaussian noise has no
moment generating function: :mod:`flamelib.accounting.shuffling.gaussian_sums`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from flamelib.core.arrays import NODES, WEIGHTS, Complexes, Reals


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
        return increments(self.values, self.weights * np.exp(t * self.values), y)

    def decay(self, t: float) -> tuple[float, float]:
        return float(self.weights @ np.exp(t * self.values)), 0.0

    def quadrature_error(self, size: float) -> float:
        return 0.0


def increments(values: Reals, weights: Reals, y: Reals) -> Complexes:
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


def panels(edges: Reals) -> tuple[Reals, Reals]:
    """Gauss-Legendre nodes and weights on consecutive panels, flat."""
    half = np.diff(edges)[:, None] / 2
    return ((edges[:-1, None] + half) + half * NODES).ravel(), (half * WEIGHTS).ravel()


def gauss_error(log_bound: Callable[[float], float]) -> float:
    r"""Error of the Gauss rule for integrands below ``exp(growth(rho))`` on the Bernstein ellipse ``rho``, unit weight.

    Classical estimate: at most :math:`\tfrac{64}{15} e^{growth} \rho^{-2 N} / (1 - \rho^{-2})` with N nodes, for every
    :math:`\rho > 1`; the best of a few is returned.
    """

    def bound(rho: float) -> float:
        return math.log(64 / 15 / (1 - rho**-2)) + log_bound(rho) - 2 * len(NODES) * math.log(rho)

    return math.exp(min(bound(rho) for rho in (2.0, 3.0, 4.0, 6.0)))
