"""Speed of the certified shuffling bounds for every number of users."""

import pytest

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
