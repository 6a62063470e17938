"""Shuffled check-in against enumeration: upper never below any data sets, lower never above, both close."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import binom, laplace, norm

from flamelib.accounting.checkin import shuffled
from flamelib.accounting.checkin.shuffled import (
    checkin_shuffled,
    largest_epsilon0,
    shuffled_history,
    shuffled_history_lower,
    shuffled_rounds,
    shuffled_rounds_lower,
)
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.shuffling import exact_binary as binary
from flamelib.accounting.shuffling.discrete import checkin_profile, equal_cells, third_cells
from flamelib.accounting.shuffling.numerical import all_equal
from flamelib.accounting.shuffling.randomizers import round_curve
from flamelib.core.profiles import AnyProfile, ClonedProfile, GaussianProfile, KaryProfile, LaplaceProfile

WIDE = {"epsilon0": 2.0, "n_users": 60_000, "checkin_rate": 0.1, "rounds": 5540, "delta": 1 / 60_000}


# --- the shuffled histogram of a round, message by message ------------------------------------------


def response(held, epsilon0, k):
    low = 1 / (math.exp(epsilon0) + k - 1)
    return [low * math.exp(epsilon0) if bucket == held else low for bucket in range(k)]


def histogram(values, epsilon0, k, rate):
    """Law of the numbers of reports of each bucket."""
    law = {(0,) * k: 1.0}
    for held in values:
        grown = Counter()
        for counts, chance in law.items():
            grown[counts] += chance * (1 - rate)
            for bucket, report in enumerate(response(held, epsilon0, k)):
                more = tuple(count + (i == bucket) for i, count in enumerate(counts))
                grown[more] += chance * rate * report
        law = {counts: chance for counts, chance in grown.items() if chance}
    return law


def pairs(n, epsilon0, k, rate):
    """All pairs of neighbours up to the order of users: laws of a round."""
    for others in itertools.combinations_with_replacement(range(k), n - 1):
        for one, two in itertools.permutations(range(k), 2):
            yield tuple(histogram((*others, x), epsilon0, k, rate) for x in (one, two))


def stick(p, q, epsilon):
    """The hockey-stick divergence of two laws."""
    return sum(max(p.get(out, 0.0) - math.exp(epsilon) * q.get(out, 0.0), 0.0) for out in p.keys() | q.keys())


def product(one, two):
    return {(a, b): x * y for a, x in one.items() for b, y in two.items()}


def worst(n, epsilon0, k, rate, epsilon):
    return max(stick(p, q, epsilon) for p, q in pairs(n, epsilon0, k, rate))


CASES = list(itertools.product((2, 4), (0.5, 2.0), (2, 3), (0.2, 1.0)))


class TestOneRound:
    @pytest.mark.parametrize(("n", "epsilon0", "k", "rate"), CASES)
    def test_is_above_all_data_sets(self, n, epsilon0, k, rate):
        curves = [round_curve(KaryProfile(epsilon0, k), n, rate), round_curve(AnyProfile(epsilon0), n, rate)]
        for epsilon in (0.0, 0.05 * epsilon0, 0.3 * epsilon0, 0.9 * epsilon0):
            truth, most = worst(n, epsilon0, k, rate, epsilon), rate * math.tanh(epsilon0 / 2)
            for curve in curves:
                assert truth * (1 - 1e-9) <= curve.forward(epsilon) <= most * (1 + 1e-9)

    @pytest.mark.parametrize(("n", "rate", "k"), [(4, 0.3, 2), (4, 1.0, 2), (3, 0.6, 4), (3, 1.0, 3)])
    def test_equal_others_are_what_they_say(self, n, rate, k):
        cells = equal_cells(KaryProfile(1.0, k), n, rate)
        p, q = (histogram((*[1] * (n - 1), x), 1.0, k, rate) for x in (0, 1))
        for epsilon in (0.0, 0.02, 0.2, 0.6):
            assert cells.delta(epsilon) == pytest.approx(stick(p, q, epsilon), rel=1e-6)
            assert cells.swapped().delta(epsilon) == pytest.approx(stick(q, p, epsilon), rel=1e-6)

    @pytest.mark.parametrize(("n", "rate", "k"), [(3, 0.6, 3), (3, 1.0, 4), (2, 0.3, 3), (4, 1.0, 3)])
    def test_others_with_a_third_value_lose_no_more_than_they_do(self, n, rate, k):
        cells = third_cells(KaryProfile(1.5, k), n, rate)
        p, q = (histogram((*[2] * (n - 1), x), 1.5, k, rate) for x in (0, 1))
        for epsilon in (0.0, 0.02, 0.2, 0.6, 1.2):
            truth = stick(p, q, epsilon)
            assert (0.75 if rate == 1 else 0.25) * truth <= cells.delta(epsilon) <= truth * (1 + 1e-9)
            assert cells.swapped().delta(epsilon) == pytest.approx(cells.delta(epsilon), rel=1e-6, abs=1e-15)


class TestBinaryCheckIn:
    def test_blocks_and_chords(self):
        """The sum over every number of messages, term by term, with all others equal."""
        epsilon0, n, rate = 2.0, 3000, 0.1
        profile, spread = checkin_profile(epsilon0, n, rate), math.sqrt(n * rate * (1 - rate))
        messages = np.arange(int(n * rate - 7 * spread), int(n * rate + 7 * spread))
        for epsilon in (0.0, 0.01, 0.03):
            inner = np.log1p(n / messages * math.expm1(epsilon)).tolist()
            logs = [binary.at_the_end(epsilon0, m, at) for m, at in zip(messages.tolist(), inner, strict=True)]
            total = float((binom.pmf(messages, n, rate) * messages / n) @ np.exp(logs))
            assert total * (1 - 1e-9) <= profile(epsilon) <= 1.4 * total

    @pytest.mark.parametrize("n", [257, 756])
    def test_ceiling_is_above_every_data_set(self, n):
        for epsilon0, epsilon in itertools.product(
            (0.3, 1.0, 3.0, 4.486, 4.724, 7.0), (0.0, 0.01, 0.1, 0.25, 1.1809, 1.4247)
        ):
            found, truth = binary.ceiling(epsilon0, n, epsilon), binary.worst(epsilon0, n, epsilon).high
            assert truth <= found
            assert found <= binary.worst(epsilon0, int(0.99 * n) - 2, epsilon).high


# --- many rounds ------------------------------------------------------------------------------------


class TestManyRounds:
    @pytest.mark.parametrize(("n", "rate"), [(2, 0.5), (3, 1.0), (3, 0.2)])
    def test_two_adaptive_rounds(self, n, rate):
        """The second pair may depend on the first outcome: the best choice for each."""
        epsilon0, epsilon = 1.0, 0.4
        laws = list(pairs(n, epsilon0, 2, rate))
        truth = max(
            sum(max(p[out] * stick(*second, epsilon + math.log(q[out] / p[out])) for second in laws) for out in p)
            for p, q in laws
        )
        found = shuffled_rounds(KaryProfile(epsilon0, 2), n, 2, epsilon=epsilon, checkin_rate=rate)
        assert truth * (1 - 1e-9) <= found
        assert truth <= shuffled_rounds(AnyProfile(epsilon0), n, 2, epsilon=epsilon, checkin_rate=rate) * (1 + 1e-9)
        if rate == 1:
            assert found <= 1.1 * truth

    @pytest.mark.parametrize(("n", "rate"), [(3, 0.5), (4, 1.0)])
    def test_three_rounds_of_equal_others(self, n, rate):
        p, q = (histogram((*[1] * (n - 1), x), 1.0, 2, rate) for x in (0, 1))
        truth = max(
            stick(product(product(*[a] * 2), a), product(product(*[b] * 2), b), 0.3) for a, b in ((p, q), (q, p))
        )
        found = shuffled_rounds_lower(KaryProfile(1.0, 2), n, 3, epsilon=0.3, checkin_rate=rate)
        assert 0.8 * truth <= found <= truth * (1 + 1e-9)

    def test_settings_of_the_documents(self):
        """Below what explicit pairs on a grid of 1e-6 gave, 1.49850 and 1.09538, and above the lower value."""
        least = shuffled_rounds_lower(KaryProfile(2.0, 2), 60_000, 5540, delta=1 / 60_000, checkin_rate=0.1)
        assert least == pytest.approx(0.79964, rel=1e-4)
        assert least < checkin_shuffled(**WIDE, route="kary", n_buckets=2) < 0.83
        assert 1.47 < checkin_shuffled(**WIDE, route="clones") < 1.4985


def repeated(law, times):
    return law if times == 1 else product(law, repeated(law, times - 1))


def counted(chances, rate):
    """Law of how many are there and say one, how many there are: each says one with its chance, or is there silent."""
    law = {(0, 0): 1.0}
    for chance in chances:
        grown = Counter()
        for (ones, there), weight in law.items():
            grown[ones + 1, there + 1] += weight * chance
            grown[ones, there + 1] += weight * (rate - chance)
            grown[ones, there] += weight * (1 - rate)
        law = grown
    return law


def bits(ones, zeros, epsilon0):
    """Law of the number of reported ones."""
    law, q = np.ones(1), 1 / (1 + math.exp(epsilon0))
    for chance in [1 - q] * ones + [q] * zeros:
        law = np.convolve(law, [1 - chance, chance])
    return dict(enumerate(law.tolist()))


# --- in every setting -------------------------------------------------------------------------------


def rounds_of_equal_others(n, epsilon0, times, epsilon):
    """Logarithm of delta of many rounds of binary response, others alike: counts of every outcome, in logarithms."""
    p, q = (bits(n - 1 + x, 1 - x, epsilon0) for x in (1, 0))
    log_p, loss = np.log([p[out] for out in p]), np.log([p[out] / q[out] for out in p])
    counts = np.indices((times + 1,) * n).reshape(n, -1)
    counts = np.vstack([counts, times - counts.sum(0)])[:, counts.sum(0) <= times]
    found = []
    for sign, logs in ((1, log_p), (-1, log_p - loss)):
        excess = sign * (loss @ counts) - epsilon
        kept = excess > 1e-9
        chances = gammaln(times + 1) - gammaln(counts[:, kept] + 1).sum(0) + logs @ counts[:, kept]
        found.append(logsumexp(chances + np.log(-np.expm1(-excess[kept]))))
    return max(found)


class TestRoundsThatDiffer:
    @pytest.mark.parametrize("epsilon", [0.1, 0.6])
    def test_two_rounds_against_all_pairs_of_data_sets(self, epsilon):
        """A round of three users with binary response, one of two with ternary response whom coins send."""
        first, second = (3, 1.0, 2, 1.0), (2, 0.7, 3, 0.5)
        truth = max(stick(product(p, s), product(q, t), epsilon) for p, q in pairs(*first) for s, t in pairs(*second))
        history = [(KaryProfile(epsilon0, k), n, rate, 1) for n, epsilon0, k, rate in (first, second)]
        least, most = (ask(history, epsilon=epsilon) for ask in (shuffled_history_lower, shuffled_history))
        assert 0.8 * truth < least <= truth * (1 + 1e-9)
        assert truth * (1 - 1e-9) <= most < 1.4 * truth


class TestBothSides:
    def test_three_values_lose_more_than_two(self):
        """Of every randomizer of this budget some lose more than binary response; hardly less than is certified."""
        ask = {"n_users": 1000, "rounds": 10, "delta": 1e-6}
        two, three = (shuffled_rounds_lower(KaryProfile(2.0, k), **ask) for k in (2, 3))
        assert 1.2 * two < three <= shuffled_rounds(KaryProfile(2.0, 3), **ask) < 1.001 * three
        assert shuffled_rounds_lower(AnyProfile(2.0), **ask) == three
        alone = all_equal(KaryProfile(2.0, 10), 1000, delta=1e-6)
        assert shuffled_rounds_lower(KaryProfile(2.0, 10), 1000, 1, delta=1e-6) == pytest.approx(alone, rel=5e-3)

    @pytest.mark.parametrize(
        ("profile", "noise"), [(LaplaceProfile(2.0), laplace(scale=0.5)), (GaussianProfile(0.3), norm(scale=0.3))]
    )
    @pytest.mark.parametrize(("n", "rate", "epsilon"), [(3, 1.0, 0.5), (3, 0.4, 0.2)])
    def test_rounds_of_noise_read_in_halves(self, profile, noise, n, rate, epsilon):
        """Three rounds in which only the number of messages above 1/2 is looked at, all other users at 0."""
        above = [noise.sf(0.5 - held) for held in (0, 1)]
        p, q = (counted([rate * above[held] for held in (x, *[0] * (n - 1))], rate) for x in (1, 0))
        truth = max(stick(repeated(a, 3), repeated(b, 3), epsilon) for a, b in ((p, q), (q, p)))
        found = shuffled_rounds_lower(profile, n, 3, epsilon=epsilon, checkin_rate=rate)
        once = shuffled_rounds_lower(profile, n, 1, epsilon=epsilon, checkin_rate=rate)
        assert once < 0.9 * truth < found <= truth * (1 + 1e-9)

    @pytest.mark.parametrize("route", ["any", "clones", "kary", "laplace", "gaussian", "thm-2"])
    @pytest.mark.parametrize(("rate", "rounds"), [(0.4, 2)])
    def test_lower_is_below_upper(self, route, rate, rounds):
        setting = {"n_users": 300, "checkin_rate": rate, "rounds": rounds, "delta": 1e-5, "route": route,
                   "epsilon0": 1.0, "n_buckets": 4, "noise_std": 2.0}  # fmt: skip
        least, most = (checkin_shuffled(**setting, side=side) for side in ("lower", "upper"))
        assert 0 < least <= most
        alone = checkin_shuffled(**setting | {"rounds": 1})
        assert alone <= most

    def test_gaussian_rounds_cost_no_more_than_messages_that_are_seen(self):
        for noise_std, rounds in ((1.0, 3), (20.0, 3), (0.05, 2)):
            seen = gaussian_mechanism(1.0, noise_std / math.sqrt(rounds), delta=1e-300)
            assert shuffled_rounds(GaussianProfile(noise_std), 10, rounds, delta=1e-300) <= seen


class TestSmallDelta:
    @pytest.mark.parametrize(("n", "epsilon0", "times", "epsilon"), [
        (3, 0.3, 90, 20.0), (2, 0.3, 300, 80.0), (2, 0.3, 600, 172.0), (2, 1.0, 700, 690.0),
    ])  # fmt: skip
    def test_above_rounds_that_occur_and_close(self, n, epsilon0, times, epsilon):
        truth = rounds_of_equal_others(n, epsilon0, times, epsilon)
        assert truth < math.log(1e-21)
        found = shuffled_rounds(KaryProfile(epsilon0, 2), n, times, delta=math.exp(truth))
        assert epsilon * (1 - 1e-12) <= found <= 1.02 * epsilon
        back = shuffled_rounds(KaryProfile(epsilon0, 2), n, times, epsilon=epsilon)
        assert truth <= math.log(back)
        assert found < times * epsilon0


class TestEdges:
    @pytest.mark.parametrize("randomizer", [KaryProfile(1.5, 2), GaussianProfile(2.0)])
    def test_messages_that_hardly_ever_differ(self, monkeypatch, randomizer):
        # Seen by themselves, binary responses differ with chance (p - 1) / (p + 1), Gaussian noise at epsilon 0.
        p, noise = math.exp(1.5), gaussian_mechanism(1.0, 2.0, epsilon=0.0)
        least = 1e-3 * ((p - 1) / (p + 1) if isinstance(randomizer, KaryProfile) else noise)
        monkeypatch.setattr(shuffled, "round_curve", lambda *_: pytest.fail("composed"))
        for rounds in (1, 10):
            delta = rounds * least
            assert shuffled_rounds(randomizer, 300, rounds, delta=(1 + 1e-9) * delta, checkin_rate=1e-3) == 0
            with pytest.raises(pytest.fail.Exception, match="composed"):
                shuffled_rounds(randomizer, 300, rounds, delta=(1 - 1e-9) * delta, checkin_rate=1e-3)

    def test_rounds_of_messages_that_say_all_are_bounded_from_below(self):
        """Losses 0 and 700 of which the smaller is rare: no grid of their sum is short, but at a step beyond them."""
        assert 0 <= shuffled_rounds_lower(KaryProfile(700.0, 4), 300, 10**6, epsilon=0.3) <= 1


class TestCalibration:
    @pytest.mark.parametrize(("route", "rounds", "epsilon"), [("clones", 1000, 0.1)])
    def test_never_exceeds_the_target_and_is_close(self, route, rounds, epsilon):
        found = largest_epsilon0(10**5, 0.1, rounds, epsilon, 1e-6, route, 4)
        setting = {"n_users": 10**5, "checkin_rate": 0.1, "rounds": rounds, "delta": 1e-6, "route": route}
        reached = checkin_shuffled(epsilon0=found, **setting, n_buckets=4)
        assert 0.9975 * epsilon <= reached <= epsilon


@pytest.mark.parametrize("delta", [1e-18, 1e-40, 1e-238])
def test_one_round_far_out_costs_no_more_than_two(delta):
    """The few rounds in which hardly anybody checks in are likelier than such a delta: there the blanket answers."""
    one, two = (shuffled_rounds(KaryProfile(1.0, 2), 3 * 10**8, k, delta=delta, checkin_rate=1e-4) for k in (1, 2))
    assert 0.5 * two < one <= two


def test_an_epsilon_of_zero_is_found_where_delta_at_zero_is_small_enough():
    pair, delta = KaryProfile(0.5, 2), 6.182e-6
    assert shuffled_rounds(pair, 2 * 10**10, 4, epsilon=0.0) < delta
    assert shuffled_rounds(pair, 2 * 10**10, 4, delta=delta) == 0


def test_a_single_largest_loss_does_not_hide_the_lower_end():
    """Below the chance of the largest sum of losses the answer lies within some nats of it."""
    setting = {"n_users": 82, "checkin_rate": 0.5162, "delta": 4e-4}
    low = shuffled_rounds_lower(AnyProfile(6.35284), rounds=9, **setting)
    assert 0.97 < low / shuffled_rounds(ClonedProfile(6.35284), rounds=9, **setting) <= 1


def test_a_budget_beyond_the_numerics_is_answered_as_if_unshuffled_and_says_so():
    found = shuffled_rounds(AnyProfile(200.0), 3 * 10**7, 1, epsilon=195.0, checkin_rate=4e-4)
    assert found == pytest.approx(4e-4 * -math.expm1(-5.0))
    assert found.uncertainty == found


@pytest.mark.parametrize(
    ("rate", "rounds", "delta", "epsilon0"),
    [(1e-250, 2, 1e-300, 300), (1e-200, 100, 1e-290, 300), (1e-290, 5, 1e-295, 80)],
)
def test_losses_whose_slopes_doubles_do_not_hold_are_not_lost(rate, rounds, delta, epsilon0):
    """Two users: a message seen is all but told, and the chance to be there is far above delta."""
    found = shuffled_rounds(KaryProfile(epsilon0, 2), 2, rounds, delta=delta, checkin_rate=rate)
    assert 0.99 * epsilon0 < found <= rounds * epsilon0


@pytest.mark.parametrize(("n_users", "epsilon0", "rounds"), [(3, 1.0, 1), (4, 10.0, 1), (3, 1.0, 3)])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10, 1e-30])
def test_the_lower_end_does_not_vanish_as_delta_does(n_users, epsilon0, rounds, delta):
    found = shuffled_rounds_lower(KaryProfile(epsilon0, 2), n_users, rounds, delta=delta)
    assert 0.9 * rounds * epsilon0 < found <= rounds * epsilon0
