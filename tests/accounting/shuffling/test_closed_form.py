"""Closed-form amplification: high-precision definitions, published numbers, edges, and the truth they bound."""

import math

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import closed_form as oracle
from oracles import shuffling as slow

from flamelib.accounting.shuffling import closed_form as cf
from flamelib.accounting.shuffling.closed_form import withdrawn_curve
from flamelib.core.profiles import AnyProfile, GaussianProfile, KaryProfile, LaplaceProfile
from flamelib.core.vocabulary import DomainError

FAMILIES = {
    "any": AnyProfile,
    "laplace": LaplaceProfile,
    "kary-2": lambda epsilon0: KaryProfile(epsilon0, 2),
    "kary-100": lambda epsilon0: KaryProfile(epsilon0, 100),
}
BOUNDS = {"hoeffding": cf.hoeffding, "bennett": cf.bennett}


def log_delta(curve, profile, n, epsilon):
    return cf._log_delta(curve(profile.loss_shape, n), profile.epsilon0, epsilon)


# Numbers printed by the authors' notebook: 5000 users, local budget 0.4.
PUBLISHED = {
    ("any", "hoeffding"): (0.0379424719, 0.0574616478, 0.0496357212),
    ("any", "bennett"): (0.1400916831, 0.1130167908, None),
    ("laplace", "hoeffding"): (0.0057923376, 0.0242334546, 0.0992714425),
    ("laplace", "bennett"): (0.0048535414, 0.0228075356, 0.0999450991),
    ("kary-2", "hoeffding"): (0.0056425464, 0.0239788235, 0.0993310892),
    ("kary-2", "bennett"): (0.0056865300, 0.0242830150, 0.0983905225),
    ("kary-100", "hoeffding"): (0.0074451490, 0.0268812897, 0.0970004940),
    ("kary-100", "bennett"): (3.3602171e-9, 0.0035207898, 0.5191456849),
}


@pytest.mark.parametrize(("family", "bound"), PUBLISHED)
def test_numbers_of_the_authors_notebook(family, bound):
    delta, epsilon, epsilon0 = PUBLISHED[family, bound]
    profile = FAMILIES[family](0.4)
    assert BOUNDS[bound](profile, 5000, epsilon=0.005) == pytest.approx(delta, abs=0.51e-10 if delta > 1e-6 else 1e-16)
    assert BOUNDS[bound](profile, 5000, delta=1e-6) == pytest.approx(epsilon, abs=0.51e-10)
    found = cf.largest_epsilon0(BOUNDS[bound], FAMILIES[family], 5000, 0.005, 1e-6)
    # Where no amplified budget will do, the local budget itself may be the central one.
    # (The notebook's own root search is good to 1.1e-10.)
    assert found == (pytest.approx(epsilon0, abs=1.1e-10) if epsilon0 else 0.005)


@pytest.mark.parametrize("n", [1000, 1001, 1500])
@pytest.mark.parametrize("blankets", [1e-6, 0.4, 30.0, 190.0, 215.0, 700.0])
def test_withdrawn_form_with_few_and_many_blankets(n, blankets):
    """Every branch of the mean inverse, before the cap at 1."""
    profile = KaryProfile(cf.kary_epsilon0(50, blankets / n), 50)
    expected = mp.log(oracle.bennett_delta("kary", n, profile.epsilon0, 0.3, 50, withdrawn=True))
    assert withdrawn_curve(profile.loss_shape, n)(0.3) == pytest.approx(float(expected), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    ("bound", "epsilon0", "n", "log_delta"),
    [
        ("hoeffding", 5.0, 10**7, -4.3),
        ("hoeffding", 5.0, 10**7, -3.5),
        ("hoeffding", 5.0, 10**7, -4.39),
        ("hoeffding", 5.0, 10**7, -3.0),
        ("bennett", 8.0, 10**8, -4.0),
        ("bennett", 8.0, 10**8, -0.1),
        ("bennett", 8.0, 10**8, -4.5),
    ],
)
def test_epsilon_is_found_on_the_falling_side_of_a_valley(bound, epsilon0, n, log_delta):
    """At a large local budget the formulas rise again: the end of the range does not tell what the valley holds."""
    formula = {"hoeffding": oracle.log_hoeffding, "bennett": oracle.log_bennett}[bound]
    step = epsilon0 / 400
    met = [step * i for i in range(1, 400) if formula("any", n, epsilon0, step * i) <= log_delta]
    found = BOUNDS[bound](AnyProfile(epsilon0), n, delta=math.exp(log_delta))
    assert (met[0] - step < found <= met[0]) if met else found == epsilon0


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 14), st.floats(0.1, 4.0), st.floats(0.05, 0.95), st.sampled_from([2, 3, 7]))
def test_both_inequalities_bound_the_enumerated_truth(n, epsilon0, share, k):
    truth = slow.kary_blanket(epsilon0, k, n, share * epsilon0)
    for bound in BOUNDS.values():
        for profile in (KaryProfile(epsilon0, k), AnyProfile(epsilon0)):
            assert truth <= bound(profile, n, epsilon=share * epsilon0) * (1 + 1e-12)


def test_the_withdrawn_form_is_not_a_bound():
    """Many users, small epsilon: it falls below the exact distance of two data sets under shuffled binary response."""
    n, epsilon, profile = 10_000, 0.01, KaryProfile(0.5, 2)
    truth = float(slow.binary_equal(0.5, n, epsilon))
    assert truth == pytest.approx(4.65e-5, rel=2e-3)
    assert cf.bennett_withdrawn(profile, n, epsilon=epsilon) == pytest.approx(8.9e-6, rel=1e-2)
    assert cf.bennett(profile, n, epsilon=epsilon) == pytest.approx(6.8e-4, rel=1e-2)


def amplified(profile, epsilon):
    """Greatest value, width of the range and second moment of the amplification variable."""
    shape = profile.loss_shape
    log_a = math.log(math.expm1(epsilon)) if epsilon else -math.inf
    moment = math.exp(shape.log_second_moment(epsilon, log_a))
    return math.exp(shape.log_high(epsilon)), shape.spread * (math.exp(epsilon) + 1), moment


@pytest.mark.parametrize("epsilon0", [1e-6, 0.3, 2.0, 9.0])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_amplification_variable(epsilon0, share):
    epsilon = share * epsilon0
    for profile in (KaryProfile(epsilon0, 2), KaryProfile(epsilon0, 7), LaplaceProfile(epsilon0), AnyProfile(epsilon0)):
        high, apart, moment = amplified(profile, epsilon)
        _, width, top, second = oracle.table_constants(
            profile.kind, epsilon0, epsilon, getattr(profile, "n_buckets", None)
        )
        assert high == pytest.approx(float(top), rel=1e-12, abs=1e-15 * epsilon0)
        assert apart == pytest.approx(float(width), rel=1e-12)
        assert moment == pytest.approx(float(second), rel=1e-12)
    exact = float(oracle.laplace_second_moment(epsilon0, epsilon))
    outer, inner = (amplified(kind(epsilon0), epsilon) for kind in (AnyProfile, LaplaceProfile))
    assert inner[2] == pytest.approx(exact, rel=1e-10)
    assert all(wide >= narrow for wide, narrow in zip(outer, inner, strict=True))


def test_blanket_masses_by_integration():
    for profile, density in (
        (LaplaceProfile(0.8), lambda y: mp.mpf("0.4") * mp.exp(-mp.mpf("0.8") * y)),
        (GaussianProfile(0.7), lambda y: mp.npdf(y, 0, mp.mpf("0.7"))),
    ):
        shared = 2 * mp.quad(density, [mp.mpf(1) / 2, 1, mp.inf])
        assert cf.blanket_mass(profile) == pytest.approx(float(shared), rel=1e-12)
    assert cf.blanket_mass(KaryProfile(math.log(7), 4)) == pytest.approx(0.4, rel=1e-15)


histograms = st.integers(2, 50), st.floats(0.01, 1.0), st.floats(1e-300, 1.0)


@given(*histograms)
def test_theorem_3_1_and_the_chernoff_bounds_behind_it(k, epsilon, delta):
    n = 10**12
    mass = cf.histogram_blanket_mass(n, k, epsilon, delta)
    plain = max(14 * k * math.log(2 / delta) / ((n - 1) * epsilon**2), 27 * k / ((n - 1) * epsilon))
    assert mass == pytest.approx(plain, rel=1e-14)
    mean = (n - 1) * mass / k
    above = math.exp(epsilon / 2) - 1 - 1 / mean
    below = 1 - math.exp(-epsilon / 2)
    assert above > 0
    assert math.exp(-mean / 3 * above**2) + math.exp(-mean / 2 * below**2) <= delta


def test_theorem_3_1_needs_408_users():
    assert cf.histogram_blanket_mass(408, 2, 1.0, 1e-6) < 1
    with pytest.raises(DomainError, match=r"n_users must be at least 408 for"):
        cf.histogram_blanket_mass(407, 2, 1.0, 1e-6)


def test_erlingsson_and_its_regime():
    assert cf.erlingsson(0.4, 5000, 1e-6) == pytest.approx(0.2523130449, abs=0.51e-10)
    assert cf.erlingsson_epsilon0(5000, 0.005, 1e-6) == pytest.approx(0.0079266611, abs=0.51e-10)
    for epsilon0, n, delta in [
        (0.5001, 10_000, 1e-6),
        (0.1, 999, 1e-3),
        (0.1, 5000, 0.011),
        (0.1, 1000, 1e-6),
        (0.1, 5000, 0),
    ]:
        assert cf.erlingsson(epsilon0, n, delta) == math.inf
    assert cf.erlingsson(0.5, 10**9, 0.01) == pytest.approx(6 * math.sqrt(math.log(100) / 1e9), rel=1e-13)
    assert cf.erlingsson_epsilon0(10**9, 0.4, 1e-6) == 0.5
    assert cf.erlingsson_epsilon0(1000, 0.4, 1e-6) == 0.0
    found = cf.erlingsson_epsilon0(50_000, 0.07, 1e-7)
    assert cf.erlingsson(found, 50_000, 1e-7) <= 0.07 < cf.erlingsson(found * (1 + 1e-12), 50_000, 1e-7)


def test_cheu_and_its_regime():
    assert cf.cheu(0.5, 1000, 1e-4) == pytest.approx(0.5517, abs=5e-5)
    s = 500 - math.sqrt(1000 * math.log(2e4))
    assert cf.cheu(0.5, 1000, 1e-4) == pytest.approx(math.sqrt(32 * math.log(4e4) / s) * (1 - s / 1000), rel=1e-13)
    least = 14 * math.log(4e4) / 1000
    assert cf.cheu(least * (1 - 1e-9), 1000, 1e-4) == math.inf
    assert cf.cheu(least * (1 + 1e-9), 1000, 1e-4) < math.inf
    assert cf.cheu(1.0, 10**15, 0.0) == math.inf
    profile = KaryProfile(1.0, 2)
    assert cf.cheu(profile.mass, 2000, 1e-4) >= cf.hoeffding(profile, 2000, delta=1e-4)


def test_closed_clones_and_their_regime():
    p = mp.exp(4)
    expected = mp.log(1 + (p - 1) / (p + 1) * (8 * mp.sqrt(p * mp.log(mp.mpf("4e6")) / 10**5) + 8 * p / 10**5))
    assert cf.clones_closed(4.0, 100_000, 1e-6) == pytest.approx(float(expected), rel=1e-13)
    assert round(cf.clones_closed(4.0, 100_000, 1e-6), 6) == 0.534634
    edge = math.log(100_000 / (16 * math.log(2e6)))
    assert cf.clones_closed(edge * (1 - 1e-12), 100_000, 1e-6) < math.inf
    assert cf.clones_closed(edge * (1 + 1e-12), 100_000, 1e-6) == math.inf
    assert cf.clones_closed(1.0, 100_000, 0.0) == math.inf


def test_greatest_local_budget_is_safe_and_takes_other_bounds():
    found = cf.largest_epsilon0(cf.bennett, LaplaceProfile, 10_000, 0.1, 1e-9)
    assert cf.bennett(LaplaceProfile(found), 10_000, epsilon=0.1) <= 1e-9
    assert cf.bennett(LaplaceProfile(found * (1 + 1e-10)), 10_000, epsilon=0.1) > 1e-9
    assert cf.largest_epsilon0(lambda *_, **__: 0.0, LaplaceProfile, 10, 0.1, 1e-9) == 10.0
    assert cf.largest_epsilon0(lambda *_, **__: 1.0, LaplaceProfile, 10, 0.1, 1e-9, at_most=0.05) == 0.05
    assert cf.largest_epsilon0(cf.hoeffding, LaplaceProfile, 10, 0.1, 0.0) == 0.1
