"""Split-and-mix in small worlds against enumeration of every draw, and against the closed-form bounds."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamelib.accounting.splitting.enumeration import (
    least_smoothness,
    shares_probability,
    shuffled_distance,
    smooth_ratio,
    subset_counts,
    subset_moments,
    subset_tables,
)
from flamelib.accounting.splitting.two_users import second_moment_delta, two_user_delta, two_user_distance
from flamelib.core.vocabulary import DomainError

# --- the oracle: one sequence of draws after the other ---------------------------------------------------------------


def draws(modulus: int, n_messages: int, inputs: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All shares of all users, in order, each sequence as likely as any other."""
    free = range(modulus)
    for drawn in itertools.product(itertools.product(free, repeat=n_messages - 1), repeat=len(inputs)):
        closed = ((*own, (value - sum(own)) % modulus) for own, value in zip(drawn, inputs, strict=True))
        yield tuple(itertools.chain.from_iterable(closed))


@pytest.mark.parametrize("n_users", range(2, 11))
def test_with_two_messages_a_crowd_hides_nothing(n_users: int) -> None:
    others = (0,) * (n_users - 2)
    assert shuffled_distance(3, 2, (0, 0, *others), (1, -1, *others), 0) == float(Fraction(4, 9))


def test_neither_order_nor_representatives_matter() -> None:
    assert shuffled_distance(5, 3, (0, 7, 1), (3, -1, 1), 0.2) == shuffled_distance(5, 3, (1, 2, 0), (1, 4, 3), 0.2)
    assert shuffled_distance(5, 3, (0, 2, 1), (1, 0, 2), 0) == 0
    assert shuffled_distance(5, 3, (0, 2), (1, 2), 9.0) == 1
    assert shuffled_distance(5, 1, (0, 2), (1, 1), 9.0) == 1


@given(st.integers(2, 7), st.integers(2, 5), st.data())
def test_bounds_of_two_users_are_above_the_exact_distance(modulus: int, n_messages: int, data: st.DataObject) -> None:
    values = st.integers(0, modulus - 1)
    one, two, three = data.draw(values), data.draw(values), data.draw(values)
    epsilon = data.draw(st.floats(0.01, 2.0))
    pair = (one, two), (three, (one + two - three) % modulus)
    assert shuffled_distance(modulus, n_messages, *pair, 0) <= two_user_distance(modulus, n_messages)
    exact = shuffled_distance(modulus, n_messages, *pair, epsilon)
    assert exact <= second_moment_delta(modulus, n_messages, epsilon) <= two_user_delta(modulus, n_messages, epsilon)


# --- subsets ---------------------------------------------------------------------------------------------------------


def test_large_residues_are_counted_too() -> None:
    assert least_smoothness((3, 2**70), 2**80) == float(2**79 - 1)
    with pytest.raises(DomainError, match="messages"):
        least_smoothness(tuple(range(200)), 10**6)
    for wrong in ((), (1,), (1, 2, 3)):
        with pytest.raises(DomainError, match="messages"):
            least_smoothness(wrong, 5)


@pytest.mark.parametrize(("modulus", "n_messages"), [(5, 2), (7, 3), (8, 3)])
def test_lemma_3_holds_for_every_smooth_set_of_shares(modulus: int, n_messages: int) -> None:
    smooth = 0
    for messages in itertools.combinations(range(modulus), 2 * n_messages):
        slack = least_smoothness(messages, modulus)
        chances = [shares_probability(messages, modulus, (x, sum(messages) - x)) for x in range(modulus)]
        if slack < 1:
            smooth += 1
            assert max(chances) <= smooth_ratio(slack) * min(chances)
    assert smooth


@pytest.mark.parametrize(("modulus", "n_messages"), [(3, 2), (3, 3), (5, 2), (5, 3), (7, 2)])
def test_moments_of_subset_sums_are_those_of_every_draw(modulus: int, n_messages: int) -> None:
    """Of the m-subsets other than the two users' own: with a complement at half the sum, else nearly independent."""
    inputs = (1, 2)
    own = (tuple(range(n_messages)), tuple(range(n_messages, 2 * n_messages)))
    others = [part for part in itertools.combinations(range(2 * n_messages), n_messages) if part not in own]
    seen = [Counter(sum(y[i] for i in part) % modulus for part in others) for y in draws(modulus, n_messages, inputs)]
    expected = subset_moments(modulus, n_messages)
    for x in range(modulus):
        mean = Fraction(sum(counts[x] for counts in seen), len(seen))
        variance = Fraction(sum(counts[x] ** 2 for counts in seen), len(seen)) - mean**2
        half = (2 * x - sum(inputs)) % modulus == 0
        assert float(mean) == expected.mean
        assert float(variance) == (expected.variance_at_half if half else expected.variance)


def test_tables_of_subsets_are_those_of_one_row() -> None:
    rng = np.random.default_rng(7)
    for half in (1, 3, 5):
        messages = rng.integers(0, 6, (300, 2 * half))
        for row, counts in zip(messages, subset_tables(messages, 6), strict=True):
            expected = subset_counts(tuple(row.tolist()), 6)
            assert counts.tolist() == [expected.get(residue, 0) for residue in range(6)]
    assert subset_tables(np.zeros((1, 64), dtype=np.int64), 2).max() == math.comb(64, 32)
    for shape in ((1, 3), (1, 66), (4,)):
        with pytest.raises(DomainError, match="messages"):
            subset_tables(np.zeros(shape, dtype=np.int64), 2)
