"""Train with self check-in at full size once: ``python -m flamelib.companion.record_checkin``.

An hour on one core.  The table and its provenance go to ``data/results`` after every experiment; the notebook shows
them beside its own quick runs.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from flamelib.checkin_learning import Model
from flamelib.companion.inputs import sha256
from flamelib.companion.record_participation import PACKAGES, revision
from flamelib.convolutional import STRIDED, ConvolutionalNetwork
from flamelib.figures.checkin_learning import LOCAL_DELTA, STEPS, Setting, compute_learning
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


@dataclass(frozen=True, slots=True)
class Size:
    """One experiment: its public parameters, the side of the squares whose pixels are averaged, and runs."""

    setting: Setting
    pool: int
    repeats: int


LARGE = {"n_users": 10_000_000, "checkin_rate": 1.25e-4, "dropout": 0.2, "epsilon0": 8.0, "rounds": 2000}
SMALL = {"n_users": 60_000, "checkin_rate": 0.125, "dropout": 0.2, "epsilon0": 2.0, "rounds": 5540}
SIZES = {
    Key("large", "softmax"): Size(Setting(**LARGE), 2, 5),  # type: ignore[arg-type]
    Key("large", "convolutional"): Size(Setting(**LARGE, steps=STEPS), 1, 2),  # type: ignore[arg-type]
    Key("small", "softmax"): Size(Setting(**SMALL), 2, 5),  # type: ignore[arg-type]
}


def record(folder: Path = RESULTS, sizes: Mapping[Key, Size] | None = None) -> None:
    """Train, and write both files after every experiment."""
    commit, found, runs = revision(), dict[Key, Learning](), dict[str, dict[str, Any]]()
    folder.mkdir(parents=True, exist_ok=True)
    for key, size in (sizes or SIZES).items():
        started = time.perf_counter()
        records = load_records(DATASET, pool=size.pool)
        model: Model = (
            records.softmax if key.model == "softmax" else ConvolutionalNetwork(records.n_classes, STRIDED, 32)
        )
        found[key] = compute_learning(records, size.setting, size.repeats, SEED, model=model, points=POINTS)
        seconds = time.perf_counter() - started
        runs.setdefault(key.experiment, {})[key.model] = _about(found[key], size, records, model, seconds)
        (folder / TABLE).write_text(as_csv(found.items()), encoding="utf-8")
        about = _provenance(commit, runs) | {"sha256": {TABLE: sha256(folder / TABLE)}}
        (folder / PROVENANCE).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        sys.stderr.write(f"{seconds:7.0f} s  {' '.join(key)}\n")


def _about(learning: Learning, size: Size, records: Records, model: Model, seconds: float) -> dict[str, Any]:
    return {
        "parameters": dict(learning.parameters),
        "learning rates": dict(size.setting.steps),
        "failure probability of a Gaussian message": LOCAL_DELTA,
        "effective rate": round(size.setting.effective_rate, 12),
        "dimension": model.dimension,
        "test images": len(records.tested),
        "tested_after": learning.rounds.tolist(),
        "seconds": round(seconds),
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
