"""Shuffling bounds squeezed between each other, exact sums, published numbers and another library."""

import math
import warnings

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import shuffling as oracles
from oracles.tables import family, neighbours, worst

from flamelib.accounting.composition.privacy_profile import together
from flamelib.accounting.shuffling.brackets import answer
from flamelib.accounting.shuffling.bromwich import Bracket
from flamelib.accounting.shuffling.closed_form import bennett, clones_closed, hoeffding
from flamelib.accounting.shuffling.numerical import all_equal, blanket_divergence, clones_2021, exact_binary
from flamelib.accounting.shuffling.randomizers import round_curve
from flamelib.core.profiles import ClonedProfile, KaryProfile, LaplaceProfile

WIDE = 1 + 2e-6
BUDGETS = st.floats(-2, 1).map(lambda x: 10**x)
SHARES = st.floats(0.001, 0.98)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


class TestSqueeze:
    @settings(max_examples=25)
    @given(BUDGETS, st.sampled_from([(2, 2), (2, 3), (2, 6), (3, 2), (3, 4), (4, 3)]), SHARES)
    def test_truth_lies_between(self, epsilon0, shape, share):
        """Every data set, every pair: not below all others equal, below the blanket."""
        n_buckets, n_users = shape
        epsilon, profile = epsilon0 * share, KaryProfile(epsilon0, n_buckets)
        truth = float(worst(neighbours(family("kary", epsilon0, n_buckets), n_users), epsilon))
        low, high = all_equal(profile, n_users, epsilon=epsilon), blanket_divergence(profile, n_users, epsilon=epsilon)
        equal = float(oracles.kary_others(epsilon0, n_buckets, n_users, epsilon))
        assert low <= truth <= high
        assert low >= equal * (1 - 1e-6)
        assert (
            high <= min(hoeffding(profile, n_users, epsilon=epsilon), bennett(profile, n_users, epsilon=epsilon)) * WIDE
        )
        if n_buckets == 2:
            assert low <= exact_binary(epsilon0, n_users, epsilon=epsilon) <= high * WIDE
            assert exact_binary(epsilon0, n_users, epsilon=epsilon) == pytest.approx(truth, rel=1e-8)

    def test_clones_numeric_is_below_the_closed_form(self):
        for epsilon0, n_users in ((1.0, 10**4), (4.0, 10**5), (0.5, 10**6)):
            assert clones_2021(epsilon0, n_users, delta=1e-6) < clones_closed(epsilon0, n_users, 1e-6)


@pytest.mark.parametrize(
    ("epsilon0", "n_users", "epsilon"),
    [(29.492279489729363, 2, 29.49227902605631), (29.571162814602268, 2, 29.162258210820575), (27.7, 100, 27.6993)],
)
def test_large_budgets_of_few_users_keep_their_digits(epsilon0, n_users, epsilon):
    """Exactly one blanket message is all that counts, and its part is known in closed form."""
    nobody = math.exp((n_users - 1) * math.log1p(-math.exp(-epsilon0 / 2)))
    least = nobody * -math.expm1((epsilon - epsilon0) / 2)
    found = blanket_divergence(LaplaceProfile(epsilon0), n_users, epsilon=epsilon)
    assert least <= found <= least * (1 + 1e-6)


LOUD = [30.1, 31.7, 40.0, 100.0, 700.0]


def loud(epsilon0, epsilon):
    """Delta of binary response by itself, with digits enough next to 1."""
    p = mp.exp(epsilon0)
    return max(p / (p + 1) - mp.exp(epsilon) / (p + 1), mp.mpf(0))


@pytest.mark.parametrize("epsilon0", LOUD)
@mp.workdps(400)
def test_local_budgets_beyond_the_numerics_are_never_too_small(epsilon0):
    for delta in (1 - 2**-53, 1 - 1e-15, 1 - 1e-12, 1 - 1e-9, 0.9, 0.5, 1e-9, 1e-300):
        found = float(exact_binary(epsilon0, 2, delta=delta))
        assert loud(epsilon0, found) <= mp.mpf(delta)
        near = (1 - 1e-9) * (found - 1e-9)
        assert found == 0 or loud(epsilon0, near) > mp.mpf(delta) or loud(epsilon0, 0) <= mp.mpf(delta)
    curve = round_curve(ClonedProfile(epsilon0), 2)
    for share in (0.0, 1e-9, 0.1, 0.5, 0.7, 0.95, 1 - 1e-7, 1 - 1e-15):
        epsilon = share * epsilon0
        truth = loud(epsilon0, epsilon)
        for found in (float(exact_binary(epsilon0, 2, epsilon)), curve.forward(epsilon)):
            assert truth <= mp.mpf(found) <= truth * (1 + 1e-6) + 1e-300
        assert truth <= together([(curve, 1)], 1, 1e-6).forward(epsilon)


def test_a_lower_end_that_no_bracket_settles_is_given_up():
    asked = []

    def never_close(epsilon):
        asked.append(epsilon)
        return Bracket(-1.0 - epsilon, -1e-3 * epsilon if epsilon > 4 else 5.0)

    found = answer(never_close, lambda epsilon: -epsilon, 20.0, None, 0.999, upper=False)
    assert found == 0
    assert 3.9 < found.uncertainty <= 20
    assert len(asked) < 12
