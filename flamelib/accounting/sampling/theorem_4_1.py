r"""The logarithm of delta for one round of random participation, with its error: every reading, either direction.

A client of L records draws :math:`j\sim\mathrm{Bin}(L-1,q)` of the others.  With :math:`A = (e^{\varepsilon'}-1)/(pq)`
and the terms D of :mod:`~flamelib.accounting.sampling.gaussian_mixtures`, in units of the noise,

* larger data set first: :math:`e^{\nu} = 1+pA`, :math:`e^{\lambda} = (1-p)A`, far component at :math:`(j+1)\mu`;
* smaller one first: :math:`\kappa = 1-p(1-q)A`, :math:`e^{\nu} = e^{\varepsilon'}/\kappa`,
  :math:`e^{\lambda} = (1-p)A/\kappa`, far component at :math:`j\mu`, everything times :math:`\kappa`.

D is non-decreasing in j, and beyond some j the far component is negligible.  ``inner`` has one term, whose far
component is itself a mixture.  ``aligned`` has two mixtures: with n other records,
:math:`\mathrm B_j = \mathrm B(j;n,q)`, a threshold s and :math:`t_j = s-j\mu`,

.. math:: \sum_j\mathrm B_j\,\Phi(-t_{j+1})\Big(1 - e^{\nu}\,\frac{\Phi(-t_j)}{\Phi(-t_{j+1})}\Big)
          - e^\lambda\Phi(-s) ,

largest where the two densities cross.  *Every* s gives a lower bound, so that only rounding is subtracted; the brackets
are computed without cancellation, and the last summand is subtracted from the largest of them.
"""

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from flamelib.accounting.sampling.closed_form import unsampled_epsilon
from flamelib.accounting.sampling.gaussian_mixtures import (
    MILLS_EDGE,
    MIN_LOG,
    ULP,
    Logs,
    Pair,
    crossing,
    log_d_left,
    log_d_right,
    log_sum,
    mills,
    mills_drop,
    pair_terms,
)
from flamelib.core.arrays import Reals
from flamelib.core.binomial import MOST, log_pmf, tilted_window, window
from flamelib.core.logspace import LOG_NORMAL_PEAK, UNIT, exp_or_inf, log1mexp, log_expm1, logaddexp
from flamelib.core.search import root

LOG_PART = 40.0  # minus the logarithm of a relative part that is negligible in an upper bound
# Grid of counts, in units of the mean count, for a lower estimate of the sum.
COUNT_GRID = 2.0 ** np.arange(0, 12.5, 0.5)
MAX_CLIP_RATIO = 1e130  # ratio of clip_norm to noise_std beyond which nothing changes
MIN_CLIP_RATIO = 1e-280  # ratio of clip_norm to noise_std below which nothing changes
MAX_FINITE_EPSILON = 1e100  # largest epsilon that is computed with

LOG_OMITTED_BELOW = 60.0  # minus the logarithm of the mass omitted from a lower bound
LOG_OMITTED_ABOVE = 800.0  # minus the logarithm of the mass omitted above the window
MAX_TERM = 300.0  # largest exponent of a term, so that sums are doubles
MAX_ARGUMENT = 1e3  # largest argument of a normal density
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(12)


class Estimate(NamedTuple):
    """Logarithm of a delta and a bound of its error."""

    log: float
    error: float

    @property
    def high(self) -> float:
        """Upper bound of log delta."""
        return self.log + self.error


def outer_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Larger data set first, the number of other records revealed: an upper bound when its error is added.

    ``p`` and ``q`` are the participation and the record rate, ``ratio`` is the clipping norm over the noise's standard
    deviation and may be ``inf``, ``epsilon`` is after amplification.
    """
    return _scaled(
        p, q, _averaged(_pair(p, q, ratio, epsilon), n_records - 1, q, 1) if ratio < MAX_CLIP_RATIO else LOG_ONE
    )


def add_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Smaller data set first: an upper bound when its error is added; arguments as of :func:`outer_estimate`."""
    if ratio >= MAX_CLIP_RATIO:
        return _scaled(p, q, LOG_ONE)
    if epsilon >= certain_epsilon(p, q, n_records):
        return LOG_ZERO
    epsilon = min(epsilon, MAX_FINITE_EPSILON)
    loss = exp_or_inf(log_expm1(epsilon)) / q * (1 - q) if q < 1 else 0.0
    kappa = max(1 - loss, 0.0) + 8 * ULP
    log_kappa, error = math.log(kappa), 16 * ULP * (1 + 1 / kappa)
    far = _log_odds(p) + log_expm1(epsilon) - math.log(q) - log_kappa
    near = epsilon - log_kappa
    pair = Pair(near, far, error, error + 1.5 * ULP * _size(p, q, epsilon), max(ratio, MIN_CLIP_RATIO))
    mean = _averaged(pair, n_records - 1, q, 0)
    add = _scaled(p, q, Estimate(mean.log + log_kappa, mean.error + error))
    # Below this ratio the divergence may be rounding error only.
    if add.error <= 1e-10 and ratio >= 1e-6:
        return add
    removed = outer_estimate(p, q, n_records, ratio, epsilon)
    if add.high <= removed.high:
        return add
    # At most the other direction; exceeds it by rounding only.
    error_bound = max(min(add.error, 32.0), removed.error)
    return Estimate(removed.high - error_bound, error_bound)


def certain_epsilon(p: float, q: float, n_records: int) -> float:
    """Epsilon of the smaller data set at delta 0: ``-log(1 - rate)``, rounded up."""
    rate = p * q if n_records == 1 else q
    return -math.log1p(-rate) * (1 + 16 * ULP) if rate < 1 else math.inf


def inner_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Larger data set first, a mixture in the second measure only: no bound; arguments of :func:`outer_estimate`."""
    pair = _pair(p, q, min(ratio, MAX_CLIP_RATIO), epsilon)
    return _scaled(p, q, Estimate(*_inner(pair, n_records - 1, q)))


def aligned_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """All gradients of the client equal, larger data set first: a lower bound within ``error`` of the divergence."""
    if ratio < 1e-100 or epsilon > MAX_FINITE_EPSILON:  # ratio below which delta underflows
        return UNBOUNDED
    # Delta increases with the ratio, and hardly beyond this one, where different counts hardly overlap.
    max_ratio = 1e4 + 4 * math.sqrt(unsampled_epsilon(epsilon, q))
    pair = _pair(p, q, min(ratio * (1 - 4 * UNIT), max_ratio), epsilon)  # rounded down
    lower, width = _aligned(pair, n_records - 1, q)
    if lower == -math.inf:
        return UNBOUNDED
    scaled = _scaled(p, q, Estimate(lower, 0.0))
    return Estimate(scaled.log - scaled.error, width + 2 * scaled.error)


def _averaged(pair: Pair, n: int, rate: float, offset: int) -> Estimate:
    """Logarithm of the binomial mean of the terms whose far component is at ``(j + offset) mu``.

    Counts outside the window contribute less than rounding: terms are at most the limit.
    """
    limit = _log_terms(pair.near_only, np.ones(1))
    top, top_error = float(limit.values[0]), float(limit.errors[0])
    constant_from = _constant_from(pair, top) - offset
    grid = np.unique(np.minimum(np.floor(np.append(0.0, max(n * rate, 1.0) * COUNT_GRID)), n))
    log_largest = float((_log_terms(pair, grid + offset).values + log_pmf(grid, n, rate)).max())
    first, last = window(n, rate, LOG_PART, LOG_PART + top - log_largest) if log_largest > -math.inf else (0, n)
    if first >= constant_from or last - first > MOST:
        log_low = float(_log_terms(pair, np.array([float(first + offset)])).values[0]) if first < constant_from else top
        return Estimate((top + log_low) / 2, (top - log_low) / 2 + top_error + 4 * ULP)
    j = np.arange(first, last + 1, dtype=float)
    terms = Logs(np.full(j.shape, top), np.full(j.shape, top_error))
    varying = j < constant_from
    logs = _log_terms(pair, j[varying] + offset)
    terms.values[varying], terms.errors[varying] = logs.values, logs.errors
    weights = log_pmf(j, n, rate)
    log, cost = log_sum(weights + terms.values, terms.errors - 24 * ULP * weights)
    return Estimate(log, cost + 64 * ULP)


LOG_ZERO, LOG_ONE, UNBOUNDED = Estimate(-math.inf, 0.0), Estimate(0.0, 0.0), Estimate(-math.inf, math.inf)


def _log_terms(pair: Pair, k: Reals) -> Logs:
    """The terms; for ``k = 0`` the far component coincides with the first measure."""
    found = pair_terms(pair, np.maximum(k, 1.0))
    if k.size and k[0] == 0:
        found.values[0], found.errors[0] = -math.inf, 0.0
        if pair.far < 0:
            log_mass = log1mexp(-pair.far)
            error = pair.near_error + pair.far_error * (1 + math.exp(pair.far - log_mass)) + ULP
            single = Pair(pair.near - log_mass, -math.inf, error, 0.0, pair.ratio)
            term = pair_terms(single, np.ones(1))
            found.values[0], found.errors[0] = term.values[0] + log_mass, term.errors[0] + error
    return found


def _constant_from(pair: Pair, top: float) -> float:
    """A k from which on the far component changes the term by less than ``exp(-LOG_PART)``."""
    nats = pair.far - top + LOG_PART
    if nats <= 0:
        return 0.0
    return (math.sqrt(2 * nats) - float(pair.root(np.zeros(1))[0])) / pair.ratio


def _pair(p: float, q: float, ratio: float, epsilon: float) -> Pair:
    epsilon = min(epsilon, MAX_FINITE_EPSILON)
    near = unsampled_epsilon(epsilon, q)
    far = _log_odds(p) + log_expm1(epsilon) - math.log(q)
    return Pair(near, far, 2 * ULP * near, 1.5 * ULP * _size(p, q, epsilon), max(ratio, MIN_CLIP_RATIO))


def _log_odds(p: float) -> float:
    """``log((1 - p) / p)``."""
    return math.log1p(-p) - math.log(p) if p < 1 else -math.inf


def _size(p: float, q: float, epsilon: float) -> float:
    """Sum of the absolute values of the summands of the far component's logarithm."""
    logs = log_expm1(epsilon), math.log(p), math.log(q), math.log1p(-p) if p < 1 else 0.0
    return 1 + sum(abs(x) for x in logs if math.isfinite(x))


def _scaled(p: float, q: float, found: Estimate) -> Estimate:
    rate = math.log(p) + math.log(q)
    return Estimate(found.log + rate, found.error + ULP * (4 + abs(rate)))


# --- two mixtures, and one --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Counts:
    """Window of counts with the logarithms of their masses, and whether it has the first and last of the support.

    Thresholds are relative to the first count, ``base``, as large counts have no fractional digits.
    """

    base: int
    j: Reals
    log_masses: Reals
    first: bool
    last: bool

    @property
    def offsets(self) -> Reals:
        """Counts relative to the first."""
        return self.j - float(self.base)


@lru_cache(maxsize=16)
def _counts(n: int, rate: float, above: float) -> _Counts | None:
    lower, upper = window(n, rate, LOG_OMITTED_BELOW, above)
    if upper - lower > MOST:
        return None
    j = np.arange(lower, upper + 1, dtype=float)
    return _Counts(lower, j, log_pmf(j, n, rate), lower == 0 or rate == 1, upper == n)


def _aligned(pair: Pair, n: int, rate: float) -> tuple[float, float]:
    """Lower bound of the logarithm of the divergence of the two mixtures, and its uncertainty.

    ``-inf`` where there are too many counts.
    """
    if pair.near / pair.ratio - pair.ratio > MAX_ARGUMENT:
        return -math.inf, math.inf
    # In steps, so that a search reuses cached counts.
    counts = _counts(n, rate, LOG_OMITTED_ABOVE + 100.0 * math.ceil(pair.near / 100))
    if counts is None:
        return -math.inf, math.inf
    s = _threshold(pair, counts)
    k = round(s / pair.ratio)
    return _difference_at(pair, counts, k, s - k * pair.ratio)


def _threshold(pair: Pair, counts: _Counts) -> float:
    """Approximate crossing of the densities, relative to the first count; their log ratio is increasing."""
    margin = 1e-6  # relative margin of the search for a threshold, any of which gives a lower bound
    mu = pair.ratio
    slopes = mu * mu * (counts.offsets[:-1] + 0.5) - np.diff(counts.log_masses)
    first = counts.base * mu

    @cache
    def level(s: float) -> float:
        log_second = logaddexp(pair.near + _log_density(counts, slopes, s, mu), pair.far - (first + s) ** 2 / 2)
        return _log_density(counts, slopes, s - mu, mu) - log_second

    lower = mu / 2 + pair.near / mu
    upper = (float(counts.offsets[-1]) + 0.5) * mu + logaddexp(pair.near, pair.far) / mu
    lower, upper = lower - margin * (1 + abs(lower)), upper + margin * (1 + upper)
    if level(lower) >= 0 or level(upper) <= 0:
        return lower if level(lower) >= 0 else upper
    return float(root(level, lower, upper, xtol=1e-8, steps=100))  # any threshold gives a lower bound


def _log_density(counts: _Counts, slopes: Reals, s: float, mu: float) -> float:
    """Logarithm of the mixture's density at s relative to the first count, up to a constant.

    The logarithm of a component is concave in the count; ``slopes`` are minus its differences at s = 0.
    """
    k = round(s / mu)
    rest = s - k * mu
    peak = int(np.searchsorted(slopes, mu * s))
    # Components beyond a relative exp(-40) are omitted, as any threshold is valid.
    radius = math.ceil(min(math.sqrt(2 * 40.0 / (mu * mu + 4 / (counts.j[-1] + 1))), len(counts.j))) + 2
    window = slice(max(peak - radius, 0), peak + radius + 1)
    logs = counts.log_masses[window] - ((k - counts.offsets[window]) * mu + rest) ** 2 / 2
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _difference_at(pair: Pair, counts: _Counts, k: int, rest: float) -> tuple[float, float]:
    """The difference at ``k mu + rest`` relative to the first count, less errors and omitted mass."""
    mu, offsets = pair.ratio, counts.offsets
    weights = counts.log_masses + log_ndtr((offsets - k + 1) * mu - rest)
    top = float(weights.max())
    significant = weights >= top - LOG_OMITTED_BELOW - pair.near
    below = pair.near + float(weights[0]) - float(counts.log_masses[0]) - LOG_OMITTED_BELOW
    log_ends = -math.inf if counts.first else below, -math.inf if counts.last else -LOG_OMITTED_ABOVE
    omitted = float(np.exp(np.minimum(np.array(log_ends) - top, MAX_TERM)).sum()) + len(weights) * math.exp(
        -LOG_OMITTED_BELOW
    )
    j, log_masses, sizes = counts.j[significant], counts.log_masses[significant], np.exp(weights[significant] - top)
    t = (k - offsets[significant]) * mu + rest
    log_ratios = _log_tail_ratio(t - mu, np.full(t.shape, mu))
    exponents = pair.near + log_ratios
    subtracted = np.exp(np.minimum(weights[significant] - top + exponents, MAX_TERM))
    differences = np.where(exponents < 1, -sizes * np.expm1(np.minimum(exponents, 1.0)), sizes - subtracted)
    shift = np.where(t - mu >= MILLS_EDGE, mu * (2 * np.abs(t) + mu), 0.0)
    error = subtracted * (ULP * (4 + 4 * np.abs(log_ratios) + 2 * pair.near + shift) + pair.near_error)
    if pair.far > -math.inf:
        largest = slice(int(sizes.argmax()), int(sizes.argmax()) + 1)
        absent, absent_error = _absent_term(pair, j[largest], t[largest], log_masses[largest])
        differences[largest] -= absent
        error[largest] += absent_error
    error += np.abs(differences) * ULP * (8 + 2 * np.minimum(t * t, 1e4) + 24 * np.maximum(-log_masses, 0))
    total, err = float(differences.sum()), float(error.sum()) + omitted
    return (top + math.log(total - err), 2 * err / (total - err)) if total > err else (-math.inf, math.inf)


def _absent_term(pair: Pair, j: Reals, t: Reals, log_masses: Reals) -> tuple[Reals, Reals]:
    """Term of the absent client relative to that of a count, and its error."""
    distance = (j + 1) * pair.ratio
    log_ratio = _log_tail_ratio(t - pair.ratio, distance)
    term = np.exp(np.minimum(pair.far + log_ratio - log_masses, MAX_TERM))
    sizes = 2 + abs(pair.far) + np.abs(log_ratio) - log_masses + distance * np.abs(t)
    return term, term * (pair.far_error + 2 * ULP * sizes)


def _log_tail_ratio(start: Reals, distance: Reals) -> Reals:
    r"""Logarithm of :math:`\Phi(-x-m)/\Phi(-x)`, without cancellation near 0."""
    is_right = start >= MILLS_EDGE
    loss = np.empty(start.shape)
    z, m = start[is_right], distance[is_right]
    loss[is_right] = mills_drop(z, m) / mills(z)
    z, m = start[~is_right], distance[~is_right]
    loss[~is_right] = np.exp(_log_interval(z, m) - log_ndtr(-z))
    accurate = np.where(is_right, -distance * (start + distance / 2), 0.0) + np.log1p(-np.minimum(loss, 1 - ULP))
    return np.where(is_right | (loss < 0.5), accurate, log_ndtr(-start - distance) - log_ndtr(-start))


def _log_interval(start: Reals, length: Reals) -> Reals:
    """Logarithm of the standard normal mass of ``[start, start + length]``."""
    max_gauss = 0.25  # largest length for Gauss's rule
    a = np.maximum(start, -start - length)
    whole = log_ndtr(-a)
    with np.errstate(divide="ignore"):
        by_difference = whole + np.log1p(-np.exp(log_ndtr(-a - length) - whole))
    short = np.minimum(length, max_gauss)
    middle, offsets = np.clip(a + short / 2, -MAX_ARGUMENT, MAX_ARGUMENT)[:, None], short[:, None] / 2 * POINTS
    integral = np.exp(-middle * offsets - offsets**2 / 2) @ (WEIGHTS / 2)
    by_gauss = LOG_NORMAL_PEAK - (a + short / 2) ** 2 / 2 + np.log(short * integral)
    return np.where(length > max_gauss, by_difference, by_gauss)


def _inner(pair: Pair, n: int, rate: float) -> tuple[float, float]:
    """Logarithm of the divergence from the mixture, and its error."""
    if pair.far == -math.inf:
        y, j, shares = np.zeros(1), np.zeros(1), np.ones(1)
    else:
        y = crossing(lambda at: _far(pair, n, rate, float(at[0]))[:2])
        j, shares = _far(pair, n, rate, float(y[0]))[2:]
    z0 = pair.root(y)
    z, z_left = np.full(j.shape, max(z0[0], MILLS_EDGE)), np.full(j.shape, min(z0[0], MILLS_EDGE))
    if z0[0] < MILLS_EDGE:
        value = log_d_left(z_left[:1], y, mills(z_left[:1] + pair.ratio), shares @ mills(z_left + (j + 1) * pair.ratio))
    else:
        near_drop = mills_drop(z[:1], np.full(1, pair.ratio))
        value = log_d_right(z[:1], y, near_drop, shares @ mills_drop(z, (j + 1) * pair.ratio))
    mean = float(shares @ (j + 1))
    log_error = pair.far_error + mean * pair.near_error + 64 * ULP * (1 + mean * (pair.near + mean * pair.ratio**2))
    return float(value[0]), float(pair.error(z0, y, -np.expm1(-y) * log_error)[0])


def _far(pair: Pair, n: int, rate: float, y: float) -> tuple[Reals, Reals, Reals, Reals]:
    """Log ratio of the far components to the near one, its slope in y; the counts and their shares."""
    slope, curvature = -(pair.near + y) - pair.ratio**2 / 2, pair.ratio**2
    j, stride = tilted_window(n, rate, slope, curvature, LOG_OMITTED_BELOW)
    logs = log_pmf(j, n, rate) + (slope - curvature * j / 2) * j + math.log(stride)
    top = logs.max()
    sizes = np.exp(logs - top)
    shares = sizes / sizes.sum()
    level = max(pair.far - pair.near + top + math.log(sizes.sum()), MIN_LOG)
    return np.full(1, level), -np.atleast_1d(shares @ j), j, shares
