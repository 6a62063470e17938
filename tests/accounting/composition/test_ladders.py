"""Curves that many answers share: rounding of their values decides nothing."""

import math

import numpy as np
import pytest

from flamelib.accounting.composition.privacy_profile import PrivacyProfile, composed_epsilon, tabulated
from flamelib.core.logspace import UNIT

MOST = 4.0


def profile(epsilon: float, ratio: float) -> float:
    """Of Gaussian noise, with a faint end where privacy is pure."""
    first, second = (math.erfc((epsilon / ratio + side * ratio / 2) / math.sqrt(2)) / 2 for side in (-1, 1))
    return max(first - math.exp(epsilon) * second, 1e-13 * (1 - epsilon / MOST))


def rounded(seed: int, ratio: float = 0.05) -> PrivacyProfile:
    """The same curve on another machine: the last digit of each value is another."""

    def value(epsilon: float) -> float:
        draw = np.random.default_rng([seed, *np.array([epsilon]).view(np.uint32)])
        return profile(epsilon, ratio) * (1 + 2 * UNIT * float(draw.uniform(-1, 1)))

    return PrivacyProfile(value, at_most=MOST, error=1e-4)


@pytest.mark.parametrize(("ratio", "times", "delta"), [(0.05, 7, 1e-9), (0.02, 3, 1e-9), (0.1, 3, 1e-6)])
def test_the_last_digit_of_a_value_moves_the_last_digits_of_an_answer(ratio: float, times: int, delta: float) -> None:
    curves = [tabulated(rounded(seed, ratio)) for seed in range(4)]
    answers = [float(composed_epsilon([(curve, times)], delta, 0.02)) for curve in curves]
    assert max(answers) <= (1 + 1e-9) * min(answers)
