"""A round of DP-SGD with random participation: clients toss coins of their own, a trusted server adds noise.

A :func:`client` sees its own gradients and randomness, the :func:`server` the sums it was sent.  Nobody else learns who
took part.  The sum is divided by the number of records that a round draws on average *by the public parameters*, never
by how many it drew, for that would tell of them.  A round nobody joins publishes noise, like any other.

Where the server is not trusted with the sum, every client adds noise of its own, those who stay away to zeros
(:func:`noisy_client`).

Source: Hasircioglu, Gunduz 2022, Algorithm 1, Equation 4, Section 5.5.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Reals, Wholes, reals
from flamelib.core.vocabulary import Checked, DomainError, check
from flamelib.mechanisms.vectors import clipped_sum


@dataclass(frozen=True, slots=True)
class Participation(Checked):
    r"""What everybody knows of a round.

    A client joins with chance ``participation_rate``, the paper's :math:`p`, and then draws each record of its own with
    chance ``record_rate``, :math:`q`.  It declares ``n_records``; it may hold fewer, never more.  A record's gradient
    has the 2-norm ``clip_norm`` at most, :math:`C`; ``noise_std``, :math:`\sigma`, is that of a coordinate of the sum.

    Nothing is counted on but this client's own coins and the server's noise, so other clients may collude.  A client
    that is lost unseen joins the more rarely: multiply ``participation_rate`` by the chance that it is not.
    """

    participation_rate: float
    record_rate: float
    n_records: int
    clip_norm: float
    noise_std: float

    def expected_records(self, n_clients: int) -> float:
        """Mean number of records in a round with so many available clients: what the server divides by."""
        return float(
            self.participation_rate * self.record_rate * self.n_records * check(n_clients=n_clients)["n_clients"]
        )


def client(protocol: Participation, gradients: ArrayLike, rng: np.random.Generator) -> Reals | None:
    """What a client sends: the sum of clipped gradients of the records it draws, or nothing if it stays away.

    ``gradients`` has one row a record, at the model of this round; more rows than the protocol declares are refused,
    for the guarantee would be weaker than was promised.  A client that joins and draws no record sends zeros.
    """
    rows = reals("gradients", gradients)
    if rows.ndim != 2 or len(rows) > protocol.n_records:
        raise DomainError(f"n_records must be at most {protocol.n_records} rows of gradients, got shape {rows.shape}")
    if not rng.random() < protocol.participation_rate:
        return None
    drawn = rng.random(len(rows)) < protocol.record_rate
    return clipped_sum(rows[drawn], protocol.clip_norm)


def noisy_client(protocol: Participation, gradients: ArrayLike, rng: np.random.Generator) -> Reals:
    """What every client sends to a server that is not trusted: its sum, or zeros if it stays away, and its own noise.

    Its noise alone protects it, so that ``noise_std`` is that of one message.
    """
    sent = client(protocol, gradients, rng)
    dimension = np.shape(gradients)[-1]
    return (np.zeros(dimension) if sent is None else sent) + protocol.noise_std * rng.standard_normal(dimension)


def server(
    protocol: Participation,
    messages: Sequence[ArrayLike],
    dimension: int,
    n_clients: int,
    rng: np.random.Generator | None,
) -> Reals:
    """The published gradient: the sum of what came, with noise, over the expected number of records.

    ``messages`` are vectors from those who joined, maybe none; ``n_clients`` were available, whether or not they
    joined.  Without a generator no noise is added, for it is in the messages.
    """
    given = check(dimension=dimension, n_clients=n_clients)
    received = [reals("messages", message) for message in messages]
    if len(received) > given["n_clients"] or any(one.shape != (given["dimension"],) for one in received):
        raise DomainError(f"messages must be at most {n_clients} vectors of {dimension} coordinates")
    noise = protocol.noise_std * rng.standard_normal(given["dimension"]) if rng else np.zeros(given["dimension"])
    return np.asarray(sum(received, noise) / protocol.expected_records(n_clients))


def run(
    protocol: Participation, gradients: Sequence[ArrayLike], rng: np.random.Generator, *, trusted: bool = True
) -> Reals:
    """One round: what is published about the gradients, one row a record, of each client available in it.

    Every client and the server get generators of their own, spawned from ``rng``.  If the server is not ``trusted``,
    all clients send, each with its own noise.
    """
    if not len(gradients):
        raise DomainError("n_clients must be a whole number of at least 1: a round needs an available client")
    own = rng.spawn(len(gradients) + 1)
    dimension = np.shape(gradients[0])[-1]
    if not trusted:
        noisy = [noisy_client(protocol, rows, one) for rows, one in zip(gradients, own[1:], strict=True)]
        return server(protocol, noisy, dimension, len(gradients), None)
    sent = [client(protocol, rows, one) for rows, one in zip(gradients, own[1:], strict=True)]
    return server(protocol, [one for one in sent if one is not None], dimension, len(gradients), own[0])


def draw_records(
    participation_rate: float, record_rate: float, n_clients: int, n_records: int, rng: np.random.Generator
) -> Wholes:
    """Which records a round draws where every client holds ``n_records``: clients first, then records of those.

    The law is that of :func:`client`, at the cost of the clients that join.  Record r of client c has the number
    ``c * n_records + r``.
    """
    joined = np.sort(rng.choice(n_clients, rng.binomial(n_clients, participation_rate), replace=False, shuffle=False))
    who, which = np.nonzero(rng.random((len(joined), n_records)) < record_rate)
    return np.asarray(joined[who] * n_records + which, dtype=np.int64)


def batch_size(participation_rate: float, record_rate: float, n_clients: int, n_records: int) -> tuple[float, float]:
    r"""Mean :math:`KpLq` and standard deviation of the number of records in a round, of K clients with L records each.

    .. math:: \sqrt{K p \left(L q (1 - q) + L^2 q^2 (1 - p)\right)}

    Clients join with all their records at stake, so the spread exceeds that of records drawn one by one.
    """
    given = check(
        participation_rate=participation_rate, record_rate=record_rate, n_clients=n_clients, n_records=n_records
    )
    p, q, joining = given["participation_rate"], given["record_rate"], given["n_clients"] * given["participation_rate"]
    drawn = given["n_records"] * q
    return joining * drawn, math.sqrt(joining * (drawn * (1 - q) + drawn**2 * (1 - p)))
