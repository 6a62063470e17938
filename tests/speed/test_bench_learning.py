"""Training at the size of the experiments: 6000 users with seven images each, 1000 a round, 7850 parameters.

The images are random, of the same shape; nothing is read, so that the clock sees training alone.
"""

from functools import partial

import numpy as np
import pytest

from flamelib.learning.federated import Users, train
from flamelib.learning.models import SoftmaxRegression, gram_matrices
from flamelib.learning.records import Samples
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame
from flamelib.protocols.averages import PlainAverage

MODEL = SoftmaxRegression(784, 10)
TOPK = flame.FlameTopk(1000, MODEL.dimension, 0.01, LaplaceNoise(0.5), 157, 333)


@pytest.fixture(scope="module")
def users():
    rng = np.random.default_rng(0)
    images = rng.standard_normal((6000, 7, 784), dtype=np.float32)
    held, official = (
        Samples(images[:n].reshape(-1, 784)[:m], np.zeros(m, int)) for n, m in ((2600, 18_000), (1500, 10_000))
    )
    none = np.zeros(10_000, dtype=bool)
    return Users(images, rng.integers(10, size=(6000, 7)), gram_matrices(images), held, official, none, none, 10, "")


@pytest.mark.parametrize(("name", "method"), [("topk", partial(flame.run, TOPK)), ("plain", PlainAverage().run)])
def test_two_passes_over_the_users(benchmark, users, name, method):
    """Twelve rounds with evaluation after each."""
    history = benchmark.pedantic(
        lambda: train(method, users, 12, np.random.default_rng(1)), rounds=3, iterations=1, warmup_rounds=1
    )
    assert len(history.held_back) == 13


def test_local_training_of_a_thousand_users(benchmark, users):
    start = MODEL.initial(np.random.default_rng(1)).astype(np.float32)
    images, labels, gram = users.images[:1000], users.labels[:1000], users.gram[:1000]
    benchmark(MODEL.local_updates, start, images, labels, learning_rate=0.1, epochs=10, gram=gram)
