"""Recorded results of full training runs with self check-in: read back, and how they are made.

``data/results/checkin_learning.csv`` holds one row a run, as for random participation
(:mod:`flamebook.recordings.participation`); ``checkin_learning.json`` beside it says how they came about.  Most of an
hour on one idle core.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from flamebook.experiments.checkin import CAP, LOCAL_DELTA, Setting, compute_learning
from flamebook.experiments.runs import Learning
from flamebook.recordings.participation import HEADER, Key, by_model, read_back, to_rows
from flamebook.runs.record import Part, Recording, Results
from flamelib.learning.models import Model
from flamelib.learning.networks import STRIDED, ConvolutionalNetwork
from flamelib.learning.records import load_records

TABLE = "checkin_learning.csv"


def recorded(experiment: str, model: str = "softmax") -> Learning:
    """The recorded runs of an experiment: ``large`` crowd or ``small``, ``softmax`` or ``convolutional``.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    return read_back(TABLE, Key(experiment, model))


DATASET, SEED, POINTS = "mnist", 2206, 20
SEARCHED = (
    "Learning rates were searched for a little, on one run of another seed: those of softmax regression among two to "
    "four for each scheme, a factor of 2 to 3 apart, over 2000 rounds of the large experiment, and kept for the small "
    "one; that of the network among three over 250 rounds, of which 8 was the best, and then divided by about 2.7, so "
    "that noise adds up to as much in 2000 rounds.  The published rates are not known."
)


LARGE = Setting(10_000_000, 1.25e-4, 8.0, 2000, dropout=0.2)
SMALL = Setting(60_000, 0.125, 2.0, 5540, dropout=0.2)


class Job(NamedTuple):
    """Runs of one experiment: the side of the squares whose pixels are averaged, how many, what is trained."""

    pool: int
    repeats: int
    setting: Setting


JOBS = {
    Key("large", "softmax"): Job(2, 5, LARGE),
    Key("large", "convolutional"): Job(1, 2, replace(LARGE, steps={CAP: 3.0})),
    Key("small", "softmax"): Job(2, 3, SMALL),
}


def parts() -> dict[str, Part]:
    """Every experiment with every model that is trained in it."""
    return {"/".join(key): Part(partial(_trained, key)) for key in JOBS}


def _trained(key: Key) -> dict[str, Any]:
    pool, repeats, setting = JOBS[key]
    records = load_records(DATASET, pool=pool)
    model: Model = records.softmax if key.model == "softmax" else ConvolutionalNetwork(records.n_classes, STRIDED, 32)
    learning = compute_learning(records, setting, repeats, SEED, model=model, points=POINTS)
    about = {
        "parameters": dict(learning.parameters),
        "learning rates": dict(setting.steps),
        "failure probability of a Gaussian message": LOCAL_DELTA,
        "effective rate": round(setting.effective_rate, 12),
        "dimension": model.dimension,
        "test images": len(records.tested),
        "tested_after": learning.rounds.tolist(),
    }
    return {"rows": list(to_rows(key, learning)), "about": about}


def told(results: Results) -> dict[str, Any]:
    """What is told of each experiment and model."""
    return {"dataset": DATASET, "seed": SEED, "learning rates": SEARCHED, "runs": by_model(results)}


RECORDING = Recording(TABLE, parts, HEADER, told)
