r"""Softmax regression, and its training by gradient descent on every user's own few records at once.

A user with samples :math:`A \in \mathbb R^{t \times p}` needs no weights during local training: the scores change by
:math:`-\frac{\eta}{t}(AA^\top + \mathbf 1)(P - Y)` in every epoch, P the probabilities and Y the one-hot labels, so
the t by t Gram matrix carries all epochs, and :math:`-\frac{\eta}{t}A^\top\sum_e(P_e - Y)` is the update at the end.

Single precision for samples, scores and local updates, as in the experiments that are compared with; sums over users
and the model itself are in double precision.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.arrays import Floats, Reals, Wholes, reals
from flamelib.core.vocabulary import Checked, DomainError, check
from flamelib.mechanisms.vectors import clip_factors

Weights = Callable[[Floats], NDArray[np.floating]]


class Model(ABC):
    """What is trained: a vector of parameters that classifies samples, and sums of per-sample gradients."""

    __slots__ = ()

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Coordinates of the parameter vector."""

    @abstractmethod
    def initial(self, rng: np.random.Generator) -> Reals:
        """Parameters to begin with."""

    @abstractmethod
    def scores(self, parameters: ArrayLike, samples: Floats) -> Floats:
        """Scores before the softmax, a row of ``n_classes`` for each sample."""

    @abstractmethod
    def weighted_sum(self, parameters: ArrayLike, samples: Floats, labels: Wholes, weights: Weights) -> Floats:
        """Sum of the samples' gradients of the cross-entropy, each times a weight that depends on its 2-norm.

        ``samples`` has shape (n, n_inputs), ``labels`` (n,), the sum (dimension,); ``weights`` makes of all norms their
        factors.
        """

    def clipped_sum(
        self, parameters: ArrayLike, samples: Floats, labels: Wholes, clip_norm: float = math.inf
    ) -> Floats:
        """Sum of the samples' gradients, each clipped to a 2-norm; infinite for gradients as they are."""
        return self.weighted_sum(parameters, samples, labels, lambda norms: clip_factors(norms, clip_norm))

    def accuracy(self, parameters: ArrayLike, samples: Floats, labels: Wholes) -> float:
        """Share of the samples whose largest score is that of their label."""
        return float((self.scores(parameters, samples).argmax(axis=-1) == labels).mean())

    def _single(self, parameters: ArrayLike) -> Floats:
        """The parameters in single precision; another number of them is refused."""
        vector = reals("parameters", parameters)
        if vector.shape != (self.dimension,):
            raise DomainError(f"parameters must have shape ({self.dimension},), got {vector.shape}")
        return vector.astype(np.float32)


@dataclass(frozen=True, slots=True)
class SoftmaxRegression(Checked, Model):
    """One linear layer and a softmax; the parameters are a vector: weights row by row, then the biases."""

    n_inputs: int
    n_classes: int

    @property
    def dimension(self) -> int:
        """Coordinates of the parameter vector."""
        return (self.n_inputs + 1) * self.n_classes

    def initial(self, rng: np.random.Generator) -> Reals:
        """Glorot's uniform weights and no biases; float64 of shape ``(dimension,)``."""
        limit = math.sqrt(6 / (self.n_inputs + self.n_classes))
        weights = rng.uniform(-limit, limit, size=self.n_inputs * self.n_classes)
        return np.concatenate([weights, np.zeros(self.n_classes)])

    def scores(self, parameters: ArrayLike, samples: Floats) -> Floats:
        """Scores before the softmax, shape of ``samples`` with the last axis replaced by ``(n_classes,)``."""
        layer = self._single(parameters).reshape(self.n_inputs + 1, self.n_classes)
        if samples.ndim < 2 or samples.shape[-1] != self.n_inputs:
            raise DomainError(f"samples must have {self.n_inputs} numbers on their last axis, got {samples.shape}")
        flat = samples.reshape(-1, self.n_inputs) @ layer[:-1] + layer[-1]
        return np.asarray(flat.reshape(*samples.shape[:-1], self.n_classes))

    def local_updates(
        self,
        parameters: ArrayLike,
        samples: Floats,
        labels: Wholes,
        *,
        learning_rate: float,
        epochs: int,
        gram: Floats | None = None,
    ) -> Floats:
        """What each user's own full-batch gradient descent adds to the parameters; shape (n_users, dimension).

        Every user takes ``epochs`` steps on the mean cross-entropy of its samples, which have shape (n_users, samples
        of each, n_inputs).  ``gram`` is :func:`gram_matrices` of the samples, where they are at hand.
        """
        given = check(learning_rate=learning_rate, epochs=epochs)
        scores = self.scores(parameters, samples)
        if samples.ndim != 3 or labels.shape != samples.shape[:2]:
            raise DomainError(f"labels must have one entry for each sample, got {labels.shape} for {samples.shape}")
        rate = np.float32(given["learning_rate"] / samples.shape[1])
        slopes = _summed_slopes(scores, labels, rate, (gram_matrices(samples) if gram is None else gram), epochs)
        slopes *= -rate
        updates = np.empty((len(samples), self.dimension), dtype=np.float32)
        weights = updates[:, : -self.n_classes].reshape(-1, self.n_inputs, self.n_classes)
        np.matmul(samples.transpose(0, 2, 1), slopes, out=weights)
        updates[:, -self.n_classes :] = slopes.sum(axis=1)
        return updates

    def weighted_sum(self, parameters: ArrayLike, samples: Floats, labels: Wholes, weights: Weights) -> Floats:
        r"""Sum of the samples' gradients, each times a weight that depends on its norm.

        A sample's gradient is the outer product of :math:`(x, 1)` and :math:`p - y`, so its squared norm is
        :math:`(|x|^2 + 1)\,|p - y|^2` and none is formed.
        """
        slopes = _slopes(self.scores(parameters, samples), labels)
        squares = np.einsum("ij,ij->i", slopes, slopes) * (np.einsum("ij,ij->i", samples, samples) + 1)
        slopes *= weights(np.sqrt(squares)).astype(np.float32)[:, None]
        return np.concatenate([(samples.T @ slopes).ravel(), slopes.sum(axis=0)])


def gram_matrices(samples: Floats) -> Floats:
    """Inner products of each user's samples, shape (n_users, samples of each, samples of each)."""
    return np.asarray(samples @ samples.transpose(0, 2, 1))


def _slopes(scores: Floats, labels: Wholes) -> Floats:
    """Probabilities minus one-hot labels: derivatives of the cross-entropy by the scores."""
    slopes = _softmax(scores)
    slopes[np.arange(len(labels)), labels] -= 1
    return slopes


def _softmax(scores: Floats) -> Floats:
    found = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found /= found.sum(axis=-1, keepdims=True)
    return np.asarray(found)


def _summed_slopes(scores: Floats, labels: Wholes, rate: np.float32, gram: Floats, epochs: int) -> Floats:
    """Probabilities minus one-hot labels, summed over the epochs; ``scores`` is used up."""
    truth = np.eye(scores.shape[-1], dtype=np.float32)[labels]
    step = (gram + 1) * rate
    total = np.zeros_like(scores)
    for _ in range(epochs):
        slopes = _softmax(scores) - truth
        total += slopes
        scores -= step @ slopes
    return total
