"""What a statement says of itself, and what a notebook may hold."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from flamebook.claims import ledger
from flamebook.places import ROOT
from flamebook.runs.notebook import WORDS, declared
from flamelib.answers import load_all
from flamelib.core.vocabulary import VOCABULARY

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_every_statement_is_documented_and_speaks_the_vocabulary() -> None:
    sides = ("upper", "lower", "exact", "value", "mass", "never", "not a bound")
    for key, statement in load_all().items():
        text = statement.function.__doc__ or ""
        assert "Source" in text, f"the docstring of {key} names its source"
        assert ">>>" in text, f"the docstring of {key} has an example that runs"
        assert any(word in text.split("\n\n")[0].lower() for word in sides), f"the first sentence of {key} tells a side"
        assert set(statement.parameters) <= set(VOCABULARY), key


def test_every_statement_of_a_covered_document_is_in_the_ledger() -> None:
    claims = ledger.load()
    items = {claim.item for claim in claims}
    documents = {claim.document for claim in claims}
    assert [key for key in load_all() if key.split(":")[0] in documents and key not in items] == []


def _cells(path: Path, kind: str = "code") -> list[dict[str, Any]]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == kind]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_is_stored_without_outputs(self, path: Path) -> None:
        assert [cell for cell in _cells(path) if cell["outputs"] or cell["execution_count"] is not None] == []

    def test_declares_its_parameters_first(self, path: Path) -> None:
        tagged = [i for i, cell in enumerate(_cells(path)) if "parameters" in cell["metadata"].get("tags", [])]
        assert tagged == [0]
        names = declared(path)
        assert names
        assert [name for name, one in names.items() if not one.about] == [], "every parameter has a help text"

    def test_speaks_the_vocabulary(self, path: Path) -> None:
        numeric = {name for name, one in declared(path).items() if one.element in ("int", "float")}
        assert numeric <= set(WORDS)

    def test_every_figure_has_words_for_those_who_cannot_see_it(self, path: Path) -> None:
        for cell in _cells(path):
            calls = [node for node in ast.walk(ast.parse(cell["source"])) if isinstance(node, ast.Call)]
            for call in (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "figure"):
                given = {word.arg: word.value for word in call.keywords}
                assert isinstance(given["alt"], ast.Constant)
                assert len(given["alt"].value) >= 20
                assert isinstance(given["name"], ast.Constant)
                shown = cell["metadata"]["mystnb"]["figure"]
                assert shown["name"] == f"fig-{given['name'].value}"
                assert shown["caption"]


def test_a_reference_to_a_theorem_names_it() -> None:
    """Theorems keep the numbers of their documents, so the builder has none to print in a bare reference."""
    pages = [*NOTEBOOKS, *(ROOT / "book").glob("*.md")]
    assert [path.name for path in pages if re.search(r"\{prf:ref\}`[^<`]*`", path.read_text(encoding="utf-8"))] == []


def _defined(folder: str) -> dict[str, set[str]]:
    """Names of functions and classes, by the name of their file."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        names = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        found[path.stem] = found.get(path.stem, set()) | names
    return found


def test_the_page_on_numerics_names_code_and_tests_that_exist() -> None:
    code, tests = _defined("flamelib"), _defined("tests")
    tried = set(tests).union(*tests.values())
    page = (ROOT / "book" / "numerics.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) > 50
    for _, _, where, *_, test, _ in rows:
        module = ""
        for name in re.findall(r"`([\w.]+)`", where):
            head, *rest = name.split(".")
            module, rest = (head, rest) if head in code else (module, [head, *rest])
            assert set(rest) <= code[module], name
        for name in re.findall(r"`([\w./]+)`", test):
            assert name in tried or (ROOT / name).is_file(), name


def test_everything_that_the_book_refers_to_is_cited() -> None:
    keys = re.findall(r"^@\w+\{(\S+),$", (ROOT / "book" / "references.bib").read_text(encoding="utf-8"), re.M)
    pages = [*(ROOT / "book").glob("*.md"), *NOTEBOOKS, *(ROOT / "book" / "flamebook").rglob("*.py")]
    texts = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    assert keys
    assert [key for key in keys if key not in texts] == []


def test_a_proof_that_the_library_names_stands_in_the_book() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "book").glob("*.md"))
    titles = set(re.findall(r"^(?:#+|:+\{prf:\w+\}|`+\{prf:\w+\}) (.+)$", pages, re.M))
    named = {}
    for path in (ROOT / "flamelib").rglob("*.py"):
        text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        for found in re.findall(r'\bbook, chapter on [^.*"]*(?:\*([^*]+)\*|"([^"]+)")', text):
            named["".join(found).rstrip(".")] = path.name
    assert len(named) > 15
    assert {title: name for title, name in named.items() if title not in titles} == {}
