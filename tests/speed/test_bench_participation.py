"""Speed of one round of random participation."""

import pytest

from flamelib.accounting.sampling.secret_participation import (
    participation_noise,
    random_participation,
)

SIZES = {"30 records": 30, "1000 records": 1000, "1e6 records": 10**6}
RATES = {"30 records": 0.1, "1000 records": 0.01, "1e6 records": 1e-5}
READINGS = ("outer", "inner", "aligned")


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("size", SIZES)
def test_delta(benchmark, size, reading):
    found = benchmark(random_participation, reading, 0.1, RATES[size], SIZES[size], 1.0, 1.0, epsilon=0.01)
    assert 0 <= found < 1


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("size", SIZES)
def test_epsilon(benchmark, size, reading):
    """A whole search."""
    found = benchmark(random_participation, reading, 0.1, RATES[size], SIZES[size], 1.0, 1.0, delta=1e-9)
    assert 0 < found < 20


@pytest.mark.parametrize("scheme", READINGS)
def test_noise(benchmark, scheme):
    """The noise of the first experiment."""
    benchmark(participation_noise, scheme, 0.001, 0.1, 30, 1.0, 1e-2, 1e-7)
