"""Bags that overflow: the exact small case by enumeration, the protocol played, and the direction of the bound."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from flamelib.accounting.coordinates.counting import topk_lower
from flamelib.accounting.coordinates.likelihood_weighted import weighed_lower
from flamelib.accounting.coordinates.truncated import dropped_lower, full_bags, full_bags_lower
from flamelib.accounting.coordinates.vector_bounds import topk_truncated
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame

DELTA = 0.01 / 1000**1.1


def counted(chances, room):
    """Law of the messages above one half in a bag that keeps ``room`` of them: every outcome, every set kept."""
    law = Counter()
    kept_sets = list(itertools.combinations(range(len(chances)), min(room, len(chances))))
    for bits in itertools.product((0, 1), repeat=len(chances)):
        weight = math.prod(p if bit else 1 - p for p, bit in zip(chances, bits, strict=True))
        for kept in kept_sets:
            law[sum(bits[i] for i in kept)] += weight / len(kept_sets)
    return law


def total(laws):
    law = Counter({0: 1.0})
    for one in laws:
        after = Counter()
        for (a, p), (b, q) in itertools.product(law.items(), one.items()):
            after[a + b] += p * q
        law = after
    return law


def worlds(same, full, padded, epsilon0):
    """Both laws of the count, bag by bag."""
    above = 1 - 0.5 * math.exp(-epsilon0 / 2)
    below = 1 - above
    quiet = [0.5] * (padded - 1)
    first = [counted([above, *quiet], padded)] * same
    first += [counted([above] + [below] * padded, padded)] * full + [counted([above] * padded, padded)] * full
    second = [counted([below, *quiet], padded)] * same
    second += [counted([below] * padded, padded)] * full + [counted([below] + [above] * padded, padded)] * full
    return total(first), total(second)


def beyond(p, q, epsilon):
    return math.fsum(max(p[y] - math.exp(epsilon) * q[y], 0.0) for y in {*p, *q})


@pytest.mark.parametrize(("n_users", "kept", "padded"), [(5, 1, 2), (9, 2, 2), (4, 2, 3), (4, 3, 3), (3, 2, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.9])
def test_the_count_by_enumeration(n_users, kept, padded, epsilon):
    full = full_bags(n_users, kept, padded)
    truth = beyond(*worlds(kept - full, full, padded, 1.3), epsilon)
    found = full_bags_lower(n_users, kept, padded, 1.3, epsilon=epsilon)
    assert found <= truth
    assert found == pytest.approx(truth, abs=1e-9)


def test_without_overflow_it_is_the_count_of_equal_top_coordinates():
    for delta in (1e-3, 1e-9):
        assert full_bags_lower(300, 50, 300, 0.5, delta=delta) == pytest.approx(
            topk_lower(50, 300, 0.5, delta=delta), rel=1e-7
        )


def test_the_experiments_give_away_more_when_bags_overflow():
    first = full_bags_lower(1000, 157, 333, 0.5, delta=DELTA)
    assert first == pytest.approx(1.79677, abs=5e-6)
    assert first > 1.45 * topk_lower(157, 333, 0.5, delta=DELTA)
    assert full_bags_lower(1000, 785, 666, 0.5, delta=DELTA) == pytest.approx(2.77134, abs=5e-6)
    assert full_bags_lower(1000, 785, 666, 0.5, epsilon=2.348) > 10 * DELTA


def updates(first):
    """One coordinate of three is reported: two others fill one bag, two another, and the victim joins either."""
    rows = np.zeros((5, 3))
    rows[1:3, 0], rows[3:5, 1] = -1, 1
    rows[0, 0 if first else 1] = 1 if first else -1
    return rows


def test_the_protocol_itself_drops_and_counts_like_that():
    protocol = flame.FlameTopk(5, 3, 1.0, LaplaceNoise(1.3), kept=1, padded=2)
    rng, repeats = np.random.default_rng(5), 1200
    for first, law in zip((True, False), worlds(0, 1, 2, 1.3), strict=True):
        seen = np.zeros(5)
        for _ in range(repeats):
            bags = flame.shuffler(protocol, flame.user(protocol, updates(first), rng), rng).bags
            seen[int((np.asarray(bags[:2], dtype=float) > 0.5).sum())] += 1
        expected = np.array([law[y] for y in range(5)])
        spread = np.sqrt(repeats * expected * (1 - expected))
        assert (abs(seen - repeats * expected) < 4 * spread + 1).all()


def test_full_bags_are_counted_as_far_as_they_can_be():
    whole = dropped_lower(1000, 7850, 157, 333, 0.5, delta=5e-6)
    assert whole == full_bags_lower(1000, 157, 333, 0.5, delta=5e-6) > weighed_lower(1000, 157, 333, 0.5, delta=5e-6)
    some = dropped_lower(10**5, 7850, 157, 33300, 0.5, delta=5e-6)
    assert some >= max(full_bags_lower(10**5, 30, 33300, 0.5, delta=5e-6), topk_lower(157, 33300, 0.5, delta=5e-6))
    assert dropped_lower(100, 10, 10, 100, 0.5, delta=1e-4) >= topk_lower(10, 100, 0.5, delta=1e-4)


@pytest.mark.parametrize(("n_users", "dimension", "padded"), [(1000, 1, 2), (50, 3, 7), (9, 4, 8)])
def test_users_who_cannot_report_elsewhere_fill_the_bags(n_users, dimension, padded):
    """Every user reports every coordinate, so that some report of the victim is kept with at most this probability."""
    seen = min(1.0, dimension * padded / n_users)
    assert dropped_lower(n_users, dimension, dimension, padded, 5.0, epsilon=0.0) <= seen


def test_what_is_dropped_at_random_loses_no_more_than_is_certified():
    rng = np.random.default_rng(4)
    for _ in range(4):
        kept, padded = int(rng.integers(1, 8)), int(rng.integers(2, 40))
        n_users, dimension = int(rng.integers(2, 300)), kept + int(rng.integers(0, 20))
        epsilon0, delta = float(rng.uniform(0.05, 4)), float(10 ** rng.uniform(-9, -2))
        lower = dropped_lower(n_users, dimension, kept, padded, epsilon0, delta=delta)
        assert lower <= topk_truncated(kept, padded, epsilon0, delta) * (1 + 1e-9)
