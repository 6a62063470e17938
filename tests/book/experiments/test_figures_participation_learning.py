"""Learning with random participation: noise at one guarantee, intervals of paired differences, the recorded run."""

import json

import numpy as np
import pytest

from flamebook.claims import participation as checks
from flamebook.experiments.runs import Gap, Learning, half_width
from flamebook.places import RESULTS, ROOT
from flamebook.runs import inputs, schedule
from flamelib.accounting.sampling.participation_round import ParticipationRound
from flamelib.protocols.participation import batch_size


def test_the_interval_of_a_mean_covers_it_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(loc=0.3, size=(2000, 4))
    gaps = [Gap.of(row) for row in draws]
    inside = np.mean([abs(gap.mean - 0.3) <= half_width(gap) for gap in gaps])
    assert inside == pytest.approx(0.95, abs=0.02)


def test_the_recorded_run_is_the_notebooks_at_the_sizes_of_the_paper():
    receipt = json.loads((RESULTS / "participation_learning" / "receipt.json").read_text())
    given = receipt["parameters"]
    for size, clients, n, p, q in zip(
        ("small", "large"), given["n_clients"], given["n_records"], given["participation_rate"], given["record_rate"],
        strict=True,
    ):  # fmt: skip
        assert batch_size(p, q, clients, n)[0] == pytest.approx(70, rel=0.01)
        runs = Learning.recorded("participation_learning", f"participation-{size}.csv")
        assert runs.rounds[-1] == given["rounds"] == 4000
        assert {curves.shape for curves in runs.curves.values()} == {(given["repeats"], 11)}
        one = ParticipationRound(p, q, n, clip_norm=given["clip_norm"])
        asked = one.noise("outer", given["epsilon"], given["delta"])
        assert runs.noise["outer"] == pytest.approx(asked, rel=1e-6)


def test_a_notebook_is_due_where_kept_numbers_that_it_reads_change_and_no_other():
    """Neither receipt nor results of a kept run count, by whose names all modules that write such files go."""
    read = {
        name: [one for one in inputs.digests(run.template, ROOT) if one.startswith("data/results/participation")]
        for name, run in schedule.plan(ROOT, "quick").runs.items()
    }
    files = [f"data/results/participation_learning/participation-{size}.csv" for size in ("large", "own", "small")]
    assert {name: found for name, found in read.items() if found} == {"participation_learning": files}


def test_checks_read_the_recorded_run():
    assert checks.final("exp-6.1", "unprotected") > checks.final("exp-6.1", "ols")
    assert checks.gap("exp-6.1", "outer", "ols") == -checks.gap("exp-6.1", "ols", "outer")
    assert not checks.in_order("exp-6.1", ["ols", "unprotected"])
    assert checks.trained_noise_ratio("outer") < 1
