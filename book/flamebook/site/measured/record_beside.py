"""What the page "Beside other software" compares: the peers of ``data/beside.txt``, installed apart: a minute."""

import json
import os
import platform
import subprocess
import sys
import venv
from functools import partial
from pathlib import Path
from typing import Any

from flamebook.places import ROOT
from flamebook.runs import inputs
from flamebook.runs.record import Part, Recording, Results, by_first_column
from flamebook.site.measured import beside_peers
from flamebook.site.measured.beside import HEADER, PINNED, TABLE, pinned

PEERS = ROOT / "_build" / "beside"


def parts() -> dict[str, Part]:
    """The works, each with everybody's answer."""
    program = Path(beside_peers.__file__)
    code = program.read_text(encoding="utf-8")
    return {name: Part(partial(measured, name), partial(inputs.of_code, code, ROOT, [program, PINNED]))
            for name in beside_peers.WORKS}  # fmt: skip


def measured(name: str) -> dict[str, Any]:
    """One work, asked in one process beside the peers."""
    work = beside_peers.WORKS[name]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    if isinstance(work, beside_peers.Work) and work.without:
        environment["NPY_DISABLE_CPU_FEATURES"] = work.without
    words = [str(peers()), "-W", "ignore", beside_peers.__file__, name]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    found = json.loads(done.stdout.rpartition("[")[1] + done.stdout.rpartition("[")[2])
    return {"rows": [[name, *(str(value) for value in one.values())] for one in found]}


def peers() -> Path:
    """The Python that has the peers, made anew where the versions are others."""
    python, mark = PEERS / "bin" / "python", PEERS / "installed.txt"
    wanted = PINNED.read_text(encoding="utf-8")
    if not mark.is_file() or mark.read_text(encoding="utf-8") != wanted:
        venv.create(PEERS, clear=True, with_pip=True)
        quiet = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        lines = wanted.splitlines()
        indexed, alone = ([line for line in lines if sign in line] for sign in ("==", " @ "))
        for words in (indexed, ["--no-deps", "--ignore-requires-python", *alone]):
            subprocess.run([*quiet, *words], check=True, stdout=sys.stderr)
        mark.write_text(wanted, encoding="utf-8")
    return python


def told(_: Results) -> dict[str, Any]:
    """The machine and the peers' versions."""
    return {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "peers": pinned()}


RECORDING = Recording(TABLE.name, parts, HEADER, told, partial(by_first_column, TABLE.name))
