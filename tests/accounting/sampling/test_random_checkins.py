"""Random check-ins: the printed formula with many digits, and what a round of random participation has in common."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from flamelib.accounting.sampling.random_checkins import approximate_checkins, largest_local_delta, random_checkins


def printed(epsilon0, rate, window, delta):
    e, p, m = mpf(epsilon0), mpf(rate), mpf(window)
    root = mp.sqrt(2 * mp.exp(e) * mp.log(1 / mpf(delta)) / m)
    return p * mp.expm1(e) * root + p**2 * mp.exp(e) * mp.expm1(e) ** 2 / (2 * m)


@given(st.floats(1e-9, 200), st.floats(1e-9, 1), st.integers(1, 10**12), st.floats(1e-300, 1))
def test_the_printed_formula(epsilon0, rate, window, delta):
    found = random_checkins(epsilon0, rate, window, delta)
    with mp.workdps(30):
        assert found == pytest.approx(float(printed(epsilon0, rate, window, delta)), rel=1e-12)


def test_an_approximate_randomizer_pays_eightfold():
    found = approximate_checkins(0.25, 0.1, 10**4, 1e-6, 1e-12)
    assert found.epsilon == random_checkins(2.0, 0.1, 10**4, 1e-6)
    assert found.delta == pytest.approx(1e-6 + 1e4 * (math.exp(found.epsilon) + 1) * 1e-12, rel=1e-12)
    assert found.epsilon > 20 * random_checkins(0.25, 0.1, 10**4, 1e-6)
    assert approximate_checkins(100.0, 0.1, 10, 1e-6, 1e-9).epsilon == math.inf


@pytest.mark.parametrize(("epsilon0", "slack"), [(0.1, 1e-12), (1.0, 1e-9), (4.0, 1e-3), (50.0, 1e-6)])
def test_the_largest_delta_of_a_randomizer(epsilon0, slack):
    with mp.workdps(200):
        e, d = mpf(epsilon0), mpf(slack)
        trials = 2 + mp.log(2 / d) / mp.log(1 / (1 - mp.exp(-5 * e)))
        truth = (1 - mp.exp(-e)) * d / (4 * mp.exp(e) * trials)
    assert largest_local_delta(epsilon0, slack) == pytest.approx(float(truth), rel=1e-12)
