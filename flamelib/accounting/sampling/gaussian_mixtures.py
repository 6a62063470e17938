r"""Divergences of a Gaussian from a mixture of two Gaussians: the terms of random participation, with their rounding.

In units of the noise; :math:`\mu` is the clipping norm.  A term is

.. math:: D = \int\Big[\varphi(t) - e^{\nu}\varphi(t+\mu) - e^{\lambda}\varphi(t+k\mu)\Big]_+dt ,

positive right of the single root z of the bracket.  With the relative weight :math:`e^{-y}` of the near component at
the root, and Mills' ratio :math:`M(t) = \Phi(-t)/\varphi(t)`,

.. math:: z = \frac{\nu+y}{\mu} - \frac\mu2 ,\qquad
          D = \varphi(z)\Big(e^{-y}\big(M(z)-M(z+\mu)\big) + (1-e^{-y})\big(M(z)-M(z+k\mu)\big)\Big) ,

where :math:`y = \log(1+e^{c-(k-1)y})`, :math:`c = \lambda-k\nu-\tfrac{k(k-1)}2\mu^2`: without cancellation or overflow.
D is non-decreasing in k and largest without the far component.  Proof: book, chapter on random
participation, lemma "Gram matrices".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import erfcx, ndtr

from flamelib.core.arrays import Reals
from flamelib.core.logspace import LOG_NORMAL_PEAK, MAX_SQUARED, UNIT

ULP = 2 * UNIT  # spacing of doubles at 1
MIN_LOG = -700.0  # lower limit of the logarithm of a component: no underflow
MILLS_EDGE = -0.5  # root below which 1 - D is computed, above which D by Mills' ratio
NODES_3, NODES_6 = (((1 + nodes) / 2, shares / 2) for nodes, shares in map(np.polynomial.legendre.leggauss, (3, 6)))


@dataclass(frozen=True, slots=True)
class Logs:
    """Logarithms with a bound on the error of each; arrays of one shape."""

    values: Reals
    errors: Reals


@dataclass(frozen=True, slots=True)
class Pair:
    r"""The logarithms :math:`\nu` and :math:`\lambda` of the two components, their errors, and :math:`\mu`."""

    near: float
    far: float
    near_error: float
    far_error: float
    ratio: float

    @property
    def near_only(self) -> "Pair":
        """Without the far component."""
        return replace(self, far=-math.inf, far_error=0.0)

    def root(self, y: Reals) -> Reals:
        """The root z of the bracket, clipped."""
        with np.errstate(over="ignore"):
            return np.clip((self.near + y) / self.ratio - self.ratio / 2, -MAX_SQUARED, MAX_SQUARED)

    def error(self, root: Reals, y: Reals, y_error: Reals) -> Reals:
        """Error of log D: that of the root times the slope, and rounding."""
        with np.errstate(over="ignore", invalid="ignore"):
            root_error = (self.near_error + y_error + 4 * ULP * (self.near + y)) / self.ratio + ULP * self.ratio
            slope = np.where(root < MILLS_EDGE, 3 * np.exp(-np.square(np.clip(root, -40, 0)) / 2), 2 + np.abs(root))
            return np.where(root < MAX_SQUARED, 128 * ULP + slope * root_error, 0.0)


def pair_terms(pair: Pair, k: Reals) -> Logs:
    r"""The logarithms of D for whole ``k`` of at least 1."""
    exponent = k * pair.near + k * (k - 1) / 2 * pair.ratio**2
    level = np.maximum(pair.far - exponent, MIN_LOG)
    y = crossing(lambda at: (level - (k - 1) * at, 1 - k))
    far_share = -np.expm1(-y)
    y_error = far_share / (1 + (k - 1) * far_share) * (pair.far_error + k * pair.near_error + 4 * ULP * exponent)
    root = pair.root(y)
    z, z_left = np.maximum(root, MILLS_EDGE), np.minimum(root, MILLS_EDGE)
    right = log_d_right(z, y, mills_drop(z, np.full(z.shape, pair.ratio)), mills_drop(z, k * pair.ratio))
    left = log_d_left(z_left, y, mills(z_left + pair.ratio), mills(z_left + k * pair.ratio))
    return Logs(np.where(root < MILLS_EDGE, left, right), pair.error(root, y, y_error))


def crossing(exponent: Callable[[Reals], tuple[Reals, Reals]]) -> Reals:
    """Root y > 0 of ``y = log(1 + exp(g(y)))``, g falling and convex and given with its slope; elementwise.

    Newton's method on the logarithms of both sides, kept between 0 and the right side at 0.
    """
    start, slope = exponent(np.zeros(1))
    upper = np.logaddexp(0.0, start)
    y = upper / (1 - slope * np.exp(start - upper))
    for _ in range(60):  # steps of Newton's method at most
        level, slope = exponent(y)
        log_grown = _log_softplus(level)
        share = np.exp(level - np.logaddexp(0.0, level) - log_grown)
        step = (np.log(y) - log_grown) / (1 - y * slope * share)
        y = np.minimum(y * np.exp(np.clip(-step, -30, 30)), upper)
        if np.max(np.abs(step), initial=0.0) <= 1e-9:  # a step this small is followed by one below round-off
            break
    return y


def _log_softplus(level: Reals) -> Reals:
    """``log(log(1 + exp(level)))`` without underflow."""
    return np.where(level < -30, level, np.log(np.logaddexp(0.0, np.maximum(level, -30.0))))


def mills(t: Reals) -> Reals:
    """Mills' ratio at ``max(t, MILLS_EDGE)``."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(np.maximum(t, MILLS_EDGE) / math.sqrt(2)))


def mills_drop(z: Reals, m: Reals) -> Reals:
    """``M(z) - M(z + m)`` for ``z >= -0.5`` and ``m >= 0``, by an integral where the difference cancels."""
    near, far = mills(z), mills(z + m)
    difference = near - far
    close = far > 0.9 * near  # the difference cancels
    if close.any():
        # Three points of Gauss's rule suffice for m < 0.01, else six.
        points, weights = NODES_3 if m[close].max() < 0.01 else NODES_6
        difference[close] = m[close] * (_mills_slope(z[close, None] + m[close, None] * points) @ weights)
    return difference


def _mills_slope(t: Reals) -> Reals:
    r"""``-M'(t) = 1 - t M(t)``, or ``r M(t)`` by a continued fraction where that cancels.

    With :math:`I_n = \int_0^\infty u^ne^{-tu-u^2/2}du` and :math:`r_n = I_n/I_{n-1}` we have ``M = I_0``,
    :math:`r = r_1` and :math:`r_n = n/(t+r_{n+1})`.
    """
    terms = 16  # terms of the continued fraction
    square = t * t + 4 * terms
    ratio = 2 * terms / (t + np.sqrt(square)) * (1 - 1 / square)
    for n in range(terms - 1, 0, -1):
        ratio = n / (t + ratio)
    height = mills(t)
    # Beyond, 1 - t M(t) cancels and the continued fraction replaces it.
    return np.where(t < 5.0, 1 - t * height, ratio * height)


def log_d_right(z: Reals, y: Reals, near: Reals, far: Reals) -> Reals:
    """``log D`` for a root z above ``MILLS_EDGE``; ``near`` and ``far`` are M(z) - M(z + mu) and M(z) - M(z + k mu)."""
    with np.errstate(divide="ignore"):
        # Lower limit of the logarithm.
        return np.maximum(LOG_NORMAL_PEAK - z * z / 2 + np.log(np.exp(-y) * near - np.expm1(-y) * far), -1e300)


def log_d_left(z: Reals, y: Reals, near: Reals, far: Reals) -> Reals:
    """``log D`` for a root z below ``MILLS_EDGE``; ``near`` and ``far`` are M(z + mu) and M(z + k mu)."""
    beyond = np.exp(-y) * near - np.expm1(-y) * far
    return np.asarray(np.log1p(-np.minimum(ndtr(z) + np.exp(LOG_NORMAL_PEAK - z * z / 2) * beyond, 1 - ULP)))


def log_sum(logs: Reals, cost: Reals) -> tuple[float, float]:
    """Log-sum-exp, and the mean of ``cost`` with softmax weights."""
    top = float(logs.max())
    if top == -math.inf:
        return top, 0.0
    sizes = np.exp(logs - top)
    total = float(sizes.sum())
    return top + math.log(total), float(sizes @ np.where(sizes > 0, cost, 0.0)) / total
