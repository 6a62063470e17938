"""Figures of what shuffled shares tell: exact values, estimates beside enumeration, crowds, rules, noise, costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from matplotlib.figure import Figure

from flamebook.figures.cloak import privacy
from flamebook.figures.style import LIGHT, look
from flamebook.records import Curves
from flamelib.accounting.splitting.small_worlds import shuffled_distance


def test_the_small_table_has_the_known_fractions() -> None:
    rows = privacy.small_rows((3, 5, 7), 4, 1.0)
    assert [row[1:4] for row in rows] == [
        ("4/9", "7/27", "80/729"),
        ("16/25", "199/625", "2216/15625"),
        ("36/49", "940/2401", "22416/117649"),
    ]
    assert [float(Fraction(str(row[3]))) for row in rows] == [row[4] for row in rows]
    assert [row[5] for row in rows] == pytest.approx([0.1793, 0.2315, 0.2739], abs=1e-4)
    assert [row[6] for row in rows] == pytest.approx([16.6, 22.9, 36.8], abs=0.05)


def test_curves_of_two_users_are_in_order() -> None:
    record = privacy.compute_two_users(5, (2, 3, 6, 400), 1.0)
    assert privacy.ordered(record, "exact-distance", "own-1").holds
    assert privacy.ordered(record, "exact-delta", "own-5", "own-2", "lemma-5").holds
    assert privacy.ordered(record, "own-1", "exact-distance").holds is False
    assert record.curves["exact-distance"][:2].tolist() == [0.64, 199 / 625]
    assert math.isnan(record.curves["exact-distance"][3]), "too many multisets"
    assert set(privacy.compute_two_users(2**40 - 87, (4, 30), 1.0).curves) == {"lemma-5", "own-1", "own-2", "own-5"}


def test_estimates_agree_with_enumeration() -> None:
    record = privacy.compute_sampled(5, (2, 4, 6), 1.0, 10_000, 3)
    exact = [shuffled_distance(5, m, (0, 0), (1, -1), 0) for m in (2, 4, 6)]
    assert np.all(np.abs(record.distance - exact) <= 5 * record.error)
    assert np.all(record.error < 0.02 * record.distance)
    assert record.bounded.holds
    assert privacy.compute_sampled(5, (2,), 1.0, 1, 3).bounded.verdict == "says nothing"
    assert record.to_csv().splitlines()[0] == "n_messages,distance,standard_error,lemma-5,own-1"
    again = privacy.compute_sampled(5, (2, 4, 6), 1.0, 10_000, 3)
    assert again.distance.tolist() == record.distance.tolist()


def test_a_crowd_helps_from_three_messages_on() -> None:
    record = privacy.compute_crowd(3, (2, 3), (2, 4, 6))
    assert privacy.crowd_bounded(record).holds
    assert privacy.constant(record.curves["exact-distance:m = 2"]).holds
    assert privacy.constant(record.curves["exact-distance:m = 3"]).holds is False
    swapped = {name: 1 - values for name, values in record.curves.items()}
    assert privacy.crowd_bounded(Curves("n_users", "distance", record.x, swapped)).holds is False


def test_messages_needed_by_each_theorem() -> None:
    record = privacy.compute_needed((10, 100, 1000), 40, 32)
    assert privacy.ordered(record, "own-3", "best-1", "chained").holds
    assert record.curves["own-3"][2] == 12
    assert math.isnan(record.curves["best-1"][0])
    assert privacy.needed_rows([(100, 40, 20), (20, 40, 32)]) == [(100, 40, 20, 15, 22), (20, 40, 32, 22, 41)]


def test_chaining_takes_the_first_number_of_messages_that_serves() -> None:
    found = privacy.compute_needed((1000,), 40, 32).curves["chained"][0]
    bounds = [999 * math.sqrt(2**32 / math.comb(2 * m, m)) * 2.0**40 for m in (int(found) - 1, int(found))]
    assert bounds[0] > 1 >= bounds[1]


def test_drawings_show_what_is_computed() -> None:
    with look(LIGHT, "test") as pen:
        ax = Figure().add_subplot()
        privacy.draw_sampled(ax, privacy.compute_sampled(5, (2, 4), 1.0, 50, 3), pen)
        assert [text.get_label() for text in ax.get_lines()][:2] == ["Lemma 5 at this epsilon", "bound for two users"]
        ax = Figure().add_subplot()
        faint = Curves("epsilon", "delta", np.array([0.1, 0.9]), {"rule-t1": np.array([1e-3, 1e-300])})
        privacy.draw_by_epsilon(ax, faint, pen)
        assert ax.get_ylim()[0] == 1e-12
        ax = Figure().add_subplot()
        privacy.draw_needed(ax, privacy.compute_needed((20, 30), 10, 8), pen)
        assert ax.get_ylim()[0] == 0
        ax = Figure().add_subplot()
        privacy.draw_by_messages(ax, privacy.compute_two_users(3, (2, 3), 1.0), pen)
        assert ax.get_xscale() == "linear"
