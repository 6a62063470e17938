"""Learning with self check-in: settings, tables, figures on small digits; recorded runs."""

import math
from dataclasses import replace

import pytest

from flamebook.claims import checkin as checks
from flamebook.experiments import checkin as learning
from flamebook.experiments.checkin import Setting
from flamebook.recordings import checkin as checkin_recorded
from flamebook.recordings import checkin as record_checkin
from flamebook.runs import recorded
from flamebook.runs.inputs import sha256
from flamelib.core.vocabulary import DomainError
from flamelib.learning.records import load_records
from flamelib.mechanisms.vectors import CapMessages, GaussianMessages

SMALL = Setting(1500, 0.2, 6.0, 12, dropout=0.25, clip_norm=0.5)


@pytest.fixture(scope="module")
def records():
    return load_records("digits", pool=2)


@pytest.fixture(scope="module")
def runs(records):
    return learning.compute_learning(records, SMALL, 2, 1, points=4)


def test_every_scheme_gets_its_randomizer():
    found = {name: scheme.randomizer for name, scheme in SMALL.schemes(100).items()}
    assert found["privunit2"] == CapMessages.privunit2(100, 6.0, 0.5)
    assert found["duchi"] == CapMessages.duchi(100, 6.0, 0.5)
    assert found["gaussian"] == GaussianMessages(100, 0.5, SMALL.noise_std)
    assert found["noiseless"] == GaussianMessages(100, 0.5, 0.0)
    assert found["unprotected"] == GaussianMessages(100, math.inf, 0.0)
    assert SMALL.noise_std == pytest.approx(2 * replace(SMALL, clip_norm=0.25).noise_std)
    assert Setting(100, 0.1, 2.0, 1, clip_norm=0.5).noise_std == pytest.approx(1.9938, abs=1e-4)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Setting(1, 0.1, 1.0, 1), "n_users"),
        (lambda: Setting(100, 1.1, 1.0, 1), "checkin_rate"),
        (lambda: Setting(100, 0.1, 0.0, 1), "epsilon0"),
        (lambda: Setting(100, 0.1, 1.0, 0), "rounds"),
        (lambda: Setting(100, 0.1, 1.0, 1, dropout=1.0), "dropout"),
        (lambda: Setting(100, 0.1, 1.0, 1, steps={}), "steps"),
        (lambda: Setting(100, 0.1, 1.0, 1, steps={"laplace": 1.0}), "steps"),
    ],
)
def test_a_bad_setting_is_refused_by_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()


# --- recorded results ---------------------------------------------------------------------------------------------


def test_the_stored_table_is_the_one_its_provenance_tells_of():
    about = recorded.provenance(checkin_recorded.TABLE)
    assert sha256(recorded.RESULTS / checkin_recorded.TABLE) == about["sha256"][checkin_recorded.TABLE]
    for experiment, setting in (("large", record_checkin.LARGE), ("small", record_checkin.SMALL)):
        found = checkin_recorded.recorded(experiment)
        assert tuple(found.curves) == learning.NAMES
        assert found.parameters["rounds"] == setting.rounds
        assert found.curves["privunit2"].shape == (found.parameters["repeats"], record_checkin.POINTS + 1)


def test_recorded_runs_say_what_the_page_says():
    """It learns at a local budget of 2, and shorter messages learn more: they alone come to about 90 %."""
    assert checks.final("small", "privunit2", "softmax") > 80
    assert checks.in_order("large", ["unprotected", "noiseless", "privunit2", "duchi"], "softmax")
    assert not checks.in_order("large", ["duchi", "privunit2"], "softmax")
    assert checks.final("large", "privunit2", "softmax") > 89.5 > checks.final("large", "duchi", "softmax")
