"""Figures of the cloak protocol against what they must show, by other means."""

import math
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import kstest

from flamebook.figures.cloak import protocol
from flamebook.figures.curves import draw_curves
from flamebook.figures.style import LIGHT, look
from flamelib.accounting.splitting.crowds import users_distance
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.integers.noise import PolyaShare, TruncatedLaplace
from flamelib.protocols.cloak import CloakProtocol

NOISY = CloakProtocol(5, 151, 10, 3, noise=TruncatedLaplace(151, 0.7), noise_rate=0.5)


def drawn(record, draw):
    """Draw it; the labels that are to be seen."""
    figure, axes = plt.subplots()
    with look(LIGHT, "test") as pen:
        draw(axes, record, pen)
    labels = axes.get_legend_handles_labels()[1]
    plt.close(figure)
    return labels


def test_walks_end_where_they_should_and_are_uniform_before():
    walks = protocol.compute_walks(CloakProtocol(10, 1009, 100, 5), 0.5, 400, seed=3)
    assert set(walks.sums[:, -1]) == {50}
    for before in walks.sums.T[1:-1]:
        assert kstest((before + 0.5) / 1009, "uniform").pvalue > 1e-6
    few = protocol.compute_walks(CloakProtocol(10, 101, 10, 4), 0.5, 2, seed=3)
    assert drawn(few, protocol.draw_walks) == ["encoding 1", "encoding 2", "the scaled value"]
    assert few.to_csv().splitlines()[0] == "after 0,after 1,after 2,after 3,after 4"


def test_a_round_adds_up_at_every_step():
    values = [0.0, 0.25, 0.5, 0.75, 1.0]
    found = protocol.compute_round(NOISY, values, seed=5)
    shares = []
    for value, (shown, scaled, noise, listed, summed) in zip(values, found.users, strict=True):
        mine = [int(one) for one in listed.split(", ")]
        shares += mine
        assert (shown, scaled) == (value, math.floor(10 * value))
        assert summed == sum(mine) % 151 == (scaled + noise) % 151
    assert sorted(shares) == sorted(found.shuffled.tolist())
    assert found.total == sum(shares) % 151
    assert found.centred == pytest.approx(sum(row[1] + row[2] for row in found.users) / 10)
    assert found.clipped == min(max(found.centred, 0.0), 5.0)


def test_values_are_a_spike_and_messages_are_flat():
    seen = protocol.compute_seen(CloakProtocol(2000, 60_001, 10, 4), 0.31, 15, seed=2)
    assert seen.values.tolist() == [2000] + [0] * 14
    assert seen.messages.sum() == 8000
    assert np.abs(seen.messages - 8000 / 15).max() < 6 * math.sqrt(8000 / 15)
    assert seen.pvalues.shape == (4,)
    assert seen.uniform.holds
    assert replace(seen, pvalues=seen.pvalues * 1e-7).uniform.holds is False
    assert protocol.compute_seen(CloakProtocol(74, 60_001, 10, 4), 0.31, 15, seed=2).uniform.verdict == "says nothing"
    assert drawn(seen, protocol.draw_seen) == ["scaled values", "messages"]
    assert len(seen.to_csv().splitlines()) == 16


@pytest.mark.parametrize("whole_sum", [0, 25, 50])
def test_the_law_of_the_noisy_sum_is_that_of_simulated_rounds(whole_sum):
    reading = protocol.compute_reading(NOISY, whole_sum)
    assert reading.chance.sum() == pytest.approx(1)
    assert int(np.argmax(reading.chance)) == whole_sum
    assert float(reading.centred @ reading.chance) == pytest.approx(whole_sum / 10, abs=1e-3)
    assert (reading.clipped == np.clip(reading.centred, 0, 5)).all()
    assert "centred" in drawn(reading, protocol.draw_reading)


def test_the_law_needs_noise_that_is_known():
    with pytest.raises(DomainError, match="Laplace"):
        protocol.compute_reading(CloakProtocol(5, 151, 10, 3, noise=PolyaShare(5, 0.5)), 0)


def test_rounding_errors_follow_their_laws():
    found = protocol.compute_rounding(2000, [7, 70, 700], 60, seed=1).curves
    assert found["rounding-floor"] == pytest.approx(found["rounding-floor-law"], rel=0.02)
    assert found["rounding-random"] == pytest.approx(found["rounding-random-law"], rel=0.35)
    assert (found["rounding-random"] < found["rounding-floor"] / 20).all()


def test_one_honest_shuffler_sends_a_message_everywhere():
    rows = protocol.shuffler_rows(6, 300, seed=4)
    assert [row[1] for row in rows] == [1, 6, 6, 6, 6]
    assert rows[0][2] < 1e-12
    assert min(row[2] for row in rows[1:]) > 1e-6
    assert [found.holds for found in protocol.places_found(rows, 6, 300)] == [True, True]
    missed = [rows[0], *([*row[:1], 5, *row[2:]] for row in rows[1:])]
    assert protocol.places_found(missed, 6, 300)[1].numbers == "5 against 6"
    assert protocol.places_found(missed, 6, 30)[1].holds is None


def test_traffic_counts_messages_that_are_enough_and_not_too_many():
    messages, traffic = protocol.compute_traffic([100, 1000, 10**5], 100, 40.0)
    for n, m, megabytes in zip((100, 1000, 10**5), messages.curves["own-3"], traffic.curves["all-shares"], strict=True):
        modulus = 300 * n + 1
        assert users_distance(modulus, int(m), n) <= 2.0**-40 < users_distance(modulus, int(m) - 1, n)
        assert megabytes == pytest.approx(n * m * math.ceil(math.log2(modulus)) / 8e6)
    assert drawn(traffic, draw_curves) == ["shares of all users", "the scaled values alone"]
