"""Speed of rounds with self check-in, beside another library on the same question."""

import pytest

from flamelib.accounting.checkin.distributed_noise import (
    distributed_cells,
    distributed_noise,
    distributed_rounds,
    distributed_rounds_lower,
)
from flamelib.accounting.checkin.renyi import distributed_renyi_epsilon, shuffled_renyi_epsilon
from flamelib.accounting.checkin.shuffled import checkin_shuffled, largest_epsilon0, shuffled_rounds
from flamelib.accounting.composition.dominating_pair import to_dp_accounting
from flamelib.accounting.shuffling.randomizers import round_curve
from flamelib.core.profiles import KaryProfile

SETTINGS = {
    "6e5 users": (600_000, 1e-3, 1.0),
    "1e7 users, many check in": (10**7, 0.1, 1.0),
    "1e7 users, little noise": (10**7, 1e-4, 0.06),
}
LONG, DELTA = {"rounds": 10**6, "delta": 1e-8}, 1 / 60_000
WIDE = {"epsilon0": 2.0, "n_users": 60_000, "checkin_rate": 0.1, "rounds": 5540, "delta": DELTA}
ONE = {
    "noise of distributed rounds": lambda: distributed_noise(600_000, 1e-3, 10**5, 0.1, 1e-8),
    "plain shuffling": lambda: shuffled_rounds(KaryProfile(1.0, 2), 10**5, 100, delta=1e-6),
    "local budget": lambda: largest_epsilon0(60_000, 0.1, 5540, 1.5, DELTA),
    "renyi of messages": lambda: shuffled_renyi_epsilon(1.0, 10**7, 1e-3, 10**5, 1e-7, "thm-2"),
    "renyi of sums": lambda: distributed_renyi_epsilon(600_000, 1e-3, 1.0, 1000, 1e-8, "rdp-exact"),
}


def afresh(benchmark, function, **asked):
    """Each time without the curves of the last one."""
    return benchmark.pedantic(function, setup=lambda: (round_curve.cache_clear(), ((), asked))[1], rounds=3)


@pytest.mark.parametrize("name", SETTINGS)
def test_distributed_rounds(benchmark, name):
    assert benchmark.pedantic(distributed_rounds, SETTINGS[name], LONG, rounds=3) > 0


@pytest.mark.parametrize("name", SETTINGS)
def test_distributed_rounds_from_below(benchmark, name):
    found = benchmark.pedantic(distributed_rounds_lower, SETTINGS[name], LONG, rounds=3)
    assert 0 < found <= distributed_rounds(*SETTINGS[name], **LONG)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_pair_composed_by_dp_accounting(benchmark, name):
    """In steps as fine as our answer's error; records that do not turn, which is the easier question."""
    cells, ours = distributed_cells(*SETTINGS[name]), distributed_rounds(*SETTINGS[name], 1000, delta=1e-8)

    def theirs():
        return to_dp_accounting(cells, ours / 2e4, 1e-12).self_compose(1000).get_epsilon_for_delta(1e-8)

    assert benchmark.pedantic(theirs, rounds=3) <= 1.01 * ours


@pytest.mark.parametrize(("route", "n_buckets"), [("clones", None), ("kary", 4), ("laplace", None)])
def test_many_rounds_of_messages(benchmark, route, n_buckets):
    assert afresh(benchmark, checkin_shuffled, **WIDE, route=route, n_buckets=n_buckets) > 0.7


@pytest.mark.parametrize("name", ONE)
def test_one_answer(benchmark, name):
    assert afresh(benchmark, ONE[name]) > 0
