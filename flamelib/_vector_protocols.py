"""Public parameters of the three protocols of FLAME, checked where they are made.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Algorithms 2 to 4.
"""

from dataclasses import dataclass
from typing import Literal

from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.coordinates import Randomizer

Inclusion = Literal["subset", "bernoulli"]


@dataclass(frozen=True, slots=True)
class SimpleProtocol:
    """SS-Simple: every user reports every coordinate.

    Parameters
    ----------
    n_users : int, at least 2
    dimension : int, at least 1
    clip_norm : float, positive
        Every coordinate of an update is clipped to [-clip_norm, clip_norm]; the paper's :math:`C`.
    randomizer : LaplaceNoise or KaryResponse
        Applied to each coordinate; a response on ``b + 1`` buckets is the paper's with :math:`b` levels.
    """

    n_users: int
    dimension: int
    clip_norm: float
    randomizer: Randomizer

    def __post_init__(self) -> None:
        _convert(self, "n_users", "dimension", "clip_norm")

    @property
    def kept(self) -> int:
        """Coordinates that a user reports: all."""
        return self.dimension

    @property
    def padded(self) -> int:
        """Messages in a bag: one for each user."""
        return self.n_users


@dataclass(frozen=True, slots=True)
class DoubleProtocol:
    r"""SS-Double: every user reports ``kept`` random coordinates, bags are padded to ``padded`` messages.

    Parameters
    ----------
    n_users, dimension, clip_norm, randomizer
        As in :class:`SimpleProtocol`.
    kept : int in [1, dimension]
        The paper's :math:`k`.
    padded : int, at least 2 and at least :math:`n\beta`
        The paper's :math:`n_p`.
    inclusion : "subset" or "bernoulli"
        Exactly ``kept`` coordinates without replacement, as in the paper; or each coordinate on its own with chance
        ``kept / dimension`` (then ``kept`` may be any number), which accounting of hidden index sets asks for.
    """

    n_users: int
    dimension: int
    clip_norm: float
    randomizer: Randomizer
    kept: float
    padded: int
    inclusion: Inclusion = "subset"

    def __post_init__(self) -> None:
        if self.inclusion not in ("subset", "bernoulli"):
            raise DomainError(f"inclusion must be one of subset, bernoulli, got {self.inclusion!r}")
        _convert(self, "n_users", "dimension", "clip_norm", "kept", "padded")
        _fits(self, whole=self.inclusion == "subset")


@dataclass(frozen=True, slots=True)
class TopkProtocol:
    r"""SS-Topk: every user reports its ``kept`` largest coordinates, hidden among ``multiples`` times as many.

    Parameters
    ----------
    n_users, dimension, clip_norm, randomizer
        As in :class:`SimpleProtocol`.
    kept : int in [1, dimension]
        The paper's :math:`k`; the largest absolute values before clipping.
    padded : int, at least 2 and at least :math:`n \beta` ``multiples``
        The paper's :math:`n_p`.
    multiples : int, at least 1, below :math:`1 / \beta + 1`
        The paper's :math:`l`: ``kept (multiples - 1)`` other coordinates, as many as there are, are reported with
        messages from the blanket.  1 hides nothing.
    """

    n_users: int
    dimension: int
    clip_norm: float
    randomizer: Randomizer
    kept: int
    padded: int
    multiples: int = 1

    def __post_init__(self) -> None:
        _convert(self, "n_users", "dimension", "clip_norm", "kept", "padded", "multiples")
        _fits(self, whole=True)
        if (self.multiples - 1) * self.kept >= self.dimension:
            raise DomainError(f"multiples must be below dimension / kept + 1, got {self.multiples}")
        if self.n_users * self.kept * self.multiples > self.padded * self.dimension:
            raise DomainError(f"multiples must be at most padded / (n_users kept / dimension), got {self.multiples}")


Protocol = SimpleProtocol | DoubleProtocol | TopkProtocol


def _convert(protocol: Protocol, *names: str) -> None:
    """Replace the named public parameters by their plain numbers, checked; check the randomizer."""
    for name, value in check(**{name: getattr(protocol, name) for name in names}).items():
        object.__setattr__(protocol, name, value)
    if not isinstance(protocol.randomizer, Randomizer):
        raise DomainError(f"randomizer must be LaplaceNoise or KaryResponse, got {protocol.randomizer!r}")


def _fits(protocol: DoubleProtocol | TopkProtocol, whole: bool) -> None:
    kept, dimension = protocol.kept, protocol.dimension
    if kept > dimension or (whole and kept != int(kept)):
        kind = "whole number" if whole else "number"
        raise DomainError(f"kept must be a {kind} of at most dimension = {dimension}, got {kept}")
    if whole:
        object.__setattr__(protocol, "kept", int(kept))
    if protocol.padded * dimension < protocol.n_users * kept:
        least = protocol.n_users * kept / dimension
        raise DomainError(f"padded must be at least n_users kept / dimension = {least:g}, got {protocol.padded}")
