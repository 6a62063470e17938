"""Keep one of each on a page: of inline scripts, which sphinx-thebe adds twice, and of ids, as sphinx-proof gives."""

import re
from typing import Any

from sphinx.application import Sphinx

# A script or a comment, in which tags are none, or the beginning of an element.
_TAG = re.compile(r"""<script\b.*?</script>|<!--.*?-->|<[a-zA-Z](?:[^<>"']+|"[^"]*"|'[^']*')*>""", re.DOTALL)
_ID = re.compile(r"""\sid="([^"]*)\"""")


def keep_one(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Drop every inline script whose text stands on the page already, which would be an error in a browser."""
    seen: set[str] = set()
    kept = []
    for script in context.get("script_files", []):
        body = getattr(script, "attributes", {}).get("body")
        if body is None or body not in seen:
            kept.append(script)
            seen.update([body] if body is not None else [])
    context["script_files"] = kept


def name_once(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Leave an id to the first element that has it: there links lead, and a second is invalid.

    >>> context = {"body": '<div id="a"><p class="b" id="a" title="c">d</p></div>'}
    >>> name_once(None, "", "", context, None)
    >>> context["body"]
    '<div id="a"><p class="b" title="c">d</p></div>'
    """
    seen: set[str] = set()

    def kept(found: re.Match[str]) -> str:
        name = None if found[0].startswith(("<script", "<!--")) else _ID.search(found[0])
        if name is None or name[1] not in seen:
            seen.update([name[1]] if name else [])
            return found[0]
        return found[0][: name.start()] + found[0][name.end() :]

    if "body" in context:
        context["body"] = _TAG.sub(kept, context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Run after the extensions that add scripts, and when the page is written."""
    app.connect("html-page-context", keep_one, priority=900)
    app.connect("html-page-context", name_once, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
