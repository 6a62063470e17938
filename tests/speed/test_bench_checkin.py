"""Speed of self check-in after many rounds, beside another library on the same question."""

import pytest

from flamelib.accounting.checkin.distributed_noise import (
    distributed_cells,
    distributed_noise,
    distributed_rounds,
    distributed_rounds_lower,
)
from flamelib.accounting.composition.dominating_pair import to_dp_accounting

SETTINGS = {
    "6e5 users": (600_000, 1e-3, 1.0),
    "1e7 users": (10**7, 1e-4, 1.0),
    "1e7 users, many check in": (10**7, 0.1, 1.0),
    "1e7 users, little noise": (10**7, 1e-4, 0.06),
}
ROUNDS = {"1 round": 1, "1000 rounds": 1000, "1e6 rounds": 10**6}


def limit(benchmark, seconds):
    assert benchmark.stats is None or benchmark.stats.stats.min < seconds


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("name", SETTINGS)
def test_epsilon_of_distributed_rounds(benchmark, name, rounds):
    """Due within 3 s."""
    asked = {"rounds": ROUNDS[rounds], "delta": 1e-8}
    found = benchmark.pedantic(distributed_rounds, SETTINGS[name], asked, rounds=3)
    assert 0 < found < 30
    limit(benchmark, 3)


@pytest.mark.parametrize("name", SETTINGS)
def test_delta_of_distributed_rounds(benchmark, name):
    """Due within 3 s."""
    found = benchmark.pedantic(distributed_rounds, SETTINGS[name], {"rounds": 10**6, "epsilon": 0.5}, rounds=3)
    assert 0 < found < 1
    limit(benchmark, 3)


@pytest.mark.parametrize("name", SETTINGS)
def test_distributed_rounds_from_below(benchmark, name):
    """Due within 3 s."""
    asked = {"rounds": 10**6, "delta": 1e-8}
    found = benchmark.pedantic(distributed_rounds_lower, SETTINGS[name], asked, rounds=3)
    assert 0 < found <= distributed_rounds(*SETTINGS[name], **asked)
    limit(benchmark, 3)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_pair_composed_by_dp_accounting(benchmark, name):
    """In steps as fine as our answer's error; records that do not turn, which is the easier question."""
    n_users, rate, noise = SETTINGS[name]
    cells = distributed_cells(n_users, rate, noise)
    ours = distributed_rounds(n_users, rate, noise, 1000, delta=1e-8)

    def theirs():
        return to_dp_accounting(cells, ours / 2e4, 1e-12).self_compose(1000).get_epsilon_for_delta(1e-8)

    assert benchmark.pedantic(theirs, rounds=3) <= 1.01 * ours


def test_noise(benchmark):
    """A handful of answers: due within 6 s."""
    found = benchmark.pedantic(distributed_noise, (600_000, 1e-3, 10**5, 0.1, 1e-8), rounds=2)
    assert 1 < found < 1.5
    limit(benchmark, 6)
