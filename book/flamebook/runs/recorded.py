"""Recorded tables, read back, and what a result may depend on beside its inputs: commit and versions of packages."""

import csv
import functools
import json
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from flamebook.places import RESULTS, ROOT
from flamelib.core.vocabulary import DomainError

Row = Mapping[str, str]


@functools.cache
def provenance(table: str) -> Mapping[str, Any]:
    """Sizes, seeds, versions and date of a recorded table.

    >>> provenance("ledger.csv")["command"]
    'flamelib record ledger'
    """
    found: dict[str, Any] = json.loads((RESULTS / table).with_suffix(".json").read_text(encoding="utf-8"))
    return found


@functools.cache
def rows(table: str) -> Sequence[Row]:
    """Rows of a recorded table, by the names of its columns."""
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
