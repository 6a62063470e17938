"""The page of sliders: its numbers are CPython's, from Python in the page or, where that cannot be, from the grid."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from flamebook.site.sliders import figures as sliders_figures
from flamebook.site.sliders import page as sliders

from .conftest import BOOK, DESKTOP, Visit, resize, settle, watched

pytestmark = pytest.mark.browser

PATH = "book/sliders.html"
WITH_RUNTIME = (BOOK / "_static" / "sliders" / "pyodide.js").is_file()
needs_runtime = pytest.mark.skipif(
    BOOK.is_dir() and not WITH_RUNTIME,
    reason="the book was built where npm could not bring Pyodide; its page shows the grid, which is tested here too",
)
POINTS = [
    ("1", "10000", "1e-6", "10", "1"),
    ("0.5", "1000", "1e-6", "2", "1"),
    ("0.4", "5000", "1e-6", "100", "0.5"),
    ("0.01", "100", "0.01", "2", "0.1"),
    ("8", "1e9", "1e-12", "10000", "0.01"),
    ("0.25", "1000000000", "1e-300", "2", "1"),
    ("700", "2", "1", "2", "1"),
    ("1e-6", "9007199254740992", "0.5", "3", "0.3"),
    ("1.7", "12345", "0", "17", "0.9"),
    ("3", "408", "1e-6", "2", "1"),
]
ON_THE_GRID = [
    ("0.1", "100", "0.01", "2", "0.1"),
    ("8", "1000000000", "1e-12", "1000", "0.25"),
]


TYPED = ("epsilon0", "n_users", "delta", "n_buckets", "epsilon")
# Where the page starts, besides what is typed.
START = {
    "kept": 157, "padded": 10_000, "dimension": 7850, "rounds": 100, "noise_std": 1, "participation_rate": 0.1,
    "record_rate": 0.1, "n_records": 20, "checkin_rate": 0.1, "n_messages": 32, "log2_modulus": 32,
}  # fmt: skip


def _expected(point: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The rows of the page as CPython answers them; that these are the library's answers is tested with the page."""
    return sliders.answers(START | dict(zip(TYPED, map(float, point), strict=True)))


def _shown(page: Page) -> dict[str, float | None]:
    read = "rows => rows.map(row => [row.id.slice(7), row.querySelector('.fl-value').dataset.value])"
    return {key: float(text) if text else None for key, text in page.eval_on_selector_all("#fl-rows tr[id]", read)}


def _plain(command: str) -> str:
    """JavaScript does not tell 1.0 from 1."""
    return re.sub(r"\.0(?= |$)", "", command)


def _compare(page: Page, point: tuple[str, ...], live: bool = True) -> None:
    """Every row; without Python in the page those of recorded grids are empty off the points of their grids."""
    shown, expected = _shown(page), _expected(point)
    assert shown.keys() == expected.keys()
    told = page.eval_on_selector_all("#fl-rows tr[id]", "rows => rows.map(row => row.dataset.command)")
    for (key, reply), command in zip(expected.items(), told, strict=True):
        if not live and key.startswith("recorded-") and shown[key] is None:
            continue
        value = reply.get("value")
        near = None if value is None else pytest.approx(float(value), rel=1e-12, abs=1e-300)
        assert shown[key] == near, (key, point)
        assert not live or _plain(command) == _plain(reply.get("command", "")), (key, point)


@pytest.fixture(scope="module")
def live(contexts: dict[str, BrowserContext], origins: dict[str, str]) -> Iterator[Page]:
    """The page from disk, where less is allowed, with Python running in it."""
    with watched(contexts["disk"], f"{origins['disk']}/{PATH}") as page:
        if page.evaluate("() => document.documentElement.dataset.sliders") != "live":
            pytest.fail(f"no Python in the page: {page.text_content('#fl-status')}")
        yield page


def _type(page: Page, point: tuple[str, ...]) -> None:
    """Fill in a point at once; the page answers the last field alone."""
    fill = """texts => {
      for (const [name, text] of Object.entries(texts)) document.getElementById(`fl-${name}`).value = text;
      document.getElementById("fl-epsilon").dispatchEvent(new Event("input"));
    }"""
    page.evaluate(fill, dict(zip(TYPED, point, strict=True)))


@needs_runtime
def test_the_page_agrees_with_cpython(live: Page) -> None:
    for point in POINTS:
        _type(live, point)
        assert live.text_content("#fl-refusal") == "", point
        _compare(live, point)


@needs_runtime
def test_a_slider_moves_by_keyboard_and_changes_answers_and_address(live: Page) -> None:
    _type(live, POINTS[0])
    before = _shown(live)
    live.focus("#fl-n_users-slider")
    live.keyboard.press("ArrowRight")
    assert float(live.input_value("#fl-n_users")) > 10_000
    assert live.get_attribute("#fl-n_users-slider", "aria-valuetext") == live.input_value("#fl-n_users")
    key = "blanket-lem-hoeffding-kary-epsilon"
    assert 0 < (_shown(live)[key] or 0) < (before[key] or 0)
    assert f"n_users={live.input_value('#fl-n_users')}" in live.url


@needs_runtime
def test_a_value_outside_its_domain_is_refused_in_the_words_of_the_library(live: Page) -> None:
    _type(live, POINTS[0])
    live.fill("#fl-delta", "2")
    assert live.text_content("#fl-refusal") == "delta must be a number in [0, 1], got '2'"
    assert live.get_attribute("#fl-delta", "aria-invalid") == "true"
    assert set(_shown(live).values()) == {None}
    live.fill("#fl-delta", "1e-6")
    assert live.text_content("#fl-refusal") == ""


@needs_runtime
def test_a_row_that_is_looked_up_says_at_which_point(live: Page) -> None:
    _type(live, ("0.9", "12345", "1e-6", "10", "1"))
    line = live.text_content("#fl-row-recorded-clones-any-epsilon") or ""
    assert "upper bound, computed at ε₀ = 1, n = 10000, δ = 1e-06" in line


@needs_runtime
def test_digits_that_are_left_out_never_flatter(live: Page) -> None:
    _type(live, POINTS[3])
    read = (
        "rows => rows.map(row => [row.children[2].textContent.split(' bound')[0], row.children[1].dataset.value,"
        " row.children[1].textContent.split('=')[1]]).filter(([, , shown]) => shown && !shown.includes('∞'))"
    )
    seen = [
        (gives, float(told), float(shown)) for gives, told, shown in live.eval_on_selector_all("#fl-rows tr[id]", read)
    ]
    assert {gives for gives, told, shown in seen if told != shown} >= {"upper", "lower"}
    assert [row for row in seen if row[0] == "upper" and row[2] < row[1]] == []
    assert [row for row in seen if row[0] == "lower" and row[2] > row[1]] == []
    cell = live.locator("#fl-row-blanket-lem-5-1-kary-mass .fl-value")
    live.check("#fl-digits")
    assert float((cell.text_content() or "").split("=")[1]) == float(cell.get_attribute("data-value") or "nan")
    live.uncheck("#fl-digits")


IN_SIGHT = """name => {
  const [slider, chart] = [`fl-${name}-slider`, "fl-chart"].map((id) => document.getElementById(id));
  const [a, b] = [slider, chart].map((one) => one.getBoundingClientRect());
  const inside = [a, b].every((one) => one.top >= 0 && one.bottom <= innerHeight);
  return inside && document.elementFromPoint((a.left + a.right) / 2, (a.top + a.bottom) / 2) === slider;
}"""
FOLLOWED = {"n_buckets": "blanket", "kept": "flame", "noise_std": "participation", "checkin_rate": "checkin",
            "log2_modulus": "cloak"}  # fmt: skip


@needs_runtime
def test_the_chart_stays_in_sight_on_a_phone_and_follows_the_parameter_in_use(live: Page) -> None:
    before = live.viewport_size or DESKTOP
    resize(live, {"width": 390, "height": 844})
    for name in (*TYPED, *START):
        live.focus(f"#fl-{name}-slider")
        live.keyboard.press("ArrowRight")
        live.wait_for_function(IN_SIGHT, arg=name)  # once the page has drawn itself anew
        if name in FOLLOWED:
            assert live.input_value("#fl-which") == FOLLOWED[name]
    for chart in sliders_figures.CHARTS:
        live.select_option("#fl-which", chart.name)
        paths = live.eval_on_selector_all("#fl-chart path", "paths => paths.map(path => path.getAttribute('d'))")
        assert any(paths), chart.name
        assert all("NaN" not in path for path in paths), chart.name
        assert live.locator("#fl-legend li").count() == len(chart.curves)
    live.select_option("#fl-which", "blanket")
    live.click("#fl-reset")
    resize(live, before)  # type: ignore[arg-type]


def _without_runtime(route: Route) -> None:
    body = route.fetch().text()
    facts = json.loads(body[body.index("{") : body.rindex(")")])
    route.fulfill(
        body=f'flamelibSliders.receive("values", {json.dumps(facts | {"runtime": None})});',
        content_type="text/javascript",
    )


@pytest.mark.parametrize("how", ["built without npm", "runtime does not load"])
def test_without_python_the_page_steps_through_the_grid_and_says_so(
    contexts: dict[str, BrowserContext], origins: dict[str, str], how: str
) -> None:
    page = contexts["http"].new_page()
    found = Visit(origins["http"])
    if how == "built without npm":
        page.route("**/sliders/values.js", _without_runtime)
        found.listen(page)
    else:
        page.route("**/pyodide.asm.wasm.js", lambda route: route.abort())
    page.goto(f"{origins['http']}/{PATH}#epsilon0=0.9&n_users=12000&delta=1e-6&n_buckets=12&epsilon=1")
    settle(page)
    assert "grid" in (page.text_content("#fl-status") or "")
    assert (page.input_value("#fl-epsilon0"), page.input_value("#fl-n_users")) == ("1", "10000")
    page.focus("#fl-n_users-slider")
    page.keyboard.press("ArrowRight")
    _compare(page, ("1", "100000", "1e-6", "10", "1"), live=False)
    assert _shown(page)["recorded-clones-any-epsilon"] is not None
    for point in ON_THE_GRID:
        _type(page, point)
        page.dispatch_event("#fl-epsilon", "change")
        _compare(page, point, live=False)
    assert found.complaints == []
    page.close()


def test_a_page_that_gets_no_values_says_so(contexts: dict[str, BrowserContext], origins: dict[str, str]) -> None:
    page = contexts["http"].new_page()
    page.route("**/sliders/values.js", lambda route: route.abort())
    page.goto(f"{origins['http']}/{PATH}")
    page.wait_for_function("() => document.getElementById('fl-status').textContent.includes('make book')")
    page.close()
