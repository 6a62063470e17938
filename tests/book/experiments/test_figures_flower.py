"""A run in Flower beside the book's loop: here its rounds are played in one process, by the parties themselves."""

from typing import Any

import numpy as np
import pytest

from flamebook.experiments import flower
from flamebook.flower.client import vector_of, write_records
from flamebook.flower.legs import new_keys, unpacked
from flamebook.flower.parties import Both, Round, Settings, Tally
from flamelib.learning.federated import Users


def played(settings: Settings, users: Users, folder: Any) -> dict[str, Any]:
    """What the app leaves, without Flower."""
    write_records(users, folder, range(settings.n_users))
    kept = [unpacked((folder / f"{place}.npz").read_bytes()) for place in range(settings.n_users)]
    secret, public = new_keys()

    def summed(job: str, these: Any, number: int, model: Any) -> Any:
        this = Round(number, job, bytes(16), public, public)
        vectors = [vector_of(job, settings, own, model) for own in kept]
        sent = [these.client(place, vector, this) for place, vector in enumerate(vectors)]
        return these.analyzer(these.shuffler(sent, this), secret, this)

    models = [settings.model.initial(np.random.default_rng(settings.seed).spawn(1)[0])]
    accuracy = []
    for number in range(settings.paid):
        found = summed("round", Both(settings), number, models[-1])
        models.append(models[-1] + found[:-1])
        accuracy.append(found[-1])
    if settings.paid:
        accuracy.append(summed("tally", Tally(settings), settings.paid, models[-1])[0])
    sizes = {"model": 1, "report": 2, "bags": 3} if settings.paid else {}
    return {"models": [one.tolist() for one in models], "accuracy": accuracy, "bytes": sizes}


@pytest.fixture
def compute(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    monkeypatch.setattr(flower, "simulate", lambda settings, users: played(settings, users, tmp_path))
    given = {"n_users": 5, "rounds": 3, "epsilon": 1e6, "delta": 1e-4, "kept": 20, "seed": 4}
    return lambda **changed: flower.compute_federation("digits", **given | changed)[0]


@pytest.mark.parametrize("aggregation", ["flame", "checkin", "cloak"])
def test_models_are_those_of_the_loop_where_seeds_are_shared(compute: Any, aggregation: str) -> None:
    found = compute(aggregation=aggregation)
    assert len(found.tested) == len(found.told) == 4
    assert found.same is (aggregation != "cloak")
    assert found.spent[2].epsilon <= 1e6
    assert (found.own == found.tested).all() or aggregation == "cloak"


def test_shares_learn_as_the_loop_does(compute: Any) -> None:
    found = compute(aggregation="cloak", n_users=30)
    assert found.tested[-1] == pytest.approx(found.own[-1], abs=0.1)
    assert found.tested[-1] > 0.5


def test_a_budget_is_spent(compute: Any) -> None:
    costs = [one.epsilon for one in compute(aggregation="checkin").spent]
    found = compute(aggregation="checkin", epsilon=costs[1])
    assert [len(found.spent), len(found.tested)] == [3, 3]
    none = compute(aggregation="checkin", epsilon=0.0)
    assert {len(values) for values in (none.told, none.tested, none.own)} == {1}
    assert not none.sizes
