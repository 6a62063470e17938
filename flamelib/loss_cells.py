r"""Composition of pairs that are known outright, cell by cell: delta at an epsilon and epsilon for a delta.

Cells are put on grids by :mod:`flamelib.loss_grids`, from above or from below, and summed by
:mod:`flamelib.loss_sums`.  From above, the step is halved until a doubled one makes hardly any difference, and what
it does make is reported.

Source: Zhu, Dong, Wang, Optimal Accounting of Differential Privacy via Characteristic Function, 2022 (products of
dominating pairs dominate adaptive compositions).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flamelib.core.guarantees import Certified
from flamelib.core.logspace import logaddexp, probability
from flamelib.core.search import smallest_epsilon
from flamelib.loss_grids import Cells as Cells
from flamelib.loss_grids import above, below, coarser
from flamelib.loss_sums import UNIT, LossSum, Tilt

FINE = 0.05
CLOSE = 0.02
LARGEST = 2**21
LONGEST = 2**22
SPARED = 1e-14
FAINT = 1e-40
NARROW = 2e-3
SKETCH = 8
LEAST_STEP = 0.1 / LARGEST
SHARES = 2 * (1e-4, 1e-2, 0.2)
CRAMPED = 4.0

Parts = Sequence[tuple[Cells, int]]


@dataclass(frozen=True, slots=True)
class DeltaAt:
    """What is the logarithm of delta at this epsilon?"""

    epsilon: float

    def tilt(self, law: LossSum) -> Tilt:
        """A tilt that is good for the answer."""
        return law.tilt_to(self.epsilon)

    def answer(self, law: LossSum, tilt: Tilt) -> float:
        """From above."""
        if _is_alone(law):
            return _log_delta_once(law, self.epsilon)
        if not _is_long(law):
            return law.log_delta(self.epsilon, tilt)
        return min(logaddexp(law.log_infinity, tilt.log_mass - tilt.t * self.epsilon), 0.0)

    def doubts(self, moved: float, rest: float, t: float) -> tuple[float, float]:
        """How far the answer moved, as of the logarithm of delta, and the doubt about it."""
        return moved, moved / 2 + rest


@dataclass(frozen=True, slots=True)
class LeastEpsilon:
    """What is the least epsilon for this delta?"""

    delta: float

    def tilt(self, law: LossSum) -> Tilt:
        """A tilt that is good for the answer."""
        return law.tilt_for(math.log(self.delta)) if self.delta else law.tilt(0.0)

    def answer(self, law: LossSum, tilt: Tilt) -> float:
        """From above."""
        if self.delta == 0:
            return max(law.most, 0.0) if law.log_infinity == -math.inf else math.inf
        if _is_alone(law):
            end = max(law.most, 0.0) if _log_delta_once(law, law.most) <= math.log(self.delta) else math.inf
            return smallest_epsilon(lambda epsilon: _log_delta_once(law, epsilon), self.delta, end)
        return law.chernoff(self.delta, tilt) if _is_long(law) else law.epsilon(self.delta, math.inf, tilt)

    def doubts(self, moved: float, rest: float, t: float) -> tuple[float, float]:
        """How far the answer moved, as of the logarithm of delta, and the doubt about it."""
        return moved * t, moved / 2 + rest / max(t, 1.0)


Question = DeltaAt | LeastEpsilon


def composed(parts: Parts, epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Delta at ``epsilon``, or least epsilon for ``delta``, of the composition in its worse order (upper).

    Parameters
    ----------
    parts : sequence of (Cells, int)
        Each pair with the number of mechanisms that it dominates; in the other order all pairs are exchanged.
    epsilon, delta : float
        Exactly one, within its domain.

    Returns
    -------
    Certified
        Its ``uncertainty`` is the estimated effect of the grid, already on the safe side.

    Examples
    --------
    >>> coin = Cells(*np.array([[-1.0, 1.0], [-1.0, 1.0], [0.731, 0.269], [-0.462, 0.462], [0.0, 0.0]]))
    >>> f"{composed([(coin, 1)], epsilon=0.0):.3f}"
    '0.462'
    """
    most = sum(times * cells.variation for cells, times in parts)
    if epsilon is None:
        if delta is None or delta >= min(most, 1.0):
            return Certified(0.0, 0.0)
        value, doubt = _worse(parts, LeastEpsilon(delta), 1e-4 * delta)
        return Certified(value, min(doubt, value) if math.isfinite(value) else 0.0)
    if most < FAINT:
        return Certified(most, most)
    each = max(cells.delta(epsilon) for cells, _ in parts)
    for spared in (SPARED, 1e-4 * each * sum(times for _, times in parts), 1e-4 * each, 0.0):
        enough = math.log(1e4 * spared) if spared else -math.inf
        value, doubt = _worse(parts, DeltaAt(epsilon), spared, enough)
        if value > enough:
            break
    for share in SHARES:
        # What the answer can spare decides how far sums reach, and so how fine their grid can be.
        again, doubt_again = _worse(parts, DeltaAt(epsilon), share * probability(value))
        gained = value - again
        if gained > 0:
            value, doubt = again, doubt_again
        if gained < CLOSE / 4 and doubt <= CLOSE:
            break
    found = min(probability(value), most)
    return Certified(found, found * min(doubt, 1.0))


def composed_below(parts: Parts, epsilon: float | None = None, delta: float | None = None) -> float:
    """Delta at ``epsilon``, or epsilon for ``delta``, that the composition has in its worse order at least (lower).

    Parameters
    ----------
    parts : sequence of (Cells, int)
    epsilon, delta : float
        Exactly one, within its domain; a composition that is better than ``delta`` at 0 is answered by 0.

    Examples
    --------
    >>> coin = Cells(*np.array([[-1.0, 1.0], [-1.0, 1.0], [0.731, 0.269], [-0.462, 0.462], [0.0, 0.0]]))
    >>> 0.4 < composed_below([(coin, 1)], epsilon=0.0) <= composed([(coin, 1)], epsilon=0.0)
    True
    """
    if sum(times for _, times in parts) > LONGEST:
        return 0.0
    if epsilon is None:
        if not delta:
            return 0.0
        return max(law.epsilon_below(delta) for law in _sums_below(parts, LeastEpsilon(delta), 1e-4 * delta))
    for spared in (SPARED, 0.0):
        sums = _sums_below(parts, DeltaAt(epsilon), spared)
        found = math.exp(max(law.log_delta_below(epsilon) for law in sums))
        if found > 1e4 * spared:
            break
    return found


def _sums_below(parts: Parts, question: Question, spared: float) -> list[LossSum]:
    """Both orders from below, without the largest losses and the smallest, of this mass at most."""
    count = sum(times for _, times in parts)
    orders = (parts, [(cells.swapped(), times) for cells, times in parts])
    kept = [[(_without(cells, spared / count), times) for cells, times in order] for order in orders]
    steps = [_sized(order, question, max(_step(order), LEAST_STEP))[0] for order in kept]
    pairs = zip(kept, steps, strict=True)
    return [LossSum([(below(cells, step), times) for cells, times in order]) for order, step in pairs]


def _worse(parts: Parts, question: Question, spared: float, enough: float = -math.inf) -> tuple[float, float]:
    """The larger answer of both orders, and the doubt about it; of delta this much is given to the largest losses."""
    count = sum(times for _, times in parts)
    orders = (parts, [(cells.swapped(), times) for cells, times in parts])
    one, two = ([(cut(cells, spared / count), times) for cells, times in order] for order in orders)
    first = _settled(one, question, enough)
    return max(first, _settled(two, question, max(first[0], enough)))


def cut(cells: Cells, spared: float) -> Cells:
    """The largest losses, of this mass at most, counted as infinite, and the smallest raised: sums reach less far."""
    mass = cells.base + cells.gain + cells.error
    order = np.argsort(-cells.high)
    high = cells.high.copy()
    high[order[np.cumsum(mass[order]) <= spared]] = math.inf
    order = np.argsort(cells.low)
    floor = cells.low[order[min(int(np.searchsorted(np.cumsum(mass[order]), spared)), len(order) - 1)]]
    low = np.where(high == math.inf, high, np.maximum(cells.low, floor))
    return replace(cells, low=low, high=np.maximum(high, floor))


def _without(cells: Cells, spared: float) -> Cells:
    """The cells without the largest losses and the smallest, of this mass at most each: fewer outcomes show less."""
    near = cut(cells, spared)
    kept = (near.high < math.inf) & (near.low <= cells.low)
    return Cells(cells.low[kept], cells.high[kept], cells.base[kept], cells.gain[kept], cells.error[kept])


def _settled(parts: Parts, question: Question, enough: float) -> tuple[float, float]:
    """The answer on a grid that is fine enough, or any answer that is at most ``enough``, and the doubt about it."""
    step, finest = _step(parts), max(cells.range for cells, _ in parts) / LARGEST
    doubtful = [(replace(cells, error=3 * cells.error), times) for cells, times in parts]
    best: tuple[float, float] | None = None
    while True:
        wider, t, size = _sized(parts, question, step)
        coarse = LossSum([(coarser(above(cells, wider)), times) for cells, times in doubtful])
        tilt = coarse.tilt(t)
        if wider > step or _size(coarse, tilt) > LARGEST:
            if best is not None:
                return best
            if _size(coarse, tilt) > LARGEST:
                step = 2 * wider
                continue
        step = wider
        rough = question.answer(coarse, tilt)
        if rough <= enough:
            return rough, 0.0
        fine = LossSum([(above(cells, step), times) for cells, times in parts])
        value = question.answer(fine, fine.tilt(t))
        moved, doubt = question.doubts(abs(rough - value) if math.isfinite(value) else 0.0, NARROW, t)
        best = min(rough, value), doubt if step <= CRAMPED * _spread(parts) else max(doubt, 1.0)
        if moved <= CLOSE or 2 * size > LARGEST or step <= finest:
            return best
        step /= 2


def _sized(parts: Parts, question: Question, step: float) -> tuple[float, float, int]:
    """The step, or a wider one with which the grid of the sum has a reasonable size, a tilt, and about that size."""
    while True:
        sketch = LossSum([(above(cells, SKETCH * step), times) for cells, times in parts])
        tilt = question.tilt(sketch)
        size = SKETCH * _size(sketch, tilt)
        if size <= LARGEST:
            return step, tilt.t, size
        step *= 2.0 ** math.ceil(math.log2(size / LARGEST))


def _step(parts: Parts) -> float:
    """A step that is small beside the losses of one mechanism."""
    return max(FINE * _spread(parts), max(cells.range for cells, _ in parts) / LARGEST, 1e-300)


def _spread(parts: Parts) -> float:
    """Root mean square of the losses of one mechanism."""
    count = sum(times for _, times in parts)
    return math.sqrt(sum(times * cells.second_moment for cells, times in parts) / count)


def _size(law: LossSum, tilt: Tilt) -> int:
    """Size of the grid of the sum, where one is needed."""
    return 0 if _is_alone(law) or _is_long(law) else law.extent(tilt)[1]


def _is_alone(law: LossSum) -> bool:
    """Whether there is nothing to sum."""
    return sum(times for _, times in law.parts) == 1


def _log_delta_once(law: LossSum, epsilon: float) -> float:
    """Logarithm of an upper bound on delta where there is nothing to sum."""
    loss = law.parts[0][0]
    total = float((loss.masses * -np.expm1(np.minimum(epsilon - loss.losses, 0))).sum()) + loss.infinity
    return min(math.log(total) + len(loss.masses) * UNIT, 0.0) if total > 0 else -math.inf


def _is_long(law: LossSum) -> bool:
    """Whether round-off would be too much in transforms: Chernoff's bound is left."""
    return sum(times for _, times in law.parts) > LONGEST
