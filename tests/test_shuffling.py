"""The shuffler: same multiset, uniformly random order, a copy."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare

from flamelib._validate import DomainError
from flamelib.shuffling import shuffle


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


def test_the_senders_order_leaves_no_trace():
    """What comes out has the same law for any order of the same messages: counts of the first message out."""
    draws = [
        [int(shuffle(np.array(sent), rng)[0]) for _ in range(8000)]
        for sent, rng in zip(([0, 0, 1], [1, 0, 0]), np.random.default_rng(2).spawn(2), strict=True)
    ]
    error = np.sqrt(2 * (1 / 3) * (2 / 3) / 8000)
    assert abs(np.mean(draws[0]) - np.mean(draws[1])) < 5 * error
    assert abs(np.mean(draws[0]) - 1 / 3) < 5 * error


def test_a_single_value_is_no_list_of_messages():
    with pytest.raises(DomainError, match="messages must be an array"):
        shuffle(np.array(3), np.random.default_rng(0))
