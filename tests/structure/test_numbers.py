"""Numbers of every type: stored and answered for as the Python number that they are, or refused by name, everywhere.

A narrow float is the double that it is, exactly.  Texts and truth values are no numbers, but on the command line.
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from structure.test_bad_input import GOOD, GOOD_AT, constructors, functions, good_arguments

from flamelib import (
    AnyRandomizer,
    Checkin,
    Cloak,
    DomainError,
    FlameDouble,
    FlameSimple,
    FlameTopk,
    GaussianNoise,
    KaryResponse,
    LaplaceNoise,
    Participation,
    PolyaShare,
    Rounds,
    Shuffled,
    Summed,
    TableRandomizer,
    account,
    answers,
    bounds,
    calibrate,
    compare,
)
from flamelib.core.statements import admit
from flamelib.core.vocabulary import LARGEST_WHOLE, VOCABULARY, number
from flamelib.mechanisms.vectors import CapMessages, GaussianMessages
from flamelib.uses.client_ledger import Announcement
from flamelib.uses.workload import Request

torch = pytest.importorskip("torch")

WHOLE: list[Callable[[int], Any]] = [
    np.int64, np.uint64, np.longdouble, np.float64, np.array, Decimal, Fraction, float, torch.tensor,
    lambda value: np.min_scalar_type(value).type(value), lambda value: torch.tensor(float(value), dtype=torch.float64),
]  # fmt: skip
REAL: list[Callable[[float], Any]] = [
    np.float16, np.float32, np.float64, np.longdouble, np.array, Decimal, Fraction, torch.tensor,
    lambda value: np.array(value, dtype=np.float32), lambda value: torch.tensor(value, dtype=torch.bfloat16),
]  # fmt: skip
NO_NUMBERS = [True, np.True_, np.array(True), "1", b"1", torch.tensor(True), np.array([1]), np.str_("1"),
              np.ma.masked, np.timedelta64(1, "s"), Decimal("nan"), 1 + 0j, np.complex64(1)]  # fmt: skip
RECORDS: list[Any] = [
    KaryResponse(1.25, 3), LaplaceNoise(0.5), GaussianNoise(2.0), AnyRandomizer(0.75), Summed(100, 1.5),
    Participation(0.25, 0.5, 30, 1.0, 1.5), PolyaShare(10, 0.5), Request(100, 3, 4, 1e-6, "mean", 0.25),
    FlameSimple(100, 20, 1.0, LaplaceNoise(0.5)), FlameDouble(100, 20, 1.0, LaplaceNoise(0.5), 2.5, 50, "independent"),
    FlameTopk(100, 20, 1.0, LaplaceNoise(0.5), 5, 60, 2), Cloak(100, 10**5 + 3, 10, 30),
    CapMessages(3, 1.0, 1.0, 0.25), GaussianMessages(3, 1.0, 0.5), Announcement(0.25, 0.5, 1.0, 1.0),
]  # fmt: skip


def exact(value: Any) -> Any:
    """The plain number that a scalar is, by its own library."""
    held = value.item() if hasattr(value, "item") else value
    return float(held) if isinstance(held, np.longdouble | Decimal | Fraction) else held


def types_of(value: Any) -> list[Callable[[Any], Any]]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    return WHOLE if isinstance(value, int) else REAL


def made() -> Iterator[tuple[Any, str, Any]]:
    found = [*RECORDS, *(make(**good_arguments(make)) for make in constructors())]
    for record in found:
        for one in dataclasses.fields(record):
            if one.init and types_of(value := getattr(record, one.name)):
                yield record, one.name, value


@pytest.mark.parametrize(("record", "name", "value"), made(), ids=lambda one: str(one)[:30])
def test_a_record_stores_plain_numbers(record: Any, name: str, value: Any) -> None:
    for kind in types_of(value):
        given = kind(value)
        try:
            plain = dataclasses.replace(record, **{name: exact(given)})
        except DomainError:  # what a half has lost may lie outside
            with pytest.raises(DomainError):
                dataclasses.replace(record, **{name: given})
            continue
        found = dataclasses.replace(record, **{name: given})
        assert type(getattr(found, name)) in (int, float), (kind, given)
        assert found == plain
        assert hash(found) == hash(plain)
        assert repr(getattr(found, name)).isascii()
        assert "np." not in repr(found)
    for wrong in NO_NUMBERS:
        with pytest.raises(DomainError):
            dataclasses.replace(record, **{name: wrong})


def test_every_statement_is_given_plain_numbers() -> None:
    for key, found in answers.load_all().items():
        for name in found.parameters:
            value = GOOD_AT.get(key, GOOD).get(name, GOOD.get(name))
            for kind in types_of(value) if name in VOCABULARY else ():
                given = kind(value)
                double = number(given)
                if not found.domain(name).contains(double) or float(double) != double:
                    continue
                for stored in (admit(found, _other(found, {name: given}))[name], answers_of(found, name, given)):
                    assert type(stored) in (int, float), (key, name, kind)
                    assert stored == exact(given)
            for wrong in NO_NUMBERS if types_of(value) else ():
                with pytest.raises(DomainError, match=name):
                    admit(found, _other(found, {name: wrong}))


def _other(found: Any, given: dict[str, Any]) -> dict[str, Any]:
    """With a budget where exactly one is due."""
    return given | ({"delta": 1e-6} if found.either and not given.keys() & {"epsilon", "delta"} else {})


def answers_of(found: Any, name: str, given: Any) -> Any:
    return found.domain(name).accept(name, given)


def narrow(value: Any) -> Any:
    return types_of(value)[1 if isinstance(value, float) else 9](value) if types_of(value) else value


@pytest.mark.parametrize("function", functions(), ids=lambda one: one.__qualname__)
def test_a_function_answers_for_the_number_that_a_scalar_is(function: Callable[..., Any]) -> None:
    given = {name: narrow(value) for name, value in good_arguments(function).items()}
    both = {"epsilon", "delta"} & set(inspect.signature(function).parameters)
    given |= {"delta": narrow(1e-6)} if len(both) == 2 and not both & set(given) else {}
    plain = {name: exact(value) if isinstance(value, np.generic) else value for name, value in given.items()}
    found = function(**given)
    assert repr(found) == repr(function(**plain))


SURVEY = Shuffled(KaryResponse(1.0, 3), 10_000)


@pytest.mark.parametrize(("kind", "users"), [(np.float32, 10**6), (np.float16, 10**4), (torch.tensor, 10**4)])
def test_the_certified_number_lies_above_the_lower_one(kind: Callable[[float], Any], users: int) -> None:
    """Once a narrow float went on through the account and came out below what is certain (MEND 5.1)."""
    narrowed = Shuffled(KaryResponse(kind(1.0), np.int16(3)), users)
    assert narrowed == Shuffled(KaryResponse(1.0, 3), users)
    assert account(narrowed, delta=kind(1e-6)) == account(narrowed, delta=exact(kind(1e-6)))
    assert account(narrowed, delta=1e-8).epsilon >= bounds(SURVEY if users == 10**4 else narrowed, delta=1e-8).lower


def test_questions_take_every_number() -> None:
    plain = account(SURVEY, delta=float(np.float32(1e-6)), rounds=100)
    assert account(SURVEY, delta=np.float32(1e-6), rounds=torch.tensor(100)) == plain
    assert bounds(SURVEY, epsilon=np.float32(0.5)) == bounds(SURVEY, epsilon=0.5)
    plain_one = calibrate(SURVEY, epsilon=0.5, delta=1e-6)
    assert calibrate(SURVEY, epsilon=np.float16(0.5), delta=Decimal("1e-6")) == plain_one
    assert repr(compare(np.int16(1000), epsilon0=np.float32(1))) == repr(compare(1000, epsilon0=1.0))
    parts = Rounds([(SURVEY, np.int8(100)), (Checkin(SURVEY, np.float32(0.5)), Fraction(3))])
    assert [(type(rounds), rounds) for _, rounds in parts.parts] == [(int, 100), (int, 3)]
    table = np.array([[0.75, 0.25], [0.25, 0.75]], dtype=np.float32)
    assert TableRandomizer(table) == TableRandomizer([[0.75, 0.25], [0.25, 0.75]])


@pytest.mark.parametrize("wrong", NO_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused_by_name_everywhere(wrong: Any) -> None:
    for ask, name in [
        (lambda: account(SURVEY, delta=wrong), "delta"), (lambda: Rounds([(SURVEY, wrong)]), "rounds"),
        (lambda: calibrate(SURVEY, epsilon=wrong, delta=1e-6), "epsilon"), (lambda: Checkin(SURVEY, wrong), "rate"),
        (lambda: compare(wrong, epsilon0=1.0), "n_users"),
        (lambda: TableRandomizer([[wrong, 0.5], [0.5, 0.5]]), "table"),
    ]:  # fmt: skip
        with pytest.raises(DomainError, match=name):
            ask()


LARGE = [LARGEST_WHOLE + 1, np.uint64(LARGEST_WHOLE + 1), Decimal(LARGEST_WHOLE + 1), np.longdouble(LARGEST_WHOLE) + 1]


@pytest.mark.parametrize("large", [*LARGE, Fraction(LARGEST_WHOLE * 2 + 1, 2), 10**5000], ids=type)
def test_whole_numbers_above_two_to_53_are_refused_where_they_are_counts_and_exact_elsewhere(large: Any) -> None:
    with pytest.raises(DomainError, match="n_users must be a whole number"):
        Shuffled(KaryResponse(1.0, 2), large)
    with pytest.raises(DomainError, match="n_users must be a whole number"):
        answers.answer("clones:2021", {"epsilon0": 1, "n_users": str(LARGEST_WHOLE + 1), "delta": 1e-6})
    if isinstance(large, np.generic | Decimal | int) and large < 10**20:
        assert VOCABULARY["modulus"].accept("modulus", large) == LARGEST_WHOLE + 1
