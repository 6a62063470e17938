"""What a notebook declares, and words checked against it."""

import json
from pathlib import Path
from typing import Any

import pytest
import templates

from flamebook.runs.notebook import Declared, declared, locate, values
from flamelib.core.vocabulary import DomainError

CELL = """\
n_users: int = 1_000  # users in the round
epsilon0: float = 1  # local budget
label: str = "a # b"  # a name
loud: bool = False
sizes: list[int] = [1, 2]  # alphabet sizes
"""


def notebook(folder: Path, source: str | list[str] = CELL, name: str = "tiny") -> Path:
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps(templates.notebook(source, "n_users: int = 5")))
    return path


class TestDeclared:
    @pytest.mark.parametrize("source", [CELL, CELL.splitlines(keepends=True)])
    def test_names_types_defaults_and_help(self, tmp_path: Path, source: Any) -> None:
        assert declared(notebook(tmp_path, source)) == {
            "n_users": Declared("n_users", "int", 1000, "users in the round"),
            "epsilon0": Declared("epsilon0", "float", 1.0, "local budget"),
            "label": Declared("label", "str", "a # b", "a name"),
            "loud": Declared("loud", "bool", False, ""),
            "sizes": Declared("sizes", "list[int]", [1, 2], "alphabet sizes"),
        }

    def test_no_tagged_cell_no_parameters(self, tmp_path: Path) -> None:
        path = tmp_path / "plain.ipynb"
        path.write_text('{"cells": [{"cell_type": "code", "metadata": {}, "source": "n_users: int = 5"}]}')
        assert declared(path) == {}
        with pytest.raises(DomainError, match="n_users is not a parameter of plain"):
            values(path, {"n_users": 3})

    @pytest.mark.parametrize(
        ("source", "word"),
        [
            ("n_users = 5", "n_users = 5"),
            ("n_users: int = 1", "n_users must be"),
            ("n_users: int = len('abc')", "parameters cell"),
            ("import os", "import os"),
        ],
    )
    def test_a_faulty_cell_is_refused(self, tmp_path: Path, source: str, word: str) -> None:
        with pytest.raises(DomainError, match="parameters cell of tiny") as refusal:
            declared(notebook(tmp_path, source))
        assert word in str(refusal.value)

    @pytest.mark.parametrize("text", ["", "{}", '{"cells": 3}', '{"cells": [3]}', "[]", "\x00"])
    def test_a_file_that_is_no_notebook_is_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "no.ipynb").write_text(text)
        with pytest.raises(DomainError, match="notebook must be"):
            declared(tmp_path / "no.ipynb")


class TestValues:
    def test_defaults_stand_where_nothing_is_given(self, tmp_path: Path) -> None:
        found = values(notebook(tmp_path), {"n_users": "2e3", "loud": "True", "sizes": "3,4"})
        assert found == {"n_users": 2000, "epsilon0": 1.0, "label": "a # b", "loud": True, "sizes": [3, 4]}
        assert [type(value) for value in found.values()] == [int, float, str, bool, list]

    @pytest.mark.parametrize(
        ("name", "value", "domain"),
        [
            ("n_users", "1", "[2, 2^53]"), ("n_users", "2.5", "whole"), ("n_users", "many", "whole"),
            ("n_users", "nan", "whole"), ("epsilon0", "-1", "(0, 700]"), ("epsilon0", "inf", "(0, 700]"),
            ("loud", "perhaps", "true, false"), ("sizes", "1,x", "whole"), ("sizes", "", "whole"),
            ("sizes", [], "list"), ("label", 3, "text"), ("bogus", "1", "n_users, epsilon0, label, loud, sizes"),
        ],
    )  # fmt: skip
    def test_refusals_name_the_parameter_and_its_domain(
        self, tmp_path: Path, name: str, value: Any, domain: str
    ) -> None:
        with pytest.raises(DomainError) as refusal:
            values(notebook(tmp_path), {name: value})
        assert name in str(refusal.value)
        assert domain in str(refusal.value)


class TestLocate:
    @pytest.fixture(autouse=True)
    def _shelf(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "notebooks").mkdir()
        notebook(tmp_path / "notebooks")
        monkeypatch.chdir(tmp_path)

    def test_by_name_or_by_path(self, tmp_path: Path) -> None:
        expected = tmp_path / "notebooks" / "tiny.ipynb"
        assert locate("tiny") == expected
        assert locate("notebooks/tiny.ipynb") == expected
        assert locate(str(expected)) == expected

    @pytest.mark.parametrize("name", ["tinny", "", "no.ipynb", "notebooks", "../tiny"])
    def test_a_refusal_lists_the_known_ones(self, name: str) -> None:
        with pytest.raises(DomainError, match=r"one of .*tiny") as refusal:
            locate(name)
        assert ("did you mean tiny?" in str(refusal.value)) == (name in ("tinny", "../tiny"))
