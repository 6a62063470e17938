"""The blanket protocols and their baselines: unbiased, priced on the safe side, each party seeing its own part only."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from flamelib.accounting.shuffling.closed_form import kary_epsilon0
from flamelib.accounting.shuffling.numerical import blanket_divergence
from flamelib.core.guarantees import Adjacency
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import DomainError
from flamelib.protocols import baselines, blanket
from flamelib.protocols.blanket import HistogramProtocol, SummationProtocol

HISTOGRAM = HistogramProtocol(n_users=600, n_buckets=4, blanket_mass=0.35)
SUM = SummationProtocol(n_users=600, n_levels=3, blanket_mass=0.35)
UNARY = baselines.UnarySumProtocol(n_users=600, n_messages=12, blanket_mass=0.35)
BUCKETS = np.repeat(np.arange(4), [300, 200, 90, 10])
NUMBERS = np.linspace(0.03, 0.97, 600) ** 2
REPEATS = 4000


def repeated(experiment, repeats=REPEATS, seed=0):
    return np.array([experiment(rng) for rng in np.random.default_rng(seed).spawn(repeats)])


def within_errors(draws, mean, variance):
    """Mean within 5 standard errors, variance within 5 of its own (Gaussian law of the estimate, near enough)."""
    assert np.all(np.abs(draws.mean(0) - mean) < 5 * np.sqrt(np.asarray(variance) / len(draws)))
    assert np.all(np.abs(draws.var(0) / variance - 1) < 5 * math.sqrt(2 / len(draws)))


def message_law(n_letters, mass, letter):
    """Probabilities of the messages of a user, written down from Algorithm 1."""
    law = np.full(n_letters, mass / n_letters)
    law[letter] += 1 - mass
    return law


def test_histogram_counts_are_unbiased_with_the_exact_error():
    draws = repeated(lambda rng: blanket.run(HISTOGRAM, BUCKETS, rng))
    laws = np.array([message_law(4, 0.35, bucket) for bucket in BUCKETS])
    variance = (laws * (1 - laws)).sum(0) / (1 - 0.35) ** 2
    within_errors(draws, np.bincount(BUCKETS), variance)
    assert blanket.count_variance(HISTOGRAM, np.bincount(BUCKETS)) == pytest.approx(variance, rel=1e-12)
    assert draws.sum(1) == pytest.approx(np.full(REPEATS, 600))


def test_the_sum_is_unbiased_with_the_exact_error():
    draws = repeated(lambda rng: blanket.run(SUM, NUMBERS, rng))
    letters = np.arange(4) / 3
    variance = 0.0
    for value in NUMBERS:
        low = int(3 * value)
        up = 3 * value - low
        law = (1 - up) * message_law(4, 0.35, low) + up * message_law(4, 0.35, min(low + 1, 3))
        variance += law @ letters**2 - (law @ letters) ** 2
    within_errors(draws, NUMBERS.sum(), variance / (1 - 0.35) ** 2)


def test_a_wrong_alphabet_would_have_been_seen():
    """Messages debiased as if they lived in 1..k: off by n mass / (2 k (1 - mass)), sixty times the standard error."""
    draws = repeated(lambda rng: blanket.run(SUM, NUMBERS, rng), 200)
    wrong = draws - 600 * 0.35 / (2 * 3 * 0.65)
    assert abs(wrong.mean() - NUMBERS.sum()) > 20 * draws.std() / math.sqrt(200)


@pytest.mark.parametrize("protocol", [HISTOGRAM, SUM], ids=["histogram", "sum"])
def test_the_analyzer_sees_the_multiset_only(protocol):
    messages = np.random.default_rng(0).integers(4, size=600)
    estimates = [blanket.analyzer(protocol, order) for order in (messages, np.sort(messages), messages[::-1])]
    assert np.all(estimates[0] == estimates[1])
    assert np.all(estimates[0] == estimates[2])


@pytest.mark.parametrize(
    ("protocol", "values", "sentence"),
    [
        (HISTOGRAM, BUCKETS[:-1], r"values must have shape \(600,\)"),
        (HISTOGRAM, np.append(BUCKETS, 0), r"values must have shape \(600,\)"),
        (HISTOGRAM, BUCKETS.reshape(2, 300), r"values must have shape \(600,\)"),
        (HISTOGRAM, BUCKETS + 1, r"values must be whole numbers in \[0, 3\], got 4"),
        (HISTOGRAM, BUCKETS - 1, r"values must be whole numbers in \[0, 3\], got -1"),
        (HISTOGRAM, BUCKETS + 0.0, r"values must be whole numbers in \[0, 3\], got dtype float64"),
        (SUM, NUMBERS[:-1], r"values must have shape \(600,\)"),
        (SUM, np.where(NUMBERS > 0.5, np.nan, NUMBERS), r"values must be numbers in \[0, 1\], got nan"),
        (SUM, NUMBERS + 0.5, r"values must be numbers in \[0, 1\]"),
        (SUM, NUMBERS - 0.5, r"values must be numbers in \[0, 1\]"),
    ],
)
def test_values_that_do_not_belong_are_refused(protocol, values, sentence):
    with pytest.raises(DomainError, match=sentence):
        blanket.run(protocol, values, np.random.default_rng(0))


@pytest.mark.parametrize("protocol", [HISTOGRAM, SUM], ids=["histogram", "sum"])
@pytest.mark.parametrize(
    "messages", [np.zeros(n, int) for n in (599, 601, (600, 1))] + [np.full(600, x) for x in (4, -1, np.nan)]
)
def test_messages_that_do_not_belong_are_refused(protocol, messages):
    with pytest.raises(DomainError, match="messages must"):
        blanket.analyzer(protocol, messages)


@pytest.mark.parametrize(
    ("n_users", "n_buckets", "mass", "delta"), [(2, 2, 0.3, 0.01), (5, 3, 0.8, 0.1), (900, 3, 0.2, 1e-6)]
)
def test_the_account_is_the_divergence_of_its_randomizer(n_users, n_buckets, mass, delta):
    protocol = HistogramProtocol(n_users, n_buckets, mass)
    guarantee, profile = blanket.account(protocol, delta), KaryProfile(kary_epsilon0(n_buckets, mass), n_buckets)
    assert (guarantee.adjacency, guarantee.delta) == (Adjacency.REPLACE_ONE, delta)
    assert guarantee.epsilon == pytest.approx(blanket_divergence(profile, n_users, delta=delta), rel=1e-9)


@pytest.mark.parametrize("n_users", [1000, 60_000, 10**6])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_calibration_meets_its_guarantee_and_wastes_little(n_users, epsilon):
    delta = 1e-6
    protocol = blanket.private_histogram(n_users, 10, epsilon, delta, "blanket")
    assert blanket.account(protocol, delta).epsilon <= epsilon
    weaker = HistogramProtocol(n_users, 10, protocol.blanket_mass * (1 - 1e-5))
    assert blanket.account(weaker, delta).epsilon > epsilon


def test_the_theorem_needs_the_mass_of_its_formula():
    protocol = blanket.private_histogram(10**6, 10, 0.5, 1e-6)
    assert protocol.blanket_mass == pytest.approx(14 * 10 * math.log(2e6) / (999_999 * 0.25), rel=1e-12)
    summation = blanket.private_sum(10**6, 0.5, 1e-6, n_levels=9)
    assert summation.n_buckets == 10
    assert summation.blanket_mass == protocol.blanket_mass
    assert blanket.account(protocol, 1e-6).epsilon < 0.5


def test_the_unary_sum_is_unbiased_with_the_variance_of_its_bits():
    draws = repeated(lambda rng: baselines.run(UNARY, NUMBERS, rng))
    fraction = 12 * NUMBERS - np.floor(12 * NUMBERS)
    variance = 600 * 0.175 * 0.825 / (12 * 0.65**2) + (fraction * (1 - fraction)).sum() / 144
    within_errors(draws, NUMBERS.sum(), variance)


def unary_exact(protocol, epsilon):
    """Hockey-stick of the number of ones; worst over the other users' ones and the pair of this user's."""
    bits, flip = protocol.n_messages, protocol.blanket_mass / 2
    others = (protocol.n_users - 1) * bits

    def law(ones, total):
        support = np.arange(total + 1)
        return np.convolve(binom.pmf(support, ones, 1 - flip), binom.pmf(support, total - ones, flip))[: total + 1]

    worst = 0.0
    for base in range(others + 1):
        laws = [law(base + own, others + bits) for own in range(bits + 1)]
        for p, q in itertools.permutations(laws, 2):
            worst = max(worst, np.maximum(p - math.exp(epsilon) * q, 0).sum())
    return worst


@pytest.mark.parametrize(("n_users", "n_messages", "mass"), [(6, 1, 0.5), (9, 3, 0.7), (14, 2, 0.9), (30, 2, 0.8)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_unary_bound_is_never_below_the_truth(n_users, n_messages, mass, epsilon):
    protocol = baselines.UnarySumProtocol(n_users, n_messages, mass)
    assert unary_exact(protocol, epsilon) <= math.exp(baselines.unary_log_delta(protocol, epsilon))
