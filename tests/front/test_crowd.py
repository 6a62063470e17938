"""Colluding users and lost messages: both ends around sums over who is there, and one run of each protocol."""

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from flamelib import (
    AnyRandomizer,
    Checkin,
    DomainError,
    FlameDouble,
    FlameSimple,
    FlameTopk,
    GaussianNoise,
    KaryResponse,
    LaplaceNoise,
    Rounds,
    Shuffled,
    Summed,
    account,
    bounds,
    calibrate,
    run,
)
from flamelib.accounting.shuffling.numerical import all_equal, exact_binary
from flamelib.bridges import histories
from flamelib.front import crowd
from flamelib.front.questions import view

BINARY = KaryResponse(1.0, 2)
WORST, EQUAL = functools.cache(exact_binary), functools.cache(all_equal)
BAGS = {"n_users": 40, "dimension": 40, "clip": 1.0, "randomizer": LaplaceNoise(0.5), "kept": 1, "padded": 50}


@pytest.mark.parametrize(
    ("with_colluders", "without"),
    [
        (Shuffled(BINARY, 80, colluding=30), Shuffled(BINARY, 50)),
        (Checkin(Shuffled(BINARY, 80, colluding=10), 0.3, colluding=20), Checkin(Shuffled(BINARY, 50), 0.3)),
        (Checkin(Summed(80, 1.0), 0.3, colluding=30), Checkin(Summed(50, 1.0), 0.3)),
        (FlameSimple(80, 1, 1.0, LaplaceNoise(0.5), colluding=30), FlameSimple(50, 1, 1.0, LaplaceNoise(0.5))),
        (FlameTopk(**BAGS, colluding=10), FlameTopk(**BAGS | {"n_users": 30, "padded": 40})),
        (Checkin(Shuffled(BINARY, 50), 0.4, dropout=0.25), Checkin(Shuffled(BINARY, 50), 0.3)),
        (Checkin(Summed(50, 1.0), 0.4, dropout=0.25), Checkin(Summed(50, 1.0), 0.3)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_colluding_users_do_not_count_and_lost_check_ins_are_rarer_ones(with_colluders: Any, without: Any) -> None:
    assert [*bounds(with_colluders, delta=1e-3)] == pytest.approx([*bounds(without, delta=1e-3)], rel=1e-12)
    if type(without) in (Shuffled, Checkin):
        kept = {"epsilon": 0.2, "delta": 1e-3}
        assert calibrate(with_colluders, **kept).value == pytest.approx(calibrate(without, **kept).value, rel=1e-6)


@pytest.mark.parametrize(
    ("n_users", "dropout", "epsilon"),
    [*itertools.product([2, 5, 60], [1e-6, 0.02, 0.3, 0.9, 0.9999], [0.0, 0.02, 0.3, 0.99]), (200, 0.3, 0.05)],
)
def test_who_sees_which_messages_are_lost_learns_what_is_between_the_ends(
    n_users: int, dropout: float, epsilon: float
) -> None:
    survey = Shuffled(BINARY, n_users, dropout=dropout)
    others = np.arange(n_users)
    weights = binom.pmf(others, n_users - 1, 1 - dropout)
    alone = math.expm1(1 - epsilon) * math.exp(epsilon) / (math.e + 1)  # of one message that nothing hides
    exact, equal = (
        sum(
            weight * (hides(int(n) + 1) if n else alone)
            for n, weight in zip(others, weights, strict=True)
            if weight > 1e-14
        )
        for hides in (lambda n: WORST(1.0, n, epsilon), lambda n: EQUAL(BINARY, n, epsilon))
    )
    found = bounds(survey, epsilon=epsilon)
    assert found.lower <= (1 - dropout) * equal * (1 + 1e-6)
    assert found.upper >= exact * (1 - 1e-9)
    if n_users == 200:
        assert found.upper < 1.4 * exact
        assert found.lower > 0.6 * exact * (1 - dropout)
    at = min(exact, 0.5)
    assert account(survey, delta=at).epsilon >= epsilon * (1 - 1e-9)
    assert bounds(survey, delta=(1 - dropout) * equal).lower <= epsilon * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(("n_users", "epsilon0", "dropout", "share"), [
    (14, 4.17, 0.9, 1e-5), (20, 1.714, 0.5, 1.7e-3), (20, 3.0, 0.3, 0.02), (3, 5.58, 0.91, 0.035), (9, 2.0, 0.05, 0.3),
])  # fmt: skip
def test_no_data_set_of_a_few_loses_less_than_the_lower_end(
    n_users: int, epsilon0: float, dropout: float, share: float
) -> None:
    """Exact sums over who arrives, for every number of ones among the others; the largest is the truth."""
    epsilon, here = share * epsilon0, 1 - dropout
    true = 1 / (1 + math.exp(-epsilon0))

    @functools.cache
    def deltas(ones: int, zeros: int) -> tuple[float, float]:
        others = np.convolve(binom.pmf(range(ones + 1), ones, true), binom.pmf(range(zeros + 1), zeros, 1 - true))
        one, zero = np.convolve(others, [1 - true, true]), np.convolve(others, [true, 1 - true])
        return tuple(np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in ((one, zero), (zero, one)))

    def lost(ones: int) -> float:
        zeros = n_users - 1 - ones
        arrivals = itertools.product(range(ones + 1), range(zeros + 1))
        terms = [binom.pmf(a, ones, here) * binom.pmf(b, zeros, here) * np.array(deltas(a, b)) for a, b in arrivals]
        return here * float(np.sum(terms, axis=0).max())

    truth = max(map(lost, range(n_users)))
    lower = bounds(Shuffled(KaryResponse(epsilon0, 2), n_users, dropout=dropout), epsilon=epsilon).lower
    assert 0.8 * truth < lower <= truth * (1 + 1e-9)


def test_fewer_than_all_are_counted_for_equal_inputs_alone() -> None:
    asked = []

    def bound(n_users: int, epsilon: float | None, delta: float | None, equal_inputs: bool) -> float:
        asked.append((n_users, equal_inputs))
        return 0.5

    crowd.lower(bound, 100, 0.5, 1, 0.1, None)
    (fewer, equal), whole = asked
    assert fewer < 100
    assert equal
    assert whole == (100, False)


@pytest.mark.parametrize("rounds", [1, 20])
@pytest.mark.parametrize("randomizer", [BINARY, LaplaceNoise(1.0), AnyRandomizer(1.0), GaussianNoise(3.0)])
def test_the_crowd_that_is_there_for_certain_counts(randomizer: Any, rounds: int) -> None:
    found = account(Shuffled(randomizer, 1000, dropout=0.2), delta=1e-6, rounds=rounds).epsilon
    fewer, fewest = (account(Shuffled(randomizer, n), delta=1e-6, rounds=rounds).epsilon for n in (800, 700))
    assert fewer < found < fewest
    lower = bounds(Shuffled(randomizer, 1000, dropout=0.2), delta=1e-6, rounds=rounds).lower
    assert lower <= bounds(Shuffled(randomizer, 800), delta=1e-6, rounds=rounds).upper


@pytest.mark.parametrize(
    ("survey", "most"),
    [
        (Shuffled(BINARY, 5, dropout=0.5), 1.0),  # nobody else may be there
        (Checkin(Shuffled(BINARY, 5, dropout=0.5), 0.5), 1.0),
        (Shuffled(GaussianNoise(3.0), 5, dropout=0.5), math.inf),
        (FlameSimple(5, 2, 1.0, LaplaceNoise(0.5), dropout=0.5), 1.0),
    ],
)
def test_where_nobody_else_may_be_there_the_local_guarantee_is_left(survey: Any, most: float) -> None:
    assert account(survey, delta=1e-6).epsilon == most
    assert account(survey, delta=0.0).epsilon == most
    if isinstance(survey, Shuffled) and most < math.inf:
        assert account(survey, epsilon=most).delta == 0


def test_calibration_counts_on_those_who_are_there() -> None:
    survey = Shuffled(BINARY, 2000, colluding=100, dropout=0.1)
    found = calibrate(survey, epsilon=0.2, delta=1e-6, rounds=3)
    assert 0.197 < found.guarantee.epsilon <= 0.2
    assert found.protocol.dropout == 0.1
    many = Checkin(Shuffled(BINARY, 10_000, colluding=50), 0.5, colluding=50)
    fewest = calibrate(many, epsilon=0.5, delta=1e-6, over="n_users")
    alone = calibrate(Checkin(Shuffled(BINARY, 10_000), 0.5), epsilon=0.5, delta=1e-6, over="n_users")
    assert fewest.n_users == 100 + alone.n_users
    simple = FlameSimple(500, 2, 1.0, LaplaceNoise(0.5), colluding=50, dropout=0.1)
    assert 0.49 < calibrate(simple, epsilon=0.5, delta=1e-6).guarantee.epsilon <= 0.5


def test_lost_vectors() -> None:
    simple = FlameSimple(200, 3, 1.0, LaplaceNoise(0.5), dropout=0.2)
    ends, fewer = bounds(simple, delta=1e-6), bounds(FlameSimple(160, 3, 1.0, LaplaceNoise(0.5)), delta=1e-6)
    assert 0.8 * fewer.lower < ends.lower <= fewer.upper < ends.upper < 1.2 * fewer.upper
    whole = bounds(FlameTopk(**BAGS), delta=1e-3)
    lossy = bounds(FlameTopk(**BAGS, dropout=0.2), delta=1e-3)
    assert lossy.upper == whole.upper, "dummies take the places"
    assert 0 < lossy.lower <= whole.lower
    assert bounds(FlameTopk(**BAGS, dropout=0.2), delta=0.9).lower == 0


@pytest.mark.parametrize(
    ("protocol", "values", "mean"),
    [
        (Shuffled(KaryResponse(3.0, 2), 2000, dropout=0.3), np.arange(2000) % 2, 1000),
        (Checkin(Shuffled(KaryResponse(3.0, 2), 2000, dropout=0.3), 0.9, dropout=0.2), np.arange(2000) % 2, 1000),
        (Checkin(Summed(2000, 0.1), 0.9, dropout=0.3), np.full((2000, 2), 0.5), 1000),
        (FlameSimple(2000, 2, 1.0, LaplaceNoise(5.0), dropout=0.3), np.full((2000, 2), 0.5), 0.5),
        (FlameTopk(2000, 2, 1.0, LaplaceNoise(5.0), 2, 2500, dropout=0.3), np.full((2000, 2), 0.5), 0.5),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_run_loses_messages_and_its_estimate_makes_up_for_them(protocol: Any, values: Any, mean: float) -> None:
    rngs = np.random.default_rng(0).spawn(20)
    assert np.mean([run(protocol, values, rng) for rng in rngs], axis=0) == pytest.approx([mean, mean], rel=0.03)
    if isinstance(protocol, Shuffled):
        assert np.mean([len(view(protocol, values, rng)) for rng in rngs]) == pytest.approx(1400, rel=0.02)


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (lambda: Shuffled(BINARY, 10, colluding=9), "colluding must be a whole number in [0, 8]"),
        (lambda: Shuffled(BINARY, 10, dropout=1.0), "dropout must"),
        (lambda: Checkin(Shuffled(BINARY, 10, colluding=5), 0.5, colluding=4), "colluding must"),
        (lambda: FlameDouble(**BAGS, colluding=1), "colluding must be 0"),
        (lambda: FlameDouble(**BAGS, dropout=0.1), "dropout must be 0"),
        (lambda: FlameTopk(**BAGS | {"padded": 30}, colluding=29), "colluding must"),
        (lambda: Rounds([(Shuffled(BINARY, 10, dropout=0.1), 2)]), "dropout must be 0"),
        (lambda: histories.history_account([(Shuffled(BINARY, 10, dropout=0.1), 2)], delta=1e-6), "dropout must be 0"),
        (lambda: calibrate(Shuffled(BINARY, 3, dropout=0.5), epsilon=1.0, delta=1e-6), "delta must be above"),
    ],
)
def test_refusals(made: Any, named: str) -> None:
    with pytest.raises(DomainError) as refused:
        made()
    assert str(refused.value).startswith(named)


def test_rounds_that_differ_leave_colluding_users_out() -> None:
    mixed = Rounds([(Shuffled(BINARY, 100, colluding=20), 2), (Checkin(Shuffled(BINARY, 90), 0.4, 10, 0.25), 3)])
    plain = Rounds([(Shuffled(BINARY, 80), 2), (Checkin(Shuffled(BINARY, 80), 0.3), 3)])
    assert [*bounds(mixed, delta=1e-3)] == pytest.approx([*bounds(plain, delta=1e-3)], rel=1e-12)
