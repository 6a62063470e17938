"""Learning under FLAME: what one more run may show, the recorded run."""

import numpy as np
import pandas as pd
import pytest

from flamebook.claims import flame, ledger
from flamebook.experiments.runs import Gap
from flamebook.places import RESULTS
from flamelib.accounting.coordinates.vector_bounds import account, topk_truncated
from flamelib.core.vocabulary import DomainError

PLACE = RESULTS / "flame_learning"


def test_a_gap_knows_its_spread_and_what_one_more_run_may_be():
    draws = np.random.default_rng(0).normal(size=(2000, 5))
    gaps = [Gap.of(row[:4]) for row in draws]
    inside = np.mean([abs(row[4] - gap.mean) <= gap.reach for row, gap in zip(draws, gaps, strict=True)])
    assert inside == pytest.approx(0.95, abs=0.02)
    with pytest.raises(DomainError, match="repeats"):
        Gap.of(np.array([1.0]))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("protocol", ["topk", "double", "simple"])
def test_recorded_local_budgets_keep_the_budget_of_a_round_and_hardly_less(protocol, epsilon):
    runs = pd.read_csv(PLACE / "flame-sound.csv").query("epsilon == @epsilon and method == @protocol")
    [epsilon0] = runs.epsilon0.unique()
    delta = 0.01 / 1000**1.1
    vector = (protocol, 7850, 1000, epsilon0, delta, "blanket", "sound")
    found = {
        "topk": lambda: topk_truncated(157, 333, epsilon0, delta),
        "double": lambda: account(*vector, 157, 333, "exact", "drop"),
        "simple": lambda: account(*vector),
    }[protocol]()
    assert 0.98 * epsilon <= found <= epsilon


def test_recorded_gaps_of_the_ledger_have_the_tolerance_of_their_runs():
    """A row's tolerance is half the interval that holds one more run, recomputed here from the recorded runs."""
    rows = [claim for claim in ledger.load() if str(claim.function).endswith("claims.flame:gap")]
    assert len(rows) == 10
    for claim in rows:
        reach = flame.recorded_gap(**claim.inputs).reach
        assert claim.tolerance * claim.paper == pytest.approx(reach, rel=0.02)


def test_checks_read_the_recorded_runs():
    assert flame.final("np") > 70
    assert flame.in_order(["ldp:Gaussian", "simple", "np"])
    assert not flame.in_order(["np", "simple"])
    assert flame.rises("epsilon0", "topk")
    assert not flame.rises("epsilon0", "topk", downwards=True)
    assert flame.step_gain("clipped", "sparse") == -flame.step_gain("sparse", "clipped")
