"""Tables show bounds on their safe side: the marks, and every record that has rows of bounds."""

import csv
import io
import math

import numpy as np
import pytest

from flamebook.figures.blanket import amplification
from flamebook.figures.checkin import accounting as checkin
from flamebook.figures.flame import accounting as flame
from flamebook.figures.flame.audit import Claim, Claims
from flamebook.figures.participation import accounting as participation
from flamebook.figures.present import pretty, table
from flamebook.figures.together.printed_budgets import Budget, Budgets
from flamebook.records import Curves, to_csv
from flamebook.statements import AtLeast, AtMost, sided
from flamelib.core.profiles import LaplaceProfile


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


def test_what_is_nothing_is_shown_as_nothing() -> None:
    assert pretty(AtMost(math.nan)) == pretty(AtLeast(math.nan)) == "nan"


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


def test_the_side_is_that_of_the_name() -> None:
    assert isinstance(sided("lower-full", 0.5), AtLeast)
    assert isinstance(sided("blanket", 0.5), AtMost)
    assert type(sided("blanket", 0.5, ["blanket"])) is float


def _marks(rows: list[tuple[object, ...]]) -> list[str]:
    return [type(cell).__name__ for row in rows for cell in row if isinstance(cell, float)]


def test_rows_of_bounds_say_their_sides() -> None:
    budgets = Budgets((Budget("a", 0.24, 1.198, 1.444), Budget("b", 0.5, 0.0, 0.7)), {})
    assert _marks(budgets.rows()) == ["float", "AtLeast", "AtMost"] * 2
    curves = {"outer": np.array([0.1]), "lower": np.array([0.05])}
    assert _marks(participation.rows(Curves("rounds", "total_epsilon", np.array([1.0]), curves))) == [
        "AtMost",
        "AtLeast",
    ]
    curves = {"thm-2": np.array([0.1]), "thm-3": np.array([0.05]), "lower": np.array([0.01])}
    assert _marks(checkin.rows(Curves("rounds", "total_epsilon", np.array([1.0]), curves))) == [
        "AtMost", "float", "AtLeast",
    ]  # fmt: skip
    found = {"withdrawn": 0.2, "certified": 1.4, "lower": 1.1}
    now = flame.ThenAndNow({"simple": found}, {})
    assert _marks(now.rows()) == ["float", "AtMost", "AtLeast"]
    assert _marks(now.verdicts()) == ["float", "AtLeast", "AtMost"]
    point = amplification.compute_epsilons(LaplaceProfile(0.5), [333], 1e-6, ("withdrawn", "blanket", "lower"))
    assert _marks(amplification.named(point)) == ["float", "AtMost", "AtLeast"]
    claims = Claims({"a": Claim("a", 0.5, 0.4, 0.6)}, {})
    assert _marks(claims.rows()) == ["float", "AtLeast", "AtMost"]
