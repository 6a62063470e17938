"""Guarantees as values: adjacency, (epsilon, delta), and numbers that carry their own numerical error."""

import math
import warnings
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
    truth up to ``uncertainty``.  A value promises nothing and rests on nothing.  Textbook mathematics is used without
    proof.  What a proven number of the numerical machines assumes besides is :data:`ARITHMETIC`.
    """

    PROVEN = "proven"
    """Theorem and numerical error are both proven in this project."""
    CITED = "cited"
    """A theorem of others is used without a proof in this project; the source names it."""
    ESTIMATED = "estimated"
    """Some numerical error is only estimated, or some step is a search that proves nothing."""


#: The ground that a proven number stands on where it is computed by sums, integrals or compositions: doubles follow
#: IEEE 754, and the elementary and special functions and the Fourier transforms of Python, numpy and scipy err by no
#: more than the book's appendices on numerics say.  A closed form of a few operations is no more than its theorem.
ARITHMETIC = "IEEE doubles, and rounding of functions and Fourier transforms within its bounds"


class CrossedEnds(UserWarning):
    """A certified lower end lies above the certified upper one by more than rounding: one of them is wrong."""


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


#: Said of a bracket whose certified ends contradict each other.
CROSSED = "one of both ends is nearly right: as certified they cross"
#: Roundings, in units of the last place, by which two ends of one number that are both exact may come out crossed.
CROSSING = 8


def bracketed_ends(lower: float, upper: float, uncertainty: float, what: str) -> tuple[float, float, bool]:
    """Both ends in order, and whether they bracket the truth for certain.

    Ends that cross by a few roundings are one number, computed in two ways.  Ends that cross by more contradict each
    other: :class:`CrossedEnds` is warned of, and the bracket holds both, with the ``uncertainty`` on either side.
    """
    if lower <= upper:
        return lower, upper, True
    if lower - upper <= CROSSING * math.ulp(upper):
        return upper, lower, True
    said = f"the certified lower end {lower!r} is above the upper one {upper!r} for {what}: one of them is wrong"
    warnings.warn(CrossedEnds(f"{said}; please report it"), stacklevel=3)
    return max(upper - uncertainty, 0.0), lower + uncertainty, False


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(epsilon, delta)-differential privacy under one adjacency."""

    epsilon: float
    delta: float
    adjacency: Adjacency

    def __post_init__(self) -> None:
        keep(self, **check(epsilon=self.epsilon, delta=self.delta))
