"""What a notebook's text says in numbers is computed, marked as the book's edition, or told of a document.

A page is re-run with other values; a number typed into its text would then be false.  So outside formulas, code,
references and ``@name@`` words a figure of size stands only in a sentence about what a document printed, or inside
``[...]{.edition}``.  By hand: ``python tests/structure/test_sentences.py notebooks/NAME.ipynb`` lists what is left.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SIZES = re.compile(
    r"\d|\b(twice|thrice|halves|half|third|quarter|tenth|fifth|percent|hundreds?|thousands?|millions?|billions?|"
    r"(two|three|four|five|six|seven|eight|nine|ten|many|several|few) times|orders? of magnitude|refuted|is open|"
    r"stays open|remains open)\b",
    re.IGNORECASE,
)
OF_A_DOCUMENT = re.compile(
    r"\b(print(s|ed)?|papers?|documents?|patents?|published|claim(s|ed)?|authors?|released|promis(es|ed)|"
    r"theorems?|lemmas?|propositions?|corollar(y|ies)|algorithms?|equations?|eq\.|appendix|draft)\b",
    re.IGNORECASE,
)
LEFT_OUT = (
    re.compile(r"```.*?```|\$\$.*?\$\$", re.DOTALL),
    re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\{\.edition\}", re.DOTALL),
    re.compile(r"\$[^$]*\$"),
    re.compile(r"\{[a-z:._-]+\}`[^`]*`"),
    re.compile(r"`[^`]*`"),
    re.compile(r"@[a-z][a-z0-9_]*@"),
    re.compile(r"\]\([^)]*\)"),
    # The title of a page names sections and figures of its document.
    re.compile(r"^(\(.*\)=|# .*|:::.*|:[a-z-]+:.*|\| *-.*)$", re.MULTILINE),
    re.compile(r"\bFIG\. \d( to \d)?"),
    re.compile(r"\b(MNIST|EMNIST|SHA-\d+|PrivUnit2|T[12]|PCG64|ChaCha20|US\d+A1|\d{4}[a-z]?\)|(19|20)\d\d)\b"),
)


def texts(notebook: dict[str, Any]) -> Iterator[str]:
    """Texts, captions and alternative texts of a notebook."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            continue
        yield cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "")
        yield from (
            str(word.value.value)
            for call in ast.walk(ast.parse(source))
            if isinstance(call, ast.Call)
            for word in call.keywords
            if word.arg == "alt" and isinstance(word.value, ast.Constant)
        )


def typed(text: str) -> list[str]:
    """Sentences with a size that is neither computed, nor marked, nor a document's."""
    for part in LEFT_OUT:
        text = part.sub(" ", text)
    sentences = re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=[-#|*>])|(?<=\|)", text)
    return [one.strip() for one in sentences if SIZES.search(one) and not OF_A_DOCUMENT.search(one)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_size_is_typed(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert [sentence for text in texts(notebook) for sentence in typed(text)] == []


def test_what_is_typed_is_found() -> None:
    assert typed("It is five times as large.") == ["It is five times as large."]
    assert typed("It is @ratio@ as large, [in the book five times]{.edition}, and $2^3$ says `8`.") == []
    assert typed("The paper prints 0.24.") == []


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = json.loads(Path(name).read_text(encoding="utf-8"))
        print(name, *(f"  {sentence}" for text in texts(page) for sentence in typed(text)), sep="\n")
