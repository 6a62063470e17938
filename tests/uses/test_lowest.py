"""The lower ends of rows: below what enumeration finds, those of the front's records, never above the upper ends."""

import math
from itertools import product

import pytest

from flamelib import (
    Checkin,
    FlameDouble,
    FlameSimple,
    FlameTopk,
    KaryResponse,
    LaplaceNoise,
    Participation,
    Shuffled,
    bounds,
)
from flamelib.front.checkin import Summed
from flamelib.uses.deployments import compared, row
from flamelib.uses.lower_bounds import bracketed, repeated_lower
from flamelib.uses.workload import Request, Row

N, DELTA = 300, 1e-5
ITEMS = Request(N, dimension=4, rounds=2, delta=DELTA, task="histogram")
ONE = Request(N, rounds=2, delta=DELTA)


def _loss(laws: tuple[list[float], list[float]], times: int, epsilon: float) -> float:
    """Delta at epsilon of independent reports, outcome by outcome, in the worse direction."""
    deltas = []
    for first, second in (laws, laws[::-1]):
        found = 0.0
        for outcome in product(range(len(first)), repeat=times):
            p, q = (math.prod(law[i] for i in outcome) for law in (first, second))
            found += max(p - math.exp(epsilon) * q, 0.0)
        deltas.append(found)
    return max(deltas)


def _kary(epsilon0: float, n_buckets: int) -> tuple[list[float], list[float]]:
    own = 1 / (1 + (n_buckets - 1) * math.exp(-epsilon0))
    other = own * math.exp(-epsilon0)
    first = [own, *[other] * (n_buckets - 1)]
    return first, [first[1], first[0], *first[2:]]


@pytest.mark.parametrize("epsilon0", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("n_buckets", [2, 3])
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("delta", [1e-8, 1e-2, 0.3])
def test_many_reports_of_a_person_lose_no_less(epsilon0: float, n_buckets: int, times: int, delta: float) -> None:
    laws = _kary(epsilon0, n_buckets)
    lower = repeated_lower(epsilon0, laws[0][0], times, delta)
    assert lower == 0 or _loss(laws, times, lower) >= delta * (1 - 1e-9)
    if times == 1:  # the outcome that tells is all that is lost
        assert lower == 0 or _loss(laws, 1, lower * (1 + 1e-6) + 1e-9) < delta


def _found(name: str, request: Request, **budget: float) -> Row:
    found = row(name, request, **budget)
    assert isinstance(found, Row)
    return bracketed(found, request)


def test_the_lower_ends_are_those_of_the_records() -> None:
    four = KaryResponse(epsilon0=1.0, n_buckets=4)
    noise = LaplaceNoise(1.0)
    checked = _found("distributed check-in", ONE, epsilon=1.0).parameters["noise_std"]
    std = _found("random participation", ONE, epsilon=1.0).parameters["noise_std"]
    rare = Request(N, dimension=4, rounds=2, delta=DELTA, sampling_rate=0.1)
    room = int(_found("double", rare, epsilon0=1.0).parameters["padded"])
    for name, request, budget, record, rounds in [
        ("double", rare, {"epsilon0": 1.0}, FlameDouble(N, 4, 0.5, noise, 0.4, room, "independent"), 2),
        ("blanket", ITEMS, {"epsilon0": 1.0}, Shuffled(four, N), 2),
        ("shuffled check-in", ITEMS, {"epsilon0": 1.0}, Checkin(Shuffled(four, N), 0.1), 2),
        ("simple", ITEMS, {"epsilon0": 1.0}, FlameSimple(N, 4, 0.5, noise), 2),
        ("topk", ITEMS, {"epsilon0": 1.0}, FlameTopk(N, 4, 1.0, noise, 1, N), 2),
        ("distributed check-in", ONE, {"epsilon": 1.0}, Checkin(Summed(N, checked), 0.1), 2),
        ("random participation", ONE, {"epsilon": 1.0}, Participation(0.1, 1.0, 1, 1.0, std), 2),
    ]:
        lower = _found(name, request, **budget).lower
        assert lower is not None
        assert lower > 0
        assert lower == pytest.approx(bounds(record, delta=DELTA, rounds=rounds).lower, rel=1e-9), name


@pytest.mark.parametrize("budget", [{"epsilon": 1.0, "epsilon0": "0.1,0.5,1,2"}, {"epsilon0": 1.0}])
@pytest.mark.parametrize("task", ["mean", "histogram"])
def test_no_lower_end_is_above_the_upper_one(budget: dict[str, object], task: str) -> None:
    request = {"n_users": N, "dimension": 3, "rounds": 2, "delta": DELTA, "task": task}
    rows = [one for one in compared(request | budget) if isinstance(one, Row)]
    known = {one.mechanism: one.lower for one in rows if one.lower is not None}
    assert {"local", "blanket", "simple"} <= set(known)
    assert all(0 < known[one.mechanism] <= one.epsilon for one in rows if one.mechanism in known)
    exact = {"trusted curator", "local Gaussian"} & set(known)
    assert all(known[one.mechanism] > one.epsilon * (1 - 1e-3) for one in rows if one.mechanism in exact)


def test_answers_of_other_processes_are_those_of_this_one() -> None:
    request = {"n_users": N, "delta": DELTA, "epsilon": 1.0, "epsilon0": "0.1,1", "mechanism": "blanket"}
    assert list(compared(request, jobs=2)) == list(compared(request))
