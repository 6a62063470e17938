"""Pages of own runs in a browser: one file each, at home on disk, in light and dark, nothing raw, links that lead."""

import json
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from playwright.sync_api import Browser

from flamebook.places import ROOT
from flamebook.runs import own
from flamebook.runs.notebook import declared
from flamebook.runs.page import built, made
from flamebook.statements import pretty

from .conftest import CUT, DESKTOP, FACTS, PHONE, Visit, resize, settle, switch_theme

pytestmark = pytest.mark.browser

NAMES = ("blanket_histogram", "flame_learning", "cloak_exercises")
RAW = r"\{cite|\{[a-z:]+\}`|:::|\(sec-|@[a-z_]+@"


@pytest.fixture(scope="module", params=NAMES)
def own_page(request: pytest.FixtureRequest, book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run as the book has it, its results changed, as an own run of the same notebook."""
    name: str = request.param
    assert (ROOT / built.SEED).is_dir(), "the book that is built left nothing to make pages from: run `make book`"
    folder = tmp_path_factory.mktemp(name) / "own"
    shutil.copytree(book / "files" / name, folder)
    moved = {key: 1.5 * value for key, value in own.read_results(folder).items() if not isinstance(value, str)}
    (folder / "results.json").write_text(json.dumps(own.read_results(folder) | moved), encoding="utf-8")
    template = ROOT / "notebooks" / f"{name}.ipynb"
    made.make(template, folder, folder, {key: one.default for key, one in declared(template).items()})
    return folder / f"{name}.html"


def test_it_is_as_whole_as_the_books_page(own_page: Path, chromium: Browser) -> None:
    context = chromium.new_context(viewport=DESKTOP, color_scheme="light", reduced_motion="reduce", offline=True)
    page = context.new_page()
    found = Visit(own_page.as_uri())
    found.listen(page)
    page.goto(found.address)
    settle(page)
    light = page.evaluate(FACTS)
    assert (found.complaints, [url for url in found.requests if not url.startswith("data:")]) == ([], [found.address])
    assert (light["raw"], light["unset"], light["faults"], light["unnamed"]) == ([], [], 0, [])
    assert all(figure == {"light": [True], "dark": [False]} for figure in light["figures"])
    assert re.findall(RAW, page.inner_text("article")) == []
    assert page.inner_text(".fl-own").startswith("A run of your own")
    switch_theme(page, "dark")
    dark = page.evaluate(FACTS)
    assert dark["theme"] == "dark"
    assert all(figure == {"light": [False], "dark": [True]} for figure in dark["figures"])
    resize(page, PHONE)
    assert page.evaluate(FACTS)["overflow"] <= 0
    page.reload()
    settle(page)
    assert page.evaluate(CUT) == []
    context.close()


def test_its_links_lead_to_the_book(own_page: Path) -> None:
    text = own_page.read_text(encoding="utf-8")
    targets = [one for one in re.findall(r'<a\b[^>]*\shref="([^"]*)"', text) if not one.startswith(("#", "http"))]
    files = [Path(unquote(urlparse(one).path)) if one.startswith("file:") else own_page.parent / one for one in targets]
    assert files
    assert [path for path in files if not path.is_file()] == []
    assert len(text) < 5e6


def test_its_numbers_are_those_of_its_results(own_page: Path, book: Path) -> None:
    block = re.search(r'(?s)<div class="[^"]*fl-own.*?Receipt', own_page.read_text(encoding="utf-8"))
    assert block is not None
    rows = re.findall(r"(?s)<tr[^>]*>(.*?)</tr>", block[0])
    cells = [[re.sub(r"<[^>]*>|\s", "", cell) for cell in re.findall(r"(?s)<td>(.*?)</td>", row)] for row in rows]
    shown = {row[0]: row[1:] for row in cells if len(row) == 3}
    mine, theirs = (own.read_results(place) for place in (own_page.parent, book / "files" / own_page.stem))
    moved = [name for name in mine if mine[name] != theirs[name]]
    assert {name: shown[name] for name in moved} == {name: [pretty(theirs[name]), pretty(mine[name])] for name in moved}
