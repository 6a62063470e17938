"""The game of "Why does a crowd protect you?": what it says is exact, and its best player is as good as that."""

import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from playwright.sync_api import BrowserContext, Page
from scipy.stats import binomtest

from flamebook.site.written import crowd

from .conftest import settle, watched

pytestmark = pytest.mark.browser
SIZES = (1, 10, 100, 10_000)
BAGS = 200_000


@pytest.fixture(scope="module")
def page(contexts: dict[str, BrowserContext], origins: dict[str, str]) -> Iterator[Page]:
    """The page from disk, where less is allowed; it must ask for nothing elsewhere and complain of nothing."""
    with watched(contexts["disk"], f"{origins['disk']}/book/crowd.html") as opened:
        yield opened


def enumerated(n: int, epsilon: float) -> float:
    """Delta of the bag by fractions: all counts, others all no, coins of 3/4."""
    yes, no = [Fraction(0)] * (n + 1), [Fraction(0)] * (n + 1)
    for k in range(n):
        chance = math.comb(n - 1, k) * Fraction(1, 4) ** k * Fraction(3, 4) ** (n - 1 - k)
        yes[k + 1] += chance * Fraction(3, 4)
        yes[k] += chance * Fraction(1, 4)
        no[k + 1] += chance * Fraction(1, 4)
        no[k] += chance * Fraction(3, 4)
    odds = Fraction(math.exp(epsilon))
    one, other = (sum((max(Fraction(0), a - odds * b) for a, b in zip(*laws, strict=True)), Fraction(0))
                  for laws in ((yes, no), (no, yes)))  # fmt: skip
    return float(max(one, other))


@pytest.mark.parametrize("n", [1, 10, 100])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2, 1.0])
def test_what_the_page_computes_is_the_enumerated_delta(page: Page, n: int, epsilon: float) -> None:
    assert page.evaluate(f"flamelibCrowd.delta({n}, {epsilon})") == pytest.approx(
        enumerated(n, epsilon), rel=1e-10, abs=1e-15
    )


@pytest.mark.parametrize("n", SIZES)
def test_the_interval_of_the_best_player_covers_the_exact_rate(page: Page, n: int) -> None:
    right = page.evaluate(f"(flamelibCrowd.seed({n}), flamelibCrowd.play({n}, {BAGS}))")
    low, high = binomtest(right, BAGS).proportion_ci(0.9999)
    best = page.evaluate(f"flamelibCrowd.best({n})")
    assert low <= best <= high
    assert best == pytest.approx((1 + crowd.difference(n)) / 2, rel=1e-12), "as the table of the page says"
    # A best player who can do nothing, and one to whom Ana speaks openly, lie outside where the crowd is small.
    assert n > 100 or low > 0.5
    assert high < 1


def test_it_is_played_by_keyboard_and_says_what_happened(page: Page) -> None:
    page.focus("#crowd-yes")
    page.keyboard.press("Enter")
    assert "Ana's true answer was" in page.inner_text("#crowd-told")
    page.focus("input[name=crowd-size][value='10']")
    page.keyboard.press("ArrowDown")
    assert "of 100 messages are orange" in page.inner_text("#crowd-count")
    page.focus("#crowd-best")
    page.keyboard.press("Enter")
    row = page.locator("#crowd-score tbody tr").nth(2).inner_text()
    assert "of 1,000" in row
    page.focus("#crowd-epsilon")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#crowd-epsilon", "aria-valuetext") == "epsilon 0.21"


def test_the_picture_on_the_front_page_says_what_the_book_says(
    contexts: dict[str, BrowserContext], origins: dict[str, str]
) -> None:
    page = contexts["http"].new_page()
    page.goto(f"{origins['http']}/book/index.html")
    settle(page)
    for place, n in ((0, 1), (4, 10), (8, 100), (24, 1_000_000)):
        page.fill("#crowd-people", str(place))
        rate = math.ceil(1e4 * (1 + crowd.difference(n)) / 2 - 1e-9) / 100
        assert page.inner_text("#crowd-people-told").startswith(f"{n:,} pe")
        assert f"is right in {rate:g} % of all cases" in page.inner_text("#crowd-people-told")
    page.close()
