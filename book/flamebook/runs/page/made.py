"""The page of an own run and its notebook: by the book's builder where a book is built, in plain Markdown elsewhere."""

import hashlib
import html
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flamebook.places import repository
from flamebook.runs.page import built, folded, head, plain
from flamebook.statements import BOOK_RUN

HTML = Path("_build/html")
OWN = "own-run"  # id of the cell that tells of the run


@contextmanager
def beside_the_book(template: Path) -> Iterator[None]:
    """While this lasts, figures are drawn with the curves of the book's own run of the notebook, if it is at hand."""
    book = head.of_the_book(_root(template), template.stem)
    before = os.environ.pop(BOOK_RUN, None)
    if book is not None:
        os.environ[BOOK_RUN] = str(book.folder.resolve())
    try:
        yield
    finally:
        os.environ.pop(BOOK_RUN, None)
        if before is not None:
            os.environ[BOOK_RUN] = before


def make(template: Path, work: Path, folder: Path, defaults: Mapping[str, Any]) -> None:
    """Write ``NAME.html`` beside an executed notebook, and the notebook in plain Markdown in its place.

    Parameters
    ----------
    template : Path
        The notebook that was run.
    work : Path
        The folder of the run, with its receipt.
    folder : Path
        Where it will lie when it is finished: links to the book start there.
    defaults : mapping
        The values that the command takes for what it is not told.
    """
    own = head.read(work)
    if own is None:
        raise FileNotFoundError(work)
    page = _Page(template, work, folder, own, defaults)
    page.write()


class _Page:
    def __init__(self, template: Path, work: Path, folder: Path, own: head.Run, defaults: Mapping[str, Any]) -> None:
        self.name, self.root, self.work, self.folder = template.stem, _root(template), work, folder
        self.own, self.defaults = own, defaults
        self.book = head.of_the_book(self.root, self.name)
        self.executed: dict[str, Any] = json.loads((work / template.name).read_text(encoding="utf-8"))

    def write(self) -> None:
        """The page, then the notebook, then the digest of what the notebook has become."""
        references = self.root / "book" / "references.bib"
        try:
            text, made = self.by_the_builder(), ""
            known = plain.book(self.root / built.SEED, references, self.address)
        except built.NotBuilt as why:
            text, made = "", f" This page was made without the book's builder: {why}."
            known = plain.Book(cited=plain.cited(references))
        there = self.address(f"notebooks/{self.name}.html")
        back = self.back(there) + (made if there else "")
        notebook = plain.notebook(self.with_head(back), known, repository(self.root), beside=True)
        (self.work / f"{self.name}.html").write_text(text or _plain_page(notebook), encoding="utf-8")
        written = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        (self.work / f"{self.name}.ipynb").write_text(written, encoding="utf-8")
        receipt = json.loads((self.work / "receipt.json").read_text(encoding="utf-8"))
        receipt["outputs"][f"{self.name}.ipynb"] = hashlib.sha256(written.encode()).hexdigest()
        (self.work / "receipt.json").write_text(json.dumps(receipt, indent=1) + "\n", encoding="utf-8")

    def by_the_builder(self) -> str:
        """The page with the numbers, references and looks of the book, as one file."""
        with tempfile.TemporaryDirectory(prefix="flamelib-") as desk:
            notebook = Path(desk) / f"{self.name}.ipynb"
            notebook.write_text(json.dumps(self.with_head(self.back(f"{self.name}.html"))), encoding="utf-8")
            page = built.build(notebook, self.root, Path(desk) / "html")
            return folded.fold(page, self.from_the_page).replace("</head>", f"<style>{_ALONE}</style></head>", 1)

    def with_head(self, back: str) -> dict[str, Any]:
        """The executed notebook with the block under its title."""
        block = {"cell_type": "markdown", "id": OWN, "metadata": {}}
        block["source"] = head.head(self.own, self.book, self.defaults, back)
        cells = [cell for cell in self.executed["cells"] if cell["id"] not in (OWN, plain.INSTALL)]
        at = next((i for i, cell in enumerate(cells) if cell["cell_type"] == "markdown"), None)
        if at is None:
            return self.executed | {"cells": [block, *cells]}
        lines = "".join(cells[at]["source"]).splitlines()
        end = next((i for i, line in enumerate(lines, 1) if line.startswith("# ")), 0)
        title = {**cells[at], "id": "title", "source": "\n".join(lines[:end])}
        rest = {**cells[at], "source": "\n".join(lines[end:])}
        return self.executed | {"cells": [*cells[:at], title, block, rest, *cells[at + 1 :]]}

    def back(self, address: str) -> str:
        """The sentence that leads back."""
        if not self.at_hand(f"notebooks/{self.name}.html"):
            return "No book is built here (`make book` makes one), so references to its other pages are words alone."
        return f'Back to <a href="{html.escape(address)}">the book\'s own page</a>.'

    def at_hand(self, place: str) -> Path | None:
        """The file of a place in the built book."""
        path = self.root / HTML / place.partition("#")[0]
        return path if path.is_file() else None

    def address(self, place: str) -> str:
        """The address of a place in the built book: relative within a checkout, so that both can be moved together."""
        path, anchor = self.at_hand(place), place.partition("#")[2]
        if path is None:
            return ""
        inside = self.folder.resolve().is_relative_to(self.root)
        to = Path(os.path.relpath(path, self.folder)).as_posix() if inside else path.resolve().as_uri()
        return f"{to}#{anchor}" if anchor else to

    def from_the_page(self, to: str) -> str:
        """The same for what a page of the book, in ``notebooks``, points to; its own files lie beside it."""
        beside = f"../files/{self.name}/"
        return to.removeprefix(beside) if to.startswith(beside) else self.address(os.path.normpath(f"notebooks/{to}"))


def _root(template: Path) -> Path:
    """The checkout of a notebook: the folder above its own."""
    return template.resolve().parent.parent


_ALONE = """\
.search-button{display:none!important}
.fl-own{font-size:.92rem}.fl-own .pst-scrollable-table-container{margin-bottom:1rem}
.fl-own table{width:auto;min-width:min(100%,26rem);margin:0}.fl-own td code{overflow-wrap:normal}
"""
_STYLE = """\
:root{color-scheme:light dark;--ink:#1f2328;--page:#fff;--box:#f5f7f9;--line:#d4d9de;--link:#0067a5}
@media (prefers-color-scheme:dark){:root{--ink:#e2e6ea;--page:#14181e;--box:#1f252d;--line:#3a424c;--link:#6fb7ff}
.only-light{display:none}}
@media (prefers-color-scheme:light){.only-dark{display:none}}
body{font:16px/1.6 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
body,.highlight{color:var(--ink);background:var(--page)}a{color:var(--link)}
pre{overflow-x:auto;padding:.6rem .8rem;background:var(--box);border-radius:6px;font-size:.87em;margin:.5rem 0}
blockquote{margin:1rem 0;padding:.2rem 1rem;border-left:4px solid var(--link);background:var(--box)}
table{border-collapse:collapse;display:block;overflow-x:auto}
th,td{padding:.25rem .7rem;border-bottom:1px solid var(--line);text-align:left}
img,svg{max-width:100%;height:auto}code{overflow-wrap:anywhere}
.jp-InputPrompt,.jp-OutputPrompt,.prompt,.anchor-link{display:none}
"""


def _plain_page(notebook: Mapping[str, Any]) -> str:
    """A notebook of plain Markdown as one HTML file that needs no network.

    Cells tagged ``remove-cell``, and the code of those tagged ``hide-input`` or ``remove-input``, are left out.
    """
    import nbformat
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    hidden = {"remove_cell_tags": {"remove-cell", plain.ONLY_HERE}, "remove_input_tags": {"hide-input", "remove-input"}}
    settings = Config({"TagRemovePreprocessor": {"enabled": True} | hidden})
    exporter: Any = HTMLExporter(config=settings, template_name="basic")  # type: ignore[no-untyped-call]
    body, _ = exporter.from_notebook_node(nbformat.from_dict(notebook))  # type: ignore[no-untyped-call]
    formulas = folded.mathjax() if "$" in str(body) else ""
    top = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    title = re.sub("<[^>]*>", "", found[1]) if (found := re.search(r"<h1\b[^>]*>(.*?)(?:<a|</h1>)", body)) else "A run"
    head = f"{top}\n<title>{title}</title><style>{_STYLE}</style>"
    scrolling = re.sub(r"<(pre|table)\b", r'<\1 tabindex="0"', body)  # the keyboard reaches what is cut off
    main = f"<main>\n{scrolling}\n</main>\n{formulas}"
    return f'<!DOCTYPE html><html lang="en" data-theme="auto"><head>\n{head}\n</head><body>\n{main}</body></html>\n'
