r"""The reading ``aligned`` of Theorem 4.1: two mixtures, the outputs of a client all of whose gradients are equal.

In units of the noise, with n other records, :math:`\mathrm B_j = \mathrm B(j;n,q)`, the :math:`\nu, \lambda, \mu` of
:mod:`~flamelib.amplification.participation_terms`, a threshold s and :math:`t_j = s-j\mu`,

.. math:: \sum_j\mathrm B_j\,\Phi(-t_{j+1})\Big(1 - e^{\nu}\,\frac{\Phi(-t_j)}{\Phi(-t_{j+1})}\Big)
          - e^\lambda\Phi(-s) ,

largest where the two densities cross.  *Every* s gives a lower bound, so that only rounding has to be paid for; the
brackets keep their digits, and the last summand is taken into the largest of them.
"""

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from flamelib.amplification.participation_terms import EDGE, EPS, LOG_DENSITY, Pair, gap, mills
from flamelib.core.binomial import MOST, log_pmf, window
from flamelib.core.logspace import logaddexp
from flamelib.laws import Real

DEPTH, SHALLOW, ABOVE, FULL = 60.0, 40.0, 800.0, 300.0
STEPS, TOLERANCE, NEAR = 100, 1e-8, 1e-6
SHORT, FAR = 0.25, 1e3
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts that may matter, with the logarithms of their chances, and whether they begin and end the law."""

    j: Real
    chances: Real
    first: bool
    last: bool


@lru_cache(maxsize=16)
def _counts(n: int, rate: float, above: float) -> Counts | None:
    low, high = window(n, rate, DEPTH, above)
    if high - low > MOST:
        return None
    j = np.arange(low, high + 1, dtype=float)
    return Counts(j, log_pmf(j, n, rate), low == 0 or rate == 1, high == n)


def aligned(pair: Pair, n: int, rate: float) -> tuple[float, float]:
    """Lower logarithm of the divergence of the two mixtures, and how far below it may lie.

    Where the counts are too many to be added up the answer is ``-inf``.

    Examples
    --------
    >>> value, error = aligned(Pair(1.0, 0.0, 0.0, 0.0, 1.0), 0, 0.5)
    >>> f"{math.exp(value):.9f}", error < 1e-12
    ('0.078281843', True)
    """
    if pair.near / pair.ratio - pair.ratio > FAR:
        return -math.inf, math.inf
    # In steps, so that a search meets the same counts again.
    counts = _counts(n, rate, ABOVE + 100.0 * math.ceil(pair.near / 100))
    if counts is None:
        return -math.inf, math.inf
    s = _threshold(pair, counts)
    k = round(s / pair.ratio)
    return _at(pair, counts, k, s - k * pair.ratio)


def _threshold(pair: Pair, counts: Counts) -> float:
    """About where the densities cross: the logarithm of their ratio rises."""
    mu = pair.ratio
    falls = mu * mu * (counts.j[:-1] + 0.5) - np.diff(counts.chances)

    @cache
    def level(s: float) -> float:
        under = logaddexp(pair.near + _log_density(counts, falls, s, mu), pair.far - s * s / 2)
        return _log_density(counts, falls, s - mu, mu) - under

    low = mu / 2 + pair.near / mu
    high = (float(counts.j[-1]) + 0.5) * mu + logaddexp(pair.near, pair.far) / mu
    low, high = low - NEAR * (1 + abs(low)), high + NEAR * (1 + high)
    if level(low) >= 0 or level(high) <= 0:
        return low if level(low) >= 0 else high
    return float(brentq(level, low, high, xtol=TOLERANCE, maxiter=STEPS, disp=False))


def _log_density(counts: Counts, falls: Real, s: float, mu: float) -> float:
    """Logarithm of the mixture's density at s, up to a constant.

    The logarithm of a component's part is concave in the count; ``falls`` is how fast it falls at s = 0.
    """
    k = round(s / mu)
    rest = s - k * mu
    peak = int(np.searchsorted(falls, mu * s))
    reach = math.ceil(min(math.sqrt(2 * SHALLOW / (mu * mu + 4 / (counts.j[-1] + 1))), len(counts.j))) + 2
    near = slice(max(peak - reach, 0), peak + reach + 1)
    logs = counts.chances[near] - ((k - counts.j[near]) * mu + rest) ** 2 / 2
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _at(pair: Pair, counts: Counts, k: int, rest: float) -> tuple[float, float]:
    """The difference at the threshold ``k mu + rest``, less all errors and all that is left out."""
    mu = pair.ratio
    weights = counts.chances + log_ndtr((counts.j - k + 1) * mu - rest)
    top = float(weights.max())
    heavy = weights >= top - DEPTH - pair.near
    below = pair.near + float(weights[0]) - float(counts.chances[0]) - DEPTH
    ends = -math.inf if counts.first else below, -math.inf if counts.last else -ABOVE
    missed = float(np.exp(np.minimum(np.array(ends) - top, FULL)).sum()) + len(weights) * math.exp(-DEPTH)
    j, chances, sizes = counts.j[heavy], counts.chances[heavy], np.exp(weights[heavy] - top)
    t = (k - j) * mu + rest
    falls = _log_fall(t - mu, np.full(t.shape, mu))
    exponents = pair.near + falls
    lost = np.exp(np.minimum(weights[heavy] - top + exponents, FULL))
    kept = np.where(exponents < 1, -sizes * np.expm1(np.minimum(exponents, 1.0)), sizes - lost)
    shift = np.where(t - mu >= EDGE, mu * (2 * np.abs(t) + mu), 0.0)
    error = lost * (EPS * (4 + 4 * np.abs(falls) + 2 * pair.near + shift) + pair.near_error)
    if pair.far > -math.inf:
        best = slice(int(sizes.argmax()), int(sizes.argmax()) + 1)
        back, back_error = _out(pair, j[best], t[best], chances[best])
        kept[best] -= back
        error[best] += back_error
    error += np.abs(kept) * EPS * (8 + 2 * np.minimum(t * t, 1e4) + 24 * np.maximum(-chances, 0))
    total, room = float(kept.sum()), float(error.sum()) + missed
    return (top + math.log(total - room), 2 * room / (total - room)) if total > room else (-math.inf, math.inf)


def _out(pair: Pair, j: Real, t: Real, chances: Real) -> tuple[Real, Real]:
    """What the client that is out takes away, against a count's own part, and the error of that."""
    apart = (j + 1) * pair.ratio
    fall = _log_fall(t - pair.ratio, apart)
    back = np.exp(np.minimum(pair.far + fall - chances, FULL))
    sizes = 2 + abs(pair.far) + np.abs(fall) - chances + apart * np.abs(t)
    return back, back * (pair.far_error + 2 * EPS * sizes)


def _log_fall(start: Real, apart: Real) -> Real:
    r"""Logarithm of :math:`\Phi(-x-m)/\Phi(-x)`, with all its digits where it is close to 0."""
    right = start >= EDGE
    lost = np.empty(start.shape)
    z, m = start[right], apart[right]
    lost[right] = gap(z, m) / mills(z)
    z, m = start[~right], apart[~right]
    lost[~right] = np.exp(_log_interval(z, m) - log_ndtr(-z))
    steady = np.where(right, -apart * (start + apart / 2), 0.0) + np.log1p(-np.minimum(lost, 1 - EPS))
    return np.where(right | (lost < 0.5), steady, log_ndtr(-start - apart) - log_ndtr(-start))


def _log_interval(start: Real, length: Real) -> Real:
    """Logarithm of the mass of a standard normal law on ``[start, start + length]``."""
    a = np.maximum(start, -start - length)
    whole = log_ndtr(-a)
    with np.errstate(divide="ignore"):
        plain = whole + np.log1p(-np.exp(log_ndtr(-a - length) - whole))
    short = np.minimum(length, SHORT)
    middle, offsets = np.clip(a + short / 2, -FAR, FAR)[:, None], short[:, None] / 2 * POINTS
    inside = np.exp(-middle * offsets - offsets**2 / 2) @ (WEIGHTS / 2)
    close = LOG_DENSITY - (a + short / 2) ** 2 / 2 + np.log(short * inside)
    return np.where(length > SHORT, plain, close)
