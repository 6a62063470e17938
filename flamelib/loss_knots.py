r"""From values of a profile to a discrete law of privacy losses that dominates it: the lower convex hull, in points.

What the hull is and why it errs upwards stands in :mod:`flamelib.privacy_loss`.  Numbers are kept as the excess
:math:`w(\alpha) = u(\alpha) - (1-\alpha)_+` at :math:`x = \alpha - 1`, which neither side loses to cancellation.
"""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from flamelib.loss_sums import UNIT, Loss, Real, Whole

Delta = Callable[[float], float]

FINEST = 2**16
START = 8
MOST = 600
RUNGS = 24


@dataclass(frozen=True, slots=True)
class Curve:
    r"""Upper bound of the profile of a pair (P, Q), or of every pair of neighbors, as a function of epsilon >= 0.

    Parameters
    ----------
    forward : callable
        At least :math:`H_{e^\varepsilon}(P\Vert Q)`; no more is asked of it, neither convexity nor monotony.
    backward : callable, optional
        At least :math:`H_{e^\varepsilon}(Q\Vert P)`.  Left out where it is the same: replacing one member is a
        symmetric relation, so that a bound over all its pairs holds in both directions.
    at_most : float
        Both are 0 from here on (pure privacy), or ``inf``.
    error : float
        By how much, relatively, the values may exceed the profile that is meant: part of the uncertainty of answers.
    """

    forward: Delta
    backward: Delta | None = None
    at_most: float = math.inf
    error: float = 0.0

    def larger(self, epsilon: float) -> float:
        """The larger of the two directions."""
        found = self.forward(epsilon)
        return found if self.backward is None else max(found, self.backward(epsilon))


def laddered(curve: Curve) -> Curve:
    r"""The same curve seen at ``RUNGS`` places an octave, each asked for once, with chords between them (upper).

    Profiles are convex in :math:`e^\varepsilon`, so that a chord lies above them.  Answers at many deltas and numbers
    of mechanisms then share the values that they ask for, and are larger by some thousandths at most.

    Parameters
    ----------
    curve : Curve
        Of pure privacy; any other one is given back as it is.

    Examples
    --------
    >>> coin = Curve(lambda epsilon: -math.expm1(epsilon - 0.1) / (1 + math.exp(-0.1)), at_most=0.1)
    >>> 1 <= laddered(coin).forward(0.03) / coin.forward(0.03) < 1.00001
    True
    """
    if math.isinf(curve.at_most):
        return curve
    backward = None if curve.backward is None else _chords(curve.backward, curve.at_most)
    return Curve(_chords(curve.forward, curve.at_most), backward, curve.at_most, curve.error)


def _chords(value: Delta, most: float) -> Delta:
    """Rungs are counted downwards from ``most``, where the curve has come to 0."""
    at = functools.cache(lambda rung: value(_rung(most, rung)) if rung else 0.0)
    start = functools.cache(lambda: value(0.0))

    def delta(epsilon: float) -> float:
        if epsilon <= 0 or epsilon >= most:
            return start() if epsilon <= 0 else 0.0
        above = math.floor(RUNGS * math.log2(most / epsilon))
        above += (_rung(most, above + 1) > epsilon) - (_rung(most, above) < epsilon)
        low, high = _rung(most, above + 1), _rung(most, above)
        left = math.expm1(epsilon - high) / math.expm1(low - high)  # not 1 - right: near the end it is next to nothing
        right = math.expm1(epsilon - low) / math.expm1(high - low)
        return (at(above + 1) * left + at(above) * right) * (1 + 16 * UNIT)

    return delta


def _rung(most: float, rung: int) -> float:
    return float(most * 2.0 ** (-rung / RUNGS))


@dataclass(frozen=True, slots=True)
class Hull:
    r"""Knots of the hull: multiples of ``unit`` in the loss, x, and the excess over :math:`(1-\alpha)_+`."""

    unit: float
    places: Whole
    x: Real
    excess: Real

    @property
    def slopes(self) -> Real:
        """Slopes of the excess: to the left of the first knot, between knots, to the right of the last."""
        first = self.excess[0] / (1 + self.x[0])
        return np.concatenate([[first], np.diff(self.excess) / np.diff(self.x), [0.0]])

    def loss(self, coarsest: int) -> Loss:
        """The law of the losses, on a grid of ``coarsest`` units; masses are rounded up."""
        slopes, alpha = self.slopes, 1 + self.x
        places = np.concatenate([[1.0], np.maximum(np.abs(self.x[1:]), np.abs(self.x[:-1])) / np.diff(self.x), [0.0]])
        rounding = 4 * UNIT * np.abs(slopes) * (2 + places)
        masses = np.diff(slopes) + (self.places == 0) + rounding[1:] + rounding[:-1]
        masses = alpha * np.maximum(masses, 0) * (1 + 8 * UNIT)
        return Loss(self.unit * coarsest, self.places // coarsest, masses, float(self.excess[-1]), float(slopes[0]))

    def doubts(self, rate: float, log_mass: float) -> Real:
        """For each interval, how far it may move the logarithm of delta: once, under this tilt and tilted mass."""
        slopes = self.slopes - (np.append(self.places, 1) <= 0)
        left, here, right = slopes[:-2], slopes[1:-1], slopes[2:]
        bend = np.maximum(here - left, 0) * np.maximum(right - here, 0) / np.maximum(right - left, 1e-300)
        with np.errstate(divide="ignore"):
            logs = np.log(bend) + 2 * np.log(np.diff(self.x)) + (rate - 1) * self.unit * self.places[1:]
        return np.asarray(np.exp(np.minimum(logs + math.log(rate) + math.log1p(rate) - math.log(2) - log_mass, 100.0)))

    def thinned(self) -> "Hull":
        """Every other knot to both sides of 0, and the ends: a bound as well, to tell how much the knots matter."""
        middle = int(np.flatnonzero(self.places == 0)[0])
        kept = (np.arange(len(self.places)) - middle) % 2 == 0
        kept[[0, -1]] = True
        return Hull(self.unit, self.places[kept], self.x[kept], self.excess[kept])


class Knots:
    """A curve at whole multiples of ``end / FINEST``, asked for once each; negative ones are the other direction."""

    def __init__(self, curve: Curve, end: float) -> None:
        self.curve, self.unit = curve, end / FINEST
        self.ahead: dict[int, float] = {}
        self.behind = self.ahead if curve.backward is None else {}
        start = range(FINEST // START, FINEST + 1, FINEST // START)
        self.add([0, *start, *(-place for place in start)])

    def add(self, places: Iterable[int]) -> bool:
        """Ask at these multiples; whether any was new."""
        before = len(self.ahead) + len(self.behind)
        for place in places:
            self._ask(place, place < 0)
            if place == 0:
                self._ask(place, True)
        return len(self.ahead) + len(self.behind) > before

    def _ask(self, place: int, backward: bool) -> None:
        known, at = (self.behind, self.curve.backward) if backward else (self.ahead, self.curve.forward)
        epsilon = self.unit * abs(place)
        if abs(place) not in known:
            value = (at or self.curve.forward)(epsilon) if epsilon < self.curve.at_most else 0.0
            known[abs(place)] = min(max(value, 0.0), 1.0)

    def between(self, hull: Hull, chosen: Whole) -> bool:
        """Ask in the middle of the chosen intervals, as long as there may be more points; whether any was new."""
        pairs = [(int(hull.places[i]), int(hull.places[i + 1])) for i in chosen]
        middles = [(low + high) // 2 for low, high in pairs if high - low > 1]
        return self.add(middles) if max(len(self.ahead), len(self.behind)) < MOST else False

    def hull(self) -> Hull:
        """Lower convex hull of the points: each side by itself, after the value between them has been lowered."""
        right, ahead = self._side(self.ahead)
        left, behind = self._side(self.behind)
        ahead[0] = behind[0] = self._at_zero()
        x_right, x_left = np.expm1(self.unit * right), np.expm1(-self.unit * left)
        kept = _lower(x_right, ahead)[1:]
        mirrored, excess = np.append(x_left, -1.0)[::-1], np.append(behind * (1 + x_left), 0.0)[::-1]
        lower = _lower(mirrored, excess)[1:]
        places = np.concatenate([-left[::-1][lower - 1], right[kept]])
        x, w = np.concatenate([mirrored[lower], x_right[kept]]), np.concatenate([excess[lower], ahead[kept]])
        return Hull(self.unit, places, x, w)

    def _side(self, known: dict[int, float]) -> tuple[Whole, Real]:
        """Places in order, with values made to fall (a profile does)."""
        places = sorted(known)
        return np.array(places), np.minimum.accumulate([known[place] for place in places])

    def _at_zero(self) -> float:
        r"""Value at 0 by the best chord across it: :math:`\tanh(\varepsilon/2) + (u+u')/(1+e^\varepsilon)`."""
        best = 1.0
        for place in self.ahead.keys() & self.behind.keys():
            epsilon = self.unit * place
            both = self.ahead[place] + self.behind[place]
            best = min(best, math.tanh(epsilon / 2) + both * math.exp(-epsilon) / (1 + math.exp(-epsilon)))
        return best * (1 + 4 * UNIT)


def _lower(x: Real, y: Real) -> Whole:
    """Indices of the lower convex hull of points in order of x; the first and the last one belong to it."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)
