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
    assert not found.holds("more records never lower delta, which tends to WCS")
    assert (
        found.holds("for one record Theorem 4.1 equals CS")
        or found.margins["for one record Theorem 4.1 equals CS"] > 0.999
    )


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
    record = figures.compute_rounds(SETTING, [1, 20], 1e-5)
    curves = record.curves
    assert (curves["lower"] <= curves["outer"]).all()
    assert (curves["cs"] <= curves["outer"]).all()
    assert (curves["outer"] <= curves["wcs"] * (1 + 1e-3)).all()
    assert curves["outer"][0] == pytest.approx(SETTING.epsilon("outer", 1e-5), rel=2e-3)
    assert all((np.diff(values) > 0).all() for values in curves.values())
    assert [row[0] for row in figures.rows(record)] == [1, 20]
    assert figures.headings(record)[-2:] == ["lower bound", "aligned (one data set)"]
    present.show(record, draw_curves, name="rounds", alt="a test of a figure and its words")


def test_check_ins_are_drawn_with_the_budget_that_their_theorem_allows() -> None:
    record = figures.compute_checkins(0.1, 0.5, [100, 10_000], 1e-5)
    assert record.curves["checkins"][0] == pytest.approx(0.040005, rel=1e-4)
    assert np.isinf(record.curves["checkins-noise"][0])
    assert (record.curves["checkins-noise"] > record.curves["checkins"]).all()
    assert (record.curves["cs"] < record.curves["checkins"]).all()


def test_one_check_in_is_accounted_for_down_to_the_smallest_delta() -> None:
    record = figures.compute_checkins(0.1, 0.5, [100], 1e-300)
    assert np.isinf(record.curves["checkins-noise"][0])
    assert np.isfinite(record.curves["checkins"][0])


def test_a_delta_too_small_for_a_number_is_no_ratio() -> None:
    [row] = figures.identity_rows([SETTING], 1e6)
    assert np.isnan(row[-1])


# --- statements and words ---------------------------------------------------------------------------------------------


def test_the_order_is_told_of_curves_that_have_it_and_of_those_that_have_not() -> None:
    record = figures.compute_tradeoff(SETTING, [0.05, 0.2], (5,))
    named = replace(record, curves=dict(record.curves) | {"outer": record.curves["outer:L = 5"]})
    assert figures.in_order(named).holds
    assert not figures.in_order(named, figures.ORDER[::-1]).holds
    assert figures.ends(record) == "at the left end CS is at 0.00031 and OLS at 0.026"


def test_words_on_readings_follow_the_numbers() -> None:
    """Others are worse than equal gradients at ten records, not at five; for one record there are no others."""
    words = {}
    for size in (1, 5, 10):
        setting = Setting(n_records=size)
        words[size] = figures.reading_words(setting, 0.1, figures.compute_readings(setting, [0.1, 1.0]))
    assert words[10]["aligned_beside"] == "gradients at some angle lose up to 4,300 times as much"
    assert words[1]["aligned_beside"] == "no angle that was tried loses more"
    assert words[5]["inner_below"] == "lies below what certain gradients really lose at all 2 budgets"
    assert words[1]["inner_below"] == "lies below what certain gradients really lose at none of the 2 budgets"
    assert words[5]["beside_cs"] == (
        "outer and inner are at 2.52 and 1.23 times CS for a client of 2 records, "
        "at 6.67 and 2.18 times CS for a client of 5 records"
    )
    far = figures.reading_words(SETTING, 1e6, figures.compute_readings(SETTING, [1e6]))
    assert far["aligned_beside"] == "no angle loses a noticeable amount"


def test_words_on_check_ins_compare_with_the_local_budget() -> None:
    words = figures.checkin_words(figures.compute_checkins(0.1, 0.5, [1000, 10_000], 1e-5))
    assert words["checkins_noise"] == "infinite for 1,000 slots and 2.04 for 10,000 slots"
    assert words["checkins_worth"].startswith("never less")
    assert words["checkins_single"] == "0 for 1,000 and 10,000 slots"
    rare = figures.checkin_words(figures.compute_checkins(0.001, 0.5, [1000, 10_000], 1e-5))
    assert rare["checkins_worth"] == "less than the local budget of the message at all 2 windows"


def test_words_on_rounds_round_to_the_safe_side() -> None:
    record = figures.compute_rounds(SETTING, [20], 1e-5)
    low, high = (float(record.curves[name][-1]) for name in ("lower", "turning"))
    assert record.curves["aligned"] <= record.curves["lower"] <= record.curves["turning"] <= record.curves["outer"]
    _, least, _, most = figures.round_words(record)["rounds_before"].split()
    assert float(least) <= record.curves["aligned"][-1] <= record.curves["outer"][-1] <= float(most)
    _, least, _, most = figures.round_words(record)["rounds_between"].split()
    assert float(least) <= low <= high <= float(most)
    assert figures.round_words(record)["rounds_order"] == "The curves have the same order as in one round."
    turned = replace(record, curves=dict(record.curves) | {"cs": 2 * record.curves["ols"]})
    assert figures.round_words(turned)["rounds_order"] != "The curves have the same order as in one round."


def test_less_noise_has_to_be_asked_for_in_every_table() -> None:
    low, high = (0.1, 0.1, 5, 1, 1, 1, 1, 1, 1), (0.1, 0.1, 5, 1, 2, 2, 2, 2, 2)
    assert (
        figures.less_noise([[high, low]], 0, 1)
        == "outer (certified), inner (no bound), aligned (one data set), WCS and OLS"
    )
    assert figures.less_noise([[high, low], [low, low]], 0, 1) == "no scheme"
