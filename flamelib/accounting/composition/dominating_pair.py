r"""Composition of pairs that are known outright, cell by cell: delta at an epsilon and epsilon for a delta.

For laws (P, Q) split the outcomes into cells.  Of a cell let b be Q's mass and b + g that of P, and let the loss
:math:`\log(p/q)` lie in :math:`[l, l']` on it.

*From above.*  The mass of every cell moves to the grid points that enclose its losses, keeping both P's mass and Q's:
a pair that dominates, and so do its products.  The step is halved until a doubled one makes hardly any difference, and
that difference is reported.

*From below.*  A coarser view of the outcomes shows less.  Cells are joined in the order of their losses, the
last one in part, until the loss of the union is a point of the grid; what is left over in the end is rounded down.  A
larger Q shows less as well, so that few losses are also rounded down one by one, on a grid that begins at a likely
loss.

What joining adds is of second order in the width.  Masses are differences of distribution functions: ``error`` bounds
the error of g; b has a relative one of at most ``RTOL_MASS``.  Both are counted on the safe side.  Sums are those of
:mod:`flamelib.accounting.composition.privacy_loss_distribution`.  Proofs: book, chapter on FLAME, section on how a
vector's budget is computed.

Source: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, Connect the Dots, 2022; Zhu, Dong, Wang 2022 (products of
dominating pairs dominate adaptive compositions; proven there as well).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from flamelib.accounting.composition.privacy_loss_distribution import ComposedLosses, PrivacyLossDistribution, Tilt
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.extras import extra
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import MAX_EXPONENT, MIN_DELTA, UNIT, logaddexp, probability, sum_above
from flamelib.core.search import largest, smallest_epsilon
from flamelib.core.vocabulary import DomainError

if TYPE_CHECKING:
    from dp_accounting.pld import privacy_loss_distribution as google

RTOL_MASS = 1e-11  # relative error of Q's masses
MIN_Q_MASS = 1e-290  # mass of Q below which digits are lost
MAX_GRID = 2**21  # points of a grid of sums at most
MAX_MECHANISMS = 2**22  # mechanisms in a sum at most: round-off of more is too much
MIN_STEP = 0.1 / MAX_GRID  # least step of grids from below
STEP_PER_SPREAD = 0.05  # step of a grid, in units of the root mean square loss
ATOL_LOG_DELTA = 0.02  # effect of the grid on the logarithm of delta
COARSE_STEP = 8  # step of the grid on which sizes are estimated, in steps
TAIL_MASS_LOSS = 1e-14  # mass of the largest losses that is given up at first
NEGLIGIBLE_DELTA = 1e-40  # delta that need not be accurate
MIN_TAIL_MASS = 1e-306  # mass of the largest losses that is always given up


@dataclass(frozen=True, slots=True)
class DominatingPair:
    """For each cell least and greatest loss, Q's mass, by how much P's is larger, and the error of that.

    ``mass`` is that of P, where it is known better than as a sum: it has a relative error of at most ``RTOL_MASS``.
    """

    low: Reals
    high: Reals
    base: Reals
    gain: Reals
    error: Reals
    mass: Reals | None = None

    def some(self, kept: NDArray[np.bool_]) -> "DominatingPair":
        """A selection."""
        mass = None if self.mass is None else self.mass[kept]
        return DominatingPair(self.low[kept], self.high[kept], self.base[kept], self.gain[kept], self.error[kept], mass)

    def swapped(self) -> "DominatingPair":
        """The cells of (Q, P); what is now ``base`` may be too small, by twice the error, where no mass is given."""
        base = np.maximum(self.base + self.gain - self.error, 0) if self.mass is None else self.mass
        return DominatingPair(
            -self.high, -self.low, base, -self.gain, self.error, None if self.mass is None else self.base
        )

    @property
    def second_moment(self) -> float:
        """Of the finite losses, from above."""
        ends = np.where(np.isfinite(self.low), self.low, 0.0), np.where(np.isfinite(self.high), self.high, 0.0)
        return float(np.maximum(self.base + self.gain, 0) @ np.maximum(*map(np.abs, ends)) ** 2)

    @property
    def range(self) -> float:
        """Largest finite loss minus the smallest."""
        ends = np.concatenate([self.low, self.high])
        ends = ends[np.isfinite(ends)]
        return float(np.ptp(ends)) if len(ends) else 0.0

    @property
    def variation(self) -> float:
        """Total variation, from above: the gain of cells of one sign, the mass of others."""
        most = np.where(self.low >= 0, self.gain, self.base * (1 + RTOL_MASS) + self.gain) + self.error
        return float(np.where(self.high <= 0, 0.0, most).sum()) * (1 + RTOL_MASS)

    def delta(self, epsilon: float) -> float:
        """Delta of one mechanism, about and in this order."""
        with np.errstate(over="ignore"):
            return float(np.maximum(self.gain - self.base * np.expm1(min(epsilon, MAX_EXPONENT)), 0).sum())


def both_orders(cells: DominatingPair) -> DominatingPair:
    """A pair that dominates (P, Q) and (Q, P): the positive losses of the one, the negative ones of the other.

    For (P, Q) whose profile is the larger one above 1, in cells without losses of both signs.
    """
    ahead = cells.some((cells.low >= 0) & (cells.high > 0))
    back = ahead.swapped()
    rest = max(0.0, 1 - float((ahead.base + ahead.gain).sum() + (back.base + back.gain).sum()))
    return joined([ahead, back, alike(rest, RTOL_MASS / 10)])


def joined(parts: Sequence[DominatingPair]) -> DominatingPair:
    """All cells of several lists."""
    names = ("low", "high", "base", "gain", "error")
    return DominatingPair(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def alike(mass: float, error: float = 0.0) -> DominatingPair:
    """One cell of outcomes that are equally likely under both laws."""
    return DominatingPair(*np.array([[0.0], [0.0], [mass], [0.0], [error]]))


def above(cells: DominatingPair, step: float) -> PrivacyLossDistribution:
    """The losses on multiples of ``step``, by a pair that dominates; only P's masses are meant to be used."""
    shown = np.isposinf(cells.high)
    gain = cells.gain + cells.error
    mass = np.maximum(cells.base * (1 + RTOL_MASS) + gain, 0) * (1 + len(gain) * UNIT)
    high = np.where(shown | np.isneginf(cells.high), 0.0, cells.high)
    low = np.where(shown | np.isneginf(cells.low), high, cells.low)
    last = np.ceil(high / step + 4 * UNIT * np.abs(high / step))
    first = np.where(np.isneginf(cells.low), last, np.floor(low / step - 4 * UNIT * np.abs(low / step)))
    steep = np.expm1(np.minimum(step * first, MAX_EXPONENT))
    moved = gain - cells.base * (steep - RTOL_MASS * np.abs(steep))
    wide = -np.expm1(step * np.minimum(first - last, -1))
    coarse = (first == last) | (step * first >= MAX_EXPONENT) | (cells.base < MIN_Q_MASS)
    up = np.where(coarse, mass, np.clip(moved / wide * (1 + 8 * UNIT), 0, mass))
    up, down = np.where(shown, 0.0, up), np.where(shown, 0.0, mass - up)
    return _law(step, np.concatenate([first, last]), np.concatenate([down, up]), float(mass[shown].sum()))


def coarser(loss: PrivacyLossDistribution) -> PrivacyLossDistribution:
    """The same from above on a grid twice as wide."""
    odd = loss.index % 2 == 1
    up = np.where(odd, loss.masses / (1 + math.exp(-loss.step)) * (1 + 4 * UNIT), 0.0)
    index = np.concatenate([loss.index - odd, loss.index + odd]) // 2
    return _law(2 * loss.step, index, np.concatenate([loss.masses - up, up]), loss.infinity)


def _law(step: float, index: Reals | Wholes, masses: Reals, infinity: float) -> PrivacyLossDistribution:
    """Masses of equal index together."""
    places, masses = index[masses > 0].astype(np.int64), masses[masses > 0]
    if len(places) == 0:
        return PrivacyLossDistribution(step, np.array([0]), np.array([0.0]), infinity, 0.0)
    first = int(places.min())
    if int(places.max()) - first > 4 * len(places):  # places a mass from which those without one are not listed
        filled, places = np.unique(places, return_inverse=True)
        total = np.asarray(np.bincount(places, masses), dtype=np.float64)
        return PrivacyLossDistribution(step, filled, total, min(infinity, 1.0), 0.0)
    total = np.asarray(np.bincount(places - first, masses), dtype=np.float64)
    filled = np.flatnonzero(total).astype(np.int64)
    return PrivacyLossDistribution(step, filled + first, total[filled], min(infinity, 1.0), 0.0)


def below(cells: DominatingPair, step: float) -> PrivacyLossDistribution:
    """The losses on multiples of ``step``, by a coarser view of the outcomes; what would exceed 700 is 700."""
    base, gain = _sure(cells)
    order = np.argsort(gain / base)
    places, masses = [], []
    bases, gains, target, rise = 0.0, 0.0, 0, 0.0
    for b, g in zip(base[order].tolist(), gain[order].tolist(), strict=True):
        lacking, offer = rise * bases - gains, g - rise * b
        if bases and offer >= lacking:
            part = min(lacking / offer, 1.0) if lacking > 0 else 0.0
            places.append(target)
            masses.append((bases + part * b) * (1 + rise))
            b, g, bases, gains = (1 - part) * b, (1 - part) * g, 0.0, 0.0
        if not bases and b > 0:
            target = math.floor(math.log1p(g / b) / step) + 1
            rise = math.expm1(step * target)
        bases, gains = bases + b, gains + g
    if bases:
        places.append(target - 1)
        masses.append(bases + gains)
    return _law(step, np.array(places, dtype=float), np.array(masses) * (1 - 4 * RTOL_MASS), 0.0)


def rounded_down(cells: DominatingPair, step: float) -> tuple[PrivacyLossDistribution, float]:
    """The same, every loss rounded down by itself, and where the grid begins: it is to be added to every loss.

    Q's masses are made larger, by the first order of the step.  Likely losses, which would be joined with rare larger
    ones, are kept apart, and one of the likeliest is not rounded at all: the one with which least is lost.
    """
    base, gain = _sure(cells)
    losses, masses = np.log1p(gain / base), (base + gain) * (1 - 4 * RTOL_MASS)
    likeliest = losses[np.argsort(-masses)[:16]]  # number of likeliest losses at which the grid may begin
    begins = np.append(likeliest - step * np.ceil(likeliest / step) - 32 * UNIT * np.abs(likeliest), 0.0)
    begin = float(min(begins, key=lambda at: float(masses @ np.mod(losses - at, step))))
    places = (losses - begin) / step
    return _law(step, np.floor(places - 8 * UNIT * np.abs(losses) / step), masses, 0.0), begin


def _sure(cells: DominatingPair) -> tuple[Reals, Reals]:
    """Q's masses and by how much P's are larger, on the side that shows less, of the cells that are known."""
    base = (cells.base + 2 * cells.error) * (1 + RTOL_MASS)
    gain = cells.gain - 3 * cells.error - 2 * RTOL_MASS * np.maximum(-cells.gain, 0)  # base and gain in proportion
    base = np.maximum(base, np.maximum(gain / math.expm1(MAX_EXPONENT), 5e-324))
    # Relative error of a cell's mass from which it is left out.
    kept = (cells.error < 0.1 * (cells.base + cells.gain)) & (base + gain > 0) & (cells.high < math.inf)
    return base[kept], gain[kept]


Parts = Sequence[tuple[DominatingPair, int]]


@dataclass(frozen=True, slots=True)
class DeltaAt:
    """What is the logarithm of delta at this epsilon?

    A good tilt, the answer from above, its move and the doubt, and the effect of the grid that is wanted at most.
    """

    epsilon: float

    def tilt(self, law: ComposedLosses) -> Tilt:
        return law.tilt_to(self.epsilon)

    def answer(self, law: ComposedLosses, tilt: Tilt) -> float:
        if _count(law.parts) == 1:
            return _log_delta_once(law, self.epsilon)
        if _count(law.parts) <= MAX_MECHANISMS:
            return law.log_delta(self.epsilon, tilt)
        return min(logaddexp(law.log_infinity, tilt.log_mass - tilt.t * self.epsilon), 0.0)

    def doubts(self, moved: float, rest: float, t: float) -> tuple[float, float]:
        return moved, moved / 2 + rest

    def effect(self, value: float) -> float:
        return ATOL_LOG_DELTA if value > math.log(NEGLIGIBLE_DELTA) else ATOL_LOG_DELTA / 2


@dataclass(frozen=True, slots=True)
class LeastEpsilon:
    """What is the least epsilon for this delta?  The same; the move is as of the logarithm of delta."""

    delta: float

    def tilt(self, law: ComposedLosses) -> Tilt:
        return law.tilt_for(math.log(self.delta)) if self.delta else law.tilt(0.0)

    def answer(self, law: ComposedLosses, tilt: Tilt) -> float:
        if self.delta == 0:
            return max(law.most, 0.0) if law.log_infinity == -math.inf else math.inf
        if _count(law.parts) == 1:
            end = max(law.most, 0.0) if _log_delta_once(law, law.most) <= math.log(self.delta) else math.inf
            return smallest_epsilon(lambda epsilon: _log_delta_once(law, epsilon), self.delta, end)
        if _count(law.parts) > MAX_MECHANISMS:
            return law.chernoff(self.delta, law.chernoff_tilt(self.delta))
        return law.epsilon(self.delta, math.inf, tilt)

    def doubts(self, moved: float, rest: float, t: float) -> tuple[float, float]:
        return moved * t, moved / 2 + rest / max(t, 1.0)

    def effect(self, value: float) -> float:
        return ATOL_LOG_DELTA if self.delta > NEGLIGIBLE_DELTA else ATOL_LOG_DELTA / 2


_Question = DeltaAt | LeastEpsilon


def composed(parts: Parts, epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Delta at ``epsilon``, or least epsilon for ``delta``, of the composition in its worse order (upper).

    Each pair comes with the number of mechanisms that it dominates; in the other order all pairs are exchanged.  The
    ``uncertainty`` is the estimated effect of the grid, already on the safe side.
    """
    shares = 2 * (1e-4, 1e-2, 0.2)  # shares of delta for the largest losses, in turn
    drops = 40 * (1e-8,)  # further shares, as long as these are all of the answer
    most = sum(times * cells.variation for cells, times in parts)
    if epsilon is None:
        if delta is None or delta >= min(most, 1.0):
            return Certified(0.0, 0.0)
        value, doubt = _worse(parts, LeastEpsilon(delta), 1e-4 * delta)
        return Certified(value, min(doubt, value) if math.isfinite(value) else 0.0)
    if most < NEGLIGIBLE_DELTA:
        return Certified(most, most)
    beyond = max(_beyond(order, epsilon) for order in _orders(parts))
    if beyond < 1:
        return Certified(min(math.nextafter(beyond, 2), most), 0.0)
    for spared in _sparable(parts, epsilon):
        enough = math.log(1e4 * spared) if spared > MIN_TAIL_MASS else -math.inf
        value, doubt = _worse(parts, DeltaAt(epsilon), spared, enough)
        if value > enough:
            break
    gained = -math.inf
    for turn, share in enumerate(shares + drops if value > math.log(MIN_DELTA) else ()):
        if turn >= len(shares) and gained < 1:  # else what was spared is still all of the answer
            break
        # What the answer can spare decides how far sums reach, and so how fine their grid can be.
        again, doubt_again = _worse(parts, DeltaAt(epsilon), max(share * probability(value), MIN_TAIL_MASS))
        gained = value - again
        if gained > 0:
            value, doubt = again, doubt_again
        if gained < ATOL_LOG_DELTA / 4 and doubt <= ATOL_LOG_DELTA:
            break
    found = min(probability(value), most)
    return Certified(found, found * min(doubt, 1.0))


def _beyond(order: Parts, epsilon: float) -> float:
    """Delta where all finite losses together stay below ``epsilon``: that some loss is infinite; else 1."""
    log_none = reach = 0.0
    for cells, times in order:
        finite = cells.high < math.inf
        reach += times * float(cells.high[finite].max(initial=-math.inf))
        mass = float((cells.base + cells.gain + cells.error)[~finite].sum()) * (1 + 8 * UNIT)
        log_none += times * math.log1p(-mass) if mass < 1 else -math.inf
    return -math.expm1(log_none) * (1 + 8 * UNIT) if reach * (1 + 8 * UNIT) < epsilon else 1.0


def _sparable(parts: Parts, epsilon: float) -> Iterator[float]:
    """Masses that are given to the largest losses in turn, for a delta that turns out to be far above."""
    yield TAIL_MASS_LOSS
    each = max(cells.delta(epsilon) for cells, _ in parts)
    yield from (1e-4 * guess for guess in (each * _count(parts), each) if guess > MIN_DELTA)
    spared = TAIL_MASS_LOSS
    for _ in range(2):  # without the largest losses too little is expected, with all of them too much
        spared = 1e-6 * max(_expected(order, epsilon, spared) for order in _orders(parts))
        if spared > MIN_DELTA:
            yield spared
    yield MIN_TAIL_MASS


def _expected(order: Parts, epsilon: float, spared: float) -> float:
    """About the delta of a long composition without its largest losses, by the saddle point."""
    tilt = tilted(order, epsilon, spared)
    room = math.log1p(tilt.t * (1 + tilt.t) * math.sqrt(tilt.variance))
    return math.exp(min(tilt.log_mass - tilt.t * epsilon - room, 0.0))


def tilted(order: Parts, epsilon: float, spared: float) -> Tilt:
    """About the tilt under which the sum of losses has this mean, without the largest losses of a given mass."""
    parts = [(_cut(cells, spared / _count(order)), times) for cells, times in order]
    return ComposedLosses([(above(cells, COARSE_STEP * _step(parts)), times) for cells, times in parts]).tilt_to(
        epsilon
    )


def composed_in_order(parts: Parts, spared: float, epsilon: float | None = None, delta: float | None = None) -> float:
    """As :func:`composed` in the given order alone, this mass given to the largest losses (upper)."""
    kept = [(_cut(cells, spared / _count(parts)), times) for cells, times in parts]
    if epsilon is None:
        return _settled(kept, LeastEpsilon(delta or 0.0), -math.inf)[0]
    return probability(_settled(kept, DeltaAt(epsilon), -math.inf)[0])


def composed_below(parts: Parts, epsilon: float | None = None, delta: float | None = None) -> float:
    """Delta at ``epsilon``, or epsilon for ``delta``, that the composition has in its worse order at least (lower).

    A composition that is better than ``delta`` at 0 is answered by 0.  Of more than ``MAX_MECHANISMS`` the others are
    left out, in proportion, and more of them where delta is asked for, which takes long.
    """
    if (count := _count(parts)) > MAX_MECHANISMS:
        # Part of the longest composition that is summed for a delta.
        most = MAX_MECHANISMS if epsilon is None else MAX_MECHANISMS // 64
        shorter = [(cells, times * most // count) for cells, times in parts]
        parts = [(cells, times) for cells, times in shorter if times]
    if epsilon is None and not delta:
        return 0.0
    target = delta or 0.0
    if count == 1:
        return max(_alone_below(cells, epsilon, target) for order in _orders(parts) for cells, times in order if times)
    if epsilon is None:
        best, sums = 0.0, _sums_below(parts, LeastEpsilon(target), 1e-4 * target)
        for law, begin in sorted(sums, key=lambda one: one[0].most, reverse=True):
            if law.most + begin > best:
                best = max(best, -sum_above((-1, law.epsilon_below(target)), (-1, begin)))
        return best
    for spared in (TAIL_MASS_LOSS, 0.0):
        sums = _sums_below(parts, DeltaAt(epsilon), spared)
        logs = [law.log_delta_below(sum_above((1, epsilon), (-1, begin))) for law, begin in sums]
        found = math.exp(max(logs, default=-math.inf))
        if found > 1e4 * spared:
            break
    return found


def _alone_below(cells: DominatingPair, epsilon: float | None, delta: float) -> float:
    """One mechanism in this order, cell by cell: no grid."""
    base, gain = _sure(cells)

    def at(epsilon: float) -> float:
        gains = np.maximum(gain - base * math.expm1(min(epsilon, MAX_EXPONENT)), 0)
        return float(gains.sum()) * (1 - 4 * RTOL_MASS)

    if epsilon is not None:
        return at(epsilon)
    if at(0.0) < delta:
        return 0.0
    target = math.log(delta)

    def missed(epsilon: float) -> float:
        found = at(epsilon)
        return 2 * target - math.log(found) if found > 0 else math.inf

    return largest(missed, delta, 0.0, max(math.log1p(float((gain / base).max())), 0.0))


def _orders(parts: Parts) -> tuple[Parts, Parts]:
    return parts, [(cells.swapped(), times) for cells, times in parts]


def _sums_below(parts: Parts, question: _Question, spared: float) -> list[tuple[ComposedLosses, float]]:
    """Both orders from below, without the largest losses and the smallest, of this mass at most; where each begins.

    An order of which nothing is left then is left out.
    """
    count, found = _count(parts), []
    for whole in _orders(parts):
        order = [(_without(cells, spared / count), times) for cells, times in whole]
        if not all((cells.base + cells.gain > 0).any() for cells, _ in order):
            continue
        step = _sized(order, question, max(_step(order), MIN_STEP))[0]
        view = ComposedLosses([(below(cells, step), times) for cells, times in order])
        # Where likely losses differ by less than the step, all outcomes can be joined, rare gains with them.
        if view.most > 0:
            found.append((view, 0.0))
        # Number of losses up to which these are also rounded one by one.
        if view.most <= 0 or max(len(cells.base) for cells, _ in order) <= 1000:
            found.append(_one_by_one(order, question))
    return found


def _one_by_one(order: Parts, question: _Question) -> tuple[ComposedLosses, float]:
    """The sum of losses that are rounded down by themselves, and where it begins, rounded down."""
    # Points of the grid of one mechanism: more gain a hundredth.
    step = max(max(cells.range for cells, _ in order) / 2**16, MIN_STEP)
    while True:
        parts = [(rounded_down(cells, step), times) for cells, times in order]
        law = ComposedLosses([(loss, times) for (loss, _), times in parts])
        if law.extent(question.tilt(law))[1] <= 2**20:  # points of a window of the sum at most
            return law, -sum_above(*((-times, begin) for (_, begin), times in parts))
        step *= 2


def _worse(parts: Parts, question: _Question, spared: float, enough: float = -math.inf) -> tuple[float, float]:
    """The larger answer of both orders, and the doubt about it; of delta this much is given to the largest losses."""
    count, orders = _count(parts), _orders(parts)
    one, two = ([(_cut(cells, spared / count), times) for cells, times in order] for order in orders)
    first = _settled(one, question, enough)
    return max(first, _settled(two, question, max(first[0], enough)))


def _cut(cells: DominatingPair, spared: float) -> DominatingPair:
    """The largest losses, of this mass at most, counted as infinite, and the smallest raised: sums reach less far."""
    mass = cells.base + cells.gain + cells.error
    order = np.argsort(-cells.high)
    high = cells.high.copy()
    high[order[np.cumsum(mass[order]) <= spared]] = math.inf
    order = np.argsort(cells.low)
    floor = cells.low[order[min(int(np.searchsorted(np.cumsum(mass[order]), spared)), len(order) - 1)]]
    low = np.where(high == math.inf, high, np.maximum(cells.low, floor))
    return replace(cells, low=low, high=np.maximum(high, floor))


def _without(cells: DominatingPair, spared: float) -> DominatingPair:
    """The cells without the largest losses and the smallest, of this mass at most each: fewer outcomes show less."""
    near = _cut(cells, spared)
    return cells.some((near.high < math.inf) & (near.low <= cells.low))


def _settled(parts: Parts, question: _Question, enough: float) -> tuple[float, float]:
    """The answer on a grid that is fine enough, or any answer that is at most ``enough``, and the doubt about it."""
    step, finest = _step(parts), max(cells.range for cells, _ in parts) / MAX_GRID
    doubtful = [(replace(cells, error=3 * cells.error), times) for cells, times in parts]
    best: tuple[float, float] | None = None
    while True:
        wider, t, size = _sized(parts, question, step)
        coarse = ComposedLosses([(coarser(above(cells, wider)), times) for cells, times in doubtful])
        tilt = coarse.tilt(t)
        if wider > step or _size(coarse, tilt) > MAX_GRID:
            if best is not None:
                return best
            if _size(coarse, tilt) > MAX_GRID:
                step = 2 * wider
                continue
        step = wider
        rough = question.answer(coarse, tilt)
        if rough <= enough:
            return rough, 0.0
        fine = ComposedLosses([(above(cells, step), times) for cells, times in parts])
        value = question.answer(fine, fine.tilt(t))
        # Effect of the grid on the logarithm of delta beside what is seen.
        moved, doubt = question.doubts(abs(rough - value) if math.isfinite(value) else 0.0, 2e-3, t)
        # Step, in root mean square losses, beyond which an answer is not trusted.
        best = min(rough, value), doubt if step <= 4.0 * _spread(parts) else max(doubt, 1.0)
        if moved <= question.effect(value) or 2 * size > MAX_GRID or step <= finest:
            return best
        # The move is of second order in the step: long compositions, which need no grid, go to what will do at once.
        # Halvings of the step at once, at most.
        leap = math.log2(min(moved / question.effect(value), 4.0**6)) / 2 if _count(parts) > MAX_MECHANISMS else 1
        step /= 2 ** math.ceil(leap)


def _sized(parts: Parts, question: _Question, step: float) -> tuple[float, float, int]:
    """The step, or a wider one with which the grid of the sum has a reasonable size, a tilt, and about that size."""
    while True:
        sketch = ComposedLosses([(above(cells, COARSE_STEP * step), times) for cells, times in parts])
        tilt = question.tilt(sketch)
        size = COARSE_STEP * _size(sketch, tilt)
        if size <= MAX_GRID:
            return step, tilt.t, size
        step *= 2.0 ** math.ceil(math.log2(size / MAX_GRID))


def _step(parts: Parts) -> float:
    """A step that is small beside the losses of one mechanism."""
    return max(STEP_PER_SPREAD * _spread(parts), max(cells.range for cells, _ in parts) / MAX_GRID, 1e-300)


def _spread(parts: Parts) -> float:
    """Root mean square of the losses of one mechanism."""
    return math.sqrt(sum(times * cells.second_moment for cells, times in parts) / _count(parts))


def _size(law: ComposedLosses, tilt: Tilt) -> int:
    """Size of the grid of the sum, where one is needed."""
    return law.extent(tilt)[1] if 1 < _count(law.parts) <= MAX_MECHANISMS else 0


def _log_delta_once(law: ComposedLosses, epsilon: float) -> float:
    """Logarithm of an upper bound on delta where there is nothing to sum."""
    loss = law.parts[0][0]
    total = float((loss.masses * -np.expm1(np.minimum(epsilon - loss.losses, 0))).sum()) + loss.infinity
    return min(math.log(total) + len(loss.masses) * UNIT, 0.0) if total > 0 else -math.inf


def _count(parts: Sequence[tuple[Any, int]]) -> int:
    """Mechanisms; a single one needs no sum, beyond ``MAX_MECHANISMS`` Chernoff's bound is left."""
    return sum(times for _, times in parts)


def to_dp_accounting(cells: DominatingPair, step: float, spared: float = 0.0) -> "google.PrivacyLossDistribution":
    """The pair and its exchange, from above, as a pessimistic privacy loss distribution of Google's ``dp_accounting``.

    ``dp_accounting`` must be installed (the extra ``dp-accounting`` brings it).  Its compositions of the object err
    upwards, but for its own round-off.

    Parameters
    ----------
    cells : DominatingPair
    step : float, positive
        Distance of losses, called ``value_discretization_interval`` there; the same for all that is composed.
    spared : float in [0, 1)
        Mass of the largest losses that is counted as infinite, so that the others reach less far.
    """
    max_losses = 2**24  # points of a distribution at most
    if not (0 < step < math.inf and 0 <= spared < 1):
        raise DomainError(f"step must be a number above 0 and spared one in [0, 1), got {step!r} and {spared!r}")
    kept = _cut(cells, spared)
    if kept.range > max_losses * step:
        raise DomainError(f"step must be at least {kept.range / max_losses:.3g} for losses that reach so far")
    with extra("dp-accounting"):
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    pmfs = []
    for one in (kept, kept.swapped()):
        law = above(one, step)
        masses = dict(zip(law.index.tolist(), law.masses.tolist(), strict=True))
        pmfs.append(pld_pmf.create_pmf(masses, step, law.infinity, pessimistic_estimate=True))
    return privacy_loss_distribution.PrivacyLossDistribution(*pmfs)
