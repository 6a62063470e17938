"""Audits: never above the truth more often than they say, and near it where the statistic is the right one."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, binomtest

from flamelib.core.vocabulary import DomainError
from flamelib.protocols import blanket
from flamelib.uses.auditing import Event, _least_epsilon, audit, certified


def response(bit: int, rng: np.random.Generator) -> int:
    """Binary randomized response whose budget is log 3."""
    return bit if rng.random() < 0.75 else 1 - bit


def test_binary_response_comes_near_its_budget() -> None:
    found = audit(response, (1, 0), float, 4000, rng=np.random.default_rng(1))
    assert 0.85 < found.epsilon < math.log(3)
    assert found.trials == 2000
    assert not found.refutes(math.log(3))


def test_the_limits_are_those_of_clopper_and_pearson() -> None:
    hits, others, trials = 37, 5, 400
    high = binomtest(others, trials).proportion_ci(0.95, method="exact").high
    low = binomtest(hits, trials).proportion_ci(0.95, method="exact").low
    found = _least_epsilon(np.array([hits]), np.array([others]), trials, 0.95, 0.01)
    assert found[0] == pytest.approx(math.log((low - 0.01) / high), rel=1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_a_bound_holds_as_often_as_it_says(confidence: float) -> None:
    """Equal laws, so that any positive epsilon is false; choosing the event by the runs that are counted fails this."""
    rng, above = np.random.default_rng(2), 0
    for _ in range(400):
        above += certified(rng.normal(size=120), rng.normal(size=120), confidence).epsilon > 0
    assert above <= binom.ppf(1 - 1e-6, 400, 1 - confidence)


def test_either_side_and_either_data_set_may_be_the_likelier_one() -> None:
    rng = np.random.default_rng(3)
    low, high = rng.random(3000), np.where(rng.random(3000) < 0.2, 2.0, rng.random(3000))
    one, other = certified(high, low), certified(low, high)
    assert one.event == other.event == Event(2.0, above=True)
    assert not one.exchanged
    assert other.exchanged
    assert one.epsilon > 4
    mirrored = certified(-high, -low)
    assert not mirrored.event.above


def test_a_protocol_of_the_library() -> None:
    protocol = blanket.HistogramProtocol(n_users=20, n_buckets=2, blanket_mass=0.2)
    promised = blanket.account(protocol, delta=0.01)

    def run(values: list[int], rng: np.random.Generator) -> NDArray[np.float64]:
        return np.asarray(blanket.run(protocol, values, rng))

    found = audit(
        run, ([0] * 19 + [1], [0] * 20), lambda counts: float(counts[1]), 4000, delta=0.01, rng=np.random.default_rng(5)
    )
    assert 0.05 < found.epsilon < promised.epsilon
    leak = certified(np.zeros(200), np.ones(200))
    assert leak.refutes(promised.epsilon)
    least = 0.025 ** (1 / 100)  # all of the hundred runs that are counted, against none
    assert leak.epsilon == pytest.approx(math.log(least / (1 - least)), rel=1e-9)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"trials": 1}, "trials"),
        ({"trials": 2.5}, "trials"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": math.nan}, "confidence"),
        ({"delta": -0.1}, "delta"),
        ({"neighbours": (1, 0, 1)}, "neighbours"),
        ({"statistic": lambda view: math.nan}, "statistic"),
    ],
)
def test_bad_input_is_named(change: dict[str, object], word: str) -> None:
    given: dict[str, Any] = {
        "neighbours": (1, 0),
        "statistic": float,
        "trials": 10,
        "rng": np.random.default_rng(0),
    } | change
    with pytest.raises(DomainError, match=word):
        audit(response, **given)
