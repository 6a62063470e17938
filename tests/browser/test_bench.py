"""The bench in a browser: what it shows is the library's, its address keeps the choice, its command gives the rows."""

import functools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page

from flamebook.site.bench import EPSILON0
from flamebook.site.record_bench import upwards
from flamelib.answers import assignments
from flamelib.uses.deployments import Refusal, compared, mechanisms, rows
from flamelib.uses.requests import Request, Row

from .conftest import ORIGINS, Visit, settle, switch_theme

pytestmark = pytest.mark.browser

PATH = "book/bench.html"
READ = """rows => rows.map(row => ({
  name: row.querySelector("th").textContent,
  refused: row.className === "fl-refused" ? row.querySelector("td").textContent : null,
  told: row.querySelector("td[data-field=epsilon]")?.textContent ?? null,
  ...Object.fromEntries(
    [...row.querySelectorAll("td[data-value]")].map(cell => [cell.dataset.field, Number(cell.dataset.value)])),
}))"""
MARKS = """paths => paths.map(
  path => [path.dataset.name, getComputedStyle(path).stroke, path.getAttribute("transform")])"""
# What is quick to compute anew.
QUICK = (
    "local", "blanket", "simple", "topk", "random participation", "cloak, Pólya noise", "cloak, Skellam noise",
    "cloak, no noise", "local Gaussian", "trusted curator",
)  # fmt: skip
CHOSEN = {"task": "histogram", "n_users": "100", "dimension": "16", "rounds": "1", "delta": "1e-8"}


@pytest.fixture(scope="module", params=ORIGINS)
def opened(
    request: pytest.FixtureRequest, contexts: dict[str, BrowserContext], origins: dict[str, str]
) -> Iterator[tuple[Page, Visit]]:
    """The page, from either origin, and what it does."""
    page, found = contexts[request.param].new_page(), Visit(origins[request.param])
    found.listen(page)
    page.goto(f"{origins[request.param]}/{PATH}")
    settle(page)
    yield page, found
    page.close()


@pytest.fixture
def bench(opened: tuple[Page, Visit]) -> Page:
    return opened[0]


def _choose(page: Page, budget: str) -> None:
    for name, value in {**CHOSEN, "budget": budget}.items():
        page.select_option(f".fl-bench select[name={name}]", value)


def _shown(page: Page) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in page.eval_on_selector_all(".fl-bench-table tbody tr", READ)}


@functools.cache
def _answers() -> tuple[Row | Refusal, ...]:
    return rows(Request(100, 16, 1, 1e-8, "histogram"), epsilon0=1.0, names=QUICK)


def test_the_rows_are_the_library_s(bench: Page) -> None:
    _choose(bench, "epsilon0=1")
    shown = _shown(bench)
    assert set(shown) == set(mechanisms())
    for one in _answers():
        told = shown[one.mechanism]
        if isinstance(one, Refusal):
            assert told["refused"] == f"refused: {one.reason}"
        else:
            assert float(told["told"]) == told["epsilon"]  # no digit less than recorded, and none rounded down
            for field in ("epsilon", "error", "bits", "messages"):
                assert told[field] == pytest.approx(upwards(getattr(one, field)), rel=2e-5), one
            assert told.get("claimed") == (one.claimed and pytest.approx(upwards(one.claimed), rel=2e-5))


def test_the_command_gives_what_is_shown(bench: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flamelib.uses.deployments.mechanisms", lambda: QUICK[:2] + QUICK[4:])
    _choose(bench, "epsilon=1")
    command = bench.text_content("#bench-command") or ""
    assert command.startswith("flamelib compare ")
    given = assignments(command.split()[2:])
    assert given == {**CHOSEN, "epsilon": "1", "epsilon0": ",".join(f"{one:g}" for one in EPSILON0)}
    shown = _shown(bench)
    for one in compared(given):
        if isinstance(one, Refusal):
            assert shown[one.mechanism]["refused"] == f"refused: {one.reason}"
        else:
            assert shown[one.mechanism]["epsilon"] == pytest.approx(one.epsilon, rel=2e-5)
            assert shown[one.mechanism].get("local") == one.parameters.get("epsilon0")


def test_rows_are_sorted_by_a_press_of_a_key(bench: Page) -> None:
    _choose(bench, "epsilon=3")
    for field in ("epsilon", "bits", "error"):
        bench.focus(f"[data-sort={field}]")
        bench.keyboard.press("Enter")
        for way, sign in (("ascending", 1), ("descending", -1)):
            assert bench.get_attribute(f"th:has([data-sort={field}])", "aria-sort") == way
            served = [one[field] for one in _shown(bench).values() if not one["refused"]]
            assert served == sorted(served, key=lambda value: sign * value)
            bench.focus(f"[data-sort={field}]")
            bench.keyboard.press("Enter")
    assert "sort=error" in bench.url


def test_the_address_keeps_the_choice_and_opens_with_it(bench: Page) -> None:
    _choose(bench, "epsilon=3")
    kept, shown = bench.url, _shown(bench)
    _choose(bench, "epsilon0=8")
    assert bench.url != kept
    bench.evaluate("address => { location.href = address; }", kept)
    bench.wait_for_function("() => document.querySelector('.fl-bench').elements.budget.value === 'epsilon=3'")
    assert _shown(bench) == shown
    bench.evaluate("() => { location.hash = '#n_users=7&budget=none&sort=nothing'; }")
    bench.wait_for_function("() => !location.hash.includes('n_users=7&')")
    assert _shown(bench) == shown


def test_what_is_not_comparable_says_so(bench: Page) -> None:
    _choose(bench, "epsilon=1")
    marked = bench.locator("#bench-warnings li").all_text_contents()
    assert sorted(re.findall(r"^(.*) is not comparable", "\n".join(marked), re.MULTILINE)) == [
        "cloak, no noise", "random participation"
    ]  # fmt: skip
    assert bench.locator(".fl-incomparable").count() == 2


def test_the_chart_has_a_mark_for_every_row_of_the_table(bench: Page) -> None:
    _choose(bench, "epsilon=1")
    shown = _shown(bench)
    wanted = {name for name, one in shown.items() if not one["refused"] and one["error"] > 0 and one["epsilon"] <= 100}
    read = (
        "paths => paths.map(path => [path.dataset.name, getComputedStyle(path).stroke, path.getAttribute('transform')])"
    )
    drawn = bench.eval_on_selector_all("#bench-chart path[data-name]", read)
    assert {name for name, _, _ in drawn} == wanted
    assert "NaN" not in json.dumps(drawn)
    switch_theme(bench, "dark")
    dark = bench.eval_on_selector_all("#bench-chart path[data-name]", MARKS)
    switch_theme(bench, "light")
    assert all(one != other for (_, one, _), (_, other, _) in zip(drawn, dark, strict=True))
    assert bench.locator("#bench-legend li").all_text_contents() == list(mechanisms())


def test_nothing_was_asked_of_the_network_and_nothing_went_wrong(opened: tuple[Page, Visit]) -> None:
    page, found = opened
    _choose(page, "epsilon=1")
    assert (found.outside(), found.complaints) == ([], [])
