"""The bench: recorded answers are the library's, rounded up; the command answers what the page shows."""

import json
import tomllib
from itertools import product
from math import prod
from typing import Any

import pytest

from flamebook.places import ROOT
from flamebook.site.measured import record_bench
from flamebook.site.measured.bench import SHOWN, script
from flamebook.site.measured.bench_grid import EPSILON, EPSILON0, FARTHEST, RECORDED, TABLES
from flamelib.answers import load_all
from flamelib.uses.deployments import mechanisms, rows
from flamelib.uses.local_mechanisms import LOCAL
from flamelib.uses.lower_bounds import bracketed
from flamelib.uses.workload import Request, Row

PAIRS = [(name, number) for name, tables in TABLES.items() for number in range(len(tables))]
OLDER = 0.01  # by which a lower end may have been smaller when it was recorded: it holds as well
# A recorded upper end is rounded up to five digits, and may be an older one that was a little larger.
LOOSER = 5e-4
EASIER = ("n_users", "items", "delta")  # the more, the easier


@pytest.fixture(scope="module")
def grid() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def _recorded(grid: dict[str, Any], name: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in grid["mechanisms"] if one["name"] == name)["tables"][number]
    return found


def _budgets(name: str) -> tuple[float, ...]:
    return EPSILON0 if name in LOCAL else EPSILON


def _sizes(name: str, table: dict[str, Any]) -> dict[str, int]:
    return {axis: len(points) for axis, points in table["axes"].items()} | {"budget": len(_budgets(name))}


def _look(column: dict[str, Any], at: dict[str, int], sizes: dict[str, int]) -> Any:
    index = 0
    for axis in column["along"]:
        index = index * sizes[axis] + at[axis]
    return column["values"][index]


def _places(sizes: dict[str, int]) -> list[dict[str, int]]:
    return [dict(zip(sizes, at, strict=True)) for at in product(*(range(size) for size in sizes.values()))]


@pytest.mark.parametrize(("name", "number"), PAIRS, ids=str)
def test_recorded_answers_are_the_library_s_on_the_safe_side(grid: dict[str, Any], name: str, number: int) -> None:
    """At an easy request of every table, which the library answers at once."""
    table, told = TABLES[name][number], _recorded(grid, name, number)
    sizes = _sizes(name, told)
    at = {axis: min(2 if axis == "budget" else 1, size - 1) for axis, size in sizes.items()}
    request = table.request({axis: told["axes"][axis][at[axis]] for axis in told["axes"]})
    found = record_bench.answered(name, request, _budgets(name)[at["budget"]])
    assert isinstance(found, Row)
    now = {column: getattr(found, column) for column in ("epsilon", "error", "bits")}
    if "absence" in table.columns:
        now |= {"absence": request.absence**0.5, "error": (found.error**2 - request.absence) ** 0.5}
    for column in table.columns.keys() - {"lower"}:
        value, unit = _look(told["columns"][column], at, sizes), record_bench.power(table, column, request)
        assert now[column] * (1 - 1e-9) <= value * unit <= now[column] * (1 + LOOSER), column
    if "lower" in table.columns:
        lower, exact = _look(told["columns"]["lower"], at, sizes), bracketed(found, request).lower
        assert lower <= found.epsilon
        assert (exact or 0.0) * (1 - OLDER) <= lower


def test_the_page_knows_the_edition_and_the_address_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("https://example.org/owner/book", ""):
        monkeypatch.setenv("FLAMELIB_REPOSITORY", address)
        edition = json.loads(script().partition("receive(")[2].removesuffix(");\n"))["edition"]
        assert edition.keys() == {"version", "date", "address"}
        assert edition["address"] == address


def test_the_grid_is_complete_and_says_how_it_came_about(grid: dict[str, Any]) -> None:
    assert {name: tuple(values) for name, values in grid["budgets"].items()} == {
        "epsilon0": EPSILON0, "epsilon": EPSILON
    }  # fmt: skip
    assert [one["name"] for one in grid["mechanisms"]] == list(mechanisms()) == list(TABLES)
    for one in grid["mechanisms"]:
        assert (one["asked"] == "epsilon0") == (one["name"] in LOCAL)
        for table, told in zip(TABLES[one["name"]], one["tables"], strict=True):
            assert {axis: tuple(points) for axis, points in told["axes"].items()} == dict(table.axes)
            assert (tuple(told["tasks"]), tuple(told["dimensions"])) == (table.tasks, table.dimensions)
            sizes = _sizes(one["name"], told)
            for column, powers in table.columns.items():
                kept = told["columns"][column]
                assert kept.get("powers", {}) == powers
                assert len(kept["values"]) == prod(sizes[axis] for axis in kept["along"])
    assert grid["command"] == "flamelib record bench"
    assert grid["unasked"] == rows(Request(2), epsilon0=1.0, names=["trusted curator"])[0].reason


def _steps(name: str, table: dict[str, Any], column: str, axis: str) -> list[tuple[Any, Any]]:
    """Neighbouring values along an axis, the easier one first, where both are there."""
    sizes = _sizes(name, table)
    found = []
    for place in _places(sizes | {axis: sizes[axis] - 1}):
        both = [_look(table["columns"][column], one, sizes) for one in (place, place | {axis: place[axis] + 1})]
        rising = (table["axes"][axis][0] < table["axes"][axis][1]) != (axis in EASIER)
        alone = axis == "items" and table["axes"][axis][place[axis]] == 2
        if None not in both and not alone:
            found.append(tuple(both if rising else reversed(both)))
    return found


@pytest.mark.parametrize(("name", "number"), PAIRS, ids=str)
def test_epsilon_moves_over_the_whole_grid_as_the_page_takes_for_granted(
    grid: dict[str, Any], name: str, number: int
) -> None:
    """But for the accuracy of the accounts; two items stand for themselves, and crowds where no order is known."""
    table = _recorded(grid, name, number)
    sizes = _sizes(name, table)
    for axis in table["axes"]:
        if axis != "crowd" and "epsilon" in table["columns"]:
            for easier, harder in _steps(name, table, "epsilon", axis):
                assert easier <= harder * 1.03, axis
    if {"epsilon", "lower"} <= table["columns"].keys():
        for place in _places(sizes):
            upper, lower = (_look(table["columns"][column], place, sizes) for column in ("epsilon", "lower"))
            assert (upper is None) == (lower is None)
            assert upper is None or 0 <= lower <= upper <= FARTHEST


@pytest.mark.parametrize(("name", "number"), PAIRS, ids=str)
def test_errors_are_largest_at_the_ends_of_every_line(grid: dict[str, Any], name: str, number: int) -> None:
    """Nowhere do they rise and fall again by more than the page adds, so that a corner of every cell has most."""
    table = _recorded(grid, name, number)
    sizes = _sizes(name, table)
    for axis in table["axes"] if "error" in table["columns"] else ():
        for place in _places(sizes | {axis: 1}):
            line = (_look(table["columns"]["error"], place | {axis: index}, sizes) for index in range(sizes[axis]))
            values = [value for value in line if value is not None]
            for i in range(1, len(values) - 1):
                assert values[i] <= 1.03 * max(min(values[:i]), min(values[i + 1 :])), (axis, values)


def test_the_paragraph_names_a_statement_and_an_edition() -> None:
    """What a reviewer is told to look up exists: the statement in the theorem index, the version in the project."""
    table = json.loads(script().removeprefix("flamelibDefend.receive(").removesuffix(");\n"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert table["edition"]["version"] == project["version"]
    assert set(SHOWN) == {one["name"] for one in table["mechanisms"]}
    known = load_all()
    for one in table["mechanisms"]:
        assert one["statement"] in known, one["name"]
        assert one["theorem"]
