"""Train the full grid once and store it: ``python -m flamelib.companion.record_learning`` (half an hour on one core).

The table and its provenance go to ``data/results``; the notebook shows them beside its own quick runs, and the ledger
judges the documents' accuracies by them.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from flamelib.companion.recording import store
from flamelib.figures import flame_tradeoffs as tradeoffs
from flamelib.figures.flame_learning import Runs, compute_runs
from flamelib.figures.flame_methods import Setting, all_methods
from flamelib.figures.flame_recorded import TABLE, Key, as_csv
from flamelib.figures.recordings import RESULTS
from flamelib.learning.federated import Users, load_users

SETTING, REPEATS, SWEEP_REPEATS, SEED = Setting(), 10, 5, 2021
DATASETS = ("mnist", "fashion-mnist")
GRIDS: dict[str, tuple[float, ...]] = {
    "epsilon0": (0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    "padded": (100, 200, 333, 500, 666, 1000),
    "sampling_rate": (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3),
    "server_step": (1, 2, 4, 8, 16, 50),
    "epsilon": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    "multiples": (1, 2, 4, 8, 12, 16),
}


def everything(
    users: Users, dataset: str, setting: Setting, repeats: int, sweep_repeats: int
) -> Iterator[tuple[Key, Runs]]:
    """All runs on one data set; the sweeps on the first one only."""
    dimension = users.model.dimension
    methods = all_methods(setting, dimension)
    for noise in ("fresh", "repeated"):
        found = compute_runs(users, setting, methods, repeats, SEED, repeat_noise=noise == "repeated")
        yield Key(dataset, "methods", noise, 0), found
    for experiment, values in GRIDS.items() if dataset == DATASETS[0] else ():
        for point in tradeoffs.points(setting, dimension, experiment, values):
            runs = compute_runs(users, point.setting, point.methods, sweep_repeats, SEED, server_step=point.server_step)
            yield Key(dataset, experiment, "fresh", point.value), runs


def record(folder: Path = RESULTS, repeats: int = REPEATS, sweep_repeats: int = SWEEP_REPEATS) -> None:
    """Train, then write both files."""
    setting, started, found = SETTING, time.perf_counter(), []
    held = {}
    for dataset in DATASETS:
        users = load_users(dataset)
        held[dataset] = sizes(users)
        for key, runs in everything(users, dataset, setting, repeats, sweep_repeats):
            found.append((key, runs))
            sys.stderr.write(f"{time.perf_counter() - started:7.0f} s  {' '.join(map(str, key))}\n")
    store(
        folder / TABLE, as_csv(found), "record_learning", setting=asdict(setting), repeats=repeats,
        sweep_repeats=sweep_repeats, seed=SEED, sizes=held, seconds=round(time.perf_counter() - started),
    )  # fmt: skip


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


if __name__ == "__main__":
    record()
