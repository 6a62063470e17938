"""The one glossary: every word that a page refers to is there once, and every document has its letters."""

import re

from flamebook.places import ROOT
from flamelib.core.statements import DOCUMENTS

BOOK = ROOT / "book"
PAGE = (BOOK / "glossary.md").read_text(encoding="utf-8")
WORDS = re.findall(r"^(\w.*)\n  \S", PAGE.partition("```{glossary}")[2].partition("\n```")[0], re.M)


def test_every_word_that_a_page_refers_to_is_explained_once() -> None:
    used = set()
    for path in [*BOOK.glob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]:
        used |= set(re.findall(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`", path.read_text(encoding="utf-8")))
    assert len(WORDS) == len(set(WORDS)) >= 40
    assert used
    assert used - set(WORDS) == set()


def test_every_document_has_its_column_of_letters() -> None:
    header = next(line for line in PAGE.splitlines() if line.startswith("| word | "))
    names = {"flame": "FLAME", "checkin": "check-in"}
    assert [names.get(one, one) for one in DOCUMENTS if (BOOK / f"{one}.md").is_file()] == [
        cell.strip() for cell in header.split("|")[2:-1]
    ]
