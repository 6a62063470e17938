"""Learning by cloak aggregation: calibration, tables, sweeps on small digits; FLAME at equal budget; recorded runs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from flamebook.experiments import cloak as tradeoffs
from flamebook.experiments import flame
from flamebook.experiments.cloak import Setting
from flamebook.recordings import cloak as cloak_recorded
from flamebook.runs import recorded
from flamebook.runs.inputs import sha256
from flamelib.accounting.coordinates.certified import topk_truncated
from flamelib.accounting.noise.skellam import vector_epsilon
from flamelib.accounting.splitting.crowds import users_distance
from flamelib.core.vocabulary import DomainError
from flamelib.learning.cloak import security_bits
from flamelib.learning.federated import load_users

SMALL = Setting(n_users=80, rounds=3, clip_norm=0.5, scale=64, epsilon=4.0, delta=1e-5)


@pytest.fixture(scope="module")
def users():
    return load_users("digits")


# --- calibration --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colluding", [0, 300])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_the_guarantee_is_kept_shares_included(epsilon, colluding):
    """By the forward functions: noise and messages give epsilon back, and a little less noise would not."""
    setting, dimension, times = Setting(epsilon=epsilon, colluding=colluding), 7850, 3
    method = setting.cloak(dimension, times)
    bits = -math.log2(users_distance(method.modulus, method.n_messages, 1000 - colluding))
    given = {"dimension": dimension, "rounds": times, "delta": setting.delta, "security_bits": bits}
    moved = 2 * method.norm_limit
    assert vector_epsilon(sensitivity_2=moved, variance=method.variance, **given) <= epsilon
    assert vector_epsilon(sensitivity_2=moved, variance=0.99 * method.variance, **given) > epsilon
    assert bits >= security_bits(dimension, times, epsilon, setting.delta)


# --- FLAME beside it ----------------------------------------------------------------------------------------------


def test_taking_part_twice_costs_more_than_once_and_less_than_twice_as_much():
    setting = flame.Setting()
    once, twice = (tradeoffs.flame_epsilon("topk", setting, 7850, times, 1e-6) for times in (1, 2))
    assert once == topk_truncated(157, 333, 0.5, 1e-6) < twice < 2 * once


# --- sweeps -------------------------------------------------------------------------------------------------------


def test_what_is_varied_is_varied(users):
    dimension = users.model.dimension
    [clip] = tradeoffs.points(SMALL, users, "clip_norm", [1.0], {"cloak": 2.0})
    assert (clip.server_step, clip.methods["cloak"].clip_norm) == (1.0, 1.0)
    [narrow] = tradeoffs.points(SMALL, users, "log2_modulus", [9], {"cloak": 2.0})
    assert narrow.methods["cloak"].modulus == 2**9
    assert narrow.train(users, 2, 1).full["cloak"][..., 0].any(), "the sum wraps"
    [crowd] = tradeoffs.points(SMALL, users, "n_users", [170], {"server": 2.0})
    assert crowd.methods["server"] == replace(SMALL, n_users=170).server(3)
    [grid] = tradeoffs.points(SMALL, users, "scale", [32.0], {"cloak": 2.0})
    assert grid.methods["cloak"] == replace(SMALL, scale=32).cloak(dimension, 2)
    with pytest.raises(DomainError, match="experiment"):
        tradeoffs.points(SMALL, users, "momentum", [0.5], {"cloak": 2.0})


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"n_users": 1}, "n_users"),
        ({"rounds": 0}, "rounds"),
        ({"clip_norm": 0}, "clip_norm"),
        ({"scale": 0}, "scale"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"colluding": -1}, "colluding"),
        ({"colluding": 80}, "colluding"),
    ],
)
def test_a_bad_setting_is_refused_by_name(changes, name):
    with pytest.raises(DomainError, match=name):
        replace(SMALL, **changes)


# --- recorded results ---------------------------------------------------------------------------------------------


def test_the_stored_table_is_the_one_its_provenance_tells_of():
    about = recorded.provenance(cloak_recorded.TABLE)
    assert sha256(recorded.RESULTS / cloak_recorded.TABLE) == about["sha256"][cloak_recorded.TABLE]
    assert about["setting"] == cloak_recorded.SETTING.as_parameters()
    equal = cloak_recorded.recorded_sweep("epsilon")
    assert equal.x.tolist() == list(cloak_recorded.EPSILONS)
    assert {finals.shape for finals in equal.finals.values()} == {(cloak_recorded.REPEATS, len(equal.x))}
    for name, values in cloak_recorded.GRIDS.items():
        assert cloak_recorded.recorded_sweep(name).x.tolist() == list(values)


def test_recorded_noise_and_local_budgets_keep_the_guarantee():
    about = recorded.provenance(cloak_recorded.TABLE)
    for epsilon, method in about["cloak"].items():
        given = {"dimension": 7850, "rounds": 2, "delta": about["setting"]["delta"]}
        found = vector_epsilon(sensitivity_2=2 * method["norm_limit"], variance=method["variance"], **given)
        assert 0.95 * float(epsilon) < found < float(epsilon)
    setting = flame.Setting(epsilon0=about["local budgets"]["1"]["topk"])
    assert 0.95 < tradeoffs.flame_epsilon("topk", setting, 7850, 2, about["setting"]["delta"]) <= 1


def test_recorded_runs_say_what_the_page_says():
    """Cloak aggregation close to the trusted server and ahead of FLAME at every epsilon; six bits can be spared."""
    equal = cloak_recorded.recorded_sweep("epsilon")
    behind = equal.mean("server") - equal.mean("cloak")
    assert (np.abs(behind) < 3).all()
    for name in ("topk", "double", "simple"):
        assert (equal.mean("cloak") > equal.mean(name)).all()
    modulus = cloak_recorded.recorded_sweep("log2_modulus")
    assert modulus.mean("cloak")[0] < modulus.mean("cloak")[-1] - 1
    assert np.ptp(modulus.mean("cloak")[1:]) < 0.1
