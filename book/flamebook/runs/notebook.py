"""The text of a notebook: what it may be asked, and what is done to it before and after it is executed.

A notebook declares its parameters in the code cell tagged ``parameters``, one a line, as
``name: type = default  # help``.  Names of the vocabulary have its domain; others are checked by type.

Before a run its values are written into that cell (no second, injected cell).  After it, words like ``@n_users@`` in
the text and the captions become the values that were really used, and papermill's times are dropped, so that equal
inputs give equal bytes.  Standard library only, so that a refusal comes at once.
"""

import ast
import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from flamebook.places import ROOT
from flamelib.core.vocabulary import LARGEST_WHOLE, VOCABULARY, Domain, DomainError, known

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
    """The Python code of all cells, one text; lines for IPython alone do nothing in it."""
    sources = (cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    lines = (line for source in sources for line in source.splitlines())
    return "\n".join(re.sub(r"^(\s*)[%!?].*$", r"\1pass", line) for line in lines)


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
    if isinstance(value, list):
        return ", ".join(_shown(name, {name: one}) for one in value)
    return Path(value).name if str(value).endswith(".npz") else str(value)


def tokens(notebook: Notebook) -> Iterator[str]:
    """The names of the ``@name@`` words in the notebook's texts and captions."""
    for cell in notebook["cells"]:
        text = json.dumps(cell["metadata"]) + (cell["source"] if cell["cell_type"] == "markdown" else "")
        yield from (found.group(1) for found in _TOKEN.finditer(text))


_BY_TYPE = {
    "int": Domain("", whole=True, low=-LARGEST_WHOLE, high=LARGEST_WHOLE),
    "float": Domain(""),
    "bool": Domain("", choices=("true", "false")),
}
_TYPES = ("int", "float", "str", "bool", "list[int]", "list[float]", "list[str]")


@dataclass(frozen=True, slots=True)
class Declared:
    """One parameter of a notebook: name, type, default and the help text behind it.

    >>> Declared("n_users", "int", 1000, "users").accept("1e6")
    1000000
    """

    name: str
    kind: str
    default: Any
    about: str

    @property
    def element(self) -> str:
        """The type of one value: ``int`` for ``list[int]``."""
        return self.kind.removeprefix("list[").removesuffix("]")

    @property
    def several(self) -> bool:
        """Whether the value is a list."""
        return self.kind.startswith("list")

    @property
    def domain(self) -> str:
        """The domain in words, as a refusal prints it."""
        one = VOCABULARY.get(self.name) or _BY_TYPE.get(self.element) or "a text"
        return f"a list, each {one}" if self.several else str(one)

    def accept(self, value: Any) -> Any:
        """The value converted to the declared type; a refusal names the parameter and its domain.

        A list is written with commas: ``1,2,3``.
        """
        if not self.several:
            return self._accept_one(value)
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not parts:
            raise DomainError(f"{self.name} must be {self.domain}, got {value!r}")
        return [self._accept_one(part) for part in parts]

    def _accept_one(self, value: Any) -> Any:
        if self.element == "bool":
            return _BY_TYPE["bool"].accept(self.name, str(value).lower()) == "true"
        if self.element == "str":
            if not isinstance(value, str):
                raise DomainError(f"{self.name} must be a text, got {value!r}")
            value = _file_of_own(self.name, value) if self.name.endswith("dataset") else value
            return VOCABULARY[self.name].accept(self.name, value) if self.name in VOCABULARY else value
        if self.name in VOCABULARY:
            value = VOCABULARY[self.name].accept(self.name, value)
        number = _BY_TYPE[self.element].accept(self.name, value)
        return float(number) if self.element == "float" else number


def _file_of_own(name: str, value: str) -> str:
    """The name of a data set, or the whole path of a file of one's own: it is looked for from the current folder."""
    if not value.endswith(".npz"):
        return value
    path = Path(value).expanduser().resolve()
    if not path.is_file():
        raise DomainError(f"{name} must be the name of a data set, or an .npz file that exists, got {value!r}")
    return str(path)


def declared(notebook: Path) -> dict[str, Declared]:
    """The parameters that a notebook declares, by name; none where no cell is tagged ``parameters``.

    Raises
    ------
    DomainError
        If the file is no notebook, or a line of the cell is not ``name: type = default``.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        tagged = [c for c in cells if c["cell_type"] == "code" and "parameters" in c["metadata"].get("tags", ())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        fault_name = type(fault).__name__
        raise DomainError(f"notebook must be a readable .ipynb file, got {str(notebook)!r} ({fault_name})") from None
    if not tagged:
        return {}
    source = tagged[0]["source"]
    return _read_cell(notebook.name, source if isinstance(source, str) else "".join(source))


def _read_cell(where: str, source: str) -> dict[str, Declared]:
    found: dict[str, Declared] = {}
    try:
        for line in ast.parse(source).body:
            one = _read_line(line, source.splitlines())
            found[one.name] = one
    except (SyntaxError, ValueError) as fault:
        raise DomainError(f"the parameters cell of {where} must hold lines `name: type = default`: {fault}") from None
    return found


def _read_line(line: ast.stmt, source: list[str]) -> Declared:
    if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name) or line.value is None:
        raise ValueError(f"line {line.lineno} is {source[line.lineno - 1].strip()!r}")
    kind = ast.unparse(line.annotation)
    if kind not in _TYPES:
        raise ValueError(f"{line.target.id} has type {kind}, not one of {', '.join(_TYPES)}")
    comment = re.search(r"#\s*(.*)$", source[line.end_lineno - 1][line.end_col_offset :] if line.end_lineno else "")
    raw = Declared(line.target.id, kind, None, comment.group(1).strip() if comment else "")
    return Declared(raw.name, kind, raw.accept(ast.literal_eval(line.value)), raw.about)


def values(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every declared parameter with its given value or its default; refuses names it does not declare."""
    allowed = declared(notebook)
    known(given, allowed or {"no parameters": None}, (), notebook.name)
    return {name: one.accept(given[name]) if name in given else one.default for name, one in allowed.items()}


def grid(notebook: Path, given: Mapping[str, str], limit: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Names with several values, and every point of the grid; a comma separates the values of one name.

    A parameter that is itself a list is one value and is never swept.  Refuses more than ``limit`` points.
    """
    allowed = declared(notebook)
    known(given, allowed or {"no parameters": None}, (), notebook.name)
    axes = {name: [text] if allowed[name].several else text.split(",") for name, text in given.items()}
    size = 1
    for texts in axes.values():
        size *= len(texts)
    if size > limit:
        raise DomainError(f"the grid has {size} points and limit is {limit}: give fewer values, or a larger --limit")
    taken = {name: [allowed[name].accept(text) for text in texts] for name, texts in axes.items()}
    for name, accepted in taken.items():
        if len({json.dumps(value) for value in accepted}) < len(accepted):
            raise DomainError(f"{name} names a value twice: {given[name]}; every value must be {allowed[name].domain}")
    defaults = {name: one.default for name, one in allowed.items()}
    points = [defaults | dict(zip(taken, point, strict=True)) for point in product(*taken.values())]
    return [name for name, accepted in taken.items() if len(accepted) > 1], points


def digest(notebook: Path, parameters: Mapping[str, Any]) -> str:
    """Twelve hexadecimal digits that name a set of parameters of a notebook."""
    text = json.dumps([notebook.stem, dict(parameters)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def shelves() -> list[Path]:
    """Folders searched for notebooks: the checkout that flamelib is imported from, then the current folder."""
    return [folder for folder in (ROOT / "notebooks", Path.cwd() / "notebooks") if folder.is_dir()]


def locate(name: str) -> Path:
    """The notebook of this name, or at this path; a refusal lists the known ones."""
    path = Path(name)
    if path.suffix == ".ipynb" and path.is_file():
        return path.resolve()
    known_notebooks = {found.stem: found for folder in reversed(shelves()) for found in sorted(folder.glob("*.ipynb"))}
    if name in known_notebooks:
        return known_notebooks[name]
    near = difflib.get_close_matches(name, known_notebooks, n=1)
    meant = f" (near it: {near[0]})" if near else ""
    listed = ", ".join(sorted(known_notebooks)) or "none"
    raise DomainError(
        f"notebook must be a known name or a path to an .ipynb file, got {name!r}{meant}; known: {listed}"
    )
