"""How a row of the ledger is written on a page: its anchor, its values, its verdict, what it compares."""

import math
import re

from flamebook.claims.ledger import Judged, Value


def anchor(claim_id: str) -> str:
    """The anchor of a row on the page.

    >>> anchor("blanket:thm-3.1/mass")
    'claim-blanket-thm-3-1-mass'
    """
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", claim_id.lower())


def shown(value: Value | None) -> str:
    """A value for a table: seven digits, lists joined, properties in words.

    >>> shown([0.25, 3.3602171e-9]), shown(True), shown(None), shown(408.0)
    ('0.25; 3.360217e-09', 'holds', 'none', '408')
    """
    if value is None:
        return "none"
    if isinstance(value, list):
        return "; ".join(shown(one) for one in value)
    if isinstance(value, bool):
        return "holds" if value else "fails"
    return "∞" if math.isinf(value) else f"{value:.7g}"


def verdict(name: str) -> str:
    """The verdict in its colour."""
    return f"[{name.replace('-', ' ')}]{{.verdict .verdict-{name}}}"


def comparison(row: Judged) -> str:
    """The two numbers of a row in a sentence, or that its property fails."""
    if row.claim.relation == "holds":
        return "The property fails."
    said = {"equal": "Stated", "at-most": "Stated: at most", "at-least": "Stated: at least"}[str(row.claim.relation)]
    return f"{said} {shown(row.claim.stated)}; computed {shown(row.value)}."
