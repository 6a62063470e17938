r"""Training with self check-in: LDP-SGD and federated DP-SGD on real images, all schemes on the same random numbers.

Every user holds one image.  A user whose coin says so sends its gradient through a vector randomizer
(:mod:`flamelib.mechanisms.vectors`); the server, which sees how many messages came, steps by their mean.  Where there
are more users than images, each user's image is drawn at random once and for all (a bootstrap).

Schemes see the same initial model, the same users, the same uniform numbers behind signs and caps, and the same
direction of noise; differences between them scatter less than each of them does.  Sums of messages are drawn in
aggregate, an approximation for points of a sphere and exact for Gaussian noise
(:meth:`flamelib.mechanisms.vectors.CapMessages.rest_std` says where it errs).

Source: Liew, Hasegawa, Takahashi 2022, Section 5.2; Erlingsson et al. 2020 (LDP-SGD).
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flamelib.core.arrays import Floats, Reals, Wholes
from flamelib.core.vocabulary import check, keep
from flamelib.learning.models import Model
from flamelib.learning.records import Records
from flamelib.learning.rounds import History, Training, side_by_side
from flamelib.mechanisms.vectors import VectorRandomizer
from flamelib.protocols.checkin import draw_clients

_PART = 500  # gradients at once: more do not fit the cache of a core, and a network takes three times as long
_TINY = 1e-30  # a gradient's 2-norm from which on it has a direction; single precision has nothing below 1e-45


@dataclass(frozen=True, slots=True)
class Scheme:
    """What distinguishes one way of training from another: what every user does to its gradient, and the step.

    A ``falling`` step goes down to nothing in a straight line, from ``learning_rate`` in the first round.
    """

    randomizer: VectorRandomizer
    learning_rate: float
    falling: bool = False

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
    held, start = records.held(given["n_users"], for_users), model.initial(for_model)
    arriving = checkin_rate * (1 - dropout)

    def training(scheme: Scheme) -> Training:
        parameters = start.copy()
        coins, messages, directions = copy.deepcopy((for_users, for_messages, for_noise))

        def one_round(before: int) -> int:
            users = draw_clients(arriving, len(held), coins)
            uniforms, noise = messages.random((3, len(users))), directions.standard_normal(model.dimension)
            batch = records.batch(held[users].astype(np.int64))
            total = _summed_messages(model, parameters, batch.images, batch.labels, scheme.randomizer, uniforms, noise)
            step = scheme.learning_rate * (1 - scheme.falling * before / given["rounds"])
            np.subtract(parameters, step / max(len(batch), 1) * total, out=parameters)
            return len(batch)

        return Training({"parameters": parameters}, (coins, messages, directions), one_round)

    about = (len(held), arriving)
    return side_by_side(model, records, schemes, training, given["rounds"], given["points"], about)


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
    along: list[Reals] = [np.zeros(0)]

    def one(part: slice) -> Floats:
        def weights(norms: Floats) -> Reals:
            along.append(randomizer.along(norms.astype(np.float64), uniforms[:, part]))
            return np.divide(along[-1], norms, out=np.zeros_like(along[-1]), where=norms > _TINY)

        return model.weighted_sum(parameters, samples[part], labels[part], weights)

    total = sum((one(slice(i, i + _PART)) for i in range(0, len(labels), _PART)), start=np.zeros(model.dimension))
    return np.asarray(total + randomizer.rest_std(np.concatenate(along)) * noise)
