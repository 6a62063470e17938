"""Costs beside other protocols: the published figures, formulas written out once more, and what is not known."""

import math

import pytest
from mpmath import mp, mpf

from flamelib.accounting.splitting.costs import cost

SETTING = {"epsilon": 1.0, "delta": 1e-6}


def test_rule_t2_by_scale_and_by_error():
    by_error = cost("cmp-t2", 100, **SETTING, error=0.01)
    assert (by_error.messages, by_error.bits, by_error.error) == (67, 2814, 0.01)
    assert cost("cmp-t2", 100, **SETTING, scale=10_000) == by_error
    assert cost("cmp-t2", 100, **SETTING) == cost("cmp-t2", 100, **SETTING, error=0.1)


def recursive(n, epsilon, delta):
    """The recursive protocol as it is written, with many digits."""
    n, epsilon, delta = mpf(n), mpf(epsilon), mpf(delta)
    m = int(mp.nint(mp.log(mp.log(n, 2), 3)))
    each = epsilon / m

    def mass(values):
        return max(14 * values * mp.log(2 * m / delta) / ((n - 1) * each**2), 27 * values / ((n - 1) * each))

    base = ((3**m - 1) * n * epsilon**2 / mpf(m) ** 3) ** (mpf(3) ** (-m - 1))
    levels = [int(min(mp.ceil(base ** (3**j)), mp.floor(1 / mass(1)))) for j in range(1, m + 1)]
    mse, grid = n / (4 * mp.fprod(levels) ** 2), mpf(1)
    for j, p in enumerate(levels):
        g = mass(p + 1 if j == m - 1 else p)
        grid *= p
        values = p + 1 if j == m - 1 else p
        mse += n * (g * (values**2 - 1) / 12 + (values - 1) ** 2 * g * (1 - g) / 4) / (1 - g) ** 2 / grid**2
    return m, sum(math.ceil(math.log2(p + 1)) for p in levels), mp.sqrt(mse)


@pytest.mark.parametrize("n_users", [10**6, 10**8, 10**10])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_recursive_protocol(n_users, epsilon):
    found = cost("cmp-rec", n_users, epsilon, 1e-6)
    messages, bits, error = recursive(n_users, epsilon, 1e-6)
    assert (found.messages, found.bits) == (messages, bits)
    assert found.error == pytest.approx(float(error), rel=1e-9)


@pytest.mark.parametrize("protocol", ["cmp-t1", "cmp-t2", "cmp-ikos", "cmp-blanket", "cmp-central", "cmp-local"])
def test_a_vector_costs_its_dimension(protocol):
    one, many = (cost(protocol, 1000, **SETTING, dimension=d) for d in (1, 50))
    assert (many.messages, many.bits, many.error) == (50 * one.messages, 50 * one.bits, one.error)
