"""FLAME's protocols: each party sees its own part only, estimates have the exact mean and variance on every path."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import binom, chisquare, ks_2samp

from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms import sealing
from flamelib.mechanisms.randomizers import KaryResponse, LaplaceNoise
from flamelib.protocols import flame
from flamelib.protocols.flame import (
    FlameDouble,
    FlameSimple,
    FlameTopk,
    Reports,
    RoundResult,
    noise_std,
    run,
    run_sealed,
)

USERS, COPIES, CLIP = 40, 100, 0.5
BASE = np.random.default_rng(42).normal(0.1, 0.4, size=(USERS, 6))
UPDATES = np.tile(BASE, COPIES)  # every coordinate of the base stands for as many independent draws
LAPLACE, LETTERS = LaplaceNoise(1.0), KaryResponse(1.0, 4)


def protocols(randomizer, copies=COPIES):
    shared = (USERS, 6 * copies, CLIP, randomizer)
    return {
        "simple": FlameSimple(*shared),
        "double": FlameDouble(*shared, kept=2 * copies, padded=50),
        "bernoulli": FlameDouble(*shared, kept=2 * copies, padded=50, inclusion="independent"),
        "topk": FlameTopk(*shared, kept=2 * copies, padded=50),
        "hidden": FlameTopk(*shared, kept=2 * copies, padded=50, multiples=2),
    }


KINDS = list(protocols(LAPLACE))


def chances(kind):
    """Chance that a user reports a coordinate of the base as a true one."""
    if kind in ("topk", "hidden"):
        return (np.argsort(np.argsort(-np.abs(BASE), axis=1), axis=1) < 2).astype(float)
    return np.full(BASE.shape, 1.0 if kind == "simple" else 1 / 3)


def moments(randomizer, unit):
    """Variance of a decoded message and of a decoded blanket message, by listing letters or by the Laplace law."""
    if randomizer is LAPLACE:
        return np.full(unit.shape, 2.0), 2.0
    levels, mass = 3, 4 / (math.e + 3)
    letters = np.arange(4)
    decoded = (letters / levels - mass / 2) / (1 - mass)
    below = np.minimum(np.floor(unit * levels), levels - 1)[..., None]
    rounded = np.maximum(1 - np.abs(letters - unit[..., None] * levels), 0) * (
        (letters == below) | (letters == below + 1)
    )
    law = (1 - mass) * rounded + mass / 4
    return law @ decoded**2 - (law @ decoded) ** 2, decoded.var()


def expected(kind, randomizer):
    """Mean and variance of each coordinate of the base: every user sends its message, or a dummy comes in its place."""
    clipped, chance = np.clip(BASE, -CLIP, CLIP), chances(kind)
    unit = clipped / (2 * CLIP) + 0.5
    own, blanket = moments(randomizer, unit)
    mixed = chance * (own + (unit - 0.5) ** 2) + (1 - chance) * blanket - (chance * (unit - 0.5)) ** 2
    size, rate = (USERS, 1.0) if kind == "simple" else (50, 1 / 3)
    variance = (2 * CLIP / (USERS * rate)) ** 2 * (mixed.sum(axis=0) + (size - USERS) * blanket)
    return (chance * clipped).sum(axis=0) / (USERS * rate), variance


def by_parties(protocol, updates, rng):
    """A round with every dummy drawn and every bag permuted."""
    for_users, for_shuffler = rng.spawn(2)
    shuffled = flame.shuffler(protocol, flame.user(protocol, updates, for_users), for_shuffler)
    return RoundResult(*flame.analyzer(protocol, shuffled.bags), shuffled.overflow, {"stray": shuffled.strays})


PATHS = pytest.mark.parametrize("play", [run, by_parties], ids=["sums", "literal"])


def draws(protocol, play):
    """Estimates of the coordinates of the base, shape (40 * copies, 6)."""
    runs = [play(protocol, UPDATES, rng).estimate for rng in np.random.default_rng(0).spawn(40)]
    return np.array(runs).reshape(-1, 6)


# --- the estimate -----------------------------------------------------------------------------------------------------


@PATHS
@pytest.mark.parametrize("randomizer", [LAPLACE, LETTERS], ids=["laplace", "letters"])
@pytest.mark.parametrize("kind", KINDS)
def test_estimates_have_the_exact_mean_and_variance(kind, randomizer, play):
    protocol = protocols(randomizer)[kind]
    found = draws(protocol, play)
    mean, spread = expected(kind, randomizer)
    assert np.all(np.abs(found.mean(axis=0) - mean) < 5 * np.sqrt(spread / len(found)))
    assert np.all(np.abs(found.var(axis=0) / spread - 1) < 5 * math.sqrt(2 / len(found)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_sealed_round_has_the_law_of_the_open_one(kind):
    protocol = protocols(LETTERS, copies=1)[kind]
    few = dataclasses.replace(protocol, n_users=10, **({} if kind == "simple" else {"padded": 10}))
    streams = np.random.default_rng(3).spawn(160)
    sealed = [run_sealed(few, BASE[:10], rng).estimate for rng in streams[:40]]
    opened = [run(few, BASE[:10], rng).estimate for rng in streams[40:]]
    assert (
        min(ks_2samp(one, other).pvalue for one, other in zip(*map(np.transpose, (sealed, opened)), strict=True)) > 1e-3
    )


def test_noise_has_the_published_sizes():
    figure_five = (1000, 7850, 0.01)
    assert noise_std(FlameSimple(*figure_five, LaplaceNoise(0.01))) == pytest.approx(0.0894, abs=5e-5)
    for make in (FlameDouble, FlameTopk):
        assert noise_std(make(*figure_five, LaplaceNoise(0.5), 157, 333)) == pytest.approx(0.0516, abs=5e-5)
        assert noise_std(make(*figure_five, LaplaceNoise(0.5), 785, 666)) == pytest.approx(0.0146, abs=5e-5)


def test_users_may_come_in_blocks():
    protocol = protocols(LAPLACE)["topk"]
    whole = run(protocol, UPDATES, np.random.default_rng(0))
    blocks = run(protocol, iter(np.split(UPDATES, [3, 3, 20])), np.random.default_rng(0))
    assert (whole.overflow == blocks.overflow).all()
    assert whole.estimate == pytest.approx(blocks.estimate, rel=1e-12)


# --- parties ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["simple", "double", "bernoulli", "topk"])
def test_a_user_reports_from_its_own_update(kind):
    """Changing one user's update changes nothing that the others report, given the same randomness."""
    protocol = protocols(LAPLACE, copies=1)[kind]
    changed = BASE.copy()
    changed[-1] = -changed[-1, ::-1]
    one, other = (flame.user(protocol, rows, np.random.default_rng(1)) for rows in (BASE, changed))
    others = one.senders < USERS - 1
    assert (one.senders == other.senders).all()
    assert (one.places[others] == other.places[others]).all()
    assert (one.messages[others] == other.messages[others]).all()


def test_what_the_shuffler_sees_of_double_and_simple_does_not_depend_on_the_updates():
    """Same randomness, other updates: the same senders and coordinates, and envelopes of the same length."""
    for kind in ("simple", "double", "bernoulli"):
        protocol = protocols(LAPLACE, copies=1)[kind]
        one, other = (flame.user(protocol, rows, np.random.default_rng(2)) for rows in (BASE, -3 * BASE[::-1]))
        assert (one.senders == other.senders).all()
        assert (one.places == other.places).all()
        assert (one.messages != other.messages).any()


@pytest.mark.parametrize("kind", ["topk", "hidden"])
def test_of_topk_the_shuffler_sees_the_set_of_reported_coordinates_and_nothing_else(kind):
    """Updates with equal top sets but other values, signs and ranks: the same senders and coordinates, in order."""
    protocol, top = protocols(LAPLACE, copies=1)[kind], chances("topk") == 1
    values = np.where(top, 2 + np.random.default_rng(9).random(BASE.shape), -BASE / 7)
    one, other = (flame.user(protocol, rows, np.random.default_rng(3)) for rows in (BASE, values))
    assert (one.places == other.places).all()
    assert (np.diff(one.senders * 6 + one.places) > 0).all()


def test_hidden_coordinates_cannot_be_told_by_their_place_in_the_report():
    protocol = protocols(LAPLACE, copies=1)["hidden"]
    row = np.array([[0.0, 0.9, 0.0, -0.9, 0.0, 0.0]])
    sets = [tuple(flame.user(protocol, row, rng).places) for rng in np.random.default_rng(4).spawn(3000)]
    counts = Counter(sets)
    assert all(len(set(found)) == 4 and {1, 3} < set(found) for found in counts)
    assert chisquare(list(counts.values())).pvalue > 1e-3
    assert len(counts) == math.comb(4, 2)


def tokens(protocol, rows, rng):
    """Reports whose messages only say where they came from."""
    reports = flame.user(protocol, rows, rng)
    return dataclasses.replace(reports, messages=1000.0 + np.arange(reports.places.size))


@pytest.mark.parametrize("kind", KINDS)
def test_the_shuffler_moves_messages_without_reading_them(kind):
    """With other messages in the same reports everything ends up in the same slot."""
    protocol = protocols(LAPLACE, copies=1)[kind]
    reports = tokens(protocol, BASE, np.random.default_rng(5))
    other = dataclasses.replace(reports, messages=-7 * reports.messages)
    one, two = (flame.shuffler(protocol, given, np.random.default_rng(6)) for given in (reports, other))
    assert (np.where(one.bags >= 1000, -7 * one.bags, one.bags) == two.bags).all()
    assert (one.overflow == two.overflow).all()


def test_the_shuffler_works_with_envelopes_that_nobody_can_open():
    """Random bytes in place of envelopes, independent of every value: the shuffler finds nothing missing."""
    protocol, rng = protocols(LAPLACE, copies=1)["topk"], np.random.default_rng(7)
    reports = flame.user(protocol, BASE, rng)

    def noise(places, values):
        assert places.shape == values.shape
        return rng.integers(256, size=(places.size, sealing._ENVELOPE_BYTES), dtype=np.uint8)

    ideal = dataclasses.replace(reports, messages=noise(reports.places, reports.messages))
    assert flame.shuffler(protocol, ideal, rng, noise).bags.shape == (6, 50, sealing._ENVELOPE_BYTES)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("randomizer", [LAPLACE, LETTERS], ids=["laplace", "letters"])
def test_the_analyzer_sees_multisets_only(kind, randomizer):
    protocol = protocols(randomizer, copies=1)[kind]
    bags = flame.shuffler(protocol, flame.user(protocol, BASE, np.random.default_rng(0)), np.random.default_rng(1)).bags
    estimate, received = flame.analyzer(protocol, bags)
    for order in (np.sort(bags, axis=1), bags[:, ::-1], np.random.default_rng(2).permuted(bags, axis=1)):
        assert flame.analyzer(protocol, order)[0] == pytest.approx(estimate, abs=1e-12)
    assert (received == protocol.padded).all()


def test_the_slots_of_a_sender_in_two_bags_say_nothing():
    """Where the first user's messages lie in two bags: every pair of slots equally likely."""
    protocol = FlameTopk(3, 2, 1.0, LAPLACE, kept=2, padded=3)
    pairs = np.zeros((3, 3), dtype=int)
    for rng in np.random.default_rng(8).spawn(4500):
        bags = flame.shuffler(protocol, tokens(protocol, np.ones((3, 2)), rng), rng).bags
        pairs[np.flatnonzero(bags[0] == 1000)[0], np.flatnonzero(bags[1] == 1001)[0]] += 1
    assert chisquare(pairs.reshape(-1)).pvalue > 1e-3


# --- padding and overflow ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_bag_is_padded_to_its_size_exactly(kind):
    protocol = protocols(LAPLACE, copies=1)[kind]
    reports = tokens(protocol, BASE, np.random.default_rng(0))
    made = flame.shuffler(protocol, reports, np.random.default_rng(1))
    assert made.bags.shape == (6, protocol.padded)
    assert ((made.bags >= 1000).sum(axis=1) == np.bincount(reports.places, minlength=6)).all()
    assert not made.overflow.any()
    assert made.strays == 0


CROWD = np.tile([1.0, 0.1, 0.0, 0.0, 0.2], (30, 1))  # all users agree on the top coordinate


@PATHS
def test_a_full_bag_keeps_a_random_part_and_counts_the_rest(play):
    protocol = FlameTopk(30, 5, 1.0, LaplaceNoise(20.0), kept=1, padded=10)
    updates = CROWD * np.linspace(0.5, 1, 30)[:, None]
    found = [play(protocol, updates, rng) for rng in np.random.default_rng(0).spawn(1500)]
    assert all(result.overflow.tolist() == [20, 0, 0, 0, 0] for result in found)
    assert all((result.received == 10).all() for result in found)
    top = np.array([result.estimate[0] for result in found])
    share, values = 10 / 30, updates[:, 0]
    sampling = 10 * (1 - share) * values.var(ddof=1)
    variance = (sampling + 4 * 10 * 2 / 20**2) / (30 / 5) ** 2
    assert abs(top.mean() - share * values.sum() / (30 / 5)) < 5 * math.sqrt(variance / 1500)
    assert top.var() == pytest.approx(variance, rel=0.2)


@pytest.mark.parametrize("randomizer", [LaplaceNoise(5.0), KaryResponse(5.0, 3)], ids=["laplace", "letters"])
@pytest.mark.parametrize("multiples", [1, 2])
def test_full_bags_have_the_same_law_on_both_paths(randomizer, multiples):
    protocol = FlameTopk(30, 5, 1.0, randomizer, kept=1, padded=12, multiples=multiples)
    paths = [
        np.array([play(protocol, CROWD, rng).estimate for rng in stream.spawn(1200)])
        for stream, play in zip(np.random.default_rng(11).spawn(2), (run, by_parties), strict=True)
    ]
    sums, messages = np.round(paths, 9)
    assert min(ks_2samp(sums[:, j], messages[:, j]).pvalue for j in range(5)) > 1e-3


def test_hiding_among_as_many_as_the_theorem_allows_overflows_the_padding():
    """n_p = 333, n beta = 20: Theorem 5 allows 16 multiples, 320 messages on average; every fifth bag overflows."""
    users, dimension, padded = 1000, 500, 333
    protocol = FlameTopk(users, dimension, 0.01, LaplaceNoise(0.5), kept=10, padded=padded, multiples=16)
    updates = np.random.default_rng(0).normal(size=(users, dimension))
    share = float(np.mean(run(protocol, updates, np.random.default_rng(1)).overflow > 0))
    exact = float(binom.sf(padded, users, 16 * 10 / dimension))
    assert exact == pytest.approx(0.18, abs=0.005)
    assert abs(share - exact) < 5 * math.sqrt(exact * (1 - exact) / dimension)
    alone = dataclasses.replace(protocol, multiples=1)
    assert not run(alone, updates, np.random.default_rng(1)).overflow.any()
    with pytest.raises(DomainError, match="multiples must be at most"):
        dataclasses.replace(protocol, multiples=17)


# --- envelopes on the way ---------------------------------------------------------------------------------------------

SMALL = FlameTopk(6, 4, 1.0, LETTERS, kept=2, padded=6)
ROWS = np.array([[1.0, 0.5, 0.0, 0.1]] * 6)


def tampered(reports):
    """A bit turned in one envelope, another sealed for somebody else."""
    reports.messages[0, 50] ^= 1
    reports.messages[3] = sealing.seal(sealing.AnalyzerKey().public, sealing.new_round(), [1], [2.0])[0]
    return reports


def sent_twice(reports):
    again = (np.concatenate([part, part[:4]]) for part in (reports.senders, reports.places, reports.messages))
    return Reports(*again)


def overheard(reports):
    """The second user sends what it overheard of the first, at the same coordinate."""
    reports.messages[2] = reports.messages[0]
    return reports


def moved(reports):
    reports.places[0] = 3
    return reports


def of_nobody(reports):
    """Unknown senders and unknown coordinates."""
    reports.senders[:2] = -1, 6
    reports.places[2:4] = 4, -2
    return reports


@pytest.mark.parametrize(
    ("on_the_way", "rejected", "received"),
    [
        (tampered, {"unreadable": 2}, [5, 5, 6, 6]),
        (sent_twice, {"stray": 4}, [6, 6, 6, 6]),
        (overheard, {"repeated": 1}, [5, 6, 6, 6]),
        (moved, {"other coordinate": 1}, [6, 6, 6, 5]),
        (of_nobody, {"stray": 4}, [6, 6, 6, 6]),
    ],
)
def test_envelopes_changed_on_the_way_are_rejected_and_counted(on_the_way, rejected, received):
    def adversary(reports):
        copies = (np.array(part) for part in (reports.senders, reports.places, reports.messages))
        return on_the_way(Reports(*copies))

    result = run_sealed(SMALL, ROWS, np.random.default_rng(0), adversary)
    assert np.isfinite(result.estimate).all()
    assert {reason: count for reason, count in result.rejected.items() if count} == rejected
    assert result.received.tolist() == received


def test_what_is_no_letter_is_rejected():
    protocol, key, name = SMALL, sealing.AnalyzerKey(), sealing.new_round()
    envelopes = sealing.seal(key.public, name, [0, 0, 0], [3.0, 4.0, 1.5])
    estimate, received = flame.analyzer(protocol, np.pad(
        sealing.open_bags(key, name, envelopes[None]).values, ((0, 3), (0, 0)), constant_values=math.nan
    ))  # fmt: skip
    assert received.tolist() == [1, 0, 0, 0]
    assert np.isfinite(estimate).all()


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = {"n_users": 40, "dimension": 6, "clip": 0.5, "randomizer": LAPLACE}


def test_a_chance_may_belong_to_any_number_of_coordinates():
    protocol = FlameDouble(**GOOD, kept=2.5, padded=50, inclusion="independent")
    counts = [flame.user(protocol, BASE, rng).places.size for rng in np.random.default_rng(0).spawn(300)]
    assert abs(np.mean(counts) - 100) < 5 * math.sqrt(40 * 6 * (2.5 / 6) * (3.5 / 6) / 300)


@pytest.mark.parametrize("play", [run, run_sealed])
@pytest.mark.parametrize(
    ("updates", "sentence"),
    [
        (np.zeros((0, 6)), r"updates must have shape \(40, 6\)"),
        ([], r"updates must have shape \(40, 6\)"),
        (np.zeros((39, 6)), r"updates must have shape \(40, 6\)"),
        (np.zeros(6), r"updates must have shape \(40, 6\)"),
        (np.zeros((40, 6, 1)), r"updates must have shape \(40, 6\)"),
        ([[0.0] * 6] * 39 + [[0.0] * 5], "updates must be finite numbers in a rectangular array"),
        (np.where(BASE > 0.5, np.nan, BASE), "updates must be finite numbers, got nan"),
        (np.where(BASE > 0.5, np.inf, BASE), "updates must be finite numbers, got inf"),
        (np.full((40, 6), 1j), "updates must be finite numbers, got dtype"),
        (None, "updates must be finite numbers, got dtype"),
    ],
)
def test_updates_that_do_not_belong_are_refused(updates, sentence, play):
    with pytest.raises(DomainError, match=sentence):
        play(protocols(LAPLACE, copies=1)["topk"], updates, np.random.default_rng(0))
