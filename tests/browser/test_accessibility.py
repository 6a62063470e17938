"""Every page, by an automated checker (axe-core): nothing serious may stand between a reader and the page."""

from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page

from .conftest import settle, switch_theme
from .test_pages import PAGES

pytestmark = pytest.mark.browser

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RULES = {"light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "dark": ["color-contrast"]}
# Pages of every kind; the colours of the dark theme are the same on all others.
DARK = (
    "book/index.html", "book/defend.html", "book/cloak.html", "book/ledger.html", "book/sliders.html",
    "book/refuted.html", "notebooks/cloak_audit.html", "notebooks/flame_exercises.html", "prf-prf.html", "search.html",
)  # fmt: skip
# Long lists of one kind are looked at in part, or the checker takes minutes for a page of a thousand equal lines.
MANY = {"dl.py": 10, "tbody tr": 25, ".genindextable li": 50, "mjx-container": 25, "div.highlight": 12}

TRIM = """(many) => {
  for (const [kind, kept] of Object.entries(many))
    [...document.querySelectorAll("article " + kind)].slice(kept).forEach((element) => element.remove());
}"""
ASK = """async ([kind, rules]) => {
  const found = await axe.run(document, {resultTypes: ["violations"], runOnly: {type: kind, values: rules}});
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .flatMap((one) => one.nodes.slice(0, 3).map((node) => `${one.id}: ${node.html.slice(0, 160)}`));
}"""


@pytest.mark.parametrize("path", PAGES)
def test_nothing_serious_is_found(page: Page, origins: dict[str, str], path: str) -> None:
    page.goto(f"{origins['http']}/{path}")
    settle(page)
    page.evaluate(TRIM, MANY)
    page.evaluate(AXE)
    assert page.evaluate(ASK, ["tag", RULES["light"]]) == []
    if path in DARK:
        switch_theme(page, "dark")
        told = page.evaluate(ASK, ["rule", RULES["dark"]])
        switch_theme(page, "light")
        assert told == []
