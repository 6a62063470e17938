"""The page beside other software: the record is of the pinned versions, its own column is recomputed, ends in order."""

import json

import pytest

from flamebook.runs.recorded import rows
from flamebook.site.measured import beside, beside_peers
from flamebook.site.measured.beside_peers import FROM_BELOW, OWN, WORKS

RECORD = rows("beside.csv")


def test_the_record_is_of_the_pinned_versions_and_covers_every_work_and_way() -> None:
    about = json.loads(beside.TABLE.with_suffix(".json").read_text(encoding="utf-8"))
    assert about["peers"] == beside.pinned()
    assert {row["package"] for row in RECORD} - {OWN} <= set(about["peers"])
    assert [(row["work"], row["package"], row["way"]) for row in RECORD] == [
        (name, package, way) for name, work in WORKS.items() for package, way, _ in beside_peers.ASKED[type(work)]
    ]


@pytest.mark.parametrize("name", WORKS)
def test_its_own_column_is_recomputed(name: str) -> None:
    above, below = beside_peers.own(WORKS[name]), beside_peers.own_below(WORKS[name])
    recorded = {row["way"]: float(row["epsilon"]) for row in RECORD if row["work"] == name and row["package"] == OWN}
    assert recorded == {"from above": pytest.approx(above, rel=1e-9), FROM_BELOW: pytest.approx(below, rel=1e-9)}
    assert below <= above


def test_what_lies_below_the_certified_end_is_marked_and_what_is_tighter_is_said() -> None:
    page = beside.page(RECORD)
    assert page.count(" its default step 1e-4 |") == sum(row["way"].endswith("1e-4") for row in RECORD)
    below = {row["work"]: float(row["epsilon"]) for row in RECORD if row["way"] == FROM_BELOW}
    wrong = [row["package"] for row in RECORD if row["package"] != OWN and float(row["epsilon"]) < below[row["work"]]]
    assert page.count("**below the truth**") == len(wrong) > 0
    assert "| tighter |" in page
    assert "| no answer |" not in page
    for row in RECORD:
        if row["package"] == "prv-accountant":
            assert "| looser |" in next(
                line for line in page.splitlines() if f"| {float(row['epsilon']):.6f} |" in line
            )


@pytest.mark.parametrize("name", [name for name, work in WORKS.items() if isinstance(work, beside_peers.Shuffles)])
def test_a_round_composed_elsewhere_is_no_smaller_and_costs_what_a_step_adds(name: str) -> None:
    recorded = {row["way"]: float(row["epsilon"]) for row in RECORD if row["work"] == name}
    (fine,), (coarse,) = ([found for way, found in recorded.items() if f"step 1e-{digit}" in way] for digit in (5, 4))
    assert recorded["from above"] * (1 - 1e-3) <= fine <= coarse
