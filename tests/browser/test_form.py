"""The form and the library say the same of values that do not go together, in the same words, before anything runs."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.trial import drawn
from playwright.sync_api import Page

from flamebook.places import ROOT
from flamebook.runs import notebook
from flamebook.site.sliders.forms import form

pytestmark = pytest.mark.browser

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SHOWN = {path.stem: f"http://book/notebooks/{path.stem}.html" for path in NOTEBOOKS}
FILL = """cases => {
  const form = document.querySelector("form.fl-own-form");
  return cases.map((given) => {
    form.reset();
    for (const [name, text] of Object.entries(given)) form.elements[name].value = text;
    form.dispatchEvent(new Event("input", {bubbles: true}));
    return document.getElementById("own-refusal").textContent;
  });
}"""
# What somebody might type into any field; tried where kinds and domains are of every sort.
TYPED = (
    "", "abc", "-1", "0", "1", "2", "1.5", "1e6", "1e400", "nan", "inf", " 5 ", "5,6", "0x10", "1_000",
    "5e-324", "it's",
)  # fmt: skip
VARIED = ("flame_learning", "cloak_protocol", "checkin_accounting", "participation_learning")


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
        if template.stem in VARIED and not name.endswith(
            "dataset"
        ):  # which files there are, the machine knows that runs
            yield from ({name: text} for text in TYPED)


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook is read once for all of its cases."""
    for name in ("declared", "data_sets", "rules"):
        monkeypatch.setattr(notebook, name, functools.cache(getattr(notebook, name)))


@pytest.mark.parametrize("template", NOTEBOOKS, ids=lambda path: path.stem)
def test_both_refuse_alike(alone: Page, template: Path) -> None:
    cases = list(_cases(template))
    refusals = [notebook.refusal(template, {name: text.strip() for name, text in case.items()}) for case in cases]
    expected = [refused.partition(": did you mean ")[0] for refused in refusals]  # the nearest word is Python's alone
    alone.goto(SHOWN[template.stem])
    told = alone.evaluate(FILL, cases)
    assert [one for one in zip(cases, told, expected, strict=True) if one[1] != one[2]] == []
    joint = any(one.startswith(rule) for one in told for rule in notebook.rules(template))
    assert joint or not notebook.conditions(template), "no case asks for the joint conditions"
