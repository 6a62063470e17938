"""Ways to add up, each as three parties: a client, the shuffler and the analyzer, by the library's own functions.

The arguments of a party are all that it is given, and what it returns is what it hands on.  Nothing here knows Flower.

=========== ============================================================================================
client      its own update, the public keys of shuffler and analyzer, the round's name
shuffler    who reports which coordinates, or who checked in; messages in envelopes that it cannot open
            (except shares of updates by cloak aggregation, which are in no envelope)
analyzer    shuffled messages, without senders
server      boxes that it cannot open, those of clients all of one length; the length of the shuffler's box, and
            by it how many clients checked in; the estimate, and what everybody knows
=========== ============================================================================================
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from nacl.public import PrivateKey

from flamebook.flower.legs import Arrays, lock, unlock
from flamelib import AnyRandomizer, Checkin, Cloak, FlameDouble, Guarantee, LaplaceNoise, Shuffled, account
from flamelib.accounting.noise.skellam import rounded_norm, vector_epsilon
from flamelib.accounting.splitting.n_user_bounds import least_messages
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Adjacency, RestsOn, weakest
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.cloak import CloakAverage
from flamelib.learning.models import SoftmaxRegression
from flamelib.mechanisms import sealing
from flamelib.mechanisms.integers.modular import Residues, centred
from flamelib.mechanisms.integers.randomness import Randomness, Release, Simulation
from flamelib.mechanisms.vectors import CapMessages
from flamelib.protocols import checkin, cloak, flame

ROUND, TALLY, SHUFFLER, ANALYZER = "round", "tally", "shuffler", "analyzer"
GRID = 256  # steps of a rounded update in its largest norm
FAR = 10  # standard deviations of the noise for which the modulus has room
MOST_EPSILON = 500.0  # for which shares are meant to be close enough
SHARES_COST = 0.01  # of delta, which what shares tell beside their sum may take


@dataclass(frozen=True)
class Settings:
    """What everybody knows of a run; a ``seed`` of -1 draws everything anew.

    Of the budget (``epsilon``, ``delta``), half of delta is for the sums of updates, half for those of accuracies.
    """

    aggregation: str = "flame"
    n_users: int = 10
    rounds: int = 3
    epsilon: float = 100.0
    delta: float = 1e-4
    epsilon0: float = 2.0
    kept: int = 65
    padded: int = 4
    checkin_rate: float = 0.5
    noise_std: float = 1.0
    clip: float = 0.3
    clip_norm: float = 1.0
    tally_epsilon: float = 1.0
    learning_rate: float = 0.1
    epochs: int = 10
    n_inputs: int = 64
    n_classes: int = 10
    seed: int = -1

    def __post_init__(self) -> None:
        if self.aggregation not in AGGREGATIONS:
            raise DomainError(f"aggregation must be one of {', '.join(AGGREGATIONS)}, got {self.aggregation!r}")
        named = {name: value for name, value in vars(self).items() if name not in ("aggregation", "tally_epsilon")}
        check(**named | {"seed": max(self.seed, 0)})

    @property
    def model(self) -> SoftmaxRegression:
        """What is trained."""
        return SoftmaxRegression(self.n_inputs, self.n_classes)

    def spent(self, rounds: int) -> Guarantee:
        """What so many rounds cost each client, against whoever sees what the analyzer gets: all sums together."""
        return Both(self).spent(rounds)

    @property
    def paid(self) -> int:
        """Rounds that the budget pays for."""
        within = (number for number in range(self.rounds) if not self.spent(number + 1).epsilon <= self.epsilon)
        return next(within, self.rounds)


@dataclass(frozen=True)
class Round:
    """One sum: the number of its round, what is summed, a name of its own, and the keys to seal with."""

    number: int
    job: str
    name: bytes
    shuffler_key: bytes
    analyzer_key: bytes


class Parties(ABC):
    """A way to add up vectors, by parties that live apart."""

    stream = 1  # of the seed's children; the first one is for the initial model

    def __init__(self, settings: Settings) -> None:
        self.settings, self.n_users, self.delta = settings, settings.n_users, settings.delta / 2

    @property
    def dimension(self) -> int:
        """Coordinates of a vector."""
        return self.settings.model.dimension

    @abstractmethod
    def client(self, place: int, vector: Reals, this: Round) -> Arrays:
        """What the client of this place hands to the shuffler."""

    @abstractmethod
    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """What the shuffler hands to the analyzer, of what it received from each place."""

    @abstractmethod
    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The estimated mean."""

    @abstractmethod
    def spent(self, rounds: int) -> Guarantee:
        """What so many rounds cost each client, against whoever sees what the analyzer gets."""

    def generator(self, number: int, party: int) -> np.random.Generator:
        """A party's own generator for a round: the child that the book's loop spawns for it, or one from no seed."""
        if self.settings.seed < 0:
            return np.random.default_rng()
        key = (self.stream, number * (self.n_users + 1) + party)
        return np.random.default_rng(np.random.SeedSequence(self.settings.seed, spawn_key=key))

    def randomness(self, number: int, party: int) -> Randomness:
        """The same for shares, from the operating system where there is no seed."""
        return Release() if self.settings.seed < 0 else Simulation(self.generator(number, party))


class Flame(Parties):
    """SS-Double: ``kept`` random coordinates of each client, a padded bag of envelopes for each coordinate."""

    @cached_property
    def protocol(self) -> FlameDouble:
        """The library's record of it."""
        its = self.settings
        return FlameDouble(its.n_users, self.dimension, its.clip, LaplaceNoise(its.epsilon0), its.kept, its.padded)

    def client(self, place: int, vector: Reals, this: Round) -> Arrays:
        """Coordinates, and an envelope for each."""
        sent = flame.user(self.protocol, vector, self.generator(this.number, place))
        envelopes = sealing.seal(this.analyzer_key, this.name, sent.places, sent.messages)
        return {"places": sent.places, "messages": envelopes}

    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """Bags of envelopes."""
        senders = np.repeat(np.arange(len(received)), [len(one["places"]) for one in received])
        places, messages = (np.concatenate([one[name] for one in received]) for name in ("places", "messages"))
        seal = partial(sealing.seal, this.analyzer_key, this.name)
        rng = self.generator(this.number, self.n_users)
        return {"bags": flame.shuffler(self.protocol, flame.Reports(senders, places, messages), rng, seal).bags}

    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The estimate of the bags' sums."""
        key = sealing.AnalyzerKey(PrivateKey(secret))
        opened = sealing.open_bags(key, this.name, received["bags"].astype(np.uint8))
        return flame.analyzer(self.protocol, opened.values)[0]

    def spent(self, rounds: int) -> Guarantee:
        """By the account of exactly ``kept`` coordinates."""
        return account(self.protocol, delta=self.delta, rounds=rounds)


class SelfCheckin(Parties):
    """Every client tosses a coin of its own; those who come send a point of a sphere, in an envelope."""

    @cached_property
    def protocol(self) -> checkin.CheckinProtocol:
        """The library's record of it."""
        its = self.settings
        messages = CapMessages.privunit2(self.dimension, its.epsilon0, its.clip_norm)
        return checkin.CheckinProtocol(messages, its.checkin_rate)

    def client(self, place: int, vector: Reals, this: Round) -> Arrays:
        """One envelope, and whether there is a message in it; as long as any other."""
        sent = checkin.client(self.protocol, vector, self.generator(this.number, place + 1))
        content = np.zeros(self.dimension) if sent is None else np.asarray(sent, dtype=np.float64)
        return {"came": np.array(sent is not None), "message": lock(this.analyzer_key, content.tobytes())}

    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """Envelopes of those who came, in random order."""
        came = [one["message"] for one in received if one["came"]]
        shuffled = checkin.shuffler(came, self.generator(this.number, 0))
        return {"messages": np.array(shuffled, dtype=np.uint8).reshape(len(shuffled), received[0]["message"].size)}

    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The sum of what came, over how many are expected."""
        return self.mean([np.frombuffer(unlock(secret, one)) for one in received["messages"]])

    def mean(self, messages: Sequence[Reals]) -> Reals:
        """The same of open messages."""
        return checkin.aggregate(messages, self.dimension)[0] / (self.n_users * self.settings.checkin_rate)

    def spent(self, rounds: int) -> Guarantee:
        """By clones, which hide the messages of any randomizer."""
        survey = Shuffled(AnyRandomizer(self.settings.epsilon0), self.n_users)
        return account(Checkin(survey, self.settings.checkin_rate), delta=self.delta, rounds=rounds)


class Tally(Parties):
    """One number in [0, 1] of each client, in shares that mean nothing alone; the sum contains noise."""

    stream = 2

    @cached_property
    def protocol(self) -> Cloak:
        """The library's record of it: the cheapest plan for its budget in each round."""
        its = self.settings
        most, error = self.delta / (its.rounds + 1), 1.25 / its.tally_epsilon
        return Cloak.plan(its.n_users, its.tally_epsilon, most, error)

    def encoded(self, vector: Reals, randomness: Randomness) -> Residues:
        """The shares of a client's vector, those of a coordinate in a row."""
        shares: Residues = cloak.encode(self.protocol, vector[None], randomness)[0]
        return shares

    def decoded(self, total: Residues) -> Reals:
        """The sum of the clients' values, from the sum of all shares."""
        return cloak.analyze_centred(self.protocol, total)

    def client(self, place: int, vector: Reals, this: Round) -> Arrays:
        """Shares, each in an envelope."""
        shares = self.encoded(vector, self.randomness(this.number, place)).ravel()
        return {"messages": sealing.seal(this.analyzer_key, this.name, np.zeros(shares.shape, dtype=int), shares)}

    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """All envelopes, permuted."""
        messages = np.concatenate([one["messages"] for one in received])
        return {"messages": messages[self.randomness(this.number, self.n_users).permuted(np.arange(len(messages)))]}

    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The mean, of the sum of all shares."""
        key = sealing.AnalyzerKey(PrivateKey(secret))
        opened = sealing.open_bags(key, this.name, received["messages"][None].astype(np.uint8))
        return self.decoded(cloak.total(self.protocol, opened.values.astype(np.int64))) / self.n_users

    def spent(self, rounds: int) -> Guarantee:
        """The budgets of all sums, added up."""
        return account(self.protocol, delta=self.delta, rounds=rounds)


class Shares(Tally):
    """Whole vectors in shares: rounded at random, with Skellam noise in the sums.

    Shares lie open before the shuffler, who could add up those of a client: there are too many to seal each.
    """

    stream = 1

    @cached_property
    def average(self) -> CloakAverage:
        """The library's way to average, whose noise is ``noise_std`` times the largest rounded update."""
        its, limit, variance = self.settings, self.limit, self.variance
        modulus = 2 ** (2 * (its.n_users * math.floor(limit) + math.ceil(FAR * math.sqrt(variance)))).bit_length()
        messages = least_messages(self.security_bits, its.n_users, modulus, 0)
        return CloakAverage(its.n_users, its.clip_norm, GRID, limit, variance, modulus, messages)

    @property
    def limit(self) -> float:
        """Largest norm of a rounded update, in steps of the grid."""
        return rounded_norm(self.dimension, GRID)

    @property
    def variance(self) -> float:
        """Of the noise in a sum."""
        return (self.settings.noise_std * self.limit) ** 2

    @cached_property
    def security_bits(self) -> int:
        """Bits of security of a coordinate's shares with which the shares of all rounds cost little of delta."""
        sums = self._of_sums(self.settings.rounds, (1 - 2 * SHARES_COST) * self.delta)
        cost = math.log2(self.dimension * self.settings.rounds) - math.log2(SHARES_COST * self.delta)
        return math.ceil(cost + (min(sums, MOST_EPSILON) + 1) / math.log(2))

    @property
    def protocol(self) -> cloak.CloakProtocol:  # type: ignore[override]
        """What is run on each coordinate."""
        return self.average.protocol

    def encoded(self, vector: Reals, randomness: Randomness) -> Residues:
        """Rounded, with a share of the noise, split."""
        wholes = self.average.rounded_rows(vector[None], randomness).astype(np.int64)
        noisy = cloak.prerandomize(self.protocol, wholes, randomness)
        shares: Residues = cloak.split(self.protocol, noisy, randomness)[0]
        return shares

    def decoded(self, total: Residues) -> Reals:
        """Sums of either sign, in the unit of the updates."""
        return centred(total, self.average.modulus) * (self.settings.clip_norm / GRID)

    def spent(self, rounds: int) -> Guarantee:
        """By the Rényi divergence of Skellam noise, and what shares tell beside the sums."""
        found = self._of_sums(rounds, self.delta, self.security_bits)
        return Guarantee(found, self.delta, Adjacency.REPLACE_ONE, RestsOn.CITED)

    def client(self, place: int, vector: Reals, this: Round) -> Arrays:
        """Shares of every coordinate."""
        return {"shares": np.asarray(self.encoded(vector, self.randomness(this.number, place)), dtype=np.int64)}

    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """All shares of a coordinate, permuted."""
        pooled = cloak.pool(np.stack([one["shares"] for one in received]))
        return {"shares": cloak.shuffler(pooled, self.randomness(this.number, self.n_users))}

    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The mean, of the sums of all shares."""
        return self.decoded(cloak.total(self.protocol, received["shares"])) / self.n_users

    def _of_sums(self, rounds: int, delta: float, security_bits: float | None = None) -> float:
        moved = 2 * self.limit
        return vector_epsilon(self.dimension, moved, self.variance, rounds, delta, security_bits=security_bits)


AGGREGATIONS: Mapping[str, type[Parties]] = {"flame": Flame, "checkin": SelfCheckin, "cloak": Shares}


class Both(Parties):
    """Updates by the protocol of the run, each with one more number behind it, which is added up by :class:`Tally`."""

    @cached_property
    def parts(self) -> dict[str, Parties]:
        """The two ways to add up, by name."""
        return {"update": AGGREGATIONS[self.settings.aggregation](self.settings), TALLY: Tally(self.settings)}

    def client(self, place: int, vector: Reals, this: Round) -> Arrays:
        """What a client sends for both sums."""
        sent = zip(self.parts.items(), (vector[:-1], vector[-1:]), strict=True)
        return _joined({name: part.client(place, own, this) for (name, part), own in sent})

    def shuffler(self, received: Sequence[Arrays], this: Round) -> Arrays:
        """The messages of both sums, each shuffled on its own."""
        return _joined(
            {name: part.shuffler([_part(one, name) for one in received], this) for name, part in self.parts.items()}
        )

    def analyzer(self, received: Arrays, secret: bytes, this: Round) -> Reals:
        """The mean update, the mean number behind it."""
        found = [part.analyzer(_part(received, name), secret, this) for name, part in self.parts.items()]
        return np.concatenate(found)

    def spent(self, rounds: int) -> Guarantee:
        """Both budgets added up; there is one more sum of accuracies than of updates, for the last model."""
        parts = list(self.parts.values())
        found = [part.spent(rounds + extra) for part, extra in zip(parts, (0, 1), strict=True)]
        total = math.nextafter(sum(one.epsilon for one in found), math.inf)
        return Guarantee(total, self.settings.delta, Adjacency.REPLACE_ONE, weakest(*(one.rests_on for one in found)))


def _joined(parts: Mapping[str, Arrays]) -> Arrays:
    return {f"{name} {which}": one for name, arrays in parts.items() for which, one in arrays.items()}


def _part(arrays: Arrays, name: str) -> Arrays:
    return {which.removeprefix(f"{name} "): one for which, one in arrays.items() if which.startswith(f"{name} ")}


def parties(settings: Settings, job: str) -> Parties:
    """The parties of a round, or of the last tally."""
    return Tally(settings) if job == TALLY else Both(settings)
