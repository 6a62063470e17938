"""The pages that are made: ledger and downloads, what does not hold, counts, theorem index, spread, run status.

They are written into the staged copy of ``book/`` before the book is built.  Given the same claims, library
and receipts they are the same, byte for byte.
"""

import csv
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from flamebook.claims import ledger
from flamebook.claims.ledger import Judged, Value
from flamebook.runs.execute import RECEIPT

from flamelib.companion import bench, refuted, theorems
from flamelib.companion.markup import anchor, shown, verdict
from flamelib.companion.spread import recorded, spread_page
from flamelib.companion.status import status_page
from flamelib.core.statements import DOCUMENTS
from flamelib.core.vocabulary import DomainError

ROOT = Path(__file__).parents[2]
SAYS = {
    "reproduced": "the computation agrees with the statement",
    "deviates": "the computed number misses the stated one by more than the tolerance",
    "refuted": "an exact computation contradicts the statement",
    "not-checkable": "there is nothing to compute, and the row says why",
}


def write(runs_folder: Path, book_folder: Path) -> None:
    """Write every generated page into ``book_folder``, the staged ``book`` beside the staged ``notebooks``.

    Parameters
    ----------
    runs_folder : Path
        One folder for each executed notebook, with its receipt.
    book_folder : Path
        Must exist; ``generated/`` inside it receives the fragments and downloads.

    Raises
    ------
    DomainError
        If the ledger is not well formed, or a row points at a label that its page does not have.
    """
    judged = ledger.judge_all(jobs=os.cpu_count() or 1)
    link = linker(book_folder.parent)
    generated = book_folder / "generated"
    texts = {
        generated / "ledger.json": ledger_json(judged),
        generated / "ledger.csv": ledger_csv(judged),
        book_folder / "assets" / "bench_grid.js": bench.script(),
        generated / "counts.md": counts(judged, runs_folder),
        book_folder / "ledger.md": ledger_page(judged, _text(book_folder / "ledger_head.md"), link),
        book_folder / "refuted.md": refuted.page(_text(book_folder / "refuted.md"), judged, link),
        book_folder / "theorems.md": theorems.page(ROOT, book_folder, link, judged, source_url),
        book_folder / "spread.md": spread_page(recorded()),
        book_folder / "status.md": status_page(runs_folder),
    }
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def source_url(path: str, line: int | None = None) -> str:
    """Address of a file of the repository on the site that ``_config.yml`` names."""
    found = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]
    return f"{found['url']}/blob/{found['branch']}/{path}" + (f"#L{line}" if line else "")


def linker(source: Path) -> Callable[[str], str]:
    """A function from ``page`` or ``page#label`` to a link in MyST; plain code where the page is not staged."""

    def link(page: str) -> str:
        path, _, label = page.partition("#")
        staged = (source / f"{path}{end}" for end in (".md", ".ipynb"))
        found = next((file for file in staged if file.is_file()), None)
        if found is None:
            return f"`{path}`"
        name = path.rpartition("/")[2].replace("_", " ")
        return f"{{doc}}`{name} </{path}>`" if not label else _labelled(found, label, name)

    return link


def _labelled(page: Path, label: str, name: str) -> str:
    text = page.read_text(encoding="utf-8")
    if re.search(rf":label: {re.escape(label)}\b(?!-)", text):
        return f"{{prf:ref}}`{name} <{label}>`"
    if f"({label})=" in text or f'"name": "{label}"' in text:
        return f"{{ref}}`{name} <{label}>`"
    raise DomainError(f"claims ledger: page {page.stem} has no label {label}")


# --- the ledger ------------------------------------------------------------------------------------


def ledger_page(judged: list[Judged], head: str, link: Callable[[str], str]) -> str:
    """The page: head, downloads, and the table of every row."""
    parts = [
        *("(ledger)=", "# Ledger of claims", "", head.strip(), ""),
        _summary(judged),
        "Download: {download}`ledger.json <generated/ledger.json>`, {download}`ledger.csv <generated/ledger.csv>`.",
        "",
        "What is refuted is told, with numbers and attacks, on the page {doc}`What does not hold <refuted>`.",
        *("", "## Every row", ""),
        '<link rel="stylesheet" href="../_static/ledger.css">',
        '<div id="ledger-controls"></div>',
        *("", _table(judged, link)),
        *('<script src="../_static/ledger.js" defer></script>', ""),
    ]
    return "\n".join(parts)


def _summary(judged: list[Judged]) -> str:
    number = Counter(row.verdict for row in judged)
    rows = [f"| {verdict(name)} | {number[name]} | {SAYS[name]} |" for name in ledger.VERDICTS]
    return "\n".join(["| verdict | rows | meaning |", "|---|--:|---|", *rows, ""])


def _table(judged: Iterable[Judged], link: Callable[[str], str]) -> str:
    lines = [
        *("::::{list-table}", ":header-rows: 1", ":class: ledger", ""),
        "* - claim\n  - verdict\n  - stated\n  - computed\n  - evidence\n  - where\n  - kind\n  - said by",
    ]
    lines += [_row(row, link) for row in judged]
    return "\n".join([*lines, "::::", ""])


_BEFORE = {"at-most": "≤\u00a0", "at-least": "≥\u00a0"}


def _figures(value: Value) -> str:
    """The value with no line break inside a number."""
    return "; ".join(f"[{shown(one)}]{{.figures}}" for one in (value if isinstance(value, list) else [value]))


def _row(row: Judged, link: Callable[[str], str]) -> str:
    claim = row.claim
    stated = "" if claim.stated is None else _BEFORE.get(str(claim.relation), "") + _figures(claim.stated)
    if claim.paper is None and claim.stated is not None:
        stated += " [derived]{.ledger-note}"
    test, name = claim.test.split("::")
    cells = [
        f"[{claim.claim}]{{#{anchor(claim.id)}}} [`{claim.id}`](#{anchor(claim.id)})",
        verdict(row.verdict),
        stated,
        "" if row.value is None else _figures(row.value),
        claim.evidence,
        f"{claim.where}; {link(claim.page)}; [{name}]({source_url(test)})",
        claim.kind,
        claim.said_by,
    ]
    return "* - " + "\n  - ".join(cells)


def _records(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    records = []
    for row in judged:
        record = {"document": row.claim.document} | asdict(row.claim)
        record |= {"value": row.value, "verdict": row.verdict, "recorded_verdict": row.claim.verdict}
        records.append({name: _plain(value) for name, value in record.items()})
    return records


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return [_plain(one) for one in value] if isinstance(value, list) else value


def ledger_json(judged: Iterable[Judged]) -> str:
    """Every row with its inputs, value and verdict; strict JSON (an infinity is the text ``inf``)."""
    return json.dumps({"documents": DOCUMENTS, "claims": _records(judged)}, indent=1, ensure_ascii=False) + "\n"


def ledger_csv(judged: Iterable[Judged]) -> str:
    """The same rows as a table; lists and inputs as JSON inside a cell."""
    records = _records(judged)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in record.items()})
    return text.getvalue()


# --- the front page --------------------------------------------------------------------------------


def counts(judged: list[Judged], runs_folder: Path) -> str:
    """A fragment for the front page: rows by verdict, items, functions, notebooks and figures."""
    number = Counter(row.verdict for row in judged)
    failing = [row for row in judged if row.verdict in ("refuted", "deviates")]
    own = sum(row.claim.said_by == "document" for row in failing)
    runs, figures = (len(list(runs_folder.glob(f"*/{found}"))) for found in (RECEIPT, "figures/*.csv"))
    items = len({row.claim.item for row in judged})
    facts = [
        (len(judged), "claims computed", f"{items} items, {{doc}}`ledger </book/ledger>`"),
        (number["reproduced"], "reproduced", f"{number['not-checkable']} cannot be checked"),
        (len(failing), "refuted or deviating", f"{own} in the documents; {{doc}}`what does not hold </book/refuted>`"),
        (runs, "notebooks executed", f"{figures} figures with data, {{doc}}`status </book/status>`"),
    ]
    cards = [f":::{{grid-item-card}}\n**{big}** {small}\n+++\n{more}\n:::" for big, small, more in facts]
    return "\n".join(["::::{grid} 1 2 2 4", ":gutter: 2", "", *cards, "::::", ""])
