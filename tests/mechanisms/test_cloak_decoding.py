"""The analyzer's rule: its borders, its group, and what happens beside it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flamelib.answers import answer
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.integers.decoding import estimate

SCALE, USERS = 10, 3
FULL = SCALE * USERS


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


@pytest.mark.parametrize("text", ["36893488147419103233", 36893488147419103233, "36893488147419103233.0"])
def test_no_digit_of_a_large_modulus_is_lost(text: object) -> None:
    reply = answer("cloak:alg-2", {"messages": [2**65], "modulus": text, "scale": 2**64, "n_users": 2})
    assert reply["inputs"]["modulus"] == 2**65 + 1
    assert reply["value"] == 2
