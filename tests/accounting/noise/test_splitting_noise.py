"""Noise before splitting: laws summed up one by one, many digits, and shares that add up to what they should."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from flamelib.accounting.noise import discrete_laplace
from flamelib.accounting.noise import discrete_laplace as noise

ODD = st.integers(1, 15).map(lambda half: 2 * half + 1)
DECAY = st.floats(1e-6, 1 - 1e-9)


def law(modulus, decay):
    """The truncated law by its definition, value to probability."""
    p, reach = mpf(decay), modulus // 2
    weights = {j: p ** abs(j) for j in range(-reach, reach + 1)}
    total = sum(weights.values())
    return {j: weight / total for j, weight in weights.items()}


@given(ODD, DECAY)
def test_the_truncated_law(modulus, decay):
    exact = law(modulus, decay)
    variance = sum(j * j * chance for j, chance in exact.items())
    found = {j: noise.truncated_laplace(modulus, decay, j) for j in range(-modulus, modulus + 1)}
    for j, one in found.items():
        assert one.pmf == pytest.approx(float(exact.get(j, 0)), rel=1e-14)
        assert one.variance == pytest.approx(float(variance), rel=1e-14)
    assert math.fsum(one.pmf for one in found.values()) == pytest.approx(1, abs=1e-13)


@given(ODD, DECAY)
@example(3, 5e-324)
def test_lemma_8_holds_and_is_met_by_a_large_group(modulus, decay):
    exact = sum(j * j * chance for j, chance in law(modulus, decay).items())
    assert exact <= noise.variance_bound(modulus, decay)
    p, reach = mpf(decay), modulus // 2
    printed = 2 * p * (1 + p) / ((1 - p) ** 2 * (1 + p - 2 * p ** (reach + 1)))
    assert printed <= noise.variance_bound(modulus, decay) <= printed * (1 + mpf(10) ** -11) + mpf(10) ** -323
    limit = 2 * p / (1 - p) ** 2
    assert noise.truncated_variance(2**200 + 1, decay) == pytest.approx(float(limit), rel=1e-14)
    assert noise.variance_bound(2**200 + 1, decay) == pytest.approx(float(limit), rel=1e-11)


@pytest.mark.parametrize("modulus", [3, 7, 10**6 + 1, 2**60 + 1, 2**256 - 1])
@pytest.mark.parametrize("decay", [1e-300, 0.5, 1 - 1e-8, 1 - 2**-53])
def test_the_variance_where_its_terms_cancel(modulus, decay):
    p, reach = mpf(decay), (modulus - 1) // 2
    with mp.workdps(200):
        power = p ** (reach + 1)
        bracket = 1 + p - (reach + 1) ** 2 * power / p + (2 * reach**2 + 2 * reach - 1) * power - reach**2 * power * p
        truth = 2 * p * bracket / ((1 - p) ** 2 * (1 + p - 2 * power))
    assert noise.truncated_variance(modulus, decay) == pytest.approx(float(truth), rel=1e-14)
    flat = (modulus**2 - 1) / 12
    assert noise.truncated_variance(modulus, decay) <= flat * (1 + 1e-14)


@given(ODD, DECAY, st.integers(-100, 100))
def test_lemma_7_holds_and_is_attained(modulus, decay, shift):
    exact, reach = law(modulus, decay), modulus // 2
    shift = shift % modulus - reach
    losses = [exact[(j + shift + reach) % modulus - reach] / exact[j] for j in exact]
    most = max(max(losses), 1 / min(losses))
    assert mp.almosteq(most, mpf(decay) ** -abs(shift), rel_eps=mpf(10) ** -50)
    assert mp.log(most) <= noise.shift_loss(decay, shift) * (1 + mpf(10) ** -50)


@given(st.floats(0.01, 0.9))
def test_lemma_9(decay):
    truth = mp.nsum(lambda k: k**2 * mpf(decay) ** k, [1, mp.inf])
    assert noise.square_sum(decay) == pytest.approx(float(truth), rel=1e-14)


@given(st.integers(1, 10**9), st.floats(1e-3, 50))
def test_the_shared_noise_is_discrete_laplace(scale, epsilon):
    found = discrete_laplace.shared_noise(scale, epsilon)
    p = mpf(found.decay)
    assert found.mean_error == pytest.approx(float(2 * p / (1 - p**2) / scale), rel=1e-14)
    assert found.std == pytest.approx(float(mp.sqrt(2 * p) / (1 - p) / scale), rel=1e-14)
    ideal = 1 / (scale * mp.sinh(mpf(epsilon) / scale))
    assert ideal <= found.mean_error * (1 + 1e-15) <= ideal * (1 + 1.2e-16 * scale / epsilon + 1e-14)


@pytest.mark.parametrize(("scale", "epsilon"), [(4 * 10**9, 1e-6), (10**15, 1.0), (3 * 10**15, 1.0), (7, 4900.0)])
def test_the_errors_are_those_of_the_decay_that_is_told(scale, epsilon):
    found = discrete_laplace.shared_noise(scale, epsilon)
    p = mpf(found.decay)
    assert found.mean_error == pytest.approx(float(2 * p / (1 - p**2) / scale), rel=1e-14)
    assert found.std == pytest.approx(float(mp.sqrt(2 * p) / (1 - p) / scale), rel=1e-14)


@pytest.mark.parametrize(("n_users", "crowd"), [(10, 9), (3, 2), (14, 7), (70, 7)])
@pytest.mark.parametrize("rate", [0.2, 1.0, 3.0])
def test_what_surplus_shares_cost(n_users, crowd, rate):
    """Negative binomials of shape n/h, the difference of two, convolved."""
    j = np.arange(1, 600)
    one = np.cumprod([(1 - math.exp(-rate)) ** (n_users / crowd), *((n_users / crowd + j - 1) / j * math.exp(-rate))])
    law = np.convolve(one, one[::-1])
    truth = float(np.abs(np.arange(len(law)) - len(law) // 2) @ law)
    found = discrete_laplace.crowded_error(discrete_laplace.shared_noise(1, rate), n_users, crowd)
    assert math.fsum(law) == pytest.approx(1, abs=1e-12)
    assert truth <= found
    assert found <= truth * {0.2: 1.01, 1.0: 1.2, 3.0: 2}[rate]


@given(st.integers(1, 10**9), st.floats(1e-3, 50))
def test_the_decay_keeps_its_budget(scale, epsilon):
    decay = discrete_laplace.noise_decay(scale, epsilon)
    assert -scale * mp.log(mpf(decay)) <= epsilon < -scale * mp.log(mpf(math.nextafter(decay, 0)))


def test_the_error_of_thinned_noise():
    p, modulus, n_users, rate, scale = mpf(0.9), 101, 50, 0.25, 10
    exact = sum(j * j * chance for j, chance in law(modulus, 0.9).items())
    spread = math.sqrt(n_users * rate * exact) / scale
    printed = mp.sqrt(n_users * rate * 2 * p * (1 + p) / ((1 - p) ** 2 * (1 + p - 2 * p**51))) / scale
    found = noise.noise_bound(modulus, scale, 0.9, rate, n_users)
    assert spread <= found
    assert float(printed) == pytest.approx(found, rel=1e-11)


@pytest.mark.parametrize("n_users", [2, 3, 5])
@pytest.mark.parametrize("rate", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("shrunk", [1.0, 0.6])
def test_the_error_of_thinned_noise_whose_decay_was_rounded_up(n_users, rate, shrunk):
    """All sums of n thinned variables, of a decay well above the one that was meant."""
    meant, modulus = 0.5, 101
    told = meant**shrunk
    one = np.array([float(chance) for chance in law(modulus, told).values()]) * rate
    one[modulus // 2] += 1 - rate
    total = np.ones(1)
    for _ in range(n_users):
        total = np.convolve(total, one)
    truth = float(np.abs(np.arange(len(total)) - len(total) // 2) @ total) / 10
    found = noise.thinned_error(modulus, 10, -math.log(meant), told, rate, n_users)
    assert truth <= found <= noise.noise_bound(modulus, 10, told, rate, n_users) * (1 + 1e-11)
    assert found >= noise.noise_bound(modulus, 10, meant, rate, n_users) * (1 - 1e-11)


@settings(max_examples=25)
@given(st.integers(2, 60), st.floats(0.01, 1))
def test_the_mean_root_of_a_binomial(n_users, rate):
    """The rounding room is that of a mean root; with decays that differ much, the second bound is the answer."""
    truth = mp.fsum(
        mp.sqrt(b) * mp.binomial(n_users, b) * mpf(rate) ** b * (1 - mpf(rate)) ** (n_users - b)
        for b in range(1, n_users + 1)
    )
    spread = mp.sqrt(noise.variance_bound(10**6 + 1, 0.5))
    found = noise.thinned_error(10**6 + 1, 1, 700.0, 0.5, rate, n_users)
    assert truth * spread <= found * (1 + 1e-12)
