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

Importing this gives matplotlib the look of the book; ``LOOK`` has the style of every bound, ``BLUE`` to ``PAGE`` its
colours.  Outside a run of the book's own commands, files go to ``figures/`` beside the notebook.
"""

import io
import os
import re
from collections.abc import Mapping
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
from pandas.api.types import is_numeric_dtype

from flamebook.figures import present
from flamebook.figures.curves import name_decades
from flamebook.figures.present import Html, pretty
from flamebook.figures.style import DARK, LIGHT, Pen, settings
from flamebook.records import LOOKS, columns_csv
from flamebook.statements import Finding, stand_ins

_SETTINGS: Any = settings(LIGHT, "page") | {
    "axes.axisbelow": True, "figure.constrained_layout.use": True, "figure.figsize": (6.2, 4.4),
}  # fmt: skip
mpl.rcParams.update(_SETTINGS)

BLUE, VERMILLION, GREEN, PURPLE, SKY, OCHRE, GREY, BLACK = LIGHT.hues.values()
INK, FAINT, PAGE = LIGHT.ink, LIGHT.faint, LIGHT.page
LOOK = {name: Pen(LIGHT).line(name) for name in LOOKS}

_DARK = {getattr(LIGHT, part): getattr(DARK, part) for part in ("ink", "faint", "page")} | {
    light: DARK.hues[hue] for hue, light in LIGHT.hues.items()
}
_NUMBERS = object()  # no condition but that numbers are as the prose writes them
_others: list[str] = []  # parameters that differ from those that the sentences were written for


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
        display(present.note(f"{present.SENTENCES} Here: {', '.join(_others)}."))  # type: ignore[no-untyped-call]


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
    alone, told = condition is _NUMBERS, []
    verdict = None if condition is None else alone or bool(np.all(condition))
    for name, given in numbers.items():
        value, written = given if isinstance(given, tuple) else (given, None)
        agrees = written is None or _as_written(float(value), written)
        told.append(f"{name.replace('_', ' ')} {_short(value, name)}" + (f", in the text {written}" * (not agrees)))
        verdict = verdict and (agrees or bool(_others and not alone))
    lacking = "; ".join(stand_ins().values())
    finding = Finding(None if lacking else verdict, lacking or "; ".join(told))
    display(present.stated(finding, sentence))  # type: ignore[no-untyped-call]


def _as_written(value: float, written: str) -> bool:
    mantissa, _, exponent = written.replace(",", "").removesuffix("%").strip().partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(value - float(mantissa) * 10.0 ** int(exponent or 0)) <= unit * (1 + 1e-9)


def result(**values: Any) -> None:
    """Numbers or words by name, shown, and kept in ``results.json`` of the run."""
    for name, value in values.items():
        display(present.record_result(name, value))  # type: ignore[no-untyped-call]


def table(frame: pd.DataFrame) -> Html:
    """A frame as a table; what its column or its row calls a bound is rounded to its safe side.

    Names with ``at least`` or ``lower`` are rounded down, with ``at most`` or ``certified`` up.  The names of the rows
    are shown unless they are numbers in order.

    >>> table(pd.DataFrame({"certified": [0.123451], "lower": [0.123459]}, index=["SS-Simple"]))
    certified lower
    SS-Simple 0.1235 0.1234
    """
    named = not isinstance(frame.index, pd.RangeIndex)
    rows = [
        [row] * named + [_cell(value, f"{row} {column}") for column, value in zip(frame, values, strict=True)]
        for row, values in zip(frame.index, frame.to_numpy(dtype=object), strict=True)
    ]
    return present.table([*([frame.index.name or ""] if named else []), *map(str, frame)], rows)


def figure(
    fig: Figure, *, name: str, alt: str, data: Mapping[str, Any] | pd.DataFrame, legend: bool = True
) -> Html:
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
    columns = {str(column): data[column] for column in data}
    for ax in fig.axes:
        name_decades(ax)
    _draw_book(fig.axes[0], columns, name)
    handles, labels = fig.axes[0].get_legend_handles_labels()
    if legend and handles and not fig.legends:
        inches = float(fig.get_figwidth())
        fig.legend(handles, labels, loc="outside lower center", ncols=present.columns_of(labels, inches))
    light, png = _svg(fig, name), _png(fig)
    plt.close(fig)
    dark = _HUE.sub(lambda found: _DARK[found[0]], light.replace(f"{name}-light-", f"{name}-dark-"))
    pictures = {"light": light, "dark": dark, "png": png}
    return present.shown(name, alt, pictures, columns_csv(columns), {})


_HUE = re.compile("|".join(map(re.escape, _DARK)))


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


def _draw_book(ax: Axes, columns: Mapping[str, Any], name: str) -> None:
    """Behind the curves of an own run those of the book's run, thin, where both have the same columns and differ."""
    path = Path(os.environ.get(present.BOOK_RUN, "")) / "figures" / f"{name}.csv"
    if present.BOOK_RUN not in os.environ or not path.is_file() or path.read_text() == columns_csv(columns):
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
    if isinstance(value, np.ndarray | pd.Series | list):
        return ", ".join(_short(one, name) for one in np.ravel(value))
    return pretty(_cell(value, name.replace("_", " ")))


def _cell(value: Any, name: str) -> Any:
    """A value as what its name says it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and np.isnan(value):
        return ""
    return present.of_side(value, name)


__all__ = [
    *("BLACK", "BLUE", "FAINT", "GREEN", "GREY", "INK", "LOOK", "OCHRE", "PAGE", "PURPLE", "SKY", "VERMILLION"),
    *("figure", "holds", "result", "table", "written_for"),
]
