"""The Gaussian mechanism against 60 digits: delta, epsilon, noise; and the mistakes of the classical formula."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flamelib.accounting.noise import gaussian as gm


def exact(sensitivity, noise_std, epsilon):
    """The printed formula with more digits than it can lose."""
    with mpmath.workdps(400 if sensitivity < 1e-100 * noise_std else 80):
        ratio, budget = mpmath.mpf(sensitivity) / mpmath.mpf(noise_std), mpmath.mpf(epsilon)
        near, far = budget / ratio - ratio / 2, budget / ratio + ratio / 2
        tail = mpmath.erfc(near / mpmath.sqrt(2)) / 2
        return tail - mpmath.exp(budget) * mpmath.erfc(far / mpmath.sqrt(2)) / 2


CASES = [
    (1.0, 1.0, 0.0), (1.0, 1.0, 1.0), (1.0, 1.0, 20.0), (1.0, 1.0, 36.9), (1.772, 36.3, 0.2379), (1.0, 0.24279, 20.535),
    (2.0, 1e-3, 1.9e6), (1.0, 1e6, 1e-5), (1e-9, 1.0, 0.0), (1e-9, 1.0, 3e-8), (1e-12, 1.0, 0.0), (1.0, 0.03, 500.0),
    (1.0, 0.03, 700.0), (1e-160, 1e160, 0.0), (3.0, 7.0, 8.0), (1.0, 30.0, 1.2), (50.0, 1.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_delta_is_the_printed_formula(case):
    truth = exact(*case)
    found = gm.gaussian_mechanism(case[0], case[1], epsilon=case[2])
    if truth > 1e-300:
        assert truth <= found <= truth * (1 + 4e-12)
        assert found - found.uncertainty <= truth
    assert float(mpmath.log(truth)) == pytest.approx(gm.log_delta(*case), rel=1e-14, abs=1e-12)


@settings(max_examples=50)
@given(st.floats(-6, 3).map(lambda e: 10.0**e), st.floats(-300, -1e-9).map(lambda e: 10.0**e))
def test_epsilon_answers_delta_and_never_falls_short(noise_std, delta):
    found = gm.gaussian_mechanism(1.0, noise_std, delta=delta)
    assert exact(1.0, noise_std, found) <= delta
    below = (found - found.uncertainty) * (1 - 1e-11)
    assert below <= 0 or exact(1.0, noise_std, below) > delta


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1609, 1.0, 26.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 5e-6, 0.3, 0.999])
def test_calibrated_noise_is_enough_and_hardly_more(epsilon, delta):
    noise_std = gm.analytic_noise_std(3.0, epsilon, delta)
    assert exact(3.0, noise_std, epsilon) <= delta
    assert exact(3.0, noise_std * (1 - 1e-10), epsilon) > delta


def test_the_classical_formula_is_loose_below_one_and_wrong_far_above():
    """The two Gaussian baselines of FLAME's experiments, both at delta 5e-6."""
    small = gm.classical_noise_std(1.0, 0.237926, 5e-6)
    assert gm.gaussian_mechanism(1.0, small, delta=5e-6) == pytest.approx(0.1609, abs=5e-5)
    large = gm.classical_noise_std(1.0, 20.5352544, 5e-6)
    assert large == pytest.approx(0.24279, abs=5e-6)
    assert gm.gaussian_mechanism(1.0, large, epsilon=20.5352544) == pytest.approx(9.47e-4, rel=1e-3)
    assert gm.gaussian_mechanism(1.0, large, delta=5e-6) == pytest.approx(26.0, abs=0.05)
    budgets = np.linspace(0.01, 1, 25)
    assert all(gm.gaussian_mechanism(1.0, gm.classical_noise_std(1.0, e, 1e-5), epsilon=e) < 1e-5 for e in budgets)
