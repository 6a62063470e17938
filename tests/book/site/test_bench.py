"""The bench: recorded answers are the library's, rounded up; the command answers what the page shows."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from flamebook.figures.together.crossing import DRAWN
from flamebook.site import record_bench
from flamebook.site.bench import AXES, CITED, EPSILON, EPSILON0, NEEDS, RECORDED, script
from flamelib import cli
from flamelib.answers import dumps, plain
from flamelib.core.vocabulary import DomainError
from flamelib.uses.deployments import Refusal, compared, mechanisms, rows, rows_within
from flamelib.uses.lowest import bracketed
from flamelib.uses.reports import LOCAL
from flamelib.uses.requests import Request, Row
from flamelib.uses.sums import CENTRAL

SUMS, QUICK = tuple(CENTRAL), ("local", "blanket", "double", "topk")
# Requests with mechanisms that answer them quickly.
POINTS = [
    (("mean", 10_000, 1, 1, 1e-6), SUMS), (("mean", 100, 16, 1, 1e-6), tuple(LOCAL)),
    (("histogram", 1_000_000, 16, 1, 1e-8), QUICK), (("histogram", 100, 1, 12, 1e-8), mechanisms()),
]  # fmt: skip


@pytest.fixture(scope="module")
def grid() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


def _look(column: dict[str, Any], at: dict[str, int], sizes: dict[str, int]) -> Any:
    index = 0
    for axis in column["along"]:
        index = index * sizes[axis] + at[axis]
    return column["values"][index]


@pytest.mark.parametrize(("point", "names"), POINTS)
def test_recorded_answers_are_the_library_s_rounded_up(
    grid: dict[str, Any], point: tuple[Any, ...], names: tuple[str, ...]
) -> None:
    for mechanism in (one for one in grid["mechanisms"] if one["name"] in names):
        budgets = grid["budgets"][mechanism["asked"]]
        sizes = {axis: len(values) for axis, values in grid["axes"].items()} | {"budget": len(budgets)}
        at = {axis: AXES[axis].index(one) for axis, one in zip(AXES, point, strict=True)} | {"budget": 1}
        found = record_bench.answered(mechanism["name"], point, mechanism["asked"], budgets[1])
        told = {field: _look(mechanism[field], at, sizes) for field in (*record_bench.NUMBERS, "reason")}
        if isinstance(found, Refusal):
            assert grid["reasons"][told.pop("reason")] == found.reason
            assert set(told.values()) == {None}
            continue
        for field in record_bench.NUMBERS:
            now = getattr(found, field)
            assert told[field] == now or now * (1 - 1e-9) <= told[field] <= now * (1 + 1.1e-5), (found, field)
        assert [mechanism[word] for word in record_bench.WORDS] == [str(getattr(found, w)) for w in record_bench.WORDS]


def test_the_grid_is_complete_and_says_how_it_came_about(grid: dict[str, Any]) -> None:
    assert {axis: tuple(values) for axis, values in grid["axes"].items()} == AXES
    assert {name: tuple(values) for name, values in grid["budgets"].items()} == {
        "epsilon0": EPSILON0, "epsilon": EPSILON
    }  # fmt: skip
    assert [one["name"] for one in grid["mechanisms"]] == list(mechanisms())
    assert all((one["asked"] == "epsilon0") == (one["name"] in LOCAL) for one in grid["mechanisms"])
    assert all((one["hue"], one["marker"]) == DRAWN[one["name"]] for one in grid["mechanisms"])
    assert grid["command"] == "flamelib record bench"
    assert grid["unasked"] == rows(Request(2), epsilon0=1.0, names=["trusted curator"])[0].reason
    assert RECORDED.stat().st_size < 600_000


def test_nothing_in_the_grid_is_lost_by_leaving_out_axes() -> None:
    sizes = {"rounds": 2, "delta": 2, "budget": 3}
    values = [(r, b) if b else None for r, _, b in product(range(2), range(2), range(3))]
    column = record_bench.compact(values, sizes)
    assert column["along"] == ["rounds", "budget"]
    for (r, d, b), value in zip(product(range(2), range(2), range(3)), values, strict=True):
        assert _look(column, {"rounds": r, "delta": d, "budget": b}, sizes) == value


def test_the_grid_is_written_as_the_page_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {**AXES, "n_users": (100,), "dimension": (1, 2), "rounds": (1,), "delta": (1e-5,)}
    names = ("local", "cloak, no noise")
    monkeypatch.setattr(record_bench, "AXES", small)
    monkeypatch.setattr(record_bench, "mechanisms", lambda: names)
    budgets = [*(("epsilon0", size) for size in EPSILON0), *(("epsilon", size) for size in EPSILON)]
    table = record_bench.told({"n_users=100": [one for budget in budgets for one in record_bench._at(100, budget)]})
    local, exact = table["mechanisms"]
    assert local["epsilon"] == {
        "along": ["task", "dimension", "budget"],
        "values": [*EPSILON0, *(2 * one for one in EPSILON0), *(None for _ in EPSILON0), *EPSILON0],
    }
    assert exact["adjacency"] == "sum-preserving"
    assert len(table["reasons"]) == 1


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
    told = '{"mechanisms":[{"name":"cloak, Pólya noise","needs":"others","rests_on":"proven"}]}'
    assert script(path) == f"flamelibDefend.receive({told});\n"


def test_whom_a_mechanism_relies_on_and_on_what_is_said_of_each() -> None:
    assert set(NEEDS) == set(mechanisms())
    for one in rows(Request(1000, 16), epsilon=3.0, names=[*CENTRAL, "local"]):
        if isinstance(one, Row):
            assert (one.rests_on == "cited") == (one.mechanism in CITED)
            assert (NEEDS[one.mechanism] == "nobody") == (one.trusted == "nobody")
            assert (NEEDS[one.mechanism] == "server") == one.trusted.startswith("the server")


def _cells(grid: dict[str, Any], mechanism: dict[str, Any], field: str, axis: str) -> list[tuple[Any, Any, str]]:
    """Neighbouring values along an axis, at every budget, where both are there; and the task."""
    sizes = {name: len(values) for name, values in grid["axes"].items()}
    sizes["budget"] = len(grid["budgets"][mechanism["asked"]])
    found = []
    for at in product(*(range(size) for size in sizes.values())):
        place = dict(zip(sizes, at, strict=True))
        if place[axis] + 1 < sizes[axis]:
            following = place | {axis: place[axis] + 1}
            step = [_look(mechanism[field], one, sizes) for one in (place, following)]
            if None not in step:
                found.append((*step, grid["axes"]["task"][place["task"]]))
    return found


def test_epsilon_moves_over_the_whole_grid_as_the_page_takes_for_granted(grid: dict[str, Any]) -> None:
    """But for the accuracy of the accounts; and where nothing is promised anyway, it may be as it likes."""
    for mechanism, axis in product(grid["mechanisms"], ("n_users", "dimension", "rounds")):
        if mechanism["name"] not in LOCAL or (mechanism["name"], axis) == ("double", "n_users"):
            continue  # of SS-Double no order in the crowd is known, and its page knows none
        for before, after, task in _cells(grid, mechanism, "epsilon", axis):
            reports = mechanism["name"] in ("blanket", "shuffled check-in")
            if max(before, after) > 20 or (mechanism["name"], axis, task) == ("shuffled check-in", "dimension", "mean"):
                continue  # of vectors the local budget alone counts, and one number stands for itself
            falls = axis == "n_users" or (reports and axis == "dimension" and task == "histogram")
            milder, harder = (after, before) if falls else (before, after)
            assert milder <= harder * 1.01, (mechanism["name"], task, axis, before, after)


def test_errors_are_monotone_along_every_axis(grid: dict[str, Any]) -> None:
    """Along every line of the grid, so that they are largest at a corner of a cell."""
    sizes = {name: len(values) for name, values in grid["axes"].items()} | {"budget": 0}
    for mechanism, axis in product(grid["mechanisms"], ("n_users", "dimension", "rounds", "delta")):
        sizes["budget"] = len(grid["budgets"][mechanism["asked"]])
        for at in product(*(range(1 if name == axis else size) for name, size in sizes.items())):
            line = [dict(zip(sizes, at, strict=True)) | {axis: index} for index in range(sizes[axis])]
            values = [one for place in line if (one := _look(mechanism["error"], place, sizes)) is not None]
            assert values in (sorted(values), sorted(values, reverse=True)), (mechanism["name"], axis, values)
