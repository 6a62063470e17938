"""Runs with drawn values: every one ends in a page or in one sentence.  A longer trial belongs to the weekly build."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from fuzz import trial

from flamebook.places import ROOT
from flamebook.runs import notebook

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("template", NOTEBOOKS, ids=lambda path: path.stem)
def test_drawn_values_are_admissible_or_refused_in_one_sentence(template: Path) -> None:
    accepted = 0
    for seed in range(10):
        given = trial.drawn(template, np.random.default_rng(seed))
        refusal = notebook.refusal(template, given)
        assert "\n" not in refusal
        accepted += not refusal
    assert accepted, "the domains that join parameters leave room"


def test_every_case_that_is_kept_is_admissible_or_refused_in_one_sentence() -> None:
    kept = yaml.safe_load((Path(__file__).parent / "cases.yml").read_text(encoding="utf-8"))
    for name, cases in kept.items():
        for case in cases:
            why = notebook.refusal(notebook.locate(name), {key: str(value) for key, value in case.items()})
            assert "\n" not in why
            assert "is not a parameter" not in why
