r"""Small convolutional networks whose per-sample gradients are clipped at about the cost of one backward pass.

Layers: a convolution, maximum over 2 by 2, ReLU, the same again, fully connected, ReLU, fully connected to the
classes.  The maximum comes before the ReLU, which changes nothing but the cost.

Backward runs to the pre-activations only.  A fully connected layer's gradient of one sample is an outer product of
its input a and the derivative g by its output, so its squared norm is :math:`|g|^2(|a|^2 + 1)`; a convolution's is the
product of g and the input's windows.  Scaled by the clipping factors, each layer's sum is one product of matrices.
Images are kept with their channels last, where the maximum and the windows are fastest.  All this runs on a CUDA
device where PyTorch finds one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Floats, Reals, Wholes
from flamelib.core.extras import extra
from flamelib.core.vocabulary import DomainError, check, keep
from flamelib.learning.models import Model, Weights

with extra("learning"):
    import torch
    from torch import Tensor
    from torch.nn import functional

_SIDE = 28  # pixels along the edge of an image
_CHUNK = 500  # images that are scored at once
_DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Convolution(NamedTuple):
    """A convolution and the maximum over 2 by 2 that follows it.

    ``window`` is the side of the kernel, ``step`` the distance of two windows, ``margin`` the rows and columns of
    zeros around the image, ``pool_step`` the distance of two maxima.
    """

    channels: int
    window: int
    step: int = 1
    margin: int = 0
    pool_step: int = 2

    def side(self, before: int) -> int:
        """Side of the image after convolution and maximum."""
        return ((before + 2 * self.margin - self.window) // self.step - 1) // self.pool_step + 1


PLAIN = (Convolution(16, 5), Convolution(32, 5))
STRIDED = (Convolution(16, 8, step=2, margin=3, pool_step=1), Convolution(32, 4, step=2, pool_step=1))


@dataclass(frozen=True, slots=True)
class ConvolutionalNetwork(Model):
    """A network for 28 by 28 images; parameters are a vector: weights then biases, layer by layer.

    ``convolutions`` are ``PLAIN``, or ``STRIDED`` with 32 for ``hidden``, the width of the fully connected layer before
    the last: the small network of many studies of private training.
    """

    n_classes: int
    convolutions: tuple[Convolution, Convolution] = PLAIN
    hidden: int = 128

    def __post_init__(self) -> None:
        keep(self, **check(n_classes=self.n_classes), hidden=check(dimension=self.hidden)["dimension"])

    @property
    def n_inputs(self) -> int:
        """Pixels of an image."""
        return _SIDE**2

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of weights and biases, in the order of the parameter vector."""
        first, second = self.convolutions
        flat = second.channels * second.side(first.side(_SIDE)) ** 2
        weights = (
            (first.channels, 1, first.window, first.window),
            (second.channels, first.channels, second.window, second.window),
            (self.hidden, flat),
            (self.n_classes, self.hidden),
        )
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
            starts = range(0, len(samples), _CHUNK)
            chunks = [self._forward(layers, self._images(samples[i : i + _CHUNK])) for i in starts]
        return np.concatenate([outputs[-1].cpu().numpy() for _, outputs in chunks])

    def weighted_sum(self, parameters: ArrayLike, samples: Floats, labels: Wholes, weights: Weights) -> Floats:
        """Sum of the samples' gradients, each times a weight that depends on its norm; samples have shape (n, 784)."""
        if not len(labels):
            return np.zeros(self.dimension, dtype=np.float32)
        inputs, outputs = self._forward(self._layers(parameters), self._images(samples))
        with torch.no_grad():
            last = torch.softmax(outputs[-1], dim=1)
            last[torch.arange(len(labels)), torch.from_numpy(labels).to(_DEVICE)] -= 1
        slopes = [*torch.autograd.grad(outputs[-1], outputs[:-1], last), last]
        with torch.no_grad():
            return _weighted_sums(self.convolutions, inputs, slopes, weights)

    def _layers(self, parameters: ArrayLike) -> list[tuple[Tensor, Tensor]]:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        parts = torch.from_numpy(self._single(parameters)).to(_DEVICE).tensor_split(ends.tolist())
        shaped = [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        return [(_channels_last(weight), bias) for weight, bias in zip(shaped[::2], shaped[1::2], strict=True)]

    def _images(self, samples: Floats) -> Tensor:
        if samples.ndim != 2 or samples.shape[1] != self.n_inputs:
            raise DomainError(f"samples must have shape (n, {self.n_inputs}), got {samples.shape}")
        return _channels_last(torch.from_numpy(samples).to(_DEVICE).view(-1, 1, _SIDE, _SIDE))

    def _forward(self, layers: Sequence[tuple[Tensor, Tensor]], images: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Inputs and outputs of the four layers, of the first one windows; derivatives can be taken by the outputs."""
        (first, second), outputs = self.convolutions, list[Tensor]()

        def kept(output: Tensor) -> Tensor:
            outputs.append(output if output.requires_grad else output.requires_grad_(torch.is_grad_enabled()))
            return output

        # An image has one channel: windows, which the gradient needs anyway, times the kernel are the convolution.
        windows = _windows(images, first)
        (kernel, bias), *further = layers
        maps = functional.linear(windows, kernel.flatten(1), bias)
        side = math.isqrt(maps.shape[1])
        maps = maps.view(len(maps), side, side, -1).permute(0, 3, 1, 2)
        pooled = torch.relu(functional.max_pool2d(kept(maps), 2, first.pool_step))
        maps = _channels_last(functional.conv2d(pooled, *further[0], second.step, second.margin))
        flat = torch.relu(functional.max_pool2d(kept(maps), 2, second.pool_step)).flatten(1)
        hidden = torch.relu(kept(functional.linear(flat, *further[1])))
        kept(functional.linear(hidden, *further[2]))
        return [windows, pooled, flat, hidden], outputs


def _channels_last(array: Tensor) -> Tensor:
    return array.contiguous(memory_format=torch.channels_last) if array.ndim == 4 else array


def _weighted_sums(
    convolutions: Sequence[Convolution], inputs: Sequence[Tensor], slopes: Sequence[Tensor], weights: Weights
) -> Floats:
    """From each layer's inputs and the derivatives by its outputs, one row a sample."""
    gradients, columns = [], []
    for shape, a, g in zip(convolutions, inputs[:2], slopes[:2], strict=True):
        rows = g.permute(0, 2, 3, 1).flatten(1, 2)
        gradients.append(torch.bmm(rows.transpose(1, 2), a if a.ndim == 3 else _windows(a, shape)))
        columns.append(rows.sum(dim=1))
    squares = [_squares(part) for part in (*gradients, *columns)]
    squares += [_squares(g) * (_squares(a) + 1) for a, g in zip(inputs[2:], slopes[2:], strict=True)]
    norms = torch.stack(squares).sum(dim=0).sqrt().cpu().numpy()
    factors = torch.from_numpy(weights(norms).astype(np.float32)).to(_DEVICE)
    parts: list[Tensor] = []
    for shape, whole, column in zip(convolutions, gradients, columns, strict=True):
        kernel = (factors @ whole.flatten(1)).view(whole.shape[1], shape.window, shape.window, -1)
        parts += [kernel.permute(0, 3, 1, 2), factors @ column]
    for a, g in zip(inputs[2:], slopes[2:], strict=True):
        parts += [(g * factors[:, None]).T @ a, factors @ g]
    return np.concatenate([part.cpu().numpy().ravel() for part in parts])


def _squares(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows.flatten(1), dim=1)
    return norms**2


def _windows(images: Tensor, shape: Convolution) -> Tensor:
    """Windows of images with channels last: (n, c, h, w) to (n, positions, window * window * c)."""
    rows = functional.pad(images, [shape.margin] * 4).permute(0, 2, 3, 1).contiguous()
    n, height, width, channels = rows.shape
    down, across = ((side - shape.window) // shape.step + 1 for side in (height, width))
    one, line, pixel, _ = rows.stride()
    size = (n, down, across, shape.window, shape.window * channels)
    steps = (one, line * shape.step, pixel * shape.step, line, 1)
    return rows.as_strided(size, steps).reshape(n, down * across, -1)
