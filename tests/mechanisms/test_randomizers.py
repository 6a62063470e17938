"""Local randomizers: laws that add up, blankets that fit, samplers that follow the law and no other."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import chisquare, kstest

from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.randomizers import GaussianNoise, KaryResponse, LaplaceNoise

EPSILON0 = st.floats(0.01, 20)
DISCRETE = st.builds(KaryResponse, EPSILON0, st.integers(2, 40))
CONTINUOUS = (LaplaceNoise(0.3), LaplaceNoise(4.0), GaussianNoise(0.25), GaussianNoise(2.0))
EVERY = (KaryResponse(1.0, 5), *CONTINUOUS)


def inputs_of(randomizer):
    return np.arange(randomizer.n_buckets)


@settings(deadline=None)
@given(DISCRETE)
def test_discrete_laws_add_up_and_contain_their_blanket(randomizer):
    reports = inputs_of(randomizer)
    law = np.exp(randomizer.log_pmf(reports, reports[:, None]))
    blanket = np.exp(randomizer.blanket_log_pmf(reports))
    assert np.allclose(law.sum(1), 1, rtol=1e-12)
    assert blanket.sum() == pytest.approx(1, rel=1e-12)
    assert law.min(0).sum() == pytest.approx(randomizer.mass, rel=1e-11)
    assert np.allclose(law.min(0), randomizer.mass * blanket, rtol=1e-9, atol=1e-300)


@settings(deadline=None)
@given(DISCRETE)
def test_the_largest_ratio_of_two_laws_is_the_local_budget(randomizer):
    reports = inputs_of(randomizer)
    law = randomizer.log_pmf(reports, reports[:, None])
    worst = (law.max(0) - law.min(0)).max()
    assert worst == pytest.approx(randomizer.epsilon0, rel=1e-10)


def integral(function, randomizer):
    scale = randomizer.noise_std if isinstance(randomizer, GaussianNoise) else 1 / randomizer.epsilon0
    pieces = [-40 * scale, 0, 0.5, 1, 1 + 40 * scale]
    return sum(integrate.quad(function, a, b, epsabs=1e-13, limit=200)[0] for a, b in itertools.pairwise(pieces))


@pytest.mark.parametrize("randomizer", CONTINUOUS, ids=str)
def test_densities_integrate_to_one_and_contain_their_blanket(randomizer):
    def law(report, value):
        return math.exp(randomizer.log_pdf(report, value))

    for value in (0.0, 0.37, 1.0):
        assert integral(lambda report, value=value: law(report, value), randomizer) == pytest.approx(1, rel=1e-9)
    common = integral(lambda report: min(law(report, 0.0), law(report, 1.0)), randomizer)
    assert common == pytest.approx(randomizer.mass, rel=1e-9)
    for report in (-1.3, 0.0, 0.2, 0.5, 0.51, 2.4):
        least = min(law(report, value) for value in np.linspace(0, 1, 201))
        assert least == pytest.approx(randomizer.mass * math.exp(randomizer.blanket_log_pdf(report)), rel=1e-10)


def test_the_laplace_ratio_is_the_local_budget():
    randomizer = LaplaceNoise(1.7)
    reports = np.linspace(-3, 4, 701)
    assert (randomizer.log_pdf(reports, 1.0) - randomizer.log_pdf(reports, 0.0)).max() == pytest.approx(1.7)


@given(EPSILON0, st.integers(2, 10**6))
def test_kary_response_from_its_blanket_mass(epsilon0, n_buckets):
    original = KaryResponse(epsilon0, n_buckets)
    again = KaryResponse.from_blanket_mass(n_buckets, original.mass)
    assert again.mass == pytest.approx(original.mass, rel=1e-13)
    with mpmath.workdps(50):
        exact = mpmath.log(1 - n_buckets + n_buckets / mpmath.mpf(original.mass))
    assert again.epsilon0 == pytest.approx(float(exact), rel=1e-13)


def law_of(randomizer, value):
    """Reports likely enough to be counted, and their probabilities."""
    reports = inputs_of(randomizer)
    log_law = randomizer.blanket_log_pmf(reports) if value is None else randomizer.log_pmf(reports, value)
    seen = log_law > math.log(1e-3)
    return reports[seen], np.exp(log_law[seen])


def fits(draws, reports, law):
    counts = np.array([(draws == report).sum() for report in reports], dtype=float)
    observed = np.append(counts, draws.size - counts.sum())
    expected = np.append(law, 1 - law.sum()) * draws.size
    kept = expected > 5
    tail = expected[kept].sum() / observed[kept].sum() if observed[kept].sum() else np.inf
    return chisquare(observed[kept] * tail, expected[kept]).pvalue


def scaled(randomizer, factor):
    """The same randomizer with noise wider by a factor."""
    if isinstance(randomizer, KaryResponse):
        return KaryResponse(randomizer.epsilon0 / factor, randomizer.n_buckets)
    if isinstance(randomizer, LaplaceNoise):
        return LaplaceNoise(randomizer.epsilon0 / factor)
    return GaussianNoise(randomizer.noise_std * factor)


@pytest.mark.parametrize("value", [None, 0, 1])
@pytest.mark.parametrize("randomizer", [r for r in EVERY if hasattr(r, "log_pmf")], ids=str)
def test_discrete_samples_follow_their_law_and_no_neighbouring_one(randomizer, value):
    rng = np.random.default_rng(3)
    draws = randomizer.sample_blanket(40_000, rng) if value is None else randomizer.sample(np.full(40_000, value), rng)
    assert draws.dtype == np.int64
    assert fits(draws, *law_of(randomizer, value)) > 1e-3
    if value is None:
        return  # uniform whatever the budget
    for factor in (0.85, 1.2):
        assert fits(draws, *law_of(scaled(randomizer, factor), value)) < 1e-6


@pytest.mark.parametrize("value", [None, 0.0, 0.7])
@pytest.mark.parametrize("randomizer", CONTINUOUS, ids=str)
def test_continuous_samples_follow_their_law_and_no_neighbouring_one(randomizer, value):
    rng = np.random.default_rng(4)
    draws = randomizer.sample_blanket(20_000, rng) if value is None else randomizer.sample(np.full(20_000, value), rng)

    def pvalue(other):
        grid = np.linspace(draws.min() - 1e-9, draws.max() + 1e-9, 200_001)
        log_density = other.blanket_log_pdf(grid) if value is None else other.log_pdf(grid, value)
        mass = integrate.cumulative_trapezoid(np.exp(log_density), grid, initial=0)
        below = integrate.quad(
            lambda y: math.exp(other.blanket_log_pdf(y) if value is None else other.log_pdf(y, value)),
            grid[0] - 60 * (1 + abs(grid[0])), grid[0], limit=400,
        )[0]  # fmt: skip
        return kstest(draws, lambda y: np.interp(y, grid, mass + below)).pvalue

    assert pvalue(randomizer) > 1e-3
    assert max(pvalue(scaled(randomizer, factor)) for factor in (0.9, 1.12)) < 1e-4


@pytest.mark.parametrize("randomizer", EVERY, ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -1, 99, "0", None, 1j, True, [0, [0, 1]]])
def test_values_outside_the_domain_are_refused_by_name(randomizer, bad):
    rng = np.random.default_rng(0)
    with pytest.raises(DomainError, match=r"values must be .*numbers"):
        randomizer.sample(bad, rng)
    law = randomizer.log_pmf if hasattr(randomizer, "log_pmf") else randomizer.log_pdf
    with pytest.raises(DomainError, match=r"value must be .*numbers"):
        law(0, bad)


@pytest.mark.parametrize("bad", [0, -0.1, 1, 1.5, np.nan, np.inf, "x"])
def test_blanket_masses_outside_the_domain_are_refused_by_name(bad):
    with pytest.raises(DomainError, match="blanket_mass must be"):
        KaryResponse.from_blanket_mass(3, bad)


def test_the_blanket_of_gaussian_noise_survives_an_underflowing_mass():
    randomizer = GaussianNoise(0.005)
    assert randomizer.mass == 0
    draws = randomizer.sample_blanket(1000, np.random.default_rng(10))
    assert np.abs(draws - 0.5).max() < 0.001
    with mpmath.workdps(60):
        tail = mpmath.ncdf(mpmath.mpf(-100))
        density = mpmath.npdf(mpmath.mpf("0.5001"), 0, mpmath.mpf("0.005")) / (2 * tail)
    assert float(randomizer.blanket_log_pdf(0.4999)) == pytest.approx(float(mpmath.log(density)), rel=1e-10)
