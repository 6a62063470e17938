"""What holds for every local randomizer, and for one that is given by its table: squeezed around enumerated truth."""

import itertools
import math
from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import shuffling as oracles
from oracles.tables import family, neighbours, normed, worst
from scipy.optimize import linprog

import flamelib
from flamelib.accounting.checkin.shuffled import shuffled_rounds
from flamelib.accounting.shuffling.accountant import shuffle_calibrate, table_account
from flamelib.accounting.shuffling.numerical import (
    all_equal,
    any_randomizer,
    blanket_divergence,
    clones_2021,
    exact_binary,
)
from flamelib.core.profiles import ClonedProfile, GaussianProfile, KaryProfile

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
        truth = float(worst(neighbours(normed(rows), n_users), epsilon0 * share))
        assert truth <= any_randomizer(epsilon0 * (1 + 1e-12), n_users, "upper", epsilon=epsilon0 * share) + 1e-15

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

    @settings(max_examples=20)
    @given(st.integers(0, 10**6), st.floats(0.1, 0.9), SHARES)
    def test_no_enumerated_round_of_users_who_may_be_absent_loses_more(self, seed, rate, share):
        # Absence is one more message, which all values send alike: who counts messages sees how many are absent.
        rows = np.array(extreme_table(np.random.default_rng(seed), 2, 3, math.e))
        rows = np.hstack([rate * rows, np.full((2, 1), 1 - rate)]).tolist()
        truth = float(worst(neighbours(normed(rows), 3), share))
        upper = shuffled_rounds(ClonedProfile(1.0 + 1e-12), 3, 1, epsilon=share, checkin_rate=rate)
        assert truth <= float(upper) * (1 + 1e-9) + 1e-15


def variable(points, p, alpha):
    """The proof's variable, value to probability: points are (mu_x, mu_x') of the messages and add up to (1, 1)."""
    chances = Counter()
    for a, b in points:
        chances[p * (a - alpha * b) / max(a, b)] += max(a, b) / p
    chances[Fraction(0)] += 1 - chances.total()
    return chances


def excess(chances, c):
    return sum(chance * max(value - c, 0) for value, chance in chances.items())


def mean_positive(chances, n_users):
    """Mean positive part of a sum of independent copies, over their number: the bound on the divergence."""
    sums = Counter({Fraction(0): Fraction(1)})
    for _ in range(n_users):
        longer = Counter()
        for (have, one), (value, two) in itertools.product(sums.items(), chances.items()):
            longer[have + value] += one * two
        sums = longer
    return excess(sums, 0) / n_users


def binary(p):
    return [(p / (p + 1), 1 / (p + 1)), (1 / (p + 1), p / (p + 1))]


class TestTheProofOfClonesForEveryRandomizer:
    @settings(max_examples=100)
    @given(
        st.integers(0, 10**6),
        st.sampled_from([Fraction(11, 10), Fraction(2), Fraction(3), Fraction(20)]),
        st.integers(1, 5),
        st.fractions(0, 1, max_denominator=20),
    )
    def test_its_variable_is_below_that_of_binary_response_in_convex_order(self, seed, p, letters, share):
        rng = np.random.default_rng(seed)
        alpha, points = 1 + share * (p - 1), []
        for _ in range(letters):
            mass, slope = (Fraction(int(whole), 12) for whole in rng.integers(0, 13, 2))
            high, low = (1 + mass), (1 + mass) * (1 / p + slope * (1 - 1 / p))
            points.append((high, low) if rng.random() < 0.5 else (low, high))
        lacks = sum(a - b for a, b in points) / (p - 1)  # one more point, on a line, evens out both sums
        points.append((lacks, p * lacks) if lacks > 0 else (-p * lacks, -lacks))
        total = sum(a for a, _ in points)
        points = [(a / total, b / total) for a, b in points if a]
        mine, worst_of_all = variable(points, p, alpha), variable(binary(p), p, alpha)
        for chances in (mine, worst_of_all):
            assert min(chances.values()) >= 0
            assert sum(value * chance for value, chance in chances.items()) == 1 - alpha
        # Both sides are linear between the values, so that no other c needs to be tried.
        assert all(excess(mine, c) <= excess(worst_of_all, c) for c in {*mine, *worst_of_all})

    def test_the_smallest_case_of_the_chapter(self):
        p, alpha, fifth = Fraction(3), Fraction(3, 2), Fraction(1, 5)
        ternary = variable([(3 * fifth, fifth), (fifth, 3 * fifth), (fifth, fifth)], p, alpha)
        assert ternary == {alpha: fifth, Fraction(-7, 2): fifth, -alpha: Fraction(1, 15), 0: Fraction(8, 15)}
        quarter = Fraction(1, 4)
        assert variable(binary(p), p, alpha) == {alpha: quarter, Fraction(-7, 2): quarter, 0: 2 * quarter}
        assert mean_positive(ternary, 2) == Fraction(11, 50)
        assert mean_positive(variable(binary(p), p, alpha), 2) == Fraction(9, 32)

    @pytest.mark.parametrize(("p", "alpha"), [(Fraction(3), Fraction(3, 2)), (Fraction(8), Fraction(2))])
    @pytest.mark.parametrize("n_users", [2, 3, 5, 9])
    def test_the_bound_is_what_is_answered_for_any_randomizer(self, p, alpha, n_users):
        bound = float(mean_positive(variable(binary(p), p, alpha), n_users))
        found = any_randomizer(math.log(p), n_users, "upper", epsilon=math.log(alpha))
        assert bound * (1 - 1e-14) <= found <= bound * (1 + 1e-9)


class TestTables:
    def test_a_small_chance_to_be_no_blanket_is_rounded_up(self):
        """What is left of a row beside the blanket cancels: in whole numbers, to the last digit."""
        half, rest = 0.4998723610458836, 0.0002552779082327674
        rows = [[half, rest, half], [0.4995109413983889, 0.000978117203222266, 0.4995109413983889]]
        truth = worst(neighbours(normed(rows), 4), 1.14284)
        assert truth <= table_account(rows, 4, "upper", epsilon=1.14284) <= truth * (1 + 1e-11)

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
        truth = worst(neighbours(family("kary", 1.0, 3), 6), 0.5)
        assert found == pytest.approx(float(truth), rel=1e-9)
        assert found <= truth
        assert oracles.kary_others(1.0, 3, 6, 0.5) < 0.99 * truth


class TestCalibration:
    def test_noise_of_a_gaussian(self):
        found = shuffle_calibrate("gaussian", 1000, 0.5, 1e-6).noise_std
        assert blanket_divergence(GaussianProfile(found), 1000, epsilon=0.5) <= 1e-6
        assert blanket_divergence(GaussianProfile(found * (1 - 5e-5)), 1000, epsilon=0.5) > 1e-6


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
