"""Speed of the Rényi theorems of self check-in: sums over ten million clients, and epsilon after all rounds."""

import pytest

from flamelib.accounting.checkin.renyi import distributed_renyi_epsilon, shuffled_renyi_epsilon
from flamelib.accounting.checkin.theorems import exact_renyi, summed_renyi

MANY = 10**7


@pytest.mark.parametrize("order", [2, 100, 3000])
@pytest.mark.parametrize("rate", [1e-3, 0.5])
def test_a_sum_over_ten_million_clients(benchmark, order, rate):
    benchmark.pedantic(lambda: summed_renyi(order, MANY, rate, 1.0, "exact"), rounds=3)
    assert benchmark.stats["min"] < 1


@pytest.mark.parametrize("order", [2, 100, 3000])
def test_an_exact_sum_over_ten_million_clients(benchmark, order):
    benchmark.pedantic(lambda: exact_renyi(order, MANY, 0.1, 1.0), rounds=3)
    assert benchmark.stats["min"] < 1


@pytest.mark.parametrize("route", ["thm-2", "thm-3"])
def test_epsilon_of_shuffled_reports(benchmark, route):
    benchmark.pedantic(lambda: shuffled_renyi_epsilon(1.0, MANY, 1e-3, 10**5, 1e-7, route), rounds=3)
    assert benchmark.stats["min"] < 1


@pytest.mark.parametrize("route", ["thm-4", "eq-11", "rdp-exact"])
def test_epsilon_of_noisy_sums(benchmark, route):
    benchmark.pedantic(lambda: distributed_renyi_epsilon(600_000, 1e-3, 1.0, 1000, 1e-8, route), rounds=3)
    assert benchmark.stats["min"] < 1.5
