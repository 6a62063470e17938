"""The end of the theorem index, "If one lemma falls": what would be without a proof, propositions and rows."""

from collections import Counter
from collections.abc import Mapping, Sequence

from flamebook.claims import proofs
from flamebook.claims.ledger import Judged
from flamebook.claims.proofs import Proof
from flamebook.site.written.markup import anchor

HEAD = """\
(sec-falls)=
## If one lemma falls

Every number of this book is only as good as the proofs behind it. Suppose that somebody finds a mistake in one of
them: what else would be without a proof? The table answers for each proposition that carries numbers. The second
column counts the rows of the {doc}`ledger <ledger>` whose own computation enters a function that the proposition
carries; the third adds the rows that rest on it through other propositions. Below the table each proposition has its
list.

A row that is named here is not refuted when the proposition falls. It would be open until there is another proof.
Most refutations rest on none of these proofs: they list outcomes, count, or integrate.

Which functions a row enters is recorded while the row is computed, in a process of its own. Which functions a
proposition carries, and which propositions its proof uses, stands in `data/proofs.yml`. The list `proofs` of each row
is in {download}`ledger.json <generated/ledger.json>`, and `flamelib check ROW` prints it.

"""


def section(judged: Sequence[Judged], rests: Mapping[str, Sequence[str]]) -> str:
    """The section in MyST; ``rests`` names for each row the propositions that it enters."""
    rows = {row.claim.id: row for row in judged}
    found = [(proof, *proofs.fallen(label, rests)) for label, proof in proofs.load().items()]
    found = sorted(((proof, down, low) for proof, down, low in found if low), key=lambda one: -len(one[2]))
    lines = ["| proposition | rows that enter it | rows that rest on it | of these, refutations |", "|---|--:|--:|--:|"]
    for proof, _, low in found:
        own = sum(proof.label in labels for labels in rests.values())
        refuted = Counter(rows[name].verdict for name in low)["refuted"]
        lines.append(f"| {_link(proof)} ({_page(proof)}) | {own} | {len(low)} | {refuted} |")
    return HEAD + "\n".join([*lines, "", *(_one(*one) for one in found), ""])


def _link(proof: Proof) -> str:
    return f"{{prf:ref}}`{proof.title} <{proof.label}>`"


def _page(proof: Proof) -> str:
    return proof.page.replace("_", ", ")


def _one(proof: Proof, down: Sequence[str], low: Sequence[str]) -> str:
    others = [_link(proofs.load()[label]) for label in down if label != proof.label]
    through = (
        f"Its fall would take along: {', '.join(others)}." if others else "No other proposition of this table uses it."
    )
    named = ", ".join(f"[`{name}`](#{anchor(name)})" for name in low)
    return "\n".join(
        [
            f":::{{dropdown}} {proof.title} ({_page(proof)}): {len(low)} rows",
            "",
            through,
            "",
            f"Rows: {named}.",
            ":::",
            "",
        ]
    )
