"""The text of a notebook: what it may be asked, and what is done to it before and after it is executed.

A notebook declares its parameters in the code cell tagged ``parameters``, one a line, as
``name: type = default  # help``.  Names of the vocabulary have its domain; others are checked by type.

Before a run its values are written into that cell (no second, injected cell).  After it papermill's times are dropped,
so that equal inputs give equal bytes.  Standard library only, so that a refusal comes at once.
"""

import ast
import functools
import hashlib
import html
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from flamebook.places import ROOT
from flamebook.runs import domain
from flamelib.core.vocabulary import LARGEST_WHOLE, VOCABULARY, Domain, DomainError, known, meant

Notebook = dict[str, Any]


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


def going_on(notebook: Notebook) -> Notebook:
    """The notebook with every cell marked so that an error in it does not stop those behind it."""
    return notebook | {"cells": [_with_tags(cell, [*_tags(cell), _GO_ON]) for cell in notebook["cells"]]}


def faults_told(executed: Notebook, template: Notebook) -> tuple[Notebook, list[str]]:
    """A notebook that went on, with a sentence in place of every error, and those that were no mere consequence.

    Parameters
    ----------
    executed : dict
        What was left by papermill, whose own cells about an error are dropped.
    template : dict
        The same before it was marked by :func:`going_on`.
    """
    ours = {cell["id"]: cell for cell in template["cells"]}
    cells, faults, lacking = list[dict[str, Any]](), list[str](), False
    for cell in executed["cells"]:
        if cell["id"] not in ours:
            continue
        cell = _with_tags(cell, _tags(ours[cell["id"]]))
        errors = [one for one in cell.get("outputs", ()) if one["output_type"] == "error"]
        if errors:
            name, words = errors[0]["ename"], errors[0]["evalue"]
            if lacking and name == "NameError":
                sentence = "This needs what a cell above does not have."
            else:
                sentence = f"Not made: {name}: {words}"
                faults.append(f"{name}: {words}")
            lacking = True
            kept = [one for one in cell["outputs"] if one["output_type"] not in ("error", "stream")]
            # A cell that made no figure has no caption either; references to it are left without a number.
            metadata = {name: value for name, value in cell["metadata"].items() if name != "mystnb"}
            cell |= {"metadata": metadata, "outputs": [*kept, _sentence(sentence)]}
        cells.append(cell)
    return executed | {"cells": cells}, faults


_GO_ON = "raises-exception"


def _tags(cell: Mapping[str, Any]) -> list[str]:
    return list(cell["metadata"].get("tags", ()))


def _with_tags(cell: dict[str, Any], tags: list[str]) -> dict[str, Any]:
    metadata = {name: value for name, value in cell["metadata"].items() if name != "tags"}
    return cell | {"metadata": metadata | ({"tags": tags} if tags else {})}


def _sentence(text: str) -> dict[str, Any]:
    markup = f'<p class="fl-check fl-fault">\N{EN DASH} {html.escape(text)}</p>'
    return {"output_type": "display_data", "metadata": {}, "data": {"text/html": markup, "text/plain": text}}


def finished(notebook: Notebook) -> Notebook:
    """An executed notebook without the times that papermill notes in it."""

    def kept(metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in metadata.items() if name not in ("papermill", "execution")}

    cells = [cell | {"metadata": kept(cell["metadata"])} for cell in notebook["cells"]]
    return notebook | {"metadata": kept(notebook["metadata"]), "cells": cells}


_BY_TYPE = {
    "int": Domain("", whole=True, low=-LARGEST_WHOLE, high=LARGEST_WHOLE),
    "float": Domain(""),
    "bool": Domain("", choices=("true", "false")),
}
# Parameters that notebooks alone have: most are a word of the vocabulary behind a first one (of a sweep, say).
_SWEPT = ("epsilon0", "padded", "sampling_rate", "server_step", "clip_norm", "scale", "log2_modulus", "n_users")
_OWN = {
    **{f"sweep_{name}": VOCABULARY[name] for name in _SWEPT},
    "sweep_epsilon": replace(VOCABULARY["epsilon"], open_low=True, high=30),
    "sweep_repeats": VOCABULARY["repeats"],
    "small_repeats": VOCABULARY["repeats"],
    "step_seed": VOCABULARY["seed"],
    "large_epsilon0": VOCABULARY["epsilon0"],
    "slow_learning_rate": VOCABULARY["learning_rate"],
    "total_delta": VOCABULARY["slack_delta"],
}
WORDS = VOCABULARY | _OWN
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
    conditions: tuple[domain.Condition, ...] = ()

    @property
    def element(self) -> str:
        """The type of one value: ``int`` for ``list[int]``."""
        return self.kind.removeprefix("list[").removesuffix("]")

    @property
    def several(self) -> bool:
        """Whether the value is a list."""
        return self.kind.startswith("list")

    @property
    def one(self) -> Domain | None:
        """The domain of one value; ``None`` for a text of which nothing is known."""
        found = WORDS.get(self.name) or _BY_TYPE.get(self.element)
        if found and self.element == "int" and not found.whole:
            least = math.floor(found.low) + 1 if found.open_low else found.low
            found = replace(found, whole=True, low=least, open_low=False, high=min(found.high, LARGEST_WHOLE))
        return domain.narrow(found or Domain(""), self.name, self.conditions) if found or self.conditions else None

    @property
    def domain(self) -> str:
        """The domain in words, as a refusal prints it."""
        one = self.one
        words = "a text" if one is None or (self.element == "str" and not one.choices) else str(one)
        return f"a list{domain.entries(self.name, self.conditions)}, each {words}" if self.several else words

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
        one = self.one
        if self.element == "bool":
            return _BY_TYPE["bool"].accept(self.name, str(value).lower()) == "true"
        if self.element == "str":
            if not isinstance(value, str):
                raise DomainError(f"{self.name} must be a text, got {value!r}")
            value = _file_of_own(self.name, value) if self.name.endswith("dataset") else value
            return one.accept(self.name, value) if one and one.choices else value
        number = (one or Domain("")).read(self.name, value)
        return float(number) if self.element == "float" else number


def _file_of_own(name: str, value: str) -> str:
    """The name of a data set, or the whole path of a file of one's own: it is looked for from the current folder."""
    if not value.endswith(".npz"):
        return value
    path = Path(value).expanduser().resolve()
    return str(path) if path.is_file() else value


@dataclass(frozen=True, slots=True)
class Reads:
    """How a notebook reads the data set that a parameter names: by which function, and what it is given beside."""

    function: str = "load"
    given: tuple[tuple[str, Any], ...] = ()

    @property
    def want(self) -> tuple[str, ...]:
        """The arrays that it needs; empty where that cannot be told."""
        return tuple(dict(self.given).get("want", ())) if self.function == "load" else ("images", "labels")

    @property
    def parts(self) -> tuple[Literal["train", "test"], ...]:
        """The parts that it reads."""
        return ("train",) if self.function == "load" and self.want else ("train", "test")


def data_sets(notebook: Path) -> dict[str, Reads]:
    """The parameters of a notebook that name data sets, each with how it is read."""
    allowed = declared(notebook)
    found = {name: Reads() for name, one in allowed.items() if name.endswith("dataset") and one.kind == "str"}
    calls = [node for node in ast.walk(ast.parse(code(read(notebook)))) if isinstance(node, ast.Call)] if found else []
    for call in calls:
        function = ast.unparse(call.func).rpartition(".")[2]
        first = call.args[0] if call.args else None
        if function in _READERS and isinstance(first, ast.Name) and first.id in found:
            given = [(word.arg, word.value) for word in call.keywords if word.arg]
            known = ((name, ast.literal_eval(value)) for name, value in given if isinstance(value, _LITERAL))
            found[first.id] = Reads(function, tuple(known))
    return found


_READERS = ("load", "load_users", "load_records", "compute_federation")
_LITERAL = (ast.Constant, ast.Tuple, ast.List)


def _refuse_data(notebook: Path, taken: Mapping[str, Any]) -> None:
    """Refuse a data set that is not known or lacks what the notebook reads, and a file of one's own that is not fit."""
    for name, reads in data_sets(notebook).items():
        # Imported here with numpy: other refusals need not wait for it.
        from flamelib.learning import datasets

        datasets.refuse(name, taken[name], reads.want)
        if taken[name].endswith(".npz"):
            path = Path(taken[name])
            fault = _unfit(path, path.stat().st_mtime_ns, path.stat().st_size, reads)
            if fault:
                raise DomainError(f"{name} must be usable data, and {fault}")


@functools.lru_cache(maxsize=64)
def _unfit(path: Path, changed: int, size: int, reads: Reads) -> str:
    """What the function by which the notebook reads a file of one's own finds wrong with it; empty if nothing."""
    from flamelib.learning import datasets

    try:
        if reads.function in ("load_users", "compute_federation"):
            from flamelib.learning.federated import load_users

            load_users(str(path))
        elif reads.function == "load_records":
            from flamelib.learning.records import load_records

            load_records(str(path), **dict(reads.given))
        else:
            datasets.load(str(path), want=reads.want)
    except (datasets.DataError, DomainError) as fault:
        return str(fault)
    return ""


def declared(notebook: Path) -> dict[str, Declared]:
    """The parameters that a notebook declares, by name; none where no cell is tagged ``parameters``.

    Raises
    ------
    DomainError
        If the file is no notebook, or a line of the cell is not ``name: type = default``.
    """
    found = _read_cell(notebook.name, _tagged(notebook, "parameters"))
    conditions = tuple(domain.read(notebook.name, _tagged(notebook, "domain"), found))
    return {name: replace(one, conditions=conditions) for name, one in found.items()}


def _tagged(notebook: Path, tag: str) -> str:
    """The code of the first cell with a tag; empty where there is none."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        sources = [c["source"] for c in cells if c["cell_type"] == "code" and tag in c["metadata"].get("tags", ())]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        fault_name = type(fault).__name__
        raise DomainError(f"notebook must be a readable .ipynb file, got {str(notebook)!r} ({fault_name})") from None
    return "".join(sources[0]) if sources else ""


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


def refusal(notebook: Path, given: Mapping[str, Any]) -> str:
    """The sentence that refuses these values; empty where they are admissible."""
    try:
        values(notebook, given)
    except DomainError as fault:
        return str(fault)
    return ""


def values(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every declared parameter with its given value or its default.

    Raises
    ------
    DomainError
        For a name that is not declared, a value outside its domain, values that do not go together, or data that
        the notebook cannot read.
    """
    allowed = declared(notebook)
    known(given, allowed or {"no parameters": None}, (), notebook.name)
    taken = {name: one.accept(given[name]) if name in given else one.default for name, one in allowed.items()}
    _refuse_jointly(notebook, allowed, taken)
    _refuse_data(notebook, taken)
    return taken


def conditions(notebook: Path) -> list[dict[str, Any]]:
    """What joins the notebook's parameters, for a page to check; see :func:`flamebook.runs.domain.portable`."""
    allowed = declared(notebook)
    floats = [name for name, one in allowed.items() if one.element != "int"]
    return domain.portable(domain.together(domain.read(notebook.name, _tagged(notebook, "domain"), allowed)), floats)


def rules(notebook: Path) -> list[str]:
    """The same in words."""
    found = domain.read(notebook.name, _tagged(notebook, "domain"), declared(notebook))
    return [one.rule for one in domain.together(found)]


def _refuse_jointly(notebook: Path, allowed: Mapping[str, Declared], taken: Mapping[str, Any]) -> None:
    conditions = domain.read(notebook.name, _tagged(notebook, "domain"), taken)
    broken = domain.broken(conditions, taken)
    if broken is not None:
        near = _mended(conditions, allowed, taken, broken.nearest(taken))
        raise DomainError(broken.sentence(taken) + (f"; the nearest admissible value is {near}" if near else ""))


def _mended(
    conditions: list[domain.Condition],
    allowed: Mapping[str, Declared],
    taken: Mapping[str, Any],
    nearest: tuple[str, Any] | None,
) -> str:
    """``name=value`` with which all conditions hold; empty where the remedy does not reach so far."""
    if nearest is None:
        return ""
    name, value = nearest
    try:
        fitting = allowed[name].accept(value)
    except DomainError:
        return ""
    return f"{name}={typed(fitting)}" if domain.broken(conditions, {**taken, name: fitting}) is None else ""


def typed(value: Any) -> str:
    """A value as it is typed on the command line and written in a table.

    >>> [typed(value) for value in ([1, 2], True, 1e-6, 0.25, "mnist")]
    ['1,2', 'true', '1e-06', '0.25', 'mnist']
    """
    if isinstance(value, list):
        return ",".join(map(typed, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


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
    listed = ", ".join(sorted(known_notebooks)) or "none"
    raise DomainError(
        f"notebook must be a path to an .ipynb file or one of {listed}, got {name!r}{meant(name, known_notebooks)}"
    )
