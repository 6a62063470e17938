"""Local training by Gram matrices against automatic differentiation."""

import numpy as np
import pytest
import torch

from flamelib.core.vocabulary import DomainError
from flamelib.learning.models import SoftmaxRegression

MODEL = SoftmaxRegression(20, 4)


@pytest.fixture
def crowd():
    rng = np.random.default_rng(3)
    samples = rng.normal(scale=2, size=(6, 5, 20)).astype(np.float32)
    return MODEL.initial(rng), samples, rng.integers(4, size=(6, 5))


def by_torch(parameters, samples, labels, learning_rate, epochs):
    """One user at a time, in double precision, the gradient by automatic differentiation."""
    updates = []
    for one, truth in zip(samples, labels, strict=True):
        start = torch.tensor(parameters, dtype=torch.float64)
        now = start.clone().requires_grad_()
        optimizer = torch.optim.SGD([now], lr=learning_rate)
        for _ in range(epochs):
            optimizer.zero_grad()
            scores = torch.tensor(one, dtype=torch.float64) @ now[:-4].reshape(20, 4) + now[-4:]
            torch.nn.functional.cross_entropy(scores, torch.tensor(truth)).backward()
            optimizer.step()
        updates.append((now.detach() - start).numpy())
    return np.array(updates)


@pytest.mark.parametrize("epochs", [1, 10])
def test_updates_are_those_of_plain_gradient_descent(crowd, epochs):
    found = MODEL.local_updates(*crowd, learning_rate=0.1, epochs=epochs)
    expected = by_torch(*crowd, 0.1, epochs)
    assert np.abs(found - expected).max() < 3e-6 * np.abs(expected).max()
    assert np.abs(MODEL.local_updates(*crowd, learning_rate=0.11, epochs=epochs) - expected).max() > 1e-3


def test_the_initial_model_is_glorots():
    model = SoftmaxRegression(784, 10)
    start = model.initial(np.random.default_rng(0))
    limit = (6 / 794) ** 0.5
    assert model.dimension == len(start) == 7850
    assert not start[-10:].any()
    assert 0.999 * limit < np.abs(start).max() < limit
    assert start[:-10].std() == pytest.approx(limit / 3**0.5, rel=0.02)


def test_accuracy_counts_the_largest_score():
    model = SoftmaxRegression(2, 2)
    parameters = np.array([1.0, 0, 0, 1, 0, 0.5])
    samples = np.array([[1, 0], [1, 0.4], [0, 0], [1, 0.6]], dtype=np.float32)
    assert model.accuracy(parameters, samples, np.array([0, 0, 1, 0])) == 0.75


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda p, s, y: SoftmaxRegression(0, 10), "n_inputs"),
        (lambda p, s, y: SoftmaxRegression(3, 1), "n_classes"),
        (lambda p, s, y: MODEL.local_updates(p[1:], s, y, learning_rate=0.1, epochs=1), "parameters"),
        (lambda p, s, y: MODEL.local_updates(p * np.nan, s, y, learning_rate=0.1, epochs=1), "parameters"),
        (lambda p, s, y: MODEL.local_updates(p, s[..., 1:], y, learning_rate=0.1, epochs=1), "samples"),
        (lambda p, s, y: MODEL.local_updates(p, s, y[:, 1:], learning_rate=0.1, epochs=1), "labels"),
        (lambda p, s, y: MODEL.local_updates(p, s, y, learning_rate=0, epochs=1), "learning_rate"),
        (lambda p, s, y: MODEL.local_updates(p, s, y, learning_rate=0.1, epochs=0.5), "epochs"),
    ],
)
def test_bad_input_is_refused_by_name(crowd, call, name):
    with pytest.raises(DomainError, match=name):
        call(*crowd)
