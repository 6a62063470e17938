"""The analyzer's rule: its borders, its group, and what happens beside it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamelib.answers import answer
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.integers.decoding import estimate

SCALE, USERS = 10, 3
FULL = SCALE * USERS


@pytest.mark.parametrize(
    ("total", "found"),
    [(0, 0), (1, 0.1), (FULL - 1, 2.9), (FULL, 3), (FULL + 1, 3), (2 * FULL, 3), (2 * FULL + 1, 0), (3 * FULL, 0)],
)
def test_both_borders_belong_to_the_users_number(total: int, found: float) -> None:
    assert estimate([total], 3 * FULL + 1, SCALE, USERS) == found


def test_no_messages_add_up_to_nothing() -> None:
    assert estimate([], 101, SCALE, USERS) == 0


def test_every_split_of_every_sum() -> None:
    modulus, scale, users = 7, 1, 2
    for first, second in itertools.product(range(modulus), repeat=2):
        z = (first + second) % modulus
        assert estimate([first, second], modulus, scale, users) == (z if z <= 2 else 2 if z <= 4 else 0)


@given(st.lists(st.integers(0, 2**256), max_size=30), st.integers(1, 2**200), st.integers(2, 10**6), st.integers(1, 99))
def test_shares_of_any_size_add_up(shares: list[int], scale: int, n_users: int, part: int) -> None:
    modulus = 3 * n_users * scale + 2
    value = n_users * scale * part // 99
    last = (value - sum(shares)) % modulus
    assert estimate([*shares, last], modulus, scale, n_users) == value / scale
    assert estimate([last, *reversed(shares)], modulus, scale, n_users) == value / scale


def test_sums_that_may_wrap_are_refused() -> None:
    assert estimate([5], FULL + 1, SCALE, USERS) == 0.5
    with pytest.raises(DomainError, match="modulus"):
        estimate([5], FULL, SCALE, USERS)


def test_both_spellings_of_a_list_and_arrays() -> None:
    inputs = {"modulus": "1e30", "scale": 10, "n_users": 3}
    found = [answer("cloak:alg-2", inputs | {"messages": text}) for text in ("1, 2,3", "[1,2,3]", [1, "2", 3.0])]
    assert {reply["value"] for reply in found} == {0.6}
    assert {reply["inputs"]["messages"] for reply in found} == {(1, 2, 3)}
    assert {reply["inputs"]["modulus"] for reply in found} == {10**30}
    assert answer("cloak:alg-2", inputs | {"messages": "[]"})["value"] == 0
    assert estimate(np.array([1, 2, 3], dtype=np.uint64), np.uint64(2**63 + 1), SCALE, USERS) == 0.6


@pytest.mark.parametrize("text", ["", " ", "1,,2", "1;2", "1.5", "-1", "1e400", "nan", 7, None, [True], {"1": 2}])
def test_what_is_no_list_of_messages_is_refused(text: object) -> None:
    with pytest.raises(DomainError, match="messages must be a list"):
        answer("cloak:alg-2", {"messages": text, "modulus": 101, "scale": 10, "n_users": 3})


@pytest.mark.parametrize("text", ["1e400", "1e78", "1e999999999", "0.5", "nan", "inf", "x", -1, 1.5, True])
def test_what_is_no_modulus_is_refused(text: object) -> None:
    with pytest.raises(DomainError, match=r"modulus must be a whole number in \[2, 2\^256\]"):
        answer("cloak:alg-2", {"messages": "1", "modulus": text, "scale": 1, "n_users": 2})


@pytest.mark.parametrize("text", ["36893488147419103233", 36893488147419103233, "36893488147419103233.0"])
def test_no_digit_of_a_large_modulus_is_lost(text: object) -> None:
    reply = answer("cloak:alg-2", {"messages": [2**65], "modulus": text, "scale": 2**64, "n_users": 2})
    assert reply["inputs"]["modulus"] == 2**65 + 1
    assert reply["value"] == 2
