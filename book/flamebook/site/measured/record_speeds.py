"""Speeds on the page on speed and cost, measured by the programs in ``tests/speed`` on an idle core: minutes."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from flamebook.places import ROOT
from flamebook.runs import inputs
from flamebook.runs.record import Part, Recording, by_first_column

TABLE = "benchmarks.csv"
PREFIX = "test_bench_"


def parts() -> dict[str, Part]:
    """The programs, by their subjects."""
    return {
        _subject(path): Part(partial(measured, path), partial(inputs.of_code, path.read_text("utf-8"), ROOT, [path]))
        for path in sorted((ROOT / "tests" / "speed").glob(f"{PREFIX}*.py"))
    }


def _subject(path: Path) -> str:
    return path.stem.removeprefix(PREFIX).replace("_", " ")


def measured(path: Path) -> dict[str, Any]:
    """What pytest-benchmark finds."""
    with tempfile.TemporaryDirectory() as desk:
        report = Path(desk) / "report.json"
        words = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", str(path), f"--benchmark-json={report}"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stdout.strip().rpartition("\n")[2])
        return {"rows": sorted(rows(json.loads(report.read_text(encoding="utf-8"))))}


def rows(report: dict[str, Any]) -> Iterator[list[str]]:
    """Subject, what was measured, median, rounds and machine of everything that a report of pytest-benchmark tells."""
    processor = report["machine_info"].get("cpu", {}).get("brand_raw", "unknown processor")
    machine = f"{processor}, Python {report['machine_info']['python_version']}"
    for one in report["benchmarks"]:
        what = one["name"].removeprefix("test_").replace("_", " ")
        told = [_seconds(one["stats"]["median"]), str(one["stats"]["rounds"]), machine]
        yield [_subject(Path(one["fullname"].split("::")[0])), what, *told]


def _seconds(value: float) -> str:
    """A time in the unit that suits it.

    >>> _seconds(0.00213)
    '2.13 ms'
    """
    unit, factor = next(
        ((unit, factor) for unit, factor in (("s", 1.0), ("ms", 1e3)) if value * factor >= 1), ("us", 1e6)
    )
    return f"{value * factor:.3g} {unit}"


HEADER = ("subject", "what", "median", "rounds", "machine")
RECORDING = Recording(TABLE, parts, HEADER, taken_apart=partial(by_first_column, TABLE))
