r"""DP-SGD with random participation on real images: several schemes side by side, on the same random numbers.

Schemes that differ in noise, clip or step alone see the same initial model, the same batches and the same directions
of noise, scaled by each scheme's own standard deviation.  Differences between them then scatter far less than each of
them does.  Sampling is that of :mod:`flamelib.protocols.participation`; heavy-ball momentum on the published gradient
costs no privacy.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Floats, Reals, Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.datasets import load
from flamelib.learning.federated import Samples
from flamelib.learning.models import SoftmaxRegression
from flamelib.protocols.participation import ParticipationProtocol, draw_records


class Classifier(Protocol):
    """Anything that tells classes."""

    def accuracy(self, parameters: Reals, samples: Floats, labels: Wholes) -> float:
        """Share of the samples told right."""


class Model(Classifier, Protocol):
    """What is trained: a vector of parameters, and sums of clipped gradients."""

    @property
    def dimension(self) -> int:
        """Coordinates of the parameter vector."""

    def initial(self, rng: np.random.Generator) -> Reals:
        """Parameters to begin with."""

    def clipped_sum(self, parameters: Reals, samples: Floats, labels: Wholes, clip_norm: float) -> Floats:
        """Sum of the samples' gradients, each clipped."""


@dataclass(frozen=True, slots=True)
class Records:
    """Training images in random order, to be dealt out to clients, and the test images.

    Attributes
    ----------
    images : array of uint8, shape (n, n_inputs)
    labels : array of shape (n,)
    tested : Samples
        Standardised test images.
    mean, spread : float
        Of all pixels of the training images.
    n_classes : int
    notice : str
        What the data are.
    """

    images: NDArray[np.uint8]
    labels: Wholes
    tested: Samples
    mean: float
    spread: float
    n_classes: int
    notice: str

    def __len__(self) -> int:
        return len(self.labels)

    def n_clients(self, n_records: int) -> int:
        """How many clients can hold so many records each; the few records left over are nobody's."""
        found = len(self) // int(check(n_records=n_records)["n_records"])
        if not found:
            raise DomainError(f"n_records must be at most the {len(self)} records there are, got {n_records}")
        return found

    def batch(self, numbers: Wholes) -> Samples:
        """Standardised images of these records, with their labels."""
        return Samples(_standard(self.images[numbers], self.mean, self.spread), self.labels[numbers])

    @property
    def softmax(self) -> SoftmaxRegression:
        """The linear model that fits these images."""
        return SoftmaxRegression(self.images.shape[1], self.n_classes)


def load_records(dataset: str = "emnist-letters", seed: int = 7, pool: int = 1, n_tested: int | None = None) -> Records:
    """Images of a data set by its name, training part in random order.

    Parameters
    ----------
    dataset : str
        A name of :func:`flamelib.learning.datasets.load`.
    seed : int
        Of the order.
    pool : int
        Side of the squares whose mean replaces their pixels.
    n_tested : int, optional
        At most so many test images, chosen at random; all, if left out.
    """
    rng = np.random.default_rng(check(seed=seed)["seed"])
    train, test = load(dataset), load(dataset, "test")
    order = rng.permutation(train.n)
    images = pooled(train.images, pool)[order]
    mean, spread = float(images.mean(dtype=np.float64)), float(images.std(dtype=np.float64))
    some = np.sort(rng.permutation(test.n)[:n_tested])
    tested = Samples(_standard(pooled(test.images, pool)[some], mean, spread), test.labels[some].astype(np.int64))
    labels = train.labels[order].astype(np.int64)
    return Records(images, labels, tested, mean, spread, train.classes, train.notice)


def pooled(images: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Rows of pixels: means over squares, rounded; lines and columns that fill no square are left out."""
    n, height, width = images.shape
    if not 1 <= side <= min(height, width):
        raise DomainError(f"pool must be a whole number in [1, {min(height, width)}], got {side}")
    kept = images[:, : height // side * side, : width // side * side]
    sums = kept.reshape(n, height // side, side, width // side, side).sum(axis=(2, 4), dtype=np.uint32)
    return np.asarray((sums + side**2 // 2) // side**2, dtype=np.uint8).reshape(n, -1)


def _standard(images: NDArray[np.uint8], mean: float, spread: float) -> Floats:
    return np.asarray((images - np.float32(mean)) / np.float32(spread), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Scheme:
    """What tells one way of training from another.

    Parameters
    ----------
    noise_std : float
        Standard deviation of the noise on each coordinate of the sum; 0 for none.
    clip_norm : float, positive
        Largest 2-norm of a record's gradient; infinite where nothing is clipped, which noise forbids.
    learning_rate : float, positive
    """

    noise_std: float
    clip_norm: float
    learning_rate: float

    def __post_init__(self) -> None:
        check(learning_rate=self.learning_rate)
        if self.noise_std != 0 or self.clip_norm != math.inf:
            check(clip_norm=self.clip_norm)
        if self.noise_std != 0:
            check(noise_std=self.noise_std)


@dataclass(frozen=True, slots=True)
class History:
    """One training run of several schemes.

    Attributes
    ----------
    rounds : array of shape (points + 1,)
        After how many rounds models were tested, 0 first.
    accuracy : mapping from scheme to array of shape (points + 1,)
        Share of the test images told right.
    batches : array of shape (rounds in all,)
        Records drawn in each round.
    """

    rounds: Wholes
    accuracy: Mapping[str, Reals]
    batches: Wholes


def train(
    model: Model,
    records: Records,
    schemes: Mapping[str, Scheme],
    rounds: int,
    rng: np.random.Generator,
    *,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    momentum: float = 0.9,
    points: int = 10,
) -> History:
    """Rounds of Algorithm 1, every scheme on the same batches and the same directions of noise.

    Parameters
    ----------
    model : Model
    records : Records
    schemes : mapping from name to Scheme
    rng : numpy.random.Generator
    participation_rate, record_rate : float in (0, 1]
    n_records : int, of every client
    momentum : float in [0, 1), the share of the step before in each step
    rounds, points : int
        How many rounds, and how often models are tested: at equal distances, the last time at the end.
    """
    given = check(rounds=rounds, points=points, momentum=momentum, n_records=n_records)
    n_clients = records.n_clients(given["n_records"])
    scale = ParticipationProtocol(participation_rate, record_rate, n_records, 1, 1).expected_records(n_clients)
    for_model, for_batches, for_noise = rng.spawn(3)
    runners, parameters = _started(schemes, model.initial(for_model))

    def one_round() -> int:
        batch = records.batch(draw_records(participation_rate, record_rate, n_clients, n_records, for_batches))
        noise = for_noise.standard_normal(model.dimension)
        for runner in runners:
            runner.step(model, batch, noise, scale, given["momentum"])
        return len(batch)

    return follow(model, records, parameters, one_round, given["rounds"], given["points"])


def follow(
    model: Classifier,
    records: Records,
    parameters: Mapping[str, Reals],
    one_round: Callable[[], int],
    rounds: int,
    points: int,
) -> History:
    """Rounds of training, with tests of every scheme's model at equal distances.

    Parameters
    ----------
    model : Classifier
    records : Records
    parameters : mapping from scheme to array
        Models, which rounds change in place.
    one_round : callable
        Makes a round and tells how many records or messages it had.
    rounds, points : int
    """
    tests = stops(rounds, points)
    accuracy = {name: [share_right(model, now, records)] for name, now in parameters.items()}
    batches = np.empty(rounds, dtype=np.int64)
    for count in range(rounds):
        batches[count] = one_round()
        if count + 1 in tests:
            for name, now in parameters.items():
                accuracy[name].append(share_right(model, now, records))
    return History(tests, {name: np.array(found) for name, found in accuracy.items()}, batches)


@dataclass(slots=True)
class _Runner:
    """A scheme under way: its model and its last step."""

    scheme: Scheme
    parameters: Reals
    velocity: Reals

    def step(self, model: Model, batch: Samples, noise: Reals, scale: float, momentum: float) -> None:
        total = model.clipped_sum(self.parameters, batch.images, batch.labels, self.scheme.clip_norm)
        self.velocity *= momentum
        self.velocity += (total + self.scheme.noise_std * noise) / scale
        self.parameters -= self.scheme.learning_rate * self.velocity


def _started(schemes: Mapping[str, Scheme], start: Reals) -> tuple[list[_Runner], dict[str, Reals]]:
    """Runners from one and the same model, and the models by the names of their schemes."""
    parameters = {name: start.copy() for name in schemes}
    return [_Runner(one, parameters[name], np.zeros_like(start)) for name, one in schemes.items()], parameters


def stops(rounds: int, points: int) -> Wholes:
    """After how many rounds models are tested: at equal distances, first before any and last at the end."""
    return np.unique(np.linspace(0, rounds, min(points, rounds) + 1).round().astype(np.int64))


def share_right(model: Classifier, parameters: Reals, records: Records) -> float:
    """Share of the test images that a model tells right."""
    return model.accuracy(parameters, records.tested.images, records.tested.labels)
