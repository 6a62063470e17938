"""What can be filled in: below parameters the form to run a page, below some figures a panel that moves them."""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from flamebook.places import ROOT
from flamebook.site.sliders.figures import FIGURES
from flamebook.site.sliders.forms import binder_address, form, panel

_MOVES = '<script src="../_static/sliders_figures.js" defer></script>'


def add_form(app: Sphinx, document: nodes.document, name: str) -> None:
    """Put the form behind the parameters cell, where a page has one."""
    page = Path(app.env.doc2path(name))
    template = ROOT / "notebooks" / page.name
    if page.suffix != ".ipynb" or not template.is_file():
        return
    for cell in list(document.findall(nodes.container)):
        if "tag_parameters" in cell["classes"]:
            binder = binder_address(app.config.html_theme_options, page.stem)
            _behind(cell, form(page, template, binder))


def add_panels(app: Sphinx, document: nodes.document, name: str) -> None:
    """Put panels behind the figures, or the theorems, of a page that move."""
    found = [figure for figure in FIGURES if figure.under == name]
    for figure in found:
        labelled = next(node for node in document.findall(nodes.Element) if figure.name in node.get("ids", ()))
        cell = labelled.parent.parent if isinstance(labelled.parent, nodes.container) else labelled
        _behind(cell, panel(figure) + (_MOVES if figure is found[-1] else ""))


def _behind(node: nodes.Element, text: str) -> None:
    node.parent.insert(node.parent.index(node) + 1, nodes.raw("", text, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Pages are whole when their references are resolved."""
    app.connect("doctree-resolved", add_form)
    app.connect("doctree-resolved", add_panels)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
