"""How long a stranger waits for the command: one cold answer, a hundred answers in one process, a refusal, the help."""

import json
import subprocess
import sys

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

ANSWERS = {
    "closed form": "evaluate blanket:lem-hoeffding randomizer=laplace epsilon0=0.5 n_users=1e4 delta=1e-6",
    "certified": "evaluate blanket:lem-reduction randomizer=kary epsilon0=2 n_buckets=10 n_users=1e6 delta=1e-8",
    "clones": "evaluate clones:2021 epsilon0=1 n_users=1e4 delta=1e-6",
    "composed": "evaluate checkin:shuffled route=clones epsilon0=1 n_users=1e4 checkin_rate=0.1 rounds=10 delta=1e-6",
    "exact": "evaluate shuffle:exact-binary epsilon0=1 n_users=1e9 delta=1e-8",
    "list": "evaluate --list",
    "help": "--help",
}
MIXED = (
    {"id": "blanket:lem-bennett", "inputs": {"randomizer": "laplace", "epsilon0": 1, "delta": 1e-6}},
    {"id": "blanket:lem-reduction", "inputs": {"randomizer": "kary", "epsilon0": 2, "n_buckets": 10, "delta": 1e-8}},
    {"id": "blanket:lem-reduction", "inputs": {"randomizer": "laplace", "epsilon0": 1, "delta": 1e-8}},
    {"id": "shuffle:exact-binary", "inputs": {"epsilon0": 1, "delta": 1e-8}},
    {"id": "clones:2021", "inputs": {"epsilon0": 1, "delta": 1e-8}},
)


def command(words: list[str], given: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "flamelib.cli", *words],
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("name", ANSWERS)
def test_cold(benchmark: BenchmarkFixture, name: str) -> None:
    """From nothing to the answer."""
    assert benchmark.pedantic(command, (ANSWERS[name].split(),), rounds=5, warmup_rounds=1)


def test_a_hundred_requests(benchmark: BenchmarkFixture) -> None:
    """A hundred mixed requests on standard input."""
    requests = [
        {"id": one["id"], "inputs": {**one["inputs"], "n_users": 10**4 * 2**step}}  # type: ignore[dict-item]
        for step in range(20)
        for one in MIXED
    ]
    given = "".join(json.dumps(request) + "\n" for request in requests)
    told = benchmark.pedantic(command, (["evaluate", "--stdin"], given), rounds=2)
    assert told.count('"value"') == 100
