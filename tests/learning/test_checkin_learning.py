"""Training with self check-in: one round by hand, common random numbers, aggregate against messages, refusals."""

import math

import numpy as np
import pytest

from flamelib.core.vocabulary import DomainError
from flamelib.learning.checkin import Scheme, _summed_messages, train
from flamelib.learning.records import load_records
from flamelib.mechanisms.vectors import CapMessages, GaussianMessages, clipped_sum
from flamelib.protocols.checkin import CheckinProtocol, aggregate, draw_clients, run

CLIP = 0.5
CROWD = {"n_users": 1500, "checkin_rate": 0.1}


@pytest.fixture(scope="module")
def records():
    return load_records("digits", pool=2)


@pytest.fixture(scope="module")
def schemes(records):
    d = records.softmax.dimension
    randomizers = {
        "plain": GaussianMessages(d, math.inf, 0.0),
        "clipped": GaussianMessages(d, CLIP, 0.0),
        "cap": CapMessages.privunit2(d, 6.0, CLIP),
        "sphere": CapMessages.duchi(d, 6.0, CLIP),
        "noisy": GaussianMessages(d, CLIP, 0.3),
        "loud": GaussianMessages(d, CLIP, 30.0),
    }
    return {name: Scheme(one, 0.1 if name == "plain" else 1.0) for name, one in randomizers.items()}


def trained(records, schemes, rounds=4, seed=1, **options):
    return train(records.softmax, records, schemes, rounds, np.random.default_rng(seed), **{**CROWD, **options})


def gradients(model, parameters, samples, labels):
    """One row a sample."""
    return np.array([model.clipped_sum(parameters, samples[[i]], labels[[i]]) for i in range(len(labels))], dtype=float)


@pytest.fixture(scope="module")
def example(records):
    model, rng = records.softmax, np.random.default_rng(0)
    batch = records.batch(np.arange(12))
    parameters = model.initial(rng)
    return model, parameters, batch.images, batch.labels


def test_rounds_are_those_of_the_algorithm(records, schemes):
    """Two rounds written out from the same children of the generator, for noise and for points of a sphere."""
    for name in ("noisy", "cap"):
        scheme, model = schemes[name], records.softmax
        history = trained(records, {name: scheme}, rounds=2, points=2, dropout=0.25)
        for_model, for_users, for_messages, for_noise = np.random.default_rng(1).spawn(4)
        parameters = model.initial(for_model)
        for count in range(2):
            users = draw_clients(0.075, 1500, for_users)
            batch, uniforms = records.batch(users), for_messages.random((3, len(users)))
            rows = gradients(model, parameters, batch.images, batch.labels)
            norms = np.linalg.norm(rows, axis=1)
            along = scheme.randomizer.along(norms, uniforms)
            total = (along / norms) @ rows + scheme.randomizer.rest_std(along) * for_noise.standard_normal(len(rows.T))
            parameters = parameters - 1.0 * total / len(users)
            assert history.batches[count] == len(users)
            expected = model.accuracy(parameters, records.tested.images, records.tested.labels)
            assert history.accuracy[name][count + 1] == pytest.approx(expected, abs=2.1 / len(records.tested))


def test_without_noise_the_sum_is_that_of_clipped_gradients(example, schemes):
    model, *given = example
    rows = gradients(model, *given)
    for name, clip_norm in (("clipped", CLIP), ("plain", math.inf)):
        expected = clipped_sum(rows, clip_norm)
        found = _summed_messages(model, *given, schemes[name].randomizer, np.zeros((3, 12)), np.ones(model.dimension))
        assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["cap", "sphere", "noisy"])
def test_a_sum_in_aggregate_is_like_one_of_messages_through_the_protocol(example, schemes, name):
    """Means agree with the clipped sum, mean squares with each other, for everybody in and everything sent."""
    (model, *given), repeats = example, 500
    rows, randomizer, rng = gradients(model, *given), schemes[name].randomizer, np.random.default_rng(2)
    protocol, d = CheckinProtocol(randomizer, 1.0), model.dimension
    sent = np.array([aggregate(run(protocol, list(rows), rng), d)[0] for _ in range(repeats)])
    drawn = np.array([
        _summed_messages(model, *given, randomizer, rng.random((3, 12)), rng.standard_normal(d)) for _ in range(repeats)
    ])  # fmt: skip
    truth = clipped_sum(rows, CLIP)
    for found in (sent, drawn):
        assert found.mean(axis=0) == pytest.approx(truth, abs=5.5 * found.std(axis=0).max() / repeats**0.5)
    squares = [np.square(found - truth).sum(axis=1) for found in (sent, drawn)]
    error = 5 * math.hypot(*(one.std() for one in squares)) / repeats**0.5
    assert abs(squares[1].mean() - squares[0].mean()) <= error + squares[0].mean() / (d - 1)


def test_schemes_share_users_model_and_random_numbers(records, schemes):
    together = trained(records, schemes)
    for name, scheme in schemes.items():
        alone = trained(records, {name: scheme})
        assert np.array_equal(alone.accuracy[name], together.accuracy[name])
        assert np.array_equal(alone.batches, together.batches)
    assert len({found[0] for found in together.accuracy.values()}) == 1


def test_lost_users_are_missing_from_the_mean_and_nobody_does_no_harm(records, schemes):
    full = trained(records, schemes, rounds=60)
    lossy = trained(records, schemes, rounds=60, dropout=0.5)
    assert full.batches.mean() == pytest.approx(150, abs=5 * (150 / 60) ** 0.5)
    assert lossy.batches.mean() == pytest.approx(75, abs=5 * (75 / 60) ** 0.5)
    empty = trained(records, schemes, checkin_rate=0.0)
    assert not empty.batches.any()
    assert all((found == found[0]).all() for found in empty.accuracy.values())


def test_a_gradient_of_zero_brings_only_noise(records, schemes):
    """Samples without a gradient: nothing is divided by zero."""
    model = records.softmax
    parameters = np.zeros(model.dimension)
    parameters[-model.n_classes] = 1e6
    batch = records.batch(np.arange(3))
    total = _summed_messages(
        model, parameters, batch.images, np.zeros(3, int), schemes["cap"].randomizer, np.full((3, 3), 0.5),
        np.zeros(model.dimension),
    )  # fmt: skip
    assert not total.any()


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"n_users": 1}, "n_users"),
        ({"checkin_rate": 1.5}, "checkin_rate"),
        ({"dropout": 1.0}, "dropout"),
        ({"rounds": 0}, "rounds"),
        ({"points": 1}, "points"),
    ],
)
def test_bad_input_is_refused_by_name(records, schemes, options, name):
    with pytest.raises(DomainError, match=name):
        trained(records, schemes, **options)
    with pytest.raises(DomainError, match="learning_rate"):
        Scheme(schemes["cap"].randomizer, 0.0)
