"""Orders chosen from round to round, against all strategies of small games."""

import math

import numpy as np
import pytest

from flamelib.loss_grids import Cells
from flamelib.loss_turns import both_orders, composed_turning


def cells(p, q):
    p, q = np.array(p), np.array(q)
    losses = np.log(p / q)
    return Cells(losses, losses, q, p - q, np.zeros(len(p)))


def best(p, q, rounds, alpha):
    """The largest divergence that any strategy reaches, by trying both orders after every history."""
    if rounds == 0:
        return max(1 - alpha, 0.0)
    orders = ((p, q), (q, p))
    return max(
        sum(one * best(p, q, rounds - 1, alpha * two / one) for one, two in zip(*order, strict=True))
        for order in orders
    )


def never(p, q, rounds, alpha):
    """The same for the given order in every round."""
    if rounds == 0:
        return max(1 - alpha, 0.0)
    return sum(one * never(p, q, rounds - 1, alpha * two / one) for one, two in zip(p, q, strict=True))


GAMES = [([0.5, 0.5], [0.8, 0.2]), ([0.7, 0.2, 0.1], [0.75, 0.24, 0.01]), ([0.9, 0.1], [0.99, 0.01])]


@pytest.mark.parametrize("epsilon", [0.05, 0.6, 2.0])
@pytest.mark.parametrize(("p", "q"), GAMES)
def test_all_strategies(p, q, epsilon):
    truth = best(p, q, 4, math.exp(epsilon))
    found = composed_turning([(cells(p, q), 4)], epsilon=epsilon)
    assert truth <= found <= truth * 1.02
    assert max(never(p, q, 4, math.exp(epsilon)), never(q, p, 4, math.exp(epsilon))) <= truth


@pytest.mark.parametrize(("p", "q"), GAMES)
def test_many_rounds_are_between(p, q):
    """Blocks cost little beside one pair for both orders."""
    from flamelib.loss_cells import composed

    either = [(cells(p, q), 3000)]
    fixed, found = composed(either, delta=1e-5), composed_turning(either, delta=1e-5)
    single = composed([(both_orders(cells(p, q)), 3000)], delta=1e-5)
    assert fixed - fixed.uncertainty <= found <= single * 1.001


def test_the_pair_for_both_orders():
    p, q = GAMES[1]
    both = both_orders(cells(p, q))
    for epsilon in (-1.0, -0.1, 0.0, 0.1, 1.0):
        found = float(np.maximum(both.gain - both.base * math.expm1(epsilon), 0).sum())
        assert found == pytest.approx(best(p, q, 1, math.exp(epsilon)), abs=1e-12)


def test_ends():
    one = cells(*GAMES[0])
    assert composed_turning([(one, 2)], delta=0.0) == math.inf
    assert composed_turning([(one, 2)], delta=1.0) == 0
    assert composed_turning([(cells([0.5, 0.5], [0.5, 0.5]), 2)], epsilon=0.0) <= 1e-10
