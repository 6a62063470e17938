"""Light pages: figures as files of their own, long tables without needless markup.

A notebook holds its figures whole, so that it and the page of an own run need no files beside them; the page of the
book, which has these files, loads them when they come into sight.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from flamebook.site.book.light import as_files, lean, own_size

PICTURE = re.compile(r'(?<=<img )(?=[^>]*class="dark-light" src="[^"]*_images/([^"/]+\.svg)")')
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')
LONG = 100_000  # characters of a page, from which its tables are made lean


def place(app: Sphinx, document: nodes.document, name: str) -> None:
    """Refer to the files of figures; pictures of one theme that a page names itself get a box that scrolls."""
    for raw in list(document.findall(nodes.raw)):
        if raw["format"] == "html" and 'class="fl-fig"' in raw.astext():
            raw.replace_self(nodes.raw("", as_files(raw.astext()), format="html", classes=raw["classes"]))
    for image in list(document.findall(nodes.image)):
        if theme := next((one for one in image["classes"] if one.startswith("only-")), None):
            box = nodes.container("", image.deepcopy(), classes=["fl-pan", theme])
            box[0]["classes"] = ["dark-light"]
            image.replace_self(box)


def trim(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Tell the sizes of pictures that a page names, and make the tables of a long page lean."""
    files = {new: Path(app.srcdir, old) for old, new in app.builder.images.items()}

    def sized(found: re.Match[str]) -> str:
        drawing = SIZE.search(files[found[1]].read_text(encoding="utf-8"))
        return f"{own_size(drawing[1], drawing[2])} " if drawing else ""

    if "body" in context:
        context["body"] = PICTURE.sub(sized, context["body"])
    if len(context.get("body", "")) > LONG:
        context["body"] = re.sub(r"<table\b.*?</table>", lambda found: lean(found[0]), context["body"], flags=re.DOTALL)


def setup(app: Sphinx) -> dict[str, bool]:
    """Pages are whole when their references are resolved."""
    app.connect("doctree-resolved", place)
    app.connect("html-page-context", trim)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
