"""One command: a superlink, and a supernode for every party, as processes on this machine's loopback; then a run.

``python -m flamebook.flower.processes protocol=flame clients=10 rounds=3`` prints the rounds as JSON.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from flamebook.flower.parties import ANALYZER, SHUFFLER, Settings
from flamelib.core.vocabulary import DomainError

PATIENCE_S = 600.0
APP = """\
[project]
name = "flamelib-flower"
version = "0.1.0"
description = "The protocols of flamelib with parties of their own"
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


def run(settings: Settings, work: Path) -> dict[str, Any]:
    """A whole run in processes; what its ServerApp wrote.  ``work`` receives logs, keys and the app.

    Raises
    ------
    RuntimeError
        If a process ends early, or the run does not end in time; its log is in ``work``.
    """
    result, (port, *nodes) = work / "result.json", _free_ports(settings.clients + 3)
    _write_app(settings, work / "app", result)
    (work / "home").mkdir(parents=True)
    (work / "home" / "config.toml").write_text(LINK.format(address=f"127.0.0.1:{port}"), encoding="utf-8")
    environment = os.environ | QUIET | {"FLWR_HOME": str(work / "home")}
    link = ["flower-superlink", "--insecure", "--disable-runtime-dependency-installation"]
    link += ["--host", "127.0.0.1", "--port", str(port)]
    with ExitStack() as stack:
        processes = [stack.enter_context(_started(link, work / "superlink.log", environment))]
        _reachable(port)
        for number, told in enumerate(_roles(settings.clients)):
            node = ["flower-supernode", "--insecure", "--superlink", f"127.0.0.1:{port}", "--node-config", told]
            node += ["--port", str(nodes[number])]
            processes.append(stack.enter_context(_started(node, work / f"node{number}.log", environment)))
        words = [_program("flwr"), "run", str(work / "app"), "here"]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"flwr run: {(done.stderr or done.stdout).strip()[-500:]}")
        return _awaited(result, processes)


def _roles(clients: int) -> Iterator[str]:
    for place in range(clients):
        yield f'role="client" partition-id={place}'
    for name in (SHUFFLER, ANALYZER):
        yield f'role="{name}"'


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
        raise DomainError(f"{name} must be installed: pip install 'flamelib[flower]'")
    return found


@contextmanager
def _started(words: Sequence[str], log: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out:
        process = subprocess.Popen([_program(words[0]), *words[1:]], env=environment, stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _reachable(port: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise RuntimeError(f"nobody listens on port {port}") from None
            time.sleep(0.2)


def _awaited(result: Path, processes: Sequence[subprocess.Popen[bytes]]) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE_S
    while not result.is_file():
        ended = [one.args for one in processes if one.poll() is not None]
        if ended or time.monotonic() > until:
            raise RuntimeError(f"ended early: {ended[0]}" if ended else "the run did not end in time")
        time.sleep(0.2)
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def main(words: Sequence[str]) -> int:
    """Settings as ``name=value``."""
    kinds = {field.name: type(field.default) for field in fields(Settings)}
    try:
        given = dict(word.split("=", 1) for word in words)
        settings = Settings(**{name: kinds[name](value) for name, value in given.items()})
    except (KeyError, ValueError) as wrong:
        print(f"settings must be name=value, with names among {', '.join(kinds)}: {wrong}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(settings, Path(folder)), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
