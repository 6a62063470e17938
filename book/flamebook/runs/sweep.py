"""A grid of runs: every combination of the given values, scheduled by Snakemake, one table, one picture, one page.

A sweep's folder holds ``sweep.json`` (the grid), ``Snakefile``, ``points/DIGEST/`` (one run each), ``sweep.csv`` (one
row a run), ``comparison.svg``/``.png`` (every result that moves, against a swept parameter) and ``index.html``.
Points are named by a digest of their parameters, so a killed sweep resumes where it stopped and a larger grid in the
same folder reuses what is there.  A point that fails is a row of the table that says why.
"""

import html
import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from flamebook.figures.style import LIGHT, SETTINGS
from flamebook.records import lines_csv
from flamebook.runs import cluster, files, notebook, own
from flamelib.core.vocabulary import DomainError, known

Row = Mapping[str, Any]


def draw(rows: Sequence[Row], swept: Sequence[str], measured: Sequence[str], folder: Path) -> None:
    """Write ``comparison.svg`` and ``comparison.png`` into the folder, a panel for each numeric result that moves.

    Where a seed is swept beside something else, every run is a dot and the line goes through the means.

    Parameters
    ----------
    rows : sequence of mappings
        One for each point: parameters and results by name.
    swept, measured : sequence of str
        Names with several values, and names of results.
    """
    panels = [name for name in measured if len({_number(row.get(name)) for row in rows} - {None}) > 1]
    columns = 1 if len(panels) < 2 else 2
    lines = -(-max(1, len(panels)) // columns)
    with mpl.rc_context(SETTINGS | {"svg.hashsalt": "comparison"}):
        figure = Figure(figsize=(5.2 * columns, 0.6 + 3.2 * lines), layout="constrained")
        FigureCanvasAgg(figure)
        axes = [ax for row in figure.subplots(lines, columns, squeeze=False) for ax in row]
        for ax, name in zip(axes, panels, strict=False):
            _panel(ax, rows, swept, name)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        if not panels:
            words = "no number that the runs recorded moves over this grid"
            axes[0].text(0.5, 0.5, words, ha="center", transform=axes[0].transAxes)
        _legend(figure, axes)
        for form, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            figure.savefig(folder / f"comparison.{form}", format=form, facecolor=LIGHT.page, dpi=150, metadata=metadata)


def _panel(ax: Axes, rows: Sequence[Row], swept: Sequence[str], name: str) -> None:
    across = axis_of(rows, swept)
    others = [parameter for parameter in swept if parameter not in (across, "seed")]
    lines: dict[str, dict[Any, list[float]]] = {}
    for row in rows:
        value = _number(row.get(name))
        if value is not None:
            label = ", ".join(f"{other} = {notebook.typed(row[other])}" for other in others)
            x = row[across] if _number(row[across]) is not None else notebook.typed(row[across])
            lines.setdefault(label, {}).setdefault(x, []).append(value)
    for place, (label, points) in enumerate(lines.items()):
        # Of lines that coincide the lower ones are wider, so that all are seen.
        width, marker = 1.4 + 1.1 * (len(lines) - 1 - place), "os^DvPX"[place % 7]
        ordered = sorted(points.items()) if all(_number(x) is not None for x in points) else list(points.items())
        means = [fmean(values) for _, values in ordered]
        (line,) = ax.plot([x for x, _ in ordered], means, marker=marker, linewidth=width, label=label or "_")
        single = [(x, value) for x, values in ordered if len(values) > 1 for value in values]
        ax.scatter([x for x, _ in single], [y for _, y in single], s=9, alpha=0.5, color=line.get_color())
    ax.set(xlabel=across, ylabel=name)
    if _wide([row[across] for row in rows]):
        ax.set_xscale("log")
    if _wide([value for points in lines.values() for values in points.values() for value in values]):
        ax.set_yscale("log")


def axis_of(rows: Sequence[Row], swept: Sequence[str]) -> str:
    """The swept parameter that goes along the horizontal axis: a numeric one with the most values, no seed if possible.

    >>> axis_of([{"k": 1, "n": 1}, {"k": 1, "n": 2}], ["k", "n"])
    'n'
    """

    def rank(name: str) -> tuple[bool, bool, int]:
        return name != "seed", _number(rows[0][name]) is not None, len({str(row[name]) for row in rows})

    return max(swept, key=rank)


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
PAGE = "index.html"
STATUS = ("status", "fault")
_UNENDING = ("inf", "-inf", "nan")

# A shell rule: a run rule would read the file again in every job.  The receipts decide what is current.
SNAKEFILE = """\
import json
import shlex
import sys

GRID = json.load(open("sweep.json"))
RUN = shlex.join([sys.executable, "-m", "flamebook.runs.schedule", GRID["notebook"]])


resource_scopes:
    run="local",


def no_files(wildcards):
    workflow.execution_settings.keep_going = True  # inside a group, too, where Snakemake passes no option on
    return []


rule all:
    input: [f"points/{point}/receipt.json" for point in GRID["points"] if point not in GRID["refused"]]


rule point:
    input: no_files
    output: "points/{point}/receipt.json"
    params: values=lambda wildcards: shlex.quote(json.dumps(GRID["points"][wildcards.point]))
    threads: 1
    group: "runs"
    resources: run=1, mem_mb=2000
    shell: "{RUN} points/{wildcards.point} {params.values}"
"""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of parameters: the names with several values, and its points by digest.

    Attributes
    ----------
    refused : dict of str to str
        Why the notebook refuses a point whose values belong to their domains one by one.
    """

    template: Path
    swept: list[str]
    points: dict[str, dict[str, Any]]
    refused: dict[str, str]

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that name the grid."""
        return notebook.digest(self.template, self.points)


def plan(template: Path, given: Mapping[str, str], limit: int = LIMIT) -> Grid:
    """The grid of these texts: a comma separates the values of one name, a semicolon those of a list.

    Raises
    ------
    DomainError
        If a name or value is refused, no name has several values, every point is refused, or there are more than
        ``limit``.
    """
    allowed = notebook.declared(template)
    known(given, allowed or {"no parameters": None}, (), template.name)
    texts = {name: text.split(";" if allowed[name].several else ",") for name, text in given.items()}
    size = math.prod(map(len, texts.values()))
    if size > limit:
        raise DomainError(f"the grid has {size} points and limit is {limit}: give fewer values, or a larger --limit")
    axes = {name: [allowed[name].accept(text) for text in one] for name, one in texts.items()}
    for name, values in axes.items():
        if len({json.dumps(value) for value in values}) < len(values):
            raise DomainError(f"{name} names a value twice: {given[name]}; every value must be {allowed[name].domain}")
    swept = [name for name, values in axes.items() if len(values) > 1]
    if not swept:
        asked = " ".join(f"{name}={text}" for name, text in given.items())
        raise DomainError(f"some parameter must have several values, as in n_users=1000,10000; got {asked!r}")
    defaults = {name: one.default for name, one in allowed.items()}
    points = [defaults | dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    named = {notebook.digest(template, point): point for point in points}
    refused = {name: why for name, point in named.items() if (why := notebook.refusal(template, point))}
    if len(refused) == len(named):
        raise DomainError(next(iter(refused.values())))
    return Grid(template, swept, named, refused)


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
        Name to text, as :func:`plan` reads it.  At least one name has several values.
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
        If a point fails; the table holds the others, and calling again tries only what is missing.
    """
    if jobs < 1:
        raise DomainError(f"jobs must be a whole number of at least 1, got {jobs}")
    grid = plan(template, given, limit)
    folder = (output or own.default_folder("sweeps", template.stem, grid.digest)).resolve()
    _refuse_foreign(folder, template)
    kept = {"made_by": MADE_BY, "notebook": str(template), "asked": dict(given), "swept": grid.swept}
    kept |= {"points": grid.points, "refused": grid.refused}
    files.make_room(folder, own.ROOM)
    files.write(folder / "sweep.json", json.dumps(kept, indent=1) + "\n")
    failed = _run_points(grid, folder, jobs, extra)
    combine(folder)
    from flamebook.runs import execute  # here with what it needs: a refusal should not wait for it

    receipts = [execute.receipt_of(folder / "points" / name) for name in grid.points]
    for sentence in dict.fromkeys(one for found in receipts if found for one in found.stand_ins.values()):
        print(sentence, file=sys.stderr, flush=True)
    if failed:
        told = [
            ", ".join(f"{key}={notebook.typed(value)}" for key, value in grid.points[name].items()) for name in failed
        ]
        lines = [f"{point}: {why}" for point, why in zip(told, failed.values(), strict=True)]
        done = f"{len(failed)} of {len(grid.points)} points failed; the table of all lies in {folder}"
        more = ["..."] if len(lines) > 5 else []
        raise execute.RunFailed("\n".join([*lines[:5], *more, f"{done}, and the same command tries them again"]))
    return folder


def _run_points(grid: Grid, folder: Path, jobs: int, extra: Sequence[str]) -> dict[str, str]:
    """Make what is missing, and say why what is still missing failed."""
    # Imported here with what it needs: a refusal should not wait for it.
    from flamebook.runs import execute, schedule

    points = folder / "points"
    asked = {name: point for name, point in grid.points.items() if name not in grid.refused}
    files.write(folder / "Snakefile", SNAKEFILE)
    with files.held(folder, partial(_refuse_in_use, folder)) as lock:
        due = list(schedule.outdated({name: execute.Run(grid.template, one) for name, one in asked.items()}, points))
        if due:
            words = ["--snakefile", str(folder / "Snakefile"), "--directory", str(folder), "--cores", str(jobs)]
            words += cluster.words(extra, len(due), jobs)
            tell = partial(_tell, points=points, due=due, total=len(asked))
            try:
                schedule.snakemake(words, folder / "snakemake.log", lock, tell)
            finally:
                schedule.remove_parts(points, due)
        said = schedule.faults(points, due, folder / "snakemake.log")
    return {name: words.strip() or schedule.UNSAID for name, words in said.items()}


def _tell(ticks: Iterator[None], points: Path, due: Sequence[str], total: int) -> None:
    shown = -1
    for _ in ticks:
        done = sum((points / name / "receipt.json").exists() for name in due)
        if done != shown:
            shown = done
            print(f"{total - len(due) + done} of {total} points", file=sys.stderr, flush=True)


def _refuse_in_use(folder: Path, who: str) -> None:
    raise DomainError(f"output must be a folder that no other sweep uses now, and {folder} is in use by {who}")


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
    """Write ``sweep.csv``, the comparison picture and the page from what is there of a sweep."""
    grid = json.loads((folder / "sweep.json").read_text(encoding="utf-8"))
    asked = list(next(iter(grid["points"].values())))
    taken = {*asked, *STATUS}
    rows = []
    for name, point in grid["points"].items():
        found = scalars(own.read_results(folder / "points" / name))
        status = dict(zip(STATUS, _status(folder, name, grid["refused"]), strict=True))
        rows.append(point | status | {f"results.{key}" if key in taken else key: v for key, v in found.items()})
    measured = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in taken]
    header, body = [*asked, STATUS[0], *measured, STATUS[1]], _typed(rows)
    draw(rows, grid["swept"], measured, folder)
    files.write(folder / "sweep.csv", lines_csv([header, *([row.get(name, "") for name in header] for row in body)]))
    shown = [*grid["swept"], STATUS[0], *measured, *(STATUS[1:] if any(row[STATUS[1]] for row in rows) else ())]
    files.write(folder / PAGE, _page(Path(grid["notebook"]).stem, grid["asked"], shown, body))


def _status(folder: Path, name: str, refused: Mapping[str, str]) -> tuple[str, str]:
    from flamebook.runs import execute, schedule

    if name in refused:
        return "refused", refused[name]
    if receipt := execute.receipt_of(folder / "points" / name):
        said = "; ".join([*receipt.faults, *receipt.stand_ins.values()])
        return ("partly", said) if said else ("done", "")
    fault = next(iter(schedule.failure(folder / "points", name).splitlines()), schedule.UNSAID)
    return cluster.status(fault), fault


def _typed(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The texts of a table's cells: whole numbers whole, but with a point where their column has one."""
    real = {name for row in rows for name, value in row.items() if isinstance(value, float) or value in _UNENDING}
    whole = {name for row in rows for name, value in row.items() if isinstance(value, bool | list)}
    points = real - whole
    return [
        {
            name: notebook.typed(float(value) if name in points and _number(value) is not None else value)
            for name, value in row.items()
        }
        for row in rows
    ]


_HEAD = """\
<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>:root{{color-scheme:light dark}}
body{{font:16px/1.55 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}
img{{max-width:100%;height:auto;background:#fff;border-radius:6px}}code{{overflow-wrap:anywhere}}
.wide{{overflow-x:auto}}table{{border-collapse:collapse;font-size:.87em;font-variant-numeric:tabular-nums}}
th,td{{padding:.25rem .7rem;border-bottom:1px solid #8888;text-align:left}}</style></head><body>
"""


def _page(name: str, asked: Mapping[str, str], columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """The sweep on one page: the question, the picture, the table, the files."""
    said = {text: html.escape(text) for row in rows for text in row.values()}
    words = " ".join(["flamelib sweep", name, *(f"-p {shlex.quote(f'{key}={text}')}" for key, text in asked.items())])
    head = "".join(f"<th scope='col'>{html.escape(column)}</th>" for column in columns)
    lines = ("".join(f"<td>{said[row[one]] if one in row else ''}</td>" for one in columns) for row in rows)
    title = html.escape(f"{name} at {len(rows)} points")
    return "\n".join(
        [
            _HEAD.format(title=title) + f"<h1>{title}</h1>",
            f"<p>Made by <code>{html.escape(words)}</code>.</p>",
            '<p><img src="comparison.svg" alt="What moves over the grid, drawn from the table below."></p>',
            '<p>Files: <a href="sweep.csv" download>the table as CSV</a>, every parameter and result, one row a run; '
            '<a href="comparison.svg" download>SVG</a>, <a href="comparison.png" download>PNG</a>.</p>',
            f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>',
            *(f"<tr>{line}</tr>" for line in lines),
            "</tbody></table></div></body></html>\n",
        ]
    )


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
