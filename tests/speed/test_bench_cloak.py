"""Speed of cloak aggregation, beside the bare generator."""

import numpy as np
import pytest

from flamelib.mechanisms.integers.randomness import Release, Simulation
from flamelib.protocols.cloak import CloakProtocol, analyze, encode, pool, run, run_vector, shuffler, total

MODULUS = 2**40 - 87
MANY = 10**6
BLOCK = 2**15
SOURCES = {"simulation": Simulation(np.random.Generator(np.random.SFC64(1))), "release": Release()}
VALUES = np.random.default_rng(0).random(MANY)


def protocol(n_users=MANY, modulus=MODULUS, scale=1000, n_messages=8):
    return CloakProtocol(n_users, modulus, scale, n_messages)


@pytest.mark.parametrize("name", SOURCES)
def test_a_million_users_from_values_to_the_estimate(benchmark, name):
    """Encoder, shuffler and analyzer."""
    found = benchmark.pedantic(lambda: run(protocol(), VALUES, SOURCES[name]), rounds=9)
    assert found == pytest.approx(VALUES.sum(), abs=MANY / 1000)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("step", ["encode", "shuffle", "analyze"])
def test_the_steps_of_a_million_users(benchmark, step, name):
    source, ours = SOURCES[name], protocol()
    messages = pool(encode(ours, VALUES, source))
    steps = {
        "encode": lambda: encode(ours, VALUES, source),
        "shuffle": lambda: shuffler(messages, source),
        "analyze": lambda: analyze(ours, total(ours, messages)),
    }
    benchmark.pedantic(steps[step], rounds=5)


@pytest.mark.parametrize("name", SOURCES)
def test_the_encoder_by_blocks(benchmark, name):
    """Nothing is kept: what a simulation of estimates needs."""
    block, source, rounds = protocol(BLOCK), SOURCES[name], 10

    def function():
        for _ in range(rounds):
            encode(block, VALUES[:BLOCK], source)

    benchmark.pedantic(function, rounds=200)


def test_a_vector_of_each_of_a_thousand_users(benchmark):
    """7850 coordinates, each with a shuffle of its own."""
    rows = np.random.default_rng(0).integers(0, 2**16, size=(1000, 7850))
    ours = protocol(1000, 2**34 - 41, 2**16, 4)
    found = benchmark.pedantic(lambda: run_vector(ours, rows, SOURCES["simulation"]), rounds=5)
    assert np.array_equal(found, rows.sum(axis=0))


# --- what to compare with ---------------------------------------------------------------------------


def test_the_bare_generator_of_seven_million_residues(benchmark):
    rng = SOURCES["simulation"].rng
    benchmark.pedantic(lambda: rng.integers(0, MODULUS, size=7 * MANY), rounds=5)
