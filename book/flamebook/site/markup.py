"""How a row of the ledger is written on a page: its anchor, its values, its verdict, what it compares."""

import re
from collections.abc import Mapping
from typing import Any

from flamebook.claims.ledger import Claim, Judged, shown


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


def given(claim: Claim) -> str:
    """The inputs of a row in a sentence; several values of one input stand in brackets."""
    inputs = [f"{name} = {_written(value)}" for name, value in (claim.inputs | claim.over).items()]
    return f"Inputs: {', '.join(inputs)}." if inputs else "No inputs."


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{name} {_written(one)}" for name, one in value.items()) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(_written(one) for one in value) + "]"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
