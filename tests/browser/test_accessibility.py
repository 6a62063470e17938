"""Every page, by an automated checker (axe-core): nothing serious may stand between a reader and the page."""

from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import Page

from .conftest import settle, switch_theme
from .test_pages import PAGES

pytestmark = pytest.mark.browser

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RULES = {"light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "dark": ["color-contrast"]}
# Generated lists of one kind of line, long enough to take minutes: their first screens stand for the rest.
LONG = ("genindex.html", "book/api.html", "book/ledger.html")
PART = "article > section > section:nth-of-type(-n+3)"

ASK = """async ([kind, rules, part]) => {
  const found = await axe.run(part && document.querySelector(part) ? {include: part} : document, {
    resultTypes: ["violations"], runOnly: {type: kind, values: rules},
  });
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .flatMap((one) => one.nodes.slice(0, 3).map((node) => `${one.id}: ${node.html.slice(0, 160)}`));
}"""


@pytest.mark.parametrize("path", PAGES)
def test_nothing_serious_is_found(page: Page, origins: dict[str, str], path: str) -> None:
    page.goto(f"{origins['http']}/{path}")
    settle(page)
    page.evaluate(AXE)
    assert {
        theme: told for theme, kind in (("light", "tag"), ("dark", "rule")) if (told := _told(page, path, theme, kind))
    } == {}


def _told(page: Page, path: str, theme: str, kind: str) -> list[Any]:
    switch_theme(page, theme)
    return list(page.evaluate(ASK, [kind, RULES[theme], PART if path in LONG else None]))
