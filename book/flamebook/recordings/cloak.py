"""Recorded results of training through cloak aggregation: read back, and made by running this module.

``data/results/cloak_learning.csv`` holds one row a run, as for FLAME (:mod:`flamebook.recordings.flame`), with
sums that left the modulus in place of full bags; ``cloak_learning.json`` beside it says how they came about.  Twenty
minutes on one core; both files are written after every group of runs.  Every method takes the step that was the best of
a few on one run of another seed; finding it costs privacy that nobody accounts for, for all methods alike.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from flamebook.experiments.cloak import (
    CLOAK,
    FLAME,
    PLAIN,
    SERVER,
    Setting,
    averages,
    flame_method,
    flame_setting,
    points,
)
from flamebook.experiments.flame import Method, compute_runs
from flamebook.experiments.flame_grid import Sweep
from flamebook.experiments.runs import Gap, Runs
from flamebook.places import RESULTS
from flamebook.recordings.flame import Key, as_csv, parameters, sizes, sweep_of
from flamebook.runs import recorded
from flamebook.runs.recorded import revision, store
from flamelib.learning.cloak import CloakAverage
from flamelib.learning.federated import Users, load_users

TABLE = "cloak_learning.csv"
DATASET = "mnist"


def recorded_sweep(experiment: str) -> Sweep:
    """A sweep by the name of its axis: ``epsilon``, ``clip_norm``, ``scale``, ``log2_modulus`` or ``n_users``.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    given = {name: of for name, of in parameters(TABLE).items() if name != experiment}
    return sweep_of(TABLE, experiment, recorded.data_of_this_run((DATASET,)), given)


def equal_rows() -> list[tuple[object, ...]]:
    """For a table: epsilon, and the accuracy of every method at the end with the step that was found for it."""
    sweep, steps = recorded_sweep("epsilon"), recorded.provenance(TABLE)["steps"]
    return [
        (value, *(f"{sweep.at(name, value)} ({steps[f'{value:g}'][name]:g})" for name in sweep.finals))
        for value in sweep.x
    ]


def sweep_rows(experiment: str) -> list[tuple[object, ...]]:
    """For a table: a value, accuracy of cloak aggregation, coordinates that wrapped in the first and last round."""
    sweep = recorded_sweep(experiment)
    full = sweep.full[CLOAK][..., 0].mean(axis=1)
    return [
        (float(value), str(sweep.at(CLOAK, value)), float(first), float(last))
        for value, (first, last) in zip(sweep.x, full, strict=True)
    ]


def findings() -> dict[str, str]:
    """What the page says about the recorded runs, by name: accuracies and paired differences in points with spread."""
    sweep = recorded_sweep("epsilon")
    told: dict[str, str] = {}
    for value in sweep.x:
        at = {name: finals[:, list(sweep.x).index(value)] for name, finals in sweep.finals.items()}
        key = f"{value:g}".replace(".", "_")
        told |= {f"{name}_{key}": str(Gap.of(final)) for name, final in at.items()}
        told |= {f"behind_server_{key}": str(Gap.of(at[SERVER] - at[CLOAK]))}
        told |= {f"ahead_of_flame_{key}": str(Gap.of(at[CLOAK] - max((at[n] for n in FLAME), key=np.mean)))}
    return told


DATASET, SETTING, REPEATS, SWEEP_REPEATS = "mnist", Setting(), 5, 3
SEED, SEARCH_SEED = 2023, 7
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
GRIDS: dict[str, tuple[float, ...]] = {
    "clip_norm": (0.05, 0.1, 0.2, 0.3, 0.6, 1.2),
    "scale": (16, 32, 64, 128, 256, 1024),
    "log2_modulus": (13, 14, 15, 16, 17, 20),
    "n_users": (250, 500, 1000, 2000, 6000),
}
TRIED = {
    PLAIN: (4.0, 8.0, 16.0, 32.0),
    CLOAK: (2.0, 4.0, 8.0, 16.0),
    "topk": (0.0625, 0.125, 0.25, 0.5, 1.0),
    "double": (0.5, 1.0, 2.0, 4.0, 8.0),
    "simple": (0.5, 1.0, 2.0, 4.0, 8.0),
}

Steps = dict[str, float]


def best_steps(users: Users, setting: Setting, methods: Mapping[str, Method], known: Steps) -> Steps:
    """The step of every method that is not known yet; the trusted server takes that of cloak aggregation."""
    found = dict(known)
    for name, method in methods.items():
        if name in TRIED and name not in found:
            runs = {
                step: compute_runs(users, setting, {name: method}, 1, SEARCH_SEED, server_step=step)
                for step in TRIED[name]
            }
            found[name] = max(runs, key=lambda step: runs[step].final(name)[0])
    return {**found, SERVER: found[CLOAK]}


def equal_budgets(users: Users, setting: Setting, repeats: int, told: dict[str, Any]) -> Iterator[tuple[Key, Runs]]:
    """All methods at every epsilon, each with its own step."""
    dimension, times = users.model.dimension, setting.taking_part(len(users))
    known: Steps = {}
    for epsilon in EPSILONS:
        here = replace(setting, epsilon=epsilon)
        methods = averages(here, dimension, times)
        flames = {name: flame_setting(name, here, users) for name in FLAME}
        methods |= {name: flame_method(name, one, dimension) for name, one in flames.items()}
        steps = best_steps(users, here, methods, known)
        known = {PLAIN: steps[PLAIN]}
        told["steps"][f"{epsilon:g}"] = steps
        told["local budgets"][f"{epsilon:g}"] = {name: one.epsilon0 for name, one in flames.items()}
        told["cloak"][f"{epsilon:g}"] = _calibrated(here.cloak(dimension, times))
        for name, method in methods.items():
            runs = compute_runs(users, here, {name: method}, repeats, SEED, server_step=steps[name])
            yield Key(DATASET, "epsilon", "fresh", epsilon), runs


def tradeoffs(users: Users, setting: Setting, repeats: int, steps: Steps) -> Iterator[tuple[Key, Runs]]:
    """The other sweeps, at one epsilon; a trusted server beside cloak aggregation where the crowd is varied."""
    for experiment, values in GRIDS.items():
        names = (CLOAK, SERVER) if experiment == "n_users" else (CLOAK,)
        for point in points(setting, users, experiment, values, {name: steps[name] for name in names}):
            yield Key(DATASET, experiment, "fresh", point.value), point.train(users, repeats, SEED)


def _calibrated(method: CloakAverage) -> dict[str, float]:
    return {name: getattr(method, name) for name in ("norm_limit", "variance", "modulus")}


def record(
    folder: Path = RESULTS,
    setting: Setting = SETTING,
    repeats: int = REPEATS,
    sweep_repeats: int = SWEEP_REPEATS,
) -> None:
    """Train, and write both files after every group of runs."""
    started, users = time.perf_counter(), load_users(DATASET)
    told: dict[str, Any] = {"setting": dict(setting.fitted(users).as_parameters()), "repeats": repeats, "seed": SEED}
    told |= {"sweep_repeats": sweep_repeats, "sizes": sizes(users), "steps": {}, "local budgets": {}, "cloak": {}}
    found: list[tuple[Key, Runs]] = []
    commit = revision()
    for key, runs in _everything(users, setting.fitted(users), (repeats, sweep_repeats), told):
        found.append((key, runs))
        seconds = time.perf_counter() - started
        store(folder / TABLE, as_csv(found), "recordings.cloak", commit=commit, **told, seconds=round(seconds))
        sys.stderr.write(f"{seconds:7.0f} s  {' '.join(map(str, key))} {' '.join(runs.curves)}\n")


def _everything(
    users: Users, setting: Setting, repeats: tuple[int, int], told: dict[str, Any]
) -> Iterator[tuple[Key, Runs]]:
    yield from equal_budgets(users, setting, repeats[0], told)
    yield from tradeoffs(users, setting, repeats[1], told["steps"][f"{setting.epsilon:g}"])


if __name__ == "__main__":
    record()
