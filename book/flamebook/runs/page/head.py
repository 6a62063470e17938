"""What stands at the top of the page of an own run: what was changed, both runs' numbers, command, receipt, way back.

It is written in MyST, so that the book's builder and the plain notebook make of it what they make of any text.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flamebook.runs.execute import RESULTS, Receipt, receipt_of
from flamebook.statements import SENTENCES, argument, pretty

OPENED = (":::{admonition} A run of your own", ":class: note fl-own")
# Versions that the page names; the receipt has all.
NAMED = {"flamelib": "flamelib", "python": "Python", "numpy": "NumPy", "scipy": "SciPy", "torch": "PyTorch"}


class Run(NamedTuple):
    """A run in a folder: its receipt, and what it recorded."""

    folder: Path
    receipt: Receipt
    results: Mapping[str, Any]


def read(folder: Path) -> Run | None:
    """The run in a folder; ``None`` where there is none that can be read."""
    receipt, results = receipt_of(folder), folder / RESULTS
    found = json.loads(results.read_text(encoding="utf-8")) if results.is_file() else {}
    return Run(folder, receipt, found) if receipt else None


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
    again = command(own.receipt.notebook, own.receipt.parameters, defaults)
    lacking = [f"**Made without the data**: {code(one)}." for one in own.receipt.stand_ins.values()]
    lines = [*_changed(own, book, defaults), "", *_compared(own, book), "", f"Make this page again: {code(again)}", ""]
    lines += [line for one in lacking for line in (one, "")]
    return "\n".join([*OPENED, "", *lines, _receipt(own.receipt), "", back, ":::"])


def _changed(own: Run, book: Run | None, defaults: Mapping[str, Any]) -> Iterator[str]:
    before, whose = (book.receipt.parameters, "the book's") if book else (defaults, "the notebook's")
    rows = [
        (code(name), code(argument(before[name])) if name in before else "", code(argument(value)))
        for name, value in own.receipt.parameters.items()
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
    given = [f"-p {shlex.quote(f'{key}={argument(value)}')}" for key, value in changed.items()]
    return " ".join(["flamelib run", name, *given])


def _receipt(receipt: Receipt) -> str:
    named = ", ".join(f"{name} {receipt.versions[key]}" for key, name in NAMED.items() if receipt.versions.get(key))
    read = [name for name in receipt.parameters if name.endswith("dataset") and name not in receipt.stand_ins]
    data = ", ".join(code(Path(receipt.parameters[name]).name) for name in read)
    parts = [f"{receipt.seconds:.0f} s", named, f"data: {data}" if data else ""]
    parts += [f"seed {receipt.seed}"] if receipt.seed is not None else []
    return f"Receipt: {'; '.join(filter(None, parts))}."
