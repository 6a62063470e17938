"""The bench: recorded answers are the library's, rounded up; the command answers what the page shows."""

import json
import tomllib
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest

from flamebook.places import ROOT
from flamebook.site.measured import record_bench
from flamebook.site.measured.bench import CITED, NEEDS, STATEMENTS, TITLES, script
from flamebook.site.measured.bench_grid import EPSILON, EPSILON0, FARTHEST, REACH, RECORDED, TABLES
from flamebook.site.measured.record_bench import DRAWN
from flamelib import cli
from flamelib.answers import dumps, load_all, plain
from flamelib.core.vocabulary import DomainError
from flamelib.uses.deployments import compared, mechanisms, rows, rows_within
from flamelib.uses.lowest import bracketed
from flamelib.uses.reports import LOCAL
from flamelib.uses.requests import Request, Row
from flamelib.uses.sums import CENTRAL

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


@pytest.mark.parametrize("name", ["local", "blanket", "simple", "double"])
def test_only_the_product_of_numbers_and_rounds_counts(name: str) -> None:
    """Where a table has it as an axis; both ends."""
    assert "numbers" in TABLES[name][0].axes
    requests = [Request(1000, *spread, 1e-6) for spread in ((1, 12), (12, 1), (4, 3))]
    found = [
        bracketed(one, each) for each in requests if isinstance(one := record_bench.answered(name, each, 0.5), Row)
    ]
    assert len({round(one.epsilon, 12) for one in found}) == 1
    assert len({one.lower and round(one.lower, 12) for one in found}) == 1


@pytest.mark.parametrize("items", range(2, 7))
def test_a_report_out_of_more_items_is_one_out_of_fewer_and_the_new_item_by_chance(items: int) -> None:
    """Of the victim, of users who hold any item, and of the blanket, where ``None`` tells nothing."""

    def report(held: int | None, alphabet: int) -> dict[int | None, Fraction]:
        weights: dict[int | None, Fraction] = {
            item: Fraction(item == held) * (odds - 1) + 1 for item in range(alphabet)
        }
        weights |= {} if held is not None else {None: odds - 1}
        return {sent: weight / (odds + alphabet - 1) for sent, weight in weights.items()}

    odds, chance = Fraction(7, 3), 1 / (Fraction(7, 3) + items)
    for held in (*range(items), None):
        told = {sent: share * (1 - chance) for sent, share in report(held, items).items()} | {items: chance}
        assert told == report(held, items + 1)


def test_a_request_of_a_table_is_one_that_it_answers() -> None:
    for tables in TABLES.values():
        for table in tables:
            for points in ((axis[0] for axis in table.axes.values()), (axis[-1] for axis in table.axes.values())):
                at = dict(zip(table.axes, points, strict=True))
                request = table.request(at)
                assert request.task == table.tasks[0]
                assert table.dimensions[0] <= request.dimension <= table.dimensions[1]
                assert at.get("numbers", request.dimension * request.rounds) == request.dimension * request.rounds
                assert at.get("rounds", request.rounds) == request.rounds


def test_tables_reach_as_far_as_the_page_says() -> None:
    """On the harder side, so that every request of the reach is answered, and one table of a kind does so."""
    for name, tables in TABLES.items():
        for table in tables:
            for axis, points in table.axes.items():
                numbers = REACH["dimension"][1] * REACH["rounds"][1]
                most = {"numbers": numbers, "rounds": REACH["rounds"][1], "dimension": REACH["dimension"][1]}
                least = {"n_users": REACH["n_users"][0], "delta": REACH["delta"][0], "items": 2}
                assert max(points) >= most.get(axis, 0), (name, axis)
                assert min(points) <= least.get(axis, 10**6), (name, axis)
            assert not table.promises or list(table.axes)[-1] in ("numbers", "rounds")
        for task, dimension, column in product(("mean", "histogram"), (2, 10**6), ("epsilon", "lower", "error")):
            alike = [one for one in tables if column in one.columns and task in one.tasks]
            fitting = [one for one in alike if one.dimensions[0] <= dimension <= one.dimensions[1]]
            wanted = (name in LOCAL or column == "error") and (name, task) != ("topk", "mean")
            assert len(fitting) == wanted or (column == "lower" and not fitting)


def test_the_grid_is_complete_and_says_how_it_came_about(grid: dict[str, Any]) -> None:
    assert {name: tuple(values) for name, values in grid["budgets"].items()} == {
        "epsilon0": EPSILON0, "epsilon": EPSILON
    }  # fmt: skip
    assert [one["name"] for one in grid["mechanisms"]] == list(mechanisms()) == list(TABLES)
    for one in grid["mechanisms"]:
        assert (one["asked"] == "epsilon0") == (one["name"] in LOCAL)
        assert (one["hue"], one["marker"]) == DRAWN[one["name"]]
        assert set(one["refuses"]) == ({"mean"} if one["name"] == "topk" else set())
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
    # A hundred kilobytes when a server compresses it; no other page loads it.
    assert RECORDED.stat().st_size < 600_000


def test_nothing_in_the_grid_is_lost_by_leaving_out_axes() -> None:
    sizes = {"rounds": 2, "delta": 2, "budget": 3}
    values = [(r, b) if b else None for r, _, b in product(range(2), range(2), range(3))]
    column = record_bench.compact(values, sizes)
    assert column["along"] == ["rounds", "budget"]
    for (r, d, b), value in zip(product(range(2), range(2), range(3)), values, strict=True):
        assert _look(column, {"rounds": r, "delta": d, "budget": b}, sizes) == value


def test_the_grid_is_written_as_the_page_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ends end where nothing is promised any more; each end holds at the other side, too."""
    promise, cost = TABLES["simple"][0], TABLES["simple"][1]
    small = replace(promise, axes={"n_users": (100,), "delta": (1e-6,), "numbers": (1, 10, 10**6, 10**7)})
    monkeypatch.setattr(record_bench, "TABLES", {"simple": (small, replace(cost, axes={"dimension": (1, 16)}))})
    monkeypatch.setattr(record_bench, "mechanisms", lambda: ("simple",))
    monkeypatch.setattr(record_bench, "EPSILON0", (0.5, 2.0))
    asked = []

    def answered(name: str, request: Request, budget: float) -> Row:
        asked.append(request.rounds)
        ends = {1: (0.4, 0.05), 10: (0.3, 0.01)}.get(request.rounds, (100.0, 20.0))
        found = Row(name, "paper", budget * ends[0], None, 1, 1, 8.0 * request.dimension, "a shuffler")
        return replace(found, error=1 / request.n_users**0.5, lower=ends[1])

    monkeypatch.setattr(record_bench, "answered", answered)
    monkeypatch.setattr(record_bench, "bracketed", lambda found, request: found)
    made = {name: part.make() for name, part in record_bench.parts().items()}
    assert asked.count(10**6) == 2
    assert 10**7 not in asked
    (one,) = record_bench.told(made)["mechanisms"]
    ends, costs = (table["columns"] for table in one["tables"])
    assert ends["epsilon"] == {"along": ["numbers", "budget"], "values": [0.15, 0.6, 0.15, 0.6] + [None] * 4}
    assert ends["lower"] == {"along": ["numbers"], "values": [0.05, 0.05, None, None]}
    assert costs["error"] == {"along": [], "values": [1], "powers": {"n_users": -0.5}}
    assert costs["bits"] == {"along": [], "values": [8], "powers": {"dimension": 1.0}}
    assert one["tables"][0]["below"] == ("mean",)


def test_the_command_prints_the_rows_one_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("flamelib.uses.deployments.mechanisms", lambda: ("local", "blanket", "topk"))
    words = ["task=histogram", "n_users=1e3", "dimension=4", "rounds=2", "delta=1e-5", "epsilon0=1"]
    assert cli.compare(words) == 0
    request = Request(1000, 4, 2, 1e-5, "histogram")
    expected = [bracketed(one, request) for one in rows(request, epsilon0=1.0) if isinstance(one, Row)]
    assert capsys.readouterr().out.splitlines() == [dumps(plain(one)) for one in expected]
    with pytest.raises(DomainError, match="n_users"):
        cli.compare([])


def test_a_list_of_local_budgets_goes_with_a_central_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("local", "blanket")
    monkeypatch.setattr("flamelib.uses.deployments.mechanisms", lambda: names)
    found = tuple(compared({"n_users": "200", "delta": "1e-5", "epsilon": "1", "epsilon0": "0.5,1"}))
    request = Request(200, delta=1e-5)
    within = [one for one in rows_within(request, 1, [0.5, 1], names) if isinstance(one, Row)]
    assert list(found) == [bracketed(one, request) for one in within]
    assert len(found) == len(names)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"epsilon": 1}, "n_users"), ({"n_users": 10}, "epsilon"), ({"n_users": 10, "epsilon0": "1,2"}, "epsilon0"),
        ({"n_users": 10, "epsilon": 1, "users": 3}, "users"), ({"n_users": 10, "epsilon": 1, "task": "sum"}, "task"),
        ({"n_users": 10, "epsilon": -1}, "epsilon"), ({"n_users": 10, "epsilon": 1, "epsilon0": "x"}, "epsilon0"),
    ],
)  # fmt: skip
def test_a_wrong_question_is_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(DomainError, match=named):
        compared(given)


def test_the_page_gets_the_grid_as_a_script(tmp_path: Path) -> None:
    path = tmp_path / "grid.json"
    path.write_text('{"mechanisms": [{"name": "cloak, Pólya noise"}]}', encoding="utf-8")
    text = script(path)
    assert text.startswith("flamelibDefend.receive(")
    found = json.loads(text.removeprefix("flamelibDefend.receive(").removesuffix(");\n"))
    (one,) = found["mechanisms"]
    assert (one["title"], one["needs"], one["rests_on"]) == ("Sum in shares, Pólya noise", "others", "proven")
    assert one["statement"] == "cloak:best-2"
    assert set(found["edition"]) == {"version", "date"}


def test_whom_a_mechanism_relies_on_and_on_what_is_said_of_each() -> None:
    assert set(NEEDS) == set(TITLES) == set(mechanisms())
    assert len(set(TITLES.values())) == len(TITLES)
    for one in rows(Request(1000, 16), epsilon=3.0, names=[*CENTRAL, "local"]):
        if isinstance(one, Row):
            assert (one.rests_on == "cited") == (one.mechanism in CITED)
            assert (NEEDS[one.mechanism] == "nobody") == (one.trusted == "nobody")
            assert (NEEDS[one.mechanism] == "server") == one.trusted.startswith("the server")


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
    assert set(STATEMENTS) == set(TITLES) == {one["name"] for one in table["mechanisms"]}
    known = load_all()
    for one in table["mechanisms"]:
        assert one["statement"] in known, one["name"]
        assert one["theorem"]
