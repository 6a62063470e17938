"""Recorded results of training through cloak aggregation: read back, and how they are made.

``data/results/cloak_learning.csv`` holds one row a run, as for FLAME (:mod:`flamebook.recordings.flame`), with
sums that left the modulus in place of full bags; ``cloak_learning.json`` beside it says how they came about.  Half an
hour on one core.  Every method takes the step that was the best of a few on one run of another seed; finding it costs
privacy that nobody accounts for, for all methods alike.
"""

import functools
from dataclasses import replace
from functools import partial
from typing import Any

from flamebook.experiments import flame
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
from flamebook.recordings.flame import HEADER, Key, sizes, sweep_of, to_rows
from flamebook.runs import recorded
from flamebook.runs.record import Part, Recording, Results
from flamelib.learning.federated import Users, load_users

TABLE = "cloak_learning.csv"


def recorded_sweep(experiment: str) -> Sweep:
    """A sweep by the name of its axis: ``epsilon``, ``clip_norm``, ``scale``, ``log2_modulus`` or ``n_users``.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    return sweep_of(TABLE, experiment, recorded.data_of_this_run((DATASET,)))


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


def parts() -> dict[str, Part]:
    """All methods at every epsilon, each with its own step; the other sweeps, at one epsilon."""
    equal = {f"epsilon={epsilon:g}": Part(partial(_equal_budgets, epsilon)) for epsilon in EPSILONS}
    return equal | {experiment: Part(partial(_tradeoffs, experiment)) for experiment in GRIDS}


def _equal_budgets(epsilon: float) -> dict[str, Any]:
    users, here, methods, flames = _at(epsilon)
    steps, rows = {name: best_step(name, epsilon) for name in methods}, list[tuple[object, ...]]()
    for name, method in methods.items():
        runs = compute_runs(users, here, {name: method}, REPEATS, SEED, server_step=steps[name])
        rows += to_rows(Key(DATASET, "epsilon", "fresh", epsilon), runs)
    cloak = here.cloak(users.model.dimension, here.taking_part(len(users)))
    found = {
        "steps": steps,
        "local budgets": {name: one.epsilon0 for name, one in flames.items()},
        "cloak": {name: getattr(cloak, name) for name in ("norm_limit", "variance", "modulus")},
    }
    return {"setting": SETTING.fitted(users).as_parameters(), "sizes": sizes(users), "found": found, "rows": rows}


def _tradeoffs(experiment: str) -> dict[str, Any]:
    """One of the other sweeps; a trusted server beside cloak aggregation where the crowd is varied."""
    users, setting, _, _ = _at(SETTING.epsilon)
    names = (CLOAK, SERVER) if experiment == "n_users" else (CLOAK,)
    steps, found = {name: best_step(name, setting.epsilon) for name in names}, list[tuple[object, ...]]()
    for point in points(setting, users, experiment, GRIDS[experiment], steps):
        found += to_rows(Key(DATASET, experiment, "fresh", point.value), point.train(users, SWEEP_REPEATS, SEED))
    return {"rows": found}


_users = functools.cache(load_users)


@functools.cache
def _at(epsilon: float) -> tuple[Users, Setting, dict[str, Method], dict[str, flame.Setting]]:
    """Users, setting and methods at an epsilon, and FLAME's settings of the same budget."""
    users = _users(DATASET)
    here = replace(SETTING.fitted(users), epsilon=epsilon)
    methods: dict[str, Method] = {**averages(here, users.model.dimension, here.taking_part(len(users)))}
    flames = {name: flame_setting(name, here, users) for name in FLAME}
    methods |= {name: flame_method(name, one, users.model.dimension) for name, one in flames.items()}
    return users, here, methods, flames


@functools.cache
def best_step(name: str, epsilon: float) -> float:
    """The best step of a method of those tried: without privacy at the first epsilon, a server's that of the cloak."""
    if name == SERVER:
        return best_step(CLOAK, epsilon)
    if name == PLAIN and epsilon != EPSILONS[0]:
        return best_step(name, EPSILONS[0])
    users, here, methods, _ = _at(epsilon)
    runs = {
        step: compute_runs(users, here, {name: methods[name]}, 1, SEARCH_SEED, server_step=step) for step in TRIED[name]
    }
    return max(runs, key=lambda step: runs[step].final(name)[0])


def told(results: Results) -> dict[str, Any]:
    """Setting and sizes, and what was found at every epsilon."""
    equal = {f"{epsilon:g}": results[f"epsilon={epsilon:g}"] for epsilon in EPSILONS}
    first = next(iter(equal.values()))
    fixed = {"setting": first["setting"], "repeats": REPEATS, "seed": SEED, "sweep_repeats": SWEEP_REPEATS}
    found = {what: {epsilon: one["found"][what] for epsilon, one in equal.items()} for what in first["found"]}
    return fixed | {"sizes": first["sizes"]} | found


RECORDING = Recording(TABLE, parts, HEADER, told)
