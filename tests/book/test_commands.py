"""Every command that a page shows is run, and answers."""

import json
import re
import shlex

import pytest
from terminal import at_a_terminal

from flamebook.places import ROOT
from flamelib import cli

SHOWN = re.compile(
    r"^(?:\$ )?(?:\.venv/bin/)?flamelib ((?:account|bounds|calibrate|evaluate|compare) [^|\\\n]*)$", re.M
)


def _texts() -> dict[str, str]:
    pages = {
        path.name: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "book").glob("*.md")]
    }
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        pages[path.name] = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return pages


COMMANDS = sorted({found for text in _texts().values() for found in SHOWN.findall(text) if "$" not in found})


@pytest.mark.parametrize("words", COMMANDS, ids=str)
def test_a_command_of_a_page_answers(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(shlex.split(words)) == 0
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", ["README.md", "rerun.md"])
def test_the_answer_that_is_shown_is_the_one_that_a_person_gets(page: str) -> None:
    command, told = re.search(r"flamelib (account .*)\n((?:.+\n)+)```", _texts()[page]).groups()  # type: ignore[union-attr]
    assert at_a_terminal(*shlex.split(command)).stdout == told
