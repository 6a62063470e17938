"""Attacks on cloak aggregation: every algorithm against brute force, every rate against its law, safe variants held."""

import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from flamebook.attacks import shortcuts as attack
from flamebook.attacks import shortcuts as generators
from flamebook.attacks import too_few as pairing
from flamebook.claims import ledger
from flamebook.places import ROOT
from flamelib.accounting.splitting.enumeration import shuffled_distance
from flamelib.protocols.cloak import CloakProtocol

LOOSE = 2**40 - 87


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))


# --- pairing ----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4), st.integers(1, 6), st.integers(0, 12), st.integers(0, 2**32))
def test_a_proven_group_lies_in_every_way_to_divide_the_messages(m: int, users: int, chance: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = {tuple(sorted(row)) for row in rng.permutation(users * m).reshape(users, m).tolist()}
    other = (
        {tuple(sorted(rng.choice(users * m, m, replace=False).tolist())) for _ in range(chance)} if users > 1 else set()
    )
    found = np.array(sorted(true | other))
    sure = {tuple(row) for row in pairing.proven(found, users * m).tolist()}
    assert sure <= true
    for cover in combinations(map(tuple, found.tolist()), users):
        if len({place for group in cover for place in group}) == users * m:
            assert sure <= set(cover)


def test_a_tight_modulus_holds_one_coordinate_and_not_three() -> None:
    protocol = CloakProtocol(100, 3 * 100 * 2**16 + 1, 2**16, 3)
    shares = [pairing.compute_vectors(protocol, d, True, 2, seed=2).share for d in (1, 3)]
    assert shares == [0.0, 1.0]


# --- counting ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m", "modulus", "scale"), [(2, 2, 61, 3), (2, 2, 101, 5), (2, 3, 19, 2), (3, 2, 13, 1)])
def test_counting_bounds_what_data_sets_have_in_common(n: int, m: int, modulus: int, scale: int) -> None:
    """Exact distances, averaged over every second data set of the most frequent sum."""
    data_sets = list(product(range(scale + 1), repeat=n))
    sums = [sum(one) for one in data_sets]
    of_sum = [one for one in data_sets if sum(one) == max(set(sums), key=sums.count)]
    bound = 2 ** pairing.ambiguity(n, m, modulus, scale)
    for first in of_sum:
        common = [1 - shuffled_distance(modulus, m, first, second, 0) for second in of_sum]
        assert sum(common) / len(common) <= bound


# --- messages in the clear --------------------------------------------------------------------------


def test_the_chance_of_recovery_is_exact_for_two_users() -> None:
    """All masks of both users, m = 2, N = 7, values 0 or 1."""
    modulus, hits = 7, 0
    for values in product(range(2), repeat=2):
        for masks in product(range(modulus), repeat=2):
            closing = np.array([(v - s) % modulus for v, s in zip(values, masks, strict=True)])
            hits += 0 in attack.unmasked(closing, np.array(masks), modulus, 1)[0]
    protocol = CloakProtocol(2, modulus, 1, 2)
    assert hits / (4 * modulus**2) == pytest.approx(attack.opened_chance(protocol, 1))


@pytest.mark.parametrize(("modulus", "scale", "share"), [(3 * 10**7 + 1, 10**4, 0.7167), (3001, 1, 0.5138)])
def test_one_encrypted_message_leaves_the_share_that_the_law_says(modulus: int, scale: int, share: float) -> None:
    protocol = CloakProtocol(1000, modulus, scale, 8)
    found = attack.compute_opened(protocol, 1, 10, seed=1)
    assert attack.opened_chance(protocol, 1) == pytest.approx(share, abs=5e-5)
    assert found.share == pytest.approx(share, abs=0.02)
    assert found.wrong == 0
    assert found.at_least <= share


# --- two messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("modulus", [3, 5, 7, 9])
def test_two_messages_are_told_by_symmetry_and_by_nothing_else(modulus: int) -> None:
    """The event's own probability by listing equals the exact distance of two users, and of three."""
    asymmetric = 0
    for y, z in product(range(modulus), repeat=2):
        seen = [y, (2 - y) % modulus, z, -z % modulus]
        asymmetric += sorted(seen) != sorted((1 - one) % modulus for one in seen)
    assert asymmetric / modulus**2 == pytest.approx((1 - 1 / modulus) ** 2, rel=1e-15)
    for others in ([], [1]):
        exact = shuffled_distance(modulus, 2, [1, 1, *others], [2, 0, *others], 0)
        assert exact == pytest.approx((1 - 1 / modulus) ** 2, rel=1e-12)


def test_the_crowd_does_not_help_two_messages() -> None:
    found = attack.compute_mirror(CloakProtocol(1000, 6001, 2, 2), 300, seed=1)
    assert found.seen[0] == 0
    assert binom.cdf(found.seen[1], 300, found.exact) > 1e-6
    assert 0.97 < found.least <= found.exact
    eight = attack.compute_mirror(CloakProtocol(1000, 6001, 2, 8), 50, seed=1)
    assert (eight.seen, eight.least) == ((50, 50), 0.0)


# --- predictable generators -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2**31])
def test_the_twister_is_rebuilt_from_the_words_of_its_oldest_interface(seed: int) -> None:
    words = np.frombuffer(np.random.RandomState(seed).bytes(4 * 3000), dtype="<u4")
    again = generators.rebuilt(words[777 : 777 + 624].astype(np.int64))
    assert (again.integers(0, 2**32, size=1000) == words[777 + 624 : 777 + 1624]).all()


def test_small_seeds_are_tried_out() -> None:
    protocol = CloakProtocol(40, LOOSE, 10**4, 8)
    told, safe = (generators.compute_seeds(protocol, 9, system, 2, seed=1) for system in (False, True))
    assert told.found == (2 * 40 * 7, 2 * 40 * 7)
    assert told.recovery.recovered == (40, 40)
    assert (safe.found[0], safe.recovery.recovered, safe.recovery.wrong) == (0, (0, 0), 0)


# --- the page's verdicts ----------------------------------------------------------------------------


def test_the_verdicts_of_readings_are_the_ledgers() -> None:
    """The page has them in a table of its text."""
    text = (ROOT / "notebooks" / "cloak_audit.ipynb").read_text(encoding="utf-8")
    rows = re.findall(r"\| (\w+) \| `(cloak:[^`]+)` \|", text)
    known = {claim.id: claim.verdict for claim in ledger.load()}
    assert len(rows) == 6
    assert rows == [(known[row], row) for _, row in rows]
