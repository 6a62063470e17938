"""Tables show bounds on their safe side: the marks, and every record that has rows of bounds."""

import csv
import io
import math

import numpy as np
import pytest

from flamebook.figures.present import pretty, table
from flamebook.records import to_csv
from flamebook.statements import AtLeast, AtMost


def test_what_is_shown_never_lies_on_the_wrong_side() -> None:
    rng = np.random.default_rng(0)
    for value in (10.0 ** rng.uniform(-300, 300, 2000)).tolist():
        upper, lower = float(pretty(AtMost(value))), float(pretty(AtLeast(value)))
        assert lower <= value <= upper <= value * (1 + 1e-3)
        assert upper <= lower * (1 + 1.0001e-3)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.125, math.inf])
def test_short_numbers_are_shown_as_they_are(value: float) -> None:
    assert pretty(AtMost(value)) == pretty(AtLeast(value)) == pretty(value) or value == 1.0
    assert float(pretty(AtMost(value))) == float(pretty(AtLeast(value))) == value


def test_a_file_keeps_every_digit() -> None:
    text = to_csv(["upper", "lower"], [(AtMost(0.123456789), AtLeast(0.987654321))])
    assert next(csv.DictReader(io.StringIO(text))) == {"upper": "0.123456789", "lower": "0.987654321"}
    assert str(table(["upper"], [(AtMost(0.123412),)])).endswith("0.1235")


@pytest.mark.parametrize(
    ("heading", "shown"),
    [
        ("at least", "0.1234"),
        ("lower, overflow", "0.1234"),
        ("certainly given away", "0.1234"),
        ("certainly at most", "0.1235"),
        ("certified epsilon", "0.1235"),
        ("claimed", "0.1234"),
    ],
)
def test_a_heading_says_on_which_side_its_numbers_are(heading: str, shown: str) -> None:
    assert str(table(["users", heading], [(1234, 0.12341 if shown == "0.1235" else 0.12344)])).split()[-1] == shown
