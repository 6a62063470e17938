"""The worst randomizer: the search against random randomizers by enumeration, and the leading order."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from flamebook.attacks.every_randomizer import OTHERS, columns_of, extreme_randomizers, worst_randomizer
from flamebook.figures.blanket import worst
from flamebook.places import ROOT

CASES = [(Fraction(3, 2), Fraction(21, 20)), (Fraction(3), Fraction(6, 5)), (Fraction(6), Fraction(4))]


def divergence(rows: np.ndarray, others: tuple[int, ...], growth: float) -> float:
    """By all bags of messages, each message drawn on its own; no code shared with the search."""
    letters = rows.shape[1]
    bags: dict[tuple[int, ...], list[float]] = {}
    for sent in itertools.product(range(letters), repeat=1 + len(others)):
        rest = math.prod(rows[holds, letter] for holds, letter in zip(others, sent[1:], strict=True))
        chances = bags.setdefault(tuple(sorted(sent)), [0.0, 0.0])
        chances[0] += rows[0, sent[0]] * rest
        chances[1] += rows[1, sent[0]] * rest
    return sum(max(one - growth * other, 0.0) for one, other in bags.values())


def private(generator: np.random.Generator, values: int, letters: int, factor: float) -> np.ndarray:
    """A random randomizer of the budget: columns within the factor of each other, rows scaled to sum to one."""
    while True:
        rows = factor ** (generator.random((values, letters)) * generator.choice([0.3, 1.0]))
        rows = np.where(generator.random(rows.shape) < 0.5, np.where(rows > math.sqrt(factor), factor, 1.0), rows)
        rows *= generator.random(letters)
        rows /= rows.sum(axis=1, keepdims=True)
        if (rows.max(axis=0) <= factor * (1 + 1e-12) * rows.min(axis=0)).all():
            return rows


@pytest.mark.parametrize("n_users", [2, 3, 4])
@pytest.mark.parametrize(("factor", "growth"), CASES)
def test_no_random_randomizer_exceeds_the_search(n_users: int, factor: Fraction, growth: Fraction) -> None:
    found = worst_randomizer(n_users, factor, growth)
    generator = np.random.default_rng([n_users, factor.numerator])
    p = float(factor)
    binary = np.array([[p, 1], [1, p]]) / (p + 1)
    worst_binary = max(
        divergence(binary, others, float(growth)) for others in itertools.product((0, 1), repeat=n_users - 1)
    )
    assert found.is_settled
    assert found.largest == pytest.approx(worst_binary, rel=1e-12)
    seen = 0.0
    for _ in range(60):
        rows = private(generator, 4, int(generator.integers(2, 4)), p)
        for others in {*itertools.combinations_with_replacement((0, 1, 2), n_users - 1), OTHERS[n_users]}:
            seen = max(seen, divergence(rows, others, float(growth)))
    assert 0 < seen <= found.at_most * (1 + 1e-12)


def test_the_smallest_case_of_the_page_is_that_of_all_bags() -> None:
    binary = np.array([[3, 1], [1, 3]]) / 4
    ternary = np.array([[3, 1, 1], [1, 3, 1], [1, 1, 3]]) / 5
    lost = [max(divergence(rows, (held,), 1.5) for held in range(len(rows))) for rows in (binary, ternary)]
    assert lost == pytest.approx([9 / 32, 11 / 50], rel=1e-12)
    assert ternary[0, 0] ** 2 - 1.5 * ternary[1, 0] * ternary[0, 0] == pytest.approx(9 / 50, rel=1e-12)
    page = json.loads((ROOT / "notebooks" / "blanket_worst.ipynb").read_text(encoding="utf-8"))
    case = "".join(page["cells"][0]["source"]).partition("**The smallest case.**")[2]
    assert all(number in case for number in (r"=\frac9{32}$", r"\frac{11}{50}$", r"=\frac9{50}$"))


def test_vertices_are_randomizers_and_k_ary_responses_are_among_them() -> None:
    columns = columns_of(3, Fraction(3))
    vertices = extreme_randomizers(columns)
    assert (len(columns), len(vertices)) == (7, 6)
    assert len(extreme_randomizers(columns_of(4, Fraction(3)))) == 42
    for weights in vertices:
        assert min(weights) >= 0
        assert [sum(w * v[row] for w, v in zip(weights, columns, strict=True)) for row in range(3)] == [1, 1, 1]
    ternary = {column: Fraction(1, 5) for column in itertools.permutations((Fraction(3), Fraction(1), Fraction(1)))}
    assert tuple(ternary.get(column, Fraction(0)) for column in columns) in vertices


@pytest.mark.parametrize("budget", [0.1, math.log(2) - 1e-3, math.log(2) + 1e-3, 1.0, 3.0])
def test_leading_order_of_random_randomizers_and_of_the_proof(budget: float) -> None:
    found, p = worst.variances(budget), math.exp(budget)
    assert found["every"] == pytest.approx((p - 1) ** 2 * max(1 / p, 2 / (p + 2)), rel=1e-9)
    assert (found["ternary"] > found["binary"]) == (budget > math.log(2))
    assert found["every"] < found["clones"]
    generator = np.random.default_rng(3)
    for _ in range(300):
        a, b, e = private(generator, 3, int(generator.integers(2, 6)), p)
        assert ((a - b) ** 2 / e).sum() <= found["every"] * (1 + 1e-9)


def test_ratios_of_large_crowds_tend_to_the_limit() -> None:
    contest = worst.compute_contest([0.5, 2.0], [10**4, 10**9], 1e-6)
    for name, values in contest.curves.items():
        end = worst.limit(float(name.partition(":")[2]), 1e-6)
        assert abs(values[1] / end - 1) < 2e-4 < abs(values[0] / end - 1)
    told = worst.words_of_contest(contest)["contest"]
    assert told.startswith("at the budget 2.0 ternary response loses more")
    [_, gain] = worst.words_of_contest(contest)["gain"].removesuffix(" %.").split(" at least ")
    assert float(gain) <= 100 * (contest.curves["lower:2.0"][1] - 1) <= float(gain) + 1
    assert "at the budget 0.5 it is not" in told


def test_a_contest_without_losses_and_budgets_of_one_fraction() -> None:
    nothing = worst.compute_contest([0.2], [1000], 1e-3)
    told = worst.words_of_contest(nothing)
    assert (told["contest"], told["gain"]) == ("at the budget 0.2 nothing is lost at this failure probability", "")
    assert len(worst.search([0.5, 0.51]).cases) == 9


def test_brackets_are_in_order_and_a_false_one_is_told() -> None:
    rows = worst.bracket_rows([0.5, 2.0], 10**6, 1e-6)
    assert worst.in_order(rows).holds
    assert worst.in_order([(0.5, 1.0, 2.0, 0.5, 0.4, 4.0)]).holds is False
    few = worst.few_rows(2.0, [4, 20])
    assert worst.overtaken(few) == "among 20 users"
    assert worst.overtaken(few[:1]) == "in none of these crowds"
