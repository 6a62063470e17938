"""The notebooks of the book, through Snakemake: several at a time, only those not current, resumed after a kill.

What is current is decided by content, from the receipts; Snakemake brings the order, the parallel jobs and the
way to a cluster.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import yaml

from flamebook.places import ROOT
from flamebook.runs import cluster, execute, files, inputs, tied
from flamebook.runs.execute import Run
from flamebook.runs.notebook import values
from flamelib.core.vocabulary import DomainError, known
from flamelib.learning.datasets import DataError

RUNS = Path("_build/runs")
PROFILES = ("quick", "paper")
LOG = ".snakemake.log"
UNSAID = "ended without a message"
_CACHE, _OWN_CACHE = "XDG_CACHE_HOME", "FLAMELIB_OWN_CACHE"  # an empty one counts as none
COMMAND = shlex.join([sys.executable, "-m", "flamebook.runs.schedule"])  # makes one run
_ENGINE = "from snakemake.cli import main; main()"
STEP_SECONDS = 0.3  # between two looks at what is finished
NEWS_SECONDS = 20.0  # between two lines about what takes long


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
        """The files that the result of a run depends on, from the root.

        One that is stamped with a time to come is left out, for Snakemake would reject what is made from it; a clock
        that went back is no reason to stop, and the key decides what is current.
        """
        run = self.runs[name]
        named = [path for path in inputs.digests(run.template, run.root) if path != inputs.DATA_SETS]
        return [path for path in named if (run.root / path).stat().st_mtime <= time.time()]

    def key(self, name: str) -> str:
        """Everything that the result of a run depends on, by content, as one text."""
        run = self.runs[name]
        with _own_cache():
            return json.dumps([run.parameters, inputs.digests(run.template, run.root)], sort_keys=True)

    def words(self, name: str) -> str:
        """What :data:`COMMAND` is told to make one run: nothing of where the checkout lies, for it may be moved."""
        words = [str(self.runs[name].template), str(self.folder / name), json.dumps(self.runs[name].parameters)]
        return shlex.join([*words, self.profile])


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


def keep(run: Path, place: Path) -> None:
    """Keep the numbers of a run: its receipt, its results, and those behind figures that its notebook reads back."""
    source = (ROOT / "notebooks" / f"{run.name}.ipynb").read_text(encoding="utf-8")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    read = (path for path in run.glob("figures/*.csv") if path.name in source)
    for path in (*read, run / execute.RESULTS, run / execute.RECEIPT):
        shutil.copy(path, place)


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
    files.make_room(plan.folder)

    def busy(who: str) -> None:
        say(f"waiting  another build is at work in {plan.folder}: {who}")

    with files.held(plan.folder, busy) as lock:
        why = outdated(plan.runs, plan.folder)
        for name, reason in why.items():
            say(f"due      {name}: {reason}")
        if why:
            words = ["--snakefile", str(plan.root / "Snakefile"), "--directory", str(plan.root), "--cores", str(jobs)]
            words += ["--config", f"profile={plan.profile}", *cluster.words(options, len(why), jobs)]
            try:
                snakemake(words, plan.folder / LOG, lock, lambda ticks: _tell(ticks, plan.folder, list(why)))
            finally:
                remove_parts(plan.folder, why)
        unsaid = f"{UNSAID}; {plan.folder / LOG} may say why"
        said = faults(plan.folder, why, plan.folder / LOG)
        failed = {name: words or f"{name}: {unsaid}" for name, words in said.items()}
    ran = tuple(name for name in why if name not in failed)
    return Outcome(ran, tuple(name for name in plan.runs if name not in why), failed)


def outdated(runs: Mapping[str, Run], folder: Path) -> dict[str, str]:
    """The runs in a folder that are not current, each with the reason; what is left of them is taken away.

    Snakemake sees what is missing; what is merely outdated is made so.
    """
    why = {name: execute.reason(run, folder / name) for name, run in runs.items()}
    due = {name: words for name, words in why.items() if words}
    for name in due:
        (folder / name / execute.RECEIPT).unlink(missing_ok=True)
        _message(folder, name).unlink(missing_ok=True)
    remove_parts(folder, due)  # what a killed run left is no progress
    return due


def remove_parts(folder: Path, names: Iterable[str]) -> None:
    """Take away what was begun of these runs and has no end."""
    for name in names:
        files.remove_left(folder / f".{name}.part")


def snakemake(words: Sequence[str], log: Path, lock: IO[str], tell: Callable[[Iterator[None]], None]) -> None:
    """Run Snakemake with these words to its end, while ``tell`` goes through its ticks and says how far it is."""
    # A lock that Snakemake left behind is stale, for ours is held here; so its own is not asked for.
    # Receipts appear whole: what a run left is kept, also where the job that it belonged to was cancelled later.
    # They say what is current, and those of what is not are gone: what Snakemake remembers of earlier builds, perhaps
    # in another place or by another Snakefile, is no reason to make anything again.
    here = not cluster.elsewhere(words)
    command = [*tied.command(_ENGINE, politely=not here), "--keep-going", "--nolock", "--nocolor"]
    command += ["--rerun-triggers", "mtime", "--ignore-incomplete", "--keep-incomplete", *words]
    places = [str(ROOT), str(ROOT / "book"), os.environ.get("PYTHONPATH", "")]
    surroundings = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    # Its cache would lie in the user's home, which may be missing or read-only; jobs are given the user's own again.
    surroundings |= {_OWN_CACHE: os.environ.get(_CACHE, ""), _CACHE: str(log.resolve().parent / ".snakemake")}
    surroundings |= tied.surroundings()
    with log.open("w", encoding="utf-8") as out:
        # The child holds our lock too, should this process be killed alone.
        engine = subprocess.Popen(command, stdout=out, stderr=out, pass_fds=[lock.fileno()], env=surroundings)
        try:
            tell(_ticks(engine))
        finally:
            if engine.poll() is None and here:
                tied.end(engine.pid)
            elif engine.poll() is None:
                engine.send_signal(signal.SIGINT)  # upon this it cancels its jobs; SIGTERM would wait for them
            engine.wait()


def _ticks(engine: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Now and then while a process runs, and once after its end."""
    while engine.poll() is None:
        yield
        time.sleep(STEP_SECONDS)
    yield


def _tell(ticks: Iterator[None], folder: Path, due: Sequence[str]) -> None:
    begun: dict[str, float] = {}
    done: set[str] = set()
    news = time.monotonic()
    for _ in ticks:
        now = time.monotonic()
        for name in due:
            if name not in begun and (folder / f".{name}.part").exists():
                begun[name] = now
                say(f"running  {name}")
            if name not in done and (execute.receipt_of(folder / name) or _message(folder, name).exists()):
                done.add(name)
                state = "failed" if _message(folder, name).exists() else "ran"
                say(f"{state:8} {name} in {now - begun.get(name, now):.0f} s ({len(done)} of {len(due)})")
                for sentence in getattr(execute.receipt_of(folder / name), "stand_ins", {}).values():
                    say(f"no data  {name}: {sentence}")
        if now - news > NEWS_SECONDS:
            news = now
            for name in sorted(begun.keys() - done):
                say(f"running  {name}, {_cells(folder / f'.{name}.part' / f'{name}.ipynb')}{now - begun[name]:.0f} s")


def _cells(page: Path) -> str:
    done, total = passed(page)
    return f"cell {done} of {total}, " if total else ""


def passed(page: Path) -> tuple[int, int]:
    """How many cells of a notebook that is being executed are done, of how many; of none where it cannot be read."""
    try:
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError):
        return 0, 0
    return sum(cell["metadata"].get("papermill", {}).get("status") == "completed" for cell in cells), len(cells)


def faults(folder: Path, due: Iterable[str], log: Path) -> dict[str, str]:
    """The runs that were due and are missing still, with what they, or the scheduler, said; empty for no word."""
    missing = [name for name in due if execute.receipt_of(folder / name) is None]
    ended = cluster.endings(log.read_text(encoding="utf-8", errors="replace")) if missing else {}
    for name in missing:
        if name in ended and not _message(folder, name).exists():
            files.write(_message(folder, name), f"{ended[name]}\n")
    return {name: failure(folder, name) for name in missing}


def failure(folder: Path, name: str) -> str:
    """What a failed run said; empty where it ended without a word."""
    try:
        return _message(folder, name).read_text(encoding="utf-8")
    except OSError:
        return ""


def _message(folder: Path, name: str) -> Path:
    return folder / execute.FAILED / f"{name}.txt"


def say(line: str) -> None:
    """One line of progress, at once."""
    print(line, flush=True)


@contextlib.contextmanager
def _own_cache() -> Iterator[None]:
    """While this lasts, data sets are looked for in the user's own cache, inside of Snakemake as well."""
    before = os.environ.get(_CACHE)
    os.environ.update({_CACHE: os.environ[_OWN_CACHE]} if _OWN_CACHE in os.environ else {})
    try:
        yield
    finally:
        if before is not None:
            os.environ[_CACHE] = before


def main(words: Sequence[str]) -> int:
    """One job of the scheduler: template, folder, parameters as JSON, and the edition that it belongs to, if any."""
    tied.tie()
    if _OWN_CACHE in os.environ:
        os.environ[_CACHE] = os.environ.pop(_OWN_CACHE)
    template, folder, parameters, *edition = Path(words[0]), Path(words[1]), json.loads(words[2]), *words[3:]
    try:
        execute.execute(template, folder, parameters, edition="".join(edition), tolerant=not edition)
    except (execute.RunFailed, DataError, DomainError, OSError) as fault:
        message = _message(folder.parent, folder.name)
        message.parent.mkdir(exist_ok=True)
        message.write_text(f"{fault}\n", encoding="utf-8")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
