"""Recorded results of full training runs with self check-in, read back as the records that a fresh run makes.

``data/results/checkin_learning.csv`` holds one row a run, as for random participation
(:mod:`flamelib.figures.participation_recorded`); ``checkin_learning.json`` beside it says how they came about.
"""

import functools
import json
from collections.abc import Mapping
from typing import Any

from flamelib._validate import DomainError
from flamelib.figures.checkin_learning import shown
from flamelib.figures.participation_learning import Learning
from flamelib.figures.participation_recorded import RESULTS, Key, grouped, read_back

TABLE, PROVENANCE = "checkin_learning.csv", "checkin_learning.json"


def recorded(experiment: str, model: str = "softmax") -> Learning:
    """The recorded runs of an experiment: ``large`` crowd or ``small``, ``softmax`` or ``convolutional``.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    rows = _read().get(Key(experiment, model))
    if rows is None:
        raise DomainError(f"experiment must be a recorded one, got {experiment!r} with model {model!r}")
    return read_back(rows, provenance()["runs"][experiment][model])


@functools.cache
def provenance() -> Mapping[str, Any]:
    """Sizes, seeds, learning rates, versions and date of the recorded results."""
    found: dict[str, Any] = json.loads((RESULTS / PROVENANCE).read_text(encoding="utf-8"))
    return found


@functools.cache
def _read() -> dict[Key, list[dict[str, str]]]:
    return grouped(RESULTS / TABLE)


def findings() -> dict[str, str]:
    """What the page says about the recorded runs, by name: accuracies in percent with their spread."""
    told: dict[str, str] = {}
    for experiment, models in provenance()["runs"].items():
        for model in models:
            runs = recorded(experiment, model)
            told |= {f"{model}_{experiment}_{scheme}": shown(runs.final(scheme)) for scheme in runs.curves}
    return told
