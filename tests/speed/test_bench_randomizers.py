"""How long a simulated round takes at the size of the largest real data set here: 700,000 users."""

import numpy as np
import pytest

from flamelib.mechanisms.randomizers import GaussianNoise, KaryResponse, LaplaceNoise
from flamelib.protocols import blanket

USERS = 700_000
WHOLE = np.arange(USERS) % 62
UNIT = np.linspace(0, 1, USERS)


@pytest.mark.parametrize(
    ("randomizer", "values"),
    [
        (KaryResponse(4.0, 62), WHOLE),
        (LaplaceNoise(1.0), UNIT),
        (GaussianNoise(1.0), UNIT),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_sampling(benchmark, randomizer, values):
    assert benchmark(randomizer.sample, values, np.random.default_rng(0)).shape == (USERS,)


@pytest.mark.parametrize(
    ("protocol", "values"),
    [(blanket.HistogramProtocol(USERS, 62, 0.02), WHOLE), (blanket.SummationProtocol(USERS, 20, 0.02), UNIT)],
    ids=["histogram", "sum"],
)
def test_a_run_of_the_protocol(benchmark, protocol, values):
    benchmark(blanket.run, protocol, values, np.random.default_rng(0))
