"""Recorded results of full training runs: a table with a row a run, and a file beside it with how it came about."""

import csv
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

RESULTS = Path(__file__).parents[2] / "data" / "results"

Row = Mapping[str, str]
K = TypeVar("K")


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
