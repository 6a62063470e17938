"""The book in one file: all of it, and the same bytes for the same book."""

import zipfile
from pathlib import Path

import pytest

from flamebook.site.book import release
from flamelib.core.vocabulary import DomainError


@pytest.fixture
def book(tmp_path: Path) -> Path:
    html = tmp_path / "html"
    for name, text in {"fingerprint.txt": "a", "index.html": "home", "book/a.html": "page"}.items():
        (html / name).parent.mkdir(parents=True, exist_ok=True)
        (html / name).write_text(text, encoding="utf-8")
    return html


def test_everything_is_in_it_under_one_folder(book: Path, tmp_path: Path) -> None:
    made = release.pack(book, tmp_path / "new" / "place")
    with zipfile.ZipFile(made) as packed:
        assert packed.testzip() is None
        top = made.stem
        assert packed.namelist() == [f"{top}/{name}" for name in ("book/a.html", "fingerprint.txt", "index.html")]
        assert packed.read(f"{top}/index.html") == b"home"
    assert [path.name for path in made.parent.iterdir()] == [made.name]


def test_what_is_no_book_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DomainError, match="html"):
        release.pack(tmp_path, tmp_path)
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
