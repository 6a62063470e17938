"""The numbers behind the figures of FLAME's budgets: printed digits, order of bounds, ratios."""

import csv
import dataclasses
import io
import math

import numpy as np
import pytest

from flamebook.figures import present
from flamebook.figures.curves import draw_rates
from flamebook.figures.flame import accounting, ratios
from flamelib.accounting.coordinates import index_privacy
from flamelib.core.vocabulary import DomainError

# As in the experiments, but quick: a tenth of forty coordinates and bags of sixty for a hundred users.
SMALL = accounting.Setting(dimension=40, n_users=100, kept=4, padded=40, epsilon0=0.5, delta=1e-4)


def columns(record):
    header, *rows = csv.reader(io.StringIO(record.to_csv()))
    return dict(zip(header, zip(*rows, strict=True), strict=True))


# --- the printed budgets ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed():
    return accounting.compute_printed()


def test_the_withdrawn_form_gives_the_printed_budgets(printed):
    assert printed.reproduced
    assert printed.printed == (0.91, 0.24, 20.53, 2.348)
    assert printed.values["withdrawn"] == pytest.approx([0.910056, 0.237927, 20.535254, 2.348191], rel=5e-6)
    other = dataclasses.replace(printed, values={"withdrawn": (0.91, 0.24, 20.53, 2.35)})
    assert not other.reproduced


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("bennett", [0.927808, 0.304505, 26.0431, 2.919140]),
        ("hoeffding", [0.896581, 0.309157, 25.8048, 3.031349]),
        ("blanket", [0.793699, 0.238861, 19.5897, 2.403808]),
    ],
)
def test_the_same_formulas_with_bounds_that_are_some(printed, bound, expected):
    assert printed.values[bound] == pytest.approx(expected, rel=1e-5)


# --- then and now ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def now():
    return accounting.compute_then_and_now(accounting.FIGURE_5)


def test_lower_bounds_are_below_certified_ones(now):
    assert now.order.holds
    for protocol, found in now.budgets.items():
        low, high = now.interval(protocol)
        assert found["lower"] <= low <= high
        assert found["certified"] <= high
    assert now.interval("topk") == (now.budgets["topk"]["lower-full"], now.budgets["topk"]["certified-full"])


def test_the_order_has_power(now):
    for key, protocol, bound in (
        ("lower", "simple", "certified"),
        ("lower-full", "topk", "certified-full"),
        ("certified", "exactly", "certified-before"),
        ("lower-before", "topk", "lower"),
    ):
        found = dict(now.budgets[protocol])
        high = found[bound]
        wrong = dict(now.budgets) | {protocol: found | {key: 1.01 * high}}
        assert accounting.ThenAndNow(wrong, now.parameters).order.holds is False


def test_the_printed_budgets_are_held_between_certified_bounds(now):
    verdicts = {row[0]: row[-1] for row in now.verdicts()}
    assert verdicts == {
        "SS-Simple": "holds",
        "SS-Double, independent": "holds",
        "SS-Double, exactly k": "holds",
        "SS-Topk": "refuted",
        "SS-Topk, bags overflow": "refuted",
    }
    moved = {"topk": now.budgets["topk"] | {"withdrawn": 1.3}}
    assert [row[-1] for row in accounting.ThenAndNow(moved, now.parameters).verdicts()] == ["open", "refuted"]


def test_equal_top_coordinates_bound_full_bags_from_below(now):
    found = now.budgets["topk"]
    assert found["lower"] < found["lower-full"]
    assert found["certified"] < found["certified-full"]


def test_bags_with_room_for_everybody_do_not_overflow():
    """Then both accounts are one; and neither lower bound has to be below the other, to be below its own upper one."""
    roomy = accounting.compute_then_and_now(dataclasses.replace(SMALL, padded=SMALL.n_users), ["topk"])
    found = roomy.budgets["topk"]
    assert (found["lower-full"], found["certified-full"]) == (found["lower"], found["certified"])
    assert roomy.order.holds
    moved = {"topk": found | {"lower-full": 0.9 * found["lower"], "lower-before": 0.5 * found["lower"]}}
    assert accounting.ThenAndNow(moved, roomy.parameters).order.holds
    tight = accounting.compute_then_and_now(SMALL, ["topk"]).budgets["topk"]
    assert tight["lower"] <= tight["lower-full"] < tight["certified-full"]


def test_rows_leave_out_what_a_protocol_lacks(now):
    rows = {label: values for label, *values in now.rows()}
    assert rows["lower bound, bags overflow"][:3] == [""] * 3
    assert rows["certified before"][:2] == ["", ""] == rows["lower bound before"][1:3]
    assert len(columns(now)) == 5


def test_what_was_known_before_is_what_needs_no_theorem_of_this_book(now):
    exactly, topk = now.budgets["exactly"], now.budgets["topk"]
    assert exactly["certified-before"] == pytest.approx(1.444, abs=1e-3)
    assert (exactly["certified"], exactly["lower"]) == pytest.approx((0.1573, 0.1436), abs=1e-4)
    assert (topk["lower-before"], topk["lower"]) == pytest.approx((1.198, 1.286), abs=1e-3)
    assert exactly["certified"] >= now.budgets["double"]["certified"]


def test_overflow_lists_the_bags_that_others_can_fill(now):
    overflow = accounting.compute_overflow([now])
    [(name, filled, *budgets)] = overflow.rows()
    assert name == "1 coordinate in 50, 333 in a bag"
    assert filled == 314, "two groups of 157: 314 * 333 reports of 999 others with 157 each"
    assert budgets == [now.budgets["topk"][key] for key in
                       ("withdrawn", "lower", "certified", "lower-full", "certified-full")]  # fmt: skip


def test_simple_with_more_budget_adds_the_noise_of_double_and_keeps_about_its_budget():
    (_, few, noise, double), (_, many, same, simple) = accounting.same_noise(accounting.FIGURE_5)
    assert (few, many) == (157, 7850)
    assert noise == pytest.approx(same, rel=1e-12)
    assert double < simple < 1.1 * double, "equal to second order in the budget of a coordinate"
    assert accounting.FIGURE_5.epsilon("simple") < 0.6 * double


def test_theorem_4_crosses_the_lower_bound_and_the_certified_budget_does_not():
    setting = accounting.Setting(dimension=75755, n_users=5000, padded=1666, delta=0.01 / 5000**1.1)
    record = accounting.compute_sampling_rate(setting, [0.0005, 0.2])
    first, last = zip(*(record.curves[key] for key in ("theorem-4", "lower", "certified")), strict=True)
    assert first[0] < 0.25 * first[1] <= 0.25 * first[2]
    assert last[1] <= last[2] < last[0]


def test_certified_budgets_are_asked_for_at_some_points_only():
    record = accounting.compute_overall(accounting.FIGURE_5, "vector_epsilon0", [78.5, 100.0, 150.0], every=3)
    assert np.isnan(record.curves["certified:SS-Simple"]).tolist() == [False, True, True]
    for protocol, name in (("simple", "SS-Simple"), ("double", "SS-Double")):
        assert np.isfinite(record.curves[f"lower:{name}"]).all()
        assert record.curves[f"certified:{name}"][0] == accounting.FIGURE_5.epsilon(protocol), "157 halves are 78.5"


def test_more_coordinates_share_the_same_local_budget():
    record = accounting.compute_overall(accounting.FIGURE_5, "dimension", [7850.0, 15700.0, 31400.0], every=3)
    assert record.curves["lower:SS-Double"][0] == accounting.FIGURE_5.lower("double")
    assert (np.diff(record.curves["lower:SS-Simple"]) < 0).all()
    assert set(record.parameters) == {"n_users", "padded", "delta"}


# --- ratios ----------------------------------------------------------------------------------------------------------


def test_figure_3_has_its_printed_ratios_at_the_inferred_parameters():
    setting = ratios.RatioSetting()
    at = ratios.INFERRED_EPSILON0
    assert (setting.simple(at), setting.double(at)) == pytest.approx((2.55264, 137.3550), rel=1e-6)
    for name, value in ratios.PRINTED.items():
        assert abs(getattr(setting, name)(at) - value) < 0.01


def test_counting_every_coordinate_takes_most_of_the_ratio():
    record = ratios.compute_ratio(ratios.RatioSetting(), np.array([0.05, 0.4, 0.8, 1.9]))
    curves = record.curves
    assert np.isnan(curves["double"][3])
    assert np.isfinite(curves["simple"]).all()
    assert (curves["double-hidden"][:3] < curves["double"][:3] / 5).all()
    assert (curves["unshuffled"] >= 1 - 1e-12).all(), "the least epsilon is rounded up"
    assert curves["unshuffled"][0] > curves["simple"][0], "composition alone does better than Lemma 1 there"


def test_the_region_of_index_privacy():
    region = ratios.compute_region((0.1, 0.02), 101)
    for rate in (0.1, 0.02):
        least = region.least[rate]
        assert least[0] == pytest.approx(1 / rate)
        assert region.most[rate] == round(1 / rate)
        assert (least[np.isfinite(least)] <= region.most[rate] * (1 + 1e-12)).all()
        assert np.isnan(least[region.index_privacy > 1.01 / rate]).all()
    assert len(columns(region)) == 5


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.4])
def test_the_branches_of_the_least_multiples_meet_where_the_page_says(rate):
    meeting = (1 - rate) / rate
    assert 1 / (meeting * rate) == pytest.approx(meeting / (meeting - 1 + rate)) == pytest.approx(1 / (1 - rate))
    least = index_privacy.least_multiples
    assert least(rate, 0.9 * meeting) == pytest.approx(1 / (0.9 * meeting * rate))
    assert least(rate, 1.1 * meeting) == pytest.approx(1.1 * meeting / (1.1 * meeting - 1 + rate))


def test_the_ratio_of_a_list_is_that_of_all_its_choices():
    rows = ratios.index_rows(1000, 7850, 157, [1, 16])
    assert [row[2] for row in rows] == [math.inf, pytest.approx(3.125)]
    for count, _, _, ratio in rows:
        exact = math.comb(7850, 157) // math.comb(count * 157, 157)
        assert ratio == f"10^{round(math.log10(exact))}"


def test_bounds_follow_the_rates_of_the_corollaries():
    record = ratios.compute_rates(7850, 0.02, 0.5, 1e-6, [10**6, 10**8, 10**10])
    for name, slope in record.slopes.items():
        assert slope.exponent == pytest.approx(-0.5, abs=0.06)
        scaled = record.scaled.curves[name]
        assert (np.diff(scaled) < 0).all()
        assert 1 < scaled[-1] < 10


# --- drawing ---------------------------------------------------------------------------------------------------------


def figures(now):
    overall = accounting.compute_overall(accounting.FIGURE_5, "vector_epsilon0", [78.5, 100.0, 150.0], every=3)
    ratio = ratios.compute_ratio(ratios.RatioSetting(), np.array([0.1, 0.8]))
    rates = ratios.compute_rates(7850, 0.02, 0.5, 1e-6, [10**6, 10**7, 10**8])
    yield "then-and-now", now, accounting.draw_then_and_now
    yield "overall", overall, accounting.draw_overall
    yield "ratio", ratio, ratios.draw_ratio
    yield "region", ratios.compute_region((0.1, 0.02), 5), ratios.draw_region
    yield "rates", rates, draw_rates


def test_every_figure_is_drawn_with_words_on_its_axes_and_its_numbers_beside(now, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    for name, record, draw in figures(now):
        seen = []

        def watched(ax, given, pen, draw=draw, seen=seen):
            draw(ax, given, pen)
            named = ax.get_ylabel() or all(tick.get_text() for tick in ax.get_yticklabels())
            seen.append(not ax.axison or (ax.get_xlabel() and named))

        present.show(record, watched, name=name, alt="A figure of the test.")
        assert seen, name
        assert all(seen), name
        assert len(columns(record)) >= 3, name


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: dataclasses.replace(SMALL, kept=50).epsilon("double"), "kept"),
        (lambda: dataclasses.replace(SMALL, epsilon0=math.nan).epsilon("simple"), "epsilon0"),
        (lambda: dataclasses.replace(SMALL, padded=1).lower("topk"), "padded"),
        (lambda: ratios.compute_region((0.1, 2.0), 5), "sampling_rate"),
        (lambda: ratios.index_rows(1, 100, 5, [1]), "n_users"),
    ],
)
def test_bad_input_is_refused_with_its_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()
