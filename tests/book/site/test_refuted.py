"""The page "What does not hold": complete, no number in it typed by hand, every reference to something that exists."""

import re
from dataclasses import replace

import pytest

from flamebook.claims import ledger
from flamebook.claims import record as record_ledger
from flamebook.claims.ledger import Judged
from flamebook.places import ROOT
from flamebook.site.written import dossiers, refuted
from flamebook.site.written.markup import linker
from flamelib.core.vocabulary import DomainError

TEXT = (ROOT / "book" / "refuted.md").read_text(encoding="utf-8")
STORIES = [re.split("^## ", story, flags=re.M)[0] for story in re.split(r"^### ", TEXT, flags=re.M)[1:]]


def _judged() -> list[Judged]:
    """Every row as it was recorded; that it is computed so is tested with the ledger."""
    recorded = record_ledger.recorded()
    known = [(claim, recorded.get(claim.id, (claim.verdict, None))) for claim in ledger.load()]
    return [Judged(claim, value, verdict) for claim, (verdict, value) in known]


JUDGED = _judged()
ROWS = {row.claim.id: row for row in JUDGED}


def _page(text: str = TEXT, judged: list[Judged] = JUDGED) -> str:
    return refuted.page(dossiers.placed(text, JUDGED), judged, linker(ROOT))


def test_every_refuted_row_has_one_story_and_no_other_row_has() -> None:
    assert sorted(refuted.told(TEXT)) == sorted(row.claim.id for row in JUDGED if row.verdict == "refuted")
    assert "@" not in _page()


def test_stories_stand_by_weight_and_the_list_names_each() -> None:
    found = refuted.findings(TEXT, JUDGED)
    assert list(dict.fromkeys(one.section for one in found)) == [*ledger.WEIGHTS, refuted.WAITS]
    page = _page()
    labels = re.findall(r"^- \[.+\]\(#(story-[a-z0-9-]+)\)", page, re.M)
    assert len(labels) == len(STORIES) == len(found)
    assert all(f"({label})=\n### " in page for label in labels)


def test_a_reading_is_told_as_one_and_lost_formulas_are_marked() -> None:
    for row in JUDGED:
        assert row.claim.weight != "reading only" or row.claim.said_by == "reading"
        assert not row.claim.reconstructed or row.claim.said_by in ("document", "reading")
    page = _page()
    story = page.split("### The reading that was probably printed")[1].partition("**Claim.**")[0]
    assert "*Reconstructed.*" in story
    assert "`flamelib check participation:thm-4.1/inner-five`" in story


def test_a_refuted_row_without_a_story_is_refused() -> None:
    name = next(row.claim.id for row in JUDGED if row.verdict == "reproduced")
    turned = [replace(row, verdict="refuted") if row.claim.id == name else row for row in JUDGED]
    with pytest.raises(DomainError, match=f"refuted, and without a story: {name}"):
        _page(judged=turned)
    with pytest.raises(DomainError, match=r"told more than once: blanket:lem-bennett/withdrawn"):
        _page(TEXT + "\n### Again\n\n@story blanket:lem-bennett/withdrawn@\n")


def test_no_rounding_makes_a_case() -> None:
    """What is written lies between the claim and the value."""
    for name, word, index in refuted.NUMBER.findall(TEXT):
        row = ROWS[name]
        if word or row.claim.relation == "equal":
            continue
        value, stated = (v[int(index or 0)] if isinstance(v, list) else v for v in (row.value, row.claim.stated))
        shown = refuted._number(ROWS, name, None, index or None).strip("$").replace(",", "")
        written = float(shown.replace(r"\cdot10^{", "e").rstrip("}"))
        assert min(value, stated) <= written <= max(value, stated), name
