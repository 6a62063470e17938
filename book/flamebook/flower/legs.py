"""What travels from one party to another: arrays in a sealed box, which whoever carries it cannot open.

All that parties of a federation send each other passes through its server.  So each leg is sealed for the party that
it is meant for.  A box is PyNaCl's sealed box (X25519, XSalsa20, Poly1305), with a key pair of its own for each.
"""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from nacl.public import PrivateKey, PublicKey, SealedBox
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]
Box = NDArray[np.uint8]


def packed(arrays: Arrays) -> bytes:
    """The bytes of named arrays; no objects."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def unpacked(content: bytes) -> dict[str, NDArray[Any]]:
    """The named arrays of :func:`packed`."""
    with np.load(io.BytesIO(content), allow_pickle=False) as found:
        return dict(found)


def lock(public: bytes, content: bytes) -> Box:
    """Content that only the holder of the secret key to ``public`` can read."""
    return np.frombuffer(SealedBox(PublicKey(public)).encrypt(content), dtype=np.uint8)


def unlock(secret: bytes, box: Box) -> bytes:
    """What was sealed for this secret key; anything else is refused."""
    return bytes(SealedBox(PrivateKey(secret)).decrypt(box.tobytes()))


def boxed(arrays: Arrays, public: bytes) -> Box:
    """A leg, sealed for the party that it is meant for."""
    return lock(public, packed(arrays))


def opened(box: Box, secret: bytes) -> dict[str, NDArray[Any]]:
    """A leg, opened by the party that it is meant for."""
    return unpacked(unlock(secret, box))


def new_keys() -> tuple[bytes, bytes]:
    """A secret and a public key."""
    secret = PrivateKey.generate()
    return bytes(secret), bytes(secret.public_key)
