"""The attacks of the page on where cloak aggregation breaks, at the sizes that the page speaks of.

An attack on a shortcut stands beside the same attack on what is safe instead; how each works stands in
:mod:`flamebook.attacks.shortcuts` and :mod:`flamebook.attacks.too_few`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from flamebook.attacks import shortcuts, too_few
from flamebook.attacks.shortcuts import Predicted, Recovery
from flamebook.statements import either, percent
from flamelib.protocols.cloak import CloakProtocol

Rows = list[tuple[object, ...]]

LOOSE, GRID = 2**40 - 87, 10**4
SEED_BITS = 12  # of generators that are all tried

# --- four messages a user --------------------------------------------------------------------------------------------

FOUR_HEADER = ("users", "chance groups expected", "recovered, a round", "wrong", "at least")


def compute_four(repeats: int, seed: int) -> dict[int, Recovery]:
    """What elimination recovers from four messages a user: of a hundred users, and once of three hundred."""
    return {n: too_few.compute_vectors(_four(n), 1, True, count, seed) for n, count in ((100, repeats), (300, 1))}


def four_rows(found: Mapping[int, Recovery]) -> Rows:
    """For a table, as in ``FOUR_HEADER``; a round of a thousand users is not tried."""
    return [(n, *too_few.vector_cells(_four(n), 1, found.get(n))) for n in (*found, 1000)]


def _four(n_users: int) -> CloakProtocol:
    return CloakProtocol(n_users, LOOSE, GRID, 4)


# --- share vectors ---------------------------------------------------------------------------------------------------

VECTORS_HEADER = ("N", "coordinates", "shuffled", "chance groups expected", "recovered, a round", "wrong", "at least")


@dataclass(frozen=True, slots=True)
class Vectors:
    """Three share vectors a user at a loose modulus and at a tight one, as units or each coordinate on its own.

    Attributes
    ----------
    cases : sequence of (protocol, coordinates, whether vectors are shuffled as units)
    found : sequence of Recovery
        The loose modulus first, with one coordinate, two as units, and two on their own.
    """

    cases: tuple[tuple[CloakProtocol, int, bool], ...]
    found: tuple[Recovery, ...]

    def rows(self) -> Rows:
        """For a table, as in ``VECTORS_HEADER``."""
        return too_few.vector_rows(self.cases, self.found)

    def words(self) -> dict[str, str]:
        """What single coordinates do, in words."""
        share = self.found[0].share
        recovered = f"let the search recover {percent(share)} of the values"
        return {"alone": either(share > 0, recovered, "stop this search, though perhaps no better one,")}

    def note(self) -> str:
        """What elimination adds to a look at each closing share alone."""
        return (
            "What elimination does: at the first row's sizes it recovers a share of "
            f"{self.found[0].share:.2f} of the values. If one knew the closing share of each user, testing each of "
            f"them by itself would settle {too_few.closing_chance(self.cases[0][0]):.2f} of the users."
        )


def compute_vectors(n_users: int, repeats: int, seed: int) -> Vectors:
    """All of these cases, with vectors of as many coordinates as it takes, and with each coordinate on its own."""
    wide, tight = (CloakProtocol(n_users, modulus, 2**16, 3) for modulus in (2**31 - 1, 3 * n_users * 2**16 + 1))
    loose = ((wide, 1, True), (wide, 2, True), (wide, 2, False))
    cases = (*loose, (tight, 1, True), (tight, 2, True), (tight, 3, True), (tight, 3, False))
    return Vectors(cases, tuple(too_few.compute_vectors(*case, repeats, seed) for case in cases))


# --- messages in the clear -------------------------------------------------------------------------------------------

OPENED_HEADER = ("N", "k", "encrypted of 8", "chance by the formula", "recovered, a round", "wrong", "at least")


@dataclass(frozen=True, slots=True)
class Opened:
    """Eight messages of a thousand users, of which one or two are encrypted, at looser and tighter moduli.

    Attributes
    ----------
    settings : sequence of (protocol, encrypted messages)
    found : sequence of Recovery
        One encrypted message, then two: at a loose modulus, at the smallest one for this grid, and for single bits.
    """

    settings: tuple[tuple[CloakProtocol, int], ...]
    found: tuple[Recovery, ...]

    def rows(self) -> Rows:
        """For a table, as in ``OPENED_HEADER``."""
        return shortcuts.opened_rows(self.settings, self.found)

    def off(self) -> list[float]:
        """How far each recovered share is from the chance by the formula."""
        chances = (shortcuts.opened_chance(*setting) for setting in self.settings)
        return [abs(one.share - chance) for one, chance in zip(self.found, chances, strict=True)]


def compute_opened(repeats: int, seed: int) -> Opened:
    """All of these; two encrypted messages ask for a search through pairs, which is run less often."""
    sizes = ((LOOSE, GRID), (3 * 1000 * GRID + 1, GRID), (3001, 1))
    settings = tuple((CloakProtocol(1000, *size, 8), encrypted) for size in sizes for encrypted in (1, 2))
    counts = {1: max(2, 2 * repeats), 2: max(2, repeats // 5)}
    return Opened(
        settings,
        tuple(shortcuts.compute_opened(one, encrypted, counts[encrypted], seed) for one, encrypted in settings),
    )


# --- generators ------------------------------------------------------------------------------------------------------

STREAMS_HEADER = ("attack on", "messages from", "messages foretold", "recovered, a round", "wrong", "at least")


def compute_streams(n_users: int, repeats: int, seed: int) -> dict[tuple[str, bool], Predicted]:
    """Attacks on generators, by what is attacked and whether messages come as in a release instead."""
    common, own = CloakProtocol(300, 2**32, 2**10, 8), CloakProtocol(n_users, LOOSE, GRID, 8)
    found = {}
    for system in (False, True):
        stream = shortcuts.compute_stream(common, system, repeats, seed)
        found["one Mersenne Twister, colluders", system] = stream
        seeds = shortcuts.compute_seeds(own, SEED_BITS, system, repeats, seed)
        found[f"PCG64 each, {SEED_BITS} bits of seed", system] = seeds
    return found


def shares(found: Mapping[tuple[str, bool], Predicted], system: bool) -> list[float]:
    """What is recovered of generators that can be foretold, or as in a release."""
    return [one.recovery.share for (_, released), one in found.items() if released is system]
