"""Recorded results of training through cloak aggregation, read back as the records that a fresh run makes.

``data/results/cloak_learning.csv`` holds one row a run, as for FLAME (:mod:`flamelib.figures.flame_recorded`), with
sums that left the modulus in place of full bags; ``cloak_learning.json`` beside it says how they came about.
"""

import numpy as np

from flamelib.figures import recordings
from flamelib.figures.cloak_tradeoffs import CLOAK, FLAME, SERVER
from flamelib.figures.flame_learning import Gap
from flamelib.figures.flame_recorded import parameters, sweep_of
from flamelib.figures.flame_tradeoffs import Sweep

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
    return sweep_of(TABLE, experiment, DATASET, given)


def equal_rows() -> list[tuple[object, ...]]:
    """For a table: epsilon, and the accuracy of every method at the end with the step that was found for it."""
    sweep, steps = recorded_sweep("epsilon"), recordings.provenance(TABLE)["steps"]
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
