r"""Where randomness comes from: a numpy generator for simulation, or the operating system for release.

Both have the interface of :class:`Randomness`, so that a protocol is written once.  :class:`Simulation` can be
repeated from a seed and is quick; whoever sees a few of its outputs can compute the others, so nothing that matters
may be protected with it.  :class:`Release` takes every bit from the operating system, is unbiased for every modulus,
and cannot be repeated.

Residues are 64-bit whole numbers for moduli up to :math:`2^{62}`, so that two of them can be added, and Python's own
whole numbers (arrays of objects) beyond.

Source: Ghazi, Pagh, Velingker 2019, Algorithm 1, draws uniform residues.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib._arrays import Shape, reals

Residues = NDArray[Any]

LARGEST_MACHINE = 2**62


class Randomness(Protocol):
    """What a protocol asks of its source of randomness."""

    def uniform(self, modulus: int, shape: Shape) -> Residues:
        """Independent, uniform residues in {0, ..., modulus - 1}."""

    def coins(self, rate: ArrayLike, shape: Shape) -> NDArray[np.bool_]:
        """Independent coins that show heads with the given chance, or chances."""

    def permuted(self, messages: Residues) -> Residues:
        """A copy in uniformly random order along the last axis, row by row independently."""

    def spawn(self, n: int) -> Sequence[Self]:
        """Independent sources, one for each party."""


def residue_type(modulus: int) -> type:
    """The type of arrays of residues: 64-bit whole numbers as long as two of them can be added.

    >>> residue_type(2**40).__name__, residue_type(2**80).__name__
    ('int64', 'object')
    """
    return np.int64 if modulus <= LARGEST_MACHINE else object


@dataclass(frozen=True, slots=True)
class Simulation:
    """Repeatable randomness from a numpy generator: for experiments, never for release.

    >>> Simulation(np.random.default_rng(0)).uniform(10, 3).tolist()
    [8, 6, 5]
    """

    rng: np.random.Generator

    def uniform(self, modulus: int, shape: Shape) -> Residues:
        """Uniform residues; beyond 2^62 they come from Python's bytes of the same generator."""
        if modulus <= LARGEST_MACHINE:
            return self.rng.integers(0, modulus, size=shape, dtype=np.int64)
        return _large(lambda n: self.rng.bytes(n), modulus, shape)

    def coins(self, rate: ArrayLike, shape: Shape) -> NDArray[np.bool_]:
        """Coins at the resolution of a double, 2^-53."""
        return np.asarray(self.rng.random(shape) < reals("rate", rate, 0, 1))

    def permuted(self, messages: Residues) -> Residues:
        """Uniformly random order along the last axis."""
        return np.asarray(self.rng.permuted(messages, axis=-1))

    def spawn(self, n: int) -> list["Simulation"]:
        """Children of the generator."""
        return [Simulation(child) for child in self.rng.spawn(n)]


@dataclass(frozen=True, slots=True)
class Release:
    """Randomness of the operating system: cannot be repeated, cannot be predicted.

    >>> bool(Release().uniform(10, 1000).max() < 10)
    True
    """

    def uniform(self, modulus: int, shape: Shape) -> Residues:
        """Uniform residues by rejection of the shortest words that hold the modulus."""
        if modulus > LARGEST_MACHINE:
            return _large(secrets.token_bytes, modulus, shape)
        count, mask = int(np.prod(shape)), 2 ** (modulus - 1).bit_length() - 1
        kept = np.empty(0, dtype=np.int64)
        while kept.size < count:
            words = np.frombuffer(secrets.token_bytes(8 * 2 * (count - kept.size + 8)), dtype=np.int64) & mask
            kept = np.concatenate([kept, words[words < modulus]])
        return kept[:count].reshape(shape)

    def coins(self, rate: ArrayLike, shape: Shape) -> NDArray[np.bool_]:
        """Coins at a resolution of 2^-62."""
        return np.asarray(self.uniform(2**62, shape) < reals("rate", rate, 0, 1) * 2.0**62)

    def permuted(self, messages: Residues) -> Residues:
        """Uniformly random order along the last axis."""
        rows = np.array(messages).reshape(-1, messages.shape[-1])
        for row in rows:
            for i in range(row.size - 1, 0, -1):
                j = secrets.randbelow(i + 1)
                row[i], row[j] = row[j], row[i]
        return rows.reshape(messages.shape)

    def spawn(self, n: int) -> list["Release"]:
        """The operating system serves every party."""
        return [self] * n


def _large(tossed: Any, modulus: int, shape: Shape) -> Residues:
    """Uniform residues of a large modulus, by rejection, as Python's whole numbers."""
    length, mask = (modulus.bit_length() + 7) // 8, 2 ** (modulus - 1).bit_length() - 1
    drawn = np.empty(shape, dtype=object)
    for place in np.ndindex(drawn.shape):
        while (word := int.from_bytes(tossed(length), "big") & mask) >= modulus:
            pass
        drawn[place] = word
    return drawn
