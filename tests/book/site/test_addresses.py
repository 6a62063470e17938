"""The repository's one address: where it is known, every page leads to it; where it is not, nothing does."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from flamebook import places
from flamebook.places import ROOT, repository
from flamebook.site.book import build, pages
from flamebook.site.written.markup import sourced
from flamelib.core.vocabulary import DomainError

ADDRESS = "https://github.com/somebody/a-book"
Checkout = Callable[[str], Path]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No variable tells of an address."""
    for name in (places.ADDRESS, "GITHUB_REPOSITORY", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A folder under git with this remote."""

    def made(remote: str) -> Path:
        root = tmp_path / "checkout"
        subprocess.run(["git", "init", "--quiet", root], check=True)
        if remote:
            subprocess.run(["git", "-C", root, "remote", "add", "origin", remote], check=True)
        return root

    return made


@pytest.mark.parametrize(
    "remote",
    ["", "../elsewhere", "/srv/git/book.git", "http://127.0.0.1:3000/somebody/book", "https://localhost/a/b",
     "http://git.internal/somebody/book", "https://github.com/somebody", "https://bitbucket.org/somebody/book"],
)  # fmt: skip
def test_a_remote_that_readers_cannot_reach_is_no_address(alone: object, checkout: Checkout, remote: str) -> None:
    assert repository(checkout(remote)) == ""


@pytest.mark.parametrize(
    "remote",
    [ADDRESS, f"{ADDRESS}.git", f"{ADDRESS}/", "git@github.com:somebody/a-book.git",
     "ssh://git@github.com/somebody/a-book.git", "https://name:secret@github.com/somebody/a-book.git"],
)  # fmt: skip
def test_a_remote_on_the_web_is_the_address_without_a_password(alone: object, checkout: Checkout, remote: str) -> None:
    assert repository(checkout(remote)) == ADDRESS


def test_a_variable_comes_first_and_the_runner_of_workflows_last(
    alone: pytest.MonkeyPatch, checkout: Checkout, tmp_path: Path
) -> None:
    alone.setenv("GITHUB_REPOSITORY", "runner/book")
    assert repository(tmp_path) == "https://github.com/runner/book"
    assert repository(checkout(ADDRESS)) == ADDRESS
    alone.setenv(places.ADDRESS, "https://git.example.org/other/book")
    assert repository(tmp_path / "checkout") == "https://git.example.org/other/book"
    alone.setenv(places.ADDRESS, "")
    assert repository(tmp_path / "checkout") == ""
    alone.setenv(places.ADDRESS, "somewhere")
    with pytest.raises(DomainError, match=r"^FLAMELIB_REPOSITORY must be empty or an address such as https://"):
        repository(tmp_path)


def test_links_of_pages_are_made_with_an_address_only(alone: pytest.MonkeyPatch) -> None:
    alone.setenv(places.ADDRESS, ADDRESS)
    assert sourced("a test", "tests/a.py", 3) == f"[a test]({ADDRESS}/blob/main/tests/a.py#L3)"
    assert f"  url     = {{{ADDRESS}}},\n" in pages.citation(ROOT)
    alone.setenv(places.ADDRESS, "")
    assert sourced("a test", "tests/a.py", 3) == "a test"
    assert "url" not in pages.citation(ROOT)


def test_a_book_with_an_address_has_every_button(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A page and a notebook's parameters with the settings of the book; without an address nothing leads to one."""
    alone.setenv(places.ADDRESS, ADDRESS)
    for name in ("_ext", "_templates", "assets"):
        shutil.copytree(ROOT / "book" / name, tmp_path / "book" / name)
    shutil.copy(ROOT / "book" / "references.bib", tmp_path / "book")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    settings["sphinx"]["extra_extensions"].remove("sphinx-mathjax-offline")  # tens of megabytes that lead nowhere
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (tmp_path / "book" / "index.md").write_text("# A page\n\nWords.\n", encoding="utf-8")
    contents = "{format: jb-book, root: book/index, chapters: [{file: notebooks/crossing}]}\n"
    (tmp_path / "book" / "_toc.yml").write_text(contents, encoding="utf-8")
    notebook = json.loads((ROOT / "notebooks" / "crossing.ipynb").read_text(encoding="utf-8"))
    kept = [cell for cell in notebook["cells"] if "parameters" in cell["metadata"].get("tags", ())]
    title = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": "# A page of figures"}
    (tmp_path / "notebooks").mkdir()
    bare = tmp_path / "notebooks" / "crossing.ipynb"
    bare.write_text(json.dumps(notebook | {"cells": [title, *kept]}), encoding="utf-8")
    build.stage(tmp_path, lambda runs, book: None)
    shutil.copy(bare, tmp_path / build.SOURCE / "notebooks")
    build._write_config(tmp_path, "An edition")
    with (tmp_path / "lock").open("w") as lock:
        html = build._jupyter_book(tmp_path, lock)
    text = "\n".join((html / page).read_text("utf-8") for page in ("book/index.html", "notebooks/crossing.html"))
    links = set(re.findall(r'href="(https?://[^"]*)"', text))
    hub = "https://mybinder.org/v2/gh/somebody/a-book/main?urlpath=lab/tree/notebooks/crossing.ipynb"
    edited = {f"{ADDRESS}/edit/main/{page}" for page in ("book/index.md", "notebooks/crossing.ipynb")}
    assert {ADDRESS, hub} | edited <= links
    assert any(link.startswith(f"{ADDRESS}/issues/new?") for link in links)
    assert f'id="own-binder" href="{hub}"' in text
    assert "colab" not in text
