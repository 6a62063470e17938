"""The page of an own run and its notebook: one file, the book's numbers, nothing raw, links that lead somewhere."""

import hashlib
import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import templates

from flamebook import page
from flamebook.places import ROOT, repository
from flamebook.runs import own
from flamebook.runs.execute import Receipt
from flamebook.runs.page import folded, head, plain
from flamebook.site.book import build
from flamebook.statements import BOOK_RUN

RAW = re.compile(r"\{[a-z:]+\}`|:::|\(sec-[a-z-]+\)=|@[a-z_]+@|\$\$ *\(eq-")
INDEX = """\
# Tiny

## Statements

:::{prf:theorem} The first
:label: tiny-thm
It holds.
:::

:::{prf:lemma}
:label: tiny-lem
:nonumber:
It helps.
:::

$$x = y$$ (eq-tiny)

{term}`shuffler`, {cite:t}`balle2019blanket`

:::{glossary}
shuffler
  It mixes.
:::

```{eval-rst}
.. py:function:: flamelib.mix()
```

```{bibliography}
```
"""
TEXT = """\
(sec-survey)=
# A survey

See {prf:ref}`tiny-thm` by {cite:t}`balle2019blanket`, {eq}`eq-tiny`, {numref}`fig-line`, {doc}`/book/index`,
{term}`the shuffler <shuffler>`, {py:func}`flamelib.mix` and {ref}`sec-survey`.

:::{admonition} Mind
:class: tip
- {prf:ref}`the step <tiny-lem>`;
:::

$$a = b$$ (eq-own)

## Again
"""
NUMBERS = """\
import matplotlib.pyplot as plt
from flamebook.page import figure, result
result(double=2 * n_users, kind="odd")
"""
CURVES = """\
fig, ax = plt.subplots()
ax.plot([1.0, 10.0], [n_users * 1.0, 2.0])
figure(fig, name="line", alt="A line that rises from left to right.",
       data={"n_users": [1.0, 10.0], "hoeffding": [n_users * 1.0, 2.0]})
"""
PARAMETERS = "n_users: int = 1000  # users\nseed: int = 7  # of the one generator"


def notebook() -> dict[str, Any]:
    shown = {"tags": ["hide-input"], "mystnb": {"figure": {"name": "fig-line", "caption": "A line, {eq}`eq-tiny`."}}}
    found: dict[str, Any] = templates.notebook(PARAMETERS, NUMBERS, (CURVES, shown), text=TEXT)
    return found


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small book with the real one's settings, built as `make book` builds it."""
    root = tmp_path_factory.mktemp("checkout")
    (root / "notebooks").mkdir()
    (root / "notebooks" / "survey.ipynb").write_text(json.dumps(notebook()))
    (root / "book" / "parameters").mkdir(parents=True)
    (root / "book" / "parameters" / "quick.yml").write_text("")
    for folder in ("_ext", "_templates", "assets"):
        shutil.copytree(ROOT / "book" / folder, root / "book" / folder)
    for file in ("_config.yml", "Snakefile", "book/references.bib"):
        shutil.copy(ROOT / file, root / file)
    (root / "book" / "index.md").write_text(INDEX)
    toc = "{format: jb-book, root: book/index, parts: [{numbered: true, chapters: [{file: notebooks/survey}]}]}\n"
    (root / "book" / "_toc.yml").write_text(toc)
    build.build(root, "quick", 1, (), lambda *folders: None, lambda html: None)
    return root


@pytest.fixture(scope="module")
def run(checkout: Path) -> Path:
    """An own run beside the book."""
    return own.run(checkout / "notebooks" / "survey.ipynb", {"n_users": "50"}, checkout / "mine")


def words(page: Path) -> str:
    """The words of a page, scripts and styles left out."""
    text = re.sub(r"(?s)<(script|style)\b.*?</\1>", " ", page.read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"</t[dh]>", " ", text)))).replace(
        "\u2019", "'"
    )


class TestPage:
    def test_numbers_and_references_are_the_books(self, run: Path) -> None:
        said = words(run / "survey.html")
        assert "1. A survey" in said
        assert "See Theorem 1 by Balle et al. [2019], (1), Fig. 1.1, Tiny, the shuffler, flamelib.mix() and" in said
        assert "Fig. 1.1 A line, (1)." in said
        assert "1.1. Again" in said
        assert "made without" not in said
        assert "No book is built here" not in said
        assert RAW.findall(said) == []

    def test_links_lead_somewhere(self, run: Path, checkout: Path) -> None:
        targets = re.findall(r'<a\b[^>]*\shref="([^"]*)"', (run / "survey.html").read_text(encoding="utf-8"))
        beside = [one for one in targets if not one.startswith(("http", "#"))]
        assert [one for one in beside if not (run / one.partition("#")[0]).is_file()] == []
        assert "../_build/html/notebooks/survey.html" in beside
        assert "../_build/html/book/index.html#tiny-thm" in beside
        assert "figures/line.csv" in beside

    def test_its_head_compares_with_the_book(self, run: Path, checkout: Path) -> None:
        said = words(run / "survey.html")
        mine, theirs = (
            json.loads((place / "results.json").read_text())["double"]
            for place in (run, checkout / "_build" / "html" / "files" / "survey")
        )
        assert "n_users 1000 50 The sentences of this page were written for the book's parameters." in said
        assert f"result the book's yours double {theirs:,} {mine:,} Equal to the book's: kind." in said
        assert "flamelib run survey -p n_users=50" in said
        assert re.search(r"Receipt: \d+ s; flamelib", said)
        assert "Back to the book's own page." in said

    def test_the_receipt_vouches_for_the_notebook_as_it_lies_there(self, run: Path) -> None:
        receipt = json.loads((run / "receipt.json").read_text())
        assert receipt["outputs"]["survey.ipynb"] == hashlib.sha256((run / "survey.ipynb").read_bytes()).hexdigest()


class TestNotebook:
    def test_it_is_plain(self, run: Path, checkout: Path) -> None:
        page = nbformat.read(run / "survey.ipynb", as_version=4)
        nbformat.validate(page)
        texts = "\n".join(cell.source for cell in page.cells if cell.cell_type == "markdown")
        assert RAW.findall(texts) == []
        assert "<blockquote>\n\n**Mind**\n\n- [the step](../_build/html/book/index.html#tiny-lem);" in texts
        assert "**Figure 1.1.** A line, [(1)](../_build/html/book/index.html#equation-eq-tiny)." in texts
        assert "a = b \\tag{1.1}" in texts
        assert page.cells[0].metadata.tags == [plain.ONLY_HERE]
        assert ("git clone" in page.cells[0].source) == bool(repository(checkout))

    def test_it_runs_from_any_folder_and_its_page_is_whole_without_a_book(self, run: Path, tmp_path: Path) -> None:
        shutil.copy(run / "survey.ipynb", tmp_path / "survey.ipynb")
        again = own.run(tmp_path / "survey.ipynb", {"n_users": "70"}, tmp_path / "again")
        assert json.loads((again / "results.json").read_text())["double"] == 140
        said, text = words(again / "survey.html"), (again / "survey.html").read_text(encoding="utf-8")
        assert "No book is built here (make book makes one), so references to its other pages are words alone." in said
        assert "n_users 50 70" in said, "the default of the copy is the value that it was run with"
        assert said.count("A run of your own") == 1
        assert "git clone" not in said
        assert RAW.findall(said) == []
        assert "plt.subplots" not in said
        assert '<html lang="en"' in text
        assert "<title>A survey</title>" in text
        assert "prefers-color-scheme:dark" in text
        assert 'href="figures/line.csv"' in text
        assert "src=" not in re.sub(r"(?s)<script>.*?</script>", "", text)

    def test_the_books_downloads_are_plain_too(self, checkout: Path) -> None:
        page = json.loads((checkout / "_build/html/_sources/notebooks/survey.ipynb").read_text(encoding="utf-8"))
        texts = "\n".join(cell["source"] for cell in page["cells"] if cell["cell_type"] == "markdown")
        assert RAW.findall(texts) == []
        assert "See Theorem 1 by Balle et al. (2019), (1), Figure 1.1, *Tiny*,\nthe shuffler, `flamelib.mix`" in texts
        assert "../files" not in json.dumps(page)

    def test_who_has_no_checkout_is_told_how_to_get_one(self) -> None:
        first = [plain.notebook(notebook(), plain.Book(), clone, False)["cells"][0]["source"] for clone in ("", "a:/b")]
        assert "install the checkout" in first[0]
        assert "!git clone --quiet --depth 1 a:/b flamelib-checkout" in first[1]

    def test_no_notebook_keeps_markup(self) -> None:
        for path in (ROOT / "notebooks").glob("*.ipynb"):
            page = plain.notebook(json.loads(path.read_text(encoding="utf-8")), plain.Book(), "", beside=False)
            texts = [cell["source"] for cell in page["cells"] if cell["cell_type"] == "markdown"]
            assert [found for text in texts for found in RAW.findall(text)] == [], path.stem


class TestHead:
    def test_what_somebody_typed_is_no_markup(self) -> None:
        parameters = {"dataset": "a`|<b>\n:::\n{ref}`x`.npz", "seed": None}
        receipt = Receipt("n", parameters, None, 1.0, 0.0, {}, {}, {})
        block = head.head(head.Run(Path(), receipt, {}), None, {"dataset": "mnist"}, "")
        assert [line for line in block.splitlines() if line.startswith(":::")] == [head.OPENED[0], ":::"]
        assert "| `dataset` | `mnist` | `` a`\\|<b> ::: {ref}`x`.npz `` |" in block


class TestBehind:
    @pytest.fixture
    def book_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "book" / "figures").mkdir(parents=True)
        monkeypatch.setenv("FLAMELIB_RUN_FOLDER", str(tmp_path / "own"))
        monkeypatch.setenv(BOOK_RUN, str(tmp_path / "book"))
        return tmp_path / "book" / "figures" / "line.csv"

    def lines(self, table: Path, text: str, scale: float = 1.0, x: Any = (1.0, 10.0)) -> list[tuple[str, list[float]]]:
        """Labels and heights of all lines of an own figure beside the book's table."""
        table.write_text(text)
        fig, ax = plt.subplots()
        epsilon = np.array([3.0, np.inf])
        ax.plot(x, scale * epsilon)
        page.figure(fig, name="line", alt="A line.", data={"n_users": x, "hoeffding": epsilon})
        return [(str(line.get_label()), list(np.asarray(line.get_ydata(), float))) for line in ax.get_lines()]

    def test_the_books_curves_stand_behind(self, book_run: Path) -> None:
        found = self.lines(book_run, "n_users,hoeffding\n1,4\n5,5\n10,6\n")
        assert [4.0, 5.0, 6.0] in [heights for _, heights in found]
        assert [label for label, _ in found].count("the book's") == 1

    @pytest.mark.parametrize(
        ("text", "scale"),
        [
            ("n_users,hoeffding\n1,3\n10,inf\n", 1.0),  # equal
            ("epsilon0,hoeffding\n1,4\n10,5\n", 1.0),  # over another axis
            ("n_users,hoeffding\n1,4\n10,5\n", 100.0),  # not drawn as it stands
        ],
    )
    def test_what_cannot_be_compared_is_not(self, book_run: Path, text: str, scale: float) -> None:
        assert len(self.lines(book_run, text, scale)) == 1


def test_code_inside_a_page_cannot_end_its_script(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('x = "</script><!--"; //# sourceMappingURL=a.js.map\n')
    (tmp_path / "a.css").write_text("@font-face{src:url(fa-solid-900.woff2)} b{background:url('b.png')}")
    (tmp_path / "b.png").write_bytes(b"png")
    page = tmp_path / "a.html"
    page.write_text(
        '<link rel="stylesheet" href="a.css?v=1" /><script src="a.js"></script><a href="gone.html">words</a>'
    )
    text = folded.fold(page, lambda to: "")
    assert text.count("</script>") == 1
    assert "<!--" not in text
    assert "data:image/png" in text
    assert text.endswith("words")
