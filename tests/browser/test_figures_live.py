"""Figures that move in place: from disk, their digits and their CSV are CPython's, and nothing is loaded unasked."""

import csv
import io
from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlparse

import pytest
from playwright.sync_api import BrowserContext, Page

from flamebook.site.sliders.figures import FIGURES, Figure
from flamelib.answers import answer

from .conftest import PHONE, Visit, resize, settle, switch_theme
from .test_pages import ASK, AXE
from .test_sliders import needs_runtime

pytestmark = [pytest.mark.browser, needs_runtime]

# Where all sliders are put, from the one end to the other.
PLACES = (1.0, 0.37)
PAGES = {page: tuple(found) for page, found in groupby(FIGURES, attrgetter("under"))}
ONE = FIGURES[0]
PLACE = """([box, place]) => document.querySelectorAll(`${box} input[type=range]`).forEach((slider) => {
  slider.value = Number(slider.min) + place * (slider.max - slider.min);
  slider.dispatchEvent(new Event("input"));
})"""
LIVE = "box => document.querySelector(box).dataset.live === 'live'"
SHOWN = """box => [...box.querySelectorAll(".fl-values tbody tr")].map((line) =>
  [line.children[1].textContent, line.children[2].textContent, line.children[2].title])"""


def _box(figure: Figure) -> str:
    return f'.fl-move[data-figure="{figure.name}"]'


def _touch(page: Page, figure: Figure) -> None:
    page.click(f"{_box(figure)} > summary")
    page.wait_for_function(LIVE, arg=_box(figure))


def _settled(page: Page, figure: Figure) -> dict[str, float]:
    """What the sliders stand at, once the panel has answered them."""
    page.wait_for_function(LIVE, arg=_box(figure))
    given = dict(parse_qsl(urlparse(page.get_attribute(f"{_box(figure)} .fl-options a", "href") or "").fragment))
    assert given.pop("move") == figure.name
    told = page.text_content(f"{_box(figure)} [role=status]") or ""
    assert told.endswith("by flamelib itself, in this page."), told
    return {name: int(text) if text.isdecimal() else float(text) for name, text in given.items()}


def _agrees(page: Page, figure: Figure, inputs: dict[str, float]) -> int:
    """Compares the digits with CPython's, and the side of each with its own command's; how many curves spoke."""
    expected = figure.marked(inputs)
    shown = page.eval_on_selector(_box(figure), SHOWN)
    spoke = 0
    for curve, (value, where, command) in zip(figure.curves, shown, strict=True):
        told = expected[curve.key]
        assert value == told.get("shown", "—"), (curve.key, inputs)
        if "refused" in told:
            assert where == told["refused"]
            continue
        spoke += 1
        # What is looked up is compared with the library where its grids are tested.
        if curve.row.recorded or not command.startswith("flamelib evaluate "):
            continue
        words = command.split()
        again = answer(words[2], dict(word.split("=") for word in words[3:]))["value"]
        again = again[curve.row.answers] if isinstance(again, dict) else again
        sign, digits = value.split(" ")[1:]
        assert float(digits) == pytest.approx(again, rel=2e-3)
        assert {"≤": float(digits) >= again, "≥": float(digits) <= again, "=": True}[sign], (curve.key, inputs)
    return spoke


def _same_csv(page: Page, figure: Figure, inputs: dict[str, float]) -> None:
    with page.expect_download() as given:
        page.click(f"{_box(figure)} .fl-options button")
    rows = list(csv.DictReader(io.StringIO(Path(given.value.path()).read_text(encoding="utf-8"))))
    assert given.value.suggested_filename == f"{figure.name}.csv"
    for one in figure.sliders:
        assert {float(row[one.name]) for row in rows} == {inputs[one.name]}
    points: list[tuple[str, float, Any]] = []
    for curve in figure.curves:
        found = figure.curves_at(inputs)[curve.key]
        points += [(curve.row.statement, x, y) for x, y in zip(found["x"], found["y"], strict=True) if y is not None]
    assert [row["statement"] for row in rows] == [statement for statement, _, _ in points]
    assert [float(row[figure.x.name]) for row in rows] == [x for _, x, _ in points]
    assert [float(row["value"]) for row in rows] == pytest.approx([float(y) for _, _, y in points], rel=1e-12)


@pytest.mark.parametrize("path", PAGES)
def test_every_figure_agrees_with_cpython_from_disk(
    contexts: dict[str, BrowserContext], origins: dict[str, str], path: str
) -> None:
    page = contexts["disk"].new_page()
    found = Visit(f"{origins['disk']}/{path}.html")
    found.listen(page)
    page.goto(found.address)
    settle(page)
    assert [url for url in found.requests if "/sliders" in url and not url.endswith("/sliders_figures.js")] == []
    for figure in PAGES[path]:
        _touch(page, figure)
        inputs = _settled(page, figure)
        assert inputs == {name: value for name, value in figure.start().items() if name not in figure.fixed}
        spoke = [_agrees(page, figure, inputs)]
        for place in PLACES:
            page.evaluate(PLACE, [_box(figure), place])
            inputs = _settled(page, figure)
            if place == 1.0:
                ends = {one.name: one.ends[1] for one in (figure.x, *figure.sliders)}
                assert inputs == ends
            spoke.append(_agrees(page, figure, inputs))
        _same_csv(page, figure, inputs)
        assert max(spoke) >= 2, figure.name
        drawn = page.eval_on_selector_all(
            f"{_box(figure)} path.fl-curve", "all => all.map((one) => one.getAttribute('d'))"
        )
        assert len([path for path in drawn if path and "NaN" not in path]) >= 2, figure.name
    assert found.complaints == []
    assert found.outside() == []
    page.close()


@pytest.fixture(scope="module")
def opened(contexts: dict[str, BrowserContext], origins: dict[str, str]) -> Iterator[Page]:
    """A page with one figure that has been touched, from disk."""
    page = contexts["disk"].new_page()
    page.goto(f"{origins['disk']}/{ONE.under}.html")
    settle(page)
    _touch(page, ONE)
    yield page
    page.close()


def test_a_slider_moves_by_keyboard_and_says_what_it_stands_at(opened: Page) -> None:
    slider = f"#{ONE.name}-n_users"
    assert opened.get_attribute(slider, "aria-valuetext") == "10000"
    opened.focus(slider)
    opened.keyboard.press("ArrowRight")
    inputs = _settled(opened, ONE)
    assert inputs["n_users"] > 10_000
    assert float(opened.get_attribute(slider, "aria-valuetext") or "0") == inputs["n_users"]
    assert f"n_users={inputs['n_users']:.0f}" in opened.url
    opened.keyboard.press("Tab")
    assert opened.evaluate("() => document.activeElement.id") == f"{ONE.name}-epsilon0"
    named = "all => all.every((one) => one.labels.length === 1)"
    assert opened.eval_on_selector_all(f"{_box(ONE)} input", named)
    opened.click(f"{_box(ONE)} button:text('Start values')")
    assert _settled(opened, ONE)["n_users"] == 10_000


def test_an_open_panel_has_nothing_serious_against_it(opened: Page) -> None:
    opened.evaluate(AXE)
    for theme in ("dark", "light"):
        switch_theme(opened, theme)
        assert opened.evaluate(ASK, [_box(ONE), True]) == []


def test_it_fits_a_phone_and_is_not_printed(opened: Page) -> None:
    before = opened.viewport_size
    resize(opened, PHONE)
    wide = "where => [...document.querySelectorAll(`${where} *`)].filter((e) => e.scrollWidth > innerWidth).length"
    assert opened.evaluate(wide, _box(ONE)) == 0
    assert opened.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    resize(opened, before or PHONE)
    opened.emulate_media(media="print")
    assert not opened.is_visible(_box(ONE))
    opened.emulate_media(media="screen")


def test_a_link_restores_values_and_leads_to_the_notebooks_form(
    contexts: dict[str, BrowserContext], origins: dict[str, str]
) -> None:
    figure = FIGURES[-1]
    page = contexts["disk"].new_page()
    moved = {one.name: one.choices[-1] if one.choices else one.ends[1] for one in (figure.x, *figure.sliders)}
    words = "&".join(f"{name}={value!r}" for name, value in moved.items())
    page.goto(f"{origins['disk']}/{figure.under}.html#move={figure.name}&{words}")
    settle(page)
    assert _settled(page, figure) == moved
    assert _agrees(page, figure, moved)
    page.click(f"{_box(figure)} a:text('Run the notebook')")
    page.wait_for_selector("#own[open]")
    for name, here in figure.words.items():
        assert float(page.input_value(f"#own-{name}")) == moved[here]
        assert page.get_attribute(f"#own-{name}", "aria-invalid") == "false"
    page.close()


def test_without_python_it_stays_at_its_start_and_says_so(
    contexts: dict[str, BrowserContext], origins: dict[str, str]
) -> None:
    page = contexts["http"].new_page()
    page.route("**/pyodide.asm.wasm.js", lambda route: route.abort())
    page.goto(f"{origins['http']}/{ONE.under}.html")
    settle(page)
    page.click(f"{_box(ONE)} > summary")
    page.wait_for_function(
        "([box]) => document.querySelector(`${box} [role=status]`)?.textContent.includes('could not be started')",
        arg=[_box(ONE)],
    )  # fmt: skip
    assert page.is_disabled(f"#{ONE.name}-epsilon0")
    told = [value for value, _, _ in page.eval_on_selector(_box(ONE), SHOWN)]
    assert told == [one.get("shown", "—") for one in ONE.marked(ONE.start()).values()]
    page.close()
