"""The private sum by the certified divergence: its privacy by every count, its error by every message, its levels."""

import math

import pytest
from oracles import closed_form as oracle
from oracles.tables import neighbours, normed, worst

from flamelib.accounting.shuffling.accuracy import summation_worst_mse, worst_input
from flamelib.accounting.shuffling.calibration import certified_summation_plan, least_blanket_mass
from flamelib.core.vocabulary import DomainError


@pytest.mark.parametrize(
    ("n_users", "epsilon", "delta", "least"),
    [(4, 1.0, 0.05, 1), (6, 2.0, 0.02, 2), (4, 3.0, 0.01, 3), (7, 0.5, 0.1, 1)],
)
def test_no_data_set_loses_more(n_users, epsilon, delta, least):
    plan = certified_summation_plan(n_users, epsilon, delta)
    assert plan.n_levels >= least
    letters, mass = plan.n_levels + 1, plan.blanket_mass
    rows = [[mass / letters + (1 - mass) * (held == sent) for sent in range(letters)] for held in range(letters)]
    assert delta / 10 < worst(neighbours(normed(rows), n_users), epsilon) <= delta


@pytest.mark.parametrize(("n_users", "epsilon", "delta"), [(2, 3.0, 0.01), (3, 4.0, 0.05)])
def test_the_error_is_that_of_the_worst_inputs(n_users, epsilon, delta):
    plan = certified_summation_plan(n_users, epsilon, delta)
    worst = worst_input(plan.n_levels, plan.blanket_mass)
    expected = oracle.summation_mse([worst] * n_users, plan.n_levels, plan.blanket_mass)
    assert plan.mse == pytest.approx(expected, rel=1e-9)
    assert plan.mse <= plan.mse_bound


@pytest.mark.parametrize(
    ("n_users", "epsilon", "delta"),
    [
        (12, 0.336, 2.2367e-5),
        (2, 0.5, 0.01),
        (5, 1.0, 1e-3),
        (20, 0.7, 1e-4),
        (9, 4.0, 0.0),
    ],
)
def test_the_levels_are_the_best_of_all(n_users, epsilon, delta):
    """Every number of levels, until even exact values would be told with more error."""
    plan = certified_summation_plan(n_users, epsilon, delta)
    levels, least, mass = 0, math.inf, 0.0
    while n_users * (mass / 3 - mass**2 / 4) / (1 - mass) ** 2 < least:
        levels += 1
        before, mass = mass, least_blanket_mass(n_users, levels + 1, epsilon, delta)
        assert mass >= before * (1 - 1e-9)
        least = min(least, summation_worst_mse(n_users, levels, mass))
    assert plan.mse == pytest.approx(least, rel=1e-9)


def test_levels_are_found_where_the_theorem_is_silent():
    assert certified_summation_plan(50, 8.0, 1e-6).n_levels == 16
    assert certified_summation_plan(10, 1.0, 0.0).blanket_mass == pytest.approx(2 / (math.e + 1), rel=1e-12)
    for epsilon, delta in ((0.0, 1e-6), (1.0, 1.0)):
        with pytest.raises(DomainError, match="epsilon must be above 0 and delta below 1"):
            certified_summation_plan(100, epsilon, delta)
