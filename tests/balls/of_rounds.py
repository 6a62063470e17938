"""Balls of many rounds: the losses of one round of a pair of laws, put on a lattice from both sides, and their sum.

With :math:`X=Q/P` and P's chances, delta of T rounds is :math:`E(1-e^\\varepsilon X_1\\cdots X_T)_+`, which falls in
every factor and is convex in it.  So it does not fall, and then does not rise, if

* an outcome's loss :math:`-\\log X` is raised, or its chance is spread over two losses around it with the same mean of
  X (convex), or is moved to an infinite loss (*from above*),
* outcomes are told apart no longer (convex, or: post-processing), a loss is lowered, or a chance is left out
  (*from below*).

Losses that were put on a lattice are added by multiplying polynomials.  Their coefficients are whole numbers of a small
unit, always rounded down; what is missing in the end has been left out, or counts as infinite.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from balls.arithmetic import binomial_law, choose, fitted, most, normal_below
from balls.judging import judges
from balls.of_checkin import least_where, shuffled_pairs
from balls.of_sampling import RARE, ROUND
from flint import arb, fmpz, fmpz_poly

UNIT = 128  # bits after the point of a chance
ROOM = 16  # squared steps: by so much the mean of a cell may be below its middle where a density falls steeply
FAR = 4  # of a loss beyond epsilon: what is above counts as this, or as infinite, which costs e^-4 of it


@dataclass(frozen=True)
class Cell:
    """Outcomes whose losses lie between two numbers, with their chances under both laws."""

    first: arb
    second: arb
    low: arb
    high: arb

    @property
    def turned(self) -> "Cell":
        return Cell(self.second, self.first, -self.high, -self.low)


Cells = Sequence[Cell]


def atom(first: arb, second: arb) -> Cell:
    loss = (first / second).log()
    return Cell(first, second, loss, loss)


def floor(ball: arb) -> int:
    """A whole number that is certainly not above."""
    return int(ball.lower().floor().unique_fmpz())


def units(chance: arb) -> int:
    return max(0, floor(chance * arb(2) ** UNIT))


def from_below(cells: Cells, step: float, room: float) -> Mapping[int, int]:
    """Each cell as one outcome; its loss plus ``room`` is rounded down to a whole number of steps."""
    found: defaultdict[int, int] = defaultdict(int)
    for cell in cells:
        if cell.first > 0 and cell.second > 0:
            found[floor(((cell.first / cell.second).log() + fitted(room)) / step)] += units(cell.first)
    return found


def from_above(cells: Cells, step: float) -> Mapping[int, int]:
    """Each cell's chance spread over the two ends of its losses, these rounded outwards."""
    found: defaultdict[int, int] = defaultdict(int)
    for cell in cells:
        if not cell.high.is_finite():
            continue
        high = -floor(-cell.high / step)
        low = floor(cell.low / step) if cell.low.is_finite() else high
        if low == high:
            found[high] += units(cell.first)
            continue
        near, far = (-low * fitted(step)).exp(), (-high * fitted(step)).exp()
        there = (cell.first * near - cell.second) / (near - far)
        found[high] += units(there)
        found[low] += units(cell.first - there)
    return found


def summed(masses: Mapping[int, int], rounds: int, furthest: int, above: bool) -> dict[int, int]:
    """Law of the sum of so many losses.

    One beyond ``furthest`` steps is infinite, or is that many; one as far below 0 is raised, or left out.
    """

    def times(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
        (low, first), (bottom, second) = dense(one), dense(other)
        found: defaultdict[int, int] = defaultdict(int)
        for place, coefficient in enumerate((first * second).coeffs()):
            steps = low + bottom + place
            if (steps <= furthest) if above else (steps >= -furthest):
                found[max(min(steps, furthest), -furthest)] += int(coefficient) >> UNIT
        return found

    power, result = dict(masses), {0: 2**UNIT}
    while rounds:
        if rounds % 2:
            result = times(result, power)
        rounds //= 2
        power = times(power, power) if rounds else power
    return result


def dense(masses: Mapping[int, int]) -> tuple[int, fmpz_poly]:
    low, high = min(masses), max(masses)
    return low, fmpz_poly([fmpz(masses.get(place, 0)) for place in range(low, high + 1)])


@dataclass(frozen=True)
class Composed:
    """Delta of so many rounds, from below and from above, at any epsilon up to ``largest``."""

    cells: Cells
    fine: Cells  # the same outcomes in cells around whole steps, which lose less from below
    rounds: int
    step: float
    largest: float
    room: float

    def __hash__(self) -> int:
        return id(self)

    @cache  # noqa: B019, a record of a few points
    def law(self, above: bool) -> dict[int, int]:
        masses = from_above(self.cells, self.step) if above else from_below(self.fine, self.step, self.room)
        return summed(masses, self.rounds, math.ceil((self.largest + FAR) / self.step), above)

    def delta(self, epsilon: arb, above: bool) -> arb:
        law = self.law(above)
        shift = arb(0) if above else self.rounds * fitted(self.room)
        start = floor((epsilon + shift) / self.step) + 1
        places = range(start, max(law) + 1)
        shrink, ratio = (-fitted(self.step)).exp(), (epsilon + shift - start * fitted(self.step)).exp()
        found = arb(0)
        for steps in places:
            found += law.get(steps, 0) * (1 - ratio)
            ratio *= shrink
        infinite = 2**UNIT - sum(law.values()) if above else 0
        return (found + infinite) / arb(2) ** UNIT


def finite(first: Sequence[arb], second: Sequence[arb], rounds: int, step: float, largest: float) -> Composed:
    """Of a pair with few outcomes; losses of 0 are seen to be that, in spite of their radius."""
    cells = [atom(p, q) for p, q in zip(first, second, strict=True)]
    return Composed(cells, cells, rounds, step, largest, 2.0**-60)


# --- normal laws -----------------------------------------------------------------------------------------------------


def sampled_cells(rate: arb, shift: arb, step: float, weight: arb, halves: bool, furthest: int) -> Iterator[Cell]:
    """``(1 - rate) N(0) + rate N(shift)`` against N(0), cut where the loss is a whole number of steps, or in between.

    The loss rises along the line, and where it has a value is known.
    """
    offset = arb(1) / 2 if halves else arb(0)
    lowest = (1 - rate).log() if rate < 1 else arb("-inf")
    start = floor(lowest / step + offset) + 2 if rate < 1 else floor(-shift * (REACH + shift / 2) / step)
    losses: list[arb] = [lowest]
    places: list[arb] = [arb("-inf")]
    while not places[-1] > shift + REACH and not losses[-1] > furthest * step:
        losses.append((start + len(losses) - 1 - offset) * fitted(step))
        places.append(((losses[-1].exp() - 1 + rate) / rate).log() / shift + shift / 2)
    losses.append(arb("inf"))
    places.append(arb("inf"))
    plain = [normal_below(place) if place.is_finite() else arb(place > 0) for place in places]
    moved = [normal_below(place - shift) if place.is_finite() else arb(place > 0) for place in places]
    for i in range(len(places) - 1):
        second = plain[i + 1] - plain[i]
        first = (1 - rate) * second + rate * (moved[i + 1] - moved[i])
        yield Cell(weight * first, weight * second, losses[i], losses[i + 1])


REACH = 9  # standard deviations; a normal law has 1e-19 beyond


def normal_rounds(
    parts: Sequence[tuple[arb, arb, arb]], told: arb, rounds: int, step: float, largest: float
) -> list[Composed]:
    """Both directions of a pair that is, with a known chance each, such a mixture; else, with ``told``, nothing."""
    found, furthest = [], math.ceil((largest + FAR) / step)
    for add in (False, True):
        cuts: list[list[Cell]] = []
        for halves in (False, True):
            cells = [Cell(told, told, arb(0), arb(0))] if told > 0 else []
            for weight, rate, shift in parts:
                cells += sampled_cells(rate, shift, step, weight, halves, furthest)
            cuts.append([cell.turned for cell in cells] if add else cells)
        found.append(Composed(*cuts, rounds, step, largest, ROOM * step**2))
    return found


@cache
def sampled_rounds(
    scheme: str, rounds: int, step: float, largest: float, p: float, q: float, noise_std: float, clip_norm: float
) -> list[Composed]:
    shift = fitted(clip_norm) / fitted(noise_std)
    rate = fitted(p) * fitted(q) if scheme == "cs" else fitted(q)
    joins = fitted(p) if scheme == "wcs" else arb(1)
    return normal_rounds([(joins, rate, shift)], 1 - joins, rounds, step, largest)


MANY = (
    {"scheme": "cs", "n_records": 3, "rounds": 5, "epsilon": 0.5, **ROUND},
    {"scheme": "cs", "n_records": 5, "rounds": 100, "epsilon": 1.0, **ROUND},
    {"scheme": "ols", "n_records": 3, "rounds": 3, "epsilon": 1.0, **RARE},
    {"scheme": "wcs", "n_records": 3, "rounds": 20, "epsilon": 0.5, **ROUND},
)


@judges(
    "participation:rounds",
    *({**one, "side": side} for one in MANY for side in ("upper", "lower")),
    curve=True,
    close=0.02,
    ledger=False,
)
def baseline_rounds(scheme: str, rounds: int, epsilon: float, n_records: int, side: str, **others: Any) -> arb:
    """From below for an upper answer, which is not below it then; from above for a lower one."""
    step = 2.0 ** -(11 if scheme == "cs" else 10)
    pairs = sampled_rounds(scheme, rounds, step, epsilon, *(others[name] for name in ROUND))
    return most(*(one.delta(fitted(epsilon), side == "lower") for one in pairs))


def aligned_cells(p: arb, q: arb, n_records: int, shift: arb, step: float) -> Iterator[Cell]:
    """Equal gradients, with the differing one and without, the number of the others hidden.

    The line is cut about where the loss is half a step; for a bound from below it does not matter where it is.
    """
    joined, left = binomial_law(n_records, q), binomial_law(n_records - 1, q)
    laws = [[p * w + (1 - p) * (i == 0) for i, w in enumerate(law)] for law in (joined, left)]
    told = [[float(w.mid()) for w in law] for law in laws]
    c, places, now = float(shift.mid()), [arb("-inf")], None
    for i in range(round(-REACH * 4000), round((REACH + n_records * c) * 4000)):
        y = i / 4000
        one, two = (sum(w * math.exp(k * c * (y - k * c / 2)) for k, w in enumerate(law)) for law in told)
        here = round(math.log(one / two) / step)
        if now not in (None, here):
            places.append(arb(y))
        now = here
    places.append(arb("inf"))

    def below(law: Sequence[arb], place: arb) -> arb:
        if not place.is_finite():
            return arb(place > 0)
        return sum((w * normal_below(place - k * shift) for k, w in enumerate(law)), arb(0))

    for low, high in pairwise([[below(law, place) for law in laws] for place in places]):
        yield Cell(high[0] - low[0], high[1] - low[1], arb("-inf"), arb("inf"))


@judges(
    "participation:rounds",
    {"scheme": "outer", "n_records": 3, "rounds": 4, "epsilon": 0.5, **ROUND},
    curve=True,
    close=None,
    reach=lambda inputs: (
        inputs["scheme"] == "outer"
        and inputs["rounds"] > 1
        and inputs["n_records"] <= 10
        and inputs.get("side", "upper") == "upper"
    ),
)
def never_below_equal_gradients(
    scheme: str, rounds: int, n_records: int, epsilon: float, side: str = "upper", **others: float
) -> arb:
    """What equal gradients lose with the number of the other drawn records hidden, an explicit pair."""
    p, q = fitted(others["participation_rate"]), fitted(others["record_rate"])
    shift, step = fitted(others["clip_norm"]) / fitted(others["noise_std"]), 2.0 ** -(8 if rounds <= 100 else 10)
    cells = list(aligned_cells(p, q, n_records, shift, step))
    return Composed(cells, cells, rounds, step, epsilon, ROOM * step**2).delta(fitted(epsilon), False)


# --- check-in --------------------------------------------------------------------------------------------------------

SUMS = (
    {"n_users": 20, "checkin_rate": 0.5, "noise_std": 3.0, "rounds": 3, "delta": 1e-3},
    {"n_users": 30, "checkin_rate": 0.25, "noise_std": 1.0, "rounds": 10, "delta": 1e-4},
)


@judges("checkin:distributed", *({**one, "route": "pld-exact"} for one in SUMS), close=0.01, ledger=False)
@judges(
    "checkin:distributed",
    *({**one, "route": route} for one in SUMS for route in ("pld", "thm-4", "eq-11", "rdp-exact")),
    close=None,
    ledger=False,
)
def noisy_rounds(route: str, rounds: int, delta: float, **others: Any) -> arb:
    pairs = noisy_pairs(rounds, **others)
    return least_where(lambda at: most(*(one.delta(at, False) for one in pairs)), fitted(delta), 4.0, steps=30)


@cache
def noisy_pairs(rounds: int, n_users: int, checkin_rate: float, noise_std: float) -> list[Composed]:
    """The number of clients is told, and then two normal laws are mixed at their share; nobody there tells nothing."""
    law, noise = binomial_law(n_users, fitted(checkin_rate)), fitted(noise_std)
    parts = [(law[k], arb(k) / n_users, 2 / (arb(k).sqrt() * noise)) for k in range(1, n_users + 1) if law[k] > 1e-18]
    return normal_rounds(parts, law[0], rounds, 2.0**-7, 4.0)


VISITS = (
    {"n_users": 4, "checkin_rate": 0.5, "rounds": 3, "delta": 0.02, "epsilon0": 1.0},
    {"n_users": 3, "checkin_rate": 1.0, "rounds": 7, "delta": 0.05, "epsilon0": 0.7},
    {"n_users": 4, "checkin_rate": 0.25, "rounds": 15, "delta": 0.01, "epsilon0": 0.7},
)


@judges(
    "checkin:shuffled",
    *({**one, "route": route} for one in VISITS for route in ("clones", "thm-2", "any")),
    *(
        {**one, "route": "kary", "n_buckets": k, "side": side}
        for one in VISITS
        for k in (2, 3)
        for side in ("upper", "lower")
    ),
    close=None,
    ledger=False,
)
def of_many_small_rounds(
    n_users: int, checkin_rate: float, rounds: int, delta: float, epsilon0: float, route: str, n_buckets: int = 2,
    side: str = "upper",
) -> arb:  # fmt: skip
    """Epsilon of explicit data sets, the same in each round: no upper answer is below it, no lower one above."""
    pairs = small_pairs(n_users, checkin_rate, epsilon0, n_buckets, rounds)
    worst = lambda at: most(*(one.delta(at, side == "lower") for one in pairs))  # noqa: E731
    return least_where(worst, fitted(delta), 8.0, steps=30)


@cache
def small_pairs(n_users: int, checkin_rate: float, epsilon0: float, n_buckets: int, rounds: int) -> list[Composed]:
    pairs = shuffled_pairs(n_users, checkin_rate, epsilon0, n_buckets)
    laws = [law for one, two in pairs for law in ((one, two), (two, one))]
    return [finite(one, two, rounds, 2.0**-8, 8.0) for one, two in laws]


# --- coordinates -----------------------------------------------------------------------------------------------------

VECTORS = (
    {"dimension": 5, "n_users": 3, "epsilon0": 0.5, "delta": 1e-3},
    {"dimension": 20, "n_users": 40, "epsilon0": 1.0, "delta": 1e-5},
)


@judges(
    "flame:account",
    *(
        {"protocol": "simple", **one, "bound": bound, "route": "sound"}
        for one in VECTORS
        for bound in ("blanket", "bennett", "hoeffding")
    ),
    close=None,
    ledger=False,
)
def every_coordinate(dimension: int, n_users: int, epsilon0: float, delta: float, **others: str) -> arb:
    """No less is certified than counts of messages above one half give away, coordinate by coordinate.

    The user has the largest value everywhere or the smallest, all others have one half.
    """
    high = 1 - (-fitted(epsilon0) / 2).exp() / 2
    crowd = [choose(n_users - 1, k) / arb(2) ** (n_users - 1) for k in range(n_users)]
    law = [arb(0), *crowd, arb(0)]
    one, two = (
        [chance * law[k] + (1 - chance) * law[k + 1] for k in range(n_users + 1)] for chance in (high, 1 - high)
    )
    pair = finite(one, two, dimension, 2.0**-10, 8.0)
    return least_where(lambda at: pair.delta(at, False), fitted(delta), 8.0, steps=30)
