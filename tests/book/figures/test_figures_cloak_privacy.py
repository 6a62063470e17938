"""Figures of what shuffled shares tell: exact values, estimates beside enumeration, crowds, rules, noise, costs."""

import math
from fractions import Fraction

import numpy as np
import pytest
from matplotlib.figure import Figure

from flamebook.figures.cloak import parameters, privacy
from flamebook.figures.style import LIGHT, look
from flamebook.records import Curves
from flamelib.accounting.splitting.small_worlds import shuffled_distance, subset_counts
from flamelib.core.vocabulary import DomainError


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


def test_tables_of_subsets_are_those_of_one_row() -> None:
    rng = np.random.default_rng(7)
    for half in (1, 3, 5):
        messages = rng.integers(0, 6, (4, 2 * half))
        for row, counts in zip(messages, privacy.subset_tables(messages, 6), strict=True):
            expected = subset_counts(tuple(row.tolist()), 6)
            assert counts.tolist() == [expected.get(residue, 0) for residue in range(6)]
    assert privacy.subset_tables(np.zeros((1, 64), dtype=np.int64), 2).max() == math.comb(64, 32)
    for columns in (3, 66):
        with pytest.raises(DomainError, match="messages"):
            privacy.subset_tables(np.zeros((1, columns), dtype=np.int64), 2)


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


def test_rules_have_the_known_parameters() -> None:
    noisy = parameters.noisy_rows([(1.0, 1e-6, 1000), (1.0, 1e-6, 10**6)])
    assert [row[3:6] for row in noisy] == [(54, "23,328,000,001", 1890), (64, "30,000,000,000,001", 2880)]
    assert [row[7:9] for row in noisy] == [(27, 675), (37, 1665)]
    assert [row[9:11] for row in noisy] == [(8, 200), (7, 315)]
    exact = parameters.exact_rows([(1.0, 1e-6, 100, 0.01)])
    assert exact[0][4:] == (10_000, 67, "3,039,092,619,303", 2814, 29, 580, 10, 200)


def test_the_least_noise_keeps_the_promise_and_less_does_not() -> None:
    noises = parameters.compute_noises(1000, 1.0, 1e-6)
    rule, lean, polya = noises.errors
    assert rule == pytest.approx(4.6916, abs=1e-4)
    assert polya == pytest.approx(1.0, abs=1e-6)
    assert rule / 3 < lean < rule / 2
    assert noises.thinned(1, epsilon=1.0) <= 5e-7 == noises.half_delta
    less = math.exp(math.log(noises.decays[1]) * 1.01)
    tighter = parameters.Noises(1000, 10_000, 1.0, 5e-7, noises.noise_rate, (noises.decays[0], less), 5.985)
    assert tighter.thinned(1, epsilon=1.0) > 5e-7
    released = parameters.compute_released(noises, (0.5,))
    assert privacy.ordered(released, "rule-t1", "least-thinned", "polya").holds
    assert released.curves["rule-t1"][0] == pytest.approx(2.17e-8, rel=0.01)


def test_costs_of_every_protocol() -> None:
    bits, errors = parameters.compute_costs((20, 1000, 10**6), 1.0, 1e-6)
    assert bits.curves["rule-t1"].tolist() == [1890, 1890, 2880]
    assert bits.curves["mix-best-1"].tolist()[1:] == [275, 315]
    assert math.isnan(bits.curves["recursive"][0])
    assert privacy.ordered(bits, "mix-own-3", "mix-best-1", "rule-t1", "bonawitz").holds
    assert not {"bonawitz", "sharp-t1", "mix-best-1"} & set(errors.curves)
    assert errors.curves["mix-own-3"] == pytest.approx([1, 1, 1], rel=1e-5)


def test_plans_are_listed_from_the_cheapest() -> None:
    rows = parameters.plan_rows(1000, 1.0, 1e-6, 2.0, 100, 1)
    prices = [int(str(row[-2])) for row in rows]
    assert prices == sorted(prices)
    assert {row[1] for row in rows} == {"replace-one", "sum-preserving"}


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
