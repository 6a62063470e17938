"""Learning under FLAME: settings, runs and gaps on the digits inside scikit-learn; the recorded results read back."""

import math
from dataclasses import replace

import numpy as np
import pytest

from flamebook.claims import flame, ledger
from flamebook.experiments import flame as flame_learning
from flamebook.experiments import flame as flame_methods
from flamebook.experiments import flame_grid
from flamebook.experiments.flame import Setting
from flamebook.experiments.runs import Gap
from flamebook.recordings import flame as flame_recorded
from flamebook.recordings import flame as record_learning
from flamebook.runs import recorded
from flamebook.runs.inputs import sha256
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.core.vocabulary import DomainError
from flamelib.learning.federated import load_users

SMALL = Setting(n_users=150, padded=60, rounds=3)


@pytest.fixture(scope="module")
def users():
    return load_users("digits")


@pytest.fixture(scope="module")
def runs(users):
    return flame_learning.compute_runs(users, SMALL, flame_methods.all_methods(SMALL, users.model.dimension), 3, 1)


# --- settings and methods -----------------------------------------------------------------------------------------


def test_the_setting_is_that_of_the_experiments():
    setting = Setting()
    assert setting.kept(7850) == 157
    assert replace(setting, sampling_rate=0.1).kept(7850) == 785
    assert setting.delta == pytest.approx(5.0118723e-6, rel=1e-8)
    assert setting.epsilon0 * setting.kept(7850) == 78.5
    assert flame_methods.simple(setting, 7850).randomizer.epsilon0 == pytest.approx(0.01)


def test_baselines_keep_the_printed_budgets():
    """0.24 with sampling, 20.53 without, 2.348 at one coordinate in ten, 0.91 for SS-Simple."""
    setting = Setting()
    assert flame_methods.claimed_epsilon(setting, 7850) == pytest.approx(0.237926, abs=2e-6)
    assert flame_methods.claimed_epsilon(setting, 7850, "unsampled") == pytest.approx(20.5352544, abs=1e-6)
    assert flame_methods.claimed_epsilon(setting, 7850, protocol="simple") == pytest.approx(0.910056, abs=1e-6)
    dense = flame_methods.dense(setting)
    assert (dense.kept(7850), dense.padded) == (785, 666)
    assert flame_methods.claimed_epsilon(dense, 7850) == pytest.approx(2.348191, abs=1e-6)
    methods = flame_methods.all_methods(setting, 7850)
    assert methods["topk:dense"] == flame_methods.topk(dense, 7850)
    assert methods["dp:claimed"].noise_std == pytest.approx(37.1, abs=0.05)
    assert methods["dp:claimed"].clip_norm == pytest.approx(0.886, abs=1e-4)
    assert methods["ldp:Gaussian"].noise_std == pytest.approx(1.645e5, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "name"),
    [({"n_users": 1}, "n_users"), ({"epsilon0": 0}, "epsilon0"), ({"sampling_rate": 2}, "sampling_rate"),
     ({"padded": 1}, "padded"), ({"clip_norm": -1}, "clip_norm"), ({"rounds": 0}, "rounds")],
)  # fmt: skip
def test_a_bad_setting_is_refused_by_name(changes, name):
    with pytest.raises(DomainError, match=name):
        Setting(**changes)


# --- runs and gaps ------------------------------------------------------------------------------------------------


def test_runs_start_alike_and_a_seed_fixes_them(users, runs):
    assert {curves[:, 0].tobytes() for curves in runs.curves.values()} == {runs.curves["np"][:, 0].tobytes()}
    again = flame_learning.compute_runs(users, SMALL, {"topk": flame_methods.topk(SMALL, 650)}, 3, 1)
    assert np.array_equal(again.curves["topk"], runs.curves["topk"])
    other = flame_learning.compute_runs(users, SMALL, {"topk": flame_methods.topk(SMALL, 650)}, 3, 2)
    assert not np.array_equal(other.curves["topk"], runs.curves["topk"])


def test_methods_that_see_more_learn_more(runs):
    final = {name: runs.final(name).mean() for name in runs.curves}
    assert final["np"] > final["topk"] > final["ldp:Gaussian"]
    assert runs.curves["np"].shape == (3, 4)
    assert runs.full["topk"].shape == (3, 3, 2)


def test_repeated_noise_is_the_same_for_random_coordinates_and_not_for_chosen_ones():
    """Noise of two rounds from one generator state, on users who know nothing in common."""
    setting = replace(SMALL, clip_norm=1e-6)
    methods = {"double": flame_methods.double(setting, 650), "topk": flame_methods.topk(setting, 650)}
    found = {}
    for name, method in methods.items():
        aggregate = flame_methods.aggregate(method, repeat_noise=True)
        rounds = [
            aggregate(np.random.default_rng(n).normal(size=(150, 650)).astype(np.float32), np.random.default_rng(9))
            for n in (1, 2)
        ]
        found[name] = float(np.corrcoef(*(one.estimate for one in rounds))[0, 1])
    assert found["double"] > 0.95 > 0.8 > found["topk"]


def test_a_gap_knows_its_spread_and_what_one_more_run_may_be():
    gap = Gap.of(np.array([1.0, 2.0, 3.0, 4.0]))
    assert (gap.mean, gap.spread) == (2.5, pytest.approx(1.290994))
    assert gap.agrees(2.5 + 0.99 * gap.reach)
    assert not gap.agrees(2.5 + 1.01 * gap.reach)
    assert str(gap) == "2.50 ± 1.29"
    with pytest.raises(DomainError, match="repeats"):
        Gap.of(np.array([1.0]))


# --- sweeps -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sweeps(users):
    grids = {"padded": [2, 60, 100], "server_step": [1, 4], "epsilon": [1.0, 100.0], "multiples": [1, 4]}
    return {name: flame_grid.compute_sweep(users, SMALL, name, values, 2, 1) for name, values in grids.items()}


# --- equal budgets ------------------------------------------------------------------------------------------------


def test_certified_budgets_are_those_of_the_protocols_as_they_are_trained():
    found = {name: flame_grid.certified_epsilon(Setting(), 7850, name) for name in ("topk", "double", "simple")}
    assert found["topk"] == pytest.approx(2.1177, abs=1e-3)
    assert found["double"] == pytest.approx(0.1573, abs=1e-4)
    assert found["simple"] == pytest.approx(0.0903, abs=1e-4)


def test_at_a_sound_budget_everything_keeps_it_and_hardly_less():
    setting, epsilon = Setting(n_users=200, padded=100), 0.7
    [point] = flame_grid.points(setting, 500, "sound", [epsilon])
    local = {name: getattr(method, "randomizer", None) for name, method in point.methods.items()}
    for name in ("topk", "double", "double:told", "simple"):
        share = setting.kept(500) / 500 if name == "simple" else 1.0
        here = replace(setting, epsilon0=local[name].epsilon0 / share)
        assert 0.98 * epsilon <= flame_grid.certified_epsilon(here, 500, name) <= epsilon
    assert point.methods["double"].inclusion == "exact"
    assert local["double"].epsilon0 > 2 * local["double:told"].epsilon0, "blocks are worth it"
    assert local["double:told"].epsilon0 > local["topk"].epsilon0, "one set of coordinates changes, not two"
    clip = setting.clip_norm * math.sqrt(500)
    server, alone = point.methods["dp"].noise_std, point.methods["ldp"].noise_std
    assert server == pytest.approx(analytic_noise_std(2 * clip, epsilon, setting.delta))
    assert 2 * setting.clip_norm * alone == pytest.approx(server), "the same noise, but of every user"


# --- recorded results ---------------------------------------------------------------------------------------------


def test_the_stored_table_is_the_one_its_provenance_tells_of():
    about = recorded.provenance(flame_recorded.TABLE)
    assert sha256(recorded.RESULTS / flame_recorded.TABLE) == about["sha256"][flame_recorded.TABLE]
    assert about["sizes"]["mnist"]["users"] == 6000
    assert about["sizes"]["mnist"]["of these held by users"] == 1138
    for dataset in ("mnist", "fashion-mnist"):
        for noise in ("fresh", "repeated"):
            assert flame_recorded.recorded_runs(dataset, noise).curves["topk"].shape == (about["repeats"], 13)
    for experiment, values in record_learning.GRIDS.items():
        assert set(flame_recorded.recorded_sweep(experiment).x) <= set(values)


def test_recorded_gaps_of_the_ledger_have_the_tolerance_of_their_runs():
    """A row's tolerance is half the interval that holds one more run, recomputed here from the recorded runs."""
    rows = [claim for claim in ledger.load() if str(claim.function).endswith("claims.flame:gap")]
    assert len(rows) == 10
    for claim in rows:
        reach = flame.recorded_gap(**claim.inputs).reach
        assert claim.tolerance * claim.paper == pytest.approx(reach, rel=0.02)
        assert claim.paper == flame_learning.GAPS[claim.inputs["claim"]][2]


def test_checks_read_the_recorded_runs():
    assert flame.final("np") > 70
    assert flame.in_order(["ldp:Gaussian", "simple", "np"])
    assert not flame.in_order(["np", "simple"])
    assert flame.rises("epsilon0", "topk")
    assert not flame.rises("epsilon0", "topk", downwards=True)
    assert flame.step_gain("clipped", "sparse") == -flame.step_gain("sparse", "clipped")
