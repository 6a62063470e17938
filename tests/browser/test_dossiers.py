"""The switches of the dossiers: verdicts as an oracle finds them, attacks whose intervals cover the truth."""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, Page
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, binomtest

from .conftest import settle, watched

pytestmark = pytest.mark.browser
Pair = list[tuple[float, float]]
At = Mapping[str, str]
Answer = tuple[float, float, float]  # epsilon, claimed, exact
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


def _blanket_delta(n: int, epsilon0: float, epsilon: float) -> float:
    """Blanket divergence of binary response by listing how many messages are blind and how many of them are ones."""
    blind, kept = 2 / (math.exp(epsilon0) + 1), math.exp(epsilon0) / (math.exp(epsilon0) + 1)
    one, zero = (2 * (a - math.exp(epsilon) * (1 - a)) for a in (kept, 1 - kept))
    total = 0.0
    for m in range(1, n + 1):
        ones = np.arange(m + 1)
        gain = np.maximum(ones * one + (m - ones) * zero, 0.0)
        total += float(binom.pmf(m, n, blind)) * float(binom.pmf(ones, m, 0.5) @ gain)
    return total / (n * blind)


def _flame() -> Callable[[At], Answer]:
    n, epsilon0, rate, delta = 333, 0.5, 0.02, 1.5910705829437206e-08
    plain = brentq(lambda e: math.log(_blanket_delta(n, epsilon0, e) / (delta / rate)), 0.05, 0.2, xtol=1e-10)
    true = math.exp(epsilon0) / (1 + math.exp(epsilon0))

    def answer(at: At) -> Answer:
        report = rate if at["choice"] == "drawn" else 1.0
        bits = [report * bit + (1 - report) / 2 for bit in (true, 0.5 if at["other"] == "nothing" else 1 - true)]
        others = _bits(n - 1, 0.5) if at["order"] == "mixed" else [1.0]
        pairs = list(zip(*(_and_one(others, bit) for bit in bits), strict=True))
        epsilon = plain if at["claim"] == "plain" else math.log(1 + rate * (math.exp(plain) - 1))
        return epsilon, delta / rate if at["claim"] == "plain" else delta, _listed(pairs, epsilon)

    return answer


def _checkin() -> Callable[[At], Answer]:
    n, rate, lost, noise, true = 10, 0.8, 0.5, 0.7, math.exp(4) / (1 + math.exp(4))

    def delta(kind: str, chance: float, epsilon: float) -> float:
        total = 0.0
        for k in range(1, n + 1):
            there = k / n
            if kind == "shuffled":
                without = _and_one(_bits(k - 1, 1 - true), 1 - true)
                own = _and_one(_bits(k - 1, 1 - true), true)
                lost_here = _listed(
                    [(there * a + (1 - there) * b, b) for a, b in zip(own, without, strict=True)], epsilon
                )
            else:
                width = noise * math.sqrt(k if kind == "clients" else n * rate)
                lost_here = _integrated({0.0: 1 - there, 2.0: there}, {0.0: 1.0}, width, epsilon)
            total += math.comb(n, k) * chance**k * (1 - chance) ** (n - k) * lost_here
        return total

    def answer(at: At) -> Answer:
        epsilon = 3.0 if at["epsilon"] == "large" else 0.5
        counted = rate * (1 - lost) if at["account"] == "counts" else rate
        sent = rate * (1 - lost) if at["dropouts"] == "some" else rate
        return epsilon, delta(at["noise"], counted, epsilon), delta(at["noise"], sent, epsilon)

    return answer


def _participation() -> Callable[[At], Answer]:
    p = q = 0.1
    others, epsilon = 4, 0.1
    drawn = _bits(others, q)
    a = math.expm1(epsilon) / (p * q)
    near, far = 1 + p * a, (1 - p) * a

    def term(centres: Mapping[float, float]) -> float:
        """The divergence before sampling, in the frame that moves with the other gradients."""

        def excess(x: float) -> float:
            return max(_bell(x) - near * _bell(x + 1) - far * sum(w * _bell(x + c) for c, w in centres.items()), 0)

        return p * q * quad(excess, -10, 14, points=list(range(-9, 14)), limit=500)[0]

    outer = sum(w * term({j + 1.0: 1.0}) for j, w in enumerate(drawn))
    inner = term({j + 1.0: w for j, w in enumerate(drawn)})

    def answer(at: At) -> Answer:
        told = [{j: 1.0} for j in range(others + 1)]
        groups = list(zip(drawn, told, strict=True)) if at["count"] == "told" else [(1.0, dict(enumerate(drawn)))]
        total = 0.0
        for chance, counts in groups:
            laws: list[dict[float, float]] = [{0.0: 1 - p}, {0.0: 1 - p}]
            for own, law in zip((q, 0.0), laws, strict=True):
                for j, w in counts.items():
                    place = float(j) if at["others"] == "equal" else 0.0
                    law[place] = law.get(place, 0.0) + p * w * (1 - own)
                    law[place + 1] = law.get(place + 1, 0.0) + p * w * own
            first, second = laws if at["change"] == "removed" else laws[::-1]
            total += chance * _integrated(first, second, 1.0, epsilon)
        return epsilon, outer if at["reading"] == "outer" else inner, total

    return answer


ORACLES = {"flame": _flame, "checkin": _checkin, "participation": _participation}
PLAYED = {  # rounds that tell the story's own case from the claim
    "flame": (200_000, "largest opposite mixed sampled"),
    "checkin": (200_000, "clients some ignores large"),
    "participation": (6_000_000, "inner equal hidden removed"),
}


def _record(page: Page, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(page.text_content(f"#dossier-{name} script") or "")
    return found


@pytest.mark.parametrize("name", ORACLES)
def test_every_combination_has_the_verdict_of_the_oracle(page: Page, name: str) -> None:
    record, oracle = _record(page, name), ORACLES[name]()
    verdicts = set()
    for key, case in record["cases"].items():
        at = dict(zip(record["switches"], key.split(), strict=True))
        epsilon, claimed, exact = oracle(at)
        assert case["epsilon"] == pytest.approx(epsilon, rel=1e-6)
        assert case["claimed"] == pytest.approx(claimed, rel=1e-5)
        assert case["exact"] == pytest.approx(exact, rel=1e-5, abs=1e-12)
        wanted = "Contradicted" if exact > claimed * (1 + 1e-6) else "Not contradicted"
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
    page.focus("#dossier-flame button >> nth=0")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#dossier-flame button').disabled === false")
    told = page.inner_text("#dossier-flame .fl-dossier-counted")
    assert "in 200,000 rounds each" in told
    assert "counting alone contradicts the claim" in told
    assert "counted from" in (page.get_attribute("#dossier-flame svg", "aria-label") or "")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert "Nothing has been played" in page.inner_text("#dossier-flame .fl-dossier-counted")
