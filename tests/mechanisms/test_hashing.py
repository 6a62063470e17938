"""Hash functions: exact arithmetic against Python's whole numbers, independence by its own definition."""

from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.sketches.hashing import (
    _LETTERS,
    LONGEST,
    PRIME,
    Hashes,
    keyed_uniforms,
    numbered,
    spelled,
    times,
)

residues = st.integers(0, PRIME - 1)


@given(a=residues, b=residues)
def test_arithmetic_modulo_the_prime_is_exact(a: int, b: int) -> None:
    pair = np.array([a], dtype=np.uint64), np.array([b], dtype=np.uint64)
    assert int(times(*pair)[0]) == a * b % PRIME


@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_a_function_is_a_polynomial_of_the_right_degree(k: int) -> None:
    """k-th differences vanish modulo the prime, (k - 1)-th do not: any k values are free, and no more."""
    items = [*range(1000, 1020), *range(PRIME - 20, PRIME)]
    for row in Hashes(rows=3, independence=k, seed=5).values(items):
        for start in (0, 5, 20, 20 + 19 - k):
            values = [int(value) for value in row[start : start + k + 1]]
            assert sum((-1) ** i * comb(k, i) * value for i, value in enumerate(values)) % PRIME == 0
            assert sum((-1) ** i * comb(k - 1, i) * value for i, value in enumerate(values[:k])) % PRIME != 0


def test_two_buckets_are_uniform_together() -> None:
    first, second = Hashes(rows=20_000, independence=2, seed=1).buckets([17, 123456789], 5).T
    assert chisquare(np.bincount(5 * first + second, minlength=25)).pvalue > 1e-4


def test_four_signs_are_independent() -> None:
    signs = Hashes(rows=20_000, independence=4, seed=2).signs([1, 2, 3, 10**15])
    patterns = ((signs > 0) * [8, 4, 2, 1]).sum(axis=1)
    assert chisquare(np.bincount(patterns, minlength=16)).pvalue > 1e-4
    assert set(np.unique(signs)) == {-1, 1}


def test_keyed_uniforms_belong_to_the_item() -> None:
    drawn = keyed_uniforms([5, 9, 5], 4000, seed=3)
    assert (drawn[:, 0] == drawn[:, 2]).all()
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) < 0.08
    counts, _ = np.histogram(drawn[:, :2], bins=20, range=(0, 1))
    assert chisquare(counts).pvalue > 1e-4
    assert (keyed_uniforms([5], 4000, seed=4)[:, 0] != drawn[:, 0]).all()


@pytest.mark.parametrize("drawn", [0.0, 1 - 2.0**-53, 0.5, 1 - 2.0**-52])
def test_keyed_uniforms_keep_away_from_0_and_1(drawn: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest double that is drawn and half a step are 1 when rounded to even."""

    class Drawn:
        def __init__(self, _: Any) -> None: ...

        def random(self, count: int) -> Any:
            return np.full(count, drawn)

    monkeypatch.setattr(np.random, "Generator", Drawn)
    found = keyed_uniforms([5], 1, seed=0)[0, 0]
    assert 0 < found < 1
    assert abs(found - drawn) <= 2.0**-54


@given(st.lists(st.text(_LETTERS, min_size=1, max_size=LONGEST), max_size=5))
def test_words_and_numbers(words: list[str]) -> None:
    assert spelled(numbered(words)) == words


@pytest.mark.parametrize("items", [[-1], [PRIME], [0.5], [float("nan")], ["word"]])
def test_bad_items_are_refused(items: Any) -> None:
    with pytest.raises(DomainError, match="items must be whole numbers"):
        Hashes(1, 2, 1).values(items)
    with pytest.raises(DomainError, match="items must be whole numbers"):
        keyed_uniforms(items, 1, seed=1)
