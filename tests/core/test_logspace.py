"""Logarithms at their bad ends, against high precision."""

import math

import mpmath as mp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flamelib.core.logspace import SMALLEST, exp_or_inf, log1mexp, log_expm1, logaddexp, probability

positive = st.floats(min_value=5e-324, max_value=1e6)


@given(positive)
@example(0.6931)
@example(5.0)
@example(36.0)
@example(60.0)
@example(1e-17)
def test_difference_from_one(gap):
    with mp.workdps(800 if gap < 1e-300 else 400):
        expected = mp.log(-mp.expm1(-mp.mpf(gap))) if gap < 700 else -mp.exp(-mp.mpf(gap))
        assert log1mexp(gap) == pytest.approx(float(expected), rel=4e-16, abs=5e-324)


@given(positive)
def test_growth(exponent):
    with mp.workdps(400):
        expected = mp.mpf(exponent) + mp.log(-mp.expm1(-mp.mpf(exponent)))
    assert log_expm1(exponent) == pytest.approx(float(expected), rel=4e-16, abs=4e-16)


@given(st.floats(-1e300, 1e300), st.floats(-800, 800))
def test_sum(left, gap):
    expected = max(gap, 0.0) + math.log1p(math.exp(-abs(gap)))
    assert logaddexp(left, left + gap) == pytest.approx(left + expected, rel=1e-15, abs=1e-12)
    assert logaddexp(left, left + gap) == logaddexp(left + gap, left)


def test_zero_and_infinity():
    assert log1mexp(0.0) == log_expm1(0.0) == -math.inf
    assert log1mexp(math.inf) == 0
    assert logaddexp(-math.inf, -3.0) == -3.0
    assert logaddexp(-math.inf, -math.inf) == -math.inf
    assert exp_or_inf(1e4) == math.inf
    assert exp_or_inf(1.0) == math.e


@pytest.mark.parametrize(
    ("log_value", "expected"),
    [(-math.inf, 0.0), (-1e300, SMALLEST), (-750.0, SMALLEST), (-700.0, math.exp(-700.0)), (0.0, 1.0), (9.0, 1.0)],
)
def test_a_positive_bound_stays_positive(log_value, expected):
    assert probability(log_value) == expected
