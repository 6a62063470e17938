r"""Cloak aggregation: every user cuts its value into random shares, which are shuffled and added up.

Public parameters stand in a frozen record; a party is a function whose arguments are all that it may see.  A user
scales its value to a whole number (:func:`scaled`), may add noise (:func:`prerandomize`) and splits it into
:math:`m` messages that add up to it modulo :math:`N` (:func:`split`); :func:`encode` is all three.  Messages of all
users are put together (:func:`pool`), shuffled, added up (:func:`total`) and read (:func:`analyze`,
:func:`analyze_centred`).

What a user sends is not private; the output of the shuffler is.  Nothing here computes an epsilon.

Source: Ghazi, Pagh, Velingker 2019, Algorithms 1 and 2; US20220374542A1.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib._arrays import Reals, Shape, reals
from flamelib._validate import DomainError, check
from flamelib.randomness import CACHED, Randomness, Residues, residue_type, residues

ROUNDINGS = ("floor", "random", "grid")


class Noise(Protocol):
    """A law of whole numbers that one user adds."""

    def sample(self, shape: Shape, randomness: Randomness) -> Residues:
        """Independent draws."""


@dataclass(frozen=True, slots=True)
class CloakProtocol:
    r"""What everybody knows.

    Parameters
    ----------
    n_users : int, at least 2
    modulus : int
        The messages live in {0, ..., modulus - 1}; above ``n_users * scale``, so that the sum of values from [0, 1]
        does not wrap.
    scale : int, at least 1
        The value :math:`x` is sent as about :math:`x k`, with :math:`k` the scale.
    n_messages : int, at least 2
        Shares of every value; one alone would be the value.
    rounding : {"floor", "random", "grid"}
        How :math:`x k` becomes whole, see :func:`scaled`.
    noise : law of whole numbers, optional
        What a user adds before it splits.
    noise_rate : float in [0, 1]
        Chance that a user adds noise at all.
    """

    n_users: int
    modulus: int
    scale: int
    n_messages: int
    rounding: str = "floor"
    noise: Noise | None = None
    noise_rate: float = 1.0

    def __post_init__(self) -> None:
        check(n_users=self.n_users)
        if self.modulus <= self.n_users * self.scale:
            raise DomainError(f"modulus must be above n_users * scale = {self.n_users * self.scale}")
        if self.n_messages < 2:
            raise DomainError("n_messages must be a whole number of at least 2: one message is the value itself")
        if self.rounding not in ROUNDINGS:
            raise DomainError(f"rounding must be one of {', '.join(ROUNDINGS)}, got {self.rounding!r}")


def scaled(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> Residues:
    """Whole numbers in {0, ..., scale} for values in [0, 1]: rounded down, randomly, or known to be on the grid."""
    numbers, scale = reals("values", values, 0, 1), protocol.scale
    product = numbers * scale
    if protocol.rounding == "grid":
        return np.rint(product).astype(np.int64)
    below = np.floor(product)
    if protocol.rounding == "random":
        below += randomness.coins(product - below, product.shape)
    return below.astype(np.int64)


def prerandomize(protocol: CloakProtocol, wholes: Residues, randomness: Randomness) -> Residues:
    """Residues of whole numbers of any sign, after noise where the protocol has some."""
    modulus = protocol.modulus
    found = residues(wholes, modulus)
    if protocol.noise is None:
        return found
    noise = protocol.noise.sample(found.shape, randomness)
    if protocol.noise_rate < 1:
        noise = noise * randomness.coins(protocol.noise_rate, found.shape)
    return residues(found + residues(noise, modulus), modulus)


def split(protocol: CloakProtocol, secrets: Residues, randomness: Randomness) -> Residues:
    r"""Shares of every residue, one more axis at the end: any m - 1 are independent and uniform, all add up to it.

    Stored with the users, the first axis of the residues, last: so the messages of a coordinate lie together.
    """
    modulus, last = protocol.modulus, protocol.n_messages - 1
    secret = np.moveaxis(secrets, 0, -1)
    shares = np.empty((*secret.shape[:-1], last + 1, secret.shape[-1]), dtype=residue_type(modulus))
    at_once = 1 + CACHED // (2 * (last + 1) * math.prod(secret.shape[:-1]))
    for start in range(0, secret.shape[-1], at_once):
        part, block = secret[..., start : start + at_once], shares[..., start : start + at_once]
        block[..., :last, :] = drawn = randomness.uniform(modulus, (*part.shape[:-1], last, part.shape[-1]))
        block[..., last, :] = residues(part - add_up(drawn, modulus, axis=-2), modulus)
    return np.moveaxis(shares, -1, 0)


def encode(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> Residues:
    """The messages of every user, shape (users, n_messages), or (users, dimension, n_messages) for vectors."""
    wholes = scaled(protocol, values, randomness)
    return split(protocol, prerandomize(protocol, wholes, randomness), randomness)


def pool(messages: Residues) -> Residues:
    """The messages of all users together: shape (users * n_messages,), or (dimension, users * n_messages)."""
    together = np.moveaxis(messages, 0, -1)
    return together.reshape(*together.shape[:-2], -1)


def shuffler(messages: Residues, randomness: Randomness) -> Residues:
    """Pooled messages in uniformly random order, each coordinate for itself."""
    return randomness.permuted(messages)


def relay(messages: Residues, shufflers: Sequence[Callable[[Residues], Residues]]) -> Residues:
    """Pooled messages after several shufflers in sequence; one honest one suffices."""
    for one in shufflers:
        messages = one(messages)
    return messages


def add_up(messages: Residues, modulus: int, axis: int = -1) -> Residues:
    """Sum modulo ``modulus`` along an axis, without overflow whatever the number of messages."""
    at_once = max(2, (2**63 - 1) // modulus)
    while messages.dtype != object and messages.shape[axis] > at_once:
        starts = np.arange(0, messages.shape[axis], at_once)
        messages = residues(np.add.reduceat(messages, starts, axis=axis), modulus)
    return residues(messages.sum(axis=axis), modulus)


def total(protocol: CloakProtocol, messages: Residues) -> Residues:
    """The sum modulo N of pooled messages, shape () or (dimension,); refuses if messages are missing or too many."""
    expected = protocol.n_users * protocol.n_messages
    if messages.shape[-1:] != (expected,):
        raise DomainError(f"messages must be {expected}, n_messages of each of n_users, got shape {messages.shape}")
    return add_up(messages, protocol.modulus)


def analyze(protocol: CloakProtocol, total: ArrayLike) -> NDArray[Any]:
    """The estimated sum of values in [0, n_users] from the sum modulo N: negative noise is cut, overshoot too."""
    full, modulus = protocol.n_users * protocol.scale, protocol.modulus
    if protocol.noise is not None and modulus <= 3 * full:
        raise DomainError(f"modulus must be above 3 * n_users * scale = {3 * full} for the clipping rule under noise")
    z = np.asarray(total)
    return np.where(z > 2 * full, 0, np.minimum(z, full)) / protocol.scale


def analyze_centred(protocol: CloakProtocol, total: ArrayLike) -> NDArray[Any]:
    """The unclipped estimate: residues nearer to N than to n_users * scale are negative."""
    full, modulus = protocol.n_users * protocol.scale, protocol.modulus
    z = np.asarray(total)
    return np.where(2 * z > modulus + full, z - modulus, z) / protocol.scale


def average(protocol: CloakProtocol, estimate: ArrayLike) -> Reals:
    """The mean of the users' values from their sum."""
    return np.asarray(estimate, dtype=np.float64) / protocol.n_users


def run(protocol: CloakProtocol, values: ArrayLike, randomness: Randomness) -> float:
    """The whole protocol for one number in [0, 1] of every user: the clipped estimate of the sum."""
    users, shuffling = randomness.spawn(2)
    messages = shuffler(pool(encode(protocol, values, users)), shuffling)
    return float(analyze(protocol, total(protocol, messages)))


def run_vector(protocol: CloakProtocol, rows: Residues, randomness: Randomness) -> Residues:
    r"""Centred sums of whole numbers, one for each coordinate, each shuffled on its own.

    Parameters
    ----------
    protocol : CloakProtocol
    rows : array_like of int, shape (users, dimension)
        Already whole, of any sign (:func:`scaled` makes such from values in [0, 1]); the protocol's noise is added.

    Returns
    -------
    ndarray of int, shape (dimension,)
        Sums in {-N/2, ..., N/2}: residues above N / 2 are negative.
    """
    users, shuffling = randomness.spawn(2)
    array = np.asarray(rows)
    at_once = 1 + CACHED // (protocol.n_users * protocol.n_messages)
    totals = []
    for start in range(0, array.shape[1], at_once):
        noisy = prerandomize(protocol, array[:, start : start + at_once], users)
        totals.append(total(protocol, shuffler(pool(split(protocol, noisy, users)), shuffling)))
    return centred(np.concatenate(totals), protocol.modulus)


def centred(totals: Residues, modulus: int) -> Residues:
    """Residues moved to {-(N - 1) // 2, ..., N // 2}.

    >>> centred(np.array([0, 3, 4, 6]), 7).tolist()
    [0, 3, -3, -1]
    """
    return np.where(totals > modulus // 2, totals - modulus, totals)


def stream(protocol: CloakProtocol, blocks: Iterable[ArrayLike], randomness: Randomness) -> Residues:
    """The total of values that come in blocks, in the memory of one block's messages.

    The sum does not depend on the order of the messages, so this simulation of estimates needs no shuffler.
    """
    so_far: Residues = np.zeros((), dtype=residue_type(protocol.modulus))
    n_seen = 0
    for block in blocks:
        shares = pool(encode(protocol, block, randomness))
        so_far = (so_far + add_up(shares, protocol.modulus)) % protocol.modulus
        n_seen += len(np.asarray(block))
    if n_seen != protocol.n_users:
        raise DomainError(f"blocks must hold {protocol.n_users} users, got {n_seen}")
    return np.asarray(so_far)
