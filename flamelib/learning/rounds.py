"""Rounds of training with tests in between; a long training goes on where it was stopped.

Where the environment variable ``FLAMELIB_RESUME`` names a folder, a training that takes longer than half a minute
writes its state there at every test, and one with the same model, data, scheme, random numbers and code begins at the
last state.  What is kept of a training that has ended are its tests, so that it is not trained again.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from flamelib.core.arrays import Reals, Wholes
from flamelib.core.vocabulary import DomainError
from flamelib.learning.models import Model
from flamelib.learning.records import Records

Scheme = TypeVar("Scheme")

# What trainings compute with, under the library's folder: a state that other code has kept is not read.
_CODE = ("learning/*.py", "mechanisms/vectors.py", "protocols/checkin.py", "protocols/participation.py")
_SHORT = 30.0  # seconds, within which nothing is kept: beginning anew costs no more


@dataclass(frozen=True, slots=True)
class History:
    """One training run of several schemes.

    ``accuracy`` holds each scheme's share of test images that are classified correctly after so many ``rounds``, 0
    first; ``batches`` how many records or messages each round had.
    """

    rounds: Wholes
    accuracy: Mapping[str, Reals]
    batches: Wholes


@dataclass(frozen=True, slots=True)
class Training:
    """One scheme under way: what its rounds change in place, and the generators that they draw from.

    ``arrays`` hold the model's ``parameters``, and whatever else goes from one round to the next; ``one_round`` is
    given the number of rounds before it and returns how many records or messages it had.
    """

    arrays: Mapping[str, Reals]
    generators: Sequence[np.random.Generator]
    one_round: Callable[[int], int]

    def state(self) -> dict[str, Any]:
        """Everything that the next round depends on."""
        return {**self.arrays, "generators": json.dumps([one.bit_generator.state for one in self.generators])}

    def restore(self, kept: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name, array in self.arrays.items():
            array[...] = kept[name]
        for generator, state in zip(self.generators, json.loads(str(kept["generators"])), strict=True):
            generator.bit_generator.state = state


def follow(
    test: Callable[[Reals], float], training: Training, rounds: int, points: int, about: object = None
) -> tuple[Wholes, Reals, Wholes]:
    """Rounds of training, the model tested ``points`` times on the way: rounds before each test, accuracy, batches.

    Tests are at equal distances, the first before any round, the last at the end.  ``about`` is whatever else the
    numbers depend on, beside the training's state at the beginning; its ``repr`` names what is kept.  Without it
    nothing is kept.

    Raises
    ------
    DomainError
        If a parameter of the model is infinite or no number after some round.
    """
    tested = np.unique(np.linspace(0, rounds, min(points, rounds) + 1).round().astype(np.int64))
    file = _file(training, tested, about)
    accuracy, batches = [], np.zeros(rounds, dtype=np.int64)
    if file and file.is_file():
        with np.load(file) as kept:
            accuracy = kept["accuracy"].tolist()
            batches[:] = kept["batches"]
            if len(accuracy) < len(tested):
                training.restore(kept)
    begun = time.monotonic()
    for at in tested[len(accuracy) :]:
        for count in range(tested[len(accuracy) - 1] if accuracy else 0, at):
            batches[count] = training.one_round(count)
            if not np.isfinite(training.arrays["parameters"]).all():
                raise DomainError(f"the model ran away in round {count + 1}: learning_rate must be smaller")
        accuracy.append(test(training.arrays["parameters"]))
        if file and time.monotonic() - begun > _SHORT:
            state = training.state() if len(accuracy) < len(tested) else {}
            _write(file, {"accuracy": accuracy, "batches": batches, **state})
    return tested, np.array(accuracy), batches


def side_by_side(
    model: Model,
    records: Records,
    schemes: Mapping[str, Scheme],
    training: Callable[[Scheme], Training],
    rounds: int,
    points: int,
    about: tuple[object, ...],
) -> History:
    """Every scheme's training from its beginning, one after another, tested on the records' test images.

    ``about`` holds what the numbers depend on beside model, records and scheme, as for :func:`follow`.
    """

    def test(parameters: Reals) -> float:
        return model.accuracy(parameters, records.tested.images, records.tested.labels)

    found = {
        name: follow(test, training(scheme), rounds, points, (model, records, *about, scheme))
        for name, scheme in schemes.items()
    }
    tested, _, batches = next(iter(found.values()))
    return History(tested, {name: accuracy for name, (_, accuracy, _) in found.items()}, batches)


def _file(training: Training, tested: Wholes, about: object) -> Path | None:
    """Where the state of this training is kept, named after all that its numbers depend on."""
    folder = os.environ.get("FLAMELIB_RESUME")
    if not folder or about is None:
        return None
    digest = hashlib.sha256(f"{tested.tolist()} {about!r}".encode())
    library = Path(__file__).parents[1]
    for source in (path for pattern in _CODE for path in sorted(library.glob(pattern))):
        digest.update(source.read_bytes())
    for value in training.state().values():
        digest.update(value.encode() if isinstance(value, str) else value.tobytes())
    return Path(folder) / f"{digest.hexdigest()[:16]}.npz"


def _write(file: Path, arrays: Mapping[str, Any]) -> None:
    """All of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.partial")
    try:
        with partial.open("wb") as out:
            np.savez_compressed(out, **arrays)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
