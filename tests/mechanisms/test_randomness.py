"""Sources of randomness: unbiased residues of every modulus, coins of exactly their chance, uniform orders."""

import itertools
import math
import secrets

import numpy as np
import pytest
from scipy.stats import chisquare

import flamelib.mechanisms.integers.randomness as module
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.integers.modular import LARGEST_MACHINE, residue_type, residues
from flamelib.mechanisms.integers.randomness import Release, Simulation

SOURCES = {"simulation": Simulation(np.random.default_rng(6)), "release": Release()}
UNLIKELY = 1e-6  # a test of the system's randomness fails once in so many runs


@pytest.fixture(params=SOURCES)
def source(request):
    return SOURCES[request.param]


@pytest.mark.parametrize("modulus", [2, 3, 7, 257, 2**40 - 87, 3 * 2**60, LARGEST_MACHINE, 2**63 + 1, 3 * 2**80])
def test_residues_are_uniform(source, modulus):
    """By sixths of their range: words taken modulo 3 * 2^60 or 3 * 2^80 without rejection would fall short in some."""
    found = source.uniform(modulus, 6000)
    assert found.dtype == residue_type(modulus)
    assert found.min() >= 0
    assert found.max() < modulus
    cells = min(6, modulus)
    counts = np.bincount([int(one) * cells // modulus for one in found], minlength=cells)
    sizes = [-(-(i + 1) * modulus // cells) - -(-i * modulus // cells) for i in range(cells)]
    assert chisquare(counts, [6000 * size / modulus for size in sizes]).pvalue > UNLIKELY
    assert source.uniform(modulus, (2, 0, 3)).shape == (2, 0, 3)


@pytest.mark.parametrize("rate", [0.0, 0.25, 0.3, 1.0])
def test_coins_show_heads_with_their_chance(source, rate):
    heads = source.coins(rate, 20_000).sum()
    assert abs(heads - 20_000 * rate) <= 5.5 * math.sqrt(20_000 * rate * (1 - rate))
    assert source.coins([0.0, 1.0], (3, 2)).tolist() == [[False, True]] * 3


class Fixed(Release):
    """The release path with words that are known."""

    def uniform(self, modulus, shape):
        assert modulus == 2**62
        return np.broadcast_to(np.asarray(self.words.pop(0)), shape)


def test_a_coin_is_looked_at_as_closely_as_it_takes():
    """2^-70 is below the first 62 digits: heads only where they are all 0 and the next eight, too."""
    for rate, words, expected in (
        (2.0**-70, [0, 2**54 - 1], True),
        (2.0**-70, [0, 2**54], False),
        (2.0**-70, [1], False),
        (2.0**-20 + 2.0**-72, [2**42, 2**52 - 1], True),
        (2.0**-20 + 2.0**-72, [2**42, 2**52], False),
        (0.25, [2**60], False),
        (0.25, [2**60 - 1], True),
        (1.0, [2**62 - 1], True),
    ):
        source = Fixed()
        object.__setattr__(source, "words", list(words))
        assert source.coins(rate, 1).tolist() == [expected]
        assert source.words == []


def orders(permuted, kinds, repeats):
    """How often each order of so many different messages comes out."""
    rows = permuted(np.tile(np.arange(kinds), (repeats, 1)))
    index = {order: i for i, order in enumerate(itertools.permutations(range(kinds)))}
    return np.bincount([index[tuple(row)] for row in rows.tolist()], minlength=len(index))


@pytest.mark.parametrize("kinds", [2, 3, 4])
def test_every_order_is_equally_likely(source, kinds):
    counts = orders(source.permuted, kinds, 24_000)
    assert chisquare(counts).pvalue > UNLIKELY


def test_every_order_is_equally_likely_by_way_of_buckets(source, monkeypatch):
    """Cache, blocks and buckets of a few messages: all the branches of the long shuffle, against all 24 orders."""
    monkeypatch.setattr(module, "CACHED", 2)
    monkeypatch.setattr(module, "_BLOCK", 3)
    monkeypatch.setattr(module, "_BUCKETS", 2)
    counts = sum(orders(lambda rows: source.permuted(rows), 4, 1) for _ in range(1000))
    assert chisquare(counts).pvalue > UNLIKELY


def test_marked_messages_go_everywhere(source, monkeypatch):
    """The first, a middle and the last of many messages, and the distance of two that were neighbours."""
    monkeypatch.setattr(module, "CACHED", 64)
    monkeypatch.setattr(module, "_BLOCK", 256)
    monkeypatch.setattr(module, "_BUCKETS", 16)
    size, repeats = 400, 160
    places = np.array([np.argsort(source.permuted(np.arange(size)))[[0, 200, 201, 399]] for _ in range(repeats)])
    for found in (*places.T, (places[:, 1] - places[:, 2]) % size):
        assert chisquare(np.bincount(found * 8 // size, minlength=8)).pvalue > UNLIKELY


def test_long_rows_keep_their_messages(source):
    """More than the cache holds, in two rows, each on its own."""
    size = module.CACHED + 12_345
    rows = np.stack([np.arange(size), np.arange(size) + size])
    found = source.permuted(rows)
    assert np.array_equal(np.sort(found), rows)
    assert abs(np.corrcoef(found[0], rows[0])[0, 1]) < 6 / math.sqrt(size)
    assert abs(np.corrcoef(found[0], found[1])[0, 1]) < 6 / math.sqrt(size)
    large = np.array([2**90, 5, 2**90 + 1], dtype=object)
    assert sorted(source.permuted(large)) == sorted(large)


def test_equal_keys_are_drawn_again(monkeypatch):
    """Orders come from keys that all differ; with keys of two bits, four messages need many attempts."""
    words = iter(range(10**6))
    rng = np.random.default_rng(0)
    monkeypatch.setattr(Release, "_words", lambda _, count: next(words) * 0 + rng.integers(0, 4, size=count))
    counts = sum(orders(Release().permuted, 3, 1) for _ in range(1200))
    assert next(words) > 2 * 1200
    assert chisquare(counts).pvalue > UNLIKELY


def test_a_simulation_repeats_itself_and_its_children_differ():
    twins = [Simulation(np.random.default_rng(1)).spawn(2) for _ in range(2)]
    first, second = ([one.uniform(2**60, 4).tolist() for one in pair] for pair in twins)
    assert first == second
    assert first[0] != first[1]


def test_a_release_under_given_keys_repeats_itself():
    """For experiments on what attackers gain against it."""
    twins = [Release(np.random.default_rng(5).bytes) for _ in range(2)]
    first, second = ([*one.uniform(2**60, 20_000), *one.permuted(np.arange(99)), *one.coins(0.5, 99)] for one in twins)
    assert first == second
    with pytest.raises(DomainError, match=r"keys must be callable with a number of bytes, got b'secret'"):
        Release(b"secret")


def test_a_fresh_key_for_every_piece_of_the_stream():
    """Of 65536 bytes at most, from the operating system; pieces under one key would be equal."""
    assert Release().keys is secrets.token_bytes
    asked = []

    def keys(size):
        asked.append(size)
        return secrets.token_bytes(size)

    pieces = Release(keys)._tossed(3 * 65_536 + 5)
    assert asked == [32] * 4
    assert len(pieces) == 3 * 65_536 + 5
    assert len({pieces[start : start + 32].tobytes() for start in (0, 65_536, 2 * 65_536)}) == 3
    assert Release(keys).uniform(2**62, 2 * 8192 + 1).shape == (2 * 8192 + 1,)
    assert asked == [32] * 7


@pytest.mark.parametrize("modulus", [5, 2**40, 2**62, 2**62 + 1, 2**64, 2**100 + 7])
def test_residues_beyond_the_sign_bit(modulus):
    """As unsigned words, as Python's numbers and in lists with others, of which numpy alone would make doubles."""
    large = [2**63, 2**64 - 1, 2**63 + 12345]
    expected = [one % modulus for one in large]
    assert residues(np.array(large, dtype=np.uint64), modulus).tolist() == expected
    for one in large:
        for given in (one, np.uint64(one), np.array(one, dtype=np.uint64), np.array(one, dtype=object)):
            assert residues(given, modulus).tolist() == one % modulus
            assert residues(given, modulus).dtype == residue_type(modulus)
        assert residues([one, -1, np.int64(3)], modulus).tolist() == [one % modulus, -1 % modulus, 3 % modulus]
    assert residues([], modulus).tolist() == []
    for odd in ([2**63, 0.5], [0.0], np.array([1.0]), np.float64(3), [2.0**63, 1]):
        with pytest.raises(DomainError, match="wholes must be whole"):
            residues(odd, modulus)
