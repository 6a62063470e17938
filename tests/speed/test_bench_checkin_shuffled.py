"""Speed of shuffled check-in after many rounds, beside another library on the explicit pair."""

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution
from scipy.stats import binom

from flamelib.accounting.checkin.shuffled import (
    checkin_shuffled,
    largest_epsilon0,
    shuffled_rounds,
    shuffled_rounds_lower,
)
from flamelib.accounting.checkin.subsampled_shuffle import equal_cells, round_curve
from flamelib.core.profiles import KaryProfile

WIDE = {"epsilon0": 2.0, "n_users": 60_000, "checkin_rate": 0.1, "rounds": 5540, "delta": 1 / 60_000}


def limit(benchmark, seconds):
    assert benchmark.stats is None or benchmark.stats.stats.min < seconds


def afresh(benchmark, function, *args, **kwargs):
    """Each time without the curves of the last one."""

    def setup():
        round_curve.cache_clear()
        return args, kwargs

    return benchmark.pedantic(function, setup=setup, rounds=3)


@pytest.mark.parametrize(
    ("route", "n_buckets", "most"), [("clones", None, 1.5), ("kary", 2, 1.1), ("kary", 4, 1.0), ("laplace", None, 0.92)]
)
def test_many_rounds_of_check_in(benchmark, route, n_buckets, most):
    """Due within 3 s."""
    asked = WIDE | {"route": route, "n_buckets": n_buckets}
    assert 0.7 < afresh(benchmark, checkin_shuffled, **asked) < most
    limit(benchmark, 3)


@pytest.mark.parametrize(("n_users", "most"), [(10**4, 0.4172), (10**5, 0.1217)])
def test_many_rounds_of_plain_shuffling(benchmark, n_users, most):
    """Due within 1.5 s with 100,000 users."""
    asked = (KaryProfile(1.0, 2), n_users, 100)
    assert 0.1 < afresh(benchmark, shuffled_rounds, *asked, delta=1e-6) < most
    limit(benchmark, 1.5 if n_users == 10**5 else 3)


def test_what_they_cost_at_least(benchmark):
    asked = (KaryProfile(1.0, 2), 10**5, 100)
    assert benchmark.pedantic(shuffled_rounds_lower, asked, {"delta": 1e-6}, rounds=3) == pytest.approx(
        0.1212, abs=1e-4
    )
    limit(benchmark, 1.5)


def test_equal_others_by_another_library(benchmark):
    """All other users equal in each round, on a grid of 1e-5: no bound for other data sets."""

    def question():
        epsilon0, n, step = 1.0, 10**5, 1e-5
        q = 1 / (1 + np.exp(epsilon0))
        ones = np.arange(n + 1)
        base = binom.pmf(ones, n, q)
        ratio = 1 + (np.expm1(epsilon0) * ones + np.expm1(-epsilon0) * (n - ones)) / n
        kept = base * ratio > 1e-18
        places = np.ceil(np.log(ratio[kept]) / step).astype(int)
        masses = np.bincount(places - places.min(), (base * ratio)[kept])
        pmf = pld_pmf.DensePLDPmf(step, int(places.min()), masses, max(0.0, 1 - float(masses.sum())), True)
        once = privacy_loss_distribution.PrivacyLossDistribution(pmf)
        return once.self_compose(100).get_epsilon_for_delta(1e-6)

    assert benchmark.pedantic(question, rounds=3) == pytest.approx(0.1217, abs=1e-3)


def test_pair_that_occurs(benchmark):
    cells = benchmark.pedantic(equal_cells, (KaryProfile(2.0, 2), 60_000, 0.1), rounds=3)
    assert cells.delta(0.0) > 0


def test_calibration(benchmark):
    asked = {"n_users": 60_000, "checkin_rate": 0.1, "rounds": 5540, "epsilon": 1.5, "delta": 1 / 60_000}
    assert benchmark.pedantic(largest_epsilon0, kwargs=asked, rounds=1) == pytest.approx(2.422, rel=0.005)
