"""The form and the library say the same of values that do not go together, in the same words, before anything runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from flamebook.places import ROOT
from flamebook.runs import notebook
from flamebook.runs.trial import drawn
from flamebook.site.sliders.forms import form
from flamelib.core.vocabulary import DomainError

pytestmark = pytest.mark.browser

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SHOWN = {path.stem: f"http://book/notebooks/{path.stem}.html" for path in NOTEBOOKS}
FILL = """given => {
  const form = document.querySelector("form.fl-own-form");
  form.reset();
  for (const [name, text] of Object.entries(given)) form.elements[name].value = text;
  form.dispatchEvent(new Event("input", {bubbles: true}));
  return document.getElementById("own-refusal").textContent;
}"""


@pytest.fixture
def alone(page: Page) -> Page:
    """Pages that hold nothing but the form."""
    script = (ROOT / "book" / "assets" / "live.js").read_text(encoding="utf-8")

    def answer(route: Any) -> None:
        name = Path(route.request.url).stem
        if name in SHOWN:
            template = ROOT / "notebooks" / f"{name}.ipynb"
            route.fulfill(body=f"<html><body>{form(template, template)}</body></html>", content_type="text/html")
        else:
            route.fulfill(body=script if name == "live" else "", content_type="text/javascript")

    page.route("http://book/**", answer)
    return page


def _cases(template: Path) -> Iterator[dict[str, str]]:
    """Values that trials draw, and every parameter taken far away alone."""
    generator = np.random.default_rng(sum(map(ord, template.stem)))
    yield from (drawn(template, generator) for _ in range(5))
    found = notebook.declared(template)
    ends = {name: one.one.high for name, one in found.items() if one.one and one.one.whole and not one.several}
    yield {name: f"{end:.0f}" for name, end in ends.items() if end < 1e6}
    for name, one in found.items():
        if one.element in ("int", "float") and not one.several:
            yield from ({name: word} for word in ("0", "1e-290", "1e-7", "3", "123457", "3e9"))
        elif one.several:
            yield from ({name: word} for word in ("1", "0.5,0.25", "7e7,2e8", ",".join(["2"] * 101)))


@pytest.mark.parametrize("template", NOTEBOOKS, ids=lambda path: path.stem)
def test_both_refuse_alike(alone: Page, template: Path) -> None:
    alone.goto(SHOWN[template.stem])
    joint = 0
    for case in _cases(template):
        try:
            told = ""
            notebook.values(template, case)
        except DomainError as refusal:
            told = str(refusal)
        assert alone.evaluate(FILL, case) == told, case
        joint += any(told.startswith(rule) for rule in notebook.rules(template))
    assert joint or not notebook.conditions(template), "no case asks for the joint conditions"
