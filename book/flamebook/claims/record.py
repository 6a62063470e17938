"""What the ledger said when it was recorded, two minutes for ``flamelib record ledger``.

A test compares verdict and value of every row with the record, so that none changes unseen: whoever means the change
records anew, and it shows row by row.  The record also holds the propositions whose functions a row enters.
"""

import csv
import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from flamebook.claims import ledger, proofs
from flamebook.claims.ledger import Judged, Value, shown
from flamebook.places import RESULTS, ROOT
from flamebook.runs import inputs
from flamebook.runs.editions import Moved
from flamebook.runs.record import Part, Recording
from flamelib.core.statements import DOCUMENTS, homes

RECORDED = RESULTS / "ledger.csv"
TOLERANCE = 1e-6
NOTHING = 1e-12


def parts() -> dict[str, Part]:
    """The rows of each document."""
    code = "".join(f"import {module}\n" for module in sorted({*homes().values(), *ledger.CHECKS}))
    files = {name: path for name in DOCUMENTS if (path := ledger.CLAIMS / f"{name}.yml").is_file()}
    made_from = {name: partial(inputs.of_code, code, ROOT, [path, proofs.PROOFS]) for name, path in files.items()}
    return {name: Part(partial(_judged, name), made_from[name]) for name in files}


def _judged(document: str) -> dict[str, Any]:
    traced = proofs.trace_all(claim for claim in ledger.load() if claim.document == document)
    return {"rows": [(row.claim.id, row.verdict, shown(row.value), "; ".join(labels)) for row, labels in traced]}


def recorded(path: Path = RECORDED) -> dict[str, tuple[str, Value | None]]:
    """Verdict and value of each row when it was recorded."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["id"]: (row["verdict"], _value(row["value"])) for row in csv.DictReader(file)}


def rests(path: Path = RECORDED) -> dict[str, list[str]]:
    """The propositions that each row enters, as they were recorded."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["id"]: row["proofs"].split("; ") if row["proofs"] else [] for row in csv.DictReader(file)}


def _value(text: str) -> Value | None:
    words = {"none": None, "holds": True, "fails": False}
    if text in words:
        return words[text]
    numbers = [math.inf if one == "∞" else float(one) for one in text.split("; ")]
    return numbers if len(numbers) > 1 else numbers[0]


def moved(judged: Iterable[Judged], path: Path = RECORDED) -> list[str]:
    """What differs from the record, a line for each: rows that are new or gone, verdicts, values beyond rounding."""
    before = recorded(path)
    after = {row.claim.id: (row.verdict, row.value) for row in judged}
    gone = [str(Moved(name, before[name][0], None)) for name in before.keys() - after.keys()]
    return sorted(gone) + [line for name, now in after.items() for line in _moved(name, before.get(name), now)]


def _moved(name: str, before: tuple[str, Value | None] | None, now: tuple[str, Value | None]) -> list[str]:
    if before is None:
        return [str(Moved(name, None, now[0]))]
    verdict = [str(Moved(f"{name} verdict", before[0], now[0]))] if before[0] != now[0] else []
    value = [] if _close(before[1], now[1]) else [str(Moved(f"{name} value", shown(before[1]), shown(now[1])))]
    return verdict + value


def _close(one: Value | None, other: Value | None) -> bool:
    if any(value is None or isinstance(value, bool) for value in (one, other)):
        return one is other
    pairs = [value if isinstance(value, list) else [value] for value in (one, other)]
    return len(pairs[0]) == len(pairs[1]) and all(
        math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=NOTHING) for a, b in zip(*pairs, strict=True)
    )


RECORDING = Recording(RECORDED.name, parts, ("id", "verdict", "value", "proofs"))
