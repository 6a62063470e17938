"""Runs of an experiment: accuracy of several methods over several seeds, and what is told of them.

Every figure of accuracy is a record of single runs, so that a mean never stands without its spread.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from flamebook.records import LOOKS, Parameters, to_csv
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError
from flamelib.learning.rounds import History

CONFIDENCE = 0.95  # of every interval that is told of runs
KINDS = {
    "claimed": "budget claimed for SS-Topk",
    "unsampled": "the same without sampling",
    "dense": "one coordinate in ten",
    "told": "coordinates known",
    "step": "step four times as long",
    "slow": "smaller step",
}


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference in percentage points: its mean over runs, their standard deviation, how many there were."""

    mean: float
    spread: float
    repeats: int

    @classmethod
    def of(cls, differences: Reals) -> "Gap":
        """From one difference a run.

        >>> Gap.of(np.array([1.0, 2.0, 3.0]))
        Gap(mean=2.0, spread=1.0, repeats=3)
        """
        if len(differences) < 2:
            raise DomainError(f"repeats must be 2 or more for a spread, got {len(differences)}")
        return cls(float(differences.mean()), float(differences.std(ddof=1)), len(differences))

    @property
    def reach(self) -> float:
        """Half the width of the interval that holds one more run with 95 % (Gaussian runs)."""
        quantile = float(student.ppf((1 + CONFIDENCE) / 2, self.repeats - 1))
        return quantile * self.spread * math.sqrt(1 + 1 / self.repeats)

    def agrees(self, printed: float) -> bool:
        """Whether one printed run may be one more of these."""
        return abs(printed - self.mean) <= self.reach

    def __str__(self) -> str:
        return f"{self.mean:.2f} \N{PLUS-MINUS SIGN} {self.spread:.2f}"


def half_width(gap: Gap) -> float:
    """Half of the 95 % confidence interval of a mean difference (Gaussian runs).

    >>> round(half_width(Gap(mean=1.0, spread=2.0, repeats=4)), 4)
    3.1824
    """
    quantile = float(student.ppf((1 + CONFIDENCE) / 2, gap.repeats - 1))
    return quantile * gap.spread / math.sqrt(gap.repeats)


class Finals:
    """What models were right on at the end, run by run, of a record whose curves are shares along the rounds."""

    __slots__ = ()
    curves: Mapping[str, Reals]

    def final(self, method: str) -> Reals:
        """Accuracy of every run's last model, in percent."""
        return np.asarray(100 * self.curves[method][:, -1])

    def gap(self, one: str, other: str) -> Gap:
        """How far the first method is ahead of the second at the end."""
        return Gap.of(self.final(one) - self.final(other))


@dataclass(frozen=True, slots=True)
class Runs(Finals):
    """Accuracy of several methods over several seeds; run i of every method starts from the same model.

    Attributes
    ----------
    curves : mapping from method to array of shape (repeats, rounds + 1)
        Share of the users' own test images told right, the initial model's first.
    official, untouched : mapping from method to array of shape (repeats,)
        At the end, on the published test part and on those of it that no user holds.
    full : mapping from method to array of shape (repeats, rounds, 2)
        Of every round, the coordinates with more reports than padding has room for, and the most that did not fit.
    """

    curves: Mapping[str, Reals]
    official: Mapping[str, Reals]
    untouched: Mapping[str, Reals]
    full: Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Learning(Finals):
    """Accuracy of several schemes over several runs; run i of every scheme has the same random numbers.

    Attributes
    ----------
    rounds : array of shape (points + 1,)
        After how many rounds models were tested.
    curves : mapping from scheme to array of shape (repeats, points + 1)
        Share of the test images told right.
    noise : mapping from scheme to float
        Standard deviation of the noise on the sum.
    parameters : mapping
    """

    rounds: NDArray[np.int64]
    curves: Mapping[str, Reals]
    noise: Mapping[str, float]
    parameters: Parameters

    @classmethod
    def of(cls, histories: Sequence[History], noise: Mapping[str, float], parameters: Parameters) -> Self:
        """From the histories of runs of the same schemes."""
        curves = {name: np.array([history.accuracy[name] for history in histories]) for name in noise}
        return cls(histories[0].rounds, curves, noise, parameters)

    def ahead(self, one: str, other: str) -> bool:
        """Whether the runs show the first scheme ahead of the second."""
        gap = self.gap(one, other)
        return gap.mean > half_width(gap)

    def to_csv(self) -> str:
        """One row a scheme, run and test."""
        rows = (
            (scheme, self.noise[scheme], run, count, value)
            for scheme, curves in self.curves.items()
            for run, curve in enumerate(curves)
            for count, value in zip(self.rounds, curve, strict=True)
        )
        return to_csv(["scheme", "noise_std", "run", "round", "accuracy"], rows)


def named(method: str) -> str:
    """A method in words.

    >>> named("topk:dense")
    'SS-Topk, one coordinate in ten'
    """
    key, _, kind = method.partition(":")
    return LOOKS[key].label + (f", {KINDS.get(kind, kind)}" if kind else "")
