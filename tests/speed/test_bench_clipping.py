"""Per-sample clipping on the convolutional network, beside an ordinary backward pass and two usual ways, in one run."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

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


def clipped(rows):
    """Sum of the rows after clipping."""
    return (torch.clamp(CLIP / rows.norm(dim=1), max=1) @ rows).numpy()


def ordinary():
    """Gradient of the batch, nothing clipped."""
    LAYERS.zero_grad()
    nn.functional.cross_entropy(LAYERS(IMAGES), TRUTH, reduction="sum").backward()
    return torch.cat([one.grad.flatten() for one in LAYERS.parameters()]).numpy()


def ours():
    return NETWORK.clipped_sum(PARAMETERS, SAMPLES, LABELS, CLIP)


def loop():
    rows = []
    for sample, label in zip(IMAGES, TRUTH, strict=True):
        loss = nn.functional.cross_entropy(LAYERS(sample[None]), label[None])
        rows.append(torch.cat([part.flatten() for part in torch.autograd.grad(loss, list(LAYERS.parameters()))]))
    return clipped(torch.stack(rows))


def vectorised():
    named = {name: one.detach() for name, one in LAYERS.named_parameters()}

    def loss(parameters, sample, label):
        return nn.functional.cross_entropy(functional_call(LAYERS, parameters, (sample[None],)), label[None])

    found = vmap(grad(loss), in_dims=(None, 0, 0))(named, IMAGES, TRUTH)
    return clipped(torch.cat([part.flatten(1) for part in found.values()], dim=1))


WAYS = {"ordinary backward": ordinary, "clipped": ours, "loop over samples": loop, "vmap of grad": vectorised}


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
