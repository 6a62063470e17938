"""Parties that live apart: the book's own rounds bit for bit, and nobody sees more than is meant for it."""

import numpy as np
import pytest
from nacl.exceptions import CryptoError

from flamebook.flower import legs
from flamebook.flower.parties import PROTOCOLS, Parties, Round, Settings, boxed, opened, parties
from flamelib import account
from flamelib.core.vocabulary import DomainError
from flamelib.protocols import checkin, flame

DIMENSION, CLIENTS = 12, 6
SETTINGS = {"clients": CLIENTS, "kept": 4, "padded": 4, "rounds": 2, "epsilon0": 1.0, "seed": 5, "delta": 1e-4}


@pytest.fixture
def updates() -> np.ndarray:
    return np.random.default_rng(1).normal(0, 0.3, (CLIENTS, DIMENSION))


def played(these: Parties, updates: np.ndarray, number: int = 0) -> tuple[np.ndarray, dict[str, object]]:
    """A round with every leg sealed; what each party received."""
    (of_shuffler, shuffler_key), (of_analyzer, analyzer_key) = legs.new_keys(), legs.new_keys()
    this = Round(number, bytes(16), shuffler_key, analyzer_key)
    boxes = [boxed(these.client(place, update, this), shuffler_key) for place, update in enumerate(updates)]
    received = [opened(box, of_shuffler) for box in boxes]
    bags = boxed(these.shuffler(received, this), analyzer_key)
    found = opened(bags, of_analyzer)
    seen = {"server": boxes, "shuffler": received, "analyzer": found, "keys": (of_shuffler, of_analyzer)}
    return these.analyzer(found, of_analyzer, this), seen


def test_flame_is_the_sealed_round_of_the_library_bit_for_bit(updates: np.ndarray) -> None:
    these = parties(Settings("flame", **SETTINGS), DIMENSION)
    for number in (0, 1):
        rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(number,)))
        whole = flame.run_sealed(these.protocol, updates, rng)
        assert (played(these, updates, number)[0] == whole.estimate).all()


def test_checkin_is_the_round_of_the_library_bit_for_bit(updates: np.ndarray) -> None:
    these = parties(Settings("checkin", **SETTINGS), DIMENSION)
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(0,)))
    total, _ = checkin.aggregate(checkin.run(these.protocol, list(updates), rng), DIMENSION)
    assert (played(these, updates)[0] == total / (CLIENTS * 0.5)).all()


def test_shares_add_up_to_the_mean_within_their_noise(updates: np.ndarray) -> None:
    these = parties(Settings("cloak", **SETTINGS, error=1.5), DIMENSION)
    found = played(these, updates)[0]
    mean = np.clip(updates, -0.5, 0.5).mean(axis=0)
    assert np.abs(found - mean).mean() < 3 * 1.5 / CLIENTS


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_whoever_carries_a_box_cannot_open_it_and_lengths_tell_nothing(protocol: str, updates: np.ndarray) -> None:
    these = parties(Settings(protocol, **SETTINGS, error=1.5), DIMENSION)
    lengths = set()
    for scale in (0.0, 1.0, 100.0):
        _, seen = played(these, scale * updates)
        lengths |= {len(box) for box in seen["server"]}
        with pytest.raises(CryptoError):
            opened(seen["server"][0], legs.new_keys()[0])
    assert len(lengths) == 1


def test_the_shuffler_sees_places_and_envelopes_and_the_analyzer_no_sender(updates: np.ndarray) -> None:
    _, seen = played(parties(Settings("flame", **SETTINGS), DIMENSION), updates)
    for received in seen["shuffler"]:
        assert set(received) == {"places", "messages"}
        with pytest.raises(CryptoError):
            legs.unlock(seen["keys"][0], received["messages"][0].tobytes())
    assert set(seen["analyzer"]) == {"bags"}
    assert seen["analyzer"]["bags"].shape[:2] == (DIMENSION, 4)


def test_what_is_spent_is_the_account_of_the_front_door() -> None:
    these = parties(Settings("flame", **SETTINGS), DIMENSION)
    assert these.spent(2) == account(these.protocol, delta=1e-4, rounds=2)
    assert these.spent(1).epsilon < these.spent(2).epsilon


@pytest.mark.parametrize(
    ("name", "wrong"), [("protocol", "sum"), ("clients", 0), ("rounds", 0), ("epsilon0", -1.0), ("delta", 2.0)]
)
def test_bad_settings_are_refused_by_name(name: str, wrong: object) -> None:
    with pytest.raises(DomainError, match="n_users" if name == "clients" else name):
        Settings(**{name: wrong})
