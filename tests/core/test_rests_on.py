"""What answers rest on: labels that belong to their arguments, and no estimate that says exact."""

import math
from dataclasses import fields
from itertools import product
from typing import Any

import pytest

from flamelib.answers import PROFILES, answer, listing, load_all
from flamelib.core.guarantees import ARITHMETIC, CrossedEnds, Gives, RestsOn, bracketed_ends, weakest
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


def test_a_constant_estimate_that_says_exact_is_refused_at_once() -> None:
    with pytest.raises(RuntimeError, match="may not say exact"):
        states("blanket", "try-estimate", item="none", gives="exact", rests_on="estimated")(lambda: 0.0)
    assert "blanket:try-estimate" not in STATEMENTS


@pytest.mark.parametrize(("gives", "ground"), [("value", "proven"), ("upper", None)])
def test_a_value_rests_on_nothing_and_all_else_on_something(gives: str, ground: str | None) -> None:
    with pytest.raises(RuntimeError, match="must say what it rests on, unless it gives a value"):
        states("blanket", "try-ground", item="none", gives=gives, rests_on=ground)(lambda: 0.0)
    assert "blanket:try-ground" not in STATEMENTS


def test_what_rests_on_several_rests_on_the_weakest() -> None:
    assert weakest(RestsOn.PROVEN, RestsOn.ESTIMATED, RestsOn.CITED) is RestsOn.ESTIMATED
    assert weakest(RestsOn.CITED, RestsOn.PROVEN) is RestsOn.CITED


@pytest.mark.parametrize("key", load_all())
def test_what_is_cited_is_named_in_the_source(key: str) -> None:
    found = STATEMENTS[key]
    if found.rests_on is RestsOn.CITED:
        assert any(year in found.source.partition(": ")[2] for year in ("19", "20")), found.source


BINARY = {"epsilon0": 1, "delta": 1e-6}
NOISY = {"order": 4, "checkin_rate": 0.1, "noise_std": 2}
ROUNDS = {"n_users": 100, "checkin_rate": 0.5, "delta": 1e-6}


@pytest.mark.parametrize(
    ("key", "inputs", "gives", "ground"),
    [
        ("shuffle:exact-binary", BINARY | {"n_users": 10**9}, "exact", "proven"),
        ("shuffle:exact-binary", BINARY | {"n_users": 10**9 + 1}, "upper", "proven"),
        ("blanket:lem-reduction", BINARY | {"n_users": 100, "randomizer": "laplace"}, "upper", "proven"),
        (
            "blanket:lem-reduction",
            {"n_users": 100, "randomizer": "gaussian", "noise_std": 4, "delta": 1e-6},
            "upper",
            "estimated",
        ),
        ("clones:2021", BINARY | {"n_users": 1000}, "upper", "proven"),
        ("clones:2021-closed", BINARY | {"n_users": 10**6}, "upper", "cited"),
        ("checkin:thm-4", NOISY | {"n_users": 512, "inner": "paper"}, "value", None),
        ("checkin:thm-4", NOISY | {"n_users": 512, "inner": "exact"}, "upper", "cited"),
        ("checkin:thm-4", NOISY | {"n_users": 5120, "inner": "exact"}, "upper", "estimated"),
        ("checkin:eq-11", NOISY | {"n_users": 5120, "inner": "exact"}, "upper", "cited"),
        ("checkin:rdp-exact", NOISY | {"n_users": 512}, "value", None),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 1, "route": "pld-exact"}, "upper", "proven"),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 9, "route": "rdp-exact"}, "value", None),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 9, "route": "pld-exact"}, "value", None),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 9, "route": "pld"}, "upper", "proven"),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 9, "route": "eq-11"}, "upper", "cited"),
        ("checkin:shuffled", ROUNDS | {"epsilon0": 1, "rounds": 9, "route": "clones"}, "upper", "proven"),
        ("checkin:strong-kov", {"epsilon": 0.1, "delta": 1e-9, "times": 9, "slack_delta": 1e-6}, "upper", "proven"),
        ("cloak:best-1", {"security_bits": 40, "n_users": 1000, "log2_modulus": 32}, "upper", "cited"),
        ("checkin:shuffled", ROUNDS | {"epsilon0": 1, "rounds": 9, "route": "thm-2"}, "upper", "cited"),
        ("checkin:shuffled", ROUNDS | {"epsilon0": 1, "rounds": 9, "route": "thm-3"}, "value", None),
    ],
)
def test_labels_by_hand(key: str, inputs: dict[str, Any], gives: str, ground: str | None) -> None:
    found = answer(key, inputs)
    assert (found["gives"], found.get("rests_on")) == (gives, ground)


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


def test_the_listing_tells() -> None:
    assert "blanket:cheu   upper, replace-one; cited" in listing("blanket:cheu")
    assert "shuffle:exact-binary   depends on the inputs, replace-one; proven" in listing("shuffle:")
    assert "flame:thm-4   value, replace-one" in listing("flame:thm-4")


def test_ends_that_cross_are_one_number_or_an_error() -> None:
    assert bracketed_ends(0.25, 0.5, 0.1, "one") == (0.25, 0.5, True)
    above = math.nextafter(math.nextafter(0.5, 1), 1)
    assert bracketed_ends(above, 0.5, 0.1, "one") == (0.5, above, True)
    with pytest.raises(CrossedEnds, match=r"0\.50000001 is above the upper one 0\.5 for one"):
        bracketed_ends(0.50000001, 0.5, 0.1, "one")  # warnings are errors in tests
    with pytest.warns(CrossedEnds):
        assert bracketed_ends(0.75, 0.5, 0.125, "one") == (0.375, 0.875, False)
