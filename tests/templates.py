"""A notebook written for a test: a text, the cell of parameters, then cells of code."""

from typing import Any

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def notebook(parameters: str | list[str], *sources: str | tuple[str, dict[str, Any]], text: str = "# Page") -> Any:
    """The template; a cell of code may bring its metadata."""
    first = {"cell_type": "markdown", "id": "text", "metadata": {}, "source": text}
    code = [(parameters, {"tags": ["parameters"]}), *(one if isinstance(one, tuple) else (one, {}) for one in sources)]
    blank = {"cell_type": "code", "outputs": [], "execution_count": None}
    cells = [{"id": f"code-{i}", **blank, "source": one, "metadata": told} for i, (one, told) in enumerate(code)]
    return {"cells": [first, *cells], "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}
