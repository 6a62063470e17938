"""Compositions against closed forms, sums over every outcome, another library; never below, and close."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.special import log_ndtr
from scipy.stats import binom

from flamelib.accounting.checkin.shuffled import shuffled_rounds
from flamelib.accounting.composition.dominating_pair import DominatingPair, composed
from flamelib.accounting.composition.privacy_profile import (
    PrivacyProfile,
    composed_delta,
    composed_epsilon,
    tabulated,
    together,
)
from flamelib.accounting.shuffling.closed_form import bennett
from flamelib.core.profiles import KaryProfile, LaplaceProfile

EXACT = 1 + 1e-9


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def gaussian(shift):
    """Profile of two normal laws at this distance, to about 1e-12 of itself."""

    def delta(epsilon):
        first, second = log_ndtr(shift / 2 - epsilon / shift), epsilon + log_ndtr(-shift / 2 - epsilon / shift)
        return math.exp(first) * -math.expm1(min(second - first, 0.0)) * (1 + 1e-12)

    return delta


def gaussian_exact(shift, epsilon):
    shift, epsilon = mpf(shift), mpf(epsilon)
    return mp.ncdf(shift / 2 - epsilon / shift) - mp.exp(epsilon) * mp.ncdf(-shift / 2 - epsilon / shift)


def response(epsilon0):
    """Profile of binary randomized response."""
    curve = lambda epsilon: max(0.0, -math.expm1(epsilon - epsilon0)) / (1 + math.exp(-epsilon0))  # noqa: E731
    return PrivacyProfile(curve, at_most=epsilon0)


def profile_of(first, second):
    """Profiles of two finite laws, each direction."""

    def direction(one, two):
        return lambda epsilon: math.fsum(max(p - math.exp(epsilon) * q, 0) for p, q in zip(one, two, strict=True))

    return PrivacyProfile(direction(first, second), direction(second, first))


def product(laws):
    """Both laws of independent outcomes, one chance for each combination."""
    return [[math.prod(chances) for chances in itertools.product(*(pair[side] for pair in laws))] for side in (0, 1)]


class TestGaussian:
    @pytest.mark.parametrize(
        ("times", "total", "epsilon"),
        [
            (1, 1.0, 2.0),
            (1, 0.01, 0.0),
            (10, 1.0, 3.0),
            (10, 4.0, 0.5),
            (3, 5.0, 40.0),
            (7850, 0.32, 1.26),
            (7850, 0.02, 0.09),
            (100_000, 3.0, 20.0),
            (100_000, 3.0, 80.0),
            (30_000_000, 1.0, 4.0),
        ],
    )
    def test_is_its_own_composition(self, times, total, epsilon):
        """Delta from 0.9 to 1e-141, one mechanism to thirty million."""
        truth = gaussian_exact(total, epsilon)
        part = PrivacyProfile(gaussian(total / math.sqrt(times)), error=2e-12)
        delta = composed_delta([(part, times)], epsilon)
        assert truth <= delta <= truth * 1.01
        assert delta - float(truth) <= delta.uncertainty * 1.01 + 1e-7 * delta
        found = composed_epsilon([(part, times)], float(truth))
        assert epsilon * (1 - 1e-9) <= found <= epsilon * 1.002 + 1e-3
        assert found - epsilon <= found.uncertainty * 1.01 + 1e-6 * found

    @pytest.mark.parametrize(("shift", "delta", "times"), [(14.7, 1e-10, 1), (1.5015, 7.943e-43, 1), (4.0, 1e-40, 3)])
    def test_few_large_losses_are_as_close_as_is_said(self, shift, delta, times):
        """The largest loss of a first look is likelier than delta: its tilt is no place to judge doubts by."""
        found = composed_epsilon([(PrivacyProfile(gaussian(shift), error=2e-12), times)], delta)
        truth = gaussian(shift * math.sqrt(times))
        assert truth(float(found)) <= delta * EXACT
        assert truth(float(found) - found.uncertainty) >= delta
        assert found.uncertainty <= 0.01 * found

    @pytest.mark.parametrize("times", [1, 2, 5])
    @pytest.mark.parametrize(("total", "delta"), [(0.3, 1e-200), (1.0, 1e-250), (3.0, 1e-300), (5.0, 1e-200)])
    def test_a_delta_whose_square_is_no_double(self, times, total, delta):
        """Products of two slopes are 0 there, and slopes themselves where losses are large: points were missing."""
        truth, part = gaussian(total), PrivacyProfile(gaussian(total / math.sqrt(times)), error=2e-12)
        found = composed_epsilon([(part, times)], delta)
        assert truth(float(found)) <= delta * EXACT
        assert truth(float(found) - found.uncertainty) >= delta / EXACT
        assert truth(float(found) * (1 - 5e-3)) >= delta
        back = composed_delta([(part, times)], float(found))
        assert truth(float(found)) <= back * EXACT
        assert back - back.uncertainty <= truth(float(found)) * 1.01

    def test_together_is_the_composition(self):
        parts = [(PrivacyProfile(gaussian(0.1)), 2), (PrivacyProfile(gaussian(0.05)), 1)]
        group = together(parts, 40, 1e-6, symmetric=True)
        shift = math.sqrt(40 * (2 * 0.01 + 0.0025))
        truth = gaussian_exact(shift, 4.0)
        assert truth <= composed_delta([(group, 40)], 4.0) <= truth * 1.02
        for epsilon in (0.0, 0.1, 0.3):
            assert group.forward(epsilon) >= gaussian_exact(math.sqrt(0.0225), epsilon)


class TestEveryOutcome:
    @pytest.mark.parametrize(("epsilon0", "times"), [(0.1, 1), (0.1, 100), (1.0, 12), (3.0, 200), (0.001, 5000)])
    def test_randomized_response(self, epsilon0, times):
        """Two losses: the hull is the curve itself, so that only round-off is left."""
        ones = np.arange(times + 1)
        chances, losses = binom.pmf(ones, times, 1 / (1 + math.exp(-epsilon0))), (2 * ones - times) * epsilon0
        for epsilon in (0.0, 0.3 * losses[-1] / math.sqrt(times), 0.9 * losses[-1] / math.sqrt(times)):
            truth = float(chances @ np.maximum(-np.expm1(epsilon - np.maximum(losses, epsilon)), 0))
            found = composed_delta([(response(epsilon0), times)], epsilon)
            assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-7)

    @pytest.mark.parametrize("epsilon0", [2.39, 0.531, 10.6])
    @pytest.mark.parametrize("delta", [1e-25, 1e-200])
    def test_budgets_that_add_are_rounded_up(self, epsilon0, delta):
        """Three times the double is between two doubles, the nearest of which is below."""
        assert 3 * epsilon0 < 3 * Fraction(epsilon0)
        assert composed_epsilon([(response(epsilon0), 3)], delta) >= 3 * Fraction(epsilon0)
        assert shuffled_rounds(KaryProfile(epsilon0, 3), 2, 10**9 + 2, delta=0) >= (10**9 + 2) * Fraction(epsilon0)

    @pytest.mark.parametrize(("epsilon0", "times", "delta"), [(8.0, 1, 1e-8), (4.0, 2, 1e-6), (50.0, 2, 0.3)])
    def test_a_delta_below_the_largest_atom(self, epsilon0, times, delta):
        """The tilt is as steep as it can be: of a whole step of the grid nothing is left but the next loss."""
        wins = np.arange(times + 1)
        chances, losses = binom.pmf(wins, times, 1 / (1 + math.exp(-epsilon0))), (2 * wins - times) * epsilon0
        found = float(composed_epsilon([(response(epsilon0), times)], delta))
        assert chances @ -np.expm1(np.minimum(found - losses, 0)) <= delta * EXACT
        assert found <= times * epsilon0

    LAWS = st.lists(st.floats(0.05, 1), min_size=2, max_size=4)

    @settings(max_examples=25)
    @given(st.lists(st.tuples(LAWS, st.floats(-1.5, 1.5), st.floats(-1.5, 1.5)), min_size=1, max_size=4),
           st.floats(0, 0.9))  # fmt: skip
    def test_any_laws_in_both_directions(self, made, share):
        laws = []
        for weights, lean, bend in made:
            tilted = [w * math.exp(lean * i + bend * (i == 1)) for i, w in enumerate(weights)]
            laws.append([[w / sum(one) for w in one] for one in (weights, tilted)])
        whole = product(laws)
        parts = [(profile_of(*pair), 1) for pair in laws]
        most = max(math.log(p / q) for p, q in zip(*whole, strict=True))
        for one, chosen in (
            (whole, parts),
            (whole[::-1], [(PrivacyProfile(c.backward, c.forward), n) for c, n in parts]),
        ):
            epsilon = share * max(most, 0.0)
            truth = profile_of(*one).forward(epsilon)
            found = composed_delta(chosen, epsilon)
            assert truth <= found * (1 + 1e-12) + 1e-300
            # The uncertainty is an estimate, and for a few unlike mechanisms a rough one.
            assert found - truth <= 2 * found.uncertainty + 1e-2 * found + 1e-9

    def test_what_has_no_finite_loss(self):
        """Each mechanism tells all with probability 1e-5 and is a response otherwise."""
        bare, times = 1e-5, 50
        honest = response(0.2)
        leaky = PrivacyProfile(lambda epsilon: bare + (1 - bare) * honest.forward(epsilon))
        for epsilon in (0.0, 1.0, 20.0):
            rest = float(composed_delta([(honest, times)], epsilon))
            truth = -math.expm1(times * math.log1p(-bare)) + (1 - bare) ** times * rest
            assert truth * (1 - 1e-9) <= composed_delta([(leaky, times)], epsilon) <= truth * 1.01
        assert composed_epsilon([(leaky, times)], 1e-6) == math.inf

    @pytest.mark.parametrize("epsilon", [9.9, 10.1, 1e9])
    def test_beyond_all_finite_losses_only_the_infinite_one_is_left(self, epsilon):
        """The same by known laws; fifty losses of 0.2 reach to 10."""
        bare, times, likely = 1e-3, 50, 1 / (1 + math.exp(-0.2))
        ends = np.array([math.inf, 0.2, -0.2, -math.inf])
        first = np.array([bare, (1 - bare) * likely, (1 - bare) * (1 - likely), 0.0])
        second = np.array([0.0, *first[2:0:-1], bare])
        found = composed([(DominatingPair(ends, ends, second, first - second, np.zeros(4)), times)], epsilon)
        truth = -math.expm1(times * math.log1p(-bare))
        assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-4)


class TestCurves:
    @settings(max_examples=20)
    @given(st.floats(0.01, 3), st.integers(0, 10**6))
    def test_rough_values_cost_little_and_stay_above(self, shift, seed):
        """Neither convex nor falling: values raised by up to a thousandth, and one far too high."""
        smooth = gaussian(shift)
        rough = PrivacyProfile(lambda at: smooth(at) * (1 + 1e-3 * (math.sin(1e6 * at + seed) ** 2)) if at else 1.0)
        epsilon = shift * shift / 2 + 2 * shift
        truth = gaussian_exact(shift, epsilon)
        found = composed_delta([(rough, 1)], epsilon)
        assert truth <= found <= truth * 1.01

    def test_too_long_and_too_large_is_left_to_chernoff(self):
        shift, times = 1e-3, 10**10
        truth = shift**2 * times / 2
        found = composed_epsilon([(PrivacyProfile(gaussian(shift)), times)], 1e-6)
        assert truth < found < truth + 6 * shift * math.sqrt(times)
        assert 0 < composed_delta([(PrivacyProfile(gaussian(shift)), times)], found * 1.001) < 1e-6

    def test_chernoff_is_close_and_falls_with_delta_for_any_number(self):
        """The round-off of very many copies is in it, so that neither end of the range of deltas is cheap."""
        noise = LaplaceProfile(1.0)
        for times in (2 * 10**10, 9 * 10**15):
            curve = PrivacyProfile(lambda epsilon: bennett(noise, 10**6, epsilon=epsilon), at_most=1.0)
            found = [float(composed_epsilon([(curve, times)], 10.0**-k)) for k in (300, 30, 6, 3, 1)]
            assert found == sorted(found, reverse=True)
            assert found[0] < 1.25 * found[-1]


class TestLadders:
    """Chords between places that many questions share: above the curve, hardly, and asked for once each."""

    @staticmethod
    def _curve(asked: list[float]) -> PrivacyProfile:
        def forward(epsilon: float) -> float:
            asked.append(epsilon)
            return max(0.0, -math.expm1(epsilon - 0.5)) / (1 + math.exp(-0.5))

        return PrivacyProfile(forward, lambda epsilon: 0.5 * forward(epsilon), at_most=0.5, error=1e-3)

    def test_chords_lie_hardly_above_the_curve(self) -> None:
        curve = self._curve([])
        found = tabulated(curve)
        assert (found.at_most, found.error) == (0.5, 1e-3)
        for epsilon in [0.0, 1e-9, *np.geomspace(1e-4, 0.499, 300).tolist(), 0.5, 0.7]:
            exact = curve.forward(epsilon)
            assert exact <= found.forward(epsilon) <= exact * (1 + 1e-3) + 1e-4 * epsilon
            assert found.backward is not None
            assert curve.larger(epsilon) <= found.larger(epsilon)
            assert found.backward(epsilon) == pytest.approx(found.forward(epsilon) / 2)
