"""The numbers behind the figures of the blanket part: published values, order of bounds, error against theory."""

import csv
import io
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from flamebook.figures import present
from flamebook.figures.blanket import amplification, audit, histogram, message
from flamebook.figures.blanket import summation as blanket_summation
from flamebook.figures.curves import draw_curves, draw_rates
from flamebook.records import whole_grid
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile
from flamelib.core.vocabulary import DomainError
from flamelib.protocols.blanket import HistogramProtocol, SummationProtocol

DELTA = 1e-6
DECADES = [10**3, 10**4, 10**5, 10**6]
SMALL = [10**2, 10**3, 10**4, 10**5]


def columns(record):
    header, *rows = csv.reader(io.StringIO(record.to_csv()))
    return dict(zip(header, zip(*rows, strict=True), strict=True))


# --- the authors' figures: values of the corrected bounds, computed independently in the research for this book ------


def test_the_first_figure_has_its_published_points():
    curves = amplification.compute_epsilons(AnyProfile(0.5), DECADES, DELTA).curves
    assert math.isinf(curves["erlingsson"][0])
    assert curves["erlingsson"][1:] == pytest.approx([0.22302, 0.070524, 0.022302], rel=5e-5)
    assert curves["hoeffding"] == pytest.approx([0.18316, 0.053996, 0.015875, 0.0046210], rel=5e-5)
    assert curves["bennett"] == pytest.approx([0.31606, 0.090653, 0.026593, 0.0077673], rel=5e-5)


@pytest.mark.parametrize(
    ("family", "hoeffding", "bennett"),
    [
        ("2-ary", [0.22596, 0.64868, 1.65278, 3.45086], [0.19625, 0.62878, 1.63519, 3.43248]),
        ("100-ary", [0.21489, 0.56535, 1.23061, 2.18201], [0.72515, 1.74481, 2.91261, 4.23321]),
        ("Laplace", [0.22531, 0.63488, 1.50041, 2.78422], [0.20187, 0.68009, 1.84888, 3.79558]),
    ],
)
def test_the_second_and_third_figures_have_their_published_points(family, hoeffding, bennett):
    curves = amplification.compute_local_budgets(SMALL, 0.1, DELTA, {"hoeffding": [family], "bennett": [family]}).curves
    assert curves[f"hoeffding:{family}"] == pytest.approx(hoeffding, abs=6e-6)
    assert curves[f"bennett:{family}"] == pytest.approx(bennett, abs=6e-6)


def test_the_second_figure_treats_every_randomizer_and_stays_silent_where_erlingsson_does():
    families = {"erlingsson": ["any randomizer"], "hoeffding": ["any randomizer"]}
    curves = amplification.compute_local_budgets(SMALL, 0.1, DELTA, families).curves
    assert curves["hoeffding:any randomizer"] == pytest.approx([0.11266, 0.31744, 0.75021, 1.39211], abs=6e-6)
    assert np.isnan(curves["erlingsson:any randomizer"][0])


def test_the_fourth_figure_has_its_published_points():
    curves = amplification.compute_growing_alphabet(SMALL, 0.1).curves
    assert curves["hoeffding"] == pytest.approx([0.29163, 0.58014, 1.11839, 1.90299], abs=6e-6)
    assert curves["bennett"] == pytest.approx([0.35834, 1.00321, 2.09610, 3.53198], abs=6e-6)


@pytest.mark.parametrize("root", [1, 2, 9, 10, 46, 1000, 99999])
def test_the_whole_cube_root_is_exact_at_and_below_cubes(root):
    assert amplification.whole_cube_root(root**3) == root
    assert amplification.whole_cube_root(root**3 - 1) == (root - 1 if root > 1 else 0)


# --- then and now ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [KaryProfile(1.5, 2), KaryProfile(1.5, 10), LaplaceProfile(1.0), AnyProfile(1.5)])
def test_bounds_of_all_generations_are_in_order(profile):
    record = amplification.compute_epsilons(profile, [300, 30_000], DELTA)
    assert set(record.curves) == set(amplification.known_bounds(profile))
    assert amplification.in_order(record).holds
    best = "any" if isinstance(profile, AnyProfile) else "blanket"
    wrong = dict(record.curves) | {"lower": record.curves[best] * 1.01}
    wrong_record = amplification.Curves("n_users", "epsilon", record.x, wrong, record.parameters)
    assert amplification.in_order(record, wrong_record).holds is False


def test_only_binary_response_has_an_exact_curve_and_clones_of_2023_are_left_out_where_unproved():
    assert "exact" in amplification.known_bounds(KaryProfile(1.0, 2))
    assert "exact" not in amplification.known_bounds(KaryProfile(1.0, 3))
    assert "clones-2023" not in amplification.known_bounds(LaplaceProfile(1.0))


def test_the_withdrawn_bound_falls_below_what_two_data_sets_give_away():
    curves = amplification.compute_epsilons(
        LaplaceProfile(0.5), [333, 100_000], 8e-7, ("withdrawn", "bennett", "blanket", "lower")
    ).curves
    assert curves["withdrawn"][0] == pytest.approx(0.1056, abs=6e-5)
    assert curves["bennett"][0] == pytest.approx(0.1331, abs=6e-5)
    assert curves["blanket"][0] == pytest.approx(0.1060, abs=6e-5)
    assert curves["withdrawn"][1] < 0.8 * curves["lower"][1]
    assert (curves["bennett"] > curves["blanket"]).all()


def test_theorem_three_one_promises_several_times_the_true_budget():
    record = amplification.compute_theorem(20_000, 4, DELTA, np.array([0.5, 1.0]))
    assert (record.curves["blanket"] < 0.5 * record.curves["theorem"]).all()
    assert (record.curves["lower"] <= record.curves["blanket"]).all()


def test_the_generic_rate_has_slopes_a_little_steeper_than_one_half():
    rate = amplification.compute_generic_rate([0.1, 1.0], whole_grid(1e4, 1e8, 6), DELTA)
    assert all(-0.6 < slope.exponent < -0.5 for slope in rate.slopes.values())


def test_a_curve_is_silent_where_the_corollary_is():
    rate = amplification.compute_generic_rate([3.0], whole_grid(1e2, 1e9, 8), DELTA)
    silent = np.isnan(rate.scaled.curves["hoeffding:local budget 3"])
    assert silent[0]
    assert not silent[-1]


# --- what the curves say, in words -----------------------------------------------------------------------------------


def test_words_of_any_randomizer_follow_the_budget():
    book = amplification.words_of_any(amplification.compute_epsilons(AnyProfile(0.5), [1000, 10**6], DELTA))
    assert "16 times as large as the best bound on this page" in book["since_first"]
    assert book["any_gain"] == "at most 12 %"
    assert "some randomizer certainly loses 0.0012" in book["any_left"]
    assert book["erlingsson_speaks"] == "speaks from 1,000,000 users on"
    assert book["generic_order"].startswith("The curve by Bennett's inequality lies above that by Hoeffding's here. B")
    other = amplification.words_of_any(amplification.compute_epsilons(AnyProfile(3.0), [1000, 10**6], DELTA))
    assert "the first bound, of 2019, says nothing" in other["since_first"]
    record = amplification.compute_epsilons(AnyProfile(0.5), [1000], DELTA)
    silent = replace(record, curves=dict(record.curves) | {"lower": np.zeros(1)})
    assert amplification.words_of_any(silent)["any_left"].endswith("no loss is certain")
    assert other["generic_order"] == "The curve by Bennett's inequality lies below that by Hoeffding's here."


def test_the_larger_budget_is_named_for_each_randomizer():
    families = ["2-ary", "100-ary", "Laplace"]
    both = {"hoeffding": families, "bennett": families}
    found = amplification.words_of_local_budgets(
        amplification.compute_local_budgets([100, 10**5], 0.1, DELTA, both), families
    )
    assert found["bennett_wins"] == "100-ary response and Laplace noise"
    assert (found["hoeffding_wins"], found["bennett_for_100"]) == ("binary response", "1.9 to 3.4 times")
    few = amplification.words_of_local_budgets(amplification.compute_local_budgets([100], 6.0, 1e-300, both), families)
    assert few["bennett_wins"] == few["hoeffding_wins"] == "none of the three"


def test_a_gap_is_told_where_there_is_one():
    binary = amplification.compute_epsilons(KaryProfile(1.0, 2), [1000], DELTA)
    gap = amplification.compute_gap([KaryProfile(1.0, 2), KaryProfile(1.0, 10)], [1000], DELTA)
    words = amplification.words_of_gap(gap, binary)
    assert words["gap_story"].startswith("Among up to 1,000 users the upper bound exceeds the lower one by")
    assert " by at most 18 % for binary response" in words["gap_story"]
    assert words["gap_story"].endswith("% for 10-ary response")
    nothing = amplification.compute_epsilons(KaryProfile(0.1, 2), [1000], 0.9)
    gap = amplification.compute_gap([KaryProfile(0.1, 2)], [1000], 0.9)
    assert (
        amplification.words_of_gap(gap, nothing)["gap_story"] == "Here no ratio can be formed, for the lower bound is 0"
    )


def test_a_slope_needs_three_crowds():
    book = amplification.words_of_rate(amplification.compute_generic_rate([0.1], [10**4, 10**6, 10**8], DELTA))
    assert book["rate_slopes"].startswith("No line rises")
    few = amplification.words_of_rate(amplification.compute_generic_rate([0.1], [10**4, 10**6], DELTA))
    assert few["rate_slopes"].startswith("With so few crowds")
    steep = amplification.words_of_rate(amplification.compute_generic_rate([1.0], [10**4, 10**6, 10**9], 1e-300))
    assert steep["rate_slopes"].startswith("A line rises")


def test_the_withdrawn_bound_is_told_to_be_false_where_it_is():
    kinds = ("withdrawn", "bennett", "blanket", "lower")
    book = amplification.words_of_withdrawn(
        amplification.compute_epsilons(LaplaceProfile(0.5), [100, 10**5], DELTA, kinds)
    )
    assert book["withdrawn_under"].startswith("from 100,000 users on below the very quantity")
    assert "and below the *lower* bound from 100,000 users on" in book["withdrawn_under"]
    few = amplification.words_of_withdrawn(amplification.compute_epsilons(LaplaceProfile(0.5), [100], DELTA, kinds))
    assert few["withdrawn_under"].startswith("above the quantity that it should bound")


# --- one message -----------------------------------------------------------------------------------------------------


def test_a_message_is_blanket_and_kept_value():
    law = message.compute_kary_message(8, 2.0, 2)
    assert law.blanket.sum() == pytest.approx(8 / (math.exp(2) + 7))
    assert (law.blanket + law.kept).sum() == pytest.approx(1)
    assert np.delete(law.kept, 2) == pytest.approx(np.zeros(7), abs=1e-15)


def test_the_laplace_blanket_lies_under_both_densities():
    record = message.compute_laplace_message(2.0)
    both = np.minimum(record.curves["kept:input 0"], record.curves["kept:input 1"])
    assert record.curves["blanket-part"] == pytest.approx(both, rel=1e-12)


# --- the audit -------------------------------------------------------------------------------------------------------


def by_hand(n_buckets, epsilon0, epsilon, others):
    """Divergence of one pair of data sets, every ordered tuple of messages in turn."""
    keep, other = math.exp(epsilon0), 1.0
    total = keep + n_buckets - 1
    laws = []
    for first in (0, 1):
        law = {}
        for messages in product(range(n_buckets), repeat=len(others) + 1):
            mass = math.prod(
                (keep if y == x else other) / total for x, y in zip((first, *others), messages, strict=True)
            )
            key = tuple(sorted(messages))
            law[key] = law.get(key, 0.0) + mass
        laws.append(law)
    p, q = laws
    return max(sum(max(a[y] - math.exp(epsilon) * b[y], 0) for y in a) for a, b in ((p, q), (q, p)))


def test_the_three_part_clones_fall_far_below_one_data_set_at_large_epsilon():
    scan = audit.compute_clone_scan(4, 3, 1.0, np.array([0.2, 0.85]))
    worst = max(by_hand(3, 1.0, 0.85, others) for others in product(range(3), repeat=3))
    pair = audit.hockey_stick(*audit.three_component_clone_pair(4, 3, 1.0), 0.85)
    assert pair / worst == pytest.approx(scan.curves["three-component"][1], rel=1e-9)
    assert pair < 0.5 * worst
    assert (scan.curves["blanket"] >= 1 - 1e-9).all()


def test_every_case_of_the_audit_refutes_three_parts_and_nothing_else():
    values = audit.compute_clone_values()
    assert values.refuted.all()
    for key in ("blanket", "clones-2023", "clones-2021"):
        assert (values.claimed[key] >= values.truth).all()
    assert [float(x) for x in columns(values)["truth"]] == pytest.approx(
        [0.0707851108, 0.0700215697, 0.0795803699], abs=6e-11
    )


def test_the_scan_says_where_three_parts_fail_and_where_they_do_not():
    fails = audit.words_of_scan(audit.compute_clone_scan(4, 3, 1.0, np.array([0.2, 0.85])))
    assert fails["scan_objective"].startswith("and by a factor of ")
    binary = audit.compute_clone_scan(4, 2, 1.0, np.array([0.2, 0.85]))
    assert audit.words_of_scan(binary)["scan_objective"] == "and not at all in another"
    values = audit.compute_clone_values(audit.CASES[:1])
    assert audit.two_parts_hold(values, binary).holds
    assert audit.two_parts_hold(replace(values, truth=values.truth * 1.2), binary).holds is False


def test_the_short_alphabet_keeps_its_delta_and_its_bias():
    record = audit.compute_alphabets(3, 2, 0.5, np.array([0.5, 5.0]))
    assert record.curves["wrong-alphabet"] == pytest.approx([0.5, 0.5])
    assert record.curves["right-alphabet"][1] == 0
    assert audit.bias_of_alphabet(1000, 4, 0.3, 1) == pytest.approx(1000 * 0.3 / (2 * 4 * 0.7))


# --- accuracy --------------------------------------------------------------------------------------------------------


def test_the_histogram_error_agrees_with_theory_and_would_not_with_another_mass():
    values = np.repeat([0, 1, 2, 3], [50, 100, 200, 450])
    record = histogram.compute_histogram(values, HistogramProtocol(800, 4, 0.4), repeats=400, seed=3)
    assert record.agreement.holds
    low, high = record.interval
    assert ((low < record.measured) & (record.measured < high)).all()
    assert replace(record, theory=record.theory * 1.2).agreement.holds is False
    assert columns(record)["true_count"] == ("50", "100", "200", "450")


def test_chance_is_allowed_for_even_where_counts_hang_together():
    """Two counts that add up to a constant err together; half as many independent ones would seem to be wrong."""
    protocol = HistogramProtocol(100, 2, 0.5)
    found = [histogram.compute_histogram([0, 1] * 50, protocol, 12, seed) for seed in range(60)]
    assert all(one.agreement.holds for one in found)
    assert all(one.freedom == pytest.approx(1) for one in found)
    assert histogram.compute_histogram([0, 1] * 50, protocol, 2, 1).agreement.holds is None
    assert histogram.compute_histogram([0, 1], HistogramProtocol(2, 2, 0.5), 50, 1).agreement.holds is None


def test_words_of_a_histogram_follow_its_numbers():
    book = histogram.words_of_costs(histogram.histogram_costs(50_000, 10, 1.0, DELTA))
    assert book["theorem_price"].startswith("It asks for a blanket ")
    few = histogram.words_of_costs(histogram.histogram_costs(1_500, 10, 1.0, DELTA))
    assert few["theorem_price"].startswith("It says nothing")
    grants = amplification.compute_epsilons(KaryProfile(1.0, 10), [1_000], DELTA)
    assert histogram.words_of_grants(grants, math.inf)["theorem_speaks"].startswith("`inf`")
    assert histogram.words_of_grants(grants, 0.5)["left_to_gain"].endswith("% above it")
    none = amplification.compute_epsilons(KaryProfile(0.1, 10), [1_000], 0.9)
    assert histogram.words_of_grants(none, 0.5)["left_to_gain"] == "0 above it"
    record = histogram.compute_histogram([0, 1] * 50, HistogramProtocol(100, 2, 0.5), 4, 1)
    assert "digits" in histogram.words_of_counts(record, "emnist-byclass")["about_digits"]
    assert histogram.words_of_counts(record, "own.npz")["about_digits"] == ""


def test_a_seed_fixes_the_histogram():
    protocol = HistogramProtocol(300, 3, 0.4)
    runs = [histogram.compute_histogram([0, 1, 2] * 100, protocol, 3, seed) for seed in (5, 5, 6)]
    assert runs[0].to_csv() == runs[1].to_csv() != runs[2].to_csv()


def test_trust_costs_less_with_a_shuffler_and_the_theorem_is_left_out_where_it_is_silent():
    full = {trust: error for trust, _, error, _ in histogram.histogram_costs(50_000, 10, 1.0, DELTA)}
    assert list(full.values()) == sorted(full.values(), reverse=True)
    assert "shuffler: Theorem 3.1" in full
    few = histogram.histogram_costs(1_500, 10, 1.0, DELTA)
    assert [trust for trust, *_ in few] == ["nobody: local model", "shuffler: blanket divergence", "curator"]


@pytest.fixture(scope="module")
def summation():
    values = np.random.default_rng(0).beta(2, 5, size=3_000)
    return blanket_summation.compute_summation(values, [1_500, 3_000, 6_000], 1.0, 1e-4, repeats=150, seed=2)


def test_measured_sums_agree_with_exact_formulas(summation):
    for key in ("curator", "local", "cheu", "theorem-protocol", "blanket-protocol"):
        assert summation.plausible(key).holds
        assert summation.agrees(key).holds
    assert summation.all_plausible.holds
    assert summation.all_agree.holds
    assert summation.slopes_of_old_answers.holds


def test_the_agreement_has_power(summation):
    doubled = {key: values * 1.5 for key, values in summation.exact.items()}
    other = replace(summation, exact=doubled)
    assert not any(other.plausible(key).holds for key in doubled)
    assert other.all_plausible.holds is False
    steeper = replace(summation, exact={key: values * summation.measured.x for key, values in summation.exact.items()})
    assert not any(steeper.agrees(key).holds for key in doubled)


def test_words_of_sums_follow_the_budget_and_the_crowds(summation):
    words = blanket_summation.words_of_summation(summation)
    assert "among 1,500 users and " in words["mass_story"]
    assert words["measured_follows"] == "and the measurement follows them"
    values = np.random.default_rng(0).beta(2, 5, size=300)
    few = blanket_summation.compute_summation(values, [20, 300], 2.0, 1e-4, repeats=3, seed=2)
    words = blanket_summation.words_of_summation(few)
    assert words["mass_story"].startswith("Theorem 3.1 says nothing")
    assert words["measured_follows"].startswith("but more")
    assert few.all_plausible.holds is few.all_agree.holds is few.slopes_of_old_answers.holds is None
    assert np.isnan(few.measured.curves["theorem-protocol"]).all()
    assert {row[3] for row in few.rows()} == {"too few crowds"}


def test_asymptotic_crowds_stay_whole_numbers_of_doubles():
    assert blanket_summation.asymptotic_crowds(1e-3, 1e-300)[-1] == 2**53
    wide = blanket_summation.compute_summation_theory(blanket_summation.asymptotic_crowds(1.0, 0.6), 1.0, 0.6)
    assert set(blanket_summation.slopes_of(wide)) == {"theorem", "theorem-protocol", "blanket-protocol"}


def test_models_of_trust_are_ordered_and_above_the_lower_bound(summation):
    exact = summation.exact
    for less, more in (
        ("curator", "blanket-protocol"),
        ("blanket-protocol", "theorem-protocol"),
        ("theorem-protocol", "local"),
    ):
        assert (exact[less] < exact[more]).all()
    assert (summation.lower < exact["blanket-protocol"]).all()


def test_lean_sums_use_less_noise_and_more_levels_than_the_theorem():
    lean = blanket_summation.lean_sum(20_000, 1.0, DELTA)
    assert isinstance(lean, SummationProtocol)
    theorem = blanket_summation.private_sum(20_000, 1.0, DELTA)
    assert lean.blanket_mass < theorem.blanket_mass
    assert lean.n_levels > theorem.n_levels


def test_the_worst_case_grows_like_the_sixth_root():
    record = blanket_summation.compute_summation_theory(whole_grid(1e8, 1e12, 5), 1.0, DELTA)
    for values in record.curves.values():
        slope = np.polyfit(np.log(record.x), np.log(values), 1)[0]
        assert slope == pytest.approx(1 / 6, abs=0.005)


# --- drawing ---------------------------------------------------------------------------------------------------------


def small_figures():
    epsilons = amplification.compute_epsilons(AnyProfile(0.5), [1000, 10_000], DELTA)
    yield "epsilons", epsilons, amplification.draw_epsilons
    yield "curves", epsilons, draw_curves
    yield (
        "budgets",
        amplification.compute_local_budgets([100, 1000], 0.1, DELTA, {"hoeffding": ["2-ary", "Laplace"]}),
        draw_curves,
    )
    yield "gap", amplification.compute_gap([KaryProfile(1.0, 3)], [1000, 10_000], DELTA), amplification.draw_gap
    yield (
        "deltas",
        amplification.compute_deltas(LaplaceProfile(0.5), 333, np.array([0.05, 0.1]), ["lower"]),
        amplification.draw_deltas,
    )
    yield "rate", amplification.compute_generic_rate([0.1], [10**4, 10**5, 10**6], DELTA), draw_rates
    yield "kary", message.compute_kary_message(4, 1.0, 1), message.draw_kary_message
    yield "laplace", message.compute_laplace_message(1.0), message.draw_laplace_message
    yield "parties", message.Parties(), message.draw_parties
    yield "clones", audit.compute_clone_values(audit.CASES[:1]), audit.draw_clone_values
    yield "scan", audit.compute_clone_scan(3, 3, 1.0, np.array([0.2, 0.6])), audit.draw_clone_scan
    yield "alphabets", audit.compute_alphabets(2, 2, 0.5, np.array([0.1, 1.0])), audit.draw_alphabets
    counts = histogram.compute_histogram([0, 1] * 50, HistogramProtocol(100, 2, 0.5), 4, 1)
    yield "histogram", counts, histogram.draw_histogram
    yield "error", counts, histogram.draw_histogram_error


@pytest.mark.parametrize(("name", "record", "draw"), [pytest.param(*one, id=one[0]) for one in small_figures()])
def test_every_figure_is_drawn_with_words_on_its_axes_and_its_numbers_beside(name, record, draw, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    seen = []

    def watched(ax, given, pen):
        draw(ax, given, pen)
        seen.append((ax.get_xlabel(), ax.get_ylabel(), ax.axison))

    present.show(record, watched, name=name, alt="A figure of the test.")
    assert all(x and y for x, y, shown in seen if shown)
    assert len(columns(record)) >= 2


def test_summation_figures_are_drawn(summation, monkeypatch, tmp_path):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    present.show(summation, blanket_summation.draw_summation, name="sum", alt="Errors of the test.")
    assert {"curator", "local-exact", "lower"} <= set(columns(summation))
    theory = blanket_summation.compute_summation_theory([10**6, 10**7, 10**8], 1.0, DELTA)
    present.show(theory, blanket_summation.draw_summation_theory, name="theory", alt="Theory of the test.")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: amplification.compute_epsilons(LaplaceProfile(0.5), [1], DELTA, ["hoeffding"]), "n_users"),
        (lambda: amplification.compute_epsilons(LaplaceProfile(0.5), [100], math.nan, ["hoeffding"]), "delta"),
        (lambda: histogram.compute_histogram([0, 1, 7], HistogramProtocol(3, 2, 0.5), 2, 1), "values"),
        (lambda: blanket_summation.compute_summation([0.5, 2.0], [2000, 3000, 4000], 1.0, DELTA, 2, 1), "value"),
        (lambda: blanket_summation.compute_summation([0.5], [1, 100, 200], 1.0, DELTA, 2, 1), "n_users"),
    ],
)
def test_bad_input_is_refused_with_its_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()
