"""Two rounds in real processes: what each party was given, models bit for bit, and nothing left behind."""

from pathlib import Path

import numpy as np
import pytest

from flamebook.experiments.flower import Alone, method
from flamebook.flower import processes
from flamebook.flower.legs import unpacked
from flamebook.flower.parties import Settings
from flamelib.learning.federated import Users, load_users, train

SETTINGS = Settings(n_users=2, rounds=3, epsilon=12.0, kept=20, padded=2, seed=3)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Users, dict[str, object], Path]:
    loaded, work = load_users("digits", n_users=SETTINGS.n_users), tmp_path_factory.mktemp("flower") / "work"
    users = Alone(*(getattr(loaded, name) for name in Users.__slots__))
    return users, processes.run(SETTINGS, users, work), work


def test_a_round_beyond_the_budget_is_refused(ran: tuple[Users, dict[str, object], Path]) -> None:
    assert SETTINGS.paid == 2
    assert len(ran[1]["models"]) == len(ran[1]["accuracy"]) == 3


def test_models_are_those_of_the_loop_bit_for_bit(ran: tuple[Users, dict[str, object], Path]) -> None:
    users, found, _ = ran
    seen = train(
        method(SETTINGS), users, 2, np.random.default_rng(3), n_users=2, observe=lambda one: one.estimate
    ).observed
    models = [np.array(one) for one in found["models"]]
    for before, estimate, after in zip(models, seen, models[1:], strict=False):
        assert (before + estimate == after).all()


def test_each_party_was_given_what_it_may_see(ran: tuple[Users, dict[str, object], Path]) -> None:
    users, _, work = ran
    given = {path.stem: unpacked(path.read_bytes()) for path in (work / "trace").iterdir()}
    parties = ["analyzer", "client0", "client1", "shuffler"]
    assert sorted(given) == [f"{job}-{party}" for job in ("round", "tally") for party in parties]
    for place in range(2):
        assert set(given[f"round-client{place}"]) == {"model"}
        [own] = (work / "records" / str(place)).iterdir()
        kept = unpacked(own.read_bytes())
        assert own.stem == str(place)
        assert (kept["images"] == users.images[place]).all()
        assert len(kept["test_labels"]) == 3
    from_places = given["round-shuffler"]
    parts = ("update places", "update messages", "tally messages")
    assert set(from_places) == {f"{place}:{part}" for place in range(2) for part in parts}
    assert from_places["0:update messages"].shape == (20, 92)
    assert set(given["round-analyzer"]) == {"update bags", "tally messages"}
    assert given["round-analyzer"]["update bags"].shape == (650, 2, 92)


def test_nothing_is_left_running(ran: tuple[Users, dict[str, object], Path]) -> None:
    here = str(ran[2]).encode()
    running = [path for path in Path("/proc").glob("[0-9]*/environ") if _read(path).count(here)]
    assert not running


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
