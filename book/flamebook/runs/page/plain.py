"""A notebook of the book as one that any Jupyter shows: roles of MyST become words, directives quotations.

What a reference says is what the book's builder knew: numbers and titles, and pages as links where the caller knows an
address for them.  Without a book it is made from the label.
"""

import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

Notebook = Mapping[str, Any]

ONLY_HERE = "only-notebook"  # tag of the cells that only the notebook has, not its page
INSTALL = "install"  # id of the cell that brings what the notebook imports
INSTALL_CODE = """\
# Brings what this notebook imports; where it is there already, nothing happens.
try:
    import flamebook
except ImportError:
    !git clone --quiet --depth 1 CLONE flamelib-checkout
    %pip install --quiet --editable "./flamelib-checkout[book]"
    import site, sysconfig
    site.addsitedir(sysconfig.get_path("purelib"))"""

_MARKUP = re.compile(
    r"""^(?P<code>```|~~~)(?!\{).*?^(?P=code)[ \t]*$
    | ^(?P<mark>:{3,}|`{3,})\{(?P<name>[^}]+)\}[ \t]*(?P<argument>[^\n]*)\n
      (?P<options>(?::[a-z_-]+:[^\n]*\n)*)(?P<body>.*?)^(?P=mark)[ \t]*$
    | ^\([\w:.-]+\)=[ \t]*$
    | \{(?P<role>[a-z:]+)\}(?P<tick>`+)(?P<content>.+?)(?P=tick)
    | \$\$(?P<formula>[^$]+)\$\$[ \t]*\((?P<label>[\w:.-]+)\)""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_TITLED = re.compile(r"(.*?)\s*<([^<>]+)>")


@dataclass(frozen=True, slots=True)
class Book:
    """What references into the book say, and where they lead.

    Attributes
    ----------
    known : mapping from label to (words, place)
        By its anchor, ``flame-thm-4``: ``("Theorem 4", "book/flame.html#flame-thm-4")``.
    cited : mapping from key to (authors, year)
    link : callable
        From a place to its address; empty where it has none.
    """

    known: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    cited: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    link: Callable[[str], str] = lambda place: ""

    def at(self, label: str) -> tuple[str, str]:
        """Words and place of a label; empty where the book has none."""
        return self.known.get(anchor(label), ("", ""))

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


def book(doctrees: Path, references: Path, link: Callable[[str], str] = lambda place: "") -> Book:
    """What the builder knew, from the folder in which it left that and the file in BibTeX that the book cites from."""
    with (doctrees / "environment.pickle").open("rb") as file:
        builder = pickle.load(file)
    std, objects = builder.domaindata["std"], builder.domaindata["py"]["objects"]
    known = {anchor(page): (title.astext(), f"{page}.html") for page, title in builder.titles.items()}
    known |= {anchor(name): ("", f"{one.docname}.html#{one.node_id}") for name, one in objects.items()}
    known |= {anchor(name): ("", f"{page}.html#{at}") for (_, name), (page, at) in std["objects"].items()}
    proofs = getattr(builder, "proof_list", {})
    known |= {anchor(label): ("", f"{one['docname']}.html#{label}") for label, one in proofs.items()}
    known |= {anchor(label): (words, f"{page}.html#{at}") for label, (page, at, words) in std["labels"].items()}
    for page, kinds in builder.toc_fignumbers.items():
        for kind, numbers in kinds.items():
            for at, parts in numbers.items():
                number = ".".join(map(str, parts))
                words = f"({number})" if kind == "displaymath" else f"{kind.capitalize()} {number}"
                known[anchor(at.removeprefix("equation-"))] = (words, f"{page}.html#{at}")
    return Book(known, cited(references), link)


def cited(references: Path) -> dict[str, tuple[str, str]]:
    """Authors and year of every entry, as the book cites them."""
    from pybtex.database import parse_file  # type: ignore[import-untyped]

    entries = parse_file(str(references), bib_format="bibtex").entries if references.is_file() else {}
    return {key: (_authors(one.persons.get("author", ())), one.fields.get("year", "")) for key, one in entries.items()}


def _authors(persons: Any) -> str:
    names = [re.sub(r"[{}]", "", " ".join((*one.prelast_names, *one.last_names))) for one in persons]
    return f"{names[0]} et al." if len(names) > 2 else " and ".join(names)


def markdown(text: str, known: Book) -> str:
    r"""A text of MyST as plain Markdown.

    >>> print(markdown("(sec-a)=\n# A by {py:func}`~flamelib.run`\n\n:::{tip}\nGo on.\n:::", Book()))
    # A by `run`
    <BLANKLINE>
    <blockquote>
    <BLANKLINE>
    **Tip**
    <BLANKLINE>
    Go on.
    <BLANKLINE>
    </blockquote>
    """
    return re.sub(r"\n{3,}", "\n\n", _MARKUP.sub(partial(_plain, known=known), text)).strip("\n")


def _plain(found: re.Match[str], known: Book) -> str:
    if found["role"]:
        return _role(found["role"], " ".join(found["content"].split()), known)
    if found["name"]:
        return _directive(found, known)
    if found["label"]:
        number = known.at(found["label"])[0].strip("()")
        return f"$${found['formula'].rstrip()} \\tag{{{number}}}\n$$" if number else f"$${found['formula']}$$"
    return found[0] if found["code"] else ""


def _role(name: str, content: str, known: Book) -> str:
    title, target = titled.groups() if (titled := _TITLED.fullmatch(content)) else ("", content)
    if name.startswith("cite"):
        parts = [known.cited.get(key.strip(), (key.strip(), "")) for key in target.split(",")]
        year, around = (" ({})", "{}") if name == "cite:t" else (", {}", "({})")
        return around.format("; ".join(authors + year.format(when) * bool(when) for authors, when in parts))
    if name.startswith("py:"):
        short = target.rpartition(".")[2] if target.startswith("~") else target.lstrip("!")
        return known.linked(f"`{title or short}`", known.at(target)[1])
    if name == "doc":
        page = target.strip("/").removeprefix("../")
        words, place = known.at(page) if "/" in page else known.at(f"notebooks/{page}")
        return known.linked(title or f"*{words or page.rpartition('/')[2].replace('_', ' ')}*", place)
    if name in ("ref", "numref", "eq", "prf:ref", "term"):
        words, place = known.at(target)
        return known.linked(title or words or _of_label(name, target), place)
    return f"${content}$" if name == "math" else f"`{content}`"


def _of_label(name: str, label: str) -> str:
    """Words for a reference of which nothing but the label is known.

    >>> _of_label("numref", "fig-theorem-gap"), _of_label("prf:ref", "flame-thm-4")
    ('the figure *theorem gap*', '*flame thm 4*')
    """
    kind = {"numref": "the figure ", "eq": "the equation "}.get(name, "")
    words = re.sub(r"^(fig|eq|sec|ex)-", "", anchor(label)).replace("-", " ")
    return words if name == "term" else f"{kind}*{words}*"


def _directive(found: re.Match[str], known: Book) -> str:
    """A quotation, in tags, for not everything that shows notebooks knows tables behind ``>``."""
    name, argument, label = found["name"], found["argument"], re.search(r":label:\s*(\S+)", found["options"])
    if name in ("raw", "solution-end"):
        return ""
    if name == "solution-start":
        return "**Solution**"
    kind = "" if name == "admonition" else name.rpartition(":")[2].capitalize()
    title = (known.at(label[1])[0] if label else "") or ": ".join(filter(None, (kind, argument.strip())))
    return f"<blockquote>\n\n**{markdown(title, known)}**\n\n{markdown(found['body'], known)}\n\n</blockquote>"


def notebook(page: Notebook, known: Book, clone: str, beside: bool) -> dict[str, Any]:
    """A notebook of the book, executed or not, as one that any Jupyter shows and that runs from any folder.

    Parameters
    ----------
    page : mapping
        The notebook.
    known : Book
        What its references say; figures that it does not know get numbers in their order.
    clone : str
        Address of the repository; empty where there is none.
    beside : bool
        Whether the figures' files lie beside it, in ``figures``.
    """
    names = [name for cell in page["cells"] if (name := _figure(cell).get("name"))]
    own = {anchor(name): (f"Figure {number}", "") for number, name in enumerate(names, 1)}
    known = replace(known, known=own | dict(known.known))
    told = "This notebook imports `flamelib` and `flamebook`: install the checkout that it comes from, `make venv`."
    install: dict[str, Any] = {"cell_type": "markdown", "id": INSTALL, "source": told}
    if clone:
        code = {"cell_type": "code", "source": INSTALL_CODE.replace("CLONE", clone)}
        install |= code | {"outputs": [], "execution_count": None}
    cells = [one for number, cell in enumerate(page["cells"]) for one in _cells(number, cell, known, beside)]
    return {**page, "cells": [install | {"metadata": {"tags": [ONLY_HERE]}}, *cells]}


def _figure(cell: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = cell["metadata"].get("mystnb", {}).get("figure", {})
    return found


def _cells(number: int, cell: Mapping[str, Any], known: Book, beside: bool) -> Iterator[dict[str, Any]]:
    if cell["cell_type"] == "markdown":
        if source := markdown("".join(cell["source"]), known):
            yield {**cell, "source": source}
        return
    metadata = {name: value for name, value in cell["metadata"].items() if name != "mystnb"}
    yield {**cell, "metadata": metadata, "outputs": [_output(one, beside) for one in cell.get("outputs", ())]}
    if caption := _figure(cell).get("caption"):
        said = markdown(f"**{known.at(_figure(cell).get('name', ''))[0] or 'Figure'}.** {caption}", known)
        yield {"cell_type": "markdown", "id": f"caption-{number}", "metadata": {}, "source": said}


def _output(output: Mapping[str, Any], beside: bool) -> dict[str, Any]:
    """An output whose links lead to files that lie there."""
    shown = dict(output.get("data", {}))
    if "text/html" in shown:
        old, new = (r'"(?:\.\./files/[^/"]*/)figures/', '"figures/') if beside else (r"<p>Files: .*?</p>", "")
        shown["text/html"] = re.sub(old, new, "".join(shown["text/html"]))
    return {**output, "data": shown} if shown else dict(output)
