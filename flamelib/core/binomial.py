r"""Logarithms of binomial probabilities, right to a few units of rounding, and windows with all but little of the mass.

The saddle-point form of Loader: :math:`\log\mathrm B(j) = s(n)-s(j)-s(n-j)-b(j,nq)-b(n-j,n-nq)+\tfrac12\log
\frac{n}{2\pi j(n-j)}` with Stirling's error s and :math:`b(x,m) = x\log(x/m)+m-x`, both computed without cancellation.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import _ufuncs, gammaln

from flamelib.core.arrays import Reals
from flamelib.core.logspace import UNIT

_SMALL = 16  # from here on the series of Stirling is right to the last digit; smaller counts are tabled
MOST = 2**16  # terms that others add up at most
_DENSE = 2**13  # counts beside the largest term that are taken one by one
_TRUSTED = 2**30  # the largest number of trials for which sums of probabilities are trusted
# Trials between which SciPy's sums lose some n / 2^54 of themselves; beyond, it takes another way.
_EXACT_ENOUGH, _EXACT_AGAIN = 2**16, 2**31
_FAINT_RATE, _TERMS = 2.0**-40, 6  # rates below have 1 - rate next to none of their digits; terms of their sums
_RAREST = 1e-250  # a rate below which a second hit has no probability that a double holds, and SciPy's function fails
_MARGIN = 1e-9  # its relative error, from above
_COUNTS = np.arange(1.0, _SMALL)
_EXACT = np.append(0.0, gammaln(_COUNTS + 1) - (_COUNTS + 0.5) * np.log(_COUNTS) + _COUNTS - math.log(2 * math.pi) / 2)
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # Stirling: B_2k / (2k (2k - 1))


def pmf(count: ArrayLike, trials: ArrayLike, rate: ArrayLike) -> Any:
    """Probability of exactly that many hits; 0 where that is impossible.

    This function, and up to 65536 trials :func:`cdf` and :func:`sf`, give what ``scipy.stats.binom`` gives, to the last
    bit, without the time it takes to load; this one also works where the rate is so small that SciPy's fails.
    """
    count, trials = np.asarray(count, dtype=float), np.asarray(trials, dtype=float)
    inside = (count >= 0) & (count <= trials)
    found = _law("pmf")(np.where(inside, count, 0.0), trials, np.where(np.less(rate, _RAREST) & (rate != 0), 0.5, rate))
    hardly = np.where(count == 0, 1.0, np.where(count == 1, trials * np.asarray(rate), 0.0))
    found = np.where(np.less(rate, _RAREST), hardly, np.clip(found, 0.0, 1.0))
    return np.where(inside, found, 0.0)[()]


def cdf(count: ArrayLike, trials: ArrayLike, rate: ArrayLike) -> Any:
    """Probability of at most that many hits, right to 1e-11 of itself."""
    return _summed("cdf", count, trials, rate)


def sf(count: ArrayLike, trials: ArrayLike, rate: ArrayLike) -> Any:
    """Probability of more than that many hits, right to 1e-11 of itself."""
    return _summed("sf", count, trials, rate)


def _summed(name: str, count: ArrayLike, trials: ArrayLike, rate: ArrayLike) -> Any:
    count, trials, rate = np.asarray(count, float), np.asarray(trials, float), np.asarray(rate, float)
    inside = (count >= 0) & (count < trials)
    at = np.where(inside, np.floor(count), 0.0)
    found = np.clip(_law(name)(at, trials, rate), 0.0, 1.0)
    lossy = (trials > _EXACT_ENOUGH) & (trials <= _EXACT_AGAIN) & (rate < 0.5) & (rate > 0)
    if lossy.any():
        found = np.where(lossy, _corrected(name, at, trials, np.where(lossy, rate, 0.25)), found)
    return np.where(inside, found, np.where((count < 0) == (name == "sf"), 1.0, 0.0))[()]


def _corrected(name: str, count: Reals, trials: Reals, rate: Reals) -> Reals:
    r"""The same of many trials.  SciPy raises the rounded 1 - rate to their power, which costs n / 2^54 of a sum.

    So it is asked at the rate :math:`p'` whose 1 - rate is a double.  The logarithm of a sum is so nearly a straight
    line in that of the rate that it is moved from there to p along its slope,
    :math:`\pm p'nP[\mathrm{Bin}(n-1,p')=k]` over the sum: what that leaves out is about :math:`np(1-p'/p)^2`.
    Rates that are too faint for it have short sums.
    """
    near, faint = 1 - (1 - rate), rate < _FAINT_RATE
    found = np.clip(_law(name)(count, trials, np.where(faint, rate, near)), 0.0, 1.0)
    slope = near * trials * pmf(count, trials - 1, near) * (1 if name == "sf" else -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = found * np.exp(np.log1p((rate - near) / near) * slope / found)
        terms = np.cumprod([(trials - count - j) / (count + j + 1) * (rate / (1 - rate)) for j in range(1, _TERMS)], 0)
    more = pmf(count + 1, trials, rate) * (1 + terms.sum(0))
    return np.asarray(np.where(faint, more if name == "sf" else 1 - more, np.where(found > 0, moved, found)))


def _law(name: str) -> Callable[..., Any]:
    """The function of whole arrays behind a method of ``scipy.stats.binom``; the method where SciPy has none."""
    found: Callable[..., Any] | None = getattr(_ufuncs, f"_binom_{name}", None)
    if found is None:
        from scipy.stats import binom

        found = getattr(binom, name)
    return found


def log_pmf(j: Reals, n: int, rate: float) -> Reals:
    """Logarithm of the binomial probability of each whole j in [0, n]."""
    if rate == 1 or n == 0:
        return np.where(j == n, 0.0, -np.inf)
    hits, misses = np.maximum(j, 1.0), np.maximum(n - j, 1.0)
    found = _stirling_error(np.array(float(n))) - _stirling_error(hits) - _stirling_error(misses)
    found = found - _deviance(hits, *_mean(n, rate, True)) - _deviance(misses, *_mean(n, rate, False))
    found += 0.5 * (np.log(n / misses) - np.log(2 * math.pi * hits))
    found[j == 0] = n * math.log1p(-rate)
    found[j == n] = n * math.log(rate)
    return np.asarray(found)


def _stirling_error(x: Reals) -> Reals:
    """``log x! - (x + 1/2) log x + x - log(2 pi)/2`` for whole x of at least 1."""
    inverse = 1 / np.maximum(x, _SMALL)
    series = np.zeros(x.shape)
    for coefficient in reversed(_SERIES):
        series = series * inverse * inverse + coefficient
    return np.where(x < _SMALL, _EXACT[np.minimum(x, _SMALL - 1).astype(int)], series * inverse)


@lru_cache(maxsize=64)
def _mean(n: int, rate: float, hits: bool) -> tuple[float, float]:
    """Mean number of hits or misses, and what is lost by rounding it."""
    mean = n * (Fraction(rate) if hits else 1 - Fraction(rate))
    return float(mean), float(mean - Fraction(float(mean)))


def _deviance(x: Reals, high: float, low: float) -> Reals:
    """``x log(x/m) + m - x`` for a mean ``m = high + low``, without cancellation, for x of at least 1."""
    v = (x - high) / (x + high)
    powers, series = v * v, np.zeros(x.shape)
    for k in range(8, 0, -1):
        series = (series + 1 / (2 * k + 1)) * powers
    near = (x - high) * v + 2 * x * v * series
    if high <= 1e-200:
        return np.asarray(x * (np.log(x) - math.log(high)) + high - x + (low - x * (low / high)))
    plain = x * np.log(x / high) + high - x
    return np.asarray(np.where(np.abs(v) < 0.1, near, plain) + low * (1 - x / high))


def window(n: int, rate: float, below: float, above: float) -> tuple[int, int]:
    """First and last count of a window that holds most of the law, by Bernstein's inequality.

    Fewer hits have a probability below ``exp(-below)``, and more hits one below ``exp(-above)``.
    """
    if rate == 1:
        return n, n
    mean, variance = n * rate, n * rate * (1 - rate)

    def reach(x: float) -> int:
        return math.ceil(min(x / 3 + math.sqrt(x * x / 9 + 2 * x * variance), n)) + 1

    return max(0, math.floor(mean) - reach(below)), min(n, math.ceil(mean) + reach(above))


def tilted_window(n: int, rate: float, slope: float, curvature: float, depth: float) -> tuple[Reals, int]:
    r"""Counts j at which :math:`\mathrm B(j)\,e^{sj - cj^2/2}` is within ``exp(-depth)`` of its largest value.

    The logarithm is concave; its second difference is at most :math:`-c-\frac1{j+1}-\frac1{n-j}`.  Where there
    are too many such counts, only every so many of them are given; the second part of the answer is that step.
    """
    if rate == 1 or n == 0:
        return np.array([float(n)]), 1
    odds = math.log(rate) - math.log1p(-rate)
    low, high = 0, n
    while low < high:
        j = (low + high) // 2
        if math.log((n - j) / (j + 1)) + odds + slope - curvature * (j + 0.5) > 0:
            low = j + 1
        else:
            high = j
    sides = (depth + math.sqrt(depth * depth + 2 * depth * (side + 1)) for side in (low, n - low))
    reach = math.ceil(min(math.sqrt(2 * depth / (curvature + 4 / (n + 1))), *sides)) + 2
    stride = -(-reach // _DENSE)
    return np.arange(max(0, low - reach), min(n, low + reach) + 1, stride, dtype=float), stride


def log_tail(counts: Reals, n: int, rate: float) -> Reals:
    """Logarithms of Chernoff's bound on the probability of a tail that begins at each count (upper).

    The bound is ``exp(-n KL(count/n || rate))``, for at most that many hits below the mean and for at least that many
    above it; its logarithm is 0 at the mean, and ``-inf`` where the count is impossible.
    """
    if rate == 1:
        return np.where(counts == n, 0.0, -np.inf)
    hits = np.where(counts > 0, _deviance(np.maximum(counts, 1.0), *_mean(n, rate, True)), _mean(n, rate, True)[0])
    left = np.maximum(n - counts, 0.0)
    misses = np.where(left > 0, _deviance(np.maximum(left, 1.0), *_mean(n, rate, False)), _mean(n, rate, False)[0])
    return np.where(counts > n, -np.inf, -np.maximum(hits + misses, 0.0) * (1 - 16 * UNIT))


def log_chance(counts: Reals, n: int, rate: float, few: bool) -> Reals:
    """Logarithms of the probabilities of at most that many hits (``few``), or of at least that many (upper).

    They come from sums of probabilities where these are trusted, and are never above Chernoff's bound.
    """
    bound = np.where(counts < n * rate if few else counts > n * rate, log_tail(np.clip(counts, 0, n), n, rate), 0.0)
    bound = np.where(counts < 0 if few else counts > n, -np.inf, bound)
    tail = _tail(counts, n, rate, few)
    return np.where(tail > 0, np.minimum(bound, np.log(np.where(tail > 0, tail, 1.0)) + _MARGIN), bound)


def log_between(low: Reals, high: Reals, n: int, rate: float) -> Reals:
    """``log P[low < hits <= high]`` (upper): 1 less the trusted tails."""
    outside = _tail(low, n, rate, few=True) + _tail(high + 1, n, rate, few=False)
    return np.where(high > low, np.log1p(-outside * (1 - 2 * _MARGIN)), -np.inf)


def _tail(counts: Reals, n: int, rate: float, few: bool) -> Reals:
    """Probabilities by sums of probabilities; 0 where these may not be trusted."""
    tail = cdf(counts, n, rate) if few else sf(counts - 1, n, rate)
    inside = (counts >= 0) & (counts < n) if few else (counts > 0) & (counts <= n)
    return np.where(inside & (tail > 1e-200) & (n <= _TRUSTED), tail, 0.0)


def quantiles(n: int, rate: float, probability: float) -> tuple[int, int]:
    """Ends of a window such that fewer hits, and more hits, each have at most that probability: never too narrow.

    They come from sums of probabilities, or from Chernoff's bound where these are not trusted.
    """
    trusted = n <= _TRUSTED and probability > 1e-200
    target = math.log(probability) if probability > 0 else -math.inf

    def rare(count: int, few: bool) -> bool:
        """Whether at most that many, or at least, are rare enough."""
        if trusted and 0 <= count <= n and not (few and count == n) and not (not few and count == 0):
            return bool((cdf(count, n, rate) if few else sf(count - 1, n, rate)) * (1 + _MARGIN) <= probability)
        return bool(log_tail(np.array(float(count)), n, rate) <= target)

    middle = math.floor(n * rate)
    low = bisect_left(range(middle), True, key=lambda count: not rare(count, True))
    return low, middle + bisect_left(range(middle + 1, n + 1), True, key=lambda count: rare(count, False))
