"""Recorded results of full training runs with self check-in: read back, and made by running this module.

``data/results/checkin_learning.csv`` holds one row a run, as for random participation
(:mod:`flamebook.recordings.participation`); ``checkin_learning.json`` beside it says how they came about.  Half an hour
on one idle core; both files are written after every job, so that what was finished is kept.  Jobs of one experiment may
make some runs, or train some schemes, each: random numbers are as if all had been made together.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flamebook.experiments.checkin import CAP, LOCAL_DELTA, Setting, compute_learning, shown
from flamebook.experiments.runs import Learning
from flamebook.places import RESULTS
from flamebook.recordings.participation import PACKAGES, Key, as_csv, read_back
from flamebook.runs import recorded as tables
from flamebook.runs.recorded import revision, store
from flamelib.learning.models import Model
from flamelib.learning.networks import STRIDED, ConvolutionalNetwork
from flamelib.learning.records import Records, load_records

TABLE = "checkin_learning.csv"


def recorded(experiment: str, model: str = "softmax") -> Learning:
    """The recorded runs of an experiment: ``large`` crowd or ``small``, ``softmax`` or ``convolutional``.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    return read_back(TABLE, Key(experiment, model))


def findings() -> dict[str, str]:
    """What the page says about the recorded runs, by name: accuracies in percent with their spread."""
    told: dict[str, str] = {}
    for experiment, models in tables.provenance(TABLE)["runs"].items():
        for model in models:
            runs = recorded(experiment, model)
            told |= {f"{model}_{experiment}_{scheme}": shown(runs.final(scheme)) for scheme in runs.curves}
    return told


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
    """Some runs of one experiment: the side of the squares whose pixels are averaged, the runs, what is trained."""

    key: Key
    pool: int
    first: int
    repeats: int
    setting: Setting


JOBS = (
    Job(Key("large", "softmax"), 2, 0, 5, LARGE),
    Job(Key("large", "convolutional"), 1, 0, 2, replace(LARGE, steps={CAP: 3.0})),
    Job(Key("small", "softmax"), 2, 0, 3, SMALL),
)


def record(folder: Path = RESULTS, jobs: Sequence[Job] = JOBS) -> None:
    """Train, and write both files after every job."""
    commit, found, runs = revision(), dict[Key, Learning](), dict[str, dict[str, Any]]()
    for job in jobs:
        started, key = time.perf_counter(), job.key
        records = load_records(DATASET, pool=job.pool)
        model: Model = (
            records.softmax if key.model == "softmax" else ConvolutionalNetwork(records.n_classes, STRIDED, 32)
        )
        learning = compute_learning(
            records, job.setting, job.repeats, SEED, first=job.first, model=model, points=POINTS
        )
        found[key] = joined(found[key], learning) if key in found else learning
        about = runs.setdefault(key.experiment, {}).setdefault(key.model, _about(learning, job, records, model))
        about["learning rates"] |= job.setting.steps
        about["parameters"]["repeats"] = max(map(len, found[key].curves.values()))
        about["seconds"] += round(time.perf_counter() - started)
        told = {"commit": commit, "dataset": DATASET, "seed": SEED, "learning rates": SEARCHED, "runs": runs}
        store(folder / TABLE, as_csv(found.items()), "recordings.checkin", PACKAGES, **told)
        sys.stderr.write(f"{time.perf_counter() - started:7.0f} s  {' '.join(key)} {' '.join(job.setting.steps)}\n")


def joined(one: Learning, other: Learning) -> Learning:
    """Two records of one experiment: schemes side by side, runs of the same scheme one after another."""
    curves = dict(one.curves)
    for name, runs in other.curves.items():
        curves[name] = np.concatenate([curves[name], runs]) if name in curves else runs
    return replace(one, curves=curves, noise={**one.noise, **other.noise})


def _about(learning: Learning, job: Job, records: Records, model: Model) -> dict[str, Any]:
    return {
        "parameters": dict(learning.parameters),
        "learning rates": {},
        "failure probability of a Gaussian message": LOCAL_DELTA,
        "effective rate": round(job.setting.effective_rate, 12),
        "dimension": model.dimension,
        "test images": len(records.tested),
        "tested_after": learning.rounds.tolist(),
        "seconds": 0,
    }


if __name__ == "__main__":
    record()
