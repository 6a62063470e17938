"""Figures of self check-in over many rounds: curves in order, the values of the document's figures, calibration."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from flamebook.figures.checkin import accounting as figures
from flamebook.figures.checkin.accounting import Distributed, Shuffled
from flamebook.figures.curves import draw_curves, draw_positive
from flamebook.figures.style import LIGHT, look
from flamebook.records import Curves
from flamelib.core.vocabulary import DomainError

CENTRE = Shuffled(n_users=10**6, checkin_rate=1e-3, rounds=10**5, epsilon0=1.0)
SUMS = Distributed(n_users=600_000, checkin_rate=1e-3, rounds=10**5, noise_std=1.0, delta=1e-8)


def test_any_randomizer_was_certified_by_fewer_clones_before() -> None:
    setting = Shuffled(n_users=1000, checkin_rate=0.2, rounds=10, epsilon0=1.0)
    names = ("checkin-clones", "checkin-any", "lower-any", "lower")
    record = figures.compute_along(setting, "rounds", [1, 10], names)
    assert figures.ordered([record], "lower", "lower-any", "checkin-any", "checkin-clones").holds
    assert record.curves["checkin-clones"][-1] > 1.1 * record.curves["checkin-any"][-1]
    before = figures.words_of_training(record)["training_before"]
    assert before.startswith("at most 0.")
    assert float(before.split()[-1]) >= record.curves["checkin-clones"][-1]
    infinite = replace(record, curves={"checkin-clones": np.array([math.inf])})
    assert figures.words_of_training(infinite)["training_before"] == "not bounded"
    assert not set(figures.THEN_AND_NOW) & set(figures.compute_along(setting, "rounds", [1]).curves)


def test_shuffled_curves_are_in_order_and_have_the_values_of_figure_1() -> None:
    record = figures.compute_along(CENTRE, "n_users", [10**6])
    assert figures.ordered([record], "lower", "checkin-binary", "checkin-any", "thm-2", "baseline-closed").holds
    found = {name: float(values[0]) for name, values in record.curves.items()}
    assert found["thm-2-paper"] == pytest.approx(0.2234, rel=0.01)
    assert found["thm-3"] == pytest.approx(0.0367, rel=0.01)
    ratios: dict[Any, Any] = {row[:2]: row[2] for row in figures.ratio_rows(record)}
    assert 6 < ratios["baseline, closed form", "Thm 2 as printed (no bound)"] < 8
    assert 1.7 < ratios["baseline, clones by numbers", "Thm 2 as printed (no bound)"] < 2.2
    assert 10 < ratios["baseline, clones by numbers", "Thm 3, converted (no bound)"] < 13


def test_theorem_3_converted_is_no_lower_bound() -> None:
    """After a thousand rounds of ten million clients even any randomizer is certified to lose less."""
    one = Shuffled(n_users=10**7, checkin_rate=1e-3, rounds=1000, epsilon0=1.0)
    assert one.epsilon("checkin-any") < one.epsilon("thm-3")


def test_noisy_sums_have_the_values_of_figure_2() -> None:
    record = figures.compute_along(SUMS, "rounds", [10**5])
    assert figures.ordered([record], "lower", "losses", "renyi-cut", "renyi", "eq-10-exact", "eq-10", "eq-11").holds
    expected = {"eq-10": 0.8422, "eq-10-exact": 0.7618, "renyi": 0.7270, "baseline-kov": 2.08, "baseline-drv": 2.19}
    for name, value in expected.items():
        assert record.curves[name][0] == pytest.approx(value, rel=2e-3), name
    assert record.curves["losses"][0] == pytest.approx(0.1197, rel=0.04)
    assert [row[0] for row in figures.rows(record)][-2:] == ["privacy losses (certified)", "lower bound"]


def test_moments_have_a_floor_that_losses_do_not_have() -> None:
    few, many = (SUMS.at("rounds", rounds) for rounds in (100, 10_000))
    assert few.epsilon("eq-10") > 0.99 * many.epsilon("eq-10") > 0.79
    assert few.epsilon("losses") < 0.1 * many.epsilon("losses")
    assert few.epsilon("baseline-kov") < few.epsilon("renyi")


def test_a_setting_moves_along_an_axis() -> None:
    assert CENTRE.failure == 1e-6
    assert CENTRE.at("n_users", 1e5).failure == 1e-5
    assert SUMS.at("n_users", 1e5).failure == 1e-8
    assert CENTRE.at("rounds", 10).where == CENTRE.where
    assert "delta" not in CENTRE.as_parameters()


def test_what_is_silent_is_left_out() -> None:
    record = Curves("rounds", "total_epsilon", np.array([1.0, 2.0]), {
        "lower": np.array([0.1, math.nan]), "losses": np.array([0.2, 0.1]), "eq-10": np.array([0.1, 0.3]),
        "thm-3": np.array([math.nan, math.nan]),
    })  # fmt: skip
    assert figures.ordered([record], "lower", "losses").holds
    assert figures.ordered([record], "losses", "eq-10").numbers == "0.2 against 0.1"
    assert figures.ordered([record], "lower", "losses", "thm-3").holds is None
    assert figures.lowest_ratio([record], "eq-10", "losses") == 0.5
    end = "at the right end, from the largest: Eq. 10 (no bound) (0.3) and privacy losses (certified) (0.1)"
    assert figures.right_end(record) == f"{end}; nothing there: lower bound and Thm 3, converted (no bound)"


def test_a_scheme_without_an_answer_is_silent_and_one_round_is_a_point() -> None:
    one = Distributed(n_users=100, checkin_rate=0.5, rounds=1, noise_std=1e-300)
    assert math.isnan(one.epsilon("eq-10-exact"))
    record = figures.compute_along(one, "rounds", figures.rounds_grid(1, 3), ("eq-10-exact", "losses", "lower"))
    with look(LIGHT, "test") as pen:
        ax = Figure().add_subplot()
        draw_positive(ax, record, pen)
    assert [line.get_marker() for line in ax.get_lines()] == ["^", "o", "o"]
    assert figures.certified(record, "losses") == f"not bounded, and at least {one.epsilon('lower'):.4g}"


def test_words_of_the_paper_are_ratios_of_its_curves() -> None:
    rising = np.array([1.0, 2.0, 4.0, 8.0])
    curves = dict.fromkeys(figures.SHUFFLED, 10 * rising) | {"checkin-any": rising, "thm-3": rising}
    curves["checkin-binary"] = rising - [0, 0, 0, 1]
    found = figures.words_of_users(Curves("n_users", "total_epsilon", rising, curves), [
        Curves("n_users", "total_epsilon", rising, curves)
    ])  # fmt: skip
    assert found["slack"] == "10 times and 10 times"
    assert (found["binary_crossing"], found["any_crossing"], found["crossing_points"]) == ("1", "none", "4 points")
    flat = {name: np.ones(5) for name in figures.DISTRIBUTED} | {"losses": np.arange(1.0, 6)}
    told = figures.words_of_sums(Curves("rounds", "total_epsilon", np.arange(1.0, 6), flat))
    assert (told["rise_eq_10"], told["rise_losses"], told["sums_gap"]) == ("0 %", "3 times", "0 % to 80 %")


def test_a_figure_names_its_curves() -> None:
    record = figures.compute_along(SUMS, "rounds", [10, 1000], ("eq-10", "baseline-kov"))
    with look(LIGHT, "test") as pen:
        ax = Figure().add_subplot()
        draw_curves(ax, record, pen)
    assert ax.get_legend_handles_labels()[1] == ["Eq. 10 (no bound)", "baseline, Kairouz et al."]
    assert record.parameters["noise_std"] == 1.0
    assert "rounds" not in record.parameters


@pytest.mark.parametrize(("budget", "kept"), [(0.05, True), (3.0, False)])
def test_a_calibration_is_checked(budget: float, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for a local budget has tests of its own; here one budget keeps the target and one does not."""
    monkeypatch.setattr(figures, "largest_epsilon0", lambda *_, **__: budget)
    monkeypatch.setattr(figures, "distributed_noise", lambda *_: 3.0)
    crowd = Shuffled(n_users=200, checkin_rate=0.5, rounds=3, epsilon0=1.0)
    found = figures.compute_calibration(crowd, 1.0)
    assert found.kept.holds == kept
    assert found.reached[0] == crowd.at("epsilon0", budget).epsilon("checkin-any")
    assert len(found.rows()) == 5


@pytest.mark.parametrize(
    ("noise", "reached", "words"),
    [(0.0, 0.0, "no noise is needed"), (math.inf, math.nan, "no noise was found"), (3.0, None, "so does a noise of 3")],
)
def test_noise_that_is_not_needed_or_not_found(
    noise: float, reached: float | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "largest_epsilon0", lambda *_, **__: 30.0 if noise else 0.5)
    monkeypatch.setattr(figures, "distributed_noise", lambda *_: noise)
    found = figures.compute_calibration(Shuffled(n_users=200, checkin_rate=0.5, rounds=3, epsilon0=1.0), 100.0)
    assert reached is None or found.reached[1] == pytest.approx(reached, nan_ok=True)
    assert found.kept.holds is (None if math.isinf(noise) else True)
    assert words in found.words()
    assert ("no larger one is looked for" in found.words()) == bool(noise)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_users", 1), ("checkin_rate", 1.5), ("rounds", 0), ("delta", 2.0), ("epsilon0", 0), ("n_users", math.nan)],
)
def test_a_setting_outside_its_domain_is_refused(name: str, value: Any) -> None:
    given: dict[str, Any] = {"n_users": 100, "checkin_rate": 0.1, "rounds": 10, "epsilon0": 1.0} | {name: value}
    with pytest.raises(DomainError, match=name):
        Shuffled(**given)
