"""Distributed check-in against quadrature and another library: upper never below, lower never above."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from flamelib.accounting.checkin.distributed_noise import (
    distributed,
    distributed_cells,
    distributed_noise,
    distributed_rounds,
    distributed_rounds_lower,
    distributed_schedule,
    effective_rate,
    occurring_cells,
)
from flamelib.accounting.composition.dominating_pair import composed, composed_below, to_dp_accounting
from flamelib.core.vocabulary import DomainError


class TestManyRounds:
    def test_the_references(self):
        """Records that never turn, in the worse order, and what covers all records."""
        cells, below = distributed_cells(200, 0.1, 1.0), occurring_cells(200, 0.1, 1.0)
        for epsilon, truth in ((1.0, 5.54027e-3), (3.0, 2.03528e-9)):
            assert composed_below([(below, 100)], epsilon=epsilon) <= truth * 1.00001
            assert composed_below([(below, 100)], epsilon=epsilon) == pytest.approx(truth, rel=5e-3)
            assert truth * 0.99999 <= composed([(cells, 100)], epsilon=epsilon) <= truth * 1.02
            assert truth <= distributed_rounds(200, 0.1, 1.0, 100, epsilon=epsilon) <= truth * 6

    @pytest.mark.parametrize(("rounds", "known"), [(10**4, 0.0359), (10**6, 0.3988)])
    def test_the_setting_of_the_document(self, rounds, known):
        found, all_records = (distributed(600_000, 1e-3, 1.0, rounds, 1e-8, route) for route in ("pld-exact", "pld"))
        assert found == pytest.approx(known, rel=5e-3)
        assert found.uncertainty < 0.005 * found
        assert 0.998 * found < distributed_rounds_lower(600_000, 1e-3, 1.0, rounds, delta=1e-8) <= found
        assert found < all_records < 1.04 * found

    @pytest.mark.parametrize(
        ("n", "rate", "noise", "epsilon"), [(3, 0.2, 0.5, 0.0), (10, 0.05, 0.4, 0.0), (2, 0.6, 1.2, 0.5)]
    )
    def test_two_rounds_of_records_that_adapt(self, n, rate, noise, epsilon):
        """The others hold anything in the first round, the worse of both orders follows: above neither order alone."""
        found = float(distributed_rounds(n, rate, noise, 2, epsilon=epsilon))
        worst = max(two_rounds(n, rate, noise, epsilon, others) for others in (-1.0, -0.5, 0.0, 0.5, 1.0))
        assert worst * (1 - 1e-5) <= found <= worst * 1.2


def two_rounds(n, rate, noise, epsilon, others):
    """By quadrature: records +1 and -1 among ``others``, then those of the worst pair, in the order that suits best."""
    total = 0.0
    for k in range(n + 1):
        r, sigma = k / n, math.sqrt(max(k, 1)) * noise
        x = np.linspace(-1 - 12 * sigma, 1 + 12 * sigma, 4001)
        common = (1 - r) * norm.pdf(x, others, sigma)
        p, q = (common + r * norm.pdf(x, centre, sigma) for centre in (1.0, -1.0))
        alpha = np.exp(epsilon) * q / np.maximum(p, 1e-300)
        rest = second(n, rate, noise, np.log(np.maximum(alpha, 1e-300)))
        total += binom.pmf(k, n, rate) * float(p @ rest) * (x[1] - x[0])
    return total


def second(n, rate, noise, epsilon):
    """The largest divergence of one round in either order at positive epsilon, and so at negative ones."""
    alpha, total = np.exp(np.minimum(np.abs(epsilon), 600)), 0.0
    for k in range(1, n + 1):
        r, sigma = k / n, math.sqrt(k) * noise
        cut = 1 + sigma**2 / 2 * np.log((alpha - 1 + r) / r)
        total += binom.pmf(k, n, rate) * (r * norm.sf(cut, 2, sigma) - (alpha - 1 + r) * norm.sf(cut, 0, sigma))
    return np.where(epsilon < 0, 1 - 1 / alpha + total / alpha, total)


class TestSchedules:
    def test_one_part_and_two_halves(self):
        whole = distributed_rounds(200, 0.1, 1.0, 100, delta=1e-6)
        assert distributed_schedule(200, [(0.1, 100)], 1.0, delta=1e-6) == whole
        halves = distributed_schedule(200, [(0.1, 50), (0.1, 50)], 1.0, delta=1e-6)
        assert halves == pytest.approx(whole, rel=0.01)

    def test_drop_outs(self):
        assert effective_rate(0.3, 0.0) == 0.3
        known = distributed_rounds(500, effective_rate(0.1, 0.4), 1.0, 50, delta=1e-6)
        none = distributed_rounds(500, 0.1, 1.0, 50, delta=1e-6)
        assert max(known, none) < distributed_rounds(500, 0.1, 1.0, 50, delta=1e-6, dropout=0.4)


class TestNoise:
    @pytest.mark.parametrize(
        ("n", "rate", "rounds", "epsilon", "delta"),
        [(200, 0.1, 100, 1.0, 1e-6), (200, 0.1, 1, 0.1, 1e-12), (10**5, 1e-3, 3, 40.0, 1e-5), (50, 1.0, 10, 0.5, 0.01)],
    )
    def test_least_noise(self, n, rate, rounds, epsilon, delta):
        noise = distributed_noise(n, rate, rounds, epsilon, delta)
        assert distributed_rounds(n, rate, noise, rounds, delta=delta) <= epsilon
        assert distributed_rounds(n, rate, noise * 0.997, rounds, delta=delta) > epsilon


class TestElsewhere:
    @pytest.mark.parametrize(("n", "rate", "noise", "rounds"), [(200, 0.1, 1.0, 100), (600_000, 1e-3, 1.0, 1000)])
    def test_the_same_composition(self, n, rate, noise, rounds):
        cells = distributed_cells(n, rate, noise)
        ours = composed([(cells, rounds)], delta=1e-7)
        step = ours / 2e4
        theirs = to_dp_accounting(cells, step, 1e-12 / rounds).self_compose(rounds).get_epsilon_for_delta(1e-7)
        assert distributed_rounds_lower(n, rate, noise, rounds, delta=1e-7) <= theirs
        assert theirs == pytest.approx(ours, rel=2e-3)

    def test_steps_are_checked(self):
        cells = distributed_cells(200, 0.1, 1.0)
        for step, spared in ((0.0, 0.0), (math.nan, 0.0), (1e-12, 0.0), (0.1, 1.0)):
            with pytest.raises(DomainError, match="step"):
                to_dp_accounting(cells, step, spared)


def test_rare_large_losses_from_below():
    """Hardly any mass at losses far below 0 does not make sums reach there."""
    found = composed([(distributed_cells(6_327_432, 3.457e-5, 1.133), 212)], epsilon=5.568e-5)
    least = distributed_rounds_lower(6_327_432, 3.457e-5, 1.133, 212, epsilon=5.568e-5)
    assert 0.98 * found < least < found
    assert distributed_rounds_lower(57, 2.74e-6, 6.2, 56_212, delta=0.03) <= 1
    assert distributed_rounds_lower(10, 1e-300, 1e300, 100, delta=0.1) == 0
    assert distributed_rounds_lower(2, 1.0, 1e-3, 1, delta=0.5) == 0
    assert distributed_rounds_lower(2, 1.0, 1e-3, 1, epsilon=0.5) == 0
