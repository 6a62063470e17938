"""The page "Every figure of the documents": a small picture of each, where it is made, at which size, or why not."""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from flamebook.claims.ledger import Judged
from flamebook.places import DATA
from flamebook.runs import schedule
from flamebook.runs.execute import Run
from flamelib.core.statements import DOCUMENTS
from flamelib.core.vocabulary import DomainError

FIGURES = DATA / "figures.yml"
KNOWN = ("printed", "shows", "here", "setting", "why", "size", "recorded")
HEAD = """\
(sec-figures)=
# Every figure of the documents

<link rel="stylesheet" href="../_static/ledger.css">

Each figure and table of the five documents, and where this book makes it again. Below each picture stands its setting:
the paper's, or exactly what differs. "Sizes" are the parameters that decide
how fine a figure is: in the quick edition, which every change is built with, and in the edition with the sizes of the
papers, which is built every week. "Recorded" means that results of a long run, kept with the book, stand beside those
of the edition. What is missing says why. The word below a picture is the verdict of the {doc}`ledger <ledger>` on what
the document draws there, where it has a row.

"""


def page(root: Path, link: Callable[[str], str], judged: Iterable[Judged], path: Path = FIGURES) -> str:
    """The page in MyST; a link is made by ``link`` and fails where a page has no such label."""
    verdicts = {row.claim.page: row.verdict for row in judged if row.claim.kind == "figure"}
    editions = {profile: schedule.plan(root, profile).runs for profile in schedule.PROFILES}
    parts = [HEAD]
    for document, rows in figures(path).items():
        parts += [f"## {DOCUMENTS[document]}", "", *_gallery(document, rows, verdicts), ""]
        parts += [*_table(rows, link, editions), ""]
    return "\n".join(parts)


def figures(path: Path = FIGURES) -> dict[str, list[dict[str, Any]]]:
    """Document to its figures.

    Raises
    ------
    DomainError
        For a document or field that is not known, or a figure with neither a place nor a reason.
    """
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for document, rows in found.items():
        if document not in DOCUMENTS:
            raise DomainError(f"{path.name}: document must be one of {', '.join(DOCUMENTS)}, got {document!r}")
        for row in rows:
            stray = set(row) - set(KNOWN)
            place = {"here", "setting", "why"} & set(row)
            if stray or place not in ({"here", "setting"}, {"why"}) or not {"printed", "shows"} <= set(row):
                raise DomainError(
                    f"{path.name}: {document} {row.get('printed', '?')} needs here and setting, or why; only {KNOWN}"
                )
    return found


def _gallery(document: str, rows: Iterable[Mapping[str, Any]], verdicts: Mapping[str, str]) -> Iterator[str]:
    """A small picture of each figure that a notebook makes, which leads there; its anchor is ``flame-figure-5``."""
    yield from ("```{raw} html", '<div class="fl-gallery">')
    for row in rows:
        place = re.fullmatch(r"notebooks/(\w+)#fig-([\w-]+)", row.get("here", ""))
        if not place:
            continue
        notebook, name = place.groups()
        anchor = re.sub(r"[^a-z0-9]+", "-", f"{document} {row['printed']}".lower()).strip("-")
        verdict = verdicts.get(row["here"], "")
        judged = f' <span class="verdict verdict-{verdict}">{verdict.replace("-", " ")}</span>' if verdict else ""
        pictures = "".join(
            f'<img class="only-{theme}" loading="lazy" alt="{html.escape(row["shows"])}" '
            f'src="../files/{notebook}/figures/{name}{end}.svg">'
            for theme, end in (("light", ""), ("dark", "-dark"))
        )
        yield (
            f'<figure id="{anchor}"><a href="../notebooks/{notebook}.html#fig-{name}">{pictures}</a>'
            f"<figcaption>{html.escape(row['printed'])}{judged}<br>"
            f'<span class="fl-setting">Setting: {html.escape(row["setting"])}.</span></figcaption></figure>'
        )
    yield from ("</div>", "```")


def _table(
    rows: list[dict[str, Any]], link: Callable[[str], str], editions: Mapping[str, Mapping[str, Run]]
) -> list[str]:
    lines = ["| printed | what it shows | made again | setting | sizes | recorded |", "|---|---|---|---|---|---|"]
    for row in rows:
        if "why" in row:
            lines.append(f"| {row['printed']} | {row['shows']} | no: {row['why']} | | | |")
            continue
        sizes, recorded = _sizes(row, editions) or "none", "yes" if "recorded" in row else ""
        cells = (row["printed"], row["shows"], link(row["here"]), row["setting"], sizes, recorded)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _sizes(row: Mapping[str, Any], editions: Mapping[str, Mapping[str, Run]]) -> str:
    name = row["here"].partition("#")[0].rpartition("/")[2]
    told = []
    for parameter in row.get("size", ()):
        values = {profile: _shown(runs[name].parameters[parameter]) for profile, runs in editions.items()}
        same = len(set(values.values())) == 1
        words = next(iter(values.values())) if same else "; ".join(f"{p}: {value}" for p, value in values.items())
        told.append(f"`{parameter}` {words}")
    return "; ".join(told)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
