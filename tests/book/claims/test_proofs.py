"""What falls with a proof: found by execution, compared with lists made by hand."""

import re

import pytest

from flamebook import commands
from flamebook.claims import ledger, proofs
from flamebook.claims import record as record_ledger
from flamebook.places import ROOT
from flamelib.core.vocabulary import DomainError

RESTS = record_ledger.rests()
CLAIMS = {claim.id: claim for claim in ledger.load()}
# Made by hand, from the inputs of the rows: exactly k coordinates with a sound account.
EXACTLY = ["flame:claim-0.24/double-subset", "flame:claim-2.348/double-subset", "flame:account/double-exact"]


def test_what_falls_with_exactly_k_coordinates_is_the_list_made_by_hand() -> None:
    down, rows = proofs.fallen("flame-exactly", RESTS)
    assert down == ["flame-exactly"]
    assert rows == EXACTLY


def test_a_lemma_takes_along_what_uses_it() -> None:
    down, rows = proofs.fallen("participation-gram", RESTS)
    assert down == [
        "participation-gram",
        "participation-outer-holds",
        "participation-thm-4-1-add",
        "participation-rounds",
        "participation-turning",
        "checkin-exact-pair",
        "checkin-count-by-count",
    ]
    documents = {CLAIMS[name].document for name in rows}
    assert documents == {"participation", "checkin"}
    assert set(proofs.fallen("participation-turning", RESTS)[1]) < set(rows)


@pytest.mark.parametrize(
    "name", ["flame:claim-0.24/double-subset", "blanket:lem-reduction/any-randomizer", "cloak:own-5/value"]
)
def test_a_row_traced_now_enters_what_was_recorded(name: str) -> None:
    ((judged, labels),) = proofs.trace_all([CLAIMS[name]])
    assert judged.as_recorded
    assert labels
    assert labels == RESTS[name]


def test_every_row_was_recorded_and_every_proof_is_used() -> None:
    """Where a row or a proof is new: ``flamelib record ledger``."""
    assert set(RESTS) == set(CLAIMS)
    carrying = {label for label, proof in proofs.load().items() if proof.carries}
    assert carrying == {label for labels in RESTS.values() for label in labels}


def test_what_a_proof_in_the_book_cites_is_listed_as_needed() -> None:
    known = proofs.load()
    for label, proof in known.items():
        text = (ROOT / "book" / f"{proof.page}.md").read_text(encoding="utf-8")
        after = text.partition(f":label: {label}\n")[2]
        block = re.match(r".*?^:::+\n+(:::+)\{prf:proof\}\n(.*?)^\1\n", after, re.M | re.S)
        cited = set(re.findall(r"\{prf:ref\}`[^`<]*<([a-z0-9-]+)>`", block[2])) if block else set()
        assert cited & set(known) - {label} <= set(proofs.used([label])), label


def test_the_command_recomputes_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run_app(["check", "flame:alg-4/top-after-mapping"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^verdict   refuted, slip of notation$", said, re.M)
    assert re.search("^inputs    update = ", said, re.M)
    with pytest.raises(
        DomainError, match="ROW must be a row or an item of the ledger, got 'flame:alg-44': did you mean flame:alg-4"
    ):
        commands.run_app(["check", "flame:alg-44"])
