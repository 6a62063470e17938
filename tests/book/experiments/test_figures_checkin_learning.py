"""Learning with self check-in: settings, tables, figures on small digits; recorded runs."""

import csv
import io
import math
from dataclasses import replace

import numpy as np
import pytest

from flamebook.claims import checkin as checks
from flamebook.experiments import checkin as checkin_spent
from flamebook.experiments import checkin as learning
from flamebook.experiments.checkin import Setting
from flamebook.experiments.runs import Learning
from flamebook.figures import present
from flamebook.figures.together import learning as drawn
from flamebook.recordings import checkin as checkin_recorded
from flamebook.recordings import checkin as record_checkin
from flamebook.recordings.checkin import Job
from flamebook.recordings.participation import Key
from flamebook.runs import record as recorder
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


def test_the_published_rates_are_effective_ones():
    large, small = record_checkin.LARGE, record_checkin.SMALL
    assert large.effective_rate == pytest.approx(1e-4)
    assert small.effective_rate == pytest.approx(0.1)
    assert (large.epsilon0, small.epsilon0, large.rounds, small.rounds) == (8.0, 2.0, 2000, 5540)


def test_messages_of_the_table_have_the_known_lengths():
    rows = learning.message_rows(record_checkin.LARGE, {"network": 26_010})
    assert [row[0] for row in rows] == ["PrivUnit2", "Duchi et al.", "Gaussian noise"]
    assert [row[1] for row in rows[:2]] == pytest.approx([58.8, 202.3], abs=0.05)


def test_runs_start_alike_and_a_seed_fixes_them(records, runs):
    assert runs.rounds.tolist() == [0, 3, 6, 9, 12]
    assert {curves[:, 0].tobytes() for curves in runs.curves.values()} == {runs.curves["duchi"][:, 0].tobytes()}
    again = learning.compute_learning(records, SMALL, 2, 1, points=4)
    assert all(np.array_equal(again.curves[name], runs.curves[name]) for name in runs.curves)
    assert tuple(runs.curves) == learning.NAMES


def test_schemes_may_be_trained_apart(records, runs):
    parts = [
        learning.compute_learning(records, replace(SMALL, steps={name: learning.STEPS[name]}), 2, 1, points=4)
        for name in learning.NAMES[2:4]
    ]
    for part, name in zip(parts, ["privunit2", "duchi"], strict=True):
        assert list(part.curves) == [name]
        assert np.array_equal(part.curves[name], runs.curves[name])


def test_figures_have_words_on_their_axes_and_their_numbers_beside_them(runs, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    seen = []

    def watched(ax, given, pen):
        drawn.draw_learning(ax, given, pen)
        seen.append((ax.get_xlabel(), ax.get_ylabel(), len(ax.get_lines())))

    present.show(runs, watched, name="learning", alt="A figure of the test.")
    assert all(x and y and lines == 5 for x, y, lines in seen)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "figures" / "learning.csv").read_text())))
    assert len(rows) == 5 * 2 * 5
    assert [row[0] for row in learning.scheme_rows(runs)][:2] == ["no privacy", "clipped, no noise"]


def test_a_model_stands_at_what_its_rounds_cost(runs, monkeypatch, tmp_path):
    """Epsilon rises with the rounds, accuracy is that of the run, and both kinds of scheme have their accountants."""
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    for scheme, accountants in (("duchi", checkin_spent.SHUFFLED), ("gaussian", checkin_spent.DISTRIBUTED)):
        found = checkin_spent.compute_spent(runs, scheme, points=2)
        assert found.rounds.tolist() == [3, 12]
        assert np.array_equal(found.accuracy, runs.curves[scheme][:, [1, 4]])
        assert set(found.epsilon) == set(accountants)
        assert all(0 < first < last for first, last in found.epsilon.values())
        present.show(found, drawn.draw_spent, name=f"spent-{scheme}", alt="A figure of the test.")
        assert len(checkin_spent.spent_rows(found)) == 4
        assert len(found.to_csv().splitlines()) == 1 + 4 * 2 * 2


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
        (lambda: learning.settings([100], [0.1, 0.2], [1.0], [1], dropout=0, clip_norm=1), "one length"),
    ],
)
def test_a_bad_setting_is_refused_by_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()


def test_words_follow_the_runs():
    """One scheme ahead of the other, and the other way round."""

    def made(**finals):
        curves = {name: np.array([[0.1, value], [0.1, value + 0.002]]) for name, value in finals.items()}
        return Learning(np.array([0, 9]), curves, dict.fromkeys(curves, 1.0), {**SMALL.as_parameters()})

    good = made(privunit2=0.9, duchi=0.85, gaussian=0.7)
    bad = made(privunit2=0.5, duchi=0.9, gaussian=0.7)
    curves = {"any": 0.06, "numerical": 135.0, "thm-2": 179.0, "thm-3": 0.03}
    spent = learning.Spent("privunit2", np.array([9.0]), good.curves["privunit2"],
                           {name: np.array([value]) for name, value in curves.items()}, {})  # fmt: skip
    told = learning.recorded_words(good, bad, good, spent)
    assert told["learned"] == "does not hold"
    assert told["small_lead"].startswith("PrivUnit2 is no better than Duchi et al. there, in spite of messages")
    assert told["reached"].startswith("reached by the network with PrivUnit2 (90.10 ± 0.14 %) and softmax")
    assert told["reached"].endswith("not reached by softmax regression with Duchi et al. (85.10 ± 0.14 %) and softmax "
                                    "regression with Gaussian noise (70.10 ± 0.14 %)")  # fmt: skip
    assert told["spent_gain"] == "3,000 times"
    assert learning.recorded_words(bad, good, good, spent)["learned"] == "holds"
    assert [one.holds for one in learning.recorded_findings(good, good, spent)] == [True, True, True]
    assert [one.holds for one in learning.recorded_findings(bad, bad, spent)] == [False, False, True]
    assert learning.ranking(bad) == (
        "at the end, from the most accurate: Duchi et al. (90.1 %), Gaussian noise (70.1 %) and PrivUnit2 (50.1 %)"
    )
    assert learning.spent_ranking(spent).startswith("after the last round, from the least epsilon: Thm 3, converted")
    words = learning.setting_words("own", {**good.parameters, "repeats": 1})
    assert list(words.values()) == ["1,500", "6", "12 rounds", "1 run"]


# --- recorded results ---------------------------------------------------------------------------------------------


def test_what_is_recorded_is_read_back(records, runs, folder, monkeypatch):
    for name, value in (("DATASET", "digits"), ("SEED", 1), ("POINTS", 4)):
        monkeypatch.setattr(record_checkin, name, value)
    monkeypatch.setattr(record_checkin, "JOBS", {Key("large", "softmax"): Job(2, 2, SMALL)})
    assert recorder.record(record_checkin.RECORDING)
    found = checkin_recorded.recorded("large")
    assert found.rounds.tolist() == runs.rounds.tolist()
    for name, curves in runs.curves.items():
        assert found.curves[name] == pytest.approx(curves, abs=1e-5)
        assert found.noise[name] == runs.noise[name]
    about = recorded.provenance(checkin_recorded.TABLE)
    assert about["runs"]["large"]["softmax"]["learning rates"] == learning.STEPS
    assert len(about["commit"]) == 40
    assert checkin_recorded.findings()["softmax_large_duchi"] == learning.shown(found.final("duchi"))
    with pytest.raises(DomainError, match="experiment"):
        checkin_recorded.recorded("small")


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
