"""The recorder: results of long runs, made part by part and put together, by ``flamelib record``.

A module that assigns a :class:`Recording` to ``RECORDING`` has declared it; nothing else lists it.  Each part is kept
under ``_build/recordings`` with what it was made from, by content, and is made again only where that has changed: what
was killed goes on where it was.  The table in ``data/results`` is written when all parts are there.
"""

import csv
import json
import textwrap
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from graphlib import TopologicalSorter
from importlib import import_module
from itertools import chain
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import Any

from flamebook.places import RESULTS, ROOT
from flamebook.records import to_csv
from flamebook.runs import files, inputs
from flamebook.runs.recorded import PACKAGES, revision, versions
from flamelib.core.vocabulary import DomainError, meant

KEPT = ROOT / "_build" / "recordings"
Results = Mapping[str, Any]
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a recording.

    Attributes
    ----------
    make : callable
        Computes the result: what JSON holds, with numbers and arrays of numpy where it has some.
    reads : callable, optional
        Path to digest, of what the result depends on; the imports of the module with the recording by default.
    given : object
        Parameters that are in none of these files.
    """

    make: Callable[[], Any]
    reads: Callable[[], Mapping[str, str]] | None = None
    given: Any = None


@dataclass(frozen=True, slots=True)
class Recording:
    """What is recorded, and of which parts it is put together.

    Attributes
    ----------
    table : str
        The file in ``data/results``.  A ``.csv`` holds the ``rows`` of all parts, and a ``.json`` of the same name how
        it came about; a ``.json`` says so itself.
    parts : callable
        The parts by their names, in order; asked for when they are needed.
    header : sequence of str
        Of a ``.csv``.
    told : callable
        From the results, by the names of the parts, to what the ``.json`` holds beside how it came about; nothing.
    taken_apart : callable
        The results as the table has them: then one part can be made anew where no other is kept.
    indent : int or None
        Of the ``.json``; none puts it on one line.
    """

    table: str
    parts: Callable[[], Mapping[str, Part]]
    header: Sequence[str] = ()
    told: Callable[[Results], dict[str, Any]] = lambda _: {}
    taken_apart: Callable[[], Results] = dict
    indent: int | None = 1

    @property
    def name(self) -> str:
        """That of the table, without its ending."""
        return Path(self.table).stem


@dataclass(frozen=True, slots=True)
class Made:
    """A part as it is kept: the result; when, from which commit and in how many seconds it was made, and from what."""

    result: Any
    when: str
    commit: str
    seconds: float
    made_from: dict[str, str]


def by_first_column(table: str) -> Results:
    """The results of parts that the first column of a table names."""
    found: dict[str, dict[str, list[list[str]]]] = {}
    with (RESULTS / table).open(encoding="utf-8", newline="") as file:
        for row in list(csv.reader(file))[1:]:
            found.setdefault(row[0], {"rows": []})["rows"].append(row)
    return found


def find() -> dict[str, Recording]:
    """Every recording by its name: the sources are read for those that declare one."""
    package = Path(__file__).resolve().parents[1]
    paths = [path for path in sorted(package.rglob("*.py")) if "\nRECORDING = " in path.read_text(encoding="utf-8")]
    modules = [".".join((package.name, *path.relative_to(package).with_suffix("").parts)) for path in paths]
    found: list[Recording] = [import_module(module).RECORDING for module in modules]
    return {one.name: one for one in sorted(found, key=attrgetter("name"))}


def main(words: Sequence[str] = (), again: bool = False, listed: bool = False, say: Say = print) -> int:
    """Record what these words name, or everything; status 1 if a part fails.

    Parameters
    ----------
    words : sequence of str
        Names of recordings, or ``NAME/PART`` for some of their parts.
    again : bool
        Make parts that are current, too.
    listed : bool
        Only say which parts are current, and when and in how many seconds the tables were recorded.
    say : callable
        Takes a line of progress.

    Raises
    ------
    DomainError
        If a word names nothing, or git does not tell the commit.
    """
    if not listed:
        revision()  # refuses before the work where it cannot be told
    found = find()
    chosen = _chosen(found, words)
    if listed:
        for name in chosen:
            for line in _listed(found[name]):
                say(line)
        return 0
    done = [record(found[name], chosen[name], again, say) for name in _ordered(found, chosen)]
    return 0 if all(done) else 1


def _chosen(found: Mapping[str, Recording], words: Sequence[str]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    for word in words or found:
        name, _, start = word.partition("/")
        if name not in found:
            raise DomainError(f"name must be one of {', '.join(found)}, got {name!r}{meant(name, found)}")
        parts = list(found[name].parts())
        fitting = [part for part in parts if not start or f"{part}/".startswith(f"{start}/")]
        if not fitting:
            raise DomainError(f"part must be one of {', '.join(parts)} of {name}, got {start!r}{meant(start, parts)}")
        chosen[name] = [part for part in parts if part in {*chosen.get(name, ()), *fitting}]
    return chosen


def _ordered(found: Mapping[str, Recording], names: Iterable[str]) -> list[str]:
    """These names, each after those whose tables it reads."""
    tables = {f"data/results/{found[name].table}": name for name in names}
    read = {name: {path for used in _used(found[name]).values() for path in used} for name in names}
    arrows = {name: [tables[path] for path in sorted(paths & tables.keys())] for name, paths in read.items()}
    return list(TopologicalSorter(arrows).static_order())


def record(recording: Recording, chosen: Sequence[str] | None = None, again: bool = False, say: Say = print) -> bool:
    """Make the chosen parts, or all, where they are not current, and write the table; whether none failed.

    The table stays as it was if a part fails, or if one that was not chosen is neither current nor in the table.
    """
    name, parts, used = recording.name, recording.parts(), _used(recording)
    why = {part: _reason(recording, part, used[part]) for part in parts}
    due = [part for part in (parts if chosen is None else chosen) if again or why[part]]
    failed = 0
    for count, part in enumerate(due, 1):
        if fault := _fault(partial(_make, recording, part, parts[part], used[part]), KEPT / name / f"{part}.log"):
            failed += 1
            say(f"failed   {name}/{part}: {fault}")
        else:
            why[part] = ""
            say(f"made     {name}/{part} ({count} of {len(due)})")
    made = {part: one for part in parts if not why[part] and (one := _kept(recording, part))}
    missing = parts.keys() - made.keys()
    old = recording.taken_apart() if missing and (RESULTS / recording.table).is_file() else {}
    if failed or not made or missing - old.keys():
        say(f"left     {recording.table} as it was: {len(missing)} of its {len(parts)} parts are not current")
        return not failed
    results = {part: made[part].result if part in made else old[part] for part in parts}
    fault = _fault(partial(_write, recording, results, made), KEPT / f"{name}.log")
    say(f"failed   {name}: {fault}" if fault else f"wrote    {RESULTS / recording.table}")
    return not fault


def _fault(do: Callable[[], None], log: Path) -> str:
    """What went wrong, in one sentence; empty if nothing did.  Whatever it was, other work does not depend on it."""
    try:
        do()
    except Exception as fault:
        files.write(log, traceback.format_exc())
        return f"{' '.join(str(fault).split())} ({type(fault).__name__}, more in {log})"
    return ""


def _kept(recording: Recording, part: str) -> Made | None:
    try:
        return Made(**json.loads((KEPT / recording.name / f"{part}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _used(recording: Recording) -> dict[str, dict[str, str]]:
    """What each part would be made from now: files, parameters and versions, but not the table itself."""
    own, told = f"data/results/{recording.name}.", versions(PACKAGES)
    code = f"import {recording.parts.__module__}"
    found = {}
    for name, part in recording.parts().items():
        used = part.reads() if part.reads else inputs.of_code(code, ROOT)
        found[name] = {path: digest for path, digest in used.items() if not path.startswith(own)} | told
        if part.given is not None:
            found[name]["parameters"] = json.dumps(part.given)
    return found


def _reason(recording: Recording, part: str, used: dict[str, str]) -> str:
    """Why a part is not current, in a few words; empty where it is."""
    made = _kept(recording, part)
    return inputs.differing((made.made_from, used)) if made else "not made yet"


def _make(recording: Recording, name: str, part: Part, used: dict[str, str]) -> None:
    """Make a part and keep it."""
    commit, started = revision(), time.perf_counter()
    result = part.make()
    seconds = round(time.perf_counter() - started, 2)
    made = Made(result, datetime.now(UTC).isoformat(timespec="seconds"), commit, seconds, used)
    text = json.dumps(asdict(made), default=methodcaller("tolist"))
    files.write(KEPT / recording.name / f"{name}.json", text + "\n")


def _write(recording: Recording, results: Results, made: Mapping[str, Made]) -> None:
    """Write the table and how it came about: all of it follows from the parts."""
    newest = max(made.values(), key=attrgetter("when"))
    about: dict[str, Any] = {"date": newest.when[:10], "command": f"flamelib record {recording.name}"}
    about["commit"] = newest.commit
    about |= {"seconds": round(sum(one.seconds for one in made.values()))} if len(made) == len(results) else {}
    about |= {"versions": versions(PACKAGES)} | recording.told(results)
    table = RESULTS / recording.table
    if recording.header:
        rows = chain.from_iterable(one["rows"] for one in results.values())
        files.write(table, to_csv(recording.header, rows))
        about |= {"sha256": {table.name: inputs.sha256(table)}}
    files.write(table.with_suffix(".json"), json.dumps(about, indent=recording.indent, ensure_ascii=False) + "\n")


def _listed(recording: Recording) -> Iterator[str]:
    why = {part: _reason(recording, part, used) for part, used in _used(recording).items()}
    path = (RESULTS / recording.table).with_suffix(".json")
    about = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    told = f"recorded {about['date']}" if about else "never recorded"
    told += f" in {about['seconds']} s" if "seconds" in about else ""
    yield f"{recording.name}: {told}; {list(why.values()).count('')} of {len(why)} parts are current"
    for words in dict.fromkeys(why.values()):
        parts = [part for part in why if why[part] == words]
        told = f"  {words or 'current'}: {', '.join(parts)}"
        yield textwrap.fill(told, 116, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
