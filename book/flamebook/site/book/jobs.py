"""Runs that readers of a served book ask for: checked, queued, two at a time, limited, ended on request, kept.

Every job is a process of its own (``python -m flamebook.site.book.jobs``) in a session of its own.  It holds a pipe
from the server: when the server ends, however that happens, the job ends too, with its kernel, and leaves nothing
half-written.  Results lie where ``flamelib run`` and ``flamelib sweep`` put them.
"""

import asyncio
import contextlib
import json
import os
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

from flamebook.places import ROOT
from flamebook.runs import execute, inputs, notebook, own, schedule, sweep, tied
from flamelib.core.vocabulary import DomainError
from flamelib.learning.datasets import DataError

RUNS, SWEEPS = "own", "sweeps"
PATIENCE = 5.0  # seconds between asking a process to end and ending it
POINTS = 50  # of the largest sweep that a page may ask for
FINISHED = 200  # jobs that are remembered; their results are kept all the same
ACTIVE = ("queued", "running")


class QueueFull(RuntimeError):
    """More is waiting than the server takes; the message is one sentence fit for a user."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many jobs run at a time, how many may wait, and what one run may take."""

    at_once: int = 2
    waiting: int = 20
    seconds: float = 900.0
    memory_gb: float = 4.0


@dataclass(slots=True, eq=False)
class Job:
    """One request: a run, or a sweep of runs."""

    id: str
    template: Path
    given: dict[str, Any]
    folder: Path
    points: int = 0
    state: str = "queued"
    told: str = ""
    begun: float = 0.0
    seconds: float = 0.0
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def address(self) -> str:
        """Where the result is found on the server, from the root of the book."""
        kind, page = (SWEEPS, sweep.PAGE) if self.points else (RUNS, f"{self.template.stem}.html")
        return f"{kind}/{self.template.stem}/{self.id}/{page}"

    def passed(self) -> tuple[int, int]:
        """Cells done of all cells; of a sweep, points done of all points."""
        if self.points:
            return len(list(self.folder.glob(f"points/*/{execute.RECEIPT}"))), self.points
        pages = self.folder.parent.glob(f".{self.folder.name}.part-*/.*.part/{self.template.name}")
        return max((schedule.passed(page) for page in pages), default=(0, 0))

    def end(self, state: str, told: str = "") -> None:
        """No more happens to the job."""
        self.state, self.told = state, told
        self.seconds = time.time() - self.begun if self.begun else 0.0


class Jobs:
    """The queue of a server, over the notebooks and results of one checkout."""

    def __init__(self, root: Path, limits: Limits, local: bool = True) -> None:
        self.root, self.limits, self.local = root.resolve(), limits, local
        self._jobs: dict[str, Job] = {}
        self._turns = asyncio.Semaphore(limits.at_once)

    def ask(self, name: str, given: Mapping[str, Any], swept: bool = False) -> Job:
        """The job of a request: a new one, or that of an equal request before.

        Raises
        ------
        DomainError
            For anything that the notebook does not take.
        QueueFull
            If too many wait.
        """
        job = self._checked(name, given, swept)
        known = self._jobs.get(job.id)
        if known and known.state in ACTIVE:
            return known
        if self._current(job):
            job.state, job.told = _outcome(job)
            return job
        if sum(one.state in ACTIVE for one in self._jobs.values()) >= self.limits.waiting + self.limits.at_once:
            raise QueueFull(f"{self.limits.waiting} runs are waiting already: ask again when some are done")
        self._jobs.pop(job.id, None)
        for old in [one.id for one in self._jobs.values() if one.state not in ACTIVE][:-FINISHED]:
            del self._jobs[old]
        self._jobs[job.id] = job
        job.task = asyncio.create_task(self._carry_out(job))
        return job

    def _checked(self, name: str, given: Mapping[str, Any], swept: bool) -> Job:
        names = {path.stem: path for path in sorted((self.root / "notebooks").glob("*.ipynb"))}
        if name not in names:
            raise DomainError(f"notebook must be one of {', '.join(names)}, got {name!r}")
        template = names[name]
        if not self.local:  # first, for other refusals would tell which files there are
            _refuse_files(template, given)
        if swept:
            grid = sweep.plan(template, {key: str(value) for key, value in given.items()}, POINTS)
            folder = self.root / "_build" / SWEEPS / name / grid.digest
            job = Job(grid.digest, template, dict(given), folder, len(grid.points) - len(grid.refused))
        else:
            taken = notebook.values(template, given)
            digest = notebook.digest(template, taken)
            job = Job(digest, template, taken, self.root / "_build" / RUNS / name / digest)
        return job

    def _current(self, job: Job) -> bool:
        """Whether the whole result lies there, made from what lies here now."""
        if job.points:
            folders = [path.parent for path in job.folder.glob(f"points/*/{execute.RECEIPT}")]
            whole = len(folders) == job.points and (job.folder / sweep.PAGE).is_file()
        else:
            folders, whole = [job.folder], (job.folder / own.MARK).is_file()
        receipts = [execute.receipt_of(folder) for folder in folders]
        return whole and all(one and one.inputs == inputs.digests(job.template, self.root) for one in receipts)

    def find(self, digest: str) -> Job | None:
        """The job of this id, or the kept result."""
        return self._jobs.get(digest) or next((job for job in self.kept() if job.id == digest), None)

    def listed(self, name: str = "") -> list[Job]:
        """What runs and waits, what came of other requests, then what is kept, the newest first; of one notebook."""
        jobs = sorted(self._jobs.values(), key=lambda job: (job.state not in ACTIVE, -job.begun))
        jobs += [job for job in self.kept() if job.id not in self._jobs]
        return [job for job in jobs if name in ("", job.template.stem)]

    def kept(self) -> list[Job]:
        """Every result under ``_build``, the newest first; what made it is read from its own files."""
        found = []
        for kind, mark in ((RUNS, own.MARK), (SWEEPS, "sweep.json")):
            for path in (self.root / "_build" / kind).glob(f"[!.]*/[!.]*/{mark}"):
                with contextlib.suppress(OSError, ValueError, KeyError, AttributeError):
                    said = json.loads(path.read_text(encoding="utf-8"))
                    given = dict(said["parameters"] if kind == RUNS else said["asked"])
                    template = self.root / "notebooks" / f"{path.parent.parent.name}.ipynb"
                    points = len(said.get("points", ()))
                    job = Job(path.parent.name, template, given, path.parent, points)
                    job.state, job.told = _outcome(job)
                    if (self.root / "_build" / job.address).is_file():
                        found.append((path.stat().st_mtime, job))
        return [job for _, job in sorted(found, key=lambda one: -one[0])]

    def report(self, job: Job) -> dict[str, Any]:
        """A job in words and numbers, for a page."""
        values, seconds = self.usual(job.template)
        usual, told = ({name: notebook.typed(value) for name, value in one.items()} for one in (values, job.given))
        done, total = job.passed() if job.state == "running" else (0, 0)
        waiting = [one.id for one in self._jobs.values() if one.state == "queued"]
        return {
            "id": job.id,
            "notebook": job.template.stem,
            "changed": {name: value for name, value in told.items() if value != usual.get(name)},
            "points": job.points,
            "state": job.state,
            "place": waiting.index(job.id) + 1 if job.id in waiting else 0,
            "done": done,
            "total": total,
            "seconds": round(time.time() - job.begun if job.state == "running" else job.seconds, 1),
            "expected": round(seconds * max(1, job.points), 1),
            "address": job.address if job.state in ("done", "partly") else "",
            "told": job.told,
        }

    def usual(self, template: Path) -> tuple[dict[str, Any], float]:
        """The values of the book's own run of a notebook, and its seconds; defaults and 0 where there is none."""
        receipt = execute.receipt_of(self.root / schedule.RUNS / template.stem)
        if receipt:
            return receipt.parameters, receipt.seconds
        found = notebook.declared(template) if template.is_file() else {}
        return {name: one.default for name, one in found.items()}, 0.0

    async def cancel(self, job: Job) -> None:
        """End a job that waits or runs, its processes too."""
        if job.task:
            job.task.cancel()
            await asyncio.wait([job.task])
            if job.state in ACTIVE:  # it had not begun
                job.end("cancelled")

    async def close(self) -> None:
        """End everything."""
        await asyncio.gather(*(self.cancel(job) for job in self._jobs.values()))

    async def _carry_out(self, job: Job) -> None:
        limit = self.limits.seconds * max(1, job.points)
        try:
            async with self._turns:
                job.state, job.begun = "running", time.time()
                async with asyncio.timeout(limit):
                    job.end(*await self._child(job))
        except TimeoutError:  # an OSError as well, so it comes first
            job.end("failed", f"stopped after {limit / 60:g} minutes, the time that this server gives it")
        except OSError as fault:
            job.end("failed", f"could not be started: {fault}")
        except asyncio.CancelledError:
            job.end("cancelled")
            raise

    async def _child(self, job: Job) -> tuple[str, str]:
        places = os.pathsep.join(filter(None, [str(ROOT), str(ROOT / "book"), os.environ.get("PYTHONPATH", "")]))
        begun = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "flamebook.site.book.jobs"),
                cwd=self.root,
                env=os.environ | {"PYTHONPATH": places},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        try:
            child = await asyncio.shield(begun)
            given, answered = _pipes(child)
            asked: dict[str, Any] = {"template": str(job.template), "given": job.given, "folder": str(job.folder)}
            asked |= {"sweep": job.points > 0, "memory": int(self.limits.memory_gb * 2**30)}
            given.write(json.dumps(asked).encode() + b"\n")  # and left open: its end is the server's end
            told = (await answered.read()).decode(errors="replace").strip()
            status = await child.wait()
        finally:
            await asyncio.shield(_end(await begun))
        if status == 0:
            return ("done", told) if job.points else _outcome(job)
        return "failed", told or f"its process ended with status {status}, perhaps for want of memory"


def _outcome(job: Job) -> tuple[str, str]:
    """The state of a job whose result lies there, and what is to be said of it."""
    receipt = None if job.points else execute.receipt_of(job.folder)
    if receipt is None:
        return "done", ""
    said = "; ".join([*receipt.faults, *receipt.stand_ins.values()])
    computed = own.read_results(job.folder) or any((job.folder / "figures").glob("*"))
    return "done" if not receipt.faults else "partly" if computed else "failed", said


def _refuse_files(template: Path, given: Mapping[str, Any]) -> None:
    texts = {name for name, one in notebook.declared(template).items() if one.element == "str"}
    for name in texts & given.keys():
        for text in re.split("[,;]", str(given[name])):
            if not text.replace("-", "").replace("_", "").isalnum():
                raise DomainError(
                    f"{name} must be a name, no file, where the server is open to other machines, got {text!r}"
                )


async def _end(child: asyncio.subprocess.Process) -> None:
    """End a process and all that it started: politely, then not."""
    given, _ = _pipes(child)
    begun = tied.started_by(child.pid) if child.returncode is None else []
    if child.returncode is None:
        child.terminate()
        try:
            await asyncio.wait_for(child.wait(), 2 * PATIENCE)
        except TimeoutError:
            begun += tied.started_by(child.pid)
            child.kill()
            await child.wait()
    given.close()
    with contextlib.suppress(OSError):
        await given.wait_closed()
    tied.kill(begun)


def _pipes(child: asyncio.subprocess.Process) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
    """Where a process is told what to do, and where it answers: both were asked for when it was started."""
    return cast(asyncio.StreamWriter, child.stdin), cast(asyncio.StreamReader, child.stdout)


# --- the process of a job ---------------------------------------------------------------------------


def main() -> int:
    """Make what one line on standard input asks for; says in one line on standard output why it could not."""
    signal.signal(signal.SIGTERM, _stop)
    with open(0, "rb", buffering=0, closefd=False) as line:  # no buffer, so that the thread below may wait for the end
        asked = json.loads(line.readline())
    resource.setrlimit(resource.RLIMIT_AS, (asked["memory"],) * 2)
    # What kernels and schedulers print is not for the server.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    threading.Thread(target=_end_with_the_server, daemon=True).start()
    template, folder = Path(asked["template"]), Path(asked["folder"])
    try:
        if asked["sweep"]:
            texts = {name: str(value) for name, value in asked["given"].items()}
            sweep.sweep(template, texts, folder, jobs=1, limit=POINTS)
        else:
            own.run(template, asked["given"], folder)
    except (execute.RunFailed, DomainError, DataError) as fault:
        lines = str(fault).splitlines()
        print(lines[-1] if asked["sweep"] else lines[0], file=out, flush=True)
        return 0 if asked["sweep"] and (folder / sweep.PAGE).is_file() else 1
    except Exception as fault:
        print(f"{type(fault).__name__}: {fault}".splitlines()[0], file=out, flush=True)
        return 1
    finally:
        tied.kill(tied.started_by(os.getpid()))
    return 0


def _stop(signum: int, _: object) -> NoReturn:
    # A polite end runs the clean-up of whatever is at work.
    raise SystemExit(128 + signum)


def _end_with_the_server() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(PATIENCE)
    tied.kill(tied.started_by(os.getpid()))
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
