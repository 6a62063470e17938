"""Laws of the amplification variable: their values, their transforms and what they promise about them."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf

from flamelib.accounting.shuffling.laplace import LaplaceLaw
from flamelib.accounting.shuffling.laws import AtomicLaw

LAPLACE = [
    (1.0, 0.3, 0.5),
    (4.0, 1.0, 0.5),
    (1.0, 0.3, 0.0),
    (1.0, 0.3, 1.0),
    (2.0, 1.9, 0.3),
    (0.01, 0.002, 0.5),
    (8.0, 0.5, 0.8),
]


def laplace(epsilon0, epsilon, center):
    return LaplaceLaw(epsilon0, epsilon, center, math.exp(-epsilon0 / 2) if center == 0.5 else 1.0)


class TestAtoms:
    def test_turn_is_exact_to_its_own_size_next_to_the_poles_of_the_tangent(self):
        """Sixty digits at the very doubles: both parts within eight units of rounding of themselves."""
        law = AtomicLaw(np.array([2.0]), np.array([1.0]), 1.0, 0.0)
        poles = math.pi / 2 * np.array([1, 3, 11, 1001, 10**6 + 1])
        y = np.concatenate(
            [pole * (1 + np.array([0, 1, -3, 1e3, -1e6]) * 2.0**-52) for pole in poles] + [[1e-100, 1e12]]
        )
        for at, found in zip(y, law.increment(0.0, y), strict=True):
            sine, cosine = mp.sin(mpf(at)), mp.cos(mpf(at))
            for got, want in ((found.real, -2 * sine**2), (found.imag, 2 * sine * cosine)):
                assert abs(got - want) <= 8 * 2.0**-53 * abs(want)


class TestLaplace:
    @pytest.mark.parametrize("case", LAPLACE)
    @pytest.mark.parametrize("share", [0.0, 0.1, 2.0])
    def test_decay_bounds_the_transform(self, case, share):
        law = laplace(*case)
        t = share * law.reach
        atoms, smooth = law.decay(t)
        y = law.reach * np.logspace(-2, 5, 400)
        assert np.all(np.abs(1 + law.transform(t + 1j * y)) <= (atoms + smooth / y) * (1 + 1e-9))
