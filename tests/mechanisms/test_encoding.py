"""Clipping and randomised rounding: unbiased, on the right alphabet, and nothing else let in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.encoding import round_randomly

UNIT = st.floats(0, 1)


@given(arrays(np.float64, array_shapes(min_dims=0, max_dims=3, min_side=0), elements=UNIT), st.integers(1, 1000))
def test_rounding_moves_by_less_than_one_level(values, n_levels):
    levels = round_randomly(values, n_levels, np.random.default_rng(0))
    assert levels.shape == values.shape
    assert levels.dtype == np.int64
    assert (np.abs(levels - n_levels * values) < 1).all()
    assert ((levels >= 0) & (levels <= n_levels)).all()


@pytest.mark.parametrize("value", [0.0001, 0.31, 0.5, 0.93])
def test_rounding_is_unbiased(value):
    draws = round_randomly(np.full(200_000, value), 3, np.random.default_rng(2))
    fraction = 3 * value - int(3 * value)
    error = np.sqrt(fraction * (1 - fraction) / draws.size)
    assert abs(draws.mean() - 3 * value) < 5 * error
    assert abs(draws.mean() - 3 * value - 0.01) > 5 * error  # enough draws to see a small bias


@pytest.mark.parametrize("bad", [1.0000001, -1e-300, np.nan, np.inf, "x"])
def test_rounding_refuses_values_outside_the_unit_interval(bad):
    with pytest.raises(DomainError, match=r"values must be numbers in \[0, 1\]"):
        round_randomly(bad, 4, np.random.default_rng(0))
