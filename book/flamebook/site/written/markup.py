"""How a row of the ledger is written, its anchor, its verdict, what it compares; and what a page links to."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from flamebook.claims.ledger import Claim, Judged, shown
from flamebook.places import source_url
from flamelib.core.vocabulary import DomainError


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


def sourced(said: str, path: str, line: int | None = None) -> str:
    """A link to a file of the repository, or its words alone where the repository has no address."""
    address = source_url(path, line)
    return f"[{said}]({address})" if address else said


def linker(source: Path) -> Callable[[str], str]:
    """A function from ``page`` or ``page#label`` to a link in MyST; plain code where the page is not staged."""

    def link(page: str) -> str:
        path, _, label = page.partition("#")
        staged = (source / f"{path}{end}" for end in (".md", ".ipynb"))
        found = next((file for file in staged if file.is_file()), None)
        if found is None:
            return f"`{path}`"
        name = path.rpartition("/")[2].replace("_", " ")
        return f"{{doc}}`{name} </{path}>`" if not label else _labelled(found, label, name)

    return link


def _labelled(page: Path, label: str, name: str) -> str:
    text = page.read_text(encoding="utf-8")
    if re.search(rf":label: {re.escape(label)}\b(?!-)", text):
        return f"{{prf:ref}}`{name} <{label}>`"
    if f"({label})=" in text or f'"name": "{label}"' in text:
        return f"{{ref}}`{name} <{label}>`"
    raise DomainError(f"claims ledger: page {page.stem} has no label {label}")
