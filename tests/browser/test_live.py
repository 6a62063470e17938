"""The form on a notebook's page: from a changed value to a new figure, to a command, to a file; refusals in words."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from playwright.sync_api import Browser, BrowserContext, Page, expect

from flamebook.places import ROOT, repository
from flamebook.runs import notebook
from flamelib.answers import assignments

from .conftest import PATIENCE_MS, Visit, settle, switch_theme
from .test_pages import ASK, AXE

pytestmark = pytest.mark.browser

NAME = "blanket_audit"
TEMPLATE = ROOT / "notebooks" / f"{NAME}.ipynb"
SERVER = """\
import asyncio, sys
from pathlib import Path
from flamebook.site.book import live
asyncio.run(live.serve(Path(sys.argv[1]), "127.0.0.1", 0, live.Limits(), asyncio.Event()))
"""


@pytest.fixture(scope="module")
def live(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The built book, served with one of its notebooks to run; results lie in a folder of the tests."""
    root = tmp_path_factory.mktemp("live")
    (root / "notebooks").mkdir()
    shutil.copy(TEMPLATE, root / "notebooks")
    (root / "_build").mkdir()
    (root / "_build" / "html").symlink_to(book)
    places = os.pathsep.join([str(ROOT), str(ROOT / "book")])
    words = [sys.executable, "-c", SERVER, str(root)]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": places})
    assert server.stdout is not None
    yield server.stdout.readline().split()[-1]
    server.terminate()
    server.communicate()


@pytest.fixture
def reader(chromium: Browser) -> Iterator[BrowserContext]:
    """Somebody who may take files away and read the clipboard."""
    opened = chromium.new_context(accept_downloads=True)
    opened.set_default_timeout(PATIENCE_MS)
    yield opened
    opened.close()


def _open(context: BrowserContext, address: str) -> Page:
    page = context.new_page()
    page.goto(address)
    settle(page)
    return page


def test_from_a_changed_value_to_a_new_figure(live: str, reader: BrowserContext) -> None:
    page = _open(reader, f"{live}/notebooks/{NAME}.html")
    complaints = Visit(live)
    complaints.listen(page)
    page.focus("#own > summary")
    page.keyboard.press("Enter")
    page.fill("#own-points", "1")
    refusal = page.locator("#own-refusal")
    expect(refusal).to_have_text("points must be a whole number in [2, 400], got '1'")
    page.keyboard.press("Enter")
    page.fill("#own-points", "3")
    expect(refusal).to_be_empty()
    assert page.url.endswith("?points=3")
    expect(page.locator("#own-jobs li")).to_have_count(0)
    page.keyboard.press("Enter")
    other = _open(reader, f"{live}/notebooks/{NAME}.html?points=4")  # a second reader, at the same time
    other.click("#own button[type=submit]")
    for one, points in ((page, 3), (other, 4)):
        link = one.locator("#own-jobs li", has_text=f"points={points}").get_by_role("link")
        link.wait_for()
        link.click()
        one.wait_for_load_state("load")
        assert f"/own/{NAME}/" in one.url
        assert one.locator("svg, img").count() > 0
    assert complaints.complaints == []
    page.goto(f"{live}/own/")
    expect(page.locator("tbody tr")).to_have_count(2)


def test_a_run_is_cancelled(live: str, reader: BrowserContext) -> None:
    page = _open(reader, f"{live}/notebooks/{NAME}.html?points=50")
    page.click("#own button[type=submit]")
    job = page.locator("#own-jobs li", has_text="points=50")
    job.get_by_role("button", name="Cancel").click()
    expect(job).to_contain_text("cancelled")


def test_several_values_make_a_sweep(live: str, reader: BrowserContext) -> None:
    page = _open(reader, f"{live}/notebooks/{NAME}.html?n_users=3%2C4&points=2&vary=1")
    assert page.text_content("#own-command") == f"flamelib sweep {NAME} -p n_users=3,4 -p points=2"
    page.click("#own button[type=submit]")
    link = page.locator("#own-jobs li", has_text="n_users=3,4").get_by_role("link")
    link.wait_for()
    link.click()
    expect(page.locator("tbody tr")).to_have_count(2)
    assert page.locator("td", has_text="done").count() == 2


def test_without_a_server_the_form_hands_over(reader: BrowserContext, origins: dict[str, str], tmp_path: Path) -> None:
    own = tmp_path / "it's, #1.npz"
    np.savez(own, images=np.zeros((40, 8, 8), np.uint8), labels=np.arange(40) % 2)
    page = _open(reader, f"{origins['disk']}/notebooks/flame_learning.html#own")
    given: dict[str, Any] = {"n_users": "1e4", "epsilon0": "5e-6", "multiples": "1,2,3", "dataset": str(own)}
    for name, text in given.items():
        page.fill(f"#own-{name}", text)
    expect(page.locator("#own-here")).to_be_hidden()
    expect(page.locator("#own-binder")).to_have_count(int("github.com" in repository(ROOT)))
    template, here = (
        ROOT / "notebooks" / "flame_learning.ipynb",
        ROOT / "_build" / "src" / "notebooks" / "flame_learning.ipynb",
    )
    expected = notebook.values(here, given)
    words = subprocess.run(
        ["bash", "-c", f"printf '%s\\n' {page.text_content('#own-command')}"],
        capture_output=True,
        text=True,
        check=True,
    )
    command, run, name, *rest = words.stdout.splitlines()
    assert (command, run, name) == ("flamelib", "run", "flame_learning")
    assert notebook.values(template, assignments(word for word in rest if word != "-p")) == expected
    with page.expect_download() as taken:
        page.click("#own-file")
    assert taken.value.suggested_filename == "flame_learning.yml"
    file = yaml.safe_load(Path(taken.value.path()).read_text())
    assert {name: (type(value), value) for name, value in file.items()} == {
        name: (type(value), value) for name, value in expected.items()
    }
    page.click("#own button[type=reset]")
    page.wait_for_function("() => !document.querySelector('.fl-changed')")


def test_the_open_form_can_be_used_by_everybody(page: Page, origins: dict[str, str]) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{origins['http']}/notebooks/flame_learning.html?n_users=1")
    settle(page)
    page.evaluate(AXE)
    for theme in ("light", "dark"):
        switch_theme(page, theme)
        assert page.evaluate(ASK, ["#own", True]) == []
    switch_theme(page, "light")
    assert page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0
