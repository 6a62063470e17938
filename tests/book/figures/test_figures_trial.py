"""Records of the public registry of deployments: what is read from them, and what stays open."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from flamebook import commands
from flamebook.figures.together import trial
from flamebook.figures.together.trial import CORPUS, described
from flamelib.core.vocabulary import DomainError
from flamelib.learning import datasets
from flamelib.uses.described import Unstated, answered

RECORD: dict[str, Any] = {
    "url_slug": "one", "status": "Draft", "tier": 3,
    "deployment": {
        "basic": {"name": "One"}, "deployment_model": {"model_name": "Central", "release_type": "One release"},
        "privacy_loss": {"privacy_unit": "User-level\n", "privacy_parameters": {"epsilon": 4.0, "delta": "1.0e-07"}},
    },
}  # fmt: skip


def record(**parts: Any) -> dict[str, Any]:
    """The fields of the record with other parts."""
    return described(yaml.safe_dump(RECORD | {"deployment": RECORD["deployment"] | parts}))


class TestRecords:
    def test_a_final_budget(self) -> None:
        found = answered(record())
        assert (found.name, found.unit, found.basis) == ("One", "User-level", "stated")
        assert (found.upper, found.delta) == (4.0, 1e-7)

    def test_rho_comes_before_epsilon(self) -> None:
        loss = {"privacy_unit": "row", "privacy_parameters": {"epsilon": 1.5, "delta": 1e-5, "rho": 0.07}}
        found = answered(record(privacy_loss=loss))
        assert (found.basis, found.said) == ("computed", 1.5)

    def test_a_local_budget(self) -> None:
        loss = {"privacy_unit": "report", "privacy_parameters": {"epsilon": 2}}
        found = answered(record(privacy_loss=loss, deployment_model={"model_name": "Local"}))
        assert (found.lower, found.upper, found.trust) == (2.0, 2.0, "nobody")

    def test_a_local_budget_with_a_delta_is_nobodys(self) -> None:
        with pytest.raises(Unstated, match="epsilon0 is unstated"):
            answered(record(deployment_model={"model_name": "Local"}))

    def test_who_is_trusted_is_asked_for_and_can_be_told(self) -> None:
        fields = record(deployment_model={"model_name": "Varies"})
        with pytest.raises(Unstated, match="One: mechanism is unstated"):
            answered(fields)
        assert answered(fields | {"trust": "curator", "mechanism": "stated", "epsilon": 1}).upper == 1

    @pytest.mark.parametrize("broken", ["deployment:", "deployment: [1]", "deployment: {basic: 3}"])
    def test_a_record_of_nothing_is_questions(self, broken: str) -> None:
        with pytest.raises(Unstated, match="unit is unstated"):
            answered(described(broken))

    @pytest.mark.parametrize("broken", ["a: [", "- one", "five"])
    def test_what_is_no_description_is_refused(self, broken: str) -> None:
        with pytest.raises(DomainError, match=r"description"):
            described(broken)


def test_the_command_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "record.yaml").write_text(yaml.safe_dump(RECORD), encoding="utf-8")
    assert commands.run_app(["deployment", str(tmp_path / "record.yaml"), "epsilon=3"]) == 0
    assert json.loads(capsys.readouterr().out)["upper"] == 3


def test_the_corpus_is_the_published_one() -> None:
    listed = datasets._registry()["deployments"]["parts"]["train"]
    found = {path.name: path.read_bytes() for path in sorted(CORPUS.glob("*.yaml"))}
    assert len(found) == 41
    assert {file["name"]: (file["bytes"], file["sha256"]) for file in listed.values()} == {
        name: (len(text), hashlib.sha256(text).hexdigest()) for name, text in found.items()
    }


class TestThePage:
    def test_the_draft_is_judged_row_by_row(self) -> None:
        rows = trial.draft_rows([10.0, 13.0, 14.0], 100_000, 1e-9)
        assert [row[:2] for row in rows] == [("5", 0.317), ("6.5", 0.906), ("7", 1.528)]
        assert all(row[5].startswith("holds") for row in rows)
        assert trial.draft_holds(rows).holds
        assert "furthest off is 1.60 times what suffices" in trial.draft_words(rows)["draft_judgement"]

    def test_other_values_have_nothing_printed(self) -> None:
        rows = trial.draft_rows([10.0, 2.0], 50_000, 1e-9)
        assert {(row[1], row[5]) for row in rows} == {("", "nothing to compare")}
        assert trial.draft_holds(rows).holds is None
        assert "prints no number" in trial.draft_words(rows)["draft_judgement"]
        less = [("5", 0.2, 0.29, 0.3, 0, "")]
        assert "not every number" in trial.draft_words(less)["draft_judgement"]

    @pytest.mark.parametrize(
        ("said", "lower", "told"),
        [(None, 1.0, "nothing"), (2.002, 1.0, "holds"), (3.0, 1.0, "holds, 1.50 times"), (1.5, 1.0, "between"),
         (1.5, None, "between"), (0.5, 1.0, "below the lower bound")],
    )  # fmt: skip
    def test_a_published_number_is_judged_by_both_ends(
        self, said: float | None, lower: float | None, told: str
    ) -> None:
        assert trial.judged(said, lower, 2.0).startswith(told)

    def test_the_smallest_case_is_asked_for_its_people_where_they_are_left_out(self) -> None:
        (_, alone, same, _), (_, least, most, _), (_, *none, question) = trial.survey_rows()
        assert alone == same == float(trial.survey_words()["survey_budget"])
        assert 0 < least <= most < alone
        assert none == ["", ""]
        assert "how many people" in question

    def test_the_rounding_of_mu_covers_the_published_number(self) -> None:
        told = trial.case_words()
        assert float(told["mu_least"]) < 1.453 < float(told["mu_most"])
        assert float(told["rho_of_mu"]) < 0.0728

    def test_every_case_has_two_ends_or_a_reason(self) -> None:
        rows = {row[0]: row for row in trial.case_rows()}
        assert len(rows) == len(trial.CASES) >= 8
        for *_, said, lower, upper, judgement in rows.values():
            assert upper or judgement.startswith("cannot be computed")
            assert not lower or lower <= upper
            assert not (judgement.startswith("holds") and said < upper)
        assert rows["Exposure Notifications (2021)"][-1] == "cannot be computed: n_users unstated"
        assert rows["Microsoft, telemetry, a day of them (2017)"][4] == pytest.approx(4 * 1.672)
        assert rows["Recurve, energy use (2020)"][4] == pytest.approx(math.log1p(0.124 * math.expm1(6.8)))

    def test_every_record_is_answered_or_asked(self) -> None:
        rows = trial.corpus_rows()
        told = trial.corpus_words(rows)
        assert (told["records"], len(rows)) == ("41", 41)
        assert [bool(row[3]) for row in rows] == [True] * int(told["answered"]) + [False] * int(told["asked"])
        assert all("?" in row[-1] for row in rows if not row[3])

    def test_larger_batches_cost_less(self) -> None:
        assert trial.shrinks(list(trial.batch_rows()))
        assert not trial.shrinks([(1, 0, 1.0), (2, 0, 2.0)])

    def test_what_came_after_lies_above_what_is_certain(self) -> None:
        rows = list(trial.successor_rows())
        for *_, theirs, least, most in rows:
            assert most <= theirs
            assert not least or least <= most
        apart = float(trial.successor_words(rows)["clones_apart"].partition(" ")[0]) / 100
        assert rows[0][3] * (1 + apart) >= rows[0][4]
