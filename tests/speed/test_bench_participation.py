"""Speed of one round of random participation, beside the integral that a reader would write down."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, norm

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


def plain_outer(p, q, n_records, noise_std, epsilon):
    """The sum as it is printed, every term an integral of a positive part."""
    alpha = 1 + math.expm1(epsilon) / (p * q)
    c0 = (1 - p) * (1 - 1 / alpha)

    def term(j):
        def excess(x):
            other = (1 - c0) * norm.pdf(x, 0, noise_std) + c0 * norm.pdf(x, -j, noise_std)
            return norm.pdf(x, 1, noise_std) - alpha * other

        low, high = 0.5 + noise_std**2 * math.log1p(p * (alpha - 1)), 0.5 + noise_std**2 * math.log(alpha)
        cut = brentq(excess, low - 1e-9, high + 1e-9, xtol=1e-14)
        return quad(excess, cut, cut + 40 * noise_std, epsabs=0, epsrel=1e-10)[0]

    weights = binom.pmf(np.arange(n_records), n_records - 1, q)
    return p * q * math.fsum(w * term(j) for j, w in enumerate(weights))


def test_the_plain_sum_of_integrals(benchmark):
    found = benchmark.pedantic(plain_outer, (0.1, 0.1, 30, 1.0, 0.01), rounds=3)
    assert found == pytest.approx(float(random_participation("outer", 0.1, 0.1, 30, 1.0, 1.0, epsilon=0.01)), rel=1e-8)
