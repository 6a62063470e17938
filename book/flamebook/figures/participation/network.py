"""The network of the recorded runs, layer by layer: what stands in for the document's Figure 8.

The document's drawing of its network is lost; its text names two convolutional and two fully connected layers.
Windows, channels and widths are ours, those of the model that was trained.
"""

import math
from dataclasses import dataclass

from matplotlib.axes import Axes

from flamebook.figures.style import Pen, draw_arrow, draw_box
from flamebook.records import Parameters, to_csv
from flamelib.learning.networks import ConvolutionalNetwork

PAPER_CLASSES = 62  # of the document's images, EMNIST ByClass


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: what it does, the shape of what leaves it, and how many weights and biases are trained."""

    kind: str
    words: str
    shape: tuple[int, ...]
    weights: int


@dataclass(frozen=True, slots=True)
class Network:
    """The layers of a network for square images of ``side`` pixels."""

    side: int
    layers: tuple[Layer, ...]
    parameters: Parameters

    @property
    def weights(self) -> int:
        """All that is trained."""
        return sum(layer.weights for layer in self.layers)

    def to_csv(self) -> str:
        """One row a layer."""
        rows = [(layer.kind, layer.words, _size(layer.shape), layer.weights) for layer in self.layers]
        return to_csv(["layer", "what it does", "output", "weights"], rows)


def compute_network(n_classes: int) -> Network:
    """The convolutional network of the recorded runs for this many classes, from the shapes of its weights.

    Source: after Hasircioglu, Gunduz 2022, Figure 8, with sizes of our own.

    Examples
    --------
    >>> [layer.shape for layer in compute_network(26).layers]
    [(16, 12, 12), (32, 4, 4), (128,), (26,)]
    """
    model = ConvolutionalNetwork(n_classes)
    side = edge = math.isqrt(model.n_inputs)
    counts = [math.prod(weight) + math.prod(bias) for weight, bias in zip(*[iter(model.shapes)] * 2, strict=True)]
    layers = list[Layer]()
    for shape, count in zip(model.convolutions, counts, strict=False):
        edge = shape.side(edge)
        words = f"windows of {_size((shape.window,) * 2)}, maximum over {_size((2, 2))}, ReLU"
        layers.append(Layer("convolution", words, (shape.channels, edge, edge), count))
    layers.append(Layer("fully connected", "ReLU", (model.hidden,), counts[2]))
    layers.append(Layer("fully connected", "a score for each class", (n_classes,), counts[3]))
    return Network(side, tuple(layers), {"n_classes": n_classes})


def draw_network(ax: Axes, record: Network, pen: Pen) -> None:
    """What passes through the network from top to bottom, and beside each arrow the layer with its weights."""
    sizes = [(record.side, record.side), *(layer.shape for layer in record.layers)]
    for row, size in enumerate(sizes):
        draw_box(ax, pen, (0.0, -row), _size(size), "blue" if row else "grey")
    for row, layer in enumerate(record.layers):
        draw_arrow(ax, pen, (0.0, -row - 0.24), (0.0, -row - 0.76))
        ax.text(0.35, -row - 0.5, f"{layer.kind}: {layer.words}\n{layer.weights:,} weights", va="center", fontsize=10.5)
    ax.set(xlim=(-0.6, 3.4), ylim=(-len(record.layers) - 0.4, 0.4))
    ax.axis("off")


def network_words(record: Network) -> dict[str, str]:
    """How many weights there are, and how many for the document's classes."""
    return {
        "network_layers": "; ".join(f"{layer.kind}, {layer.weights:,} weights" for layer in record.layers),
        "network_weights": f"{record.weights:,}",
        "network_classes": f"{record.layers[-1].shape[0]}",
        "network_paper_weights": f"{compute_network(PAPER_CLASSES).weights:,}",
    }


def _size(shape: tuple[int, ...]) -> str:
    return " \N{MULTIPLICATION SIGN} ".join(map(str, shape))
