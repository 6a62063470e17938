"""One-hot vectors of flipped bits, added up: the law of the sums by going through every message of every user."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

VALUES = 3  # the two in question, and one that stands for all others

Law = Mapping[tuple[int, ...], float]


@cache
def message(value: int, flip: float) -> Law:
    """The chance of every vector that a user with this value may send."""
    found = {}
    for bits in itertools.product((0, 1), repeat=VALUES):
        kept = [bit == (place == value) for place, bit in enumerate(bits)]
        found[bits] = math.prod(1 - flip if one else flip for one in kept)
    return found


def sums(values: Sequence[int], flip: float) -> Law:
    """The chance of every vector of sums."""
    law: dict[tuple[int, ...], float] = {(0,) * VALUES: 1.0}
    for value in values:
        longer: dict[tuple[int, ...], float] = {}
        for seen, chance in law.items():
            for bits, share in message(value, flip).items():
                total = tuple(x + bit for x, bit in zip(seen, bits, strict=True))
                longer[total] = longer.get(total, 0.0) + chance * share
        law = longer
    return law


def pairs(epsilon0: float, n_users: int) -> Iterator[tuple[Law, Law]]:
    """The laws of both data sets, for everything that the others may hold; the first user's value is replaced."""
    flip = 1 / (math.exp(epsilon0 / 2) + 1)
    for others in itertools.combinations_with_replacement(range(VALUES), n_users - 1):
        yield sums((0, *others), flip), sums((1, *others), flip)


def twice(law: Law) -> Law:
    """Two rounds in which everybody holds the same."""
    return {(*x, *y): p * q for x, p in law.items() for y, q in law.items()}


def delta(one: Law, other: Law, epsilon: float) -> float:
    """The divergence at an epsilon, in the worse direction."""
    grown = math.exp(epsilon)
    forth = math.fsum(max(p - grown * other[seen], 0.0) for seen, p in one.items())
    return max(forth, math.fsum(max(p - grown * one[seen], 0.0) for seen, p in other.items()))
