"""What is done to a notebook's text before and after it is executed, so that equal inputs give equal bytes.

Before: the values of a run are written into the cell tagged ``parameters`` (no second, injected cell).
After: words like ``@n_users@`` in the text and the captions become the values that were really used, and
papermill's times are dropped.  Standard library only.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flamelib.core.vocabulary import DomainError

Notebook = dict[str, Any]

_TOKEN = re.compile(r"@([a-z][a-z0-9_]*)@")
_GROUPED_FROM = 10_000


def read(path: Path) -> Notebook:
    """The notebook at a path, every cell with an id that does not change from run to run."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, cell in enumerate(notebook["cells"]):
        cell.setdefault("id", f"cell-{number}")
        if not isinstance(cell["source"], str):
            cell["source"] = "".join(cell["source"])
    return notebook


def write(path: Path, notebook: Notebook) -> None:
    """Write a notebook in its usual form."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def code(notebook: Notebook) -> str:
    """The Python code of all cells, one text; lines for IPython alone are left out."""
    sources = (cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    lines = (line for source in sources for line in source.splitlines())
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!", "?")))


def with_values(notebook: Notebook, values: Mapping[str, Any]) -> Notebook:
    """The notebook with these values in its parameters cell; types and help texts stay.

    >>> cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "seed: int = 7  # of the run"}
    >>> with_values({"cells": [cell]}, {"seed": 8})["cells"][0]["source"]
    'seed: int = 8  # of the run'
    """
    cells = [
        cell | {"source": _assign(cell["source"], values)} if "parameters" in cell["metadata"].get("tags", ()) else cell
        for cell in notebook["cells"]
    ]
    return notebook | {"cells": cells}


def _assign(source: str, values: Mapping[str, Any]) -> str:
    lines = source.encode().splitlines(keepends=True)
    for line in reversed(ast.parse(source).body):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
            old, new = ast.literal_eval(line.value), values.get(line.target.id)
            if line.target.id in values and repr(old) != repr(new):
                _splice(lines, line.value, repr(new).encode())
    return b"".join(lines).decode()


def _splice(lines: list[bytes], place: ast.expr, text: bytes) -> None:
    # Offsets of the syntax tree count bytes; a value may span several lines.
    first, last = place.lineno - 1, (place.end_lineno or place.lineno) - 1
    lines[first : last + 1] = [lines[first][: place.col_offset] + text + lines[last][place.end_col_offset :]]


def finished(notebook: Notebook, known: Mapping[str, Any]) -> Notebook:
    """An executed notebook without times, its ``@name@`` words replaced by the values of this run.

    Raises
    ------
    DomainError
        If a word names nothing in ``known``.
    """
    metadata = {name: value for name, value in notebook["metadata"].items() if name != "papermill"}
    return notebook | {"metadata": metadata, "cells": [_finished_cell(cell, known) for cell in notebook["cells"]]}


def _finished_cell(cell: dict[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: value for name, value in cell["metadata"].items() if name not in ("papermill", "execution")}
    metadata = _filled(metadata, known)
    # papermill tags the cells it has passed; the tag is no part of the page.
    source = _filled(cell["source"], known) if cell["cell_type"] == "markdown" else cell["source"]
    return cell | {"metadata": metadata, "source": source}


def _filled(part: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(part, str):
        return _TOKEN.sub(lambda found: _shown(found.group(1), known), part)
    if isinstance(part, Mapping):
        return {name: _filled(value, known) for name, value in part.items()}
    return [_filled(value, known) for value in part] if isinstance(part, list) else part


def _shown(name: str, known: Mapping[str, Any]) -> str:
    if name not in known:
        raise DomainError(
            f"@{name}@ in a text must be a parameter or a result of the notebook: {', '.join(sorted(known))}"
        )
    value = known[name]
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value >= _GROUPED_FROM else str(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(_shown(name, {name: one}) for one in value) if isinstance(value, list) else str(value)


def tokens(notebook: Notebook) -> Iterator[str]:
    """The names of the ``@name@`` words in the notebook's texts and captions."""
    for cell in notebook["cells"]:
        text = json.dumps(cell["metadata"]) + (cell["source"] if cell["cell_type"] == "markdown" else "")
        yield from (found.group(1) for found in _TOKEN.finditer(text))
