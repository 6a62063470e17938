r"""Training with self check-in: LDP-SGD and federated DP-SGD on real images, all schemes on the same random numbers.

Every user holds one image.  A user whose coin says so sends its gradient through a vector randomizer
(:mod:`flamelib.mechanisms.vectors`); the server, which sees how many messages came, steps by their mean.  Where there
are more users than images, each user's image is drawn at random once and for all (a bootstrap).

Schemes see the same initial model, the same users, the same uniform numbers behind signs and caps, and the same
direction of noise; differences between them scatter less than each of them does.  Sums of messages are drawn in
aggregate, an approximation for points of a sphere and exact for Gaussian noise
(:meth:`flamelib.mechanisms.vectors.CapMessages.rest_std` says where it errs).

Source: Liew, Hasegawa, Takahashi 2022, Section 6; Erlingsson et al. 2020 (LDP-SGD).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Floats, Reals, Wholes
from flamelib.core.vocabulary import check, keep
from flamelib.learning.models import Model
from flamelib.learning.records import History, Records, follow, tester
from flamelib.mechanisms.vectors import VectorRandomizer
from flamelib.protocols.checkin import draw_clients

_TINY = 1e-30  # a gradient's 2-norm from which on it has a direction; single precision has nothing below 1e-45


@dataclass(frozen=True, slots=True)
class Scheme:
    """What distinguishes one way of training from another: what every user does to its gradient, and the step."""

    randomizer: VectorRandomizer
    learning_rate: float

    def __post_init__(self) -> None:
        keep(self, **check(learning_rate=self.learning_rate))


def train(
    model: Model,
    records: Records,
    schemes: Mapping[str, Scheme],
    rounds: int,
    rng: np.random.Generator,
    *,
    n_users: int,
    checkin_rate: float,
    dropout: float = 0.0,
    points: int = 10,
) -> History:
    """Rounds of descent by the mean of the messages that arrive (``batches``); a round without any changes nothing.

    Initial model, users with their images, messages and noise come from children of ``rng`` of their own.  Models are
    tested ``points`` times, at equal distances, the last time at the end.
    """
    given = check(rounds=rounds, points=points, n_users=n_users, checkin_rate=checkin_rate, dropout=dropout)
    for_model, for_users, for_messages, for_noise = rng.spawn(4)
    held, start = _holdings(len(records), given["n_users"], for_users), model.initial(for_model)
    parameters = {name: start.copy() for name in schemes}

    def one_round() -> int:
        users = draw_clients(checkin_rate * (1 - dropout), len(held), for_users)
        uniforms, noise = for_messages.random((3, len(users))), for_noise.standard_normal(model.dimension)
        batch = records.batch(held[users].astype(np.int64))
        for name, scheme in schemes.items():
            now = parameters[name]
            total = _summed_messages(model, now, batch.images, batch.labels, scheme.randomizer, uniforms, noise)
            now -= scheme.learning_rate / max(len(batch), 1) * total
        return len(batch)

    return follow(tester(model, records), parameters, one_round, given["rounds"], given["points"])


def _holdings(n_records: int, n_users: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Number of the record that each user holds: its own where they suffice, otherwise one drawn at random."""
    if n_users <= n_records:
        return np.arange(n_users, dtype=np.int32)
    return rng.integers(n_records, size=n_users, dtype=np.int32)


def _summed_messages(
    model: Model,
    parameters: Reals,
    samples: Floats,
    labels: Wholes,
    randomizer: VectorRandomizer,
    uniforms: Reals,
    noise: Reals,
) -> Reals:
    """Sum of all messages about the samples' gradients, in aggregate; shape (dimension,).

    ``uniforms``, of shape (3, n), are the numbers behind signs, caps and places; ``noise``, of shape (dimension,), is
    standard Gaussian.
    """
    rest: list[float] = []

    def weights(norms: Floats) -> Reals:
        along = randomizer.along(norms.astype(np.float64), uniforms)
        rest.append(randomizer.rest_std(along))
        return np.divide(along, norms, out=np.zeros_like(along), where=norms > _TINY)

    if not len(labels):
        return np.zeros(model.dimension)
    total = model.weighted_sum(parameters, samples, labels, weights)
    return np.asarray(total + rest[0] * noise)
