"""The pair of one round of distributed check-in against enumeration and tails in many digits."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf
from oracles.checkin import exact_delta
from scipy.stats import binom, norm

from flamelib.accounting.checkin.distributed_noise import (
    counted,
    distributed_cells,
    distributed_rounds,
    distributed_rounds_lower,
)
from flamelib.accounting.composition.dominating_pair import above


class TestOneRound:
    @pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.5, 3.0, 30.0])
    @pytest.mark.parametrize(("n", "rate", "noise"), [(2, 0.3, 1.0), (20, 0.1, 0.3), (40, 0.5, 3.0), (9, 1.0, 1.0)])
    def test_the_sum_over_counts(self, n, rate, noise, epsilon):
        truth = exact_delta(n, rate, noise, epsilon)
        found = distributed_rounds(n, rate, noise, 1, epsilon=epsilon)
        assert truth <= found <= max(truth * (1 + mpf("1e-9")), 1e-323)
        assert exact_delta(n, rate, noise, epsilon, swapped=True) <= found
        assert distributed_rounds_lower(n, rate, noise, 1, epsilon=epsilon) <= truth

    @pytest.mark.parametrize("epsilon", [-1.0, -0.3, 0.0, 0.3, 1.0])
    def test_cells_have_both_orders(self, epsilon):
        cells = distributed_cells(20, 0.3, 0.7)
        ahead, back = (above(one, 1e-3) for one in (cells, cells.swapped()))
        told = [float((law.masses * np.maximum(-np.expm1(epsilon - law.losses), 0)).sum()) for law in (ahead, back)]
        if epsilon >= 0:
            truth = [exact_delta(20, 0.3, 0.7, epsilon), exact_delta(20, 0.3, 0.7, epsilon, swapped=True)]
        else:  # by the other order at -epsilon
            other = [exact_delta(20, 0.3, 0.7, -epsilon, swapped=True), exact_delta(20, 0.3, 0.7, -epsilon)]
            truth = [1 - mp.e**epsilon + mp.e**epsilon * one for one in other]
        for one, two in zip(told, truth, strict=True):
            assert two - 1e-15 <= one <= two * mpf(1.002) + 1e-12

    def test_no_records_cost_more(self):
        """Every data set of three records from a few, every set of those who are in, on a grid."""
        n, rate, noise, x = 3, 0.4, 0.8, np.linspace(-12, 12, 6001)
        step = x[1] - x[0]

        def output(data, k):
            sets = list(itertools.combinations(data, k))
            return sum(norm.pdf(x, sum(one), math.sqrt(k) * noise) for one in sets) / len(sets)

        worst = {0.1: 0.0, 0.7: 0.0}
        for *others, here, there in itertools.product((-1.0, 0.2, 1.0), repeat=4):
            for epsilon in worst:
                excess = sum(
                    binom.pmf(k, n, rate)
                    * np.maximum(output((*others, here), k) - math.exp(epsilon) * output((*others, there), k), 0).sum()
                    for k in range(1, n + 1)
                )
                worst[epsilon] = max(worst[epsilon], excess * step)
        for epsilon, found in worst.items():
            assert found == pytest.approx(float(exact_delta(n, rate, noise, epsilon)), rel=1e-5)


class TestGroups:
    @pytest.mark.parametrize("n", [10**7, 10**12, 2**53])
    def test_chances_are_right(self, n):
        """Means and variances of huge binomial laws, from grouped counts."""
        up, down = counted(n, 0.3, 0.3, 1.0), counted(n, 0.3, 0.3, 1.0, below=True)
        assert down.mass.sum() <= 1 <= up.mass.sum() <= 1 + 1e-3
        assert down.mass @ down.rate <= 0.3 <= up.mass @ up.rate <= 0.3 * (1 + 1e-3)

    @pytest.mark.parametrize(("n", "rate", "noise", "epsilon"), [(300, 0.2, 1.0, 0.5), (50, 0.5, 0.3, 3.0)])
    def test_few_groups_bound_from_both_sides(self, n, rate, noise, epsilon):
        more, less = (counted(n, rate, rate, noise, most=2, below=below).log_delta(epsilon) for below in (False, True))
        assert less < float(mp.log(exact_delta(n, rate, noise, epsilon))) < more

    @pytest.mark.parametrize("true_rate", [0.05, 0.07, 0.1])
    @pytest.mark.parametrize("noise", [0.4, 1.0, 3.0])
    def test_a_rate_within_bounds(self, true_rate, noise):
        for epsilon in (0.0, 0.1, 1.0, 3.0):
            found = distributed_rounds(30, 0.1, noise, 1, epsilon=epsilon, dropout=0.5)
            assert exact_delta(30, true_rate, noise, epsilon) <= found
