"""The ledger's checks of self check-in: right where the truth is known, and red where a formula is wrong."""

import math
from typing import Any

import pytest

from flamebook.claims import checkin as checks

FEW: dict[str, Any] = {"n_users": 4, "checkin_rate": 0.3, "epsilon0": 1.0}
NOISY: dict[str, Any] = {"n_users": 4, "checkin_rate": 0.4, "noise_std": 1.3}


def test_definitions_hold_on_small_laws() -> None:
    assert checks.gaussian_over_formula(3, 1.2) == pytest.approx(1, rel=1e-12)
    for seed in range(5):
        assert checks.adaptive_over_sum(5, 3, seed) <= 1


def test_the_way_to_a_budget_holds_and_the_way_back_does_not() -> None:
    for seed in range(5):
        assert 0 < checks.converted_over_asked(6, 0.05, range(2, 40), seed) <= 1
    assert checks.leaked_divergence(2, 1e-9) == math.inf
    assert checks.pure_over_lemma_3(8, 1.0, 1e-5) > 30


def test_counts_of_clients_are_bounded() -> None:
    for tail in ("lower_tail", "upper_tail"):
        assert 0 < checks.tail_over_bound(tail, 300, 0.2, 0.2) < 1
    assert 0 < checks.mean_over_split(2.0, 300, 0.2, 0.3) < 1


def test_a_round_of_binary_response() -> None:
    assert checks.count_distance(**FEW) < 1e-15
    assert checks.order_two_over_listed(**FEW) == pytest.approx(1, rel=1e-12)
    assert checks.theorem_1_over_listed(3, **FEW, inner="exact") == pytest.approx(1, rel=1e-12)
    assert checks.theorem_1_over_listed(3, **FEW, inner="paper") == pytest.approx(0.0840 / 0.1181, rel=1e-3)
    assert checks.theorem_1_ratio(2, 10, 0.3, 1.0) > 1
    assert checks.worst_over_equal(3, 1.0, 1.0, 0.0) > 1 + 1e-6
    assert checks.worst_over_equal(2, 0.3, 1.0, 0.1) == pytest.approx(1, rel=1e-12)


def test_theorem_2_needs_the_right_rate() -> None:
    rare: dict[str, Any] = {"n_users": 10, "checkin_rate": 1e-3, "epsilon0": 1.0}
    assert checks.order_two_over("checkin:thm-2", **rare, inner="paper") > 5
    assert checks.order_two_over("checkin:thm-2", **rare, inner="exact") < 1
    assert checks.binary_over("checkin:thm-2", 3, 50, 0.2, 1.0, inner="exact") < 1
    assert checks.binary_over("checkin:thm-3", 3, 50, 0.2, 1.0) > 1
    assert checks.sharper_over_exact(50, 0.2, 1.0) == pytest.approx(1, rel=1e-12)


def test_theorem_3_converted_is_no_lower_bound() -> None:
    """After a thousand rounds of ten million clients even any randomizer is certified to lose less."""
    given = {"n_users": 10**7, "checkin_rate": 1e-3, "rounds": 1000, "epsilon0": 1.0}
    assert checks.shuffled_over("checkin-any", "thm-3", **given) < 1


def test_accounts_of_all_rounds_are_in_order_and_have_the_values_of_the_figures() -> None:
    first = {"n_users": 10**6, "checkin_rate": 1e-3, "rounds": 10**5, "epsilon0": 1.0}
    order = ("lower", "checkin-any", "thm-2", "baseline-numerical", "baseline-closed")
    found = [checks.shuffled_epsilon(scheme, **first) for scheme in order]
    assert found == sorted(found)
    assert checks.shuffled_epsilon("thm-2-paper", **first) == pytest.approx(0.2237, rel=1e-3)
    second = {"n_users": 600_000, "checkin_rate": 1e-3, "rounds": 10**5, "noise_std": 1.0, "delta": 1e-8}
    expected = {"eq-11": 1.412, "eq-10": 0.8422, "eq-10-exact": 0.7618, "baseline-kov": 2.077, "renyi-cut": 0.1280}
    for scheme, epsilon in expected.items():
        assert checks.distributed_epsilon(scheme, **second) == pytest.approx(epsilon, rel=1e-3), scheme
    assert checks.distributed_over("losses", "renyi-cut", **second) < 1


def test_a_round_of_noisy_sums() -> None:
    assert checks.sums_over_listed(3, **NOISY) == pytest.approx(1, rel=1e-11)
    assert checks.largest_over_pair(2, 0.2, 1.5, 3) == pytest.approx(1, rel=1e-12)
    assert checks.sum_over("checkin:thm-4", 2, **NOISY, inner="exact") < 1
    assert checks.sum_over("checkin:thm-4", 2, 2, 0.01, 3.0, inner="paper") > 100
    assert checks.split_over_sum(4, 1000, 0.1, 2.0) >= 1
    assert checks.moment_without_nobody(2, 10, 0.01, 50.0) < 1
    for seed in range(3):
        assert checks.records_over_pair(**NOISY, epsilon=0.2, seed=seed) <= 1


def test_all_rounds() -> None:
    assert checks.kept_over_asked(**NOISY, delta=0.01) == pytest.approx(1, rel=1e-3)
    crowd: dict[str, Any] = {"n_users": 200, "checkin_rate": 0.1, "noise_std": 1.0}
    lower, upper = (find(100, 1.0, **crowd) for find in (checks.rounds_lower, checks.rounds_delta))
    assert lower <= 5.54027e-3 <= upper
    assert checks.uncounted_dropout(200, 0.1, 1.0, 1, 1e-6, 0.5) > 1.2
    assert checks.baseline_of_everybody(8.0, 10**7, 1e-4, 2000, 1e-7) < 0.02


@pytest.mark.parametrize("rule", ["checkin:strong-drv", "checkin:strong-kov"])
def test_rules_of_composition_hold_and_fail_where_they_are_shortened(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 < checks.composed_over_asked(rule, 0.1, 100, 1e-3) <= 1
    right = checks.evaluate
    monkeypatch.setattr(checks, "evaluate", lambda key, given, *field: right(key, given, *field) / 2)
    assert checks.composed_over_asked(rule, 0.1, 100, 1e-3) > 1
