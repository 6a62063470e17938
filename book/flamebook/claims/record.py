"""What the ledger said when it was recorded, two minutes for ``flamelib record ledger``.

A test compares verdict and value of every row with the record, so that none changes unseen: whoever means the change
records anew, and it shows row by row.  The record also holds the propositions whose functions a row enters.
"""

import math
from functools import partial
from typing import Any

from flamebook.claims import ledger, proofs
from flamebook.claims.ledger import Value, shown
from flamebook.places import ROOT
from flamebook.runs import inputs
from flamebook.runs.record import Part, Recording
from flamebook.runs.recorded import rows
from flamelib.core.statements import DOCUMENTS, homes

TABLE = "ledger.csv"


def parts() -> dict[str, Part]:
    """The rows of each document."""
    code = "".join(f"import {module}\n" for module in sorted({*homes().values(), *ledger.CHECKS}))
    files = {name: path for name in DOCUMENTS if (path := ledger.CLAIMS / f"{name}.yml").is_file()}
    made_from = {name: partial(inputs.of_code, code, ROOT, [path, proofs.PROOFS]) for name, path in files.items()}
    return {name: Part(partial(_judged, name), made_from[name]) for name in files}


def _judged(document: str) -> dict[str, Any]:
    traced = proofs.trace_all(claim for claim in ledger.load() if claim.document == document)
    return {"rows": [(row.claim.id, row.verdict, shown(row.value), "; ".join(labels)) for row, labels in traced]}


def recorded() -> dict[str, tuple[str, Value | None]]:
    """Verdict and value of each row when it was recorded."""
    return {row["id"]: (row["verdict"], _value(row["value"])) for row in rows(TABLE)}


def rests() -> dict[str, list[str]]:
    """The propositions that each row enters, as they were recorded."""
    return {row["id"]: row["proofs"].split("; ") if row["proofs"] else [] for row in rows(TABLE)}


def _value(text: str) -> Value | None:
    words = {"none": None, "holds": True, "fails": False}
    if text in words:
        return words[text]
    numbers = [math.inf if one == "∞" else float(one) for one in text.split("; ")]
    return numbers if len(numbers) > 1 else numbers[0]


RECORDING = Recording(TABLE, parts, ("id", "verdict", "value", "proofs"))
