r"""Privacy losses of a pair that is known outright: its outcomes in cells, put on a grid from above or from below.

For laws (P, Q) split the outcomes into cells.  Of a cell let b be Q's mass and b + g that of P, and let the loss
:math:`\log(p/q)` lie in :math:`[l, l']` on it.

*From above.*  Move the mass of every cell to the grid points that enclose its losses, keeping both P's mass and Q's.
Of all pairs with these masses and losses between these points this is the largest in every
:math:`H_\alpha(P\Vert Q)`, a chord lying above a convex curve: the new pair dominates, and so do its products.  What
it adds is of second order in the width.

*From below.*  A coarser view of the outcomes shows less (data processing), with cuts at random, too.  Cells are joined
in the order of their losses, the last one in part, until the loss of the union is a point of the grid; again the
change is of second order.  What is left over in the end is rounded down.

Masses are differences of distribution functions.  ``error`` bounds the error of g; b has a relative one of at most
``ROUND``.  Both are counted on the safe side.

Source: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, Connect the Dots, 2022.
"""

import math
from dataclasses import dataclass

import numpy as np

from flamelib.loss_sums import UNIT, Loss, Real, Whole

ROUND = 1e-11
STEEP = 700.0
UNSURE = 0.1
NAMES = ("low", "high", "base", "gain", "error")


@dataclass(frozen=True, slots=True)
class Cells:
    """For each cell least and greatest loss, Q's mass, by how much P's is larger, and the error of that."""

    low: Real
    high: Real
    base: Real
    gain: Real
    error: Real

    def swapped(self) -> "Cells":
        """The cells of (Q, P); what is now ``base`` may be too small, by twice the error."""
        return Cells(-self.high, -self.low, np.maximum(self.base + self.gain - self.error, 0), -self.gain, self.error)

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
        most = np.where(self.low >= 0, self.gain, self.base * (1 + ROUND) + self.gain) + self.error
        return float(np.where(self.high <= 0, 0.0, most).sum()) * (1 + ROUND)

    def delta(self, epsilon: float) -> float:
        """Delta of one mechanism, about and in this order."""
        with np.errstate(over="ignore"):
            return float(np.maximum(self.gain - self.base * np.expm1(min(epsilon, STEEP)), 0).sum())


def both_orders(cells: Cells) -> Cells:
    """A pair that dominates (P, Q) and (Q, P): the positive losses of the one, the negative ones of the other.

    For (P, Q) whose profile is the larger one above 1, in cells without losses of both signs.

    Examples
    --------
    >>> both = both_orders(Cells(*np.array([[-1.0, 1.0], [-1.0, 1.0], [0.731, 0.269], [-0.462, 0.462], [0.0, 0.0]])))
    >>> both.low.tolist()
    [1.0, -1.0, 0.0]
    """
    kept = (cells.low >= 0) & (cells.high > 0)
    ahead = Cells(*(getattr(cells, name)[kept] for name in NAMES))
    back = ahead.swapped()
    rest = max(0.0, 1 - float((ahead.base + ahead.gain).sum() + (back.base + back.gain).sum()))
    ends = (0.0, 0.0, rest, 0.0, ROUND / 10)
    return Cells(*(np.hstack([getattr(ahead, n), getattr(back, n), end]) for n, end in zip(NAMES, ends, strict=True)))


def above(cells: Cells, step: float) -> Loss:
    """The losses on multiples of ``step``, by a pair that dominates; only P's masses are meant to be used.

    Examples
    --------
    >>> law = above(Cells(*np.array([[0.1], [0.3], [0.4], [0.1], [0.0]])), 0.5)
    >>> law.losses.tolist(), law.masses.round(3).tolist()
    ([0.0, 0.5], [0.246, 0.254])
    """
    shown = np.isposinf(cells.high)
    gain = cells.gain + cells.error
    mass = np.maximum(cells.base * (1 + ROUND) + gain, 0) * (1 + len(gain) * UNIT)
    high = np.where(shown | np.isneginf(cells.high), 0.0, cells.high)
    low = np.where(shown | np.isneginf(cells.low), high, cells.low)
    last = np.ceil(high / step + 4 * UNIT * np.abs(high / step))
    first = np.where(np.isneginf(cells.low), last, np.floor(low / step - 4 * UNIT * np.abs(low / step)))
    steep = np.expm1(np.minimum(step * first, STEEP))
    moved = gain - cells.base * (steep - ROUND * np.abs(steep))
    wide = -np.expm1(step * np.minimum(first - last, -1))
    up = np.where((first == last) | (step * first >= STEEP), mass, np.clip(moved / wide * (1 + 8 * UNIT), 0, mass))
    up, down = np.where(shown, 0.0, up), np.where(shown, 0.0, mass - up)
    return _law(step, np.concatenate([first, last]), np.concatenate([down, up]), float(mass[shown].sum()))


def coarser(loss: Loss) -> Loss:
    """The same from above on a grid twice as wide."""
    odd = loss.index % 2 == 1
    up = np.where(odd, loss.masses / (1 + math.exp(-loss.step)) * (1 + 4 * UNIT), 0.0)
    index = np.concatenate([loss.index - odd, loss.index + odd]) // 2
    return _law(2 * loss.step, index, np.concatenate([loss.masses - up, up]), loss.infinity)


def _law(step: float, index: Real | Whole, masses: Real, infinity: float) -> Loss:
    """Masses of equal index together."""
    places, masses = index[masses > 0].astype(np.int64), masses[masses > 0]
    if len(places) == 0:
        return Loss(step, np.array([0]), np.array([0.0]), infinity, 0.0)
    first = int(places.min())
    total = np.bincount(places - first, masses).astype(np.float64)
    filled = np.flatnonzero(total).astype(np.int64)
    return Loss(step, filled + first, total[filled], min(infinity, 1.0), 0.0)


def below(cells: Cells, step: float) -> Loss:
    """The losses on multiples of ``step``, by a coarser view of the outcomes; what would exceed 700 is 700.

    Examples
    --------
    >>> law = below(Cells(*np.array([[0.0, 0.3], [0.1, 0.4], [0.5, 0.2], [0.02, 0.08], [0.0, 0.0]])), 0.1)
    >>> law.losses.round(6).tolist(), law.masses.round(3).tolist()
    ([0.1, 0.3], [0.675, 0.125])
    """
    base = (cells.base + 2 * cells.error) * (1 + ROUND)
    gain = cells.gain - 3 * cells.error - 2 * ROUND * np.maximum(-cells.gain, 0)  # base and gain in proportion
    base = np.maximum(base, gain / math.expm1(STEEP))
    kept = (cells.error < UNSURE * (cells.base + cells.gain)) & (base + gain > 0) & (cells.high < math.inf)
    order = np.argsort(gain[kept] / base[kept])
    places, masses = [], []
    bases, gains, target, rise = 0.0, 0.0, 0, 0.0
    for b, g in zip(base[kept][order].tolist(), gain[kept][order].tolist(), strict=True):
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
    return _law(step, np.array(places, dtype=float), np.array(masses) * (1 - 4 * ROUND), 0.0)
