"""The theorem index: every registered statement with its function, direction, adjacency, tests and notebooks."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flamebook.claims.ledger import Judged
from flamebook.runs import notebook
from flamebook.site.written import api
from flamebook.statements import listed
from flamelib import answers
from flamelib.core.guarantees import RestsOn
from flamelib.core.statements import DOCUMENTS, Statement

_HEAD = """\
(theorems)=
# Theorem index

One function is the home of each statement. *Gives* says on which side of the truth its answer lies: an upper
bound is never below it, a lower bound never above it, an exact answer is it, and a value is what a formula
says and no guarantee. *Rests on* says why to believe that: *proven* where theorem and numerical error are
proven in this project, *cited* where a theorem of others is used without its proof, *estimated* where an error
is measured or something is searched; a value rests on nothing. *Proven\\** marks numbers of sums, integrals and
compositions, which also {ref}`assume <sec-notation-answers>` IEEE doubles, and rounding of functions and Fourier
transforms within its bounds. *Adjacency* says which two data sets are compared. Ask any of them on the command line:
`flamelib evaluate ID name=value ...`; inputs and domains: `flamelib evaluate --list`.
"""
_TABLE = """\
::::{list-table}
:header-rows: 1
:class: theorems

* - statement
  - function
  - gives
  - rests on
  - adjacency
  - randomizers
  - tests
  - notebooks"""
_MOST = 3
_DEPENDS = "depends on the inputs"
ASSUMING = r"\*"
"""Mark of a proven statement whose answers assume more than their theorem."""


@dataclass(frozen=True, slots=True)
class _Test:
    """A test function: where it stands, and its text with decorators."""

    path: str
    name: str
    line: int
    text: str


def page(
    root: Path, link: Callable[[str], str], judged: Iterable[Judged], sourced: Callable[[str, str, int | None], str]
) -> str:
    """The page in MyST.

    Parameters
    ----------
    root : Path
        The checkout, whose tests and notebooks are searched for each function.
    link : callable
        From a page to a link in MyST.
    judged : iterable of Judged
        Rows of the ledger; a statement links to the rows that it computes.
    sourced : callable
        From words, a path in the checkout and a line to a link in MyST, or to words where it has no address.
    """
    documented = api.documented(root / "flamelib")
    tests, notebooks = list(_tests(root)), _notebooks(root)
    claims = [row.claim for row in judged]
    computed = {claim.compute for claim in claims}
    # The text of a statement, with its proof: the first chapter that a claim about it points at.
    texts = {
        claim.item: claim.page for claim in reversed(claims) if claim.page.startswith("book/") and "#" in claim.page
    }
    found = answers.load_all()

    def row(key: str, statement: Statement) -> str:
        shelf = [link(f"notebooks/{name}") for name, code in notebooks.items() if _mentions(code, statement)]
        more = ([link(texts[key])] if key in texts else []) + ["{doc}`ledger </book/ledger>`"] * (key in computed)
        cells = [
            f"`{key}`: {statement.item}" + (f" ({', '.join(more)})" if more else ""),
            _function(statement, documented),
            _told(statement.gives),
            _ground(statement),
            str(statement.adjacency),
            ", ".join(statement.randomizers) or "its own",
            _links([test for test in tests if _mentions(test.text, statement)], sourced),
            ", ".join(shelf) or "none",
        ]
        return "* - " + "\n  - ".join(cells)

    parts = [_HEAD, grounds() + "\n"]
    for document in dict.fromkeys(key.split(":")[0] for key in found):
        rows = [row(key, statement) for key, statement in found.items() if key.split(":")[0] == document]
        parts += [f"## {document}\n", f"{DOCUMENTS[document]}.\n", _TABLE, *rows, "::::\n"]
    return "\n".join(parts)


def _function(statement: Statement, documented: set[str]) -> str:
    function = statement.function
    if function.__module__ in documented:
        return f"{{py:func}}`~{function.__module__}.{function.__qualname__}`"
    return f"`{function.__module__.removeprefix('flamelib.')}.{function.__qualname__}`"


def grounds() -> str:
    """How many statements there are, and what they rest on, in a sentence."""
    statements = answers.load_all().values()
    number = Counter(_ground(statement).removesuffix(ASSUMING) for statement in statements)
    labels = listed([f"{number[word]} are {word}" for word in map(str, RestsOn) if number[word]])
    answered = f"Of the {len(statements)} statements that the library answers"
    values = f"{number['']} are values of formulas, which promise nothing"
    return f"{answered}, {labels}; for {number[_DEPENDS]} this {_DEPENDS}, and {values}."


def _told(label: object) -> str:
    return _DEPENDS if callable(label) else str(label)


def _ground(statement: Statement) -> str:
    """What a statement rests on, marked where it assumes more than its theorem; nothing for a value."""
    if statement.rests_on is None:
        return ""
    marked = statement.rests_on == RestsOn.PROVEN and statement.assumes
    return _told(statement.rests_on) + (ASSUMING if marked else "")


def _mentions(text: str, statement: Statement) -> bool:
    """Whether the text names the id, or calls the function by its name."""
    name = statement.function.__name__
    return statement.id in text or re.search(rf"(?<![\w\"']){name}\b(?=[(,)\]])", text) is not None


def _links(tests: list[_Test], link: Callable[[str, str, int | None], str]) -> str:
    shown = [link(t.name.removeprefix("test_").replace("_", " "), t.path, t.line) for t in tests[:_MOST]]
    return ("; ".join(shown) or "none") + (f"; {len(tests) - _MOST} more" if len(tests) > _MOST else "")


def _tests(root: Path) -> Iterator[_Test]:
    for path in sorted((root / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                body = "\n".join(lines[first - 1 : node.end_lineno])
                yield _Test(path.relative_to(root).as_posix(), node.name, node.lineno, body)


def _notebooks(root: Path) -> dict[str, str]:
    """Name to code, of every notebook."""
    return {path.stem: notebook.code(notebook.read(path)) for path in sorted((root / "notebooks").glob("*.ipynb"))}
