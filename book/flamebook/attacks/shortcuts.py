"""Attacks on shortcuts of cloak aggregation, run: messages in the clear, two messages a user, predictable generators.

Who attacks sees the shuffled messages of a round, and what each attack says besides.  A value counts as recovered if
it is the only one that fits; whether it is right is counted apart.  Whoever foretells the masks of a user takes them
off its value; beside each such attack stands the same round with shares as in a release, under keys that nobody knows.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from flamelib.core.arrays import Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.integers.randomness import Randomness, Release, Simulation
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
        return apart_at_least(*self.seen, self.repeats)


def apart_at_least(equal: int, swapped: int, repeats: int) -> float:
    """Lower bound on the distance of two chances, from hits of either in so many rounds.

    >>> round(apart_at_least(0, 300, 300), 4), apart_at_least(9, 10, 10)
    (0.9756, 0.0)
    """
    low, high = (binomtest(n, repeats).proportion_ci(CONFIDENCE, method="exact") for n in (equal, swapped))
    return max(0.0, float(high.low - low.high))


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


STATE = 624
WORD = 2**32


def rebuilt(outputs: NDArray[np.int64]) -> np.random.Generator:
    r"""The generator behind 624 consecutive 32-bit outputs of the Mersenne Twister, ready for the next one.

    An output is an invertible linear function of one word of the state, the state is 624 words.

    Examples
    --------
    >>> victim = np.random.Generator(np.random.MT19937(7))
    >>> again = rebuilt(victim.integers(0, 2**32, size=624))
    >>> bool((again.integers(0, 2**32, size=5) == victim.integers(0, 2**32, size=5)).all())
    True
    """
    y = np.asarray(outputs).astype(np.uint32)
    if y.shape != (STATE,):
        raise DomainError(f"outputs must be {STATE} in a row, got shape {y.shape}")
    for shift, mask in ((-18, WORD - 1), (15, 0xEFC60000), (7, 0x9D2C5680), (-11, WORD - 1)):
        y = _undone(y, shift, mask)
    twister = np.random.MT19937()
    twister.state = {"bit_generator": "MT19937", "state": {"key": y, "pos": STATE}}
    return np.random.Generator(twister)


def _undone(y: NDArray[np.uint32], shift: int, mask: int) -> NDArray[np.uint32]:
    """The x with y = x ^ (shifted x & mask): every step makes ``abs(shift)`` more bits right."""
    x = y
    for _ in range(32 // abs(shift)):
        x = y ^ np.uint32(mask) & (np.left_shift(x, shift) if shift > 0 else np.right_shift(x, -shift))
    return x


@dataclass(frozen=True, slots=True)
class Predicted:
    """Messages of later users that were predicted from those of earlier ones, and what that recovers.

    Attributes
    ----------
    found : tuple of int
        Predicted messages that are in the shuffled output, and how many were predicted.
    """

    found: tuple[int, int]
    recovery: Recovery


def compute_stream(protocol: CloakProtocol, system: bool, repeats: int, seed: int) -> Predicted:
    """Colluders among users of one common generator take its next outputs from their own shares.

    Parameters
    ----------
    protocol : CloakProtocol
        With modulus 2^32, where a random message is one output of the Mersenne Twister.
    system : bool
        Whether messages come as in a release, by ChaCha20, under keys that the colluders do not know, instead of from
        the Mersenne Twister.  The keys are drawn by the seed, so that the experiment can be repeated.
    repeats, seed : int
        Values, seeds of the generator and the shuffler's order are drawn by the seed.

    Examples
    --------
    >>> found = compute_stream(CloakProtocol(200, 2**32, 2**10, 8), False, 2, seed=1)
    >>> found.recovery.recovered, found.found
    ((110, 110), (1540, 1540))
    """
    check(repeats=repeats, seed=seed)
    if protocol.modulus != WORD:
        raise DomainError(f"modulus must be 2^32 for this attack, got {protocol.modulus}")
    rounds = [_stream(protocol, system, rng) for rng in np.random.default_rng(seed).spawn(repeats)]
    predicted = sum(hits for hits, _ in rounds), repeats * _later(protocol) * (protocol.n_messages - 1)
    return Predicted(predicted, gathered(_later(protocol), (one for _, one in rounds)))


def _later(p: CloakProtocol) -> int:
    """Users beside the colluders, who are as many as it takes."""
    return p.n_users - math.ceil(STATE / (p.n_messages - 1))


def _stream(p: CloakProtocol, system: bool, rng: np.random.Generator) -> tuple[int, tuple[Wholes, Wholes, Wholes]]:
    twister = Simulation(np.random.Generator(np.random.MT19937(int(rng.integers(2**62)))))
    source: Randomness = Release(rng.bytes) if system else twister
    values = rng.integers(0, p.scale + 1, size=p.n_users)
    own, theirs = (split(p, block, source) for block in np.split(values, [p.n_users - _later(p)]))
    output = shuffler(np.concatenate([pool(own), pool(theirs)]), Simulation(rng))
    seen = own[:, :-1].T.ravel()[-STATE:]
    ahead = Simulation(rebuilt(seen))
    ahead.uniform(p.modulus, len(own))  # the last shares of the colluders, drawn and written over
    masks = ahead.uniform(p.modulus, (p.n_messages, len(theirs)))[:-1]
    rest = np.array(list((Counter(output.tolist()) - Counter(pool(own).tolist())).elements()))
    found = unmasked(rest, masks.sum(axis=0) % p.modulus, p.modulus, p.scale)
    return int(np.isin(masks, rest).sum()), (values[-len(theirs) :], *found)


def compute_seeds(protocol: CloakProtocol, bits: int, system: bool, repeats: int, seed: int) -> Predicted:
    """Every user has a generator of its own, PCG64 with a seed below ``2**bits``: all seeds are tried.

    The shuffled output is all that is seen.  A seed is found where its first messages are in the output.

    Examples
    --------
    >>> small = CloakProtocol(30, 2**40 - 87, 10**4, 8)
    >>> [compute_seeds(small, 8, system, 2, seed=1).recovery.recovered for system in (False, True)]
    [(30, 30), (0, 0)]
    """
    check(repeats=repeats, seed=seed)
    masks = np.array([_of_seed(one).uniform(protocol.modulus, protocol.n_messages - 1) for one in range(2**bits)])
    rounds = [_seeded(protocol, masks, system, rng) for rng in np.random.default_rng(seed).spawn(repeats)]
    predicted = sum(hits for hits, _ in rounds), repeats * protocol.n_users * (protocol.n_messages - 1)
    return Predicted(predicted, gathered(protocol.n_users, (one for _, one in rounds)))


def _of_seed(seed: int) -> Simulation:
    return Simulation(np.random.Generator(np.random.PCG64(seed)))


def _seeded(
    p: CloakProtocol, masks: Wholes, system: bool, rng: np.random.Generator
) -> tuple[int, tuple[Wholes, Wholes, Wholes]]:
    seeds = rng.choice(len(masks), p.n_users, replace=False)
    values = rng.integers(0, p.scale + 1, size=p.n_users)
    sources: list[Randomness] = [Release(rng.bytes) if system else _of_seed(int(one)) for one in seeds]
    shares = [split(p, value, own) for value, own in zip(values[:, None], sources, strict=True)]
    output = shuffler(pool(np.concatenate(shares)), Simulation(rng))
    tried = np.flatnonzero(np.isin(masks, output).all(axis=1))
    known = masks[tried]
    rest = np.array(list((Counter(output.tolist()) - Counter(known.ravel().tolist())).elements()))
    places, said = unmasked(rest, known.sum(axis=1) % p.modulus, p.modulus, p.scale)
    user = np.argsort(seeds)[np.searchsorted(np.sort(seeds), tried[places])]
    return known.size, (values, user, said)
