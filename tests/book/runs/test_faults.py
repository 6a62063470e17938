"""Builds under fault: each ends in a clear sentence, or in a book equal byte for byte to an undisturbed one."""

import os
import random
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny_book
from tiny_book import put, start, without_privileges

from flamebook.runs import editions, notebook, schedule
from flamebook.site.book import build


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny book, built without any trouble."""
    root = tiny_book.make(tmp_path_factory.mktemp("undisturbed"))
    assert start(root).wait(120) == 0
    return root / build.HTML


def differing(undisturbed: Path, root: Path) -> list[str]:
    """Files that differ from the undisturbed book; nothing half-made may lie beside the runs."""
    assert list((root / schedule.RUNS).glob(".*.part")) == []
    return editions.differences(undisturbed, root / build.HTML)


def test_killed_at_ten_moments_and_then_built_by_two_at_once(tiny: Path, undisturbed: Path) -> None:
    moments = random.Random(14)
    for _ in range(10):
        process = start(tiny)
        time.sleep(moments.uniform(0.2, 2.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    both = [start(tiny) for _ in range(2)]
    assert [process.wait(200) for process in both] == [0, 0]
    assert differing(undisturbed, tiny) == []


def test_a_home_language_path_clock_and_user_of_another_kind(tmp_path: Path, undisturbed: Path) -> None:
    """No git folder, no home, LANG=C, spaces and accents, no privileges, files stamped by a clock that was ahead."""
    root = tiny_book.make(tmp_path / "a checkout of Zoë's")
    put(root / ".snakemake" / "locks" / "0.input.lock", "a lock that nobody holds\n")
    put(root / schedule.RUNS / ".lock", "")
    for path in root.rglob("*"):
        os.utime(path, (4e9, 4e9))
    odd = {"HOME": "/nowhere", "XDG_CACHE_HOME": "", "LANG": "C", "LC_ALL": "C", "TMPDIR": str(tmp_path)}
    assert start(root, environment=odd, before=without_privileges).wait(120) == 0
    assert differing(undisturbed, root) == []


def no_file_above(size: int) -> Callable[[], None]:
    """In a child: as on a disk that is full, no file can grow beyond so many bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def ended(root: Path, before: Callable[[], None]) -> str:
    """What a build says that cannot succeed."""
    process = start(root, subprocess.PIPE, before=before)
    out, err = process.communicate(timeout=120)
    assert process.returncode in (1, 2)
    assert "Traceback" not in out + err
    return out + err


def test_a_full_disk_is_said_and_the_old_book_stays(tiny: Path, undisturbed: Path) -> None:
    assert "output must be a folder that can be written" in ended(tiny, no_file_above(1000))
    shutil.copytree(undisturbed.parent / "runs", tiny / schedule.RUNS, dirs_exist_ok=True)
    shutil.copytree(undisturbed, tiny / build.HTML)
    put(tiny / "book" / "index.md", "# Tiny, second edition\n\n" + "Many words. " * 10**5)
    assert "File too large" in ended(tiny, no_file_above(2**20 + 1))
    assert editions.differences(undisturbed, tiny / build.HTML) == []


@pytest.mark.parametrize("place", [".", "_build"])
def test_a_read_only_folder_is_said(tiny: Path, place: str) -> None:
    (tiny / place).mkdir(exist_ok=True)
    (tiny / place).chmod(0o555)
    try:
        said = ended(tiny, without_privileges)
    finally:
        (tiny / place).chmod(0o755)
    assert "Permission denied" in said
    assert len(said.strip().splitlines()) == 1


def test_a_text_given_as_a_parameter_is_no_markup(tiny: Path) -> None:
    page = tiny_book.notebook(text="# On @label@")
    hostile = "<script>alert(1)</script> [x](javascript:1) {{raw}} `a` $b$"
    (text, *_) = notebook.finished(page, notebook.plain({"label": hostile}))["cells"]
    for sign in "<>[]()`${}":
        assert text["source"].count(sign) == text["source"].count(f"\\{sign}")
    assert notebook.plain({"dataset": "emnist-letters", "n_users": 5}) == {"dataset": "emnist-letters", "n_users": 5}
