"""Recorded results of the full grid of training runs: read back as the records that a fresh run makes.

``data/results/flame_learning.csv`` holds one row a run: the data set, which experiment, what stood on its axis, the
method, accuracies, and where padding had no room; ``flame_learning.json`` beside it says how they came about.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes

from flamelib.core.vocabulary import DomainError
from flamelib.figures import recordings
from flamelib.figures.curves import Parameters, to_csv
from flamelib.figures.flame_learning import Runs, fitting_gaps
from flamelib.figures.flame_methods import Setting
from flamelib.figures.flame_tradeoffs import Sweep, compute_sweep, draw_sweep
from flamelib.figures.recordings import Row
from flamelib.figures.style import Pen
from flamelib.learning.federated import Users

TABLE = "flame_learning.csv"
HEADER = (
    "dataset", "experiment", "noise", "value", "method", "run", "official", "untouched",
    "full_first", "excess_first", "full_last", "excess_last", "accuracy",
)  # fmt: skip


class Key(NamedTuple):
    """Which runs belong together: ``noise`` is ``fresh`` or ``repeated``, ``value`` stands on the axis of a sweep."""

    dataset: str
    experiment: str
    noise: str
    value: float

    @classmethod
    def of(cls, row: Row) -> "Key":
        """That of a row."""
        return cls(row["dataset"], row["experiment"], row["noise"], float(row["value"]))


def to_rows(key: Key, runs: Runs) -> Iterator[tuple[object, ...]]:
    """One row a method and run; accuracies in percent to three digits behind the point."""
    for method, curves in runs.curves.items():
        for count, curve in enumerate(curves):
            first, last = runs.full[method][count][[0, -1]]
            after = [f"{100 * float(share[method][count]):.3f}" for share in (runs.official, runs.untouched)]
            accuracy = " ".join(f"{100 * share:.3f}" for share in curve)
            yield (*key, method, count, *after, *first, *last, accuracy)


def as_csv(found: Iterable[tuple[Key, Runs]]) -> str:
    """The table of everything found."""
    return to_csv(HEADER, (row for key, runs in found for row in to_rows(key, runs)))


def recorded_runs(dataset: str = "mnist", noise: str = "fresh", experiment: str = "methods", value: float = 0) -> Runs:
    """Runs of all methods of an experiment, of one value where it is a sweep.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    key = Key(dataset, experiment, noise, value)
    found = recordings.grouped(TABLE, Key.of).get(key)
    if found is None:
        raise DomainError(f"experiment must be a recorded one, got {tuple(key)}")
    return _runs(found, parameters(TABLE))


def recorded_sweep(experiment: str, dataset: str = "mnist") -> Sweep:
    """A sweep, its axis named by the experiment."""
    return sweep_of(TABLE, experiment, dataset, parameters(TABLE))


def sweep_of(table: str, experiment: str, dataset: str, given: Parameters) -> Sweep:
    """One sweep of a table with these columns.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    wanted, rows = (dataset, experiment, "fresh"), recordings.grouped(table, Key.of)
    found = [(key.value, _runs(of, given)) for key, of in rows.items() if key[:3] == wanted]
    if not found:
        raise DomainError(f"experiment must be a recorded sweep, got {experiment!r}")
    return Sweep.of(experiment, found, given)


def parameters(table: str) -> Parameters:
    """The setting of recorded runs, how often each was repeated, and the seed: for the card of a figure."""
    about = recordings.provenance(table)
    return {**about["setting"], "repeats": about["repeats"], "seed": about["seed"]}


def findings() -> dict[str, int | float | str]:
    """What the page says about the recorded runs, by name: gaps that fit, gaps with their spread, runs that stop.

    ``stopped`` counts runs of SS-Topk with a coordinate of more reports than padding has room for in the first round.
    """
    fresh, repeated, clothes = recorded_runs(), recorded_runs(noise="repeated"), recorded_runs("fashion-mnist")
    return {
        "fresh_fits": fitting_gaps(fresh),
        "repeated_fits": fitting_gaps(repeated),
        "server_gap": str(fresh.gap("topk", "dp:claimed")),
        "dense_gap": str(fresh.gap("np", "topk:dense")),
        "clothes_server_gap": str(clothes.gap("topk", "dp:claimed")),
        "clothes_dense_gap": str(clothes.gap("np", "topk:dense")),
        "stopped": int((fresh.full["topk"][:, 0, 0] > 0).sum()),
        "best_rate": recorded_sweep("sampling_rate").best("topk"),
    }


@dataclass(frozen=True, slots=True)
class Beside:
    """A fresh sweep, and the recorded one of the full grid.

    Attributes
    ----------
    fresh, recorded : Sweep
    """

    fresh: Sweep
    recorded: Sweep

    @property
    def parameters(self) -> Parameters:
        return self.fresh.parameters

    def to_csv(self) -> str:
        """The recorded values, then the fresh ones, each with its own header."""
        return self.recorded.to_csv() + self.fresh.to_csv()


def draw_beside(ax: Axes, record: Beside, pen: Pen) -> None:
    """Recorded means in a band of one standard deviation; fresh ones as points with bars."""
    draw_sweep(ax, record.recorded, pen)
    for name in record.fresh.finals:
        style = pen.line(name, label="_fresh", linestyle="none", marker="x", markersize=8)
        ax.errorbar(record.fresh.x, record.fresh.mean(name), yerr=record.fresh.spread(name), capsize=3, **style)


def compute_beside(
    users: Users, setting: Setting, experiment: str, values: Iterable[float], repeats: int, seed: int
) -> Beside:
    """A sweep as :func:`flamelib.figures.flame_tradeoffs.compute_sweep` makes it, beside the recorded one."""
    return Beside(compute_sweep(users, setting, experiment, values, repeats, seed), recorded_sweep(experiment))


def _runs(rows: Sequence[Row], given: Parameters) -> Runs:
    """The record that these rows of a table were written from."""
    methods = {
        name: [row for row in rows if row["method"] == name] for name in dict.fromkeys(r["method"] for r in rows)
    }
    curves = {
        name: np.array([row["accuracy"].split() for row in of], dtype=float) / 100 for name, of in methods.items()
    }
    official, untouched = (
        {name: np.array([row[column] for row in of], dtype=float) / 100 for name, of in methods.items()}
        for column in ("official", "untouched")
    )
    columns = ("full_first", "excess_first", "full_last", "excess_last")
    full = {
        name: np.array([[row[column] for column in columns] for row in of], dtype=np.int64).reshape(-1, 2, 2)
        for name, of in methods.items()
    }
    return Runs(curves, official, untouched, full, given)
