"""Bad input at every door: a refusal that names the argument, or an answer that is a number; never anything else.

The doors are found, not listed: every registered statement, every record whose fields are words of the vocabulary,
and every public function of the modules below that takes such words alone.
"""

import dataclasses
import importlib
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from flamelib import answers
from flamelib.core.guarantees import Adjacency
from flamelib.core.vocabulary import VOCABULARY, DomainError

MODULES = (
    "core.profiles", "core.guarantees", "mechanisms.randomizers",
    "accounting.shuffling.accuracy", "accounting.shuffling.closed_form", "accounting.shuffling.numerical",
    "accounting.shuffling.calibration", "accounting.composition.closed_form", "accounting.composition.renyi",
    "accounting.coordinates.paper_bounds", "accounting.coordinates.index_privacy", "accounting.coordinates.counting",
    "accounting.coordinates.vector_bounds", "accounting.noise.gaussian", "accounting.noise.skellam",
    "accounting.sampling.closed_form", "accounting.sampling.public_participation",
    "accounting.sampling.random_checkins", "accounting.sampling.secret_participation",
    "accounting.checkin.closed_form", "accounting.splitting.parameter_search", "protocols.blanket",
    "protocols.baselines",
)  # fmt: skip
# A whole table is no word of the vocabulary; its refusals are tested at the front door.
INNER = {"TableProfile", "TableRandomizer"}
NO_NUMBER = [None, "x", "", [], {}, True, object(), 1j, np.array([1, 2])]
NO_LIST = [None, "", "x", "1,,2", "[1, 2", [1, "x"], [math.nan], [0.5], [True], [10**400], 5, {}, True, object(), 1j]
WRONG = [math.nan, math.inf, -math.inf, -1e-300, 10**400, *NO_NUMBER]
GOOD: dict[str, Any] = {
    "epsilon0": 1.0, "epsilon": 0.5, "delta": 1e-6, "n_users": 100_000, "n_buckets": 4, "blanket_mass": 0.25,
    "table": ((0.7, 0.3), (0.3, 0.7)), "side": "upper",
    "noise_std": 1.0, "n_levels": 3, "n_cells": 3, "n_messages": 30, "width": 5, "randomizer": "kary",
    "sensitivity": 1.0, "dimension": 1000, "kept": 20.0, "sampling_rate": 0.02, "padded": 5000, "multiples": 2,
    "index_privacy": 2.0, "times": 10, "slack_delta": 1e-6, "sampled": 20, "population": 1000,
    "protocol": "simple", "bound": "blanket", "route": "sound", "angle": 30.0,
    "inclusion": "independent", "overflow": "none",
    "participation_rate": 0.1, "record_rate": 0.1, "n_records": 10, "clip_norm": 1.0,
    "reading": "outer", "scheme": "outer", "window": 1000, "rounds": 10,
    "checkin_rate": 0.05, "order": 8, "divergence": 0.25, "slack": 0.5, "inner": "exact",
    "modulus": 2**40 - 87, "scale": 1000, "decay": 0.9, "noise_rate": 0.5, "smoothness": 0.1, "colluding": 10,
    "swaps": 2, "security_bits": 40.0, "log2_modulus": 32.0, "messages": [3, 2**70], "inputs_a": [0, 0],
    "inputs_b": [1, 2], "value": 3, "error": 0.01, "input_bits": 16,
    "sensitivity_1": 300.0, "sensitivity_2": 30.0, "variance": 1e4, "rejection": 0.5, "missing": 5, "wraparound": 1e-9,
}  # fmt: skip
GOOD_AT: dict[str, dict[str, Any]] = {
    "checkin:thm-1": {"n_users": 50}, "checkin:distributed": {"route": "pld-exact"},
    "checkin:shuffled": {"epsilon0": 1.0}, "shuffle:calibrate": {"randomizer": "any"},
}  # fmt: skip
# Inside every domain, at its edges: an answer is due, or a refusal that says which argument is out of reach.
EDGES: dict[str, list[Any]] = {
    "epsilon0": [1e-300, 1e-9, 20.0, 700.0], "epsilon": [0, 1e-300, 1.0, 50.0, 1e6], "delta": [0, 1e-300, 0.5, 1],
    "n_users": [2, 3, 10**9, 2**53], "n_buckets": [2, 1000, 2**53], "blanket_mass": [1e-300, 1e-9, 1.0],
    "noise_std": [1e-3, 0.05, 1e6], "sensitivity": [1e-300, 1.0, 1e300],
    "dimension": [1, 2**53], "kept": [1e-300, 0.5, 1e300], "sampling_rate": [1e-300, 1e-9, 1.0], "padded": [2, 2**53],
    "index_privacy": [1, 1e300], "times": [1, 2**53], "slack_delta": [1e-300, 0.999], "sampled": [1, 2**53],
    "population": [1, 2**53], "angle": [0, 1e-9, 90, 180],
    "participation_rate": [1e-300, 1e-9, 1.0], "record_rate": [1e-300, 1e-9, 1.0], "n_records": [1, 2, 10**6, 2**53],
    "clip_norm": [1e-300, 1.0, 1e300], "window": [1, 2**53], "rounds": [1, 2**53],
    "checkin_rate": [0, 1e-300, 1e-9, 1 - 1e-9, 1], "order": [2, 3, 3000, 10_000], "divergence": [0, 1e-300, 1e300],
    "slack": [0, 1e-300, 1e-9, 1],
    "modulus": [2, 3, 2**53 + 1, 2**256 - 1, 2**256], "scale": [1, 2**53 + 1, 2**256],
    "n_messages": [1, 2, 3, 10**4, 2**53],
    "decay": [1e-300, 0.5, 1 - 1e-16], "noise_rate": [1e-300, 1.0], "smoothness": [1e-300, 1e-9, 1 - 1e-16],
    "colluding": [0, 2**53], "swaps": [1, 2**53], "security_bits": [1e-300, 1e6], "log2_modulus": [1e-300, 1e6],
    "messages": [[], [0], [2**256]], "inputs_a": [[0], [2**256]], "inputs_b": [[0], [2**256]],
    "value": [-(2**256), 0, 2**256], "error": [1e-300, 1.0, 1e300], "input_bits": [1, 64],
    "sensitivity_1": [1e-300, 1e300], "sensitivity_2": [1e-300, 1.0, 1e300], "variance": [1e-300, 1e300],
    "rejection": [0, 1e-300, 1 - 1e-16], "missing": [0, 1, 2**53], "wraparound": [1e-300, 1 - 1e-16],
}  # fmt: skip

# Quick enough to be tried at every two edges at once.
CLOSED = (
    "flamelib.accounting.shuffling.closed_form",
    "flamelib.accounting.shuffling.accuracy",
    "flamelib.accounting.composition.closed_form",
    "flamelib.accounting.sampling.closed_form",
    "flamelib.accounting.coordinates.paper_bounds",
    "flamelib.accounting.coordinates.index_privacy",
    "flamelib.accounting.sampling.public_participation",
    "flamelib.accounting.sampling.random_checkins",
    "flamelib.accounting.composition.renyi",
    "flamelib.accounting.checkin.closed_form",
    "flamelib.accounting.splitting.lemmas",
    "flamelib.accounting.splitting.two_users",
    "flamelib.mechanisms.integers.decoding",
    "flamelib.accounting.noise.discrete_laplace",
    "flamelib.accounting.splitting.theorem_parameters",
    "flamelib.accounting.splitting.costs",
)


def out_of_domain(name: str) -> list[Any]:
    """The wrong values that are no value of this word, zero where the word has none; text of a number is welcome."""
    domain = VOCABULARY[name]
    if domain.several:
        return NO_LIST
    beside = [-1, 0, 0.5, 2.5] if domain.whole else [-1, 0, 2.0]
    beyond = [value for value in beside if not domain.choices and not domain.contains(value)]
    return [*WRONG, *beyond]


def sound(value: Any) -> bool:
    """Whether an answer is made of numbers and words, and of no NaN and no negative number."""
    if isinstance(value, Mapping | list):
        return all(map(sound, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, str) or (not isinstance(value, bool) and value >= 0)


def statement_doors() -> Iterator[tuple[str, str | None, str | None]]:
    for key, found in answers.load_all().items():
        for kind in found.randomizers or (None,):
            for given in ("epsilon", "delta") if found.either else (None,):
                yield key, kind, given


def good_inputs(key: str, kind: str | None, given: str | None) -> dict[str, Any]:
    names = [name for name, required in answers.flat(answers.statement(key), kind).items() if required]
    inputs = {name: good_input(key, name) for name in [*names, *([given] if given else [])]}
    return inputs | GOOD_AT.get(key, {}) | ({"randomizer": kind} if kind else {})


def good_input(key: str, name: str) -> Any:
    """The good value, or the first word where the statement does not know it."""
    words = answers.statement(key).words.get(name, ())
    value = GOOD_AT.get(key, GOOD).get(name, GOOD[name])
    return words[0] if words and value not in words else value


DOORS = list(statement_doors())


@pytest.mark.parametrize(("key", "kind", "given"), DOORS)
class TestEveryStatement:
    def test_good_inputs_are_answered(self, key: str, kind: str | None, given: str | None) -> None:
        assert sound(answers.answer(key, good_inputs(key, kind, given))["value"])

    def test_wrong_values_are_refused_by_name(self, key: str, kind: str | None, given: str | None) -> None:
        good = good_inputs(key, kind, given)
        for name in good:
            for value in out_of_domain(name):
                with pytest.raises(DomainError) as refusal:
                    answers.answer(key, good | {name: value})
                assert name in str(refusal.value), (name, value)

    def test_missing_and_unknown_names_are_refused(self, key: str, kind: str | None, given: str | None) -> None:
        good = good_inputs(key, kind, given)
        for name in good:
            with pytest.raises(DomainError, match=name):
                answers.answer(key, {other: value for other, value in good.items() if other != name})
        with pytest.raises(DomainError, match="bogus"):
            answers.answer(key, good | {"bogus": 1})

    def test_both_or_neither_of_epsilon_and_delta(self, key: str, kind: str | None, given: str | None) -> None:
        good = good_inputs(key, kind, given)
        if given is not None:
            with pytest.raises(DomainError, match=r"epsilon.*delta"):
                answers.answer(key, good | {"epsilon": 0.5, "delta": 1e-6})

    def test_the_edges_of_the_domains_are_answered_or_refused(
        self, key: str, kind: str | None, given: str | None
    ) -> None:
        good, closed = good_inputs(key, kind, given), answers.statement(key).function.__module__ in CLOSED
        # The doors of a statement that is not quick share its edges: every third of them is asked at each.
        doors = [door for door in DOORS if door[0] == key]
        first, step = (0, 1) if closed else (doors.index((key, kind, given)) % 3, min(len(doors), 3))
        for edge in itertools.islice(edges(good, pairs=closed), first, None, step):
            reply, told = tried(lambda edge=edge: answers.answer(key, good | edge))
            assert told is None or any(name in told for name in good), (edge, told)
            assert told is not None or sound(reply["value"]), (edge, reply)
            assert told is not None or answers.dumps(reply)


def edges(good: Mapping[str, Any], pairs: bool) -> Iterator[dict[str, Any]]:
    """One input at an edge of its domain, or every two of them."""
    places = {name: [{name: value} for value in EDGES[name]] for name in good if name in EDGES}
    yield from itertools.chain(*places.values())
    for left, right in itertools.combinations(places.values(), 2) if pairs else ():
        yield from (one | other for one, other in itertools.product(left, right))


def tried(call: Callable[[], Any]) -> tuple[Any, str | None]:
    """The answer, or the sentence of a refusal; any other exception is let through."""
    try:
        return call(), None
    except DomainError as refusal:
        return None, str(refusal)


def constructors() -> Iterator[Callable[..., Any]]:
    for module in map(importlib.import_module, (f"flamelib.{name}" for name in MODULES)):
        for name, found in vars(module).items():
            own = inspect.isclass(found) and found.__module__ == module.__name__ and not name.startswith("_")
            own = own and name not in INNER and not inspect.isabstract(found)
            if own and dataclasses.is_dataclass(found) and hasattr(found, "__post_init__"):
                yield found


def functions() -> Iterator[Callable[..., Any]]:
    for module in map(importlib.import_module, (f"flamelib.{name}" for name in MODULES)):
        for name, found in vars(module).items():
            own = inspect.isfunction(found) and found.__module__ == module.__name__ and not name.startswith("_")
            names = set(required(found)) if own and name not in INNER else set()
            if names and names <= set(GOOD) - {"randomizer", "protocol"}:
                yield found


def required(function: Callable[..., Any]) -> list[str]:
    return [name for name, one in inspect.signature(function).parameters.items() if one.default is one.empty]


def good_arguments(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: Adjacency.NONE if name == "adjacency" else GOOD[name] for name in required(function)}


@pytest.mark.parametrize("make", [*constructors(), *functions()], ids=lambda make: make.__qualname__)
class TestEveryConstructorAndFunction:
    def test_good_arguments_are_taken(self, make: Callable[..., Any]) -> None:
        make(**self.given(make))

    def test_wrong_values_are_refused_by_name(self, make: Callable[..., Any]) -> None:
        good = self.given(make)
        for name in good.keys() & VOCABULARY.keys():
            for value in out_of_domain(name):
                with pytest.raises(DomainError) as refusal:
                    make(**good | {name: value})
                assert name in str(refusal.value), (name, value)

    def test_edges_are_taken_or_refused(self, make: Callable[..., Any]) -> None:
        good = self.given(make)
        for edge in edges(good, pairs=False):
            made, told = tried(lambda edge=edge: make(**good | edge))
            assert told is None or any(word in told for word in good), (edge, told)
            assert not isinstance(made, float) or not math.isnan(made), edge

    def given(self, make: Callable[..., Any]) -> dict[str, Any]:
        arguments = good_arguments(make)
        both = {"epsilon", "delta"} & set(inspect.signature(make).parameters)
        return arguments | ({"delta": 1e-6} if len(both) == 2 and not both & set(arguments) else {})


def test_the_doors_were_found() -> None:
    assert len(DOORS) >= 20
    assert {"KaryResponse", "LaplaceProfile", "ApproxDP", "HistogramProtocol"} <= {c.__name__ for c in constructors()}
    assert {"summation_plan", "histogram_epsilon", "private_histogram"} <= {f.__name__ for f in functions()}
