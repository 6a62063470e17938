"""Every page of the built book, over loopback and from disk: it loads, stays at home, and shows what it should."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from .conftest import BOOK, FACTS, ORIGINS, Visit, settle, switch_theme

pytestmark = pytest.mark.browser

Visitor = Callable[[str, str], Visit]

_ALL = sorted(path.relative_to(BOOK).as_posix() for path in BOOK.rglob("*.html"))
# Pages of the theme that only list source files, and files to download, are loaded but not looked at one by one.
_ASIDE = ("_static/", "_modules/", "files/")
_FORWARDING = [path for path in _ALL if 'http-equiv="refresh"' in (BOOK / path).read_text(encoding="utf-8").lower()]
PAGES = [path for path in _ALL if path not in _FORWARDING and not path.startswith(_ASIDE)] or ["index.html"]
# Listings of source files come from one template: one in ten stands for the others.
LISTINGS = [path for path in _ALL if path.startswith("_modules/")][::10]

from_everywhere = pytest.mark.parametrize("origin", ORIGINS)
# From disk the notebooks are of one kind, for which the audits stand.
VISITS = [("http", path) for path in PAGES]
VISITS += [("disk", path) for path in PAGES if not path.startswith("notebooks/") or "audit" in path]


@pytest.mark.parametrize(("origin", "path"), VISITS)
def test_a_page_is_whole(visit: Visitor, book: Path, path: str, origin: str) -> None:
    found = visit(path, origin)
    assert found.light["title"]
    assert {name: told for name, told in _faults(found, book / path) if told} == {}


def _faults(found: Visit, file: Path) -> Iterator[tuple[str, object]]:
    """Everything that is wrong with a page, by name; empty where all is well."""
    yield "errors", found.complaints
    yield "requests that leave the book", found.outside()
    yield "mathematics not set", found.light["unset"]
    yield "mathematics set with an error", found.light["faults"]
    yield "formulas shown as source", found.light["raw"]
    yield "pictures without words", found.light["unnamed"]
    yield "figures of the wrong theme", _wrong(found.light, [True], [False])
    yield "figures lost", file.read_text(encoding="utf-8").count('<div class="fl-fig">') - len(found.light["figures"])
    yield "cut off without a cue", found.light["cut"]
    if found.dark and found.phone:
        yield "cut off on a phone without a cue", found.phone["cut"]
        yield "broken within a word of the title on a phone", found.phone["broken"]
        yield "figures of the wrong theme in the dark", _wrong(found.dark, [False], [True])
        yield "no dark theme", found.light["figures"] and found.dark["theme"] != "dark"
        yield "pixels wider than a phone", max(0, found.phone["overflow"])


def _wrong(facts: dict[str, Any], light: list[bool], dark: list[bool]) -> list[int]:
    return [at for at, figure in enumerate(facts["figures"]) if figure != {"light": light, "dark": dark}]


def test_source_listings_load_without_error(page: Page, origins: dict[str, str]) -> None:
    for path in LISTINGS:
        found = Visit(f"{origins['http']}/{path}")
        found.listen(page)
        page.goto(found.address)
        assert (found.complaints, found.outside()) == ([], []), path


@from_everywhere
def test_the_front_door_opens_on_the_home_page(
    contexts: dict[str, BrowserContext], origins: dict[str, str], origin: str
) -> None:
    page = contexts[origin].new_page()
    page.goto(f"{origins[origin]}/index.html")
    page.wait_for_selector("article h1")
    page.close()


def test_figures_of_every_executed_notebook_stand_on_its_page(book: Path) -> None:
    runs = sorted((book / "files").glob("*/figures"))
    assert runs, "no executed notebook left figures beside the book"
    for run in runs:
        drawn = [path for path in run.glob("*.svg") if not path.stem.endswith("-dark")]
        page = (book / "notebooks" / f"{run.parent.name}.html").read_text(encoding="utf-8")
        assert page.count('<div class="fl-fig">') == len(drawn), run.parent.name


def test_paper_shows_the_light_figures_whatever_the_screen_shows(
    book: Path, page: Page, origins: dict[str, str]
) -> None:
    drawn = next(path for path in PAGES if '<div class="fl-fig">' in (book / path).read_text(encoding="utf-8"))
    page.goto(f"{origins['http']}/{drawn}")
    settle(page)
    switch_theme(page, "dark")
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    printed = page.evaluate(FACTS)
    assert (printed["theme"], _wrong(printed, [True], [False])) == ("light", [])
    page.emulate_media(media="screen")
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert _wrong(page.evaluate(FACTS), [False], [True]) == []
    switch_theme(page, "light")


@from_everywhere
def test_the_search_page_finds_a_theorem(chromium: Browser, origins: dict[str, str], origin: str) -> None:
    page = chromium.new_page()
    found = Visit(f"{origins[origin]}/search.html?q=Theorem+3.1")
    found.listen(page)
    page.goto(found.address)
    page.wait_for_selector("#search-results li a")
    page.wait_for_function("() => !document.querySelector('#search-progress')?.textContent?.includes('...')")
    targets = page.eval_on_selector_all(
        "#search-results li a", "links => links.map(link => link.href.split(/[?#]/)[0])"
    )
    page.close()
    texts = [
        (BOOK / target.removeprefix(origins[origin]).lstrip("/")).read_text(encoding="utf-8") for target in targets
    ]
    assert any("Theorem 3.1" in text for text in texts[:10])
    assert (found.complaints, found.outside()) == ([], [])
