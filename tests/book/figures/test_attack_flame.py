"""The attack on SS-Topk that is carried out: rounds have the law of the count, and of a whole round."""

import math

import numpy as np
import pytest
from scipy.stats import binom, ks_2samp

from flamebook.attacks import flame as attack
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame


def test_rounds_follow_the_law():
    above = 1 - math.exp(-0.5) / 2
    for counts, chance in zip(attack.count_rounds(20, 30, 1.0, 3000, seed=5), (above, 1 - above), strict=True):
        law = np.convolve(binom.pmf(np.arange(581), 580, 0.5), binom.pmf(np.arange(21), 20, chance))
        mean = law @ np.arange(law.size)
        std = math.sqrt(law @ (np.arange(law.size) - mean) ** 2)
        assert abs(counts.mean() - mean) < 4 * std / math.sqrt(3000)
        assert counts.std() == pytest.approx(std, rel=0.06)


def whole_round(value, rng):
    """The count in a round with all its users and coordinates: the others' top coordinates lie elsewhere."""
    protocol = flame.FlameTopk(30, 16, 1.0, LaplaceNoise(2.0), kept=4, padded=8, multiples=1)
    updates = np.zeros((30, 16))
    updates[:, 4:] = rng.normal(size=(30, 12))
    updates[0] = np.where(np.arange(16) < 4, value, 0.0)
    reports = flame.user(protocol, updates, rng)
    assert (reports.places[reports.senders == 0] == np.arange(4)).all()
    return int((flame.shuffler(protocol, reports, rng).bags[:4] > 0.5).sum())


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_the_attacked_coordinates_alone_have_the_law_of_the_whole_round(value):
    rng = np.random.default_rng(8)
    whole = [whole_round(value, rng) for _ in range(1500)]
    part = attack._counts(4, 8, LaplaceNoise(2.0), value, 1500, rng)
    assert ks_2samp(whole, part).pvalue > 0.001
    other = attack._counts(4, 8, LaplaceNoise(2.0), -value, 1500, rng)
    assert ks_2samp(whole, other).pvalue < 1e-12, "the comparison has power"
