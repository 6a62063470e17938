"""Pages of own runs in a browser: one file each, at home on disk, in light and dark, nothing raw, links that lead."""

import json
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from flamebook.places import ROOT
from flamebook.runs import own
from flamebook.runs.notebook import declared
from flamebook.runs.page import built, made

from .conftest import CUT, DESKTOP, FACTS, PHONE, Visit, resize, settle, switch_theme

pytestmark = pytest.mark.browser

NAMES = ("flame_learning", "cloak_exercises")
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
