"""Laws of whole numbers that users add before they split: drawn exactly, from any source of randomness.

Every draw has exactly the law that is named: a uniform number is compared, digit by digit as far as necessary, with
probabilities known to any number of digits.  Parameters given as doubles are read as the rational numbers they are.
What is left is the source: with :class:`~flamelib.mechanisms.integers.randomness.Release` the draws are fit for
release, with :class:`~flamelib.mechanisms.integers.randomness.Simulation` they can be repeated.

Source: Ghazi, Pagh, Velingker 2019, Definition 3; Canonne, Kamath, Steinke 2020 (why noise has to be exact).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from itertools import count as naturals

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Shape, Wholes
from flamelib.core.vocabulary import VOCABULARY, DomainError, check, keep
from flamelib.mechanisms.integers.enclosures import (
    GUARD,
    WORD,
    Enclosure,
    Law,
    bernoulli,
    draw,
    log_of,
    odds_to_chance,
    power,
    rational,
    scaled_by,
    unimodal,
)
from flamelib.mechanisms.integers.randomness import Randomness

WIDEST = 1e9  # largest variance of a law drawn from a table, which takes about half a second to set up
_SHARES = replace(VOCABULARY["n_users"], low=1)  # one user may hold the whole noise


@dataclass(frozen=True, slots=True)
class TruncatedLaplace:
    r"""The law :math:`\mathcal D_{N,p}(j) \propto p^{|j|}` on :math:`|j| \le (N - 1) / 2`, N the odd ``modulus``.

    Drawn as a difference of two geometric numbers, or a uniform number where the law is nearly flat, until accepted.
    """

    modulus: int
    decay: float

    def __post_init__(self) -> None:
        keep(self, **check(modulus=self.modulus, decay=self.decay))
        if self.modulus % 2 == 0:
            raise DomainError(f"modulus must be odd, so that the law is symmetric, got {self.modulus}")

    def sample(self, shape: Shape, randomness: Randomness) -> Wholes:
        """Independent draws."""
        end = (self.modulus - 1) // 2
        propose = _flat if end * -math.log(self.decay) < math.log(2) else _peaked
        found = np.empty(_size(shape), dtype=np.int64)
        wanted = np.arange(found.size)
        while wanted.size:
            found[wanted], good = propose(self.decay, end, wanted.size, randomness)
            wanted = wanted[~good]
        return found.reshape(shape)


def _peaked(decay: float, end: int, count: int, randomness: Randomness) -> tuple[Wholes, NDArray[np.bool_]]:
    """The two-sided geometric law, accepted inside; more than half is where ``decay ** end`` is at most 1/2."""
    found = _geometric(decay, count, randomness) - _geometric(decay, count, randomness)
    return found, np.abs(found) <= end


def _flat(decay: float, end: int, count: int, randomness: Randomness) -> tuple[Wholes, NDArray[np.bool_]]:
    """The uniform law, accepted with probability ``decay ** |j|``, which is at least 1/2."""
    found = randomness.uniform(2 * end + 1, count).astype(np.int64) - end
    return found, _decays(decay, np.abs(found), randomness)


@dataclass(frozen=True, slots=True)
class PolyaShare:
    r"""One user's share :math:`X - Y` of two-sided geometric noise, :math:`X, Y \sim \mathrm{NB}(1/n, p)`.

    The shares of :math:`n` users, those who are honest and do not drop out, add up to the law
    :math:`P(j) = \frac{1-p}{1+p} p^{|j|}` on all whole numbers, p the ``decay``.
    Drawn as a Poisson number, of mean :math:`-\ln(1 - p) / n`, of logarithmic numbers.

    Source: Balle, Bell, Gascon, Nissim 2019 (multi-message), after Goryczka, Xiong 2017.
    """

    n_users: int
    decay: float

    def __post_init__(self) -> None:
        keep(self, n_users=_SHARES.accept("n_users", self.n_users), **check(decay=self.decay))

    def sample(self, shape: Shape, randomness: Randomness) -> Wholes:
        """Independent draws."""
        size = _size(shape)
        found = [self._half(size, randomness) for _ in range(2)]
        return (found[0] - found[1]).reshape(shape)

    def _half(self, size: int, randomness: Randomness) -> Wholes:
        terms = draw(_polya_terms(self.n_users, self.decay), size, randomness)
        found = np.zeros(size, dtype=np.int64)
        np.add.at(found, np.repeat(np.arange(size), terms), _logarithmic(self.decay, int(terms.sum()), randomness))
        return found


@dataclass(frozen=True, slots=True)
class SkellamShare:
    """One user's share of Skellam noise: a difference of two Poisson numbers of mean variance / (2 n_users).

    The shares of ``n_users`` users add up to Skellam noise of the whole ``variance``, at most 1e9 for one share.

    Source: Agarwal, Kairouz, Liu 2021.
    """

    n_users: int
    variance: float

    def __post_init__(self) -> None:
        n_users = _SHARES.accept("n_users", self.n_users)
        largest = replace(VOCABULARY["variance"], high=WIDEST * n_users)
        keep(self, n_users=n_users, variance=largest.accept("variance", self.variance))

    def sample(self, shape: Shape, randomness: Randomness) -> Wholes:
        """Independent draws."""
        law = _skellam_half(self.n_users, self.variance)
        return (draw(law, _size(shape), randomness) - draw(law, _size(shape), randomness)).reshape(shape)


# --- geometric and logarithmic numbers -------------------------------------------------------------


def _geometric(decay: float, count: int, randomness: Randomness) -> Wholes:
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


def _decays(decay: float, wholes: Wholes, randomness: Randomness) -> NDArray[np.bool_]:
    """Coins of probability p^w: one of probability p^(2^i) for each binary digit i of w, and all have to show heads."""
    heads = np.ones(wholes.size, dtype=bool)
    for i in range(int(wholes.max(initial=0)).bit_length()):
        asked = np.flatnonzero(heads & (wholes >> i & 1 == 1))
        heads[asked] = bernoulli(_power(decay, 2**i), asked.size, randomness)
    return heads


def _logarithmic(decay: float, count: int, randomness: Randomness) -> Wholes:
    r"""P(j) proportional to p^j / j, j >= 1, by rejection from blocks {2^i, ..., 2^(i+1) - 1} and a tail from 2^I on.

    All blocks are proposed equally often.  Inside a block a uniform j is accepted with probability p^(j-1) 2^i / j; in
    the tail, where 2^I (1-p) >= 1, a geometric j with probability p^(2^I-1) / (2^I (1-p)) times 2^I / j.  So every j
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
    found[tail] = 2**last + _geometric(decay, tail.size, randomness)
    good = _ratio(start, found, randomness)
    inner = np.flatnonzero(good & (block < last))
    good[inner] = _decays(decay, found[inner] - 1, randomness)
    share = Fraction(1, 2**last) / (1 - Fraction(decay))
    outer = tail[good[tail]]
    good[outer] = bernoulli(scaled_by(_power(decay, 2**last - 1), share), outer.size, randomness)
    return found, good


def _ratio(part: Wholes, whole: Wholes, randomness: Randomness) -> NDArray[np.bool_]:
    """Coins of probability part / whole: uniform below a power of two at least the whole, until below it."""
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


# --- laws in tables ---------------------------------------------------------------------------------


def _poisson(mean: Enclosure) -> Law:
    """P(k) proportional to mean^k / k!."""
    low, _ = mean(GUARD)
    mode = low >> GUARD

    def up(bits: int) -> tuple[Iterator[int], int]:
        least, most = mean(bits)
        return (least // k for k in naturals(mode + 1)), most - least + 1

    def down(bits: int) -> tuple[Iterator[int], int]:
        least, most = mean(bits)
        return ((k << 2 * bits) // most for k in range(mode, 0, -1)), 2 * (most - least) + 1

    return cache(unimodal(mode, up, down))


@lru_cache(maxsize=16)
def _polya_terms(n_users: int, decay: float) -> Law:
    return _poisson(scaled_by(log_of(1 / (1 - Fraction(decay))), Fraction(1, n_users)))


@lru_cache(maxsize=16)
def _skellam_half(n_users: int, variance: float) -> Law:
    return _poisson(rational(Fraction(variance) / (2 * n_users)))


def _size(shape: Shape) -> int:
    return math.prod(np.atleast_1d(shape).tolist())
