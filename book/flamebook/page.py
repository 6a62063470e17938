"""What a notebook of this book uses besides flamelib, numpy, pandas and plain matplotlib.

``written_for(n_users=1000)``
    a banner where a run has other parameters than the sentences were written for
``holds("a sentence", condition, ratio=(1.018, "1.02"))``
    a check beside a sentence: whether it is true of this run, and the numbers that show it
``result(epsilon=0.09)``
    numbers by name, for other pages and for sweeps
``table(frame)``
    a data frame whose bounds are rounded to their safe side
``figure(fig, name=..., alt=..., data=...)``
    a finished figure, for light and dark pages, with files to download
``recorded("participation_learning", "participation-small.csv")``
    the numbers behind a figure of the run at the sizes of the papers

Importing this gives matplotlib the look of the book; ``LOOK`` has the style of every bound, ``BLUE`` to ``PAGE`` its
colours.  Outside a run of the book's own commands, files go to ``figures/`` beside the notebook.
"""

import html
import io
import json
import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython import get_ipython
from IPython.display import display
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from pandas.api.types import is_numeric_dtype

from flamebook.figures.style import DARK, LIGHT, SETTINGS
from flamebook.places import RESULTS
from flamebook.records import LOOKS, columns_csv
from flamebook.statements import BOOK_RUN, FAILS, HOLDS, SENTENCES, SILENT, argument, pretty, stand_ins
from flamelib.core.vocabulary import DomainError

_OWN: Any = {"axes.axisbelow": True, "figure.constrained_layout.use": True, "figure.figsize": (6.2, 4.4)}
mpl.rcParams.update(SETTINGS | _OWN)

BLUE, VERMILLION, GREEN, PURPLE, SKY, OCHRE, GREY, BLACK = LIGHT.hues.values()
INK, FAINT, PAGE = LIGHT.ink, LIGHT.faint, LIGHT.page
LOOK: dict[str, dict[str, Any]] = {
    name: {"color": LIGHT.hues[look.hue], "linestyle": look.dash, "linewidth": look.width, "label": look.label,
           "marker": look.marker, "markersize": 5.5}
    for name, look in LOOKS.items()
}  # fmt: skip

_DARK = {getattr(LIGHT, part): getattr(DARK, part) for part in ("ink", "faint", "page")} | {
    light: DARK.hues[hue] for hue, light in LIGHT.hues.items()
}
_HUE = re.compile("|".join(map(re.escape, _DARK)))
_STYLE = (
    "<style>html:not([data-theme]) .fl-fig .only-dark{display:none}"
    ".fl-fig svg{display:block;max-width:100%;height:auto;margin:0 auto}"
    ".fl-card{font-size:.85em;text-align:left}.fl-card code{overflow-wrap:anywhere;white-space:normal}"
    ".fl-table{overflow-x:auto}.fl-check,.fl-result{color:var(--pst-color-text-base,inherit)}</style>"
)
_MARKS = {HOLDS: "\N{CHECK MARK}", FAILS: "\N{BALLOT X}", SILENT: "\N{EN DASH}"}
_NUMBERS = object()  # no condition but that numbers are as the prose writes them
_others: list[str] = []  # parameters that differ from those that the sentences were written for


@dataclass(frozen=True, slots=True)
class Html:
    """A piece of a page, shown as the output of a notebook cell."""

    markup: str
    words: str

    def _repr_html_(self) -> str:
        return _STYLE + self.markup

    def __repr__(self) -> str:
        return self.words


class CheckError(RuntimeError):
    """A statement of the page does not hold in an edition of the book."""


def written_for(**values: Any) -> None:
    """Name the parameters that the sentences depend on, with the values that they were written for.

    Where this run has others, a banner says so; the page of an own run says it in its own block.  Parameters of
    precision, such as points, repeats and the seed, are left out.
    """
    now: Any = get_ipython().user_ns
    _others[:] = [
        f"{name} {pretty(now[name])} instead of {pretty(value)}"
        for name, value in values.items()
        if not (np.isclose(now[name], value, rtol=1e-9, atol=0) if isinstance(value, float) else now[name] == value)
    ]
    if _others and "FLAMELIB_RUN" not in os.environ:
        _display("fl-result", f"{SENTENCES} Here: {', '.join(_others)}.")


def holds(sentence: str, condition: Any = _NUMBERS, **numbers: Any) -> None:
    """Show whether a sentence of the page is true of this run, with the numbers that show it.

    In an edition of the book every sentence holds, and a build stops at the first that does not.

    Parameters
    ----------
    sentence : str
        What is claimed, as a sentence that is understood where it stands.
    condition : bool or array of bool, or None
        True, everywhere, where the sentence is true; ``None`` where it says nothing.  Left out, the numbers decide.
    **numbers
        Numbers by name: a name with ``lower`` or ``at_least`` is rounded down, one with ``upper``, ``certified`` or
        ``at_most`` up.  A pair ``factor=(10.07, "10")`` is a number and how the prose writes it; they have to agree
        within one unit of its last digit.  A run with other parameters shows both, and its condition decides.

    Examples
    --------
    >>> holds("One is less than two.", 1 < 2, ratio=(0.5, "0.5"))
    holds: One is less than two. (ratio 0.5)
    >>> holds("One is about 1.2 times as large.", ratio=(1.02, "1.2"))
    does not hold: One is about 1.2 times as large. (ratio 1.02, in the text 1.2)
    """
    alone, told = condition is _NUMBERS, list[str]()
    verdict = None if condition is None else alone or bool(np.all(condition))
    for name, given in numbers.items():
        value, written = given if isinstance(given, tuple) else (given, None)
        agrees = written is None or _as_written(float(value), written)
        words = name.replace("_", " ")
        told.append(f"{words} {_short(value, words)}" + (f", in the text {written}" * (not agrees)))
        verdict = verdict and (agrees or bool(_others and not alone))
    lacking = "; ".join(stand_ins().values())
    said = HOLDS if verdict else SILENT if verdict is None else FAILS
    if lacking:
        said, told = SILENT, [lacking]
    shown = f"{sentence} ({'; '.join(told)})" if told else sentence
    words = f"{'not judged' if lacking else said}: {shown}"
    edition = os.environ.get("FLAMELIB_EDITION")
    if edition and said != HOLDS and not lacking:
        raise CheckError(f"edition {edition}: {words}")
    if "FLAMELIB_RUN_FOLDER" in os.environ:
        path = _run_folder() / "statements.json"
        known = [*_read(path, []), {"sentence": sentence, "verdict": said}]
        _replace(path, (json.dumps(known, indent=1) + "\n").encode())
    _display(f"fl-check fl-{said.replace(' ', '-')}", f"{_MARKS[said]} {shown}", words)


def _as_written(value: float, written: str) -> bool:
    mantissa, _, exponent = written.replace(",", "").removesuffix("%").strip().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(value - float(mantissa) * 10.0 ** int(exponent or 0)) <= unit * (1 + 1e-9)


def result(**values: Any) -> None:
    """Numbers or words by name, shown, and kept in ``results.json`` of the run.

    Infinities and NaN are written as the words ``inf``, ``-inf`` and ``nan``, which JSON lacks.
    """
    path = _run_folder() / "results.json"
    for name, value in values.items():
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, int | float | str):
            raise DomainError(f"value of {name} must be a number or a word, got {value!r}")
        stored = str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain
        _replace(path, (json.dumps(_read(path, {}) | {name: stored}, indent=1, sort_keys=True) + "\n").encode())
        markup = f'<p class="fl-result"><code>{html.escape(name)}</code> = {html.escape(pretty(plain))}</p>'
        display(Html(markup, f"{name} = {pretty(plain)}"))  # type: ignore[no-untyped-call]


def table(frame: pd.DataFrame) -> Html:
    """A frame as a table; what its column or its row calls a bound is rounded to its safe side.

    Names with ``at least`` or ``lower`` are rounded down, with ``at most`` or ``certified`` up.  The names of the rows
    are shown unless they are numbers in order.

    >>> table(pd.DataFrame({"certified": [0.123451], "lower": [0.123459]}, index=["SS-Simple"]))
    certified lower
    SS-Simple 0.1235 0.1234
    """
    named = not isinstance(frame.index, pd.RangeIndex)
    header = [*([str(frame.index.name or "")] if named else []), *map(str, frame)]
    rows = [
        [_cell(row, header[0])] * named
        + [_cell(value, f"{row} {name}") for name, value in zip(frame, values, strict=True)]
        for row, values in zip(frame.index, frame.to_numpy(dtype=object), strict=True)
    ]
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    grid = f'<table class="table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return Html(f'<div class="fl-table">{grid}</div>', "\n".join(" ".join(row) for row in [header, *rows]))


def figure(fig: Figure, *, name: str, alt: str, data: Mapping[str, Any] | pd.DataFrame, legend: bool = True) -> Html:
    """A finished figure for the page; writes ``NAME.svg``, ``NAME-dark.svg``, ``NAME.png`` and ``NAME.csv``.

    Parameters
    ----------
    fig : Figure
        Drawn in the colours of this module, which become those of a dark page there.
    name : str
        Small letters, digits and hyphens; unique in the run.
    alt : str
        One sentence for those who do not see the picture.
    data : mapping from column to values, or frame
        The numbers that are drawn, of one length; offered for download.
    legend : bool
        Whether to put the labels of the curves under the axes.
    """
    if not _NAME.fullmatch(name):
        raise DomainError(f"name must be small letters, digits and single hyphens, got {name!r}")
    if not alt.strip():
        raise DomainError(f"alt must say in a sentence what figure {name} shows")
    columns = {str(column): data[column] for column in data}
    for ax in fig.axes:
        _name_decades(ax)
    _draw_book(fig.axes[0], columns, name)
    handles, labels = fig.axes[0].get_legend_handles_labels()
    if legend and handles and not fig.legends:
        fig.legend(handles, labels, loc="outside lower center", ncols=_columns_of(labels, float(fig.get_figwidth())))
    light, png = _svg(fig, name), _png(fig)
    plt.close(fig)
    dark = _HUE.sub(lambda found: _DARK[found[0]], light.replace(f"{name}-light-", f"{name}-dark-"))
    files = {
        f"{name}.svg": _on_page(light, LIGHT.page).encode(),
        f"{name}-dark.svg": _on_page(dark, DARK.page).encode(),
        f"{name}.png": png,
        f"{name}.csv": columns_csv(columns).encode(),
    }
    folder = _run_folder() / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        _replace(folder / file, content)
    pictures = "".join(
        f'<div class="only-{theme}" role="img" aria-label="{html.escape(alt)}">{svg}</div>'
        for theme, svg in (("light", light), ("dark", dark))
    )
    return Html(f'<div class="fl-fig">{pictures}{_card(files)}</div>', f"figure {name}: {alt}")


_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def _name_decades(ax: Axes) -> None:
    """Plain numbers at 1, 2, 5 on a logarithmic axis that spans less than two decades, powers of ten elsewhere."""
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "log":
            axis.set_minor_formatter(NullFormatter())
            if high < 100 * low:
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _columns_of(labels: Sequence[str], inches: float) -> int:
    """As many columns of a legend as fit below a figure of this width."""
    widest = max(map(len, labels))
    return max(1, min(len(labels), 3, int(12 * min(inches, 6.2)) // (widest + 9)))


def _on_page(svg: str, page: str) -> str:
    return svg.replace("<svg ", f'<svg style="background:{page}" ', 1) + "\n"


def _card(files: Iterable[str]) -> str:
    """Links to the files, and the command that makes them again, every parameter spelt out."""
    run = os.environ.get("FLAMELIB_RUN", "")
    base = f"../files/{run}/figures" if run else "figures"
    links = " \N{MIDDLE DOT} ".join(f'<a href="{base}/{file}" download>{_kind(file)}</a>' for file in files)
    lines = [f"<p>Files: {links}</p>"]
    if run:
        given = json.loads(os.environ.get("FLAMELIB_RUN_PARAMETERS", "{}"))
        words = [f"-p {shlex.quote(f'{name}={argument(value)}')}" for name, value in given.items()]
        command = " ".join([f"flamelib run {run}", *words])
        lines.append(f"<p>Remake it: <code>{html.escape(command)}</code></p>")
        lines += [f"<p>Made without the data: {html.escape(one)}.</p>" for one in stand_ins().values()]
    return f'<details class="fl-card"><summary>Data and provenance</summary>{"".join(lines)}</details>'


def _kind(file: str) -> str:
    kind = file.rpartition(".")[2].upper()
    return f"{kind} (dark)" if file.endswith("-dark.svg") else kind


def _svg(fig: Figure, name: str) -> str:
    content = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": f"{name}-light"}):  # equal inputs give equal files
        fig.savefig(content, format="svg", metadata={"Date": None}, facecolor="none")
    text = content.getvalue()
    text = re.sub(r'\bid="', f'id="{name}-light-', text[text.index("<svg") :])
    return re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-light-", text).strip()


def _png(fig: Figure) -> bytes:
    content = io.BytesIO()
    fig.savefig(content, format="png", metadata={"Software": None}, facecolor=PAGE, dpi=200)
    return content.getvalue()


def recorded(notebook: str, file: str) -> pd.DataFrame:
    """The numbers behind a figure of a notebook's run at the sizes of the papers, as they are kept with the book.

    ``make record`` runs the notebook with the parameters of ``book/parameters/paper.yml`` and keeps its numbers.
    """
    return pd.read_csv(RESULTS / notebook / file)


def _draw_book(ax: Axes, columns: Mapping[str, Any], name: str) -> None:
    """Behind the curves of an own run those of the book's run, thin, where both have the same columns and differ."""
    path = Path(os.environ.get(BOOK_RUN, "")) / "figures" / f"{name}.csv"
    if BOOK_RUN not in os.environ or not path.is_file() or path.read_text() == columns_csv(columns):
        return
    book, own = pd.read_csv(path), pd.read_csv(io.StringIO(columns_csv(columns)))
    if _kinds(book) != _kinds(own):
        return
    style: dict[str, Any] = {"linestyle": (0, (3, 2)), "linewidth": 1.1, "zorder": 1}
    drawn = False
    for line in ax.get_lines():
        x, y = (_column(own, values) for values in line.get_data())
        # An axis of names has the names of this run.
        if x and y and (_kinds(own)[x] or book[x].equals(own[x])):
            ax.plot(book[x], book[y], color=line.get_color(), alpha=0.6, **style)
            drawn = True
    if drawn:
        ax.plot([], [], color=GREY, label="the book's", **style)


def _kinds(frame: pd.DataFrame) -> dict[str, bool]:
    """Whether a column holds numbers, by its name."""
    return {str(name): is_numeric_dtype(frame[name]) for name in frame}


def _column(frame: pd.DataFrame, values: Any) -> str:
    """The column that holds these values, numbers or names; empty where none does."""
    seen = np.asarray(values)
    numbers = is_numeric_dtype(seen.dtype)
    alike = [name for name, kind in _kinds(frame).items() if kind == numbers]
    return next((name for name in alike if np.array_equal(frame[name], seen, equal_nan=numbers)), "")


def _short(value: Any, name: str) -> str:
    several = isinstance(value, np.ndarray | pd.Series | list)
    return ", ".join(_cell(one, name) for one in np.ravel(value)) if several else _cell(value, name)


def _cell(value: Any, name: str) -> str:
    """A value as what its name says it is."""
    plain = value.item() if isinstance(value, np.generic) else value
    return "" if isinstance(plain, float) and math.isnan(plain) else pretty(plain, name)


def _display(kind: str, text: str, words: str = "") -> None:
    display(Html(f'<p class="{kind}">{html.escape(text)}</p>', words or text))  # type: ignore[no-untyped-call]


def _run_folder() -> Path:
    """Folder of this run's output; the current folder outside a run."""
    return Path(os.environ.get("FLAMELIB_RUN_FOLDER", "."))


def _read(path: Path, empty: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else empty


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)


__all__ = [
    *("BLACK", "BLUE", "FAINT", "GREEN", "GREY", "INK", "LOOK", "OCHRE", "PAGE", "PURPLE", "SKY", "VERMILLION"),
    *("figure", "holds", "recorded", "result", "table", "written_for"),
]
