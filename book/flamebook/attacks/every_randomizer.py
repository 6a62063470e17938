r"""Largest divergence among *all* local randomizers of one budget, for a few users: a search that misses none.

Let p be e to the local budget and let values be rows: the two in question, then one for each value that the other users
hold.  A letter of a randomizer is a column of chances, no two of which differ by more than the factor p.

*Extreme randomizers suffice.*  Such a column is a sum of columns with entries 1 and p, up to scale; telling which of
them was drawn reveals more, and forgetting it is post-processing of each message on its own.  So a randomizer is given
by the weights w of these :math:`2^R-1` columns, with :math:`\sum_v w_v v=1`: a point of a polytope.  A column is
:math:`1+(p-1)s` for a set s of rows, so this says :math:`\sum_v w_v s_v=t` with :math:`t=(1-\sum_vw_v)/(p-1)>0`, and
:math:`u=w/t` runs through the weights with :math:`\sum_vu_vs_v=1`.  The vertices are therefore the minimal balanced
collections of sets (Shapley 1967), whatever p is, with :math:`w=u/(p-1+\sum_vu_v)`.

*All of them at once.*  The divergence of n users is a homogeneous polynomial of degree n in w with coefficients of at
least 0, the diagonal of a symmetric multilinear form.  A point is a mixture of vertices, so the form at n equal points
is at most its largest value at n vertices, which may differ.  Where this is attained at n equal vertices, no
randomizer does worse than the one that they stand for.

*Not one by one.*  The form at given vertices and any further ones is at most what is left if each further vertex is
chosen anew for each choice of columns before it.  Choices below the best single vertex are cut off by this bound.

*Mixtures.*  If some choices exceed the best vertex, a point with a share s of the vertices among them has at most
:math:`s^n` times the largest divergence of their mixtures plus :math:`1-s^n` times that of the best vertex.  So only
these vertices matter.  The simplex that they span is bisected along its longest edge, and in each half the argument
applies with its corners in the place of the vertices, until both ends agree to ``NEAR``.

Columns, weights, coefficients and vertices are rational numbers.  For two and three users so is all arithmetic; for
more, sums of terms of one sign are taken in floating point, and ``ROUNDING`` is added.
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of fractions, or of floats
Whole = NDArray[np.int64]

ROUNDING = 1e-12  # relative; a few hundred products and sums of numbers of one sign, one after another
IN_FULL = 3  # users up to whom all arithmetic is rational
NEAR = 1e-6  # relative: how well the worst mixture is told
CELLS = 2000  # halves that are tried for it


@dataclass(frozen=True, slots=True)
class Worst:
    """What the search among randomizers found.

    Attributes
    ----------
    largest : float
        Largest divergence of one randomizer that was found.
    at_most : float
        What no randomizer exceeds.
    extreme : float
        Largest divergence of one extreme randomizer.  Where it is below the first, a mixture does worse, in which each
        user first draws one of several at random.
    letters : int
        Of the randomizer that attains the first.
    tried : int
        Choices of vertices that were compared, most of them by a bound on many.
    """

    largest: float
    at_most: float
    extreme: float
    letters: int
    tried: int

    @property
    def is_settled(self) -> bool:
        """Whether both ends agree, to two parts in a million at worst."""
        return self.at_most <= self.largest * (1 + 2 * NEAR)

    @property
    def is_extreme(self) -> bool:
        """Whether no mixture was found that does worse than an extreme randomizer."""
        return self.largest == self.extreme


def worst_randomizer(n_users: int, factor: Fraction, growth: Fraction, values: int) -> Worst:
    """Search for a budget of log ``factor`` and the divergence at epsilon log ``growth``.

    Over the data sets in which the others hold at most ``values`` different values (1, 2 or 3): all of them if this
    is one less than ``n_users``.

    >>> found = worst_randomizer(2, Fraction(3), Fraction(3, 2), 1)
    >>> found.is_settled, found.letters, found.largest
    (True, 2, 0.28125)
    """
    points: Array = np.array(extreme_randomizers(values + 2, factor), dtype=object)
    held = _holdings(n_users - 1, values)
    if n_users <= IN_FULL:
        found = _bracket([_form(holds, factor, growth, Fraction) for holds in held], points, n_users, Fraction(0))
        if found.at_most == found.largest:
            return found
    # Whole numbers are divided to the nearest float, as fractions are turned into one, in a tenth of the time.
    forms = [_form(holds, factor, growth, operator.truediv) for holds in held]
    return _bracket(forms, points.astype(float), n_users, ROUNDING)


def extreme_randomizers(values: int, factor: Fraction) -> list[tuple[Fraction, ...]]:
    """Weights of the columns at the vertices of the polytope, which are exact."""
    collections, unit = _balanced(values)
    lengths = unit * (factor - 1) + collections.sum(axis=1).astype(object)
    return [
        tuple(Fraction(int(weight)) / length if weight else Fraction(0) for weight in weights)
        for weights, length in zip(collections, lengths, strict=True)
    ]


def _sets(values: int) -> Whole:
    """The sets of rows that are not empty, as rows of 0 and 1."""
    return np.array(list(itertools.product((0, 1), repeat=values))[1:], dtype=np.int64)


@functools.cache
def _balanced(values: int) -> tuple[Whole, int]:
    """The minimal balanced collections: weights of the sets, as whole numbers, and what they are multiples of one over.

    By Cramer's rule; up to six rows determinants of 0 and 1 are whole numbers below ten.
    """
    sets = _sets(values)
    chosen = np.array(list(itertools.combinations(range(len(sets)), values)))
    below = _determinants(sets[chosen])
    chosen, below = chosen[below != 0], below[below != 0]
    above = np.empty_like(chosen)
    for at in range(values):
        matrices = sets[chosen]
        matrices[:, at] = 1
        above[:, at] = _determinants(matrices) * np.sign(below)
    kept = (above >= 0).all(axis=1)
    unit = int(np.lcm.reduce(np.abs(below)))
    weights = np.zeros((int(kept.sum()), len(sets)), dtype=np.int64)
    np.put_along_axis(weights, chosen[kept], above[kept] * (unit // np.abs(below[kept]))[:, None], axis=1)
    return np.unique(weights, axis=0), unit


def _determinants(matrices: Whole) -> Whole:
    rounded: Whole = np.rint(np.linalg.det(matrices)).astype(np.int64)
    return rounded


def _holdings(others: int, values: int) -> list[tuple[int, ...]]:
    """The rows that the others hold, up to their names; where two rows agree they hold fewer values."""
    every = itertools.combinations_with_replacement(range(2, 2 + values), others)
    counted = ((holds, [holds.count(row) for row in range(2, 2 + values)]) for holds in every)
    return [holds for holds, counts in counted if min(counts) > 0 and counts == sorted(counts, reverse=True)]


def _orders(left: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The different orders of some numbers."""
    if not left:
        yield ()
    for first in dict.fromkeys(left):
        at = left.index(first)
        yield from ((first, *rest) for rest in _orders(left[:at] + left[at + 1 :]))


# A symmetric form is kept as its values at the multisets of columns, which are ascending rows, counted by their rank.


def _ranks(chosen: Whole) -> Whole:
    top = int(chosen.max(initial=0)) + 1
    counted = np.zeros(len(chosen), dtype=np.int64)
    for at, column in enumerate(chosen.T):
        counted += np.array([math.comb(one + at, at + 1) for one in range(top)])[column]
    return counted


@functools.cache
def _multisets(columns: int, size: int) -> Whole:
    every = list(itertools.combinations_with_replacement(range(columns), size))
    chosen = np.array(every, dtype=np.int64).reshape(len(every), size)
    return chosen[np.argsort(_ranks(chosen))]


@functools.cache
def _with_one_more(columns: int, size: int) -> Whole:
    """Ranks of the multisets of this size: a row for each of one less, a column for what is added."""
    fewer = _multisets(columns, size - 1)
    added = [np.column_stack([fewer, np.full(len(fewer), one)]) for one in range(columns)]
    return np.stack([_ranks(np.sort(chosen, axis=1)) for chosen in added], axis=1)


@functools.cache
def _powers(holds: tuple[int, ...]) -> tuple[Array, Whole, int]:
    """How often the product over the users is each power of p, over all orders: once with each value in question.

    The different ones among these counts, which of them each multiset has, and how many orders there are.
    """
    sets, n_users = _sets(max(holds) + 1), len(holds) + 1
    chosen = _multisets(len(sets), n_users)
    counts = np.zeros((len(chosen), 2, n_users + 1), dtype=np.int64)
    orders = list(_orders((-1, *holds)))
    for order, mine in itertools.product(orders, (0, 1)):
        power = sum(sets[chosen[:, at], mine if row < 0 else row] for at, row in enumerate(order))
        counts[np.arange(len(chosen)), mine, power] += 1
    different, which = np.unique(counts.reshape(len(chosen), -1), axis=0, return_inverse=True)
    return different.reshape(-1, 2, n_users + 1).astype(object), which.ravel(), len(orders)


def _form(holds: tuple[int, ...], factor: Fraction, growth: Fraction, ratio: Callable[[int, int], Any]) -> Array:
    """The coefficient of each multiset, a ratio of two whole numbers."""
    different, which, orders = _powers(holds)
    p, one = factor.numerator, factor.denominator
    powers: Array = np.array(
        [p**power * one ** (len(holds) + 1 - power) for power in range(len(holds) + 2)], dtype=object
    )
    gains = growth.denominator * (different[:, 0] @ powers) - growth.numerator * (different[:, 1] @ powers)
    unit = growth.denominator * orders * one ** (len(holds) + 1)
    return np.array([ratio(max(gain, 0), unit) for gain in gains])[which]


def _at(form: Array, weights: Array, n_users: int) -> Any:
    """The form at n equal points: the divergence of one randomizer."""
    letters = np.flatnonzero(weights)
    form = form[_ranks(letters[_multisets(len(letters), n_users)])]
    for size in range(n_users, 0, -1):
        form = form[_with_one_more(len(letters), size)] @ weights[letters]
    return form[0]


def _exceeding(form: Array, points: Array, size: int, least: Any) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Values of the form above ``least`` and the choices of points at which they are taken, each choice ascending.

    Every point of such a choice may come first, so only those matter whose bound as the first one is above ``least``.
    """
    bound = form
    for left in range(size, 1, -1):
        bound = (bound[_with_one_more(points.shape[1], left)] @ points.T).max(axis=1)
    reach = points @ bound
    alive = np.flatnonzero(reach > least)
    for start, at in enumerate(alive):
        if size == 1:
            yield reach[at], (int(at),)
        else:
            rest = form[_with_one_more(points.shape[1], size)] @ points[at]
            for value, others in _exceeding(rest, points[alive[start:]], size - 1, least):
                yield value, (int(at), *(int(alive[start + other]) for other in others))


def _bracket(forms: list[Array], points: Array, n_users: int, slack: Any) -> Worst:
    """Both ends; without slack, of extreme randomizers alone."""
    alone = np.array([[_at(form, point, n_users) for point in points] for form in forms]).max(axis=0)
    best, worst = alone.max(), points[alone.argmax()]
    cells = [cell for form in forms for cell in _cell(form, points, n_users, best * (1 + slack))]
    near, extreme = NEAR if cells else slack, best
    for _ in range(CELLS if slack else 0):
        if not cells:
            break
        _, form, corners = cells.pop()
        for point in (*corners, corners.mean(axis=0)):
            if (value := _at(form, point, n_users)) > best:
                best, worst = value, point
        cells += [cell for half in _halves(corners) for cell in _cell(form, half, n_users, best * (1 + NEAR))]
    most = max([best * (1 + near), *(bound for bound, *_ in cells)])
    return Worst(
        largest=float(best),
        at_most=float(most * (1 + slack)),
        extreme=float(extreme),
        letters=int((worst > 0).sum()),
        tried=math.comb(len(points) + n_users - 1, n_users) * len(forms),
    )


def _cell(form: Array, corners: Array, n_users: int, least: Any) -> list[tuple[Any, Array, Array]]:
    """A bound for the mixtures of corners, the form, and the corners that matter; nothing if it is ``least``."""
    found = list(_exceeding(form, corners, n_users, least))
    kept = sorted({at for _, choice in found for at in choice})
    return [(max(found)[0], form, corners[kept])] if found else []


def _halves(corners: Array) -> list[Array]:
    """The simplex bisected along its longest edge; nothing of a single point."""
    if len(corners) == 1:
        return []
    lengths = np.abs(corners[:, None] - corners).sum(axis=2)
    ends = np.unravel_index(lengths.argmax(), lengths.shape)
    halves = [corners.copy(), corners.copy()]
    for half, end in zip(halves, ends, strict=True):
        half[end] = (corners[ends[0]] + corners[ends[1]]) / 2
    return halves
