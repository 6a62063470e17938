"""Links, anchors, downloads and pictures of the built book, read off its files: each leads to something."""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from flamebook.places import ROOT, repository

from .conftest import BOOK

pytestmark = pytest.mark.browser


@dataclass
class Contents:
    """Names that a page defines, ids it gives to several elements, addresses it uses or loads by itself, its text."""

    names: set[str] = field(default_factory=lambda: {"top"})
    ids: set[str] = field(default_factory=set)
    twice: set[str] = field(default_factory=set)
    used: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.contents = Contents()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        if "id" in given:
            self.contents.twice.update({given["id"]} & self.contents.ids)
            self.contents.ids.add(given["id"])
        self.contents.names.update(given[name] for name in ("id", "name") if name in given)
        used = [given[name] for name in ("href", "src", "data", "poster") if name in given]
        self.contents.used += used
        if tag in ("script", "img", "iframe") or given.get("rel") == "stylesheet":
            self.contents.loaded += used

    def handle_data(self, data: str) -> None:
        self.contents.text.append(data)


@pytest.fixture(scope="module")
def contents(book: Path) -> dict[Path, Contents]:
    """Every page of the book, read once; what lies in ``_static`` is a template of the theme, no page."""
    found = (path for path in book.rglob("*.html") if book / "_static" not in path.parents)
    return {path: _Reader(path.read_text(encoding="utf-8")).contents for path in found}


def _missing(page: Path, address: str, contents: dict[Path, Contents]) -> str | None:
    """Why an address used on a page leads nowhere; ``None`` if it leads somewhere or out of the book."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file() or BOOK not in target.parents:
        return f"{page.relative_to(BOOK)}: {address}: no such file"
    fragment = unquote(parts.fragment)
    if fragment and target in contents and fragment not in contents[target].names and "=" not in fragment:
        return f"{page.relative_to(BOOK)}: {address}: no such place on the page"
    return None


def test_every_link_anchor_and_download_leads_somewhere(contents: dict[Path, Contents]) -> None:
    dead = {_missing(page, address, contents) for page, found in contents.items() for address in found.used}
    assert sorted(dead - {None}, key=str) == []


def test_no_cell_of_the_book_warns(book: Path) -> None:
    for path in sorted(book.glob("files/*/*.ipynb")):
        outputs = [out for cell in json.loads(path.read_text())["cells"] for out in cell.get("outputs", [])]
        assert [out["text"] for out in outputs if out.get("name") == "stderr"] == [], path.stem


def test_no_two_elements_of_a_page_have_one_id(contents: dict[Path, Contents]) -> None:
    found = {str(page.relative_to(BOOK)): sorted(one.twice) for page, one in contents.items() if one.twice}
    assert found == {}


def test_no_page_loads_anything_from_elsewhere(contents: dict[Path, Contents]) -> None:
    away = [address for found in contents.values() for address in found.loaded if urlsplit(address).netloc]
    assert away == []


def test_no_page_shows_the_name_of_a_figure_object_instead_of_the_figure(contents: dict[Path, Contents]) -> None:
    assert [page.name for page, found in contents.items() if "<Figure size" in "".join(found.text)] == []


# Links that are made with the repository's address, commands that name it, and an index where the name is not ours.
_OURS = re.compile(
    r"https?://[^\s\"'()<>\\]*/(?:edit/main|blob/main/(?:book|flamelib|notebooks|tests))/"
    r"|https?://mybinder\.org[^\s\"'()<>\\]*|git clone\b[^\n]*?https?://[^\s\"'\\]*"
)
_NOT_OURS = re.compile(r"pip install (?:[\"'\\]|&\S{2,5};|<[^>]*>)*flamelib\b|colab\.research")


def test_no_file_leads_to_a_repository_without_a_known_address(book: Path) -> None:
    place = repository(ROOT).partition("://")[2].partition("/")[2]
    guilty = []
    for path in sorted(book.rglob("*")):
        if path.suffix in (".html", ".ipynb", ".js", ".json", ".md", ".txt", ".yml"):
            text = path.read_text(encoding="utf-8")
            led = [found for found in _OURS.findall(text) if not place or place not in found]
            guilty += [f"{path.relative_to(book)}: {found}" for found in (*led[:3], *_NOT_OURS.findall(text)[:3])]
    assert guilty == []
