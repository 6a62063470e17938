"""What the page of sliders is given: the very sources, the standard library alone, and a core taken by digest."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flamebook.places import ROOT
from flamebook.site.sliders import figures, page, pyodide
from flamebook.site.sliders.page import PARTS, ROWS
from flamelib import answers

FIRST = {name: axis[0] for name, axis in page.AXES.items()}
BLANKET = {"epsilon0": 1, "n_users": 10_000, "delta": 1e-6, "n_buckets": 10, "epsilon": 1}
GIVEN = FIRST | BLANKET | {"n_messages": 30, "log2_modulus": 32, "rounds": 100, "n_records": 2}


ALONE = """
import sys
sys.path[:] = [sys.argv[1], sys.argv[1] + "/book", *(path for path in sys.path if "site-packages" not in path)]
from flamebook.site.sliders.figures import respond
print(respond(sys.argv[2]))
own = {"flamelib", "flamebook", "__main__"}
others = {name.split(".")[0] for name in sys.modules} - set(sys.stdlib_module_names) - own
sys.exit(f"imported: {others}" if others else 0)
"""


def _received(script: Path) -> Any:
    """What a script of the page hands over."""
    call = script.read_text(encoding="utf-8").removeprefix("flamelibSliders.receive(").removesuffix(");\n")
    return json.loads(f"[{call}]")[1]


@pytest.fixture(scope="module")
def values() -> dict[str, list[float | str | None]]:
    """The grid of the page without Python, made once."""
    return page.grid()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, values: dict[str, list[float | str | None]]) -> None:
    """Builds that find the grid made."""
    monkeypatch.setattr(page, "grid", lambda: values)


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without npm."""
    monkeypatch.setattr(pyodide.shutil, "which", lambda name: None)


def test_the_sources_are_the_files_of_the_package_and_run_alone(tmp_path: Path) -> None:
    carried = pyodide.sources()
    for name, source in carried.items():
        assert source == (ROOT / name).read_text(encoding="utf-8")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source, encoding="utf-8")
    assert "flamelib/accounting/shuffling/closed_form.py" in carried
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ALONE, str(tmp_path), json.dumps({"want": "answers", "inputs": GIVEN})],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["found"] == page.answers(GIVEN)


@pytest.mark.usefixtures("nothing", "made")
def test_without_npm_the_grid_is_placed_and_says_that_there_is_no_runtime(tmp_path: Path) -> None:
    assert pyodide.install(tmp_path / "html", tmp_path / "cache") is False
    facts = _received(tmp_path / "html" / "_static" / "sliders" / "values.js")
    assert facts["runtime"] is None
    assert facts["grid"].keys() == {row["key"] for row in facts["rows"]}
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()}
    assert pyodide.install(tmp_path / "other", tmp_path / "cache") is False
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()} == before


@pytest.mark.usefixtures("made")
def test_a_package_of_another_digest_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def counterfeit(command: list[str], **_: Any) -> None:
        folder = Path(command[command.index("--pack-destination") + 1])
        (folder / f"pyodide-{pyodide.VERSION}.tgz").write_bytes(b"something else")

    monkeypatch.setattr(pyodide.shutil, "which", lambda name: name)
    monkeypatch.setattr(pyodide.subprocess, "run", counterfeit)
    assert pyodide.install(tmp_path / "html", tmp_path / "cache") is False
    assert [path.name for path in (tmp_path / "html" / "_static" / "sliders").iterdir() if "pyodide" in path.name] == []


@pytest.mark.usefixtures("made")
def test_the_core_is_unpacked_whole(tmp_path: Path) -> None:
    archive = pyodide.package(pyodide.CACHE if pyodide.CACHE.is_dir() else tmp_path)
    if archive is None:
        assert pyodide.install(tmp_path / "html", tmp_path / "cache") is False
        return
    assert pyodide.integrity(archive.read_bytes()) == pyodide.INTEGRITY
    assert pyodide.install(tmp_path / "html", archive.parent) is True
    placed = {path.name for path in (tmp_path / "html" / "_static" / "sliders").iterdir()}
    told = _received(tmp_path / "html" / "_static" / "sliders" / "values.js")["runtime"]
    assert placed == {"flamelib.js", "values.js", "figures.js", "pyodide.js", *(f"{part}.js" for part in told["parts"])}
    assert told["version"] == pyodide.VERSION
    assert {*told["parts"]} - {pyodide.SNAPSHOT} == {*pyodide.PACKED}


def test_a_row_is_what_its_command_answers() -> None:
    """Rows that are computed, at once; those that are looked up are compared with their grids elsewhere."""
    found = page.answers(GIVEN)
    commands = [
        (row, found[row.key]["command"].split())
        for row in ROWS
        if not row.recorded and "-c" not in found[row.key].get("command", "-c")
    ]
    assert {row.part for row, _ in commands} == set(PARTS)
    for row, (_, _, statement, *words) in commands:
        value = answers.answer(statement, dict(word.split("=") for word in words))["value"]
        assert found[row.key]["value"] == (value[row.answers] if isinstance(value, dict) else value), row.key


def test_the_curves_pass_through_the_answers() -> None:
    found, curves = page.answers(GIVEN), figures.BLANKET.curves_at(GIVEN)
    assert len(curves) == 14
    for key, curve in curves.items():
        assert dict(zip(curve["x"], curve["y"], strict=True))[GIVEN["n_users"]] == found[key]["value"], key


def test_a_refusal_names_the_input() -> None:
    reply = json.loads(figures.respond(json.dumps({"want": "answers", "inputs": GIVEN | {"n_users": "nan"}})))
    assert reply["refused"].startswith("n_users must be ")
