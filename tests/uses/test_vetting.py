"""Vetting: safe formulas are never accused, wrong ones are, and whatever accuses can be recomputed."""

import itertools
import json
import math
import shlex
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from terminal import flamelib

from flamelib.accounting.shuffling import closed_form, numerical
from flamelib.core.profiles import KaryProfile, LaplaceProfile
from flamelib.core.vocabulary import DomainError
from flamelib.uses import vetting
from flamelib.uses.vetting import Vetted, assert_safe, kind_and_size, lower_end, vet

KARY, LAPLACE = "kary:10", "laplace"


@pytest.fixture(autouse=True)
def few_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most telling settings alone: every comparison takes a third of a second."""
    monkeypatch.setattr(vetting, "HARD_SETTINGS", vetting.HARD_SETTINGS[:11])


def kary_upper(epsilon0: float, n_users: int, delta: float) -> float:
    return float(numerical.blanket_divergence(KaryProfile(epsilon0, 10), n_users, delta=delta))


SAFE: dict[str, tuple[Callable[..., Any], str]] = {
    "upper end": (lambda e, n, d: numerical.any_randomizer(e, n, "upper", delta=d), "any"),
    "clones": (lambda e, n, d: numerical.clones_2021(e, n, delta=d), "any"),
    "clones in closed form": (closed_form.clones_closed, "any"),
    "erlingsson": (closed_form.erlingsson, "any"),
    "local budget": (lambda e, n, d: e, "any"),
    "hoeffding": (lambda e, n, d: closed_form.hoeffding(KaryProfile(e, 10), n, delta=d), KARY),
    "blanket": (kary_upper, KARY),
    "bennett": (lambda e, n, d: closed_form.bennett(LaplaceProfile(e), n, delta=d), LAPLACE),
}
WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "root of n": (lambda e, n, d: e / math.sqrt(n), "any"),
    "sampling": (lambda e, n, d: math.log1p(math.expm1(e) / n), "any"),
    "rate, larger than n": (lambda e, n, d: 12 * e * math.sqrt(-math.log(d) / n), "any"),
    "97 % of the lower end": (lambda e, n, d: 0.97 * lower_end(("any", None), (e, n, d, 1))[0], "any"),
    "90 % of the upper end": (lambda e, n, d: 0.9 * kary_upper(e, n, d), KARY),
    "wrong for few users only": (lambda e, n, d: e if n > 100 else 0.99 * e, "any"),
    "wrong for a tiny delta only": (lambda e, n, d: e if d > 1e-30 else e / 10, "any"),
    "withdrawn": (lambda e, n, d: closed_form.bennett_withdrawn(LaplaceProfile(e), n, delta=d), LAPLACE),
    "nothing": (lambda e, n, d: 0, KARY),
}


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_formula_is_not_accused(name: str) -> None:
    claim, randomizer = SAFE[name]
    found = vet(claim, randomizer, seconds=None, probes=7)
    assert found.safe
    assert found.largest_ratio <= 1
    assert found.reply()["tried"] == len(found.tried) == 7
    assert_safe(claim, randomizer, seconds=None, probes=1)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_formula_is_refuted_by_a_number_that_its_command_prints(name: str) -> None:
    claim, randomizer = WRONG[name]
    found = vet(claim, randomizer, seconds=None, probes=4)
    worst = found.counterexample
    assert set(worst) == {"inputs", "claimed", "at_least", "ratio", "command"}
    assert worst == found.reply()
    inputs = worst["inputs"]
    assert worst["claimed"] == claim(inputs["epsilon0"], inputs["n_users"], inputs["delta"]) < worst["at_least"]
    assert worst["ratio"] == found.largest_ratio > 1
    _recomputed(worst)


def _recomputed(worst: dict[str, Any]) -> None:
    program, *words = shlex.split(worst["command"])
    assert program == "flamelib"
    reply = json.loads(flamelib(*words).stdout)
    assert (reply["value"], reply["gives"], reply["rests_on"]) == (worst["at_least"], "lower", "proven")
    assert reply["adjacency"] == "replace-one"
    assert {name: reply["inputs"].get(name, 1) for name in worst["inputs"]} == worst["inputs"]


def test_the_search_goes_from_the_first_counterexample_to_worse_ones() -> None:
    claim, _ = WRONG["root of n"]
    ratios = [vet(claim, seconds=None, probes=probes).largest_ratio for probes in (1, 8)]
    assert ratios[1] > 1.1 * ratios[0]


def test_the_outcome_is_that_of_the_seed_and_not_of_the_clock() -> None:
    claim, _ = SAFE["local budget"]
    runs = [vet(claim, seconds=seconds, probes=14, seed=seed) for seconds, seed in ((None, 1), (1e9, 1), (None, 2))]
    assert runs[0].reply() == runs[1].reply()
    assert runs[0].tried == runs[1].tried != runs[2].tried


def test_the_most_telling_setting_is_tried_before_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(0.0, 60.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))
    found = vet(WRONG["root of n"][0], seconds=1)
    assert len(found.tried) == 1
    assert not found.safe


class TestRounds:
    def test_they_are_asked_for_where_a_function_takes_them(self) -> None:
        def by_root(epsilon0: float, n_users: int, delta: float, rounds: int) -> float:
            return math.sqrt(rounds) * float(numerical.any_randomizer(epsilon0, n_users, "upper", delta=delta))

        found = vet(by_root, seconds=None, probes=3)
        assert found.counterexample["inputs"]["rounds"] > 1
        _recomputed(found.counterexample)

    def test_adding_up_local_budgets_is_safe(self) -> None:
        found = vet(lambda epsilon0, n_users, delta, *, rounds: rounds * epsilon0, seconds=None, probes=5)
        assert found.safe
        assert found.reply()["range"]["rounds"][1] > 1

    def test_an_argument_of_another_name_is_not_filled(self) -> None:
        assert "rounds" not in vet(lambda e, n, d, power=0.5: e, seconds=None, probes=1).reply()["range"]

    def test_a_larger_alphabet_loses_more_of_a_large_budget(self) -> None:
        setting = (8.0, 10**6, 1e-6, 10)
        at_least, command = lower_end(("any", None), setting)
        assert at_least > lower_end(("kary", 3), setting)[0]
        assert "n_buckets=10" in command


@pytest.mark.parametrize(
    ("answer", "fault", "claimed"),
    [
        (math.nan, "not a number", "nan"), (-1e-9, "negative", "-1e-09"), (-math.inf, "negative", "-inf"),
        (None, "not a number", "None"), ("0.5", "not a number", "'0.5'"), (True, "not a number", "True"),
        ((0.5, 1e-6), "not a number", "(0.5, 1e-06)"), (1j, "not a number", "1j"),
    ],
)  # fmt: skip
def test_an_answer_that_is_no_epsilon_is_told_apart_with_its_input(answer: Any, fault: str, claimed: str) -> None:
    found = vet(lambda e, n, d: answer if n == 50 else e, seconds=None, probes=3)
    inputs = {"epsilon0": 4.0, "n_users": 50, "delta": 1e-3}
    assert found.reply() == {"inputs": inputs, "claimed": claimed, "fault": fault}
    assert not found.safe
    assert str(found).startswith(f"No epsilon: {claimed} at epsilon0 = 4.0, n_users = 50")


@pytest.mark.parametrize("answer", [math.inf, 20, np.float32(20), np.array(20.0), Decimal(20)])
def test_numbers_of_every_type_and_infinity_are_answers(answer: Any) -> None:
    assert vet(lambda e, n, d: answer, seconds=None, probes=2).safe


def test_a_refusal_is_no_fault_and_is_counted() -> None:
    def inside(epsilon0: float, n_users: int, delta: float) -> float:
        if n_users < 1000:
            raise ValueError("too few")
        return epsilon0

    found = vet(inside, seconds=None, probes=3)
    assert found.safe
    reply = found.reply()
    assert reply["refused"] == 2
    assert reply["first_refused"]["inputs"]["n_users"] == 50
    assert "too few" in reply["first_refused"]["claimed"]
    assert "n_users = 50, delta = 0.001: ValueError('too few')" in str(found)


def test_a_fault_does_not_hide_a_counterexample() -> None:
    found = vet(lambda e, n, d: math.nan if n == 50 else e / n, seconds=None, probes=1)
    assert found.fault
    assert found.reply() == found.counterexample


@pytest.mark.parametrize(
    ("claim", "told"),
    [(lambda e, n: e, "takes 2 positional"), (lambda: 1, "positional"), ("no function", "TypeError"),
     (lambda e, n, d: 1 / 0, "ZeroDivisionError"), (lambda e, n, d, rounds, more: e, "'more'")],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused(claim: Any, told: str) -> None:
    with pytest.raises(DomainError, match="claim must answer somewhere") as refusal:
        vet(claim)
    assert told in str(refusal.value)


@pytest.mark.parametrize("given", [{"seconds": 0}, {"seconds": None}, {"probes": 0}, {"seed": -1}, {"randomizer": "k"}])
def test_wrong_limits_are_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(DomainError, match=next(iter(given))):
        vet(lambda e, n, d: e, **given)


@pytest.mark.parametrize("wrong", ["kary", "kary:", "kary:1", "laplace:3", "gaussian", "", "any:2", "kary:ten"])
def test_randomizers_without_a_certified_lower_end_are_refused(wrong: str) -> None:
    with pytest.raises(DomainError, match=r"randomizer|n_buckets"):
        kind_and_size(wrong)


@pytest.mark.parametrize("randomizer", ["laplace", "rappor:5", "oue:5", "subset:9", "hadamard:5", "local-hash:5"])
@pytest.mark.parametrize("rounds", [1, 10])
def test_every_randomizer_has_a_lower_end_that_the_worst_one_reaches(randomizer: str, rounds: int) -> None:
    setting = (0.5, 500, 1e-5, rounds)
    found = Vetted(with_rounds=True)
    found.compare(kind_and_size(randomizer), setting, 1e-6)
    assert 0 < found.counterexample["at_least"] <= lower_end(("any", None), setting)[0]
    _recomputed(found.counterexample)


def test_a_test_fails_with_the_counterexample_in_a_sentence() -> None:
    with pytest.raises(AssertionError, match=r"Too small: .* some data sets lose at least .*\nflamelib evaluate"):
        assert_safe(WRONG["root of n"][0], seconds=None, probes=1)
