"""Processes that end with those that started them, however these end: nothing outlives the command that began it.

A process that the system kills can tell nobody.  So each that works for another looks whether those above it, up to
the command that all was begun for, are still there; where one is not, it ends with all that it started itself.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import psutil

BEGUN_FOR = "FLAMELIB_BEGUN_FOR"  # the process whose end is the end of all that it started
STEP_SECONDS = 0.2  # between two looks


def surroundings() -> dict[str, str]:
    """What the environment of a child says, for :func:`tie` in it and in those that it starts in turn."""
    return {BEGUN_FOR: str(os.getpid())}


def command(code: str, politely: bool = False) -> list[str]:
    """The command that runs these lines of Python in a process that is tied."""
    return [sys.executable, "-c", f"from flamebook.runs import tied; tied.tie({politely}); {code}"]


def tie(politely: bool = False) -> None:
    """From now on end this process, and all that it started, when one of those above it has ended.

    Watched are its parent, the parent of that, and so on, up to the process that :func:`surroundings` named; where that
    is none of them, one of them has ended already.  Where none was named, nothing is watched.

    Parameters
    ----------
    politely : bool
        Interrupt this process alone (SIGINT), as a scheduler that takes back then what it has begun elsewhere; what it
        starts is not tied.
    """
    if politely:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    named = os.environ.pop(BEGUN_FOR, "") if politely else os.environ.get(BEGUN_FOR, "")
    if named:
        above = psutil.Process().parents()
        last = next((at for at, one in enumerate(above) if str(one.pid) == named), None)
        watched = () if last is None else above[: last + 1]
        threading.Thread(target=_watch, args=(watched, politely), daemon=True).start()


def _watch(above: Sequence[psutil.Process], politely: bool) -> None:
    while above and all(map(_alive, above)):
        time.sleep(STEP_SECONDS)
    if politely:
        os.kill(os.getpid(), signal.SIGINT)
    else:
        end(os.getpid())


def _alive(one: psutil.Process) -> bool:
    try:
        return bool(one.is_running() and one.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def alive(pid: int) -> bool:
    """Whether there is a process of this number, other than one that has ended and waits to be taken note of."""
    try:
        return _alive(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return False


def started_by(pid: int) -> list[psutil.Process]:
    """All that a process has started, and what those have started in turn."""
    with suppress(psutil.NoSuchProcess):
        return list(psutil.Process(pid).children(recursive=True))
    return []


def kill(processes: Sequence[psutil.Process]) -> None:
    """End these processes at once; those that have ended are left out."""
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def end(pid: int) -> None:
    """End a process, and all that it started, at once."""
    below = started_by(pid)
    if pid == os.getpid():
        kill(below)  # first, for nothing comes after its own end
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    kill(below)
