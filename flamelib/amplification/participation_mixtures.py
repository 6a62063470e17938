r"""The two readings of Theorem 4.1 that mix over the other records drawn: one crossing for all of them.

In units of the noise, with n other records, :math:`\mathrm B_j = \mathrm B(j;n,q)` and the
:math:`\nu, \lambda, \mu` of :mod:`~flamelib.amplification.participation_terms`:

* ``inner``, one measure against a mixture, is a term whose far component is a whole mixture;
* ``aligned``, two mixtures, at a threshold s, with :math:`t_j = s-j\mu`:

.. math:: \sum_j\mathrm B_j\,\big(\Phi(-t_{j+1})-\Phi(-t_j)\big)
          - (e^\nu-1)\sum_j\mathrm B_j\Phi(-t_j) - e^\lambda\Phi(-s) ,

  largest where the two densities cross.  Three sums of positive terms; *every* s gives a lower bound, so that only
  rounding has to be paid for.
"""

import math

import numpy as np
from scipy.special import log_ndtr

from flamelib.amplification.binomial import MOST, log_pmf, tilted_window, window
from flamelib.amplification.participation_terms import (
    EDGE,
    EPS,
    LOG_DENSITY,
    Pair,
    crossing,
    gap,
    log_certain,
    log_rare,
    log_sum,
    mills,
)
from flamelib.laws import Real
from flamelib.logspace import log_expm1

DEPTH, ABOVE = 60.0, 800.0
STEPS = 100
NEAR = 0.25
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(12)


def inner(pair: Pair, n: int, rate: float) -> tuple[float, float]:
    """Logarithm of the divergence from the mixture, and its error.

    Examples
    --------
    >>> value, error = inner(Pair(1.0, 0.0, 0.0, 0.0, 1.0), 0, 0.5)
    >>> f"{math.exp(value):.9f}", error < 1e-13
    ('0.078281843', True)
    """
    if pair.far == -math.inf:
        y, j, shares = np.zeros(1), np.zeros(1), np.ones(1)
    else:
        y = crossing(lambda at: _far(pair, n, rate, float(at[0]))[:2])
        j, shares = _far(pair, n, rate, float(y[0]))[2:]
    place = pair.place(y)
    z, deep = np.full(j.shape, max(place[0], EDGE)), np.full(j.shape, min(place[0], EDGE))
    if place[0] < EDGE:
        value = log_certain(deep[:1], y, mills(deep[:1] + pair.ratio), shares @ mills(deep + (j + 1) * pair.ratio))
    else:
        near = gap(z[:1], np.full(1, pair.ratio))
        value = log_rare(z[:1], y, near, shares @ gap(z, (j + 1) * pair.ratio))
    mean = float(shares @ (j + 1))
    blur = pair.far_error + mean * pair.near_error + 64 * EPS * (1 + mean * (pair.near + mean * pair.ratio**2))
    return float(value[0]), float(pair.error(place, y, -np.expm1(-y) * blur)[0])


def _far(pair: Pair, n: int, rate: float, y: float) -> tuple[Real, Real, Real, Real]:
    """Logarithm of the far components against the near one, its slope in y; the counts and their shares."""
    slope, curvature = -(pair.near + y) - pair.ratio**2 / 2, pair.ratio**2
    j, stride = tilted_window(n, rate, slope, curvature, DEPTH)
    logs = log_pmf(j, n, rate) + (slope - curvature * j / 2) * j + math.log(stride)
    top = logs.max()
    sizes = np.exp(logs - top)
    shares = sizes / sizes.sum()
    return np.full(1, pair.far - pair.near + top + math.log(sizes.sum())), -np.atleast_1d(shares @ j), j, shares


def aligned(pair: Pair, n: int, rate: float) -> tuple[float, float]:
    """Lower logarithm of the divergence of the two mixtures, and how far below it may lie.

    Examples
    --------
    >>> value, error = aligned(Pair(1.0, 0.0, 0.0, 0.0, 1.0), 0, 0.5)
    >>> f"{math.exp(value):.9f}", error < 1e-12
    ('0.078281843', True)
    """
    s = _threshold(pair, n, rate)
    k = round(s / pair.ratio)
    return _at(pair, n, rate, k, s - k * pair.ratio)


def _threshold(pair: Pair, n: int, rate: float) -> float:
    """Where the densities cross: Newton's method on the logarithm of their ratio, which rises, in a bracket."""
    mu = pair.ratio
    low, high = mu / 2 + pair.near / mu, (n + 0.5) * mu + np.logaddexp(pair.near, pair.far) / mu
    s = low
    for _ in range(STEPS):
        k = round(s / mu)
        rest = s - k * mu
        up, up_mean = _density(pair, n, rate, k - 1, rest)
        base, base_mean = _density(pair, n, rate, k, rest)
        out = pair.far - s * s / 2
        under = np.logaddexp(pair.near + base, out)
        level = up - under
        low, high = (s, high) if level < 0 else (low, s)
        slope = mu * (1 + up_mean) - mu * base_mean * math.exp(pair.near + base - under)
        step = -level / slope if slope > 0 else math.inf
        moved = s + step
        s, before = moved if low < moved < high else (low + high) / 2, s
        if abs(s - before) <= 1e-11 * max(1.0, abs(s)):
            break
    return float(s)


def _density(pair: Pair, n: int, rate: float, k: int, rest: float) -> tuple[float, float]:
    """Logarithm of the mixture's density at ``k mu + rest``, up to a constant, and the mean count there."""
    mu = pair.ratio
    j, stride = tilted_window(n, rate, mu * (k * mu + rest), mu * mu, DEPTH)
    logs = log_pmf(j, n, rate) - ((k - j) * mu + rest) ** 2 / 2
    top = logs.max()
    sizes = np.exp(logs - top)
    return float(top + math.log(stride * sizes.sum())), float(sizes @ j / sizes.sum())


def _at(pair: Pair, n: int, rate: float, k: int, rest: float) -> tuple[float, float]:
    """The difference at the threshold ``k mu + rest``, less all errors."""
    first, last = window(n, rate, DEPTH, ABOVE)
    if last - first > MOST:
        return -math.inf, math.inf
    j = np.arange(first, last + 1, dtype=float)
    t = (k - j) * pair.ratio + rest
    weights = log_pmf(j, n, rate)
    cost = 4 * t * t - 24 * weights
    gain, gain_cost = log_sum(weights + _log_interval(t - pair.ratio, pair.ratio), cost)
    tails, tails_cost = log_sum(weights + log_ndtr(-t), cost)
    s = k * pair.ratio + rest
    out = pair.far + float(log_ndtr(-s))
    grown = log_expm1(pair.near) + np.array([tails, -ABOVE])
    lost = float(np.exp(np.minimum(np.append(grown, out) - gain, 700.0)).sum())
    relative = pair.near_error * max(1.0, 1 / pair.near) if pair.near > 0 else 0.0
    blur = EPS * (64 + 4 * min(s * s, 1e4) + gain_cost + tails_cost + 4 * pair.near) + relative + pair.far_error
    error = blur * (1 + lost)
    kept = 1 - lost - error
    return (gain + math.log(kept), 2 * error / kept) if kept > 0 else (-math.inf, math.inf)


def _log_interval(start: Real, length: float) -> Real:
    """Logarithm of the mass of a standard normal law on ``[start, start + length]``."""
    a = np.maximum(start, -start - length)
    if length > NEAR:
        whole = log_ndtr(-a)
        return np.asarray(whole + np.log1p(-np.exp(log_ndtr(-a - length) - whole)))
    middle, offsets = a + length / 2, length / 2 * POINTS
    inside = np.exp(-middle[:, None] * offsets - offsets**2 / 2) @ (WEIGHTS / 2)
    return np.asarray(LOG_DENSITY - middle * middle / 2 + np.log(length * inside))
