"""Shuffled binary response among very many users: the divergence of one data set, from two windows of binomial masses.

Masses are computed in long doubles by Stirling's series and the deviance of the count (no logarithm of a factorial, of
which a billion users would cost nine digits); all sums have positive terms, up to the one difference at the end.
"""

import math

import mpmath
import numpy as np
from numpy.typing import NDArray

Long = np.longdouble
Longs = NDArray[np.longdouble]

PI = Long(str(mpmath.pi))
# Factorials below are known exactly; beyond, five terms of the series leave less than 1e-18.
EXACT = 40
# Standard deviations of the tilted counts to each side; what lies beyond is less than 1e-36 of the whole.
SIDES = 13


def _series(count: Longs) -> Longs:
    """``log(k!) - log(sqrt(2 pi k) (k/e)^k)``, and 0 at 0."""
    inverse = 1 / np.maximum(count, Long(1))
    square = inverse * inverse
    tail = Long(1) / 1260 - square * (Long(1) / 1680 - square * (Long(1) / 1188))
    found = inverse * (Long(1) / 12 - square * (Long(1) / 360 - square * tail))
    for k in range(1, EXACT):
        exact = mpmath.loggamma(k + 1) - (k + mpmath.mpf(1) / 2) * mpmath.log(k) + k - mpmath.log(2 * mpmath.pi) / 2
        found = np.where(count == k, Long(str(exact)), found)
    return np.where(count == 0, Long(0), found)


def _deviance(u: Longs) -> Longs:
    """``(1 + u) log(1 + u) - u``, by its power series where that cancels."""
    power = np.zeros_like(u)
    for k in range(40, 1, -1):
        power = power * u + Long((-1) ** k) / Long(k * (k - 1))
    inner = np.maximum(u, Long(-1) + Long(1e-18))
    return np.where(np.abs(u) < 0.1, power * u * u, (1 + inner) * np.log1p(inner) - inner)


def log_masses(trials: int, chance: Longs, other: Longs, counts: NDArray[np.int64]) -> Longs:
    """Logarithms of binomial masses; ``other`` is one less ``chance``, known to all its digits."""
    n, k = Long(trials), counts.astype(Long)
    if trials == 0:
        return np.where(k == 0, Long(0), -Long(math.inf))
    body = _series(np.array([n]))[0] - _series(k) - _series(n - k)
    body -= n * chance * _deviance((k - n * chance) / (n * chance))
    body -= n * other * _deviance((n - k - n * other) / (n * other))
    with np.errstate(divide="ignore"):
        inner = body + np.log(n / (2 * PI * k * (n - k))) / 2
    return np.where(k == 0, n * np.log1p(-chance), np.where(k == n, n * np.log1p(-other), inner))


def log_divergence(epsilon0: float, n_users: int, epsilon: float, ones: int) -> float:
    """Logarithm of the divergence where ``ones`` of the other users hold a one: the larger of two thresholds.

    A user who holds a one reports it with probability 1 - q, a zero as one with q; T counts the others' reported ones.
    The divergence is the largest ``alpha P(T = j - 1) - (beta - alpha) P(T >= j)`` over whole thresholds j.
    """
    local, central = mpmath.mpf(epsilon0), mpmath.mpf(epsilon)
    odds = mpmath.exp(local)
    alpha, beta = (odds - mpmath.exp(central)) / (1 + odds), (mpmath.exp(local + central) - 1) / (1 + odds)
    often, seldom = Long(str(odds / (1 + odds))), Long(str(1 / (1 + odds)))
    tilt = float(mpmath.log(beta / alpha))
    shares = [(ones, often, seldom, epsilon0), (n_users - 1 - ones, seldom, often, -epsilon0)]
    windows, logs, center = [], [], 0.0
    for trials, chance, other, bias in shares:
        tilted = 1 / (1 + math.exp(-tilt - bias))
        mean, spread = trials * tilted, SIDES * math.sqrt(trials * tilted * (1 - tilted)) + 80
        counts = np.arange(max(0, math.floor(mean - spread)), min(trials, math.ceil(mean + spread)) + 1)
        windows.append(counts)
        logs.append(log_masses(trials, chance, other, counts))
        center += mean
    tops = [float(log.max()) for log in logs]
    first, second = (np.exp(log - top) for log, top in zip(logs, tops, strict=True))
    # P(second >= place): the sum from there to the end of its window.
    above = np.append(np.cumsum(second[::-1])[::-1], Long(0))
    padded = np.append(second, Long(0))
    best = -math.inf
    for mode in (math.floor(center), math.floor(center) + 1):
        place = mode - windows[0] - int(windows[1][0])
        at = np.where(place >= 0, padded[np.clip(place, 0, len(second))], Long(0))
        beyond = above[np.clip(place + 1, 0, len(second))]
        value = Long(str(alpha)) * (first * at).sum() - Long(str(beta - alpha)) * (first * beyond).sum()
        if value > 0:
            best = max(best, float(np.log(value)) + sum(tops))
    return best
