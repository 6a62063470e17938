r"""A round with self check-in: every client tosses a coin of its own, and nobody chooses who takes part.

A :func:`client` sees its value and its own randomness; whether it takes part is settled before it looks at the value.
What is published is either what the :func:`shuffler` lets through, all messages in random order, or their sum, in
which every message brings its own noise (:func:`aggregate`).  The number of messages is visible in both, and follows
:math:`\mathrm{Bin}(n, \gamma (1 - p'))` with the check-in rate :math:`\gamma` and the dropout :math:`p'`.

Source: Liew, Hasegawa, Takahashi 2022, Equations 6 and 9.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Reals, Wholes, reals
from flamelib.core.vocabulary import DomainError, check, keep

Message = NDArray[Any]


class Randomizer(Protocol):
    """Any local randomizer of the library."""

    def sample(self, values: ArrayLike, rng: np.random.Generator) -> Message:
        """One message for each entry, or each row, of the values."""


@dataclass(frozen=True, slots=True)
class CheckinProtocol:
    """What everybody knows of a round; ``dropout`` is the chance that a client that checked in is lost on the way."""

    randomizer: Randomizer
    checkin_rate: float
    dropout: float = 0.0

    def __post_init__(self) -> None:
        keep(self, **check(checkin_rate=self.checkin_rate, dropout=self.dropout))

    @property
    def effective_rate(self) -> float:
        """Chance that a client's message arrives."""
        return self.checkin_rate * (1 - self.dropout)


def client(protocol: CheckinProtocol, value: ArrayLike, rng: np.random.Generator) -> Message | None:
    """What a client sends: its randomized value, or nothing if it stays away or is lost.

    The coins are the first two numbers of the client's generator, whatever its value.
    """
    in_time, arrives = rng.random(2) < (protocol.checkin_rate, 1 - protocol.dropout)
    if not (in_time and arrives):
        return None
    return np.asarray(protocol.randomizer.sample(np.asarray(value)[None], rng)[0])


def shuffler(messages: Sequence[Message], rng: np.random.Generator) -> list[Message]:
    """All messages in an order that says nothing; how many there are is visible."""
    return [messages[i] for i in rng.permutation(len(messages))]


def aggregate(messages: Sequence[ArrayLike], dimension: int) -> tuple[Reals, int]:
    """The sum of what came, and how many there were; nobody adds noise here, for every message has brought its own.

    There may be none: then the sum is zero, without any noise, and the count says so.
    """
    dimension = check(dimension=dimension)["dimension"]
    received = [reals("messages", message) for message in messages]
    if any(one.shape != (dimension,) for one in received):
        raise DomainError(f"messages must be vectors of {dimension} coordinates")
    return np.asarray(sum(received, np.zeros(dimension))), len(received)


def run(protocol: CheckinProtocol, values: Sequence[ArrayLike], rng: np.random.Generator) -> list[Message]:
    """One round up to the shuffler, one value for each client: what an observer of it sees.

    Every client and the shuffler get generators of their own, spawned from ``rng``.
    """
    if not len(values):
        raise DomainError("n_users must be a whole number of at least 1: a round needs a client")
    own = rng.spawn(len(values) + 1)
    sent = [client(protocol, value, one) for value, one in zip(values, own[1:], strict=True)]
    return shuffler([one for one in sent if one is not None], own[0])


def draw_clients(effective_rate: float, n_users: int, rng: np.random.Generator) -> Wholes:
    """Whose messages arrive, in increasing order: the law of all clients' coins, at the cost of those that arrive."""
    count = rng.binomial(n_users, effective_rate)
    return np.sort(rng.choice(n_users, count, replace=False, shuffle=False))
