"""Recorded results of full training runs with random participation, read back as the records that a fresh run makes.

``data/results/participation_learning.csv`` holds one row a run: the experiment, the model, the scheme with its noise
and step, and accuracies at equal distances; ``participation_learning.json`` beside it says how they came about.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from flamelib.core.vocabulary import DomainError
from flamelib.figures import recordings
from flamelib.figures.curves import to_csv
from flamelib.figures.participation_learning import Learning
from flamelib.figures.recordings import Row

TABLE = "participation_learning.csv"
HEADER = ("experiment", "model", "scheme", "noise_std", "run", "accuracy")


class Key(NamedTuple):
    """Which runs belong together: the experiment by its number in the document, ``softmax`` or ``convolutional``."""

    experiment: str
    model: str

    @classmethod
    def of(cls, row: Row) -> "Key":
        """That of a row."""
        return cls(row["experiment"], row["model"])


def to_rows(key: Key, record: Learning) -> Iterator[tuple[object, ...]]:
    """One row a scheme and run; accuracies in percent to three digits behind the point."""
    for scheme, curves in record.curves.items():
        for count, curve in enumerate(curves):
            yield *key, scheme, record.noise[scheme], count, " ".join(f"{100 * share:.3f}" for share in curve)


def as_csv(found: Iterable[tuple[Key, Learning]]) -> str:
    """The table of everything found."""
    return to_csv(HEADER, (row for key, record in found for row in to_rows(key, record)))


def recorded(experiment: str, model: str = "convolutional") -> Learning:
    """The recorded runs of an experiment.

    Raises
    ------
    DomainError
        If nothing of the kind was recorded.
    """
    return read_back(TABLE, Key(experiment, model))


def read_back(table: str, key: Key) -> Learning:
    """The record that rows of a table with these columns, and what its provenance says of them, were written from.

    Raises
    ------
    DomainError
        If there are none.
    """
    rows = recordings.grouped(table, Key.of).get(key)
    if rows is None:
        raise DomainError(f"experiment must be a recorded one, got {key.experiment!r} with model {key.model!r}")
    about = recordings.provenance(table)["runs"][key.experiment][key.model]
    curves, noise = dict[str, list[list[str]]](), dict[str, float]()
    for row in rows:
        curves.setdefault(row["scheme"], []).append(row["accuracy"].split())
        noise[row["scheme"]] = float(row["noise_std"])
    shares = {name: np.array(found, dtype=float) / 100 for name, found in curves.items()}
    return Learning(np.array(about["tested_after"], dtype=np.int64), shares, noise, about["parameters"])


def findings() -> dict[str, str]:
    """What the page says about the recorded runs, by name: paired differences in points with their spread."""
    pairs = {
        "protection": ("unprotected", "outer"),
        "clipping": ("unprotected", "noiseless"),
        "known": ("outer", "ols"),
        "reading": ("inner", "outer"),
    }
    told: dict[str, str] = {}
    for experiment, size in (("6.1", "small"), ("6.2", "large")):
        for model, short in (("softmax", "softmax"), ("convolutional", "cnn")):
            runs = recorded(experiment, model)
            told |= {f"{short}_{size}_{name}": str(runs.gap(*pair)) for name, pair in pairs.items()}
    return told
