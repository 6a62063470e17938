r"""A small convolutional network whose per-sample gradients are clipped at about the cost of one backward pass.

Layers: convolution to 16 channels (5 by 5), maximum over 2 by 2, ReLU, the same to 32 channels, fully connected to
128, ReLU, fully connected to the classes.  The maximum comes before the ReLU, which changes nothing but the cost.

Backward runs to the pre-activations only.  A fully connected layer's gradient of one sample is an outer product of
its input a and the derivative g by its output, so its squared norm is :math:`|g|^2(|a|^2 + 1)`; a convolution's is the
product of g and the input's windows.  Scaled by the clipping factors, each layer's sum is one product of matrices.
Images are kept with their channels last, where the maximum and the windows are fastest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from flamelib._arrays import Reals, Wholes, reals
from flamelib._validate import DomainError, check
from flamelib.clipping import clip_factors
from flamelib.models import Floats

SIDE, WINDOW = 28, 5
CHUNK = 500


@dataclass(frozen=True, slots=True)
class ConvolutionalNetwork:
    """The network for 28 by 28 images; parameters are a vector: weights then biases, layer by layer.

    Parameters
    ----------
    n_classes : int, at least 2

    Examples
    --------
    >>> ConvolutionalNetwork(62).dimension
    86910
    """

    n_classes: int

    def __post_init__(self) -> None:
        check(n_classes=self.n_classes)

    @property
    def n_inputs(self) -> int:
        """Pixels of an image."""
        return SIDE**2

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of weights and biases, in the order of the parameter vector."""
        weights = ((16, 1, WINDOW, WINDOW), (32, 16, WINDOW, WINDOW), (128, 512), (self.n_classes, 128))
        return tuple(shape for weight in weights for shape in (weight, weight[:1]))

    @property
    def dimension(self) -> int:
        """Coordinates of the parameter vector."""
        return sum(map(math.prod, self.shapes))

    def initial(self, rng: np.random.Generator) -> Reals:
        """Uniform weights and biases within one over the root of a layer's inputs; shape ``(dimension,)``."""
        limits = [math.prod(shape[1:]) ** -0.5 for shape in self.shapes[::2] for _ in range(2)]
        parts = [rng.uniform(-a, a, size=math.prod(shape)) for a, shape in zip(limits, self.shapes, strict=True)]
        return np.concatenate(parts)

    def scores(self, parameters: ArrayLike, samples: Floats) -> Floats:
        """Scores before the softmax, shape (n, n_classes), for samples of shape (n, 784)."""
        layers = self._layers(parameters)
        with torch.no_grad():
            chunks = [_forward(layers, self._images(samples[i : i + CHUNK])) for i in range(0, len(samples), CHUNK)]
        return np.concatenate([outputs[-1].numpy() for _, outputs in chunks])

    def accuracy(self, parameters: ArrayLike, samples: Floats, labels: Wholes) -> float:
        """Share of the samples whose largest score is that of their label."""
        return float((self.scores(parameters, samples).argmax(axis=-1) == labels).mean())

    def clipped_sum(
        self, parameters: ArrayLike, samples: Floats, labels: Wholes, clip_norm: float = math.inf
    ) -> Floats:
        """Sum of the samples' gradients of the cross-entropy, each clipped to a 2-norm.

        Parameters
        ----------
        parameters : array of shape (dimension,)
        samples : array of shape (n, 784)
        labels : array of shape (n,)
        clip_norm : float, positive
            Infinite for gradients as they are.

        Returns
        -------
        array of float32, shape (dimension,)

        Examples
        --------
        >>> network, rng = ConvolutionalNetwork(3), np.random.default_rng(0)
        >>> images = rng.normal(size=(2, 784)).astype(np.float32)
        >>> total = network.clipped_sum(network.initial(rng), images, np.array([0, 2]), 0.1)
        >>> bool(0 < np.linalg.norm(total) <= 0.2)
        True
        """
        if not len(labels):
            return np.zeros(self.dimension, dtype=np.float32)
        inputs, outputs = _forward(self._layers(parameters), self._images(samples))
        with torch.no_grad():
            last = torch.softmax(outputs[-1], dim=1)
            last[torch.arange(len(labels)), torch.from_numpy(labels)] -= 1
        slopes = [*torch.autograd.grad(outputs[-1], outputs[:-1], last), last]
        with torch.no_grad():
            return _clipped_sums(inputs, slopes, clip_norm)

    def _layers(self, parameters: ArrayLike) -> list[tuple[Tensor, Tensor]]:
        vector = reals("parameters", parameters)
        if vector.shape != (self.dimension,):
            raise DomainError(f"parameters must have shape ({self.dimension},), got {vector.shape}")
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        parts = np.split(vector.astype(np.float32), ends)
        shaped = [torch.from_numpy(part).view(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return [(_channels_last(weight), bias) for weight, bias in zip(shaped[::2], shaped[1::2], strict=True)]

    def _images(self, samples: Floats) -> Tensor:
        if samples.ndim != 2 or samples.shape[1] != self.n_inputs:
            raise DomainError(f"samples must have shape (n, {self.n_inputs}), got {samples.shape}")
        return _channels_last(torch.from_numpy(samples).view(-1, 1, SIDE, SIDE))


def _channels_last(array: Tensor) -> Tensor:
    return array.contiguous(memory_format=torch.channels_last) if array.ndim == 4 else array


def _forward(layers: Sequence[tuple[Tensor, Tensor]], images: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and outputs of the four layers; derivatives can be taken by the outputs."""
    inputs, outputs = [images], []
    for count, (weight, bias) in enumerate(layers):
        layer = functional.conv2d if count < 2 else functional.linear
        output = _channels_last(layer(inputs[-1], weight, bias))
        outputs.append(output if output.requires_grad else output.requires_grad_(torch.is_grad_enabled()))
        passed = torch.relu(functional.max_pool2d(output, 2) if count < 2 else output)
        inputs.append(passed.flatten(1) if count == 1 else passed)
    return inputs[:4], outputs


def _clipped_sums(inputs: Sequence[Tensor], slopes: Sequence[Tensor], clip_norm: float) -> Floats:
    """From each layer's inputs and the derivatives by its outputs, one row a sample."""
    gradients, columns = [], []
    for a, g in zip(inputs[:2], slopes[:2], strict=True):
        rows = g.permute(0, 2, 3, 1).flatten(1, 2)
        gradients.append(torch.bmm(rows.transpose(1, 2), _windows(a)))
        columns.append(rows.sum(dim=1))
    squares = [_squares(part) for part in (*gradients, *columns)]
    squares += [_squares(g) * (_squares(a) + 1) for a, g in zip(inputs[2:], slopes[2:], strict=True)]
    factors = torch.from_numpy(clip_factors(torch.stack(squares).sum(dim=0).sqrt().numpy(), clip_norm))
    parts: list[Tensor] = []
    for whole, column in zip(gradients, columns, strict=True):
        kernel = (factors @ whole.flatten(1)).view(whole.shape[1], WINDOW, WINDOW, -1)
        parts += [kernel.permute(0, 3, 1, 2), factors @ column]
    for a, g in zip(inputs[2:], slopes[2:], strict=True):
        parts += [(g * factors[:, None]).T @ a, factors @ g]
    return np.concatenate([part.numpy().ravel() for part in parts])


def _squares(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows.flatten(1), dim=1)
    return norms**2


def _windows(images: Tensor) -> Tensor:
    """Windows of images with channels last: (n, c, h, w) to (n, positions, window * window * c)."""
    rows = images.permute(0, 2, 3, 1).contiguous()
    n, height, width, channels = rows.shape
    across, down = height - WINDOW + 1, width - WINDOW + 1
    one, line, pixel, _ = rows.stride()
    size, steps = (n, across, down, WINDOW, WINDOW * channels), (one, line, pixel, line, 1)
    return rows.as_strided(size, steps).reshape(n, across * down, -1)
