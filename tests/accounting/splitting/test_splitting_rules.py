"""Rules for parameters: a slow search with many digits, a printed table, and budgets that the lemmas confirm."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from flamelib.accounting.noise.discrete_laplace import noise_bound
from flamelib.accounting.splitting import lemmas, two_users
from flamelib.accounting.splitting import theorem_parameters as equal_sum_rules
from flamelib.accounting.splitting import theorem_parameters as splitting_rules

EPSILON = st.floats(1e-3, 20)
DELTA = st.floats(1e-15, 0.5)
USERS = st.integers(2, 10**7)


def unsmooth(modulus, m, smoothness):
    regime = smoothness > 6 * mp.sqrt(m) / mpf(4) ** m
    return 18 * mp.sqrt(m) * mpf(modulus) ** 2 / (smoothness**2 * mpf(4) ** m) if regime else mp.inf


# --- the printed tables -----------------------------------------------------------------------------


@pytest.mark.parametrize(("n_users", "messages", "bits"), [(100, 23, 437), (1000, 27, 675), (10**6, 37, 1665)])
def test_the_table_of_the_sharper_rule(n_users, messages, bits):
    found = splitting_rules.sharp_noisy_rule(1, 1e-6, n_users)
    assert (found.n_messages, found.bits) == (messages, bits)


# --- a slow search ----------------------------------------------------------------------------------


@given(st.integers(2, 10**15), st.floats(1e-12, 1e12))
def test_the_grid_is_the_first_fine_enough(n_users, error):
    scale = equal_sum_rules.grid_scale(n_users, error)
    assert n_users / scale <= error
    assert scale == 1 or n_users / (scale - 1) > error
    assert abs(scale - n_users / Fraction(error)) <= 1 + n_users / Fraction(error) / 2**52


# --- budgets kept -----------------------------------------------------------------------------------


@settings(max_examples=50)
@given(EPSILON, DELTA, USERS, st.floats(0, 1), st.integers(1, 10**7))
def test_the_lemmas_confirm_rule_t1(epsilon, delta, n_users, part, scale):
    colluding = int(part * (n_users - 2))
    rule = splitting_rules.noisy_rule(epsilon, delta, n_users, scale, colluding)
    shape = (rule.modulus, rule.n_messages, rule.smoothness, rule.scale, rule.decay, rule.noise_rate)
    budget = lemmas.single_user_budget(*shape, n_users, colluding)
    assert budget.epsilon <= epsilon
    if rule.noise_rate < 1:
        assert rule.delta <= budget.delta <= delta * (1 + 1e-11)
    else:
        # Everybody adds noise: nobody is silent, whatever the printed tail says.
        failure = lemmas.smooth_failure(rule.modulus, rule.n_messages, rule.smoothness)
        assert rule.delta == pytest.approx(failure, rel=1e-11)
    assert rule.modulus % 2 == 1
    assert rule.modulus > 3 * n_users * scale
    shape = (rule.modulus, rule.scale, rule.decay, rule.noise_rate, n_users)
    assert noise_bound(*shape) == pytest.approx(rule.noise_bound, rel=1e-10 + 1e-15 * scale / epsilon)


@given(EPSILON, DELTA, USERS)
def test_sharper_rules_cost_less_and_keep_the_budget(epsilon, delta, n_users):
    rule = splitting_rules.sharp_noisy_rule(epsilon, delta, n_users)
    plain = splitting_rules.noisy_rule(epsilon, delta, n_users)
    assert rule.bits < plain.bits
    leak = lemmas.log_ratio(rule.smoothness)
    spent = leak - rule.scale * mp.log(mpf(rule.decay))
    assert spent <= epsilon
    told = two_users.two_user_delta(rule.modulus, rule.n_messages, leak)
    assert (1 - mpf(rule.noise_rate)) ** n_users + told <= delta
    assert two_users.two_user_delta(rule.modulus, rule.n_messages - 1, leak) > delta / 2


@settings(max_examples=50)
@given(EPSILON, DELTA, st.integers(2, 10**6), st.floats(1e-6, 10), st.floats(0, 1))
def test_the_lemmas_confirm_rule_t2(epsilon, delta, n_users, error, part):
    colluding = int(part * (n_users - 2))
    swaps = n_users - colluding - 1
    rule = equal_sum_rules.exact_rule(epsilon, delta, n_users, error, colluding)
    budget = lemmas.swaps_budget(rule.modulus, rule.n_messages, rule.smoothness, swaps)
    assert budget.epsilon <= epsilon
    assert budget.delta <= delta
    sharp = equal_sum_rules.sharp_exact_rule(epsilon, delta, n_users, error, colluding)
    step = lemmas.log_ratio(sharp.smoothness)
    chained = mp.expm1(swaps * mpf(step)) / mp.expm1(mpf(step))
    assert two_users.two_user_delta(sharp.modulus, sharp.n_messages, step) * chained <= delta
    assert swaps * step <= epsilon
    assert sharp.bits <= rule.bits


@given(st.floats(1e-3, 50), DELTA, st.integers(19, 10**7))
def test_split_and_mix_keeps_the_budget(epsilon, delta, n_users):
    rule = splitting_rules.mix_rule(epsilon, delta, n_users, scale=1000)
    assert (1 + mp.exp(mpf(epsilon))) * mpf(2) ** -mpf(rule.security_bits) <= delta
    assert -1000 * mp.log(mpf(rule.decay)) <= epsilon
    size = math.log2(rule.modulus)
    assert rule.n_messages == lemmas.messages_needed(rule.security_bits, n_users, size)
    p = mpf(rule.decay)
    assert rule.mean_error == pytest.approx(float(2 * p / (1 - p**2) / 1000), rel=1e-13)
    assert rule.mean_error <= 1 / epsilon * (1 + 1.2e-16 * 1000 / epsilon)


def mean_of_thinned(decay, adding):
    """Mean size of a Poisson number of Laplace variables of this decay near 1, in units of one."""
    rate = -mp.log(mpf(decay))
    shape = mp.quad(lambda t: (1 - mp.exp(-adding * t * t / (1 + t * t))) / t**2, [0, 0.1, 1, 10, 100, mp.inf])
    return 2 / mp.pi * shape / rate


@pytest.mark.parametrize(("epsilon", "scale"), [(1.0, 10**15), (1.0, 2 * 10**15), (1.0, 3 * 10**15), (0.3, 9 * 10**14)])
def test_the_bound_is_of_the_decay_that_is_told(epsilon, scale):
    found = splitting_rules.noisy_rule(epsilon, 1e-6, 10**6, scale)
    truth = mean_of_thinned(found.decay, found.noise_rate * 10**6) / scale
    bound = noise_bound(found.modulus, scale, found.decay, found.noise_rate, 10**6)
    assert truth <= found.noise_bound <= bound
    assert found.noise_bound >= 0.99 * bound


# --- doors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [5e-324, 3e-323, 1e-320])
@pytest.mark.parametrize("n_users", [2, 2**31])
def test_a_delta_among_the_smallest_doubles_is_not_rounded_down(delta, n_users):
    """Such a sum is off by some part of the least double, which is all of it at times."""
    rule = splitting_rules.noisy_rule(1.0, delta, n_users, 4)
    failure = mpf(2) * rule.n_messages**2 / rule.modulus + unsmooth(rule.modulus, rule.n_messages, rule.smoothness)
    assert mp.exp(n_users * mp.log1p(-mpf(rule.noise_rate))) * (rule.noise_rate < 1) + failure <= rule.delta <= delta
