"""Attacks on shortcuts of cloak aggregation, run: messages in the clear, and two messages a user.

Who attacks sees the shuffled messages of a round, and what each attack says besides.  A value counts as recovered if
it is the only one that fits; whether it is right is counted apart.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from flamelib.core.arrays import Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols.cloak import CloakProtocol, pool, shuffler, split

CONFIDENCE = 0.95



@dataclass(frozen=True, slots=True)
class Recovery:
    """What an attack recovered in independent rounds.

    Attributes
    ----------
    n_users : int
        Users under attack in a round.
    recovered : tuple of int
        Right values, one number a round.
    marked : int
        Rounds in which the value of one user, fixed before, was among them.
    wrong : int
        Values that were given out and are not right, all rounds together.
    """

    n_users: int
    recovered: tuple[int, ...]
    marked: int
    wrong: int

    @property
    def share(self) -> float:
        """Mean share of users that are recovered."""
        return sum(self.recovered) / len(self.recovered) / self.n_users

    @property
    def at_least(self) -> float:
        """Lower Clopper-Pearson limit of the chance that a given user is recovered, with ``CONFIDENCE``."""
        return at_least(self.marked, len(self.recovered))

    def cells(self) -> tuple[object, ...]:
        """For a table: recovered, wrong, the confidence limit."""
        return f"{self.share * self.n_users:.1f} of {self.n_users}", self.wrong, self.at_least


def gathered(n_users: int, rounds: Iterable[tuple[Wholes, Wholes, Wholes]]) -> Recovery:
    """The record of rounds, each the true values, the places of users, and what the attack says they hold."""
    hits, marked, wrong = [], 0, 0
    for values, places, said in rounds:
        right = values[places] == said
        hits.append(int(right.sum()))
        wrong += int((~right).sum())
        marked += bool((places[right] == 0).any())
    return Recovery(n_users, tuple(hits), marked, wrong)


def at_least(hits: int, repeats: int) -> float:
    """Lower Clopper-Pearson limit of a chance, one-sided, with ``CONFIDENCE``.

    >>> round(at_least(20, 20), 4)
    0.8609
    """
    return float(binomtest(hits, repeats, alternative="greater").proportion_ci(CONFIDENCE, method="exact").low)


# --- messages in the clear -------------------------------------------------------------------------------------------


def compute_opened(protocol: CloakProtocol, encrypted: int, repeats: int, seed: int) -> Recovery:
    """All but ``encrypted`` (one or two) messages of every user are read with its name; then the shuffled output.

    Examples
    --------
    >>> compute_opened(CloakProtocol(50, 2**40 - 87, 10**4, 8), 1, 3, seed=1).recovered
    (50, 50, 50)
    """
    check(repeats=repeats, seed=seed)
    if encrypted not in (1, 2) or encrypted >= protocol.n_messages:
        raise DomainError(f"encrypted must be 1 or 2 and below n_messages, got {encrypted!r}")
    rngs = np.random.default_rng(seed).spawn(repeats)
    return gathered(protocol.n_users, (_opened(protocol, encrypted, rng) for rng in rngs))


def _opened(protocol: CloakProtocol, encrypted: int, rng: np.random.Generator) -> tuple[Wholes, Wholes, Wholes]:
    values = rng.integers(0, protocol.scale + 1, size=protocol.n_users)
    shares = split(protocol, values, Simulation(rng))
    clear = shares[:, encrypted:]
    output = shuffler(pool(shares), Simulation(rng))
    hidden = np.array(list((Counter(output.tolist()) - Counter(clear.ravel().tolist())).elements()))
    if encrypted == 2:
        hidden = (hidden[:, None] + hidden)[np.triu_indices(len(hidden), 1)] % protocol.modulus
    return values, *unmasked(hidden, clear.sum(axis=1) % protocol.modulus, protocol.modulus, protocol.scale)


def unmasked(candidates: Wholes, masks: Wholes, modulus: int, scale: int) -> tuple[Wholes, Wholes]:
    """Users whose mask and exactly one candidate add up to a value in {0, ..., scale}, and these values.

    Examples
    --------
    >>> [found.tolist() for found in unmasked(np.array([90, 7, 8]), np.array([12, 0, 94]), 101, 5)]
    [[0], [1]]
    """
    ordered = np.sort(candidates)
    twice = np.concatenate([ordered, ordered + modulus])
    low = -masks % modulus
    start, end = np.searchsorted(twice, low), np.searchsorted(twice, low + scale, side="right")
    places = np.flatnonzero(end - start == 1)
    return places, (twice[start[places]] + masks[places]) % modulus


def opened_chance(protocol: CloakProtocol, encrypted: int) -> float:
    """Chance that a user is recovered: no other candidate fits; exact for one encrypted message, about so for two.

    The candidates of others are independent of a user's mask and uniform, each fits with probability (k + 1) / N.

    >>> round(opened_chance(CloakProtocol(1000, 3 * 1000 * 10**4 + 1, 10**4, 8), 1), 4)
    0.7167
    """
    others = math.comb(encrypted * protocol.n_users, encrypted) - 1
    return math.exp(others * math.log1p(-(protocol.scale + 1) / protocol.modulus))


def opened_rows(settings: Iterable[tuple[CloakProtocol, int]], found: Iterable[Recovery]) -> list[tuple[object, ...]]:
    """For a table: modulus, scale, encrypted messages, chance of a recovery by the formula, and what was recovered."""
    return [
        (protocol.modulus, protocol.scale, encrypted, opened_chance(protocol, encrypted), *one.cells())
        for (protocol, encrypted), one in zip(settings, found, strict=True)
    ]


# --- two messages a user ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mirror:
    """Rounds in which the shuffled messages were not symmetric: with all values equal, and after a swap."""

    protocol: CloakProtocol
    seen: tuple[int, int]
    repeats: int

    @property
    def exact(self) -> float:
        """Total variation distance with two messages, whatever the number of users, at an odd modulus."""
        return (1 - 1 / self.protocol.modulus) ** 2

    @property
    def least(self) -> float:
        """Lower bound on the total variation distance, with ``CONFIDENCE`` for both shares together."""
        equal, swapped = (binomtest(n, self.repeats).proportion_ci(CONFIDENCE, method="exact") for n in self.seen)
        return max(0.0, float(swapped.low - equal.high))

    def row(self) -> tuple[object, ...]:
        """For a table: users, modulus, messages, rounds, told in each world, lower bound."""
        p = self.protocol
        return (p.n_users, p.modulus, p.n_messages, self.repeats, *self.seen, self.least)


def compute_mirror(protocol: CloakProtocol, repeats: int, seed: int) -> Mirror:
    """All users hold 1, or one of them 2 and another 0; whoever watches looks whether y -> 1 - y changes the messages.

    The two messages of a user who holds 1 are y and 1 - y, so that those of all users are symmetric.

    Examples
    --------
    >>> found = compute_mirror(CloakProtocol(100, 601, 2, 2), 200, seed=1)
    >>> found.seen[0], found.seen[1] > 195
    (0, True)
    """
    check(repeats=repeats, seed=seed)
    if protocol.scale < 2:
        raise DomainError("scale must be at least 2, for one user to hold 2")
    equal = np.ones(protocol.n_users, dtype=np.int64)
    swapped = equal.copy()
    swapped[:2] = 2, 0
    worlds = [Simulation(rng) for rng in np.random.default_rng(seed).spawn(2)]
    seen = [
        sum(not _symmetric(protocol, shuffler(pool(split(protocol, values, own)), own)) for _ in range(repeats))
        for values, own in zip((equal, swapped), worlds, strict=True)
    ]
    return Mirror(protocol, (seen[0], seen[1]), repeats)


def _symmetric(protocol: CloakProtocol, messages: Wholes) -> bool:
    return bool((np.sort(messages) == np.sort((1 - messages) % protocol.modulus)).all())
