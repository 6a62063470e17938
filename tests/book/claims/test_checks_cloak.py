"""The ledger's checks of cloak aggregation: right where the truth is known, and red where a formula is wrong."""

import math
from fractions import Fraction
from typing import Any

import pytest

from flamebook.claims import cloak as checks
from flamebook.claims import cloak_uses as learning


def test_messages_are_uniform() -> None:
    assert checks.left_out_distance(4, 3, 1) < 1e-15
    assert checks.relayed_distance(3, [0, 1, 0, 4]) < 1e-15
    assert checks.longest_chain(3, 2) == 2


def test_two_users() -> None:
    for n_messages, exact in ((2, Fraction(16, 25)), (3, Fraction(199, 625)), (4, Fraction(2216, 15625))):
        assert checks.swap_distance(5, n_messages) == pytest.approx(float(exact), rel=1e-12)
    assert checks.shares_distance(5, 3, [0, 0], [1, 0]) == pytest.approx(1, rel=1e-12), "the sum tells"
    assert checks.shares_distance(5, 3, [1], [2]) == pytest.approx(1, rel=1e-12), "and so do one user's messages"
    assert checks.identity_over_distance(4, 2, (0, 0), (1, 3)) == pytest.approx(1, rel=1e-12)
    assert 0.3 < checks.pair_over("cloak:own-1", 7, 4, (0, 0), (1, 6)) <= 1
    assert 0.05 < checks.pair_over("cloak:own-2", 7, 4, (0, 0), (1, 6), 0.3) <= 1
    assert checks.exact_over_listed(4, 3, (0, 1), (2, 3), 0.2) == pytest.approx(1, rel=1e-9)


def test_smooth_messages() -> None:
    assert checks.distinct_is_formula(7, 2, (0, 1))
    assert checks.unevenness([0, 1], 2) == 0
    assert checks.registered_over_unevenness(7, [0, 1, 2, 4, 5, 6]) == pytest.approx(1, rel=1e-12)
    assert 0 < checks.ratio_over_smooth(9, 4, (0, 0), (2, 7)) <= 1 + 1e-12


def test_lemma_1() -> None:
    assert checks.other_subsets_variance(5, 2, (1, 2), 4) == pytest.approx(2, rel=1e-12), "4 + 4 is 1 + 2"
    assert checks.other_subsets_variance(5, 2, (1, 2), 0) == pytest.approx(0.75, rel=1e-12)
    assert checks.other_subsets_over_claimed(3) == pytest.approx(18 / 18.475, rel=1e-4)
    assert min(checks.other_subsets_over_claimed(m) for m in range(4, 100)) > 1
    assert checks.least_failure_below_the_range(5) > 1
    assert max(checks.corollary_over_lemma(modulus) for modulus in (7, 63, 2737)) <= 1


def test_all_users() -> None:
    assert checks.crowd_distance(3, 2, 4) == pytest.approx(4 / 9, rel=1e-12)
    assert checks.crowd_distance(3, 3, 4) < checks.crowd_distance(3, 3, 3) < checks.crowd_distance(3, 3, 2)
    assert checks.crowd_over_pair(3, 3, (2,), 0.0) < 1
    assert checks.told_over_pair(3, 2, 0.2) == pytest.approx(1, rel=1e-12)
    assert 0.5 < checks.chain_over_steps(3, 2, 0.2) <= 1 + 1e-12
    assert 0.2 < checks.users_over(3, 4, 3) <= 1
    assert checks.users_over_listed(4, 2, 3) == pytest.approx(1, rel=1e-9)
    assert checks.security_left(40, 100, 20) >= 40 > checks.security(2**20, 14, 100)
    assert checks.fewest_messages(40, 100, 20) == 15


def test_noise() -> None:
    assert checks.pmf_over_powers(7, 0.5) < 1e-12
    assert checks.variance_over("cloak:def-tdl", 9, 0.5, "variance") == pytest.approx(1, rel=1e-12)
    assert 0 < checks.variance_over("cloak:lemma-8", 9, 0.5) <= 1
    assert checks.shift_over_power(9, 0.5) == pytest.approx(1, rel=1e-12)
    assert checks.squares_over_closed(0.5, 400) == pytest.approx(1, rel=1e-12)
    assert checks.polya_less_laplace(7, 0.8, 1024) < 1e-14
    for who in ("other", "same", "both"):
        assert checks.noisy_pair_over(9, 3, 2, 0.5, who) <= 1 + 1e-12
    assert 0.5 < checks.user_delta_over(3, 5, 1, 0.6, 0.2, 0.1) <= 1
    assert 0 < checks.transferred_over(3, 4, 2, 1, 0.5, 0.7) <= 1
    assert [checks.answered(z, 31, 2, 5) for z in (3, 10, 11, 20, 21)] == [1.5, 5, 5, 5, 0]
    assert checks.clipped_mean(31, 5, 2, 0.9, 0.5, 0) > 2


def test_rules() -> None:
    assert checks.thinned_mean(1, 10, 0.9, 1.0) == pytest.approx(2 * 0.9 / (1 - 0.81) / 10, rel=1e-4)
    assert checks.mean_noise(1.0, 1e-6, 1000) == pytest.approx(4.6916, rel=1e-4)
    assert checks.noise_ratio(1.0, 1e-6, 10**6, 900_000) == pytest.approx(math.sqrt(10), rel=1e-4)
    assert checks.tail_of_rule(1.0, 1e-6, 1000) == pytest.approx(1, rel=1e-9)
    assert checks.tail_of_rule(1.0, 1e-6, 10) > 90
    assert checks.least_failure_at_error(2) > 500
    assert checks.messages_at_error(2, 1.0, 1e-6) == 27
    wish: dict[str, Any] = {"n_users": 100, "epsilon": 1.0, "delta": 1e-6, "error": 2.0}
    assert checks.plan_distance("cloak:own-3", "Pólya", **wish) <= 1
    assert checks.plan_bits("cloak:own-3", "none", **wish) <= checks.plan_bits("cloak:best-1", "none", **wish)
    three = [31, 20, 28, 4, 23, 22]
    assert checks.even_ways(three, 37, 17, 17) == [1, 0, 1, 0, 0, 1, 0, 1, 1]


def test_costs() -> None:
    assert learning.shares_bits_over(3, 2**40, 7) == 1
    assert learning.secure_expansion(2**14, 2**24, 16) == pytest.approx(1.98, rel=3e-3)


def test_the_protocol_runs() -> None:
    assert learning.sum_is_floored(7, 101, 10, 3, seed=1)
    assert learning.last_closes(7, 101, 10, 3, seed=1)
    assert learning.signed_error(30, 2.0, 50, seed=1) <= 1
    assert all(learning.sealed_sum(reader, 6, 101, 10, 3, seed=1) for reader in ("shuffler", "analyzer"))
    assert learning.floor_loss(5000, 7, seed=1) == pytest.approx(1, rel=0.05)
    assert learning.all_refused([math.nan, -1e-9])
    assert not learning.all_refused([math.nan, 1.0])


def test_shortcuts_are_broken() -> None:
    assert learning.recovered_vectors(30, 3, 2**31 - 1, 2**10, 3, together=True) == 1
    assert learning.recovered_vectors(30, 3, 2**31 - 1, 2**22, 3, together=False) == 0
    assert learning.recovered_with_clear(50, 4, 2**40 - 87, 10**4, 1) == 1
    assert learning.recovered_from_stream(200, 8, 1024, system=False) == 1
    assert learning.recovered_from_stream(200, 8, 1024, system=True) == 0
    assert learning.seed_bits(4, 7850, 32, 256, 4) < learning.seed_bits(4, 7850, 32, 256, 3) < 0.26


def test_sketches() -> None:
    assert learning.count_min_failures(0.1, 0.1, 50, 5) <= 1
    assert learning.count_sketch_failures(0.2, 5, 50, 5) < 0.21
    assert learning.sign_moments([2, 1, 1], 1) == 1
    assert learning.sign_moments([1, 1, 1, 1], 2) == pytest.approx(1 - 4 / 16, rel=1e-12), "all but the fourth moment"
    assert learning.tree_rank_is_exact(4, 30, seed=2)
    assert learning.support_deviation(500, 100, 50) == pytest.approx(1, abs=0.6)
    assert learning.cauchy_norm(1000, 20, 5) == pytest.approx(1, abs=0.1)
    assert learning.stable_moment(0.7) == pytest.approx(1, rel=1e-9)


def test_learning() -> None:
    assert learning.in_order(["unprotected", "cloak", "double"], 2)
    assert not learning.in_order(["double", "cloak"], 2)
    assert learning.is_near("cloak", "server", 8, 0.5)
    assert not learning.is_near("simple", "cloak", 0.5, 0.5)
