"""The page "Ledger of claims": every row, folded up by document, and the same rows to download."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from flamebook.claims import ledger, proofs
from flamebook.claims.ledger import Claim, Judged, Value, shown
from flamebook.places import source_url
from flamebook.records import lines_csv
from flamebook.site.written.markup import anchor, sourced, verdict
from flamebook.statements import HOLDS, SILENT
from flamelib.core.statements import DOCUMENTS

SAYS = {
    "reproduced": "the computation agrees with the statement",
    "deviates": "the computed number misses the stated one by more than the tolerance, or a bound leaves it open",
    "refuted": "an exact computation or a certified bound contradicts the statement",
    "not-checkable": "there is nothing to compute, and the row says why",
}


class Check(NamedTuple):
    """A sentence of a notebook's page, and whether it held in the run that the page shows."""

    page: str
    sentence: str
    verdict: str


def checks(runs_folder: Path) -> list[Check]:
    """What the notebooks of an edition found of their own sentences, page by page."""
    told = {path.parent.name: json.loads(path.read_text("utf-8")) for path in runs_folder.glob("*/statements.json")}
    return [Check(f"notebooks/{name}", **one) for name in sorted(told) for one in told[name]]


def page(judged: list[Judged], head: str, link: Callable[[str], str], checked: Sequence[Check] = ()) -> str:
    """The page: head, downloads, and the table of every row; beside its page how many sentences of that are checked."""
    number = Counter(one.page for one in checked)
    parts = [
        *("(ledger)=", "# Ledger of claims", "", head.strip(), ""),
        _summary(judged),
        *([_of_sentences(checked), ""] * bool(checked)),
        "Download: {download}`ledger.json <generated/ledger.json>`, {download}`ledger.csv <generated/ledger.csv>`; "
        "what the fields mean: {download}`ledger.schema.json <generated/ledger.schema.json>`.",
        "",
        "The findings are told, with numbers and attacks, on the page {doc}`What does not hold <refuted>`.",
        *("", "## Every row", ""),
        '<link rel="stylesheet" href="../_static/ledger.css">',
        '<div id="ledger-controls" role="search" aria-label="Rows of the ledger"></div>',
        '<p class="ledger-note">Within a table the arrow keys lead from row to row and from link to link.</p>',
        *("", *(_group(*one, link, number) for one in groupby(judged, lambda row: row.claim.document))),
        *('<script src="../_static/ledger.js" defer></script>', ""),
    ]
    return "\n".join(parts)


def _summary(judged: list[Judged]) -> str:
    number = Counter(row.verdict for row in judged)
    rows = [f"| {verdict(name)} | {number[name]} | {SAYS[name]} |" for name in ledger.VERDICTS]
    return "\n".join(["| verdict | rows | meaning |", "|---|--:|---|", *rows, ""])


def _of_sentences(checked: Sequence[Check]) -> str:
    number = Counter(one.verdict for one in checked)
    return (
        f"The notebooks check {len(checked)} sentences where they stand: {number[HOLDS]} hold in this edition, "
        f"{number[SILENT]} say nothing at its parameters. A row whose page is a notebook tells how many are checked "
        "there. Download: {download}`checks.csv <generated/checks.csv>`."
    )


def _group(document: str, rows: Iterable[Judged], link: Callable[[str], str], number: Mapping[str, int]) -> str:
    """The table of one document, folded up under its name."""
    listed = [_row(row, link, number) for row in rows]
    opened = f'<details class="ledger-group"><summary>{DOCUMENTS[document]} <span>{len(listed)} rows</span></summary>'
    lines = [
        *(opened, "", "::::{list-table}", ":header-rows: 1", ":class: ledger", ""),
        "* - claim\n  - verdict\n  - stated\n  - computed\n  - evidence\n  - where\n  - kind\n  - said by",
    ]
    return "\n".join([*lines, *listed, "::::", "", "</details>", ""])


_BEFORE = {"at-most": "≤\u00a0", "at-least": "≥\u00a0"}


def _figures(value: Value) -> str:
    return "; ".join(shown(one) for one in (value if isinstance(value, list) else [value]))


def _graded(claim: Claim) -> str:
    """What stands before the evidence: the weight of a refutation, and whether our copy has lost the formula."""
    words = [claim.weight.capitalize()] if claim.weight else []
    return "".join(f"*{word}.* " for word in [*words, *(["Reconstructed"] * claim.reconstructed)])


def _row(row: Judged, link: Callable[[str], str], number: Mapping[str, int]) -> str:
    claim = row.claim
    beside = number.get(claim.page.split("#")[0])
    stated = "" if claim.stated is None else _BEFORE.get(str(claim.relation), "") + _figures(claim.stated)
    if claim.paper is None and claim.stated is not None:
        stated += " [derived]{.ledger-note}"
    cells = [
        f"[{claim.claim}]{{#{anchor(claim.id)}}} [`{claim.id}`](#{anchor(claim.id)})",
        verdict(row.verdict),
        stated,
        "" if row.value is None else _figures(row.value),
        _graded(claim) + claim.evidence,
        f"{claim.where}; {link(claim.page)}{f' ({beside} checks)' if beside else ''}; {_test(claim)}",
        claim.kind,
        claim.said_by,
    ]
    return "* - " + "\n  - ".join(cells)


def _test(claim: Claim) -> str:
    path = claim.test.split("::")[0]
    return sourced("test", path) if source_url(path) else f"`{path}`"


def _records(judged: Iterable[Judged], rests: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    records = []
    for row in judged:
        record = {"document": row.claim.document} | asdict(row.claim)
        record |= {"value": row.value, "verdict": row.verdict, "recorded_verdict": row.claim.verdict}
        record |= {"proofs": proofs.used(rests.get(row.claim.id, ())), "command": f"flamelib check {row.claim.id}"}
        records.append({name: _plain(value) for name, value in record.items()})
    return records


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return [_plain(one) for one in value] if isinstance(value, list) else value


def as_json(judged: Iterable[Judged], rests: Mapping[str, Sequence[str]]) -> str:
    """Every row with its inputs, value, verdict and the proofs it rests on; strict JSON (infinity is ``inf``)."""
    records = _records(judged, rests)
    return json.dumps({"documents": DOCUMENTS, "claims": records}, indent=1, ensure_ascii=False) + "\n"


def checks_csv(checked: Iterable[Check]) -> str:
    """The checks of the notebooks as a table."""
    return lines_csv([Check._fields, *checked])


def as_csv(judged: Iterable[Judged], rests: Mapping[str, Sequence[str]]) -> str:
    """The same rows as a table; lists and inputs as JSON inside a cell."""
    records = _records(judged, rests)
    rows = ([json.dumps(v) if isinstance(v, list | dict) else v for v in record.values()] for record in records)
    return lines_csv([records[0], *rows])
