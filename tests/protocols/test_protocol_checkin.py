"""Self check-in: how many take part, who, in which order, and that no coin looks at a value."""

from math import comb

import numpy as np
import pytest

from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.randomizers import KaryResponse, LaplaceNoise
from flamelib.mechanisms.vectors import CapMessages, GaussianMessages
from flamelib.protocols.checkin import CheckinProtocol, aggregate, client, draw_clients, run, shuffler

HONEST = KaryResponse(700.0, 4)
RATE, DROPOUT = 0.4, 0.25


class Watched:
    """A randomizer that sends values as they are and remembers them."""

    def __init__(self):
        self.seen = []

    def sample(self, values, rng):
        self.seen.extend(np.asarray(values).tolist())
        return np.asarray(values)


def fits(counts, law, repeats):
    """Whether frequencies lie within five standard errors of a law."""
    shares = np.bincount(counts, minlength=len(law)) / repeats
    return np.all(np.abs(shares - law) <= 5 * np.sqrt(law * (1 - law) / repeats) + 1e-12)


def binomial(n, rate):
    return np.array([comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)])


def test_the_number_of_messages_is_binomial_with_the_effective_rate():
    rng, repeats = np.random.default_rng(0), 4000
    protocol = CheckinProtocol(HONEST, RATE, DROPOUT)
    assert protocol.effective_rate == pytest.approx(0.3)
    counts = [len(run(protocol, [0] * 5, rng)) for _ in range(repeats)]
    assert fits(counts, binomial(5, 0.3), repeats)
    assert not fits(counts, binomial(5, RATE), repeats)


def test_the_fast_draw_has_the_law_of_the_clients_coins():
    """All 2^4 sets of clients, and a large crowd of which few come."""
    rng, repeats = np.random.default_rng(1), 20_000
    sets = [int(sum(2**who for who in draw_clients(0.3, 4, rng))) for _ in range(repeats)]
    law = np.array([0.3 ** bin(i).count("1") * 0.7 ** (4 - bin(i).count("1")) for i in range(16)])
    assert fits(sets, law, repeats)
    sizes = [len(draw_clients(1e-4, 10_000_000, rng)) for _ in range(200)]
    assert np.mean(sizes) == pytest.approx(1000, abs=5 * (1000 / 200) ** 0.5)
    assert len(draw_clients(0.0, 10, rng)) == 0


def test_a_coin_never_depends_on_the_value():
    """The same randomness with other values brings the same clients, for scalars and vectors."""
    for randomizer, values in (
        (HONEST, [0, 3]),
        (LaplaceNoise(1.0), [0.0, 1.0]),
        (CapMessages.privunit2(3, 2.0, 1.0), [np.zeros(3), np.array([0.0, 0.6, 0.8])]),
    ):
        protocol = CheckinProtocol(randomizer, RATE, DROPOUT)
        came = [[client(protocol, v, np.random.default_rng(i)) is not None for i in range(200)] for v in values]
        assert came[0] == came[1]
        assert 0 < sum(came[0]) < 200


def test_the_value_of_a_client_that_stays_away_is_never_looked_at():
    randomizer = Watched()
    sent = run(CheckinProtocol(randomizer, RATE, DROPOUT), list(range(100)), np.random.default_rng(2))
    assert sorted(randomizer.seen) == sorted(map(int, sent))
    assert 0 < len(sent) < 100


def test_shuffling_keeps_the_messages_and_loses_their_order():
    rng, repeats = np.random.default_rng(3), 6000
    messages = [np.array(i) for i in range(3)]
    orders = [tuple(map(int, shuffler(messages, rng))) for _ in range(repeats)]
    seen = {order: orders.count(order) for order in set(orders)}
    assert len(seen) == 6
    assert all(abs(n - repeats / 6) < 5 * (repeats * 5 / 36) ** 0.5 for n in seen.values())
    positions = [list(map(int, run(CheckinProtocol(Watched(), 1.0), [7, 8], rng))).index(7) for _ in range(2000)]
    assert np.mean(positions) == pytest.approx(0.5, abs=5 * 0.5 / 2000**0.5)


def test_the_sum_carries_the_noise_of_those_who_came():
    """Mean and spread of the sum given the count: clipped values, and a standard deviation of root k."""
    rng, values = np.random.default_rng(5), [np.array([3.0, 4.0])] * 6
    protocol = CheckinProtocol(GaussianMessages(2, 1.0, 0.7), 0.5, 0.2)
    found = [aggregate(run(protocol, values, rng), 2) for _ in range(4000)]
    for count in (1, 2, 4):
        sums = np.array([total for total, k in found if k == count])
        error = 5 * 0.7 * (count / len(sums)) ** 0.5
        assert sums.mean(axis=0) == pytest.approx(count * np.array([0.6, 0.8]), abs=error)
        assert sums.std(axis=0) == pytest.approx(np.full(2, 0.7 * count**0.5), rel=4 / len(sums) ** 0.5)
    empty = [total for total, k in found if k == 0]
    assert empty
    assert not np.any(empty)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: CheckinProtocol(HONEST, -0.1), "checkin_rate"),
        (lambda: CheckinProtocol(HONEST, 1.1), "checkin_rate"),
        (lambda: CheckinProtocol(HONEST, 0.5, 1.0), "dropout"),
        (lambda: CheckinProtocol(HONEST, 0.5, float("nan")), "dropout"),
        (lambda: run(CheckinProtocol(HONEST, 0.5), [], np.random.default_rng(0)), "n_users"),
        (lambda: aggregate([np.ones(3)], 2), "messages"),
        (lambda: aggregate([], 0), "dimension"),
    ],
)
def test_bad_input_is_refused_by_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()
