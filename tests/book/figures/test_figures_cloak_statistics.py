"""Figures of statistics by cloak aggregation: measured errors lie on the lines of theory, and drawings show them."""

import math
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from matplotlib.figure import Figure

from flamebook.figures.cloak import moments, statistics
from flamebook.figures.cloak.words import Words
from flamebook.figures.style import LIGHT, look
from flamebook.records import Curves
from flamelib.mechanisms.sketches.counts import CountSketch
from flamelib.mechanisms.sketches.hashing import numbered
from flamelib.mechanisms.sketches.linear import direct_table
from flamelib.mechanisms.sketches.support import LinearCounting
from flamelib.uses.statistics import SketchRelease, simulate

COUNTS = np.array([90, 40, 30, 12, 5, 5, 1, 1, 1, 1])
SPELLING = ("and", "the", "ark", "of", "he", "his", "arks", "noah", "noah's", "a")
BOOK = Words(SPELLING, numbered(SPELLING), COUNTS - COUNTS // 3, COUNTS // 3)


def near(record: Curves, name: str, tolerance: float) -> None:
    measured, theory = record.curves[name], record.curves[f"{name}:theory"]
    assert np.abs(measured / theory - 1).max() < tolerance, (name, measured, theory)


def draws(draw: Any, record: Any) -> Any:
    with look(LIGHT, "test") as pen:
        ax = Figure().add_subplot()
        draw(ax, record, pen)
    assert record.to_csv().count("\n") > 1
    return ax


def test_the_mean() -> None:
    values = np.random.default_rng(1).random(200)
    record = statistics.compute_mean(values, 7, [0.5, 50.0], 400, seed=1)
    near(record, "split-and-mix", 0.2)
    ax = draws(statistics.draw_errors, record)
    assert len(ax.lines) == 3


def test_counts_against_the_width() -> None:
    record = statistics.compute_widths(BOOK, [4, 16], 3, 1.0, 120, seed=1)
    near(record, "count-min", 0.15)
    near(record, "count-sketch", 0.2)
    near(record, "count-sketch-noisy", 0.2)
    assert (record.curves["count-min-rows"] < record.curves["count-min"]).all()


def test_the_excess_is_judged_where_seeds_are_enough() -> None:
    record = statistics.compute_widths(BOOK, [4, 16], 3, 1.0, 400, seed=1)
    assert statistics.excess_agrees(record, BOOK).holds
    twice = replace(record, curves={**record.curves, "count-min": 2 * record.curves["count-min"]})
    assert statistics.excess_agrees(twice, BOOK).holds is False
    few = replace(record, parameters={**record.parameters, "repeats": 1})
    assert statistics.excess_agrees(few, BOOK).verdict == "says nothing"
    assert statistics.noise_added(record) == statistics.percent(
        math.sqrt(1 + SketchRelease(CountSketch(16, 1, 1), 186, 1.0).noise_variance / (9718.2 / 16)) - 1
    )


def test_the_scatter_of_the_excess_is_that_of_many_seeds() -> None:
    runs = [statistics.compute_widths(BOOK, [16], 3, 1.0, 1, seed).curves["count-min"][0] for seed in range(400)]
    pairs = sum((float(a) + float(b)) ** 2 for i, a in enumerate(COUNTS) for b in COUNTS[:i])
    assert np.std(runs) == pytest.approx(math.sqrt(pairs / 16) / len(COUNTS), rel=0.2)


def test_counts_against_the_budget_of_all_rows() -> None:
    record = statistics.compute_rows(BOOK, 5000, [0.5, 2.0], 50, seed=1)
    for name, tolerance in (("one-row", 0.4), ("three-rows", 0.2), ("five-rows", 0.2)):  # one row has rare collisions
        near(record, name, tolerance)
    assert (np.diff([record.curves[name] for name in statistics.ROWS], axis=0) > 0).all()


@pytest.mark.parametrize("rows", [1, 3, 5])
def test_noise_of_a_median_by_enumeration(rows: int) -> None:
    p = mp.mpf(1) / 3
    law = {j: (1 - p) / (1 + p) * p ** abs(j) for j in range(-12, 13)}
    least = rows // 2 + 1
    beyond = {j: sum(law[i] for i in law if i >= j) for j in law}
    tail = {
        j: sum(mp.binomial(rows, k) * q**k * (1 - q) ** (rows - k) for k in range(least, rows + 1))
        for j, q in beyond.items()
    }
    variance = sum(j**2 * (tail[j] - tail.get(j + 1, 0)) for j in law)
    assert statistics.median_noise_std(1 / 3, rows) ** 2 == pytest.approx(float(variance), rel=1e-3)


def test_a_search_tells_what_was_found_and_what_was_not() -> None:
    plain = statistics.search_sketch(4, 500, 3, seed=1, signed=False)
    record = statistics.compute_frequent(BOOK, plain, None, 30, seed=1)
    assert record.names == ("and", "the", "ark")
    assert record.recall == 1
    assert record.complete.holds
    assert replace(record, reported=0 * record.reported).complete.numbers == "0 against 1"
    full = replace(record, reported=0 * record.reported, followed=statistics.MOST_FOLLOWED)
    assert full.complete.verdict == "says nothing"
    assert replace(record, names=()).complete.verdict == "says nothing"
    assert (replace(record, names=()).share, replace(record, names=()).drawn) == ("no such word", "none")
    assert replace(record, names=SPELLING * 10).drawn == "the first 40 of 100"
    assert record.rare == 0
    noisy = statistics.search_sketch(4, 500, 3, seed=1)
    rows = statistics.frequent_rows(BOOK, noisy, [0.02, 50.0], 30, seed=1)
    assert rows[0][2] > rows[1][2] == 0
    assert rows[1][1] == 1
    ax = draws(statistics.draw_frequent, record)
    assert [text.get_text() for text in ax.get_xticklabels()] == list(record.names)


def test_ranks() -> None:
    values = np.random.default_rng(1).integers(0, 64, size=300)
    record = statistics.compute_ranks(values, 6, [0.3, 3.0], 200, seed=1)
    near(record, "tree", 0.15)
    near(record, "flat", 0.2)
    rows = statistics.quantile_rows(values, 6, 500.0, [0.5], seed=1)
    assert rows[0][1] == rows[0][2] == np.sort(values)[149]


def test_the_tree_wins_where_there_are_many_values() -> None:
    theory = [
        statistics.compute_ranks([0, 1], levels, [1.0], 1, seed=1).curves for levels in (6, 14)
    ]  # fmt: skip
    assert theory[0]["tree:theory"] > theory[0]["flat:theory"]
    assert theory[1]["tree:theory"] < theory[1]["flat:theory"]


def test_ink_is_a_sum_that_the_tree_can_hold() -> None:
    ink, levels = statistics.ink(np.full((2, 28, 28), 255, dtype=np.uint8))
    assert ink.tolist() == [199_920] * 2
    assert 2 ** (levels - 1) <= 199_920 < 2**levels


def test_support() -> None:
    items = np.arange(1000, 1100)
    many = Words(tuple("a" * 100), items, np.full(100, 2), np.arange(100) // 20)
    record = moments.compute_support(many, [300, 1000], 8.0, 1, 150, seed=1)
    near(record, "support", 0.25)
    near(record, "unmixed", 0.3)


def test_the_spread_of_unmixed_counts_is_exact() -> None:
    """Against many noisy tables of one true table: the number of empty buckets, not its logarithm."""
    sketch = LinearCounting(40, seed=1)
    release = SketchRelease(sketch, 100, epsilon=3.0)
    table = direct_table(sketch, BOOK.items, COUNTS)
    rng = np.random.default_rng(1)
    weights = [moments.empty_weights(simulate(release, table, rng), release.decay).sum() for _ in range(3000)]
    empty = np.count_nonzero(table == 0)
    assert abs(np.mean(weights) - empty) < 5 * np.std(weights) / math.sqrt(3000)
    noise = math.sqrt(moments.unmixed_std(sketch, table, 10, release.decay) ** 2 - sketch.std(10) ** 2)
    assert noise * (1 - 1 / 40) ** 10 == pytest.approx(np.std(weights), rel=0.1)


def test_second_moments_by_two_ways_of_signing() -> None:
    record = moments.compute_second_moment(BOOK, 8, [0.1, 100.0], 80, seed=1)
    near(record, "one-sign", 0.25)
    near(record, "all-signs", 0.35)
    theory = [record.curves[f"{name}:theory"] for name in ("one-sign", "all-signs")]
    assert theory[0][0] < theory[1][0] / 5
    assert theory[0][1] == pytest.approx(theory[1][1], rel=0.05)


def test_entropy_and_distance() -> None:
    labels = np.repeat(np.arange(10), 3000 * COUNTS)
    record = moments.compute_stable(BOOK, labels, 2.0, [50, 100], 120, seed=1)
    for name in ("entropy", "entropy-noisy", "norm"):
        near(record, name, 0.3)


def test_what_each_costs() -> None:
    [[name, counters, change, noise, messages, size]] = statistics.release_rows(
        {"one": CountSketch(100, 3, seed=1)}, 5000, 1.0
    )
    release = SketchRelease(CountSketch(100, 3, seed=1), 5000, 1.0)
    assert (name, counters, change, messages) == ("one", 300, 6, release.n_messages)
    assert noise == pytest.approx(math.sqrt(2) * 6, rel=0.01)
    assert size == math.ceil(release.bits / 8)


def test_the_protocol_is_at_hand() -> None:
    items = np.arange(30) % 4
    sketch = CountSketch(8, 1, seed=1)
    assert (statistics.by_protocol(SketchRelease(sketch, 30), items, 1) == direct_table(sketch, items)).all()
    assert [one.holds for one in statistics.protocol_findings(items, 1.0, 1)] == [True, True]
    assert statistics.weighted_finding(items, 1).holds


def test_every_kind_of_sketch_can_be_released() -> None:
    sketches = statistics.all_sketches(statistics.search_sketch(2, 16, 1, seed=1), seed=1)
    rows = statistics.release_rows(sketches, 5000, 1.0)
    assert [row[0] for row in rows] == list(sketches)
    assert {len(row) for row in rows} == {len(statistics.RELEASE_HEADER)}
