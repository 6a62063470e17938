"""The page beside other software: the record is of the pinned versions, its own column is recomputed, ends in order."""

import json

import pytest

from flamebook.places import ROOT
from flamebook.runs.recorded import rows
from flamebook.site.measured import beside, beside_peers
from flamebook.site.measured.beside_peers import FROM_BELOW, OWN, WORKS
from flamelib import bounds, evaluate

RECORD = rows("beside.csv")


def test_the_record_is_of_the_pinned_versions_and_covers_every_work_and_way() -> None:
    about = json.loads(beside.TABLE.with_suffix(".json").read_text(encoding="utf-8"))
    assert about["peers"] == beside.pinned()
    assert {row["package"] for row in RECORD} - {OWN} <= set(about["peers"])
    assert [(row["work"], row["package"], row["way"]) for row in RECORD] == [
        (name, package, way) for name, work in WORKS.items() for package, way, _ in beside_peers.ASKED[work.kind]
    ]


@pytest.mark.parametrize("name", WORKS)
def test_its_own_column_is_recomputed(name: str) -> None:
    work = WORKS[name]
    found = bounds(work.protocol(), delta=work.delta, rounds=work.rounds)
    recorded = {row["way"]: float(row["epsilon"]) for row in RECORD if row["work"] == name and row["package"] == OWN}
    assert recorded == {
        "from above": pytest.approx(found.upper, rel=1e-9),
        FROM_BELOW: pytest.approx(found.lower, rel=1e-9),
    }
    assert found.lower <= found.upper


def test_what_lies_below_the_certified_end_is_marked_and_what_is_tighter_is_said() -> None:
    page = beside.page(RECORD).partition("## Answers below the truth")[0]
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


def test_every_answer_below_the_truth_is_named_with_what_is_certain_and_the_command_that_shows_it() -> None:
    section = beside.page(RECORD).partition("## Answers below the truth")[2].partition("\n## ")[0]
    ends = {row["work"]: row["epsilon"] for row in RECORD if row["way"] == FROM_BELOW}
    wrong = [row for row in RECORD if row["package"] != OWN and float(row["epsilon"]) < float(ends[row["work"]])]
    table = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(table) == len(wrong) >= 4
    for row, (program, way, work, told, least) in zip(wrong, table, strict=True):
        assert (program, way, work) == (f"{row['package']} {beside.pinned()[row['package']]}", row["way"], row["work"])
        assert told == f"{float(row['epsilon']):.6f}"
        assert float(told) < float(least) <= float(ends[work])
        assert f"$ {beside.command(work)}\n" in section
        [script] = [word for word in beside.command(work).split() if word.endswith(".py")]
        assert (ROOT / script).is_file()


def test_the_answer_that_a_closed_form_refutes() -> None:
    exact = float(evaluate("participation:thm-2.4", sensitivity=1, noise_std=1, delta=1e-6).value)
    asked = ("everybody in 100 rounds, delta 1e-6", "opake-accounting", "loss distribution, step 1e-5")
    [told] = [float(row["epsilon"]) for row in RECORD if (row["work"], row["package"], row["way"]) == asked]
    assert told < exact - 4e-6


@pytest.mark.parametrize("name", [name for name, work in WORKS.items() if work.kind == "kary"])
def test_a_round_composed_elsewhere_is_no_smaller_and_costs_what_a_step_adds(name: str) -> None:
    recorded = {row["way"]: float(row["epsilon"]) for row in RECORD if row["work"] == name}
    (fine,), (coarse,) = ([found for way, found in recorded.items() if f"step 1e-{digit}" in way] for digit in (5, 4))
    assert recorded["from above"] * (1 - 1e-3) <= fine <= coarse
