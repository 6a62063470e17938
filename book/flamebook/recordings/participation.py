"""Recorded results of full training runs with random participation: read back, and made by running this module.

``data/results/participation_learning.csv`` holds one row a run: the experiment, the model, the scheme with its noise
and step, and accuracies at equal distances; ``participation_learning.json`` beside it says how they came about.
``python -m flamebook.recordings.participation`` takes half an hour on one core.  The notebook shows the table beside
its own quick runs, and the ledger judges the document's rankings by it.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flamebook.experiments.participation import Setting, compute_learning
from flamebook.experiments.runs import Learning
from flamebook.places import RESULTS
from flamebook.records import to_csv
from flamebook.runs import recorded as tables
from flamebook.runs.recorded import PACKAGES as COMMON
from flamebook.runs.recorded import Row, revision, store
from flamelib.core.vocabulary import DomainError
from flamelib.learning.models import Model
from flamelib.learning.networks import ConvolutionalNetwork
from flamelib.learning.records import Records, load_records
from flamelib.protocols.participation import batch_size

TABLE = "participation_learning.csv"
HEADER = ("experiment", "model", "scheme", "noise_std", "run", "accuracy")


class Key(NamedTuple):
    """Which runs belong together: the experiment by its number in the document, ``softmax`` or ``convolutional``."""

    experiment: str
    model: str

    @classmethod
    def of(cls, row: Row) -> "Key":
        """That of a row."""
        return cls(row["experiment"], row["model"])


def to_rows(key: Key, record: Learning) -> Iterator[tuple[object, ...]]:
    """One row a scheme and run; accuracies in percent to three digits behind the point."""
    for scheme, curves in record.curves.items():
        for count, curve in enumerate(curves):
            yield *key, scheme, record.noise[scheme], count, " ".join(f"{100 * share:.3f}" for share in curve)


def as_csv(found: Iterable[tuple[Key, Learning]]) -> str:
    """The table of everything found."""
    return to_csv(HEADER, (row for key, record in found for row in to_rows(key, record)))


def recorded(experiment: str, model: str = "convolutional") -> Learning:
    """The recorded runs of an experiment.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    return read_back(TABLE, Key(experiment, model))


def read_back(table: str, key: Key) -> Learning:
    """The record that rows of a table with these columns, and what its provenance says of them, were written from.

    Raises
    ------
    DomainError
        If there are none, or the run that is under way is on other data.
    """
    tables.data_of_this_run((tables.provenance(table)["dataset"],))
    rows = tables.grouped(table, Key.of).get(key)
    if rows is None:
        raise DomainError(f"experiment must be a recorded one, got {key.experiment!r} with model {key.model!r}")
    about = tables.provenance(table)["runs"][key.experiment][key.model]
    curves, noise = dict[str, list[list[str]]](), dict[str, float]()
    for row in rows:
        curves.setdefault(row["scheme"], []).append(row["accuracy"].split())
        noise[row["scheme"]] = float(row["noise_std"])
    shares = {name: np.array(found, dtype=float) / 100 for name, found in curves.items()}
    return Learning(np.array(about["tested_after"], dtype=np.int64), shares, noise, about["parameters"])


def findings() -> dict[str, str]:
    """What the page says about the recorded runs, by name: paired differences in points with their spread."""
    pairs = {
        "protection": ("unprotected", "outer"),
        "clipping": ("unprotected", "noiseless"),
        "known": ("outer", "ols"),
        "reading": ("inner", "outer"),
    }
    told: dict[str, str] = {}
    for experiment, size in (("6.1", "small"), ("6.2", "large")):
        for model, short in (("softmax", "softmax"), ("convolutional", "cnn")):
            runs = recorded(experiment, model)
            told |= {f"{short}_{size}_{name}": str(runs.gap(*pair)) for name, pair in pairs.items()}
    return told


DATASET, SEED, POINTS = "emnist-letters", 2022, 8
PACKAGES = (*COMMON, "torch")
SETTINGS = {
    "6.1": Setting(30, 0.0056, 0.1, slow_learning_rate=1e-4),
    "6.2": Setting(1000, 0.1, 0.0056),
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much is trained with one model: side of the squares whose pixels are averaged, rounds, runs, test images.

    ``slow`` says whether WCS and OLS are trained with the smaller step, too.
    """

    pool: int
    rounds: int
    repeats: int
    n_tested: int | None = None
    slow: bool = False


SIZES = {"softmax": Size(2, 4000, 10, slow=True), "convolutional": Size(1, 1000, 3, 5200)}


def everything(sizes: dict[str, Size]) -> Iterator[tuple[Key, Learning, Records, Model]]:
    """All runs, model by model and experiment by experiment."""
    for name, size in sizes.items():
        records = load_records(DATASET, pool=size.pool, n_tested=size.n_tested)
        model: Model = records.softmax if name == "softmax" else ConvolutionalNetwork(records.n_classes)
        for experiment, setting in SETTINGS.items():
            slow = setting.slow_learning_rate if size.slow else None
            here = replace(setting, rounds=size.rounds, slow_learning_rate=slow)
            yield (
                Key(experiment, name),
                compute_learning(records, here, size.repeats, SEED, model=model, points=POINTS),
                records,
                model,
            )


def record(folder: Path = RESULTS, sizes: dict[str, Size] | None = None) -> None:
    """Train, then write both files."""
    started, commit, found, runs = time.perf_counter(), revision(), [], dict[str, dict[str, Any]]()
    for key, learning, records, model in everything(sizes or SIZES):
        found.append((key, learning))
        runs.setdefault(key.experiment, {})[key.model] = _about(learning, records, model)
        sys.stderr.write(f"{time.perf_counter() - started:7.0f} s  {' '.join(key)}\n")
    store(
        folder / TABLE, as_csv(found), "recordings.participation", PACKAGES, commit=commit, dataset=DATASET, seed=SEED,
        runs=runs, seconds=round(time.perf_counter() - started),
    )  # fmt: skip


def _about(learning: Learning, records: Records, model: Model) -> dict[str, Any]:
    given = Setting(*(learning.parameters[name] for name in ("n_records", "participation_rate", "record_rate")))  # type: ignore[arg-type]
    n_clients = records.n_clients(given.n_records)
    mean, std = batch_size(given.participation_rate, given.record_rate, n_clients, given.n_records)
    return {
        "parameters": dict(learning.parameters),
        "clients": n_clients,
        "expected batch": round(mean, 3),
        "standard deviation of a batch": round(std, 3),
        "dimension": model.dimension,
        "test images": len(records.tested),
        "tested_after": learning.rounds.tolist(),
    }


if __name__ == "__main__":
    record()
