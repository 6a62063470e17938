"""Guarantees as values: adjacency, (epsilon, delta), and numbers that know their own error."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from flamelib.core.vocabulary import check


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
    """What an answer stands on; in order, so that the last of several is what they stand on together.

    The label speaks of what ``gives`` says: of a bound that it lies on its side, of an exact answer that it is the
    truth but for ``uncertainty``, of a value only that the number is the formula's.  Textbook mathematics needs no
    proof here, nor that elementary and special functions and Fourier transforms of Python, numpy and scipy err by no
    more than is usually taken for granted.
    """

    PROVEN = "proven"
    """Theorem and numerical error are both proven in this project."""
    CITED = "cited"
    """A theorem of others is used unproven here; the source names it."""
    ESTIMATED = "estimated"
    """Some numerical error or step is only estimated or searched."""


def weakest(*rests_on: RestsOn) -> RestsOn:
    """What an answer rests on that is made of several: the weakest of what they rest on."""
    order = list(RestsOn)
    return max(rests_on, key=order.index)


class Certified(float):
    """A number with the width of its numerical error, which is already added on the safe side."""

    uncertainty: float

    def __new__(cls, value: float, uncertainty: float) -> Self:
        self = super().__new__(cls, value)
        self.uncertainty = uncertainty
        return self


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(epsilon, delta)-differential privacy under one adjacency."""

    epsilon: float
    delta: float
    adjacency: Adjacency

    def __post_init__(self) -> None:
        check(epsilon=self.epsilon, delta=self.delta)
