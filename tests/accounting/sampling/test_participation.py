"""One round of random participation against actual mixtures with many digits, from both sides and to tiny deltas."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from oracles import participation as oracle

from flamelib.accounting.sampling import secret_participation as one_round
from flamelib.accounting.sampling.gaussian_mixtures import ULP, mills_drop
from flamelib.accounting.sampling.public_participation import cs, wcs
from flamelib.accounting.sampling.secret_participation import participation_noise
from flamelib.accounting.sampling.theorem_4_1 import add_estimate, aligned_estimate, inner_estimate, outer_estimate

ESTIMATES = {"outer": outer_estimate, "add": add_estimate, "inner": inner_estimate, "aligned": aligned_estimate}


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(40):
        yield


def reading(name, p, q, n_records, noise_std, epsilon=None, delta=None):
    return one_round.random_participation(name, p, q, n_records, noise_std, 1.0, epsilon, delta)


# --- the numbers -------------------------------------------------------------------------------------------------

CASES = [
    # p, q, n_records, clip_norm / noise_std, epsilon after amplification
    (0.1, 0.1, 2, 1.0, 0.1), (0.1, 0.1, 5, 1.0, 0.1), (0.1, 0.1, 2, 1.0, 0.5), (0.5, 0.5, 4, 1.0, 0.0),
    (1.0, 0.3, 3, 2.0, 0.7), (0.3, 1.0, 3, 0.5, 0.2), (0.01, 0.01, 10, 0.66, 1e-3), (0.9, 0.9, 6, 20.0, 50.0),
    (0.5, 0.1, 3, 20.0, 900.0), (0.9, 0.5, 3, 1e-3, 0.012), (0.1, 0.001, 3, 0.0133, 5.9e-5), (0.2, 0.2, 1, 1.0, 3.0),
    (1e-6, 0.5, 3, 3.0, 100.0), (0.5, 0.01, 3, 0.13, 0.43), (0.5, 1.0, 4, 0.0055, 0.098), (0.7, 0.5, 2, 0.3, 5.5),
]  # fmt: skip


@pytest.mark.parametrize("name", ESTIMATES)
@pytest.mark.parametrize("case", CASES)
def test_every_reading_is_its_formula(name, case):
    """To 1e-10 from deltas near 1 to 1e-300; the errors stated are not exceeded, on the side that is safe."""
    truth = getattr(oracle, name)(*case)
    found = ESTIMATES[name](*case)
    if truth < 1e-320:
        assert truth <= mp.exp(mpf(found.high))
        return
    gap = float(mpf(found.log) - mp.log(truth))
    assert abs(gap) < 2e-10
    assert (-found.error <= gap <= 0) if name == "aligned" else abs(gap) <= found.error
    assert found.error < 3e-10


@settings(max_examples=60)
@given(st.floats(-0.5, 60), st.floats(-12, 1.3).map(lambda e: 10.0**e))
def test_a_fall_of_mills_ratio_keeps_its_digits(z, m):
    with mp.workdps(60):
        mills = [oracle.tail(mpf(at)) / mp.npdf(mpf(at)) for at in (z, mpf(z) + mpf(m))]
        assert abs(mills_drop(np.array([z]), np.array([m]))[0] / (mills[0] - mills[1]) - 1) < 64 * ULP


# --- what the formulas are: divergences of actual mixtures -------------------------------------------------------

SMALL = [(0.1, 0.1, 1.0, 0.1), (0.5, 0.3, 1.5, 0.4), (0.9, 0.6, 0.7, 0.05), (0.3, 0.8, 3.0, 1.0)]


@pytest.mark.parametrize(("p", "q", "mu", "epsilon"), SMALL)
@pytest.mark.parametrize("n_records", [1, 3])
def test_aligned_is_an_exact_loss_and_the_bounds_hold_both_ways(p, q, mu, epsilon, n_records):
    alpha = mp.exp(mpf(epsilon))
    with_it, without = oracle.larger(p, q, n_records, mu)
    remove = float(oracle.divergence(with_it, without, alpha))
    assert remove == pytest.approx(math.exp(aligned_estimate(p, q, n_records, mu, epsilon).log), rel=1e-9)
    outer = math.exp(outer_estimate(p, q, n_records, mu, epsilon).high)
    assert remove <= outer * (1 + 1e-12)
    # The record against all others, or with them: no pair exceeds the bound of its direction.
    for sign in (1, -1):
        with_it, without = against(p, q, n_records, mu, sign)
        back = float(oracle.divergence(without, with_it, alpha))
        assert back <= math.exp(add_estimate(p, q, n_records, mu, epsilon).high) * (1 + 1e-12)
        assert float(oracle.divergence(with_it, without, alpha)) <= outer * (1 + 1e-12)


def against(p, q, n_records, mu, sign):
    p, q, mu = mpf(p), mpf(q), mpf(mu)
    without = [(1 - p, mpf(0))] + [(p * b, j * mu) for j, b in enumerate(oracle.binomial(n_records - 1, q))]
    inside = [(p * b, j) for j, b in enumerate(oracle.binomial(n_records - 1, q))]
    with_it = [(1 - p, mpf(0))]
    with_it += [part for w, j in inside for part in ((w * (1 - q), j * mu), (w * q, (j + sign) * mu))]
    return with_it, without


# --- identities and order ----------------------------------------------------------------------------------------

rates = st.floats(-6, 0).map(lambda e: 10.0**e)
noises = st.floats(-1.3, 3).map(lambda e: 10.0**e)
deviations = st.floats(0, 30)


def reach(q, noise_std, deviation):
    """An epsilon at which delta is neither 1 nor nothing."""
    return math.log1p(q * math.expm1(min(deviation / noise_std + 1 / (2 * noise_std**2), 650.0)))


@settings(max_examples=40)
@given(rates, rates, noises, deviations)
def test_one_record_is_centralized_sampling(p, q, noise_std, deviation):
    epsilon = reach(p * q, noise_std, deviation)
    known = cs(p, q, noise_std, 1.0, epsilon=epsilon)
    for name in one_round.READINGS:
        found = reading(name, p, q, 1, noise_std, epsilon=epsilon)
        assert abs(found - known) <= found.uncertainty + known.uncertainty
        assert known < 1e-290 or found == pytest.approx(float(known), rel=1e-9)


@pytest.mark.parametrize("n_records", [10**6, 10**9, 2**53])
def test_many_records_are_public_participants(n_records):
    known = float(wcs(0.1, 0.1, 1.0, 1.0, epsilon=0.1))
    assert reading("outer", 0.1, 0.1, n_records, 1.0, epsilon=0.1) == pytest.approx(known, rel=1e-10)
    assert reading("inner", 0.1, 0.1, n_records, 1.0, epsilon=0.1) == pytest.approx(known, rel=1e-10)
    assert reading("aligned", 0.1, 0.1, n_records, 1.0, epsilon=0.1) < 1e-2 * known


def test_counts_too_many_to_add_up_are_bracketed():
    """Between few records and public participants; the uncertainty says how far apart these are."""
    lost = reading("aligned", 0.1, 0.1, 2**53, 1.0, epsilon=0.1)
    assert lost == 0
    assert lost.uncertainty == reading("outer", 0.1, 0.1, 2**53, 1.0, epsilon=0.1)
    assert reading("aligned", 0.1, 0.1, 2**53, 1.0, delta=1e-6).uncertainty > 1
    found = reading("outer", 0.5, 0.5, 2**53, 1e17, epsilon=0.0)
    assert found <= wcs(0.5, 0.5, 1e17, 1.0, epsilon=0.0)
    slow = reading("outer", 0.5, 0.5, 10**14, 3e13, epsilon=1e-14)
    assert slow <= wcs(0.5, 0.5, 3e13, 1.0, epsilon=1e-14) * (1 + 1e-9)
    assert slow - slow.uncertainty >= 0


@pytest.mark.parametrize(
    ("p", "n_records", "misses"), [(1.0, 2**53, 0.0), (1.0, 10**15, 2.0**-50), (0.3, 10**12, 2.0**-38)]
)
@pytest.mark.parametrize(("ratio", "epsilon"), [(1.0, 0.01), (3.7, 2.0)])
def test_a_double_holds_no_fraction_of_a_large_count(p, n_records, misses, ratio, epsilon):
    """Hardly any record is missing, and who stays away is far off: all is measured from the count of all others."""
    others, q = n_records - 1, 1 - mpf(misses)
    chances = [mp.binomial(others, m) * mpf(misses) ** m * q ** (others - m) for m in range(30 if misses else 1)]
    one = [(w * q, (1 - m) * mpf(ratio)) for m, w in enumerate(chances)]
    other = [(w, -m * mpf(ratio)) for m, w in enumerate(chances)]
    alpha = mp.exp(mpf(epsilon))
    one += [(w * (1 - q), m) for w, m in other]

    def excess(x):
        return oracle.density(one, x) - alpha * oracle.density(other, x)

    cut = oracle.halved(excess, -60 * mpf(ratio) - 1, 9 * mpf(ratio) + 9 / mpf(ratio))
    beyond = [sum(w * oracle.tail(cut - m) for w, m in mixture) for mixture in (one, other)]
    truth = p * (beyond[0] - alpha * beyond[1])
    found = aligned_estimate(p, float(q), n_records, ratio, epsilon)
    gap = float(mpf(found.log) - mp.log(truth))
    assert -found.error <= gap <= 0
    assert found.error < 1e-8


# --- epsilon at a delta ------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(rates, rates, st.integers(1, 4), noises, st.floats(-290, -2).map(lambda e: 10.0**e))
def test_epsilon_answers_delta_on_the_safe_side(p, q, n_records, noise_std, delta):
    for name in ("outer", "inner", "add", "aligned"):
        estimate = ESTIMATES[name]
        if name == "add":
            found = one_round.random_participation_add(p, q, n_records, noise_std, 1.0, delta=delta)
        else:
            found = reading(name, p, q, n_records, noise_std, delta=delta)
        here = estimate(p, q, n_records, 1 / noise_std, float(found))
        target = math.log(delta)
        if name == "aligned":
            assert found == 0 or here.log > target
        else:
            assert here.high <= target + 1e-13 * abs(target)
        beside = found + 2 * found.uncertainty if name == "aligned" else max(found - 2 * found.uncertainty, 0.0)
        there = estimate(p, q, n_records, 1 / noise_std, beside)
        assert (there.log <= target) if name == "aligned" else (found == 0 or there.high >= target)


def test_the_smaller_data_set_can_be_sure_of_itself():
    """Its loss is bounded: beyond, delta is nothing."""
    most = math.log(1 / (1 - 0.5 * 0.5))
    assert one_round.random_participation_add(0.5, 0.5, 1, 0.1, 1.0, epsilon=most * 0.999) > 0
    assert one_round.random_participation_add(0.5, 0.5, 1, 0.1, 1.0, epsilon=most * 1.001) == 0
    assert one_round.random_participation_add(0.5, 0.5, 1, 0.1, 1.0, delta=0) == pytest.approx(most, rel=1e-14)
    found = one_round.random_participation_add(0.5, 0.3, 7, 0.1, 1.0, delta=0)
    assert found == pytest.approx(-math.log(0.7), rel=1e-14)
    assert one_round.random_participation_add(0.5, 0.3, 7, 0.1, 1.0, epsilon=float(found)) == 0


# --- noise -------------------------------------------------------------------------------------------------------

SCHEMES = ("outer", "inner", "aligned", "wcs", "ols", "cs")


@pytest.mark.parametrize(
    ("goal", "setting", "expected"),
    [
        ((1e-3, 1e-6), (0.01, 0.01, 30), (1.5125, 1.0578, 1.3698, 9.8278, 25.551, 0.9749)),
        ((1e-3, 1e-6), (0.001, 0.1, 30), (3.4402, 2.2520, 3.2795, 27.735, 244.75, 0.9749)),
        ((1e-3, 1e-6), (0.1, 0.001, 1000), (1.7313, 1.2512, 1.6276, 2.4699, 3.5021, 0.9749)),
        ((1e-2, 1e-7), (0.001, 0.1, 30), (3.5586, 1.4737, 3.1877, 18.018, 37.801, 0.7341)),
        ((1e-2, 1e-7), (0.1, 0.001, 1000), (1.1518, 0.8583, 0.0, 1.2430, 1.4799, 0.7341)),
    ],
)
def test_noise_of_the_experiments(goal, setting, expected):
    found = [participation_noise(scheme, *setting, 1.0, *goal) for scheme in SCHEMES]
    assert found == pytest.approx(expected, rel=6e-5)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-3), (1e-3, 1e-6), (0.5, 1e-100), (100.0, 1e-9)])
def test_noise_is_enough_and_hardly_more(scheme, epsilon, delta):
    p, q, n_records, clip_norm = 0.2, 0.3, 7, 3.0
    noise_std = participation_noise(scheme, p, q, n_records, clip_norm, epsilon, delta)
    rates = {"ols": ((), (q,)), "cs": ((), (p, q)), "wcs": ((p,), (q,))}

    def value(noise_std):
        if scheme in one_round.READINGS:
            return one_round.READINGS[scheme](p, q, n_records, clip_norm / noise_std, epsilon).high
        known, hidden = (math.prod(r) for r in rates[scheme])
        return mp.log(oracle.sampled(known, hidden, clip_norm / mpf(noise_std), epsilon))

    assert value(noise_std) <= math.log(delta) + 1e-13
    assert value(noise_std * (1 - 1e-9)) > math.log(delta)
    if scheme == "outer":
        assert add_estimate(p, q, n_records, clip_norm / noise_std, epsilon).log <= math.log(delta)


# --- the command -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q", "n_records", "noise_std", "epsilon"),
    [(0.5, 1.0, 1, 1.0, 0.6931471805599461), (1e-12, 1e-12, 1, 1.0, 1e-24), (1.0, 1.0, 1, 1e6, 0.0)],
)
def test_a_record_about_to_be_lost_is_added_at_the_price_of_removing_it(p, q, n_records, noise_std, epsilon):
    setting = p, q, n_records, noise_std, 1.0
    added = one_round.random_participation_add(*setting, epsilon=epsilon)
    assert added <= one_round.random_participation("outer", *setting, epsilon=epsilon) * (1 + 1e-12)


def test_noise_and_norms_at_the_ends_of_the_range_of_numbers():
    """A norm that is nothing beside the noise gives nothing away, in either order; both answers say so."""
    for noise_std, clip_norm in ((3e267, 2e-247), (8e-110, 2e-247), (1.0, 1e-90), (1.0, 1e-299)):
        rest = 0.1, 0.1, 5, noise_std, clip_norm
        for found in (
            one_round.random_participation("outer", *rest, epsilon=0.0),
            one_round.random_participation_add(*rest, epsilon=0.0),
        ):
            truth = min(clip_norm / noise_std, 1.0) * 0.01 / math.sqrt(2 * math.pi)
            assert truth * (1 - 1e-12) <= found <= 1e-90
        assert one_round.random_participation_add(*rest, delta=1e-6) == 0.0
    assert one_round.random_participation("outer", 0.1, 0.1, 5, 8e-110, 1.0, delta=1e-6) > 1e217
    assert one_round.random_participation("outer", 0.1, 0.1, 5, 8e-110, 1.0, epsilon=0.0) == pytest.approx(0.01)


@pytest.mark.parametrize("reading", ["outer", "inner", "aligned"])
def test_a_record_that_is_never_drawn(reading):
    given = reading, 0.1, 5e-324, 200_000, 1.0, 1.0
    assert 0 <= one_round.random_participation(*given, epsilon=0.1) <= 5e-324
    assert one_round.random_participation(*given, delta=1e-6) == 0.0
