"""Rounds of a shuffled table from below: against every data set in fractions, and against laws of two groups."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from oracles import tables as oracle
from scipy.stats import binom

from flamelib import evaluate
from flamelib.accounting.shuffling.tables import table_cells
from flamelib.core.profiles import TableProfile

TABLES = [((0.7, 0.3), (0.3, 0.7)), ((0.9, 0.1), (0.5, 0.5)), ((0.6, 0.3, 0.1), (0.2, 0.5, 0.3), (0.1, 0.2, 0.7))]


def lower(table, n_users, rounds, **asked):
    return evaluate("shuffle:table", table=table, n_users=n_users, rounds=rounds, side="lower", **asked).value


def several(table, n_users, rounds, epsilon):
    """The largest divergence of so many rounds of two neighbours, the same ones in every round."""
    pairs, whole = oracle.neighbours(oracle.normed(table), n_users)
    growth = oracle.power(epsilon)
    return max(
        sum(max(math.prod(p for p, _ in seen) - growth * math.prod(q for _, q in seen), 0)
            for seen in itertools.product(pair, repeat=rounds)) / Fraction(whole) ** rounds
        for pair in pairs
    )  # fmt: skip


@pytest.mark.parametrize(("number", "n_users", "rounds"), [(0, 2, 4), (0, 5, 3), (1, 3, 4), (2, 2, 3), (2, 4, 2)])
def test_never_above_every_data_set_and_hardly_below(number, n_users, rounds):
    table = TABLES[number]
    for epsilon in (0.3, 1.1, 2.0):
        truth = several(table, n_users, rounds, epsilon)
        assert 0.95 * truth <= Fraction(lower(table, n_users, rounds, epsilon=epsilon)) <= truth
    for delta in (1e-3, 1e-6):
        found = lower(table, n_users, rounds, delta=delta)
        assert several(table, n_users, rounds, found) >= Fraction(delta)
        assert several(table, n_users, rounds, 1.03 * found) <= Fraction(delta) * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("table", TABLES)
def test_groups_of_messages_in_a_crowd(table):
    """Of others who hold one value it is counted how many messages are of a group."""
    n, epsilon = 3000, 0.02
    counts, rows = np.arange(n + 1), np.array(table)
    found = [one.delta(epsilon) for cells in table_cells(TableProfile(table), n) for one in (cells, cells.swapped())]
    truth = []
    for size in range(1, len(rows[0])):
        for group in itertools.combinations(range(len(rows[0])), size):
            chances = rows[:, group].sum(axis=1)
            for (a, b), c in itertools.product(itertools.permutations(chances, 2), chances):
                p, q = (share * binom.pmf(counts - 1, n - 1, c) + (1 - share) * binom.pmf(counts, n - 1, c)
                        for share in (a, b))  # fmt: skip
                truth.append(np.maximum(p - math.exp(epsilon) * q, 0).sum())
    assert max(found) == pytest.approx(max(truth), rel=1e-4)
    for one in found:
        assert min(abs(one - other) for other in truth) <= 1e-4 * one


@pytest.mark.parametrize("n_users", [30, 4000, 10**12])
def test_more_rounds_lose_more_and_stay_below_the_other_side(n_users):
    found = [lower(TABLES[2], n_users, rounds, delta=1e-6) for rounds in (1, 2, 300)]
    assert found == sorted(found)
    most = evaluate("shuffle:table", table=TABLES[2], n_users=n_users, rounds=300, delta=1e-6, side="upper").value
    assert found[-1] <= most
    if n_users <= 10**9:
        assert found[-1] >= 10 * found[0]
