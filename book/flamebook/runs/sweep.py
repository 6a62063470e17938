"""A grid of runs: every combination of the given values, scheduled by Snakemake, one table and one picture.

A sweep's folder holds ``sweep.json`` (the grid), ``Snakefile``, ``points/DIGEST/`` (one run each), ``sweep.csv``
and ``comparison.svg``/``.png``: every result against a swept parameter, one line for each combination of the others.
Points are named by a digest of their parameters, so a killed sweep resumes where it stopped and a larger grid in the
same folder reuses what is there.
"""

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from flamebook.figures.style import LIGHT, look
from flamebook.runs import files, notebook, own
from flamelib.core.vocabulary import DomainError

Row = Mapping[str, Any]


def draw(rows: Sequence[Row], swept: Sequence[str], measured: Sequence[str], folder: Path) -> None:
    """Write ``comparison.svg`` and ``comparison.png`` into the folder, a panel for each numeric result.

    Parameters
    ----------
    rows : sequence of mappings
        One for each point: parameters and results by name.
    swept, measured : sequence of str
        Names with several values, and names of results.
    """
    panels = [name for name in measured if any(_number(row.get(name)) is not None for row in rows)]
    columns = 1 if len(panels) < 2 else 2
    lines = -(-max(1, len(panels)) // columns)
    with look(LIGHT, "comparison"):
        figure = Figure(figsize=(5.2 * columns, 0.6 + 3.2 * lines), layout="constrained")
        FigureCanvasAgg(figure)
        axes = [ax for row in figure.subplots(lines, columns, squeeze=False) for ax in row]
        for ax, name in zip(axes, panels, strict=False):
            _panel(ax, rows, swept, name)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        if not panels:
            axes[0].text(0.5, 0.5, "the runs recorded no numbers", ha="center", transform=axes[0].transAxes)
        _legend(figure, axes)
        for form, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            figure.savefig(folder / f"comparison.{form}", format=form, facecolor=LIGHT.page, dpi=150, metadata=metadata)


def _panel(ax: Axes, rows: Sequence[Row], swept: Sequence[str], name: str) -> None:
    across = axis_of(rows, swept)
    others = [parameter for parameter in swept if parameter != across]
    lines: dict[str, list[tuple[Any, float]]] = {}
    for row in rows:
        value = _number(row.get(name))
        if value is not None:
            label = ", ".join(f"{other} = {row[other]}" for other in others)
            lines.setdefault(label, []).append((row[across], value))
    for (label, points), marker in zip(lines.items(), _markers(len(lines)), strict=True):
        ax.plot([x for x, _ in points], [y for _, y in points], marker=marker, label=label or "_")
    ax.set(xlabel=across, ylabel=name)
    if _wide([row[across] for row in rows]):
        ax.set_xscale("log")
    if _wide([value for points in lines.values() for _, value in points]):
        ax.set_yscale("log")


def axis_of(rows: Sequence[Row], swept: Sequence[str]) -> str:
    """The swept parameter that goes along the horizontal axis: a numeric one with the most values.

    >>> axis_of([{"k": 1, "n": 1}, {"k": 1, "n": 2}], ["k", "n"])
    'n'
    """
    return max(swept, key=lambda name: (_number(rows[0][name]) is not None, len({str(row[name]) for row in rows})))


def _markers(count: int) -> list[str]:
    return [("o", "s", "^", "D", "v", "P", "X")[position % 7] for position in range(count)]


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=2)


def _number(value: Any) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def _wide(values: Sequence[Any]) -> bool:
    numbers = [_number(value) for value in values]
    found = [number for number in numbers if number is not None]
    return len(found) == len(values) > 0 and min(found) > 0 and max(found) >= 20 * min(found)


LIMIT = 500
MADE_BY = "flamelib sweep"

# A shell rule: a run rule would read the file again in every job.  The receipts decide what is current.
SNAKEFILE = """\
import json
import shlex
import sys

GRID = json.load(open("sweep.json"))
RUN = shlex.join([sys.executable, "-m", "flamebook.runs.schedule", GRID["notebook"]])


rule all:
    input: expand("points/{point}/receipt.json", point=GRID["points"])


rule point:
    output: "points/{point}/receipt.json"
    params: values=lambda wildcards: shlex.quote(json.dumps(GRID["points"][wildcards.point]))
    threads: 1
    shell: "{RUN} points/{wildcards.point} {params.values}"
"""


def sweep(
    template: Path,
    given: Mapping[str, str],
    output: Path | None = None,
    jobs: int = 2,
    limit: int = LIMIT,
    extra: Sequence[str] = (),
) -> Path:
    """Run a notebook at every point of a grid and return the folder of the combined results.

    Parameters
    ----------
    template : Path
        A notebook, as :func:`flamebook.runs.notebook.locate` finds it.
    given : mapping
        Name to text; commas separate the values of one name.  At least one name has several.
    output : Path, optional
        Folder; ``_build/sweeps/NAME/DIGEST`` under the current folder if left out.
    jobs : int, at least 1
        Runs at a time.
    limit : int
        Largest grid accepted.
    extra : sequence of str
        Further arguments for Snakemake, such as ``--executor slurm``.

    Raises
    ------
    DomainError
        If a name or value is refused, the grid is larger than ``limit``, or the folder is not a sweep's.
    RunFailed
        If a point fails; the others are kept, and calling again tries only what is missing.
    """
    if jobs < 1:
        raise DomainError(f"jobs must be a whole number of at least 1, got {jobs}")
    swept, points = notebook.grid(template, given, limit)
    if not swept:
        asked = " ".join(f"{name}={text}" for name, text in given.items())
        raise DomainError(f"some parameter must have several values, as in n_users=1000,10000; got {asked!r}")
    named = {notebook.digest(template, point): point for point in points}
    folder = (output or own.default_folder("sweeps", template.stem, notebook.digest(template, named))).resolve()
    _refuse_foreign(folder, template)
    grid = {"made_by": MADE_BY, "notebook": str(template), "swept": swept, "points": named}
    files.write(folder / "sweep.json", json.dumps(grid, indent=1) + "\n")
    _run_points(template, named, folder, jobs, extra)
    combine(folder)
    return folder


def _run_points(
    template: Path, named: Mapping[str, dict[str, Any]], folder: Path, jobs: int, extra: Sequence[str]
) -> None:
    # Imported here with what it needs: a refusal should not wait for it.
    from flamebook.runs import execute, schedule

    points = folder / "points"
    files.write(folder / "Snakefile", SNAKEFILE)
    with files.held(folder, partial(_refuse_in_use, folder)) as lock:
        due = list(schedule.outdated({name: execute.Run(template, point) for name, point in named.items()}, points))
        if due:
            words = ["--snakefile", str(folder / "Snakefile"), "--directory", str(folder), "--cores", str(jobs)]
            words += ["--jobs", str(jobs), "--rerun-triggers", "mtime", *extra]
            tell = partial(_tell, points=points, due=due, total=len(named))
            schedule.snakemake(words, folder / "snakemake.log", lock, tell)
    failed = [name for name in due if execute.receipt_of(points / name) is None]
    if failed:
        why = {name: schedule.failure(points, name).strip() or schedule.UNSAID for name in failed}
        told = [", ".join(f"{key}={value}" for key, value in named[name].items()) + f": {why[name]}" for name in failed]
        done = f"{len(failed)} of {len(named)} points failed; the others are kept, repeat the command to resume"
        raise execute.RunFailed("\n".join([*told[:5], *(["..."] if len(told) > 5 else []), done]))


def _tell(ticks: Iterator[None], points: Path, due: Sequence[str], total: int) -> None:
    shown = -1
    for _ in ticks:
        done = sum((points / name / "receipt.json").exists() for name in due)
        if done != shown:
            shown = done
            print(f"{total - len(due) + done} of {total} points", file=sys.stderr, flush=True)


def _refuse_in_use(folder: Path) -> None:
    raise DomainError(f"output must be a folder that no other sweep uses now, and {folder} is in use")


def _refuse_foreign(folder: Path, template: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise DomainError(f"output must be a folder, and {folder} is a file")
    if not folder.exists() or not any(folder.iterdir()):
        return
    try:
        grid = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
        ours = grid["made_by"] == MADE_BY and grid["notebook"] == str(template)
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise DomainError(f"output must be empty or an earlier sweep of {template.stem}, and {folder} is neither")


def combine(folder: Path) -> None:
    """Write ``sweep.csv`` and the comparison picture from the finished points of a sweep."""
    grid = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    rows = []
    for name, point in grid["points"].items():
        found = scalars(own.read_results(folder / "points" / name))
        rows.append(point | {f"results.{key}" if key in point else key: value for key, value in found.items()})
    asked = next(iter(grid["points"].values()))
    measured = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in asked]
    draw(rows, grid["swept"], measured, folder)
    files.write(folder / "sweep.csv", own.table(rows))


def scalars(results: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Numbers, words and truth values of nested results under dotted names; lists are left to the runs' own files.

    >>> scalars({"mse": {"measured": 2.0, "all": [1, 2]}, "seed": 7})
    {'mse.measured': 2.0, 'seed': 7}
    """
    found: dict[str, Any] = {}
    for name, value in results.items():
        if isinstance(value, Mapping):
            found |= scalars(value, f"{prefix}{name}.")
        elif isinstance(value, int | float | str):
            found[prefix + name] = "nan" if isinstance(value, float) and math.isnan(value) else value
    return found
