"""Train with random participation at full size once: ``python -m flamelib.companion.record_participation``.

Half an hour on one core.  The table and its provenance go to ``data/results``; the notebook shows them beside its own
quick runs, and the ledger judges the document's rankings by them.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flamelib.companion.recording import PACKAGES as COMMON
from flamelib.companion.recording import revision, store
from flamelib.figures.participation_learning import Learning, Setting, compute_learning
from flamelib.figures.participation_recorded import TABLE, Key, as_csv
from flamelib.figures.recordings import RESULTS
from flamelib.learning.networks import ConvolutionalNetwork
from flamelib.learning.participation import Model, Records, load_records
from flamelib.protocols.participation import batch_size

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
        folder / TABLE, as_csv(found), "record_participation", PACKAGES, commit=commit, dataset=DATASET, seed=SEED,
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
