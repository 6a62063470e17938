"""Random check-ins: the printed formula with many digits, and what a round of random participation has in common."""

import math

import pytest
from mpmath import mp, mpf

from flamelib.accounting.sampling.random_checkins import approximate_checkins, largest_local_delta, random_checkins


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
