"""Defend your epsilon in a browser: what it shows is on the safe side of the library, and its receipt can be run."""

import functools
import itertools
import json
import math
import re
import shlex
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest
from playwright.sync_api import BrowserContext, Page

from flamelib import Checkin, Participation, Summed, account, bounds, cli
from flamelib.accounting.checkin.closed_form import removal_renyi
from flamelib.accounting.composition.renyi import renyi_to_epsilon
from flamelib.core.guarantees import Adjacency
from flamelib.front.results import Guarantee
from flamelib.uses.deployments import Refusal, mechanisms, row
from flamelib.uses.local_mechanisms import LOCAL
from flamelib.uses.lower_bounds import bracketed
from flamelib.uses.workload import Request, Row

from .conftest import switch_theme, watched

pytestmark = pytest.mark.browser

PATH = "book/defend.html"
READ = """rows => rows.map(row => ({
  name: row.dataset.mechanism,
  budget: Number(row.dataset.budget),
  kind: row.className,
  words: row.lastElementChild.textContent,
  first: row.firstElementChild.textContent,
  ...Object.fromEntries(["upper", "lower", "error", "bytes"].map(name => [name,
    (value => value ? Number(value) : null)(row.querySelector(`[data-${name}]`)?.dataset[name])])),
}))"""
MARKS = """paths => paths.map(
  path => [path.dataset.name, getComputedStyle(path).stroke, path.getAttribute("transform")])"""
FIELDS = ("task", "n_users", "dimension", "rounds", "delta", "budget")
# On the grid, between its points, at both ends of it.
REQUESTS = [
    ("mean", "10000", "16", "12", "1e-6", "epsilon=1"),
    ("mean", "50000", "10", "5", "3e-8", "epsilon=3"),
    ("mean", "777", "1", "1", "1e-5", "epsilon0=1"),
    ("mean", "1e6", "1000000", "99", "1e-10", "epsilon=10"),
    ("mean", "50000", "10", "10", "1e-8", "epsilon=1"),
    ("histogram", "123456", "17", "7", "1e-7", "epsilon0=2"),
    ("histogram", "200 000", "2,5_5", "1", "1e-6", "epsilon0=5"),
]


@pytest.fixture(scope="module")
def defend(contexts: dict[str, BrowserContext], origins: dict[str, str]) -> Iterator[Page]:
    """The page from disk, where less is allowed; it must ask for nothing elsewhere and complain of nothing."""
    with watched(contexts["disk"], f"{origins['disk']}/{PATH}") as opened:
        yield opened


def _ask(page: Page, *values: str, trust: tuple[str, ...] = ("shuffler",), missing: str = "0") -> None:
    page.fill(".fl-defend input[name=missing]", missing)
    for name, value in zip(FIELDS, values, strict=True):
        if name in ("task", "budget"):
            page.select_option(f".fl-defend select[name={name}]", value)
        else:
            page.fill(f".fl-defend input[name={name}]", value)
    for one in ("shuffler", "others", "server"):
        page.set_checked(f".fl-defend input[value={one}]", one in trust)


def _receipt(page: Page) -> dict[str, Any]:
    address = page.get_attribute("#defend-download", "href") or ""
    found: dict[str, Any] = json.loads(unquote(address.partition(",")[2]))
    return found


def _shown(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.eval_on_selector_all(".fl-defend-table tbody tr", READ)
    return found


def _request(values: tuple[str, ...]) -> Request:
    task, *numbers = values[:5]
    n_users, dimension, rounds, delta = (float(one.translate(str.maketrans("", "", ", _"))) for one in numbers)
    return Request(int(n_users), int(dimension), int(rounds), delta, task)


@functools.cache
def _answer(name: str, request: Request, budget: float) -> Row | Refusal:
    return row(name, request, **{"epsilon0" if name in LOCAL else "epsilon": budget})


@pytest.mark.parametrize("values", [REQUESTS[0], *REQUESTS[2:]], ids=str)
def test_what_is_shown_is_on_the_safe_side_of_the_library(defend: Page, values: tuple[str, ...]) -> None:
    _ask(defend, *values)
    shown = [one for one in _shown(defend) if one["upper"] is not None]
    assert len(shown) >= 3
    for one in shown:
        found = _answer(one["name"], _request(values), one["budget"])
        assert isinstance(found, Row), one
        assert one["upper"] >= found.epsilon * (1 - 1e-9), one
        assert one["error"] >= found.error * (1 - 1e-9), one
        assert 8 * one["bytes"] >= 0.8 * found.bits, one
        asked, size = values[5].split("=")
        assert asked != "epsilon" or one["upper"] <= float(size)
        if one["lower"] is not None:
            assert one["lower"] <= found.epsilon * (1 + 1e-9), one
        reports = _request(values).dimension * _request(values).rounds
        dense = values[0] == "mean" and one["name"] in ("local", "blanket") and reports <= 10**6
        if one["name"] in LOCAL:
            assert one["upper"] <= (3 if dense else 40) * max(found.epsilon, 1e-3), "not needlessly far above"
        if dense and one["name"] == "blanket" and one["lower"] is not None:
            assert one["lower"] >= found.epsilon / 3, one


def test_rows_stand_in_order_and_say_whom_to_trust_first(defend: Page) -> None:
    _ask(defend, *REQUESTS[1], trust=("shuffler", "others"))
    shown = _shown(defend)
    assert {one["name"] for one in shown} == set(mechanisms())
    assert shown[0]["kind"] == "fl-recommended"
    assert {one["name"] for one in shown[-2:]} == {"random participation", "cloak, no noise"}
    assert all("not comparable" in one["words"] and one["kind"] == "fl-aside" for one in shown[-2:])
    plain = [one for one in shown if one["kind"] != "fl-aside"]
    assert plain == shown[: len(plain)]
    assert [one["error"] for one in plain] == sorted(one["error"] for one in plain)
    assert all(one["first"] for one in plain)
    assert "needs more trust" in next(one for one in shown if one["name"] == "trusted curator")["words"]
    _ask(defend, *REQUESTS[1], trust=())
    assert {one["name"] for one in _shown(defend) if one["kind"] != "fl-aside"} <= {"local", "local Gaussian"}


def test_the_receipt_can_be_run_and_agrees(defend: Page, capsys: pytest.CaptureFixture[str]) -> None:
    for values, trust in ((REQUESTS[1], ("shuffler",)), (REQUESTS[0], ("shuffler", "others")), (REQUESTS[4], ())):
        _ask(defend, *values, trust=trust)
        receipt = _receipt(defend)
        best = _shown(defend)[0]
        assert receipt["mechanism"] == best["name"]
        assert (receipt["epsilon"]["at_most"], receipt["epsilon"]["at_least"]) == (best["upper"], best["lower"])
        command = defend.text_content("#defend-command") or ""
        assert receipt["command"] == command
        capsys.readouterr()
        assert cli.main(shlex.split(command)[1:]) == 0
        (found,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert found["mechanism"] == best["name"]
        assert found["epsilon"] <= best["upper"] * (1 + 1e-9)
        assert found["lower"] is None or found["lower"] <= found["epsilon"]
        assert found["error"] <= best["error"] * (1 + 1e-9)
        assert (found["rests_on"], found["adjacency"]) == (receipt["rests_on"], receipt["adjacency"])
        every = shlex.split(defend.text_content("#defend-all") or "")
        assert every[:2] == ["flamelib", "compare"]
        assert not any(word.startswith("mechanism") for word in every)


def test_the_paragraph_says_every_number_and_what_it_rests_on(defend: Page) -> None:
    _ask(defend, *REQUESTS[1])
    best, text = _shown(defend)[0], defend.text_content("#defend-review") or ""
    for word in (
        "50,000 people", "10 numbers", "5 rounds", "3e-8", f"ε at most {best['upper']}", "replaced by any other",
        "replace-one", "Not stated here", "proven in the book", "statement ", " by flamelib ", "rounded up",
        f"{best['bytes']} bytes",
    ):  # fmt: skip
        assert word in text, word
    sure = math.ceil(100 / (1 + math.exp(-best["upper"])))
    assert f"at most {sure} % sure, except with probability δ = 3e-8" in (defend.text_content("#defend-odds") or "")
    assert defend.text_content("#defend-odds") in text


def test_people_who_collude_or_are_missing_do_not_count(defend: Page) -> None:
    """The answers are those for so many people less, and both ends bound the library's."""
    _ask(defend, "mean", "11111", "16", "12", "1e-6", "epsilon=1", missing="1111", trust=("shuffler", "others"))
    shown, text, receipt = _shown(defend), defend.text_content("#defend-review") or "", _receipt(defend)
    assert (receipt["people"], receipt["colluding_or_missing"], receipt["request"]["n_users"]) == (11111, 1111, 10000)
    assert "Each of 11,111 people" in text
    assert "Up to 1,111 of them" in text
    assert "the other 10,000, for whom the noise is planned." in text
    assert " n_users=10000 " in receipt["command"]
    assert next(one for one in shown if one["name"] == "double")["words"].startswith("its ε may rise with the number")
    best = next(one for one in shown if one["name"] == "blanket")
    fewer = Request(10_000, 16, 12, 1e-6)
    found = bracketed(row("blanket", fewer, epsilon0=best["budget"]), fewer)
    assert best["lower"] <= found.lower <= found.epsilon <= best["upper"] * (1 + 1e-9)
    _ask(defend, "mean", "10000", "16", "12", "1e-6", "epsilon=1", trust=("shuffler", "others"))
    same = [one for one in _shown(defend) if one["name"] != "double"]
    assert same == [one for one in shown if one["name"] != "double"]
    assert "Up to" not in (defend.text_content("#defend-review") or "")
    _ask(defend, *REQUESTS[0], missing="9999")
    told = defend.text_content("#defend-told")
    _ask(defend, *REQUESTS[0], missing="9950")
    assert "and there remain 50." in (defend.text_content("#defend-told") or "")
    assert told == "People who may collude, or be missing must leave at least 2 others, got “9999” of 10,000."


def test_an_attacker_stays_below_what_is_shown(defend: Page) -> None:
    _ask(defend, "mean", "10000", "16", "12", "0.001", "epsilon=1", trust=("others",))
    found = Guarantee(1.0, 0.001, Adjacency.REPLACE_ONE)
    told = _receipt(defend)["attack"]
    assert told in (defend.text_content("#defend-facts") or "")
    advantage, hits = (float(one) / 100 for one in re.findall(r"at most ([\d.]+) %", told))
    assert found.advantage <= advantage <= found.advantage + 0.001
    assert 1 - found.trade_off(0.01) <= hits <= 1 - found.trade_off(0.01) + 0.001


def _is_below(page: Page, chart: str, epsilon: float, delta: float) -> None:
    """The drawn curve, between its corners too, is nowhere above the library's, and not needlessly below."""
    found = Guarantee(epsilon, delta, Adjacency.REPLACE_ONE)
    drawn = re.findall(r"([\d.e-]+) ([\d.e-]+)", page.get_attribute(f"{chart} path:first-child", "d") or "")
    points = [(float(x) / 200, 1 - float(y) / 200) for x, y in drawn[1:]]
    assert (points[0][0], points[-1][1]) == (0, 0), "from no false alarm to no miss"
    for (one, missed), (other, fewer) in itertools.pairwise(points):
        for share in (0, 0.5, 1):
            alpha, misses = one + share * (other - one), missed + share * (fewer - missed)
            assert misses <= found.trade_off(alpha) + 1e-12
            assert misses >= found.trade_off(min(alpha + 2e-6, 1)) - 2e-6
    assert f"ε = {epsilon} and δ = {delta}".replace("e-0", "e-") in (page.get_attribute(chart, "aria-label") or "")


def test_the_trade_off_curve_is_nowhere_above_the_librarys(defend: Page) -> None:
    for delta in ("0.001", "1e-8"):
        _ask(defend, "mean", "10000", "16", "12", delta, "epsilon=1", trust=("others",))
        _is_below(defend, "#defend-curve", _receipt(defend)["epsilon"]["at_most"], float(delta))
    told = _train(defend, "opacus", TRAININGS[0])
    _is_below(defend, "#defend-trained-curve", float(re.findall(r"at most ([\d.]+), with", told)[0]), 1e-6)
    assert re.findall(r"at most (\d+) %", _train(defend, "opacus", TRAININGS[-1])) == ["100", "100"], "no exp is finite"
    assert defend.locator("#defend-trained-curve").is_visible()
    _train(defend, "checkin", TRAININGS[0])
    assert defend.locator("#defend-trained-curve").is_hidden()


TRAININGS = [
    ("0.01", "1", "1000", "1e-6"),
    ("0.001", "0.7", "1e5", "1e-5"),
    ("1", "20", "100", "1e-8"),
    ("1e-4", "0.5", "1e6", "1e-6"),
    ("0.1", "1", "1", "1e-6"),
    ("1e-6", "0.01", "1", "1e-5"),
]
# Those of the page.
ORDERS = [*range(2, 129)]
while ORDERS[-1] < 4096:
    ORDERS.append(math.ceil(1.1 * ORDERS[-1]))


def _train(page: Page, method: str, values: tuple[str, ...], **more: str) -> str:
    page.select_option("#defend-training select[name=method]", method)
    for name, value in (dict(zip(("rate", "noise", "steps", "failure"), values, strict=True)) | more).items():
        page.fill(f"#defend-training input[name={name}]", value)
    return page.text_content("#defend-trained") or ""


def _printed(page: Page, capsys: pytest.CaptureFixture[str]) -> float:
    """Epsilon that the shown command prints."""
    program, *words = shlex.split(page.text_content("#defend-trained-command") or "")
    capsys.readouterr()
    assert (program, cli.main([*words, "--json"])) == ("flamelib", 0)
    return float(json.loads(capsys.readouterr().out)["epsilon"])


@pytest.mark.parametrize("values", TRAININGS, ids=str)
def test_training_is_never_below_the_account(
    defend: Page, values: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = _train(defend, "opacus", values)
    shown = float(re.findall(r"at most ([\d.,e-]+), with", told)[0].replace(",", ""))
    rate, noise, steps, delta = map(float, values)
    exact = renyi_to_epsilon(lambda order: steps * removal_renyi(order, rate, noise), delta, ORDERS)
    assert exact * (1 - 1e-6) <= shown <= exact * (1 + 1e-3)
    protocol = Participation(1, rate, 1, 1, noise)
    lower, upper = bounds(protocol, delta=delta, rounds=int(steps))
    assert shown >= lower
    assert _printed(defend, capsys) == pytest.approx(upper, rel=1e-3)
    assert _printed(defend, capsys) <= shown * 1.001
    text = defend.text_content("#defend-trained-review") or ""
    for word in (f"ε at most {shown}", "Opacus", "checkin:rem-4", "add-remove", " by flamelib ", f"δ = {values[3]}"):
        assert word in text, word


def test_other_trainings_have_a_command_that_runs(defend: Page, capsys: pytest.CaptureFixture[str]) -> None:
    values = ("0.01", "1", "100", "1e-6")
    alone = _train(defend, "opacus", values)
    assert _train(defend, "participation", values, joining="0.1", records="30") == alone
    secret = account(Participation(0.1, 0.01, 30, 1, 1), delta=1e-6, rounds=100)
    assert _printed(defend, capsys) == pytest.approx(secret.epsilon, rel=1e-3)
    assert "What is gained" in (defend.text_content("#defend-trained-review") or "")
    assert "the command computes it" in _train(defend, "checkin", values, crowd="1000")
    summed = account(Checkin(Summed(1000, 1.0), rate=0.01), delta=1e-6, rounds=100)
    assert _printed(defend, capsys) == pytest.approx(summed.epsilon, rel=1e-3)
    told = _train(defend, "opacus", ("2", *values[1:]))
    assert told == "The chance of a record or person must be a number from 1e-9 to 1, got “2”."
    assert defend.text_content("#defend-trained-review") == ""


def test_bad_input_is_refused_in_one_sentence(defend: Page) -> None:
    for name, value, sentence in (
        ("n_users", "many", "People must be a whole number of at least 2, got “many”."),
        ("dimension", "1.5", "Numbers or items must be a whole number of at least 1, got “1.5”."),
        ("delta", "1", "Δ must be a number between 0 and 1, such as 1e-8, got “1”."),
    ):
        _ask(defend, *REQUESTS[0])
        defend.fill(f".fl-defend input[name={name}]", value)
        assert (defend.text_content("#defend-told") or "").replace("Δ", "δ") == sentence.replace("Δ", "δ")
        assert defend.get_attribute(f".fl-defend input[name={name}]", "aria-invalid") == "true"
        assert defend.locator("#defend-sheet").is_hidden()
        assert _shown(defend) == []


def test_beyond_the_grid_the_page_says_so_and_shows_the_command(defend: Page) -> None:
    name, value = "n_users", "3e6"
    _ask(defend, *REQUESTS[0])
    defend.fill(f".fl-defend input[name={name}]", value)
    told = defend.text_content("#defend-told") or ""
    assert "The recorded answers reach" in told
    assert "flamelib compare task=mean" in told
    assert defend.locator("#defend-sheet").is_hidden()
    words = dict(word.split("=") for word in shlex.split(defend.text_content("#defend-all") or "")[2:])
    assert float(words[name]) == float(value)


def test_the_address_keeps_the_request_and_the_bench_leads_here(
    defend: Page, page: Page, origins: dict[str, str]
) -> None:
    _ask(defend, *REQUESTS[4], trust=("others", "server"))
    _train(defend, "participation", TRAININGS[1], joining="0.2", records="17")
    kept, shown, trained = defend.url.partition("#")[2], _shown(defend), defend.text_content("#defend-trained-review")
    _ask(defend, *REQUESTS[0])
    _train(defend, "opacus", TRAININGS[0])
    assert _shown(defend) != shown
    page.goto(f"{origins['http']}/{PATH}#{kept.partition('&method')[0]}")
    page.wait_for_selector(".fl-defend-table tbody tr")
    assert (_shown(page), page.input_value("[name=rate]")) == (shown, "0.01"), "an address without a training"
    page.goto(f"{origins['http']}/book/bench.html#{kept}")
    page.wait_for_url(f"**/{PATH}**")
    page.wait_for_selector(".fl-defend-table tbody tr")
    assert (_shown(page), page.text_content("#defend-trained-review")) == (shown, trained)
    page.evaluate("() => { location.hash = 'method=none&budget=none&records=&rate=2&trust=server'; }")
    page.wait_for_selector("#defend-training [name=rate][aria-invalid]")
    assert [page.input_value(f"[name={name}]") for name in ("method", "budget", "records")] == [
        "participation", "epsilon=1", "17",
    ]  # fmt: skip
    assert page.locator("[name=trust]:checked").count() == 1
    page.goto(f"{origins['http']}/book/index.html")
    doors = page.eval_on_selector_all("a.sd-stretched-link", "found => found.map(one => one.getAttribute('href'))")
    assert doors[1] == "defend.html"


def test_the_answer_prints_by_itself(defend: Page) -> None:
    _ask(defend, *REQUESTS[0])
    defend.emulate_media(media="print")
    defend.evaluate("() => document.body.classList.add('fl-sheet-only')")
    for seen in ("#defend-review", "#defend-command", "#defend-odds", "#defend-curve"):
        assert defend.locator(seen).is_visible()
    for hidden in (".fl-defend-table", ".fl-defend", "h1"):
        assert defend.locator(hidden).first.is_hidden()
    assert defend.locator("#defend-print").is_hidden()
    defend.evaluate("() => document.body.classList.remove('fl-sheet-only')")
    defend.emulate_media(media="screen")


def test_the_chart_has_a_mark_for_every_row_of_the_table(defend: Page) -> None:
    _ask(defend, *REQUESTS[0])
    wanted = {one["name"] for one in _shown(defend) if one["upper"] is not None and one["error"] > 0}
    drawn = defend.eval_on_selector_all("#defend-chart path[data-name]", MARKS)
    assert {name for name, _, _ in drawn} == wanted
    assert "NaN" not in json.dumps(drawn)
    switch_theme(defend, "dark")
    dark = defend.eval_on_selector_all("#defend-chart path[data-name]", MARKS)
    switch_theme(defend, "light")
    assert all(one != other for (_, one, _), (_, other, _) in zip(drawn, dark, strict=True))
