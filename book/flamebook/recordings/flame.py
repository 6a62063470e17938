"""Recorded results of FLAME's full grid of training runs: read back, and how they are made.

``data/results/flame_learning.csv`` holds one row a run: the data set, which experiment, what stood on its axis, the
method, accuracies, and where padding had no room; ``flame_learning.json`` beside it says how they came about.  The grid
takes half an hour on one core.  The notebook shows the table beside its own quick runs, and the ledger judges the
documents' accuracies by it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flamebook.experiments import flame_grid as tradeoffs
from flamebook.experiments.flame import Setting, all_methods, compute_runs
from flamebook.experiments.flame_grid import Sweep, compute_sweep
from flamebook.experiments.runs import Runs
from flamebook.runs import recorded as tables
from flamebook.runs.record import Part, Recording, Results
from flamebook.runs.recorded import Row
from flamelib.core.vocabulary import DomainError
from flamelib.learning.federated import Users, load_users

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


def recorded_runs(dataset: str = "", noise: str = "fresh", experiment: str = "methods", value: float = 0) -> Runs:
    """Runs of all methods of an experiment, of one value where it is a sweep; of the data of this run if none is named.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    key = Key(dataset or tables.data_of_this_run(DATASETS), experiment, noise, value)
    found = tables.grouped(TABLE, Key.of).get(key)
    if found is None:
        raise DomainError(f"experiment must be a recorded one, got {tuple(key)}")
    return _runs(found)


def recorded_sweep(experiment: str, dataset: str = "") -> Sweep:
    """A sweep, its axis named by the experiment; of the data of this run if none is named."""
    return sweep_of(TABLE, experiment, dataset or tables.data_of_this_run(DATASETS[:1]))


def sweep_of(table: str, experiment: str, dataset: str) -> Sweep:
    """One sweep of a table with these columns.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    wanted, groups = (dataset, experiment, "fresh"), tables.grouped(table, Key.of)
    found = [(key.value, _runs(of)) for key, of in groups.items() if key[:3] == wanted]
    if not found:
        raise DomainError(f"experiment must be a recorded sweep, got {experiment!r}")
    return Sweep.of(experiment, found)


@dataclass(frozen=True, slots=True)
class Beside:
    """A fresh sweep, and the recorded one of the full grid if it is of the same data.

    Attributes
    ----------
    fresh : Sweep
    recorded : Sweep or None
    """

    fresh: Sweep
    recorded: Sweep | None


def compute_beside(
    users: Users, setting: Setting, experiment: str, values: Iterable[float], repeats: int, seed: int
) -> Beside:
    """A sweep as :func:`flamebook.experiments.flame_grid.compute_sweep` makes it, beside the recorded one."""
    fresh = compute_sweep(users, setting, experiment, values, repeats, seed)
    return Beside(fresh, recorded_sweep(experiment) if tables.same_data(DATASETS[0]) else None)


def _runs(found: Sequence[Row]) -> Runs:
    """The record that these rows of a table were written from."""
    methods = {
        name: [row for row in found if row["method"] == name] for name in dict.fromkeys(r["method"] for r in found)
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
    return Runs(curves, official, untouched, full)


SETTING, REPEATS, SWEEP_REPEATS, SEED = Setting(), 10, 5, 2021
DATASETS = ("mnist", "fashion-mnist")
GRIDS: dict[str, tuple[float, ...]] = {
    "epsilon0": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    "padded": (100, 200, 333, 500, 666, 1000),
    "sampling_rate": (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3),
    "server_step": (1, 2, 4, 8, 16, 50),
    "epsilon": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    "sound": (0.1, 0.3, 1, 3, 10),
    "multiples": (1, 2, 4, 8, 12, 16),
}


def parts() -> dict[str, Part]:
    """The methods on every data set with fresh and with repeated noise; the sweeps on the first one only."""
    found = dict[str, Part]()
    for dataset in DATASETS:
        found |= {f"{dataset}/{noise}": Part(partial(_methods, dataset, noise)) for noise in ("fresh", "repeated")}
        found |= {name: Part(partial(_sweep, name)) for name in (GRIDS if dataset == DATASETS[0] else ())}
    return found


def _methods(dataset: str, noise: str) -> dict[str, Any]:
    users = load_users(dataset)
    methods = all_methods(SETTING, users.model.dimension)
    runs = compute_runs(users, SETTING, methods, REPEATS, SEED, repeat_noise=noise == "repeated")
    return {"sizes": sizes(users), "rows": list(to_rows(Key(dataset, "methods", noise, 0), runs))}


def _sweep(experiment: str) -> dict[str, Any]:
    users, found = load_users(DATASETS[0]), list[tuple[object, ...]]()
    for one in tradeoffs.points(SETTING, users.model.dimension, experiment, GRIDS[experiment]):
        runs = compute_runs(users, one.setting, one.methods, SWEEP_REPEATS, SEED, server_step=one.server_step)
        found += to_rows(Key(DATASETS[0], experiment, "fresh", one.value), runs)
    return {"rows": found}


def told(results: Results) -> dict[str, Any]:
    """Setting and sizes."""
    fixed = {"setting": asdict(SETTING), "repeats": REPEATS, "sweep_repeats": SWEEP_REPEATS, "seed": SEED}
    return fixed | {"sizes": {dataset: results[f"{dataset}/fresh"]["sizes"] for dataset in DATASETS}}


def sizes(users: Users) -> dict[str, int]:
    """Who holds what, for the provenance."""
    return {
        "users": len(users),
        "training images of a user": users.images.shape[1],
        "test images of users": len(users.held_back),
        "published test images": len(users.official),
        "of these held by users": int(users.official_held.sum()),
        "of these trained on": int(users.official_trained.sum()),
        "dimension": users.model.dimension,
    }


def _taken_apart() -> Results:
    """The parts as the table and what is told of it have them."""
    about, found = tables.provenance(TABLE), dict[str, Any]()
    for key, rows in tables.grouped(TABLE, Key.of).items():
        methods = key.experiment == "methods"
        part = found.setdefault(f"{key.dataset}/{key.noise}" if methods else key.experiment, {"rows": []})
        part |= {"sizes": about["sizes"][key.dataset]} if methods else {}
        part["rows"] += [tuple(row.values()) for row in rows]
    return found


RECORDING = Recording(TABLE, parts, HEADER, told, _taken_apart)
