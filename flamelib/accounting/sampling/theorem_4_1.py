r"""The logarithm of delta for one round of random participation, with its error: every reading, either direction.

A client of L records draws :math:`j\sim\mathrm{Bin}(L-1,q)` of the others.  With :math:`A = (e^{\varepsilon'}-1)/(pq)`
and the terms D of :mod:`~flamelib.accounting.sampling.gaussian_mixtures`, in units of the noise,

* larger data set first: :math:`e^{\nu} = 1+pA`, :math:`e^{\lambda} = (1-p)A`, far component at :math:`(j+1)\mu`;
* smaller one first: :math:`\kappa = 1-p(1-q)A`, :math:`e^{\nu} = e^{\varepsilon'}/\kappa`,
  :math:`e^{\lambda} = (1-p)A/\kappa`, far component at :math:`j\mu`, everything times :math:`\kappa`.

D does not fall in j, and beyond some j the far component is negligible.  ``inner`` has one term, whose far component
is itself a mixture.  ``aligned`` has two mixtures: with n other records, :math:`\mathrm B_j = \mathrm B(j;n,q)`, a
threshold s and :math:`t_j = s-j\mu`,

.. math:: \sum_j\mathrm B_j\,\Phi(-t_{j+1})\Big(1 - e^{\nu}\,\frac{\Phi(-t_j)}{\Phi(-t_{j+1})}\Big)
          - e^\lambda\Phi(-s) ,

largest where the two densities cross.  *Every* s gives a lower bound, so that only rounding has to be paid for; the
brackets keep their digits, and the last summand is taken into the largest of them.
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
    gap,
    log_certain,
    log_rare,
    log_sum,
    mills,
    pair_terms,
)
from flamelib.core.arrays import Reals
from flamelib.core.binomial import MOST, log_pmf, tilted_window, window
from flamelib.core.logspace import LOG_NORMAL_PEAK, UNIT, exp_or_inf, log1mexp, log_expm1, logaddexp
from flamelib.core.search import root

LOG_PART = 40.0  # minus the logarithm of a part of the whole that does not count in an upper bound
# Grid of counts, in units of the mean count, that shows how large the sum is.
COUNT_GRID = 2.0 ** np.arange(0, 12.5, 0.5)
MAX_CLIP_RATIO = 1e130  # ratio of clip_norm to noise_std beyond which nothing changes
MIN_CLIP_RATIO = 1e-280  # ratio of clip_norm to noise_std below which nothing changes
MAX_FINITE_EPSILON = 1e100  # largest epsilon that is computed with

LOG_OMITTED_BELOW = 60.0  # minus the logarithm of what is left out of a lower bound
LOG_OMITTED_ABOVE = 800.0  # minus the logarithm of what is left out above the window
MAX_TERM = 300.0  # largest exponent of a term, so that sums are doubles
MAX_ARGUMENT = 1e3  # largest argument of a normal density
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(12)


class Estimate(NamedTuple):
    """Logarithm of a delta and how far it may be from the truth."""

    log: float
    error: float

    @property
    def high(self) -> float:
        """Never below the truth."""
        return self.log + self.error


def outer_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Larger data set first, the number of other records given away: an upper bound when its error is added.

    ``p`` and ``q`` are the participation and the record rate, ``ratio`` is the clipping norm over the noise's standard
    deviation and may be ``inf``, ``epsilon`` is after amplification.
    """
    return _scaled(
        p, q, _averaged(_pair(p, q, ratio, epsilon), n_records - 1, q, 1) if ratio < MAX_CLIP_RATIO else CERTAIN
    )


def add_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Smaller data set first: an upper bound when its error is added; arguments as of :func:`outer_estimate`."""
    if ratio >= MAX_CLIP_RATIO:
        return _scaled(p, q, CERTAIN)
    if epsilon >= certain_epsilon(p, q, n_records):
        return NOTHING
    epsilon = min(epsilon, MAX_FINITE_EPSILON)
    lost = exp_or_inf(log_expm1(epsilon)) / q * (1 - q) if q < 1 else 0.0
    kept = max(1 - lost, 0.0) + 8 * ULP
    log_kept, error = math.log(kept), 16 * ULP * (1 + 1 / kept)
    far = _log_odds(p) + log_expm1(epsilon) - math.log(q) - log_kept
    near = epsilon - log_kept
    pair = Pair(near, far, error, error + 1.5 * ULP * _size(p, q, epsilon), max(ratio, MIN_CLIP_RATIO))
    found = _averaged(pair, n_records - 1, q, 0)
    add = _scaled(p, q, Estimate(found.log + log_kept, found.error + error))
    # Ratio below which rounding alone may make a loss of a record that is added.
    if add.error <= 1e-10 and ratio >= 1e-6:
        return add
    removed = outer_estimate(p, q, n_records, ratio, epsilon)
    if add.high <= removed.high:
        return add
    # Never the larger direction: where the record is about to be lost, rounding alone says otherwise.
    doubt = max(min(add.error, 32.0), removed.error)
    return Estimate(removed.high - doubt, doubt)


def certain_epsilon(p: float, q: float, n_records: int) -> float:
    """An epsilon that the smaller data set is sure of: the larger one draws the record in no more than this share."""
    rate = p * q if n_records == 1 else q
    return -math.log1p(-rate) * (1 + 16 * ULP) if rate < 1 else math.inf


def inner_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Larger data set first, one mixture inside the second measure: no bound; arguments as before."""
    pair = _pair(p, q, min(ratio, MAX_CLIP_RATIO), epsilon)
    return _scaled(p, q, Estimate(*_inner(pair, n_records - 1, q)))


def aligned_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """All gradients of the client equal, larger data set first: a lower bound, at most ``error`` below the truth."""
    if ratio < 1e-100 or epsilon > MAX_FINITE_EPSILON:  # ratio below which nothing is given away that could be computed
        return UNKNOWN
    # A smaller ratio has less to give away, and from here on hardly less.
    # Ratio from which on the distributions of different counts hardly overlap.
    enough = 1e4 + 4 * math.sqrt(unsampled_epsilon(epsilon, q))
    pair = _pair(p, q, min(ratio * (1 - 4 * UNIT), enough), epsilon)  # a ratio rounded down
    low, width = _aligned(pair, n_records - 1, q)
    if low == -math.inf:
        return UNKNOWN
    found = _scaled(p, q, Estimate(low, 0.0))
    return Estimate(found.log - found.error, width + 2 * found.error)


def _averaged(pair: Pair, n: int, rate: float, offset: int) -> Estimate:
    """Logarithm of the binomial mean of the terms whose far component is at ``(j + offset) mu``.

    _Counts outside the window have a share below rounding: few come rarely, and many cost at most the limit.
    """
    limit = _log_terms(pair.alone, np.ones(1))
    top, top_error = float(limit.values[0]), float(limit.errors[0])
    settled = _settled(pair, top) - offset
    some = np.unique(np.minimum(np.floor(np.append(0.0, max(n * rate, 1.0) * COUNT_GRID)), n))
    least = float((_log_terms(pair, some + offset).values + log_pmf(some, n, rate)).max())
    first, last = window(n, rate, LOG_PART, LOG_PART + top - least) if least > -math.inf else (0, n)
    if first >= settled or last - first > MOST:
        low = float(_log_terms(pair, np.array([float(first + offset)])).values[0]) if first < settled else top
        return Estimate((top + low) / 2, (top - low) / 2 + top_error + 4 * ULP)
    j = np.arange(first, last + 1, dtype=float)
    terms = Logs(np.full(j.shape, top), np.full(j.shape, top_error))
    open_end = j < settled
    found = _log_terms(pair, j[open_end] + offset)
    terms.values[open_end], terms.errors[open_end] = found.values, found.errors
    weights = log_pmf(j, n, rate)
    log, cost = log_sum(weights + terms.values, terms.errors - 24 * ULP * weights)
    return Estimate(log, cost + 64 * ULP)


NOTHING, CERTAIN, UNKNOWN = Estimate(-math.inf, 0.0), Estimate(0.0, 0.0), Estimate(-math.inf, math.inf)


def _log_terms(pair: Pair, k: Reals) -> Logs:
    """The terms, ``k = 0`` included, where the far component lies on the one that is measured."""
    found = pair_terms(pair, np.maximum(k, 1.0))
    if k.size and k[0] == 0:
        found.values[0], found.errors[0] = -math.inf, 0.0
        if pair.far < 0:
            kept = log1mexp(-pair.far)
            error = pair.near_error + pair.far_error * (1 + math.exp(pair.far - kept)) + ULP
            alone = Pair(pair.near - kept, -math.inf, error, 0.0, pair.ratio)
            rest = pair_terms(alone, np.ones(1))
            found.values[0], found.errors[0] = rest.values[0] + kept, rest.errors[0] + error
    return found


def _settled(pair: Pair, top: float) -> float:
    """A k from which on the far component takes less than ``exp(-LOG_PART)`` of the term."""
    room = pair.far - top + LOG_PART
    if room <= 0:
        return 0.0
    return (math.sqrt(2 * room) - float(pair.place(np.zeros(1))[0])) / pair.ratio


def _pair(p: float, q: float, ratio: float, epsilon: float) -> Pair:
    epsilon = min(epsilon, MAX_FINITE_EPSILON)
    near = unsampled_epsilon(epsilon, q)
    far = _log_odds(p) + log_expm1(epsilon) - math.log(q)
    return Pair(near, far, 2 * ULP * near, 1.5 * ULP * _size(p, q, epsilon), max(ratio, MIN_CLIP_RATIO))


def _log_odds(p: float) -> float:
    """``log((1 - p) / p)``."""
    return math.log1p(-p) - math.log(p) if p < 1 else -math.inf


def _size(p: float, q: float, epsilon: float) -> float:
    """Size of the logarithms that the far component's is the sum of."""
    logs = log_expm1(epsilon), math.log(p), math.log(q), math.log1p(-p) if p < 1 else 0.0
    return 1 + sum(abs(x) for x in logs if math.isfinite(x))


def _scaled(p: float, q: float, found: Estimate) -> Estimate:
    rate = math.log(p) + math.log(q)
    return Estimate(found.log + rate, found.error + ULP * (4 + abs(rate)))


# --- two mixtures, and one --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Counts:
    """Counts that may matter, with the logarithms of their chances, and whether they begin and end the law.

    Thresholds are measured from the first of them, ``base``: a double holds no fraction of a large count.
    """

    base: int
    j: Reals
    chances: Reals
    first: bool
    last: bool

    @property
    def beyond(self) -> Reals:
        """How far each count lies above the first."""
        return self.j - float(self.base)


@lru_cache(maxsize=16)
def _counts(n: int, rate: float, above: float) -> _Counts | None:
    low, high = window(n, rate, LOG_OMITTED_BELOW, above)
    if high - low > MOST:
        return None
    j = np.arange(low, high + 1, dtype=float)
    return _Counts(low, j, log_pmf(j, n, rate), low == 0 or rate == 1, high == n)


def _aligned(pair: Pair, n: int, rate: float) -> tuple[float, float]:
    """Lower logarithm of the divergence of the two mixtures, and how far below it may lie.

    Where the counts are too many to be added up the answer is ``-inf``.
    """
    if pair.near / pair.ratio - pair.ratio > MAX_ARGUMENT:
        return -math.inf, math.inf
    # In steps, so that a search meets the same counts again.
    counts = _counts(n, rate, LOG_OMITTED_ABOVE + 100.0 * math.ceil(pair.near / 100))
    if counts is None:
        return -math.inf, math.inf
    s = _threshold(pair, counts)
    k = round(s / pair.ratio)
    return _at(pair, counts, k, s - k * pair.ratio)


def _threshold(pair: Pair, counts: _Counts) -> float:
    """About where the densities cross, beyond the first count: the logarithm of their ratio rises."""
    margin = 1e-6  # relative margin of the search for a threshold, any of which gives a lower bound
    mu = pair.ratio
    falls = mu * mu * (counts.beyond[:-1] + 0.5) - np.diff(counts.chances)
    first = counts.base * mu

    @cache
    def level(s: float) -> float:
        under = logaddexp(pair.near + _log_density(counts, falls, s, mu), pair.far - (first + s) ** 2 / 2)
        return _log_density(counts, falls, s - mu, mu) - under

    low = mu / 2 + pair.near / mu
    high = (float(counts.beyond[-1]) + 0.5) * mu + logaddexp(pair.near, pair.far) / mu
    low, high = low - margin * (1 + abs(low)), high + margin * (1 + high)
    if level(low) >= 0 or level(high) <= 0:
        return low if level(low) >= 0 else high
    return float(root(level, low, high, xtol=1e-8, steps=100))  # any threshold gives a lower bound


def _log_density(counts: _Counts, falls: Reals, s: float, mu: float) -> float:
    """Logarithm of the mixture's density at s beyond the first count, up to a constant.

    The logarithm of a component's part is concave in the count; ``falls`` is how fast it falls at s = 0.
    """
    k = round(s / mu)
    rest = s - k * mu
    peak = int(np.searchsorted(falls, mu * s))
    # Minus the logarithm of what is left out where a bound is only sought.
    reach = math.ceil(min(math.sqrt(2 * 40.0 / (mu * mu + 4 / (counts.j[-1] + 1))), len(counts.j))) + 2
    near = slice(max(peak - reach, 0), peak + reach + 1)
    logs = counts.chances[near] - ((k - counts.beyond[near]) * mu + rest) ** 2 / 2
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _at(pair: Pair, counts: _Counts, k: int, rest: float) -> tuple[float, float]:
    """The difference at ``k mu + rest`` beyond the first count, less all errors and all that is left out."""
    mu, beyond = pair.ratio, counts.beyond
    weights = counts.chances + log_ndtr((beyond - k + 1) * mu - rest)
    top = float(weights.max())
    heavy = weights >= top - LOG_OMITTED_BELOW - pair.near
    below = pair.near + float(weights[0]) - float(counts.chances[0]) - LOG_OMITTED_BELOW
    ends = -math.inf if counts.first else below, -math.inf if counts.last else -LOG_OMITTED_ABOVE
    missed = float(np.exp(np.minimum(np.array(ends) - top, MAX_TERM)).sum()) + len(weights) * math.exp(
        -LOG_OMITTED_BELOW
    )
    j, chances, sizes = counts.j[heavy], counts.chances[heavy], np.exp(weights[heavy] - top)
    t = (k - beyond[heavy]) * mu + rest
    falls = _log_fall(t - mu, np.full(t.shape, mu))
    exponents = pair.near + falls
    lost = np.exp(np.minimum(weights[heavy] - top + exponents, MAX_TERM))
    kept = np.where(exponents < 1, -sizes * np.expm1(np.minimum(exponents, 1.0)), sizes - lost)
    shift = np.where(t - mu >= MILLS_EDGE, mu * (2 * np.abs(t) + mu), 0.0)
    error = lost * (ULP * (4 + 4 * np.abs(falls) + 2 * pair.near + shift) + pair.near_error)
    if pair.far > -math.inf:
        best = slice(int(sizes.argmax()), int(sizes.argmax()) + 1)
        back, back_error = _out(pair, j[best], t[best], chances[best])
        kept[best] -= back
        error[best] += back_error
    error += np.abs(kept) * ULP * (8 + 2 * np.minimum(t * t, 1e4) + 24 * np.maximum(-chances, 0))
    total, room = float(kept.sum()), float(error.sum()) + missed
    return (top + math.log(total - room), 2 * room / (total - room)) if total > room else (-math.inf, math.inf)


def _out(pair: Pair, j: Reals, t: Reals, chances: Reals) -> tuple[Reals, Reals]:
    """What the client that is out takes away, against a count's own part, and the error of that."""
    apart = (j + 1) * pair.ratio
    fall = _log_fall(t - pair.ratio, apart)
    back = np.exp(np.minimum(pair.far + fall - chances, MAX_TERM))
    sizes = 2 + abs(pair.far) + np.abs(fall) - chances + apart * np.abs(t)
    return back, back * (pair.far_error + 2 * ULP * sizes)


def _log_fall(start: Reals, apart: Reals) -> Reals:
    r"""Logarithm of :math:`\Phi(-x-m)/\Phi(-x)`, with all its digits where it is close to 0."""
    right = start >= MILLS_EDGE
    lost = np.empty(start.shape)
    z, m = start[right], apart[right]
    lost[right] = gap(z, m) / mills(z)
    z, m = start[~right], apart[~right]
    lost[~right] = np.exp(_log_interval(z, m) - log_ndtr(-z))
    steady = np.where(right, -apart * (start + apart / 2), 0.0) + np.log1p(-np.minimum(lost, 1 - ULP))
    return np.where(right | (lost < 0.5), steady, log_ndtr(-start - apart) - log_ndtr(-start))


def _log_interval(start: Reals, length: Reals) -> Reals:
    """Logarithm of the mass of a standard normal law on ``[start, start + length]``."""
    most = 0.25  # length of an interval on which Gauss's rule is better than a difference
    a = np.maximum(start, -start - length)
    whole = log_ndtr(-a)
    with np.errstate(divide="ignore"):
        plain = whole + np.log1p(-np.exp(log_ndtr(-a - length) - whole))
    short = np.minimum(length, most)
    middle, offsets = np.clip(a + short / 2, -MAX_ARGUMENT, MAX_ARGUMENT)[:, None], short[:, None] / 2 * POINTS
    inside = np.exp(-middle * offsets - offsets**2 / 2) @ (WEIGHTS / 2)
    close = LOG_NORMAL_PEAK - (a + short / 2) ** 2 / 2 + np.log(short * inside)
    return np.where(length > most, plain, close)


def _inner(pair: Pair, n: int, rate: float) -> tuple[float, float]:
    """Logarithm of the divergence from the mixture, and its error."""
    if pair.far == -math.inf:
        y, j, shares = np.zeros(1), np.zeros(1), np.ones(1)
    else:
        y = crossing(lambda at: _far(pair, n, rate, float(at[0]))[:2])
        j, shares = _far(pair, n, rate, float(y[0]))[2:]
    place = pair.place(y)
    z, deep = np.full(j.shape, max(place[0], MILLS_EDGE)), np.full(j.shape, min(place[0], MILLS_EDGE))
    if place[0] < MILLS_EDGE:
        value = log_certain(deep[:1], y, mills(deep[:1] + pair.ratio), shares @ mills(deep + (j + 1) * pair.ratio))
    else:
        near = gap(z[:1], np.full(1, pair.ratio))
        value = log_rare(z[:1], y, near, shares @ gap(z, (j + 1) * pair.ratio))
    mean = float(shares @ (j + 1))
    blur = pair.far_error + mean * pair.near_error + 64 * ULP * (1 + mean * (pair.near + mean * pair.ratio**2))
    return float(value[0]), float(pair.error(place, y, -np.expm1(-y) * blur)[0])


def _far(pair: Pair, n: int, rate: float, y: float) -> tuple[Reals, Reals, Reals, Reals]:
    """Logarithm of the far components against the near one, its slope in y; the counts and their shares."""
    slope, curvature = -(pair.near + y) - pair.ratio**2 / 2, pair.ratio**2
    j, stride = tilted_window(n, rate, slope, curvature, LOG_OMITTED_BELOW)
    logs = log_pmf(j, n, rate) + (slope - curvature * j / 2) * j + math.log(stride)
    top = logs.max()
    sizes = np.exp(logs - top)
    shares = sizes / sizes.sum()
    level = max(pair.far - pair.near + top + math.log(sizes.sum()), MIN_LOG)
    return np.full(1, level), -np.atleast_1d(shares @ j), j, shares
