r"""One Gaussian against a mixture of Gaussians: the terms that random participation adds up, with their rounding.

All is measured in units of the noise; :math:`\mu` is the clipping norm.  A term is

.. math:: D = \int\Big[\varphi(t) - e^{\nu}\varphi(t+\mu) - e^{\lambda}\varphi(t+k\mu)\Big]_+dt ,

positive right of the one root z of the bracket.  Written with the share :math:`e^{-y}` that the near component has at
the root, and Mills' ratio :math:`M(t) = \Phi(-t)/\varphi(t)`,

.. math:: z = \frac{\nu+y}{\mu} - \frac\mu2 ,\qquad
          D = \varphi(z)\Big(e^{-y}\big(M(z)-M(z+\mu)\big) + (1-e^{-y})\big(M(z)-M(z+k\mu)\big)\Big) ,

where :math:`y = \log(1+e^{c-(k-1)y})`, :math:`c = \lambda-k\nu-\tfrac{k(k-1)}2\mu^2`: nothing cancels and nothing
overflows.  D does not fall as k grows; without the far component it is largest.  Proof: book, chapter on random
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
MIN_LOG = -700.0  # least logarithm of a component, whose exponential is a double; a smaller one counts as this
MILLS_EDGE = -0.5  # left of it D is nearly 1 and its distance from 1 is computed; right of it, Mills' ratio
FEW_NODES, MANY_NODES = (
    ((1 + nodes) / 2, shares / 2) for nodes, shares in map(np.polynomial.legendre.leggauss, (3, 6))
)


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
    def alone(self) -> "Pair":
        """Without the far component."""
        return replace(self, far=-math.inf, far_error=0.0)

    def place(self, y: Reals) -> Reals:
        """The root z of the bracket, or the nearest end of the range of numbers."""
        with np.errstate(over="ignore"):
            return np.clip((self.near + y) / self.ratio - self.ratio / 2, -MAX_SQUARED, MAX_SQUARED)

    def error(self, place: Reals, y: Reals, y_error: Reals) -> Reals:
        """Error of log D: that of the root times the slope there, and a few roundings."""
        with np.errstate(over="ignore", invalid="ignore"):
            blur = (self.near_error + y_error + 4 * ULP * (self.near + y)) / self.ratio + ULP * self.ratio
            slope = np.where(place < MILLS_EDGE, 3 * np.exp(-np.square(np.clip(place, -40, 0)) / 2), 2 + np.abs(place))
            return np.where(place < MAX_SQUARED, 128 * ULP + slope * blur, 0.0)


def pair_terms(pair: Pair, k: Reals) -> Logs:
    r"""The logarithms of D for whole ``k`` of at least 1."""
    lost = k * pair.near + k * (k - 1) / 2 * pair.ratio**2
    level = np.maximum(pair.far - lost, MIN_LOG)
    y = crossing(lambda at: (level - (k - 1) * at, 1 - k))
    far_share = -np.expm1(-y)
    y_error = far_share / (1 + (k - 1) * far_share) * (pair.far_error + k * pair.near_error + 4 * ULP * lost)
    place = pair.place(y)
    z, deep = np.maximum(place, MILLS_EDGE), np.minimum(place, MILLS_EDGE)
    rare = log_rare(z, y, gap(z, np.full(z.shape, pair.ratio)), gap(z, k * pair.ratio))
    certain = log_certain(deep, y, mills(deep + pair.ratio), mills(deep + k * pair.ratio))
    return Logs(np.where(place < MILLS_EDGE, certain, rare), pair.error(place, y, y_error))


def crossing(exponent: Callable[[Reals], tuple[Reals, Reals]]) -> Reals:
    """Root y > 0 of ``y = log(1 + exp(g(y)))``, g falling and convex and given with its slope; elementwise.

    Newton's method on the logarithms of both sides, kept between 0 and the right side at 0.
    """
    start, slope = exponent(np.zeros(1))
    most = np.logaddexp(0.0, start)
    y = most / (1 - slope * np.exp(start - most))
    for _ in range(60):  # steps of Newton's method at most
        level, slope = exponent(y)
        log_grown = _log_softplus(level)
        share = np.exp(level - np.logaddexp(0.0, level) - log_grown)
        step = (np.log(y) - log_grown) / (1 - y * slope * share)
        y = np.minimum(y * np.exp(np.clip(-step, -30, 30)), most)
        if np.max(np.abs(step), initial=0.0) <= 1e-9:  # a step this small is followed by one below round-off
            break
    return y


def _log_softplus(level: Reals) -> Reals:
    """``log(log(1 + exp(level)))`` without underflow."""
    return np.where(level < -30, level, np.log(np.logaddexp(0.0, np.maximum(level, -30.0))))


def mills(t: Reals) -> Reals:
    """Mills' ratio; what is left of ``MILLS_EDGE`` is taken for ``MILLS_EDGE``."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(np.maximum(t, MILLS_EDGE) / math.sqrt(2)))


def gap(z: Reals, m: Reals) -> Reals:
    """``M(z) - M(z + m)`` for ``z >= -0.5`` and ``m >= 0``: the difference, or the integral where it would cancel."""
    here, there = mills(z), mills(z + m)
    found = here - there
    close = there > 0.9 * here  # Mills' ratios closer to each other are not subtracted
    if close.any():
        # Length of an interval for which three points of Gauss's rule are enough, else six.
        points, weights = FEW_NODES if m[close].max() < 0.01 else MANY_NODES
        found[close] = m[close] * (_fall(z[close, None] + m[close, None] * points) @ weights)
    return found


def _fall(t: Reals) -> Reals:
    r"""``-M'(t) = 1 - t M(t)``, or ``r M(t)`` where that would cancel, by a continued fraction.

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


def log_rare(z: Reals, y: Reals, near: Reals, far: Reals) -> Reals:
    """``log D`` from a root right of ``MILLS_EDGE`` and what Mills' ratio falls by to either component."""
    with np.errstate(divide="ignore"):
        # In place of a logarithm that no double holds.
        return np.maximum(LOG_NORMAL_PEAK - z * z / 2 + np.log(np.exp(-y) * near - np.expm1(-y) * far), -1e300)


def log_certain(z: Reals, y: Reals, near: Reals, far: Reals) -> Reals:
    """``log D`` from a root left of ``MILLS_EDGE``, where D is nearly 1, and Mills' ratio at either component."""
    beyond = np.exp(-y) * near - np.expm1(-y) * far
    return np.asarray(np.log1p(-np.minimum(ndtr(z) + np.exp(LOG_NORMAL_PEAK - z * z / 2) * beyond, 1 - ULP)))


def log_sum(logs: Reals, cost: Reals) -> tuple[float, float]:
    """Logarithm of the sum of the exponentials, and the mean cost of a summand."""
    top = float(logs.max())
    if top == -math.inf:
        return top, 0.0
    sizes = np.exp(logs - top)
    total = float(sizes.sum())
    return top + math.log(total), float(sizes @ np.where(sizes > 0, cost, 0.0)) / total
