"""Closed forms of split-and-mix: against many digits, against small groups enumerated, and monotone as they must be."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import binomial, mp, mpf

from flamelib.accounting.splitting import lemmas, two_users
from flamelib.accounting.splitting.two_users import second_moment_delta

ODD = st.integers(1, 2**100).map(lambda half: 2 * half + 1)
MESSAGES = st.integers(4, 3000)
SMOOTH = st.floats(1e-12, 0.999)


def eta(modulus, m, smoothness):
    return mpf(2) * m**2 / modulus + 18 * mp.sqrt(m) * mpf(modulus) ** 2 / (mpf(smoothness) ** 2 * mpf(4) ** m)


def close_above(found, truth, rel=1e-11):
    """Never below the truth and hardly above; a double cannot hold what is smaller or larger than it can."""
    if truth > 1e308:
        return found == math.inf or found >= truth * (1 - mpf(2) ** -50)
    return truth <= found <= truth * (1 + mpf(rel)) or (truth < 1e-300 and found < 2e-300)


# --- many digits ------------------------------------------------------------------------------------


@given(ODD, MESSAGES, SMOOTH)
def test_lemma_1(modulus, m, smoothness):
    found = lemmas.smooth_failure(modulus, m, smoothness)
    if mpf(smoothness) <= 6 * mp.sqrt(m) / mpf(4) ** m:
        assert found == math.inf
    else:
        assert close_above(found, eta(modulus, m, smoothness))


def test_corollary_1_follows_from_lemma_1_and_says_nothing_below_2737():
    for modulus in range(3, 20_001, 2):
        m = 3 * math.ceil(mp.log(modulus, 2))
        assert lemmas.smooth_failure(modulus, m, 1 / modulus) <= lemmas.narrow_failure(modulus)
    assert lemmas.narrow_failure(2735) > 1 > lemmas.narrow_failure(2737)
    assert lemmas.narrow_failure(2**200 + 1) == pytest.approx(19 * 201**2 / 2**200, rel=1e-12)


@given(ODD, MESSAGES, SMOOTH, st.integers(1, 10**6))
def test_lemmas_5_6_and_12(modulus, m, smoothness, swaps):
    found = lemmas.swaps_budget(modulus, m, smoothness, swaps)
    beta = (1 + mpf(smoothness)) / (1 - mpf(smoothness))
    assert close_above(found.epsilon, swaps * mp.log(beta))
    if found.delta < math.inf:
        truth = eta(modulus, m, smoothness) * (beta**swaps - 1) / (beta - 1)
        assert close_above(found.delta, truth, 1e-9)
    once = lemmas.swap_budget(modulus, m, smoothness)
    assert once == lemmas.swaps_budget(modulus, m, smoothness, 1)
    assert found.delta >= once.delta
    assert found.epsilon >= once.epsilon


@given(
    ODD, MESSAGES, SMOOTH, st.integers(1, 10**9), st.floats(1e-6, 1 - 1e-9), st.floats(1e-9, 1), st.integers(2, 10**9),
    st.floats(0, 1),
)  # fmt: skip
def test_lemmas_11_and_13(modulus, m, smoothness, scale, decay, rate, n_users, part):
    colluding = int(part * (n_users - 2))
    found = lemmas.single_user_budget(modulus, m, smoothness, scale, decay, rate, n_users, colluding)
    beta = (1 + mpf(smoothness)) / (1 - mpf(smoothness))
    assert close_above(found.epsilon, mp.log(beta) - scale * mp.log(mpf(decay)))
    if found.delta < math.inf:
        truth = mp.exp(-mpf(rate) * (n_users - colluding)) + eta(modulus, m, smoothness)
        assert close_above(found.delta, truth)
    alone = lemmas.user_budget(modulus, m, smoothness, scale, decay, rate, n_users)
    assert alone == lemmas.single_user_budget(modulus, m, smoothness, scale, decay, rate, n_users, 0)
    assert alone.delta <= found.delta


@given(st.integers(2, 2**200), st.integers(2, 5000))
def test_the_distance_of_two_users(modulus, m):
    shrunk = mpf(3) / 4 if modulus % 2 else 1
    truth = min(mpf(1), mp.sqrt(shrunk * modulus / binomial(2 * m, m)))
    found = two_users.two_user_distance(modulus, m)
    assert found == 1 if truth == 1 else close_above(found, truth)


@given(st.integers(2, 2**200), st.integers(2, 3000), st.floats(1e-9, 300))
def test_the_hockey_stick_of_two_users(modulus, m, epsilon):
    e, choices = min(mpf(epsilon), mp.log1p(mp.sqrt(2 + mpf(2) / (modulus - 1)))), binomial(2 * m, m)
    shares = 4 * (mp.exp(e) - 1) * choices
    truth = (2 * (modulus - 1) * (1 + mp.exp(2 * e)) + 4 * mp.exp(e)) / shares
    found = two_users.two_user_delta(modulus, m, epsilon)
    assert found == 1 if truth >= 1 else close_above(found, truth)


# --- how many messages ------------------------------------------------------------------------------


def test_the_published_number_of_messages():
    assert lemmas.messages_needed(40, 10_000, 32) == 12
    printed = {(100, 40, 20): 22, (1000, 40, 32): 16, (1000, 53, 40): 20, (3000, 40, 32): 14, (20, 40, 32): 41}
    for (n_users, sigma, size), m in printed.items():
        assert lemmas.messages_needed(sigma, n_users, size) == m


@given(st.floats(0.01, 1000), st.integers(19, 10**12), st.floats(1, 300))
def test_never_too_few_messages(sigma, n_users, size):
    truth = 2 + (2 * mpf(sigma) + mpf(size)) / (mp.log(n_users, 2) - mp.log(mp.e, 2))
    assert max(3, truth) <= lemmas.messages_needed(sigma, n_users, size) <= max(3, truth + 1 + mpf(10) ** -9)


# --- doors ------------------------------------------------------------------------------------------


@given(st.integers(2, 2**200), st.integers(2, 3000), st.floats(0, 300))
def test_the_second_moment_of_two_users(modulus, m, epsilon):
    with mp.workdps(60 + m):  # of which 0.6 m go with the binomial coefficient, about 4^m
        e, choices = mp.exp(mpf(epsilon)), binomial(2 * m, m)
        first = modulus - 2 if modulus % 2 else 2 * (modulus - 1)

        def formula(factor):
            variance = (first + 2 * (modulus - 1) * factor**2 + 4 * factor) / choices
            return (mp.sqrt(variance + (factor - 1) ** 2) - factor + 1) / 2

        found = second_moment_delta(modulus, m, epsilon)
        below = [1 + (e - 1) * step / 16 for step in range(17)]
        truth = min([mpf(1), *map(formula, below)])
        assert found <= truth * (1 + mpf("1e-9")) + mpf(5e-324)
        assert found <= two_users.two_user_delta(modulus, m, epsilon) * (1 + 1e-10)
        least = (below[0], min(e, mpf(4)))
        for _ in range(80):  # a convex function: thirds
            one, two = (least[0] * (3 - i) / 3 + least[1] * i / 3 for i in (1, 2))
            least = (least[0], two) if formula(one) <= formula(two) else (one, least[1])
        assert found * (1 + 1e-15) >= min(mpf(1), formula(least[0])) * (1 - mpf("1e-12"))


def test_the_second_moment_at_both_ends():
    for modulus in (3, 4, 101, 2**64):
        for m in (2, 5, 40, 600):
            assert second_moment_delta(modulus, m, 0.0) == pytest.approx(
                two_users.two_user_distance(modulus, m), rel=1e-10
            )
    along = [second_moment_delta(7, 5, at / 100) for at in range(200)]
    assert along == sorted(along, reverse=True)
    assert second_moment_delta(3, 2**53, 0.0) == 5e-324
    assert second_moment_delta(2**255, 2, 1e6) == 1
    assert second_moment_delta(7, 1, 0.5) == math.inf


def test_the_range_of_the_smoothness_does_no_harm():
    """Between the range of the statement and that of its proof the bound says nothing."""
    for modulus, m in itertools.product((3, 101, 10**6 + 1), (4, 10, 30)):
        low, high = 6 * math.sqrt(m) / 4**m, min(6 * math.sqrt(m) * modulus / 4**m, 1)
        for at in range(1, 6):
            gamma = low * (high / low) ** (at / 6)
            assert lemmas.smooth_failure(modulus, m, gamma) > 1


def test_bits():
    assert lemmas.bits_sent(2, 1) == 1
    assert lemmas.bits_sent(2**32, 5) == 160
    assert lemmas.bits_sent(2**32 + 1, 5, 10) == 1650
