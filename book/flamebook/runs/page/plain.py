"""MyST into Markdown that any Jupyter shows: roles become words, directives quotations, labels are dropped.

What a reference says is read off the built book, where there is one: its numbers and titles, and its pages as links
if the caller knows an address for them.  Without a book it is made from the label.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

Notebook = Mapping[str, Any]

#: The address of a page of the book and a place on it, such as ``book/flame.html#flame-thm-4``; empty where unknown.
Link = Callable[[str], str]


def no_link(place: str) -> str:
    """Pages of the book have no address."""
    return ""


@dataclass(frozen=True, slots=True)
class Book:
    """What references into the book say, and where they lead.

    Attributes
    ----------
    places : mapping from label to place
        Page and anchor of everything that can be referred to, by its anchor: ``book/flame.html#flame-thm-4``.
    words : mapping from place to text
        What stands there: a title, ``Figure 2.1``, ``(1.2)``.
    cited : mapping from key to (authors, year)
    link : callable
        From a place to its address.
    """

    places: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    cited: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    link: Link = no_link

    def at(self, label: str) -> tuple[str, str]:
        """Place and words of a label; empty where the book has none."""
        place = self.places.get(anchor(label), "")
        return place, self.words.get(place, "")

    def linked(self, words: str, place: str) -> str:
        """The words, as a link if the place has an address."""
        address = self.link(place) if place else ""
        return f"[{words}]({address})" if address else words


def anchor(label: str) -> str:
    """The anchor that a label has in a page.

    >>> anchor("blanket:thm_3.1")
    'blanket-thm-3-1'
    """
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


# --- what the built book says ----------------------------------------------------------------------------------------

_TITLE = re.compile(r"<h1>(.*?)</h1>", re.DOTALL)
_SECTION = re.compile(r'<span id="([^"]+)"></span>(?:<span id="[^"]+"></span>)*<h\d>(.*?)</h\d>', re.DOTALL)
_FIGURE = re.compile(r'<figure\b[^>]*\bid="([^"]+)".*?<span class="caption-number">\s*Fig\.\s*([\d.]+)', re.DOTALL)
_EQUATION = re.compile(r'id="equation-([^"]+)">\s*<span class="eqno">(\([^)]*\))')
_STATEMENT = re.compile(r'id="([^"]+)">\s*<p class="admonition-title"[^>]*>(.*?)</p>', re.DOTALL)
_DEFINED = re.compile(r'<dt class="sig[^>]*\bid="(flamelib[^"]*)"')
_OF_ONE_PAGE = re.compile(r'<span class="section-number">.*?</span>|<a class="headerlink".*?</a>', re.DOTALL)


def book(built: Path, references: Path, link: Link = no_link) -> Book:
    """What a built book says; where there is none, its references alone.

    Parameters
    ----------
    built : Path
        Folder of the book.
    references : Path
        The file in BibTeX that it cites from.
    link : callable
        From a place to its address.
    """
    pages = [path for folder in ("book", "notebooks") for path in sorted((built / folder).rglob("*.html"))]
    places, words = dict[str, str](), dict[str, str]()
    for path in pages:
        page = path.relative_to(built).as_posix()
        for label, said in _said(path.read_text(encoding="utf-8")):
            place = f"{page}#{label}" if label else page
            places.setdefault(label or page.removesuffix(".html"), place)
            words.setdefault(place, said)
    return Book(places, words, _cited(references), link)


def _said(text: str) -> Iterator[tuple[str, str]]:
    """Anchors of a page with what stands there; the empty one is the page's title."""
    yield from (("", _bare(found[1])) for found in _TITLE.finditer(text))
    yield from ((found[1], _bare(found[2])) for found in _SECTION.finditer(text))
    yield from ((found[1], f"Figure {found[2].rstrip('.')}") for found in _FIGURE.finditer(text))
    yield from ((found[1], found[2]) for found in _EQUATION.finditer(text))
    yield from ((found[1], _bare(found[2])) for found in _STATEMENT.finditer(text))
    yield from ((found[1], f"`{found[1].rpartition('.')[2]}`") for found in _DEFINED.finditer(text))


def _bare(markup: str) -> str:
    words = re.sub(r"<[^>]*>", "", _OF_ONE_PAGE.sub("", markup))
    return re.sub(r"\s+", " ", html.unescape(words)).replace("\\(", "$").replace("\\)", "$").strip()


def _cited(references: Path) -> dict[str, tuple[str, str]]:
    """Authors and year of every entry, as the book cites them."""
    from pybtex.database import parse_file  # type: ignore[import-untyped]

    if not references.is_file():
        return {}
    entries = parse_file(str(references), bib_format="bibtex").entries
    return {key: (_authors(one.persons.get("author", ())), one.fields.get("year", "")) for key, one in entries.items()}


def _authors(persons: Sequence[Any]) -> str:
    names = [re.sub(r"[{}]", "", " ".join((*one.prelast_names, *one.last_names))) for one in persons]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)


# --- roles -----------------------------------------------------------------------------------------------------------

_ROLE = re.compile(r"\{([a-z][a-z0-9:._+-]*)\}(`+)(?!`)(.+?)\2(?!`)", re.DOTALL)
_TITLED = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.DOTALL)


def roles(text: str, known: Book) -> str:
    r"""A text with its roles as words.

    >>> cited = Book(cited={"liu2021flame": ("Liu et al.", "2021")})
    >>> roles("{cite:t}`liu2021flame` and {prf:ref}`Theorem 4 <flame-thm-4>` by {py:func}`~flamelib.front.run`", cited)
    'Liu et al. (2021) and Theorem 4 by `run`'
    """
    return _ROLE.sub(lambda found: _role(found[1], re.sub(r"\s+", " ", found[3]).strip(), known), text)


def _role(name: str, content: str, known: Book) -> str:
    titled = _TITLED.match(content)
    title, target = (titled[1], titled[2]) if titled else ("", content)
    family = name.partition(":")[0]
    if family == "cite":
        return _citation(name, target, known)
    if family == "py":
        place = known.places.get(target.strip("~!"), "")
        return known.linked(f"`{title or _object(target)}`", place)
    if name == "doc":
        return _page(target, title, known)
    if name in ("ref", "numref", "eq", "prf:ref", "term"):
        place, words = known.at(target)
        return known.linked(title or words or _of_label(name, target), place)
    if name in ("math", "download", "abbr"):
        return f"${content}$" if name == "math" else title or content
    return f"`{content}`"


def _object(target: str) -> str:
    return target.rpartition(".")[2] if target.startswith("~") else target.lstrip("!")


def _citation(name: str, target: str, known: Book) -> str:
    parts = [known.cited.get(key.strip(), (key.strip(), "")) for key in target.split(",")]
    if name == "cite:t":
        return ", ".join(f"{authors} ({year})" if year else authors for authors, year in parts)
    return "(" + "; ".join(f"{authors}, {year}" if year else authors for authors, year in parts) + ")"


def _page(target: str, title: str, known: Book) -> str:
    """A link to a page, which may be told from the top or from the folder of the notebooks."""
    name = target.strip("/").removeprefix("../")
    place = next((known.places[one] for one in (name, f"notebooks/{name}", f"book/{name}") if one in known.places), "")
    words = title or known.words.get(place, "") or name.rpartition("/")[2].replace("_", " ")
    return known.linked(words if title else f"*{words}*", place)


def _of_label(name: str, label: str) -> str:
    """Words for a reference of which nothing but the label is known.

    >>> _of_label("numref", "fig-theorem-gap"), _of_label("prf:ref", "flame-thm-4")
    ('the figure *theorem gap*', '*flame thm 4*')
    """
    kind = {"numref": "the figure ", "eq": "the equation "}.get(name, "")
    words = re.sub(r"^(fig|eq|sec|ex)-", "", anchor(label)).replace("-", " ")
    return words if name == "term" else f"{kind}*{words}*"


# --- directives, labels and whatever else is not plain ---------------------------------------------------------------

_OPEN = re.compile(r"^(\s*)(:{3,}|`{3,}|~{3,})\{([^}]+)\}[ \t]*(.*)$")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_OPTION = re.compile(r"^:([a-z_-]+):\s*(.*)$")
_DROPPED_LINE = re.compile(r"^\s*\([A-Za-z0-9:._-]+\)=\s*$|^%.*$|^\+\+\+.*$|^\{[.#][^}]*\}\s*$")
_ATTRIBUTES = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\{[.#][^}]*\}")
_NUMBERED = re.compile(r"\$\$(.*?)\$\$[ \t]*\(([A-Za-z0-9:._-]+)\)", re.DOTALL)
_TO_FILE = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)\s#]+?)(?:\.md|\.ipynb|\.html)(#[^)\s]*)?\)")

_DROPPED = ("solution-end", "toctree", "tableofcontents", "bibliography", "raw", "index", "contents", "glue:figure")
_CODE = ("code", "code-block", "code-cell", "sourcecode")
_KINDS = ("note", "tip", "hint", "warning", "important", "caution", "attention", "danger", "error", "seealso")


def markdown(text: str, known: Book) -> str:
    r"""A text of MyST as plain Markdown.

    >>> print(markdown("(sec-a)=\n# A\n\n:::{tip}\nGo on.\n:::\n\n$$x$$ (eq-a)", Book()))
    # A
    <BLANKLINE>
    > **Tip**
    >
    > Go on.
    <BLANKLINE>
    $$x$$
    """
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_lines(text.splitlines(), known))).strip("\n")


def _lines(lines: Sequence[str], known: Book) -> Iterator[str]:
    """Blocks of a text one after another; what lies between directives and code is treated as one piece."""
    at, loose = 0, list[str]()
    while at < len(lines):
        directive, fence = _OPEN.match(lines[at]), _FENCE.match(lines[at])
        if not (directive or fence):
            loose.append(lines[at])
            at += 1
            continue
        yield from _prose(loose, known)
        loose = []
        inside = _inside(lines[at + 1 :], directive[2] if directive else fence[1] if fence else "")
        end = at + 2 + len(inside)
        yield from _directive(directive, inside, known) if directive else lines[at:end]
        at = end
    yield from _prose(loose, known)


def _inside(lines: Sequence[str], mark: str) -> list[str]:
    """The lines up to the one that closes what was opened with this mark."""
    return list(takewhile(lambda line: len(bare := line.strip()) < len(mark) or set(bare) != {mark[0]}, lines))


def _prose(lines: Sequence[str], known: Book) -> Iterator[str]:
    text = "\n".join(line for line in lines if not _DROPPED_LINE.match(line))
    text = _NUMBERED.sub(lambda found: _equation(found[1], found[2], known), text)
    text = _TO_FILE.sub(lambda found: _page(found[2], found[1], known), _ATTRIBUTES.sub(r"\1", text))
    yield from roles(text, known).split("\n")


def _equation(formula: str, label: str, known: Book) -> str:
    number = known.at(label)[1].strip("()")
    return f"$${formula.rstrip()} \\tag{{{number}}}\n$$" if number else f"$${formula}$$"


def _directive(opened: re.Match[str], inside: list[str], known: Book) -> Iterator[str]:
    name, argument = opened[3].strip(), opened[4].strip()
    given = list(takewhile(_OPTION.match, inside))
    options = {found[1]: found[2] for line in given if (found := _OPTION.match(line))}
    body = inside[len(given) :]
    if name in _DROPPED:
        return
    if name in _CODE:
        yield from ["```" + argument.removeprefix("ipython3"), *body, "```"]
    elif name == "math":
        formula = "\n".join(["", *body, ""])
        yield from (_equation(formula, options["label"], known) if "label" in options else f"$${formula}$$").split("\n")
    elif name in ("figure", "image"):
        yield from [f"![{options.get('alt', '')}]({argument})", "", *_lines(body, known)]
    else:
        title = roles(_heading(name, argument, options, known), known)
        block = [*([f"**{title}**", ""] if title else []), *_lines(body, known)]
        # Not everything that shows notebooks knows tables inside quotations.
        yield from ["", *block, ""] if any(line.startswith("|") for line in block) else _quoted(block)


def _heading(name: str, argument: str, options: Mapping[str, str], known: Book) -> str:
    """The first line of a quotation that stands for a directive."""
    numbered = known.at(options.get("label", ""))[1]
    if name == "solution-start":
        return "Solution"
    if name in _KINDS:
        return name.capitalize()
    kind = name.rpartition(":")[2].capitalize() if name.startswith(("prf:", "exercise")) else ""
    return numbered or ": ".join(part for part in (kind, argument) if part)


def _quoted(lines: Sequence[str]) -> Iterator[str]:
    text = "\n".join(lines).strip("\n")
    yield from ["", *(f"> {line}".rstrip() for line in re.sub(r"\n{3,}", "\n\n", text).split("\n")), ""]


# --- notebooks -------------------------------------------------------------------------------------------------------

ONLY_HERE = "only-notebook"  # tag of the cells that only the notebook has, not its page
INSTALL = "install"  # id of the cell that brings what the notebook imports
TAKEN = "taken"  # id of the cell that says whose numbers the text has
ADDED = (INSTALL, TAKEN)
_TOKEN = re.compile(r"@([a-z][a-z0-9_]*)@")
_FILES = re.compile(r"<p>Files: .*?</p>")
_BESIDE = re.compile(r'"(?:\.\./files/[^/"]*/)figures/')


def notebook(page: Notebook, known: Book, clone: str, beside: bool) -> dict[str, Any]:
    """A notebook of the book, executed or not, as one that any Jupyter shows and that runs from any folder.

    Parameters
    ----------
    page : mapping
        The notebook.
    known : Book
        What its references say.
    clone : str
        Address of the repository; empty where there is none.
    beside : bool
        Whether the figures' files lie beside it, in ``figures``.
    """
    own = _with_own(page, known)
    cells = [one for number, cell in enumerate(page["cells"]) for one in _cells(number, cell, own, beside)]
    return {**page, "cells": [*_install(clone), _words(TAKEN, _TAKEN, ONLY_HERE), *cells]}


def _with_own(page: Notebook, known: Book) -> Book:
    """The book and what this notebook itself holds: its figures get numbers in their order if they have none."""
    names = [name for cell in page["cells"] if (name := _figure(cell).get("name"))]
    own = {anchor(name): f"Figure {number}" for number, name in enumerate(names, 1) if not known.at(name)[1]}
    places = dict(known.places) | {label: f"#{label}" for label in own}
    return Book(places, dict(known.words) | {f"#{label}": said for label, said in own.items()}, known.cited, known.link)


def _figure(cell: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = cell["metadata"].get("mystnb", {}).get("figure", {})
    return found


def _cells(number: int, cell: Mapping[str, Any], known: Book, beside: bool) -> Iterator[dict[str, Any]]:
    if cell["cell_type"] == "markdown":
        if source := _named(markdown("".join(cell["source"]), known)):
            yield {**cell, "source": source}
        return
    metadata = {name: value for name, value in cell["metadata"].items() if name != "mystnb"}
    yield {**cell, "metadata": metadata, "outputs": [_output(one, beside) for one in cell.get("outputs", ())]}
    figure = _figure(cell)
    if caption := figure.get("caption"):
        said = f"**{known.at(figure['name'])[1]}.** " if figure.get("name") else ""
        yield _words(f"caption-{number}", said + _named(markdown(caption, known)))


def _words(name: str, source: str, *tags: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "id": name, "metadata": {"tags": [*tags]} if tags else {}, "source": source}


def _named(text: str) -> str:
    """A text whose ``@name@`` words are the names of parameters, where no run has filled them."""
    return _TOKEN.sub(r"`\1`", text)


def _output(output: Mapping[str, Any], beside: bool) -> dict[str, Any]:
    shown = dict(output.get("data", {}))
    if "text/html" in shown:
        markup = "".join(shown["text/html"])
        shown["text/html"] = _BESIDE.sub('"figures/', markup) if beside else _FILES.sub("", markup)
    return {**output, "data": shown} if shown else dict(output)


def _install(clone: str) -> list[dict[str, Any]]:
    """What brings the packages that the notebook imports, or says how to come by them."""
    if not clone:
        told = "This notebook imports `flamelib` and `flamebook`: install the checkout that it comes from, `make venv`."
        return [_words(INSTALL, told, ONLY_HERE)]
    cell: dict[str, Any] = {"cell_type": "code", "id": INSTALL, "metadata": {"tags": [ONLY_HERE]}, "outputs": []}
    return [{**cell, "execution_count": None, "source": INSTALL_CODE.replace("CLONE", clone)}]


_TAKEN = (
    "*Numbers in the text are those of the run that this notebook was taken from. Run it with other parameters, and "
    "tables and figures are new; the text is not.*"
)
INSTALL_CODE = """\
# Brings what this notebook imports; where it is there already, nothing happens.
try:
    import flamebook
except ImportError:
    !git clone --quiet --depth 1 CLONE flamelib-checkout
    %pip install --quiet --editable "./flamelib-checkout[book]"
    import site, sysconfig
    site.addsitedir(sysconfig.get_path("purelib"))"""
