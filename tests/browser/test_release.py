"""The book handed on as one file: unpacked anywhere, it opens from disk without a network."""

import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from flamebook.site.book import release

from .conftest import DESKTOP, FACTS, Visit, settle

pytestmark = pytest.mark.browser

OPENED = ("book/index.html", "book/cloak.html", "notebooks/audits.html", "book/ledger.html", "book/sliders.html")


def test_the_packed_book_opens_from_disk_without_a_network(book: Path, chromium: Browser, tmp_path: Path) -> None:
    with zipfile.ZipFile(release.pack(book, tmp_path)) as packed:
        packed.extractall(tmp_path / "unpacked")
    [home] = (tmp_path / "unpacked").iterdir()
    context = chromium.new_context(viewport=DESKTOP, offline=True)
    for path in OPENED:
        page = context.new_page()
        found = Visit((home / path).as_uri())
        found.listen(page)
        page.goto(found.address)
        settle(page)
        facts = page.evaluate(FACTS)
        assert (found.complaints, facts["unset"], facts["faults"]) == ([], [], 0), path
        assert facts["heading"], path
        assert [url for url in found.requests if not url.startswith(("file:", "data:", "blob:"))] == []
        page.close()
    context.close()
