"""The search finds a theorem by its number: it drops whole numbers from a question, but not from an index entry."""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_NUMBERED = re.compile(r"((?:\d+(?:\.\d+)*)(?: and \d+(?:\.\d+)*)*)\b")


def entries(kind: str, title: str) -> list[str]:
    """What a numbered statement is looked for by.

    >>> entries("theorem", " (3.1: shuffled randomized response)")
    ['theorem 3.1']
    >>> entries("lemma", " (11 and 13: single-user privacy)")
    ['lemma 11', 'lemma 13']
    >>> entries("proposition", " (Clones for every randomizer)")
    []
    """
    found = _NUMBERED.match(title.strip(" ("))
    return [f"{kind} {number}" for number in found[1].split(" and ")] if found else []


def add_entries(app: Sphinx, doctree: nodes.document) -> None:
    """Put an entry of the index in front of every numbered definition, theorem, lemma and algorithm."""
    for node in list(doctree.findall(lambda one: isinstance(one, nodes.Element) and "realtype" in one)):
        found = entries(node["realtype"], node["title"])
        if found:
            rows = [("single", entry, node["ids"][0], "main", None) for entry in found]
            node.parent.insert(node.parent.index(node), addnodes.index(entries=rows, inline=False))


def setup(app: Sphinx) -> dict[str, bool]:
    """Run when a page has been read."""
    app.connect("doctree-read", add_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
