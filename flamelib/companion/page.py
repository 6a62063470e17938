"""An executed notebook as one HTML file that needs no network: styles, figures and formulas are inside it."""

import html
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_STYLE = """\
body{font:16px/1.55 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1f2328;background:#fff}
pre{overflow-x:auto;padding:.6rem .8rem;background:#f5f7f9;border-radius:6px;font-size:.87em}
table{border-collapse:collapse}th,td{padding:.25rem .7rem;border-bottom:1px solid #d4d9de;text-align:left}
img,svg{max-width:100%;height:auto}a{color:#0067a5}.jp-InputPrompt,.jp-OutputPrompt,.prompt,.anchor-link{display:none}
.only-dark{display:none}
"""
_ROLE = re.compile(r"\{[a-z:._-]+\}`([^`]+)`")


def write_page(notebook: Path) -> Path:
    """Write ``NAME.html`` beside an executed notebook and return its path.

    Cells tagged ``remove-cell``, and the code of those tagged ``hide-input`` or ``remove-input``, are left out.
    """
    import nbformat

    content = nbformat.read(str(notebook), as_version=4)  # type: ignore[no-untyped-call]
    for cell in content.cells:
        if cell.cell_type == "markdown":
            cell.source = _ROLE.sub(r"*\1*", cell.source)
    page = notebook.with_suffix(".html")
    page.write_text(_whole(notebook.stem, _body(content, notebook.stem), content), encoding="utf-8")
    return page


def _body(content: Any, name: str) -> str:
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    hidden = {"hide-input", "remove-input"}
    removed = {"enabled": True, "remove_cell_tags": {"remove-cell"}, "remove_input_tags": hidden}
    settings = Config({"TagRemovePreprocessor": removed})
    exporter: Any = HTMLExporter(config=settings, template_name="basic", embed_images=True)  # type: ignore[no-untyped-call]
    body, _ = exporter.from_notebook_node(content)
    # On a page of the book the files lie elsewhere; here they lie beside the page.
    return str(body).replace(f'"../files/{name}/figures/', '"figures/')


def _whole(name: str, body: str, content: Any) -> str:
    from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]

    style = _STYLE + HtmlFormatter(style="default").get_style_defs(".highlight")
    formulas = any(cell.cell_type == "markdown" and "$" in cell.source for cell in content.cells)
    head = [
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>{html.escape(name)}</title><style>{style}</style>",
        _mathjax() if formulas else "",
    ]
    return "\n".join(['<!DOCTYPE html><html lang="en"><head>', *head, "</head><body>", body, "</body></html>\n"])


def _mathjax() -> str:
    """The formula renderer of the book's own extension, written into the page; formulas stay as typed without it."""
    found = find_spec("sphinx-mathjax-offline")
    if found is None or found.origin is None:
        return ""
    source = Path(found.origin).parent / "static" / "mathjax" / "tex-svg-full.js"
    settings = json.dumps({"tex": {"inlineMath": [["$", "$"]]}, "options": {"enableMenu": False}})
    code = source.read_text(encoding="utf-8").replace("</script", "<\\/script")
    return f"<script>window.MathJax={settings}</script><script>{code}</script>"
