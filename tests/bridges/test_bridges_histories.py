"""Rounds of different kinds together, against sums over every outcome and integrals on a grid; never below."""

import itertools
import math

import numpy as np
import pytest

from flamelib import (
    Adjacency,
    AnyRandomizer,
    Checkin,
    DomainError,
    KaryResponse,
    Participation,
    Rounds,
    Shuffled,
    Summed,
    TableRandomizer,
    account,
)
from flamelib.accounting.sampling.rounds import participation_rounds
from flamelib.bridges import histories
from flamelib.bridges.histories import Sampled, history_account

GRID = np.linspace(-30, 30, 60_001)
CELL = GRID[1] - GRID[0]


def normal(mean, std):
    return np.exp(-((GRID - mean) ** 2) / (2 * std * std)) / (std * math.sqrt(2 * math.pi))


def drawn(where, std, rate):
    """Density of noise on the sum of a sample that holds one record of this value at most."""
    return (1 - rate) * normal(0.0, std) + rate * normal(where, std)


def shuffled(values, epsilon0):
    """Law of the number of ones among binary responses, one factor after the other."""
    kept, law = math.exp(epsilon0) / (1 + math.exp(epsilon0)), np.ones(1)
    for value in values:
        one = kept if value else 1 - kept
        law = np.convolve(law, [1 - one, one])
    return law


def delta_of(first, second, epsilon):
    """Of independent outcomes: one law of whole numbers and one density on the grid, or either alone."""
    (counts, density), (other_counts, other_density) = first, second
    pairs = zip(counts, other_counts, strict=True)
    return sum(CELL * np.maximum(p * density - math.exp(epsilon) * q * other_density, 0).sum() for p, q in pairs)


NONE = np.ones(1)


class TestNeverBelow:
    @pytest.mark.parametrize(("std", "rate"), [(1.0, 0.1), (0.6, 0.5), (2.0, 0.9), (0.8, 0.99), (1.0, 1.0)])
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.5, 3.0])
    def test_one_record_replaced(self, std, rate, epsilon):
        found = history_account([(Sampled(std, rate), 1)], epsilon=epsilon, adjacency=Adjacency.REPLACE_ONE).delta
        for here, there in itertools.permutations((1.0, -1.0, 0.5, 0.0), 2):
            truth = delta_of((NONE, drawn(here, std, rate)), (NONE, drawn(there, std, rate)), epsilon)
            assert found >= truth * (1 - 1e-6)
        if rate == 1:
            worst = delta_of((NONE, drawn(1.0, std, 1.0)), (NONE, drawn(-1.0, std, 1.0)), epsilon)
            assert found <= worst * 1.02 + 1e-12

    @pytest.mark.parametrize(("std", "rate", "epsilon0", "others"), [(1.0, 0.3, 1.0, 3), (0.7, 0.6, 2.0, 2)])
    @pytest.mark.parametrize("epsilon", [0.0, 0.7, 2.0])
    def test_training_and_a_survey(self, std, rate, epsilon0, others, epsilon):
        survey = Shuffled(KaryResponse(epsilon0, 2), others + 1)
        found = history_account([(Sampled(std, rate), 1), (survey, 1)], epsilon=epsilon).delta
        for held in itertools.product((0, 1), repeat=others):
            for sign, value in itertools.product((1.0, -1.0), (0, 1)):
                first = shuffled((value, *held), epsilon0), drawn(sign, std, rate)
                second = shuffled((1 - value, *held), epsilon0), drawn(-sign, std, rate)
                assert found >= delta_of(first, second, epsilon) * (1 - 1e-6)

    @pytest.mark.parametrize(("std", "rate"), [(1.0, 0.2), (0.5, 0.05)])
    def test_two_kinds_of_steps_added_and_removed(self, std, rate):
        """Two steps of different noise, the densities of both outcomes multiplied."""
        grid, found = GRID[::60], history_account([(Sampled(std, rate), 1), (Sampled(2 * std, rate), 1)], epsilon=0.5)
        cell = (grid[1] - grid[0]) ** 2
        joined = np.multiply.outer(drawn(1.0, std, rate)[::60], drawn(1.0, 2 * std, rate)[::60])
        alone = np.multiply.outer(drawn(0.0, std, rate)[::60], drawn(0.0, 2 * std, rate)[::60])
        truths = [cell * np.maximum(p - math.exp(0.5) * q, 0).sum() for p, q in ((joined, alone), (alone, joined))]
        assert max(truths) * (1 - 1e-3) <= found.delta <= max(truths) * 1.03

    @pytest.mark.parametrize("steps", [1, 40, 10_000])
    def test_steps_lie_between_what_is_certain_and_the_statement(self, steps):
        given = "ols", 1.0, 0.01, 1, 1.0, 1.0, steps, None, 1e-6
        found = history_account([(Sampled(1.0, 0.01), steps)], delta=1e-6)
        assert found.epsilon == participation_rounds(*given)
        assert participation_rounds(*given, side="lower") <= found.epsilon
        assert (found.adjacency, found.rests_on) == ("add-remove", "proven")


SURVEY = Shuffled(KaryResponse(1.0, 2), 10_000)
CLIENTS = Participation(0.1, 0.1, 30, 1.0, 1.0)
TRAINING = Sampled(1.0, 0.01)


class TestTogether:
    @pytest.mark.parametrize(
        "parts",
        [
            [(TRAINING, 100), (CLIENTS, 50)],
            [(TRAINING, 100), (SURVEY, 20)],
            [(CLIENTS, 5), (Checkin(Summed(1000, 1.0), 0.05), 10)],
            [(TRAINING, 10), (CLIENTS, 3), (Checkin(SURVEY, 0.5), 7), (Checkin(Summed(500, 0.5), 0.1), 2)],
            [(SURVEY, 3), (Checkin(Summed(1000, 1.0), 0.05), 2)],
            [(TRAINING, 10), (Shuffled(AnyRandomizer(1.0), 5000), 3)],
        ],
    )
    def test_costs_at_least_what_each_costs_alone_and_at_most_their_sum(self, parts):
        found = history_account(parts, delta=1e-6)
        alone = [history_account([part], delta=1e-6).epsilon for part in parts]
        assert max(alone) <= found.epsilon
        halved = [history_account([part], delta=1e-6 / len(parts), adjacency=found.adjacency).epsilon for part in parts]
        assert found.epsilon <= sum(halved) * 1.001
        back = history_account(parts, epsilon=found.epsilon)
        assert back.delta == pytest.approx(1e-6, rel=0.05)

    def test_the_front_door_answers_for_its_own_rounds(self):
        for one, times in ((SURVEY, 20), (CLIENTS, 3), (Checkin(Summed(1000, 1.0), 0.05), 10)):
            assert history_account([(one, times)], delta=1e-6) == account(one, delta=1e-6, rounds=times)
        both = Rounds([(SURVEY, 20), (Checkin(SURVEY, 0.1), 50)])
        assert history_account([(both, 2)], delta=1e-6) == account(both, delta=1e-6, rounds=2)
        assert history_account([(SURVEY, 5), (SURVEY, 15)], delta=1e-6) == account(SURVEY, delta=1e-6, rounds=20)

    def test_many_levels_of_noise_count_as_fewer_and_louder_ones(self, monkeypatch):
        levels = [(Sampled(1.0 + i / 40, 0.02 + i / 1000), 20) for i in range(10)]
        exact = history_account(levels, delta=1e-6).epsilon
        monkeypatch.setattr(histories, "MOST_LEVELS", 4)
        few = history_account(levels[::-1], delta=1e-6).epsilon
        groups = [levels[0:3], levels[3:6], levels[6:9], levels[9:]]
        worst = [(Sampled(one[0][0].noise_multiplier, one[-1][0].sample_rate), 20 * len(one)) for one in groups]
        assert few == history_account(worst, delta=1e-6).epsilon
        assert exact < few < 1.15 * exact


class TestEdges:
    def test_nothing_costs_nothing(self):
        assert history_account([], delta=1e-6).epsilon == 0
        assert history_account([(Sampled(0.0, 0.0), 5), (Checkin(SURVEY, 0.0), 3)], delta=0.0).epsilon == 0
        assert history_account([(Checkin(SURVEY, 0.0), 3)], delta=0.0).adjacency == "replace-one"
        mute = Shuffled(TableRandomizer(((0.5, 0.5), (0.5, 0.5))), 100)
        assert history_account([(mute, 3)], delta=0.0).epsilon == 0
        alone, both = (history_account(parts, delta=1e-6) for parts in ([(SURVEY, 2)], [(SURVEY, 2), (mute, 9)]))
        assert alone == both

    def test_no_noise_shows_who_was_drawn(self):
        assert history_account([(Sampled(0.0, 0.01), 10)], delta=1e-3).epsilon == math.inf
        assert history_account([(Sampled(0.0, 1e-5), 10), (TRAINING, 1)], delta=1e-3).epsilon < 1
        seen = history_account([(Sampled(0.0, 0.01), 10)], epsilon=50.0).delta
        assert -math.expm1(10 * math.log1p(-0.01)) <= seen * (1 + 1e-15) <= 0.095618
        assert history_account([(TRAINING, 1), (SURVEY, 1)], delta=0.0).epsilon == math.inf
        for rate in (1.0, 1 - 1e-12, 0.7):
            assert history_account([(Sampled(0.0, rate), 1)], delta=0.5).epsilon == math.inf
            assert history_account([(Sampled(0.0, rate), 1), (TRAINING, 3)], epsilon=1.0).delta >= rate

    @pytest.mark.parametrize(
        ("call", "told"),
        [
            (lambda: Sampled(-1.0, 0.1), "noise_multiplier must be"),
            (lambda: Sampled(math.nan, 0.1), "noise_multiplier must be"),
            (lambda: Sampled(1.0, 1.1), "sample_rate must be"),
            (lambda: history_account([("survey", 1)], delta=1e-6), "history must hold"),
            (lambda: history_account([(SURVEY, 0)], delta=1e-6), "rounds must be"),
            (lambda: history_account([(SURVEY, 1)], delta=2.0), "delta must be"),
            (lambda: history_account([(SURVEY, 1)]), "exactly one"),
            (lambda: history_account([(SURVEY, 1)], 1e-6, adjacency=Adjacency.ADD_REMOVE), "adjacency must be"),
        ],
    )
    def test_bad_input_is_named(self, call, told):
        with pytest.raises(DomainError, match=told):
            call()
