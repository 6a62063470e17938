"""How a row of the ledger is written on a page: its anchor, its values, its verdict, what it compares."""

import re

from flamebook.claims.ledger import Judged, shown


def anchor(claim_id: str) -> str:
    """The anchor of a row on the page.

    >>> anchor("blanket:thm-3.1/mass")
    'claim-blanket-thm-3-1-mass'
    """
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", claim_id.lower())


def verdict(name: str) -> str:
    """The verdict in its colour."""
    return f"[{name.replace('-', ' ')}]{{.verdict .verdict-{name}}}"


def comparison(row: Judged) -> str:
    """The two numbers of a row in a sentence, or that its property fails."""
    if row.claim.relation == "holds":
        return "The property fails."
    said = {"equal": "Stated", "at-most": "Stated: at most", "at-least": "Stated: at least"}[str(row.claim.relation)]
    return f"{said} {shown(row.claim.stated)}; computed {shown(row.value)}."
