"""The page "Run status", from the receipts: what ran, from what, how long, and what the machine measured."""

import csv
import json
import sys
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from flamebook.runs.execute import RECEIPT, Receipt, receipt_of

BENCHMARKS = Path(__file__).parents[2] / "data" / "results" / "benchmarks.csv"

# Times differ from build to build; the search index of the book should not.
_HEAD = """\
---
nosearch: true
---

# Run status

Every page with figures is a notebook that was executed from nothing for this book.
Its receipt says from what: the digests of the template, of every module it imports and of every file it reads,
the parameters, the seed and the versions. A run whose receipt still holds is not repeated.
How far the numbers move with the seed is a {doc}`page of its own <spread>`.
"""


def status_page(runs_folder: Path, benchmarks: Path = BENCHMARKS) -> str:
    """The page in MyST, from the receipts under ``runs_folder`` and the recorded speeds.

    Times differ from build to build; everything else on the page is decided by the inputs.
    """
    receipts = [found for path in sorted(runs_folder.glob(f"*/{RECEIPT}")) if (found := receipt_of(path.parent))]
    parts = [_HEAD, _runs(receipts), _versions(receipts), *(_one(receipt) for receipt in receipts)]
    return "\n".join([*parts, _speeds(benchmarks)])


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
    digests = [f"| `{path}` | `{digest[:16]}` |" for path, digest in receipt.inputs.items()]
    return "\n".join(
        [
            f":::{{dropdown}} {receipt.notebook}: parameters and inputs",
            *["", "| parameter | value |", "|---|---|", *parameters, ""],
            *["| input | SHA-256, first 16 digits |", "|---|---|", *digests, ":::", ""],
        ]
    )


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


def record_speeds(measured: Path, benchmarks: Path = BENCHMARKS) -> None:
    """Keep the medians of a pytest-benchmark report, by subject, with the machine they were measured on.

    Subjects that the report does not speak of keep what was measured before.
    """
    report = json.loads(measured.read_text(encoding="utf-8"))
    processor = report["machine_info"].get("cpu", {}).get("brand_raw", "unknown processor")
    machine = f"{processor}, Python {report['machine_info']['python_version']}"
    fresh = [[*_told(one), machine] for one in report["benchmarks"]]
    told = {row[0] for row in fresh}
    rows = sorted(fresh + [row for row in _recorded(benchmarks) if row[0] not in told])
    benchmarks.parent.mkdir(parents=True, exist_ok=True)
    with benchmarks.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["subject", "what", "median", "rounds", "machine"], *rows])


def _recorded(benchmarks: Path) -> list[list[str]]:
    if not benchmarks.is_file():
        return []
    with benchmarks.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def _told(one: dict[str, Any]) -> tuple[str, str, str, str]:
    """Subject, what was measured, median and rounds of one benchmark; the subject is that of its file."""
    subject = Path(one["fullname"].split("::")[0]).stem.removeprefix("test_bench_").replace("_", " ")
    what = one["name"].removeprefix("test_").replace("_", " ")
    return subject, what, _seconds(one["stats"]["median"]), str(one["stats"]["rounds"])


def _seconds(value: float) -> str:
    """A time in the unit that suits it.

    >>> _seconds(0.00213)
    '2.13 ms'
    """
    unit, factor = next(
        ((unit, factor) for unit, factor in (("s", 1.0), ("ms", 1e3)) if value * factor >= 1), ("us", 1e6)
    )
    return f"{value * factor:.3g} {unit}"


if __name__ == "__main__":
    record_speeds(Path(sys.argv[1]))
