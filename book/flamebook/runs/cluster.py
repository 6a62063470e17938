"""Runs on a SLURM cluster: what Snakemake is told beside ``--executor slurm``, and how the scheduler ended a job.

A job of the cluster is a group of runs, one after the other on one core: waiting for the scheduler costs more than
most notebooks.  A job that the scheduler ended leaves no message of its own; its state is asked from ``sacct``.
"""

import re
import subprocess
from collections.abc import Sequence

GROUP = 10  # most runs in one job: a job that is cancelled, or runs out of time, takes few with it
FIRST_LOOK = 5  # seconds; the plugin's own 40 are longer than most notebooks take
KILLED = "killed"  # by a scheduler without control groups that watches memory itself, and gives no reason
_ENDS = {
    "cancelled": "CANCELLED PREEMPTED REVOKED",
    "out of time": "TIMEOUT DEADLINE",
    "out of memory": "OUT_OF_MEMORY",
    "node failed": "NODE_FAIL BOOT_FAIL",
}
_STATES = {state: words for words, states in _ENDS.items() for state in states.split()}
_BLOCK = re.compile(r"^\[", re.MULTILINE)  # an event begins with its time, and those inside another are indented
_JOB = re.compile(r"slurm_logs/\S*?(\d+)\.log \(check")
_RUN = re.compile(r"([^/\s]+)/receipt\.json")


def words(options: Sequence[str], due: int, jobs: int) -> list[str]:
    """The user's words for Snakemake; if they choose SLURM, defaults for what they leave open come before them.

    >>> words(["--executor", "slurm", "--slurm-status-command", "sacct", "--jobs=9"], due=100, jobs=50)[:4]
    ['--resources', 'run=1', '--group-components', 'runs=2']
    """
    given = list(options)
    if "slurm" not in given and "--executor=slurm" not in given:
        return given
    # `sacct` writes `CANCELLED by 1000` for a job that a user cancelled.  The plugin takes this for the state of a job
    # at work and would wait for ever; `squeue` writes one word.
    defaults = {
        "--resources": "run=1",
        "--group-components": f"runs={max(1, min(GROUP, -(-due // jobs)))}",
        "--slurm-status-command": "squeue",
        "--slurm-init-seconds-before-status-checks": str(FIRST_LOOK),
        "--jobs": str(jobs),
    }
    if "--resources" in given:
        given.insert(given.index("--resources") + 1, defaults["--resources"])
    named = {word.partition("=")[0] for word in given}
    return [word for name, value in defaults.items() if name not in named for word in (name, value)] + given


def elsewhere(options: Sequence[str]) -> bool:
    """Whether these words send jobs to other machines.

    >>> elsewhere(["--executor", "slurm"]), elsewhere(["-e=kubernetes"]), elsewhere(["--cores", "2"])
    (True, True, False)
    """
    return any(word.partition("=")[0] in ("--executor", "-e", "--profile", "--workflow-profile") for word in options)


def endings(log: str) -> dict[str, str]:
    """How the scheduler ended the jobs of a log of Snakemake, by run; runs that failed by themselves are left out."""
    jobs = {
        run: job[1]
        for block in _BLOCK.split(log)
        if "Error in " in block and (job := _JOB.search(block))
        for line in block.splitlines()
        if line.strip().startswith("output: ")
        for run in _RUN.findall(line)
    }
    told = {job: words for job in set(jobs.values()) if (words := _told(job))}
    return {run: told[job] for run, job in jobs.items() if job in told}


def _told(job: str) -> str:
    """What the scheduler's accounts say of a job; empty if its program failed or if there are no accounts to read."""
    asked = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=State,ExitCode", f"--jobs={job}"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    state, _, code = said.partition("\n")[0].partition("|")
    state, signal = state.partition(" ")[0], code.partition(":")[2]
    if state == "FAILED" and signal == "9":
        return f"{KILLED}: job {job} of the scheduler ended by signal 9, as happens where memory runs out"
    return f"{_STATES[state]}: the scheduler ended job {job} ({state})" if state in _STATES else ""


def status(fault: str) -> str:
    """The status of a run that is missing, from the first words of what is said about it.

    >>> status("out of time: the scheduler ended job 17 (TIMEOUT)"), status("cell 3 raised ValueError")
    ('out of time', 'failed')
    """
    word, colon, _ = fault.partition(":")
    return word if colon and word in {KILLED, *_ENDS} else "failed"
