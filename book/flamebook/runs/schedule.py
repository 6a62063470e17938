"""The notebooks of the book, through Snakemake: several at a time, only those not current, resumed after a kill.

What is current is decided by content, from the receipts; Snakemake brings the order, the parallel jobs and the
way to a cluster.
"""

import fcntl
import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from flamebook.runs import execute, inputs
from flamebook.runs.execute import Run
from flamebook.runs.notebook import values
from flamelib.core.vocabulary import DomainError, known

RUNS = Path("_build/runs")
PROFILES = ("quick", "paper")
_STEP_SECONDS = 0.5
_NEWS_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Every notebook with the parameters of a profile; each run gets a folder of its name under ``folder``."""

    root: Path
    profile: str
    runs: dict[str, Run]

    @property
    def folder(self) -> Path:
        """Where the runs go."""
        return self.root / RUNS

    def files(self, name: str) -> list[str]:
        """The files that the result of a run depends on, from the root."""
        run = self.runs[name]
        return [path for path in inputs.digests(run.template, run.root) if path != inputs.DATA_SETS]

    def key(self, name: str) -> str:
        """Everything that the result of a run depends on, by content, as one text."""
        run = self.runs[name]
        return json.dumps([run.parameters, inputs.digests(run.template, run.root)], sort_keys=True)

    def command(self, name: str) -> str:
        """The shell command that makes one run."""
        words = [str(self.runs[name].template), str(self.folder / name), json.dumps(self.runs[name].parameters)]
        return shlex.join([sys.executable, "-m", "flamebook.runs.schedule", *words])


@dataclass(frozen=True, slots=True)
class Outcome:
    """Names of the runs that were made, that were current, and the messages of those that failed."""

    ran: tuple[str, ...]
    skipped: tuple[str, ...]
    failed: dict[str, str]


def plan(root: Path, profile: str) -> Plan:
    """Every notebook with the parameters of a profile (``book/parameters/PROFILE.yml``).

    Raises
    ------
    DomainError
        For an unknown profile, notebook or parameter, or a value outside its domain.
    """
    path = root / "book" / "parameters" / f"{profile}.yml"
    if not path.is_file():
        raise DomainError(f"profile must be one of {', '.join(PROFILES)}, got {profile!r}")
    templates = {found.stem: found for found in sorted((root / "notebooks").glob("*.ipynb"))}
    given: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    known(given, templates or {"no notebooks": None}, (), path.name)
    return Plan(
        root, profile, {name: Run(found, values(found, given.get(name) or {})) for name, found in templates.items()}
    )


def carry_out(plan: Plan, jobs: int = 2, options: Sequence[str] = ()) -> Outcome:
    """Make the runs of a plan that are not current, several at a time; the others go on when one fails.

    Parameters
    ----------
    plan : Plan
        The runs.
    jobs : int
        How many notebooks at a time.
    options : sequence of str
        Further words for Snakemake, such as ``--executor slurm``.
    """
    plan.folder.mkdir(parents=True, exist_ok=True)
    with _alone(plan.folder) as lock:
        why = {name: execute.reason(run, plan.folder / name) for name, run in plan.runs.items()}
        due = [name for name, words in why.items() if words]
        for name in due:
            # Snakemake sees what is missing; what is merely outdated is made so.
            (plan.folder / name / execute.RECEIPT).unlink(missing_ok=True)
            _message(plan.folder, name).unlink(missing_ok=True)
            shutil.rmtree(plan.folder / f".{name}.part", ignore_errors=True)  # what a killed build left is no progress
            say(f"due      {name}: {why[name]}")
        if due:
            _snakemake(plan, due, jobs, options, lock)
        failed = {name: _failure(plan.folder, name) for name in due if not execute.receipt_of(plan.folder / name)}
    ran = tuple(name for name in due if name not in failed)
    return Outcome(ran, tuple(name for name in plan.runs if name not in due), failed)


def say(line: str) -> None:
    """One line of progress, at once."""
    print(line, flush=True)


@contextmanager
def _alone(folder: Path) -> Iterator[IO[str]]:
    """Hold the folder's lock; the system frees it when its holder dies, however that happens."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting  another build is at work in {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock


def _snakemake(plan: Plan, due: list[str], jobs: int, options: Sequence[str], lock: IO[str]) -> None:
    words = ["--snakefile", str(plan.root / "Snakefile"), "--directory", str(plan.root), "--cores", str(jobs)]
    # A lock that Snakemake left behind is stale, for ours is held here; so its own is not asked for.
    words += ["--config", f"profile={plan.profile}", "--keep-going", "--nolock", "--rerun-incomplete", "--nocolor"]
    with (plan.folder / ".snakemake.log").open("w") as log:
        # The child holds our lock too, should this process be killed alone.
        engine = subprocess.Popen(
            [sys.executable, "-m", "snakemake", *words, *options], stdout=log, stderr=log, pass_fds=[lock.fileno()]
        )
        try:
            _watch(engine, plan.folder, due)
        finally:
            if engine.poll() is None:
                engine.terminate()
                engine.wait()


def _watch(engine: "subprocess.Popen[bytes]", folder: Path, due: list[str]) -> None:
    begun: dict[str, float] = {}
    done: set[str] = set()
    news = time.monotonic()
    while len(done) < len(due) and engine.poll() is None:
        time.sleep(_STEP_SECONDS)
        now = time.monotonic()
        for name in due:
            if name not in begun and (folder / f".{name}.part").exists():
                begun[name] = now
                say(f"running  {name}")
            if name not in done and (execute.receipt_of(folder / name) or _message(folder, name).exists()):
                done.add(name)
                state = "failed" if _message(folder, name).exists() else "ran"
                say(f"{state:8} {name} in {now - begun.get(name, now):.0f} s ({len(done)} of {len(due)})")
        if now - news > _NEWS_SECONDS:
            news = now
            for name in sorted(begun.keys() - done):
                say(f"running  {name}, {_cells(folder / f'.{name}.part' / f'{name}.ipynb')}{now - begun[name]:.0f} s")
    engine.wait()


def _cells(page: Path) -> str:
    try:
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError):
        return ""
    passed = sum(cell["metadata"].get("papermill", {}).get("status") == "completed" for cell in cells)
    return f"cell {passed} of {len(cells)}, "


def _message(folder: Path, name: str) -> Path:
    return folder / execute.FAILED / f"{name}.txt"


def _failure(folder: Path, name: str) -> str:
    try:
        return _message(folder, name).read_text(encoding="utf-8")
    except OSError:
        return f"{name}: ended without a message; {folder / '.snakemake.log'} may say why"


def main(words: Sequence[str]) -> int:
    """One job of the scheduler: template, folder and parameters as JSON."""
    template, folder, parameters = Path(words[0]), Path(words[1]), json.loads(words[2])
    try:
        execute.execute(template, folder, parameters)
    except (execute.RunFailed, DomainError) as fault:
        message = _message(folder.parent, folder.name)
        message.parent.mkdir(exist_ok=True)
        message.write_text(f"{fault}\n", encoding="utf-8")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
