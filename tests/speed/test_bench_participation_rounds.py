"""Speed of the guarantee after many rounds, beside another library on the same question."""

import pytest
from dp_accounting.pld import privacy_loss_distribution

from flamelib.accounting.sampling.rounds import aligned_rounds_lower, participation_rounds
from flamelib.uses.client_ledger import Announcement, ClientLedger

SETTINGS = {
    "30 records, noise 1.5": (0.01, 0.01, 30, 1.5, 1.0),
    "30 records, noise 3.4": (0.001, 0.1, 30, 3.44, 1.0),
    "1000 records, noise 1.7": (0.1, 0.001, 1000, 1.7, 1.0),
    "1000 records, noise 4": (0.1, 0.1, 1000, 4.0, 1.0),
}
ROUNDS = {"1 round": 1, "1000 rounds": 1000, "1e5 rounds": 10**5}


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("name", SETTINGS)
def test_epsilon_of_many_rounds(benchmark, name, rounds):
    asked = {"rounds": ROUNDS[rounds], "delta": 1e-6}
    found = benchmark.pedantic(participation_rounds, ("outer", *SETTINGS[name]), asked, rounds=3)
    assert 0 < found < 30


@pytest.mark.parametrize("name", SETTINGS)
def test_lower_bound_of_many_rounds(benchmark, name):
    asked = {"rounds": 10**5, "delta": 1e-6}
    found = benchmark.pedantic(aligned_rounds_lower, SETTINGS[name], asked, rounds=3)
    assert 0 < found < 30


def test_drawn_records(benchmark):
    found = benchmark.pedantic(
        participation_rounds, ("cs", 0.1, 0.1, 1, 1.0, 1.0), {"rounds": 1000, "epsilon": 1.0}, rounds=5
    )
    assert found == pytest.approx(2.61242e-3, rel=0.005)


def test_drawn_records_by_another_library(benchmark):
    """The same question; at this interval about as close."""

    def question():
        once = privacy_loss_distribution.from_gaussian_mechanism(
            1.0, sampling_prob=0.01, value_discretization_interval=5e-4
        )
        return once.self_compose(1000).get_delta_for_epsilon(1.0)

    assert benchmark.pedantic(question, rounds=5) == pytest.approx(2.61242e-3, rel=0.005)


def test_rounds_left_in_a_ledger(benchmark):
    ledger, announced = ClientLedger(30), Announcement(0.01, 0.01, 1.5, 1.0)
    ledger.charge(announced, 1000)
    assert benchmark.pedantic(ledger.remaining, (announced, 1.0, 1e-6), rounds=1) > 1000
