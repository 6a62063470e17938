r"""Composition of dominating pairs given by cells: delta at an epsilon and epsilon for a delta.

For distributions (P, Q) partition the outcomes into cells, of mass b under Q and b + g under P, with privacy losses
:math:`\log(p/q)` in :math:`[l, l']`.

*Upper bounds.*  The mass of every cell is split between the grid points that enclose its losses, with equal P-mass and
Q-mass: a dominating pair, and so are its products.  The step is halved until doubling it changes the answer
negligibly; that change is the uncertainty.

*Lower bounds.*  Merging outcomes is post-processing.  Cells are merged in the order of their losses, the
last one in part, until the loss of the union is a point of the grid; the remainder is rounded down.  A larger Q-mass
is a lower bound, too: few losses are also rounded down one by one, on a grid with the offset of a likely loss.

The error of merging is of second order in the step.  Masses are differences of distribution functions: ``error`` bounds
the error of g; b has a relative one of at most ``RTOL_MASS``.  Both are added on the safe side.  Sums are those of
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

RTOL_MASS = 1e-11  # relative error of Q-masses
MIN_Q_MASS = 1e-290  # Q-mass below which digits are lost
MAX_GRID = 2**21  # points of a grid of sums at most
MAX_MECHANISMS = 2**22  # mechanisms in a sum, at most, by its round-off
MIN_STEP = 0.1 / MAX_GRID  # least step of lower bounds
STEP_PER_SPREAD = 0.05  # initial step, in units of the root mean square loss
ATOL_LOG_DELTA = 0.02  # tolerated effect of the grid on log delta
COARSE_STEP = 8  # step of the grid of size estimates, in steps
TAIL_MASS_LOSS = 1e-14  # initial truncated mass of the largest losses
NEGLIGIBLE_DELTA = 1e-40  # delta below which the tolerance is halved and small variations answer
MIN_TAIL_MASS = 1e-306  # truncated mass of the largest losses, at least


@dataclass(frozen=True, slots=True)
class DominatingPair:
    """By cell: bounds of the privacy loss, Q-mass, P-mass minus Q-mass, and the error of that difference.

    ``mass`` is the P-mass to a relative error of ``RTOL_MASS``, where it is known better than ``base + gain``.
    """

    low: Reals
    high: Reals
    base: Reals
    gain: Reals
    error: Reals
    mass: Reals | None = None

    def some(self, kept: NDArray[np.bool_]) -> "DominatingPair":
        """The cells selected by a mask."""
        mass = None if self.mass is None else self.mass[kept]
        return DominatingPair(self.low[kept], self.high[kept], self.base[kept], self.gain[kept], self.error[kept], mass)

    def swapped(self) -> "DominatingPair":
        """The pair (Q, P); without ``mass`` its ``base`` is too small by at most twice the error."""
        base = np.maximum(self.base + self.gain - self.error, 0) if self.mass is None else self.mass
        return DominatingPair(
            -self.high, -self.low, base, -self.gain, self.error, None if self.mass is None else self.base
        )

    @property
    def second_moment(self) -> float:
        """Second moment of the finite losses under P (upper bound)."""
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
        """Total variation (upper bound): the gain of cells of one sign, the mass of others."""
        most = np.where(self.low >= 0, self.gain, self.base * (1 + RTOL_MASS) + self.gain) + self.error
        return float(np.where(self.high <= 0, 0.0, most).sum()) * (1 + RTOL_MASS)

    def delta(self, epsilon: float) -> float:
        """Approximate delta of one mechanism, in this order."""
        with np.errstate(over="ignore"):
            return float(np.maximum(self.gain - self.base * np.expm1(min(epsilon, MAX_EXPONENT)), 0).sum())


def both_orders(cells: DominatingPair) -> DominatingPair:
    """A pair that dominates (P, Q) and (Q, P): the positive losses of (P, Q) and the negative ones of (Q, P).

    The profile of (P, Q) must be the larger one for epsilon >= 0, and no cell may have losses of both signs.
    """
    ahead = cells.some((cells.low >= 0) & (cells.high > 0))
    back = ahead.swapped()
    rest = max(0.0, 1 - float((ahead.base + ahead.gain).sum() + (back.base + back.gain).sum()))
    return joined([ahead, back, alike(rest, RTOL_MASS / 10)])


def joined(parts: Sequence[DominatingPair]) -> DominatingPair:
    """Concatenation of cells."""
    names = ("low", "high", "base", "gain", "error")
    return DominatingPair(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def alike(mass: float, error: float = 0.0) -> DominatingPair:
    """One cell of privacy loss 0."""
    return DominatingPair(*np.array([[0.0], [0.0], [mass], [0.0], [error]]))


def above(cells: DominatingPair, step: float) -> PrivacyLossDistribution:
    """Pessimistic privacy loss distribution on multiples of ``step``; only its P-masses are valid."""
    is_inf = np.isposinf(cells.high)
    gain = cells.gain + cells.error
    mass = np.maximum(cells.base * (1 + RTOL_MASS) + gain, 0) * (1 + len(gain) * UNIT)
    high = np.where(is_inf | np.isneginf(cells.high), 0.0, cells.high)
    low = np.where(is_inf | np.isneginf(cells.low), high, cells.low)
    last = np.ceil(high / step + 4 * UNIT * np.abs(high / step))
    first = np.where(np.isneginf(cells.low), last, np.floor(low / step - 4 * UNIT * np.abs(low / step)))
    slope = np.expm1(np.minimum(step * first, MAX_EXPONENT))
    excess = gain - cells.base * (slope - RTOL_MASS * np.abs(slope))
    width = -np.expm1(step * np.minimum(first - last, -1))
    coarse = (first == last) | (step * first >= MAX_EXPONENT) | (cells.base < MIN_Q_MASS)
    up = np.where(coarse, mass, np.clip(excess / width * (1 + 8 * UNIT), 0, mass))
    up, down = np.where(is_inf, 0.0, up), np.where(is_inf, 0.0, mass - up)
    return _on_grid(step, np.concatenate([first, last]), np.concatenate([down, up]), float(mass[is_inf].sum()))


def coarser(loss: PrivacyLossDistribution) -> PrivacyLossDistribution:
    """Pessimistic privacy loss distribution on a grid of twice the step."""
    odd = loss.index % 2 == 1
    up = np.where(odd, loss.masses / (1 + math.exp(-loss.step)) * (1 + 4 * UNIT), 0.0)
    index = np.concatenate([loss.index - odd, loss.index + odd]) // 2
    return _on_grid(2 * loss.step, index, np.concatenate([loss.masses - up, up]), loss.infinity)


def _on_grid(step: float, index: Reals | Wholes, masses: Reals, infinity: float) -> PrivacyLossDistribution:
    """Privacy loss distribution with masses of equal index added up."""
    indices, masses = index[masses > 0].astype(np.int64), masses[masses > 0]
    if len(indices) == 0:
        return PrivacyLossDistribution(step, np.array([0]), np.array([0.0]), infinity, 0.0)
    first = int(indices.min())
    if int(indices.max()) - first > 4 * len(indices):  # sparse
        support, indices = np.unique(indices, return_inverse=True)
        total = np.asarray(np.bincount(indices, masses), dtype=np.float64)
        return PrivacyLossDistribution(step, support, total, min(infinity, 1.0), 0.0)
    total = np.asarray(np.bincount(indices - first, masses), dtype=np.float64)
    support = np.flatnonzero(total).astype(np.int64)
    return PrivacyLossDistribution(step, support + first, total[support], min(infinity, 1.0), 0.0)


def below(cells: DominatingPair, step: float) -> PrivacyLossDistribution:
    """Optimistic privacy loss distribution on multiples of ``step``, by merging outcomes; losses are at most 700."""
    base, gain = _reliable(cells)
    order = np.argsort(gain / base)
    indices, masses = [], []
    bases, gains, target, rise = 0.0, 0.0, 0, 0.0
    for b, g in zip(base[order].tolist(), gain[order].tolist(), strict=True):
        missing, offer = rise * bases - gains, g - rise * b
        if bases and offer >= missing:
            part = min(missing / offer, 1.0) if missing > 0 else 0.0
            indices.append(target)
            masses.append((bases + part * b) * (1 + rise))
            b, g, bases, gains = (1 - part) * b, (1 - part) * g, 0.0, 0.0
        if not bases and b > 0:
            target = math.floor(math.log1p(g / b) / step) + 1
            rise = math.expm1(step * target)
        bases, gains = bases + b, gains + g
    if bases:
        indices.append(target - 1)
        masses.append(bases + gains)
    return _on_grid(step, np.array(indices, dtype=float), np.array(masses) * (1 - 4 * RTOL_MASS), 0.0)


def rounded_down(cells: DominatingPair, step: float) -> tuple[PrivacyLossDistribution, float]:
    """Optimistic privacy loss distribution by rounding every loss down, and the offset of its grid.

    Q-masses increase, to first order in the step.  Likely losses are not merged with rare larger ones, and the offset,
    one of the likeliest losses modulo the step, minimises the mean rounding.
    """
    base, gain = _reliable(cells)
    losses, masses = np.log1p(gain / base), (base + gain) * (1 - 4 * RTOL_MASS)
    likeliest = losses[np.argsort(-masses)[:16]]  # candidate offsets
    offsets = np.append(likeliest - step * np.ceil(likeliest / step) - 32 * UNIT * np.abs(likeliest), 0.0)
    offset = float(min(offsets, key=lambda at: float(masses @ np.mod(losses - at, step))))
    indices = (losses - offset) / step
    return _on_grid(step, np.floor(indices - 8 * UNIT * np.abs(losses) / step), masses, 0.0), offset


def _reliable(cells: DominatingPair) -> tuple[Reals, Reals]:
    """Q-masses (upper bounds) and P-mass minus Q-mass (lower bounds) of the cells with a small error."""
    base = (cells.base + 2 * cells.error) * (1 + RTOL_MASS)
    gain = cells.gain - 3 * cells.error - 2 * RTOL_MASS * np.maximum(-cells.gain, 0)  # base and gain in proportion
    base = np.maximum(base, np.maximum(gain / math.expm1(MAX_EXPONENT), 5e-324))
    # Cells of relative error above 0.1 are omitted.
    kept = (cells.error < 0.1 * (cells.base + cells.gain)) & (base + gain > 0) & (cells.high < math.inf)
    return base[kept], gain[kept]


Parts = Sequence[tuple[DominatingPair, int]]


@dataclass(frozen=True, slots=True)
class DeltaAt:
    """Query of log delta at this epsilon.

    Methods: tilt, upper bound, change by the grid and its uncertainty, and the tolerance of that change.
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
    """Query of the least epsilon for this delta; the change by the grid is that of log delta."""

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


_Query = DeltaAt | LeastEpsilon


def composed(parts: Parts, epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Delta at ``epsilon``, or least epsilon for ``delta``, of the composition in its worse order (upper).

    Each pair has a multiplicity; in the other order all pairs are swapped.  The ``uncertainty`` is the estimated effect
    of the grid, already on the safe side.
    """
    shares = 2 * (1e-4, 1e-2, 0.2)  # truncated masses relative to delta, in turn
    drops = 40 * (1e-8,)  # further factors, while the truncated mass dominates delta
    variation = sum(times * cells.variation for cells, times in parts)
    if epsilon is None:
        if delta is None or delta >= min(variation, 1.0):
            return Certified(0.0, 0.0)
        value, doubt = _worse(parts, LeastEpsilon(delta), 1e-4 * delta)
        return Certified(value, min(doubt, value) if math.isfinite(value) else 0.0)
    if variation < NEGLIGIBLE_DELTA:
        return Certified(variation, variation)
    infinite = max(_infinite_mass(order, epsilon) for order in _orders(parts))
    if infinite < 1:
        return Certified(min(math.nextafter(infinite, 2), variation), 0.0)
    for spared in _truncated_masses(parts, epsilon):
        enough = math.log(1e4 * spared) if spared > MIN_TAIL_MASS else -math.inf
        value, doubt = _worse(parts, DeltaAt(epsilon), spared, enough)
        if value > enough:
            break
    decrease = -math.inf
    for i, share in enumerate(shares + drops if value > math.log(MIN_DELTA) else ()):
        if i >= len(shares) and decrease < 1:  # else the truncated mass dominates delta
            break
        # The truncated mass determines the range of the sum, and thereby the finest grid.
        refined, refined_doubt = _worse(parts, DeltaAt(epsilon), max(share * probability(value), MIN_TAIL_MASS))
        decrease = value - refined
        if decrease > 0:
            value, doubt = refined, refined_doubt
        if decrease < ATOL_LOG_DELTA / 4 and doubt <= ATOL_LOG_DELTA:
            break
    found = min(probability(value), variation)
    return Certified(found, found * min(doubt, 1.0))


def _infinite_mass(order: Parts, epsilon: float) -> float:
    """P(some loss is infinite), which is delta where the sum of the largest finite losses is below epsilon; else 1."""
    log_none = largest = 0.0
    for cells, times in order:
        finite = cells.high < math.inf
        largest += times * float(cells.high[finite].max(initial=-math.inf))
        mass = float((cells.base + cells.gain + cells.error)[~finite].sum()) * (1 + 8 * UNIT)
        log_none += times * math.log1p(-mass) if mass < 1 else -math.inf
    return -math.expm1(log_none) * (1 + 8 * UNIT) if largest * (1 + 8 * UNIT) < epsilon else 1.0


def _truncated_masses(parts: Parts, epsilon: float) -> Iterator[float]:
    """Candidate truncated masses, each valid for a delta far above it."""
    yield TAIL_MASS_LOSS
    delta = max(cells.delta(epsilon) for cells, _ in parts)
    yield from (1e-4 * guess for guess in (delta * _count(parts), delta) if guess > MIN_DELTA)
    spared = TAIL_MASS_LOSS
    for _ in range(2):  # too small without the largest losses, too large with all of them
        spared = 1e-6 * max(_expected_delta(order, epsilon, spared) for order in _orders(parts))
        if spared > MIN_DELTA:
            yield spared
    yield MIN_TAIL_MASS


def _expected_delta(order: Parts, epsilon: float, spared: float) -> float:
    """Saddle-point approximation of delta, with truncated largest losses."""
    tilt = tilted(order, epsilon, spared)
    log_factor = math.log1p(tilt.t * (1 + tilt.t) * math.sqrt(tilt.variance))
    return math.exp(min(tilt.log_mass - tilt.t * epsilon - log_factor, 0.0))


def tilted(order: Parts, epsilon: float, spared: float) -> Tilt:
    """Approximate tilt of mean ``epsilon`` of the sum of losses, with a truncated mass of ``spared``."""
    parts = [(_truncated(cells, spared / _count(order)), times) for cells, times in order]
    return ComposedLosses([(above(cells, COARSE_STEP * _step(parts)), times) for cells, times in parts]).tilt_to(
        epsilon
    )


def composed_in_order(parts: Parts, spared: float, epsilon: float | None = None, delta: float | None = None) -> float:
    """As :func:`composed` in the given order, with a truncated mass of ``spared`` (upper)."""
    kept = [(_truncated(cells, spared / _count(parts)), times) for cells, times in parts]
    if epsilon is None:
        return _converged(kept, LeastEpsilon(delta or 0.0), -math.inf)[0]
    return probability(_converged(kept, DeltaAt(epsilon), -math.inf)[0])


def composed_below(parts: Parts, epsilon: float | None = None, delta: float | None = None) -> float:
    """Lower bound of delta at ``epsilon``, or of epsilon for ``delta``, of the composition in its worse order (lower).

    Epsilon is 0 where delta at 0 is below ``delta``.  Of more than ``MAX_MECHANISMS`` a proportional subset is
    composed, and a smaller one for delta, which takes longer.
    """
    if (count := _count(parts)) > MAX_MECHANISMS:
        limit = MAX_MECHANISMS if epsilon is None else MAX_MECHANISMS // 64
        shorter = [(cells, times * limit // count) for cells, times in parts]
        parts = [(cells, times) for cells, times in shorter if times]
    if epsilon is None and not delta:
        return 0.0
    target = delta or 0.0
    if count == 1:
        return max(_single_below(cells, epsilon, target) for order in _orders(parts) for cells, times in order if times)
    if epsilon is None:
        best, sums = 0.0, _sums_below(parts, LeastEpsilon(target), 1e-4 * target)
        for law, offset in sorted(sums, key=lambda pair: pair[0].most, reverse=True):
            if law.most + offset > best:
                best = max(best, -sum_above((-1, law.epsilon_below(target)), (-1, offset)))
        return best
    for spared in (TAIL_MASS_LOSS, 0.0):
        sums = _sums_below(parts, DeltaAt(epsilon), spared)
        logs = [law.log_delta_below(sum_above((1, epsilon), (-1, offset))) for law, offset in sums]
        found = math.exp(max(logs, default=-math.inf))
        if found > 1e4 * spared:
            break
    return found


def _single_below(cells: DominatingPair, epsilon: float | None, delta: float) -> float:
    """Lower bound of delta or epsilon of one mechanism in this order, without a grid."""
    base, gain = _reliable(cells)

    def at(epsilon: float) -> float:
        gains = np.maximum(gain - base * math.expm1(min(epsilon, MAX_EXPONENT)), 0)
        return float(gains.sum()) * (1 - 4 * RTOL_MASS)

    if epsilon is not None:
        return at(epsilon)
    if at(0.0) < delta:
        return 0.0
    target = math.log(delta)

    def deficit(epsilon: float) -> float:
        found = at(epsilon)
        return 2 * target - math.log(found) if found > 0 else math.inf

    return largest(deficit, delta, 0.0, max(math.log1p(float((gain / base).max())), 0.0))


def _orders(parts: Parts) -> tuple[Parts, Parts]:
    return parts, [(cells.swapped(), times) for cells, times in parts]


def _sums_below(parts: Parts, question: _Query, spared: float) -> list[tuple[ComposedLosses, float]]:
    """Optimistic sums of both orders, with a truncated mass of ``spared`` at both ends, and their offsets.

    An order without remaining mass is omitted.
    """
    count, found = _count(parts), []
    for pairs in _orders(parts):
        order = [(_trimmed(cells, spared / count), times) for cells, times in pairs]
        if not all((cells.base + cells.gain > 0).any() for cells, _ in order):
            continue
        step = _feasible_step(order, question, max(_step(order), MIN_STEP))[0]
        merged = ComposedLosses([(below(cells, step), times) for cells, times in order])
        # Where likely losses differ by less than the step, all outcomes may have been merged.
        if merged.most > 0:
            found.append((merged, 0.0))
        # At most 1000 losses are also rounded one by one.
        if merged.most <= 0 or max(len(cells.base) for cells, _ in order) <= 1000:
            found.append(_rounded_sum(order, question))
    return found


def _rounded_sum(order: Parts, question: _Query) -> tuple[ComposedLosses, float]:
    """Sum of losses rounded down one by one, and its offset, rounded down."""
    step = max(max(cells.range for cells, _ in order) / 2**16, MIN_STEP)
    while True:
        parts = [(rounded_down(cells, step), times) for cells, times in order]
        law = ComposedLosses([(loss, times) for (loss, _), times in parts])
        if law.extent(question.tilt(law))[1] <= 2**20:  # points of a window of the sum at most
            return law, -sum_above(*((-times, offset) for (_, offset), times in parts))
        step *= 2


def _worse(parts: Parts, question: _Query, spared: float, enough: float = -math.inf) -> tuple[float, float]:
    """Maximum of both orders, and its uncertainty, with a truncated mass of ``spared``."""
    count, orders = _count(parts), _orders(parts)
    forward, backward = ([(_truncated(cells, spared / count), times) for cells, times in order] for order in orders)
    first = _converged(forward, question, enough)
    return max(first, _converged(backward, question, max(first[0], enough)))


def _truncated(cells: DominatingPair, spared: float) -> DominatingPair:
    """Truncation: the largest losses, of mass at most ``spared``, become infinite, the smallest are increased."""
    mass = cells.base + cells.gain + cells.error
    order = np.argsort(-cells.high)
    high = cells.high.copy()
    high[order[np.cumsum(mass[order]) <= spared]] = math.inf
    order = np.argsort(cells.low)
    floor = cells.low[order[min(int(np.searchsorted(np.cumsum(mass[order]), spared)), len(order) - 1)]]
    low = np.where(high == math.inf, high, np.maximum(cells.low, floor))
    return replace(cells, low=low, high=np.maximum(high, floor))


def _trimmed(cells: DominatingPair, spared: float) -> DominatingPair:
    """The cells without the largest and the smallest losses, of mass at most ``spared`` each (lower bound)."""
    truncated = _truncated(cells, spared)
    return cells.some((truncated.high < math.inf) & (truncated.low <= cells.low))


def _converged(parts: Parts, question: _Query, enough: float) -> tuple[float, float]:
    """The answer on a sufficiently fine grid, or any answer of at most ``enough``, and its uncertainty."""
    step, min_step = _step(parts), max(cells.range for cells, _ in parts) / MAX_GRID
    doubtful = [(replace(cells, error=3 * cells.error), times) for cells, times in parts]
    best: tuple[float, float] | None = None
    while True:
        next_step, t, size = _feasible_step(parts, question, step)
        coarse = ComposedLosses([(coarser(above(cells, next_step)), times) for cells, times in doubtful])
        tilt = coarse.tilt(t)
        if next_step > step or _grid_size(coarse, tilt) > MAX_GRID:
            if best is not None:
                return best
            if _grid_size(coarse, tilt) > MAX_GRID:
                step = 2 * next_step
                continue
        step = next_step
        coarse_value = question.answer(coarse, tilt)
        if coarse_value <= enough:
            return coarse_value, 0.0
        fine = ComposedLosses([(above(cells, step), times) for cells, times in parts])
        value = question.answer(fine, fine.tilt(t))
        # Minimum uncertainty of log delta: 2e-3.
        change, doubt = question.doubts(abs(coarse_value - value) if math.isfinite(value) else 0.0, 2e-3, t)
        # A step above 4 root mean square losses is not reliable.
        best = min(coarse_value, value), doubt if step <= 4.0 * _rms_loss(parts) else max(doubt, 1.0)
        if change <= question.effect(value) or 2 * size > MAX_GRID or step <= min_step:
            return best
        # The change is of second order in the step: for long compositions, without a grid, up to 6 halvings at once.
        halvings = math.log2(min(change / question.effect(value), 4.0**6)) / 2 if _count(parts) > MAX_MECHANISMS else 1
        step /= 2 ** math.ceil(halvings)


def _feasible_step(parts: Parts, question: _Query, step: float) -> tuple[float, float, int]:
    """The step, increased until the grid of the sum has at most ``MAX_GRID`` points; a tilt; the estimated size."""
    while True:
        coarse = ComposedLosses([(above(cells, COARSE_STEP * step), times) for cells, times in parts])
        tilt = question.tilt(coarse)
        size = COARSE_STEP * _grid_size(coarse, tilt)
        if size <= MAX_GRID:
            return step, tilt.t, size
        step *= 2.0 ** math.ceil(math.log2(size / MAX_GRID))


def _step(parts: Parts) -> float:
    """Initial step, relative to the losses of one mechanism."""
    return max(STEP_PER_SPREAD * _rms_loss(parts), max(cells.range for cells, _ in parts) / MAX_GRID, 1e-300)


def _rms_loss(parts: Parts) -> float:
    """Root mean square of the losses of one mechanism."""
    return math.sqrt(sum(times * cells.second_moment for cells, times in parts) / _count(parts))


def _grid_size(law: ComposedLosses, tilt: Tilt) -> int:
    """Size of the grid of the sum; 0 where there is none."""
    return law.extent(tilt)[1] if 1 < _count(law.parts) <= MAX_MECHANISMS else 0


def _log_delta_once(law: ComposedLosses, epsilon: float) -> float:
    """Log delta of a single mechanism (upper bound)."""
    loss = law.parts[0][0]
    total = float((loss.masses * -np.expm1(np.minimum(epsilon - loss.losses, 0))).sum()) + loss.infinity
    return min(math.log(total) + len(loss.masses) * UNIT, 0.0) if total > 0 else -math.inf


def _count(parts: Sequence[tuple[Any, int]]) -> int:
    """Number of mechanisms: 1 needs no sum, beyond ``MAX_MECHANISMS`` it is the Chernoff bound."""
    return sum(times for _, times in parts)


def to_dp_accounting(cells: DominatingPair, step: float, spared: float = 0.0) -> "google.PrivacyLossDistribution":
    """The pair and its swapped pair as a pessimistic privacy loss distribution of Google's ``dp_accounting``.

    ``dp_accounting`` must be installed (the extra ``dp-accounting`` brings it).  Its compositions of the object err
    upwards, but for its own round-off.

    Parameters
    ----------
    cells : DominatingPair
    step : float, positive
        Distance of losses, called ``value_discretization_interval`` there; the same for all that is composed.
    spared : float in [0, 1)
        Mass of the largest losses that is counted as infinite (truncation).
    """
    max_losses = 2**24  # points of a distribution at most
    if not (0 < step < math.inf and 0 <= spared < 1):
        raise DomainError(f"step must be a number above 0 and spared one in [0, 1), got {step!r} and {spared!r}")
    kept = _truncated(cells, spared)
    if kept.range > max_losses * step:
        raise DomainError(f"step must be at least {kept.range / max_losses:.3g} for losses that reach so far")
    with extra("dp-accounting"):
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    pmfs = []
    for pair in (kept, kept.swapped()):
        law = above(pair, step)
        masses = dict(zip(law.index.tolist(), law.masses.tolist(), strict=True))
        pmfs.append(pld_pmf.create_pmf(masses, step, law.infinity, pessimistic_estimate=True))
    return privacy_loss_distribution.PrivacyLossDistribution(*pmfs)
