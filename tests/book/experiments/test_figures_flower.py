"""A run in Flower beside the book's loop: here its rounds are played in one process, by the parties themselves."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from flamebook.experiments import flower
from flamebook.figures.style import LIGHT, look
from flamebook.figures.together.flower import draw_rounds
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
    assert found.paid == 3
    assert found.words()["refusal"] == "The budget of 1e+06 pays for 3 rounds."
    assert found.same is (aggregation != "cloak")
    assert found.equal.holds is (None if aggregation == "cloak" else True)
    assert found.within.holds
    assert (found.own == found.tested).all() or aggregation == "cloak"


def test_shares_learn_as_the_loop_does(compute: Any) -> None:
    found = compute(aggregation="cloak", n_users=30)
    assert found.tested[-1] == pytest.approx(found.own[-1], abs=0.1)
    assert found.tested[-1] > 0.5


def test_a_budget_is_spent(compute: Any) -> None:
    costs = [one.epsilon for one in compute(aggregation="checkin").spent]
    found = compute(aggregation="checkin", epsilon=costs[1])
    assert found.paid == 2
    assert [row[2] == "refused" for row in found.rows()] == [False, False, True]
    assert "pays for 2 rounds, and 1 round is refused" in found.words()["refusal"]
    none = compute(aggregation="checkin", epsilon=0.0)
    assert none.paid == 0
    assert {len(values) for values in none.accuracy().curves.values()} == {1}
    assert none.bytes_rows() == []
    assert {one.holds for one in (none.within, none.equal, none.tallied)} == {None}


def test_the_smallest_case_is_really_sealed_and_one_of_two_comes() -> None:
    (_, ana, ben), (_, came, stayed), (_, message, same) = flower.two_clients()
    assert ana == ben
    assert came.replace("has checked", "has not checked") == stayed
    assert message == same == "1 message, from one of the two"


def test_shares_of_updates_can_be_read_by_their_shuffler(compute: Any) -> None:
    told = {aggregation: compute(aggregation=aggregation).bytes_rows()[1][-1] for aggregation in ("flame", "cloak")}
    assert "shares of updates included" in told["cloak"]
    assert "messages in it by the analyzer alone" in told["flame"]


def test_a_larger_crowd_hides_more_but_for_sums(compute: Any) -> None:
    (_, few, many), (_, fewer, more), (_, same, still) = compute().crowd_rows()
    assert many < few
    assert more < fewer
    assert still == pytest.approx(same, rel=1e-6)


def test_drawings_hold_the_curves(compute: Any) -> None:
    found = compute(aggregation="checkin", epsilon=8.0)
    for record in (found.accuracy(), found.epsilon()):
        with look(LIGHT, "flower") as pen:
            ax = Figure().add_subplot()
            draw_rounds(ax, record, pen)
            for line, values in zip(ax.get_lines(), record.curves.values(), strict=True):
                assert np.array_equal(line.get_ydata(), values)
