"""Envelopes that only the analyzer can open: one for each message of a coordinate, all of one length.

An envelope is a sealed box of PyNaCl (X25519, XSalsa20, Poly1305, a fresh sender's key pair for each box) around

    round (16 bytes) | coordinate (4 bytes) | nonce (16 bytes) | value (8 bytes)

* The length is that of every other envelope, whatever the value: without the key, envelopes tell nothing of values.
* Round and coordinate are inside: an envelope of an earlier round, or of another coordinate, is refused.
* The nonce is random and new for each envelope, so it names nobody; two envelopes with one nonce are copies, and the
  second is refused.

Keys, rounds and nonces come from the operating system's generator.  Two things are assumed: the analyzer, who
could open what it taps, cannot listen between user and shuffler; and shuffler and analyzer do not share what they know.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Algorithms 2 to 4 (encrypted under the analyzer's key); the form of the
envelope is ours.
"""

import math
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.arrays import Bytes, Reals, reals, wholes
from flamelib.core.extras import extra
from flamelib.core.vocabulary import DomainError

if TYPE_CHECKING:
    from nacl.public import PrivateKey, PublicKey

_LETTER = struct.Struct(">16sI16sd")  # what is inside of an envelope
_NAMES = 16  # bytes of a round's name, and of a nonce
_LETTER_BYTES = _LETTER.size
_ENVELOPE_BYTES = _LETTER_BYTES + 48  # a sealed box adds a public key of 32 bytes and a tag of 16
_REFUSALS = ("unreadable", "other round", "other coordinate", "repeated", "no number")


def _new_secret() -> "PrivateKey":
    with extra("sealing"):
        from nacl.public import PrivateKey
    return PrivateKey.generate()


@dataclass(frozen=True, slots=True)
class AnalyzerKey:
    """The analyzer's key pair; only ``public`` leaves its hands, and the secret half is never shown."""

    _secret: "PrivateKey" = field(default_factory=_new_secret, repr=False)

    @property
    def public(self) -> bytes:
        """The 32 bytes that users and shuffler seal for."""
        return bytes(self._secret.public_key)


@dataclass(frozen=True, slots=True)
class Opened:
    """Values from envelopes, NaN where one was refused, and how many were refused by each reason of ``_REFUSALS``."""

    values: Reals
    refused: dict[str, int]


def new_round() -> bytes:
    """A name for a round that no other round has: 16 random bytes."""
    return secrets.token_bytes(_NAMES)


def seal(public: bytes, round_name: bytes, coordinates: ArrayLike, values: ArrayLike) -> Bytes:
    """One envelope for each value: bytes of shape (messages, 92).

    Coordinates are whole numbers below 2^32; values finite, whole ones up to 2^53 survive as they are.  ``public`` is
    the analyzer's key of 32 bytes, ``round_name`` one of :func:`new_round`.
    """
    with extra("sealing"):
        from nacl.public import SealedBox
    places, numbers = wholes("coordinates", coordinates, 0, 2**32 - 1), reals("values", values)
    if numbers.ndim != 1 or places.shape != numbers.shape:
        raise DomainError(f"values must be a list with one entry for each coordinate, got shape {numbers.shape}")
    box, name = SealedBox(_key(public)), _round_name(round_name)
    sealed = [
        box.encrypt(_LETTER.pack(name, place, secrets.token_bytes(_NAMES), number))
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True)
    ]
    return np.frombuffer(b"".join(sealed), dtype=np.uint8).reshape(-1, _ENVELOPE_BYTES)


def open_bags(key: AnalyzerKey, round_name: bytes, bags: Bytes) -> Opened:
    """Open every envelope of every bag; what does not belong there is refused and counted, the rest is read.

    ``bags`` has shape (coordinates, size, ENVELOPE_BYTES); bag ``j`` holds what is said to belong to coordinate ``j``.
    """
    if bags.ndim != 3 or bags.shape[2] != _ENVELOPE_BYTES or bags.dtype != np.uint8:
        raise DomainError(f"bags must be bytes of shape (coordinates, size, {_ENVELOPE_BYTES}), got {bags.shape}")
    found = list(_read(key, _round_name(round_name), bags))
    values = np.array([value if isinstance(value, float) else math.nan for value in found])
    return Opened(values.reshape(bags.shape[:2]), {reason: found.count(reason) for reason in _REFUSALS})


def _read(key: AnalyzerKey, name: bytes, bags: Bytes) -> Iterator[float | str]:
    """The value of each envelope, or the reason why it is refused."""
    with extra("sealing"):
        from nacl.exceptions import CryptoError
        from nacl.public import SealedBox
    box, met = SealedBox(key._secret), set[bytes]()
    for place, bag in enumerate(bags):
        for envelope in bag:
            try:
                its_round, its_place, nonce, value = _LETTER.unpack(box.decrypt(envelope.tobytes()))
            except CryptoError:
                yield "unreadable"
                continue
            reason = _objection(its_round == name, its_place == place, nonce not in met, math.isfinite(value))
            met.add(nonce)
            yield reason or float(value)


def _objection(this_round: bool, this_place: bool, new: bool, finite: bool) -> str:
    held = (True, this_round, this_place, new, finite)
    return next((reason for reason, good in zip(_REFUSALS, held, strict=True) if not good), "")


def _key(public: bytes) -> "PublicKey":
    with extra("sealing"):
        from nacl.public import PublicKey
    if isinstance(public, bytes) and len(public) == PublicKey.SIZE:
        return PublicKey(public)
    raise DomainError(f"public must be a key of {PublicKey.SIZE} bytes, got {public!r}")


def _round_name(name: bytes) -> bytes:
    if isinstance(name, bytes) and len(name) == _NAMES:
        return name
    raise DomainError(f"round_name must be {_NAMES} bytes, got {name!r}")
