"""Builds under fault: each ends in a clear sentence, or in a book equal byte for byte to an undisturbed one."""

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_book
from tiny_book import at_work, put, start, wait_until, without_privileges
from tiny_book import notebook as notebook_of

from flamebook.runs import editions, execute, schedule
from flamebook.site.book import build


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The checkout of the book of one notebook."""
    return tiny_book.make(tmp_path, "a")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny book of one notebook, built without any trouble."""
    root = tiny_book.make(tmp_path_factory.mktemp("undisturbed"), "a")
    assert start(root).wait(600) == 0
    return root / build.HTML


def differing(undisturbed: Path, root: Path) -> list[str]:
    """Files that differ from the undisturbed book; nothing half-made may lie beside the runs."""
    assert list((root / schedule.RUNS).glob(".*.part")) == []
    return editions.differences(undisturbed, root / build.HTML)


def test_a_home_language_path_clock_and_user_of_another_kind(tmp_path: Path, undisturbed: Path) -> None:
    """No git folder, no home, LANG=C, spaces and accents, no privileges, files stamped by a clock that was ahead."""
    root = tiny_book.make(tmp_path / "a checkout of Zoë's", "a")
    put(root / ".snakemake" / "locks" / "0.input.lock", "a lock that nobody holds\n")
    put(root / schedule.RUNS / ".lock", "")
    for path in root.rglob("*"):
        os.utime(path, (4e9, 4e9))
    odd = {"HOME": "/nowhere", "XDG_CACHE_HOME": "", "LANG": "C", "LC_ALL": "C", "TMPDIR": str(tmp_path)}
    assert start(root, environment=odd, before=without_privileges).wait(600) == 0
    assert differing(undisturbed, root) == []


def test_a_checkout_that_was_copied_runs_nothing_again(tmp_path: Path, undisturbed: Path) -> None:
    root = tmp_path / "elsewhere"
    shutil.copytree(undisturbed.parents[1], root)
    plan = schedule.plan(root, "quick")
    assert {execute.reason(run, plan.folder / name) for name, run in plan.runs.items()} == {""}


def flamelib(root: Path, *words: str) -> "subprocess.Popen[str]":
    """The command ``flamelib`` in a folder."""
    command = [sys.executable, "-m", "flamelib.cli", *words]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_scheduler_of_jobs_elsewhere_is_asked_to_end(tmp_path: Path) -> None:
    """So that it takes them back; what it begins is not tied."""
    code = (
        "import os, signal, subprocess, sys, time; from pathlib import Path\n"
        "def asked(*_): Path('asked').touch(); os._exit(0)\n"
        "signal.signal(signal.SIGINT, asked)\n"
        "Path('begun').write_text(os.environ.get(tied.BEGUN_FOR, '')); time.sleep(600)"
    )
    above = (
        "import os, subprocess; from flamebook.runs import tied\n"
        f"subprocess.run(tied.command({code!r}, True), env=os.environ | tied.surroundings())"
    )
    process = subprocess.Popen([sys.executable, "-c", above], cwd=tmp_path)
    wait_until(lambda: (tmp_path / "begun").exists() and len(at_work(tmp_path)) == 2)
    process.kill()
    process.wait()
    wait_until(lambda: at_work(tmp_path) == [])
    assert (tmp_path / "asked").exists()
    assert (tmp_path / "begun").read_text() == ""


def test_a_kernel_that_dies_is_one_sentence(tiny: Path) -> None:
    dying = put(tiny / "notebooks" / "a.ipynb", notebook_of("import os\nos.kill(os.getpid(), 9)"))
    dead = flamelib(tiny, "run", str(dying), "--output", "out")
    out, err = dead.communicate(timeout=600)
    assert (dead.returncode, out) == (1, "")
    assert re.fullmatch(r"a: in cell 3 the kernel ended before its work was done, [^\n]*\n", err)
    assert not [path for path in tiny.iterdir() if "out" in path.name]


def no_file_above(size: int) -> Callable[[], None]:
    """In a child: as on a disk that is full, no file can grow beyond so many bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def ended(root: Path, before: Callable[[], None]) -> str:
    """What a build says that cannot succeed."""
    process = start(root, subprocess.PIPE, before=before)
    out, err = process.communicate(timeout=600)
    assert process.returncode in (1, 2)
    assert "Traceback" not in out + err
    return out + err


def test_a_full_disk_is_said_and_the_old_book_stays(tiny: Path, undisturbed: Path) -> None:
    shutil.copytree(undisturbed.parent / "runs", tiny / schedule.RUNS, dirs_exist_ok=True)
    shutil.copytree(undisturbed, tiny / build.HTML)
    put(tiny / "book" / "index.md", "# Tiny, second edition\n\n" + "Many words. " * 10**5)
    assert "File too large" in ended(tiny, no_file_above(2**20 + 1))
    assert editions.differences(undisturbed, tiny / build.HTML) == []


def test_a_read_only_folder_is_said(tiny: Path) -> None:
    tiny.chmod(0o555)
    try:
        said = ended(tiny, without_privileges)
    finally:
        tiny.chmod(0o755)
    assert "Permission denied" in said
    assert len(said.strip().splitlines()) == 1
