"""Records of the public registry of deployments: what is read from them, and what stays open."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from flamebook import commands
from flamebook.figures.together import trial
from flamebook.figures.together.trial import CORPUS, described, fields_of
from flamelib.learning import datasets
from flamelib.uses.deployment_card import Unstated, answered

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
    def test_rho_comes_before_epsilon(self) -> None:
        loss = {"privacy_unit": "row", "privacy_parameters": {"epsilon": 1.5, "delta": 1e-5, "rho": 0.07}}
        found = answered(record(privacy_loss=loss))
        assert (found.basis, found.said) == ("computed", 1.5)

    def test_who_is_trusted_is_asked_for_and_can_be_told(self) -> None:
        fields = record(deployment_model={"model_name": "Varies"})
        with pytest.raises(Unstated, match="One: mechanism is unstated"):
            answered(fields)
        assert answered(fields | {"trust": "curator", "mechanism": "stated", "epsilon": 1}).upper == 1


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


@pytest.mark.parametrize("one", trial.CASES, ids=lambda one: one.what)
def test_every_case_has_two_ends_or_leaves_something_open(one: trial.Case) -> None:
    given = fields_of(trial.record(one.record)) | dict(one.given)
    if one.record in ("covid19_notifications", "apple_iconic_scenes_photo_selections_2023", "uber"):
        with pytest.raises(Unstated):
            answered(given)
        return
    found = answered(given)
    assert found.lower is None or found.lower <= found.upper
    if one.record == "telemetry_collection_windows":
        assert found.upper == pytest.approx(1.672 * int(one.given["rounds"]))
