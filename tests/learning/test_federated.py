"""Users of the experiments and rounds of training: who holds what, what is tested, what noise is repeated."""

from types import SimpleNamespace

import numpy as np
import pytest

from flamelib.core.vocabulary import DomainError
from flamelib.learning.datasets import load
from flamelib.learning.federated import _gather, load_users, train


@pytest.fixture(scope="module")
def users():
    return load_users("digits", n_users=120)


def raw(images):
    """Rows of pixels."""
    return images.reshape(len(images), -1).astype(float)


def test_every_user_holds_one_image_of_every_class(users):
    labels = np.concatenate([users.labels, users.held_back.labels.reshape(120, 3)], axis=1)
    assert (np.sort(labels, axis=1) == np.arange(10)).all()
    assert users.images.shape == (120, 7, 64)
    assert users.gram.shape == (120, 7, 7)
    assert users.images.dtype == np.float32


def test_features_are_standardised_over_both_parts(users):
    everything = np.concatenate([raw(load("digits").images), raw(load("digits", "test").images)])
    expected = (raw(load("digits", "test").images) - everything.mean(0)) / (everything.std(0) + 0.001)
    assert users.official.images == pytest.approx(expected, abs=1e-4)


def test_users_get_the_first_images_of_each_class_and_the_overlap_is_told():
    """Every user's images are found again in the data set, and the marks on the published test part agree."""
    users = load_users("digits")
    first, second = load("digits"), load("digits", "test")
    labels = np.concatenate([first.labels, second.labels])
    n_users = min(np.bincount(labels))
    assert len(users) == n_users
    taken = np.sort(np.concatenate([np.flatnonzero(labels == one)[:n_users] for one in range(10)]))
    assert np.array_equal(np.flatnonzero(users.official_held), taken[taken >= first.n] - first.n)
    assert users.official_held.sum() > users.official_trained.sum() > 0
    assert not (users.official_trained & ~users.official_held).any()
    for position in np.flatnonzero(users.official_trained)[:20]:
        assert (users.images == users.official.images[position]).all(axis=-1).any()


def test_the_seed_moves_the_split_and_nothing_else():
    one, two, three = (load_users("digits", seed=seed, n_users=50) for seed in (1, 1, 2))
    assert np.array_equal(one.images, two.images)
    assert not np.array_equal(one.labels, three.labels)
    assert np.array_equal(one.official.images, three.official.images)


def mean(updates, rng):
    return SimpleNamespace(estimate=updates.mean(axis=0, dtype=np.float64))


def test_training_learns_and_is_counted_from_the_initial_model(users):
    history = train(mean, users, 30, np.random.default_rng(1), n_users=60)
    assert history.held_back.shape == (31,)
    assert min(history.official, history.untouched) > 0.8
    assert history.held_back[0] < 0.35
    assert history.held_back[-1] > 0.8
    assert history.observed == (None,) * 30


def test_one_round_is_the_mean_of_what_users_learn(users):
    seen = []

    def watch(updates, rng):
        seen.append(updates.copy())
        return mean(updates, rng)

    train(watch, users, 3, np.random.default_rng(1), n_users=50)
    model = users.model
    parameters = model.initial(np.random.default_rng(1).spawn(2)[0])
    for count, block in enumerate((slice(0, 50), slice(50, 100), slice(0, 50))):
        expected = model.local_updates(
            parameters, users.images[block], users.labels[block], learning_rate=0.1, epochs=10
        )
        assert np.array_equal(seen[count], expected)
        parameters = parameters + expected.mean(axis=0, dtype=np.float64)


def noises(users, **options):
    """What a method draws in each of three rounds."""
    drawn = []

    def method(updates, rng):
        drawn.append(rng.normal(size=3))
        return mean(updates, rng)

    train(method, users, 3, np.random.default_rng(5), n_users=40, **options)
    return np.array(drawn)


def test_noise_is_fresh_unless_it_is_asked_to_repeat(users):
    fresh, repeated = noises(users), noises(users, repeat_noise=True)
    assert len(np.unique(fresh)) == 9
    assert (repeated == repeated[0]).all()
    assert np.array_equal(fresh[0], repeated[0])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda users: train(mean, users, 0, np.random.default_rng(0)), "rounds"),
        (lambda users: train(mean, users, 1, np.random.default_rng(0), n_users=1), "n_users"),
        (lambda users: train(mean, users, 1, np.random.default_rng(0), server_step=0), "server_step"),
        (lambda users: train(mean, users, 1, np.random.default_rng(0), epochs=0), "epochs"),
        (lambda users: load_users("digits", seed=-1), "seed"),
        (lambda users: load_users("nothing"), "name"),
        (lambda users: _gather(one_class(), one_class(), np.random.default_rng(0)), "data set"),
    ],
)
def test_bad_input_is_refused_by_name(users, call, name):
    with pytest.raises(DomainError, match=name):
        call(users)


def one_class():
    return SimpleNamespace(labels=np.zeros(3, np.uint8), images=np.zeros((3, 2, 2), np.uint8), classes=1, n=3)
