"""The page "Run status", from the receipts: what ran, from what, how long, and what the machine measured."""

import ast
import csv
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from flamebook.places import RESULTS, ROOT
from flamebook.runs.execute import RECEIPT, Receipt, receipt_of

BENCHMARKS = RESULTS / "benchmarks.csv"

# Times differ from build to build; the search index of the book should not.
_HEAD = """\
---
nosearch: true
---

# Run status

Every page with figures is a notebook that was executed from nothing for this book.
Its receipt says from what: the digests of the template, of every module it imports and of every file it reads
(the last column below leads to them), the parameters, the seed and the versions. A run whose receipt still holds is not
repeated.
How far the numbers move with the seed is a {doc}`page of its own <spread>`.
"""


def page(runs_folder: Path, benchmarks: Path = BENCHMARKS) -> str:
    """The page in MyST, from the receipts under ``runs_folder`` and the recorded speeds.

    Times differ from build to build; everything else on the page is decided by the inputs.
    """
    receipts = [found for path in sorted(runs_folder.glob(f"*/{RECEIPT}")) if (found := receipt_of(path.parent))]
    parts = [_HEAD, _runs(receipts), _versions(receipts), *(_one(receipt) for receipt in receipts)]
    return "\n".join([*parts, _house(ROOT), _speeds(benchmarks)])


def _house(root: Path) -> str:
    """How large the library and the book's program are, counted from the sources."""
    rows = []
    for name, folder in (("flamelib", root / "flamelib"), ("flamebook", root / "book" / "flamebook")):
        sizes = [_size(path) for path in folder.rglob("*.py")]
        rooms = [folder, *(path for path in folder.rglob("*") if path.is_dir() and path.name != "__pycache__")]
        entries = max(sum(1 for one in room.iterdir() if not one.name.startswith("__")) for room in rooms)
        rows.append(
            f"| `{name}` | {len(sizes)} | {sum(a for a, _ in sizes)} | {sum(b for _, b in sizes)} | {entries} |"
        )
    head = ["| package | files | lines | lines of code | entries of its largest folder |", "|---|--:|--:|--:|--:|"]
    told = "Lines of code leave out docstrings, comments and blank lines."
    return "\n".join(["## How large the code is", "", *head, *rows, "", told, ""])


def _size(path: Path) -> tuple[int, int]:
    """All lines, and those that hold code."""
    text = path.read_text(encoding="utf-8")
    holders = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef))
    spoken = [node.body[0] for node in holders if ast.get_docstring(node) is not None]
    silent = {line for one in spoken for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}
    lines = text.splitlines()
    kept = [one for i, one in enumerate(lines, 1) if i not in silent and one.strip() and one.strip()[0] != "#"]
    return len(lines), len(kept)


def _runs(receipts: list[Receipt]) -> str:
    rows = [
        f"| {_link(receipt)} | {receipt.seconds:.1f} | {receipt.peak_memory_mb:.0f} | {_seed(receipt)} "
        f'| {len(receipt.inputs)} | <a href="../files/{receipt.notebook}/{RECEIPT}">receipt</a> |'
        for receipt in receipts
    ]
    total = f"| all | {sum(receipt.seconds for receipt in receipts):.1f} | | | | |"
    head = ["| notebook | seconds | peak memory, MB | seed | inputs | digests |", "|---|--:|--:|--:|--:|---|"]
    return "\n".join(["## Runs", "", *head, *rows, total, ""])


def _link(receipt: Receipt) -> str:
    return f"{{doc}}`{receipt.notebook} <../notebooks/{receipt.notebook}>`"


def _seed(receipt: Receipt) -> str:
    return "none" if receipt.seed is None else str(receipt.seed)


def _versions(receipts: list[Receipt]) -> str:
    if not receipts:
        return ""
    rows = [f"| {name} | {version} |" for name, version in receipts[0].versions.items()]
    return "\n".join(["## Versions", "", "| package | version |", "|---|---|", *rows, ""])


def _one(receipt: Receipt) -> str:
    parameters = [f"| `{name}` | {value} |" for name, value in receipt.parameters.items()]
    head = [f":::{{dropdown}} {receipt.notebook}: parameters", "", "| parameter | value |", "|---|---|"]
    return "\n".join([*head, *parameters, ":::", ""])


def _speeds(benchmarks: Path) -> str:
    """One folded table per subject, the machine above them all."""
    if not benchmarks.is_file():
        return ""
    with benchmarks.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    machines = "; ".join(dict.fromkeys(row["machine"] for row in rows))
    told = f"Recorded by `make bench`: the median of several rounds. Measured on: {machines}."
    return "\n".join(["## Speed", "", told, "", *(_subject(*one) for one in groupby(rows, itemgetter("subject")))])


def _subject(name: str, rows: Iterable[dict[str, str]]) -> str:
    lines = [f"| {row['what']} | {row['median']} | {row['rounds']} |" for row in rows]
    head = ["| what | median | rounds |", "|---|--:|--:|"]
    return "\n".join([f":::{{dropdown}} {name}: {len(lines)} measured", "", *head, *lines, ":::", ""])
