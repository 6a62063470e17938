"""Recorded results of training through cloak aggregation, read back as the records that a fresh run makes.

``data/results/cloak_learning.csv`` holds one row a run, as for FLAME (:mod:`flamelib.figures.flame_recorded`), with
sums that left the modulus in place of full bags; ``cloak_learning.json`` beside it says how they came about.
"""

import functools
import json
from collections.abc import Mapping
from typing import Any

from flamelib.figures.flame_recorded import RESULTS, Key, grouped, sweep_of
from flamelib.figures.flame_tradeoffs import Sweep

TABLE, PROVENANCE = "cloak_learning.csv", "cloak_learning.json"


def recorded_sweep(experiment: str) -> Sweep:
    """A sweep by the name of its axis: ``epsilon``, ``clip_norm``, ``scale``, ``log2_modulus`` or ``n_users``.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    about = provenance()
    parameters = {**about["setting"], "repeats": about["repeats"], "seed": about["seed"]}
    return sweep_of(_read(), experiment, "mnist", {name: of for name, of in parameters.items() if name != experiment})


@functools.cache
def provenance() -> Mapping[str, Any]:
    """Sizes, seeds, steps, local budgets, versions and date of the recorded results."""
    found: dict[str, Any] = json.loads((RESULTS / PROVENANCE).read_text(encoding="utf-8"))
    return found


@functools.cache
def _read() -> dict[Key, list[dict[str, str]]]:
    return grouped(RESULTS / TABLE)
