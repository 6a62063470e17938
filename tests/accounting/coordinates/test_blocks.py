"""Exactly k of d coordinates: above every small protocol enumerated outright, exact where nothing is given away."""

import math

import numpy as np
import pytest
from oracles import subsets as oracles
from scipy.stats import binom

from flamelib.accounting.coordinates.counting import exactly_lower
from flamelib.accounting.coordinates.fixed_size_subsets import DELTA_CROWDED, Subsets
from flamelib.accounting.coordinates.padded import Coordinate, sampled
from flamelib.accounting.coordinates.vector_bounds import account, double_revealed, topk_truncated
from flamelib.core.profiles import KaryProfile, LaplaceProfile

DELTA = 0.01 / 1000**1.1
FIFTIETH = {"dimension": 7850, "n_users": 1000, "kept": 157, "padded": 333, "epsilon0": 0.5, "delta": DELTA}
TENTH = FIFTIETH | {"kept": 785, "padded": 666, "delta": 5e-6}
SOUND = {"protocol": "double", "bound": "blanket", "route": "sound"}
DELTAS = (0.2, 0.05, 0.01, 1e-3, 1e-5)
# Letters, coordinates, reported ones, users, messages of a bag.
WORLDS = [
    (2, 4, 2, 1, 2), (2, 5, 2, 1, 2), (2, 5, 3, 1, 2), (2, 3, 2, 1, 4), (3, 3, 2, 1, 2), (3, 3, 1, 1, 3),
    (2, 4, 2, 2, 2), (2, 4, 2, 2, 3), (2, 3, 2, 2, 2), (2, 3, 1, 2, 4), (3, 2, 1, 2, 3),
    (2, 3, 1, 3, 3), (2, 2, 1, 3, 4), (2, 3, 3, 2, 2),
]  # fmt: skip
CROWDED = [(2, 3, 1, 3, 2), (2, 2, 1, 3, 2), (2, 3, 2, 3, 2), (3, 2, 1, 3, 2)]


@pytest.mark.parametrize("world", WORLDS[::2] + CROWDED)
@pytest.mark.parametrize("epsilon0", [0.3, 5.0])
def test_above_every_pair_of_neighbours(world, epsilon0):
    n_buckets, dimension, kept, n_users, padded = world
    profile = KaryProfile(epsilon0, n_buckets)
    for drop in (True, False) if n_users <= padded else (True,):
        one = Subsets(profile, dimension, kept, n_users, padded, drop=drop)
        found = [float(one.epsilon(delta)) for delta in DELTAS]
        pairs = oracles.worst_pairs(dimension, n_buckets, n_users, oracles.exactly(dimension, kept), padded, epsilon0)
        truth = oracles.worst_deltas(pairs, found)
        assert all(true <= delta * (1 + 1e-9) for true, delta in zip(truth, DELTAS, strict=True))
        assert all(epsilon <= kept * epsilon0 * (1 + 1e-12) for epsilon in found)


@pytest.mark.parametrize(("n_buckets", "dimension", "padded"), [(2, 4, 3), (2, 5, 2), (3, 3, 2)])
@pytest.mark.parametrize("epsilon0", [0.4, 2.0])
def test_one_coordinate_beside_dummies_is_exact(n_buckets, dimension, padded, epsilon0):
    """One block of all bags, nobody else: one shuffle of all messages, and nothing is lost."""
    one = Subsets(KaryProfile(epsilon0, n_buckets), dimension, 1, 1, padded)
    pairs = list(oracles.worst_pairs(dimension, n_buckets, 1, oracles.exactly(dimension, 1), padded, epsilon0))
    [(size, count)], (blankets, missed) = one.blocks, one.room(1e-3)
    assert (size, count, blankets, missed) == (dimension, 1, padded, 0.0)
    epsilons = [share * epsilon0 for share in (0.0, 0.05, 0.2, 0.6)]
    for epsilon, truth in zip(epsilons, oracles.worst_deltas(pairs, epsilons), strict=True):
        found = one.block(size * blankets).delta(epsilon, "blanket")
        assert found == pytest.approx(truth, rel=1e-9, abs=1e-15)
        assert float(one.epsilon(truth)) >= epsilon * (1 - 1e-9)


@pytest.mark.parametrize("n_users", [1, 2, 10, 300, 1000])
@pytest.mark.parametrize("padded", [2, 9, 333])
@pytest.mark.parametrize("delta", [0.3, 1e-12, 1e-40])
def test_bags_have_the_room_that_is_said(n_users, padded, delta):
    profile = LaplaceProfile(3.0)
    one = Subsets(profile, 1000, 20, n_users, padded)
    blankets, missed = one.room(delta)
    others, full = n_users - 1, 1000 * binom.sf(padded - 1, n_users - 1, 0.02)
    if not blankets:
        assert missed == 1
        assert full + 1000 * binom.sf(min(padded, n_users) - 1, others, 0.02 * profile.kept) > DELTA_CROWDED * delta
        return
    crowded = 1000 * binom.sf(padded - blankets, others, 0.02 * profile.kept)
    assert (crowded + full) * (1 - 1e-9) <= missed < delta
    assert crowded <= DELTA_CROWDED * delta
    assert 1 <= blankets <= padded
    assert (
        blankets == padded
        or 1000 * binom.sf(padded - blankets - 1, others, 0.02 * profile.kept) > DELTA_CROWDED * delta
    )


@pytest.mark.parametrize(("setting", "expected"), [(FIFTIETH, 0.15732), (TENTH, 0.62312)])
def test_the_papers_settings(setting, expected):
    found = account(**SOUND, **setting, inclusion="exact")
    assert found == pytest.approx(expected, abs=1e-4)
    shape = {name: setting[name] for name in ("n_users", "dimension", "kept", "padded", "epsilon0", "delta")}
    below = exactly_lower(**shape)
    assert 0.9 * found < below < found
    assert account(**SOUND, **setting) < found < double_revealed(setting["kept"], setting["padded"], 0.5, DELTA) / 3
    assert account(**SOUND, **setting, inclusion="exact", overflow="drop") == found


# --- full bags -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_buckets", "n_users", "padded"), [(2, 3, 2), (2, 4, 2), (2, 5, 3), (3, 3, 2)])
@pytest.mark.parametrize("rate", [0.1, 0.6, 1.0])
@pytest.mark.parametrize("epsilon0", [0.5, 3.0])
def test_one_coordinate_that_drops_reports(n_buckets, n_users, padded, rate, epsilon0):
    profile = KaryProfile(epsilon0, n_buckets)
    bag = Coordinate(profile, sampled(profile, padded, n_users, rate, 1e-6, drop=True), rate, rate)
    pairs = oracles.worst_pairs(1, n_buckets, n_users, oracles.independently(1, rate), padded, epsilon0)
    epsilons = [share * epsilon0 for share in (0, 0.1, 0.4, 0.8)]
    for epsilon, truth in zip(epsilons, oracles.worst_deltas(pairs, epsilons), strict=True):
        assert truth <= bag.delta(epsilon, "blanket") * (1 + 1e-9)
        bare = Coordinate(profile, sampled(profile, padded, n_users, rate, 1e-6), rate, rate)
        assert bag.delta(epsilon, "blanket") <= bare.delta(epsilon, "blanket") * (1 + 1e-9)


def test_dropping_is_told_from_laying_bare_where_bags_are_full():
    given = {"dimension": 40, "n_users": 30, "kept": 20, "padded": 12, "epsilon0": 0.8, "delta": 1e-5}
    for inclusion in ("independent", "exact"):
        bare, dropped = (
            account(**SOUND, **given, inclusion=inclusion, overflow=overflow) for overflow in ("none", "drop")
        )
        assert dropped < 0.7 * bare <= 0.7 * 40 * 0.8
    roomy = given | {"padded": 30}
    assert account(**SOUND, **roomy) == account(**SOUND, **roomy, overflow="drop")


def test_the_largest_coordinates_in_full_bags():
    topk = {"protocol": "topk", "bound": "blanket", "route": "sound"}
    found = account(**topk, **FIFTIETH, overflow="drop")
    assert found == topk_truncated(157, 333, 0.5, DELTA)
    room = FIFTIETH | {"n_users": 333}
    assert account(**topk, **room, overflow="drop") == account(**topk, **room) < found


# --- the count -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [(2, 3, 2), (1, 4, 2), (2, 2, 3)])
def test_the_count_is_below_the_enumerated_protocol(world):
    """Binary response in the place of noise: two users, bags of two, all messages counted."""
    kept, dimension, padded = world
    epsilon0 = 1.7
    above = 1 - math.exp(-epsilon0 / 2) / 2
    fair, few = np.arange(dimension * padded - kept + 1), np.arange(kept + 1)
    plus, minus = (
        np.convolve(binom.pmf(fair, fair[-1], 0.5), binom.pmf(few, kept, chance)) for chance in (above, 1 - above)
    )
    for epsilon in (0.0, 0.3, 1.0):
        truth = np.maximum(plus - math.exp(epsilon) * minus, 0).sum()
        assert exactly_lower(2, dimension, kept, padded, epsilon0, epsilon=epsilon) == pytest.approx(truth, rel=1e-9)
    delta = 0.05
    epsilon = exactly_lower(2, dimension, kept, padded, epsilon0, delta=delta)
    assert np.maximum(plus - math.exp(epsilon) * minus, 0).sum() >= delta * (1 - 1e-12)


def test_full_bags_are_granted():
    roomy, tight = (exactly_lower(30, 10, 3, padded, 2.0, delta=1e-3) for padded in (30, 22))
    assert tight > 0
    assert exactly_lower(30, 10, 3, 10, 2.0, delta=1e-3) == exactly_lower(10**6, 10**6, 3, 10**6, 2.0, delta=0.1) == 0
    below = 0.5 * math.exp(-1.0)
    fair, few = np.arange(10 * 22 - 2), np.arange(4)
    plus, minus = (
        np.convolve(binom.pmf(fair, 10 * 22 - 3, 0.5), binom.pmf(few, 3, chance)) for chance in (1 - below, below)
    )
    lost = 3 * binom.sf(21, 29, 0.3)
    assert np.maximum(plus - math.exp(tight) * minus, 0).sum() >= 1e-3 + lost * (1 + math.exp(tight))
    assert roomy > 0
