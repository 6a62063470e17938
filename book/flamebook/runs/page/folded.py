"""A page with its styles, scripts, fonts and pictures inside it: one file that opens from disk without a network."""

import base64
import functools
import json
import mimetypes
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

# What computes elsewhere, and the renderer with its fonts beside it.
_LEFT_OUT = re.compile(r"thebe|mathjax")
_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script>", re.DOTALL)
_LINK = re.compile(r"<link\b[^>]*>")
_ANCHOR = re.compile(r'<a\b([^>]*?)\shref="([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
_PICTURE = re.compile(r'(<img\b[^>]*?\ssrc=")([^":]+)(")')
_URL = re.compile(r"url\(\s*([\"']?)(?!data:|[\"'])([^)\"']+)\1\s*\)")
_IMPORT = re.compile(r'@import\s+"([^":]+)";')
_MAP = re.compile(r"/\*#\s*sourceMappingURL=.*?\*/|^//# sourceMappingURL=.*$", re.MULTILINE)
_LOST = re.compile(r'<code class="xref std std-(numref|ref)[^"]*"><span class="pre">.*?</span></code>')

#: The address of what an anchor points to, or nothing where the reader would find nothing there.
Address = Callable[[str], str]


def fold(page: Path, address: Address) -> str:
    """The text of a page with everything inside it that it needs.

    Parameters
    ----------
    page : Path
        An HTML file; what it refers to lies where it says.
    address : callable
        From the target of a link to another file to the link that is written; where it is empty, words remain.
    """
    text = page.read_text(encoding="utf-8")
    text = _LINK.sub(lambda found: _style(found.group(0), page.parent, text), text)
    text = _SCRIPT.sub(lambda found: _script(found, page.parent), text)
    text = _PICTURE.sub(lambda found: found[1] + _data(page.parent / found[2]) + found[3], text)
    text = _LOST.sub("<em>what was not made in this run</em>", linked(text, address))
    formulas = mathjax() if 'class="math' in text else ""
    return text.replace("</body>", f"{formulas}</body>", 1) if formulas else text


def linked(text: str, address: Address) -> str:
    """The text with its links to other files rewritten; one that leads nowhere becomes words.

    >>> linked('<a href="a.html">A</a>, <a href="b.html">B</a>', lambda to: "book/a.html" if to == "a.html" else "")
    '<a href="book/a.html">A</a>, B'
    """

    def written(found: re.Match[str]) -> str:
        before, to, behind, words = found.groups()
        if to.startswith(("#", "http:", "https:", "mailto:", "data:")):
            return found[0]
        there = address(to)
        return f'<a{before} href="{there}"{behind}>{words}</a>' if there else words

    return _ANCHOR.sub(written, text)


def _style(link: str, folder: Path, page: str) -> str:
    """A style sheet in the page's own words, an icon as data; nothing of the other links."""
    kind, to = (_attribute(link, name) for name in ("rel", "href"))
    path = folder / to.partition("?")[0]
    if kind == "icon":
        return f'<link rel="icon" href="{_data(path)}"/>'
    if kind != "stylesheet":
        return ""
    media = _attribute(link, "media")
    return f"<style{f' media={json.dumps(media)}' if media else ''}>{_css(path, page)}</style>"


def _css(path: Path, page: str) -> str:
    """The rules of a style sheet, those that it imports among them, with the pictures and fonts they name."""
    text = _MAP.sub("", path.read_text(encoding="utf-8"))
    text = _IMPORT.sub(lambda found: _css(path.parent / found[1], page), text)
    return _URL.sub(lambda found: f"url({_font(path.parent / found[2], page)})", text)


def _font(path: Path, page: str) -> str:
    """A picture, or the one form of a font that every browser reads, if the page uses it; else nothing."""
    family = re.match(r"fa-(solid|regular|brands)", path.name)
    unused = family is not None and (path.suffix != ".woff2" or f"fa-{family[1]}" not in page)
    return "data:," if unused or not path.is_file() else _data(path)


def _script(found: re.Match[str], folder: Path) -> str:
    attributes, code = found.groups()
    to = _attribute(attributes, "src")
    if _LEFT_OUT.search(to) or "thebe" in code or "thebe" in attributes or "MathJax" in code:
        return ""
    return f"<script>{_inside((folder / to.partition('?')[0]).read_text('utf-8'))}</script>" if to else found[0]


def _inside(code: str) -> str:
    """Code that may stand between the tags of a script."""
    return _MAP.sub("", code).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'\b{name}="([^"]*)"', tag)
    return found[1] if found else ""


def _data(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


@functools.cache
def mathjax() -> str:
    """The renderer of formulas of the book's own extension, as scripts; formulas stay as typed without it."""
    extension = find_spec("sphinx-mathjax-offline")
    if extension is None or extension.origin is None:
        return ""
    # The book's draws with fonts, which are files; this one draws with lines.
    source = Path(extension.origin).parent / "static" / "mathjax" / "tex-svg-full.js"
    settings = {
        "tex": {"inlineMath": [["$", "$"], ["\\(", "\\)"]]},
        "options": {
            "enableMenu": False,
            "ignoreHtmlClass": "tex2jax_ignore|mathjax_ignore",
            "processHtmlClass": "tex2jax_process|mathjax_process|math|output_area",
        },
    }
    return (
        f"<script>window.MathJax={json.dumps(settings)}</script><script>{_inside(source.read_text('utf-8'))}</script>"
    )
