"""The pages that are made, each put into its place, and what the front page says of them all.

They are written into the staged copy of ``book/`` before the book is built.  Given the same claims, library
and receipts they are the same, byte for byte.
"""

import os
from collections import Counter
from pathlib import Path

import yaml

from flamebook.claims import ledger
from flamebook.claims import record as record_ledger
from flamebook.claims.ledger import Judged
from flamebook.places import DATA, ROOT, revision
from flamebook.runs.execute import RECEIPT
from flamebook.site.measured import bench, beside, spread, status
from flamebook.site.sliders import forms
from flamebook.site.written import api, coverage, crowd, dossiers, falls, ledger_page, refuted, theorems, unknown
from flamebook.site.written.markup import linker, source_url


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
        generated / "ledger.json": ledger_page.as_json(judged, rests),
        generated / "ledger.csv": ledger_page.as_csv(judged, rests),
        generated / "ledger.schema.json": _text(DATA / "ledger.schema.json"),
        generated / "brackets.json": unknown.as_json(brackets),
        generated / "brackets.csv": unknown.as_csv(brackets),
        book_folder / "assets" / "bench_grid.js": bench.script(),
        book_folder / "assets" / "run_times.js": forms.times(runs_folder),
        generated / "counts.md": counts(judged, runs_folder),
        generated / "crowd.md": crowd.table(),
        generated / "citation.md": citation(ROOT),
        generated / "beside.md": beside.summary(beside.recorded()),
        book_folder / "ledger.md": ledger_page.page(judged, _text(book_folder / "ledger_head.md"), link),
        book_folder / "refuted.md": refuted.page(_text(book_folder / "refuted.md"), judged, link),
        book_folder / "dossiers.md": dossiers.page(
            _text(book_folder / "dossiers.md"), _text(ROOT / "book" / "refuted.md"), judged, link
        ),
        book_folder / "falls.md": falls.page(judged, rests),
        book_folder / "theorems.md": theorems.page(ROOT, link, judged, source_url),
        book_folder / "unknown.md": unknown.page(brackets, link),
        book_folder / "beside.md": beside.page(beside.recorded()),
        book_folder / "figures.md": coverage.page(ROOT, link),
        book_folder / "spread.md": spread.page(spread.recorded()),
        book_folder / "status.md": status.page(runs_folder),
        **{book_folder / path: text for path, text in api.pages().items()},
    }
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


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
    """A fragment: the entry of this edition in BibTeX, from ``CITATION.cff`` and the last commit."""
    entry = yaml.safe_load(_text(root / "CITATION.cff"))
    found, released = revision(root), str(entry["date-released"])
    fields = {
        "title": f"{{{entry['title']}}}",
        "author": " and ".join(f"{{{author['name']}}}" for author in entry["authors"]),
        "year": released[:4],
        "month": released[5:7],
        "version": entry["version"],
        "url": entry["repository-code"],
        **({"note": f"Revision {found[0]} of {found[1]}"} if found else {}),
    }
    lines = [f"  {name:<8}= {{{value}}}," for name, value in fields.items()]
    return "\n".join(["```bibtex", "@software{flamelib,", *lines, "}", "```", ""])
