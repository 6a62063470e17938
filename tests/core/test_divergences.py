"""Enumerated distances against a second enumeration, closed forms and published numbers."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from flamelib.core.divergences import hockey_stick, kary_table, shuffled_delta, shuffled_law, three_component_clone_pair
from flamelib.core.vocabulary import DomainError


def enumerate_messages(rows, inputs):
    """Every ordered tuple of messages in turn, in exact rational arithmetic."""
    law = Counter()
    for messages in product(range(len(rows[0])), repeat=len(inputs)):
        mass = math.prod((Fraction(rows[x][y]) for x, y in zip(inputs, messages, strict=True)), start=Fraction(1))
        law[tuple(messages.count(y) for y in range(len(rows[0])))] += mass
    return law


def distance(p, q, epsilon):
    factor = Fraction(math.exp(epsilon))
    return float(sum(max(p[y] - factor * q[y], 0) for y in p))


@pytest.mark.parametrize("inputs", [(0,), (0, 1), (2, 2, 1), (0, 1, 1, 2)])
def test_the_shuffled_law_is_the_sum_over_ordered_messages(inputs):
    rows = kary_table(3, 1.3).tolist()
    expected = enumerate_messages(rows, inputs)
    found = shuffled_law(rows, inputs)
    assert found.keys() == expected.keys()
    assert all(found[y] == pytest.approx(float(expected[y]), rel=1e-13) for y in expected)


@pytest.mark.parametrize(
    ("n_buckets", "n_users", "epsilon", "truth", "claimed"),
    [
        (3, 4, 0.5, 0.0707851108, 0.0699432921),
        (4, 3, 0.5, 0.0700215697, 0.0688028234),
        (4, 5, 0.3, 0.0795803699, 0.0795752976),
    ],
)
def test_the_three_component_clone_value_falls_below_the_truth(n_buckets, n_users, epsilon, truth, claimed):
    assert shuffled_delta(kary_table(n_buckets, 1.0), n_users, epsilon) == pytest.approx(truth, abs=6e-11)
    pair = three_component_clone_pair(n_users, n_buckets, 1.0)
    assert hockey_stick(*pair, epsilon) == pytest.approx(claimed, abs=6e-11)
    assert hockey_stick(*pair, epsilon) < shuffled_delta(kary_table(n_buckets, 1.0), n_users, epsilon)


def test_the_clone_pair_is_a_marginal_of_the_data_set_with_a_third_value():
    rows = kary_table(4, 0.8).tolist()
    merged = Counter()
    for (first, second, *_), mass in enumerate_messages(rows, (0, 2, 2, 2)).items():
        merged[first, second] += mass
    before, after = three_component_clone_pair(4, 4, 0.8)
    assert all(before[y] == pytest.approx(float(merged[y]), rel=1e-12) for y in merged)
    assert math.fsum(before.values()) == pytest.approx(1, abs=1e-14)
    assert after == {(b, a): mass for (a, b), mass in before.items()}


def test_an_unequal_randomizer_is_judged_by_its_worst_pair_and_direction():
    rows = [[0.5, 0.5, 0.0], [0.45, 0.35, 0.2], [0.9, 0.05, 0.05]]
    found = []
    for others in product(range(3), repeat=2):
        laws = [enumerate_messages(rows, (x, *others)) for x in range(3)]
        found += [distance(laws[a], laws[b], 0.4) for a in range(3) for b in range(3)]
    assert shuffled_delta(rows, 3, 0.4) == pytest.approx(max(found), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: hockey_stick([0.5, 0.6], [0.5, 0.5], 0.1), "left"),
        (lambda: hockey_stick([0.5, 0.5], [math.nan, 0.5], 0.1), "right"),
        (lambda: hockey_stick([0.5, 0.5], [], 0.1), "right"),
        (lambda: hockey_stick([0.5, 0.5], [0.5, 0.5], -0.1), "epsilon"),
        (lambda: hockey_stick([0.5, 0.5], [0.5, 0.5], math.inf), "epsilon"),
        (lambda: shuffled_law([[0.5, 0.4]], [0]), "table"),
        (lambda: shuffled_law([0.5, 0.5], [0]), "table"),
        (lambda: shuffled_law([[0.5, 0.5]], [1]), "inputs"),
        (lambda: shuffled_law([[0.5, 0.5]], []), "inputs"),
        (lambda: shuffled_law(kary_table(30, 1.0), range(30)), "n_users"),
        (lambda: shuffled_delta(kary_table(10, 1.0), 50, 0.1), "n_users"),
        (lambda: shuffled_delta(kary_table(2, 1.0), 1, 0.1), "n_users"),
        (lambda: kary_table(1, 1.0), "n_buckets"),
        (lambda: kary_table(2, 0.0), "epsilon0"),
        (lambda: three_component_clone_pair(4, 3, math.nan), "epsilon0"),
    ],
)
def test_bad_input_is_refused_with_its_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()
