"""The lower end of shuffled Gaussian noise where all others hold the same: integrals and exact special cases."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from flamelib.accounting.checkin.shuffled import shuffled_rounds, shuffled_rounds_lower
from flamelib.accounting.composition.dominating_pair import composed_below
from flamelib.accounting.shuffling.equal_inputs import equal_inputs_pair
from flamelib.core.profiles import GaussianProfile


def exact(noise_std: float, epsilon: float) -> float:
    """Delta of the Gaussian mechanism at a distance of 1."""
    half, gap = 1 / (2 * noise_std), epsilon * noise_std
    return float(norm.cdf(half - gap) - math.exp(epsilon) * norm.cdf(-half - gap))


def integral(noise_std: float, epsilon: float, swapped: bool = False) -> float:
    """Delta of two shuffled messages, by the trapezoidal rule."""
    y = np.linspace(-9 * noise_std, 1 + 9 * noise_std, 1501)
    zero, one = norm.pdf(y, 0, noise_std), norm.pdf(y, 1, noise_std)
    q = np.outer(zero, zero)
    p = (np.outer(zero, one) + np.outer(one, zero)) / 2
    p, q = (q, p) if swapped else (p, q)
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) * (y[1] - y[0]) ** 2


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("noise_std", [0.5, 1.0, 7.0, 1e3])
def test_one_user_has_the_gaussian_mechanism(noise_std: float, rate: float) -> None:
    pair = equal_inputs_pair(GaussianProfile(noise_std), 1, rate)
    assert pair is not None
    for epsilon in (0.1 / noise_std, 1 / noise_std, 3 / noise_std):
        truth = rate * exact(noise_std, epsilon)
        assert 0.97 * truth < composed_below([(pair, 1)], epsilon) <= truth
    if rate == 1:
        rounds = 16
        truth = exact(noise_std / 4, 2 / noise_std)
        assert 0.97 * truth < composed_below([(pair, rounds)], 2 / noise_std) <= truth


@pytest.mark.parametrize("noise_std", [0.6, 1.0, 4.0])
def test_two_users_by_an_integral(noise_std: float) -> None:
    pair = equal_inputs_pair(GaussianProfile(noise_std), 2)
    assert pair is not None
    for epsilon in (0.1 / noise_std, 0.5 / noise_std, 1 / noise_std):
        truth = max(integral(noise_std, epsilon, swapped) for swapped in (False, True))
        assert 0.97 * truth < composed_below([(pair, 1)], epsilon) <= truth * (1 + 1e-4)


@pytest.mark.parametrize(
    ("noise_std", "n_users", "rate", "rounds", "delta"),
    [
        (0.6, 10**5, 0.1, 100, 1e-6),
        (1.0, 1000, 1.0, 100, 1e-5),
        (34.0, 43, 0.4, 20, 1e-3),
        (90.0, 10**5, 5e-3, 50, 1e-9),
    ],
)
def test_below_the_upper_end(noise_std: float, n_users: int, rate: float, rounds: int, delta: float) -> None:
    randomizer = GaussianProfile(noise_std)
    lower = shuffled_rounds_lower(randomizer, n_users, rounds, delta=delta, checkin_rate=rate)
    upper = shuffled_rounds(randomizer, n_users, rounds, delta=delta, checkin_rate=rate)
    assert 0.3 * upper < lower <= upper


@pytest.mark.parametrize("noise_std", [0.3, 1e14, 1e300])
def test_ends_of_the_domain(noise_std: float) -> None:
    lower = shuffled_rounds_lower(GaussianProfile(noise_std), 1000, 3, delta=1e-5)
    assert lower < 1e-9 if noise_std > 1 else lower > 1


def test_many_rounds_are_close_to_their_limit() -> None:
    """The central limit: Gaussian differential privacy of the root of the rounds' chi-square divergences."""
    n_users, rounds = 10**5, 400
    mu = math.sqrt(rounds * math.expm1(1.0) / n_users)
    epsilon = 3 * mu
    limit = exact(1 / mu, epsilon)
    assert 0.9 * limit < shuffled_rounds_lower(GaussianProfile(1.0), n_users, rounds, epsilon) < 1.1 * limit
