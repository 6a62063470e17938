r"""How well an attacker can tell two neighbouring data sets apart, from certified points of a privacy profile.

By every point :math:`(\varepsilon,\delta)`, the rate of misses at a rate :math:`\alpha` of false alarms is at least
:math:`1-\delta-e^\varepsilon\alpha` and, with the two data sets exchanged, :math:`e^{-\varepsilon}(1-\delta-\alpha)`.
The largest of these lines is a lower bound of the trade-off curve: convex, and its own inverse.  It lies above the
curve :math:`G_\mu` of a Gaussian mechanism if its corners do, for between two corners it is straight and the other is
convex.  Standard library only.

Source: Dong, Roth, Su 2022 (trade-off curves); Gomez, Kulynych, Kaissis, Calmon, Hayes, Honkela 2025 (regret).
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

Point = tuple[float, float]  # epsilon and delta
MAX_EPSILON = 700.0  # of a point: exp is a double
ROUNDING = 4 * math.ulp(1.0)  # of a line or of an advantage
RTOL_MU = 1e-9  # relative error of a difference of two normal quantiles, generously
_NORMAL = NormalDist()


class GaussianDP(NamedTuple):
    """A Gaussian mechanism that leaks no less: its sensitivity is ``mu`` standard deviations of its noise.

    The certified trade-off curve is above that mechanism's by at most ``regret`` in both rates of error: little if
    ``mu`` alone says it all.
    """

    mu: float
    regret: float


class Profile:
    """A privacy profile by its certified points, which ``find`` computes when they are first asked for."""

    def __init__(self, find: Callable[[], Sequence[Point]]) -> None:
        self._find = find

    @cached_property
    def points(self) -> list[Point]:
        """Corners of the convex hull: delta is convex in exp(epsilon), so that chords are bounds too."""
        hull: list[Point] = []
        for point in sorted(one for one in set(self._find()) if one[0] <= MAX_EPSILON and one[1] < 1):
            if hull and point[1] >= hull[-1][1]:
                continue
            while len(hull) > 1 and _slope(hull[-2], point) >= _slope(hull[-2], hull[-1]):
                hull.pop()
            hull.append(point)
        return hull

    def misses(self, alpha: float) -> float:
        """Rate of misses at the rate ``alpha`` of false alarms (lower)."""
        lines = (
            line
            for epsilon, delta in self.points
            for line in (1 - delta - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - delta - alpha))
        )
        return max(max(lines, default=0.0) - ROUNDING, 0.0)

    @property
    def advantage(self) -> float:
        """Largest difference of the rates of hits and of false alarms: total variation (upper)."""
        found = ((math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1) for epsilon, delta in self.points)
        return min(min(found, default=1.0) * (1 + ROUNDING), 1.0)

    @property
    def gaussian(self) -> GaussianDP:
        """The smallest mu of a Gaussian mechanism that leaks no less, down to the last point's delta (upper)."""
        if not self.points:
            return GaussianDP(math.inf, 0.0)
        (first, delta), *_ = self.points
        corners = [
            (0.5 + math.tanh(first / 2) / 2 + delta / (1 + math.exp(first)), (1 - delta) / (1 + math.exp(first)))
        ]
        for one, other in itertools.pairwise(self.points):
            alpha = _slope(one, other)
            corners.append((one[1] + math.exp(one[0]) * alpha, alpha))
        mu = max((_mu(hits, alpha) for hits, alpha in corners if alpha > 0), default=0.0) * (1 + RTOL_MU)
        excess = ((_gaussian_delta(mu, at) - small) / (1 + math.exp(at)) for at, small in self.points)
        return GaussianDP(mu, max(0.0, *excess) if mu > 0 else 0.0)


def _slope(one: Point, other: Point) -> float:
    """How fast delta falls in exp(epsilon) from a point to one of larger epsilon: a rate of false alarms."""
    return (one[1] - other[1]) / (math.exp(one[0]) * math.expm1(other[0] - one[0]))


def _mu(hits: float, alarms: float) -> float:
    return _NORMAL.inv_cdf(hits) - _NORMAL.inv_cdf(alarms) if hits < 1 else math.inf


def _gaussian_delta(mu: float, epsilon: float) -> float:
    if math.isinf(mu):
        return 1.0
    return _NORMAL.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * _NORMAL.cdf(-mu / 2 - epsilon / mu)


def gaussian_deltas(epsilon: float, delta: float, steps: int) -> list[float]:
    """Deltas at multiples of epsilon / steps, from its half on, of the Gaussian mechanism through a point."""
    low, high = 0.0, 2 * math.sqrt(epsilon) + 1
    while _gaussian_delta(high, epsilon) < delta:
        high *= 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if _gaussian_delta(middle, epsilon) > delta else (middle, high)
    return [_gaussian_delta(high, max(step, 0.5) * epsilon / steps) for step in range(steps)]
