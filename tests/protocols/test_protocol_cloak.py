"""The cloak protocol: shares add up and tell nothing, the sum is exact, and what is out of place is refused."""

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from scipy.stats import chisquare, nbinom, poisson

from flamelib.accounting.splitting.n_user_bounds import users_distance
from flamelib.core.guarantees import Adjacency
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.encoding import floor_of_product, from_signed, round_exactly
from flamelib.mechanisms.integers.decoding import estimate
from flamelib.mechanisms.integers.modular import add_up, centred
from flamelib.mechanisms.integers.noise import PolyaShare, SkellamShare, TruncatedLaplace
from flamelib.mechanisms.integers.randomness import Release, Simulation
from flamelib.protocols.cloak import (
    CloakProtocol,
    account,
    analyze,
    analyze_centred,
    average,
    encode,
    noise_law,
    pool,
    prerandomize,
    relay,
    run,
    run_vector,
    scaled,
    share_of_seed,
    shuffler,
    split,
    split_by_seeds,
    to_signed,
    total,
)

MODULI = [1001, 2**16, 2**40 - 87, 2**62, 2**62 + 1, 2**100 + 7]
UNLIKELY = 1e-6


@pytest.fixture(params=["simulation", "release"])
def source(request):
    return Simulation(np.random.default_rng(2)) if request.param == "simulation" else Release()


class Given:
    """A source that says given words, to go through all of them."""

    def __init__(self, words):
        self.words = np.array(words)

    def uniform(self, modulus, shape):
        return self.words.reshape(shape)


# --- shares -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_messages", [2, 3, 9])
@pytest.mark.parametrize("modulus", MODULI)
def test_shares_add_up(source, modulus, n_messages):
    protocol = CloakProtocol(5, modulus, 100, n_messages)
    secrets = prerandomize(protocol, [0, 1, 99, 100, -3], source)
    shares = split(protocol, secrets, source)
    assert shares.shape == (5, n_messages)
    assert [sum(row) % modulus for row in shares.tolist()] == [0, 1, 99, 100, modulus - 3]
    assert shares.min() >= 0
    assert shares.max() < modulus


@pytest.mark.parametrize(("modulus", "n_messages"), [(5, 2), (5, 3), (4, 4), (3, 4)])
def test_any_shares_but_one_are_exactly_uniform(modulus, n_messages):
    """All words that can be drawn, one after the other: every combination of m - 1 shares occurs equally often."""
    protocol = CloakProtocol(2, modulus, 1, n_messages)
    words = list(itertools.product(range(modulus), repeat=n_messages - 1))
    for secret in range(modulus):
        secrets = np.full(len(words), secret)
        shares = split(protocol, secrets, Given([*np.array(words).T, secrets]))
        assert (shares.sum(axis=1) % modulus == secret).all()
        for kept in itertools.combinations(range(n_messages), n_messages - 1):
            counts = Counter(map(tuple, shares[:, kept].tolist()))
            assert set(counts.values()) == {1}
            assert len(counts) == modulus ** (n_messages - 1)


@pytest.mark.parametrize("modulus", [1001, 2**40 - 87, 2**100 + 7])
def test_seeds_stand_for_all_shares_but_one(modulus):
    protocol, rng = CloakProtocol(3, modulus, 5, 4), np.random.default_rng(4)
    secret = Simulation(rng).uniform(modulus, (50,))
    seeds = [rng.bytes(32) for _ in range(3)]
    shares = [share_of_seed(protocol, seed, 50) for seed in seeds] + [split_by_seeds(protocol, secret, seeds)]
    assert (add_up(np.stack(shares, axis=1), modulus) == secret).all()
    assert (share_of_seed(protocol, seeds[0], 20) == shares[0][:20]).all(), "a seed always stands for the same numbers"
    assert (shares[0] != shares[1]).any()
    for bad in (seeds[:2], [*seeds[:2], seeds[0]], [*seeds[:2], b"short"]):
        with pytest.raises(DomainError, match="seed"):
            split_by_seeds(protocol, secret, bad)


def test_shares_of_seeds_are_uniform_beyond_one_key():
    """20,000 numbers take three keys of 64 KiB."""
    protocol = CloakProtocol(3, 101, 5, 4)
    found = share_of_seed(protocol, bytes(32), 20_000)
    assert chisquare(np.bincount(found, minlength=101)).pvalue > UNLIKELY
    assert (found[:8192] != found[8192:16384]).mean() > 0.97, "each key has numbers of its own"


def test_pooling_copies_nothing_and_mixes_no_coordinates():
    protocol = CloakProtocol(3, 1001, 10, 4)
    shares = encode(protocol, [[0.1, 0.2], [0.3, 0.4], [0.5, 1.0]], Release())
    together = pool(shares)
    assert np.shares_memory(together, shares)
    assert together.shape == (2, 12)
    assert (together.sum(axis=1) % 1001).tolist() == [1 + 2 + 5, 2 + 4 + 10]  # the double 0.3 is less than 3/10


# --- the estimate -----------------------------------------------------------------------------------


@pytest.mark.parametrize("modulus", [m for m in MODULI if m > 7 * 100])
@pytest.mark.parametrize("rounding", ["floor", "grid"])
def test_without_noise_the_estimate_is_the_rounded_sum(source, modulus, rounding):
    values = np.array([0.0, 0.01, 0.29, 0.5, 0.57, 0.99, 1.0])
    exact = {
        "floor": sum(math.floor(Fraction(x) * 100) for x in values.tolist()),
        "grid": 0 + 1 + 29 + 50 + 57 + 99 + 100,
    }
    protocol = CloakProtocol(7, modulus, 100, 5, rounding)
    expected = exact[rounding] / 100
    assert run(protocol, values, source) == expected
    messages = shuffler(pool(encode(protocol, values, source)), source)
    found = total(protocol, messages)
    assert float(analyze(protocol, found)) == float(analyze_centred(protocol, found)) == expected
    assert float(average(protocol, expected)) == expected / 7
    assert estimate(messages.tolist(), modulus, 100, 7) == expected


@pytest.mark.parametrize("scale", [1, 3, 10, 1000, 2**26 + 1, 999_999_937, 2**53, 2**53 + 1, 10**30])
def test_the_floor_is_exact(scale):
    """Against fractions, on grids, next to their points and at the ends of the doubles."""
    rng = np.random.default_rng(0)
    base = np.concatenate([rng.random(100), np.arange(101) / 100, [0, 1, 5e-324, 1e-300, 1 - 2**-53, 1 / 3]])
    values = np.clip(np.concatenate([base, np.nextafter(base, 0), np.nextafter(base, 1)]), 0, 1)
    exact = [Fraction(x) * scale for x in values.tolist()]
    assert floor_of_product(values, scale).tolist() == [math.floor(one) for one in exact]
    rests = []
    round_exactly(values, scale, lambda chances: rests.append(chances) or chances > 1)
    assert np.allclose(rests[0], [float(one - math.floor(one)) for one in exact], rtol=0, atol=2**-53)


def test_random_rounding_is_unbiased_and_needs_no_grid(source):
    protocol = CloakProtocol(2, 1001, 4, 3, "random")
    found = scaled(protocol, np.full(20_000, 0.3), source)
    assert set(found.tolist()) == {1, 2}
    assert found.mean() == pytest.approx(1.2, abs=5 * 0.4 / math.sqrt(20_000))
    assert scaled(protocol, [0.0, 0.25, 1.0], source).tolist() == [0, 1, 4]


@pytest.mark.parametrize(("modulus", "scale", "n_users"), [(31, 2, 5), (31, 5, 2), (7, 1, 2), (50, 3, 4)])
def test_both_readings_at_every_residue(modulus, scale, n_users):
    """The clipping rule against its registered home; the centred one by the nearest interval."""
    protocol = CloakProtocol(n_users, modulus, scale, 2)
    residues = np.arange(modulus)
    expected = [estimate([z], modulus, scale, n_users) for z in range(modulus)]
    assert analyze(protocol, residues).tolist() == expected
    for z, found in zip(range(modulus), analyze_centred(protocol, residues).tolist(), strict=True):
        beyond, before = z - n_users * scale, modulus - z  # steps above the largest sum, or below 0
        assert found == (z if beyond <= before else z - modulus) / scale


@pytest.mark.parametrize("modulus", [2**40 - 87, 2**62, 2**62 - 1, 2**63, 2**80 + 3])
def test_sums_of_many_large_messages_do_not_overflow(modulus):
    messages = np.full(1003, modulus - 1, dtype=np.int64 if modulus <= 2**62 else object)
    assert int(add_up(messages, modulus)) == -1003 % modulus
    table = np.stack([messages, messages])
    assert add_up(table, modulus).tolist() == [-1003 % modulus] * 2
    assert add_up(table, modulus, axis=0).tolist() == [modulus - 2] * 1003


# --- shufflers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("honest", [0, 1, 2])
def test_one_honest_shuffler_is_enough(source, honest):
    """The others apply orders of their own choice, before and after it."""
    dishonest = [np.flip, lambda messages: np.roll(messages, 1)]
    chain = [*dishonest[:honest], lambda messages: shuffler(messages, source), *dishonest[honest:]]
    counts = Counter(tuple(relay(np.array([1, 2, 3]), chain).tolist()) for _ in range(1200))
    assert chisquare([counts[one] for one in itertools.permutations([1, 2, 3])]).pvalue > UNLIKELY


# --- noise ------------------------------------------------------------------------------------------


def test_noise_is_added_by_those_whose_coin_says_so(source):
    law = TruncatedLaplace(2**20 - 1, 0.99)
    protocol = CloakProtocol(2, 2**20 - 1, 10, 3, noise=law, noise_rate=0.25)
    found = prerandomize(protocol, np.full(20_000, 3), source)
    off = np.where(found > 2**19, found - (2**20 - 1), found) - 3
    stays = 0.75 + 0.25 * (1 - 0.99) / (1 + 0.99)
    assert (off == 0).mean() == pytest.approx(stays, abs=5 * math.sqrt(stays * (1 - stays) / 20_000))
    variance = 0.25 * 2 * 0.99 / 0.01**2
    assert (off**2).mean() == pytest.approx(variance, rel=0.2)


@pytest.mark.parametrize("modulus", [3001, 2**100 + 7])
def test_noisy_rounds_of_vectors(source, modulus):
    """Sums of both signs; the noise of ten users is that of the law of the sum."""
    protocol = CloakProtocol(10, modulus, 10, 3, noise=SkellamShare(10, 4.0))
    rows = np.tile([-20, 0, 7], (10, 1))
    found = np.array([run_vector(protocol, rows, source) for _ in range(40)]) - [-200, 0, 70]
    assert np.abs(found.astype(float)).max() < 14
    assert 1.5 < np.mean(found.astype(float) ** 2) < 9


# --- what is out of place ---------------------------------------------------------------------------

GOOD = CloakProtocol(3, 1001, 100, 4)


@pytest.mark.parametrize("values", [[0.5, math.nan], [math.inf, 0.5], [-0.5, 0.5], [1.5, 0.5], ["a", "b"], 0.5])
@pytest.mark.parametrize("rounding", ["floor", "random", "grid"])
def test_values_that_are_none_are_refused(values, rounding):
    with pytest.raises(DomainError, match="values"):
        encode(CloakProtocol(2, 1001, 100, 4, rounding), values, Release())


def test_the_clipping_rule_needs_room_for_noise():
    small = CloakProtocol(3, 900, 100, 4, noise=PolyaShare(3, 0.9))
    with pytest.raises(DomainError, match="3 \\* n_users \\* scale = 900"):
        analyze(small, 5)
    assert float(analyze_centred(small, 890)) == -0.1
    assert float(analyze(CloakProtocol(3, 901, 100, 4, noise=PolyaShare(3, 0.9)), 890)) == 0


def test_missing_and_doubled_messages_are_noticed():
    """By their number alone: one lost and another doubled are as many as before, and the sum is anything."""
    messages = pool(encode(GOOD, [0.5, 0.25, 1.0], Release()))
    assert int(total(GOOD, messages)) == 175
    for wrong in (messages[1:], np.append(messages, messages[0]), messages[:0], messages.reshape(3, 4)):
        with pytest.raises(DomainError, match="messages must be 12"):
            total(GOOD, wrong)
    swapped = np.append(messages[1:], messages[1])
    assert int(total(GOOD, swapped)) == (175 - int(messages[0]) + int(messages[1])) % 1001
    assert estimate([], 1001, 100, 3) == 0


@pytest.mark.parametrize("odd", [-1, 1001, 0.5])
def test_messages_that_are_no_residues_are_refused(odd):
    with pytest.raises(DomainError, match="from 0 to modulus - 1 = 1000"):
        total(GOOD, [odd] + [0] * 11)


# --- moduli of any size -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_users", "modulus", "scale"),
    [
        (7, 2**64 + 13, 2**61),
        (50, 2**100, 2**90),
        (16, 2**66 + 1, 2**60),
        (3, 2**64, 2**62),
        (2, 2**63, 2**61),
        (3, 2**62, 2**60),
    ],
)
def test_sums_beyond_the_machine_word(source, n_users, modulus, scale):
    """Full sums from 2^61 to 2^96 through every reading, of arrays with and without axes and of plain numbers."""
    protocol, half, ones = CloakProtocol(n_users, modulus, scale, 3), scale // 2, np.ones(n_users)
    assert run(protocol, ones, source) == n_users
    assert run(protocol, [1.0, *[0.5] * (n_users - 1)], source) == 1 + (n_users - 1) / 2
    assert float(average(protocol, run(protocol, ones, source))) == 1
    assert float(to_signed(protocol, run(protocol, from_signed(2 * ones, 2.0), source), 2.0)) == 2 * n_users
    found = total(protocol, pool(encode(protocol, ones, source)))
    assert int(found) == protocol.full
    assert float(analyze(protocol, found)) == float(analyze_centred(protocol, found)) == n_users
    rows = np.array([[scale, -half]] * n_users, dtype=object)
    turn = (modulus - 1) // 2
    whole = [(exact + turn) % modulus - turn for exact in (protocol.full, -n_users * half)]
    assert run_vector(protocol, rows, source).tolist() == run_vector(protocol, rows.tolist(), source).tolist()
    assert run_vector(protocol, rows, source).tolist() == whole


@pytest.mark.parametrize(("n_users", "modulus", "scale"), [(16, 2**66 + 1, 2**60), (50, 2**100, 2**90), (2, 2**64, 1)])
def test_readings_at_the_edges_of_large_moduli(n_users, modulus, scale):
    """Against Python's whole numbers, each residue as a number, an array without axes, with one and with two."""
    protocol = CloakProtocol(n_users, modulus, scale, 2)
    full, turn = protocol.full, (modulus + protocol.full) // 2
    edges = {0, 1, 8 * scale % modulus, full - 1, full, full + 1, 2 * full, 2 * full + 1, turn, turn + 1}
    for z in sorted(z for z in edges | {2**63 - 1, 2**63, 2**64 - 1, modulus - 1} if z < modulus):
        clipped = estimate([z], modulus, scale, n_users)
        near = Fraction(z if z <= turn else z - modulus, scale)
        around = z if z <= modulus // 2 else z - modulus
        for shape in (None, (), (1,), (1, 1)):
            given_total = z if shape is None else np.full(shape, z, dtype=object)
            for found, expected in (
                (analyze(protocol, given_total), clipped),
                (analyze_centred(protocol, given_total), float(near)),
                (centred(given_total, modulus), around),
            ):
                assert found.shape == (shape or ())
                assert found.ravel().tolist() == [expected]


def test_lists_across_the_sign_bit_are_exact():
    """Numpy makes doubles of a list with whole numbers on both sides of 2^63."""
    protocol = CloakProtocol(2, 2**64, 4, 2)
    assert int(total(protocol, [2**63 + 1, 2**63 + 2, 0, 1])) == 4
    assert run_vector(protocol, [[2**63, -1], [-(2**63) + 1, 3]], Release()).tolist() == [1, 2]


# --- guarantees -------------------------------------------------------------------------------------


def test_without_noise_only_equal_sums_are_alike():
    found = account(CloakProtocol(1000, 2**32 - 5, 10, 12), 1e-6)
    assert found.one_user is None
    assert found.equal_sums.epsilon == 0
    assert found.equal_sums.adjacency is Adjacency.SUM_PRESERVING
    assert found.equal_sums.delta == float(users_distance(2**32 - 5, 12, 1000)) < 2**-40
    fewer = account(CloakProtocol(1000, 2**32 - 5, 10, 12), 1e-6, colluding=500)
    assert fewer.equal_sums.delta > found.equal_sums.delta
    assert account(CloakProtocol(1000, 2**32 - 5, 10, 12, "random"), 1e-6) == (None, None)


NOISES = {
    "Polya": (PolyaShare(900, math.exp(-1e-4)), 1.0, (0.9, 1.0)),
    "Laplace": (TruncatedLaplace(3 * 10**7 + 1, math.exp(-0.9e-4)), 0.015, (0.3, 0.9)),
    "Skellam": (SkellamShare(900, 4e9), 1.0, (0.5, 2.0)),
}


@pytest.mark.parametrize("name", NOISES)
def test_noise_guards_one_user(name):
    """More messages and less collusion never make it worse; too few messages are refused."""
    noise, rate, (low, high) = NOISES[name]
    given = {"noise": noise, "noise_rate": rate}
    found = account(CloakProtocol(1000, 3 * 10**7 + 1, 10**4, 12, **given), 1e-6, colluding=100).one_user
    assert low < found.epsilon < high
    assert (found.delta, found.adjacency) == (1e-6, Adjacency.REPLACE_ONE)
    assert account(CloakProtocol(1000, 3 * 10**7 + 1, 10**4, 20, **given), 1e-6).one_user.epsilon <= found.epsilon
    with pytest.raises(DomainError, match="n_messages"):
        account(CloakProtocol(1000, 3 * 10**7 + 1, 10**4, 4, **given), 1e-6)


def test_shares_of_exactly_the_honest_users_need_fewer_messages():
    """Seven are enough where the bound for any data sets of equal sum asks for eight; not if one more is honest."""
    decay = math.exp(-1e-4)
    for n_messages, planned, colluding in ((7, 1000, 0), (7, 950, 50)):
        shape = (1000, 3 * 10**7 + 1, 10**4, n_messages)
        found = account(CloakProtocol(*shape, noise=PolyaShare(planned, decay)), 1e-6, colluding).one_user
        assert 0.9999 < found.epsilon <= 1 + 1e-9
        with pytest.raises(DomainError, match="delta"):
            account(CloakProtocol(*shape, noise=PolyaShare(planned - 1, decay)), 1e-6, colluding)


def moved(law, shift, epsilon):
    """Delta of a law, an array around its middle, moved by so much against the law itself."""
    still, gone = np.append(law, np.zeros(shift)), np.append(np.zeros(shift), law)
    return float(np.maximum(gone - math.exp(epsilon) * still, 0).sum())


def both_ways(mass):
    """Law of a difference of two numbers with these masses, around its middle."""
    return np.correlate(mass, mass, "full")


def truncated(honest):
    """Sums of noise that seven of ten users add."""
    one = 0.7 * 0.8 ** np.abs(np.arange(-150.0, 151.0))
    one /= one.sum() / 0.7
    one[150] += 0.3
    return reduce(np.convolve, [one] * honest)


SHARED = {
    "Skellam": (SkellamShare(8, 100.0), 1.0, lambda h: both_ways(poisson.pmf(np.arange(300), 100.0 * h / 16))),
    "Polya": (PolyaShare(8, 0.7), 1.0, lambda h: both_ways(nbinom.pmf(np.arange(300), min(h, 8) / 8, 0.3))),
    "Laplace": (TruncatedLaplace(301, 0.8), 0.7, truncated),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("colluding", [4, 8])
def test_the_account_pays_for_sum_and_shares(name, colluding):
    """With the noise of the honest users only, by its masses, delta is not exceeded, nor is much of it left."""
    (noise, rate, law_of), modulus, honest = SHARED[name], 2**20 - 3, 10 - colluding
    law, distance = law_of(honest), float(users_distance(modulus, 20, honest))
    known = 0
    for delta in np.geomspace(2 * distance, min(1e4 * distance, 1.0), 8):
        protocol = CloakProtocol(10, modulus, 3, 20, noise=noise, noise_rate=rate)
        try:
            found = account(protocol, float(delta), colluding).one_user
        except DomainError:
            assert not known
            continue
        known += 1
        whole = moved(law, 3, found.epsilon) + (1 + math.exp(found.epsilon)) * distance
        assert whole <= delta * (1 + 1e-9)
        assert whole >= 0.8 * delta or found.epsilon == 0
    assert known > 2


def test_cutting_noise_off_is_paid_for():
    """What it costs of delta is not left for the sum."""
    wide, cut = (CloakProtocol(10, 2**20 - 3, 3, 30, noise=TruncatedLaplace(end, 0.8)) for end in (301, 81))
    beyond = 10 * 2 * 0.8**41 / 1.8
    found = account(cut, 0.02).one_user.epsilon
    left = 0.02 - (1 + math.exp(found)) * beyond
    assert found == pytest.approx(account(wide, left).one_user.epsilon, rel=1e-4)
    assert found > 1.05 * account(wide, 0.02).one_user.epsilon


class Anything:
    """Noise of a law that no account knows."""

    def sample(self, shape, randomness):
        return np.zeros(shape, dtype=np.int64)


def test_noise_that_is_not_understood_is_refused():
    for noise, rate, culprit in (
        (Anything(), 1.0, "noise"),
        (PolyaShare(3, 0.9), 0.5, "noise"),
        (PolyaShare(4, 0.9), 1.0, "at most n_users = 3"),
    ):
        with pytest.raises(DomainError, match=culprit):
            account(CloakProtocol(3, 1001, 100, 40, noise=noise, noise_rate=rate), 0.1)
    with pytest.raises(DomainError, match="colluding"):
        account(GOOD, 0.1, colluding=2)


@pytest.mark.parametrize("n_users", [2, 3, 5])
def test_the_law_of_all_noise_is_the_convolution_of_each(n_users):
    noise = TruncatedLaplace(31, 0.7)
    size = np.abs(np.arange(-15, 16))
    one = 0.5 * 0.7**size / (0.7**size).sum() + 0.5 * (size == 0)
    expected = np.array([1.0])
    for _ in range(n_users):
        expected = np.convolve(expected, one)
    folded = np.bincount((np.arange(len(expected)) - 15 * n_users) % 31, weights=expected, minlength=31)
    law = noise_law(CloakProtocol(n_users, 31, 2, 4, noise=noise, noise_rate=0.5))
    assert law == pytest.approx(folded, abs=1e-13)
    with pytest.raises(DomainError, match="Laplace"):
        noise_law(CloakProtocol(n_users, 31, 2, 4, noise=PolyaShare(5, 0.5)))
