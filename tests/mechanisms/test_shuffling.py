"""The shuffler: same multiset, uniformly random order, a copy; bags of one size, each permuted on its own."""

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from flamelib.mechanisms.shuffling import fill_bags, random_ranks, shuffle


@pytest.mark.parametrize("messages", [np.arange(50), np.array([]), np.arange(12.0).reshape(4, 3)])
def test_the_multiset_survives_and_the_input_is_left_alone(messages):
    before = messages.copy()
    shuffled = shuffle(messages, np.random.default_rng(0))
    assert (messages == before).all()
    assert not np.shares_memory(shuffled, messages)
    assert sorted(map(str, shuffled)) == sorted(map(str, messages))
    assert shuffled.dtype == messages.dtype


def test_every_order_is_equally_likely():
    rng = np.random.default_rng(1)
    orders = dict.fromkeys(itertools.permutations(range(4)), 0)
    for _ in range(24_000):
        orders[tuple(shuffle(np.arange(4), rng).tolist())] += 1
    assert chisquare(list(orders.values())).pvalue > 1e-3


# --- bags -------------------------------------------------------------------------------------------------------------


def no_dummies(places):
    return np.full(places.size, -1)


def test_ranks_number_the_messages_of_each_coordinate_in_every_order():
    places = np.random.default_rng(3).permutation(np.repeat(np.arange(6000), 3))
    ranks = random_ranks(places, 6001, np.random.default_rng(4))
    orders = Counter(map(tuple, ranks[places.argsort(kind="stable")].reshape(-1, 3).tolist()))
    assert set(orders) == set(itertools.permutations(range(3)))
    assert chisquare(list(orders.values())).pvalue > 1e-3


def test_a_bag_holds_its_messages_and_dummies_of_its_own_coordinate():
    rng = np.random.default_rng(4)
    places = rng.integers(7, size=60)
    bags = fill_bags(places, 100 + np.arange(60), (9, 25), lambda missing: missing, rng)
    for j, bag in enumerate(bags):
        own = 100 + np.flatnonzero(places == j)
        assert sorted(bag) == sorted([*own, *[j] * (25 - own.size)])


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_arrangement_in_a_bag_is_equally_likely(size):
    places, messages = np.repeat(np.arange(9000), 2), np.tile([5, 6], 9000)
    bags = fill_bags(places, messages, (9000, size), no_dummies, np.random.default_rng(size))
    slots = Counter(zip(np.argmax(bags == 5, axis=1).tolist(), np.argmax(bags == 6, axis=1).tolist(), strict=True))
    assert set(slots) == set(itertools.permutations(range(size), 2))
    assert chisquare(list(slots.values())).pvalue > 1e-3


def test_what_overflows_is_chosen_at_random():
    places, messages = np.repeat(np.arange(6000), 4), np.tile(np.arange(4), 6000)
    bags = fill_bags(places, messages, (6001, 2), no_dummies, np.random.default_rng(7))
    kept = Counter(map(tuple, np.sort(bags[:-1], axis=1).tolist()))
    assert set(kept) == set(itertools.combinations(range(4), 2))
    assert chisquare(list(kept.values())).pvalue > 1e-3
    assert (bags[-1] == -1).all()


def test_envelopes_are_moved_as_they_are():
    rng = np.random.default_rng(8)
    places, envelopes = rng.integers(3, size=10), rng.integers(256, size=(10, 5), dtype=np.uint8)
    bags = fill_bags(places, envelopes, (3, 12), lambda missing: np.zeros((missing.size, 5), dtype=np.uint8), rng)
    assert bags.shape == (3, 12, 5)
    assert bags.dtype == np.uint8
    for j in range(3):
        found = sorted(row.tobytes() for row in bags[j] if row.any())
        assert found == sorted(row.tobytes() for row in envelopes[places == j])
