r"""Federated averaging on users who each hold a few real images, with any way of adding up their updates.

The users are those of the experiments with FLAME: the first 6000 images of every class, in the order training part,
test part; user u gets the u-th of each, so everybody holds one image of every class; seven of ten at random are for
training, the others for testing.  Features are standardised over all images, :math:`(x - \mu) / (s + 0.001)`.
The published test part overlaps with what the users hold; :class:`Users` says which images are untouched.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flamelib.core.arrays import Floats, Reals, Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.learning.datasets import Dataset, load
from flamelib.learning.models import SoftmaxRegression, gram_matrices
from flamelib.learning.records import Samples
from flamelib.learning.rounds import Training, follow

_LARGEST_CROWD = 6000  # users of the experiments with FLAME: so many images of every class are taken
_TRAINING_SHARE = 0.7  # of every user's images; the others are for testing
_CHUNK = 10_000  # images that are held in double precision at once


@dataclass(frozen=True, slots=True)
class Users:
    """Everybody's own images, and what models are tested on.

    What each user trains on are t ``images`` with their ``labels``, and ``gram`` the inner products of these.
    ``held_back`` are all users' own test images together, ``official`` the published test part, of which some images
    are held by some user (``official_held``) or even trained on (``official_trained``).
    """

    images: Floats
    labels: Wholes
    gram: Floats
    held_back: Samples
    official: Samples
    official_held: NDArray[np.bool_]
    official_trained: NDArray[np.bool_]
    n_classes: int
    notice: str

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def model(self) -> SoftmaxRegression:
        """The model that fits these images."""
        return SoftmaxRegression(self.images.shape[-1], self.n_classes)

    def updates(self, block: slice, parameters: Reals, learning_rate: float, epochs: int) -> Floats:
        """What the gradient descent of each user of a block adds to a model."""
        images, labels, gram = self.images[block], self.labels[block], self.gram[block]
        fit = self.model.local_updates
        return fit(parameters, images, labels, learning_rate=learning_rate, epochs=epochs, gram=gram)

    def accuracy(self, parameters: Reals) -> float:
        """Share of the users' own test images that a model classifies correctly."""
        return self.model.accuracy(parameters, self.held_back.images, self.held_back.labels)

    def official_accuracy(self, parameters: Reals) -> tuple[float, float]:
        """The same of the published test part, and of those of its images that no user holds (NaN without any)."""
        right = self.model.scores(parameters, self.official.images).argmax(axis=-1) == self.official.labels
        untouched = float(right[~self.official_held].mean()) if not self.official_held.all() else math.nan
        return float(right.mean()), untouched


def load_users(dataset: str = "mnist", seed: int = 7, n_users: int = _LARGEST_CROWD) -> Users:
    """The users of the experiments, from a set that :func:`flamelib.learning.datasets.load` knows.

    There are at most ``n_users``, and at most as many as there are images of the rarest class; ``seed`` is that of the
    split of everybody's images into training and test.
    """
    given = check(seed=seed, n_users=n_users)
    return _gather(load(dataset), load(dataset, "test"), np.random.default_rng(given["seed"]), given["n_users"])


def _gather(train: Dataset, test: Dataset, rng: np.random.Generator, n_users: int = _LARGEST_CROWD) -> Users:
    """Users who hold one image of every class each, drawn from both parts of a data set."""
    labels = np.concatenate([train.labels, test.labels]).astype(np.int64)
    by_class = [np.flatnonzero(labels == one) for one in range(train.classes)]
    n_users = min(n_users, *map(len, by_class))
    if n_users < 1 or train.classes < 2:
        raise DomainError("the data set must have two classes or more, and images of each")
    of_class = np.stack([found[:n_users] for found in by_class], axis=1)
    order = rng.permuted(np.tile(np.arange(train.classes), (n_users, 1)), axis=1)
    records = np.take_along_axis(of_class, order, axis=1)
    mine, others = np.split(records, [int(_TRAINING_SHARE * train.classes)], axis=1)
    standardise = _standardised(train, test)
    images = standardise(mine)
    tested = Samples(standardise(others.ravel()), labels[others.ravel()])
    official = np.arange(train.n, train.n + test.n)
    return Users(
        images,
        labels[mine],
        gram_matrices(images),
        tested,
        Samples(standardise(official), labels[official]),
        np.isin(official, records),
        np.isin(official, mine),
        train.classes,
        train.notice,
    )


def _standardised(train: Dataset, test: Dataset) -> Callable[[Wholes], Floats]:
    """A function from numbers of images of both parts to these images, standardised over all."""
    first, second = train.images.reshape(train.n, -1), test.images.reshape(test.n, -1)
    total, squares = np.zeros((2, first.shape[1]))
    for part in (first, second):
        for start in range(0, len(part), _CHUNK):
            chunk = part[start : start + _CHUNK].astype(np.float64)
            total += chunk.sum(axis=0)
            squares += (chunk**2).sum(axis=0)
    mean = total / (train.n + test.n)
    spread = np.sqrt(np.maximum(squares / (train.n + test.n) - mean**2, 0))

    def images(numbers: Wholes) -> Floats:
        flat = numbers.ravel()
        found = np.empty((flat.size, first.shape[1]), dtype=np.float32)
        early = flat < len(first)
        found[early], found[~early] = first[flat[early]], second[flat[~early] - len(first)]
        found -= mean.astype(np.float32)
        found /= (spread + 0.001).astype(np.float32)
        return found.reshape(*numbers.shape, -1)

    return images


class Published(Protocol):
    """What a round publishes: at least the vector that is added to the model."""

    @property
    def estimate(self) -> Reals:
        """The mean update, as far as it can be estimated."""


Aggregate = Callable[[Floats, np.random.Generator], Published]


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training run showed.

    ``held_back`` is the accuracy on the users' own test images, the initial model's first; ``official`` and
    ``untouched`` are those of the last model on the published test part, and on those of it that no user holds.
    ``observed`` is what the caller's ``observe`` kept of every round.
    """

    held_back: Reals
    official: float
    untouched: float
    observed: tuple[Any, ...]


def train(
    method: Aggregate,
    users: Users,
    rounds: int,
    rng: np.random.Generator,
    *,
    n_users: int = 1000,
    learning_rate: float = 0.1,
    epochs: int = 10,
    server_step: float = 1.0,
    repeat_noise: bool = False,
    observe: Callable[[Published], Any] | None = None,
) -> Trained:
    """Rounds of federated averaging: one block of users after another, from the first again after the last.

    ``method`` takes the updates of ``n_users`` users (of all, if there are fewer), of shape (n_users, dimension), and a
    generator; it returns an object whose ``estimate``, times ``server_step``, is added to the model; ``observe`` is
    applied to what each round publishes.  The first child of ``rng`` draws the initial model, the second everything
    else: runs of several methods begin alike.  ``repeat_noise`` gives every round a generator in one and the same
    state, as the authors' code does unintentionally.
    """
    given = check(rounds=rounds, n_users=n_users, server_step=server_step)
    for_model, for_noise = rng.spawn(2)
    parameters = users.model.initial(for_model)
    size: int = min(given["n_users"], len(users))
    observed: list[Any] = []

    def one_round(before: int) -> int:
        start = before % (len(users) // size) * size
        updates = users.updates(slice(start, start + size), parameters, learning_rate, epochs)
        published = method(updates, copy.deepcopy(for_noise) if repeat_noise else for_noise)
        parameters[:] += given["server_step"] * published.estimate
        observed.append(observe(published) if observe else None)
        return size

    training = Training({"parameters": parameters}, (), one_round)
    _, held_back, _ = follow(users.accuracy, training, given["rounds"], given["rounds"])
    return Trained(held_back, *users.official_accuracy(parameters), tuple(observed))
