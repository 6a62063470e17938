"""The reference: a page for each folder, every module on one, each page in the contents and on the entrance."""

import ast
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from flamebook.places import ROOT
from flamebook.site.written import api
from flamelib.core.vocabulary import DomainError
from flamelib.protocols import cloak

PAGES = api.pages()
ENTRANCE = (ROOT / "book" / "api.md").read_text(encoding="utf-8")
SOURCES = sorted(path for path in (ROOT / "flamelib").rglob("*.py") if path.stem != "__init__")


def _listed(node: Any) -> list[str]:
    """Every file that the table of contents names."""
    if isinstance(node, list):
        return [name for part in node for name in _listed(part)]
    if isinstance(node, dict):
        own = [node["file"]] if "file" in node else []
        return own + [name for part in node.values() for name in _listed(part)]
    return []


def test_every_module_stands_on_one_page() -> None:
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in SOURCES]
    shown = re.findall(r"^\.\. automodule:: ([\w.]+)\n   :members:$", "\n".join(PAGES.values()), re.M)
    assert sorted(shown) == sorted(names) == sorted(api.documented())


def test_the_contents_and_the_entrance_list_every_folder() -> None:
    """A new folder has a page at once; book/_toc.yml and book/api.md must say where it is."""
    pages = {f"book/{path.removesuffix('.md')}" for path in PAGES}
    listed = _listed(yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")))
    assert {name for name in listed if name.startswith("book/api/")} == pages
    assert {f"book/{name}" for name in re.findall(r"\{doc\}`(api/[\w.]+)`", ENTRANCE)} == pages
    assert not (ROOT / "book" / "api").exists(), "the pages are made, not stored"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_list_hides_names_from_the_reference(path: Path) -> None:
    """A page shows every public name that a module defines; a list of names would hide those it lacks."""
    named = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Name)]
    assert "__all__" not in {node.id for node in named}


def test_the_front_shows_its_names_with_their_homes() -> None:
    front = ModuleType("flamelib")
    assert api._names(front) == []
    vars(front).update(DomainError=DomainError, run=cloak.run, cloak=cloak, LIMIT=3)
    front.__all__ = ["DomainError", "LIMIT", "__version__", "cloak", "run"]  # type: ignore[attr-defined]
    assert [line for line in api._names(front) if line.startswith("- ")] == [
        "- {py:class}`DomainError <flamelib.core.vocabulary.DomainError>`",
        "- `LIMIT`",
        "- {py:mod}`cloak <flamelib.protocols.cloak>`",
        "- {py:func}`run <flamelib.protocols.cloak.run>`",
    ]


def test_a_module_is_read_from_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "flamelib" / "accounting" / "new"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text('"""What is new."""\n', encoding="utf-8")
    (folder / "toy.py").write_text('r"""A toy, of\n:math:`\\lambda`.\n\nMore."""\n', encoding="utf-8")
    [(path, text)] = api.pages(tmp_path / "flamelib").items()
    assert path == "api/accounting.new.md"
    assert ":py:mod:`~flamelib.accounting.new.toy`\n   A toy, of :math:`\\lambda`.\n" in text
