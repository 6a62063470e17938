"""Per-sample clipping: closed forms and the fast way against a loop over samples through automatic differentiation."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from flamelib.core.vocabulary import DomainError
from flamelib.learning.models import SoftmaxRegression
from flamelib.learning.networks import STRIDED, ConvolutionalNetwork
from flamelib.mechanisms.vectors import clipped_sum

CNN, LINEAR = ConvolutionalNetwork(26), SoftmaxRegression(12, 4)
SMALL = ConvolutionalNetwork(10, STRIDED, 32)
MODELS = pytest.mark.parametrize("model", [CNN, SMALL, LINEAR], ids=["convolutional", "strided", "softmax"])


def written_out(model):
    """The same model as layers of torch, in the order a reader writes them."""
    if isinstance(model, SoftmaxRegression):
        return nn.Sequential(nn.Linear(model.n_inputs, model.n_classes))
    if model is SMALL:
        return nn.Sequential(
            nn.Unflatten(1, (1, 28, 28)), nn.ZeroPad2d(3), nn.Conv2d(1, 16, 8, stride=2), nn.ReLU(),
            nn.MaxPool2d(2, stride=1), nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.MaxPool2d(2, stride=1),
            nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10),
        )  # fmt: skip
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, model.n_classes),
    )  # fmt: skip


def with_parameters(model, parameters):
    """The layers, holding this parameter vector."""
    net = written_out(model).double()
    vector = torch.from_numpy(np.asarray(parameters, dtype=np.float64))
    if isinstance(model, SoftmaxRegression):
        weights = vector[: -model.n_classes].view(model.n_inputs, model.n_classes).T
        vector = torch.cat([weights.reshape(-1), vector[-model.n_classes :]])
    nn.utils.vector_to_parameters(vector, net.parameters())
    return net


def gradients_one_by_one(model, parameters, samples, labels):
    """One row a sample, by automatic differentiation in double precision."""
    net = with_parameters(model, parameters)
    rows = []
    for sample, label in zip(samples, labels, strict=True):
        loss = nn.functional.cross_entropy(net(torch.from_numpy(sample[None]).double()), torch.tensor([label]))
        parts = [part.numpy() for part in torch.autograd.grad(loss, list(net.parameters()))]
        if isinstance(model, SoftmaxRegression):
            parts[0] = parts[0].T
        rows.append(np.concatenate([part.ravel() for part in parts]))
    return np.array(rows)


def example(model, n, seed=0, ink=1.0):
    rng = np.random.default_rng(seed)
    samples = (ink * rng.normal(size=(n, model.n_inputs))).astype(np.float32)
    samples[:, : model.n_inputs // 3] = -0.4  # background: windows with ties
    return model.initial(rng), samples, rng.integers(model.n_classes, size=n)


@MODELS
@pytest.mark.parametrize("n", [1, 9])
def test_the_clipped_sum_is_that_of_the_loop(model, n):
    given = example(model, n)
    rows = gradients_one_by_one(model, *given)
    norms = np.linalg.norm(rows, axis=1)
    for clip_norm in (norms.min() / 3, float(np.median(norms)), 2 * norms.max(), math.inf):
        expected = sum(row * min(1, clip_norm / norm) for row, norm in zip(rows, norms, strict=True))
        found = model.clipped_sum(*given, clip_norm)
        assert np.abs(found - expected).max() <= 1e-5 * max(1, np.abs(expected).max())


@MODELS
def test_no_sample_counts_for_more_than_the_clip(model):
    parameters, samples, labels = example(model, 8, seed=1, ink=20)
    rows = gradients_one_by_one(model, parameters, samples, labels)
    for count in range(8):
        alone = model.clipped_sum(parameters, samples[count : count + 1], labels[count : count + 1], 0.3)
        expected = min(0.3, np.linalg.norm(rows[count]))
        assert np.linalg.norm(alone) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@MODELS
def test_weights_may_be_any_function_of_the_norms(model):
    given = example(model, 5)
    rows = gradients_one_by_one(model, *given)
    seen = []

    def weights(norms):
        seen.append(norms)
        return np.array([1.5, -2.0, 0.0, 30.0, -0.25]) * norms

    expected = np.array([1.5, -2.0, 0.0, 30.0, -0.25]) * np.linalg.norm(rows, axis=1) @ rows
    assert np.abs(model.weighted_sum(*given, weights) - expected).max() <= 1e-5 * np.abs(expected).max()
    assert seen[0] == pytest.approx(np.linalg.norm(rows, axis=1), rel=1e-4)


def test_scores_are_those_of_the_layers():
    parameters, samples, labels = example(CNN, 501)
    found = CNN.scores(parameters, samples)
    with torch.no_grad():
        expected = with_parameters(CNN, parameters)(torch.from_numpy(samples).double()).numpy()
    assert found == pytest.approx(expected, abs=1e-5)
    assert CNN.accuracy(parameters, samples, labels) == (expected.argmax(axis=1) == labels).mean()
    assert CNN.accuracy(parameters, samples, found.argmax(axis=1)) == 1


def test_the_strided_network_is_the_one_of_the_published_experiments():
    assert SMALL.dimension == 1040 + 8224 + 16_416 + 330 == 26_010
    parameters, samples, _ = example(SMALL, 7)
    with torch.no_grad():
        expected = with_parameters(SMALL, parameters)(torch.from_numpy(samples).double()).numpy()
    assert SMALL.scores(parameters, samples) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: clipped_sum(np.ones(3), 1.0), "gradients"),
        (lambda: clipped_sum([[float("nan")]], 1.0), "gradients"),
        (lambda: clipped_sum([[1.0]], 0), "clip_norm"),
        (lambda: clipped_sum([[1.0]], float("nan")), "clip_norm"),
        (lambda: CNN.clipped_sum(*example(CNN, 1), -1.0), "clip_norm"),
        (lambda: CNN.clipped_sum(np.ones(3), *example(CNN, 1)[1:]), "parameters"),
        (lambda: CNN.scores(CNN.initial(np.random.default_rng(0)), np.zeros((2, 64), np.float32)), "samples"),
        (lambda: ConvolutionalNetwork(1), "n_classes"),
    ],
)
def test_bad_input_is_refused_by_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()
