"""The ledger's checks of random participation: right where the truth is known, and red where a formula is wrong."""

from typing import Any

import pytest

from flamebook.claims import participation as checks

FIVE: dict[str, Any] = {"participation_rate": 0.1, "record_rate": 0.1, "n_records": 5}


def test_tools_hold_on_small_laws() -> None:
    for seed in range(5):
        assert checks.event_over_divergence(6, 0.2, seed) == pytest.approx(1, rel=1e-12)
        assert checks.privacy_is_divergence(6, 0.2, seed)
        assert checks.convexity_gap(6, 0.2, 0.3, seed) < 1e-12


def test_formulas_agree_with_quadrature() -> None:
    assert checks.gaussian_over_registry(1.0, 0.8, 0.7) == pytest.approx(1, rel=1e-9)
    assert checks.outer_over_quadrature(0.1, **FIVE) == pytest.approx(1, rel=1e-8)
    assert checks.add_over_quadrature(0.002, **FIVE) == pytest.approx(1, rel=1e-8)
    assert checks.aligned_over_quadrature(0.1, **FIVE) == pytest.approx(1, rel=1e-8)
    for scheme in ("ols", "wcs", "cs"):
        assert checks.scheme_over_quadrature(scheme, 0.1, **FIVE) == pytest.approx(1, rel=1e-8)


def test_sampling_is_tight_and_an_average_is_not_a_sum() -> None:
    assert checks.sampled_over_bound(0.2, 1.3, 0.05) == pytest.approx(1, rel=1e-8)
    assert checks.average_change(50, 0.1) == pytest.approx(5)
    assert checks.average_change(1, 1.0) == pytest.approx(1)


def test_the_public_scale_is_unbiased_and_another_is_not() -> None:
    assert checks.estimate_bias(0.3, 0.4, [1, 3, 2], "all") < 1e-12
    assert checks.estimate_bias(0.3, 0.4, [1, 3, 2], "drawn") > 0.1


def test_dividing_by_the_true_size_gives_the_size_away() -> None:
    rates = {"participation_rate": 0.1, "record_rate": 0.1}
    assert checks.true_size_over_bound(5, 0.1, **rates) > checks.true_size_over_bound(30, 0.1, **rates) > 1


def test_searches_and_angles() -> None:
    assert 0.1 < checks.searched_over_bound(3, 1, 1) <= 1
    assert checks.terms_fall_with_the_angle([1, 3], 0.1, 4)
    assert checks.outer_holds_at_every_angle([5], 0.1, 3)
    assert checks.gram_order_holds(5, 2)
    assert checks.turned_over("aligned", 60, 0.1, n_records=30) > 5


def test_the_five_claims_hold_for_outer_and_one_that_fails_is_seen() -> None:
    """Aligned gradients vanish as records are added, where the text says the theorem grows to WCS."""
    grid = [FIVE | {"n_records": 10}, FIVE | {"participation_rate": 0.5, "noise_std": 2.0}]
    assert all(checks.margin(claim, [0.02, 0.4], grid) >= 1 - 1e-9 for claim in range(5))
    assert checks.margin(2, [0.1], [FIVE | {"n_records": 10}], "aligned") < 0.5
