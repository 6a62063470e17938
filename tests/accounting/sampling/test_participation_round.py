"""One round of random participation as a record: readings and baselines in order, and the noise that they ask for."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from flamelib.accounting.sampling.participation_round import ParticipationRound

FIVE = ParticipationRound(n_records=5)


def test_clients_of_several_sizes_lie_between_cs_and_wcs() -> None:
    for epsilon in (0.05, 0.2, 0.8):
        sizes = [replace(FIVE, n_records=size).delta("outer", epsilon) for size in (1, 5, 100)]
        values = [FIVE.delta("cs", epsilon), *sizes, FIVE.delta("wcs", epsilon), FIVE.delta("ols", epsilon)]
        assert all(low <= high * (1 + 1e-9) for low, high in pairwise(values))
        assert sizes[0] == pytest.approx(values[0], rel=1e-9)


def test_readings_around_the_lower_bound() -> None:
    ten = ParticipationRound(n_records=10)
    for epsilon in (0.05, 0.3):
        turned = ten.most_turned(epsilon)
        assert ten.delta("aligned", epsilon) * (1 - 1e-4) <= turned <= ten.delta("outer", epsilon)
        assert ten.delta("inner", epsilon) <= ten.delta("outer", epsilon)
    assert ten.delta("inner", 0.3) < ten.most_turned(0.3)


def test_a_right_angle_is_worse_for_large_clients_and_outer_is_never_exceeded() -> None:
    five, thirty = (
        [ParticipationRound(n_records=size).turned(angle, 0.1) for angle in (0, 90, 180)] for size in (5, 30)
    )
    assert thirty[1] > 5 * thirty[0]
    assert max(five) == five[0]
    assert max(thirty) <= ParticipationRound().delta("outer", 0.1)


@pytest.mark.parametrize("scheme", ["cs", "outer", "inner", "aligned", "wcs", "ols"])
def test_more_noise_protects_more_and_epsilon_is_the_inverse_of_delta(scheme: str) -> None:
    quieter = [replace(FIVE, noise_std=sigma) for sigma in (0.7, 1.5, 4.0)]
    assert (np.diff([one.delta(scheme, 0.1) for one in quieter]) < 0).all()
    assert (np.diff([one.epsilon(scheme, 1e-5) for one in quieter]) < 0).all()
    assert quieter[1].delta(scheme, quieter[1].epsilon(scheme, 1e-5)) == pytest.approx(1e-5, rel=1e-6)


def test_at_a_fixed_product_all_coincide_where_every_client_joins() -> None:
    joins = replace(FIVE, participation_rate=1.0, record_rate=0.01)
    found = [joins.delta(scheme, 0.1) for scheme in ("ols", "wcs", "outer", "cs", "inner")]
    assert found == pytest.approx([found[0]] * len(found), rel=1e-6)


def test_publishing_who_joins_gains_the_factor_p() -> None:
    for one in (FIVE, ParticipationRound(0.3, 0.02, 4, 0.7)):
        assert one.delta("wcs", 0.2) == pytest.approx(one.participation_rate * one.delta("ols", 0.2), rel=1e-10)


def test_calibrated_noise_of_the_experiments() -> None:
    """Independently computed values for the small clients, (epsilon', delta') = (0.001, 1e-6)."""
    noise = [
        ParticipationRound(0.01, 0.01, 30).noise(s, 1e-3, 1e-6)
        for s in ("cs", "outer", "inner", "aligned", "wcs", "ols")
    ]
    assert noise == pytest.approx((0.9749, 1.5125, 1.0578, 1.3698, 9.8278, 25.551), rel=1e-4)
