"""Counting attacks against convolution in forty digits, published numbers, and the bounds from above."""

import functools
import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import padded as oracles
from scipy.stats import binom

from flamelib.accounting.coordinates.counting import (
    MAX_COUNTED,
    _countable_coordinates,
    disjoint_lower,
    double_lower,
    simple_lower,
    topk_lower,
)

DELTA = 0.01 / 1000**1.1
BUDGETS = st.floats(-2, 0.8).map(lambda x: 10**x)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def above(epsilon0):
    return 1 - 0.5 * math.exp(-epsilon0 / 2)


class TestEveryCount:
    """The best threshold is the best test: the sum over all counts, both directions."""

    @settings(max_examples=40)
    @given(BUDGETS, st.integers(1, 6), st.integers(2, 9), st.floats(0, 2))
    def test_equal_top_coordinates(self, epsilon0, kept, padded, epsilon):
        truth = float(oracles.count_delta(kept * (padded - 1), kept, above(epsilon0), epsilon))
        found = topk_lower(kept, padded, epsilon0, epsilon=epsilon)
        assert found <= truth
        assert truth - found <= found.uncertainty < 1e-11

    @settings(max_examples=20)
    @given(BUDGETS, st.integers(1, 4), st.integers(2, 6), st.floats(0, 1))
    def test_disjoint_top_coordinates(self, epsilon0, kept, padded, epsilon):
        truth = float(oracles.count_delta(kept * (2 * padded - 1), kept, above(epsilon0), epsilon))
        found = disjoint_lower(kept, padded, epsilon0, epsilon=epsilon)
        assert 0 <= truth - found <= found.uncertainty < 1e-11

    @settings(max_examples=20)
    @given(BUDGETS, st.integers(1, 6), st.integers(2, 6), st.floats(0.01, 1), st.floats(0, 0.5))
    def test_independent_inclusion(self, epsilon0, dimension, padded, rate, epsilon):
        chance = 0.5 + rate * (above(epsilon0) - 0.5)
        truth = float(oracles.count_delta(dimension * (padded - 1), dimension, chance, epsilon))
        found = double_lower(dimension, rate, padded, epsilon0, epsilon=epsilon)
        assert 0 <= truth - found <= found.uncertainty < 1e-11
        if rate == 1:
            assert found == pytest.approx(simple_lower(dimension, padded, epsilon0, epsilon=epsilon), rel=1e-12)

    @pytest.mark.parametrize(
        ("n_users", "dimension", "rate", "padded"), [(6, 2, 0.4, 3), (5, 1, 0.9, 2), (4, 3, 0.5, 2)]
    )
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
    def test_bags_that_overflow(self, n_users, dimension, rate, padded, epsilon):
        """Who reports, who is dropped, and every message of one bag; bags are independent."""

        def bag(high):
            law = np.zeros(padded + 1)
            for there in itertools.product((0, 1), repeat=n_users):  # the victim first
                chance = math.prod(rate if one else 1 - rate for one in there)
                reporters = np.flatnonzero(there)
                sets = list(itertools.combinations(reporters, min(padded, len(reporters))))
                for kept in sets:
                    biased = int(0 in kept)
                    law += (
                        chance
                        / len(sets)
                        * np.convolve(
                            binom.pmf(np.arange(padded - biased + 1), padded - biased, 0.5),
                            [1 - high, high] if biased else [1.0],
                        )
                    )
            return law

        one, two = (functools.reduce(np.convolve, [bag(high)] * dimension) for high in (above(1.3), 1 - above(1.3)))
        truth = float(np.maximum(one - math.exp(epsilon) * two, 0).sum())
        found = double_lower(dimension, rate, padded, 1.3, epsilon=epsilon, n_users=n_users)
        assert found == pytest.approx(truth, rel=1e-8, abs=1e-13)
        assert found <= truth + 1e-13
        assert found <= double_lower(dimension, rate, padded, 1.3, epsilon=epsilon)

    def test_many_users_and_none_that_find_a_place(self):
        assert double_lower(10**6, 0.5, 5 * 10**6, 0.5, delta=DELTA, n_users=10**7) > 0
        assert double_lower(10, 1.0, 2, 0.5, epsilon=0.0, n_users=10**7) < 1e-6
        same = double_lower(7850, 0.02, 1000, 0.5, delta=DELTA)
        assert double_lower(7850, 0.02, 1000, 0.5, delta=DELTA, n_users=1000) == same


class TestSize:
    def test_beyond_what_can_be_counted_fewer_are(self):
        assert _countable_coordinates(1e300, 2) == MAX_COUNTED // 2
        assert _countable_coordinates(157.5, 333) == 157
        assert topk_lower(1e300, 10**9, 0.5, epsilon=0.0) == topk_lower(10, 10**9, 0.5, epsilon=0.0) > 0
        assert topk_lower(5, 2**53, 1.0, epsilon=0.1) == 0


def test_the_last_threshold_may_be_the_best():
    """One coordinate, one dummy: both messages above one half."""
    above = 1 - 0.5 * math.exp(-4.9615 / 2)
    truth = math.log((above / 2 - 0.3) / ((1 - above) / 2))
    assert topk_lower(1, 2, 4.9615, delta=0.3) == pytest.approx(truth, rel=1e-9)
