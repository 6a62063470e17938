"""Three refutations to take apart: their numbers are those of the ledger and of the library."""

import pytest

from flamebook.claims import ledger, record
from flamebook.claims.ledger import Judged
from flamebook.places import ROOT
from flamebook.site.written import dossiers
from flamelib.accounting.coordinates import counting
from flamelib.core.vocabulary import DomainError

RECORDED = record.recorded()
JUDGED = [Judged(one, value, word) for one in ledger.load() for word, value in [RECORDED[one.id]]]
ROWS = {row.claim.id: row for row in JUDGED}
STORIES = (ROOT / "book" / "refuted.md").read_text(encoding="utf-8")
FOUND = {one.name: one for one in dossiers.dossiers(JUDGED)}


def test_the_story_s_own_case_is_the_row_of_the_ledger() -> None:
    assert all(next(iter(one.cases().values())).contradicted for one in FOUND.values())
    flame, inner = FOUND["flame"].cases(), FOUND["participation"].cases()
    case = flame["largest opposite mixed sampled"]
    assert case.exact == pytest.approx(ROWS["flame:thm-3/always-reported"].value, rel=1e-6)
    assert case.claimed < counting.topk_lower(1, 333, 0.5, epsilon=case.epsilon) <= case.exact
    case = inner["inner equal hidden removed"]
    assert case.exact / case.claimed == pytest.approx(ROWS["participation:thm-4.1/inner-five"].value, rel=1e-5)
    case = inner["outer equal told removed"]
    assert case.exact == pytest.approx(case.claimed, rel=1e-9)


def test_the_page_has_every_combination_without_a_script() -> None:
    page = dossiers.placed(STORIES, JUDGED)
    assert page.count("contradicted") > sum(len(one.cases()) for one in FOUND.values())
    with pytest.raises(DomainError, match="@play flame:thm-1/none@ names no dossier"):
        dossiers.placed("@play flame:thm-1/none@", JUDGED)
