"""What stands at the top of the page of an own run: what was changed, both runs' numbers, command, receipt, way back.

It is written in MyST, so that the book's builder and the plain notebook make of it what they make of any text.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flamebook.statements import SENTENCES, pretty

OPENED = (":::{admonition} A run of your own", ":class: note fl-own")
# Versions that the page names; the receipt has all.
NAMED = {"flamelib": "flamelib", "python": "Python", "numpy": "NumPy", "scipy": "SciPy", "torch": "PyTorch"}


@dataclass(frozen=True, slots=True)
class Run:
    """A run in a folder: the values of its parameters and what it recorded."""

    folder: Path
    receipt: Mapping[str, Any]
    results: Mapping[str, Any]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Every parameter with the value used."""
        found: Mapping[str, Any] = self.receipt["parameters"]
        return found


def read(folder: Path) -> Run | None:
    """The run in a folder; ``None`` where there is none that can be read."""
    try:
        receipt = json.loads((folder / "receipt.json").read_text(encoding="utf-8"))
        results = folder / "results.json"
        found = json.loads(results.read_text(encoding="utf-8")) if results.is_file() else {}
        return Run(folder, receipt | {"parameters": dict(receipt["parameters"])}, dict(found))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def of_the_book(root: Path, name: str) -> Run | None:
    """The book's own run of a notebook: of the book that was built in a checkout, else of its folder of runs."""
    return read(root / "_build" / "html" / "files" / name) or read(root / "_build" / "runs" / name)


def head(own: Run, book: Run | None, defaults: Mapping[str, Any], back: str) -> str:
    """The block, in MyST.

    Parameters
    ----------
    own : Run
        The run that the page shows.
    book : Run or None
        The book's run of the same notebook, if it is at hand.
    defaults : mapping
        The values that the command takes for what it is not told.
    back : str
        A sentence that leads to the page of the book; empty where it is not at hand.
    """
    again = command(str(own.receipt["notebook"]), own.parameters, defaults)
    lacking = [f"**Made without the data**: {code(one)}." for one in own.receipt.get("stand_ins", {}).values()]
    lines = [*_changed(own, book, defaults), "", *_compared(own, book), "", f"Make this page again: {code(again)}", ""]
    lines += [line for one in lacking for line in (one, "")]
    return "\n".join([*OPENED, "", *lines, _receipt(own), "", back, ":::"])


def _changed(own: Run, book: Run | None, defaults: Mapping[str, Any]) -> Iterator[str]:
    before, whose = (book.parameters, "the book's") if book else (defaults, "the notebook's")
    rows = [
        (code(name), code(_word(before[name])) if name in before else "", code(_word(value)))
        for name, value in own.parameters.items()
        if before.get(name) != value
    ]
    if rows:
        yield from _table(["changed", whose, "yours"], rows)
        yield from ("", SENTENCES)
    else:
        yield f"Nothing was changed: every parameter has {'the book' if book else 'the notebook'}'s value."


def _compared(own: Run, book: Run | None) -> Iterator[str]:
    """Results that differ, side by side, and which do not."""
    if book is None:
        yield "The book's own run is not at hand here, so that nothing stands beside these numbers."
        return
    names = sorted({*own.results, *book.results})
    moved = [name for name in names if own.results.get(name) != book.results.get(name)]
    if moved:
        rows = [[code(name), *(_number(run.results, name) for run in (book, own))] for name in moved]
        yield from _table(["result", "the book's", "yours"], rows)
        yield ""
    if equal := [code(name) for name in names if name not in moved]:
        yield f"Equal to the book's: {', '.join(equal)}."


def _number(results: Mapping[str, Any], name: str) -> str:
    if name not in results:
        return "not computed"
    return code(results[name]) if isinstance(results[name], str) else pretty(results[name])


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|" + " --- |" * len(header)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def code(text: Any) -> str:
    """A text that somebody typed, as code: nothing in it is markup.

    >>> code("a|b"), code("a`b"), code("")
    ('`a\\\\|b`', '`` a`b ``', '')
    """
    plain = re.sub(r"[\s\x00-\x1f]+", " ", str(text)).strip().replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", plain)), default=0) + 1)
    space = " " if "`" in plain else ""
    return f"{fence}{space}{plain}{space}{fence}" if plain else ""


def command(name: str, parameters: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """The command that makes the run again.

    >>> command("survey", {"epsilon": 0.5, "seed": 1, "sizes": [1, 2]}, {"epsilon": 1.0, "seed": 1, "sizes": [1]})
    'flamelib run survey -p epsilon=0.5 -p sizes=1,2'
    """
    changed = {key: value for key, value in parameters.items() if value != defaults.get(key)}
    given = [f"-p {shlex.quote(f'{key}={_word(value)}')}" for key, value in changed.items()]
    return " ".join(["flamelib run", name, *given])


def _word(value: Any) -> str:
    """A value as the command takes it."""
    if isinstance(value, list):
        return ",".join(map(_word, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _receipt(own: Run) -> str:
    versions = own.receipt["versions"]
    named = ", ".join(f"{name} {versions[key]}" for key, name in NAMED.items() if versions.get(key))
    lacking = own.receipt.get("stand_ins", {})
    read = [name for name in own.parameters if name.endswith("dataset") and name not in lacking]
    data = ", ".join(code(Path(own.parameters[name]).name) for name in read)
    parts = [f"{own.receipt['seconds']:.0f} s", named, f"data: {data}" if data else ""]
    seed = own.receipt["seed"]
    return f"Receipt: {'; '.join([*filter(None, parts), *([f'seed {seed}'] if seed is not None else [])])}."
