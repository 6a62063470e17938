"""Per-sample clipping on the convolutional network, beside an ordinary backward pass."""

import numpy as np
import pytest
import torch
from torch import nn

from flamelib.learning.networks import ConvolutionalNetwork

NETWORK, CLIP = ConvolutionalNetwork(62), 1.0
RNG = np.random.default_rng(0)
SAMPLES = RNG.normal(size=(70, 784)).astype(np.float32)
LABELS = RNG.integers(62, size=70)
PARAMETERS = NETWORK.initial(RNG)
LAYERS = nn.Sequential(
    nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 62),
)  # fmt: skip
nn.utils.vector_to_parameters(torch.from_numpy(PARAMETERS.astype(np.float32)), LAYERS.parameters())
IMAGES, TRUTH = torch.from_numpy(SAMPLES), torch.from_numpy(LABELS)


def ordinary():
    """Gradient of the batch, nothing clipped."""
    LAYERS.zero_grad()
    nn.functional.cross_entropy(LAYERS(IMAGES), TRUTH, reduction="sum").backward()
    return torch.cat([one.grad.flatten() for one in LAYERS.parameters()]).numpy()


def ours():
    return NETWORK.clipped_sum(PARAMETERS, SAMPLES, LABELS, CLIP)


WAYS = {"ordinary backward": ordinary, "clipped": ours}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", WAYS)
def test_a_batch_of_seventy(benchmark, name):
    total = benchmark.pedantic(WAYS[name], rounds=5, iterations=1, warmup_rounds=2)
    assert total.shape == (NETWORK.dimension,)
