"""One pair for both orders, against all strategies of small games."""

import math

import numpy as np
import pytest

from flamelib.accounting.composition.dominating_pair import DominatingPair, both_orders, composed


def cells(p, q):
    p, q = np.array(p), np.array(q)
    losses = np.log(p / q)
    return DominatingPair(losses, losses, q, p - q, np.zeros(len(p)))


def best(p, q, rounds, alpha):
    """The largest divergence that any strategy reaches, by trying both orders after every history."""
    if rounds == 0:
        return max(1 - alpha, 0.0)
    orders = ((p, q), (q, p))
    return max(
        sum(one * best(p, q, rounds - 1, alpha * two / one) for one, two in zip(*order, strict=True))
        for order in orders
    )


GAMES = [([0.5, 0.5], [0.8, 0.2]), ([0.7, 0.2, 0.1], [0.75, 0.24, 0.01]), ([0.9, 0.1], [0.99, 0.01])]


@pytest.mark.parametrize("epsilon", [0.05, 0.6, 2.0])
@pytest.mark.parametrize(("p", "q"), GAMES)
def test_no_strategy_reaches_more(p, q, epsilon):
    truth = best(p, q, 4, math.exp(epsilon))
    assert truth <= composed([(both_orders(cells(p, q)), 4)], epsilon=epsilon) <= 2 * truth


def test_one_round_is_exact():
    p, q = GAMES[1]
    both = both_orders(cells(p, q))
    for epsilon in (-1.0, -0.1, 0.0, 0.1, 1.0):
        found = float(np.maximum(both.gain - both.base * math.expm1(epsilon), 0).sum())
        assert found == pytest.approx(best(p, q, 1, math.exp(epsilon)), abs=1e-12)
