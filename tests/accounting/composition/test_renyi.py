"""Rényi privacy: definitions with many digits, and the exact extremes."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from oracles.checkin import renyi

from flamelib.accounting.composition.renyi import (
    least_renyi,
    pure_renyi,
    renyi_composition,
    renyi_conversion,
    renyi_divergence,
    renyi_to_epsilon,
)


def hockey_stick(first, second, epsilon):
    return sum(max(0, p - mp.exp(mpf(epsilon)) * q) for p, q in zip(first, second, strict=True))


@given(st.integers(2, 30), st.floats(0.01, 3), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_binary_response_is_the_worst_of_pure_privacy(order, epsilon, weights):
    """It reaches the value; other mechanisms within the same budget stay below."""
    stays = math.exp(epsilon) / (1 + math.exp(epsilon))
    worst = pure_renyi(order, epsilon)
    assert renyi_divergence([stays, 1 - stays], [1 - stays, stays], order) == pytest.approx(worst, rel=1e-9, abs=1e-14)
    second = [(1 + w) / sum(1 + v for v in weights) for w in weights]
    tilted = [q * math.exp(epsilon / 2 * (2 * w - 1)) for q, w in zip(second, weights, strict=True)]
    first = [p / sum(tilted) for p in tilted]
    assert renyi_divergence(first, second, order) <= worst * (1 + 1e-9) + 1e-14


@given(st.integers(2, 50), st.lists(st.floats(1e-6, 1), min_size=2, max_size=5), st.integers(0, 10**6))
def test_the_divergence_by_its_definition(order, weights, seed):
    first = [w / sum(weights) for w in weights]
    second = [w / sum(weights) for w in weights[::-1]]
    truth = renyi(dict(enumerate(map(mpf, first))), dict(enumerate(map(mpf, second))), order)
    assert renyi_divergence(first, second, order) == pytest.approx(float(truth), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.3])
@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
def test_the_conversion_is_never_below_the_truth(epsilon0, delta):
    """Repeated binary response, whose true delta at the answer is summed up."""
    for times in (1, 3, 20):
        found = renyi_to_epsilon(lambda order, t=times: t * pure_renyi(int(order), epsilon0), delta, range(2, 200))
        stays = mp.exp(epsilon0) / (1 + mp.exp(epsilon0))
        chances = [mp.binomial(times, i) * stays**i * (1 - stays) ** (times - i) for i in range(times + 1)]
        truth = hockey_stick(chances, chances[::-1], found)
        assert truth <= delta * (1 + 1e-12)


def test_edges():
    assert renyi_composition(0.25, 10) == 2.5
    assert pure_renyi(5, 0) == 0
    assert least_renyi(5, 1.0, 0) == 0
    assert least_renyi(5, 1.0, 1) == math.inf
    assert renyi_conversion(2, 0.5, 0) == math.inf
    assert renyi_conversion(2, 0.5, 1) == 0
