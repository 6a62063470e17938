"""Discrete noise against its definition: enclosures against sixty digits, draws against exact probabilities."""

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from scipy.stats import chisquare

import flamelib.mechanisms.integers.enclosures as enclosures
import flamelib.mechanisms.integers.noise as module
from flamelib.mechanisms.integers.enclosures import bernoulli, draw, log_of, odds_to_chance, power, rational, scaled_by
from flamelib.mechanisms.integers.noise import PolyaShare, TruncatedLaplace
from flamelib.mechanisms.integers.randomness import Simulation

UNLIKELY = 1e-6
MANY = 40_000


@pytest.fixture
def source():
    return Simulation(np.random.default_rng(11))


def exactly(x):
    return mpf(x.numerator) / mpf(x.denominator)


THIRD, NEAR_ONE = Fraction(1, 3), Fraction(1 - 2**-53)
NUMBERS = {
    "rational": (rational(THIRD), mpf(1) / 3),
    "ln 1": (log_of(Fraction(1)), mpf(0)),
    "ln 10": (log_of(Fraction(10)), mpmath.log(10)),
    "ln 2^53": (log_of(1 / (1 - NEAR_ONE)), 53 * mpmath.log(2)),
    "ln of a third more": (log_of(1 + THIRD), mpmath.log(mpf(4) / 3)),
    "power": (power(rational(NEAR_ONE), 2**53 + 1), exactly(NEAR_ONE) ** (2**53 + 1)),
    "no power": (power(rational(THIRD), 0), mpf(1)),
    "odds": (odds_to_chance(rational(THIRD)), mpf(1) / 4),
    "a third of ln 10": (scaled_by(log_of(Fraction(10)), THIRD), mpmath.log(10) / 3),
}


@pytest.mark.parametrize("bits", [1, 8, 62, 124])
@pytest.mark.parametrize("name", NUMBERS)
def test_enclosures_hold_the_number_closely(name, bits):
    enclosed, value = NUMBERS[name]
    low, high = enclosed(bits)
    assert low <= value * 2**bits <= high
    assert high - low <= 3


@pytest.mark.parametrize("word", [1, 2, 5, 62])
def test_coins_are_exact_however_few_bits_are_looked_at_first(source, word):
    """With one bit at first nearly every coin needs more of them."""
    heads = bernoulli(cache(log_of(1 + THIRD)), MANY // 4, source, word=word).mean()
    assert heads == pytest.approx(math.log(4 / 3), abs=5 * 0.5 / math.sqrt(MANY / 4))


class Spoken:
    """A source that says given words."""

    def __init__(self, *words):
        self.words = list(words)

    def uniform(self, modulus, shape):
        return np.full(shape, self.words.pop(0), dtype=np.int64)


def test_an_undecided_coin_asks_for_more_bits():
    """The binary digits of 1/3 are 0101...: the coin is settled by the first digit that differs."""
    thirds = 2**62 // 3
    assert not bernoulli(rational(THIRD), 1, Spoken(thirds, thirds, thirds + 1))[0]
    assert bernoulli(rational(THIRD), 1, Spoken(thirds, thirds, thirds - 1))[0]


def fits(found, law, least=5):
    """Chi-square over the values whose expected number is not small; the others are one cell together."""
    counts = {int(value): int(count) for value, count in zip(*np.unique(found, return_counts=True), strict=True)}
    large = {value: float(chance) for value, chance in law.items() if chance * found.size > least}
    seen = [counts.get(value, 0) for value in large]
    expected = [chance * found.size for chance in large.values()]
    rest = found.size - sum(expected)
    if rest > least:
        seen, expected = [*seen, found.size - sum(seen)], [*expected, rest]
    assert sum(seen) > 0.99 * found.size
    return len(seen) == 1 or chisquare(seen, np.array(expected) * (sum(seen) / sum(expected))).pvalue > UNLIKELY


def laplace(modulus, decay):
    """Definition 3 in exact fractions."""
    end, p = (modulus - 1) // 2, Fraction(decay)
    end = min(end, 200)
    norm = sum(p ** abs(j) for j in range(-end, end + 1))
    return {j: p ** abs(j) / norm for j in range(-end, end + 1)}


@pytest.mark.parametrize(
    ("modulus", "decay"), [(3, 0.5), (7, 0.5), (7, 0.999), (31, 0.9), (101, 0.98), (2**61 - 1, 0.75), (2**200 + 1, 0.5)]
)
def test_truncated_laplace(source, modulus, decay):
    found = TruncatedLaplace(modulus, decay).sample(MANY, source)
    assert np.abs(found).max() <= (modulus - 1) // 2
    assert fits(found, laplace(modulus, decay))


def test_truncated_laplace_decaying_very_slowly(source):
    """By quarters of the distribution function, and the half-width of the table in the document's largest example."""
    decay, modulus = 1 - 2.0**-30, 3 * 10**13 + 1
    found = TruncatedLaplace(modulus, decay).sample(4000, source)
    ends = math.log(2) / -math.log(decay) * np.array([-1, 0, 1])
    assert chisquare(np.bincount(np.searchsorted(ends, found), minlength=4)).pvalue > UNLIKELY


def negative_binomial(shape, decay, values):
    p = mpf(decay)
    return {j: mpmath.binomial(j + shape - 1, j) * p**j * (1 - p) ** shape for j in range(values)}


@pytest.mark.parametrize(("n_users", "decay"), [(1, 0.5), (3, 0.8), (10, 0.9), (1, 2.0**-60), (2, 0.1), (1, 0.97)])
def test_polya_halves_are_negative_binomial(source, n_users, decay):
    found = PolyaShare(n_users, decay)._half(MANY, source)
    assert fits(found, negative_binomial(mpf(1) / n_users, decay, 400))


@pytest.mark.parametrize("mean", [0.001, 1.0, 3.5, 40.0])
def test_poisson_numbers(source, mean):
    law = {k: mpmath.exp(-mpf(mean)) * mpf(mean) ** k / mpmath.factorial(k) for k in range(120)}
    assert fits(draw(module._skellam_half(1, 2 * mean), MANY, source), law)


@pytest.mark.parametrize("word", [1, 3, 8])
def test_tables_are_exact_however_few_bits_are_looked_at_first(source, word):
    law = {k: mpmath.exp(-3) * mpf(3) ** k / mpmath.factorial(k) for k in range(40)}
    assert fits(draw(module._skellam_half(1, 6.0), MANY // 10, source, word=word), law)


@pytest.mark.parametrize("law", [module._skellam_half(1, 2e4), module._polya_terms(10**6, 0.9)])
def test_tables_enclose_the_distribution_function(law):
    """At the first look nothing is left open but a share of 2^-40; at the second all of it is inside the first."""
    first, second = law(62), law(124)
    for table in (first, second):
        assert table.lows == sorted(table.lows)
        assert all(low <= high for low, high in zip(table.lows, table.highs[1:], strict=True))
    shift = first.first - second.first
    for i, (low, high) in enumerate(zip(first.lows, first.highs[1:], strict=True)):
        assert low * 2**62 <= second.lows[i + shift]
        assert second.highs[i + shift + 1] <= high * 2**62
    assert sum(high - low for low, high in zip(first.lows, first.highs[1:], strict=True)) <= 2**22


def poisson_sums(mean):
    total = mpf(0)
    for k in range(1000):
        total += mpmath.exp(-exactly(mean)) * exactly(mean) ** k / mpmath.factorial(k)
        yield k, total


@pytest.mark.parametrize("mean", [THIRD, Fraction(1), Fraction(121, 2)])
@pytest.mark.parametrize(("bits", "guard"), [(8, 64), (62, 64), (30, 0), (40, 1), (50, 4)])
def test_tables_enclose_every_probability(mean, bits, guard, monkeypatch):
    """Against sixty digits at every entry; with few bits beyond those asked for, what rounding takes is seen."""
    monkeypatch.setattr(enclosures, "GUARD", guard)
    table = module._poisson(rational(mean))(bits)
    for value, exact in poisson_sums(mean):
        place = value - table.first
        if 0 <= place < len(table.lows):
            assert table.lows[place] <= exact * 2**bits <= table.highs[place + 1]
            assert guard < 64 or table.highs[place + 1] <= table.lows[place] + 2
        elif place < 0:
            assert exact * 2**bits <= table.highs[0]
    assert guard < 64 or table.highs[0] <= 1


@pytest.mark.parametrize(("below", "above", "gap"), [(0, 20, 3), (20, 0, 3), (12, 30, 1), (7, 9, 40)])
def test_ratios_may_be_as_low_as_they_say(below, above, gap, monkeypatch):
    """The uniform law, all its ratios 1, of which lower bounds are told that are as low as the gap allows."""
    monkeypatch.setattr(enclosures, "GUARD", 0)

    def told(count):
        return lambda bits: ([2**bits - gap * j for j in range(1, count + 1)], gap)

    table = enclosures.unimodal(0, told(above), told(below))(16)
    assert (table.first, len(table.lows), table.highs[0]) == (-below, below + above + 1, 0)
    for place, (low, high) in enumerate(zip(table.lows, table.highs[1:], strict=True)):
        assert low <= Fraction(place + 1, below + above + 1) * 2**16 <= high
    assert table.highs[-1] - table.lows[-1] > 2
