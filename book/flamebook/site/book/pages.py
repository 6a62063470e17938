"""The pages that are made, each put into its place, and what the front page says of them all.

They are written into the staged copy of ``book/`` before the book is built.  Given the same claims, library
and receipts they are the same, byte for byte.
"""

import os
from pathlib import Path

import yaml

from flamebook.claims import ledger
from flamebook.claims import record as record_ledger
from flamebook.claims.ledger import Judged
from flamebook.places import DATA, ROOT, repository, revision
from flamebook.runs import recorded
from flamebook.runs.execute import RECEIPT
from flamebook.site.measured import bench, beside
from flamebook.site.sliders import forms
from flamebook.site.written import api, coverage, crowd, dossiers, falls, ledger_page, refuted, theorems, unknown
from flamebook.site.written.markup import linker, sourced
from flamebook.site.written.refuted import Finding


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
    generated, checked = book_folder / "generated", ledger_page.checks(runs_folder)
    texts = {
        generated / "ledger.json": ledger_page.as_json(judged, rests),
        generated / "ledger.csv": ledger_page.as_csv(judged, rests),
        generated / "checks.csv": ledger_page.checks_csv(checked),
        generated / "ledger.schema.json": _text(DATA / "ledger.schema.json"),
        generated / "brackets.json": unknown.as_json(brackets),
        generated / "brackets.csv": unknown.as_csv(brackets),
        book_folder / "assets" / "bench_grid.js": bench.script(),
        book_folder / "assets" / "run_times.js": forms.times(runs_folder),
        generated / "counts.md": counts(refuted.findings(_text(book_folder / "refuted.md"), judged), runs_folder),
        generated / "copies.md": copies(judged),
        generated / "crowd.md": crowd.table(),
        generated / "citation.md": citation(ROOT),
        book_folder / "ledger.md": ledger_page.page(judged, _text(book_folder / "ledger_head.md"), link, checked),
        book_folder / "refuted.md": refuted.page(
            dossiers.placed(_text(book_folder / "refuted.md"), judged), judged, link
        ),
        book_folder / "theorems.md": theorems.page(ROOT, link, judged, sourced) + falls.section(judged, rests),
        book_folder / "unknown.md": unknown.page(brackets, link),
        book_folder / "beside.md": beside.page(recorded.rows("beside.csv")),
        book_folder / "figures.md": coverage.page(ROOT, link, judged),
        **{book_folder / path: text for path, text in api.pages().items()},
    }
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# --- the front page --------------------------------------------------------------------------------


def counts(found: list[Finding], runs_folder: Path) -> str:
    """A fragment for the front page: findings by whose statement fails, and what answers rest on."""
    printed = [one for one in found if one.said_by == "document" and not one.waits]
    broken, proofs = (sum(one.weight == ledger.WEIGHTS[at] for one in printed) for at in (0, 2))
    readings = sum(one.said_by == "reading" and not one.waits for one in found)
    waits = sum(one.waits for one in found)
    runs, figures = (len(list(runs_folder.glob(f"*/{name}"))) for name in (RECEIPT, "figures/*.csv"))
    slips = sum(one.weight == ledger.WEIGHTS[4] for one in printed)
    wrong = len(printed) - broken - proofs - slips
    facts = [
        (
            len(printed),
            "findings against the documents or their authors' code",
            f"{broken} against a promised budget, {wrong} against a bound or comparison, {proofs} against a step of a "
            f"proof, {slips} against notation; {{doc}}`what does not hold </book/refuted>`",
        ),
        (readings, "readings that fail", "of passages that can be read in more than one way"),
        (waits, "findings wait for the print", "our copy has lost the formula; they count against nobody"),
        (figures, "figures with data", f"from {runs} executed notebooks; {{doc}}`all of them </book/figures>`"),
    ]
    cards = [f":::{{grid-item-card}}\n**{big}** {small}\n+++\n{more}\n:::" for big, small, more in facts]
    grounds = f"{theorems.grounds()} The {{doc}}`theorem index </book/theorems>` has each."
    return "\n".join(["::::{grid} 1 2 2 4", ":gutter: 2", "", *cards, "::::", "", grounds, ""])


def copies(judged: list[Judged]) -> str:
    """A fragment for three pages: from which copies of the documents the book works, and what waits for the print."""
    waiting = sum(row.claim.reconstructed for row in judged)
    return f"""\
:::{{admonition}} From which copies this book works
:class: note
We work from text copies of the five documents, taken from public web pages. The documents themselves are public and
whole. Our copies are not: many formulas are missing in four of them, and that of the privacy blanket breaks off in
Lemma 4.5. *Our copy* always means this text. Where it has lost a formula, we restored the formula from the words and
the steps of proofs that remain, and say *reconstructed*. **{waiting} rows of the {{doc}}`ledger </book/ledger>` are
marked so and wait for somebody with the printed documents.** If one of these formulas fails, that counts against
nobody.
:::
"""


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
        **({"url": repository(root)} if repository(root) else {}),
        **({"note": f"Revision {found[0]} of {found[1]}"} if found else {}),
    }
    lines = [f"  {name:<8}= {{{value}}}," for name, value in fields.items()]
    return "\n".join(["```bibtex", "@software{flamelib,", *lines, "}", "```", ""])
