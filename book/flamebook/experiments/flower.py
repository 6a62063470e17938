"""A run of the Flower app in simulation, beside the book's own loop: what was learned, what it cost, what was sent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from flamebook.flower.legs import Arrays, boxed, new_keys, opened
from flamebook.flower.parties import AGGREGATIONS, ROUND, Flame, Round, SelfCheckin, Settings, Shares
from flamebook.flower.processes import simulate
from flamebook.records import Curves, Parameters
from flamebook.statements import AtMost, Finding, at_most, compared, counted, either, silent
from flamelib import Guarantee
from flamelib.core.arrays import Floats, Reals
from flamelib.learning.federated import Aggregate, Users, load_users, train
from flamelib.protocols import checkin, flame

CROWDS = (1, 100)  # times as many clients
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

    @property
    def paid(self) -> int:
        """Rounds that were run."""
        return len(self.tested) - 1

    @property
    def parameters(self) -> Parameters:
        """For the cards of the figures."""
        names = ("aggregation", "n_users", "rounds", "epsilon", "delta", "seed")
        return {name: getattr(self.settings, name) for name in names}

    def accuracy(self) -> Curves:
        """In per cent, against rounds."""
        curves = {"book-loop": self.own, "flower": self.tested, "flower-told": self.told}
        shown = {name: 100 * values for name, values in curves.items()}
        return Curves(
            "rounds", "accuracy on the clients' test images (%)", np.arange(self.paid + 1.0), shown, self.parameters
        )

    def epsilon(self) -> Curves:
        """What so many rounds cost, and the budget."""
        values = np.array([one.epsilon for one in self.spent])
        curves = {"certified": values, "budget": np.full(len(values), self.settings.epsilon)}
        return Curves("rounds", "total_epsilon", np.arange(1.0, len(values) + 1), curves, self.parameters)

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: each round, what it costs, and what was learned in it."""
        rows: list[tuple[object, ...]] = []
        for number, spent in enumerate(self.spent, 1):
            done = number <= self.paid
            learned = [f"{100 * values[number]:.1f} %" if done else "refused" for values in (self.told, self.tested)]
            rows.append((number, AtMost(spent.epsilon), *learned))
        return rows

    def bytes_rows(self) -> list[tuple[object, ...]]:
        """For a table: what is sent in a round, and who can read it."""
        n_users, sizes = self.settings.n_users, self.sizes
        legs = (
            ("model", "server to each client", n_users, "everybody"),
            ("report", "each client to the shuffler", n_users, self._shuffler_reads),
            ("bags", "shuffler to analyzer", 1, "the analyzer"),
        )
        return [(name, sizes[leg], times * sizes[leg], who) for leg, name, times, who in legs if sizes]

    @property
    def _shuffler_reads(self) -> str:
        if self.settings.aggregation == "cloak":
            return "the shuffler, shares of updates included; those of accuracies by the analyzer alone"
        return "the shuffler, but the messages in it by the analyzer alone"

    def crowd_rows(self) -> list[tuple[object, ...]]:
        """For a table: what all rounds would cost by each protocol, here and in larger crowds."""
        names = {"flame": "FLAME", "checkin": "self check-in", "cloak": "cloak aggregation"}
        return [(names[name], *(AtMost(self._cost(name, times)) for times in CROWDS)) for name in AGGREGATIONS]

    def _cost(self, aggregation: str, times: int) -> float:
        its = self.settings
        crowd = replace(its, aggregation=aggregation, n_users=times * its.n_users, padded=times * its.padded)
        return AGGREGATIONS[aggregation](crowd).spent(its.rounds).epsilon

    @property
    def within(self) -> Finding:
        """Whether what was run keeps the budget."""
        if not self.paid:
            return silent("no round was run")
        return compared(self.spent[self.paid - 1].epsilon, "<=", self.settings.epsilon)

    @property
    def equal(self) -> Finding:
        """Whether models are those of the book's loop, where both draw alike."""
        if self.settings.aggregation == "cloak" or not self.paid:
            return silent("shares are drawn by each client for itself" if self.paid else "no round was run")
        return Finding(self.same)

    @property
    def tallied(self) -> Finding:
        """Whether accuracies summed in shares are off by no more than a few times their expected error."""
        if not self.paid:
            return silent("no round was run")
        allowed = 1.25 / self.settings.tally_epsilon / self.settings.n_users
        return compared(float(np.abs(self.told - self.tested).mean()), "<=", 5 * allowed)

    def words(self) -> dict[str, str]:
        """For the text."""
        its = self.settings
        refused = its.rounds - self.paid
        verb = either(refused == 1, "is", "are")
        refusal = f", and {counted(refused, 'round')} {verb} refused before anybody is asked" if refused else ""
        last = self.spent[self.paid - 1] if self.paid else None
        return {
            "clients": counted(its.n_users, "client"),
            "budget": f"{its.epsilon:g}",
            "asked": counted(its.rounds, "round"),
            "refusal": f"The budget of {its.epsilon:g} pays for {counted(self.paid, 'round')}{refusal}.",
            "cost": f"at most {at_most(last.epsilon)}" if last else "nothing, for no round was run",
            "basis": str(last.rests_on if last else self.spent[0].rests_on),
            "law": either(
                its.aggregation == "cloak",
                "In the app every client draws its own shares and noise, while the book's loop draws them for all "
                "clients at once. So the two runs follow the same law, but their numbers differ.",
                "In the app every party draws its random numbers from a child of one seed, the same child as in the "
                "book's loop. So the models of both should be equal bit for bit, which the page checks at its end.",
            ),
        }


def two_clients() -> list[tuple[str, ...]]:
    """For a table: what each party of the smallest case holds of either client; every leg is really sealed."""
    these, (secret, key), (own_secret, own_key) = SelfCheckin(PAIR), new_keys(), new_keys()
    this = Round(0, ROUND, bytes(16), key, own_key)
    boxes = [boxed(these.client(place, np.zeros(these.dimension), this), key) for place in range(PAIR.n_users)]
    reports = [opened(box, secret) for box in boxes]
    messages = opened(boxed(these.shuffler(reports, this), own_key), own_secret)["messages"]

    def told(report: Arrays) -> str:
        came = either(bool(report["came"]), "has checked in", "has not checked in")
        return f"{came}; a sealed envelope of {report['message'].size:,} bytes"

    return [
        ("server", *(f"a sealed box of {box.size:,} bytes" for box in boxes)),
        ("shuffler", *map(told, reports)),
        ("analyzer", *[f"{counted(len(messages), 'message')}, from one of the two"] * 2),
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
