"""Training through cloak aggregation: rounding within its limit, sums with and without messages, law of the noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from flamelib.accounting.noise.skellam import rounded_norm, vector_epsilon
from flamelib.accounting.splitting.n_user_bounds import users_distance
from flamelib.core.vocabulary import DomainError
from flamelib.learning.cloak import CloakAverage, security_bits
from flamelib.mechanisms.integers.randomness import Release, Simulation

CLIP, SCALE = 0.5, 40


def average(n_users, dimension=12, **changes):
    given = {"norm_limit": rounded_norm(dimension, SCALE), "variance": 0.0, "modulus": 2**16, "n_messages": 4}
    return CloakAverage(n_users, CLIP, SCALE, **{**given, **changes})


def updates(n_users, dimension=12, seed=0):
    """Some shorter and some longer than the clip, one of them zero."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_users, dimension)) * rng.uniform(0.01, 0.5, size=(n_users, 1))
    rows[0] = 0
    return rows.astype(np.float32)


def rows_sent(method, rows, seed=1):
    """The whole numbers that users send the sum of."""
    return np.concatenate(list(method.rounded(rows, Simulation(np.random.default_rng(seed)))))


def steps(method, estimate):
    """The decoded sums in steps of the grid, whole."""
    found = estimate * method.n_users * SCALE / CLIP
    assert np.abs(found - np.rint(found)).max() < 1e-6
    return np.rint(found).astype(int)


def calibrated(epsilon=2.0, delta=1e-6, rounds=2, **changes):
    given = {"n_users": 1000, "clip_norm": 0.3, "scale": 256}
    return CloakAverage.calibrated(7850, rounds, epsilon, delta, **{**given, **changes})


# --- rounding -----------------------------------------------------------------------------------------------------


def test_every_coordinate_goes_up_or_down_and_no_row_is_too_long():
    rows, method = updates(200), average(200)
    found = rows_sent(method, rows)
    for row, sent in zip(rows.astype(float), found, strict=True):
        wanted = row * min(1, CLIP / max(math.hypot(*row), 1e-300)) * SCALE / CLIP
        assert all(math.floor(w - 1e-9) <= v <= math.ceil(w + 1e-9) for w, v in zip(wanted, sent, strict=True))
        assert sum(int(v) ** 2 for v in sent) <= method.norm_limit**2
    assert not found[0].any()


def test_rounding_has_no_bias_but_for_the_condition():
    """Where nothing is rejected the mean is the scaled value, within five standard errors."""
    row, repeats = updates(2)[1], 4000
    method = average(repeats, norm_limit=SCALE + math.sqrt(12))
    found = rows_sent(method, np.tile(row, (repeats, 1)))
    wanted = row * min(1, CLIP / np.linalg.norm(row)) * SCALE / CLIP
    assert np.abs(found.mean(axis=0) - wanted).max() < 5 * 0.5 / math.sqrt(repeats)


def test_what_cannot_be_kept_by_luck_is_rounded_towards_zero():
    """A limit at the clip itself rejects nearly every rounding; all rows keep it all the same."""
    method = average(64, 400, norm_limit=SCALE)
    rows = np.full((64, 400), CLIP / 20 * (1 - 1e-12))
    found = rows_sent(method, rows)
    assert np.linalg.norm(found, axis=1).max() <= SCALE
    assert found.any()


# --- sums ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("modulus", [2**16, 2**16 - 1, 2001])
def test_without_noise_the_decoded_sum_is_the_plain_sum_of_whole_numbers(modulus):
    """With every message sent and without, also where users and coordinates need several blocks."""
    method, rows = average(40, 300, modulus=modulus), updates(40, 300)
    one = method.run(rows, np.random.default_rng(3))
    rounding, _ = Simulation(np.random.default_rng(3)).spawn(2)
    plain = sum(sum(block.astype(int)) for block in method.rounded(rows, rounding))
    assert (np.abs(plain) < modulus / 2).all()
    assert steps(method, one.estimate).tolist() == plain.tolist()
    assert not one.overflow.any()
    sent = method.run_messages(rows, Simulation(np.random.default_rng(3)))
    assert sent.tolist() == one.estimate.tolist()


def test_a_sum_that_leaves_the_modulus_goes_around_it():
    method = average(40, norm_limit=200.0, modulus=64)
    rows = np.tile(updates(2)[1], (40, 1))
    found = method.run(rows, np.random.default_rng(3))
    free = replace(method, modulus=2**20).run(rows, np.random.default_rng(3))
    difference = steps(method, found.estimate) - steps(method, free.estimate)
    assert found.overflow.any()
    assert (np.abs(difference) == 64 * found.overflow).all()
    assert np.abs(steps(method, found.estimate)).max() <= 32
    assert method.run_messages(rows, Simulation(np.random.default_rng(3))).tolist() == found.estimate.tolist()


@pytest.mark.parametrize("way", ["sum", "messages", "release"])
def test_noise_has_the_law_of_skellam(way):
    """Chi-square of the noise alone, three cells for the tails; the modulus is far from it."""
    variance, dimension = 6.0, 600 if way == "release" else 6000
    method, nothing = average(3, dimension, variance=variance), np.zeros((3, dimension))
    if way == "sum":
        found = method.run(nothing, np.random.default_rng(2)).estimate
    else:
        found = method.run_messages(nothing, Simulation(np.random.default_rng(2)) if way == "messages" else Release())
    cells = np.clip(steps(method, found), -6, 6)
    law = stats.skellam(variance / 2, variance / 2)
    expected = np.array([law.cdf(-6), *law.pmf(np.arange(-5, 6)), law.sf(5)]) * dimension
    counts = np.array([(cells == value).sum() for value in range(-6, 7)])
    assert ((counts - expected) ** 2 / expected).sum() < stats.chi2.ppf(1 - 1e-6, 12)


def test_honest_shares_alone_make_up_the_noise():
    """With colluders every share is larger: the sum of all has the variance in proportion."""
    method = average(10, 4000, variance=50.0, colluding=5)
    noise = steps(method, method.run(np.zeros((10, 4000)), np.random.default_rng(4)).estimate)
    assert noise.var() == pytest.approx(100.0, rel=0.12)
    assert method.protocol.noise.n_users == 5
    assert method.noise_std == pytest.approx(math.sqrt(100) * CLIP / SCALE / 10)


# --- calibration --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colluding", [0, 300])
@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_the_guarantee_is_kept_shares_included(epsilon, colluding):
    """By the forward functions: noise and messages give epsilon back, and a little less noise would not."""
    dimension, rounds, delta = 7850, 3, 1e-6
    method = calibrated(epsilon, delta, rounds, colluding=colluding)
    bits = -math.log2(users_distance(method.modulus, method.n_messages, 1000 - colluding))
    given = {"dimension": dimension, "rounds": rounds, "delta": delta, "security_bits": bits}
    moved = 2 * method.norm_limit
    assert vector_epsilon(sensitivity_2=moved, variance=method.variance, **given) <= epsilon
    assert vector_epsilon(sensitivity_2=moved, variance=0.99 * method.variance, **given) > epsilon
    assert bits >= security_bits(dimension, rounds, epsilon, delta)


def test_what_is_asked_for_is_kept():
    method = calibrated(modulus=2**13, scale=32, clip_norm=0.6)
    assert (method.modulus, method.scale, method.clip_norm) == (2**13, 32, 0.6)
    assert method.noise_std > calibrated(scale=256, clip_norm=0.6).noise_std, "a coarse grid makes vectors longer"


# --- training -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"variance": -1.0}, "variance"),
        ({"variance": math.nan}, "variance"),
        ({"norm_limit": SCALE - 1}, "norm_limit"),
        ({"norm_limit": math.inf}, "norm_limit"),
        ({"colluding": 10}, "colluding"),
        ({"n_messages": 0}, "n_messages"),
        ({"n_messages": 1}, "n_messages"),
        ({"modulus": 10**400}, "modulus"),
        ({"modulus": 2**63}, "modulus"),
        ({"modulus": 9}, "modulus"),
        ({"variance": 1.1e10}, "variance"),
        ({"norm_limit": 1e9}, "norm_limit"),
    ],
)
def test_a_bad_average_is_refused_by_name(changes, name):
    with pytest.raises(DomainError, match=name):
        average(10, **changes)
