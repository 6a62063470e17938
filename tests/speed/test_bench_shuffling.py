"""Speed of the certified shuffling bounds for every number of users, beside the sum that a reader would write."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from flamelib.accounting.shuffling.numerical import all_equal, blanket_divergence, exact_binary
from flamelib.core.profiles import KaryProfile, LaplaceProfile

PROFILES = {
    "2 buckets": KaryProfile(1.0, 2),
    "10 buckets": KaryProfile(1.0, 10),
    "1000 buckets": KaryProfile(1.0, 1000),
    "laplace": LaplaceProfile(1.0),
}
USERS = {"1e3 users": 10**3, "1e5 users": 10**5, "1e7 users": 10**7, "1e9 users": 10**9}
DELTA = 1e-8


@pytest.mark.parametrize("users", USERS)
@pytest.mark.parametrize("name", PROFILES)
def test_certified_blanket_epsilon(benchmark, name, users):
    """A whole search, certified."""
    found = benchmark.pedantic(lambda: blanket_divergence(PROFILES[name], USERS[users], delta=DELTA), rounds=7)
    assert 0 < found < 1


@pytest.mark.parametrize("name", PROFILES)
def test_all_others_equal(benchmark, name):
    benchmark.pedantic(lambda: all_equal(PROFILES[name], 10**7, delta=DELTA), rounds=5)


@pytest.mark.parametrize("users", USERS)
def test_exact_binary_epsilon(benchmark, users):
    benchmark.pedantic(lambda: exact_binary(1.0, USERS[users], delta=DELTA), rounds=7)


def plain_blanket(epsilon0, n_users, epsilon):
    """Binary response under the blanket: given the number of blanket users, binomial tails; 12 deviations of it."""
    p, e = math.exp(epsilon0), math.exp(epsilon)
    mass = 2 / (p + 1)
    mean, spread = (n_users - 1) * mass, math.sqrt((n_users - 1) * mass * (1 - mass))
    c = np.arange(max(0, int(mean - 12 * spread)), min(n_users - 1, int(mean + 12 * spread)) + 1)
    j = np.floor((e * p - 1) * (c + 1) / ((p - e) + (e * p - 1)))
    up, none = binom.sf(j - 1, c, 0.5), binom.sf(j, c, 0.5)
    gain = ((p * up + none) - e * (up + p * none)) / (p + 1)
    return float(binom.pmf(c, n_users - 1, mass) @ np.maximum(gain, 0))


@pytest.mark.parametrize("users", ["1e3 users", "1e5 users", "1e7 users"])
def test_plain_sum_for_the_blanket(benchmark, users):
    """The same question as 2 buckets, as a vectorised sum inside a root search: uncertified, grows with n."""
    n_users = USERS[users]

    def search():
        return brentq(lambda e: plain_blanket(1.0, n_users, e) - DELTA, 1e-9, 1.0, xtol=1e-12)

    found = benchmark.pedantic(search, rounds=1)
    assert found == pytest.approx(blanket_divergence(PROFILES["2 buckets"], n_users, delta=DELTA), rel=1e-6)
