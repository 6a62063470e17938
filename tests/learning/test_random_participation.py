"""Training with random participation: what is dealt out, common random numbers, one round by hand, refusals."""

import math

import numpy as np
import pytest

from flamelib.core.vocabulary import DomainError
from flamelib.learning.datasets import load
from flamelib.learning.participation import Scheme, train
from flamelib.learning.records import _pooled, load_records
from flamelib.protocols.participation import draw_records

SAMPLING = {"participation_rate": 0.5, "record_rate": 0.2, "n_records": 30}
PLAIN = Scheme(0.0, math.inf, 0.01)
CLIPPED, NOISY, LOUD = (Scheme(noise, 1.0, 0.05) for noise in (0.0, 1.0, 50.0))


@pytest.fixture(scope="module")
def records():
    return load_records("digits")


def trained(records, schemes, rounds=3, seed=1, **options):
    return train(records.softmax, records, schemes, rounds, np.random.default_rng(seed), **{**SAMPLING, **options})


def test_records_are_the_training_part_in_random_order(records):
    source = load("digits")
    rows = source.images.reshape(source.n, -1)
    assert len(records) == source.n
    assert np.array_equal(np.sort(records.labels), np.sort(source.labels))
    assert not np.array_equal(records.labels, source.labels)
    found = {(row.tobytes(), label) for row, label in zip(records.images, records.labels, strict=True)}
    assert found == {(row.tobytes(), label) for row, label in zip(rows, source.labels.astype(int), strict=True)}
    assert records.notice == source.notice


def test_images_are_standardised_by_the_training_part(records):
    batch = records.batch(np.arange(len(records)))
    assert batch.images.mean(dtype=float) == pytest.approx(0, abs=1e-5)
    assert batch.images.std(dtype=float) == pytest.approx(1, abs=1e-5)
    expected = (load("digits", "test").images.reshape(-1, 64).astype(float) - records.mean) / records.spread
    assert records.tested.images == pytest.approx(expected, abs=1e-5)
    assert batch.images.dtype == np.float32


def test_pooling_takes_means_over_squares():
    images = np.random.default_rng(0).integers(256, size=(5, 7, 6)).astype(np.uint8)
    expected = [
        [image[i : i + 2, j : j + 2].mean() for i in (0, 2, 4) for j in (0, 2, 4)] for image in images.astype(float)
    ]
    assert np.abs(_pooled(images, 2) - np.array(expected)).max() <= 0.5
    assert np.array_equal(_pooled(images, 1), images.reshape(5, -1))
    assert load_records("digits", pool=2).images.shape == (1500, 16)


def test_rounds_are_those_of_the_algorithm(records):
    """Two rounds of one scheme, written out from the same children of the generator."""
    history = trained(records, {"noisy": NOISY}, rounds=2, points=2)
    for_model, for_batches, for_noise = np.random.default_rng(1).spawn(3)
    model = records.softmax
    parameters, velocity = model.initial(for_model), np.zeros(model.dimension)
    for count in range(2):
        drawn = draw_records(0.5, 0.2, 50, 30, for_batches)
        batch = records.batch(drawn)
        total = model.clipped_sum(parameters, batch.images, batch.labels, 1.0)
        published = (total + 1.0 * for_noise.standard_normal(model.dimension)) / (0.5 * 0.2 * 30 * 50)
        velocity = 0.9 * velocity + published
        parameters = parameters - 0.05 * velocity
        assert history.batches[count] == len(drawn)
        expected = model.accuracy(parameters, records.tested.images, records.tested.labels)
        assert history.accuracy["noisy"][count + 1] == expected


def test_schemes_share_model_batches_and_noise(records):
    together = trained(records, {"plain": PLAIN, "clipped": CLIPPED, "noisy": NOISY, "loud": LOUD}, rounds=8)
    for name, scheme in (("plain", PLAIN), ("clipped", CLIPPED), ("noisy", NOISY), ("loud", LOUD)):
        alone = trained(records, {name: scheme}, rounds=8)
        assert np.array_equal(alone.accuracy[name], together.accuracy[name])
        assert np.array_equal(alone.batches, together.batches)
    assert len({found[0] for found in together.accuracy.values()}) == 1


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda records: trained(records, {"one": CLIPPED}, rounds=0), "rounds"),
        (lambda records: trained(records, {"one": CLIPPED}, participation_rate=0), "participation_rate"),
        (lambda records: trained(records, {"one": CLIPPED}, record_rate=1.5), "record_rate"),
        (lambda records: trained(records, {"one": CLIPPED}, n_records=1501), "n_records"),
        (lambda records: trained(records, {"one": CLIPPED}, momentum=1.0), "momentum"),
        (lambda records: trained(records, {"one": CLIPPED}, points=1.5), "points"),
        (lambda records: Scheme(-1.0, 1.0, 0.1), "noise_std"),
        (lambda records: Scheme(math.nan, 1.0, 0.1), "noise_std"),
        (lambda records: Scheme(1.0, math.inf, 0.1), "clip_norm"),
        (lambda records: Scheme(0.0, 0.0, 0.1), "clip_norm"),
        (lambda records: Scheme(0.0, 1.0, 0.0), "learning_rate"),
        (lambda records: load_records("digits", pool=9), "pool"),
        (lambda records: load_records("digits", seed=-1), "seed"),
        (lambda records: load_records("nothing"), "name"),
    ],
)
def test_bad_input_is_refused_by_name(records, call, name):
    with pytest.raises(DomainError, match=name):
        call(records)
