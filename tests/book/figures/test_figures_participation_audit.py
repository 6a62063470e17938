"""The audit of random participation: an attack against its law, turned gradients, a search, ordered Gram matrices."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from flamebook.attacks import gradients
from flamebook.attacks import participation as attack
from flamebook.attacks.participation import Setting
from flamebook.figures import present
from flamebook.figures.participation import audit
from flamelib.accounting.sampling.hidden import random_participation
from flamelib.accounting.sampling.turned_gradients import Draws, draws_delta
from flamelib.core.vocabulary import DomainError

FIVE = Setting(n_records=5)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))


def test_inner_is_refuted_exactly_and_by_the_attack() -> None:
    """The numbers of the counterexample, and an interval whose lower end is above what inner promises."""
    found = attack.compute_counterexample(FIVE, 0.1, 10_000_000, seed=1)
    assert found.exact == pytest.approx(4.2287e-4, rel=1e-4)
    assert found.values["inner"] == pytest.approx(1.5887e-4, rel=1e-4)
    assert found.interval[0] <= found.exact <= found.interval[1]
    assert found.interval[0] > found.values["inner"]
    assert found.refuted.holds
    assert found.agrees.holds
    assert len(found.rows()) == 8


def test_equal_gradients_have_the_divergence_of_the_aligned_reading() -> None:
    for n_records, epsilon in ((2, 0.5), (5, 0.02), (20, 0.1)):
        setting = Setting(n_records=n_records, noise_std=0.8)
        exact = attack.EqualGradients(setting).exact(epsilon)
        aligned = random_participation("aligned", **setting.as_parameters(), epsilon=epsilon)
        assert exact == pytest.approx(float(aligned), rel=1e-8)


@pytest.mark.parametrize(
    ("setting", "epsilon"),
    [(Setting(1e-12, 1e-3, 5), 1e-9), (Setting(0.1, 0.1, 5, 1e-300, 1e300), 0.1), (Setting(1, 1, 5), 0.1),
     (Setting(0.1, 0.1, 5, 1.0, 90.0), 0.1), (Setting(0.01, 0.01, 5, 100.0), 1e-8), (Setting(noise_std=1e6), 0.1)],
)  # fmt: skip
def test_the_integral_is_right_at_the_edges_of_the_domain(setting: Setting, epsilon: float) -> None:
    aligned = random_participation("aligned", **setting.as_parameters(), epsilon=epsilon)
    assert attack.EqualGradients(setting).exact(epsilon) == pytest.approx(float(aligned), rel=1e-8)


def test_an_attack_of_a_few_rounds_tells_nothing_and_one_on_a_bound_fails() -> None:
    assert attack.compute_counterexample(FIVE, 0.1, 1000, seed=1).refuted.verdict == "says nothing"
    bound = attack.compute_counterexample(Setting(1.0, 0.1, 5), 0.1, 1_000_000, seed=1)
    assert bound.refuted.verdict == "does not hold"


def test_an_attack_on_another_law_is_seen() -> None:
    found = attack.compute_counterexample(FIVE, 0.1, 10_000_000, seed=1)
    assert not replace(found, exact=2 * found.exact).agrees.holds


def test_the_attack_draws_the_mixture_it_says() -> None:
    laws = attack.EqualGradients(FIVE)
    assert [weights.sum() for weights in laws.pair] == pytest.approx([1, 1])
    tail = laws.pair[0] @ norm.sf(1.0 - np.arange(6))
    found = attack._exceed(laws.pair[0], 1.0, 1.0, 2_000_000, np.random.default_rng(3))
    assert abs(found / 2e6 - tail) < 4 * math.sqrt(tail / 2e6)


def test_the_interval_covers_and_shrinks() -> None:
    small, large = (attack.compute_counterexample(FIVE, 0.1, n, seed=2) for n in (100_000, 4_000_000))
    widths = [one.interval[1] - one.interval[0] for one in (small, large)]
    assert widths[1] < widths[0] / 4
    assert small.interval[0] < small.exact < small.interval[1]


def test_the_curve_of_inner_is_drawn_with_its_attacks() -> None:
    record = attack.compute_inner_curve(FIVE, np.array([0.05, 0.1, 0.3]), 100_000, seed=1)
    assert record.contradicted.holds
    assert audit.inner_words(record) == {"inner_below": "at all 3 budgets"}
    assert (record.curves["exact"] < record.curves["outer"]).all()
    assert record.to_csv().count("\n") == 1 + 3 + len(record.attacks)
    shown = present.show(record, audit.draw_inner_curve, name="inner", alt="a test of a figure and its words")
    assert "NaN" not in shown.markup


def test_a_right_angle_is_worse_for_large_clients_and_outer_is_never_exceeded() -> None:
    record = gradients.compute_angles(Setting(), 0.1, (5, 30), points=3)
    rows = {row[0]: row for row in record.rows()}
    assert rows["L = 30"][3] > 5 * rows["L = 30"][1]
    assert rows["L = 5"][2] == 0
    assert record.below
    assert audit.angle_words(record)["angles_found"] == (
        "Of the angles tried, equal gradients lose the most for L = 5. For L = 30 (6.9 times as much at 90 degrees) "
        "some turned gradients lose more. The largest client, L = 30, loses 67.3 % of what outer allows. "
        "An account that takes aligned gradients for the worst case is too small by such factors."
    )
    present.show(record, audit.draw_angles, name="angles", alt="a test of a figure and its words")


def test_where_nothing_is_lost_nothing_is_told_and_the_figure_is_drawn() -> None:
    record = gradients.compute_angles(Setting(), 100.0, (5, 10), points=3)
    assert audit.angle_words(record)["angles_found"] == "What is lost here is too small for a number."
    present.show(record, audit.draw_angles, name="angles", alt="a test of a figure and its words")
    curve = attack.compute_inner_curve(FIVE, np.array([100.0, 120.0]), 100, seed=1)
    assert curve.contradicted.verdict == "says nothing"
    assert audit.inner_words(curve) == {"inner_below": "at none of the 2 budgets"}
    present.show(curve, audit.draw_inner_curve, name="inner", alt="a test of a figure and its words")


def test_verdicts_follow_the_numbers() -> None:
    search = gradients.compute_search(starts=2, steps=1, seed=1)
    found = {}
    for name, setting in (("book", Setting()), ("all join", Setting(participation_rate=1.0))):
        angles = gradients.compute_angles(setting, 0.1, (5, 30), points=3)
        attacks = [attack.compute_counterexample(replace(setting, n_records=5), 0.1, 1000, seed=1)]
        found[name] = [row[1] for row in audit.verdicts(attacks, angles, search)]
    assert found == {
        "book": ["refuted", "refuted", "holds", "holds"],
        "all join": ["holds", "refuted", "holds", "holds"],
    }


def test_the_evidence_of_attacks_is_told_by_their_sizes() -> None:
    attacks = [attack.compute_counterexample(FIVE, 0.1, repeats, seed=1) for repeats in (10_000_000, 1000)]
    words = audit.attack_words(attacks)
    assert words["attack_evidence"] == "observes what contradicts inner, here for $L=5$"
    assert words["attack_rare"] == f"{100 * attacks[1].seen[0] / 1000:.2g} %"
    assert audit.attack_words(attacks[1:])["attack_evidence"].startswith("observes nothing")


def test_each_term_is_worst_for_aligned_gradients() -> None:
    record = gradients.compute_terms(Setting(), 0.1, (1, 3), points=7)
    assert all((np.diff(values) <= 1e-4 * values[0]).all() for values in record.curves.values())
    assert gradients.compute_terms(Setting(noise_std=1e-6), 0.1, (5,), points=3).below
    term = gradients._term(Setting(), 0.1, 0, 77.0)
    assert term == pytest.approx(float(random_participation("outer", 0.1, 0.1, 1, 1.0, 1.0, epsilon=0.1)), rel=1e-3)


def test_the_search_stays_below_the_bounds_and_repeats_itself() -> None:
    record = gradients.compute_search(starts=6, steps=2, seed=5)
    assert record.tried == 18
    assert record.exceeding == 0
    assert record.ratios.max() > 0.3
    again = gradients.compute_search(starts=6, steps=2, seed=5)
    assert np.array_equal(record.ratios, again.ratios)
    assert sum(row[1] for row in record.rows()) == 6
    present.show(record, audit.draw_search, name="search", alt="a test of a figure and its words")


def test_a_search_would_see_a_bound_that_is_none() -> None:
    """With inner in the place of outer, the equal gradients of the counterexample exceed it."""
    place = np.tile([1.0, 0.0], (5, 1))
    bounds = np.array([FIVE.delta("inner", 0.1), FIVE.delta("add", 0.1)])
    assert gradients._ratios(FIVE, 0.1, place, bounds)[0] > 2


def test_gram_matrices_that_grow_do_not_lower_the_integral() -> None:
    record = gradients.compute_gram_pairs(12, seed=4)
    assert record.ordered == 12
    assert (record.larger > 1.01 * record.smaller).any()
    assert record.to_csv().count("\n") == 13


def test_a_vector_that_shortens_lowers_the_integral() -> None:
    long, short = (
        draws_delta(Draws(np.ones(1), np.zeros((1, 2)), np.array([length, 0.0])), 0.5, 0.5, 0.1, add=False)
        for length in (1.0, 0.5)
    )
    assert short < long


@pytest.mark.parametrize("repeats", [0, -1, 0.5])
def test_a_search_and_an_attack_need_repeats(repeats: float) -> None:
    with pytest.raises(DomainError, match="repeats"):
        attack.compute_counterexample(FIVE, 0.1, repeats, 1)  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="repeats"):
        gradients.compute_search(repeats, 2, 1)  # type: ignore[arg-type]
