"""What answers rest on: labels that belong to their arguments, and no estimate that says exact."""

from dataclasses import fields
from itertools import product
from typing import Any

import pytest

from flamelib.answers import PROFILES, answer, listing, load_all
from flamelib.core.guarantees import Gives, RestsOn, weakest
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
    assert all(isinstance(ground, RestsOn) for _, ground in labels)


def test_a_constant_estimate_that_says_exact_is_refused_at_once() -> None:
    with pytest.raises(RuntimeError, match="may not say exact"):
        states("blanket", "try-estimate", item="none", gives="exact", rests_on="estimated")(lambda: 0.0)
    assert "blanket:try-estimate" not in STATEMENTS


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
        ("checkin:thm-4", NOISY | {"n_users": 512, "inner": "paper"}, "value", "proven"),
        ("checkin:thm-4", NOISY | {"n_users": 512, "inner": "exact"}, "upper", "cited"),
        ("checkin:thm-4", NOISY | {"n_users": 5120, "inner": "exact"}, "upper", "estimated"),
        ("checkin:eq-11", NOISY | {"n_users": 5120, "inner": "exact"}, "upper", "cited"),
        ("checkin:rdp-exact", NOISY | {"n_users": 512}, "value", "proven"),
        ("checkin:rdp-exact", NOISY | {"n_users": 5120}, "value", "estimated"),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 1, "route": "pld-exact"}, "upper", "proven"),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 9, "route": "rdp-exact"}, "value", "estimated"),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 9, "route": "pld-exact"}, "value", "estimated"),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 9, "route": "pld"}, "upper", "proven"),
        ("checkin:distributed", ROUNDS | {"noise_std": 5, "rounds": 9, "route": "eq-11"}, "upper", "cited"),
        ("checkin:shuffled", ROUNDS | {"epsilon0": 1, "rounds": 9, "route": "clones"}, "upper", "proven"),
        ("checkin:strong-kov", {"epsilon": 0.1, "delta": 1e-9, "times": 9, "slack_delta": 1e-6}, "upper", "proven"),
        ("cloak:best-1", {"security_bits": 40, "n_users": 1000, "log2_modulus": 32}, "upper", "cited"),
        ("checkin:shuffled", ROUNDS | {"epsilon0": 1, "rounds": 9, "route": "thm-2"}, "upper", "cited"),
        ("checkin:shuffled", ROUNDS | {"epsilon0": 1, "rounds": 9, "route": "thm-3"}, "value", "proven"),
    ],
)
def test_labels_by_hand(key: str, inputs: dict[str, Any], gives: str, ground: str) -> None:
    found = answer(key, inputs)
    assert (found["gives"], found["rests_on"]) == (gives, ground)


def test_the_listing_tells() -> None:
    assert "blanket:cheu   upper, replace-one; cited" in listing("blanket:cheu")
    assert "shuffle:exact-binary   depends on the inputs, replace-one; proven" in listing("shuffle:")
