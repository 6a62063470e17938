"""The index of terms: in order, complete over the glossary, with places in all five parts."""

import re
import unicodedata

import pytest

from flamebook.places import ROOT
from flamelib.core.statements import DOCUMENTS

BOOK = ROOT / "book"
INDEX = (BOOK / "terms.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^- (.+?): (.+)$", INDEX, re.M))


def plain(word: str) -> str:
    """Small letters without accents: what a reader looks a word up by."""
    return unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode().lower()


def test_entries_stand_in_order_below_their_letters() -> None:
    lines = re.findall(r"^(?:## (\w)$|- (.+?): )", INDEX, re.M)
    words = [plain(letter or word) for letter, word in lines]
    assert words == sorted(words)
    assert {plain(word)[0] for word in ENTRIES} == {word for word in words if len(word) == 1}
    assert len(ENTRIES) == INDEX.count("\n- ") >= 100


def test_every_term_of_the_glossary_is_an_entry() -> None:
    glossary = (BOOK / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^(\w.*)\n  \S", glossary, re.M)
    assert terms
    assert [term for term in terms if f"{{term}}`glossary <{term}>`" not in ENTRIES.get(term, "")] == []


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if (BOOK / f"{name}.md").is_file()])
def test_every_part_has_places(document: str) -> None:
    assert len(re.findall(rf"<(?:sec-|fig-)?{document}-", INDEX)) >= 10
