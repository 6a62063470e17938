"""The built book in a real browser: where it is, how it is served, what a visit of a page brings back."""

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Request, ViewportSize, expect, sync_playwright

BOOK = Path(os.environ.get("FLAMELIB_HTML") or Path(__file__).resolve().parents[2] / "_build" / "html").resolve()
DESKTOP = {"width": 1280, "height": 1600}
PHONE = {"width": 390, "height": 1600}
ORIGINS = ("http", "disk")
PATIENCE_MS = 240_000  # a machine may be busy; a test that hangs ends itself a little later
# Without these a headless Chromium calls home at every start.
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

FACTS = """() => {
  const seen = (element) => getComputedStyle(element).display !== "none";
  const bare = document.createTreeWalker(document.querySelector("article") ?? document.body, NodeFilter.SHOW_TEXT);
  const raw = [];
  while (bare.nextNode()) {
    const text = bare.currentNode;
    if (text.parentElement.closest("pre, code, script, style, mjx-container, .math, svg")) continue;
    if (/\\$[^$\\s][^$]*\\$|\\\\\\(|\\\\\\[|\\\\begin\\{/.test(text.data)) raw.push(text.data.trim());
  }
  const maths = [...document.querySelectorAll("span.math, div.math")];
  const words = (id) => document.getElementById(id)?.textContent.trim();
  const named = (e) =>
    ["alt", "aria-label"].some((name) => e.getAttribute(name)?.trim()) ||
    e.getAttribute("aria-labelledby")?.split(" ").some(words) ||
    e.closest("[aria-hidden=true]");
  /* A word of a title that stands on more than one line; where it has a hyphen it may. */
  const title = document.createTreeWalker(document.querySelector("article h1") ?? new Text(), NodeFilter.SHOW_TEXT);
  const broken = [];
  while (title.nextNode()) {
    for (const { 0: word, index } of title.currentNode.data.matchAll(/[^\\s-]+/g)) {
      const range = document.createRange();
      range.setStart(title.currentNode, index);
      range.setEnd(title.currentNode, index + word.length);
      if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word);
    }
  }
  return {
    theme: document.documentElement.dataset.theme,
    title: document.title,
    heading: document.querySelector("h1")?.textContent ?? "",
    broken,
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    raw,
    unset: maths.filter((e) => !e.querySelector("mjx-container")).map((e) => e.textContent.slice(0, 80)),
    faults: document.querySelectorAll("mjx-merror, [data-mjx-error]").length,
    maths: maths.length,
    figures: [...document.querySelectorAll(".fl-fig")].map((figure) => ({
      light: [...figure.querySelectorAll(".only-light")].map(seen),
      dark: [...figure.querySelectorAll(".only-dark")].map(seen),
    })),
    unnamed: [...document.querySelectorAll("img, [role=img]")].filter((e) => !named(e)).map((e) => e.outerHTML),
  };
}"""

# Whatever is wider than its place, unless its edge says so and the keyboard reaches it.  Edges are drawn in a frame
# after the one that a width changes in, which a busy machine shows late.
CUT = """async () => {
  const wide = ["mjx-container", ".pst-scrollable-table-container", ".fl-table", ".fl-pan", ".only-light",
    ".only-dark", "article pre", "article div.cell_output", "article div.math", "article figure"];
  // What is spoken of a formula is wider than what is seen, which counts in a line.
  const inline = (e) => e.matches("mjx-container:not([display])");
  const width = (e) => inline(e) ? e.firstElementChild?.getBoundingClientRect().width : e.scrollWidth;
  const scrolls = (e) => e.checkVisibility() && e.clientWidth && width(e) > e.clientWidth + 1;
  const cued = (e) => {
    const frame = e.closest(".fl-frame");
    return frame?.firstElementChild === e && e.tabIndex === 0 && (e.matches("pre") || e.getAttribute("aria-label"))
      && getComputedStyle(frame.querySelector(":scope > .fl-edge-more")).display === "flex"
      && getComputedStyle(e).maskImage.includes("gradient");
  };
  const cut = () => [...document.querySelectorAll(wide)].filter((e) => scrolls(e) && !cued(e));
  const last = performance.now() + 5000;
  while (cut().length && performance.now() < last) await new Promise(requestAnimationFrame);
  return cut()
    .map((e) => `${e.tagName}.${e.className} ${e.closest("[id]")?.id} ${e.textContent.trim().slice(0, 60)}`);
}"""


@dataclass
class Visit:
    """What one page did: everything it asked for, and everything it complained of."""

    address: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def begin(self, address: str) -> None:
        """Forget what was done before, for the same tab goes to another page."""
        self.address = address
        self.requests.clear()
        self.complaints.clear()

    def listen(self, page: Page) -> None:
        """Record requests, failures, script errors and console errors of a page from now on."""
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", self._failed)
        page.on(
            "response", lambda answer: answer.status < 400 or self.complaints.append(f"{answer.status}: {answer.url}")
        )
        page.on("pageerror", lambda fault: self.complaints.append(f"script error: {fault}"))
        page.on("console", lambda told: told.type != "error" or self.complaints.append(f"console: {told.text}"))

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # given up because the page was left
            self.complaints.append(f"failed: {request.url}: {request.failure}")

    def outside(self) -> list[str]:
        """Requests that left the book."""
        home = self.address.split("/", 3)[:3] if self.address.startswith("http") else [BOOK.as_uri()]
        own = ("data:", "blob:", "about:", "/".join(home) + "/")
        return [url for url in self.requests if not url.startswith(own)]


@pytest.fixture(scope="session")
def book() -> Path:
    """The folder of the built book."""
    if not (BOOK / "index.html").is_file():
        pytest.fail(f"there is no built book at {BOOK}: run `make book`, or name another folder in FLAMELIB_HTML")
    return BOOK


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One headless Chromium of this machine, or the one that Playwright brought, for the whole session."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=found, args=FLAGS)
        except Error as fault:
            pytest.fail(f"no browser could be started; `make browser` installs one ({fault.message.splitlines()[0]})")
        expect.set_options(timeout=PATIENCE_MS)
        yield launched
        launched.close()


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """A test that passes says nothing."""


@pytest.fixture(scope="session")
def origins(book: Path) -> Iterator[dict[str, str]]:
    """Address of the book over loopback and from disk."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(book)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield {"http": f"http://127.0.0.1:{server.server_port}", "disk": book.as_uri()}
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def contexts(chromium: Browser) -> Iterator[dict[str, BrowserContext]]:
    """One context for each origin, so that pages share the cache and visits stay quick."""
    opened = {
        origin: chromium.new_context(viewport=DESKTOP, color_scheme="light", reduced_motion="reduce")
        for origin in ORIGINS
    }
    for context in opened.values():
        context.set_default_timeout(PATIENCE_MS)
    yield opened
    for context in opened.values():
        context.close()


@pytest.fixture
def page(contexts: dict[str, BrowserContext]) -> Iterator[Page]:
    """A fresh page over loopback, at desktop width."""
    opened = contexts["http"].new_page()
    yield opened
    opened.close()


@contextmanager
def watched(context: BrowserContext, address: str) -> Iterator[Page]:
    """A page that must ask for nothing elsewhere and complain of nothing until it is closed."""
    page, found = context.new_page(), Visit(address)
    found.listen(page)
    page.goto(address)
    settle(page)
    yield page
    page.close()
    assert found.complaints == []
    assert found.outside() == []


def settle(page: Page) -> None:
    """Wait until the maths is set and the sliders, where there are any, have their answers."""
    page.wait_for_load_state("load")
    page.evaluate("() => window.MathJax?.startup?.promise")
    if page.query_selector(".fl-sliders"):
        page.wait_for_function("() => ['live', 'grid'].includes(document.documentElement.dataset.sliders)")


def resize(page: Page, size: ViewportSize) -> None:
    """Give the page another size and wait until it has drawn itself anew: it is told of the size within a frame."""
    page.set_viewport_size(size)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def switch_theme(page: Page, theme: str) -> None:
    """Press the theme button until the page wears the theme (it goes round automatic, light and dark)."""
    worn = "() => document.documentElement.dataset.theme"
    for _ in range(3):
        if page.evaluate(worn) != theme:
            page.evaluate("() => document.querySelector('.theme-switch-button')?.click()")
