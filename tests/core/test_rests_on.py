"""What answers rest on: labels that belong to their arguments, and no estimate that says exact."""

import math
from dataclasses import fields
from itertools import product
from typing import Any

import pytest

from flamelib.answers import PROFILES, answer, load_all
from flamelib.core.guarantees import ARITHMETIC, CrossedEnds, Gives, RestsOn, bracketed_ends
from flamelib.core.statements import STATEMENTS, Statement, states

# Arguments that a label may look at, beside the words of a statement.
SEEN = {"n_users": (12, 10**6), "rounds": (1, 100), "slack_delta": (None, 1e-9), "delta": (0.0, 1e-6)}


def _arguments(found: Statement) -> list[dict[str, Any]]:
    """Every combination of a statement's words, its randomizers, and of numbers that a label may look at."""
    axes = {name: found.domain(name).choices for name in found.parameters if name != "randomizer"}
    axes = {name: choices for name, choices in axes.items() if choices}
    axes |= {name: values for name, values in SEEN.items() if name in found.parameters}
    if "randomizer" in found.parameters:
        profiles = [PROFILES[kind](*[2] * len(fields(PROFILES[kind]))) for kind in found.randomizers]
        axes["randomizer"] = profiles or found.domain("randomizer").choices
    return [dict(zip(axes, point, strict=True)) for point in product(*axes.values())]


@pytest.mark.parametrize("key", load_all())
def test_no_estimate_says_exact_whatever_is_asked(key: str) -> None:
    found = STATEMENTS[key]
    labels = {(found.given(arguments), found.stands_on(arguments)) for arguments in _arguments(found)}
    assert labels
    assert (Gives.EXACT, RestsOn.ESTIMATED) not in labels
    assert all(isinstance(ground, RestsOn) != (gives is Gives.VALUE) for gives, ground in labels)


@pytest.mark.parametrize(("gives", "ground"), [("value", "proven"), ("upper", None)])
def test_a_value_rests_on_nothing_and_all_else_on_something(gives: str, ground: str | None) -> None:
    with pytest.raises(RuntimeError, match="must say what it rests on, unless it gives a value"):
        states("blanket", "try-ground", item="none", gives=gives, rests_on=ground)(lambda: 0.0)
    assert "blanket:try-ground" not in STATEMENTS


@pytest.mark.parametrize("key", load_all())
def test_what_is_cited_is_named_in_the_source(key: str) -> None:
    found = STATEMENTS[key]
    if found.rests_on is RestsOn.CITED:
        assert any(year in found.source.partition(": ")[2] for year in ("19", "20")), found.source


BINARY = {"epsilon0": 1, "delta": 1e-6}
ROUNDS = {"n_users": 100, "checkin_rate": 0.5, "delta": 1e-6}


TOPK = {"protocol": "topk", "dimension": 40, "kept": 1, "padded": 50, "bound": "blanket", "n_users": 50}


@pytest.mark.parametrize(
    ("key", "inputs", "assumed"),
    [
        ("checkin:shuffled", ROUNDS | {"epsilon0": 1, "rounds": 9, "route": "clones"}, ARITHMETIC),
        ("checkin:shuffled", ROUNDS | {"epsilon0": 1, "rounds": 9, "route": "thm-2"}, None),
        ("shuffle:exact-binary", BINARY | {"n_users": 100}, ARITHMETIC),
        ("shuffle:calibrate", {"randomizer": "any", "n_users": 100, "epsilon": 0.5, "delta": 1e-6}, ARITHMETIC),
        ("blanket:lem-hoeffding", BINARY | {"n_users": 100, "randomizer": "laplace"}, None),
        ("flame:account", TOPK | {"epsilon0": 0.5, "delta": 1e-6, "route": "paper"}, None),
        (
            "flame:account",
            TOPK | {"epsilon0": 0.5, "delta": 1e-6, "route": "sound"},
            f"no coordinate has more messages than the padded number; {ARITHMETIC}",
        ),
        ("flame:account", TOPK | {"epsilon0": 0.5, "delta": 1e-6, "route": "sound", "overflow": "drop"}, ARITHMETIC),
    ],
)
def test_a_proven_number_names_the_ground_that_it_stands_on(
    key: str, inputs: dict[str, Any], assumed: str | None
) -> None:
    assert answer(key, inputs).get("assumes") == assumed


def test_ends_that_cross_are_one_number_or_an_error() -> None:
    assert bracketed_ends(0.25, 0.5, 0.1, "one") == (0.25, 0.5, True)
    above = math.nextafter(math.nextafter(0.5, 1), 1)
    assert bracketed_ends(above, 0.5, 0.1, "one") == (0.5, above, True)
    with pytest.raises(CrossedEnds, match=r"0\.50000001 is above the upper one 0\.5 for one"):
        bracketed_ends(0.50000001, 0.5, 0.1, "one")  # warnings are errors in tests
    with pytest.warns(CrossedEnds):
        assert bracketed_ends(0.75, 0.5, 0.125, "one") == (0.375, 0.875, False)
