"""How a row of the ledger is written: its anchor, its verdict, what it compares; and how pages are made light."""

import re
from collections.abc import Mapping
from typing import Any

from flamebook.claims.ledger import Claim, Judged, shown


def anchor(claim_id: str) -> str:
    """The anchor of a row on the page.

    >>> anchor("blanket:thm-3.1/mass")
    'claim-blanket-thm-3-1-mass'
    """
    return "claim-" + re.sub(r"[^a-z0-9]+", "-", claim_id.lower())


def verdict(name: str) -> str:
    """The verdict in its colour."""
    return f"[{name.replace('-', ' ')}]{{.verdict .verdict-{name}}}"


def comparison(row: Judged) -> str:
    """The two numbers of a row in a sentence, or that its property fails."""
    if row.claim.relation == "holds":
        return "The property fails."
    said = {"equal": "Stated", "at-most": "Stated: at most", "at-least": "Stated: at least"}[str(row.claim.relation)]
    return f"{said} {shown(row.claim.stated)}; computed {shown(row.value)}."


def given(claim: Claim) -> str:
    """The inputs of a row in a sentence; several values of one input stand in brackets."""
    inputs = [f"{name} = {_written(value)}" for name, value in (claim.inputs | claim.over).items()]
    return f"Inputs: {', '.join(inputs)}." if inputs else "No inputs."


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{name} {_written(one)}" for name, one in value.items()) + ")"
    if isinstance(value, list):
        return "[" + ", ".join(_written(one) for one in value) + "]"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


_SHOWN = re.compile(
    r'<div class="only-(?P<theme>light|dark)" role="img" aria-label="(?P<alt>[^"]*)">'
    r'<svg [^>]*?width="(?P<width>[\d.]+)pt" height="(?P<height>[\d.]+)pt".*?</svg></div>',
    re.DOTALL,
)
_FILE = re.compile(r'href="(\.\./files/[^"]*?)\.svg" download')
_LEGIBLE = 0.87  # of its width: the smallest words of a figure, 9.5 points, are 11 pixels high then


def own_size(width: str, height: str) -> str:
    """Size of a drawing as attributes of its picture, from points, and the width below which it scrolls.

    >>> own_size("300", "150")
    'width="400" height="200" style="--legible:348px"'
    """
    wide, high = (float(number) * 96 / 72 for number in (width, height))
    return f'width="{wide:.0f}" height="{high:.0f}" style="--legible:{_LEGIBLE * wide:.0f}px"'


def as_files(markup: str) -> str:
    """A figure whose pictures are files, loaded when they come into sight, instead of parts of the page.

    >>> picture = '<div class="only-dark" role="img" aria-label="A."><svg width="300pt" height="150pt">x</svg></div>'
    >>> print(as_files(picture + '<a href="../files/run/figures/a.svg" download>SVG</a>').partition("<a")[0])
    <div class="only-dark"><img class="dark-light" src="../files/run/figures/a-dark.svg" alt="A." width="400"
    height="200" style="--legible:348px" loading="lazy" decoding="async"></div>
    """
    file = _FILE.search(markup)

    def written(found: re.Match[str]) -> str:
        address = f"{file[1]}{'-dark' if found['theme'] == 'dark' else ''}.svg" if file else ""
        return (
            f'<div class="only-{found["theme"]}"><img class="dark-light" src="{address}" alt="{found["alt"]}" '
            f"{own_size(found['width'], found['height'])} "
            'loading="lazy" decoding="async"></div>'
        )

    return _SHOWN.sub(written, markup) if file else markup


_CELL = re.compile(r"(<t[dh]\b[^>]*>)<p>((?:(?!</?p\b|</?t[dh]\b).)*)</p>(</t[dh]>)", re.DOTALL)
_LITERAL = re.compile(
    r'<code class="(?:docutils literal notranslate|xref py py-\w+ docutils literal notranslate)">'
    r'((?:<span class="pre">[^<]*</span>\s*)+)</code>'
)
_REFERENCE = re.compile(
    r'<a class="reference (?:internal|external)" ((?:title="[^"]*" )?href="[^"]*")(?: title="[^"]*")?>'
    r'(?:<span class="(?:doc|std std-ref)">([^<]*)</span>|((?:(?!</a>).)*))</a>'
)


def lean(table: str) -> str:
    """A table of hundreds of rows without the classes and boxes of which none of its looks depends.

    >>> lean('<td><p>See <a class="reference internal" href="a.html"><span class="doc">A</span></a></p></td>')
    '<td>See <a href="a.html">A</a></td>'
    """
    table = _CELL.sub(r"\1\2\3", table)
    table = _LITERAL.sub(lambda found: f"<code>{re.sub(r'</?span[^>]*>', '', found[1])}</code>", table)
    return re.sub(r'<tr class="row-(?:odd|even)">', "<tr>", _REFERENCE.sub(r"<a \1>\2\3</a>", table))
