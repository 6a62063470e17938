"""The reference: a page for each folder, every module on one, each page in the contents and on the entrance."""

import re
from typing import Any

import yaml

from flamebook.places import ROOT
from flamebook.site.written import api

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
