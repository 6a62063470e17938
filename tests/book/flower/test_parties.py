"""Parties that live apart: the book's own rounds bit for bit, and nobody sees more than is meant for it."""

from dataclasses import replace

import numpy as np
import pytest
from nacl.exceptions import CryptoError

from flamebook.flower import legs
from flamebook.flower.legs import boxed, opened
from flamebook.flower.parties import AGGREGATIONS, Flame, Parties, Round, Settings, Tally
from flamelib import account
from flamelib.accounting.noise.skellam import vector_epsilon
from flamelib.protocols import checkin, flame

CLIENTS = 6
SETTINGS = Settings(
    n_users=CLIENTS, kept=4, padded=4, rounds=2, epsilon0=1.0, seed=5, clip=0.5, n_inputs=5, n_classes=2, noise_std=0.01
)


def of(aggregation: str, **changed: object) -> Parties:
    return AGGREGATIONS[aggregation](replace(SETTINGS, aggregation=aggregation, **changed))


@pytest.fixture
def updates() -> np.ndarray:
    return np.random.default_rng(1).normal(0, 0.3, (CLIENTS, SETTINGS.model.dimension))


def played(these: Parties, vectors: np.ndarray, number: int = 0) -> tuple[np.ndarray, dict[str, object]]:
    """A round with every leg sealed; what each party received."""
    (of_shuffler, shuffler_key), (of_analyzer, analyzer_key) = legs.new_keys(), legs.new_keys()
    this = Round(number, "round", bytes(16), shuffler_key, analyzer_key)
    boxes = [boxed(these.client(place, vector, this), shuffler_key) for place, vector in enumerate(vectors)]
    received = [opened(box, of_shuffler) for box in boxes]
    found = opened(boxed(these.shuffler(received, this), analyzer_key), of_analyzer)
    seen = {"server": boxes, "shuffler": received, "analyzer": found, "keys": (of_shuffler, of_analyzer)}
    return these.analyzer(found, of_analyzer, this), seen


def test_flame_is_the_sealed_round_of_the_library_bit_for_bit(updates: np.ndarray) -> None:
    these, rng = of("flame"), np.random.default_rng(5).spawn(2)[1]
    assert isinstance(these, Flame)
    for number in (0, 1):
        assert (played(these, updates, number)[0] == flame.run_sealed(these.protocol, updates, rng).estimate).all()


def test_checkin_is_the_round_of_the_library_bit_for_bit(updates: np.ndarray) -> None:
    these, rng = of("checkin"), np.random.default_rng(5).spawn(2)[1]
    for number in (0, 1):
        total, _ = checkin.aggregate(checkin.run(these.protocol, list(updates), rng), these.dimension)
        assert (played(these, updates, number)[0] == total / (CLIENTS * 0.5)).all()


def test_shares_add_up_to_the_mean_of_clipped_updates(updates: np.ndarray) -> None:
    mean = (updates * np.minimum(1, 1 / np.linalg.norm(updates, axis=1))[:, None]).mean(axis=0)
    for seed in (5, -1):
        assert np.abs(played(of("cloak", seed=seed), updates)[0] - mean).max() < 0.02


def test_the_noise_of_shares_is_what_is_accounted_for(updates: np.ndarray) -> None:
    these = of("cloak", noise_std=2.0)
    found = np.stack([played(these, 0 * updates, number)[0] for number in range(40)])
    assert found.std() * CLIENTS == pytest.approx(2 * these.limit / 256, rel=0.1)
    sums = vector_epsilon(these.dimension, 2 * these.limit, these.variance, 2, these.delta)
    assert sums <= these.spent(2).epsilon < 1.02 * sums


def test_a_tally_is_the_mean_within_its_noise() -> None:
    shares = np.linspace(0, 1, CLIENTS)[:, None]
    found = [played(Tally(replace(SETTINGS, tally_epsilon=8.0)), shares, number)[0][0] for number in range(20)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.05)
    assert np.std(found) > 0


def test_the_shuffler_of_a_tally_cannot_add_up_a_clients_shares() -> None:
    _, seen = played(Tally(SETTINGS), np.ones((CLIENTS, 1)))
    for received in seen["shuffler"]:
        assert set(received) == {"messages"}
        with pytest.raises(CryptoError):
            legs.unlock(seen["keys"][0], received["messages"][0])


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_whoever_carries_a_box_cannot_open_it_and_lengths_tell_nothing(aggregation: str, updates: np.ndarray) -> None:
    these, lengths = of(aggregation), set()
    for scale in (0.0, 1.0, 100.0):
        _, seen = played(these, scale * updates)
        lengths |= {len(box) for box in seen["server"]}
        with pytest.raises(CryptoError):
            opened(seen["server"][0], legs.new_keys()[0])
    assert len(lengths) == 1


def test_the_shuffler_sees_places_and_envelopes_and_the_analyzer_no_sender(updates: np.ndarray) -> None:
    _, seen = played(of("flame"), updates)
    for received in seen["shuffler"]:
        assert set(received) == {"places", "messages"}
        with pytest.raises(CryptoError):
            legs.unlock(seen["keys"][0], received["messages"][0])
    assert set(seen["analyzer"]) == {"bags"}
    assert seen["analyzer"]["bags"].shape[:2] == (SETTINGS.model.dimension, 4)


def test_what_is_spent_is_the_account_of_the_front_door() -> None:
    updates, tally, half = of("flame"), Tally(SETTINGS), SETTINGS.delta / 2
    parts = account(updates.protocol, delta=half, rounds=2), account(tally.protocol, delta=half, rounds=3)
    spent = SETTINGS.spent(2)
    assert spent.epsilon == pytest.approx(sum(one.epsilon for one in parts))
    assert spent.delta == SETTINGS.delta
    assert spent.epsilon >= sum(one.epsilon for one in parts)
    assert parts[1].epsilon <= 3 * SETTINGS.tally_epsilon * (1 + 1e-9)
    assert (of("cloak").spent(1).rests_on, spent.rests_on) == ("cited", "proven")
