"""The runs at the sizes of the papers that are kept: each is the notebook's own, whole, on the real data."""

import json

import pytest

from flamebook.places import RESULTS, ROOT
from flamebook.runs import schedule


@pytest.mark.parametrize("name", ["checkin_learning", "cloak_learning", "flame_learning", "participation_learning"])
def test_a_kept_run_is_the_notebooks_at_full_size(name: str) -> None:
    receipt = json.loads((RESULTS / name / "receipt.json").read_text())
    assert receipt["parameters"] == schedule.plan(ROOT, "paper").runs[name].parameters
    assert not receipt["stand_ins"]
    assert not receipt["faults"]
