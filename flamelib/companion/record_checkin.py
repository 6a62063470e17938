"""Train with self check-in at full size once: ``python -m flamelib.companion.record_checkin``.

An hour on one core.  The table and its provenance go to ``data/results`` after every job, so that what was finished is
kept; the notebook shows them beside its own quick runs.  Jobs of one experiment may train some schemes each: their runs
have the same random numbers, as if all had been trained together.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from flamelib.checkin_learning import Model
from flamelib.companion.inputs import sha256
from flamelib.companion.record_participation import PACKAGES, revision
from flamelib.convolutional import STRIDED, ConvolutionalNetwork
from flamelib.figures.checkin_learning import CAP, LOCAL_DELTA, NOISELESS, SPHERE, Setting, compute_learning
from flamelib.figures.checkin_recorded import PROVENANCE, TABLE
from flamelib.figures.participation_learning import Learning
from flamelib.figures.participation_recorded import RESULTS, Key, as_csv
from flamelib.random_participation import Records, load_records

DATASET, SEED, POINTS = "mnist", 2206, 20
SEARCHED = (
    "Learning rates were chosen on runs of other seeds: softmax regression on full and shortened runs of seed 3 among "
    "two to four steps a factor of 2 to 3 apart for each scheme, the network on 250 rounds of seed 3 among two or "
    "three.  The published rates are not known."
)


LARGE = Setting(10_000_000, 1.25e-4, 8.0, 2000, dropout=0.2)
SMALL = Setting(60_000, 0.125, 2.0, 5540, dropout=0.2)
NETWORK_STEPS = {CAP: 8.0, SPHERE: 3.0, NOISELESS: 30.0}


class Job(NamedTuple):
    """Runs of one experiment: the side of the squares whose pixels are averaged, how many runs, and what is trained."""

    key: Key
    pool: int
    repeats: int
    setting: Setting


JOBS = (
    Job(Key("large", "softmax"), 2, 5, LARGE),
    Job(Key("large", "convolutional"), 1, 2, replace(LARGE, steps={CAP: NETWORK_STEPS[CAP]})),
    Job(Key("small", "softmax"), 2, 5, SMALL),
    *(
        Job(Key("large", "convolutional"), 1, 2, replace(LARGE, steps={name: NETWORK_STEPS[name]}))
        for name in (SPHERE, NOISELESS)
    ),
)


def record(folder: Path = RESULTS, jobs: Sequence[Job] = JOBS) -> None:
    """Train, and write both files after every job."""
    commit, found, runs = revision(), dict[Key, Learning](), dict[str, dict[str, Any]]()
    folder.mkdir(parents=True, exist_ok=True)
    for job in jobs:
        started, key = time.perf_counter(), job.key
        records = load_records(DATASET, pool=job.pool)
        model: Model = (
            records.softmax if key.model == "softmax" else ConvolutionalNetwork(records.n_classes, STRIDED, 32)
        )
        learning = compute_learning(records, job.setting, job.repeats, SEED, model=model, points=POINTS)
        found[key] = joined(found[key], learning) if key in found else learning
        about = runs.setdefault(key.experiment, {}).setdefault(key.model, _about(learning, job, records, model))
        about["learning rates"] |= job.setting.steps
        about["seconds"] += round(time.perf_counter() - started)
        _write(folder, found, _provenance(commit, runs))
        sys.stderr.write(f"{time.perf_counter() - started:7.0f} s  {' '.join(key)} {' '.join(job.setting.steps)}\n")


def joined(one: Learning, other: Learning) -> Learning:
    """Two records of the same runs, each with schemes of its own."""
    return replace(one, curves={**one.curves, **other.curves}, noise={**one.noise, **other.noise})


def _write(folder: Path, found: Mapping[Key, Learning], about: Mapping[str, Any]) -> None:
    (folder / TABLE).write_text(as_csv(found.items()), encoding="utf-8")
    whole = {**about, "sha256": {TABLE: sha256(folder / TABLE)}}
    (folder / PROVENANCE).write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


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


def _provenance(commit: str, runs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "command": "python -m flamelib.companion.record_checkin",
        "commit": commit,
        "dataset": DATASET,
        "seed": SEED,
        "learning rates": SEARCHED,
        "runs": runs,
        "versions": {"python": sys.version.split()[0], **{name: metadata.version(name) for name in PACKAGES}},
    }


if __name__ == "__main__":
    record()
