"""The certified brackets: around sums over every outcome, around other inversions, and at every edge."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import shuffling as oracles

from flamelib.accounting.shuffling import bromwich
from flamelib.accounting.shuffling.discrete import kary_blanket, kary_others
from flamelib.accounting.shuffling.laplace import LaplaceLaw
from flamelib.accounting.shuffling.laws import AtomicLaw
from flamelib.core.profiles import KaryProfile

ACCURATE = 1e-6
FEW = st.integers(2, 9)
BUDGETS = st.floats(-3, math.log10(20)).map(lambda x: 10**x)
SHARES = st.one_of(st.just(0.0), st.floats(0, 0.999), st.floats(-9, -1).map(lambda x: 1 - 10**x))


def certified(law, n_users):
    """The bracket, with every warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = bromwich.bracket(law, n_users)
    assert found.low <= found.high
    return found


def holds(found, truth, doubt=0.0):
    """The truth lies inside, and the bracket is as narrow as is claimed."""
    if found.high < -740:
        return truth < 1e-300
    logarithm = float(oracles.mp.log(truth))
    return found.low - doubt <= logarithm <= found.high + doubt and found.high - found.low <= ACCURATE


class TestKary:
    @given(BUDGETS, st.integers(2, 12), FEW, SHARES)
    def test_small(self, epsilon0, n_buckets, n_users, share):
        epsilon = epsilon0 * share
        truth = oracles.kary_blanket(epsilon0, n_buckets, n_users, epsilon)
        law = kary_blanket(KaryProfile(epsilon0, n_buckets), epsilon)
        found = certified(law, n_users)
        assert holds(found, truth)
        assert found.high - found.low < 1e-11

    @pytest.mark.parametrize("holds_value", ["first", "second", "third"])
    def test_a_huge_alphabet_at_a_tiny_delta_needs_no_line(self, monkeypatch, holds_value):
        law = kary_others(KaryProfile(0.00221378, 85128462288215), 1.97e-7, holds_value)
        found = certified(law, 292436)
        assert found.high < -500
        assert found.high - found.low < ACCURATE
        monkeypatch.setattr(bromwich, "MAX_UNCOMMON", 0)
        along = certified(law, 292436)
        assert along.low <= found.low
        assert found.high <= along.high

    def test_what_is_left_out_of_few_messages_is_added(self, monkeypatch):
        monkeypatch.setattr(bromwich, "MAX_COMBINATIONS", 4)  # a single message of three kinds at most
        monkeypatch.setattr(bromwich, "RTOL_OMITTED", 1.0)
        monkeypatch.setattr(bromwich, "_combinations", lambda law, n_users: math.inf)
        monkeypatch.setattr(bromwich, "_small_multisets", bromwich._small_multisets.__wrapped__)
        found = certified(kary_blanket(KaryProfile(1.0, 1000), 0.0), 10)
        truth = float(oracles.mp.log(oracles.kary_blanket(1.0, 1000, 10, 0.0)))
        assert found.low < truth - 1e-3 < truth + 1e-3 < found.high

    @pytest.mark.parametrize(
        ("epsilon0", "n_buckets", "n_users", "epsilon"),
        [
            (1.0, 2, 10**6, 0.009),
            (1.0, 3, 10**9, 2e-4),
            (4.0, 2, 10**9, 1.2e-3),
            (0.01, 2, 10**8, 1e-5),
            (1.0, 10, 10**7, 5e-3),
        ],
    )
    def test_round_off_of_many_users_in_forty_digits(self, epsilon0, n_buckets, n_users, epsilon):
        """Far below every double-precision sum: deltas down to 1e-280, n up to 1e9."""
        found = certified(kary_blanket(KaryProfile(epsilon0, n_buckets), epsilon), n_users)
        assert holds(found, oracles.kary_blanket_far(epsilon0, n_buckets, n_users, epsilon), doubt=3e-7)

    @given(BUDGETS, st.sampled_from(["first", "second", "third"]), st.integers(2, 5), FEW, SHARES)
    @settings(max_examples=40)
    def test_others_who_hold_one_value(self, epsilon0, holds_value, n_buckets, n_users, share):
        if holds_value == "third" and n_buckets == 2:
            return
        z = ["first", "second", "third"].index(holds_value)
        n_users = min(n_users, 5)
        truth = oracles.shuffled(oracles.kary_rows(epsilon0, n_buckets), [z] * (n_users - 1), (0, 1), epsilon0 * share)
        found = certified(kary_others(KaryProfile(epsilon0, n_buckets), epsilon0 * share, holds_value), n_users)
        assert holds(found, truth)


class TestLaplace:
    @settings(max_examples=15)
    @given(
        st.floats(-2, 1).map(lambda x: 10**x),
        st.one_of(st.floats(0, 0.99), st.floats(-4, -1).map(lambda x: 1 - 10**x)),
        st.one_of(st.none(), st.floats(0, 1)),
    )
    def test_two_users_by_quadrature(self, epsilon0, share, center):
        mass = 1.0 if center is not None else math.exp(-epsilon0 / 2)
        center = 0.5 if center is None else center
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            truth = oracles.laplace_two(epsilon0, epsilon0 * share, center, mass)
        found = certified(LaplaceLaw(epsilon0, epsilon0 * share, center, mass), 2)
        # The closed form of the oracle cancels like 1e-16 / truth.
        assert found.low - 1e-8 - 1e-15 / truth <= math.log(truth) <= found.high + 1e-8 + 1e-15 / truth
        assert found.high - found.low < 5e-6


@pytest.mark.parametrize(("rare", "n_users"), [(1e-12, 30), (1e-25, 20), (1e-40, 3), (1e-40, 14)])
def test_where_nearly_every_user_contributes_the_same_loss(rare, n_users):
    """M is next to nothing there: one less what a user takes off it would have no digit left."""
    law = AtomicLaw(np.array([1.0, 0.6, -1.0]), np.array([rare, rare / 3, 1.0]), 1.0, 0.0)
    truth, found = bromwich._enumerated(law, n_users), bromwich._Contour(law, n_users)
    t = found.t
    assert found.log_scale == pytest.approx(
        n_users * math.log(math.exp(-t) + rare * math.exp(t) + rare / 3 * math.exp(0.6 * t)), rel=1e-13
    )
    bracket = found.bracket(bromwich.RTOL_TIGHT)
    assert bracket.low <= truth.high
    assert truth.low <= bracket.high <= found.chernoff()
    assert bromwich.chernoff_at(law, n_users, t) == pytest.approx(found.chernoff(), abs=1e-9)
