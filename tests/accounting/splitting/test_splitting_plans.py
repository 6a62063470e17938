"""The planner: every plan keeps its budget and error by the theorem it names, and none is dearer than it need be."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from flamelib import Cloak, account
from flamelib.accounting.noise.discrete_laplace import crowded_reach
from flamelib.accounting.splitting import lemmas
from flamelib.accounting.splitting.n_user_bounds import users_distance
from flamelib.accounting.splitting.pairwise_swaps import shares_delta
from flamelib.accounting.splitting.parameter_search import plans
from flamelib.core.guarantees import Adjacency


def by(found, theorem, noise="none"):
    [plan] = [plan for plan in found if (plan.theorem, plan.noise) == (theorem, noise)]
    return plan


def tells(plan, n_users, epsilon, dimension):
    """Delta that the shares of all coordinates cost, by the theorem of the plan."""
    crowd = n_users - plan.colluding
    if plan.theorem == "cloak:own-3":
        distance = users_distance(plan.modulus, plan.n_messages, crowd)
    elif plan.theorem == "cloak:own-6":
        return dimension * shares_delta(plan.modulus, plan.n_messages, crowd, plan.scale)
    elif plan.theorem == "cloak:best-1":
        slope = math.log2(crowd) - math.log2(math.e)
        distance = 2.0 ** -(((plan.n_messages - 2) * slope - math.log2(plan.modulus)) / 2)
    else:
        return None
    return dimension * distance * (1 if plan.noise == "none" else 1 + math.exp(epsilon))


@settings(max_examples=20)
@given(
    st.integers(2, 10**5), st.floats(0.05, 10), st.floats(1e-12, 0.1), st.floats(0.01, 200), st.floats(0, 1),
    st.integers(1, 100),
)  # fmt: skip
def test_every_plan_is_valid(n_users, epsilon, delta, error, part, dimension):
    colluding = int(part * (n_users - 2))
    found = plans(n_users, epsilon, delta, error, colluding, dimension)
    assert [plan.bits for plan in found] == sorted(plan.bits for plan in found)
    for plan in found:
        assert plan.error <= error
        assert plan.colluding == colluding
        assert plan.bits == dimension * plan.n_messages * math.ceil(mp.log(plan.modulus, 2))
        assert plan.modulus > n_users * plan.scale
        leak = tells(plan, n_users, epsilon, dimension)
        assert leak is None or leak <= delta * (1 + 1e-9)
        if plan.noise == "none":
            assert plan.adjacency is Adjacency.SUM_PRESERVING
            assert plan.error == n_users / plan.scale
        if plan.noise == "Pólya":
            assert -dimension * plan.scale * mp.log(mpf(plan.decay)) <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("colluding", "dimension"), [(0, 1), (300, 1), (0, 7), (300, 7)])
def test_the_lemmas_confirm_the_plans(colluding, dimension):
    n_users, epsilon, delta = 1000, 2.0, 1e-6
    found = plans(n_users, epsilon, delta, 40.0, colluding, dimension)
    plan, swaps = by(found, "cloak:thm-2"), n_users - colluding - 1
    smoothness = math.tanh(epsilon / dimension / swaps / 2) * (1 - 1e-12)
    budget = lemmas.swaps_budget(plan.modulus, plan.n_messages, smoothness, swaps)
    assert budget.delta <= delta / dimension * (1 + 1e-9)
    plan = by(found, "cloak:thm-1", "truncated Laplace")
    shape = (plan.modulus, plan.n_messages, math.tanh(epsilon / dimension / 20), plan.scale, plan.decay)
    budget = lemmas.single_user_budget(*shape, plan.noise_rate, n_users, colluding)
    assert budget.epsilon <= epsilon / dimension * (1 + 1e-11)
    assert budget.delta <= delta / dimension * (1 + 1e-9)
    assert plan.modulus > 3 * n_users * plan.scale


@pytest.mark.parametrize(("n_users", "colluding"), [(20, 0), (100, 50), (1000, 0), (1000, 300), (10**6, 0)])
def test_with_one_message_fewer_the_account_exceeds_the_budget(n_users, colluding):
    epsilon, delta = 1.0, 1e-6
    plan = Cloak.plan(n_users, epsilon, delta, 3.0, colluding)
    assert account(plan, delta=delta).epsilon <= epsilon
    for n_messages in range(2, plan.n_messages):
        assert account(replace(plan, n_messages=n_messages), delta=delta).epsilon > epsilon
    by_all = by(plans(n_users, epsilon, delta, 3.0, colluding), "cloak:own-3", "Pólya")
    assert plan.n_messages < by_all.n_messages


@pytest.mark.parametrize("n_users", [19, 20, 100, 1000, 10**6])
@pytest.mark.parametrize(("sigma", "size"), [(1, 1), (10, 32), (40, 20), (80, 256)])
def test_the_proven_distance_confirms_the_formula_of_others(n_users, sigma, size):
    n_messages = lemmas.messages_needed(sigma, n_users, size)
    assert users_distance(2**size, n_messages, n_users) <= 2.0**-sigma


@pytest.mark.parametrize("error", [0.02, 1.5, 7.0, 50.0])
def test_no_coarser_grid_serves(error):
    for plan in plans(1000, 1.0, 1e-6, error):
        if plan.scale > 1 and plan.noise == "none":
            assert 1000 / (plan.scale - 1) > error
        if plan.scale > 1 and plan.noise == "Pólya":
            k = plan.scale - 1
            assert 1 / (k * math.sinh(1 / k)) + math.sqrt(1000) / 2 / k > error


@pytest.mark.parametrize("surplus", [1, 2, 10])
@pytest.mark.parametrize(("scale", "epsilon"), [(1, 1.0), (3, 1.0), (5, 4.0)])
def test_the_sum_hardly_ever_wraps(scale, epsilon, surplus):
    """Surplus shares: so many discrete Laplace variables together, convolved."""
    decay = math.exp(-epsilon / scale)
    reach = crowded_reach(decay, 2.0**-40, surplus)
    one = (1 - decay) / (1 + decay) * decay ** np.abs(np.arange(-8 * reach, 8 * reach + 1))
    law = np.ones(1)
    for _ in range(surplus):
        law = np.convolve(law, one)
    middle = len(law) // 2
    assert 2 * law[middle + reach :].sum() <= 2.0**-40
    assert 2 * law[middle + reach // 4 :].sum() > 2.0**-40


@pytest.mark.parametrize(("n_users", "epsilon", "error"), [(2**50, 1.0, 2.0), (2**40, 1.0, 1.01), (10**6, 2.0, 0.6)])
def test_what_wrapping_costs_is_part_of_the_error(n_users, epsilon, error):
    """A sum that wraps around is off by the users and the noise: chance of that, by the law of the noise."""
    mixed = [plan for plan in plans(n_users, epsilon, 1e-6, error) if plan.noise == "Pólya"]
    assert mixed
    for plan in mixed:
        p, reach = mpf(plan.decay), (plan.modulus - n_users * plan.scale) // 2
        wraps = 2 * p ** (reach + 1) / (1 + p)
        noise = 2 * p / (1 - p**2) / plan.scale + mp.sqrt(n_users) / 2 / plan.scale
        assert noise + n_users * wraps <= plan.error * (1 + 1e-13)
        assert plan.error <= error


def test_the_modulus_holds_the_noise_of_the_decay_that_is_told():
    """A decay is told to 16 digits, and these are nines here."""
    mixed = [plan for plan in plans(1000, 2e-16, 1e-6, 2e16) if plan.noise == "Pólya"]
    assert len(mixed) == 3
    for plan in mixed:
        p = mpf(plan.decay)
        assert 2 * p ** ((plan.modulus - 1000 * plan.scale) // 2 + 1) / (1 + p) <= 2.0**-40
        assert 2 * p / (1 - p**2) / plan.scale <= plan.error <= 2e16
