"""The ledger's filters in a browser: document, kind, speaker, verdict, words; what the address says, and keeps."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page

from .conftest import settle

pytestmark = pytest.mark.browser

ROWS = "table.ledger tbody tr:not([hidden])"


@pytest.fixture(scope="module")
def claims(book: Path) -> list[dict[str, Any]]:
    """The rows as the page offers them for download."""
    [path] = book.glob("_downloads/*/ledger.json")
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["claims"]
    return found


@pytest.fixture(scope="module")
def opened(contexts: dict[str, BrowserContext], origins: dict[str, str]) -> Iterator[Page]:
    """The page from disk, where less is allowed."""
    page = contexts["disk"].new_page()
    page.goto(f"{origins['disk']}/book/ledger.html")
    settle(page)
    yield page
    page.close()


@pytest.fixture
def ledger(opened: Page) -> Page:
    """The page with nothing chosen."""
    opened.eval_on_selector_all(
        "#ledger-controls :is(select, input)",
        "all => all.forEach(one => { one.value = ''; one.dispatchEvent(new Event('input')); })",
    )
    return opened


def _counted(page: Page) -> tuple[int, int]:
    shown, told = page.locator(ROWS).count(), page.text_content("#ledger-controls output")
    number, total = map(int, re.findall(r"\d+", told or ""))
    assert shown == number
    return number, total


def test_filters_show_the_rows_that_the_download_has(ledger: Page, claims: list[dict[str, Any]]) -> None:
    assert _counted(ledger) == (len(claims), len(claims))
    ledger.select_option("select[name=verdict]", "refuted")
    refuted = [claim for claim in claims if claim["verdict"] == "refuted"]
    assert _counted(ledger)[0] == len(refuted)
    ledger.select_option("select[name=document]", "flame")
    ledger.select_option("select[name=kind]", "theorem")
    flame = [claim for claim in refuted if (claim["document"], claim["kind"]) == ("flame", "theorem")]
    assert _counted(ledger)[0] == len(flame) > 0
    ledger.select_option("select[name='said by']", "document")
    assert _counted(ledger)[0] == sum(claim["said_by"] == "document" for claim in flame)


def test_words_are_sought_in_the_whole_row(ledger: Page) -> None:
    ledger.fill("input[name=words]", "SAMPLING largest coordinates")
    [row] = ledger.locator(ROWS).all_text_contents()
    assert "flame:thm-3/always-reported" in row


def test_the_address_keeps_the_choice_and_opens_with_it(ledger: Page) -> None:
    ledger.select_option("select[name=verdict]", "not checkable")
    ledger.fill("input[name=words]", "lost")
    found = _counted(ledger)
    assert parse_qs(urlsplit(ledger.url).query) == {"verdict": ["not checkable"], "words": ["lost"]}
    ledger.goto(ledger.url)
    assert _counted(ledger) == found
    assert 0 < found[0] < found[1]
    ledger.fill("input[name=words]", "")
    ledger.select_option("select[name=verdict]", "")
    assert urlsplit(ledger.url).query == ""


def test_a_link_to_a_row_shows_it_whatever_is_filtered(ledger: Page) -> None:
    ledger.select_option("select[name=verdict]", "reproduced")
    row = ledger.locator("#claim-flame-thm-4-double-count").first
    assert not row.is_visible()
    ledger.evaluate("() => { location.hash = 'claim-flame-thm-4-double-count'; }")
    row.wait_for(state="visible")
    assert ledger.input_value("select[name=verdict]") == ""


def test_the_keyboard_stops_once_in_a_table_and_walks_on_by_arrows(ledger: Page) -> None:
    stops = "article a:not([tabindex='-1']), article :is(button, select, input, summary, [tabindex='0'])"
    assert ledger.locator(stops).count() < 60
    count = ledger.locator("#ledger-controls output")
    assert count.get_attribute("aria-live") == "polite"
    group = ledger.locator("details.ledger-group").first
    group.locator("summary").focus()
    ledger.keyboard.press("Enter")
    assert group.get_attribute("open") is not None
    first, second = (group.locator("tbody tr").nth(at).locator("a").first for at in (0, 1))
    assert group.locator("tbody a[tabindex='0']").count() == 1
    first.focus()
    ledger.keyboard.press("ArrowDown")
    here = "() => document.activeElement.getAttribute('href')"
    assert ledger.evaluate(here) == second.get_attribute("href")
    ledger.keyboard.press("ArrowRight")
    assert ledger.evaluate(here) == group.locator("tbody tr").nth(1).locator("a").nth(1).get_attribute("href")
