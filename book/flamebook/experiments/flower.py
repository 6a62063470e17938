"""A run of the Flower app in simulation, beside the book's own loop: what was learned, what it cost, what was sent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flamebook.flower.legs import Arrays, boxed, new_keys, opened
from flamebook.flower.parties import AGGREGATIONS, ROUND, Flame, Round, SelfCheckin, Settings, Shares
from flamebook.flower.processes import simulate
from flamelib import Guarantee
from flamelib.core.arrays import Floats, Reals
from flamelib.learning.federated import Aggregate, Users, load_users, train
from flamelib.protocols import checkin, flame

# The smallest case; by this seed's coins the first client comes, and the second does not.
PAIR = Settings(aggregation="checkin", n_users=2, n_inputs=1, n_classes=2, seed=2)


class Alone(Users):
    """Users who work alone: single precision rounds otherwise where the updates of many are computed together."""

    def updates(self, block: slice, parameters: Reals, learning_rate: float, epochs: int) -> Floats:
        """What each of a block adds to a model."""
        ones = [slice(place, place + 1) for place in range(len(self))[block]]
        return np.concatenate([super(Alone, self).updates(one, parameters, learning_rate, epochs) for one in ones])


@dataclass(frozen=True, slots=True)
class Mean:
    """What a round of the book's loop publishes."""

    estimate: Reals


@dataclass(frozen=True)
class Federation:
    """A run.

    Parameters
    ----------
    settings : Settings
    spent : tuple of Guarantee
        After each round, those that are refused included.
    told, tested : array of shape (rounds that were run + 1,)
        Accuracy of every model, the initial one first: as it was summed in shares, and on all test images at once.
    own : array of the same shape
        The same of the book's loop.
    same : bool
        Whether both have the same models, bit for bit.
    sizes : mapping
        Bytes of a leg of a round.
    """

    settings: Settings
    spent: tuple[Guarantee, ...]
    told: Reals
    tested: Reals
    own: Reals
    same: bool
    sizes: Mapping[str, int]


def cloak_epsilon(settings: Settings, times: int) -> float:
    """What the updates of all rounds would cost by cloak aggregation, with so many times the clients."""
    return (
        Shares(replace(settings, aggregation="cloak", n_users=times * settings.n_users)).spent(settings.rounds).epsilon
    )


def two_clients() -> list[tuple[str, ...]]:
    """For a table: what each party of the smallest case holds of either client; every leg is really sealed."""
    these, (secret, key), (own_secret, own_key) = SelfCheckin(PAIR), new_keys(), new_keys()
    this = Round(0, ROUND, bytes(16), key, own_key)
    boxes = [boxed(these.client(place, np.zeros(these.dimension), this), key) for place in range(PAIR.n_users)]
    reports = [opened(box, secret) for box in boxes]
    messages = opened(boxed(these.shuffler(reports, this), own_key), own_secret)["messages"]

    def told(report: Arrays) -> str:
        came = "has checked in" if report["came"] else "has not checked in"
        return f"{came}; a sealed envelope of {report['message'].size:,} bytes"

    return [
        ("server", *(f"a sealed box of {box.size:,} bytes" for box in boxes)),
        ("shuffler", *map(told, reports)),
        ("analyzer", *[f"{len(messages)} message, from one of the two"] * 2),
    ]


def compute_federation(dataset: str, **asked: Any) -> tuple[Federation, str]:
    """Run the app in simulation, then the book's loop from the same seed; and what is to be said of the data."""
    loaded = load_users(dataset, n_users=asked["n_users"])
    users = Alone(*(getattr(loaded, name) for name in Users.__slots__))
    n_users = len(users)
    shape = {"n_inputs": users.images.shape[-1], "n_classes": users.n_classes}
    settings = Settings(**asked | shape | {"n_users": n_users})
    padded = max(2, 2 * math.ceil(settings.kept * n_users / settings.model.dimension))
    settings = replace(settings, padded=padded)
    spent = tuple(settings.spent(number + 1) for number in range(settings.rounds))
    found = simulate(settings, users)
    models = [np.array(one) for one in found["models"]]
    own, estimates = np.array([users.accuracy(models[0])]), list[Reals]()
    if len(models) > 1:
        steps: Any = {"learning_rate": settings.learning_rate, "epochs": settings.epochs, "n_users": n_users}
        rng = np.random.default_rng(settings.seed)
        ran = train(method(settings), users, len(models) - 1, rng, **steps, observe=lambda one: one.estimate)
        own, estimates = ran.held_back, list(ran.observed)
    same = all((before + by == after).all() for before, by, after in zip(models, estimates, models[1:], strict=False))
    tested = np.array([users.accuracy(one) for one in models])
    told = np.array(found["accuracy"] or [math.nan])  # where no round is paid for, nobody is asked
    return Federation(settings, spent, told, tested, own, same, found["bytes"]), users.notice


def method(settings: Settings) -> Aggregate:
    """The way of the book's loop to add up updates; generators are spawned as the parties' are derived."""
    these = AGGREGATIONS[settings.aggregation](settings)
    if isinstance(these, Flame):
        return lambda updates, rng: flame.run_sealed(these.protocol, updates, rng)
    if isinstance(these, Shares):
        return these.average.run
    ours = SelfCheckin(settings)
    return lambda updates, rng: Mean(ours.mean(checkin.run(ours.protocol, list(updates.astype(np.float64)), rng)))
