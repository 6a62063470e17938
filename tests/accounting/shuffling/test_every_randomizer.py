"""What holds for every local randomizer, and for one that is given by its table: squeezed around enumerated truth."""

import itertools
import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from oracles import shuffling as oracles
from oracles.tables import neighbours, normed, worst
from scipy.optimize import linprog

import flamelib
from flamelib.accounting.checkin.shuffled import shuffled_rounds, shuffled_rounds_lower
from flamelib.accounting.checkin.surveys import shuffle_calibrate, table_account
from flamelib.accounting.shuffling import tables
from flamelib.accounting.shuffling.numerical import (
    all_equal,
    any_randomizer,
    blanket_divergence,
    clones_2021,
    exact_binary,
)
from flamelib.core.profiles import AnyProfile, ClonedProfile, GaussianProfile, KaryProfile, LaplaceProfile, TableProfile

SHARES = st.floats(0.0, 0.95)


def extreme_table(rng, values, letters, growth):
    """A vertex of the randomizers of a budget: every column has two entries, ``growth`` times apart."""
    pattern = np.where(rng.random((values, letters)) < 0.5, growth, 1.0)
    found = linprog(-rng.random(letters), A_eq=pattern, b_eq=np.ones(values), bounds=(0, None))
    rows = pattern * found.x if found.status == 0 else rng.uniform(1, growth, (values, letters))
    rows = rows[:, rows.sum(axis=0) > 1e-9]
    return (rows / rows.sum(axis=1, keepdims=True)).tolist()


class TestEveryRandomizer:
    @settings(max_examples=30)
    @given(st.integers(0, 10**6), st.sampled_from([(2, 3, 3), (3, 3, 3), (3, 4, 2), (2, 4, 4)]), SHARES)
    def test_no_enumerated_randomizer_loses_more(self, seed, shape, share):
        values, letters, n_users = shape
        rng = np.random.default_rng(seed)
        rows = extreme_table(rng, values, letters, math.exp(rng.choice([0.2, 1.0, 2.5])))
        columns = np.array(rows).T
        epsilon0 = max(math.log(max(column) / min(column)) for column in columns)
        if epsilon0 < 1e-6 or len(columns) < 2:
            return
        truth = float(oracles.worst_shuffled(rows, n_users, epsilon0 * share))
        assert truth <= any_randomizer(epsilon0 * (1 + 1e-12), n_users, "upper", epsilon=epsilon0 * share) + 1e-15

    def test_the_convex_order_on_which_it_rests(self):
        """Against every randomizer of three letters: each stop-loss of its variable is below that of binary response.

        With the pair's own blanket ``max / p`` the variable is ``p (a - alpha b) / max(a, b)`` at a letter of
        probabilities a and b, and 0 with what is left of the chance.
        """
        rng = np.random.default_rng(1)
        for _ in range(200):
            p = math.exp(rng.uniform(0.1, 3))
            rows = np.array(extreme_table(rng, 2, 3, p))
            p = float(max((rows[0] / rows[1]).max(), (rows[1] / rows[0]).max()))
            alpha = 1 + rng.uniform(0, p - 1)
            larger = rows.max(axis=0)
            mine = [
                *zip((p * (rows[0] - alpha * rows[1]) / larger), larger / p, strict=True),
                (0, 1 - larger.sum() / p),
            ]
            coin = [(p - alpha, 1 / (p + 1)), (1 - alpha * p, 1 / (p + 1)), (0, 1 - 2 / (p + 1))]
            for level in np.linspace(1 - alpha * p, p - alpha, 25):
                above, most = (sum(w * max(x - level, 0) for x, w in law) for law in (mine, coin))
                assert above <= most * (1 + 1e-9) + 1e-12

    @pytest.mark.parametrize(
        ("epsilon0", "n_users", "delta", "binary", "ternary", "clones"),
        [
            (0.5, 10**4, 1e-6, 0.01618, 0.01523, 0.02040),
            (1.0, 10**4, 1e-6, 0.03566, 0.03800, 0.05301),
            (2.0, 10**6, 1e-8, 0.00971, 0.01229, 0.01756),
            (4.0, 10**8, 1e-10, 0.003501, 0.004921, 0.007052),
        ],
    )
    def test_between_the_worst_known_and_clones_of_2021(self, epsilon0, n_users, delta, binary, ternary, clones):
        lower = any_randomizer(epsilon0, n_users, "lower", delta=delta)
        upper = any_randomizer(epsilon0, n_users, "upper", delta=delta)
        assert lower == pytest.approx(max(binary, ternary), rel=1e-3)
        assert lower <= upper < clones_2021(epsilon0, n_users, delta=delta) == pytest.approx(clones, rel=1e-3)
        assert upper < lower * 1.23

    @pytest.mark.parametrize(("rounds", "rate"), [(1, 0.3), (4, 1.0), (4, 0.3)])
    def test_rounds_and_those_who_check_in(self, rounds, rate):
        ternary = KaryProfile(1.5, 3)
        lower = shuffled_rounds_lower(ternary, 400, rounds, delta=1e-6, checkin_rate=rate)
        upper = shuffled_rounds(ClonedProfile(1.5), 400, rounds, delta=1e-6, checkin_rate=rate)
        assert (
            0.9 * upper < lower <= upper < shuffled_rounds(AnyProfile(1.5), 400, rounds, delta=1e-6, checkin_rate=rate)
        )

    @settings(max_examples=20)
    @given(st.integers(0, 10**6), st.floats(0.1, 0.9), SHARES)
    def test_no_enumerated_round_of_users_who_may_be_absent_loses_more(self, seed, rate, share):
        # Absence is one more message, which all values send alike: who counts messages sees how many are absent.
        rows = np.array(extreme_table(np.random.default_rng(seed), 2, 3, math.e))
        rows = np.hstack([rate * rows, np.full((2, 1), 1 - rate)]).tolist()
        truth = float(oracles.worst_shuffled(rows, 3, share))
        upper = shuffled_rounds(ClonedProfile(1.0 + 1e-12), 3, 1, epsilon=share, checkin_rate=rate)
        assert truth <= float(upper) * (1 + 1e-9) + 1e-15

    @settings(max_examples=10)
    @given(st.floats(0.05, 6), st.integers(2, 400), SHARES)
    def test_lower_below_upper_in_delta(self, epsilon0, n_users, share):
        lower, upper = (
            any_randomizer(epsilon0, n_users, side, epsilon=epsilon0 * share) for side in ("lower", "upper")
        )
        assert lower <= upper
        assert lower >= all_equal(KaryProfile(epsilon0, 3), n_users, epsilon=epsilon0 * share)
        assert lower >= exact_binary(epsilon0, n_users, epsilon=epsilon0 * share) * (1 - 1e-6)


class TestTables:
    @settings(max_examples=25)
    @given(st.integers(0, 10**6), st.sampled_from([(2, 2, 4), (3, 3, 3), (3, 4, 2), (4, 2, 4)]), SHARES)
    def test_truth_lies_between(self, seed, shape, share):
        values, letters, n_users = shape
        rows = np.random.default_rng(seed).dirichlet(np.ones(letters), values) + 0.02
        rows = (rows / rows.sum(axis=1, keepdims=True)).tolist()
        epsilon = TableProfile(rows).epsilon0 * share
        truth = float(oracles.worst_shuffled(rows, n_users, epsilon))
        lower, upper = (table_account(rows, n_users, side, epsilon=epsilon) for side in ("lower", "upper"))
        assert lower <= truth <= upper
        assert lower == pytest.approx(truth, rel=1e-9, abs=1e-14)  # every data set was enumerated

    def test_a_small_chance_to_be_no_blanket_is_rounded_up(self):
        """What is left of a row beside the blanket cancels: in whole numbers, to the last digit."""
        half, rest = 0.4998723610458836, 0.0002552779082327674
        rows = [[half, rest, half], [0.4995109413983889, 0.000978117203222266, 0.4995109413983889]]
        truth = worst(neighbours(normed(rows), 4), 1.14284)
        assert truth <= table_account(rows, 4, "upper", epsilon=1.14284) <= truth * (1 + 1e-11)

    def test_every_pair_counts(self):
        """Two values that are alike, and one that is not: the order of the rows does not matter."""
        rows = [[0.3, 0.3, 0.4], [0.3, 0.31, 0.39], [0.6, 0.2, 0.2]]
        answers = {
            side: {
                round(float(table_account(order, 2000, side, delta=1e-6)), 9) for order in itertools.permutations(rows)
            }
            for side in ("lower", "upper")
        }
        assert [len(found) for found in answers.values()] == [1, 1]
        assert min(answers["lower"]) < min(answers["upper"]) < 2 * min(answers["lower"])

    @pytest.mark.parametrize("n_buckets", [2, 3, 5])
    def test_the_table_of_kary_response_is_kary_response(self, n_buckets):
        profile = KaryProfile(1.5, n_buckets)
        rows = [[float(x) for x in row] for row in oracles.kary_rows(1.5, n_buckets)]
        for n_users in (50, 5000):
            assert table_account(rows, n_users, "upper", delta=1e-6) == pytest.approx(
                blanket_divergence(profile, n_users, delta=1e-6), rel=1e-6
            )
            assert table_account(rows, n_users, "lower", delta=1e-6) == pytest.approx(
                all_equal(profile, n_users, delta=1e-6), rel=2e-2
            )

    def test_many_values_in_a_moment_and_rounds_add(self):
        rows = np.random.default_rng(3).uniform(0.5, 1, (12, 12))
        rows = (rows / rows.sum(axis=1, keepdims=True)).tolist()
        one, ten = (table_account(rows, 10**5, "upper", delta=1e-8, rounds=rounds) for rounds in (1, 10))
        assert one < ten < 10 * one + 0.2
        assert table_account(rows, 10**5, "lower", delta=1e-8, rounds=10) <= ten

    @pytest.mark.parametrize("seed", range(12))
    def test_local_budgets_that_add_are_never_too_small(self, seed):
        """Without any failure, and just below the budget, in whole numbers: one more round-off would be too many."""
        rng = np.random.default_rng(seed)
        tables_of, truths = [], []
        for _ in range(2):
            rows = rng.dirichlet(np.ones(3), 3)
            exact = normed(rows.tolist())
            ratio = max(max(column) / min(column) for column in zip(*exact, strict=True))
            digits = Context(prec=60)
            truths.append(digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).ln(digits))
            tables_of.append(flamelib.Shuffled(flamelib.TableRandomizer(rows.tolist()), n_users=100))
        one, two = tables_of
        for protocol, truth, rounds in (
            (flamelib.Checkin(one, rate=0.5), truths[0], 1),
            (flamelib.Checkin(one, rate=0.5), truths[0], 3),
            (one, truths[0], 1),
            (one, truths[0], 7),
            (flamelib.Rounds([(one, 1), (two, 2)]), truths[0] + 2 * truths[1], 1),
        ):
            most = rounds * truth
            assert Decimal(flamelib.account(protocol, delta=0, rounds=rounds).epsilon) >= most
            below = float(most)
            below = below if Decimal(below) < most else math.nextafter(below, 0)
            assert flamelib.account(protocol, epsilon=below, rounds=rounds).delta > 0


class TestMixedOthers:
    def test_the_case_that_all_others_equal_misses(self):
        found = all_equal(KaryProfile(1.0, 3), 6, epsilon=0.5)
        truth = oracles.worst_shuffled(oracles.kary_rows(1.0, 3), 6, 0.5)
        assert found == pytest.approx(float(truth), rel=1e-9)
        assert found <= truth
        assert oracles.kary_others(1.0, 3, 6, 0.5) < 0.99 * truth

    def test_histograms_and_their_chances(self):
        rows = np.random.default_rng(0).dirichlet(np.ones(3), 4)
        found = tables.enumerated(rows, 4, [(0, 3)])
        truth = max(
            oracles.shuffled(rows.tolist(), others, (0, 3), 0.2)
            for others in itertools.combinations_with_replacement(range(4), 3)
        )
        assert found(0.2).low <= mp.log(truth) <= found(0.2).high <= found(0.2).low + 1e-10


class TestCalibration:
    @pytest.mark.parametrize(
        ("kind", "bucket", "account"),
        [
            ("kary", {"n_buckets": 10}, lambda e, **at: blanket_divergence(KaryProfile(e, 10), 10_000, **at)),
            ("laplace", {}, lambda e, **at: blanket_divergence(LaplaceProfile(e), 10_000, **at)),
            ("any", {}, lambda e, **at: any_randomizer(e, 10_000, "upper", **at)),
        ],
    )
    def test_the_largest_that_keeps_the_budget(self, kind, bucket, account):
        found = shuffle_calibrate(kind, 10_000, 0.1, 1e-6, **bucket).epsilon0
        assert account(found, epsilon=0.1) <= 1e-6
        assert account(found * (1 + 2e-7), epsilon=0.1) > 1e-6

    def test_noise_of_a_gaussian(self):
        found = shuffle_calibrate("gaussian", 1000, 0.5, 1e-6).noise_std
        assert blanket_divergence(GaussianProfile(found), 1000, epsilon=0.5) <= 1e-6
        assert blanket_divergence(GaussianProfile(found * (1 - 2e-7)), 1000, epsilon=0.5) > 1e-6

    def test_rounds_and_checkins_cost_less_budget(self):
        once, often, rarely = (
            shuffle_calibrate("kary", 10_000, 0.5, 1e-6, n_buckets=4, rounds=rounds, checkin_rate=rate).epsilon0
            for rounds, rate in ((1, 1.0), (20, 1.0), (20, 0.1))
        )
        assert often < once
        assert often < rarely


def test_the_oracle_of_clones_agrees():
    """The upper side is the divergence of the clone pair of probability 2/(p + 1), by its own enumeration."""
    epsilon0 = mpf(1)
    mass = 2 / (mp.exp(epsilon0) + 1)
    truth = oracles.clone_pair(epsilon0, 7, mpf("0.3"), mass)
    assert float(any_randomizer(1.0, 7, "upper", epsilon=0.3)) == pytest.approx(float(truth), rel=1e-9)


class TestFarOut:
    def test_as_much_noise_as_a_double_holds(self):
        loud = GaussianProfile(4e273)
        assert 0 <= blanket_divergence(loud, 1000, epsilon=1e-9) <= 1e-6
        assert 0 <= blanket_divergence(loud, 1000, delta=1e-6) <= 1e-4
        assert all_equal(loud, 1000, delta=1e-6) == 0

    def test_a_crowd_of_tiny_delta(self):
        found = blanket_divergence(KaryProfile(2.214, 143538), 4, delta=2.37e-114)
        assert 0 < found <= 2.214
        found = flamelib.calibrate(
            flamelib.Shuffled(flamelib.KaryResponse(2.214, 143538), 331374),
            epsilon=1.682,
            delta=2.37e-114,
            over="n_users",
        )
        assert found.guarantee.epsilon <= 1.682


def test_crowds_beyond_the_digits_of_a_double_are_answered_by_the_blanket():
    n_users = 9 * 10**15
    found = exact_binary(30.0, n_users, delta=1e-6)
    assert found <= blanket_divergence(KaryProfile(30.0, 2), n_users, delta=1e-6) < 0.19
