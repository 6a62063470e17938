"""The worst randomizer: the search against random randomizers by enumeration, and the leading order."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from flamebook.attacks import every_randomizer
from flamebook.attacks.every_randomizer import columns_of, extreme_randomizers, worst_randomizer
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


@pytest.mark.parametrize(("n_users", "values"), [(2, 1), (3, 2), (4, 3), (5, 2), (6, 2)])
@pytest.mark.parametrize(("factor", "growth"), CASES)
def test_no_random_randomizer_exceeds_the_search(n_users: int, values: int, factor: Fraction, growth: Fraction) -> None:
    found = worst_randomizer(n_users, factor, growth, values)
    generator = np.random.default_rng([n_users, factor.numerator])
    p = float(factor)
    responses = [(np.ones((k, k)) + (p - 1) * np.eye(k)) / (p + k - 1) for k in (2, 3)]
    known = max(
        divergence(response, others, float(growth))
        for response in responses
        for others in itertools.combinations_with_replacement(range(len(response)), n_users - 1)
    )
    assert found.is_settled
    assert found.is_extreme
    assert found.largest == pytest.approx(known, rel=1e-12)
    seen = 0.0
    data_sets = list(itertools.combinations_with_replacement(range(values + 2), n_users - 1))
    for _ in range(60 if n_users < 5 else 20):
        letters, share = int(generator.integers(2, 4)), 1 - generator.random() ** 4
        meant = np.array([0, 1, *generator.integers(letters, size=values)])
        response = np.where(meant[:, None] == np.arange(letters), p, 1.0)
        rows = share * response / (p + letters - 1) + (1 - share) * private(generator, values + 2, letters, p)
        for others in (one for one in data_sets if len(set(one)) <= values):
            seen = max(seen, divergence(rows, others, float(growth)))
    assert 0.7 * found.largest < seen <= found.at_most * (1 + 1e-12)


def test_three_letters_are_worse_than_two_among_six_users() -> None:
    found = worst_randomizer(6, Fraction(3), Fraction(11, 10), 2)
    ternary = (np.ones((3, 3)) + 2 * np.eye(3)) / 5
    assert (found.letters, found.is_settled) == (3, True)
    assert found.largest == pytest.approx(divergence(ternary, (2,) * 5, 1.1), rel=1e-12)


@pytest.mark.parametrize(("n_users", "factor", "growth"), [(3, 2, 1.05), (4, 1.5, 1.15)])
def test_a_mixture_of_two_binary_responses_is_worse_than_each(n_users: int, factor: float, growth: float) -> None:
    found = worst_randomizer(n_users, Fraction(factor), Fraction(str(growth)), 1)
    like_first, like_second = np.array([[[factor, 1], [1, factor], held] for held in ([factor, 1], [1, factor])])

    def mixed(share: float) -> float:
        rows = np.hstack([share * like_first, (1 - share) * like_second]) / (factor + 1)
        return divergence(rows, (2,) * (n_users - 1), growth)

    seen = max(mixed(share) for share in np.linspace(0, 1, 101))
    assert max(mixed(0), mixed(1)) <= found.extreme * (1 + 1e-12) < 0.99 * seen
    assert found.largest * (1 - 1e-3) <= seen <= found.at_most
    assert (found.is_settled, found.is_extreme, found.letters) == (True, False, 4)


@pytest.mark.parametrize(("factor", "growth"), [(Fraction(2), Fraction(21, 20)), (Fraction(3), Fraction(11, 10))])
def test_no_choice_of_vertices_is_lost(factor: Fraction, growth: Fraction) -> None:
    """Against all choices, each by the sum of the users' losses, exactly."""
    columns, n_users = columns_of(3, factor), 4
    points = np.array(extreme_randomizers(3, factor), dtype=object)
    losses = [(x - growth * other) / held for x, other, held in columns]
    values = {}
    for choice in itertools.combinations_with_replacement(range(len(points)), n_users):
        letters = itertools.product(*(np.flatnonzero(points[at]) for at in choice))
        values[choice] = sum(
            max(sum(losses[one] for one in sent), 0)
            * math.prod(points[at][one] * columns[one][2] for at, one in zip(choice, sent, strict=True))
            for sent in letters
        )
    gains, which = every_randomizer._form((2,) * (n_users - 1), factor, growth)
    least = max(values[(at,) * n_users] for at in range(len(points)))
    for level in (least, 0.8 * least):
        found = every_randomizer._exceeding(
            gains[which].astype(float), points.astype(float), n_users, float(level / n_users) * (1 + 1e-9)
        )
        expected = {choice: float(value) / n_users for choice, value in values.items() if value > level * (1 + 1e-9)}
        assert {choice: value for value, choice in found} == pytest.approx(expected, rel=1e-12)
        assert expected


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
    columns, vertices = columns_of(3, Fraction(3)), extreme_randomizers(3, Fraction(3))
    counts = [len(extreme_randomizers(values, Fraction(3))) for values in (2, 3, 4, 5)]
    assert counts == [2, 6, 42, 1292]  # OEIS A355042
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
    assert len(worst.search([0.5, 0.51], [(2, 1), (3, 2)]).cases) == 6


def test_the_search_in_words_and_its_table() -> None:
    searched = worst.search([math.log(2), math.log(3)], [(3, 2), (6, 2), (4, 1)])
    heading, rows = searched.table()
    assert heading[2:4] == ["p = 2", "p = 3"]
    assert [row[:4] for row in rows] == [
        (3, "any", "2, 2, 2", "2, 2, 2"),
        (6, "2 values at most", "2, 2, 2", "3, 2, 2"),
        (4, "one value", "2, 2, 2", "4 mixed, 2, 2"),
    ]
    told = searched.words()
    assert told["settled"] == "all of them"
    assert told["so"].startswith("among 3 users nothing is worse than binary response")
    assert told["so"].endswith("among 6 users more letters are worse at p = 3")
    assert told["mixed"].startswith("in 1 case, with a loss up to 0.0")
    assert searched.agrees().holds
    _, _, _, one = searched.cases[0]
    wide = worst.Search([((3, 2), Fraction(2), Fraction(3, 2), replace(one, at_most=1.5 * one.largest))])
    assert wide.words()["settled"].endswith("by more than 50 %")
    assert wide.words()["so"] == "in no crowd the worst randomizer is known"


def test_brackets_are_in_order_and_a_false_one_is_told() -> None:
    rows = worst.bracket_rows([0.5, 2.0], 10**6, 1e-6)
    assert worst.in_order(rows).holds
    assert worst.in_order([(0.5, 1.0, 2.0, 0.5, 0.4, 4.0)]).holds is False
    few = worst.few_rows(2.0, [4, 20])
    assert worst.overtaken(few) == "among 20 users"
    assert worst.overtaken(few[:1]) == "in none of these crowds"
