"""Messages that keep a budget approximately: against two users by integration, and above the lower end."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from flamelib.accounting.checkin.approximate import approximate_rounds, gaussian_vector_rounds
from flamelib.accounting.checkin.shuffled import shuffled_rounds, shuffled_rounds_lower
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.core.profiles import ClonedProfile, GaussianProfile
from flamelib.core.vocabulary import DomainError

GRID, STEP = np.linspace(-12, 12, 601, retstep=True)


def laws(noise, *values):
    return [norm.pdf(GRID, value, noise) for value in values]


def two_users(noise, rate, epsilon, mine, others, his):
    """Exact delta of one round with two users, the second of whom holds ``his``: one message, or two without order."""
    a, b, z = laws(noise, mine, others, his)
    alone = np.maximum(a + z - np.exp(epsilon) * (b + z), 0).sum() * STEP
    pair = np.multiply.outer(a - np.exp(epsilon) * b, z)
    both = np.maximum(pair + pair.T, 0).sum() * STEP**2 / 2
    return rate * (1 - rate) * alone + rate**2 * both


@pytest.mark.parametrize("noise", [0.6, 3.0])
@pytest.mark.parametrize(("rate", "delta"), [(1.0, 1e-6), (0.3, 1e-2), (0.1, 0.1)])
def test_two_users_lose_no_more(noise, rate, delta):
    found = approximate_rounds(lambda budget: gaussian_mechanism(2.0, noise, epsilon=budget), 2, 1, delta, rate)
    assert gaussian_vector_rounds(noise, 2, 1, delta, rate) <= found < 600
    for mine, his in itertools.product((1.0, -1.0), (-1.0, 0.0, 0.3, 1.0)):
        assert two_users(noise, rate, found, mine, -mine, his) <= delta


@pytest.mark.parametrize("n_users", [2, 3, 50])
@pytest.mark.parametrize("rate", [1.0, 0.1, 0.01])
def test_messages_that_reveal_their_value_have_no_account(n_users, rate):
    """They lose the chance of being there, at every epsilon; half of the proposition's constant would give one."""
    assert approximate_rounds(lambda budget: 1.0, n_users, 1, 0.99 * rate, rate) == np.inf


def test_theorem_2_is_not_asked():
    """It is for messages that never fail; beyond a billion rounds it would be the smallest bound."""
    assert gaussian_vector_rounds(200.0, 10**6, 2 * 10**9, 1e-6, 1e-3) > 1e3


@pytest.mark.parametrize(("n_users", "rate", "rounds", "noise"), [(100, 1.0, 1, 4.0), (10**4, 0.1, 100, 1.0)])
def test_it_stays_above_what_equal_values_lose(n_users, rate, rounds, noise):
    found = gaussian_vector_rounds(noise, n_users, rounds, 1e-6, rate)
    lower = shuffled_rounds_lower(GaussianProfile(noise / 2), n_users, rounds, delta=1e-6, checkin_rate=rate)
    assert found >= lower


def test_a_budget_that_never_fails_gives_nearly_its_own_account():
    never = approximate_rounds(lambda budget: float(budget < 1), 10**4, 50, 1e-6, 0.2)
    own = shuffled_rounds(ClonedProfile(1.0), 10**4, 50, delta=1e-6, checkin_rate=0.2)
    assert own <= never <= 1.02 * own


@pytest.mark.parametrize(("n_users", "rate", "rounds"), [(100, 1.0, 3), (6_000, 0.1, 10)])
def test_all_failures_fit_into_their_share(n_users, rate, rounds):
    """The least budget whose failures fit at the answer, found by itself, costs no more than the answer."""
    delta, share = 1e-6, 0.1
    found = approximate_rounds(lambda b: gaussian_mechanism(2.0, 4.0, epsilon=b), n_users, rounds, delta, rate)
    budget = brentq(
        lambda b: 2 * rounds * n_users * rate * np.exp(-b) * gaussian_mechanism(2.0, 4.0, epsilon=b)
        - share * delta / (1 + np.exp(found)), 0.1, 30.0,
    )  # fmt: skip
    own = shuffled_rounds(ClonedProfile(budget), n_users, rounds, delta=(1 - share) * delta, checkin_rate=rate)
    assert own <= found * (1 + 1e-6)


def test_ends_of_the_domain():
    assert gaussian_vector_rounds(1.0, 100, 10, 1e-6, 0.0) == gaussian_vector_rounds(1.0, 100, 10, 1.0) == 0
    assert approximate_rounds(lambda budget: 1e-3, 100, 10, 1e-6) == np.inf
    assert approximate_rounds(lambda budget: 5e-324, 10**13, 10**9, 2e-300) == np.inf, "doubles end"
    assert gaussian_vector_rounds(1.0, 100, 10, 0.0) == np.inf
    for given, name in (
        ((0.0, 100, 10, 1e-6), "noise_std"),
        ((1.0, 1, 10, 1e-6), "n_users"),
        ((1.0, 9, 1, 2.0), "delta"),
    ):
        with pytest.raises(DomainError, match=name):
            gaussian_vector_rounds(*given)
