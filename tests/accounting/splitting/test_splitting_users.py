"""The distance of shuffled shares among many users: against pairings one by one, exact fractions, and exact laws."""

import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from flamelib.accounting.splitting import n_user_bounds
from flamelib.accounting.splitting.enumeration import shuffled_distance
from flamelib.accounting.splitting.lemmas import messages_needed
from flamelib.accounting.splitting.n_user_bounds import least_messages, users_distance

# --- oracles: every pairing of messages; the first block's component, in fractions ------------------------------------


def components(pairing: tuple[int, ...], n_users: int, n_messages: int) -> int:
    """Components of the graph in which message i joins a left user to a right one."""
    group = list(range(2 * n_users))
    for left, right in enumerate(pairing):
        one, two = group[left // n_messages], group[n_users + right // n_messages]
        group = [one if label == two else label for label in group]
    return len(set(group))


@cache
def excess(modulus: int, n_messages: int, n_users: int) -> Fraction:
    """The mean of N^(c-1), less 1, by the component of the first user, all in whole numbers."""

    def share(i: int, j: int) -> Fraction:
        ways = math.comb(j - 1, i - 1) * math.comb(j, i)
        return Fraction(ways, math.comb(j * n_messages, i * n_messages))

    connected: list[Fraction] = [Fraction(0)]
    found: list[Fraction] = [Fraction(0)]
    for j in range(1, n_users + 1):
        connected.append(1 - sum((share(i, j) * connected[i] for i in range(1, j)), Fraction(0)))
        rest = (share(i, j) * connected[i] * (modulus * (1 + found[j - i]) - 1) for i in range(1, j))
        found.append(sum(rest, Fraction(0)))
    return found[n_users]


def distance(modulus: int, n_messages: int, n_users: int) -> mpmath.mpf:
    exact = excess(modulus, n_messages, n_users) * modulus / (2 * (modulus - 1))
    return min(mpmath.mpf(1), mpmath.sqrt(mpmath.mpf(exact.numerator) / exact.denominator))


@pytest.mark.parametrize(("n_users", "n_messages"), [(2, 2), (2, 3), (3, 2), (6, 1)])
def test_the_fractions_are_those_of_every_pairing(n_users: int, n_messages: int) -> None:
    every = [components(p, n_users, n_messages) for p in itertools.permutations(range(n_users * n_messages))]
    for modulus in (2, 3, 10):
        mean = Fraction(sum(modulus ** (count - 1) for count in every), len(every))
        assert excess(modulus, n_messages, n_users) == mean - 1


@pytest.mark.parametrize("modulus", [2, 3, 10, 101, 2**40 - 87, 2**256])
@pytest.mark.parametrize("n_messages", [1, 2, 3, 4, 7, 20])
def test_the_answer_is_that_of_exact_fractions_rounded_up(modulus: int, n_messages: int) -> None:
    for n_users in (2, 3, 5, 7, 8, 9, 14, 25):
        found, expected = users_distance(modulus, n_messages, n_users), distance(modulus, n_messages, n_users)
        assert found - found.uncertainty <= expected <= found
        assert found.uncertainty <= 1e-8 * found


@pytest.mark.parametrize(("modulus", "n_messages", "n_users"), [(2**6, 3, 800), (2**33, 6, 1000), (50, 3, 400)])
def test_bracket_and_recursion_agree_for_many_users(modulus: int, n_messages: int, n_users: int) -> None:
    """In the recursion most of the terms of a row are left out here."""
    near, far = (end(modulus, n_messages, n_users) for end in (n_user_bounds._recursion, n_user_bounds._bracket))
    assert far.low < near.high < near.low + 1e-6
    assert near.low < far.high < far.low + 0.1


@pytest.mark.parametrize(("modulus", "n_messages", "n_users"), [(3, 3, 8), (64, 3, 25), (101, 5, 12), (2**40, 9, 30)])
def test_the_bracket_holds_exact_fractions(modulus: int, n_messages: int, n_users: int) -> None:
    exact, ends = excess(modulus, n_messages, n_users), n_user_bounds._bracket(modulus, n_messages, n_users)
    assert ends.low <= mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator) <= ends.high


def test_terms_left_out_of_a_row_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = excess(40, 4, 40)
    log_exact = mpmath.log(mpmath.mpf(exact.numerator) / exact.denominator)
    monkeypatch.setattr(n_user_bounds, "N_END_TERMS", 5)
    found = n_user_bounds._recursion(40, 4, 40)
    assert found.low <= log_exact <= found.high < log_exact + 0.01


@given(st.sampled_from([(2, 5), (3, 4), (4, 3), (5, 3), (7, 2)]), st.integers(2, 4), st.integers(2, 4), st.data())
def test_the_bound_is_above_the_exact_distance(
    size: tuple[int, int], n_users: int, n_messages: int, data: st.DataObject
) -> None:
    modulus, most = size
    values = st.lists(st.integers(0, modulus - 1), min_size=n_users, max_size=n_users)
    a, b = data.draw(values), data.draw(values)
    b[-1] += sum(a) - sum(b)
    exact = shuffled_distance(modulus, min(n_messages, most), a, b, 0.0)
    assert exact <= users_distance(modulus, min(n_messages, most), n_users) <= 1


@pytest.mark.parametrize(
    ("n_users", "bits", "log2_modulus", "expected"),
    [(100, 40, 20, 15), (1000, 40, 32, 12), (1000, 53, 40, 15), (3000, 40, 32, 11), (20, 40, 32, 22)],
)
def test_messages_of_the_table(n_users: int, bits: int, log2_modulus: int, expected: int) -> None:
    modulus = 2**log2_modulus
    assert least_messages(bits, n_users, modulus) == expected <= messages_needed(bits, n_users, log2_modulus)
    assert users_distance(modulus, expected, n_users) <= 2.0**-bits < users_distance(modulus, expected - 1, n_users)
    assert least_messages(bits, 2 * n_users, modulus, colluding=n_users) == expected


@pytest.mark.parametrize("n_users", [10**4, 10**6, 10**9, 2**53])
def test_very_many_users_have_the_leading_term(n_users: int) -> None:
    modulus, n_messages = 30 * n_users**2, 8
    found = users_distance(modulus, n_messages, n_users)
    pairs = mpmath.binomial(n_users * n_messages, n_messages)
    assert -2 * math.log2(found) == pytest.approx(float(mpmath.log(pairs / modulus / n_users**2 * 2, 2)), abs=0.01)
    assert found.uncertainty <= 1e-9 * found
    assert found > mpmath.sqrt(modulus * mpmath.mpf(n_users) ** 2 / pairs / 2)
    assert least_messages(40, n_users, modulus) <= messages_needed(40, n_users, math.log2(modulus))


def test_logarithms_of_factorials_are_within_the_slack() -> None:
    for x in (2.0, 5.0, 12.0, 171.0, 1e4, 3.3e5, 7e8, 1e12, 1e17, 9e20):
        assert abs(gammaln(x + 1) - mpmath.loggamma(mpmath.mpf(x) + 1)) <= n_user_bounds.RTOL_LOG / 8 * gammaln(x + 1)
    factors = 10**6 * 10**5 + np.arange(1.0, 10**5 + 1)
    exact = mpmath.loggamma(mpmath.mpf(factors[-1]) + 1) - mpmath.loggamma(mpmath.mpf(factors[0]))
    assert abs(np.log(factors).sum() - exact) <= n_user_bounds.RTOL_LOG / 8 * exact
