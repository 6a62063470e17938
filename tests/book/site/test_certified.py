"""The recorded grids: what they hold is what the library answers, and what is read off them is on the safe side."""

import math
from itertools import pairwise, product
from typing import Any

import pytest

from flamebook.site.sliders.grids import FALLING, UNORDERED, certified, grids, towards
from flamebook.site.sliders.record_grids import GRIDS
from flamelib.answers import answer
from flamelib.core.vocabulary import DomainError

KEYS = list(GRIDS)
# What is rounded differs from point to point: an upper bound may lie this much above what it bounds.
SLACK = {"distributed": 2e-3, "participation": 2e-3, "shuffled": 2e-2, "topk": 2e-3}
# The worst case rises with the records of a client, what is known from below of alike gradients need not.
LOOSE = {"participation-lower": "n_records"}
# Seconds for a point; what these grids hold is compared with each other below.
SLOW = ("topk", "shuffled")


def _points(key: str) -> dict[tuple[float, ...], float]:
    values = [math.inf if value == "inf" else value for value in grids()[key]["values"]]
    bare = [value["epsilon"] if isinstance(value, dict) else value for value in values]
    return dict(zip(product(*grids()[key]["axes"].values()), bare, strict=True))


def _middle(key: str) -> dict[str, float]:
    return {name: axis[len(axis) // 2] for name, axis in grids()[key]["axes"].items()}


@pytest.mark.parametrize("key", KEYS)
def test_a_grid_is_what_the_recorder_would_record(key: str) -> None:
    grid, meant = grids()[key], GRIDS[key]
    assert (grid["statement"], grid["inputs"]) == (meant.statement, meant.inputs)
    assert grid["axes"] == {name: list(axis) for name, axis in meant.axes.items()}
    assert len(grid["values"]) == math.prod(map(len, meant.axes.values()))
    assert all(list(axis) == sorted(set(axis)) for axis in meant.axes.values())


@pytest.mark.parametrize("key", [key for key in KEYS if key not in SLOW])
def test_the_command_shown_answers_the_number_recorded(key: str) -> None:
    found = certified(key, _middle(key))
    _, _, statement, *words = found["command"].split()
    told = answer(statement, dict(word.split("=") for word in words))
    assert found["value"] == pytest.approx(told["value"], rel=1e-12)
    assert (found["gives"], found["source"]) == (told["gives"], told["source"])


@pytest.mark.parametrize("key", KEYS)
def test_the_numbers_rise_and_fall_as_is_proven(key: str) -> None:
    points, axes = _points(key), grids()[key]["axes"]
    slack = 1 + SLACK.get(key, 1e-9)
    for place, (name, axis) in enumerate(axes.items()):
        if name in (UNORDERED.get(key), LOOSE.get(key)):
            continue
        after = dict(pairwise(axis))
        for point, value in points.items():
            if point[place] in after:
                other = points[(*point[:place], after[point[place]], *point[place + 1 :])]
                lower, higher = (other, value) if name in FALLING else (value, other)
                assert lower <= higher * slack + 1e-12, (name, point)


@pytest.mark.parametrize("key", KEYS)
def test_between_points_the_answer_is_that_of_the_safe_side(key: str) -> None:
    """Between two neighbours an upper bound is the larger of theirs, a lower one the smaller."""
    middle, grid = _middle(key), grids()[key]
    for name, axis in grid["axes"].items():
        if len(axis) == 1:
            continue
        low, high = axis[:2]
        between = {**middle, name: (low + high) / 2}
        if UNORDERED.get(key) == name:
            with pytest.raises(DomainError, match=f"^{name} must be one of "):
                certified(key, between)
            continue
        found = certified(key, between)
        ends = [certified(key, {**middle, name: end})["value"] for end in (low, high)]
        assert found["value"] == (min(ends) if grid["gives"] == "lower" else max(ends)), name
        assert found["at"] == {**middle, name: high if towards(key, name) > 0 else low}


@pytest.mark.parametrize(
    ("key", "inputs", "words"),
    [
        ("clones", {"epsilon0": 8.1}, "epsilon0 must be at most 8 on the recorded grid, got 8.1"),
        ("binary-lower", {"epsilon0": 0.05}, "epsilon0 must be at least 0.1 on the recorded grid, got 0.05"),
        (
            "distributed",
            {"checkin_rate": 0.2},
            "checkin_rate must be one of 0.001, 0.01, 0.1, 1 (in between no order is known), got 0.2",
        ),
    ],
)
def test_outside_the_grid_there_is_one_sentence(key: str, inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(DomainError) as told:
        certified(key, _middle(key) | inputs)
    assert str(told.value) == words


def test_lower_bounds_lie_below_upper_ones() -> None:
    for low, high in (("binary-lower", "binary"), ("binary", "clones"), ("topk-lower", "topk")):
        upper = _points(high)
        assert all(value <= upper[point] * (1 + 1e-9) for point, value in _points(low).items()), (low, high)
    upper = _points("participation")
    for (*client, noise, delta), value in _points("participation-lower").items():
        assert value <= upper[(*client, noise, 1, delta)] * (1 + 1e-9)
    topk, one = grids()["topk"]["axes"], _points("topk")
    assert list(topk) == ["epsilon0", "kept", "padded", "delta"]
    assert all(value <= kept * epsilon0 for (epsilon0, kept, _, _), value in one.items())
