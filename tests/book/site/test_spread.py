"""How far headlines move: the record is complete, its statistics follow from its values, and it is made bit by bit."""

import csv
import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from flamebook.records import to_csv
from flamebook.runs import execute as runs
from flamebook.runs import notebook
from flamebook.runs.execute import Run
from flamebook.runs.record import record
from flamebook.site.measured import record_spread, spread
from flamebook.site.measured.spread import Headline

RECORD = spread.recorded()


@pytest.mark.parametrize("name", sorted(record_spread.with_seed()))
def test_every_headline_of_a_notebook_with_a_seed_is_recorded(name: str) -> None:
    run = record_spread.with_seed()[name]
    recording = record_spread.headlines(notebook.code(notebook.read(run.template)))
    known = {one.name: one for one in RECORD if one.notebook == name}
    missing = [one.pattern for one in recording if not any(re.fullmatch(one.pattern, key) for key in known)]
    assert (bool(recording), missing) == (True, [])
    assert {key: one.drawn for key, one in known.items()} == {key: record_spread.drawn(key, recording) for key in known}
    assert {one.seed for one in known.values()} == {run.parameters["seed"]}


def test_nothing_else_is_recorded_and_what_is_not_drawn_does_not_move() -> None:
    assert {one.notebook for one in RECORD} == set(record_spread.with_seed())
    assert [one.name for one in RECORD if one.moves and not one.drawn] == []
    assert sum(one.moves for one in RECORD) > 50


def test_statistics_follow_from_the_values() -> None:
    with spread.TABLE.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["mean"]]
    for row in rows:
        values = [float(row[column]) for column in spread.COLUMNS]
        mean, std = statistics.fmean(values), statistics.stdev(values)
        expected = [mean, std, max(values) - min(values), std / abs(mean) if mean else 0.0]
        assert [float(row[name] or 0) for name in ("mean", "std", "range", "relative")] == pytest.approx(expected)


def test_the_page_tells_what_moves_and_what_does_not() -> None:
    values = {"share": (0.5, 0.4, 0.6, 0.5, 0.5), "fits": ("2 of 5", "3 of 5", "2 of 5", "2 of 5", "2 of 5")}
    moving = [Headline("page", name, True, 1, found) for name, found in values.items()]
    still = [Headline("page", name, drawn, 1, 5 * (7,)) for name, drawn in (("always", True), ("never", False))]
    page = spread.page([*moving, *still])
    assert "| share | 0.500 | 0.500\u00a0±\u00a00.071 (14%) | 0.400 | 0.600 |" in page
    assert "| fits | 2 of 5 | 2 of 5; 3 of 5 |" in page
    places = [page.index(text) for text in ("| share", "## What comes", "| always | 7", "## What no", "| never")]
    assert places == sorted(places)


def test_a_notebook_is_recorded_by_itself(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "seed: int = 3  # of the run\nn = 2\npresent.record_result('n', n)\npresent.record_result('x', f(seed))"
    template = tmp_path / "notebooks" / "a.ipynb"
    template.parent.mkdir()
    made: list[int] = []

    def execute(_: Path, place: Path, parameters: dict[str, Any]) -> None:
        place.mkdir(parents=True)
        made.append(parameters["seed"])
        (place / "results.json").write_text(json.dumps({"x": 1 / parameters["seed"], "n": 2.0}))

    monkeypatch.setattr(runs, "execute", execute)
    plan = {name: Run(template.with_stem(name), {"seed": 3}) for name in ("a", "b")}
    for run in plan.values():
        cell = {"cell_type": "code", "metadata": {}, "source": code}
        run.template.write_text(json.dumps({"cells": [cell]}))
    monkeypatch.setattr(record_spread, "with_seed", lambda: plan)
    other = Headline("b", "y", True, 3, (1, 2.0, 3, 4, 5))
    gone = Headline("gone", "y", True, 3, (1, 2, 3, 4, 5))
    table = folder / "spread.csv"
    table.write_text(to_csv(spread.HEADER, [list(map(str, one.row())) for one in (other, gone)]))
    assert [record(record_spread.RECORDING, ["a"]) for _ in range(2)] == [True, True]
    assert made == [3, 1003, 2003, 3003, 4003]
    assert spread.recorded(table) == [
        Headline("a", "n", False, 3, 5 * (2.0,)), Headline("a", "x", True, 3, tuple(1 / seed for seed in made)), other
    ]  # fmt: skip
    assert ",2.0," in table.read_text(), "a floating-point number stays one"


def test_what_is_written_out_is_told_from_what_is_drawn() -> None:
    code = """
first = f(seed)
second = g(2)
for name, value in {"a": first.x, "b": second}.items():
    present.record_result(name, value)
for size, one in (("s", first), ("l", second)):
    for key in one.curves:
        present.record_result(f"fresh_{size}_{key}", one.curves[key])
first = 3
present.record_result("c", first)
"""
    recording = record_spread.headlines(code)
    assert [(one.pattern, one.drawn) for one in recording] == [
        ("a", True), ("b", False), ("fresh_.*_.*", True), ("c", False)
    ]  # fmt: skip
    assert record_spread.drawn("fresh_s_a", recording)
