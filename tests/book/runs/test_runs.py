"""The machinery of the book on a tiny copy of itself: what is run again, what is not, and what a kill leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flamebook.places import ROOT
from flamebook.records import to_csv
from flamebook.runs import execute, inputs, schedule
from flamebook.runs import notebook as stamp
from flamebook.runs.record import by_first_column
from flamebook.site import build, record_speeds
from flamebook.site import pages as status
from flamelib.core.vocabulary import DomainError

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
PARAMETERS = "n_users: int = 10_000  # users\nseed: int = 7  # of the one generator"
CONFIG = """\
title: Tiny
author: Nobody
copyright: "2026"
logo: ""
only_build_toc_files: true
execute: {execute_notebooks: "off"}
"""
BUILD = "import sys; from flamebook.site import build; sys.exit(build.main([], *[lambda *folders: None] * 2))"


def notebook(*sources: str, text: str = "# Page") -> dict[str, object]:
    """A template: one text, the parameters, then these cells."""
    first = {"cell_type": "markdown", "id": "text", "metadata": {}, "source": text}
    tagged = {"metadata": {"tags": ["parameters"]}, "source": PARAMETERS}
    code = [tagged, *({"metadata": {}, "source": source} for source in sources)]
    blank = {"cell_type": "code", "outputs": [], "execution_count": None}
    cells = [first, *({"id": f"code-{number}", **blank, **cell} for number, cell in enumerate(code))]
    return {"cells": cells, "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}


def put(path: Path, text: str | dict[str, object]) -> Path:
    """Write a file, its folder too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A checkout with three notebooks over four modules; ``a`` and ``b`` share the module ``base``."""
    put(tmp_path / "tinylib" / "__init__.py", "")
    put(tmp_path / "tinylib" / "base.py", "BASE = 1\n")
    put(tmp_path / "tinylib" / "one.py", "from tinylib.base import BASE as ONE\n")
    put(tmp_path / "tinylib" / "two.py", "from . import base\n\nTWO = base.BASE\nREADS = 'words.csv'\n")
    put(tmp_path / "tinylib" / "three.py", "THREE = 3\n")
    put(tmp_path / "data" / "words.csv", "word\n")
    for name, module in (("a", "one"), ("b", "two"), ("c", "three")):
        text = f"# Page {name} for @n_users@ users"
        page = notebook(f"from tinylib.{module} import {module.upper()}\n({module.upper()}, n_users)", text=text)
        put(tmp_path / "notebooks" / f"{name}.ipynb", page)
    put(tmp_path / "book" / "index.md", "# Tiny\n")
    put(tmp_path / "book" / "_toc.yml", "{format: jb-book, root: book/index, chapters: [{file: notebooks/a}]}\n")
    put(tmp_path / "book" / "parameters" / "quick.yml", "a: {n_users: 20000}\n")
    put(tmp_path / "_config.yml", CONFIG)
    shutil.copy(ROOT / "Snakefile", tmp_path)
    return tmp_path


def carry_out(root: Path) -> schedule.Outcome:
    """Bring the runs up to date, and none of them failed."""
    outcome = schedule.carry_out(schedule.plan(root, "quick"))
    assert not outcome.failed
    return outcome


def shown(root: Path, name: str) -> str:
    """What the last cell of an executed notebook shows."""
    page = json.loads((root / schedule.RUNS / name / f"{name}.ipynb").read_text())
    return "".join(page["cells"][-1]["outputs"][0]["data"]["text/plain"])


def test_only_what_depends_on_a_change_runs_again(tiny: Path) -> None:
    assert sorted(carry_out(tiny).ran) == ["a", "b", "c"]
    assert (shown(tiny, "a"), shown(tiny, "c")) == ("(1, 20000)", "(3, 10000)")

    for path in tiny.rglob("*.py"):
        path.touch()
    assert carry_out(tiny).ran == ()

    put(tiny / "book" / "parameters" / "quick.yml", "a: {n_users: 20000}\nc: {n_users: 30000}\n")
    assert carry_out(tiny).ran == ("c",)
    assert shown(tiny, "c") == "(3, 30000)"

    # The new text is as long as the old one and its time stamp is older: only the content tells.
    module = put(tiny / "tinylib" / "base.py", "BASE = 2\n")
    os.utime(module, (0, 0))
    shutil.rmtree(tiny / ".snakemake")
    assert sorted(carry_out(tiny).ran) == ["a", "b"]
    assert (shown(tiny, "a"), shown(tiny, "b")) == ("(2, 20000)", "(2, 10000)")

    put(tiny / "data" / "words.csv", "other\n")
    assert carry_out(tiny).ran == ("b",)


def test_files_of_a_run_that_were_changed_by_hand_are_made_again(tiny: Path) -> None:
    shutil.rmtree(tiny / "notebooks")
    put(tiny / "book" / "parameters" / "quick.yml", "")
    put(tiny / "notebooks" / "a.ipynb", notebook("6 * 7"))
    carry_out(tiny)
    before = (tiny / schedule.RUNS / "a" / "a.ipynb").read_bytes()
    put(tiny / schedule.RUNS / "a" / "a.ipynb", "half a pa")
    assert carry_out(tiny).ran == ("a",)
    assert (tiny / schedule.RUNS / "a" / "a.ipynb").read_bytes() == before, "equal inputs give equal bytes"


def test_a_failing_notebook_is_shown_and_the_others_go_on(tiny: Path, capfd: pytest.CaptureFixture[str]) -> None:
    put(tiny / "notebooks" / "b.ipynb", notebook("nothing = 0", "n_users / nothing"))
    outcome = build.build(tiny, "quick", 2, (), lambda *folders: None, lambda html: None)
    assert sorted(outcome.ran) == ["a", "c"]
    assert "b: cell 4 raised ZeroDivisionError" in outcome.failed["b"]
    assert "n_users / nothing" in outcome.failed["b"]
    assert not (tiny / build.HTML).exists(), "no book is made from a failed run"
    assert not (tiny / schedule.RUNS / "b").exists()
    assert (tiny / schedule.RUNS / execute.FAILED / "b.ipynb").is_file(), "the failed notebook is kept to look at"
    assert "failed   b" in capfd.readouterr().out


def start(root: Path) -> "subprocess.Popen[bytes]":
    """``make book`` without the environment, in a process group of its own."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "book"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-c", BUILD]
    return subprocess.Popen(command, cwd=root, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)


def killed_when(root: Path, reached: Callable[[], bool]) -> None:
    """Start the build and kill its whole process group when a point is reached."""
    process = start(root)
    deadline = time.monotonic() + 60
    while not reached():
        assert process.poll() is None, "the build ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def pages(root: Path) -> dict[str, bytes]:
    """Every page of the book in place."""
    return {str(path.relative_to(root)): path.read_bytes() for path in (root / build.HTML).rglob("*.html")}


def test_a_killed_build_is_finished_by_the_next_and_leaves_no_half_page(tiny: Path) -> None:
    folder = tiny / schedule.RUNS
    slow = f"import time\ntime.sleep(0 if n_users == 20000 else {60})"
    put(tiny / "notebooks" / "c.ipynb", notebook(slow))
    killed_when(tiny, lambda: (folder / ".c.part").exists() and (folder / "a" / execute.RECEIPT).exists())
    assert not (folder / "c").exists() or not any((folder / "c").iterdir()), "a run appears whole or not at all"
    assert pages(tiny) == {}

    put(tiny / "book" / "parameters" / "quick.yml", "a: {n_users: 20000}\nc: {n_users: 20000}\n")
    assert start(tiny).wait(90) == 0
    assert [path.name for path in folder.glob(".*.part")] == []
    whole = pages(tiny)
    assert "_build/html/notebooks/a.html" in whole

    put(tiny / "book" / "index.md", "# Tiny, second edition\n")
    work = tiny / build.WORK / "_build" / "html"
    killed_when(tiny, lambda: (work / "notebooks" / "a.html").exists() or (work / "book" / "index.html").exists())
    assert pages(tiny) == whole, "the book in place is still the whole old one"

    assert start(tiny).wait(90) == 0
    assert b"second edition" in pages(tiny)["_build/html/book/index.html"]
    assert not (tiny / build.WORK).exists()

    stamped = (tiny / build.HTML / "index.html").stat().st_mtime_ns
    started = time.monotonic()
    assert start(tiny).wait(90) == 0
    assert (tiny / build.HTML / "index.html").stat().st_mtime_ns == stamped, "nothing changed, nothing is built"
    assert time.monotonic() - started < 15


def test_pages_that_warn_are_refused_and_the_old_book_stays(tiny: Path) -> None:
    shutil.rmtree(tiny / "notebooks")
    put(tiny / "book" / "parameters" / "quick.yml", "")
    put(tiny / "book" / "_toc.yml", "{format: jb-book, root: book/index}\n")
    put(tiny / "book" / "index.md", "# Tiny\n\n{ref}`nowhere`\n")
    with pytest.raises(build.BookFailed, match="nowhere"):
        build.build(tiny, "quick", 2, (), lambda *folders: None, lambda html: None)
    assert not (tiny / build.HTML).exists()


def test_the_modules_of_a_notebook_are_those_it_imports_directly_or_not(tiny: Path) -> None:
    put(tiny / "tinylib" / "lazy.py", "def later():\n    import tinylib.three\n    return tinylib.three\n")

    def found(code: str) -> list[str]:
        return [path.stem for path in inputs.modules(code, tiny)]

    assert found("import numpy") == []
    assert found("from tinylib.two import TWO") == ["__init__", "base", "two"]
    assert found("from tinylib import one, three") == ["__init__", "base", "one", "three"]
    assert found("from tinylib.lazy import later") == ["__init__", "lazy", "three"]


def test_data_files_named_in_a_module_are_inputs(tiny: Path) -> None:
    put(tiny / "data" / "unread.csv", "")
    assert "data/words.csv" in inputs.digests(tiny / "notebooks" / "b.ipynb", tiny)
    assert not any(name.startswith("data/") for name in inputs.digests(tiny / "notebooks" / "a.ipynb", tiny))


def test_the_stamp_writes_values_and_words_and_leaves_no_time(tiny: Path) -> None:
    page = notebook("n_users", text="@n_users@ users, slope @slope@")
    page["metadata"] = KERNEL | {"papermill": {"duration": 1.5}}
    page["cells"][1]["metadata"] |= {"papermill": {"status": "completed"}, "execution": {"iopub.execute_input": "now"}}
    page["cells"][2]["metadata"] = {"mystnb": {"figure": {"caption": "With @n_users@."}}}
    valued = stamp.with_values(page, {"n_users": 2_000_000})
    assert valued["cells"][1]["source"] == PARAMETERS.replace("10_000", "2000000")
    done = stamp.finished(valued, {"n_users": 2_000_000, "slope": 1 / 3})
    assert done["cells"][0]["source"] == "2,000,000 users, slope 0.3333"
    assert done["cells"][2]["metadata"]["mystnb"]["figure"]["caption"] == "With 2,000,000."
    assert "papermill" not in json.dumps(done)
    assert "execution" not in done["cells"][1]["metadata"]
    with pytest.raises(DomainError, match="@slope@"):
        stamp.finished(valued, {"n_users": 1})


def test_bad_requests_are_refused_before_anything_is_written(tiny: Path) -> None:
    template = tiny / "notebooks" / "a.ipynb"
    with pytest.raises(DomainError, match="n_user is not a parameter"):
        execute.execute(template, tiny / "out", {"n_user": 5})
    with pytest.raises(DomainError, match="n_users must be"):
        execute.execute(template, tiny / "out", {"n_users": float("nan")})
    with pytest.raises(DomainError, match="output_folder"):
        execute.execute(template, tiny / "book", {})
    with pytest.raises(DomainError, match="output_folder"):
        execute.execute(template, template, {})
    with pytest.raises(DomainError, match="profile must be one of quick, paper"):
        schedule.plan(tiny, "huge")
    put(tiny / "book" / "parameters" / "quick.yml", "d: {n_users: 5}\n")
    with pytest.raises(DomainError, match=r"d is not a parameter of quick\.yml"):
        schedule.plan(tiny, "quick")
    assert not (tiny / "out").exists()
    assert (tiny / "book" / "index.md").is_file()


def test_the_status_page_shows_every_receipt(tmp_path: Path) -> None:
    receipt = {"notebook": "a", "parameters": {"n_users": 5}, "seed": 7, "seconds": 2.5, "peak_memory_mb": 80.0}
    receipt |= {"versions": {"python": "3.11.7"}, "inputs": {"notebooks/a.ipynb": "f" * 64}, "outputs": {}}
    put(tmp_path / "a" / execute.RECEIPT, receipt)
    put(tmp_path / "b" / execute.RECEIPT, "half a rec")
    speeds = put(tmp_path / "speeds.csv", "subject,what,median,rounds,machine\nsums,blanket,0.1 s,5,some CPU\n")
    page = status.status_page(tmp_path, speeds)
    assert "{doc}`a <../notebooks/a>` | 2.5 | 80 | 7 | 1 |" in page
    assert "| `n_users` | 5 |" in page
    assert "| blanket | 0.1 s | 5 |" in page
    assert "../notebooks/b" not in page


def test_measured_speeds_are_kept_with_their_machine(tmp_path: Path) -> None:
    machine = {"python_version": "3.11.7", "cpu": {"brand_raw": "Some CPU"}}
    files = {"whole_search[2-ary]": "shuffling", "round": "flame", "whole_search[laplace]": "shuffling"}
    measured = [
        {"name": f"test_{name}", "fullname": f"tests/benchmarks/test_bench_{file}.py::test_{name}"}
        | {"stats": {"median": 0.02134, "rounds": 5}}
        for name, file in files.items()
    ]
    speeds = to_csv(record_speeds.HEADER, sorted(record_speeds.rows({"machine_info": machine, "benchmarks": measured})))
    page = status.status_page(tmp_path, put(tmp_path / "speeds.csv", speeds))
    assert "| whole search[2-ary] | 21.3 ms | 5 |" in page
    assert page.count("Some CPU, Python 3.11.7") == 1
    assert page.index("{dropdown} flame: 1 measured") < page.index("{dropdown} shuffling: 2 measured")


def test_every_recorded_speed_has_its_program() -> None:
    """By the subject, which is the name of its file."""
    assert set(by_first_column(record_speeds.TABLE)) <= set(record_speeds.parts())
