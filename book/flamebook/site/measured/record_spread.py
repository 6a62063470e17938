"""Every notebook with a seed, run at five seeds: an hour on one core."""

import ast
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from flamebook.places import ROOT
from flamebook.runs import execute, inputs, notebook, own, schedule
from flamebook.runs.execute import Run
from flamebook.runs.record import Part, Recording, Results, by_first_column
from flamebook.site.measured.spread import HEADER, RUNS, STEP, TABLE, Headline

PROFILE = "quick"


def with_seed(root: Path = ROOT) -> dict[str, Run]:
    """The notebooks that have a seed, at the sizes of the pages."""
    return {name: run for name, run in schedule.plan(root, PROFILE).runs.items() if "seed" in run.parameters}


def parts() -> dict[str, Part]:
    """Every notebook at all seeds."""
    return {
        name: Part(partial(measured, run), partial(inputs.digests, run.template, run.root), run.parameters)
        for name, run in with_seed().items()
    }


def measured(run: Run) -> dict[str, Any]:
    """The headlines of a notebook at all seeds; a check of the notebook that fails at one of them is a fault."""
    name, first = run.template.stem, run.parameters["seed"]
    found = [_at(run, first + STEP * k) for k in range(RUNS)]
    calls = headlines(notebook.code(notebook.read(run.template)))
    values = {key: tuple(one[key] for one in found) for key in sorted(found[0])}
    known = [Headline(name, key, drawn(key, calls), first, of) for key, of in values.items()]
    return {"rows": [list(map(str, one.row())) for one in known]}


def _at(run: Run, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as desk:
        execute.execute(run.template, Path(desk) / "run", run.parameters | {"seed": seed})
        return own.read_results(Path(desk) / "run")


def told(_: Results) -> dict[str, Any]:
    """Sizes, seeds and data sets."""
    return {"profile": PROFILE, "runs": RUNS, "step": STEP, "data_sets": inputs.listing()}


# --- which headlines the seed goes into ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A call of ``record_result``: the names it may use, as a pattern, and whether the seed goes into the value."""

    pattern: str
    drawn: bool


def drawn(name: str, calls: Sequence[Call]) -> bool:
    """Whether the seed goes into the headline of this name, by the closest pattern."""
    fitting = [one for one in calls if re.fullmatch(one.pattern, name)]
    return max(fitting, key=lambda one: len(one.pattern)).drawn


def headlines(code: str) -> list[Call]:
    """The headlines that a notebook's code records, read from the code: a value that uses a drawn name is drawn.

    Examples
    --------
    >>> code = "a = f(seed)\\nb = 2\\npresent.record_result('share', a.share)\\npresent.record_result('size', b)"
    >>> [(one.pattern, one.drawn) for one in headlines(code)]
    [('share', True), ('size', False)]
    """
    return list(_read(ast.parse(code).body, {"seed"}))


def _read(lines: Collection[ast.stmt], random: set[str]) -> Iterator[Call]:
    for line in lines:
        if isinstance(line, ast.For):
            yield from _loop(line, random)
        elif isinstance(line, ast.Assign):
            _assign(line.targets, line.value, random)
        elif isinstance(line, ast.Expr) and ast.unparse(line.value).startswith("present.record_result("):
            name, value = line.value.args  # type: ignore[attr-defined]
            yield Call(_pattern(name), _uses(value, random))


def _loop(line: ast.For, random: set[str]) -> Iterator[Call]:
    """A loop over the items of a dictionary that is written out records each of them for itself."""
    written = next((node for node in ast.walk(line.iter) if isinstance(node, ast.Dict)), None)
    if written:
        pairs = zip(written.keys, written.values, strict=True)
        yield from (Call(_pattern(key), _uses(value, random)) for key, value in pairs if key)
    else:
        _assign([line.target], line.iter, random)
        yield from _read(line.body, random)


def _assign(targets: Collection[ast.expr], value: ast.expr, random: set[str]) -> None:
    names = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    (random.update if _uses(value, random) else random.difference_update)(names)


def _uses(value: ast.AST, random: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in random for node in ast.walk(value))


def _pattern(name: ast.expr) -> str:
    if isinstance(name, ast.Constant):
        return re.escape(str(name.value))
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    return "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts)


RECORDING = Recording(TABLE.name, parts, HEADER, told, partial(by_first_column, TABLE.name))
