"""Exact shuffled binary response: every data set, every threshold, and the search for the worst one."""

import math
import warnings

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


@settings(max_examples=60)
@given(
    BUDGETS,
    st.integers(2, 12),
    st.one_of(st.just(0.0), st.floats(0, 0.999), st.floats(-9, -1).map(lambda x: 1 - 10**x)),
)
def test_small_by_convolution(epsilon0, n_users, share):
    """Every count of ones and both directions, in 40 digits."""
    found = worst(epsilon0, n_users, epsilon0 * share)
    truth = float(oracles.mp.log(oracles.exact_binary(epsilon0, n_users, epsilon0 * share)))
    # An epsilon within rounding of the local budget decides delta by its last digits.
    assert found.low - 1e-12 <= truth <= found.high + 1e-12
    assert found.high - found.low < 1e-9


@pytest.mark.parametrize(("epsilon0", "epsilon"), [(1.0, 0.1), (math.log(3), 0.0), (0.05, 0.005), (3.0, 0.6)])
@pytest.mark.parametrize("n_users", [37, 200])
def test_every_count_of_ones(epsilon0, epsilon, n_users):
    ones = np.arange(n_users)
    logs, error = Pair(epsilon0, n_users, epsilon).divergence(ones)
    want = oracles.binary_all(epsilon0, n_users, epsilon)
    assert np.exp(logs) == pytest.approx(want, rel=1e-9 + 2 * error, abs=1e-15)
    assert worst(epsilon0, n_users, epsilon).high == pytest.approx(math.log(want.max()), abs=1e-9)


def test_all_equal_is_not_always_the_worst():
    """At five users another data set gives 8 % more away; sums over the counts agree."""
    pairs = [(0.02 * i, 0.01 * j) for i in range(5, 60, 9) for j in range(0, 30, 7) if 0.01 * j < 0.02 * i]
    gains = []
    for epsilon0, epsilon in pairs:
        everything = oracles.binary_all(epsilon0, 5, epsilon)
        assert worst(epsilon0, 5, epsilon).high == pytest.approx(math.log(everything.max()), abs=1e-9)
        gains.append(everything.max() / max(everything[0], everything[-1]))
    assert max(gains) > 1.05


@settings(max_examples=20)
@given(BUDGETS, st.integers(1501, 6000), st.one_of(st.just(0.0), st.floats(-3, 0.7).map(lambda x: 10**x)))
def test_branch_and_bound_finds_the_worst_of_all(epsilon0, n_users, deviations):
    epsilon = min(deviations * epsilon0 * math.exp(epsilon0 / 2) / math.sqrt(n_users), 0.99 * epsilon0)
    found = worst(epsilon0, n_users, epsilon)
    logs, error = Pair(epsilon0, n_users, epsilon).divergence(np.arange(n_users))
    assert found.low - 1e-12 <= logs.max() <= found.high + 1e-12
    assert found.high - found.low < 1e-6 + 4 * error


@pytest.mark.parametrize(
    ("epsilon0", "n_users", "epsilon"), [(6.5327799520073375, 4103, 0.0), (5.0, 2000, 0.4), (9.0, 3001, 0.02)]
)
def test_few_values_have_no_envelope(epsilon0, n_users, epsilon):
    """Against every data set; the first once came out too small."""
    pair = Pair(epsilon0, n_users, epsilon)
    assert pair.is_narrow
    truth, found = pair.best_of(np.arange(n_users)), worst(epsilon0, n_users, epsilon)
    assert truth.low <= found.high <= truth.high + 1e-6


def test_dropping_users_hides_no_more():
    for epsilon0, n_users, first, last, epsilon in (
        (1.0, 50, 10, 30, 0.1),
        (3.0, 20, 0, 7, 0.0),
        (5.0, 400, 100, 399, 1.0),
    ):
        fewer = Pair(epsilon0, n_users - (last - first), epsilon).best_of(np.array([first]))
        assert Pair(epsilon0, n_users, epsilon).best_of(np.arange(first, last + 1)).high <= fewer.high


@pytest.mark.parametrize("epsilon0", [0.02, 0.5, math.log(3), 4.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 3.0])
def test_the_envelope_lies_above_and_is_smooth(epsilon0, share):
    n_users = 2500
    epsilon = share * epsilon0 * math.exp(epsilon0 / 2) / math.sqrt(n_users)
    pair, ones = Pair(epsilon0, n_users, epsilon), np.arange(n_users)
    envelope, _, error = pair.envelope(ones)
    below = envelope - pair.divergence(ones)[0]
    assert below.min() > -1e-9 - error
    odds, spread = pair.odds, pair.tilted(ones, pair.odds)[1]
    assert np.all(below <= 1e-9 + (odds**2 + 3 / spread**2) / 8 * 1.2)
    assert np.abs(np.diff(envelope[spread > exact_binary.NARROW], 3)).max() < 1e-4


@pytest.mark.parametrize("epsilon0", [0.3, math.log(3)])
def test_the_worst_at_no_epsilon_is_in_the_middle(epsilon0):
    """Total variation is the largest point probability: skewness lowers it toward both ends."""
    logs, _ = Pair(epsilon0, 2501, 0.0).divergence(np.arange(2501))
    assert 900 < int(logs.argmax()) < 1600
    assert worst(epsilon0, 2501, 0.0).high >= logs.max() - 1e-12


@pytest.mark.parametrize(("n_users", "epsilon"), [(10**6, 0.009), (10**9, 2.2e-4), (10**9, 1e-3)])
def test_round_off_of_many_users_in_forty_digits(n_users, epsilon):
    """All others equal, by the tail of one binomial in 40 digits."""
    truth = float(oracles.mp.log(oracles.binary_equal(1.0, n_users, epsilon)))
    assert exact_binary.at_the_end(1.0, n_users, epsilon) == pytest.approx(truth, abs=2e-7)
    found = worst(1.0, n_users, epsilon)
    assert found.high >= truth
    assert found.high - found.low < 1e-6
    assert found.high == pytest.approx(truth, abs=1e-3)


def test_nothing_at_the_local_budget_and_little_below():
    assert exact_binary.worst(1.0, 10, 1.0).high == -math.inf
    assert exact_binary.at_the_end(1.0, 10, 2.0) == -math.inf
    assert worst(1.0, 10, 1 - 1e-9).high < math.log(1e-9)
