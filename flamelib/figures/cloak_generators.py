"""Attacks on predictable generators, run: whoever foretells the masks of a user takes them off its value.

Against each stands the same round with shares as in a release, under keys that nobody knows.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flamelib.core.vocabulary import DomainError, check
from flamelib.figures.cloak_attack import Recovery, Wholes, gathered, unmasked
from flamelib.mechanisms.integers.randomness import Randomness, Release, Simulation
from flamelib.protocols.cloak import CloakProtocol, pool, shuffler, split

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

    def cells(self) -> tuple[object, ...]:
        """For a table: predicted messages found, values recovered, wrong ones, the confidence limit."""
        return f"{self.found[0]:,} of {self.found[1]:,}", *self.recovery.cells()


def stream_rows(found: Mapping[tuple[str, bool], Predicted]) -> list[tuple[object, ...]]:
    """For a table: attack, where messages come from, and the cells of what it found, by attack and release or not."""
    sources = {False: "that generator", True: "ChaCha20, secret keys"}
    return [(name, sources[system], *one.cells()) for (name, system), one in found.items()]


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
