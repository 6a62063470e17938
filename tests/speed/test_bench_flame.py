"""A round of FLAME at the size of the paper; what sealing costs.

7850 coordinates, 1000 users, 157 reported coordinates, bags of 333 messages.
"""

import numpy as np
import pytest

from flamelib import account, calibrate
from flamelib.mechanisms import sealing
from flamelib.mechanisms.randomizers import KaryResponse, LaplaceNoise
from flamelib.protocols import flame

USERS, DIMENSION, CLIP, KEPT, PADDED = 1000, 7850, 0.01, 157, 333
UPDATES = np.random.default_rng(0).normal(scale=CLIP, size=(USERS, DIMENSION))
SIZES = (USERS, DIMENSION, CLIP)
NOISE = LaplaceNoise(0.5)
PROTOCOLS = {
    "simple": flame.FlameSimple(*SIZES, LaplaceNoise(0.01)),
    "double": flame.FlameDouble(*SIZES, NOISE, KEPT, PADDED),
    "topk": flame.FlameTopk(*SIZES, NOISE, KEPT, PADDED),
    "topk of letters": flame.FlameTopk(*SIZES, KaryResponse(0.5, 3), KEPT, PADDED),
    "topk among 16 times as many": flame.FlameTopk(*SIZES, NOISE, KEPT, PADDED, multiples=16),
}


def by_parties(protocol, updates, rng):
    """A round with every dummy drawn and every bag permuted."""
    bags = flame.shuffler(protocol, flame.user(protocol, updates, rng), rng).bags
    return flame.analyzer(protocol, bags)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_round_by_sums(benchmark, name):
    """All that comes after the updates."""
    result = benchmark.pedantic(flame.run, (PROTOCOLS[name], UPDATES, np.random.default_rng(1)), rounds=9)
    assert np.isfinite(result.estimate).all()


@pytest.mark.parametrize("name", ["double", "topk"])
def test_a_round_with_every_dummy_drawn_and_every_bag_permuted(benchmark, name):
    _, received = benchmark.pedantic(by_parties, (PROTOCOLS[name], UPDATES, np.random.default_rng(1)), rounds=7)
    assert (received == PADDED).all()


def test_sealing_a_thousand_messages(benchmark):
    key, name = sealing.AnalyzerKey(), sealing.new_round()
    envelopes = benchmark(sealing.seal, key.public, name, np.arange(1000), np.linspace(0, 1, 1000))
    assert envelopes.shape == (1000, sealing._ENVELOPE_BYTES)


def test_opening_a_thousand_messages(benchmark):
    key, name = sealing.AnalyzerKey(), sealing.new_round()
    bags = sealing.seal(key.public, name, np.arange(1000), np.linspace(0, 1, 1000))[:, None]
    assert not any(benchmark(sealing.open_bags, key, name, bags).refused.values())


WIDE = {
    "independent": (flame.FlameDouble(1095, 4469, 1.0, NOISE, 69, 1095, "independent"), 0.187, 3.7e-6, 34),
    "exact": (flame.FlameDouble(479982, 7877, 1.0, NOISE, 121, 7893), 0.129, 2.6e-7, 2),
    "millions": (flame.FlameDouble(1024, 108094, 1.0, NOISE, 103, 12, "independent"), 0.656, 1.1e-4, 43),
}


@pytest.mark.parametrize("name", WIDE)
def test_the_local_budget_of_a_vector(benchmark, name):
    """A dozen accounts before, and minutes at the end of the domain."""
    protocol, epsilon, delta, rounds = WIDE[name]
    found = benchmark.pedantic(calibrate, (protocol,), {"epsilon": epsilon, "delta": delta, "rounds": rounds}, rounds=1)
    spent = account(found.protocol, delta=delta, rounds=rounds).epsilon
    assert epsilon * (1 - 1e-4) <= spent <= epsilon
