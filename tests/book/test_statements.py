"""Statements about a run's numbers: three verdicts, the numbers that show them, and words made from results."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamebook.statements import FAILS, HOLDS, SILENT, compared
from flamelib.core.vocabulary import DomainError

NAN = math.nan


@pytest.mark.parametrize(
    ("parts", "verdict", "numbers"),
    [
        ((1, "<", 2), HOLDS, ""),
        ((2, "<", 2), FAILS, "2 against 2"),
        ((2, "<=", 2), HOLDS, ""),
        ((0.84, ">=", 1), FAILS, "0.84 against 1"),
        ((1, "==", 1.0), HOLDS, ""),
        ((NAN, "<", 1), SILENT, "there is no number to compare"),
        (([1, NAN, 3], "<", [2, 2, 4]), HOLDS, ""),
        (([1, NAN, 9, 5], "<", 4), FAILS, "9 against 4"),
        ((0, "<=", 1, "<", 1), FAILS, "1 against 1"),
        ((0, "<=", NAN, "<", 1), SILENT, "there is no number to compare"),
        ((3, "<", 2, "<", NAN), FAILS, "3 against 2"),
        ((math.inf, "<", math.inf), FAILS, "inf against inf"),
        ((1.0, "<", math.inf), HOLDS, ""),
    ],
)
def test_numbers_in_a_relation(parts, verdict, numbers):
    finding = compared(*parts)
    assert (finding.verdict, finding.numbers) == (verdict, numbers)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_failing_relation_shows_numbers_that_differ(left, right):
    finding = compared(left, "<", right)
    assert finding.holds is (left < right)
    if right < left:
        one, other = finding.numbers.split(" against ")
        assert one != other
        assert float(one) > float(other)


@pytest.mark.parametrize("parts", [(), (1,), (1, "<"), (1, "=<", 2), (1, "<", 2, 3)])
def test_what_is_no_relation_is_refused(parts):
    with pytest.raises(DomainError, match="parts"):
        compared(*parts)
