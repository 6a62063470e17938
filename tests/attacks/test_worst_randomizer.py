"""The worst randomizer: the search against random randomizers by enumeration, and the leading order."""

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest

from flamebook.attacks import every_randomizer
from flamebook.attacks.every_randomizer import extreme_randomizers, worst_randomizer

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


def columns_of(values: int, factor: Fraction) -> list[tuple[Fraction, ...]]:
    """The columns of 1 and ``factor``, each direction once."""
    return [tuple(factor if one else Fraction(1) for one in held) for held in every_randomizer._sets(values)]


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
    form = every_randomizer._form((2,) * (n_users - 1), factor, growth, operator.truediv)
    least = max(values[(at,) * n_users] for at in range(len(points)))
    for level in (least, 0.8 * least):
        found = every_randomizer._exceeding(form, points.astype(float), n_users, float(level / n_users) * (1 + 1e-9))
        expected = {choice: float(value) / n_users for choice, value in values.items() if value > level * (1 + 1e-9)}
        assert {choice: value for value, choice in found} == pytest.approx(expected, rel=1e-12)
        assert expected


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
def test_no_random_randomizer_has_a_larger_leading_order_than_the_proof_allows(budget: float) -> None:
    p = math.exp(budget)
    most = (p - 1) ** 2 * max(1 / p, 2 / (p + 2))
    generator = np.random.default_rng(3)
    for _ in range(300):
        a, b, e = private(generator, 3, int(generator.integers(2, 6)), p)
        assert ((a - b) ** 2 / e).sum() <= most * (1 + 1e-9)
