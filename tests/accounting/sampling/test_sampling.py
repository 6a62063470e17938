"""Amplification by sampling: the formula at high precision, and every sample of small data sets."""

import itertools
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamelib.accounting.sampling.closed_form import (
    added_epsilon,
    poisson_sampled,
    sampled_epsilon,
    sampled_without_replacement,
)


@given(st.floats(1e-300, 1e5) | st.floats(0.01, 2000), st.floats(1e-300, 1.0))
def test_the_formula_from_tiny_to_huge(epsilon, rate):
    truth = mp.log1p(mp.mpf(rate) * mp.expm1(mp.mpf(epsilon)))
    found = sampled_epsilon(epsilon, rate)
    assert truth <= found <= epsilon
    assert found == pytest.approx(float(truth), rel=1e-12, abs=2e-323)


@pytest.mark.parametrize(("epsilon0", "rate", "size"), [(1.0, 0.3, 3), (0.2, 0.9, 2), (3.0, 0.05, 4)])
def test_poisson_sampling_holds_in_both_directions(epsilon0, rate, size):
    """Binary response of a sample's parity: every subset, with and without one member."""

    def law(values):
        ones = mp.mpf(0)
        for drawn in itertools.product((0, 1), repeat=len(values)):
            chance = mp.mpf(1)
            for taken in drawn:
                chance *= mp.mpf(rate) if taken else 1 - mp.mpf(rate)
            odd = sum(v for v, taken in zip(values, drawn, strict=True) if taken) % 2
            ones += chance * (mp.exp(epsilon0) if odd else 1) / (1 + mp.exp(epsilon0))
        return [1 - ones, ones]

    bound = mp.exp(mp.mpf(poisson_sampled(epsilon0, 0.0, rate).epsilon))
    ratios = []
    for values in itertools.product((0, 1), repeat=size):
        one, other = law(values), law(values[1:])
        ratios += [max(a / b, b / a) for a, b in zip(one, other, strict=True)]
    assert max(ratios) <= bound * (1 + mp.mpf(10) ** -14)
    exact = Fraction(rate) * Fraction(1e-6)
    assert exact <= poisson_sampled(epsilon0, 1e-6, rate).delta <= exact * (1 + Fraction(2) ** -52)


# --- every sample of every small data set, by sums of exact outcomes ---------------------------------------------


def shuffled_bits(values, epsilon0):
    """Law of the number of ones that binary response gives."""
    stays = mp.exp(epsilon0) / (1 + mp.exp(epsilon0))
    law = [mp.mpf(1)]
    for value in values:
        one = stays if value else 1 - stays
        law = [
            (law[i - 1] if i else 0) * one + (law[i] if i < len(law) else 0) * (1 - one) for i in range(len(law) + 1)
        ]
    return law


def noisy_maximum(values, epsilon0):
    """One noisy bit: whether anybody holds 1."""
    stays = mp.exp(epsilon0) / (1 + mp.exp(epsilon0))
    return [1 - stays, stays] if any(values) else [stays, 1 - stays]


def beyond(p, q, epsilon):
    return mp.fsum(max(mp.mpf(0), a - mp.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


def worst(law_of, size, epsilon):
    """Exact delta over all pairs of data sets of bits that differ in one member."""
    sets = list(itertools.product((0, 1), repeat=size))
    pairs = [(a, b) for a in sets for b in sets if sum(x != y for x, y in zip(a, b, strict=True)) == 1]
    return max(beyond(law_of(a), law_of(b), epsilon) for a, b in pairs)


def sampled_law(law_of, size):
    def law(values):
        laws = [law_of(part) for part in itertools.combinations(values, size)]
        return [mp.fsum(column) / len(laws) for column in zip(*laws, strict=True)]

    return law


@pytest.mark.parametrize("mechanism", [shuffled_bits, noisy_maximum])
@pytest.mark.parametrize(("sampled", "population"), [(1, 3), (2, 3), (2, 5), (4, 5), (3, 3)])
def test_never_below_the_exact_sample(mechanism, sampled, population):
    def law_of(values):
        return mechanism(values, mp.mpf("1.2"))

    for epsilon in (0.0, 0.2, 0.6, 1.0):
        delta = float(worst(law_of, sampled, epsilon))
        bound = sampled_without_replacement(epsilon, delta, sampled, population)
        exact = worst(sampled_law(law_of, sampled), population, bound.epsilon)
        assert exact <= bound.delta * (1 + 1e-12)
        if mechanism is noisy_maximum:
            assert exact == pytest.approx(bound.delta, rel=1e-12), "nothing smaller holds for every mechanism"


@given(st.floats(-12, 3).map(lambda e: 10.0**e), st.floats(-9, 0).map(lambda e: 10.0**e))
def test_epsilon_of_the_smaller_data_set(epsilon, rate):
    with mp.workdps(60):
        truth = -mp.log(1 - mp.mpf(rate) + rate * mp.exp(-mp.mpf(epsilon)))
        assert abs(added_epsilon(epsilon, rate) / truth - 1) < 1e-14
        assert added_epsilon(epsilon, rate) <= sampled_epsilon(epsilon, rate) * (1 + 1e-14)
