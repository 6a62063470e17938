"""The book on paper: all of it in order, with bookmarks and numbers, and nothing of the machine it was printed on."""

import contextlib
import io
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from pypdf import PdfReader
from pypdf.generic import Destination

from flamebook.site.book import printed, release
from flamelib.core.vocabulary import DomainError

pytestmark = pytest.mark.browser

NAV = """<nav class="bd-links"><p class="caption">First part</p><ul><li><a href="a.html">1. Tall</a></li></ul>
<p class="caption">Second part</p><ul><li><a href="../notebooks/b.html">2. Far</a></li></ul></nav>"""
STYLE = "<style>@page { margin: 2cm; @bottom-center { content: 'sheet ' counter(page) } } nav { display: none }</style>"
PAGES = {
    "index.html": '<meta http-equiv="refresh" content="0;url=book/home.html">',
    "book/home.html": f"""<h1>The book</h1><article><a href="a.html#deep%20down">deep</a>
        <a href="https://example.org/x">outside</a> <a href="../files/data.csv">data</a></article>{NAV}""",
    "book/a.html": """<h1>Tall</h1><article><section id="end"><h2><span>1.1. </span>A section<a>#</a></h2>
        <a href="#deep%20down">down</a>
        <p style="break-before: page" id="deep down">low</p></section></article>""",
    "notebooks/b.html": """<h1>Far</h1><article><a href="../book/a.html#end">section</a>
        <a href="../book/gone.html">gone</a> <a href="../book/home.html">home</a></article>""",
    "fingerprint.txt": "a",
}


@pytest.fixture
def little(tmp_path: Path) -> Path:
    for name, text in PAGES.items():
        (tmp_path / "html" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "html" / name).write_text(f"<!DOCTYPE html><meta charset=utf-8>{STYLE}{text}", encoding="utf-8")
    return tmp_path / "html"


@pytest.fixture
def made(little: Path, chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(printed, "browser", lambda: contextlib.nullcontext(chromium))
    return printed.write(little, tmp_path / "new" / "place")


def outline(reader: PdfReader, entries: list[Destination | list[Destination]]) -> list[object]:
    """Bookmarks with their sheets, nested as they are."""
    return [
        outline(reader, one) if isinstance(one, list) else (one.title, reader.get_destination_page_number(one))
        for one in entries
    ]


def links(reader: PdfReader) -> list[tuple[int, object]]:
    """Every link: the sheet it stands on, and the sheet or address that it leads to."""
    sheets = [sheet.indirect_reference.idnum for sheet in reader.pages]
    found = [(number, one.get_object()) for number, sheet in enumerate(reader.pages) for one in sheet["/Annots"]]
    return [
        (number, sheets.index(one.raw_get("/Dest")[0].idnum) if "/Dest" in one else one["/A"]["/URI"])
        for number, one in found
    ]


def test_pages_stand_in_order_and_links_lead_within(made: Path) -> None:
    reader = PdfReader(made)
    words = ("outside", "down", "low", "gone")
    for number, (word, sheet) in enumerate(zip(words, reader.pages, strict=True), 1):
        assert word in sheet.extract_text()
        assert f"sheet {number}" in sheet.extract_text()
    assert outline(reader, reader.outline) == [
        ("The book", 0),
        ("First part", 1), [("1. Tall", 1), [("1.1. A section", 1)]],
        ("Second part", 3), [("2. Far", 3)],
    ]  # fmt: skip
    assert links(reader) == [(0, 2), (0, "https://example.org/x"), (1, 2), (3, 1), (3, 0)]
    assert reader.metadata == {"/Title": "The book"}
    assert [path.name for path in made.parent.iterdir()] == [made.name]


def test_the_article_is_printed_once_more_by_itself(little: Path, chromium: Browser) -> None:
    assert list(printed.article(chromium, little)) == []
    text = f"<!DOCTYPE html><meta charset=utf-8>{STYLE}<h1>Alone</h1><article><p>words</p></article>"
    (little / printed.ARTICLE).write_text(text, encoding="utf-8")
    [sheet] = PdfReader(io.BytesIO(next(printed.article(chromium, little)).content)).pages
    assert "words" in sheet.extract_text()
    assert "sheet 1" in sheet.extract_text()


def test_the_article_of_the_book_has_two_pages(book: Path, chromium: Browser) -> None:
    [chapter] = printed.article(chromium, book)
    sheets = [sheet.extract_text() for sheet in PdfReader(io.BytesIO(chapter.content)).pages]
    assert len(sheets) == 2
    for heading in ("Summary", "Statement of need", "State of the field", "Availability"):
        # Letters may be joined in print.
        assert any(heading in unicodedata.normalize("NFKC", text) for text in sheets), heading


def test_nothing_of_this_machine_is_in_it_and_it_can_be_made_again(made: Path, little: Path, tmp_path: Path) -> None:
    first = made.read_bytes()
    reader = PdfReader(made)
    texts = "".join(repr(reader.get_object(number)) for number in reader.xref[0])
    assert "https://example.org/x" in texts
    assert "file:" not in texts
    assert str(little.parent) not in texts
    assert printed.write(little, tmp_path / "again").read_bytes() == first


def test_what_is_no_book_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DomainError, match="html"):
        printed.write(tmp_path, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert release.main([], printed.write) == 2
    assert list(tmp_path.iterdir()) == []


def test_without_a_browser_it_says_so(little: Path, tmp_path: Path) -> None:
    (tmp_path / "_build").mkdir()
    little.rename(tmp_path / "_build" / "html")
    none = os.environ | {"PATH": "", "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
    command = [sys.executable, "-m", "flamebook.site.book.printed"]
    done = subprocess.run(command, cwd=tmp_path, env=none, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "`make browser`" in done.stderr
    assert [path.name for path in (tmp_path / "_build").iterdir()] == ["html"]
