r"""Composition of mechanisms given by upper bounds of their privacy profiles.

The *profile* of distributions (P, Q) is the curve :math:`u(\alpha) = H_\alpha(P\Vert Q) = \int (p-\alpha q)_+`,
:math:`\alpha = e^{\varepsilon}`.  The accounting of a mechanism yields an upper bound of the profiles of all its pairs
of neighbours, which is evaluated at some hundred points.  Every step is exact or an upper bound.

1. *From values to a curve.*  Profiles are convex in :math:`\alpha` and fall from 1 at 0; values below 1 follow from the
   other direction.  A chord lies above, so the lower convex hull of points above the profile lies above it everywhere.
   Left of the first point the hull runs to 1 at :math:`\alpha = 0`, right of the last one it stays level.
2. *From the curve to a dominating pair* whose losses are the knots; products of dominating pairs dominate compositions,
   adaptive ones included.
3. *From the pair to the sum*: :mod:`flamelib.accounting.composition.privacy_loss_distribution`, with error
   bounds added.

Points are adaptive: the triangle under the neighbouring chords bounds the excess of the hull over the profile, which
to first order changes the logarithm of delta by :math:`T\,t(t+1)\,\alpha^{t-1}/Z` times its area, T being the
number of mechanisms, t the tilt at the answer and Z the tilted mass.  Where that is small enough the answer is compared
with the one from every other point, and more points are evaluated if they differ by more than for a smooth curve.
The ``uncertainty``, already on the safe side, is the larger of these estimates, with the errors of the values.

Numbers are kept as the excess :math:`w(\alpha) = u(\alpha) - (1-\alpha)_+` at :math:`x = \alpha - 1`, against
cancellation on both sides.  Proofs: book, chapter on FLAME, section on how a vector's budget is computed.

Source: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, Connect the Dots, 2022; Zhu, Dong, Wang, Optimal Accounting of
Differential Privacy via Characteristic Function, 2022 (dominating pairs).
"""

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.accounting.composition.privacy_loss_distribution import ComposedLosses, PrivacyLossDistribution, Tilt
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import SMALLEST, UNIT, above, probability, sum_above
from flamelib.core.search import WIDTH, smallest_epsilon
from flamelib.core.vocabulary import DomainError, check

Delta = Callable[[float], float]

N_GRID = 2**16  # points of the grid on which a curve is evaluated
MAX_POINTS = 600  # points of a curve, at most
POINTS_PER_OCTAVE = 24  # points for each octave of a tabulated curve
RTOL_DELTA = 5e-3  # default relative accuracy of delta
REFINEMENTS = (1, 8, 64)  # divisors of the accuracy, in turn
DELTA_TAIL = 1e-4  # mass of losses beyond the last point, relative to delta
MAX_LOSS = 300.0  # largest loss on the grid
MIN_EPSILON = 1e-9  # epsilon up to which basic composition is the answer
MAX_TRANSFORMED = 2**20  # mechanisms in one transform; longer compositions are taken in groups
GROUP_SIZE = 2**8  # mechanisms in a group


@dataclass(frozen=True, slots=True)
class PrivacyProfile:
    r"""Upper bound of the profile of a pair (P, Q), or of every pair of neighbours, as a function of epsilon >= 0.

    Parameters
    ----------
    forward : callable
        At least :math:`H_{e^\varepsilon}(P\Vert Q)`; neither convex nor monotone of necessity.
    backward : callable, optional
        At least :math:`H_{e^\varepsilon}(Q\Vert P)`; left out where ``forward`` bounds it, as for replacing one member.
    at_most : float
        Both are 0 from here on (pure privacy), or ``inf``.
    error : float
        Relative excess of the values over the profile: part of the uncertainty of answers.
    """

    forward: Delta
    backward: Delta | None = None
    at_most: float = math.inf
    error: float = 0.0

    def larger(self, epsilon: float) -> float:
        """The larger of the two directions."""
        found = self.forward(epsilon)
        return found if self.backward is None else max(found, self.backward(epsilon))


def tabulated(curve: PrivacyProfile) -> PrivacyProfile:
    r"""The curve by chords between ``POINTS_PER_OCTAVE`` points, each evaluated once (upper).

    Profiles are convex in :math:`e^\varepsilon`, so that a chord lies above them.  Answers at many deltas and numbers
    of mechanisms share the values, and are larger by some thousandths at most.  A curve without pure privacy is
    returned unchanged.
    """
    if math.isinf(curve.at_most):
        return curve
    backward = None if curve.backward is None else _chords(curve.backward, curve.at_most)
    return PrivacyProfile(_chords(curve.forward, curve.at_most), backward, curve.at_most, curve.error)


def _chords(value: Delta, most: float) -> Delta:
    """Points are indexed downwards from ``most``, where the curve is 0."""
    at = functools.cache(lambda i: value(_point(most, i)) if i else 0.0)
    start = functools.cache(lambda: value(0.0))

    def delta(epsilon: float) -> float:
        if epsilon <= 0 or epsilon >= most:
            return start() if epsilon <= 0 else 0.0
        i = math.floor(POINTS_PER_OCTAVE * math.log2(most / epsilon))
        i += (_point(most, i + 1) > epsilon) - (_point(most, i) < epsilon)
        low, high = _point(most, i + 1), _point(most, i)
        left = math.expm1(epsilon - high) / math.expm1(low - high)  # not 1 - right, against cancellation
        right = math.expm1(epsilon - low) / math.expm1(high - low)
        # Slightly convex: otherwise rounding decides which points of a chord belong to a hull, and so their number.
        return (at(i + 1) * left + at(i) * right) * (1 + 16 * UNIT + 1e-9 * (left - right) ** 2)

    return delta


def _point(most: float, i: int) -> float:
    return float(most * 2.0 ** (-i / POINTS_PER_OCTAVE))


@dataclass(frozen=True, slots=True)
class _Hull:
    r"""Knots of the hull: multiples of ``unit`` in the loss, x, and the excess over :math:`(1-\alpha)_+`."""

    unit: float
    index: Wholes
    x: Reals
    excess: Reals

    @property
    def chords(self) -> tuple[Reals, Reals]:
        """Rise and run of the excess: from 0 to the first knot, between knots, and level beyond the last."""
        rises = np.concatenate([self.excess[:1], np.diff(self.excess), [0.0]])
        return rises, np.concatenate([[1 + self.x[0]], np.diff(self.x), [math.inf]])

    def loss(self, coarsest: int) -> PrivacyLossDistribution:
        """Privacy loss distribution on a grid of ``coarsest`` units; masses are rounded up."""
        (rises, runs), alpha = self.chords, 1 + self.x
        relative = np.concatenate([[1.0], np.maximum(np.abs(self.x[1:]), np.abs(self.x[:-1])) / np.diff(self.x), [0.0]])
        # Slopes times alpha, in this order: the slope alone may underflow.
        left, right = rises[:-1] / (runs[:-1] / alpha), rises[1:] / (runs[1:] / alpha)
        rounding = 4 * UNIT * (np.abs(left) * (2 + relative[:-1]) + np.abs(right) * (2 + relative[1:]))
        masses = np.maximum(right - left + (self.index == 0) + rounding + (4 * SMALLEST), 0) * (1 + 8 * UNIT)
        nothing = float(rises[0] / runs[0])
        return PrivacyLossDistribution(
            self.unit * coarsest, self.index // coarsest, masses, float(self.excess[-1]), nothing
        )

    def excesses(self, rate: float, log_mass: float) -> Reals:
        """By interval, the possible excess of log delta, for one mechanism under this tilt and tilted mass."""
        (rises, runs), alpha = self.chords, 1 + self.x[1:]
        falls, last = np.append(self.index, 1) <= 0, len(alpha)
        left, here, right = (
            rises[i : i + last] / (runs[i : i + last] / alpha) - alpha * falls[i : i + last] for i in range(3)
        )
        before, beyond = np.maximum(here - left, 0), np.maximum(right - here, 0)
        curvature = before * (beyond / np.maximum(before + beyond, SMALLEST))  # against underflow
        with np.errstate(divide="ignore"):
            logs = np.log(curvature) + 2 * np.log(runs[1:-1] / alpha) + rate * self.unit * self.index[1:]
        return np.asarray(np.exp(np.minimum(logs + math.log(rate) + math.log1p(rate) - math.log(2) - log_mass, 100.0)))

    def thinned(self) -> "_Hull":
        """Every other knot on both sides of 0, and the endpoints: a coarser bound, for the error estimate."""
        middle = int(np.flatnonzero(self.index == 0)[0])
        kept = (np.arange(len(self.index)) - middle) % 2 == 0
        kept[[0, -1]] = True
        return _Hull(self.unit, self.index[kept], self.x[kept], self.excess[kept])


class ProfilePoints:
    """Values of a curve at integer multiples of ``end / N_GRID``, cached; negative ones are the other direction."""

    def __init__(self, curve: PrivacyProfile, end: float, geometric: bool = False) -> None:
        first = 8  # initial points
        self.curve, self.unit = curve, end / N_GRID
        self.ahead: dict[int, float] = {}
        self.behind = self.ahead if curve.backward is None else {}
        start = {*range(N_GRID // first, N_GRID + 1, N_GRID // first)}
        if geometric:
            start |= {round(N_GRID * 2 ** (-i / 8)) for i in range(8 * N_GRID.bit_length() - 8)}
        self.add([0, *start, *(-index for index in start)])

    def add(self, indices: Iterable[int]) -> bool:
        """Evaluate at these multiples; whether any was new."""
        before = len(self.ahead) + len(self.behind)
        for index in indices:
            self._evaluate(index, index < 0)
            if index == 0:
                self._evaluate(index, True)
        return len(self.ahead) + len(self.behind) > before

    def _evaluate(self, index: int, backward: bool) -> None:
        values, at = (self.behind, self.curve.backward) if backward else (self.ahead, self.curve.forward)
        epsilon = self.unit * abs(index)
        if abs(index) not in values:
            value = (at or self.curve.forward)(epsilon) if epsilon < self.curve.at_most else 0.0
            values[abs(index)] = min(max(value, 0.0), 1.0)

    def bisect(self, hull: _Hull, chosen: Wholes) -> bool:
        """Bisect the chosen intervals, up to ``MAX_POINTS`` points; whether any point was new."""
        pairs = [(int(hull.index[i]), int(hull.index[i + 1])) for i in chosen]
        middles = [(low + high) // 2 for low, high in pairs if high - low > 1]
        return self.add(middles) if max(len(self.ahead), len(self.behind)) < MAX_POINTS else False

    def refine_zero(self, hull: _Hull) -> bool:
        """Refine the ends of the chord across 0 if the value at 0 is on it; whether any point was new."""
        middle = int(np.flatnonzero(hull.index == 0)[0])
        ends = 0 < middle < len(hull.index) - 1
        if not ends or min(self.ahead[0], self.behind[0]) <= (1 + 1e-3) * hull.excess[middle]:
            return False
        wanted = []
        for sign, values in ((1, self.ahead), (-1, self.behind)):
            end = abs(int(hull.index[middle + sign]))
            inside = max(index for index in values if index < end)
            wanted += [sign * (end + inside) // 2] if end - inside > (1 / 32) * end else []
        return self.add(wanted)

    def hull(self) -> _Hull:
        """Lower convex hull of the points, separately on both sides of 0, from the lowest chord across it."""
        right, ahead = self._side(self.ahead)
        left, behind = self._side(self.behind)
        ahead[0] = behind[0] = self._at_zero()
        x_right, x_left = np.expm1(self.unit * right), np.expm1(-self.unit * left)
        kept = _lower_hull(x_right, ahead)[1:]
        mirrored, excess = np.append(x_left, -1.0)[::-1], np.append(behind * (1 + x_left), 0.0)[::-1]
        lower = _lower_hull(mirrored, excess)[1:]
        index = np.concatenate([-left[::-1][lower - 1], right[kept]])
        x, w = np.concatenate([mirrored[lower], x_right[kept]]), np.concatenate([excess[lower], ahead[kept]])
        return _Hull(self.unit, index, x, w)

    def _side(self, values: dict[int, float]) -> tuple[Wholes, Reals]:
        """Sorted indices, with the running minimum of the values (profiles are nonincreasing)."""
        indices = sorted(values)
        return np.array(indices), np.minimum.accumulate([values[index] for index in indices])

    def _at_zero(self) -> float:
        r"""Value at 0 by the best chord across it: :math:`\tanh(\varepsilon/2) + (u+u')/(1+e^\varepsilon)`."""
        best = 1.0
        for index in self.ahead.keys() & self.behind.keys():
            epsilon = self.unit * index
            total = self.ahead[index] + self.behind[index]
            best = min(best, math.tanh(epsilon / 2) + total * math.exp(-epsilon) / (1 + math.exp(-epsilon)))
        return best * (1 + 4 * UNIT)


def _lower_hull(x: Reals, y: Reals) -> Wholes:
    """Indices of the lower convex hull of points sorted by x, endpoints included."""
    kept: list[int] = []
    for i in range(len(x)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[b]) < (y[i] - y[b]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)


Parts = Sequence[tuple[PrivacyProfile, int]]


def composed_epsilon(parts: Parts, delta: float, accuracy: float = RTOL_DELTA) -> Certified:
    """Least epsilon at which the composition keeps ``delta`` (upper); ``inf`` where none will do.

    Parameters
    ----------
    parts : sequence of (PrivacyProfile, int)
        Each curve with the number of mechanisms that it bounds.  All are of one adjacency; for add-remove all are of
        one direction, and the other one is the composition of the exchanged pairs.
    delta : float in [0, 1]
    accuracy : float
        Relative error in terms of delta; points are added until it is met, at most ``MAX_POINTS``.
    """
    rtol = 1e-4  # accuracy relative to epsilon, if coarser: for tiny deltas
    delta = check(delta=delta)["delta"]
    most = _most(parts)
    if delta == 0 or delta == 1:
        return Certified(most if delta == 0 else 0.0, 0.0)
    if _is_one(parts):
        return _single_epsilon(parts[0][0], delta)
    if most <= MIN_EPSILON:
        return Certified(most, most)
    coarser: _Composition | None = None
    best = Certified(math.inf, 0.0)
    for div in REFINEMENTS:
        found = _compose(parts, delta, lambda law: law.tilt_for(math.log(delta)), accuracy / div, rtol / div, coarser)
        if found is coarser:
            break
        coarser = found
        if found.is_long:
            tilt = found.law.chernoff_tilt(delta)
            epsilon = min(most, found.law.chernoff(delta, tilt))
            return Certified(epsilon, min(epsilon, math.sqrt(tilt.variance)))
        epsilon, rate = found.law.epsilon(delta, most), _rate(found.tilt)
        if math.isinf(epsilon):
            return best
        change = found.thinned.epsilon(delta, most) - epsilon
        best = min(best, Certified(epsilon, min(max(found.doubt / rate, change), epsilon)))
        target = max(accuracy, rtol * rate * epsilon)
        # Converged, or limited by the errors of the values or by the number of points.
        if change * rate <= 4 * target or found.doubt > 2.0 * target / div:
            break
    if 0 < best < math.sqrt(found.law.tilt(0.0).variance) and composed_delta(parts, 0.0, accuracy) <= delta:
        return Certified(0.0, 0.0)  # within the spread of the sum the answer may be several times too large
    return best


def composed_delta(parts: Parts, epsilon: float, accuracy: float = RTOL_DELTA) -> Certified:
    """Delta of the composition at ``epsilon`` (upper); the parameters are those of :func:`composed_epsilon`."""
    epsilon = check(epsilon=epsilon)["epsilon"]
    if epsilon >= _most(parts):
        return Certified(0.0, 0.0)
    if _is_one(parts):
        value = min(max(parts[0][0].forward(epsilon), 0.0), 1.0)
        return Certified(value, parts[0][0].error * value)
    expected, best = 1e-12, Certified(1.0, 0.0)
    coarser: _Composition | None = None
    for div in REFINEMENTS:
        found = _compose(parts, expected, lambda law: law.tilt_to(epsilon), accuracy / div, coarser=coarser)
        if found is coarser:
            break
        coarser = found
        for _ in range(5):
            bound = math.exp(min(max(found.tilt.log_mass - found.tilt.t * epsilon - 10, -690.0), 0.0))
            if bound >= expected:
                break
            expected = bound
            found = _compose(parts, expected, lambda law: law.tilt_to(epsilon), accuracy / div)
        if found.is_long:
            delta = probability(found.law.log_chernoff(epsilon))
            return Certified(delta, delta)
        log_delta = found.law.log_delta(epsilon)
        change = found.thinned.log_delta(epsilon) - log_delta if log_delta > -math.inf else 0.0
        delta = probability(log_delta)
        best = min(best, Certified(delta, delta * min(max(found.doubt, change), 1.0)))
        if change <= 4 * accuracy or found.doubt > 2.0 * accuracy / div:
            break
    return best


def _is_one(parts: Parts) -> bool:
    """Whether the composition is a single mechanism: its values are the answer."""
    return len(parts) == 1 and parts[0][1] == 1


def _single_epsilon(curve: PrivacyProfile, delta: float) -> Certified:
    """Least epsilon of one mechanism, and its decrease for values smaller by their error."""

    def least(error: float) -> float:
        def log_delta(epsilon: float) -> float:
            value = curve.forward(epsilon) if epsilon < curve.at_most else 0.0
            return math.log(value) - math.log1p(error) if value > 0 else -math.inf

        return smallest_epsilon(log_delta, delta, curve.at_most)

    found = least(0.0)
    return Certified(found, found * (1 + WIDTH) - least(curve.error) if math.isfinite(found) else 0.0)


def together(
    parts: Parts, times: int, delta: float, symmetric: bool = False, accuracy: float = RTOL_DELTA
) -> PrivacyProfile:
    """The composition of a few mechanisms as one curve, to be composed ``times`` times for an answer near ``delta``.

    A valid bound for every use; points are placed for the stated one.  ``symmetric``: swapping all pairs gives the same
    composition, as for a pair and its swapped pair.
    """
    times, delta = check(times=times, slack_delta=delta).values()
    most = _most(parts)
    if times * most <= MIN_EPSILON:
        return PrivacyProfile(
            lambda at: above(max(0.0, -math.expm1(at - most)) / (1 + math.exp(-most)), 8), at_most=most
        )
    longer = [(curve, count * times) for curve, count in parts]
    found = _tabulated(longer, 0.01 * DELTA_TAIL * delta, lambda law: law.tilt_for(math.log(delta)), accuracy)
    losses = [(loss, count) for (loss, _), (_, count) in zip(found.law.parts, parts, strict=True)]
    return _as_curve(losses, most, symmetric)


def dominating_pair_of(curve: PrivacyProfile, times: int, delta: float, accuracy: float = RTOL_DELTA) -> DominatingPair:
    """A dominating pair of the mechanism bounded by the curve, with one cell for each loss.

    As :func:`together`, a valid bound for every use; points are placed for ``times`` and ``delta``.
    """
    times, delta = check(times=times, slack_delta=delta).values()
    found = _tabulated([(curve, times)], 0.01 * DELTA_TAIL * delta, lambda law: law.tilt_for(math.log(delta)), accuracy)
    [(loss, _)] = found.law.parts
    losses = np.concatenate([[-math.inf], loss.losses, [math.inf]])
    base = np.concatenate([[loss.nothing], loss.masses * np.exp(-loss.losses), [0.0]])
    gain = np.concatenate([[-base[0]], -loss.masses * np.expm1(-loss.losses), [loss.infinity]])
    return DominatingPair(losses, losses, base, gain, np.zeros(len(losses)))


class _Composition(NamedTuple):
    """The sum of the losses, also with every other knot, its tilt at the answer, and the uncertainty of log delta."""

    law: ComposedLosses
    thinned: ComposedLosses
    tilt: Tilt
    doubt: float
    is_long: bool = False
    """Too long for one transform, with losses too large for stages: the answer is the Chernoff bound."""
    is_whole: bool = False
    """Long, but a single transform."""

    @property
    def mean(self) -> float:
        """The larger of the tilted and the untilted mean of the losses."""
        return max(self.tilt.mean, self.law.tilt(0.0).mean)


def _most(parts: Parts) -> float:
    """Epsilon of pure privacy by basic composition, or ``inf``."""
    if not parts:
        raise DomainError("parts must hold at least one curve with its number of times")
    for _, times in parts:
        times = check(times=times)["times"]
    return sum_above(*((times, curve.at_most) for curve, times in parts))


def _compose(
    parts: Parts,
    delta: float,
    tilt_of: Callable[[ComposedLosses], Tilt],
    accuracy: float,
    relative: float = 0.0,
    coarser: _Composition | None = None,
) -> _Composition:
    """The composition for an answer near ``delta``; very long ones in stages, each tabulated anew.

    Where ``coarser`` was a single transform, and this one would need stages, which are less accurate: ``coarser``.
    """
    coarse = 1.0  # accuracy of the first evaluation of the mean loss
    taper = 0.1  # factor of the tail mass for each further stage
    max_mean = 200.0  # mean of the losses beyond which sums are not taken in stages
    longest, stages = max(times for _, times in parts), 0
    if longest <= MAX_TRANSFORMED:
        return _tabulated(parts, delta * DELTA_TAIL, tilt_of, accuracy, relative=relative)
    if longest <= 2**30:  # mechanisms in one transform with few points
        for wanted in (coarse, accuracy):
            found = _tabulated(parts, delta * DELTA_TAIL, tilt_of, wanted, relative=relative)
            if found.law.extent(found.tilt)[1] > 5 * 2**20:  # points of such a transform at most
                break
        else:
            return found._replace(is_whole=True)
        if coarser and coarser.is_whole:
            return coarser
    while longest > MAX_TRANSFORMED * GROUP_SIZE**stages:
        stages += 1
    found = _tabulated(parts, delta * DELTA_TAIL * taper**stages, tilt_of, coarse, relative=coarse / 10)
    if found.mean <= 2 * max_mean:
        found = _tabulated(parts, delta * DELTA_TAIL * taper**stages, tilt_of, accuracy, relative=relative)
    doubt = found.doubt
    if found.mean > max_mean:
        # Points do not depend on delta, so that the Chernoff bound is monotone in it.
        found = _tabulated(parts, 0.0, lambda law: law.chernoff_tilt(1e-300), accuracy, True)
        return found._replace(is_long=True)
    for stage in range(1, stages + 1):
        parts = [_grouped(curve, times, loss) for (curve, times), (loss, _) in zip(parts, found.law.parts, strict=True)]
        found = _tabulated(parts, delta * DELTA_TAIL * 0.01 ** (stages - stage), tilt_of, accuracy, relative=relative)
        doubt += found.doubt
    return found._replace(doubt=doubt)


def _grouped(curve: PrivacyProfile, times: int, loss: PrivacyLossDistribution) -> tuple[PrivacyProfile, int]:
    """Profile of a group of mechanisms, and the number of groups, rounded up."""
    size = GROUP_SIZE if times > MAX_TRANSFORMED else 1
    return _as_curve([(loss, size)], size * curve.at_most, curve.backward is None), -(-times // size)


def _as_curve(parts: Sequence[tuple[PrivacyLossDistribution, int]], at_most: float, symmetric: bool) -> PrivacyProfile:
    """The profile of a sum of losses."""
    ahead, behind = ComposedLosses(parts), ComposedLosses([(loss.swapped(), times) for loss, times in parts])
    return PrivacyProfile(ahead.profile(), None if symmetric else behind.profile(), at_most)


def _tabulated(
    parts: Parts,
    spared: float,
    tilt_of: Callable[[ComposedLosses], Tilt],
    accuracy: float,
    geometric: bool = False,
    relative: float = 0.0,
) -> _Composition:
    """Refine points until the possible excess of log delta, or the relative one of epsilon, meets the accuracy."""
    # Mean losses and the relative accuracy of epsilon beyond each.
    tolerances = ((1e4, 1e-2), (100.0, 1e-3))
    floor = spared / sum(times for _, times in parts)
    end = max(_last_epsilon(curve, floor) for curve, _ in parts)
    knots = [ProfilePoints(curve, end, geometric) for curve, _ in parts]
    while True:
        hulls = [knot.hull() for knot in knots]
        coarsest = int(np.gcd.reduce(np.concatenate([hull.index for hull in hulls])))
        losses = [hull.loss(coarsest) for hull in hulls]
        law = ComposedLosses([(loss, times) for loss, (_, times) in zip(losses, parts, strict=True)])
        tilt = tilt_of(law)
        rate = _rate(tilt)
        excesses = [
            times * hull.excesses(rate, loss.tilted(rate)[0])
            for hull, loss, (_, times) in zip(hulls, losses, parts, strict=True)
        ]
        all_excesses, value_error = np.concatenate(excesses), _value_error(parts, losses, rate)
        threshold = max(float(all_excesses.max()) / 6, accuracy / (2 * len(all_excesses)))
        share = max(relative, next((share for mean, share in tolerances if tilt.mean > mean), 0.0))
        tolerance = max(value_error, share * rate * tilt.mean)
        if tilt.variance < law.step**2:
            # A single loss dominates the tilted distribution.
            tolerance = min(tolerance, 0.5)
        done = float(all_excesses.sum()) <= max(accuracy, tolerance)
        chosen = [np.flatnonzero(excess > threshold) for excess in excesses]
        if not done and sum(knot.bisect(hull, rows) for knot, hull, rows in zip(knots, hulls, chosen, strict=True)):
            continue
        if not sum(knot.refine_zero(hull) for knot, hull in zip(knots, hulls, strict=True)):
            thin = [(hull.thinned().loss(coarsest), times) for hull, (_, times) in zip(hulls, parts, strict=True)]
            return _Composition(law, ComposedLosses(thin), tilt, float(all_excesses.sum()) + value_error)


def _value_error(parts: Parts, losses: Sequence[PrivacyLossDistribution], rate: float) -> float:
    """Excess of log delta by the errors of the values."""
    logs = (times * curve.error * loss.tilted(rate)[0] for (curve, times), loss in zip(parts, losses, strict=True))
    return sum(max(log, 0.0) for log in logs)


def _rate(tilt: Tilt) -> float:
    """The tilt, or if larger one over the standard deviation."""
    return max(tilt.t, 1 / math.sqrt(tilt.variance)) if tilt.variance else max(tilt.t, 1.0)


def _last_epsilon(curve: PrivacyProfile, floor: float) -> float:
    """Approximately the least epsilon with both directions at most ``floor``, or at their minimum."""
    most = min(curve.at_most, MAX_LOSS)
    floor = max(floor, 1.001 * curve.larger(most) if most < curve.at_most else 0.0)
    low, high = 0.0, most if curve.at_most <= MAX_LOSS else 1.0
    while high < most and curve.larger(high) > floor:
        low, high = high, min(2 * high, most)
    for _ in range(40):
        if high <= 1.2 * low:
            break
        middle = math.sqrt(max(low, 1e-4 * high) * high) if high > 8 * low else (low + high) / 2
        low, high = (low, middle) if curve.larger(middle) <= floor else (middle, high)
    return high
