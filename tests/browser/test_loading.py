"""What a page loads before anybody does anything, and in which order its formulas are set: counted, never timed."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page

from .conftest import BOOK, settle
from .test_pages import TEXTS

pytestmark = pytest.mark.browser

LONGEST = max((path for path in TEXTS if path.startswith("book/")), key=lambda path: TEXTS[path].count('class="math '))
SCRIPTS = 1_400_000  # bytes, of which the renderer of formulas has 1,160,000
REQUESTS = 45  # of which a dozen are fonts
ADRIFT = """
  CSS.supports = () => false;
  addEventListener("DOMContentLoaded", () => document.head.append(
    Object.assign(document.createElement("style"), {textContent: "* { overflow-anchor: none; }"})));
"""
SET = "() => document.querySelectorAll('.math > mjx-container, .math .fl-frame > mjx-container').length"
IN_SIGHT = """() => [...document.querySelectorAll(".math")].filter((e) => {
  const {top, bottom} = e.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
})"""
SIGHT_IS_SET = (
    f"() => {{ const all = ({IN_SIGHT})(); return all.length && all.every((e) => e.querySelector('mjx-container')); }}"
)
# By how much a place is off from where the browser itself puts it.
OFF = """(place) => {
  const found = place.getBoundingClientRect().top;
  place.scrollIntoView({behavior: "instant"});
  return Math.abs(found - place.getBoundingClientRect().top);
}"""


@pytest.fixture
def busy(contexts: dict[str, BrowserContext]) -> Iterator[Page]:
    """A page whose machine is never idle."""
    opened = contexts["http"].new_page()
    opened.add_init_script("window.requestIdleCallback = () => {}")
    yield opened
    opened.close()


@pytest.mark.parametrize("path", ["book/index.html", LONGEST, "notebooks/ask.html", "book/refuted.html"])
def test_a_page_loads_little_by_itself(page: Page, origins: dict[str, str], path: str) -> None:
    asked: list[str] = []
    scripts: list[str] = []
    page.on("request", lambda one: (scripts if one.resource_type == "script" else asked).append(one.url))
    page.goto(f"{origins['http']}/{path}")
    settle(page)
    names = [url.removeprefix(origins["http"]).partition("?")[0].lstrip("/") for url in scripts]
    assert sum((BOOK / name).stat().st_size for name in names) < SCRIPTS
    assert len(asked) + len(scripts) <= REQUESTS


def test_icons_are_drawn(page: Page, origins: dict[str, str]) -> None:
    page.goto(f"{origins['http']}/{LONGEST}")
    settle(page)
    assert page.evaluate("() => [...document.fonts].some((e) => /Awesome/.test(e.family) && e.status === 'loaded')")
    drawn = page.eval_on_selector_all("i[class*=fa-]", "all => all.map(e => getComputedStyle(e, '::before').content)")
    assert drawn
    assert "none" not in drawn


def test_only_formulas_near_the_reader_are_set_while_the_machine_is_busy(busy: Page, origins: dict[str, str]) -> None:
    formulas = TEXTS[LONGEST].count('class="math ')
    busy.goto(f"{origins['http']}/{LONGEST}")
    busy.wait_for_function(SIGHT_IS_SET)
    assert busy.evaluate(SET) < formulas / 10
    busy.evaluate("() => scrollTo({top: document.body.scrollHeight / 2, behavior: 'instant'})")
    busy.wait_for_function(SIGHT_IS_SET)
    assert busy.evaluate(SET) < formulas / 5


def test_paper_has_every_formula(busy: Page, origins: dict[str, str]) -> None:
    busy.goto(f"{origins['http']}/{LONGEST}")
    busy.wait_for_function(SIGHT_IS_SET)
    busy.pdf()
    assert busy.evaluate(SET) == TEXTS[LONGEST].count('class="math ')


@pytest.mark.parametrize("way", ["address", "link"])
@pytest.mark.parametrize("keeps", [True, False])
def test_a_place_deep_in_the_longest_page_is_where_it_should_be(
    page: Page, origins: dict[str, str], way: str, keeps: bool
) -> None:
    """Also in a browser that does not itself keep what is read in its place."""
    if not keeps:
        page.add_init_script(ADRIFT)
    place = re.findall(r'id="([a-z-]+-lem-[\d-]+)"', TEXTS[LONGEST])[-1]
    page.goto(f"{origins['http']}/{LONGEST}" + (f"#{place}" if way == "address" else ""))
    if way == "link":
        page.wait_for_function(SIGHT_IS_SET)
        page.evaluate("(place) => { location.hash = place; }", place)
    settle(page)
    assert page.evaluate("() => scrollY") > 10_000
    assert page.locator(f"[id='{place}']").evaluate(OFF) < 4
