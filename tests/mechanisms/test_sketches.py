"""Linear sketches: tables, sensitivities, unbiasedness and errors against enumeration, loops and exact moments."""

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.sketches.counts import CountMin, CountSketch, SecondMoment
from flamelib.mechanisms.sketches.hashing import PRIME
from flamelib.mechanisms.sketches.linear import Sketch, Total, contributions, direct_table, majority_failure, moments
from flamelib.mechanisms.sketches.norms import CauchyNorm, StableEntropy, _cut_moment, _noise_factor
from flamelib.mechanisms.sketches.support import LinearCounting, WeightedCounting, empty_weights
from flamelib.mechanisms.sketches.trees import DyadicQuantiles, PrefixSearch

SKETCHES: list[Sketch] = [
    Total(15),
    CountMin(7, 3, seed=1),
    CountSketch(7, 3, seed=1),
    SecondMoment(3, 2, seed=1),
    LinearCounting(9, seed=1),
    DyadicQuantiles(4),
    PrefixSearch(4, 2, 5, 3, seed=1),
    PrefixSearch(4, 2, 5, 3, seed=1, signed=True),
    CauchyNorm(5, 20.0, 10, seed=1),
    StableEntropy(5, 20.0, 10, seed=1),
]
COUNTS = np.array([30, 12, 5, 5, 1, 1, 1, 0, 7])
ITEMS = np.arange(9) * 37 + 4


def named(sketch: Sketch) -> str:
    return type(sketch).__name__


# --- what all have in common ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sketch", SKETCHES, ids=named)
def test_the_table_is_the_sum_of_what_users_send(sketch: Sketch) -> None:
    items = np.random.default_rng(1).integers(0, 16, size=40)
    sent = contributions(sketch, items)
    assert sent.shape == (40, math.prod(sketch.shape))
    assert (sent.sum(axis=0).reshape(sketch.shape) == direct_table(sketch, items)).all()
    found, counts = np.unique(items, return_counts=True)
    assert (direct_table(sketch, found, counts) == direct_table(sketch, items)).all()
    assert (direct_table(sketch, items, -np.ones(40, dtype=int)) == -direct_table(sketch, items)).all()


@pytest.mark.parametrize("sketch", SKETCHES, ids=named)
def test_sensitivity_and_bound_hold_for_every_pair_of_items(sketch: Sketch) -> None:
    sent = contributions(sketch, np.arange(16))
    assert np.abs(sent).max() <= sketch.bound
    changes = [int(np.abs(a - b).sum()) for a, b in combinations(sent, 2)]
    assert max(changes) <= sketch.sensitivity
    if isinstance(sketch, Total | CountMin | CountSketch | LinearCounting | DyadicQuantiles):
        assert max(changes) == sketch.sensitivity


@pytest.mark.parametrize("sketch", SKETCHES, ids=named)
def test_bad_items_are_refused(sketch: Sketch) -> None:
    for items in ([-1], [0.5], [float("nan")], [2**61]):
        with pytest.raises(DomainError, match="items must be whole numbers"):
            sketch.cells(items)


# --- counts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(9, 10)])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 15])
def test_majority_failure_is_the_binomial_tail(rate: Fraction, rows: int) -> None:
    least = (rows + 1) // 2
    exact = sum(math.comb(rows, k) * rate**k * (1 - rate) ** (rows - k) for k in range(least, rows + 1))
    found = majority_failure(float(rate), rows)
    assert exact <= Fraction(found) <= exact * Fraction(1 + 1e-8) or found == 1


def test_count_min_never_underestimates_and_seldom_errs_by_much() -> None:
    off = []
    for seed in range(300):
        sketch = CountMin(columns=8, rows=2, seed=seed)
        found = sketch.estimate(direct_table(sketch, ITEMS, COUNTS), ITEMS)
        assert (found >= COUNTS).all()
        off.append(found - COUNTS)
    for error in (20, 30):
        often = np.mean([one[1] > error for one in off])
        assert often <= (COUNTS.sum() / (8 * error)) ** 2 + 0.05


def test_count_min_has_the_size_of_the_theorem() -> None:
    sketch = CountMin.within(accuracy=0.01, failure=0.001, seed=1)
    assert sketch.shape == (7, 272)
    assert (1 / (0.01 * sketch.columns)) ** sketch.rows <= 0.001
    assert sketch.estimate(np.array([[1, 5]] * 7)[:, [0] * 272], [3], rule="median").tolist() == [1.0]
    with pytest.raises(DomainError, match="rule must be one of min, median"):
        sketch.estimate(np.zeros(sketch.shape), [3], rule="mean")


def test_a_counter_of_other_items_has_the_mean_of_the_formula() -> None:
    sketch = CountMin(columns=8, rows=20_000, seed=1)
    beside = sketch.read(direct_table(sketch, ITEMS, COUNTS), [ITEMS[1]])[:, 0] - COUNTS[1]
    exact = (COUNTS.sum() - COUNTS[1]) / 8
    assert abs(beside.mean() - exact) < 5 * beside.std() / math.sqrt(len(beside))


def test_a_row_of_count_sketch_has_exact_mean_and_variance() -> None:
    sketch = CountSketch(columns=8, rows=20_000, seed=1)
    table = direct_table(sketch, ITEMS, COUNTS)
    signs = contributions(CountSketch(8, 20_000, seed=1), [ITEMS[1]]).reshape(20_000, 8).sum(axis=1)
    rows = signs * sketch.read(table, [ITEMS[1]])[:, 0]
    variance = (moments(COUNTS)[0] - COUNTS[1] ** 2) / 8
    assert abs(rows.mean() - COUNTS[1]) < 5 * math.sqrt(variance / 20_000)
    assert abs(rows.var() / variance - 1) < 0.06


@pytest.mark.parametrize("noise", [0.0, 25.0])
@pytest.mark.parametrize("columns", [1, 4])
def test_second_moments_have_exact_mean_and_variance(columns: int, noise: float) -> None:
    """One row at a time: mean F2 after the noise's variance is taken off, variance 2 (F2^2 - F4) / w without noise."""
    square, fourth = moments(COUNTS)
    rng = np.random.default_rng(5)
    for kind, by in ((CountSketch, 1), (SecondMoment, columns)):
        sketch = kind(columns=columns, rows=8000, seed=2)
        table = direct_table(sketch, ITEMS, COUNTS) + rng.normal(0, math.sqrt(noise), sketch.shape)
        rows = np.square(table).sum(axis=1) / by - columns * noise / by
        assert abs(rows.mean() - square) < 5 * rows.std() / math.sqrt(8000)
        if not noise:
            assert abs(rows.var() / (2 * (square**2 - fourth) / columns) - 1) < 0.15
        found = (
            sketch.estimate(table, noise) if isinstance(sketch, SecondMoment) else sketch.second_moment(table, noise)
        )
        assert found == pytest.approx(float(np.median(rows)))


# --- trees ------------------------------------------------------------------------------------------------------------


@given(items=st.lists(st.integers(0, 31), min_size=2, max_size=30), share=st.floats(0, 1))
def test_ranks_and_quantiles_are_exact(items: list[int], share: float) -> None:
    sketch = DyadicQuantiles(5)
    table = direct_table(sketch, items)
    assert sketch.rank(table, range(33)).tolist() == [sum(item < v for item in items) for v in range(33)]
    wanted = max(1, math.ceil(share * len(items)))
    assert sketch.quantile(table, share, len(items)) == sorted(items)[wanted - 1]


@given(st.lists(st.integers(0, 80), min_size=1, max_size=60))
def test_a_search_misses_nothing_that_is_frequent(items: list[int]) -> None:
    sketch = PrefixSearch(base=3, levels=4, columns=11, rows=2, seed=3)
    found = sketch.search(direct_table(sketch, items), threshold=3)
    for item, count in Counter(items).items():
        assert count < 3 or found[item] >= count


def test_a_search_finds_words_and_nothing_that_goes_on_after_its_end() -> None:
    from flamelib.mechanisms.sketches.hashing import numbered, spelled

    items = numbered(["noah"] * 40 + ["noahs"] * 30 + ["ark"] * 35 + ["flood"] * 2)
    for signed in (False, True):
        sketch = PrefixSearch(28, 12, 200, 3, seed=1, signed=signed, ended=True)
        found = sketch.search(direct_table(sketch, items), threshold=20)
        assert spelled(list(found)) == ["noah", "ark", "noahs"]
    with pytest.raises(DomainError, match="threshold"):
        sketch.search(np.zeros(sketch.shape), threshold=0)
    assert sketch.search(np.zeros(sketch.shape), threshold=1) == {}


# --- support ----------------------------------------------------------------------------------------------------------


def test_empty_buckets_have_the_mean_of_the_formula() -> None:
    empty = [np.count_nonzero(direct_table(LinearCounting(16, seed=s), range(50, 62)) == 0) for s in range(1500)]
    assert abs(np.mean(empty) - 16 * (15 / 16) ** 12) < 5 * np.std(empty) / math.sqrt(1500)


def test_support_is_found_within_its_standard_deviation() -> None:
    off = []
    for seed in range(200):
        sketch = LinearCounting(500, seed=seed)
        off.append(sketch.estimate(direct_table(sketch, range(300))) - 300)
    assert abs(np.std(off) / LinearCounting(500, seed=0).std(300) - 1) < 0.25
    assert abs(np.mean(off)) < 3


@pytest.mark.parametrize("decay", [0.2, 0.9])
def test_noise_is_taken_out_of_the_number_of_empty_buckets_exactly(decay: float) -> None:
    p = Fraction(decay)
    for true in range(-3, 4):
        mean = Fraction(0)
        for seen in (-1, 0, 1):
            weight = Fraction(float(empty_weights([seen], decay)[0]))
            mean += weight * (1 - p) / (1 + p) * p ** abs(seen - true)
        assert float(mean) == pytest.approx(float(true == 0), abs=1e-10)


def test_random_weights_add_up_modulo_the_prime() -> None:
    sketch = WeightedCounting(5, seed=1)
    counts = np.array([3, 2**40, 0, 12])
    [places], [weights] = sketch.cells([1, 2, 3, 4])
    sums = [sum(int(w) * int(c) for w, c, at in zip(weights, counts, places, strict=True) if at == j) for j in range(5)]
    assert sketch.table([1, 2, 3, 4], counts).tolist() == [one % PRIME for one in sums]
    assert weights.min() >= 1
    assert sketch.estimate(np.array([0, 1, 0, 5, 9])) == pytest.approx(-5 * math.log(2 / 5))


# --- stable laws ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [0.05, 0.5, 1.0, 2.0])
def test_the_skewed_law_has_the_moments_of_entropy(theta: float) -> None:
    """E exp(theta R) = theta^theta, by quadrature over the angle, and by the draws themselves."""

    def given_angle(v: mp.mpf) -> mp.mpf:
        return mp.exp(theta * v / mp.tan(v)) * (mp.sin(v) / v) ** theta

    with mp.workdps(15):
        exact = float(mp.gamma(1 + theta) / mp.pi * mp.quad(given_angle, [0, 1, 2, 3, mp.pi]))
    assert exact == pytest.approx(theta**theta, rel=1e-6)
    drawn = np.exp(theta * StableEntropy(400_000, 1e6, 1, seed=1).draws([7])[:, 0])
    assert abs(drawn.mean() - theta**theta) < 5 * drawn.std() / math.sqrt(400_000)


@pytest.mark.parametrize("cutoff", [2.0, 50.0])
@pytest.mark.parametrize("theta", [0.01, 0.5, 1.0])
def test_a_cut_moment_is_that_of_cut_draws(cutoff: float, theta: float) -> None:
    drawn = np.exp(theta * np.maximum(StableEntropy(400_000, 1e6, 1, seed=2).draws([3])[:, 0], -cutoff))
    exact = _cut_moment(theta, cutoff)
    assert abs(drawn.mean() - exact) < 5 * drawn.std() / math.sqrt(400_000)
    assert exact >= theta**theta * (1 - 1e-9)
    assert exact <= theta**theta + math.exp(-theta * cutoff)


def test_entropy_is_found_within_its_standard_deviation() -> None:
    counts = np.array([500, 300, 100, 60, 40])
    exact = -sum(c / 1000 * math.log(c / 1000) for c in counts)
    off = []
    for seed in range(40):
        sketch = StableEntropy(400, 1e5, 1000, seed=seed)
        off.append(sketch.estimate(direct_table(sketch, range(5), counts), n_users=1000) - exact)
    std = math.sqrt(3 / 400)
    assert abs(np.mean(off)) < 5 * std / math.sqrt(40)
    assert 0.6 < np.std(off) / std < 1.5


@pytest.mark.parametrize("decay", [0.3, 0.99])
def test_noise_in_the_exponent_is_divided_out_exactly(decay: float) -> None:
    step, p = 0.005, mp.mpf(decay)
    exact = mp.fsum(p**j * (mp.exp(j * step) + mp.exp(-j * step)) for j in range(1, 8000)) + 1
    assert _noise_factor(decay, step) == pytest.approx(float(exact * (1 - p) / (1 + p)), rel=1e-9)
    assert _noise_factor(decay, 2.0) == math.inf


def test_cauchy_fails_no_more_often_than_said() -> None:
    """A coarse cutoff and a coarse grid: the bound holds, and it is not empty."""
    counts, rows, cutoff, grid = np.array([40, -30, 20, -10]), 81, 200.0, 4
    said = CauchyNorm(rows, cutoff, grid, seed=0).failure(0.5, support=4, rounding=100 / (2 * grid) / 100)
    wrong = []
    for seed in range(300):
        sketch = CauchyNorm(rows, cutoff, grid, seed=seed)
        wrong.append(abs(sketch.estimate(direct_table(sketch, range(4), counts)) - 100) > 50)
    assert np.mean(wrong) <= said < 0.5
    assert CauchyNorm(rows, cutoff, grid, seed=0).failure(0.1, support=4, rounding=0.2) == 1


def test_a_cutoff_that_ruins_the_norm_is_not_promised_away() -> None:
    """Many small counts under a low cutoff: the median is far below the norm, whatever the number of counters."""
    sketch = CauchyNorm(401, 2.0, 1000, seed=1)
    assert sketch.estimate(direct_table(sketch, range(60))) < 30
    assert sketch.failure(0.5, support=60) == 1
    wide = CauchyNorm(401, 1e6, 1000, seed=1)
    assert abs(wide.estimate(direct_table(wide, range(60))) - 60) < 30
    assert wide.failure(0.5, support=60) < 1e-6


def test_rounding_moves_a_counter_by_no_more_than_said() -> None:
    counts = np.array([40, 30, 20, 10])
    for kind in (CauchyNorm, StableEntropy):
        coarse = kind(200, 1e6, 3, seed=1)
        exact = np.clip(coarse.draws(range(4)), -coarse.cutoff, coarse.top) @ counts
        assert np.abs(direct_table(coarse, range(4), counts) / 3 - exact).max() <= 100 / (2 * 3)
