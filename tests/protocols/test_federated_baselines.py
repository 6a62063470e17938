"""Baselines of federated averaging: what they publish without noise, and the law of their noise."""

import numpy as np
import pytest
from scipy.stats import kstest, norm

from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame
from flamelib.protocols.averages import (
    CentralGaussian,
    ClippedAverage,
    LocalGaussian,
    LocalLaplace,
    OrderedTopk,
    PlainAverage,
    SparseAverage,
)

UPDATES = np.random.default_rng(1).normal(scale=0.02, size=(300, 400)).astype(np.float32)
RNG = np.random.default_rng


def clipped(bound):
    return np.clip(UPDATES.astype(float), -bound, bound).mean(axis=0)


def test_plain_average():
    assert PlainAverage().run(UPDATES, RNG(0)).estimate == pytest.approx(UPDATES.astype(float).mean(axis=0))


def test_clipped_average():
    assert ClippedAverage(0.01).run(UPDATES, RNG(0)).estimate == pytest.approx(clipped(0.01), abs=1e-9)


def test_sparse_average_keeps_the_largest_of_each_user():
    rows = UPDATES.astype(float).copy()
    for row in rows:
        row[np.argsort(np.abs(row))[:-8]] = 0
    expected = np.clip(rows, -0.01, 0.01).mean(axis=0)
    assert SparseAverage(0.01, 8).run(UPDATES, RNG(0)).estimate == pytest.approx(expected, abs=1e-9)
    assert SparseAverage(0.01, 400).run(UPDATES, RNG(0)).estimate == pytest.approx(clipped(0.01), abs=1e-9)


def test_the_trusted_server_clips_in_two_norm():
    exact = CentralGaussian(0.3, 1e-12).run(UPDATES, RNG(0)).estimate
    norms = np.linalg.norm(UPDATES.astype(float), axis=1, keepdims=True)
    assert (norms > 0.3).any()
    assert exact == pytest.approx((UPDATES * np.minimum(1, 0.3 / norms)).mean(axis=0), abs=1e-9)
    assert np.isfinite(CentralGaussian(0.3, 1e-12).run(np.zeros((2, 3)), RNG(0)).estimate).all()


def test_replacing_a_user_moves_the_sum_by_no_more_than_the_sensitivity():
    protocol = CentralGaussian(0.3, 1e-12)
    worst = UPDATES.copy()
    worst[0] *= -100
    moved = 300 * (protocol.run(worst, RNG(0)).estimate - protocol.run(UPDATES, RNG(0)).estimate)
    assert protocol.sensitivity == 0.6
    assert np.linalg.norm(moved) == pytest.approx(0.6, rel=0.2)
    assert np.linalg.norm(moved) <= 0.6 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("protocol", "expected", "spread"),
    [
        (CentralGaussian(100.0, 7.0), UPDATES.astype(float).mean(axis=0), 7 / 300),
        (LocalGaussian(0.01, 50.0), clipped(0.01), 0.02 * 50 / 300**0.5),
        # 300 Laplace variables of one size are a Gaussian to within the power of this test.
        (LocalLaplace(0.01, 0.02), clipped(0.01), 0.02 * 50 * 2**0.5 / 300**0.5),
    ],
)
def test_noise_has_the_right_size_and_a_wrong_one_is_seen(protocol, expected, spread):
    noise = np.concatenate([protocol.run(UPDATES, RNG(seed)).estimate - expected for seed in range(10)]) / spread
    assert kstest(noise, norm.cdf).pvalue > 0.01
    assert max(kstest(noise * factor, norm.cdf).pvalue for factor in (0.9, 1.1)) < 0.01


def test_summed_laplace_noise_is_that_of_the_users_one_by_one():
    """The difference of two gamma variables against literal noise, few users, where the law is no Gaussian."""
    two = np.zeros((2, 4000), np.float32)
    summed = LocalLaplace(1.0, 2.0).run(two, RNG(0)).estimate
    literal = 2 * RNG(1).laplace(scale=0.5, size=(2, 4000)).mean(axis=0)
    assert kstest(summed, literal).pvalue > 0.01
    assert kstest(summed, norm(scale=summed.std()).cdf).pvalue < 0.01


def test_topk_in_order_is_the_protocol():
    """Without noise the sparse sum over the expected number of reports; with noise that of the padded bag."""
    still = OrderedTopk(0.01, 700.0, 8, 60).run(UPDATES, RNG(0)).estimate
    sparse = SparseAverage(0.01, 8).run(UPDATES, RNG(0)).estimate * 400 / 8
    assert still == pytest.approx(sparse, abs=3e-4)
    protocol = flame.FlameTopk(300, 400, 0.01, LaplaceNoise(0.02), 8, 60)
    ours = OrderedTopk(0.01, 0.02, 8, 60).run(UPDATES, RNG(1)).estimate
    theirs = flame.run(protocol, UPDATES, RNG(2)).estimate
    spread = 0.02 / 6 * (2 * 60) ** 0.5 / 0.02
    for noise in (ours - sparse, theirs - sparse):
        assert kstest(noise / spread, norm.cdf).pvalue > 0.01
        assert kstest(noise / spread * 1.4, norm.cdf).pvalue < 0.01
