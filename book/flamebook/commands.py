"""The commands that take their time: ``flamelib run``, ``sweep``, ``record``, ``check``, ``diff``, ``data``.

Descriptions of deployments that are more than plain lines are read here as well.
"""

import os
from pathlib import Path
from typing import Annotated

import click
import typer

from flamebook.claims import ledger, proofs
from flamebook.figures.together.trial import described
from flamebook.runs import editions, files, inputs, own
from flamebook.runs import notebook as parameters
from flamebook.runs import record as recorder
from flamebook.runs import sweep as sweeps
from flamebook.runs.execute import RunFailed, receipt_of
from flamebook.site.written.markup import given
from flamelib import cli
from flamelib.answers import assignments
from flamelib.core.vocabulary import DomainError, meant
from flamelib.learning import datasets
from flamelib.learning.datasets import DataError

SETTINGS = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(name="flamelib", context_settings=SETTINGS, pretty_exceptions_enable=False, add_completion=False)
data = typer.Typer(help="List, fetch or verify the data sets.", context_settings=SETTINGS)
app.add_typer(
    data, name="data", epilog="Examples:\n\nflamelib data list\n\nflamelib data fetch mnist\n\nflamelib data verify"
)

Notebook = Annotated[str, typer.Argument(metavar="NOTEBOOK", help="A notebook's name, or the path of an .ipynb file.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="New, empty, or an earlier result's.")
]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="Names of data sets; all of them if left out.")
]
Given = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="name=value", help="A parameter that the notebook declares."),
]

Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="quick|paper",
        help="What is not given has the value of this edition of the book; without it, the default that the notebook "
        "declares, as in a sweep.",
    ),
]


def run_app(words: list[str]) -> int:
    """Run these words as a command; a fault of usage is a refusal (status 2, one sentence)."""
    cut = words.index("--") if words[:1] == ["sweep"] and "--" in words else len(words)
    try:
        status = app(words[:cut], prog_name="flamelib", standalone_mode=False, obj=words[cut + 1 :])
    except typer.Abort:
        raise KeyboardInterrupt from None
    except (RunFailed, DataError) as fault:
        typer.echo(fault, err=True)
        return 1
    except OSError as fault:
        if fault.errno not in files.FULL:
            raise
        typer.echo(f"the disk must have room for the result: {fault}", err=True)
        return 1
    except click.ClickException as fault:
        return cli.refused(fault.format_message())
    return status if isinstance(status, int) else 0


@app.command(
    "run",
    epilog="Examples:\n\nflamelib run blanket_histogram -p epsilon=0.5 -p repeats=10\n\n"
    "flamelib run my_copy.ipynb -p seed=7 --output results\n\nflamelib run crossing --profile paper\n\n"
    "flamelib run blanket_summation --parameters",
)
def run(
    notebook: Notebook,
    given: Given = None,
    profile: Profile = "",
    output: Output = None,
    show_parameters: Annotated[
        bool, typer.Option("--parameters", help="List what the notebook declares and stop.")
    ] = False,
) -> int:
    """Run a notebook with parameters of your own; prints the folder of its page, figures and results.

    Where a cell cannot compute its figure, the page says why in its place, and so does this command (status 1).
    The folder holds the executed notebook, an HTML page that needs no network, figures as SVG and PNG, the numbers
    behind them as CSV, and the results as JSON and CSV.  It appears whole or not at all; the default is
    _build/own/NOTEBOOK/DIGEST under the current folder.
    """
    template = parameters.locate(notebook)
    if show_parameters:
        for one in parameters.declared(template).values():
            typer.echo(f"{one.name}: {one.kind} = {one.default}   {one.about} ({one.domain})")
        for rule in parameters.rules(template):
            typer.echo(f"together: {rule}")
        return 0
    folder = own.run(template, own.of_profile(template, profile) | assignments(given or []), output)
    faults = getattr(receipt_of(folder), "faults", [])
    for fault in faults:
        typer.echo(f"not made: {fault}", err=True)
    typer.echo(folder)
    return 1 if faults else 0


@app.command(
    "deployment",
    epilog="Examples:\n\nflamelib deployment survey.yaml\n\n"
    "flamelib deployment data/deployments/census_redistricting_data.yaml delta=1e-6",
)
def deployment(
    file: str,
    given: Annotated[list[str] | None, typer.Argument(metavar="[name=value]...")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, at a terminal as well.")] = False,
) -> int:
    """What a deployment guarantees, by its description in YAML: a record of the public registry, or one of your own."""
    return cli.deployment([file, *(given or []), *(["--json"] if as_json else [])], described)


@app.command(
    "sweep",
    epilog="Examples:\n\nflamelib sweep blanket_histogram -p epsilon=0.25,0.5,1\n\n"
    "flamelib sweep blanket_histogram -p epsilon=0.5,1 -p seed=1,2,3 --jobs 4\n\n"
    "flamelib sweep blanket_histogram -p seed=1,2 -j 50 -- --executor slurm",
)
def sweep(
    context: typer.Context,
    notebook: Notebook,
    given: Given = None,
    output: Output = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", help="Runs at a time.")] = 2,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Largest grid accepted.")] = sweeps.LIMIT,
) -> None:
    """Run a notebook at every point of a grid; prints the folder of one table and one comparison figure.

    Commas separate the values of a parameter.  A sweep that was stopped resumes when the same command is given again.
    Words after -- go to Snakemake, which schedules the runs.
    """
    words = assignments(given or [])
    typer.echo(sweeps.sweep(parameters.locate(notebook), words, output, jobs, limit, context.obj or ()))


@app.command(
    "record",
    epilog="Examples:\n\nflamelib record --list\n\nflamelib record ledger\n\n"
    "flamelib record certified/clones ledger\n\nflamelib record benchmarks --again",
)
def record(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME[/PART]]...", help="Tables of data/results, or parts; all if left out."),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the tables, which of their parts are current, and stop.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Make parts that are current, too.")] = False,
) -> int:
    """Record anew the results of long runs that the book shows, as far as they are not current.

    Each table is made in parts, kept under _build/recordings with what they were made from: a part is made again only
    where that has changed, and a recording that was stopped goes on when the same command is given again.  A table in
    data/results is written when all its parts are there; status 1 if a part fails, which leaves the table as it was.
    """
    return recorder.main(names or (), again, listed, typer.echo)


@app.command("check", epilog="Examples:\n\nflamelib check flame:thm-3/always-reported\n\nflamelib check cloak:lemma-1")
def check(
    name: Annotated[str, typer.Argument(metavar="ROW", help="A row of the ledger, or an item with all its rows.")],
) -> int:
    """Recompute a row of the ledger: prints inputs, both values, verdict, why, the proofs it rests on, and its page.

    Status 1 if a verdict is not the recorded one.
    """
    rows = _rows(name)
    judged = [proofs.traced(row) for row in rows]
    typer.echo("\n\n".join(_checked(row, labels) for row, labels in judged))
    return 0 if all(row.as_recorded for row, _ in judged) else 1


def _rows(name: str) -> list[ledger.Claim]:
    claims = ledger.load()
    rows = [claim for claim in claims if name in (claim.id, claim.item)]
    if not rows:
        near = meant(name, [known for claim in claims for known in (claim.id, claim.item)])
        raise DomainError(f"ROW must be a row or an item of the ledger, got {name!r}{near}")
    return rows


def _checked(row: ledger.Judged, labels: list[str]) -> str:
    claim = row.claim
    said = {"equal": "", "at-most": "at most ", "at-least": "at least "}.get(str(claim.relation), "")
    weight = f", {claim.weight}" if claim.weight else ""
    lines = {
        "row": claim.id,
        "says": f"{claim.where} ({claim.said_by}{', reconstructed' * claim.reconstructed}): {claim.claim}",
        "inputs": given(claim).removeprefix("Inputs: "),
        "stated": "" if claim.stated is None else said + ledger.shown(claim.stated),
        "computed": "" if row.value is None else ledger.shown(row.value),
        "verdict": f"{row.verdict}{weight}" + f" (recorded: {claim.verdict})" * (not row.as_recorded),
        "why": claim.evidence,
        "rests on": ", ".join(proofs.used(labels)),
        "page": claim.page,
    }
    return "\n".join(f"{name:<9} {text}" for name, text in lines.items() if text)


@app.command(
    "diff",
    epilog="Examples:\n\nflamelib diff old/html _build/html\n\nflamelib diff last/runs _build/runs --output moved.json"
    "\n\nflamelib diff first/audits second/audits",
)
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A built book, a folder of runs, or of one run.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The same of another edition.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write everything as JSON, too.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option("--tolerance", metavar="X", help="Relative changes up to this are no move.")
    ] = 0.0,
) -> int:
    """Compare two editions: prints which numbers moved and why they may have; status 1 if any moved.

    Numbers are the results of notebooks, the tables behind figures, and the values and verdicts of the ledger.
    Reasons are what differs in the receipts: parameters, versions, modules, data.
    """
    found = editions.compare(editions.read(old), editions.read(new), tolerance)
    for one in found:
        typer.echo(one)
    if output is not None:
        editions.write(found, output)
    typer.echo(f"{sum(len(one.moved) for one in found)} numbers moved on {len(found)} pages")
    return 1 if found else 0


@data.command("list", epilog="Examples:\n\nflamelib data list")
def list_sets() -> None:
    """List the data sets: what they hold, their size, licence and where they come from."""
    for entry in datasets.listing():
        size = f"{entry.bytes / 1e6:,.1f} MB" if entry.bytes else "installed" if entry.bytes == 0 else "unknown"
        typer.echo(
            f"{entry.name:<18} {size:>10}   {entry.title}"
            + (f": {' and '.join(entry.arrays)}, {entry.classes} classes" if entry.classes else "")
        )
        rows = f"{entry.train:,} train, {entry.test:,} test" if entry.test else f"{entry.train:,} records"
        typer.echo(f"{'':<18} {'':>10}   {rows}; licence: {entry.licence}")
        typer.echo(f"{'':<18} {'':>10}   from {', '.join(entry.origin)}")


@data.command("fetch", epilog="Examples:\n\nflamelib data fetch\n\nflamelib data fetch mnist emnist-byclass")
def fetch(names: Names = None) -> None:
    """Fetch data sets into the user's cache, digest checked; prints the paths of their files."""
    for path in dict.fromkeys(path for name in _chosen(names) for path in datasets.fetch(name)):
        typer.echo(path)


@data.command("verify", epilog="Examples:\n\nflamelib data verify\n\nFLAMELIB_DATA=here flamelib data verify mnist")
def verify(names: Names = None) -> int:
    """Say of every file where it lies and whether its digest is the published one; status 1 unless all are good.

    Files are looked for in the folder that the environment variable FLAMELIB_DATA names, then in the user's cache.
    """
    states = list(dict.fromkeys(state for name in _chosen(names) for state in datasets.verify(name)))
    for state in states:
        typer.echo(f"{state.state:<8} {state.dataset}/{state.file} ({state.where})")
    if all(state.state == "good" for state in states):
        return 0
    named = os.environ.get(inputs.DATA_SETS)
    where = f"{inputs.DATA_SETS} names {named}" if named else f"{inputs.DATA_SETS} names no folder"
    typer.echo(f"{where}; set it to the folder where the files lie, or fetch them: flamelib data fetch", err=True)
    return 1


def _chosen(names: list[str] | None) -> list[str]:
    known = [entry.name for entry in datasets.listing()]
    for name in names or ():
        if name not in known:
            raise DomainError(f"name must be one of {', '.join(known)}, got {name!r}{meant(name, known)}")
    return names or known
