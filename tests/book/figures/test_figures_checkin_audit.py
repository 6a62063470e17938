"""The audit of self check-in: what Lemma 3 gives, small crowds, rounds left out, and the data of the others."""

import math
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import binom

from flamebook.attacks.checkin import BinaryCheckin
from flamebook.figures.checkin import audit
from flamebook.figures.curves import draw_positive
from flamebook.figures.style import LIGHT, look
from flamebook.records import Curves
from flamelib.accounting.checkin.theorems import exact_renyi


def labels(draw: Any, record: Any) -> list[str]:
    """What the legend says of a figure that is drawn but not rendered."""
    with look(LIGHT, "test") as pen:
        ax = Figure().add_subplot()
        draw(ax, record, pen)
        return ax.get_legend_handles_labels()[1]


def test_lemma_3_gives_next_to_nothing_where_binary_response_has_almost_one() -> None:
    record = audit.compute_lemma(8, 1.0, [1e-12, 1e-5, 0.1])
    moment = (math.sinh(8) - math.sinh(7)) / math.sinh(1)
    assert record.curves["response"] == pytest.approx([math.log(moment) / 7] * 3, rel=1e-12)
    assert record.curves["lemma-3"][1] == pytest.approx(0.0288, abs=5e-5)
    assert record.curves["lemma-3"][0] < 1e-8
    assert (np.diff(record.curves["lemma-3"]) > 0).all()
    assert labels(draw_positive, record) == ["binary response", "what Lemma 3 gives"]


def test_a_leak_is_private_with_its_chance_and_has_any_divergence() -> None:
    """The law is listed: nothing, or a coin of bias ``exp(budget)``, seen with probability delta."""
    delta, budget, order = 1e-3, 4.0, 8
    high = 1 / (1 + math.exp(-budget))
    first, second = [1 - delta, delta * high, delta * (1 - high)], [1 - delta, delta * (1 - high), delta * high]
    assert sum(max(p - q, 0) for p, q in zip(first, second, strict=True)) <= delta
    by_hand = math.log(sum(p**order * q ** (1 - order) for p, q in zip(first, second, strict=True))) / (order - 1)
    record = audit.compute_leaks(order, [delta, 1e-8], [budget, 40.0, 80.0])
    assert record.curves[delta][0] == pytest.approx(by_hand, rel=1e-12)
    assert all(
        values[2] - values[1] == pytest.approx(40 * order / (order - 1), rel=0.2) for values in record.curves.values()
    )
    assert all(record.levels[one] < 1e-3 * record.curves[one][0] for one in record.curves)
    assert record.finding.holds
    assert labels(audit.draw_leaks, record)[:2] == ["leaks with chance 0.001", "Lemma 3 at 0.001"]
    assert record.to_csv().count("\n") == 4


def test_the_route_through_lemma_3_ends_below_what_is_certainly_lost() -> None:
    record = audit.compute_route(10_000, 0.01, 1.0, 100_000, [1e-12, 1e-6])
    assert (record.curves["generic"] < record.curves["lower"] / 10).all()
    assert (np.diff(record.curves["generic"]) > 0).all()


def test_theorem_2_as_printed_falls_below_binary_response() -> None:
    """Ten clients at a rate of 1e-3, order 2; moments less one."""
    record = audit.compute_small_crowds(10, 1.0, 2, [1e-3, 0.5])
    excess = {name: np.expm1(values) for name, values in record.curves.items()}
    chance = math.expm1(1) ** 2 / math.e
    listed = sum(binom.pmf(k, 10, 1e-3) * (k / 10) ** 2 * chance / k for k in range(1, 11))
    assert excess["exact-response"][0] == pytest.approx(listed, rel=1e-10)
    assert excess["exact-response"][0] == pytest.approx(1.086e-4, rel=1e-3)
    assert excess["thm-2-paper"][0] == pytest.approx(1.97e-5, rel=2e-2)
    assert (record.curves["thm-2"] >= record.curves["exact-response"]).all()
    assert audit.repaired(record).holds
    assert audit.small_crowds_alt(record).endswith("; the repaired form never does.")


def test_the_table_of_few_clients_has_theorem_1_on_both_sides() -> None:
    rows = audit.few_rows(0.3, 1.0)
    assert [row[:2] for row in rows] == [(2, 2), (2, 8), (4, 3), (8, 2)]
    assert {len(row) for row in rows} == {len(audit.FEW_HEADER)}
    assert [row[3] for row in rows] == pytest.approx([row[2] for row in rows], rel=1e-9)
    assert rows[0][4] < rows[0][2]


def test_every_case_of_the_audit_is_refuted_by_its_numbers() -> None:
    two, data_sets = BinaryCheckin(2, 0.3, 1.0), audit.compute_data_sets(BinaryCheckin(3, 1.0, 1.0), 2)
    crowd = audit.compute_small_crowds(10, 1.0, 2, [1e-3, 0.5])
    lemma = audit.compute_lemma(8, 1.0, [1e-10])
    orders = audit.compute_orders(600_000, 1e-3, 1.0, 400, [2, 40])
    cases = audit.cases(two, 2, crowd, lemma, orders, data_sets)
    assert [one.row()[1] for one in cases] == ["refuted"] * 5
    assert (cases[-1].claimed, cases[-1].found) == (data_sets.mixed[1], data_sets.mixed[0])


def test_the_floor_of_figure_2_and_the_window_that_does_not_see_it() -> None:
    record = audit.compute_orders(600_000, 1e-3, 1.0, 400, [18, 19, 20, 22])
    full, window = record.curves["all-counts"], record.curves["likely-counts"]
    assert record.curves["eq-10"][1:3] == pytest.approx([3.65e-7, 1.51], rel=5e-3)
    assert full[3] > 1 > 1e-6 > window[3]
    assert (window <= full * (1 + 1e-9)).all()
    assert len(labels(audit.draw_orders, record)) == 3


@pytest.mark.parametrize(("order", "at_least"), [(2, 1), (5, 3), (12, 9)])
def test_the_sum_from_a_count_on_against_its_definition(order: int, at_least: int) -> None:
    n, rate, noise = 30, 0.2, 0.7
    total = mpmath.mpf(0)
    for k in range(at_least, n + 1):
        inside = mpmath.mpf(k) / n
        moment = sum(
            mpmath.binomial(order, j) * (1 - inside) ** (order - j) * inside**j
            * mpmath.exp(2 * j * (j - 1) / (k * mpmath.mpf(noise) ** 2))
            for j in range(order + 1)
        )  # fmt: skip
        total += mpmath.binomial(n, k) * mpmath.mpf(rate) ** k * (1 - mpmath.mpf(rate)) ** (n - k) * (moment - 1)
    expected = mpmath.log1p(total) / (order - 1)
    assert audit.likely_renyi(order, n, rate, noise, at_least) == pytest.approx(float(expected), rel=1e-9)
    assert audit.likely_renyi(order, n, rate, noise, 1) == pytest.approx(exact_renyi(order, n, rate, noise), rel=1e-9)


def test_a_window_in_a_small_crowd_is_refuted() -> None:
    record = audit.compute_windowed(200, 0.05, 0.5, 3, [1e-5, 1e-8])
    assert record.finding.holds
    assert record.words() == "at 1 of the 2 values of $\\delta$"
    assert record.exact == pytest.approx([2.6588, 12.1277], rel=1e-4)
    whole = audit.compute_windowed(200, 0.05, 0.5, 1, [1e-5, 1e-8])
    assert whole.finding.holds is False
    assert whole.words() == "at none of the 2 values of $\\delta$"
    assert len(record.rows()) == 2


@pytest.mark.parametrize(("noise", "least", "most"), [(1e5, 0, 0), (0.01, 5e3, 1e5), (1e-90, 1e180, 1e182)])
def test_much_and_little_noise_have_an_exact_epsilon(noise: float, least: float, most: float) -> None:
    """Without noise to speak of a single client costs about 2 over the variance: some do come alone."""
    exact = audit.compute_windowed(200, 0.05, noise, 3, [1e-6]).exact[0]
    assert least <= exact <= most


def test_what_is_said_of_a_jump() -> None:
    given = (600_000, 1e-3)
    jumped = audit.jump(audit.compute_orders(*given, 1.0, 400, [20, 22]))
    assert jumped.startswith("At order 22 the exact divergence is 24,000,000 times that of")
    assert audit.jump(audit.compute_orders(*given, 2.0, 400, [20, 22])).startswith("Up to order 22 the sum without")
    nothing = dict.fromkeys(["all-counts", "likely-counts"], np.array([math.nan]))
    silent = Curves("order", "renyi", np.array([2.0]), nothing, {"at_least": 3})
    assert audit.jump(silent).startswith("Nothing could be computed")
    assert math.isnan(audit.compute_orders(10**12, 0.5, 1e-9, 3, [40]).curves["all-counts"][0])


def test_words_for_curves_that_lie_below_others() -> None:
    record = Curves("checkin_rate", "renyi", np.array([0.1, 0.2]), {
        "a": np.array([1.0, 3.0]), "b": np.array([2.0, 2.0]), "generic": np.array([0.1, 0.3]),
        "lower": np.array([0.2, 0.2]),
    })  # fmt: skip
    assert audit.below_words(record, "a", "b") == "at 1 of the 2 points of the figure, up to a rate of 0.1"
    assert audit.below_words(record, "b", "b") == "at none of the 2 points of the figure"
    assert audit.route_words(record).endswith("at 1 of 2 points below the 0.2 that binary response *certainly* loses")
    assert audit.inner_words([(2, 2, 1.0, 1.0, 0.5), (8, 2, 1.0, 1.0, 1.2)]) == "1 of these 2 cases"
    assert audit.inner_words([(2, 2, 1.0, 1.0, 0.5)] * 2) == "all of these 2 cases"
    assert audit.inner_words([(8, 2, 1.0, 1.0, 1.2)] * 2) == "none of these 2 cases"


def test_the_exact_delta_of_one_round_against_its_reference() -> None:
    assert audit._pair_delta(200, 0.1, 1.0, 0.5) == pytest.approx(9.8445e-8, rel=1e-4)


def test_others_who_differ_are_worse_than_others_who_agree() -> None:
    """Three users, total variation: a third coin that is even hides less."""
    record = audit.compute_data_sets(BinaryCheckin(3, 1.0, 1.0), 5)
    flip = 1 / (1 + math.e)
    laws = []
    for bits in ((0, 1, 1), (0, 1, 0)):
        law = [0.0] * 4
        for reports in product((0, 1), repeat=3):
            law[sum(reports)] += math.prod(1 - flip if b == r else flip for b, r in zip(bits, reports, strict=True))
        laws.append(law)
    by_hand = sum(max(p - q, 0) for p, q in zip(*laws, strict=True))
    assert record.curves[1][0] == pytest.approx(by_hand, rel=1e-12)
    assert record.gain >= (1 - 1e-12) * by_hand / record.curves[0][0] > 1.13
    assert record.finding.holds
    assert record.mixed[0] == pytest.approx(by_hand, rel=1e-12)
    assert record.mixed[1] == record.curves[0][0]
    assert record.row() == (3, 1.0, record.mixed[1], record.mixed[0], record.gain)
    assert len(record.row()) == len(audit.DATA_SETS_HEADER)
    assert record.highest() == "first that of 1 others who hold 1, then that of 2"
    assert record.words() == "$\\delta$ at $\\varepsilon=0$ is 0.2804 against 0.247 if they hold the same"
    certain = audit.compute_data_sets(BinaryCheckin(3, 1.0, 700.0), 3)
    assert certain.words() == "here by less than the digits of $\\delta$ show"
    assert certain.highest() == "no single one, for all agree to the last digit"
    five = audit.compute_data_sets(BinaryCheckin(5, 1.0, 0.1), 52)
    assert five.highest() == "first that of 2 others who hold 1, changes 8 times, and is that of 4 at last"
    alike = audit.compute_data_sets(BinaryCheckin(2, 1.0, 1.0), 5)
    assert alike.gain == pytest.approx(1, rel=1e-12)
    assert alike.finding.holds is None
    assert labels(audit.draw_data_sets, record)[-1] == "2 of the others hold 1"
    assert record.to_csv().startswith("epsilon,0 others hold 1,")
