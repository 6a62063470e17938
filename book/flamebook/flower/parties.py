"""Three protocols, each as three parties: a client, the shuffler and the analyzer, by the library's own functions.

Whatever a party is given stands in its arguments, and it gives back what it hands on: nothing of Flower is here.

=========== ============================================================================================
client      its own update, the public keys of shuffler and analyzer, the round's name
shuffler    who reports which coordinates, or who checked in; messages in envelopes that it cannot open
analyzer    shuffled messages, without senders
server      boxes that it cannot open, all of one length; the estimate, and what everybody knows
=========== ============================================================================================
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from nacl.public import PrivateKey
from numpy.typing import NDArray

from flamebook.flower.legs import Arrays, lock, packed, unlock, unpacked
from flamelib import AnyRandomizer, Checkin, Cloak, FlameDouble, Guarantee, LaplaceNoise, Shuffled, account
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms import encoding, sealing
from flamelib.mechanisms.integers.randomness import Randomness, Release, Simulation
from flamelib.mechanisms.vectors import CapMessages
from flamelib.protocols import checkin, cloak, flame

PROTOCOLS = ("flame", "checkin", "cloak")
SHUFFLER, ANALYZER = "shuffler", "analyzer"


@dataclass(frozen=True)
class Settings:
    """What everybody knows of a run; a ``seed`` of -1 draws everything anew, from the operating system."""

    protocol: str = "flame"
    clients: int = 10
    rounds: int = 3
    epsilon0: float = 4.0
    kept: int = 20
    padded: int = 5
    rate: float = 0.5
    clip: float = 0.5
    error: float = 0.5
    delta: float = 1e-5
    budget: float = 1000.0
    learning_rate: float = 0.1
    epochs: int = 10
    dataset: str = "digits"
    seed: int = -1

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise DomainError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {self.protocol!r}")
        check(n_users=self.clients, rounds=self.rounds, epsilon0=self.epsilon0, delta=self.delta, epsilon=self.budget)

    def generator(self, number: int, party: int) -> np.random.Generator:
        """A party's own generator for a round: the child that the book's own loop would spawn for it."""
        if self.seed < 0:
            return np.random.default_rng()
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(number, party)))

    def randomness(self, number: int, party: int) -> Randomness:
        """The same for shares."""
        return Release() if self.seed < 0 else Simulation(self.generator(number, party))


@dataclass(frozen=True)
class Round:
    """A round: its number, its name, and whose keys to seal for."""

    number: int
    name: bytes
    shuffler_key: bytes
    analyzer_key: bytes


class Parties(ABC):
    """A protocol, played by parties that live apart."""

    def __init__(self, settings: Settings, dimension: int) -> None:
        self.settings, self.dimension = settings, dimension

    @abstractmethod
    def client(self, place: int, update: Reals, this: Round) -> Arrays:
        """What the client of this place hands to the shuffler."""

    @abstractmethod
    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """What the shuffler hands to the analyzer, of what it received from each place."""

    @abstractmethod
    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The estimated mean update."""

    @abstractmethod
    def spent(self, rounds: int) -> Guarantee:
        """What so many rounds cost each client, against whoever sees what the analyzer gets."""


class Flame(Parties):
    """SS-Double: ``kept`` random coordinates of each client, a padded bag of envelopes for each coordinate."""

    @cached_property
    def protocol(self) -> FlameDouble:
        """The library's record of it."""
        its = self.settings
        return FlameDouble(its.clients, self.dimension, its.clip, LaplaceNoise(its.epsilon0), its.kept, its.padded)

    def client(self, place: int, update: Reals, this: Round) -> Arrays:
        """Coordinates, and an envelope for each."""
        sent = flame.user(self.protocol, update, self.settings.generator(this.number, place))
        envelopes = sealing.seal(this.analyzer_key, this.name, sent.places, sent.messages)
        return {"places": sent.places, "messages": envelopes}

    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """Bags of envelopes."""
        senders = np.repeat(np.arange(len(received)), [len(one["places"]) for one in received])
        places, messages = (np.concatenate([one[name] for one in received]) for name in ("places", "messages"))
        seal = partial(sealing.seal, this.analyzer_key, this.name)
        rng = self.settings.generator(this.number, self.settings.clients)
        return {"bags": flame.shuffler(self.protocol, flame.Reports(senders, places, messages), rng, seal).bags}

    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The estimate of the bags' sums."""
        opened = sealing.open_bags(sealing.AnalyzerKey(PrivateKey(secret)), this.name, received["bags"].astype(np.uint8))
        return flame.analyzer(self.protocol, opened.values)[0]

    def spent(self, rounds: int) -> Guarantee:
        """By the account of exactly ``kept`` coordinates."""
        return account(self.protocol, delta=self.settings.delta, rounds=rounds)


class SelfCheckin(Parties):
    """Every client throws a coin of its own; who comes sends a point of a sphere, in an envelope."""

    @cached_property
    def protocol(self) -> checkin.CheckinProtocol:
        """The library's record of it."""
        its = self.settings
        return checkin.CheckinProtocol(CapMessages.privunit2(self.dimension, its.epsilon0, its.clip), its.rate)

    def client(self, place: int, update: Reals, this: Round) -> Arrays:
        """One envelope, and whether there is a message in it; as long as any other."""
        sent = checkin.client(self.protocol, update, self.settings.generator(this.number, place + 1))
        content = np.zeros(self.dimension) if sent is None else np.asarray(sent, dtype=np.float64)
        envelope = np.frombuffer(lock(this.analyzer_key, content.tobytes()), dtype=np.uint8)
        return {"came": np.array(sent is not None), "message": envelope}

    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """Envelopes of those who came, in an order that says nothing."""
        came = [one["message"] for one in received if one["came"]]
        shuffled = checkin.shuffler(came, self.settings.generator(this.number, 0))
        return {"messages": np.array(shuffled, dtype=np.uint8).reshape(len(shuffled), -1)}

    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The sum of what came, over how many are expected."""
        messages = [np.frombuffer(unlock(secret, one.tobytes())) for one in received["messages"]]
        total, _ = checkin.aggregate(messages, self.dimension)
        return total / (self.settings.clients * self.settings.rate)

    def spent(self, rounds: int) -> Guarantee:
        """By clones, which hide the messages of any randomizer."""
        its = self.settings
        survey = Shuffled(AnyRandomizer(its.epsilon0), its.clients)
        return account(Checkin(survey, its.rate), delta=its.delta, rounds=rounds)


class Shares(Parties):
    """Cloak: every coordinate of every client in shares that mean nothing alone, with noise in the sum."""

    @cached_property
    def protocol(self) -> Cloak:
        """The library's record of it: one sum."""
        its = self.settings
        return Cloak.plan(its.clients, its.epsilon0, its.delta / (its.rounds * self.dimension), its.error)

    def client(self, place: int, update: Reals, this: Round) -> Arrays:
        """Shares of every coordinate."""
        values = encoding.from_signed(update, self.settings.clip)[None]
        shares = cloak.encode(self.protocol, values, self.settings.randomness(this.number, place))
        return {"shares": np.asarray(shares[0], dtype=np.int64)}

    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """All shares of a coordinate, permuted."""
        pooled = cloak.pool(np.stack([one["shares"] for one in received]))
        shuffled = cloak.shuffler(pooled, self.settings.randomness(this.number, self.settings.clients))
        return {"shares": np.asarray(shuffled, dtype=np.int64)}

    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The mean of the sums."""
        sums = cloak.analyze_centred(self.protocol, cloak.total(self.protocol, received["shares"]))
        return cloak.to_signed(self.protocol, sums, self.settings.clip) / self.settings.clients

    def spent(self, rounds: int) -> Guarantee:
        """The budgets of all sums, added up."""
        return account(self.protocol, delta=self.settings.delta, rounds=rounds * self.dimension)


_KINDS: Mapping[str, type[Parties]] = {"flame": Flame, "checkin": SelfCheckin, "cloak": Shares}


def parties(settings: Settings, dimension: int) -> Parties:
    """The parties of the protocol that is named."""
    return _KINDS[settings.protocol](settings, dimension)


def boxed(arrays: Arrays, public: bytes) -> NDArray[np.uint8]:
    """A leg, sealed for the party that it is meant for."""
    return np.frombuffer(lock(public, packed(arrays)), dtype=np.uint8)


def opened(box: NDArray[np.uint8], secret: bytes) -> dict[str, NDArray[Any]]:
    """A leg, opened by the party that it is meant for."""
    return unpacked(unlock(secret, box.tobytes()))
