"""A round of random participation: exact laws by enumeration, moments, what the server may know, refusals."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from flamelib.core.vocabulary import DomainError
from flamelib.protocols.participation import (
    Participation,
    batch_size,
    client,
    draw_records,
    noisy_client,
    run,
    server,
)

PROTOCOL = Participation(0.4, 0.3, 3, clip_norm=1.0, noise_std=2.0)
SILENT = Participation(0.4, 0.3, 3, clip_norm=1.0, noise_std=1e-12)


def subset_law(p, q, n_clients, n_records):
    """Probability of every set of drawn records, by enumeration of all coins."""
    law = {}
    for coins in product((0, 1), repeat=n_clients * (1 + n_records)):
        joins, picks = coins[:n_clients], np.array(coins[n_clients:]).reshape(n_clients, n_records)
        weight = np.prod([p if one else 1 - p for one in joins])
        weight *= np.prod([q if one else 1 - q for one in picks.ravel()])
        drawn = picks * np.array(joins)[:, None]
        key = tuple(np.flatnonzero(drawn.ravel()))
        law[key] = law.get(key, 0) + weight
    return {key: weight for key, weight in law.items() if weight > 0}


def fits(counts, law, repeats):
    """Pearson's statistic below its 99.99 % quantile."""
    assert set(counts) <= set(law)
    statistic = sum((counts.get(key, 0) - repeats * p) ** 2 / (repeats * p) for key, p in law.items())
    return statistic < chi2.ppf(0.9999, len(law) - 1)


def tally(draws):
    counts = {}
    for draw in draws:
        counts[draw] = counts.get(draw, 0) + 1
    return counts


@pytest.mark.parametrize(("p", "q"), [(0.4, 0.3), (1.0, 0.5), (0.7, 1.0)])
def test_sets_of_drawn_records_have_the_law_of_two_coins(p, q):
    rng, repeats = np.random.default_rng(3), 10_000
    found = tally(tuple(map(int, draw_records(p, q, 2, 2, rng))) for _ in range(repeats))
    assert fits(found, subset_law(p, q, 2, 2), repeats)


def test_the_moments_of_a_batch_are_those_of_the_enumeration():
    law = subset_law(0.4, 0.3, 2, 3)
    sizes, weights = np.array([len(key) for key in law]), np.array(list(law.values()))
    mean = weights @ sizes
    assert batch_size(0.4, 0.3, 2, 3) == pytest.approx((mean, np.sqrt(weights @ (sizes - mean) ** 2)), rel=1e-12)


def test_without_a_trusted_server_everybody_sends_and_the_noise_of_all_adds_up():
    rng, repeats = np.random.default_rng(8), 3000
    gradients = [rng.normal(size=(3, 2)) / 9 for _ in range(4)]
    found = np.array([run(PROTOCOL, gradients, one, trusted=False) for one in rng.spawn(repeats)])
    mean = 0.12 * np.concatenate(gradients).sum(axis=0) / PROTOCOL.expected_records(4)
    std = 4**0.5 * PROTOCOL.noise_std / PROTOCOL.expected_records(4)
    assert np.abs(found.mean(axis=0) - mean).max() < 5 * std / repeats**0.5
    assert found.std(axis=0) == pytest.approx(std, rel=0.07)
    for seed in range(20):
        sent, quiet = (send(SILENT, gradients[0], np.random.default_rng(seed)) for send in (client, noisy_client))
        assert quiet == pytest.approx(np.zeros(2) if sent is None else sent, abs=1e-10)


def test_the_published_gradient_is_unbiased_with_the_noise_it_says():
    rng, repeats = np.random.default_rng(6), 3000
    gradients = [rng.normal(size=(3, 2)) for _ in range(4)]
    rows = np.concatenate(gradients)
    clipped = rows / np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    found = np.array([run(PROTOCOL, gradients, rng) for _ in range(repeats)])
    scale = 0.4 * 0.3 * 3 * 4
    assert found.mean(axis=0) == pytest.approx(clipped.sum(axis=0) * 0.12 / scale, abs=5 * found.std() / repeats**0.5)
    quiet = np.array([run(SILENT, gradients, rng) for _ in range(repeats)])
    assert found.var(axis=0) - quiet.var(axis=0) == pytest.approx(np.full(2, (2 / scale) ** 2), rel=0.15)


def test_the_scale_is_public_and_follows_availability_not_what_was_drawn():
    """One message or three, from clients with few records or many: the divisor does not move."""
    for sent in ([np.ones(2)], [np.ones(2), np.zeros(2), np.zeros(2)]):
        published = server(SILENT, sent, 2, 5, np.random.default_rng(0))
        assert published == pytest.approx(np.full(2, 1 / (0.4 * 0.3 * 3 * 5)))
    assert server(SILENT, [np.ones(2)], 2, 10, np.random.default_rng(0)) == pytest.approx(np.full(2, 1 / 3.6))
    assert SILENT.expected_records(7) == pytest.approx(7 * 0.36)


def test_one_record_moves_the_sum_by_at_most_the_clip():
    certain, rng = Participation(1.0, 1.0, 4, clip_norm=0.7, noise_std=1.0), np.random.default_rng(2)
    for _ in range(50):
        rows = rng.normal(size=(4, 3)) * 10 ** rng.uniform(-3, 3)
        with_it, without = client(certain, rows, rng), client(certain, rows[:-1], rng)
        assert np.linalg.norm(with_it - without) <= 0.7 * (1 + 1e-12)


def test_a_client_that_draws_nothing_sends_zeros_and_one_that_stays_away_nothing():
    rng, rows = np.random.default_rng(0), np.ones((3, 2))
    joining = Participation(1.0, 1e-12, 3, clip_norm=1.0, noise_std=1.0)
    away = Participation(1e-12, 1.0, 3, clip_norm=1.0, noise_std=1.0)
    assert client(joining, rows, rng).tolist() == [0, 0]
    assert client(away, rows, rng) is None
    assert client(joining, np.zeros((0, 2)), rng).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda rng: client(PROTOCOL, np.ones((4, 2)), rng), "n_records"),
        (lambda rng: client(PROTOCOL, np.ones(3), rng), "n_records"),
        (lambda rng: client(PROTOCOL, [[float("nan")]], rng), "gradients"),
        (lambda rng: run(PROTOCOL, [np.ones((2, 2)), np.ones((4, 2))], rng), "n_records"),
        (lambda rng: run(PROTOCOL, [], rng), "n_clients"),
        (lambda rng: server(PROTOCOL, [], 2, 0, rng), "n_clients"),
        (lambda rng: server(PROTOCOL, [], 0, 1, rng), "dimension"),
        (lambda rng: server(PROTOCOL, [np.ones(3)], 2, 1, rng), "messages"),
        (lambda rng: server(PROTOCOL, [np.ones(2)] * 3, 2, 2, rng), "messages"),
        (lambda rng: Participation(0, 0.1, 3, 1.0, 1.0), "participation_rate"),
        (lambda rng: Participation(0.1, 1.1, 3, 1.0, 1.0), "record_rate"),
        (lambda rng: Participation(0.1, 0.1, 0, 1.0, 1.0), "n_records"),
        (lambda rng: Participation(0.1, 0.1, 3, 0.0, 1.0), "clip_norm"),
        (lambda rng: Participation(0.1, 0.1, 3, 1.0, 0.0), "noise_std"),
        (lambda rng: batch_size(0.1, 0.1, 0, 3), "n_clients"),
    ],
)
def test_bad_input_is_refused_by_name(call, name):
    with pytest.raises(DomainError, match=name):
        call(np.random.default_rng(0))
