"""Learning under FLAME: runs of all methods over several seeds, their curves, and the gaps between them.

The methods are those of :mod:`flamelib.figures.flame_methods`.  Every figure of accuracy is a record of single runs,
so that a mean never stands without its spread.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import t as student

from flamelib.core.vocabulary import DomainError
from flamelib.figures.curves import Parameters, Values, to_csv
from flamelib.figures.flame_methods import Crowd, Method, aggregate
from flamelib.figures.style import DOTTED, LOOKS, Pen
from flamelib.learning.federated import Published, Users, train

MARKERS = ("o", "s", "^", "D", "v")
KINDS = {
    "claimed": "budget claimed for SS-Topk",
    "unsampled": "the same without sampling",
    "dense": "one coordinate in ten",
    "step": "step four times as long",
}


# Printed with the experiments: (method ahead, method behind, percentage points).
GAPS = {
    "claim-4.07": ("double", "simple", 4.07),
    "claim-55.5": ("topk", "double", 55.5),
    "claim-33.94": ("topk", "dp:claimed", 33.94),
    "claim-60.7": ("topk", "ldp:Gaussian", 60.7),
    "claim-1.48": ("np", "topk:dense", 1.48),
}


@dataclass(frozen=True, slots=True)
class Runs:
    """Accuracy of several methods over several seeds; run i of every method starts from the same model.

    Attributes
    ----------
    curves : mapping from method to array of shape (repeats, rounds + 1)
        Share of the users' own test images told right, the initial model's first.
    official, untouched : mapping from method to array of shape (repeats,)
        At the end, on the published test part and on those of it that no user holds.
    full : mapping from method to array of shape (repeats, rounds, 2)
        Of every round, the coordinates with more reports than padding has room for, and the most that did not fit.
    parameters : mapping
    """

    curves: Mapping[str, Values]
    official: Mapping[str, Values]
    untouched: Mapping[str, Values]
    full: Mapping[str, NDArray[np.int64]]
    parameters: Parameters

    def final(self, method: str) -> Values:
        """Accuracy of every run's last model, in percent."""
        return np.asarray(100 * self.curves[method][:, -1])

    def gap(self, one: str, other: str) -> "Gap":
        """How far the first method is ahead of the second at the end."""
        return Gap.of(self.final(one) - self.final(other))

    def to_csv(self) -> str:
        """One row a method, seed and round."""
        rows = [
            (method, run, count, value)
            for method, curves in self.curves.items()
            for run, curve in enumerate(curves)
            for count, value in enumerate(curve)
        ]
        return to_csv(["method", "run", "round", "accuracy"], rows)


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference in percentage points: its mean over runs, their standard deviation, how many there were."""

    mean: float
    spread: float
    repeats: int

    @classmethod
    def of(cls, differences: Values) -> "Gap":
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
        quantile = float(student.ppf(0.975, self.repeats - 1))
        return quantile * self.spread * math.sqrt(1 + 1 / self.repeats)

    def agrees(self, printed: float) -> bool:
        """Whether one printed run may be one more of these."""
        return abs(printed - self.mean) <= self.reach

    def __str__(self) -> str:
        return f"{self.mean:.2f} \N{PLUS-MINUS SIGN} {self.spread:.2f}"


def compute_runs(
    users: Users,
    setting: Crowd,
    methods: Mapping[str, Method],
    repeats: int,
    seed: int,
    *,
    repeat_noise: bool = False,
    server_step: float = 1.0,
) -> Runs:
    """Train every method ``repeats`` times.

    Parameters
    ----------
    users : Users
    setting : Crowd
        Users a round and rounds.
    methods : mapping from name to method
    repeats, seed : int
        Run i of every method gets the same child of the seed.
    repeat_noise : bool
        Every round of a run finds the generator in the same state, as the authors' code does unawares.
    server_step : float
        Factor on what is published.
    """
    curves, official, untouched, full = {}, {}, {}, {}
    for name, method in methods.items():
        histories = [
            train(
                aggregate(method, repeat_noise), users, setting.rounds, rng,
                n_users=setting.n_users, server_step=server_step, repeat_noise=repeat_noise, observe=_overfull,
            )
            for rng in np.random.default_rng(seed).spawn(repeats)
        ]  # fmt: skip
        curves[name] = np.array([history.held_back for history in histories])
        official[name] = np.array([history.official for history in histories])
        untouched[name] = np.array([history.untouched for history in histories])
        full[name] = np.array([history.observed for history in histories])
    parameters = {**setting.as_parameters(), "repeats": repeats, "seed": seed}
    return Runs(curves, official, untouched, full, parameters)


def _overfull(published: Published) -> tuple[int, int]:
    overflow = getattr(published, "overflow", np.zeros(1, dtype=np.int64))
    return int((overflow > 0).sum()), int(overflow.max())


def users_rows(users: Users) -> list[tuple[object, ...]]:
    """For a table: who holds what, and what is tested on."""
    return [
        ("users", len(users)),
        ("training images of each", users.labels.shape[1]),
        ("test images that users hold back", len(users.held_back)),
        ("images of the published test part", len(users.official)),
        ("of these in some user's hands", int(users.official_held.sum())),
        ("of these trained on", int(users.official_trained.sum())),
        ("parameters of the model", users.model.dimension),
    ]


def gap_rows(*found: Runs) -> list[tuple[object, ...]]:
    """For a table: a printed gap, and for each set of runs ours with its spread and whether the printed one fits in."""
    rows: list[tuple[object, ...]] = []
    for one, other, printed in GAPS.values():
        ours = [runs.gap(one, other) for runs in found]
        told = [part for gap in ours for part in (str(gap), gap.agrees(printed))]
        rows.append((f"{named(one)} \N{MINUS SIGN} {named(other)}", printed, *told))
    return rows


def fitting_gaps(runs: Runs) -> int:
    """How many of the printed gaps may be one more run of these."""
    return sum(runs.gap(one, other).agrees(printed) for one, other, printed in GAPS.values())


def accuracy_rows(record: Runs) -> list[tuple[object, ...]]:
    """For a table: each method's accuracy at the end on the three sets of test images, in percent with its spread."""
    finals = {name: curves[:, -1] for name, curves in record.curves.items()}
    sets = (finals, record.official, record.untouched)
    return [(named(name), *(str(Gap.of(100 * one[name])) for one in sets)) for name in finals]


def draw_runs(ax: Axes, record: Runs, pen: Pen) -> None:
    """Mean accuracy after every round, one standard deviation to either side."""
    ax.set(xlabel="rounds", ylabel="accuracy on the users' test images (%)")
    for name, runs in record.curves.items():
        draw_band(ax, np.arange(runs.shape[1]), 100 * runs, name, list(record.curves), pen)
    ax.set_ylim(bottom=0)


def named(method: str) -> str:
    """A method in words.

    >>> named("topk:dense")
    'SS-Topk, one coordinate in ten'
    """
    key, _, kind = method.partition(":")
    return LOOKS[key].label + (f", {KINDS.get(kind, kind)}" if kind else "")


def draw_band(ax: Axes, x: Values | NDArray[np.int64], runs: Values, name: str, names: Sequence[str], pen: Pen) -> None:
    """One curve: the mean of the runs over x, in a band of one standard deviation."""
    key = name.partition(":")[0]
    same = [other for other in names if other.partition(":")[0] == key]
    style = pen.line(key, label=named(name))
    if len(same) > 1:
        style |= {"marker": MARKERS[same.index(name) % len(MARKERS)]}
        style |= {"linestyle": DOTTED} if same.index(name) else {}
    mean = runs.mean(axis=0)
    spread = runs.std(axis=0, ddof=1) if len(runs) > 1 else 0 * mean
    ax.plot(x, mean, **style, markevery=max(1, len(x) // 6))
    ax.fill_between(x, mean - spread, mean + spread, color=style["color"], alpha=0.14, linewidth=0)
