"""The built book as one PDF: ``make pdf`` prints every page with a browser, in the order of the contents.

The page that describes the software in the form of a journal is printed once more, as a file of its own.

Nothing but the folder of the built book is read, and no network is needed.  Pages are numbered through; parts,
chapters and sections are bookmarks; a link to another page of the book leads there within the PDF, and one to a
file that is not printed is only text.  Equal books give equal bytes in the same browser.
"""

import io
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, Error, Page, ViewportSize, sync_playwright
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NullObject

from flamebook.runs.files import whole
from flamebook.runs.schedule import say
from flamebook.site.book.release import main, place
from flamelib.core.vocabulary import DomainError

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
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
# A4 less its margins, in the pixels of a screen.
TEXT = ViewportSize(width=658, height=980)
PATIENCE_MS = 300_000
CONTENTS = """() => {
  const listed = (caption) => [...caption.nextElementSibling.querySelectorAll("a")].map(
    (link) => [caption.textContent.trim(), link.textContent.trim(), link.href.split("#")[0]]);
  const home = [["", document.querySelector("h1").textContent.replace(/#$/, "").trim(), location.href.split("#")[0]]];
  return home.concat([...document.querySelectorAll("nav.bd-links p.caption")].flatMap(listed));
}"""
# A PDF knows the places that its own page links to, so every place that another page may mean is linked to, unseen.
SECTIONS = """() => {
  const unseen = document.body.appendChild(document.createElement("div"));
  unseen.hidden = true;
  for (const place of document.querySelectorAll("article [id]:not(svg *, mjx-container *)")) {
    unseen.appendChild(document.createElement("a")).href = "#" + place.id;
  }
  const named = (section) => [section.id, section.querySelector("h2").textContent.replace(/#$/, "").trim()];
  return [...document.querySelectorAll("article section[id]:has(> h2)")].map(named);
}"""
# Formulas wider than the sheet are set smaller.
FIT = """() => {
  for (const formula of document.querySelectorAll("mjx-container[display=true]")) {
    const share = formula.clientWidth / formula.scrollWidth;
    if (share < 1) formula.firstElementChild.style.fontSize = `${Math.floor(99 * share)}%`;
  }
}"""
# Figures are otherwise fetched when they come into sight.
FETCH = """() => Promise.all([...document.querySelectorAll("article img")].map((image) => {
  image.loading = "eager";
  return image.decode().catch(() => {});
}))"""
SHEET = """
@page {{ size: A4; @top-center {{ content: {title} }} }}
@page :first {{ @top-center {{ content: none }} }}
html {{ counter-reset: page {before}; }}
"""

# Two sheets hold the article.
SMALL = """
@page { margin: 1.6cm 1.8cm; }
article { font-size: 0.8rem; line-height: 1.35; }
article :is(h1) { font-size: 1.4rem; margin: 0 0 0.5rem; }
article :is(h2) { font-size: 1rem; margin: 0.6rem 0 0.2rem; }
article :is(p, pre, table, ul) { margin-bottom: 0.4rem; font-size: inherit; }
"""
ARTICLE = "book/article.html"

#: A page's address and a name on it; no name for the top of the page.
Target = tuple[str, str]
#: A sheet of the PDF by its number, and how high on it.
Place = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Chapter:
    """A page of the book: its part and title, where it stands, and what was printed of it."""

    part: str
    title: str
    address: str
    sections: tuple[tuple[str, str], ...]
    content: bytes


def write(html: Path, folder: Path) -> Path:
    """Print a built book into ``folder/flamelib-book-VERSION.pdf``, as :func:`~flamebook.site.book.release.pack` does.

    Beside it stands the article, ``flamelib-article-VERSION.pdf``, where the book has one.

    Raises
    ------
    DomainError
        If ``html`` holds no built book, or there is no browser to print it with.
    """
    path = place(html, folder, "pdf")
    with browser() as opened:
        chapters = list(printed(opened, html.resolve()))
        alone = list(article(opened, html.resolve()))
    for file, some in ((path, chapters), (path.with_stem(path.stem.replace("book", "article")), alone)):
        if some:
            with whole(file) as part:
                joined(some).write(part)
    return path


@contextmanager
def browser() -> Iterator[Browser]:
    """A headless Chromium of this machine, or the one that Playwright brought.

    Raises
    ------
    DomainError
        If there is neither.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=found, args=FLAGS)
        except Error as fault:
            reason = fault.message.strip().partition("\n")[0]
            raise DomainError(
                f"browser must be one of {', '.join(BROWSERS)}; `make browser` installs one ({reason})"
            ) from None
        try:
            yield launched
        finally:
            launched.close()


def article(opened: Browser, html: Path) -> Iterator[Chapter]:
    """The article alone, with page numbers of its own and in smaller letters; nothing where the book has none."""
    if (html / ARTICLE).is_file():
        with _sheet(opened) as page:
            yield _chapter(page, "", "flamelib", (html / ARTICLE).as_uri(), 0, SMALL)


@contextmanager
def _sheet(opened: Browser) -> Iterator[Page]:
    context = opened.new_context(color_scheme="light", reduced_motion="reduce", offline=True, viewport=TEXT)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.emulate_media(media="print")
    yield page
    context.close()


def printed(opened: Browser, html: Path) -> Iterator[Chapter]:
    """Every page of the book, printed in the order of the contents, in light colours and without a network."""
    with _sheet(opened) as page:
        yield from _chapters(page, html)


def _chapters(page: Page, html: Path) -> Iterator[Chapter]:
    page.goto((html / "index.html").as_uri())
    page.wait_for_selector("nav.bd-links", state="attached")
    before = 0
    for part, title, address in page.evaluate(CONTENTS):
        chapter = _chapter(page, part, title, address, before)
        before += len(PdfReader(io.BytesIO(chapter.content)).pages)
        say(f"printed  {title}, to page {before}")
        yield chapter


def _chapter(page: Page, part: str, title: str, address: str, before: int, style: str = "") -> Chapter:
    page.goto(address)
    page.evaluate("() => window.MathJax?.startup?.promise")
    page.evaluate(FETCH)
    page.evaluate(FIT)
    sections = tuple((name, words) for name, words in page.evaluate(SECTIONS))
    page.add_style_tag(content=SHEET.format(title=json.dumps(title, ensure_ascii=False), before=before) + style)
    return Chapter(part, title, address, sections, page.pdf(prefer_css_page_size=True, print_background=True))


def joined(chapters: Sequence[Chapter]) -> PdfWriter:
    """One PDF of all chapters, with bookmarks, its links led to the sheets that they mean."""
    book = PdfWriter()
    places: dict[Target, Place] = {}
    owners: list[str] = []
    for chapter in chapters:
        places |= _add(book, chapter)
        owners += [chapter.address] * (len(book.pages) - len(owners))
    part, above = "", None
    for chapter in chapters:
        first, _ = places[chapter.address, ""]
        if chapter.part != part:
            part, above = chapter.part, book.add_outline_item(title=chapter.part, page_number=first)
        entry = book.add_outline_item(title=chapter.title, page_number=first, parent=above)
        for name, words in chapter.sections:
            book.add_outline_item(title=words, page_number=places[chapter.address, name][0], parent=entry)
    for sheet, owner in zip(book.pages, owners, strict=True):
        _lead(sheet, owner, places, book)
    book.metadata = {"/Title": chapters[0].title}
    book.page_mode = "/UseOutlines"
    return book


def _add(book: PdfWriter, chapter: Chapter) -> dict[Target, Place]:
    """Append the sheets of a chapter; where each of its names came to stand."""
    reader = PdfReader(io.BytesIO(chapter.content))
    first = len(book.pages)
    for sheet in reader.pages:
        book.add_page(sheet)
    places: dict[Target, Place] = {(chapter.address, ""): (first, reader.pages[0].mediabox.top)}
    for name, aim in reader.named_destinations.items():
        number = reader.get_destination_page_number(aim) or 0
        places[chapter.address, unquote(name.lstrip("/"))] = (first + number, float(aim.top or 0))
    return places


def _lead(sheet: PageObject, owner: str, places: dict[Target, Place], book: PdfWriter) -> None:
    """Aim the links of a sheet at places of the PDF; those to files beside the book are dropped."""
    kept = ArrayObject()
    for link in sheet.annotations or ():
        entry = cast(DictionaryObject, link.get_object())
        target = _target(entry, owner)
        place = target and (places.get(target) or places.get((target[0], "")))
        if target:
            entry.pop("/A", None)  # what is dropped leaves no address of this machine behind
        if place:
            number, top = place
            aim = [
                book.pages[number].indirect_reference,
                NameObject("/XYZ"),
                NullObject(),
                FloatObject(top),
                NullObject(),
            ]
            entry[NameObject("/Dest")] = ArrayObject(aim)
        if place or not target:
            kept.append(link)
    sheet.annotations = kept


def _target(link: DictionaryObject, owner: str) -> Target | None:
    """What a link means within the book; None for an address outside."""
    if "/Dest" in link:
        return owner, unquote(str(link["/Dest"]).lstrip("/"))
    found = urlsplit(str(cast(DictionaryObject, link["/A"])["/URI"]))
    return (f"file://{found.path}", unquote(found.fragment)) if found.scheme == "file" else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], write))
