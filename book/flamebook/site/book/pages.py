"""The pages that are made: ledger and downloads, what does not hold, what is unknown, theorem index and others.

They are written into the staged copy of ``book/`` before the book is built.  Given the same claims, library
and receipts they are the same, byte for byte.

The page "Run status", from the receipts: what ran, from what, how long, and what the machine measured.
"""

import ast
import csv
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import yaml

from flamebook.claims import ledger, proofs
from flamebook.claims import record as record_ledger
from flamebook.claims.ledger import Claim, Judged, Value, shown
from flamebook.places import DATA, RESULTS, ROOT, revision
from flamebook.runs.execute import RECEIPT, Receipt, receipt_of
from flamebook.site.measured import bench, beside
from flamebook.site.measured.spread import recorded, spread_page
from flamebook.site.sliders import forms
from flamebook.site.written import api, coverage, crowd, dossiers, falls, refuted, theorems, unknown
from flamebook.site.written.markup import anchor, verdict
from flamelib.core.statements import DOCUMENTS
from flamelib.core.vocabulary import DomainError

BENCHMARKS = RESULTS / "benchmarks.csv"

# Times differ from build to build; the search index of the book should not.
_HEAD = """\
---
nosearch: true
---

# Run status

Every page with figures is a notebook that was executed from nothing for this book.
Its receipt says from what: the digests of the template, of every module it imports and of every file it reads
(the last column below leads to them), the parameters, the seed and the versions. A run whose receipt still holds is not
repeated.
How far the numbers move with the seed is a {doc}`page of its own <spread>`.
"""


def status_page(runs_folder: Path, benchmarks: Path = BENCHMARKS) -> str:
    """The page in MyST, from the receipts under ``runs_folder`` and the recorded speeds.

    Times differ from build to build; everything else on the page is decided by the inputs.
    """
    receipts = [found for path in sorted(runs_folder.glob(f"*/{RECEIPT}")) if (found := receipt_of(path.parent))]
    parts = [_HEAD, _runs(receipts), _versions(receipts), *(_one(receipt) for receipt in receipts)]
    return "\n".join([*parts, _house(ROOT), _speeds(benchmarks)])


def _house(root: Path) -> str:
    """How large the library and the book's program are, counted from the sources."""
    rows = []
    for name, folder in (("flamelib", root / "flamelib"), ("flamebook", root / "book" / "flamebook")):
        sizes = [_size(path) for path in folder.rglob("*.py")]
        rooms = [folder, *(path for path in folder.rglob("*") if path.is_dir() and path.name != "__pycache__")]
        entries = max(sum(1 for one in room.iterdir() if not one.name.startswith("__")) for room in rooms)
        rows.append(
            f"| `{name}` | {len(sizes)} | {sum(a for a, _ in sizes)} | {sum(b for _, b in sizes)} | {entries} |"
        )
    head = ["| package | files | lines | lines of code | entries of its largest folder |", "|---|--:|--:|--:|--:|"]
    told = "Lines of code leave out docstrings, comments and blank lines."
    return "\n".join(["## How large the code is", "", *head, *rows, "", told, ""])


def _size(path: Path) -> tuple[int, int]:
    """All lines, and those that hold code."""
    text = path.read_text(encoding="utf-8")
    holders = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    spoken = [node.body[0] for node in holders if ast.get_docstring(node) is not None]
    silent = {line for one in spoken for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    lines = text.splitlines()
    kept = [one for i, one in enumerate(lines, 1) if i not in silent and one.strip() and one.strip()[0] != "#"]
    return len(lines), len(kept)


def _runs(receipts: list[Receipt]) -> str:
    rows = [
        f"| {_link(receipt)} | {receipt.seconds:.1f} | {receipt.peak_memory_mb:.0f} | {_seed(receipt)} "
        f'| {len(receipt.inputs)} | <a href="../files/{receipt.notebook}/{RECEIPT}">receipt</a> |'
        for receipt in receipts
    ]
    total = f"| all | {sum(receipt.seconds for receipt in receipts):.1f} | | | | |"
    head = ["| notebook | seconds | peak memory, MB | seed | inputs | digests |", "|---|--:|--:|--:|--:|---|"]
    return "\n".join(["## Runs", "", *head, *rows, total, ""])


def _link(receipt: Receipt) -> str:
    return f"{{doc}}`{receipt.notebook} <../notebooks/{receipt.notebook}>`"


def _seed(receipt: Receipt) -> str:
    return "none" if receipt.seed is None else str(receipt.seed)


def _versions(receipts: list[Receipt]) -> str:
    if not receipts:
        return ""
    rows = [f"| {name} | {version} |" for name, version in receipts[0].versions.items()]
    return "\n".join(["## Versions", "", "| package | version |", "|---|---|", *rows, ""])


def _one(receipt: Receipt) -> str:
    parameters = [f"| `{name}` | {value} |" for name, value in receipt.parameters.items()]
    head = [f":::{{dropdown}} {receipt.notebook}: parameters", "", "| parameter | value |", "|---|---|"]
    return "\n".join([*head, *parameters, ":::", ""])


def _speeds(benchmarks: Path) -> str:
    """One folded table per subject, the machine above them all."""
    if not benchmarks.is_file():
        return ""
    with benchmarks.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    machines = "; ".join(dict.fromkeys(row["machine"] for row in rows))
    told = f"Recorded by `make bench`: the median of several rounds. Measured on: {machines}."
    return "\n".join(["## Speed", "", told, "", *(_subject(*one) for one in groupby(rows, itemgetter("subject")))])


def _subject(name: str, rows: Iterable[dict[str, str]]) -> str:
    lines = [f"| {row['what']} | {row['median']} | {row['rounds']} |" for row in rows]
    head = ["| what | median | rounds |", "|---|--:|--:|"]
    return "\n".join([f":::{{dropdown}} {name}: {len(lines)} measured", "", *head, *lines, ":::", ""])


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
    jobs = os.cpu_count() or 1
    judged, brackets, rests = ledger.judge_all(jobs=jobs), unknown.brackets(jobs=jobs), record_ledger.rests()
    link = linker(book_folder.parent)
    generated = book_folder / "generated"
    texts = {
        generated / "ledger.json": ledger_json(judged, rests),
        generated / "ledger.csv": ledger_csv(judged, rests),
        generated / "ledger.schema.json": _text(DATA / "ledger.schema.json"),
        generated / "brackets.json": unknown.as_json(brackets),
        generated / "brackets.csv": unknown.as_csv(brackets),
        book_folder / "assets" / "bench_grid.js": bench.script(),
        book_folder / "assets" / "run_times.js": forms.times(runs_folder),
        generated / "counts.md": counts(judged, runs_folder),
        generated / "crowd.md": crowd.table(),
        generated / "citation.md": citation(ROOT),
        generated / "beside.md": beside.summary(beside.recorded()),
        book_folder / "ledger.md": ledger_page(judged, _text(book_folder / "ledger_head.md"), link),
        book_folder / "refuted.md": refuted.page(_text(book_folder / "refuted.md"), judged, link),
        book_folder / "dossiers.md": dossiers.page(
            _text(book_folder / "dossiers.md"), _text(ROOT / "book" / "refuted.md"), judged, link
        ),
        book_folder / "falls.md": falls.page(judged, rests),
        book_folder / "theorems.md": theorems.page(ROOT, link, judged, source_url),
        book_folder / "unknown.md": unknown.page(brackets, link),
        book_folder / "beside.md": beside.page(beside.recorded()),
        book_folder / "figures.md": coverage.page(ROOT, link),
        book_folder / "spread.md": spread_page(recorded()),
        book_folder / "status.md": status_page(runs_folder),
        **{book_folder / path: text for path, text in api.pages().items()},
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
        "Download: {download}`ledger.json <generated/ledger.json>`, {download}`ledger.csv <generated/ledger.csv>`; "
        "what the fields mean: {download}`ledger.schema.json <generated/ledger.schema.json>`.",
        "",
        "What is refuted is told, with numbers and attacks, on the page {doc}`What does not hold <refuted>`.",
        *("", "## Every row", ""),
        '<link rel="stylesheet" href="../_static/ledger.css">',
        '<div id="ledger-controls" role="search" aria-label="Rows of the ledger"></div>',
        '<p class="ledger-note">Within a table the arrow keys lead from row to row and from link to link.</p>',
        *("", *(_group(*one, link) for one in groupby(judged, lambda row: row.claim.document))),
        *('<script src="../_static/ledger.js" defer></script>', ""),
    ]
    return "\n".join(parts)


def _summary(judged: list[Judged]) -> str:
    number = Counter(row.verdict for row in judged)
    rows = [f"| {verdict(name)} | {number[name]} | {SAYS[name]} |" for name in ledger.VERDICTS]
    return "\n".join(["| verdict | rows | meaning |", "|---|--:|---|", *rows, ""])


def _group(document: str, rows: Iterable[Judged], link: Callable[[str], str]) -> str:
    """The table of one document, folded up under its name."""
    listed = [_row(row, link) for row in rows]
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
    """What stands before the evidence: the weight of a refutation, and whether the formula was lost in our text."""
    words = [claim.weight.capitalize()] if claim.weight else []
    return "".join(f"*{word}.* " for word in [*words, *(["Reconstructed"] * claim.reconstructed)])


def _row(row: Judged, link: Callable[[str], str]) -> str:
    claim = row.claim
    stated = "" if claim.stated is None else _BEFORE.get(str(claim.relation), "") + _figures(claim.stated)
    if claim.paper is None and claim.stated is not None:
        stated += " [derived]{.ledger-note}"
    cells = [
        f"[{claim.claim}]{{#{anchor(claim.id)}}} [`{claim.id}`](#{anchor(claim.id)})",
        verdict(row.verdict),
        stated,
        "" if row.value is None else _figures(row.value),
        _graded(claim) + claim.evidence,
        f"{claim.where}; {link(claim.page)}; [test]({source_url(claim.test.split('::')[0])})",
        claim.kind,
        claim.said_by,
    ]
    return "* - " + "\n  - ".join(cells)


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


def ledger_json(judged: Iterable[Judged], rests: Mapping[str, Sequence[str]]) -> str:
    """Every row with its inputs, value, verdict and the proofs it rests on; strict JSON (infinity is ``inf``)."""
    records = _records(judged, rests)
    return json.dumps({"documents": DOCUMENTS, "claims": records}, indent=1, ensure_ascii=False) + "\n"


def ledger_csv(judged: Iterable[Judged], rests: Mapping[str, Sequence[str]]) -> str:
    """The same rows as a table; lists and inputs as JSON inside a cell."""
    records = _records(judged, rests)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in record.items()})
    return text.getvalue()


# --- the front page --------------------------------------------------------------------------------


def _of_refuted(rows: list[Judged]) -> tuple[list[bool], list[bool]]:
    return [row.claim.weight == ledger.WEIGHTS[0] for row in rows], [row.claim.reconstructed for row in rows]


def counts(judged: list[Judged], runs_folder: Path) -> str:
    """A fragment for the front page: the documents' own statements apart from ours, what answers rest on."""
    number = Counter((row.claim.said_by, row.verdict) for row in judged)
    said = Counter(row.claim.said_by for row in judged)
    own = [row for row in judged if row.claim.said_by == "document" and row.verdict == "refuted"]
    broken, restored = (sum(bool(found) for found in each) for each in _of_refuted(own))
    runs, figures = (len(list(runs_folder.glob(f"*/{found}"))) for found in (RECEIPT, "figures/*.csv"))
    documents, ledgers = said["document"], "{doc}`ledger </book/ledger>`"
    fails = "{doc}`what does not hold </book/refuted>`"
    facts = [
        (
            documents,
            "statements of the five documents",
            f"{number['document', 'reproduced']} reproduced, {number['document', 'deviates']} deviating, "
            f"{number['document', 'not-checkable']} not checkable; {ledgers}",
        ),
        (
            len(own),
            "of them refuted",
            f"{broken} break promised privacy, {restored} *reconstructed*; {fails}",
        ),
        (said["reading"], "readings of unclear passages", f"{number['reading', 'refuted']} of them fail"),
        (
            said["this book"] + said["elsewhere"],
            "statements of ours and of later work",
            f"{runs} notebooks executed, {figures} figures with data, {{doc}}`status </book/status>`",
        ),
    ]
    cards = [f":::{{grid-item-card}}\n**{big}** {small}\n+++\n{more}\n:::" for big, small, more in facts]
    grounds = f"{theorems.grounds()} The {{doc}}`theorem index </book/theorems>` has each."
    return "\n".join(["::::{grid} 1 2 2 4", ":gutter: 2", "", *cards, "::::", "", grounds, ""])


def citation(root: Path) -> str:
    """A fragment: the entry of this edition in BibTeX, from ``CITATION.cff``, the version and the last commit."""
    entry = yaml.safe_load(_text(root / "CITATION.cff"))
    found = revision(root)
    fields = {
        "title": f"{{{entry['title']}}}",
        "author": " and ".join(f"{{{author['name']}}}" for author in entry["authors"]),
        **({"year": found[1][:4], "month": found[1][5:7]} if found else {}),
        "version": entry["version"],
        "url": entry["repository-code"],
        **({"note": f"Revision {found[0]} of {found[1]}"} if found else {}),
    }
    lines = [f"  {name:<8}= {{{value}}}," for name, value in fields.items()]
    return "\n".join(["```bibtex", "@software{flamelib,", *lines, "}", "```", ""])
