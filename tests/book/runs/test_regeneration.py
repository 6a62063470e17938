"""Two makings of one book: receipts may differ, nothing else."""

from pathlib import Path

import pytest

from flamebook.runs.editions import differences, main

PAGES = {
    "fingerprint.txt": "a",
    "_static/run_times.js": "3 s",
    "index.html": "home",
    "files/audit/receipt.json": "{}",
    "files/audit/results.json": "{}",
}


def book(folder: Path, **changed: str) -> Path:
    for name, text in (PAGES | {name.replace("__", "."): text for name, text in changed.items()}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_what_tells_of_one_making_may_differ_and_any_other_byte_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = book(tmp_path / "first"), book(tmp_path / "second", fingerprint__txt="b")
    (second / "_static/run_times.js").write_text("4 s", encoding="utf-8")
    (second / "files/audit/receipt.json").write_text('{"seconds": 4}', encoding="utf-8")
    assert main([str(first), str(second)]) == 0
    assert capsys.readouterr().out == "0 files differ between the two makings\n"
    book(second, index__html="hame", more__html="new")
    (second / "files/audit/results.json").unlink()
    assert differences(first, second) == ["files/audit/results.json", "index.html", "more.html"]
    assert main([str(first), str(second)]) == 1
    assert main([str(first), str(tmp_path / "nothing")]) == 2
