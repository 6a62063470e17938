"""One padded coordinate: above every data set of small cases, equal to an explicit average."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import padded as oracles
from reference_bounds import padded_divergence, some_real
from scipy.stats import binom

from flamelib.accounting.coordinates.padded import Coordinate, Others, all_real, sampled
from flamelib.accounting.shuffling import bromwich
from flamelib.accounting.shuffling.laplace import PaddedLaplaceLaw
from flamelib.core.profiles import KaryProfile, LaplaceProfile

BUDGETS = st.floats(-1.5, 0.7).map(lambda x: 10**x)
SHARES = st.floats(0, 0.95)
SHAPES = st.sampled_from(
    [(2, 2, 1), (2, 3, 1), (2, 3, 2), (2, 3, 3), (2, 5, 3), (3, 2, 2), (3, 3, 2), (3, 4, 2), (3, 4, 3)]
)
BOUNDS = ["blanket", "hoeffding", "bennett"]
WIDE = 1 + 2e-4


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class TestEveryDataSet:
    """K-ary response among dummies, enumerated."""

    @settings(max_examples=40)
    @given(BUDGETS, SHAPES, SHARES)
    def test_real_against_real(self, epsilon0, shape, share):
        n_buckets, padded, real = shape
        profile, epsilon = KaryProfile(epsilon0, n_buckets), share * epsilon0
        truth = oracles.padded_kary(epsilon0, n_buckets, padded, real, epsilon)
        bound = padded_divergence(profile, padded, epsilon=epsilon, real=real)
        assert truth <= bound <= padded_divergence(profile, padded, epsilon=epsilon) * WIDE
        assert bound <= -math.expm1(epsilon - epsilon0)

    @settings(max_examples=40)
    @given(BUDGETS, SHAPES, SHARES)
    def test_real_against_dummy(self, epsilon0, shape, share):
        n_buckets, padded, real = shape
        profile = KaryProfile(epsilon0, n_buckets)
        epsilon = share * Coordinate(profile, all_real(profile, padded), 1, 0).most
        pairs = ((1, 0), (0, 1))
        truth = max(oracles.padded_kary(epsilon0, n_buckets, padded, real, epsilon, *pair) for pair in pairs)
        bound = padded_divergence(profile, padded, epsilon=epsilon, real=real, against="dummy")
        assert truth <= bound
        assert bound <= padded_divergence(profile, padded, epsilon=epsilon, real=real) * WIDE

    @settings(max_examples=40)
    @given(BUDGETS, SHAPES, SHARES, st.floats(0.01, 1), st.sampled_from(BOUNDS))
    def test_reported_with_a_chance(self, epsilon0, shape, share, rate, bound):
        n_buckets, padded, real = shape
        profile = KaryProfile(epsilon0, n_buckets)
        one = Coordinate(profile, some_real(profile, padded, real), rate, rate)
        epsilon = share * one.most
        truth = oracles.padded_kary(epsilon0, n_buckets, padded, real, epsilon, rate, rate)
        assert truth <= one.delta(epsilon, bound) * (1 + 1e-12)

    @settings(max_examples=20)
    @given(BUDGETS, st.sampled_from([(2, 2, 2), (2, 3, 2), (2, 2, 3), (2, 2, 4), (2, 3, 4), (3, 2, 3)]), SHARES,
           st.floats(0.02, 1), st.floats(-6, -1))  # fmt: skip
    def test_everybody_reports_with_a_chance(self, epsilon0, shape, share, rate, rest):
        """Also where more messages than places may meet and are then published bare."""
        n_buckets, padded, n_users = shape
        profile, epsilon = KaryProfile(epsilon0, n_buckets), share * epsilon0
        one = Coordinate(profile, sampled(profile, padded, n_users, rate, 10**rest), rate, rate)
        truth = oracles.sampled_kary(epsilon0, n_buckets, padded, n_users, rate, epsilon)
        assert truth <= one.delta(epsilon, "blanket") * (1 + 1e-12)


class TestFormula:
    @settings(max_examples=30)
    @given(BUDGETS, SHAPES, SHARES)
    def test_against_the_explicit_average(self, epsilon0, shape, share):
        n_buckets, padded, real = shape
        profile, epsilon = KaryProfile(epsilon0, n_buckets), share * epsilon0
        exact = oracles.padded_formula(epsilon0, n_buckets, padded, real, epsilon)
        bound = padded_divergence(profile, padded, epsilon=epsilon, real=real)
        assert exact <= bound
        assume(exact > 1e-12 and real in (1, padded))
        assert bound <= exact * (1 + 1e-9)


class TestLaplace:
    @settings(max_examples=25)
    @given(
        BUDGETS, SHARES, st.sampled_from([(1, 1), (1, 0), (0, 1), (0.3, 0.3), (0.02, 0.02)]), st.sampled_from([1, 2])
    )
    def test_against_quantiles(self, epsilon0, share, pair, blankets):
        profile = LaplaceProfile(epsilon0)
        others = Others(blankets, 1.0, 0.0)
        one = Coordinate(profile, others, *pair)
        epsilon = share * one.most
        truth = oracles.laplace_padded(epsilon0, epsilon, *pair, blankets)
        if blankets == 2:
            assume(truth > 1e-4 * one.scale)
            found = math.exp(bromwich.bracket(one.law(epsilon), 2, 1e-4).high) * one.scale
            assert found == pytest.approx(truth, rel=2e-2)
        else:
            assert one.clear(epsilon) >= truth * (1 - 1e-3) - 1e-6 * one.scale
            if pair[0] != pair[1] or pair == (1, 1):
                assert one.clear(epsilon) == pytest.approx(truth, rel=1e-2, abs=1e-6)

    @pytest.mark.parametrize("pair", [(1, 1), (1, 0), (0, 1), (0.4, 0.4)])
    @pytest.mark.parametrize(("epsilon0", "share"), [(0.01, 0.2), (0.5, 0.0), (2.0, 0.5), (6.0, 0.3)])
    def test_the_law(self, epsilon0, share, pair):
        """Points, closed form and quantiles agree; the mean is that of every law of its kind."""
        one = Coordinate(LaplaceProfile(epsilon0), Others(10, 1.0, 0.0), *pair)
        epsilon = share * one.most
        law = one.law(epsilon)
        assert isinstance(law, PaddedLaplaceLaw)
        values, weights = law.points
        quantiles = oracles.laplace_pair(epsilon0, epsilon, *pair, 400_000) / one.scale
        assert weights.sum() == pytest.approx(1, abs=1e-14)
        assert values @ weights == pytest.approx(-math.expm1(epsilon) / one.scale, rel=1e-9, abs=1e-12)
        for s in (0.3 + 0j, 1 + 2j, -0.5 + 5j):
            s = s * min(law.reach, 1)
            by_points = weights @ np.expm1(s * values)
            assert law.transform(np.array([s]))[0] == pytest.approx(by_points, rel=1e-9, abs=1e-12)
            assert by_points == pytest.approx(np.expm1(s * quantiles).mean(), rel=1e-3, abs=1e-4)


class TestOthers:
    @pytest.mark.parametrize("real", [1, 2, 17, 300, 333])
    @pytest.mark.parametrize("epsilon0", [0.01, 0.5, 4.0])
    def test_known_number(self, real, epsilon0):
        profile = LaplaceProfile(epsilon0)
        found, places = some_real(profile, 333, real), np.arange(333)
        truth = binom.sf(places, real - 1, -math.expm1(-epsilon0 / 2))
        assert np.all(truth <= binom.sf(places, 332, found.kept) * (1 + 1e-9))
        assert found.mass + found.kept == pytest.approx(1, abs=1e-15)

    @pytest.mark.parametrize("rate", [1e-4, 0.02, 0.2, 0.33, 0.6, 1.0])
    @pytest.mark.parametrize("padded", [50, 333, 1000, 4000])
    @pytest.mark.parametrize("epsilon0", [0.5, 4.0])
    def test_independent_reports(self, rate, padded, epsilon0):
        """Stochastically below on the event that is not set aside, whose probability is what is said."""
        profile, places = LaplaceProfile(epsilon0), np.arange(padded)
        found = sampled(profile, padded, 1000, rate)
        chance = rate * -math.expm1(-epsilon0 / 2)
        truth = np.array([binom.sf(place, 999, chance) for place in places])
        assert np.all(truth <= binom.sf(places, padded - 1, found.kept) * (1 + 1e-9) + found.rest)
        assert found.rest >= binom.sf(padded - 1, 999, rate) * (1 - 1e-9)
        assert found.kept <= all_real(profile, padded).kept * (1 + 1e-12)
        assert found.rest <= binom.sf(padded - 1, 999, rate) * (1 + 1e-8) + 2e-20


class TestCurve:
    @pytest.mark.parametrize("epsilon0", [1e-300, 1e-9, 40.0, 700.0])
    @pytest.mark.parametrize("profile", [LaplaceProfile, lambda epsilon0: KaryProfile(epsilon0, 3)])
    def test_beyond_the_numerics_the_message_stands_alone(self, epsilon0, profile):
        one = Coordinate(profile(epsilon0), all_real(profile(epsilon0), 50))
        assert 0 < one.delta(0.5 * epsilon0, "blanket") <= 1
        assert one.delta(epsilon0, "blanket") <= 1e-15 * epsilon0


def test_everybody_reports_and_nobody_blends_in():
    found = sampled(LaplaceProfile(80.0), 100, 1000, 1.0)
    assert (found.mass, found.kept) == (all_real(LaplaceProfile(80.0), 100).mass, 1.0)
