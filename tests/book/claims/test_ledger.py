"""The ledger: every row is well formed, computed from its own inputs, and judged as recorded."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from flamebook.claims import ledger, truth
from flamebook.claims import record as record_ledger
from flamebook.claims.ledger import Claim, Judged, Value, shown
from flamebook.places import ROOT
from flamebook.runs.editions import Moved
from flamelib.core import divergences
from flamelib.core.vocabulary import DomainError

CONTENTS = ledger.contents()
CLAIMS = ledger.load()
TOLERANCE, NOTHING = 1e-6, 1e-12


def moved(judged: Iterable[Judged]) -> list[str]:
    """What differs from the record, a line for each: rows that are new or gone, verdicts, values beyond rounding."""
    before = record_ledger.recorded()
    after = {row.claim.id: (row.verdict, row.value) for row in judged}
    gone = [str(Moved(name, before[name][0], None)) for name in before.keys() - after.keys()]
    return sorted(gone) + [line for name, now in after.items() for line in _changes(name, before.get(name), now)]


def _changes(name: str, before: tuple[str, Value | None] | None, now: tuple[str, Value | None]) -> list[str]:
    if before is None:
        return [str(Moved(name, None, now[0]))]
    verdict = [str(Moved(f"{name} verdict", before[0], now[0]))] if before[0] != now[0] else []
    value = [] if _close(before[1], now[1]) else [str(Moved(f"{name} value", shown(before[1]), shown(now[1])))]
    return verdict + value


def _close(one: Value | None, other: Value | None) -> bool:
    if any(value is None or isinstance(value, bool) for value in (one, other)):
        return one is other
    pairs = [value if isinstance(value, list) else [value] for value in (one, other)]
    return len(pairs[0]) == len(pairs[1]) and all(
        math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=NOTHING) for a, b in zip(*pairs, strict=True)
    )


def test_every_recorded_verdict_is_the_computed_one(judged: list[Judged]) -> None:
    turned = {row.claim.id: f"{row.verdict}, computed {row.value}" for row in judged if not row.as_recorded}
    assert turned == {}


def test_no_verdict_and_no_value_changes_unseen(judged: list[Judged]) -> None:
    """Where a change is meant: ``flamelib record ledger``, and the change is seen row by row."""
    assert moved(judged) == []


def test_every_checkable_row_has_a_value(judged: list[Judged]) -> None:
    assert [row.claim.id for row in judged if (row.value is None) != (row.verdict == "not-checkable")] == []


@pytest.mark.parametrize(
    ("document", "least"), [("blanket", 27), ("flame", 39), ("participation", 32), ("checkin", 34), ("cloak", 64)]
)
def test_a_document_is_complete(document: str, least: int) -> None:
    items = {claim.item for claim in CLAIMS if claim.document == document}
    assert len(items) >= least
    assert items == {f"{document}:{name}" for name in CONTENTS[document]["items"]}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_row_names_a_test_that_exists(claim: Claim) -> None:
    path, _, name = claim.test.partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


# --- a verdict turns when the computation does ------------------------------------------------------


def _claim(**changes: Any) -> Claim:
    row = {
        "id": "blanket:x/y",
        "item": "blanket:x",
        "kind": "number",
        "where": "here",
        "claim": "Something.",
        "verdict": "reproduced",
        "evidence": "None.",
        "test": "tests/book/claims/test_ledger.py::test_x",
        "page": "book/blanket",
        "relation": "equal",
        "paper": math.exp(-0.5),
        "compute": "blanket:lem-5.1",
        "inputs": {"randomizer": "laplace", "epsilon0": 1},
    }
    return Claim(**row | changes)


CURVE = {"inputs": {"randomizer": "laplace"}, "over": {"epsilon0": [1, 2]}}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "reproduced"),
        ({"paper": 0.6}, "deviates"),
        ({"paper": 0.6, "tolerance": 0.02}, "reproduced"),
        ({"paper": None, "reference": 0.6}, "deviates"),
        ({"relation": "at-most", "paper": 0.61}, "reproduced"),
        ({"relation": "at-most", "paper": 0.5}, "refuted"),
        ({"relation": "at-least", "paper": 0.7}, "refuted"),
        ({"relation": None, "paper": None, "compute": None}, "not-checkable"),
        (CURVE | {"paper": [math.exp(-0.5), math.exp(-1)]}, "reproduced"),
        (CURVE | {"paper": [math.exp(-0.5), 0.4]}, "deviates"),
    ],
)
def test_the_verdict_follows_from_the_relation(changes: dict[str, Any], verdict: str) -> None:
    assert ledger.judge(_claim(**changes)).verdict == verdict


def test_an_upper_bound_cannot_refute_an_upper_bound() -> None:
    """A loose bound above a claimed maximum says nothing against the claim."""
    loose = {"randomizer": "kary", "n_buckets": 2, "epsilon0": 1, "n_users": 100, "epsilon": 0.1}
    claim = _claim(compute="blanket:lem-hoeffding", inputs=loose, relation="at-most", paper=1e-9)
    assert ledger.judge(claim).verdict == "deviates"


def test_a_property_that_fails_is_refuted() -> None:
    function = "flamebook.claims.blanket:local_budget_is_finite"
    inputs = {"n_buckets": 3, "blanket_mass": 0.5, "replacements": [1, 2]}
    changes: dict[str, Any] = {"relation": "holds", "paper": None, "compute": None, "function": function}
    assert ledger.judge(_claim(**changes, inputs=inputs)).verdict == "refuted"
    assert ledger.judge(_claim(**changes, inputs=inputs | {"replacements": [0, 1, 2]})).verdict == "reproduced"


# --- a bad file is refused with the row and the field -----------------------------------------------


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"kind": "theory"}, "kind"),
        ({"claim": ""}, "claim"),
        ({"colour": "red"}, "colour"),
        ({"compute": None}, "compute"),
        ({"compute": None, "function": "os:system"}, "function"),
        ({"inputs": {"randomizer": "laplace", "epsilon0": -1}}, "epsilon0"),
        ({"paper": None}, "paper"),
        ({"verdict": "not-checkable"}, "verdict"),
    ],
)
def test_a_malformed_row_is_refused(changes: dict[str, Any], field: str, tmp_path: Path) -> None:
    base = {"kind": "number", "where": "here", "page": "book/blanket", "test": "tests/x.py::y"}
    row = {"id": "y", "claim": "Something.", "evidence": "None.", "verdict": "reproduced", "relation": "equal"}
    row |= {"paper": 0.6, "compute": "blanket:lem-5.1", "inputs": {"randomizer": "laplace", "epsilon0": 1}}
    content = {"items": [], "claims": [base | {"item": "blanket:x", "rows": [row | changes]}]}
    with pytest.raises(DomainError, match=rf"row blanket:x/y: .*{field}"):
        ledger.load(_written(tmp_path, blanket=content))


def _written(folder: Path, **contents: Any) -> Path:
    for document, content in contents.items():
        (folder / f"{document}.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


# --- the enumeration that everything else is judged by ----------------------------------------------


def test_the_enumeration_agrees_with_itself_in_two_forms() -> None:
    """Histograms built user by user, and binomial convolutions."""
    table = divergences.kary_table(2, 1.0)
    for n_users, epsilon in ((2, 0.0), (5, 0.3), (9, 0.7)):
        by_binomials = max(truth.binary_delta(n_users, 1.0, epsilon, ones) for ones in range(n_users))
        assert divergences.shuffled_delta(table, n_users, epsilon) == pytest.approx(by_binomials, rel=1e-11)
