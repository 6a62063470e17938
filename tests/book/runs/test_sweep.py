"""Runs of one's own and grids of them, on a tiny notebook that is really executed."""

import csv
import io
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import templates

from flamebook.runs import own, sweep
from flamebook.runs.execute import receipt_of
from flamelib.core.vocabulary import DomainError

PARAMETERS = "n_users: int = 1000  # users\nepsilon0: float = 1.0  # local budget\nseed: int = 0  # pause in tenths"
BODY = """\
import time
import matplotlib.pyplot as plt
from flamebook.page import figure, result
from flamelib.core.profiles import LaplaceProfile
time.sleep(seed / 10)
result(scaled=n_users * epsilon0)
if n_users == 13:
    raise ValueError("thirteen is refused")
result(mass=LaplaceProfile(epsilon0).mass)
"""
FIGURE = """\
fig, ax = plt.subplots()
ax.axhline(n_users)
figure(fig, name="line", alt="A level line.", data={"height": [n_users]})
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook on a shelf of its own, which is also the current folder."""
    folder = tmp_path / "shelf" / "notebooks"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shelf")
    return put(folder / "tiny.ipynb", BODY, (FIGURE, {"tags": ["hide-input"]}))


def put(path: Path, *cells: str | tuple[str, dict[str, list[str]]]) -> Path:
    """Write a notebook of these cells."""
    text = "# Tiny\nOf a few users, and $\\varepsilon_0$ is local."
    path.write_text(json.dumps(templates.notebook(PARAMETERS, *cells, text=text)))
    return path


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


class TestOwnRun:
    def test_a_second_run_replaces_the_first_in_which_a_cell_failed(self, tiny: Path, tmp_path: Path) -> None:
        output = tmp_path / "out"
        folder = own.run(tiny, {"n_users": 13}, output)
        assert receipt_of(folder).faults == ["ValueError: thirteen is refused"]  # type: ignore[union-attr]
        page = (folder / "tiny.html").read_text()
        assert "Not made: ValueError: thirteen is refused" in page
        assert "Traceback (most" not in page
        assert (folder / "figures" / "line.csv").read_text() == "height\n13\n", "what does not need it is made"
        assert own.run(tiny, {"n_users": "3e1"}, output) == output
        names = {str(path.relative_to(output)) for path in output.rglob("*") if path.is_file()}
        figures = {f"figures/line{end}" for end in (".svg", "-dark.svg", ".png", ".csv")}
        assert names >= {"tiny.ipynb", "tiny.html", "results.json", "results.csv", "own.json", *figures}
        found = json.loads((output / "results.json").read_text())
        assert found == {"scaled": 30.0, "mass": pytest.approx(0.6065306597)}
        assert {row["name"]: float(row["value"]) for row in rows(output / "results.csv")}["scaled"] == 30
        page = (output / "tiny.html").read_text()
        assert "A level line." in page
        assert "<svg" in page
        assert 'href="figures/line.csv"' in page
        assert "axhline" not in page
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "shelf"]
        (output / "notes.txt").write_text("mine")
        with pytest.raises(DomainError, match=r"output.*notes.txt"):
            own.run(tiny, {"n_users": 40}, output)
        assert (output / "notes.txt").read_text() == "mine"

    def test_a_refused_parameter_starts_nothing(self, tiny: Path) -> None:
        with pytest.raises(DomainError, match="n_users"):
            own.run(tiny, {"n_users": 1})
        assert not (Path.cwd() / "_build").exists()

    def test_folders_that_are_not_ours(self, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "file").write_text("x")
        (tmp_path / "full").mkdir()
        (tmp_path / "full" / "thesis.tex").write_text("x")
        for output in (tmp_path / "file", tmp_path / "full", tmp_path / "file" / "below", Path("/proc/out")):
            with pytest.raises(DomainError, match="output must be"):
                own.run(tiny, {}, output)
        assert (tmp_path / "full" / "thesis.tex").read_text() == "x"
        (tmp_path / "locked").mkdir()
        # The superuser may write everywhere, so the system's answer is given here.
        monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path).name == "locked" and mode & os.W_OK))
        with pytest.raises(DomainError, match="read-only"):
            own.run(tiny, {}, tmp_path / "locked")


class TestPlan:
    def test_every_combination_and_the_swept_names(self, tiny: Path) -> None:
        grid = sweep.plan(tiny, {"n_users": "10,1e2", "epsilon0": "1,2,4", "seed": "3"})
        assert grid.swept == ["n_users", "epsilon0"]
        assert [(point["n_users"], point["epsilon0"], point["seed"]) for point in grid.points.values()] == [
            (10, 1.0, 3), (10, 2.0, 3), (10, 4.0, 3), (100, 1.0, 3), (100, 2.0, 3), (100, 4.0, 3)
        ]  # fmt: skip

    def test_semicolons_separate_lists(self, tiny: Path) -> None:
        text = tiny.read_text().replace("seed: int = 0 ", "sizes: list[int] = [1]\\nseed: int = 0 ")
        tiny.write_text(text)
        grid = sweep.plan(tiny, {"sizes": "3,4;5"})
        assert (grid.swept, [point["sizes"] for point in grid.points.values()]) == (["sizes"], [[3, 4], [5]])


class TestSweep:
    def test_a_grid_gives_one_table_and_one_picture_resumes_and_grows(self, tiny: Path, tmp_path: Path) -> None:
        folder = tmp_path / "grid"
        put(tiny, BODY)
        sweep.sweep(tiny, {"n_users": "10,13", "epsilon0": "2"}, folder)
        done, partly = rows(folder / "sweep.csv")
        assert (done["n_users"], done["epsilon0"], done["status"], done["scaled"]) == ("10", "2.0", "done", "20.0")
        assert (partly["n_users"], partly["status"], partly["scaled"]) == ("13", "partly", "26.0")
        assert "thirteen is refused" in partly["fault"]
        ElementTree.parse(folder / "comparison.svg")
        assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")
        page = (folder / sweep.PAGE).read_text()
        assert "flamelib sweep tiny -p n_users=10,13 -p epsilon0=2" in page
        pictures = ["comparison.svg", "comparison.png"]
        assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["comparison.svg", "sweep.csv", *pictures]
        assert not re.findall("http|<script", page)

        receipts = {path: path.stat().st_mtime_ns for path in folder.glob("points/*/receipt.json")}
        lost, kept = sorted(receipts)
        lost.unlink()
        sweep.sweep(tiny, {"n_users": "10,13,14", "epsilon0": "2"}, folder)
        assert (lost.stat().st_mtime_ns != receipts[lost], kept.stat().st_mtime_ns == receipts[kept]) == (True, True)
        assert [row["scaled"] for row in rows(folder / "sweep.csv")] == ["20.0", "26.0", "28.0"]

    @pytest.mark.parametrize(
        ("given", "options", "word"),
        [
            ({"n_users": "10"}, {}, "several values"),
            ({"n_users": "10,,20"}, {}, "n_users"),
            ({"n_users": "10,1e1"}, {}, "twice"),
            ({"n_users": "10,20,30"}, {"limit": 2}, "3 points"),
            ({"n_users": "10,20"}, {"jobs": 0}, "jobs"),
        ],
    )
    def test_refusals_come_before_any_work(
        self, tiny: Path, given: dict[str, str], options: dict[str, int], word: str
    ) -> None:
        with pytest.raises(DomainError, match=word):
            sweep.sweep(tiny, given, **options)  # type: ignore[arg-type]
        assert not (Path.cwd() / "_build").exists()


def test_cells_have_one_type_a_column_and_lose_no_digit(tmp_path: Path) -> None:
    results = [{"n": 3, "x": 1, "holds": True, "word": "a"}, {"n": 4, "x": 0.1 + 0.2, "holds": False, "word": "b"}]
    points = {str(at): {"sizes": [at, 2], "seed": at} for at in range(3)}
    grid = {"notebook": "tiny.ipynb", "asked": {"sizes": "0,2;1,2;2,2"}, "swept": ["sizes"], "points": points}
    (tmp_path / "sweep.json").write_text(json.dumps(grid | {"refused": {"2": "<b>no</b>"}}))
    for at, found in enumerate(results):
        (tmp_path / "points" / str(at)).mkdir(parents=True)
        (tmp_path / "points" / str(at) / "results.json").write_text(json.dumps(found))
    sweep.combine(tmp_path)
    assert (tmp_path / "sweep.csv").read_text().splitlines() == [
        "sizes,seed,status,n,x,holds,word,fault",
        '"0,2",0,failed,3,1.0,true,a,ended without a message',
        '"1,2",1,failed,4,0.30000000000000004,false,b,ended without a message',
        '"2,2",2,refused,,,,,<b>no</b>',
    ]
    assert "&lt;b&gt;no&lt;/b&gt;" in (tmp_path / sweep.PAGE).read_text()


def test_seeds_are_dots_around_a_mean_and_what_never_moves_is_not_drawn(tmp_path: Path) -> None:
    table = [{"n": n, "seed": seed, "error": n + seed, "same": 1.0} for n in (1, 2) for seed in (0, 1, 2)]
    assert sweep.axis_of(table, ["n", "seed"]) == "n"
    sweep.draw(table, ["n", "seed"], ["error", "same"], tmp_path)
    picture = (tmp_path / "comparison.svg").read_text()
    assert "<!-- error -->" in picture
    assert "<!-- same -->" not in picture
