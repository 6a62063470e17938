"""What the page of sliders is given: the very sources, the standard library alone, and a core taken by digest."""

import json
import math
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from flamebook.places import ROOT
from flamebook.site.sliders import figures, page, pyodide
from flamebook.site.sliders.grids import grids
from flamebook.site.sliders.page import PARTS, ROWS
from flamelib import answers
from flamelib.accounting.shuffling import closed_form
from flamelib.accounting.splitting import lemmas, theorem_parameters, two_users
from flamelib.core.profiles import KaryProfile

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


def test_the_grid_holds_what_the_functions_answer(values: dict[str, list[float | str | None]]) -> None:
    row = next(row for row in ROWS if row.key == "blanket-lem-bennett-kary-epsilon")
    points = product(*(page.AXES[name] for name in row.needs))
    for (epsilon0, n_buckets, n_users, delta), value in zip(points, values[row.key], strict=True):
        expected = closed_form.bennett(KaryProfile(epsilon0, int(n_buckets)), int(n_users), delta=delta)
        assert value == ("inf" if math.isinf(expected) else expected)


def test_rows_of_shares_take_their_own_words() -> None:
    found = page.answers(GIVEN)
    assert found["cloak-own-1-shares-distance"]["value"] == two_users.two_user_distance(2**32, 30)
    assert found["cloak-own-2-shares-delta"]["value"] == two_users.two_user_delta(2**32, 30, 1)
    bits = -math.log2(1e-6)
    assert found["cloak-best-1-shares-messages"]["value"] == lemmas.messages_needed(bits, 10_000, 32)
    assert found["cloak-thm-1-shares-bits"]["value"] == theorem_parameters.noisy_rule(1, 1e-6, 10_000).bits
    assert found["cloak-thm-2-shares-bits"]["value"] == theorem_parameters.exact_rule(1, 1e-6, 10_000, 1).bits
    assert "modulus=4294967296 n_messages=30" in found["cloak-own-1-shares-distance"]["command"]
    between = page.answers(GIVEN | {"log2_modulus": 32.3})  # a smaller modulus tells less
    assert between["cloak-own-1-shares-distance"]["value"] == two_users.two_user_distance(2**33, 30)


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


def test_claims_stand_beside_what_holds() -> None:
    replies = page.answers(GIVEN | {"epsilon0": 0.5, "kept": 157})
    found = {key: reply["value"] for key, reply in replies.items() if "value" in reply}
    assert found["flame-bennett-withdrawn-coordinate-epsilon"] < found["blanket-lem-bennett-coordinate-epsilon"]
    assert found["recorded-topk-printed-vector-epsilon"] < found["recorded-topk-lower-vector-epsilon"]
    assert found["recorded-topk-lower-vector-epsilon"] < found["recorded-topk-vector-epsilon"]
    joined = [found[f"participation-{name}-round-epsilon"] for name in ("cor-5-3", "thm-5-2", "thm-5-1", "thm-2-4")]
    assert joined == sorted(joined)
    assert found["recorded-distributed-sums-epsilon"] < found["recorded-distributed-theorem-sums-epsilon"]


def test_a_row_that_is_looked_up_says_where() -> None:
    found = page.answers(GIVEN | {"epsilon0": 0.9, "n_users": 12_345})
    reply = found["recorded-clones-any-epsilon"]
    assert reply["at"] == "ε₀ = 1, n = 10000, δ = 1e-06"
    assert reply["command"] == "flamelib evaluate clones:2021 epsilon0=1 n_users=10000 delta=1e-06"
    assert found["recorded-shares-shares-distance"]["refused"].startswith("n_users must be one of ")
    at = page.answers(GIVEN)["recorded-shares-shares-distance"]["at"]
    assert at == "N = 2^32, m = 24, n = 10000"


def test_without_python_a_recorded_value_stands_at_points_of_its_grid_alone(
    values: dict[str, list[float | str | None]],
) -> None:
    row = next(row for row in ROWS if row.recorded == "clones")
    points = product(*(page.AXES[name] for name in row.needs))
    for point, value in zip(points, values[row.key], strict=True):
        on_grid = all(x in axis for x, axis in zip(point, grids()["clones"]["axes"].values(), strict=True))
        assert (value is not None) == on_grid
    for row in ROWS:
        if row.recorded:
            assert any(value is not None for value in values[row.key]), row.key


def test_the_curves_pass_through_the_answers() -> None:
    found, curves = page.answers(GIVEN), figures.BLANKET.curves_at(GIVEN)
    assert len(curves) == 14
    for key, curve in curves.items():
        assert dict(zip(curve["x"], curve["y"], strict=True))[GIVEN["n_users"]] == found[key]["value"], key


@pytest.mark.parametrize(
    ("inputs", "named"), [({"delta": 2}, "delta"), ({"n_users": "nan"}, "n_users"), ({"epsilon0": ""}, "epsilon0")]
)
def test_a_refusal_names_the_input(inputs: dict[str, Any], named: str) -> None:
    reply = json.loads(figures.respond(json.dumps({"want": "answers", "inputs": GIVEN | inputs})))
    assert reply["refused"].startswith(f"{named} must be ")
