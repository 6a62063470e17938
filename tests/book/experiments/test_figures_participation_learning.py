"""Learning with random participation: settings, paired differences and figures on small digits; recorded runs."""

import numpy as np
import pytest

from flamebook.claims import participation as checks
from flamebook.experiments import participation as learning
from flamebook.experiments.participation import Setting
from flamebook.experiments.runs import Gap, half_width
from flamebook.recordings import participation
from flamebook.recordings.participation import Size
from flamebook.runs import record as recorder
from flamebook.runs import recorded
from flamebook.runs.inputs import sha256
from flamelib.core.vocabulary import DomainError
from flamelib.learning.records import load_records
from flamelib.protocols.participation import batch_size

SMALL = Setting(30, 0.3, 0.2, epsilon=0.05, delta=1e-5, rounds=40, learning_rate=0.05, slow_learning_rate=1e-6)


@pytest.fixture(scope="module")
def records():
    return load_records("digits", pool=2)


@pytest.fixture(scope="module")
def runs(records):
    return learning.compute_learning(records, SMALL, 3, 1, points=4)


# --- settings -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "outer", "inner", "wcs", "ols"),
    [((0.001, 0.1, 30), 3.5586, 1.4737, 18.018, 37.801), ((0.1, 0.001, 1000), 1.1518, 0.8583, 1.2430, 1.4799)],
)
def test_noise_is_calibrated_at_the_guarantee_of_a_round(rates, outer, inner, wcs, ols):
    """Values computed independently, at (0.01, 1e-7) and clip 1."""
    p, q, n_records = rates
    schemes = Setting(n_records, p, q).schemes()
    for name, expected in (("outer", outer), ("inner", inner), ("wcs", wcs), ("ols", ols)):
        assert schemes[name].noise_std == pytest.approx(expected, abs=6e-5 * max(1, expected))
    assert schemes["noiseless"].noise_std == schemes["unprotected"].noise_std == 0
    assert schemes["unprotected"].clip_norm == np.inf


def test_the_settings_of_both_experiments_draw_seventy_records():
    for setting in participation.SETTINGS.values():
        n_clients = 124_800 // setting.n_records
        mean, _ = batch_size(setting.participation_rate, setting.record_rate, n_clients, setting.n_records)
        assert mean == pytest.approx(70, rel=0.01)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Setting(0, 0.1, 0.1), "n_records"),
        (lambda: Setting(30, 0, 0.1), "participation_rate"),
        (lambda: Setting(30, 0.1, 2), "record_rate"),
        (lambda: Setting(30, 0.1, 0.1, rounds=0), "rounds"),
        (lambda: Setting(30, 0.1, 0.1, slow_learning_rate=-1), "learning_rate"),
    ],
)
def test_a_bad_setting_is_refused_by_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()


# --- runs ---------------------------------------------------------------------------------------------------------


def test_without_noise_more_is_learned_and_a_tiny_step_learns_nothing(runs):
    assert runs.final("unprotected").mean() > 70
    assert runs.ahead("unprotected", "ols")
    assert not runs.ahead("ols", "unprotected")
    assert runs.gap("noiseless", "ols").mean > 0
    assert runs.final("ols:slow") == pytest.approx(100 * runs.curves["ols"][:, 0], abs=1)


def test_the_interval_of_a_mean_covers_it_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(loc=0.3, size=(2000, 4))
    gaps = [Gap.of(row) for row in draws]
    inside = np.mean([abs(gap.mean - 0.3) <= half_width(gap) for gap in gaps])
    assert inside == pytest.approx(0.95, abs=0.02)


# --- recorded results ---------------------------------------------------------------------------------------------


def test_what_is_recorded_is_read_back(records, runs, folder, monkeypatch):
    monkeypatch.setattr(participation, "DATASET", "digits")
    monkeypatch.setattr(participation, "SETTINGS", {"6.1": SMALL})
    monkeypatch.setattr(participation, "SEED", 1)
    monkeypatch.setattr(participation, "POINTS", 4)
    monkeypatch.setattr(participation, "SIZES", {"softmax": Size(2, 40, 3, slow=True)})
    assert recorder.record(participation.RECORDING)
    found = participation.recorded("6.1", "softmax")
    assert found.rounds.tolist() == runs.rounds.tolist()
    assert found.parameters == runs.parameters
    for name, curves in runs.curves.items():
        assert found.curves[name] == pytest.approx(curves, abs=1e-5)
        assert found.noise[name] == runs.noise[name]
    about = recorded.provenance(participation.TABLE)
    assert about["runs"]["6.1"]["softmax"]["clients"] == 50
    assert len(about["commit"]) == 40
    with pytest.raises(DomainError, match="experiment"):
        participation.recorded("6.2", "softmax")


def test_the_stored_table_is_the_one_its_provenance_tells_of():
    about = recorded.provenance(participation.TABLE)
    table = recorded.RESULTS / participation.TABLE
    assert sha256(table) == about["sha256"][participation.TABLE]
    for experiment, setting in participation.SETTINGS.items():
        for model, size in participation.SIZES.items():
            found = participation.recorded(experiment, model)
            assert found.curves["outer"].shape == (size.repeats, participation.POINTS + 1)
            assert found.parameters["rounds"] == size.rounds
            assert found.noise["outer"] == pytest.approx(setting.noise_std("outer"), rel=1e-6)


def test_checks_read_the_recorded_runs():
    for model in participation.SIZES:
        assert checks.final("exp-6.1", "unprotected", model) > checks.final("exp-6.1", "ols", model)
        assert checks.gap("exp-6.1", "outer", "ols", model) == -checks.gap("exp-6.1", "ols", "outer", model)
        assert not checks.in_order("exp-6.1", ["ols", "unprotected"], model)
        assert checks.trained_noise_ratio("outer", model) < 1
