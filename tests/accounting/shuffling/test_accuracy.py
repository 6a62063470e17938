"""Errors of the summation protocol by enumeration, the best plan by brute force, the lower bound by its lemmas."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import closed_form as oracle

from flamelib.accounting.shuffling import accuracy as ac
from flamelib.accounting.shuffling.closed_form import histogram_blanket_mass
from flamelib.core.vocabulary import DomainError

masses = st.floats(1e-3, 0.95)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=3), st.integers(1, 4), masses)
def test_error_equals_the_enumeration_of_every_message(values, n_levels, mass):
    expected = oracle.summation_mse(values, n_levels, mass)
    assert ac.summation_mse(values, n_levels, mass) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), masses)
def test_worst_input_is_the_worst(n_levels, mass):
    worst = ac.summation_worst_mse(2, n_levels, mass)
    value = ac.worst_input(n_levels, mass)
    assert worst == pytest.approx(ac.summation_mse([value, 1 - value], n_levels, mass), rel=1e-9)
    tried = [ac.summation_mse([i / 1000, i / 1000], n_levels, mass) for i in range(1001)]
    assert max(tried) <= worst * (1 + 1e-12)
    assert worst <= ac.summation_mse_bound(2, n_levels, mass)


regimes = st.floats(0.05, 1.0), st.floats(1e-12, 1.0)


@settings(max_examples=60, deadline=None)
@given(st.integers(100, 10**7), *regimes)
def test_the_plan_is_the_best_of_all(n, epsilon, delta):
    if 2 * max(14 * math.log(2 / delta) / epsilon**2, 27 / epsilon) >= (n - 1) * (1 - 1e-12):
        with pytest.raises(DomainError, match=r"n_users must be"):
            ac.summation_plan(n - 1, epsilon, delta)
        return
    plan = ac.summation_plan(n, epsilon, delta)
    found = []
    for k in range(1, 2000):
        mass = (k + 1) * max(14 * math.log(2 / delta) / epsilon**2, 27 / epsilon) / (n - 1)
        if mass < 1:
            found.append((ac.summation_worst_mse(n, k, mass), k))
    assert plan.mse == pytest.approx(min(found)[0], rel=1e-12)
    assert plan.n_levels == min(found)[1] or found[plan.n_levels - 1][0] == pytest.approx(min(found)[0], rel=1e-12)
    assert plan.blanket_mass == pytest.approx(histogram_blanket_mass(n, plan.n_levels + 1, epsilon, delta))
    assert plan.mse <= plan.mse_bound == ac.summation_mse_bound(n, plan.n_levels, plan.blanket_mass)
    assert ac.summation_lower(n, epsilon, delta) <= plan.mse


@given(st.integers(2, 10**6), st.floats(0, 8), st.floats(0, 0.499))
def test_lower_bound_takes_the_best_number_of_cells(n, epsilon, delta):
    def at(k):
        return n * min(math.exp(-epsilon) / (8 * k**2), (0.5 - delta) * (k - 1 / k) / (48 * n))

    expected = max(at(k) for k in range(2, 1500))
    assert ac.summation_lower(n, epsilon, delta) == pytest.approx(expected, rel=1e-12)
