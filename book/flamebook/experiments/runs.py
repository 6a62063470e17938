"""Runs of an experiment: accuracy of several methods over several seeds, and what is told of them.

Every figure of accuracy is a record of single runs, so that a mean never stands without its spread.
"""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from flamebook.places import RESULTS
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError

CONFIDENCE = 0.95  # of every interval that is told of runs


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


def half_width(gap: Gap) -> float:
    """Half of the 95 % confidence interval of a mean difference (Gaussian runs).

    >>> round(half_width(Gap(mean=1.0, spread=2.0, repeats=4)), 4)
    3.1824
    """
    quantile = float(student.ppf((1 + CONFIDENCE) / 2, gap.repeats - 1))
    return quantile * gap.spread / math.sqrt(gap.repeats)


@dataclass(frozen=True, slots=True)
class Learning:
    """Accuracy of several schemes over several runs; run i of every scheme has the same random numbers.

    Attributes
    ----------
    rounds : array of shape (points + 1,)
        After how many rounds models were tested.
    curves : mapping from scheme to array of shape (repeats, points + 1)
        Share of the test images told right.
    noise : mapping from scheme to float
        Standard deviation of the noise.
    """

    rounds: NDArray[np.int64]
    curves: Mapping[str, Reals]
    noise: Mapping[str, float]

    @classmethod
    def recorded(cls, notebook: str, file: str) -> Self:
        """From the numbers behind a figure of a notebook's run at the sizes of the papers, as the book keeps them."""
        with (RESULTS / notebook / file).open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
        rounds = sorted({int(row["round"]) for row in rows})
        noise = {row["scheme"]: float(row["noise_std"]) for row in rows}
        shares = {name: [float(row["accuracy"]) for row in rows if row["scheme"] == name] for name in noise}
        curves = {name: np.reshape(values, (-1, len(rounds))) for name, values in shares.items()}
        return cls(np.array(rounds), curves, noise)

    def final(self, scheme: str) -> Reals:
        """Accuracy of every run's last model, in percent."""
        return np.asarray(100 * self.curves[scheme][:, -1])

    def gap(self, one: str, other: str) -> Gap:
        """How far the first scheme is ahead of the second at the end."""
        return Gap.of(self.final(one) - self.final(other))

    def ahead(self, one: str, other: str) -> bool:
        """Whether the runs show the first scheme ahead of the second."""
        gap = self.gap(one, other)
        return gap.mean > half_width(gap)
