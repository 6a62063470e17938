"""One coordinate: laws of messages written down from the algorithm, against samplers, decoders and their variances."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, ks_2samp, kstest, laplace

from flamelib.mechanisms import coordinates
from flamelib.mechanisms.coordinates import decode, sample, sample_blanket
from flamelib.mechanisms.randomizers import KaryResponse, LaplaceNoise

VALUES = [0.0, 0.13, 0.25, 0.5, 0.8, 1.0]


def letter_law(levels, epsilon0, value, lowest=0):
    """Probability of each message 0..levels of Algorithm 1, the noise uniform on {lowest, ..., levels}."""
    letters = levels + 1 - lowest
    mass = letters / (math.exp(epsilon0) + letters - 1)
    law = np.zeros(levels + 1)
    below = min(int(value * levels), levels - 1)
    law[below], law[below + 1] = 1 - (value * levels - below), value * levels - below
    law *= 1 - mass
    law[lowest:] += mass / letters
    return law


@pytest.mark.parametrize("levels", [1, 2, 5])
@pytest.mark.parametrize("epsilon0", [0.3, 2.0])
class TestLetters:
    def test_decoded_messages_are_unbiased(self, levels, epsilon0):
        response, letters = KaryResponse(epsilon0, levels + 1), np.arange(levels + 1)
        for value in VALUES:
            law, decoded = letter_law(levels, epsilon0, value), decode(response, letters)
            assert law @ decoded == pytest.approx(value, abs=1e-12)

    def test_the_blanket_decodes_to_one_half_with_the_exact_variance(self, levels, epsilon0):
        response = KaryResponse(epsilon0, levels + 1)
        decoded = decode(response, np.arange(levels + 1))
        assert decoded.mean() == pytest.approx(0.5, abs=1e-12)
        assert coordinates.blanket_variance(response) == pytest.approx(decoded.var(), rel=1e-12)

    def test_samples_have_the_law_of_the_algorithm(self, levels, epsilon0):
        response, rng = KaryResponse(epsilon0, levels + 1), np.random.default_rng(levels)
        for value in (0.13, 1.0):
            counts = np.bincount(sample(response, np.full(20_000, value), rng), minlength=levels + 1)
            assert chisquare(counts, 20_000 * letter_law(levels, epsilon0, value)).pvalue > 1e-3


@pytest.mark.parametrize("shape", [20_001, (7, 3000), (0,)])
def test_the_laplace_blanket_has_its_law(shape):
    drawn = sample_blanket(LaplaceNoise(0.7), shape, np.random.default_rng(3))
    assert drawn.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert drawn.size == 0 or kstest(drawn.reshape(-1), laplace(0.5, 1 / 0.7).cdf).pvalue > 1e-3


def test_what_is_no_message_decodes_to_nan():
    odd = [math.nan, math.inf, -math.inf]
    assert np.isnan(decode(LaplaceNoise(1.0), odd)).all()
    assert np.isnan(decode(KaryResponse(1.0, 3), [*odd, -1, 3, 0.5])).all()
    assert np.isfinite(decode(KaryResponse(1.0, 3), [0.0, 1.0, 2.0])).all()


RANDOMIZERS = [LaplaceNoise(0.5), KaryResponse(0.5, 2), KaryResponse(1.0, 4), KaryResponse(1.0, 40)]


@pytest.mark.parametrize("randomizer", RANDOMIZERS, ids=repr)
class TestSums:
    COUNTS = np.array([0, 1, 3, 20])

    def test_sums_of_the_blanket_have_the_law_of_single_messages(self, randomizer):
        for_sums, for_messages = np.random.default_rng(1).spawn(2)
        counts = np.tile(self.COUNTS, 3000)
        direct = coordinates.centred_blanket_sums(randomizer, counts, for_sums).reshape(3000, -1)
        for j, count in enumerate(self.COUNTS):
            messages = sample_blanket(randomizer, (3000, count), for_messages)
            self.same_law(direct[:, j], (decode(randomizer, messages) - 0.5).sum(axis=1))

    def test_sums_of_reports_have_the_law_of_single_messages(self, randomizer):
        for_sums, for_messages = np.random.default_rng(2).spawn(2)
        places, values = np.array([2, 0, 2, 2]), np.array([0.1, 0.9, 0.35, 1.0])
        all_places = (places + 3 * np.arange(3000)[:, None]).reshape(-1)
        direct = coordinates.centred_sums(randomizer, all_places, np.tile(values, 3000), 9000, for_sums)
        direct = direct.reshape(3000, 3)
        messages = decode(randomizer, sample(randomizer, np.tile(values, (3000, 1)), for_messages)) - 0.5
        self.same_law(direct[:, 2], messages[:, places == 2].sum(axis=1))
        self.same_law(direct[:, 0], messages[:, 1])
        assert (direct[:, 1] == 0).all()

    def same_law(self, one, other):
        assert one.var() == pytest.approx(other.var(), rel=0.25, abs=1e-12)
        assert ks_2samp(one.round(9), other.round(9)).pvalue > 1e-3
