"""Run every notebook with a seed at five seeds: ``python -m flamebook.site.record_spread [NOTEBOOK ...]``.

An hour on one core.  Runs are kept in ``_build/spread`` and made again only where they are not current, and the
record in ``data/results`` is written after every notebook, so that what was stopped goes on where it was.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flamebook.places import ROOT
from flamebook.runs import execute, inputs, notebook, own, schedule
from flamebook.runs.execute import Run, RunFailed
from flamebook.runs.recorded import PACKAGES as COMMON
from flamebook.runs.recorded import revision, store
from flamebook.runs.schedule import say
from flamebook.site.spread import RUNS, STEP, TABLE, Headline, as_csv, recorded
from flamelib.core.vocabulary import known

PROFILE = "quick"
KEPT = Path("_build/spread")
PACKAGES = (*COMMON, "scikit-learn", "torch")


def with_seed(root: Path = ROOT) -> dict[str, Run]:
    """The notebooks that have a seed, at the sizes of the pages."""
    return {name: run for name, run in schedule.plan(root, PROFILE).runs.items() if "seed" in run.parameters}


def measured(run: Run, folder: Path) -> list[Headline]:
    """The headlines of a notebook at all seeds; runs in ``folder`` that are current are not made again.

    Raises
    ------
    RunFailed
        If a check of the notebook fails at one of the seeds.
    """
    first: int = run.parameters["seed"]
    found = [_at(replace(run, parameters=run.parameters | {"seed": first + STEP * k}), folder) for k in range(RUNS)]
    recording = recordings(notebook.code(notebook.read(run.template)))
    name = run.template.stem
    return [Headline(name, key, drawn(key, recording), first, tuple(one[key] for one in found)) for key in found[0]]


def _at(run: Run, folder: Path) -> dict[str, Any]:
    place = folder / run.template.stem / str(run.parameters["seed"])
    if execute.reason(run, place):
        receipt = execute.execute(run.template, place, run.parameters)
        say(f"ran      {run.template.stem}, seed {receipt.seed}, {receipt.seconds:.0f} s")
    return own.read_results(place)


def main(words: Sequence[str]) -> int:
    """Record these notebooks, or all; status 1 if one fails."""
    plan, failed = with_seed(), 0
    known(dict.fromkeys(words), dict.fromkeys(plan), (), "the notebooks with a seed")
    for name in words or plan:
        try:
            found = measured(plan[name], ROOT / KEPT)
        except RunFailed as fault:
            say(str(fault))
            failed = 1
            continue
        rest = [one for one in recorded(TABLE) if one.notebook != name and one.notebook in plan]
        text = as_csv(sorted([*rest, *found], key=lambda one: (one.notebook, one.name)))
        told = {"commit": revision(), "profile": PROFILE, "runs": RUNS, "step": STEP, "data_sets": inputs.listing()}
        store(TABLE, text, "site.record_spread", PACKAGES, **told)
    return failed


# --- which headlines the seed goes into ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recording:
    """A call of ``record_result``: the names it may use, as a pattern, and whether the seed goes into the value."""

    pattern: str
    drawn: bool


def drawn(name: str, recording: Sequence[Recording]) -> bool:
    """Whether the seed goes into the headline of this name, by the closest pattern."""
    fitting = [one for one in recording if re.fullmatch(one.pattern, name)]
    return max(fitting, key=lambda one: len(one.pattern)).drawn


def recordings(code: str) -> list[Recording]:
    """The headlines that a notebook's code records, read from the code: a value that uses a drawn name is drawn.

    Examples
    --------
    >>> code = "a = f(seed)\\nb = 2\\npresent.record_result('share', a.share)\\npresent.record_result('size', b)"
    >>> [(one.pattern, one.drawn) for one in recordings(code)]
    [('share', True), ('size', False)]
    """
    return list(_read(ast.parse(code).body, {"seed"}))


def _read(lines: Collection[ast.stmt], random: set[str]) -> Iterator[Recording]:
    for line in lines:
        if isinstance(line, ast.For):
            yield from _loop(line, random)
        elif isinstance(line, ast.Assign):
            _assign(line.targets, line.value, random)
        elif isinstance(line, ast.Expr) and ast.unparse(line.value).startswith("present.record_result("):
            name, value = line.value.args  # type: ignore[attr-defined]
            yield Recording(_pattern(name), _uses(value, random))


def _loop(line: ast.For, random: set[str]) -> Iterator[Recording]:
    """A loop over the items of a dictionary that is written out records each of them for itself."""
    written = next((node for node in ast.walk(line.iter) if isinstance(node, ast.Dict)), None)
    if written:
        pairs = zip(written.keys, written.values, strict=True)
        yield from (Recording(_pattern(key), _uses(value, random)) for key, value in pairs if key)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
