"""How a run and an account grow: processor time and memory of every protocol, each point in a process of its own.

``growth.csv`` has one row a point: a protocol, a question (``run`` or ``account``), the axis that grows while the
others stay, and what it took.  A point that would take more than ten seconds or a gigabyte is ended there, and no
larger one is tried.  A few minutes on one core.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from flamebook.places import ROOT
from flamebook.recordings.costs import processor
from flamebook.runs.record import Part, Recording, Results
from flamelib import (
    Checkin,
    Cloak,
    FlameDouble,
    FlameSimple,
    FlameTopk,
    KaryResponse,
    LaplaceNoise,
    Participation,
    Shuffled,
    Summed,
    account,
    run,
)
from flamelib.core.vocabulary import DomainError

TABLE = "growth.csv"
HEADER = ("protocol", "question", "axis", "size", "seconds", "megabytes", "ended")
SECONDS, MEGABYTES = 10, 1000
DELTA = 1e-6
STANDING = {"users": 1000, "rounds": 1, "dimension": 10}
LADDERS = {
    "users": [round(10 ** (half / 2)) for half in range(4, 19)],
    "rounds": [10**power for power in range(7)],
    "dimension": [10**power for power in range(1, 7)],
}
Sizes = Mapping[str, int]


def _numbers(size: Sizes) -> Any:
    return np.linspace(0, 1, size["users"])


def _answers(size: Sizes) -> Any:
    return np.arange(size["users"]) % size["dimension"]


def _vectors(size: Sizes) -> Any:
    return np.full((size["users"], size["dimension"]), 0.5 / size["dimension"])


def _gradients(size: Sizes) -> Any:
    return np.full((size["users"], 1, size["dimension"]), 0.5 / size["dimension"])


def _kept(size: Sizes) -> tuple[int, int]:
    """Coordinates that a user sends, a tenth; messages of a coordinate after padding, twice those that are expected."""
    return max(size["dimension"] // 10, 1), max(size["users"] // 5, 2)


PROTOCOLS: dict[str, tuple[Callable[[Sizes], Any], Callable[[Sizes], Any]]] = {
    "shuffled answers": (lambda s: Shuffled(KaryResponse(2.0, s["dimension"]), s["users"]), _answers),
    "shuffled Laplace": (lambda s: Shuffled(LaplaceNoise(1.0), s["users"]), _numbers),
    "SS-Simple": (lambda s: FlameSimple(s["users"], s["dimension"], 1.0, LaplaceNoise(0.5)), _vectors),
    "SS-Double": (lambda s: FlameDouble(s["users"], s["dimension"], 1.0, LaplaceNoise(0.5), *_kept(s)), _vectors),
    "SS-Topk": (lambda s: FlameTopk(s["users"], s["dimension"], 1.0, LaplaceNoise(0.5), *_kept(s)), _vectors),
    "random participation": (lambda s: Participation(0.1, 0.1, 1, 1.0, 1.0), _gradients),
    "shuffled check-in": (lambda s: Checkin(Shuffled(KaryResponse(2.0, s["dimension"]), s["users"]), 0.1), _answers),
    "distributed check-in": (lambda s: Checkin(Summed(s["users"], 1.0), 0.1), _vectors),
    "cloak": (lambda s: Cloak.plan(s["users"], 1.0, DELTA, 2.0), _numbers),
}
"""How each protocol is made at these sizes, and its users' values."""

NOWHERE = {("shuffled Laplace", "dimension"), ("cloak", "dimension")}  # one number a user


def axes(question: str, protocol: str) -> list[str]:
    """What grows: only accounts have rounds, and a run has no more dimensions than its values."""
    some = ["users", "dimension"] if question == "run" else ["users", "rounds", "dimension"]
    return [axis for axis in some if (protocol, axis) not in NOWHERE]


def ladders(protocol: str) -> list[list[Any]]:
    """The points of every question and axis, each axis from the smallest up to the first that is ended or refused."""
    for question in ("run", "account"):  # what is imported on the way is no part of a point
        measured(protocol, question, STANDING | {"users": 10})
    rows: list[list[Any]] = []
    for question in ("run", "account"):
        for axis in axes(question, protocol):
            for size in LADDERS[axis]:
                found = _apart(protocol, question, STANDING | {axis: size})
                rows.append([protocol, question, axis, size, *found])
                if found[-1]:
                    break
    return rows


def _apart(protocol: str, question: str, sizes: Sizes) -> list[Any]:
    """One point, measured by a child: seconds, megabytes, and why it ended, empty if it did by itself."""
    inner, outer = os.pipe()
    child = os.fork()
    if not child:
        _confine()
        try:
            os.write(outer, json.dumps(measured(protocol, question, sizes)).encode())
        finally:
            os._exit(0)
    os.close(outer)
    with open(inner, encoding="utf-8") as told:
        said = told.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return ["", "", "time" if os.WTERMSIG(status) == signal.SIGXCPU else "memory"]
    found: list[Any] = json.loads(said)
    return found


def _confine() -> None:
    """Hold this process to the limits."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 1, SECONDS + 2))
    room = MEGABYTES * 2**20 + _data()
    resource.setrlimit(resource.RLIMIT_DATA, (room, room))


def measured(protocol: str, question: str, sizes: Sizes) -> list[Any]:
    """One point in this process."""
    make, values = PROTOCOLS[protocol]
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        record = make(sizes)
        if question == "run":
            given = values(sizes)
            begun = time.process_time()
            run(record, given, 7)
        else:
            begun = time.process_time()
            account(record, delta=DELTA, rounds=sizes["rounds"])
    except MemoryError:
        return ["", "", "memory"]
    except DomainError as refusal:
        return ["", "", f"refused: {refusal}"]
    seconds = time.process_time() - begun
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 2**10
    return [round(seconds, 6), round(peak, 2), "time" if seconds > SECONDS else ""]


def _data() -> int:
    """Bytes of data that this process has mapped already."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * resource.getpagesize()


def parts() -> dict[str, Part]:
    """One for each protocol, with all its questions and axes."""
    return {protocol: Part(partial(_protocol, protocol)) for protocol in PROTOCOLS}


def _protocol(protocol: str) -> dict[str, Any]:
    """All points of a protocol, by a process that has nothing loaded but what they need."""
    places = os.pathsep.join([str(ROOT), str(ROOT / "book"), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-W", "ignore", "-c", f"from {__name__} import main; main({protocol!r})"]
    alone = os.environ | {"PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=alone)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    return {"rows": json.loads(done.stdout)}


def main(protocol: str) -> None:
    """Print the points of a protocol."""
    json.dump(ladders(protocol), sys.stdout)


def told(_: Results) -> dict[str, Any]:
    """The machine, the limits, and what stays while another thing grows."""
    limits = {"seconds": SECONDS, "megabytes": MEGABYTES}
    return {"machine": processor(), "limits": limits, "standing": STANDING, "delta": DELTA}


RECORDING = Recording(TABLE, parts, HEADER, told)
