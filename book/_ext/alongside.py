"""Pages are written by several processes, and pages of source code share their navigation."""

import os
import posixpath
from typing import Any

from sphinx.application import Sphinx


def write_alongside(app: Sphinx, env: object) -> None:
    """Write on all processors, after one process has read: sphinx-proof cannot merge what several read."""
    app.parallel = os.cpu_count() or 1


def share(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Make the navigation once for all pages of source code in one folder, for it contains none of them."""
    if page.startswith("_modules/"):
        kept: dict[tuple[object, ...], str] = app.__dict__.setdefault("fl_navigation", {})
        make = context["toctree"]

        def toctree(**options: Any) -> str:
            key = (posixpath.dirname(page), *sorted(options.items()))
            if key not in kept:
                kept[key] = make(**options)
            return kept[key]

        context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, bool]:
    """When all pages are read; and before the theme asks for the navigation of one."""
    app.connect("env-updated", write_alongside)
    app.connect("html-page-context", share, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
