"""Sums of shares that go wrong and statements that fail: exact laws, listings and counts beside every number."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from flamebook.attacks import too_few as counting
from flamebook.claims import ledger
from flamebook.figures.cloak import audit
from flamebook.figures.cloak import audit as faults
from flamebook.figures.cloak import protocol as reading
from flamebook.figures.style import LIGHT, look
from flamelib.accounting.splitting.lemmas import messages_needed, smooth_failure
from flamelib.accounting.splitting.small_worlds import shuffled_distance
from flamelib.core.vocabulary import DomainError
from flamelib.protocols.cloak import CloakProtocol

SMALL = reading.noisy(5, 31, 2, 4, 0.9, 0.5)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))


def labels(draw: Any, record: Any) -> list[str]:
    """What the legend says of a figure that is drawn but not rendered."""
    with look(LIGHT, "test") as pen:
        ax = Figure().add_subplot()
        draw(ax, record, pen)
        return ax.get_legend_handles_labels()[1]


# --- the analyzer that clips ------------------------------------------------------------------------


def law_by_hand(modulus: int, decay: Fraction, rate: Fraction, n_users: int) -> list[Fraction]:
    """The sum's law in exact fractions, one user after the other."""
    half = (modulus - 1) // 2
    weights = {j: decay ** abs(j) for j in range(-half, half + 1)}
    mass = sum(weights.values())
    law = [Fraction(int(z == 0)) for z in range(modulus)]
    for _ in range(n_users):
        after = [(1 - rate) * p for p in law]
        for j, weight in weights.items():
            for z, p in enumerate(law):
                after[(z + j) % modulus] += rate * weight / mass * p
        law = after
    return law


@pytest.mark.parametrize(("whole_sum", "clipped"), [(0, 2.195), (10, 2.805)])
def test_clipping_biases_the_estimate(whole_sum: int, clipped: float) -> None:
    """Five users, N = 31, k = 2: full sums 0 and 5, in exact fractions."""
    law = law_by_hand(31, Fraction(9, 10), Fraction(1, 2), 5)
    by_hand = sum((Fraction(0) if z > 20 else Fraction(min(z, 10), 2)) * law[(z - whole_sum) % 31] for z in range(31))
    assert reading.expected(SMALL, whole_sum, "clipped") == pytest.approx(float(by_hand), rel=1e-12)
    assert float(by_hand) == pytest.approx(clipped, abs=5e-4)


def test_the_centred_estimate_needs_room_and_then_has_no_bias() -> None:
    assert reading.expected(SMALL, 0, "centred") > 2
    roomy = reading.noisy(20, 2001, 2, 4, 0.9, 0.5)
    for whole_sum in (0, 7, 40):
        assert reading.expected(roomy, whole_sum, "centred") == pytest.approx(whole_sum / 2, abs=1e-9)
    assert reading.expected(roomy, 0, "clipped") > 1


def test_the_mean_of_rounds_keeps_the_bias_of_clipping() -> None:
    record = reading.compute_bias(reading.noisy(50, 1501, 10, 4, 0.9, 0.2), 4000, 5, seed=1)
    assert record.means["clipped"][-1] == pytest.approx(record.exact["clipped"], rel=0.15)
    assert abs(record.means["centred"][-1]) < record.means["clipped"][-1] / 3
    assert record.below == 0
    assert 0.4 < record.above_at_least < 0.5
    assert record.to_csv().count("\n") == 6
    assert (record.kept.holds, record.lost.holds) == (True, True)
    swapped = replace(record, means={"clipped": record.means["centred"], "centred": record.means["clipped"]})
    assert (swapped.kept.holds, swapped.lost.holds) == (False, False)
    deviations = law_by_hand(31, Fraction(9, 10), Fraction(1, 2), 5)
    second = sum(p * Fraction(z if z <= 20 else z - 31, 2) ** 2 for z, p in enumerate(deviations))
    short = reading.compute_bias(SMALL, 3, 2, seed=1)
    assert short.spread == pytest.approx(math.sqrt(second - Fraction(short.exact["centred"]) ** 2))
    assert (short.kept.holds, short.lost.holds) == (None, None)
    assert labels(reading.draw_bias, record) == ["clipped estimate", "centred estimate", "expectation, clipped"]


def test_a_bias_is_asked_of_noise_that_is_known() -> None:
    with pytest.raises(DomainError, match="noise"):
        reading.expected(CloakProtocol(5, 31, 2, 4), 0, "clipped")


# --- overflow ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_messages", "modulus", "wrong"),
    [
        (8, 2**40 - 87, set()),
        (9, 2**40 - 87, {"int64", "float64"}),
        (9, 2**40, {"float64"}),
        (17, 2**40 - 87, {"int64", "uint64", "float64"}),
    ],
)
def test_sixty_four_bits_hold_eight_million_messages_of_forty_bits_and_not_nine(
    n_messages: int, modulus: int, wrong: set[str]
) -> None:
    """Wrapping round 2^64 does no harm where the modulus divides it; doubles lose units beyond 2^53."""
    found = faults.compute_sums(10**6, n_messages, modulus, True, seed=1)
    assert found.size == pytest.approx(10**6 * n_messages * (modulus - 1) / 2**63, rel=1e-12)
    failed = {name for name, right in found.right.items() if not right}
    assert failed | {"float64"} == wrong | {"float64"}
    assert "blocks" not in failed


def test_uniform_messages_are_half_as_large() -> None:
    assert faults.compute_sums(10**5, 16, 2**43 - 57, False, seed=1).right["int64"]
    assert not faults.compute_sums(10**5, 22, 2**43 - 57, False, seed=1).right["int64"]


# --- messages that are lost or sent twice -----------------------------------------------------------


def test_one_lost_message_leaves_nothing_of_the_sum() -> None:
    whole, lost, twice, both = faults.compute_damage(CloakProtocol(5, 61, 4, 4), 20_000, seed=1)
    assert (whole.right, whole.refused) == (20_000, False)
    for one in (lost, twice, both):
        low, high = one.interval
        assert low <= 1 / 61 <= high
        assert one.uniform > 1e-4
    assert (lost.refused, twice.refused, both.refused) == (True, True, False)
    assert whole.row()[-1] == "no error"


# --- values -----------------------------------------------------------------------------------------


def test_floors_of_doubles_lose_units() -> None:
    assert faults.lost_units(100) == (3, 44, 0)
    assert faults.lost_units(10**4)[0] == 573
    assert [i for i in range(101) if math.floor(i / 100 * 100) < i] == [29, 57, 58]


def test_values_that_nobody_may_hold_are_refused() -> None:
    rows = faults.admitted([math.nan, math.inf, -0.5, 1.5, 0.5], 100)
    assert [row[2] for row in rows] == ["refused"] * 4 + [50]
    assert [row[1] for row in rows[2:]] == [-50, 150, 50]


@pytest.mark.parametrize("wanted", [0.0, 1000.0])
def test_one_client_puts_the_sum_where_it_likes(wanted: float) -> None:
    honest, shifted = faults.poisoned(CloakProtocol(1000, 2**40 - 87, 10**4, 4), wanted, seed=1)
    assert abs(honest - 500) < 50
    assert abs(shifted - wanted) < 50


# --- counting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("weight", [1.0, 2.0, 10.0])
def test_components_of_all_pairings(n: int, m: int, weight: float) -> None:
    """Every way to pair the messages of users with the places of groups."""
    total, count = 0.0, 0
    for pairing in permutations(range(n * m)):
        parts = [{("user", u)} | {("group", pairing[u * m + j] // m) for j in range(m)} for u in range(n)]
        merged: list[set[tuple[str, int]]] = []
        for part in parts:
            touching = [one for one in merged if one & part]
            merged = [one for one in merged if not one & part] + [part.union(*touching)]
        total += weight ** (len(merged) - 1)
        count += 1
    assert counting._components(n, m, math.log(weight)) == pytest.approx(math.log(total / count), abs=1e-12)


@pytest.mark.parametrize(("n", "m", "modulus", "scale"), [(2, 2, 61, 3), (2, 2, 101, 5), (2, 3, 19, 2), (3, 2, 13, 1)])
def test_counting_bounds_what_data_sets_have_in_common(n: int, m: int, modulus: int, scale: int) -> None:
    """Exact distances, averaged over every second data set of the most frequent sum."""
    data_sets = list(product(range(scale + 1), repeat=n))
    sums = [sum(one) for one in data_sets]
    of_sum = [one for one in data_sets if sum(one) == max(set(sums), key=sums.count)]
    bound = 2 ** counting.ambiguity(n, m, modulus, scale)
    for first in of_sum:
        common = [1 - shuffled_distance(modulus, m, first, second, 0) for second in of_sum]
        assert sum(common) / len(common) <= bound


def test_counting_bites_where_it_is_used() -> None:
    assert 2 ** counting.ambiguity(2, 2, 101, 5) < 0.7
    assert counting.ambiguity(1000, 4, 2**40, 10**4) < -2000
    assert counting.messages_by_counting(100, 2**31 - 1, 2**16) == 5


def test_whole_vectors_need_messages_in_proportion_to_their_length() -> None:
    record = counting.compute_counted(50, 2**31 - 1, 2**16, 40, [1, 10, 100])
    assert (record.refuted <= record.proven).all()
    assert record.refuted[2] / record.refuted[1] == pytest.approx(10, rel=0.1)
    assert record.proven[2] == messages_needed(40, 50, 100 * math.log2(2**31 - 1))
    assert record.to_csv().count("\n") == 4
    assert len(labels(audit.draw_counted, record)) == 3


# --- proofs and constants ---------------------------------------------------------------------------


def test_the_variance_doubles_at_one_residue() -> None:
    """All shares of two users with two messages each, values 0, modulo 3: the four mixed pairs."""
    modulus, sums = 3, []
    for a, b in product(range(modulus), repeat=2):
        y = [(a, -a % modulus), (b, -b % modulus)]
        pairs = [(one + other) % modulus for one in y[0] for other in y[1]]
        sums.append([pairs.count(x) for x in range(modulus)])
    [(_, _, assumed, elsewhere, at_half)] = audit.pairwise([(modulus, 2)])
    assert np.var(sums, axis=0) == pytest.approx([at_half, elsewhere, elsewhere])
    assert assumed == pytest.approx(4 * (1 / 3 - 1 / 9))


def test_the_printed_tail_breaks_the_claim_in_small_crowds() -> None:
    rows: list[Any] = audit.tails(1e-6, [2, 14, 15, 1000])
    assert [printed > allowed * (1 + 1e-9) for _, _, printed, _, allowed in rows] == [True, True, False, False]
    assert all(exact <= allowed for _, _, _, exact, allowed in rows)


def test_the_chance_of_no_noise_is_no_lower_bound_on_delta() -> None:
    """T1's own example; at the budget that is asked for, the sum alone has next to no delta."""
    rows: list[Any] = audit.released(1.0, 1e-6, 1000, [0.5, 0.8])
    assert rows[0][1] == pytest.approx(2.2e-8, rel=0.02)
    assert rows[0][2] == pytest.approx(4.5e-7, rel=0.01)
    assert rows[1][1] < 1e-14


def test_lemma_1_never_gives_an_error_of_two_to_the_minus_m() -> None:
    for n, expected in ((2, 27), (100, 51), (1000, 65)):
        m, modulus, failure = audit.tiny_error(n, 1.0, 1e-6)
        assert m == expected < 10 * math.log2(n / 1e-6)
        assert modulus > n * n * 2**m
        assert failure > 1
    assert min(smooth_failure(4 * 2**m + 1, m, 0.999) for m in range(4, 120)) > 1


def test_the_range_of_the_smoothness_does_no_harm() -> None:
    """Between the range of the statement and that of its proof the bound says nothing."""
    for modulus, m in product((3, 101, 10**6 + 1), (4, 10, 30)):
        for gamma in np.geomspace(6 * math.sqrt(m) / 4**m, min(6 * math.sqrt(m) * modulus / 4**m, 1), 7)[1:-1]:
            assert smooth_failure(modulus, m, float(gamma)) > 1


def test_lemma_5_is_far_above_the_distance() -> None:
    rows: list[Any] = audit.looseness([(3, 2), (3, 4), (5, 3)], 1.0)
    assert [row[2] for row in rows] == pytest.approx([4 / 9, 80 / 729, 199 / 625], rel=1e-12)
    assert rows[1][4] == pytest.approx(16.6, abs=0.05)
    assert all(row[2] <= row[3] for row in rows)


def test_words_reduced_modulo_n_are_not_uniform() -> None:
    for bits, modulus in ((3, 3), (5, 7), (4, 8)):
        counts = np.bincount(np.arange(2**bits) % modulus, minlength=modulus)
        by_hand = np.abs(counts / 2**bits - 1 / modulus).sum() / 2
        assert audit.word_bias(bits, modulus) == pytest.approx(by_hand, abs=1e-15)


def test_a_larger_crowd_changes_nothing_with_two_messages() -> None:
    assert audit.crowds(3, 2, range(2, 8)) == [4 / 9] * 6
    three = audit.crowds(3, 3, [2, 3, 4])
    assert three == sorted(three, reverse=True)


def test_the_verdicts_of_readings_are_the_ledgers() -> None:
    known = ledger.verdicts("cloak.yml")
    numbers = dict.fromkeys(("loose", "tight", "clipped"), 0.5)
    rows = audit.verdict_rows(known, four=1.0, units=0.0, **numbers)
    assert [known[row[2]] for row in rows] == [row[1] for row in rows]
    assert {row[1] for row in rows} == {"refuted", "deviates"}
    assert "100% recovered" in rows[0][3]
    assert "nobody recovered" in rows[1][3]
    assert known == {claim.id: claim.verdict for claim in ledger.load() if claim.document == "cloak"}


def test_a_rise_is_told_where_both_ends_were_tried() -> None:
    shares = {2: np.array([0.3, 1.0]), 3: np.array([0.0, 0.5])}
    assert audit.rise_words(counting.Moduli((8, 32), shares, 0, {"scale": 1})) == {
        "rise": "more bits than were tried",
        "ends": "m = 2 from 30 % to 100 % and m = 3 from 0 % to 50 %",
    }
