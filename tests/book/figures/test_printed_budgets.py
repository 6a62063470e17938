"""Printed budgets beside what is certified: the record of the ledger, its picture, and the picture of README."""

from pathlib import Path

import pandas as pd
import pytest

from flamebook.claims.ledger import load
from flamebook.figures.together.printed_budgets import ROWS, draw, of_the_ledger, verdict
from flamebook.page import figure
from flamebook.places import ROOT

FRONT = ROOT / "book" / "assets" / "readme"


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    return of_the_ledger()


def test_bounds_lie_in_order_and_come_from_rows_that_bound(found: pd.DataFrame) -> None:
    relations = {claim.id: claim.relation for claim in load()}
    assert ((found["at least"] > 0) & (found["at least"] <= found["at most"]) & (found["printed"] > 0)).all()
    exact = {upper for _, _, upper, lower in ROWS if upper == lower}
    assert {relations[upper] for _, _, upper, _ in ROWS if upper not in exact} == {"at-most"}
    assert all(relations[name] == "equal" for name in exact)


@pytest.mark.parametrize(
    ("printed", "words"),
    [(1.0, "too small, at least 2.0 times"), (2.5, "open: neither"), (6.6, "safe, at least 2.1 times")],
)
def test_a_verdict_follows_from_the_interval(printed: float, words: str) -> None:
    assert verdict(printed, 2.0, 3.1).startswith(words)


def test_no_row_stands_in_the_picture_that_the_ledger_calls_not_checkable() -> None:
    verdicts = {claim.id: claim.verdict for claim in load()}
    assert {verdicts[name] for row in ROWS for name in row[1:]} <= {"reproduced", "deviates", "refuted"}
    assert {row[1].split(":")[0] for row in ROWS} == {"flame"}


def test_the_front_pages_show_the_record(found: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remade by ``make run NOTEBOOK=audits``; the picture is committed, as README is read before anything is built."""
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    figure(draw(found), name="printed-budgets", alt="Printed budgets.", data=found)
    for name in ("printed-budgets.svg", "printed-budgets-dark.svg"):
        assert (FRONT / name).read_bytes() == (tmp_path / "figures" / name).read_bytes()
