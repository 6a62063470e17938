"""FLAME's accounting in closed form: printed formulas, published numbers, the truth behind them, edges."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flamelib.accounting.coordinates import index_privacy as index
from flamelib.accounting.coordinates import paper_bounds as accuracy
from flamelib.accounting.coordinates import paper_bounds as gains
from flamelib.accounting.coordinates import paper_bounds as sp
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.shuffling import closed_form as cf
from flamelib.accounting.shuffling.accuracy import summation_plan
from flamelib.accounting.shuffling.numerical import blanket_divergence
from flamelib.core.profiles import AnyProfile, KaryProfile
from flamelib.core.vocabulary import DomainError


def lemma_1(n, k, epsilon0, delta):
    return mp.sqrt(14 * mp.log(2 / mp.mpf(delta)) * (mp.exp(mp.mpf(epsilon0)) + k - 1) / (mp.mpf(n) - 1))


def theorem_3(k, epsilon0, padded, rate, delta):
    unsampled = lemma_1(padded, k, epsilon0, mp.mpf(delta) / mp.mpf(rate))
    return unsampled, mp.log(1 + mp.mpf(rate) * mp.expm1(unsampled))


# --- the printed formulas -------------------------------------------------------------------------------

USERS, BUCKETS = st.integers(2, 10**12), st.integers(2, 1000)
EPSILON0, DELTA, RATE = st.floats(1e-9, 8), st.floats(1e-300, 0.29), st.floats(1e-4, 1)


@given(BUCKETS, EPSILON0, USERS, RATE, DELTA)
def test_theorem_3(k, epsilon0, padded, rate, delta):
    found = sp.padded_kary(k, epsilon0, padded, rate, delta)
    if delta >= 2 * rate:
        assert found == sp.CoordinateBudget(math.inf, math.inf)
        return
    unsampled, epsilon = theorem_3(k, epsilon0, padded, rate, delta)
    if unsampled > 1:
        assert found == sp.CoordinateBudget(math.inf, math.inf)
    else:
        assert found.epsilon_unsampled == pytest.approx(float(unsampled), rel=1e-12)
        assert found.epsilon == pytest.approx(float(epsilon), rel=1e-12)


# --- published numbers ----------------------------------------------------------------------------------


def test_figure_3_with_the_inferred_parameters():
    """2.55 and 137.36 come out at 5000 users, two buckets and a budget of 0.8 a coordinate."""
    delta = 0.01 / 5000**1.1
    assert gains.simple_ratio(75755, 5000, 2, 0.8, delta) == pytest.approx(2.55264, abs=5e-6)
    assert gains.double_ratio(75755, 1515.1, 1666, 2, 0.8, delta) == pytest.approx(137.3550, abs=5e-5)


def test_index_privacy_of_the_experiments():
    assert index.strongest_index_privacy(1000, 333, 1 / 50) == index.IndexPrivacy(3.125, 16)
    assert index.least_multiples(1 / 50, 3.125) == 16.0


# --- upper bounds lie above the truth -----------------------------------------------------------------------


@pytest.mark.parametrize("n_users", [2000, 10**6])
@pytest.mark.parametrize("n_buckets", [2, 10])
@pytest.mark.parametrize("epsilon0", [0.1, 2.5])
@pytest.mark.parametrize("delta", [1e-9, 0.5])
def test_lemma_1_lies_above_the_certified_divergence(n_users, n_buckets, epsilon0, delta):
    bound = sp.shuffled_kary(n_users, n_buckets, epsilon0, delta)
    certified = blanket_divergence(KaryProfile(epsilon0, n_buckets), n_users, delta=delta)
    assert certified - certified.uncertainty <= bound


def test_sampling_gains_no_more_than_lemma_4_allows():
    """Theorem 2 against the certified divergence of the sampled users, amplified by the same lemma."""
    for n_users, rate, epsilon0 in ((20_000, 0.1, 0.5), (10**6, 0.02, 2.0)):
        certified = blanket_divergence(KaryProfile(epsilon0, 2), round(rate * n_users), delta=1e-8 / rate)
        assert sampled_epsilon(certified, rate) <= sp.sampled_kary(n_users, 2, epsilon0, rate, 1e-8).epsilon


def test_the_second_branch_is_kept_where_it_decides():
    """Above a delta of 0.2907 the lemma as printed is not what the theorem proves."""
    n, epsilon0, delta = 90, 0.5, 0.5
    per_bucket = (n - 1) / (math.exp(epsilon0) + 1)
    assert sp.shuffled_kary(n, 2, epsilon0, delta) == pytest.approx(27 / per_bucket, rel=1e-13)
    assert float(lemma_1(n, 2, epsilon0, delta)) < 27 / per_bucket
    assert sp.shuffled_kary(n, 2, epsilon0, 0.29) == pytest.approx(float(lemma_1(n, 2, epsilon0, 0.29)), rel=1e-13)


def test_theorem_1_lies_above_the_exact_composition():
    """Binary response with a tell-tale symbol in every coordinate, composed exactly."""
    for d, epsilon, delta in ((3, 0.5, 1e-3), (50, 0.1, 1e-5), (300, 0.05, 1e-6)):
        found, stays = sp.simple_vector(d, epsilon, delta), mp.exp(epsilon) / (1 + mp.exp(epsilon))
        pure = mp.fsum(
            mp.binomial(d, i)
            * stays**i
            * (1 - stays) ** (d - i)
            * max(0, 1 - mp.exp(found.epsilon - (2 * i - d) * epsilon))
            for i in range(d + 1)
        )
        assert 1 - (1 - mp.mpf(delta)) ** d * (1 - pure) <= found.delta


# --- corollaries: fitted slopes of the chain they summarise -----------------------------------------------


def slope(answers, points):
    return np.polyfit(np.log(points), np.log([answers(point) for point in points]), 1)[0]


def one(epsilon0, n, delta):
    return min(bound(AnyProfile(epsilon0), n, delta=delta) for bound in (cf.hoeffding, cf.bennett))


def simple(epsilon0, d, n, delta):
    each = delta / (d + 1)
    return sp.simple_vector(d, one(epsilon0, n, each), each).epsilon


def double(epsilon0, d, rate, padded, delta):
    each = delta / (2 * rate * d + 1)
    return sp.double_vector(rate * d, sampled_epsilon(one(epsilon0, padded, each / rate), rate), each).epsilon


WIDE = np.geomspace(1e7, 1e10, 7).astype(int).tolist()
TINY = 1e-200


@pytest.mark.parametrize(
    ("rate", "chain"),
    [
        (lambda n: gains.simple_rate(0.5, 1000, n, TINY), lambda n: simple(0.5, 1000, n, TINY)),
        (lambda n: gains.double_rate(0.5, 10_000, 0.05, n, TINY), lambda n: double(0.5, 10_000, 0.05, n, TINY)),
    ],
    ids=["corollary 2", "corollary 3"],
)
def test_the_root_of_the_users(rate, chain):
    assert slope(rate, WIDE) == pytest.approx(-0.5, abs=1e-9)
    assert slope(chain, WIDE) == pytest.approx(-0.5, abs=0.02)


def test_the_root_of_the_dimension():
    """Once there are enough coordinates for the advanced theorem to be the better one."""
    dimensions = np.geomspace(1e5, 1e8, 7).astype(int).tolist()
    for rate, chain in (
        (lambda d: gains.simple_rate(0.5, d, 10**13, TINY), lambda d: simple(0.5, d, 10**13, TINY)),
        (lambda d: gains.double_rate(0.5, d, 0.05, 10**13, TINY), lambda d: double(0.5, d, 0.05, 10**13, TINY)),
    ):
        assert slope(rate, dimensions) == pytest.approx(0.5, abs=0.01)
        assert slope(chain, dimensions) == pytest.approx(0.5, abs=0.02)


def test_the_power_of_the_sampling_rate():
    rates = np.geomspace(1e-3, 1e-1, 7).tolist()
    assert slope(lambda rate: gains.double_rate(0.5, 10**7, rate, 10**13, TINY), rates) == pytest.approx(1.5, abs=0.02)
    assert slope(lambda rate: double(0.5, 10**7, rate, 10**13, TINY), rates) == pytest.approx(1.5, abs=0.02)


# --- Figure 3 ---------------------------------------------------------------------------------------------


# --- Proposition 1 ----------------------------------------------------------------------------------------


def test_proposition_1_has_its_slopes():
    padded = np.geomspace(1e8, 1e12, 5).astype(int).tolist()
    assert slope(lambda n: accuracy.mean_deviation(n, 100, 1.0, 1e-6), padded) == pytest.approx(1 / 6, abs=0.01)
    assert slope(lambda n: accuracy.mean_deviation(10**10, n, 1.0, 1e-6), [10, 100, 1000]) == pytest.approx(
        -1, abs=1e-9
    )
    epsilons = [0.01, 0.1, 1.0]
    assert slope(lambda e: accuracy.mean_deviation(10**12, 100, e, 1e-6), epsilons) == pytest.approx(-2 / 3, abs=0.01)


def test_dummies_are_noisier_than_proposition_1_says():
    """With half of the messages dummies the deviation grows like the root of their number, not its sixth root."""
    padded = np.geomspace(1e8, 1e12, 5).astype(int).tolist()

    def honest(n):
        plan = summation_plan(n, 1.0, 1e-6)
        return accuracy.padded_deviation(n, n // 2, plan.n_levels, plan.blanket_mass) * (n // 2)

    assert slope(honest, padded) == pytest.approx(1 / 2, abs=0.01)
    assert honest(10**10) > 20 * accuracy.mean_deviation(10**10, 1, 1.0, 1e-6)


# --- index privacy ----------------------------------------------------------------------------------------


def posterior(d, k, multiples, index=0):
    """Chance that a reported index is a true one, over every true set and every report."""
    true = reported = Fraction(0)
    for top in itertools.combinations(range(d), k):
        rest = [j for j in range(d) if j not in top]
        for others in itertools.combinations(rest, k * (multiples - 1)):
            chance = Fraction(1, math.comb(d, k) * math.comb(d - k, k * (multiples - 1)))
            if index in top or index in others:
                reported += chance
                true += chance * (index in top)
    return true / reported


@pytest.mark.parametrize(("d", "k"), [(6, 1), (6, 2), (9, 3), (8, 1), (8, 2)])
def test_definition_3_by_enumeration(d, k):
    rate = Fraction(k, d)
    for multiples in range(1, d // k + 1):
        chance = posterior(d, k, multiples)
        assert chance == Fraction(1, multiples)
        for ratio in (Fraction(1), Fraction(6, 5), Fraction(2), Fraction(3), Fraction(10**6)):
            holds = chance <= ratio * rate and 1 - chance >= (1 - rate) / ratio
            assert holds == (multiples >= index.least_multiples(k / d, float(ratio)) * (1 - 1e-12))


@given(st.floats(1e-6, 1), st.floats(1, 1e6))
def test_the_two_branches(rate, ratio):
    truth = max(1 / (mp.mpf(ratio) * rate), mp.mpf(ratio) / (mp.mpf(ratio) - 1 + mp.mpf(rate)))
    assert index.least_multiples(rate, ratio) == pytest.approx(float(truth), rel=1e-13)
    found = index.multiples_range(rate, ratio)
    assert found.least <= found.most * (1 + 1e-12)


@given(st.integers(1, 200), st.integers(1, 200), st.integers(2, 10**6), st.integers(2, 10**6))
@settings(max_examples=300)
def test_theorem_5_in_whole_numbers(kept, extra, n_users, padded):
    """The floor is that of the exact quotient, although the rate k / d arrives rounded."""
    rate = Fraction(kept, kept + extra)
    multiples = math.floor(padded / (n_users * rate))
    if multiples < 1:
        with pytest.raises(DomainError, match=r"^padded must be at least"):
            index.strongest_index_privacy(n_users, padded, float(rate))
        return
    found = index.strongest_index_privacy(n_users, padded, float(rate))
    assert found.multiples == multiples
    assert found.index_privacy == (
        math.inf if multiples == 1 else pytest.approx(max(1, float(1 / (multiples * rate))), rel=1e-12)
    )
    if 1 < multiples <= 1 / rate:
        assert multiples >= index.least_multiples(float(rate), found.index_privacy) * (1 - 1e-9)


def test_no_index_privacy_at_one_multiple():
    """Every reported index is true: Definition 3 fails for every finite ratio, though the formula prints 50."""
    assert index.strongest_index_privacy(1000, 39, 0.02) == index.IndexPrivacy(math.inf, 1)
    assert 1 < index.least_multiples(0.02, 50) == pytest.approx(1.02, abs=5e-5)
    assert index.least_multiples(0.02, 1e12) > 1
    assert index.strongest_index_privacy(10, 10, 1.0) == index.IndexPrivacy(1.0, 1)
    assert index.multiples_range(1 / 49, 1.0) == index.MultiplesRange(pytest.approx(49), 49)


# --- bad input --------------------------------------------------------------------------------------------
