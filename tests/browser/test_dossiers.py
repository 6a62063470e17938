"""The switches of the dossiers: verdicts as an oracle finds them, attacks whose intervals cover the truth."""

import functools
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page
from scipy.integrate import quad
from scipy.stats import binom, binomtest

from .conftest import settle, watched

pytestmark = pytest.mark.browser
Pair = list[tuple[float, float]]
At = Mapping[str, str]
TURN = """([name, at]) => {
  const story = document.getElementById(`dossier-${name}`);
  for (const [turned, value] of Object.entries(at))
    story.querySelector(`input[name=${name}-${turned}][value=${value}]`).click();
  return story.querySelector(".fl-dossier-verdict strong").innerText;
}"""


@pytest.fixture(scope="module")
def page(contexts: dict[str, BrowserContext], origins: dict[str, str]) -> Iterator[Page]:
    """The page from disk, where less is allowed; it must ask for nothing elsewhere and complain of nothing."""
    with watched(contexts["disk"], f"{origins['disk']}/book/refuted.html") as opened:
        yield opened


# --- An oracle that shares no code with the book: outcomes listed, densities integrated -----------------------------


def _bell(x: float, width: float = 1.0) -> float:
    """Density of a normal law at a distance from its centre."""
    return math.exp(-((x / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))


def _listed(pairs: Pair, epsilon: float) -> float:
    return math.fsum(max(p - math.exp(epsilon) * q, 0.0) for p, q in pairs)


def _bits(n: int, chance: float) -> list[float]:
    return [float(binom.pmf(k, n, chance)) for k in range(n + 1)]


def _and_one(law: list[float], chance: float) -> list[float]:
    return [(1 - chance) * (law[k] if k < len(law) else 0) + chance * (law[k - 1] if k else 0)
            for k in range(len(law) + 1)]  # fmt: skip


def _integrated(first: Mapping[float, float], second: Mapping[float, float], width: float, epsilon: float) -> float:
    """Two mixtures of normal laws, weights by centre."""

    def excess(x: float) -> float:
        p, q = (sum(w * _bell(x - c, width) for c, w in law.items()) for law in (first, second))
        return max(p - math.exp(epsilon) * q, 0.0)

    low, high = min([*first, *second]) - 10 * width, max([*first, *second]) + 10 * width
    steps = np.linspace(low, high, 60)
    return math.fsum(quad(excess, a, b, epsabs=1e-12, epsrel=1e-9, limit=200)[0] for a, b in itertools.pairwise(steps))


def _flame(at: At, epsilon: float) -> float:
    report, true = 0.02 if at["choice"] == "drawn" else 1.0, math.exp(0.5) / (1 + math.exp(0.5))
    bits = [report * bit + (1 - report) / 2 for bit in (true, 0.5 if at["other"] == "nothing" else 1 - true)]
    others = _bits(332, 0.5) if at["order"] == "mixed" else [1.0]
    return _listed(list(zip(*(_and_one(others, bit) for bit in bits), strict=True)), epsilon)


def _checkin(at: At, epsilon: float) -> float:
    return _of_checkin(at["noise"], 0.4 if at["dropouts"] == "some" else 0.8, epsilon)


@functools.cache
def _of_checkin(noise: str, chance: float, epsilon: float) -> float:
    n, true, total = 10, math.exp(4) / (1 + math.exp(4)), 0.0
    for k in range(1, n + 1):
        there = k / n
        if noise == "shuffled":
            without, own = (_and_one(_bits(k - 1, 1 - true), bit) for bit in (1 - true, true))
            lost = _listed([(there * a + (1 - there) * b, b) for a, b in zip(own, without, strict=True)], epsilon)
        else:
            width = 0.7 * math.sqrt(k if noise == "clients" else n * 0.8)
            lost = _integrated({0.0: 1 - there, 2.0: there}, {0.0: 1.0}, width, epsilon)
        total += math.comb(n, k) * chance**k * (1 - chance) ** (n - k) * lost
    return total


def _participation(at: At, epsilon: float) -> float:
    p, q, others, total = 0.1, 0.1, 4, 0.0
    drawn = _bits(others, q)
    told = [{j: 1.0} for j in range(others + 1)]
    for chance, counts in zip(drawn, told, strict=True) if at["count"] == "told" else [(1.0, dict(enumerate(drawn)))]:
        laws: list[dict[float, float]] = [{0.0: 1 - p}, {0.0: 1 - p}]
        for own, law in zip((q, 0.0), laws, strict=True):
            for j, w in counts.items():
                place = float(j) if at["others"] == "equal" else 0.0
                law[place] = law.get(place, 0.0) + p * w * (1 - own)
                law[place + 1] = law.get(place + 1, 0.0) + p * w * own
        first, second = laws if at["change"] == "removed" else laws[::-1]
        total += chance * _integrated(first, second, 1.0, epsilon)
    return total


ORACLES = {"flame": _flame, "checkin": _checkin, "participation": _participation}
PLAYED = {  # rounds that tell the story's own case from the claim
    "flame": (1_000_000, "largest opposite mixed sampled"),
    "checkin": (1_000_000, "clients some ignores large"),
    "participation": (6_000_000, "inner equal hidden removed"),
}


def _record(page: Page, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.text_content(f"#dossier-{name} script") or "")
    return found


@pytest.mark.parametrize("name", ORACLES)
def test_every_combination_has_the_verdict_of_the_oracle(page: Page, name: str) -> None:
    record = _record(page, name)
    verdicts = set()
    for key, case in record["cases"].items():
        at = dict(zip(record["switches"], key.split(), strict=True))
        exact = ORACLES[name](at, case["epsilon"])
        assert case["exact"] == pytest.approx(exact, rel=1e-5, abs=1e-12)
        wanted = "Contradicted" if exact > case["claimed"] * (1 + 1e-6) else "Not contradicted"
        assert page.evaluate(TURN, [name, at]) == wanted, key
        verdicts.add(wanted)
        low, high = (float(case["told"][i]) for i in (1, 2))
        assert low >= case["claimed"], "a claim is rounded up"
        assert (high <= case["exact"]) if case["contradicted"] else (high >= case["exact"])
    assert verdicts == {"Contradicted", "Not contradicted"}


@pytest.mark.parametrize("name", ORACLES)
def test_the_counted_interval_covers_the_exact_value_in_every_combination(page: Page, name: str) -> None:
    for seed, (key, case) in enumerate(_record(page, name)["cases"].items()):
        found = page.evaluate(f"flamelibDossiers.trial('{name}', '{key}', 20000, {seed})")
        assert found["low"] <= case["exact"] <= found["high"], key


@pytest.mark.parametrize("name", ORACLES)
def test_the_attack_alone_contradicts_the_claim(page: Page, name: str) -> None:
    rounds, key = PLAYED[name]
    case = _record(page, name)["cases"][key]
    found = page.evaluate(f"flamelibDossiers.trial('{name}', '{key}', {rounds}, 1)")
    assert case["claimed"] < found["low"] <= case["exact"] <= found["high"]


@pytest.mark.parametrize(("count", "trials"), [(0, 50), (3, 1000), (500, 1000), (1000, 1000), (12, 5_000_000)])
def test_the_interval_of_a_share_is_no_narrower_than_the_exact_one(page: Page, count: int, trials: int) -> None:
    found = page.evaluate(f"flamelibDossiers.share({count}, {trials}, 0.0125)")
    exact = binomtest(count, trials).proportion_ci(0.975)
    assert found["low"] <= exact.low + 1e-12
    assert found["high"] >= exact.high - 1e-12
    assert found["high"] - found["low"] < 1.6 * (exact.high - exact.low)


def test_it_is_turned_and_played_by_keyboard_and_says_what_happened(page: Page) -> None:
    page.reload()
    settle(page)
    page.focus("#dossier-flame input[value=largest]")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#dossier-flame .fl-dossier-verdict").startswith("Not contradicted at ε = ")
    page.keyboard.press("ArrowUp")
    assert "The contradiction vanishes with “drawn by a coin" in page.inner_text("#dossier-flame .fl-dossier-verdict")
    # What is drawn afterwards goes on from the seed.
    page.evaluate("flamelibDossiers.trial('flame', 'largest opposite mixed sampled', 1, 1)")
    page.focus("#dossier-flame button >> nth=0")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#dossier-flame button').disabled === false")
    told = page.inner_text("#dossier-flame .fl-dossier-counted")
    assert "in 1,000,000 rounds each" in told
    assert "counting alone contradicts the claim" in told
    assert "counted from" in (page.get_attribute("#dossier-flame svg", "aria-label") or "")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "Nothing has been played" in page.inner_text("#dossier-flame .fl-dossier-counted")
