"""Exact shuffled binary response: every data set, every threshold, and the search for the worst one."""

import math
import warnings
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import shuffling as oracles

from flamelib.accounting.shuffling import exact_binary
from flamelib.accounting.shuffling.exact_binary import Pair

BUDGETS = st.one_of(st.just(math.log(3)), st.floats(-3, 1.2).map(lambda x: 10**x))


def worst(epsilon0, n_users, epsilon):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = exact_binary.worst(epsilon0, n_users, epsilon)
    assert found.low <= found.high
    return found


@settings(max_examples=20)
@given(BUDGETS, st.integers(1501, 6000), st.one_of(st.just(0.0), st.floats(-3, 0.7).map(lambda x: 10**x)))
def test_branch_and_bound_finds_the_worst_of_all(epsilon0, n_users, deviations):
    epsilon = min(deviations * epsilon0 * math.exp(epsilon0 / 2) / math.sqrt(n_users), 0.99 * epsilon0)
    found = worst(epsilon0, n_users, epsilon)
    logs, error = Pair(epsilon0, n_users, epsilon).divergence(np.arange(n_users))
    assert found.low - 1e-12 <= logs.max() <= found.high + 1e-12
    assert found.high - found.low < 1e-6 + 4 * error


EXPONENTIALS = [
    (Fraction(3), Fraction(1)),
    (Fraction(3), Fraction(299, 100)),
    (Fraction(11, 10), Fraction(1)),
    (Fraction(11, 10), Fraction(103, 100)),
    (Fraction(1_000_001, 1_000_000), Fraction(1)),
    (Fraction(20), Fraction(3, 2)),
    (Fraction(20), Fraction(12)),
    (Fraction(3000), Fraction(1)),
    (Fraction(3000), Fraction(40)),
    (Fraction(10**9), Fraction(2)),
]


@cache
def logs_in_full(odds, ratio, n_users):
    """Logarithm of the divergence for every number of ones, in both directions: shape (n_users, 2)."""
    return np.array(
        [
            [math.log(x.numerator) - math.log(x.denominator) if x else -math.inf for x in both]
            for both in oracles.binary_in_whole_numbers(odds, ratio, n_users)
        ]
    )


@pytest.mark.parametrize(("odds", "ratio"), EXPONENTIALS)
@pytest.mark.parametrize("n_users", [2, 3, 4, 7, 19, 61, 200])
def test_in_whole_numbers(odds, ratio, n_users, monkeypatch):
    """Every data set, every threshold, both directions; tried in full, and searched as if users were many."""
    truth = logs_in_full(odds, ratio, n_users)
    assert np.array_equal(truth[:, 0], truth[::-1, 1])
    budgets = math.log(odds), n_users, math.log(ratio)
    slack = 1e-12 + 1e-15 * float(1 / (odds / ratio - 1))  # of the logarithms, where epsilon is close to the budget
    found = worst(*budgets)
    assert found.low - slack <= truth.max() <= found.high + slack
    assert found.high - found.low < 1e-8
    for enough in (0, 8, 40):
        monkeypatch.setattr(exact_binary, "MAX_EXHAUSTIVE", enough)
        found = Pair(*budgets).searched()
        assert found.low - slack <= truth.max() <= found.high + slack


@pytest.mark.parametrize(("odds", "ratio"), EXPONENTIALS)
@pytest.mark.parametrize("n_users", [2, 9, 61])
def test_no_stretch_gives_more_away_than_its_bound(odds, ratio, n_users):
    """All stretches there are."""
    truth = logs_in_full(odds, ratio, n_users)[:, 0]
    slack = 1e-12 + 1e-15 * float(1 / (odds / ratio - 1))
    pair = Pair(math.log(odds), n_users, math.log(ratio))
    starts, stops = np.triu_indices(n_users, 1)
    whole = (stops - starts) % pair.stride == 0
    starts, stops = starts[whole], stops[whole]
    found = pair.bounded(starts, stops)
    for start, stop, bound in zip(starts, stops, found.bounds, strict=True):
        assert truth[start : stop + 1 : pair.stride].max() <= bound + slack
    assert found.low - slack <= truth.max()


@pytest.mark.parametrize(("odds", "n_users"), [(2, 10**5), (3, 22_198), (3, 10**6), (5, 10**7)])
def test_little_is_left_open_in_step_with_the_lattice(odds, n_users):
    for epsilon in (0.0, 0.01 / math.sqrt(n_users)):
        found = worst(math.log(odds), n_users, epsilon)
        assert found.high - found.low < 3e-8


def test_the_worst_of_many_in_the_middle():
    """Against every data set; a search that only sees where the envelope is highest stopped 5e-8 short of it."""
    pair, n_users = Pair(6.46, 118_664, 0.0), 118_664
    parts = [pair.best_of(np.arange(start, min(start + 8000, n_users))) for start in range(0, n_users, 8000)]
    found = worst(6.46, n_users, 0.0)
    assert found.high >= max(part.low for part in parts)
    assert found.low <= max(part.high for part in parts)
    assert found.high - found.low < 1e-8


@pytest.mark.parametrize(("n_users", "epsilon"), [(10**6, 0.009), (10**9, 2.2e-4), (10**9, 1e-3)])
def test_round_off_of_many_users_in_forty_digits(n_users, epsilon):
    """All others equal, by the tail of one binomial in 40 digits."""
    truth = float(oracles.mp.log(oracles.binary_equal(1.0, n_users, epsilon)))
    assert exact_binary.at_the_end(1.0, n_users, epsilon) == pytest.approx(truth, abs=2e-7)
    found = worst(1.0, n_users, epsilon)
    assert found.high >= truth
    assert found.high - found.low < 1e-6
    assert found.high == pytest.approx(truth, abs=1e-3)
