"""Recorded results of long runs, read back: a table, and a file beside it that says how it came about."""

import csv
import functools
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from flamebook.places import RESULTS, ROOT
from flamebook.statements import stand_ins
from flamelib.core.vocabulary import DomainError

PARAMETERS = "FLAMELIB_RUN_PARAMETERS"  # of the run that is under way, as JSON

Row = Mapping[str, str]
K = TypeVar("K")


class NotRecorded(DomainError):
    """What was recorded is of other data than those of the run that asks for it."""


def data_of_this_run(recorded: Sequence[str]) -> str:
    """The data set of the run that is under way, if it is a recorded one; the first of these outside of runs.

    Raises
    ------
    NotRecorded
        If the run is on other data: beside their results, recorded ones would be taken for theirs.
    """
    asked = str(json.loads(os.environ.get(PARAMETERS, "{}")).get("dataset", recorded[0]))
    if asked not in recorded:
        raise NotRecorded(f"what was recorded is of {' and '.join(recorded)}, nothing of {Path(asked).name}")
    return asked


def same_data(name: str) -> bool:
    """Whether the run that is under way is on the data set of this name; true outside of runs.

    It is not where another set stands in for it.
    """
    if "dataset" in stand_ins():
        return False
    try:
        return data_of_this_run((name,)) == name
    except NotRecorded:
        return False


@functools.cache
def provenance(table: str) -> Mapping[str, Any]:
    """Sizes, seeds, versions and date of a recorded table.

    >>> provenance("flame_learning.csv")["setting"]["n_users"]
    1000
    """
    found: dict[str, Any] = json.loads((RESULTS / table).with_suffix(".json").read_text(encoding="utf-8"))
    return found


def grouped(table: str, key: Callable[[Row], K]) -> dict[K, list[Row]]:
    """Rows of a recorded table by the runs that they belong to."""
    found: dict[K, list[Row]] = {}
    for row in _rows(table):
        found.setdefault(key(row), []).append(row)
    return found


@functools.cache
def _rows(table: str) -> Sequence[Row]:
    with (RESULTS / table).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


PACKAGES = ("flamelib", "numpy", "scipy", "scikit-learn", "torch")  # a result may depend on these beside its inputs


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Python's and those of the packages that are installed: what a result may depend on beside its inputs."""
    return {"python": platform.python_version()} | {name: found for name in packages if (found := _version(name))}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def revision() -> str:
    """Revision of the code that is running.

    Raises
    ------
    DomainError
        Where git does not tell: a recording says from which commit it was made.
    """
    git = ["git", "rev-parse", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True, cwd=Path(__file__).parent).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as fault:
        why = "git is not installed" if isinstance(fault, OSError) else "it is no clone"
        raise DomainError(
            f"checkout must be a clone whose commit git can tell, for a recording names it, got {str(ROOT)!r} ({why})"
        ) from None
