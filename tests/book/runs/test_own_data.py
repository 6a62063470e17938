"""Runs on one's own data: where a file is looked for, what is hidden, and the example of the book's page as written."""

import json
import re
import shlex
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from flamebook import page
from flamebook.places import ROOT
from flamebook.runs import execute, inputs, notebook, sweep
from flamebook.runs.page import head
from flamebook.statements import STAND_INS
from flamelib.core.vocabulary import DomainError
from flamelib.learning import datasets
from flamelib.learning.datasets import DataError

TEMPLATE = ROOT / "notebooks" / "blanket_histogram.ipynb"


class TestWhere:
    def test_a_file_is_looked_for_from_the_current_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(DomainError, match=r"dataset must be .* \.npz file that exists, got 'answers\.npz'"):
            notebook.values(TEMPLATE, {"dataset": "answers.npz"})
        np.savez("answers.npz", labels=np.zeros(3, np.uint8))
        for values in (
            notebook.values(TEMPLATE, {"dataset": "answers.npz"}),
            next(iter(sweep.plan(TEMPLATE, {"dataset": "answers.npz", "seed": "1,2"}).points.values())),
        ):
            assert values["dataset"] == str(tmp_path / "answers.npz")
        before = inputs.digests(TEMPLATE, ROOT, values)
        np.savez("answers.npz", labels=np.ones(3, np.uint8))
        after = inputs.digests(TEMPLATE, ROOT, values)
        assert [name for name in before if before[name] != after[name]] == ["dataset (answers.npz)"]

    @pytest.mark.parametrize(
        ("book", "dataset", "told"),
        [
            ("blanket_histogram", "nosuch", r"dataset must be one of mnist, .* digits, or the path of an \.npz"),
            ("blanket_histogram", "/etc/passwd", "dataset must be one of"),
            ("training", "labels.npz", r"dataset must be usable data, and labels\.npz must hold images and labels"),
            ("blanket_histogram", "nan.npz", r"dataset must be usable data, and nan\.npz must hold labels .* got NaN"),
        ],
    )
    def test_what_cannot_be_read_is_refused_before_anything_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, book: str, dataset: str, told: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        np.savez("labels.npz", labels=[0, 1])
        np.savez("nan.npz", labels=[0, np.nan])
        with pytest.raises(DomainError, match=told):
            notebook.values(ROOT / "notebooks" / f"{book}.ipynb", {"dataset": dataset})


class TestMissing:
    """Where the data are missing another set stands in, and that is said; nothing is judged by it."""

    def test_it_is_known_before_the_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        values = notebook.values(TEMPLATE, {})
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setenv("FLAMELIB_OFFLINE", "1")
        monkeypatch.setenv("FLAMELIB_DATA", str(tmp_path))
        before = inputs.listing()
        (told,) = execute.stand_ins(execute.Run(TEMPLATE, values)).values()
        assert told.startswith("dataset: digits stands in for emnist-byclass, so that no verdict is given")
        assert told.endswith("FLAMELIB_DATA may name the folder where the files lie")
        assert execute.stand_ins(execute.Run(TEMPLATE, values | {"dataset": "digits"})) == {}
        (tmp_path / "notes.txt").write_text("no data")
        assert inputs.listing() == before, "what is no data is no reason to run anything again"
        there = tmp_path / "mnist"
        there.mkdir()
        (there / "train-labels-idx1-ubyte.gz").write_bytes(b"data")
        assert inputs.listing() != before
        monkeypatch.setenv("FLAMELIB_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(DataError, match="FLAMELIB_DATA must name a folder that exists"):
            execute.stand_ins(execute.Run(TEMPLATE, values))

    def test_pages_say_it_and_judge_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("FLAMELIB_RUN_PARAMETERS", json.dumps({"dataset": "mnist"}))
        monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path))
        monkeypatch.setenv("FLAMELIB_RUN", "flame_learning")
        monkeypatch.setenv("FLAMELIB_EDITION", "quick")
        told = "dataset: digits, not mnist"
        monkeypatch.setenv(STAND_INS, json.dumps({"dataset": told}))
        page.holds("one", True)
        page.holds("two", False)
        assert capsys.readouterr().out == f"not judged: one ({told})\nnot judged: two ({told})\n"
        assert {one["verdict"] for one in json.loads((tmp_path / "statements.json").read_text())} == {"says nothing"}
        figure = page.figure(plt.subplots()[0], name="line", alt="A line.", data={})
        assert f"<p>Made without the data: {told}.</p>" in figure.markup
        stand_ins = {"dataset": told}
        receipt = execute.Receipt("a", {"dataset": "mnist"}, 1, 1.0, 0.0, {}, {}, {}, stand_ins=stand_ins)
        top = head.head(head.Run(tmp_path, receipt, {}), None, {}, "")
        assert f"**Made without the data**: `{told}`." in top
        assert "data: `mnist`" not in top


def test_the_example_of_the_page_works_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the run itself, of which others are tried on smaller notebooks."""
    section = (ROOT / "book" / "rerun.md").read_text(encoding="utf-8").partition("## Your own data")[2]
    code, command = (re.search(rf"(?s)```{kind}\n(.*?)```", section) for kind in ("python", "text"))
    assert code is not None
    assert command is not None
    monkeypatch.chdir(tmp_path)
    np.savetxt("answers.csv", np.random.default_rng(5).integers(4, size=3000), fmt="%d")
    exec(code[1], {})
    _, _, name, *words = shlex.split(command[1])
    values = notebook.values(notebook.locate(name), dict(word.split("=", 1) for word in words if word != "-p"))
    found = datasets.load(values["dataset"], want=("labels",))
    assert (found.n, found.notice) == (3000, "Your own data: answers.npz.")
