"""What FLAME's algorithms as printed and its code as released do: alphabet, whole messages, noise, 16 bits."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from flamebook.figures import present
from flamebook.figures.flame import as_published
from flamelib.core.vocabulary import DomainError

DELTA = 0.01 / 1000**1.1


# --- the alphabet -------------------------------------------------------------------------------------------------


def law(n_levels, mass, lowest, level):
    """Chances of the messages 0..b when ``level`` is kept, or replaced from ``lowest``..b."""
    letters = n_levels + 1 - lowest
    return [(1 - mass) * (y == level) + mass / letters * (y >= lowest) for y in range(n_levels + 1)]


@pytest.mark.parametrize(("n_levels", "epsilon0"), [(1, 0.5), (2, 2.0), (5, 0.5), (9, 0.01)])
def test_the_printed_alphabet_has_no_budget_and_the_corrected_one_has_its_own(n_levels, epsilon0):
    printed, corrected = (as_published.compute_alphabet(n_levels, epsilon0, 1000, one) for one in (True, False))
    mass = n_levels / (math.exp(epsilon0) + n_levels - 1)
    assert printed.zero_from_zero == pytest.approx(law(n_levels, mass, 1, 0)[0])
    assert (printed.zero_from_one, printed.budget) == (0, math.inf)
    assert printed.bias == pytest.approx(1000 * mass / (2 * n_levels * (1 - mass)))
    assert corrected.budget == pytest.approx(epsilon0)
    assert corrected.zero_from_one > 0
    assert abs(corrected.bias) < 1e-6


def test_the_bias_is_that_of_the_expectation():
    mass = 4 / (math.exp(1.0) + 3)
    mean = np.mean([np.dot(law(4, mass, 1, level), np.arange(5)) / 4 for level in (0, 2, 4)])
    found = as_published.compute_alphabet(4, 1.0, 30, printed=True)
    assert found.bias == pytest.approx((30 * mean - 30 * mass / 2) / (1 - mass) - 15)


# --- whole messages -----------------------------------------------------------------------------------------------


def test_a_whole_message_is_always_found_and_hardly_ever_mistaken():
    found = as_published.compute_linked(8, 9, 3, 5, repeats=800, seed=2)
    vectors = 7 + 9 * 5 // 3 - 8
    lists = len(list(combinations(range(9), 3)))
    assert found.chance == pytest.approx(1 - (1 - 1 / lists) ** vectors)
    assert found.found == found.repeats == 800
    low, high = binom.ppf([0.0005, 0.9995], 800, found.chance)
    assert low <= found.mistaken <= high
    assert found.delta(0.0) == pytest.approx(1 - found.chance)
    assert found.delta(1.0) == pytest.approx(1 - math.e * found.chance)
    assert found.delta(50.0) == 0


def test_the_size_of_the_experiments_leaves_no_mistakes():
    lists = math.comb(7850, 157)
    assert lists > 10**300
    found = as_published.compute_linked(3, 400, 157, 2, repeats=3, seed=0)
    assert (found.found, found.mistaken) == (3, 0)
    assert found.delta(20.0) == 1.0


@pytest.mark.parametrize("kept", [6, 2.5, 0])
def test_lists_that_cannot_be_disjoint_are_refused(kept):
    with pytest.raises(DomainError, match=r"^kept "):
        as_published.compute_linked(5, 10, kept, 5, 10, 0)


# --- Gaussian baselines -------------------------------------------------------------------------------------------


def test_the_baselines_keep_other_budgets_than_they_claim():
    small, large = as_published.classical_rows([0.2379, 20.535], DELTA)
    assert small[3] == pytest.approx(0.1609, abs=1e-4)
    assert small[2] < DELTA
    assert large[1] == pytest.approx(0.2428, abs=1e-4)
    assert large[2] == pytest.approx(9.49e-4, abs=1e-6)
    assert large[3] == pytest.approx(26.0, abs=0.01)


def test_the_classical_formula_is_safe_where_it_is_proven():
    record = as_published.compute_classical(np.geomspace(0.01, 50, 15), DELTA)
    ratio = record.curves["exact"] / record.x
    assert (ratio[record.x <= 1] < 1).all()
    assert (np.diff(ratio) > 0).all()
    assert ratio[-1] > 1


# --- half precision -----------------------------------------------------------------------------------------------


def test_messages_of_the_experiments_overflow():
    found = as_published.compute_half_precision(1000, 7850, 0.2379, DELTA, 0.01, seed=3)
    assert found.noise_std == pytest.approx(1.645e5, rel=1e-3)
    assert found.expected == pytest.approx(math.erfc(65520 / found.noise_std / math.sqrt(2)), rel=1e-4)
    assert found.overflowing == pytest.approx(found.expected, abs=0.002)
    assert found.overflowing == pytest.approx(0.69, abs=0.005)
    assert (found.lost, found.largest, found.spacing) == (1.0, 65504.0, 4.0)


def test_little_noise_does_not_overflow():
    found = as_published.compute_half_precision(20, 10, 1.0, 1e-3, 1.0, seed=3)
    assert (found.overflowing, found.lost) == (0, 0)
    assert found.expected == 0


# --- the same noise in every round --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noise():
    return as_published.compute_repeated_noise(40, 400, 0.5, 0.05, rounds=12, seed=4)


@pytest.mark.parametrize("name", ["dp", "simple"])
def test_repeated_noise_adds_up_and_cancels_in_differences(noise, name):
    assert noise.growth(f"{name}:repeated") == pytest.approx(12, rel=1e-9)
    assert noise.growth(f"{name}:fresh") == pytest.approx(math.sqrt(12), rel=0.25)
    assert noise.differences[f"{name}:repeated"] < 1e-9
    assert noise.differences[f"{name}:fresh"] > 100 * noise.one_user


def test_one_user_moves_the_mean_from_end_to_end(noise):
    assert noise.one_user == pytest.approx(2 / 40)


def test_fresh_noise_has_the_deviation_of_the_baseline(noise):
    clip, delta = math.sqrt(400), 0.01 / 40**1.1
    expected = 2 * clip * math.sqrt(2 * math.log(1.25 / delta)) / 0.5 / 40
    assert noise.curves.curves["dp:fresh"][0] == pytest.approx(expected, rel=0.15)
    assert noise.curves.curves["simple:fresh"][0] == pytest.approx(2 * math.sqrt(2 / 40) / 0.05, rel=0.15)


@pytest.mark.parametrize("changed", [{"rounds": 0}, {"n_users": 1}, {"epsilon0": 0}, {"dimension": 0}, {"seed": 0.5}])
def test_bad_rounds_are_refused(changed):
    given = {"n_users": 5, "dimension": 5, "epsilon": 0.5, "epsilon0": 0.5, "rounds": 2, "seed": 0}
    [name] = changed
    with pytest.raises(DomainError, match=f"^{name} "):
        as_published.compute_repeated_noise(**(given | changed))


def test_the_figures_are_drawn(noise, tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
    classical = as_published.compute_classical(np.geomspace(0.1, 40, 5), DELTA)
    for name, record, draw in (
        ("noise", noise, as_published.draw_repeated_noise),
        ("classical", classical, as_published.draw_classical),
    ):
        present.show(record, draw, name=name, alt="A figure of what was released.")
        assert (tmp_path / "figures" / f"{name}.csv").read_text() == record.to_csv()
        assert (tmp_path / "figures" / f"{name}.svg").stat().st_size > 5000
