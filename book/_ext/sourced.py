"""Where a statement comes from stands under its description: after a section it would be read as a part of that."""

from typing import Any

from sphinx.application import Sphinx

MARK = "Source: "


def source_first(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Move the paragraph that names the source in front of the first section.

    >>> lines = ["What.", "", "Raises", "------", "Fault", "    If so.", "", "Source: here,", "and there.", ""]
    >>> source_first(None, "", "", None, None, lines)
    >>> lines[:6]
    ['What.', '', 'Source: here,', 'and there.', '', 'Raises']
    """
    start = next((at for at, line in enumerate(lines) if line.startswith(MARK)), len(lines))
    section = next((at for at, rule in enumerate(lines[1:start]) if rule.startswith("---")), start)
    if start == len(lines) or section == start:
        return
    end = next((at for at in range(start, len(lines)) if not lines[at].strip()), len(lines))
    moved = lines[start:end]
    del lines[start:end]
    lines[section:section] = [*moved, ""]


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before the extension that reads sections."""
    app.connect("autodoc-process-docstring", source_first, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
