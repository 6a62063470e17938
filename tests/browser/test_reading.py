"""What a reader meets on a phone and at a desk: nothing cut without a cue, light pages, controls with names."""

import re
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Page

from .conftest import PHONE, resize, settle
from .test_pages import PAGES, TEXTS

pytestmark = pytest.mark.browser

TEXT, NOTEBOOK = 500_000, 1_000_000  # bytes


@pytest.fixture
def phone(page: Page) -> Page:
    """A page with little room."""
    page.set_viewport_size(PHONE)
    return page


def test_a_table_of_a_phone_shows_every_column(phone: Page, origins: dict[str, str]) -> None:
    for path in ("book/glossary.html", "notebooks/cloak_accounting.html", "notebooks/deployments.html"):
        phone.goto(f"{origins['http']}/{path}")
        settle(phone)
        beyond = phone.evaluate("""() => [...document.querySelectorAll("article tbody :is(td, th)")]
          .filter((e) => e.getClientRects().length && e.getBoundingClientRect().right > innerWidth)
          .map((e) => e.textContent)""")
        assert beyond == [], path
    labels = phone.eval_on_selector_all(".fl-cards tbody tr:first-child td", "all => all.map(one => one.dataset.label)")
    assert "certified: " in labels
    resize(phone, {"width": 1366, "height": 900})
    assert phone.eval_on_selector(".fl-cards", "table => getComputedStyle(table).display") == "table"


def test_pages_are_light(book: Path) -> None:
    sizes = {path: (book / path).stat().st_size for path in PAGES}
    heavy = {path: size for path, size in sizes.items() if size > (NOTEBOOK if "notebooks/" in path else TEXT)}
    assert heavy == {}


def test_figures_out_of_sight_are_there_when_a_page_is_printed(page: Page, origins: dict[str, str]) -> None:
    page.goto(f"{origins['http']}/notebooks/blanket_amplification.html")
    settle(page)
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.fl-fig .only-light img')].every((e) => e.complete && e.naturalWidth)"
    )


def test_every_page_says_what_it_holds_and_how_to_cite_it(book: Path) -> None:
    told = {}
    for path in PAGES:
        text = TEXTS[path]
        found = re.findall(r'<meta name="description" content="([^"]*)" />', text)
        assert len(found) == 1, path
        told[path] = unescape(found[0])
        assert 40 <= len(told[path]) <= 160, path
        foot = text[text.index('<footer class="bd-footer-content">') :]
        assert re.search(r"flamelib \d+\.\d+\.\d+", foot), path
        assert ">Cite this book</a>" in foot, path
        if (book / ".." / ".." / ".git").exists():
            assert re.search(r"revision [0-9a-f]{7,} of \d{4}-\d\d-\d\d", foot), path
    assert len(set(told.values())) > 0.9 * len(told)
    assert "@software{flamelib," in re.sub(r"<[^>]*>", "", (book / "book" / "cite.html").read_text(encoding="utf-8"))
