"""Of every page: in its head a sentence on what it holds, at its foot a way to the page that says how to cite it."""

import html
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

LONGEST = 158  # characters of a description that search pages show


def described(document: nodes.document | None, title: str, book: str) -> str:
    """The first sentences of a page that need no formula, cut between words; its title where it has none."""
    found = ""
    for paragraph in document.findall(nodes.paragraph) if document else ():
        formula = next(iter(paragraph.findall(nodes.math)), None)
        if isinstance(paragraph.parent, nodes.section) and formula is None and len(found) < LONGEST:
            found += " " + re.sub(r"\s+", " ", paragraph.astext()).strip()
    words = found.strip() if len(found) > 40 else f"{title}: a page of the book “{book}”. {found}".strip()
    return words if len(words) <= LONGEST else words[:LONGEST].rpartition(" ")[0].rstrip(",;:") + " …"


def add(app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Write both into what the template gets."""
    title = html.unescape(re.sub(r"<[^>]*>", "", context.get("title") or "")) or page
    told = html.escape(described(document, title, app.config.html_title))
    context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{told}" />'
    if "book/cite" in app.env.all_docs:
        cite = f'<p class="fl-edition"><a href="{context["pathto"]("book/cite")}">Cite this book</a></p>'
        context["theme_extra_footer"] = context.get("theme_extra_footer", "") + cite


def setup(app: Sphinx) -> dict[str, bool]:
    """After the theme has set what it shows."""
    app.connect("html-page-context", add, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
