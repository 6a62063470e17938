"""Geometric and logarithmic numbers, drawn exactly: digit by digit, and by rejection from blocks.

Parameters given as doubles are read as the rational numbers they are; powers of them are enclosed as far as needed.
"""

import math
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from flamelib._enclosures import WORD, Enclosure, bernoulli, odds_to_chance, power, rational, scaled_by
from flamelib.core.arrays import Wholes
from flamelib.randomness import Randomness


def geometric(decay: float, count: int, randomness: Randomness) -> Wholes:
    """P(g) = (1 - p) p^g: its binary digits are independent, digit i is 1 with odds p^(2^i); the rest is geometric."""
    digits = max(0, math.ceil(math.log2(math.log(2) / -math.log(decay))))
    found = np.zeros(count, dtype=np.int64)
    for i in range(digits):
        found += bernoulli(_digit(decay, 2**i), count, randomness).astype(np.int64) << i
    going = np.arange(count)
    while going.size:
        going = going[bernoulli(_power(decay, 2**digits), going.size, randomness)]
        found[going] += 2**digits
    return found


def decays(decay: float, wholes: Wholes, randomness: Randomness) -> NDArray[np.bool_]:
    """Coins of chance p^w: one of chance p^(2^i) for each binary digit i of w, and all have to show heads."""
    heads = np.ones(wholes.size, dtype=bool)
    for i in range(int(wholes.max(initial=0)).bit_length()):
        asked = np.flatnonzero(heads & (wholes >> i & 1 == 1))
        heads[asked] = bernoulli(_power(decay, 2**i), asked.size, randomness)
    return heads


def logarithmic(decay: float, count: int, randomness: Randomness) -> Wholes:
    r"""P(j) proportional to p^j / j, j >= 1, by rejection from blocks {2^i, ..., 2^(i+1) - 1} and a tail from 2^I on.

    All blocks are proposed equally often.  Inside a block a uniform j is accepted with chance p^(j - 1) 2^i / j; in
    the tail, where 2^I (1 - p) >= 1, a geometric j with chance p^(2^I - 1) / (2^I (1 - p)) times 2^I / j.  So every j
    is accepted in proportion to p^j / j.
    """
    found = np.empty(count, dtype=np.int64)
    wanted = np.arange(count)
    last = max(1, math.ceil(-math.log2(1 - decay)))
    while wanted.size:
        found[wanted], good = _trial(decay, last, wanted.size, randomness)
        wanted = wanted[~good]
    return found


def _trial(decay: float, last: int, count: int, randomness: Randomness) -> tuple[Wholes, NDArray[np.bool_]]:
    block = randomness.uniform(last + 1, count)
    start = np.int64(1) << block
    found = start + (randomness.uniform(2**last, count) >> (last - block))
    tail = np.flatnonzero(block == last)
    found[tail] = 2**last + geometric(decay, tail.size, randomness)
    good = _ratio(start, found, randomness)
    inner = np.flatnonzero(good & (block < last))
    good[inner] = decays(decay, found[inner] - 1, randomness)
    share = Fraction(1, 2**last) / (1 - Fraction(decay))
    outer = tail[good[tail]]
    good[outer] = bernoulli(scaled_by(_power(decay, 2**last - 1), share), outer.size, randomness)
    return found, good


def _ratio(part: Wholes, whole: Wholes, randomness: Randomness) -> NDArray[np.bool_]:
    """Coins of chance part / whole: uniform below a power of two that is not less than the whole, until below it."""
    heads = np.empty(part.size, dtype=bool)
    asked = np.arange(part.size)
    while asked.size:
        drawn = randomness.uniform(2**WORD, asked.size) >> (WORD - np.frexp(whole[asked])[1])
        heads[asked] = drawn < part[asked]
        asked = asked[drawn >= whole[asked]]
    return heads


@lru_cache(maxsize=512)
def _power(decay: float, exponent: int) -> Enclosure:
    return cache(power(rational(Fraction(decay)), exponent))


@lru_cache(maxsize=512)
def _digit(decay: float, exponent: int) -> Enclosure:
    return cache(odds_to_chance(_power(decay, exponent)))
