"""Binomial probabilities against many digits, and windows against the probabilities they leave out."""

import math

import numpy as np
import pytest
from mpmath import mp, mpf
from oracles.loss_sums import binomial_tails
from scipy.stats import binom

from flamelib.core import binomial
from flamelib.core.binomial import log_chance, log_pmf, tilted_window, window


def exact(j, n, rate):
    q = mpf(rate)
    logs = mp.loggamma(n + 1) - mp.loggamma(j + 1) - mp.loggamma(n - j + 1)
    return logs + j * mp.log(q) + (n - j) * mp.log1p(-q)


CASES = [(29, 0.1), (999, 0.001), (10**6, 0.1), (10**6, 0.5), (10**6, 1e-5), (10**9, 0.3), (50, 1 - 1e-12), (8, 1e-300)]


@pytest.mark.parametrize(("n", "rate"), CASES)
def test_probabilities_keep_their_digits(n, rate):
    spread = max(math.sqrt(n * rate * (1 - rate)), 1.0)
    places = np.rint(n * rate + spread * np.array([-38, -20, -8, -3, -1, 0, 0.5, 2, 5, 12, 38]))
    j = np.unique(np.clip(np.append(places, [0, 1, 15, 16, n]), 0, n))
    found = log_pmf(j, n, rate)
    with mp.workdps(60):
        for count, value in zip(j, found, strict=True):
            truth = exact(int(count), n, rate)
            assert abs(value - float(truth)) <= 6e-15 * max(1, abs(float(truth)))


@pytest.mark.parametrize(("n", "rate"), [(29, 0.1), (999, 0.001), (10**6, 0.1), (10**6, 1e-5), (10**6, 0.999)])
@pytest.mark.parametrize("depth", [5.0, 40.0, 500.0])
def test_what_a_window_leaves_out_is_rare(n, rate, depth):
    first, last = window(n, rate, depth, depth)
    law = binom(n, rate)
    assert first == 0 or law.logcdf(first - 1) <= -depth
    assert last == n or law.logsf(last) <= -depth
    assert last - first <= 2 * (depth + 2 + math.sqrt(2 * depth * n * rate * (1 - rate)) + depth)


@pytest.mark.parametrize(("n", "rate"), [(29, 0.1), (5000, 0.3), (5000, 0.001)])
@pytest.mark.parametrize(("slope", "curvature"), [(0.0, 0.0), (-1.0, 1e-4), (2.0, 0.01), (0.5, 1.0)])
def test_a_tilted_window_holds_all_that_counts(n, rate, slope, curvature):
    j = np.arange(n + 1.0)
    logs = log_pmf(j, n, rate) + slope * j - curvature * j * j / 2
    kept, stride = tilted_window(n, rate, slope, curvature, 50.0)
    assert stride == 1
    assert set(j[logs >= logs.max() - 50]) <= set(kept)


@pytest.mark.parametrize("name", ["pmf", "cdf", "sf"])
@pytest.mark.parametrize("present", [True, False], ids=["arrays", "fallback"])
def test_chances_are_those_of_scipy_to_the_last_bit(name, present, monkeypatch):
    ours, theirs = getattr(binomial, name), getattr(binom, name)
    if not present:
        monkeypatch.setattr(binomial, "_ufuncs", None)
    for trials, rate in [
        (29, 0.1),
        (999, 0.001),
        (65_536, 0.5),
        (65_536, 1e-5),
        (10**9, 0.5),
        (8, 1e-240),
        (5, 1.0),
        (0, 0.3),
    ]:
        near = round(trials * rate)
        counts = np.unique(np.append(np.arange(near - 40, near + 40), [-1, 0, trials - 1, trials, trials + 1]))
        assert np.array_equal(ours(counts, trials, rate), theirs(counts, trials, rate))
        assert np.array_equal(ours(counts.astype(float), trials, rate), theirs(counts.astype(float), trials, rate))
        one = ours(near, trials, rate)
        assert one == theirs(near, trials, rate)
        assert isinstance(one, float)
    table = np.arange(5), np.arange(6)[:, None], 0.3
    assert np.array_equal(ours(*table), theirs(*table))


@pytest.mark.parametrize(("trials", "rate", "count"), [(330_390_603, 158.386 / 330_390_603, 19), (10**9, 2.5e-9, 1),
                                                       (2**31 - 1, 0.3, 644_200_000), (10**9, 1e-15, 0)])  # fmt: skip
def test_sums_of_many_trials_keep_more_digits_than_those_of_scipy(trials, rate, count):
    below, beyond = binomial_tails(trials, rate, count)
    for truth, found in ((below, binomial.cdf(count, trials, rate)), (beyond, binomial.sf(count, trials, rate))):
        assert truth is None or abs(float((truth / float(found)).log())) < 1e-11
    few = log_chance(np.array([float(count)]), trials, rate, few=True)
    assert below is None or float(few[0]) >= float(below.log())
