"""Randomizers of vectors: unbiased for every input, the ratio of densities, lengths, and sums without messages."""

import math

import numpy as np
import pytest
from mpmath import gamma, mp, mpf, quad, sqrt

from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.vectors import CapMessages, GaussianMessages, _cap_share, best_threshold

CLIP = 0.7
SMALL = [
    CapMessages.duchi(3, 1.0, CLIP),
    CapMessages.privunit2(3, 4.0, CLIP),
    CapMessages.privunit2(2, 2.0, CLIP),
    CapMessages.duchi(2, 0.3, CLIP),
    CapMessages(5, 3.0, CLIP, 0.35),
    GaussianMessages(4, CLIP, 0.5),
]


def by_quadrature(dimension, threshold):
    """The cap's share of the sphere and its mean cosine, by integrals over the density of one coordinate."""
    power = mpf(dimension - 3) / 2
    whole = sqrt(mp.pi) * gamma(mpf(dimension - 1) / 2) / gamma(mpf(dimension) / 2)
    share = quad(lambda t: (1 - t * t) ** power, [threshold, 1]) / whole
    return share, quad(lambda t: t * (1 - t * t) ** power, [threshold, 1]) / whole / share


def normalised(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# --- the law ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dimension", "threshold"), [(3, 0.0), (3, 0.5), (4, 0.3), (7, 0.8), (40, 0.25)])
def test_a_cap_holds_the_share_that_its_integral_says(dimension, threshold):
    share, _ = by_quadrature(dimension, mpf(threshold))
    assert _cap_share(dimension, threshold) == pytest.approx(float(share), rel=1e-12)


@pytest.mark.parametrize("randomizer", SMALL[:-1])
def test_messages_are_as_long_as_unbiasedness_asks_for(randomizer):
    if randomizer.dimension > 2:
        share, mean = by_quadrature(randomizer.dimension, mpf(randomizer.threshold))
        keep = mp.exp(randomizer.epsilon0) * share / (mp.exp(randomizer.epsilon0) * share + 1 - share)
        across = keep * mean - (1 - keep) * share * mean / (1 - share)
        assert randomizer.norm == pytest.approx(float(CLIP / across), rel=1e-10)
    drawn = randomizer.sample(np.ones((50, randomizer.dimension)), np.random.default_rng(0))
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.full(50, randomizer.norm), rel=1e-12)


def log_density(randomizer, message, vector):
    """Logarithm of the density of one message given one input, against the uniform law on the sphere."""
    norm = np.linalg.norm(vector)
    direction = vector / norm if norm else np.eye(len(vector))[0]
    cosine = message @ direction / np.linalg.norm(message)
    positive = (1 + min(1.0, norm / randomizer.clip_norm)) / 2
    inside = positive * (cosine >= randomizer.threshold) + (1 - positive) * (-cosine >= randomizer.threshold)
    return math.log(randomizer.mass * (1 + math.expm1(randomizer.epsilon0) * inside))


@pytest.mark.parametrize("randomizer", SMALL[:-1])
def test_densities_differ_by_the_budget_and_integrate_to_one(randomizer):
    """The ratio is attained at full length, never passed, and smaller for shorter inputs."""
    rng = np.random.default_rng(1)
    points = normalised(rng.standard_normal((40, randomizer.dimension)))
    inputs = np.concatenate([points[:12] * CLIP, points[12:20] * rng.uniform(0, CLIP, (8, 1)), 0 * points[:1]])
    found = np.array([[log_density(randomizer, point, one) for one in inputs] for point in points])
    spread = found.max(axis=1) - found.min(axis=1)
    assert spread.max() <= randomizer.epsilon0 * (1 + 1e-12)
    opposite = log_density(randomizer, points[0], -CLIP * points[0])
    assert log_density(randomizer, points[0], CLIP * points[0]) - opposite == pytest.approx(randomizer.epsilon0)
    assert np.exp(found).min() == pytest.approx(randomizer.mass)
    uniform = normalised(rng.standard_normal((4000, randomizer.dimension)))
    weights = np.exp([log_density(randomizer, point, inputs[15]) for point in uniform])
    assert weights.mean() == pytest.approx(1, abs=5 * weights.std() / len(weights) ** 0.5)


@pytest.mark.parametrize("randomizer", SMALL[:-1])
def test_samples_have_the_density(randomizer):
    """Share of messages in the cap of the input, and the uniform law on both sides of its rim."""
    repeats, rng = 40_000, np.random.default_rng(2)
    vector = np.zeros(randomizer.dimension)
    vector[-1] = CLIP
    cosines = randomizer.sample(np.tile(vector, (repeats, 1)), rng)[:, -1] / randomizer.norm
    others = normalised(rng.standard_normal((repeats, randomizer.dimension)))[:, -1]
    keep = math.exp(randomizer.epsilon0) * randomizer.cap * randomizer.mass
    inside = cosines >= randomizer.threshold
    assert inside.mean() == pytest.approx(keep, abs=5 * (keep * (1 - keep) / repeats) ** 0.5)
    for mine, theirs in ((inside, others >= randomizer.threshold), (~inside, others < randomizer.threshold)):
        one, two = cosines[mine], others[theirs]
        error = 5 * (one.var() / len(one) + two.var() / len(two)) ** 0.5
        assert one.mean() == pytest.approx(two.mean(), abs=error)


# --- unbiased -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("randomizer", SMALL)
@pytest.mark.parametrize("length", [0.0, 0.2, CLIP, 3.0])
def test_messages_are_unbiased_and_longer_inputs_are_clipped(randomizer, length):
    rng, repeats = np.random.default_rng(3), 60_000
    direction = normalised(rng.standard_normal((1, randomizer.dimension)))
    found = randomizer.sample(np.tile(length * direction, (repeats, 1)), rng)
    error = 5 * found.std(axis=0).max() / repeats**0.5
    assert found.mean(axis=0) == pytest.approx(min(length, CLIP) * direction[0], abs=error)


# --- lengths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dimension", "epsilon0"), [(2, 1.0), (3, 0.01), (10, 3.0), (1970, 8.0), (26_010, 2.0)])
def test_no_other_cap_makes_messages_shorter(dimension, epsilon0):
    best = best_threshold(dimension, epsilon0)
    shortest = CapMessages.privunit2(dimension, epsilon0, 1.0).norm
    assert shortest == pytest.approx(1 / best, rel=1e-9)
    for threshold in (0.0, 0.8 * best, 0.98 * best, min(1.02 * best, 0.999), min(1.2 * best, 0.999)):
        assert CapMessages(dimension, epsilon0, 1.0, threshold).norm >= shortest * (1 - 1e-12)


# --- sums without messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "randomizer", [*SMALL[:2], CapMessages.privunit2(20, 4.0, CLIP), GaussianMessages(4, CLIP, 0.5)]
)
def test_a_sum_in_aggregate_has_the_moments_of_one_of_messages(randomizer):
    """Same mean; covariance as of messages, but for the small part along the inputs that the docstring tells of."""
    rng, repeats, n = np.random.default_rng(4), 6000, 6
    inputs = normalised(rng.standard_normal((n, randomizer.dimension))) * np.linspace(0.1, CLIP, n)[:, None]
    norms, directions = np.linalg.norm(inputs, axis=1), normalised(inputs)
    sent = randomizer.sample(np.tile(inputs, (repeats, 1)), rng).reshape(repeats, n, -1).sum(axis=1)
    drawn = np.empty_like(sent)
    for row in drawn:
        along = randomizer.along(norms, rng.random((3, n)))
        row[:] = along @ directions + randomizer.rest_std(along) * rng.standard_normal(randomizer.dimension)
    squares = [np.square(rows - inputs.sum(axis=0)).sum(axis=1) for rows in (sent, drawn)]
    error = 5 * math.hypot(*(one.std() for one in squares)) / repeats**0.5
    for rows in (sent, drawn):
        assert rows.mean(axis=0) == pytest.approx(inputs.sum(axis=0), abs=5 * rows.std(axis=0).max() / repeats**0.5)
    excess = squares[1].mean() - squares[0].mean()
    assert -error <= excess <= squares[0].mean() / (randomizer.dimension - 1) + error
    shade = 8 * np.cov(sent.T).max() * (randomizer.dimension / repeats) ** 0.5
    assert np.linalg.eigvalsh(np.cov(drawn.T) - np.cov(sent.T)).min() >= -shade


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: CapMessages.duchi(1, 1.0, 1.0), "dimension"),
        (lambda: CapMessages.privunit2(1, 1.0, 1.0), "dimension"),
        (lambda: CapMessages.duchi(3, 0.0, 1.0), "epsilon0"),
        (lambda: CapMessages.privunit2(3, 701.0, 1.0), "epsilon0"),
        (lambda: CapMessages.duchi(3, 1.0, math.inf), "clip_norm"),
        (lambda: CapMessages(3, 1.0, 1.0, 1.0), "threshold"),
        (lambda: CapMessages(3, 1.0, 1.0, math.nan), "threshold"),
        (lambda: GaussianMessages(3, math.inf, 1.0), "clip_norm"),
        (lambda: GaussianMessages(3, 1.0, -1.0), "noise_std"),
        (lambda: SMALL[0].sample([1.0, 0.0, 0.0], np.random.default_rng(0)), "vectors"),
        (lambda: SMALL[0].sample([[1.0, 0.0]], np.random.default_rng(0)), "vectors"),
        (lambda: SMALL[0].sample([[math.nan, 0, 0]], np.random.default_rng(0)), "vectors"),
    ],
)
def test_bad_input_is_refused_by_name(call, name):
    with pytest.raises(DomainError, match=name):
        call()
