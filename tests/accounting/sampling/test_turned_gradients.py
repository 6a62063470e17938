"""Lower bounds for gradients in any directions: against quadrature, enumeration and the exact line."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.sampling import adaptive_gradients as turned
from flamelib.core.divergences import hockey_stick


def test_one_record_is_the_gaussian_mechanism_sampled_at_both_levels() -> None:
    within = math.log1p(math.expm1(0.1) / 0.01)
    exact = 0.01 * gaussian_mechanism(1.0, 1.0, epsilon=within)
    found = turned.turned_gradients(0.1, 0.1, 1, 1.0, 1.0, 45, 0.1)
    assert found == pytest.approx(exact, rel=1e-5)
    assert found <= exact


@pytest.mark.parametrize(("n_records", "angle", "expected"), [(10, 30, 6.18e-4), (30, 60, 1.18e-3), (100, 90, 1.82e-3)])
def test_turned_gradients_exceed_aligned_ones(n_records: int, angle: float, expected: float) -> None:
    found = turned.turned_gradients(0.1, 0.1, n_records, 1.0, 1.0, angle, 0.1)
    assert found == pytest.approx(expected, rel=3e-3)
    assert found > 1.1 * turned.turned_gradients(0.1, 0.1, n_records, 1.0, 1.0, 0, 0.1)


@pytest.mark.parametrize("add", [False, True])
def test_boxes_by_direct_enumeration(add: bool) -> None:
    """Every subset of three records in the plane, both data sets, densities on a fine grid."""
    p, q, epsilon = 0.4, 0.3, 0.1
    gradients = np.array([[1.0, 0.2], [-0.4, 0.9], [0.6, -0.7]])
    x, y = np.meshgrid(np.arange(-7, 8, 0.05), np.arange(-7, 8, 0.05))

    def density(chosen: np.ndarray) -> np.ndarray:
        total = (1 - p) * norm.pdf(x) * norm.pdf(y)
        for drawn in product((0, 1), repeat=len(chosen)):
            chance = p * math.prod(q if one else 1 - q for one in drawn)
            centre = np.array(drawn) @ chosen
            total += chance * norm.pdf(x - centre[0]) * norm.pdf(y - centre[1])
        return total

    with_it, without = density(gradients), density(gradients[1:])
    pair = (without, with_it) if add else (with_it, without)
    truth = hockey_stick(pair[0].ravel() * 0.05**2, pair[1].ravel() * 0.05**2, epsilon)
    found = turned.draws_delta(turned.subset_draws(gradients, q), p, q, epsilon, add)
    assert found == pytest.approx(truth, rel=2e-3)


def test_three_dimensions_agree_with_the_plane_they_contain() -> None:
    flat = np.array([[1.0, 0.0, 0.0], [0.3, 0.8, 0.0], [-0.5, 0.4, 0.0]])
    turn = np.linalg.qr(np.array([[1.0, 2.0, 0.5], [0.3, -1.0, 0.7], [0.2, 0.1, 1.0]]))[0]
    plane, space = (
        turned.draws_delta(turned.subset_draws(each, 0.4), 0.5, 0.4, 0.1, add=False) for each in (flat, flat @ turn)
    )
    assert space == pytest.approx(plane, rel=0.02)
    assert space <= plane + plane.uncertainty


def test_small_chances_that_are_left_out_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (0.1, 0.1, 30, 1.0, 1.0, 50.0, 0.1)
    whole = turned.turned_gradients(*arguments)
    monkeypatch.setattr(turned, "MIN_ATOM", 1e-6)
    assert turned.turned_gradients(*arguments) < whole


def test_without_noise_to_speak_of_a_drawn_record_is_seen() -> None:
    assert turned.turned_gradients(0.1, 0.1, 3, 1e-9, 1.0, 20, 1.0) == pytest.approx(0.01, rel=1e-6)
    assert turned.turned_gradients(0.1, 0.1, 3, 1.0, 1e-300, 20, 1.0) == 0
    assert turned.turned_gradients(0.1, 0.1, 3, 1.0, 1.0, 20, 1e6) == 0
