"""How the pages of the book are made light: pictures as files of their own, long tables without needless markup."""

import re

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
