"""Public parameters of cloak aggregation, checked where they are made.

Source: Ghazi, Pagh, Velingker 2019, Algorithms 1 and 2; US20220374542A1.
"""

from dataclasses import dataclass
from typing import Protocol

from flamelib.core.arrays import Shape
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.integers.modular import Residues
from flamelib.mechanisms.integers.randomness import Randomness

ROUNDINGS = ("floor", "random", "grid")


class Noise(Protocol):
    """A law of whole numbers that a user adds, such as those of :mod:`flamelib.mechanisms.integers.noise`."""

    def sample(self, shape: Shape, randomness: Randomness) -> Residues:
        """Independent draws."""


@dataclass(frozen=True, slots=True)
class CloakProtocol:
    r"""What everybody knows.

    Parameters
    ----------
    n_users : int, at least 2
    modulus : int
        Messages live in {0, ..., modulus - 1}.  Above ``n_users * scale``, so that the sum of values from [0, 1] does
        not wrap around; with noise and the clipping rule, above three times that.
    scale : int, at least 1
        The value :math:`x` is sent as about :math:`x k`.
    n_messages : int, at least 2
        Shares :math:`m` of every value; a single one would be the value itself.
    rounding : {"floor", "random", "grid"}
        How :math:`x k` becomes whole, see :func:`~flamelib.protocols.cloak.scaled`.
    noise : law of whole numbers, optional
        What a user adds before it splits, by its method ``sample``.
    noise_rate : float in (0, 1]
        Chance that a user adds noise at all.

    Raises
    ------
    DomainError
        Where a parameter is out of its domain, or they do not fit together.

    Examples
    --------
    >>> CloakProtocol(n_users=1000, modulus=2**40 - 87, scale=10**4, n_messages=15).full
    10000000
    """

    n_users: int
    modulus: int
    scale: int
    n_messages: int
    rounding: str = "floor"
    noise: Noise | None = None
    noise_rate: float = 1.0

    def __post_init__(self) -> None:
        shape = check(n_users=self.n_users, modulus=self.modulus, scale=self.scale, n_messages=self.n_messages)
        for name, value in (shape | check(noise_rate=self.noise_rate)).items():
            object.__setattr__(self, name, value)
        if self.modulus <= self.full:
            raise DomainError(f"modulus must be above n_users * scale = {self.full}, got {self.modulus}")
        if self.n_messages < 2:
            raise DomainError("n_messages must be a whole number of at least 2: one message is the value itself")
        if self.rounding not in ROUNDINGS:
            raise DomainError(f"rounding must be one of {', '.join(ROUNDINGS)}, got {self.rounding!r}")
        law = self.noise
        if law is not None and (isinstance(law, type) or not callable(getattr(law, "sample", None))):
            raise DomainError(f"noise must be None or a law with a method sample(shape, randomness), got {law!r}")

    @property
    def full(self) -> int:
        """The scaled sum when every value is 1."""
        return self.n_users * self.scale
