"""Every page of the built book: it loads, stays at home, shows what it should, and lets everybody read it.

A page is opened once over loopback, on a phone, and looked at in every way while it is there: at a desk, by an
automated checker (axe-core), in the dark.  Pages of every kind are opened from disk as well.  Their colours alone are
checked, in light and dark: all others have the same style sheets, and to find what stands behind each word takes the
checker ten times as long as all of its other rules.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import BrowserContext, Page

from .conftest import BOOK, CUT, DESKTOP, FACTS, ORIGINS, PHONE, Visit, resize, settle, switch_theme

pytestmark = pytest.mark.browser

TEXTS = {path.relative_to(BOOK).as_posix(): path.read_text(encoding="utf-8") for path in sorted(BOOK.rglob("*.html"))}
# Templates of the theme and files to download are no pages, listings of source files are opened from disk alone.
_ASIDE = ("_static/", "_modules/", "files/")
_FORWARDING = [path for path, text in TEXTS.items() if 'http-equiv="refresh"' in text.lower()]
PAGES = [path for path in TEXTS if path not in _FORWARDING and not path.startswith(_ASIDE)] or ["index.html"]
# What may fail from disk is how scripts are found and find their data: of pages with the same scripts, the longest.
_KINDS = {
    frozenset(re.findall(r'<script[^>]* src="[^"?]*?([^"?/]+)[?"]', TEXTS[path])) | {path.split("/")[0]}: path
    for path in sorted(set(TEXTS) - set(_FORWARDING), key=lambda path: len(TEXTS[path]))
    if not path.startswith(("_static/", "files/"))
}
COLOURED = {*_KINDS.values(), "book/crowd.html", "book/sliders.html", "notebooks/flame_exercises.html"}
TABLET = {"width": 768, "height": 1600}

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
# Long lists of one kind are looked at in part, or the checker takes minutes for a page of a thousand equal lines.
MANY = {"dl.py": 5, "tbody tr": 25, ".genindextable li": 50, "mjx-container": 8, "div.highlight": 5}
TRIM = """(many) => {
  for (const [kind, kept] of Object.entries(many))
    [...document.querySelectorAll("article " + kind)].slice(kept).forEach((element) => element.remove());
}"""
ASK = """async ([place, enabled]) => {
  const rules = {"color-contrast": {enabled}, "link-in-text-block": {enabled}};
  const values = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];
  const only = {preload: false, resultTypes: ["violations"], runOnly: {type: "tag", values}, rules};
  const found = await axe.run(place, only);
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .flatMap((one) => one.nodes.slice(0, 3).map((node) => `${one.id}: ${node.html.slice(0, 160)}`));
}"""
SCROLLING = """all => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.closest("[id]").id)"""
LEGIBLE = 10.99  # pixels
SMALL = """(least) => [...document.querySelectorAll("article svg text")]
  .filter((e) => e.checkVisibility() && e.textContent.trim())
  .map((e) => [e.getScreenCTM(), parseFloat(getComputedStyle(e).fontSize), e.textContent])
  .map(([drawn, size, words]) => [size * Math.hypot(drawn.a, drawn.b), words])
  .filter(([size]) => size < least)"""
OUTSIDE = """() => [...document.querySelectorAll("article svg text")].filter((e) => e.checkVisibility()).filter((e) => {
  const [word, drawing] = [e.getBoundingClientRect(), e.ownerSVGElement.getBoundingClientRect()];
  return word.left < drawing.left - 1 || word.right > drawing.right + 1 || word.bottom > drawing.bottom + 1;
}).map((e) => e.textContent)"""
PICTURES = "all => all.map(e => [new URL(e.src).pathname, e.width, e.getAttribute('width')])"


@pytest.fixture(scope="module")
def tabs(contexts: dict[str, BrowserContext]) -> Iterator[dict[str, tuple[Page, Visit]]]:
    """A tab for each origin, which goes from page to page: scripts that all pages share are read once."""
    opened = {origin: (context.new_page(), Visit("")) for origin, context in contexts.items()}
    for page, found in opened.values():
        found.listen(page)
    yield opened
    for page, _ in opened.values():
        page.close()


def _go(tab: tuple[Page, Visit], address: str) -> Page:
    page, found = tab
    found.begin(address)
    page.goto(address)
    settle(page)
    return page


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_whole(tabs: dict[str, tuple[Page, Visit]], origins: dict[str, str], path: str) -> None:
    page, found = tabs["http"]
    page.set_viewport_size(PHONE)
    try:
        _go(tabs["http"], f"{origins['http']}/{path}")
        looks = (_on_a_phone(page, path), _at_a_desk(page, path), _what_it_did(found), _to_everybody(page, path))
        faults = {name: told for look in looks for name, told in look if told}
    finally:
        switch_theme(page, "light")
    assert faults == {}


def _on_a_phone(page: Page, path: str) -> Iterator[tuple[str, object]]:
    """What is wrong with a page where there is little room, by name; empty where all is well."""
    facts = page.evaluate(FACTS)
    yield from _anywhere(facts, path)
    yield "pixels wider than a phone", max(0, facts["overflow"])
    yield "broken within a word of the title", facts["broken"]
    yield "cut off on a phone without a cue", page.evaluate(CUT)
    yield "letters that are too small on a phone", [*page.evaluate(SMALL, LEGIBLE), *_small_pictures(page)]
    yield "words cut by the edge of their drawing", page.evaluate(OUTSIDE)
    if not path.startswith("book/api/"):  # where formulas are those of docstrings, on one line
        yield "formulas that scroll on a phone", page.eval_on_selector_all("mjx-container[display=true]", SCROLLING)


def _anywhere(facts: dict[str, Any], path: str) -> Iterator[tuple[str, object]]:
    yield "no title", not facts["title"]
    yield "mathematics not set", facts["unset"]
    yield "mathematics set with an error", facts["faults"]
    yield "formulas shown as source", facts["raw"]
    yield "pictures without words", facts["unnamed"]
    yield "figures of the wrong theme", _wrong(facts, [True], [False])
    yield "figures lost", TEXTS[path].count('<div class="fl-fig">') - len(facts["figures"])


def _at_a_desk(page: Page, path: str) -> Iterator[tuple[str, object]]:
    """What is wrong with a page on wider screens."""
    if TEXTS[path].count('<div class="math') >= 10:
        resize(page, TABLET)
        yield "cut off on a tablet without a cue", page.evaluate(CUT)
    resize(page, DESKTOP)
    yield "cut off without a cue", page.evaluate(CUT)


def _what_it_did(found: Visit) -> Iterator[tuple[str, object]]:
    yield "errors", found.complaints[:]
    yield "requests that leave the book", found.outside()


def _to_everybody(page: Page, path: str) -> Iterator[tuple[str, object]]:
    """What the checker finds on a page, of which it leaves a part, and what is wrong with its figures in the dark."""
    coloured, pictured = path in COLOURED, '<div class="fl-fig">' in TEXTS[path]
    page.evaluate(TRIM, MANY)
    page.evaluate(AXE)
    yield "what stands between a reader and the page", page.evaluate(ASK, ["html", coloured])
    if coloured or pictured:
        switch_theme(page, "dark")
        dark = page.evaluate(FACTS)
        yield "no dark theme", dark["theme"] != "dark"
        yield "figures of the wrong theme in the dark", _wrong(dark, [False], [True])
    if coloured:
        yield "hard to read in the dark", page.evaluate(ASK, ["html", True])


def _wrong(facts: dict[str, Any], light: list[bool], dark: list[bool]) -> list[int]:
    return [at for at, figure in enumerate(facts["figures"]) if figure != {"light": light, "dark": dark}]


def _small_pictures(page: Page) -> list[str]:
    """Pictures with letters below 11 pixels; one that is wider than the screen scrolls, with a cue at its edge."""
    shown = page.eval_on_selector_all(":is(.fl-fig, .fl-pan) img", PICTURES)
    # Each is shown in one theme, and as large in the other.
    widths = {name.replace("-dark.svg", ".svg"): width / float(own) for name, width, own in shown if width}
    assert len(widths) * 2 == len(shown)
    return [
        name for name, _, _ in shown
        if widths[name.replace("-dark.svg", ".svg")] * _smallest_letters(BOOK / name.lstrip("/")) < LEGIBLE
    ]  # fmt: skip


def _smallest_letters(picture: Path) -> float:
    """Height in pixels, at the drawing's own width, of its smallest words, leaving out exponents."""
    sizes = re.findall(r"scale\(([\d.]+) -[\d.]+\)", picture.read_text(encoding="utf-8"))
    return 100 * min(map(float, sizes)) * 96 / 72


@pytest.mark.parametrize("path", sorted(_KINDS.values()))
def test_a_page_is_whole_from_disk(tabs: dict[str, tuple[Page, Visit]], origins: dict[str, str], path: str) -> None:
    page = _go(tabs["disk"], f"{origins['disk']}/{path}")
    faults = {name: told for name, told in _anywhere(page.evaluate(FACTS), path) if told}
    assert (faults, page.evaluate(CUT)) == ({}, [])
    assert {name: told for name, told in _what_it_did(tabs["disk"][1]) if told} == {}


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_front_door_opens_on_the_home_page(page: Page, origins: dict[str, str], origin: str) -> None:
    page.goto(f"{origins[origin]}/index.html")
    page.wait_for_selector("article h1")


def test_figures_of_every_executed_notebook_stand_on_its_page(book: Path) -> None:
    runs = sorted((book / "files").glob("*/figures"))
    assert runs, "no executed notebook left figures beside the book"
    for run in runs:
        drawn = [path for path in run.glob("*.svg") if not path.stem.endswith("-dark")]
        assert TEXTS[f"notebooks/{run.parent.name}.html"].count('<div class="fl-fig">') == len(drawn), run.parent.name


def test_paper_shows_the_light_figures_whatever_the_screen_shows(page: Page, origins: dict[str, str]) -> None:
    drawn = next(path for path in PAGES if '<div class="fl-fig">' in TEXTS[path])
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


@pytest.mark.parametrize("origin", ORIGINS)
def test_the_search_finds_what_people_ask_for(
    tabs: dict[str, tuple[Page, Visit]], origins: dict[str, str], origin: str
) -> None:
    page, found = tabs[origin]
    for words, wanted in (
        ("install", "book/rerun"), ("cite", "book/cite"), ("epsilon for my survey", "notebooks/ask"),
        ("theorem 3.1", "book/blanket"), ("Lemma 4.4", "book/blanket"), ("theorem 5", "book/flame"),
    ):  # fmt: skip
        found.begin(f"{origins[origin]}/search.html?q={words.replace(' ', '+')}")
        page.goto(found.address)
        page.wait_for_selector("#search-results li a")
        page.wait_for_function("() => !document.querySelector('#search-progress')?.textContent?.includes('...')")
        first = page.eval_on_selector_all("#search-results li a", "all => all.map(e => e.href).slice(0, 5)")
        assert any(f"/{wanted}.html" in link for link in first), first
        assert (found.complaints, found.outside()) == ([], [])
