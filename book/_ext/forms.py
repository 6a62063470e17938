"""Under the parameters of a notebook, the form to run its page with other values."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from flamebook.places import ROOT
from flamebook.site.forms import binder_address, form


def add_form(app: Sphinx, document: nodes.document, name: str) -> None:
    """Put the form behind the parameters cell, where a page has one."""
    page = Path(app.env.doc2path(name))
    template = ROOT / "notebooks" / page.name
    if page.suffix != ".ipynb" or not template.is_file():
        return
    for cell in list(document.findall(nodes.container)):
        if "tag_parameters" in cell["classes"]:
            binder = binder_address(app.config.html_theme_options, page.stem)
            cell.parent.insert(cell.parent.index(cell) + 1, nodes.raw("", form(page, template, binder), format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Pages are whole when their references are resolved."""
    app.connect("doctree-resolved", add_form)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
