"""Learning with self check-in: the run at the sizes of the paper that is kept, and the ledger's checks of it."""

import json

import pytest

from flamebook.claims import checkin as checks
from flamebook.experiments.runs import Learning
from flamebook.places import RESULTS
from flamelib.accounting.noise.gaussian import analytic_noise_std


def test_the_recorded_run_is_the_notebooks_at_the_sizes_of_the_paper():
    receipt = json.loads((RESULTS / "checkin_learning" / "receipt.json").read_text())
    given = receipt["parameters"]
    assert given["model"] == "cnn"
    assert given["rounds"] == [2000, 5540]
    assert [rate * 0.8 for rate in given["checkin_rate"]] == pytest.approx([1e-4, 0.1])
    for crowd, epsilon0, repeats in zip(
        ("large", "small"), given["epsilon0"], (given["repeats"], given["small_repeats"]), strict=True
    ):
        runs = Learning.recorded("checkin_learning", f"checkin-{crowd}.csv")
        assert {curves.shape for curves in runs.curves.values()} == {(repeats, 21)}
        noise = analytic_noise_std(2 * given["clip_norm"], epsilon0, 1e-5)
        assert runs.noise["gaussian"] == pytest.approx(noise, rel=1e-9)


def test_checks_read_the_recorded_run():
    assert checks.in_order("large", ["unprotected", "gaussian"])
    assert not checks.in_order("large", ["gaussian", "unprotected"])
    assert checks.final("large", "unprotected") > checks.final("large", "gaussian")
