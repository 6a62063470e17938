"""Both ways to run the app here: in simulation, and as processes of their own on this machine's loopback.

One command starts a superlink and a supernode for every party, and prints what was learned:
``python -m flamebook.flower.processes aggregation=flame n_users=10 rounds=2``.  Nothing leaves the machine, and nothing
is left when a run ends.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flamebook.flower.client import RECORDS, TRACE, write_records
from flamebook.flower.parties import ANALYZER, SHUFFLER, Settings
from flamelib.core.vocabulary import DomainError
from flamelib.learning.federated import Users, load_users

PATIENCE_S = 600.0
APP = """\
[project]
name = "flamelib-flower"
version = "0.1.0"
description = "Sums with a shuffler and an analyzer of their own"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "flamelib"

[tool.flwr.app.components]
serverapp = "flamebook.flower.server:app"
clientapp = "flamebook.flower.client:app"

[tool.flwr.app.config]
"""
LINK = """\
[superlink]
default = "here"

[superlink.here]
address = "{address}"
insecure = true
"""
QUIET = {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_UPDATE_CHECK": "0", "OMP_NUM_THREADS": "1"}


def simulate(settings: Settings, users: Users) -> dict[str, Any]:
    """A whole run in Flower's simulation, as a process of its own, whose files are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_records(users, work / "records", range(settings.n_users))
        (work / "settings.json").write_text(json.dumps(asdict(settings)), encoding="utf-8")
        words = [sys.executable, "-m", "flamebook.flower.simulation", folder]
        environment = {"FLWR_HOME": str(work / "home"), RECORDS: str(work / "records")}
        with _started(words, work / "log", environment) as process:
            return _awaited(work / "result.json", [(process, work / "log")])


def run(settings: Settings, users: Users, work: Path) -> dict[str, Any]:
    """A whole run in processes; ``work`` receives logs, the app, and what each party received in the last round.

    Raises
    ------
    RuntimeError
        If a process ends early, or the run does not end in time, with the end of a log.
    """
    (work / "home").mkdir(parents=True)
    (work / "trace").mkdir()
    port, *others = _free_ports(settings.n_users + 3)
    address = f"127.0.0.1:{port}"
    (work / "home" / "config.toml").write_text(LINK.format(address=address), encoding="utf-8")
    _write_app(settings, work / "app", work / "result.json")
    common = {"FLWR_HOME": str(work / "home"), TRACE: str(work / "trace")}
    link = ["flower-superlink", "--insecure", "--disable-runtime-dependency-installation"]
    with ExitStack() as stack:

        def start(words: Sequence[str], name: str, own: dict[str, str]) -> tuple[subprocess.Popen[bytes], Path]:
            log = work / f"{name}.log"
            return stack.enter_context(_started([_program(words[0]), *words[1:]], log, common | own)), log

        started = [start([*link, "--host", "127.0.0.1", "--port", str(port)], "superlink", {})]
        _reachable(port, *started[0])
        for name, own, its_port in zip(_nodes(settings.n_users), _homes(settings, users, work), others, strict=True):
            node = ["flower-supernode", "--insecure", "--superlink", address, "--port", str(its_port)]
            started.append(start([*node, "--node-config", name], f"node{its_port}", own))
        words = [_program("flwr"), "run", str(work / "app"), "here"]
        done = subprocess.run(words, env=_environment(common), capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"flwr run: {(done.stderr or done.stdout).strip()[-500:]}")
        return _awaited(work / "result.json", started)


def _nodes(clients: int) -> Iterator[str]:
    yield from (f'role="client" place={place}' for place in range(clients))
    yield from (f'role="{name}"' for name in (SHUFFLER, ANALYZER))


def _homes(settings: Settings, users: Users, work: Path) -> Iterator[dict[str, str]]:
    """For each node its own folder of records; shuffler and analyzer have none."""
    for place in range(settings.n_users):
        folder = work / "records" / str(place)
        write_records(users, folder, range(place, place + 1))
        yield {RECORDS: str(folder)}
    yield from ({}, {})


def _write_app(settings: Settings, folder: Path, result: Path) -> None:
    folder.mkdir(parents=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in (asdict(settings) | {"result": str(result)}).items()]
    (folder / "pyproject.toml").write_text(APP + "\n".join(lines) + "\n", encoding="utf-8")


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return found


def _program(name: str) -> str:
    """A program of the environment that this runs in."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        command = "pip install '.[flower,learning,sealing]' in the source of flamelib"
        raise DomainError(f"{name} must be installed: {command}")
    return found


@contextmanager
def _started(words: Sequence[str], log: Path, own: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process, ended with all that it has started."""
    with log.open("wb") as out:
        environment = _environment(own)
        process = subprocess.Popen(words, env=environment, stdout=out, stderr=out, start_new_session=True)
        try:
            yield process
        finally:
            with suppress(subprocess.TimeoutExpired):
                process.terminate()
                process.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _environment(own: dict[str, str]) -> dict[str, str]:
    """This one's, silent, with the programs of the same installation first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, **QUIET, "PATH": path, **own}


def _reachable(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"nobody listens on port {port}: {_end_of(log)}") from None
            time.sleep(0.2)


def _end_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-2000:]


def _awaited(result: Path, started: Sequence[tuple[subprocess.Popen[bytes], Path]]) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE_S
    while not result.is_file():
        ended = [log for process, log in started if process.poll() is not None]
        if (ended and not result.is_file()) or time.monotonic() > until:
            log = (ended or [started[0][1]])[0]
            raise RuntimeError(f"the run did not end well: {_end_of(log)}")
        time.sleep(0.1)
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def main(words: Sequence[str]) -> int:
    """Settings as ``name=value``."""
    kinds: dict[str, Any] = {name: type(value) for name, value in asdict(Settings()).items()}
    try:
        given = dict(word.split("=", 1) for word in words)
        settings = Settings(**{name: kinds[name](value) for name, value in given.items()})
    except (KeyError, ValueError) as wrong:
        print(f"settings must be name=value, with names among {', '.join(kinds)}: {wrong}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        found = run(settings, load_users("digits", n_users=settings.n_users), Path(folder))
    for number, accuracy in enumerate(found["accuracy"], 1):
        print(f"round {number}: accuracy {accuracy:.3f}, {settings.spent(number)}")
    print(f"{settings.rounds - len(found['accuracy'])} rounds refused; bytes of a round: {found['bytes']}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
