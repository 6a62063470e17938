"""The machinery of the book on a tiny copy of itself: what is run again, what is not, and what a kill leaves."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_book import at_work, notebook, pages, put, start, wait_until

from flamebook.runs import execute, schedule
from flamebook.site.book import build
from flamelib.core.vocabulary import DomainError


def shown(root: Path, name: str) -> str:
    """What the last cell of an executed notebook shows."""
    page = json.loads((root / schedule.RUNS / name / f"{name}.ipynb").read_text())
    return "".join(page["cells"][-1]["outputs"][0]["data"]["text/plain"])


def due(root: Path) -> list[str]:
    """The runs that a build would make."""
    plan = schedule.plan(root, "quick")
    return sorted(name for name, run in plan.runs.items() if execute.reason(run, plan.folder / name))


def test_only_what_depends_on_a_change_runs_again_and_a_failure_is_shown(
    tiny: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert schedule.carry_out(schedule.plan(tiny, "quick")).ran == ("a", "b", "c")
    assert (shown(tiny, "a"), shown(tiny, "c")) == ("(1, 20000)", "(3, 10000)")
    for path in tiny.rglob("*.py"):
        path.touch()
    assert due(tiny) == []

    put(tiny / "data" / "words.csv", "other\n")
    assert due(tiny) == ["b"]
    put(tiny / "book" / "parameters" / "quick.yml", "a: {n_users: 20000}\nc: {n_users: 30000}\n")
    assert due(tiny) == ["b", "c"]
    put(tiny / "data" / "words.csv", "word\n")
    # The new text is as long as the old one and its time stamp is older: only the content tells.
    module = put(tiny / "tinylib" / "base.py", "BASE = 2\n")
    os.utime(module, (0, 0))
    assert due(tiny) == ["a", "b", "c"]
    put(module, "BASE = 1\n")
    before = (tiny / schedule.RUNS / "a" / "a.ipynb").read_bytes()
    put(tiny / schedule.RUNS / "a" / "a.ipynb", "half a pa")
    assert due(tiny) == ["a", "c"], "what was changed by hand is made again"

    put(tiny / "notebooks" / "b.ipynb", notebook("nothing = 0", "n_users / nothing"))
    outcome = build.build(tiny, "quick", 2, (), lambda *folders: None, lambda html: None)
    assert outcome.ran == ("a", "c")
    assert (tiny / schedule.RUNS / "a" / "a.ipynb").read_bytes() == before, "equal inputs give equal bytes"
    assert shown(tiny, "c") == "(3, 30000)"
    assert "b: cell 4 raised ZeroDivisionError" in outcome.failed["b"]
    assert "n_users / nothing" in outcome.failed["b"]
    assert not (tiny / build.HTML).exists(), "no book is made from a failed run"
    assert (tiny / schedule.RUNS / execute.FAILED / "b.ipynb").is_file(), "the failed notebook is kept to look at"
    assert "failed   b" in capfd.readouterr().out


def killed_when(root: Path, reached: Callable[[], bool]) -> None:
    """Start the build and kill it when a point is reached; whatever it began ends with it."""
    process = start(root)
    wait_until(lambda: reached() or process.poll() is not None)
    assert process.poll() is None, "the build ended before it was killed"
    process.kill()
    process.wait()
    wait_until(lambda: at_work(root) == [])


def test_a_killed_build_is_finished_by_the_next_and_leaves_no_half_page(tiny: Path) -> None:
    folder = tiny / schedule.RUNS
    (tiny / "notebooks" / "b.ipynb").unlink()
    put(tiny / "notebooks" / "c.ipynb", notebook("import time\ntime.sleep(0 if n_users == 20000 else 60)"))
    killed_when(tiny, lambda: (folder / ".c.part").exists() and (folder / "a" / execute.RECEIPT).exists())
    assert not (folder / "c").exists() or not any((folder / "c").iterdir()), "a run appears whole or not at all"
    assert schedule.failure(folder, "c") == "", "a run that was ended has not failed by itself"
    assert pages(tiny) == {}

    put(tiny / "book" / "parameters" / "quick.yml", "a: {n_users: 20000}\nc: {n_users: 20000}\n")
    both = [start(tiny) for _ in range(2)]
    assert [process.wait(600) for process in both] == [0, 0], "the second waits for the first"
    assert [path.name for path in folder.glob(".*.part")] == []
    whole = pages(tiny)
    assert "_build/html/notebooks/a.html" in whole

    put(tiny / "book" / "index.md", "# Tiny, second edition\n")
    work = tiny / build.WORK / "_build" / "html"
    killed_when(tiny, lambda: (work / "notebooks" / "a.html").exists() or (work / "book" / "index.html").exists())
    assert pages(tiny) == whole, "the book in place is still the whole old one"

    assert start(tiny).wait(600) == 0
    assert b"second edition" in pages(tiny)["_build/html/book/index.html"]
    assert not (tiny / build.WORK).exists()

    stamped = (tiny / build.HTML / "index.html").stat().st_mtime_ns
    assert start(tiny).wait(600) == 0
    assert (tiny / build.HTML / "index.html").stat().st_mtime_ns == stamped, "nothing changed, nothing is built"


def test_pages_that_warn_are_refused_and_the_old_book_stays(tiny: Path) -> None:
    shutil.rmtree(tiny / "notebooks")
    put(tiny / "book" / "parameters" / "quick.yml", "")
    put(tiny / "book" / "_toc.yml", "{format: jb-book, root: book/index}\n")
    put(tiny / "book" / "index.md", "# Tiny\n\n{ref}`nowhere`\n")
    with pytest.raises(build.BookFailed, match="nowhere"):
        build.build(tiny, "quick", 2, (), lambda *folders: None, lambda html: None)
    assert not (tiny / build.HTML).exists()


def test_bad_requests_are_refused_before_anything_is_written(tiny: Path) -> None:
    with pytest.raises(DomainError, match="output_folder"):
        execute.execute(tiny / "notebooks" / "a.ipynb", tiny / "book", {})
    with pytest.raises(DomainError, match="profile must be one of quick, paper"):
        schedule.plan(tiny, "huge")
    put(tiny / "book" / "parameters" / "quick.yml", "d: {n_users: 5}\n")
    with pytest.raises(DomainError, match=r"d is not a parameter of quick\.yml"):
        schedule.plan(tiny, "quick")
    assert (tiny / "book" / "index.md").is_file()
