"""Keep one of each inline script on a page: sphinx-thebe adds its constants twice, which is an error in a browser."""

from typing import Any

from sphinx.application import Sphinx


def keep_one(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Drop every inline script whose text stands on the page already."""
    seen: set[str] = set()
    kept = []
    for script in context.get("script_files", []):
        body = getattr(script, "attributes", {}).get("body")
        if body is None or body not in seen:
            kept.append(script)
            seen.update([body] if body is not None else [])
    context["script_files"] = kept


def setup(app: Sphinx) -> dict[str, bool]:
    """Run after the extensions that add scripts."""
    app.connect("html-page-context", keep_one, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
