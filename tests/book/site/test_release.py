"""The book in one file: all of it, and the same bytes for the same book."""

from pathlib import Path

import pytest

from flamebook.site.book import release


@pytest.fixture
def book(tmp_path: Path) -> Path:
    html = tmp_path / "html"
    for name, text in {"fingerprint.txt": "a", "index.html": "home", "book/a.html": "page"}.items():
        (html / name).parent.mkdir(parents=True, exist_ok=True)
        (html / name).write_text(text, encoding="utf-8")
    return html


def test_what_is_no_book_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert release.main([]) == 2


def test_the_command_packs_the_book_of_the_folder(
    book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "_build").mkdir()
    book.rename(tmp_path / "_build" / "html")
    monkeypatch.chdir(tmp_path)
    assert release.main([]) == 0
    assert Path(capsys.readouterr().out.strip()).is_file()
