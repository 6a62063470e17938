"""Guarantees as values: adjacency, (epsilon, delta), and numbers that carry their own numerical error."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from flamelib.core.vocabulary import check, keep


class Adjacency(StrEnum):
    """Which two data sets a guarantee compares; guarantees of different adjacency never mix."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"
    SUM_PRESERVING = "sum-preserving"
    NONE = "none"


class Gives(StrEnum):
    """On which side of the truth an answer lies; ``VALUE`` is a formula's value and no guarantee."""

    UPPER = "upper"
    LOWER = "lower"
    EXACT = "exact"
    VALUE = "value"


class RestsOn(StrEnum):
    """What an answer rests on, strongest first; several answers together rest on the weakest of theirs.

    The label is about what ``gives`` says: that a bound lies on its side of the truth, that an exact answer is the
    truth up to ``uncertainty``, and of a value only that it is the formula's number.  Textbook mathematics is used
    without proof.  It is also assumed that elementary and special functions and Fourier transforms of Python, numpy
    and scipy err by no more than is usually taken for granted.
    """

    PROVEN = "proven"
    """Theorem and numerical error are both proven in this project."""
    CITED = "cited"
    """A theorem of others is used without a proof in this project; the source names it."""
    ESTIMATED = "estimated"
    """Some numerical error is only estimated, or some step is a search that proves nothing."""


def weakest(*rests_on: RestsOn) -> RestsOn:
    """What an answer that combines several others rests on: the weakest of what these rest on."""
    order = list(RestsOn)
    return max(rests_on, key=order.index)


class Certified(float):
    """A number with the width of its numerical error, which is already added on the safe side."""

    uncertainty: float

    def __new__(cls, value: float, uncertainty: float) -> Self:
        self = super().__new__(cls, value)
        self.uncertainty = float(uncertainty)
        return self

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        """What a copy, or another process, makes it of."""
        return float(self), self.uncertainty


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(epsilon, delta)-differential privacy under one adjacency."""

    epsilon: float
    delta: float
    adjacency: Adjacency

    def __post_init__(self) -> None:
        keep(self, **check(epsilon=self.epsilon, delta=self.delta))
