"""Numbers that are known to any number of binary digits, and random choices with exactly these probabilities.

An *enclosure* is a function: for a number of bits ``b`` it returns whole numbers ``low`` and ``high`` with
``low <= 2^b x <= high``; the more bits, the closer together.  A uniform number of which the first bits are known is
below or above ``x`` as soon as it is outside of the enclosure; where it is inside, more bits of both are asked for.
So the choice has exactly the probability that is meant, no digit rounded.  Standard library and numpy.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Wholes
from flamelib.mechanisms.integers.randomness import Randomness

Enclosure = Callable[[int], tuple[int, int]]

WORD = 62  # bits of the first look
GUARD = 64  # bits that are carried beyond those asked for


def rational(x: Fraction) -> Enclosure:
    """Enclosure of a rational number."""
    return lambda bits: (math.floor(x * 2**bits), math.ceil(x * 2**bits))


def log_of(x: Fraction) -> Enclosure:
    """Enclosure of ln(x) for x >= 1: the logarithm of a number in [1, 2] and a multiple of ln 2."""
    doublings = max(0, (x.numerator // x.denominator).bit_length() - 1)
    parts = ((x / 2**doublings, 1), (Fraction(2), doublings))

    def enclosed(bits: int) -> tuple[int, int]:
        inner = bits + GUARD
        ends = [(times * low, times * high) for of, times in parts for low, high in [_twice_artanh(of, inner)]]
        low, high = (sum(end) for end in zip(*ends, strict=True))
        return low >> GUARD, -(-high >> GUARD)

    return enclosed


def _twice_artanh(x: Fraction, bits: int) -> tuple[int, int]:
    """ln(x) for x in [1, 2] as 2 artanh(y), y = (x - 1) / (x + 1) <= 1/3, with every power of y rounded down."""
    y = (x - 1) / (x + 1)
    fine = 2 ** (bits + GUARD)
    power, square, total, k = math.floor(y * fine), y * y, 0, 1
    while power:
        total += power // k
        power, k = math.floor(power * square), k + 2
    return 2 * total >> GUARD, (2 * (total + 2 * k) >> GUARD) + 1


def power(base: Enclosure, exponent: int) -> Enclosure:
    """Enclosure of a power of a number in [0, 1]."""

    def enclosed(bits: int) -> tuple[int, int]:
        inner = bits + exponent.bit_length() + GUARD
        (low, high), (below, above) = base(inner), (1 << inner, 1 << inner)
        for digit in reversed(range(exponent.bit_length())):
            below, above = below * below >> inner, -(-above * above >> inner)
            if exponent >> digit & 1:
                below, above = below * low >> inner, -(-above * high >> inner)
        return below >> (inner - bits), -(-above >> (inner - bits))

    return enclosed


def odds_to_chance(odds: Enclosure) -> Enclosure:
    """Enclosure of x / (1 + x), the probability that has the odds x."""

    def enclosed(bits: int) -> tuple[int, int]:
        low, high = odds(bits + 2)
        one = 1 << (bits + 2)
        return (low << bits) // (one + low), -(-(high << bits) // (one + high))

    return enclosed


def scaled_by(x: Enclosure, factor: Fraction) -> Enclosure:
    """Enclosure of a number times a factor in [0, 1]."""

    def enclosed(bits: int) -> tuple[int, int]:
        low, high = x(bits)
        return math.floor(low * factor), math.ceil(high * factor)

    return enclosed


# --- choices ----------------------------------------------------------------------------------------


def bernoulli(probability: Enclosure, count: int, randomness: Randomness, word: int = WORD) -> NDArray[np.bool_]:
    """Independent coins that show heads with exactly the probability that is enclosed."""
    low, high = probability(word)
    drawn = randomness.uniform(2**word, count)
    heads = np.asarray(drawn < low)
    for i in np.flatnonzero((drawn >= low) & (drawn < high)):
        heads[i] = _settled_coin(probability, int(drawn[i]), randomness, word)
    return heads


def _settled_coin(probability: Enclosure, drawn: int, randomness: Randomness, bits: int) -> bool:
    while True:
        drawn, bits = _more_bits(drawn, bits, randomness)
        low, high = probability(bits)
        if not low <= drawn < high:
            return drawn < low


def _more_bits(drawn: int, bits: int, randomness: Randomness) -> tuple[int, int]:
    return drawn << WORD | int(randomness.uniform(2**WORD, 1)[0]), bits + WORD


@dataclass(frozen=True, slots=True)
class Cumulated:
    """Distribution function of a law of whole numbers, enclosed: ``lows[i]`` and ``highs[i]`` at ``first + i``.

    ``highs`` has one entry more, at the front: the probability of anything below ``first``.
    """

    first: int
    lows: list[int]
    highs: list[int]


Law = Callable[[int], Cumulated]


def draw(law: Law, count: int, randomness: Randomness, word: int = WORD) -> Wholes:
    """Independent draws by inversion of the distribution function, exactly."""
    first, lows, highs = _first_look(law, word)
    drawn = randomness.uniform(2**word, count)
    place = np.searchsorted(highs, drawn, side="right") - 1
    inside = (place >= 0) & (place < len(lows))
    settled = inside & (drawn < lows[np.where(inside, place, 0)])
    found = first + place
    for i in np.flatnonzero(~settled):
        found[i] = _settled_draw(law, int(drawn[i]), randomness, word)
    return np.asarray(found, dtype=np.int64)


@lru_cache(maxsize=16)
def _first_look(law: Law, word: int) -> tuple[int, Wholes, Wholes]:
    table = law(word)
    return table.first, np.array(table.lows, dtype=np.int64), np.array(table.highs, dtype=np.int64)


def _settled_draw(law: Law, drawn: int, randomness: Randomness, bits: int) -> int:
    while True:
        drawn, bits = _more_bits(drawn, bits, randomness)
        table = law(bits)
        place = bisect_right(table.highs, drawn) - 1
        if 0 <= place < len(table.lows) and drawn < table.lows[place]:
            return table.first + place


Ratios = Callable[[int], tuple[Iterable[int], int]]
"""For a number of bits b: lower bounds, whole numbers, on 2^b times each ratio, and a g: the j-th lacks j g at most.
"""


def unimodal(mode: int, up: Ratios, down: Ratios) -> Law:
    """The law whose probabilities, going away from its mode, change by enclosed ratios that only fall.

    Weights are rounded down; by how much all of them together may be too small is known beforehand.
    """

    def law(bits: int) -> Cumulated:
        inner = bits + GUARD
        above, lack_above, rest_above = _side(up, inner)
        below, lack_below, rest_below = _side(down, inner)
        sums = list(accumulate([*reversed(below), 1 << inner, *above]))
        least = sums[-1]
        most = least + lack_above + lack_below + rest_above + rest_below
        lows = [(one << bits) // most for one in sums]
        ends = 1 - (-(most - least << bits) // least)  # a share's enclosure is no wider than all that may lack
        return Cumulated(mode - len(below), lows, [-(-(rest_below << bits) // least), *(low + ends for low in lows)])

    return law


def _side(ratios: Ratios, bits: int) -> tuple[list[int], int, int]:
    r"""Weights on one side of the mode until they vanish at this precision; what they lack, and the sum of the others.

    Weights and ratios are at most 2 and, after the first, 1.  So rounding makes the :math:`j`-th weight
    :math:`2 g j + 1` units less, beside what it has from the one before: in all :math:`(g + 1) j (j + 1)` at most.
    """
    (lows, gap), one = ratios(bits), 1 << bits
    weight, weights = one, list[int]()
    for n, low in enumerate(lows, 1):
        weight = weight * low >> bits
        if not weight:
            largest = low + gap * n
            rest = -(-(gap + 1) * n * (n + 1) * one // (one - largest)) if largest < one else one * one
            return weights, _lack(gap, n - 1), rest
        weights.append(weight)
    return weights, _lack(gap, len(weights)), 0


def _lack(gap: int, n: int) -> int:
    """The sum of (g + 1) j (j + 1) over j up to n."""
    return (gap + 1) * n * (n + 1) * (n + 2) // 3
