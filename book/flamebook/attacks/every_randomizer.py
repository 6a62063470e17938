r"""Largest divergence among *all* local randomizers of one budget, for a few users: a search that misses none.

Let p be e to the local budget and let values be rows: the two in question, then one for each value that the other users
hold.  A letter of a randomizer is a column of chances, no two of which differ by more than the factor p.

*Extreme randomizers suffice.*  Such a column is a sum of columns with entries 1 and p, up to scale; telling which of
them was drawn reveals more, and forgetting it is post-processing of each message on its own.  So a randomizer is given
by the weights w of the :math:`2^R-1` columns, with :math:`\sum_v w_v v=1`: a point of a polytope.

*All of them at once.*  The divergence of n users is a homogeneous polynomial of degree n in w with coefficients of at
least 0, the diagonal of a symmetric multilinear form.  A point is a mixture of vertices, so the form at n equal points
is at most its largest value at n vertices, which may differ.  Where this is attained at n equal vertices, no
randomizer does worse than the one that they stand for.

Columns, weights and vertices are rational numbers.  For two and three users so is all arithmetic; for four, sums of
terms of one sign are taken in floating point, and ``ROUNDING`` is added.
"""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = tuple[Fraction, ...]
Exact = NDArray[Any]  # of whole numbers without limit, or of floats

ROUNDING = 1e-12  # relative; some ten thousand products and sums of numbers of one sign
IN_FULL = 3  # users up to whom all arithmetic is rational
OTHERS = {2: (2,), 3: (2, 3), 4: (2, 2, 3)}  # for so many users, the rows that the others hold


@dataclass(frozen=True, slots=True)
class Worst:
    """What the search among randomizers found.

    Attributes
    ----------
    largest : float
        Largest divergence of one randomizer: that of an extreme one.
    at_most : float
        What no randomizer exceeds.
    is_settled : bool
        Whether the two are the same number (for four users, to the rounding).
    letters : int
        Of the randomizer that attains the first.
    tried : int
        Choices of vertices that were compared.
    """

    largest: float
    at_most: float
    is_settled: bool
    letters: int
    tried: int


def worst_randomizer(n_users: int, factor: Fraction, growth: Fraction) -> Worst:
    """Search for ``n_users`` of 2, 3 or 4, a budget of log ``factor`` and the divergence at epsilon log ``growth``.

    Two and three users: all data sets.  Four: those in which the others hold at most two different values.

    >>> found = worst_randomizer(2, Fraction(3), Fraction(3, 2))
    >>> found.is_settled, found.letters, found.largest
    (True, 2, 0.28125)
    """
    holds = OTHERS[n_users]
    columns = columns_of(max(holds) + 1, factor)
    weights = extreme_randomizers(columns)
    scale = math.lcm(*(one.denominator for row in weights for one in row))
    points: Exact = np.array([[int(one * scale) for one in row] for row in weights], dtype=object)
    form, unit = _form(columns, holds, growth)
    if n_users > IN_FULL:
        points, form = points.astype(float) / scale, (form / unit).astype(float)
        scale, unit = 1, 1
    values = form
    for _ in range(n_users):
        values = np.tensordot(values, points.T, (0, 0))
    alone = np.array([values[(at,) * n_users] for at in range(len(points))])
    best, most = int(alone.argmax()), values.max()
    whole = unit * scale**n_users
    slack = ROUNDING if n_users > IN_FULL else 0.0
    return Worst(
        largest=float(Fraction(alone[best]) / whole),
        at_most=float(Fraction(most) / whole) * (1 + slack),
        is_settled=bool(most <= alone[best] * (1 + slack) if slack else most == alone[best]),
        letters=sum(weight > 0 for weight in weights[best]),
        tried=math.comb(len(points) + n_users - 1, n_users),
    )


def columns_of(values: int, factor: Fraction) -> list[Column]:
    """The columns of 1 and ``factor``, each direction once."""
    every = itertools.product((Fraction(1), factor), repeat=values)
    return [column for column in every if min(column) == 1]


def extreme_randomizers(columns: list[Column]) -> list[tuple[Fraction, ...]]:
    """Weights of the columns at the vertices of the polytope, which are exact."""
    found: dict[tuple[Fraction, ...], None] = {}
    for chosen in itertools.combinations(range(len(columns)), len(columns[0])):
        solved = _solved([columns[at] for at in chosen])
        if solved is not None and min(solved) >= 0:
            weights = [Fraction(0)] * len(columns)
            for at, weight in zip(chosen, solved, strict=True):
                weights[at] = weight
            found[tuple(weights)] = None
    return list(found)


def _solved(columns: list[Column]) -> list[Fraction] | None:
    """Weights with which the columns sum to ones; ``None`` where they depend on one another."""
    size = len(columns)
    rows = [[column[at] for column in columns] + [Fraction(1)] for at in range(size)]
    for at in range(size):
        pivot = next((row for row in range(at, size) if rows[row][at]), None)
        if pivot is None:
            return None
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [entry / rows[at][at] for entry in rows[at]]
        for row in range(size):
            if row != at and rows[row][at]:
                rows[row] = [one - rows[row][at] * other for one, other in zip(rows[row], rows[at], strict=True)]
    return [row[-1] for row in rows]


def _form(columns: list[Column], holds: tuple[int, ...], growth: Fraction) -> tuple[Exact, int]:
    """The multilinear form at all choices of columns, as whole numbers, and what they are multiples of one over."""
    n_users = len(holds) + 1
    down = math.lcm(*(entry.denominator for column in columns for entry in column))
    whole = np.array([[int(entry * down) for entry in column] for column in columns], dtype=object)
    chosen = np.array(list(itertools.combinations_with_replacement(range(len(columns)), n_users)))
    gains = np.zeros(len(chosen), dtype=object)
    for order in itertools.permutations(range(n_users)):
        mine, others = chosen[:, order[0]], chosen[:, order[1:]]
        rest = whole[others, list(holds)].prod(axis=1)
        gains += (growth.denominator * whole[mine, 0] - growth.numerator * whole[mine, 1]) * rest
    gains = np.maximum(gains, 0)
    form = np.zeros((len(columns),) * n_users, dtype=object)
    for order in itertools.permutations(range(n_users)):
        form[tuple(chosen[:, list(order)].T)] = gains
    return form, growth.denominator * down**n_users * math.factorial(n_users)
