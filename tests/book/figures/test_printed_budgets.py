"""Printed budgets beside what is certified: the record of the ledger, its picture, and the picture of README."""

import csv
import io
from pathlib import Path

import pytest

from flamebook.claims.ledger import load
from flamebook.figures import present
from flamebook.figures.together.printed_budgets import ROWS, Budget, Budgets, compute_budgets, draw_budgets
from flamebook.places import ROOT

FRONT = ROOT / "book" / "assets" / "readme"


@pytest.fixture(scope="module")
def found() -> Budgets:
    return compute_budgets()


def test_bounds_lie_in_order_and_come_from_rows_that_bound(found: Budgets) -> None:
    relations = {claim.id: claim.relation for claim in load()}
    assert all(0 < one.least <= one.most and one.printed > 0 for one in found.budgets)
    exact = {upper for _, _, upper, lower in ROWS if upper == lower}
    assert {relations[upper] for _, _, upper, _ in ROWS if upper not in exact} == {"at-most"}
    assert all(relations[name] == "equal" for name in exact)


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [(1.0, "too small, at least 2.0 times"), (2.5, "open: neither"), (6.6, "safe, at least 2.1 times")],
)
def test_a_verdict_follows_from_the_interval(printed: float, verdict: str) -> None:
    assert Budget("any", printed, 2.0, 3.1).verdict.startswith(verdict)


def test_two_budgets_are_refuted_and_one_is_open(found: Budgets) -> None:
    words = [one.verdict.split(",")[0] for one in found.budgets]
    assert words == ["too small"] * 2 + ["open: neither proven nor refuted"] + ["safe"] * 5
    table = list(csv.reader(io.StringIO(found.to_csv())))
    assert found.words()["budgets_alt"].endswith("2 left of their bars, 1 open, 5 right of them.")
    assert len(table) == 9


def test_no_row_stands_in_the_picture_that_the_ledger_calls_not_checkable() -> None:
    verdicts = {claim.id: claim.verdict for claim in load()}
    assert {verdicts[name] for row in ROWS for name in row[1:]} <= {"reproduced", "deviates", "refuted"}
    assert {row[1].split(":")[0] for row in ROWS} == {"flame"}


def test_the_front_pages_show_the_record(found: Budgets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remade by ``make run NOTEBOOK=audits``; the picture is committed, as README is read before anything is built."""
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    present.show(found, draw_budgets, name="printed-budgets", alt="Printed budgets.", size=(5.4, 6.0))
    for name in ("printed-budgets.svg", "printed-budgets-dark.svg"):
        assert (FRONT / name).read_bytes() == (tmp_path / "figures" / name).read_bytes()
