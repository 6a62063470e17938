"""The worst points of rounds with check-in: histograms and noisy sums whose laws are listed, composed by a referee."""

import itertools
import math

import numpy as np
import pytest
from attacks.boxes import Axis, hunt
from mpmath import mp
from oracles.checkin import exact_delta
from oracles.rounds import noisy_sum, shuffled
from oracles.rounds import summed as referee

from flamelib import AnyRandomizer, Checkin, KaryResponse, Rounds, Shuffled, Summed, account, bounds
from flamelib.accounting.checkin import distributed_noise
from flamelib.accounting.checkin.distributed_noise import distributed_rounds, distributed_rounds_lower
from flamelib.accounting.composition.dominating_pair import composed_below
from flamelib.accounting.shuffling.discrete import checkin_profile, equal_cells, third_cells
from flamelib.core.profiles import KaryProfile

GRID = 1e-4  # relative: what the referee's own sums may be wrong by


def rows(epsilon0, letters):
    law = np.ones((letters, letters)) + math.expm1(epsilon0) * np.eye(letters)
    return law / law.sum(1, keepdims=True)


def part(epsilon0, letters, n_users, rate):
    """A protocol and the laws of its messages for a few explicit data sets, both directions of each."""
    whole = Shuffled(KaryResponse(epsilon0, letters), n_users)
    tables = rows(epsilon0, letters)
    laws = [law for held in ((1,), (1, 2))[letters - 2] for law in shuffled(tables, held, 0, 1, n_users, rate)]
    return (whole if rate == 1 else Checkin(whole, rate)), laws


def one_binary_round(epsilon0, n_users, epsilon):
    """Delta of one round of binary response, with any number of ones among the other users."""
    truth = 1 / (1 + math.exp(-epsilon0))
    others = np.ones((1, 1))
    for _ in range(n_users - 1):  # a row for each number of ones that the others hold
        zero = [np.convolve(row, (truth, 1 - truth)) for row in others]
        others = np.array([*zero, np.convolve(others[-1], (1 - truth, truth))])
    ends = [[np.convolve(row, law) for row in others] for law in ((1 - truth, truth), (truth, 1 - truth))]
    return float(np.maximum(np.subtract(ends[0], math.exp(epsilon) * np.array(ends[1])), 0).sum(1).max())


# Of each of two kinds of rounds: local budget, letters, users, how often people come, how many rounds; then epsilon.
KIND = [Axis(0.2, 4, log=True), Axis(2, 3, whole=True), Axis(2, 16, whole=True), Axis(0.02, 1.3),
        Axis(1, 5, whole=True)]  # fmt: skip
FAINT = 1e-15  # a smaller delta lies beyond a referee's grid of points


def test_rounds_that_differ_lie_between_both_ends():
    def miss(*place):
        kinds = [(e, int(k), int(n), min(rate, 1.0), int(times)) for e, k, n, rate, times in (place[:5], place[5:10])]
        found = [part(*kind[:4]) for kind in kinds]
        protocol = Rounds([(one, kind[4]) for (one, _), kind in zip(found, kinds, strict=True)])
        epsilon = place[10] * sum(kind[0] * kind[4] for kind in kinds) / 2
        step = max(float(np.abs(law[0]).max()) for _, laws in found for law in laws) / 2**11
        ends = [
            referee([(law, kind[4]) for law, kind in zip(laws, kinds, strict=True)], epsilon, step)
            for laws in itertools.product(*(laws for _, laws in found))
        ]
        # One round alone may tell more where the others are mixed, as in binary response at epsilon 0.
        mixed = [one_binary_round(e, n, epsilon) for e, letters, n, rate, _ in kinds if letters == 2 and rate == 1]
        low, high = max(*(low for low, _ in ends), *mixed), max(*(high for _, high in ends), *mixed)
        if low < 1e-60:
            return -math.inf
        found = bounds(protocol, epsilon=epsilon)
        lower, upper = found.lower, found.upper
        return (max(math.log(low / upper), math.log(lower / high) if lower else -math.inf) - GRID) / GRID

    worst = hunt(miss, [*KIND, *KIND, Axis(0, 1)], seed=1, tries=2, starts=1)
    assert worst.miss <= 0, worst


def test_count_by_count_is_above_explicit_data_sets():
    """Binary response in blocks of counts; all others hold one value, the victim's one or the other."""

    def miss(epsilon0, n_users, rate, place):
        epsilon, high = place * epsilon0, checkin_profile(epsilon0, int(n_users), rate)(place * epsilon0)
        laws = [law for held in (0, 1) for law in shuffled(rows(epsilon0, 2), held, 0, 1, int(n_users), rate)]
        low = max(float(masses @ -np.expm1(np.minimum(epsilon - losses, 0.0))) for losses, masses in laws)
        return math.log(low / high) if low > 1e-60 else -math.inf

    axes = [Axis(0.2, 4, log=True), Axis(5, 120, log=True, whole=True), Axis(0.05, 0.95), Axis(0, 0.95)]
    worst = hunt(miss, axes, seed=6, tries=20, starts=3)
    assert worst.miss <= 0, worst


def test_any_randomizer_is_not_beaten_by_an_explicit_one():
    def miss(epsilon0, letters, n_users, rate, rounds, place):
        letters, n_users, rounds, rate = int(letters), int(n_users), int(rounds), min(rate, 1.0)
        _, laws = part(epsilon0, letters, n_users, rate)
        epsilon = place * epsilon0 * rounds
        step = max(float(np.abs(law[0]).max()) for law in laws) / 2**11
        low = max(referee([(law, rounds)], epsilon, step)[0] for law in laws)
        whole = Shuffled(AnyRandomizer(epsilon0), n_users)
        upper = account(whole if rate == 1 else Checkin(whole, rate), epsilon=epsilon, rounds=rounds).delta
        return (math.log(low / upper) - GRID) / GRID if low > 1e-60 else -math.inf

    worst = hunt(miss, [*KIND, Axis(0, 0.9)], seed=2, tries=3, starts=1)
    assert worst.miss <= 0, worst


def test_data_sets_that_occur_show_no_more_than_is_true():
    def miss(epsilon0, letters, n_users, rate, rounds, place):
        letters, n_users, rounds, rate = int(letters), int(n_users), int(rounds), min(rate, 1.0)
        tables, randomizer = rows(epsilon0, letters), KaryProfile(epsilon0, letters)
        epsilon = place * epsilon0 * rounds
        worst = -math.inf
        for held, cells in ((1, equal_cells), (2, third_cells)):
            if held == 2 and letters == 2:
                continue
            laws = shuffled(tables, held, 0, 1, n_users, rate)
            step = max(float(np.abs(law[0]).max()) for law in laws) / 2**11
            truth = max(referee([(law, rounds)], epsilon, step)[1] for law in laws)
            found = composed_below([(cells(randomizer, n_users, rate), rounds)], epsilon=epsilon)
            worst = max(worst, math.log(found / truth) - GRID if found and truth > 1e-60 else -math.inf)
        return worst / GRID

    worst = hunt(miss, [*KIND, Axis(0, 0.9)], seed=3, tries=4, starts=1)
    assert worst.miss <= 0, worst


@pytest.mark.parametrize("groups", [distributed_noise.MAX_GROUPS, 3])
def test_rounds_of_noisy_sums_lie_between_both_ends(groups, monkeypatch):
    """Also where most counts are taken together."""
    monkeypatch.setattr(distributed_noise.counted, "__defaults__", (groups, False))

    def miss(n_users, rate, noise_std, rounds, place):
        n_users, rounds = int(n_users), int(rounds)
        laws = noisy_sum(n_users, rate, noise_std)
        losses, masses = laws[0]
        epsilon = place * 6 * math.sqrt(rounds * float(masses @ losses**2))
        step = max(float(np.abs(losses).max()) / 2**14, 1e-5)
        ends = [referee([(law, rounds)], epsilon, step) for law in laws]
        ends += [referee([(laws[0], rounds // 2), (laws[1], rounds - rounds // 2)], epsilon, step)]
        low, high = max(low for low, _ in ends), max(high for _, high in ends[:2])
        if low < FAINT:
            return -math.inf
        upper = account(Checkin(Summed(n_users, noise_std), rate), epsilon=epsilon, rounds=rounds).delta
        lower = distributed_rounds_lower(n_users, rate, noise_std, rounds, epsilon=epsilon)
        return (max(math.log(low / upper), math.log(lower / high) if lower else -math.inf) - GRID) / GRID

    axes = [Axis(2, 80, whole=True), Axis(0.02, 0.98), Axis(0.2, 5, log=True), Axis(2, 20, whole=True), Axis(0, 1)]
    worst = hunt(miss, axes, seed=4, tries=3, starts=1)
    assert worst.miss <= 0, worst


def test_one_noisy_sum_is_never_better_than_it_is():
    def miss(n_users, rate, noise_std, place):
        n = int(n_users)
        with mp.workdps(40):
            truth = exact_delta(n, rate, noise_std, place)
            log_truth = float(mp.log(truth)) if truth > 0 else -math.inf
        found = float(distributed_rounds(n, rate, noise_std, 1, epsilon=place))
        return (log_truth - math.log(found)) / 1e-11 if log_truth > -650 else -math.inf

    axes = [Axis(2, 60, whole=True), Axis(1e-4, 0.9999, log=True), Axis(0.05, 20, log=True), Axis(1e-6, 6, log=True)]
    worst = hunt(miss, axes, seed=5, tries=16, starts=3)
    assert worst.miss <= 0, worst
