"""Recorded results of full training runs with random participation: read back, and how they are made.

``data/results/participation_learning.csv`` holds one row a run: the experiment, the model, the scheme with its noise
and step, and accuracies at equal distances; ``participation_learning.json`` beside it says how they came about.
They take half an hour on one core.  The notebook shows the table beside its own quick runs, and the ledger judges the
document's rankings by it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from flamebook.experiments.participation import Setting, compute_learning
from flamebook.experiments.runs import Learning
from flamebook.runs import recorded as tables
from flamebook.runs.record import Part, Recording, Results
from flamebook.runs.recorded import Row
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
    found = tables.grouped(table, Key.of).get(key)
    if found is None:
        raise DomainError(f"experiment must be a recorded one, got {key.experiment!r} with model {key.model!r}")
    about = tables.provenance(table)["runs"][key.experiment][key.model]
    curves, noise = dict[str, list[list[str]]](), dict[str, float]()
    for row in found:
        curves.setdefault(row["scheme"], []).append(row["accuracy"].split())
        noise[row["scheme"]] = float(row["noise_std"])
    shares = {name: np.array(runs, dtype=float) / 100 for name, runs in curves.items()}
    return Learning(np.array(about["tested_after"], dtype=np.int64), shares, noise, about["parameters"])


def about(experiment: str, model: str) -> dict[str, Any]:
    """What the provenance of the table says of an experiment with one model: clients, batch, dimension, parameters."""
    found: dict[str, Any] = tables.provenance(TABLE)["runs"][experiment][model]
    return found


DATASET, SEED, POINTS = "emnist-letters", 2022, 8
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


def parts() -> dict[str, Part]:
    """Every experiment with every model."""
    keys = [Key(experiment, model) for model in SIZES for experiment in SETTINGS]
    return {"/".join(key): Part(partial(_trained, key)) for key in keys}


def _trained(key: Key) -> dict[str, Any]:
    size, setting = SIZES[key.model], SETTINGS[key.experiment]
    records = load_records(DATASET, pool=size.pool, n_tested=size.n_tested)
    model: Model = records.softmax if key.model == "softmax" else ConvolutionalNetwork(records.n_classes)
    slow = setting.slow_learning_rate if size.slow else None
    here = replace(setting, rounds=size.rounds, slow_learning_rate=slow)
    learning = compute_learning(records, here, size.repeats, SEED, model=model, points=POINTS)
    return {"rows": list(to_rows(key, learning)), "about": _about(learning, here, records, model)}


def told(results: Results) -> dict[str, Any]:
    """What is told of each experiment and model."""
    return {"dataset": DATASET, "seed": SEED, "runs": by_model(results)}


def by_model(results: Results) -> dict[str, dict[str, Any]]:
    """What parts say about themselves, by experiment and model."""
    found = dict[str, dict[str, Any]]()
    for name, one in results.items():
        experiment, _, model = name.partition("/")
        found.setdefault(experiment, {})[model] = one["about"]
    return found


def _about(learning: Learning, given: Setting, records: Records, model: Model) -> dict[str, Any]:
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


RECORDING = Recording(TABLE, parts, HEADER, told)
