"""Balls of the rows on the privacy blanket: tables of few messages, and the best sum with one message a user."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from balls.arithmetic import fitted, most
from balls.of_shuffling import binary_at, table_of, worst_data_set, worst_error
from balls.rows.recorded import encloses
from flint import arb


def replaced(n_buckets: int, blanket_mass: float, replacements: Sequence[int]) -> list[list[Fraction]]:
    """Keep the value, or draw one of some messages: a row for each value."""
    mass = Fraction(blanket_mass)
    return [
        [(1 - mass) * (x == y) + mass * replacements.count(y) / len(replacements) for y in range(n_buckets)]
        for x in range(n_buckets)
    ]


@encloses("blanket:alg-2/alphabet-without-zero", "flame:alg-1/alphabet")
def locally_private(n_buckets: int, blanket_mass: float, replacements: list[int]) -> bool:
    """Whether every message comes from all values or from none."""
    columns = zip(*replaced(n_buckets, blanket_mass, replacements), strict=True)
    return all(all(column) or not any(column) for column in columns)


@encloses("blanket:lem-4.4/minimum-suffices")
def smaller_terms_suffice(cells: int, n_users: int, epsilon: float, delta: float) -> bool:
    """Of a message that is always the first cell one of both terms is 0 in every cell: it is missed, or never hit."""
    k = arb(cells)
    leak = (1 - 1 / k**2) / 48
    missed = [arb(cell > 0) / (4 * k**3) for cell in range(cells)]
    hit = [arb(cell == 0) * leak for cell in range(cells)]
    found = sum((a.min(b) for a, b in zip(missed, hit, strict=True)), arb(0))
    promised = k * ((-fitted(epsilon)).exp() / (8 * k**3)).min((arb(1) / 2 - fitted(delta)) / n_users * leak)
    assert found < promised or found >= promised
    return bool(found >= promised)


def cell_error(n_users: int, levels: int, mass: arb) -> arb:
    """Largest squared error of a sum, from the first cell alone.

    A message's variance at a place within a cell is convex in the number of the cell, and mirrored.
    """
    if levels < 3:
        return worst_error(n_users, levels, mass)
    uniform = arb(levels * (2 * levels + 1)) / 6

    def at(part: arb) -> arb:
        mean = (1 - mass) * part + mass * levels / 2
        return ((1 - mass) * part + mass * uniform - mean**2) / (levels * (1 - mass)) ** 2

    # A parabola in the part: its top is where the slope (1 - m) - 2 (1 - m) mean is 0.
    top = (arb(1) / 2 - mass * levels / 2) / (1 - mass)
    return n_users * (at(top) if 0 < top < 1 else most(at(arb(0)), at(arb(1))))


@cache
def best_sum(n_users: int, epsilon: float, delta: float) -> tuple[int, arb, arb]:
    """The levels of the least error with the blanket mass of Theorem 3.1, that mass, and the error.

    The levels are told by balls from all others up to where the mass alone costs more.
    """
    e = fitted(epsilon)
    grain = most(14 * (2 / fitted(delta)).log() / e**2, 27 / e) / (n_users - 1)
    best, level = (1, cell_error(n_users, 1, 2 * grain)), 1
    # The uniform messages' variance is at least a twelfth of the squared length.
    while (level + 1) * grain < 1 and (level + 1) * grain * n_users / 12 < best[1]:
        error = cell_error(n_users, level, (level + 1) * grain)
        best = (level, error) if error < best[1] else best
        level += 1
    return best[0], (best[0] + 1) * grain, best[1]


@encloses("blanket:thm-4.2/optimal-in-delta")
def growth_of_the_gap(n_users: int, epsilon: float, first_delta: float, last_delta: float) -> arb:
    """Error of the best plan over the lower bound, at the second delta over the first."""

    def gap(delta: float) -> arb:
        room = arb(1) / 2 - fitted(delta)

        def terms(k: int) -> tuple[arb, arb]:
            return n_users * (-fitted(epsilon)).exp() / (8 * k**2), room * (k - arb(1) / k) / 48

        low, high = 2, 2**40  # the first term falls, the second rises
        while high - low > 1:
            middle = (low + high) // 2
            first, second = terms(middle)
            low, high = (middle, high) if first > second else (low, middle)
        return best_sum(n_users, epsilon, delta)[2] / most(*(a.min(b) for a, b in (terms(low), terms(high))))

    return gap(last_delta) / gap(first_delta)


@encloses(
    "blanket:lem-reduction/third-part-3-4",
    "blanket:lem-reduction/third-part-4-3",
    "blanket:lem-reduction/third-part-4-5",
)
def of_all_data_sets(n_buckets: int, n_users: int, epsilon0: float, epsilon: float) -> arb:
    return worst_data_set(table_of("kary", epsilon0, n_buckets), n_users, epsilon, [(0, 1)])


@encloses("blanket:lem-bennett/withdrawn", "flame:bennett-withdrawn/not-a-bound")
def all_others_alike(n_users: int, epsilon0: float, epsilon: float) -> arb:
    return binary_at(epsilon0, n_users, 0, epsilon)
