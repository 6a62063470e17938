"""Figures of one round of random participation: curves in order, the five claims, calibrated noise."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from flamebook.attacks.participation import Setting
from flamebook.figures import present
from flamebook.figures.curves import draw_curves
from flamebook.figures.participation import accounting as figures
from flamebook.figures.participation import accounting as over_rounds
from flamelib.core.vocabulary import DomainError

SETTING = Setting(n_records=5)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))


def test_curves_of_several_sizes_lie_between_cs_and_wcs() -> None:
    record = figures.compute_tradeoff(SETTING, [0.05, 0.2, 0.8], (1, 5, 100))
    curves = list(record.curves.values())
    assert list(record.curves) == ["ols", "wcs", "outer:L = 100", "outer:L = 5", "outer:L = 1", "cs"]
    assert all((low <= high * (1 + 1e-9)).all() for high, low in pairwise(curves))
    assert record.curves["outer:L = 1"] == pytest.approx(record.curves["cs"], rel=1e-9)
    present.show(record, draw_curves, name="tradeoff", alt="a test of a figure and its words")


def test_readings_around_the_lower_bound() -> None:
    record = figures.compute_readings(Setting(n_records=10), [0.05, 0.3])
    curves = record.curves
    assert (curves["turned"] <= curves["outer"]).all()
    assert (curves["turned"] >= curves["aligned"] * (1 - 1e-4)).all()
    assert (curves["inner"] <= curves["outer"]).all()
    assert curves["inner"][1] < curves["turned"][1]


def test_noise_curves_fall_and_answer_what_is_asked() -> None:
    noises = [0.7, 1.5, 4.0]
    by_delta = figures.compute_noise(SETTING, noises, epsilon=0.1)
    by_epsilon = figures.compute_noise(SETTING, noises, delta=1e-5)
    for record in (by_delta, by_epsilon):
        assert all((np.diff(values) < 0).all() for values in record.curves.values())
    at = replace(SETTING, noise_std=1.5)
    assert by_delta.curves["outer"][1] == at.delta("outer", 0.1)
    assert at.delta("outer", float(by_epsilon.curves["outer"][1])) == pytest.approx(1e-5, rel=1e-6)
    assert by_epsilon.parameters["round_delta"] == 1e-5


def test_at_a_fixed_product_all_coincide_where_every_client_joins() -> None:
    record = figures.compute_fixed_product(SETTING, 0.01, [0.01, 0.1, 1.0], 0.1, (5, 30))
    first = [record.curves[name][0] for name in ("ols", "wcs", "outer:L = 30", "outer:L = 5", "cs", "inner:L = 5")]
    assert first == pytest.approx([first[0]] * len(first), rel=1e-6)
    assert np.ptp(record.curves["cs"]) < 1e-12
    assert (np.diff(record.curves["outer:L = 30"]) > 0).all()
    present.show(record, draw_curves, name="product", alt="a test of a figure and its words")


def test_the_five_claims_hold_for_outer() -> None:
    grid = [Setting(0.05, 0.2, 10), Setting(0.5, 0.05, 40, 2.0)]
    found = figures.compute_claims(grid, [0.02, 0.4])
    assert [found.holds(name) for name in figures.CLAIMS] == [True] * 5
    assert found.points == 4
    assert len(found.rows()) == 5
    assert found.to_csv().startswith("claim,")


def test_a_claim_that_fails_is_seen() -> None:
    """Aligned gradients vanish as records are added, where the text says the theorem grows to WCS."""
    found = figures.compute_claims([Setting(0.1, 0.1, 10)], [0.1], scheme="aligned")
    assert not found.holds("more records: worse, up to WCS")
    assert found.holds("one record: Theorem 4.1 is CS") or found.margins["one record: Theorem 4.1 is CS"] > 0.999


def test_the_identity_of_wcs_and_ols() -> None:
    rows = figures.identity_rows([SETTING, Setting(0.3, 0.02, 4, 0.7)], 0.2)
    assert [row[-1] for row in rows] == pytest.approx([1.0, 1.0], rel=1e-10)


def test_calibrated_noise_of_the_experiments() -> None:
    """Independently computed values for the small clients, (epsilon', delta') = (0.001, 1e-6)."""
    [row] = figures.calibration_rows([Setting(0.01, 0.01, 30)], 1e-3, 1e-6)
    assert row[3:] == pytest.approx((0.9749, 1.5125, 1.0578, 1.3698, 9.8278, 25.551), rel=1e-4)
    assert len(figures.labels()) == len(row[3:])


@pytest.mark.parametrize(
    ("name", "value"),
    [("participation_rate", 0), ("record_rate", 1.5), ("n_records", 0), ("n_records", 2.5), ("noise_std", 0),
     ("noise_std", -1.0), ("clip_norm", float("nan"))],
)  # fmt: skip
def test_a_setting_outside_its_domain_is_refused(name: str, value: float) -> None:
    with pytest.raises(DomainError, match=name):
        Setting(**{name: value})  # type: ignore[arg-type]


def test_rounds_lie_above_their_lower_bound_and_begin_with_one() -> None:
    record = over_rounds.compute_rounds(SETTING, [1, 20], 1e-5)
    curves = record.curves
    assert (curves["lower"] <= curves["outer"]).all()
    assert (curves["cs"] <= curves["outer"]).all()
    assert (curves["outer"] <= curves["wcs"] * (1 + 1e-3)).all()
    assert curves["outer"][0] == pytest.approx(SETTING.epsilon("outer", 1e-5), rel=2e-3)
    assert all((np.diff(values) > 0).all() for values in curves.values())
    assert [row[0] for row in over_rounds.rows(record)] == [1, 20]
    assert over_rounds.headings(record)[-1] == "lower bound"
    present.show(record, draw_curves, name="rounds", alt="a test of a figure and its words")


def test_check_ins_are_drawn_with_the_budget_that_their_theorem_allows() -> None:
    record = over_rounds.compute_checkins(0.1, 0.5, [100, 10_000], 1e-5)
    assert record.curves["checkins"][0] == pytest.approx(0.040005, rel=1e-4)
    assert np.isinf(record.curves["checkins-noise"][0])
    assert (record.curves["checkins-noise"] > record.curves["checkins"]).all()
    assert (record.curves["cs"] < record.curves["checkins"]).all()
