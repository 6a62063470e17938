"""Settings of all tests: one thread each, no window, sixty digits for oracles, the same random examples every time."""

import fcntl
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flamebook.claims.ledger import Judged
    from flamebook.site.written.unknown import Bracket

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import mpmath
from hypothesis import HealthCheck, settings

mpmath.mp.dps = 60

settings.register_profile("same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("same")


def _shared(tmp_path_factory: pytest.TempPathFactory, name: str, compute: Callable[[], Any]) -> Any:
    """What takes half a minute, computed once for all tests and for processes side by side."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = shared / f"{name}.pickle"
        if not kept.exists():
            kept.write_bytes(pickle.dumps(compute()))
        return pickle.loads(kept.read_bytes())


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory) -> "list[Judged]":
    """The whole ledger, computed."""
    from flamebook.claims import ledger

    found: list[Judged] = _shared(tmp_path_factory, "ledger", ledger.judge_all)
    return found


@pytest.fixture(scope="session")
def brackets(tmp_path_factory: pytest.TempPathFactory) -> "list[Bracket]":
    """Everything that is still unknown, both ends computed."""
    from flamebook.site.written import unknown

    found: list[Bracket] = _shared(tmp_path_factory, "brackets", unknown.brackets)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results are recorded, with their parts, and read in a test."""
    from flamebook.runs import record, recorded

    for name in ("rows", "provenance"):
        monkeypatch.setattr(recorded, name, getattr(recorded, name).__wrapped__)
    for module in (record, recorded):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(record, "KEPT", tmp_path / "kept")
    return tmp_path


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A checkout with three notebooks over four modules; ``a`` and ``b`` share the module ``base``."""
    import tiny_book  # beside the tests of runs, which alone use it

    return tiny_book.make(tmp_path)
