"""The recorder: what was made is kept through a kill, what has changed is made again, and a table is whole or old."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flamebook.places import RESULTS
from flamebook.runs import inputs
from flamebook.runs import record as recorder
from flamebook.runs.inputs import sha256
from flamebook.runs.record import Part, Recording, record
from flamelib.core.statements import homes


class Toy:
    """A recording of three parts, each with a module of its own; ``made`` tells which were made, ``broken`` fails."""

    def __init__(self, root: Path) -> None:
        self.root, self.made, self.broken = root, list[str](), dict[str, BaseException]()
        self.given: dict[str, Any] = {}
        for name in "abc":
            self.write(name, "import json\n")
        self.recording = Recording("toy.csv", self.parts, ("part", "value"), lambda results: {"sizes": len(results)})

    def write(self, name: str, code: str) -> None:
        path = self.root / "code" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, encoding="utf-8")

    def parts(self) -> dict[str, Part]:
        reads = {name: partial(inputs.of_code, f"import {name}", self.root / "code") for name in "abc"}
        return {f"{name}/x": Part(partial(self.make, name), reads[name], self.given.get(name)) for name in "abc"}

    def make(self, name: str) -> dict[str, Any]:
        self.made.append(name)
        if name in self.broken:
            raise self.broken[name]
        return {"rows": [(name, np.int64(1)), (name, np.float64(0.1))]}

    def again(self, **words: Any) -> tuple[bool, str]:
        """Record; what was made this time."""
        self.made.clear()
        return record(self.recording, **words), "".join(self.made)


@pytest.fixture
def toy(folder: Path) -> Toy:
    return Toy(folder)


def test_a_table_and_how_it_came_about_are_written(toy: Toy, folder: Path) -> None:
    assert toy.again() == (True, "abc")
    table = folder / "toy.csv"
    assert table.read_text() == "part,value\na,1\na,0.1\nb,1\nb,0.1\nc,1\nc,0.1\n"
    about = json.loads((folder / "toy.json").read_text())
    assert list(about) == ["date", "command", "commit", "seconds", "versions", "sizes", "sha256"]
    assert about["command"] == "flamelib record toy"
    assert (len(about["commit"]), about["sizes"], about["sha256"]) == (40, 3, {"toy.csv": sha256(table)})
    kept = json.loads((folder / "kept" / "toy" / "a" / "x.json").read_text())
    assert kept["result"] == {"rows": [["a", 1], ["a", 0.1]]}
    assert kept["made_from"]["a.py"] == sha256(folder / "code" / "a.py")
    assert {"python", "numpy"} <= kept["made_from"].keys()


def test_what_was_killed_goes_on_where_it_was(toy: Toy, folder: Path) -> None:
    toy.broken["b"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        toy.again()
    assert not (folder / "toy.csv").exists()
    del toy.broken["b"]
    assert toy.again() == (True, "bc")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert toy.again() == (True, "")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert toy.again(again=True) == (True, "abc")


def test_a_part_is_made_again_where_what_it_is_made_from_has_changed(
    toy: Toy, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.again()
    toy.write("b", "import json, c\n")
    assert toy.again() == (True, "b")
    toy.write("c", "import json, math\n")
    assert toy.again() == (True, "bc"), "b imports c now"
    toy.given["a"] = {"size": 2}
    assert toy.again() == (True, "a")
    (folder / "kept" / "toy" / "b" / "x.json").write_text("half a rec")
    assert toy.again() == (True, "b")
    monkeypatch.setattr(recorder, "versions", lambda packages: {"python": "4"})
    assert toy.again() == (True, "abc")


def test_a_part_that_fails_leaves_the_others_and_the_old_table(
    toy: Toy, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy.again()
    old = {name: (folder / name).read_bytes() for name in ("toy.csv", "toy.json")}
    toy.broken["b"] = ValueError("two\nlines")
    for name in "abc":
        toy.write(name, "import math\n")
    capsys.readouterr()
    assert toy.again() == (False, "abc")
    log = folder / "kept" / "toy" / "b" / "x.log"
    told = capsys.readouterr().out.splitlines()
    assert f"failed   toy/b/x: two lines (ValueError, more in {log})" in told
    assert told[-1] == "left     toy.csv as it was: 1 of its 3 parts are not current"
    assert "Traceback" in log.read_text()
    assert {name: (folder / name).read_bytes() for name in old} == old
    toy.broken.clear()
    assert toy.again() == (True, "b")


def test_every_recorded_table_has_its_recording() -> None:
    """Found by reading the sources; what a table says of itself is what makes it again."""
    found = recorder.find()
    assert {one.table for one in found.values()} | {f"{name}.json" for name in found} == {
        path.name for path in RESULTS.iterdir() if path.is_file()
    }
    for name, one in found.items():
        about = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        assert about["command"] == f"flamelib record {name}"
        assert about.get("sha256", {}) == ({one.table: sha256(RESULTS / one.table)} if one.header else {})


def test_what_is_looked_up_by_name_counts_among_what_a_part_is_made_from() -> None:
    """A grid has the module that states it, the ledger all statements, their checks, and the tables that these read."""
    used = {name: recorder._used(recorder.find()[name]) for name in ("certified", "ledger")}
    home = f"{homes()['clones:2021'].replace('.', '/')}.py"
    assert home in used["certified"]["clones"]
    assert home not in used["certified"]["shares"]
    kept = "data/results/flame_learning/flame-accuracy.csv"
    read = {home, kept, "data/claims/cloak.yml", "book/flamebook/claims/cloak.py"}
    assert read <= used["ledger"]["cloak"].keys()
    assert not [path for parts in used.values() for part in parts.values() for path in part if "ledger.csv" in path]
