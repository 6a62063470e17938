"""Two editions side by side: what moved is told, with the reason; what did not move is not."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from flamebook.runs import editions
from flamebook.runs.execute import Receipt
from flamelib import cli
from flamelib.core.vocabulary import DomainError

RECEIPT = Receipt(
    notebook="page", parameters={"epsilon": 1.0, "seed": 1}, seed=1, seconds=3.0, peak_memory_mb=100.0,
    versions={"numpy": "2.0"}, inputs={"flamelib/a.py": "11", "flamelib/b.py": "22"}, outputs={},
)  # fmt: skip


def edition(
    folder: Path, page: str = "page", results: dict[str, Any] | None = None, table: str = "", **change: Any
) -> Path:
    """A folder of runs with one run in it."""
    place = folder / page
    (place / "figures").mkdir(parents=True)
    receipt = asdict(RECEIPT) | change
    (place / "receipt.json").write_text(json.dumps(receipt), encoding="utf-8")
    (place / "results.json").write_text(json.dumps(results or {}), encoding="utf-8")
    if table:
        (place / "figures" / "curve.csv").write_text(table, encoding="utf-8")
    return folder


def compared(old: Path, new: Path) -> list[editions.Difference]:
    return editions.compare(editions.read(old), editions.read(new))


def test_a_number_that_moved_and_why(tmp_path: Path) -> None:
    old = edition(tmp_path / "old", results={"x": 2.0, "word": "a"})
    inputs = {"flamelib/a.py": "other", "flamelib/c.py": "33"}
    change: dict[str, Any] = {"parameters": {"epsilon": 1.0, "seed": 2}, "versions": {"numpy": "2.1"}, "inputs": inputs}
    new = edition(tmp_path / "new", results={"x": 3.0, "word": "a", "y": 1}, **change)
    [found] = compared(old, new)
    assert [str(one) for one in found.moved] == ["x: 2.0 -> 3.0 (+50%)", "y: new -> 1"]
    assert found.reasons == (
        "parameter seed: 1 -> 2 (+100%)", "version numpy: 2.0 -> 2.1",
        "flamelib/a.py changed", "flamelib/b.py is gone", "flamelib/c.py is new",
    )  # fmt: skip
    assert str(found).splitlines()[0] == "page: 2 moved"


def test_a_moved_clock_or_input_is_no_news_and_a_moved_cell_of_a_table_is(tmp_path: Path) -> None:
    old = edition(tmp_path / "old", results={"x": 2.0, "far": "inf"}, table="n,y\n1,nan\n2,0.25\n")
    changed: dict[str, Any] = {"inputs": {"flamelib/a.py": "other"}, "seconds": 9.0}
    same = edition(tmp_path / "same", results={"x": 2.0, "far": "inf"}, table="n,y\n1,nan\n2,0.25\n", **changed)
    assert compared(old, same) == []
    [found] = compared(old, edition(tmp_path / "new", results={"x": 2.0, "far": "inf"}, table="n,y\n1,nan\n2,inf\n"))
    assert [str(one) for one in found.moved] == ["curve.csv row 2 y: 0.25 -> inf"]


def test_rounding_may_be_passed_over(tmp_path: Path) -> None:
    old = edition(tmp_path / "old", results={"x": 1.0, "far": "inf", "low": 0.0})
    new = edition(tmp_path / "new", results={"x": 1.0 + 1e-12, "far": "inf", "low": 1e-300})
    read = editions.read(old), editions.read(new)
    assert [one.name for one in editions.compare(*read)[0].moved] == ["x", "low"]
    assert [one.name for one in editions.compare(*read, tolerance=1e-9)[0].moved] == ["low"]
    with pytest.raises(DomainError, match="tolerance"):
        editions.compare(*read, tolerance=-1.0)


def test_pages_that_one_edition_lacks(tmp_path: Path) -> None:
    old = edition(tmp_path / "old", results={"x": 1})
    new = edition(edition(tmp_path / "new", results={"x": 1}), page="other", results={"z": 1})
    assert [str(one) for one in compared(old, new)] == ["other: 0 moved\n  because the page is new"]
    assert [one.reasons for one in compared(new, old)] == [("the page is gone",)]


def test_a_built_book_has_its_ledger_compared(tmp_path: Path) -> None:
    for name, verdict in (("old", "reproduced"), ("new", "refuted")):
        edition(tmp_path / name / "files")
        place = tmp_path / name / "_downloads" / "12ab"
        place.mkdir(parents=True)
        claims = [{"id": "blanket:fig-1/a", "verdict": verdict, "value": None, "claim": "said"}]
        (place / "ledger.json").write_text(json.dumps({"claims": claims}), encoding="utf-8")
    [found] = compared(tmp_path / "old", tmp_path / "new")
    assert (found.page, str(found.moved[0])) == ("ledger", "blanket:fig-1/a verdict: reproduced -> refuted")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = edition(tmp_path / "old", results={"x": 1.0}), edition(tmp_path / "new", results={"x": 1.5})
    written = tmp_path / "moved.json"
    assert cli.main(["diff", str(old), str(new), "--output", str(written)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 numbers moved on 1 pages"
    assert json.loads(written.read_text(encoding="utf-8"))[0]["moved"] == [{"name": "x", "before": 1.0, "after": 1.5}]
    assert cli.main(["diff", str(old), str(old)]) == 0
    assert cli.main(["diff", str(old), str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
