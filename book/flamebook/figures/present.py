"""A figure on the page: light and dark pictures under one number, its files, and a card that says how it came about.

Files go to ``figures/`` under the folder that the environment variable ``FLAMELIB_RUN_FOLDER`` names (the current
folder otherwise).  Every file is made in memory and moved into place whole; running twice gives the same bytes.
"""

import csv
import html
import io
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flamebook.figures.style import DARK, LIGHT, Pen, Theme, look
from flamebook.records import Curves
from flamebook.statements import FAILS, HOLDS, SILENT, AtLeast, AtMost, Finding, found, stand_ins
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError
from flamelib.front.results import rounded

# What a heading says of the numbers below it; the first that is found counts.
SIDES: dict[str, type[AtMost] | type[AtLeast]] = {
    "at least": AtLeast, "lower": AtLeast, "given away": AtLeast,
    "at most": AtMost, "upper": AtMost, "certified": AtMost, "blanket divergence": AtMost,
}  # fmt: skip
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SENTENCES = (
    "The sentences of this page were written for the book's parameters. Tables, figures and checks are those of this "
    "run, and a check that does not hold marks a sentence that is not true of it."
)
BOOK_RUN = "FLAMELIB_BOOK_RUN"  # folder of the book's run, whose curves are drawn behind those of an own run

STYLE = (
    "<style>html:not([data-theme]) .fl-fig .only-dark{display:none}"
    ".fl-fig svg{display:block;max-width:100%;height:auto;margin:0 auto}"
    ".fl-card{font-size:.85em;text-align:left}.fl-card code{overflow-wrap:anywhere;white-space:normal}"
    ".fl-table{overflow-x:auto}.fl-check,.fl-result{color:var(--pst-color-text-base,inherit)}</style>"
)


class Record(Protocol):
    """Anything that can write down its own numbers."""

    def to_csv(self) -> str:
        """The numbers as comma-separated text, header first."""


R = TypeVar("R", bound=Record)
Draw = Callable[[Axes, R, Pen], None]


@dataclass(frozen=True, slots=True)
class Html:
    """A piece of a page, shown as the output of a notebook cell."""

    markup: str
    words: str

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return self.words


class CheckError(RuntimeError):
    """A statement of the page does not hold in an edition of the book."""


def show(
    record: R,
    draw: Draw[R],
    *,
    name: str,
    alt: str,
    size: tuple[float, float] = (6.2, 4.8),
    legend: bool = True,
) -> Html:
    """One figure for the page; writes ``NAME.svg``, ``NAME-dark.svg``, ``NAME.png`` and ``NAME.csv``.

    Parameters
    ----------
    record : Record
        What is drawn; its ``to_csv`` is offered for download, its ``parameters`` are listed on the card.
    draw : callable
        ``draw(ax, record, pen)`` puts the record on axes and computes nothing.
    name : str
        Small letters, digits and hyphens; unique in the run.
    alt : str
        One sentence for those who do not see the picture.
    size : tuple of float
        Width and height in inches.
    legend : bool
        Whether to put the labels that the drawing gave its curves under the axes.

    Raises
    ------
    DomainError
        Where ``name`` or ``alt`` will not do; nothing is written then.
    """
    _named(name, alt)
    picture = _Picture(record, draw, name, size, legend)
    drawn = {"light": picture.svg(LIGHT), "dark": picture.svg(DARK), "png": picture.png()}
    return shown(name, alt, drawn, record.to_csv(), getattr(record, "parameters", {}))


def _named(name: str, alt: str) -> None:
    if not NAME.fullmatch(name):
        raise DomainError(f"name must be small letters, digits and single hyphens, got {name!r}")
    if not alt.strip():
        raise DomainError(f"alt must say in a sentence what figure {name} shows")


def shown(name: str, alt: str, drawn: Mapping[str, Any], numbers: str, parameters: Mapping[str, Any]) -> Html:
    """A drawn figure on the page: ``drawn`` has its ``light`` and ``dark`` SVG and its ``png``; writes its files."""
    _named(name, alt)
    files = {
        f"{name}.svg": _on_page(drawn["light"], LIGHT).encode(),
        f"{name}-dark.svg": _on_page(drawn["dark"], DARK).encode(),
        f"{name}.png": drawn["png"],
        f"{name}.csv": numbers.encode(),
    }
    _write_figures(files)
    variants = _variant("light", drawn["light"], alt) + _variant("dark", drawn["dark"], alt)
    return Html(f'{STYLE}<div class="fl-fig">{variants}{_card(parameters, files)}</div>', f"figure {name}: {alt}")


def record_result(name: str, value: Any) -> Html:
    """Add a number or a word to ``results.json`` of the run and show it.

    Infinities and NaN are written as the words ``inf``, ``-inf`` and ``nan``, which JSON lacks.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, int | float | str):
        raise DomainError(f"value of {name} must be a number or a word, got {value!r}")
    stored = str(float(plain)) if isinstance(plain, float) and not math.isfinite(plain) else plain
    path = run_folder() / "results.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[name] = float(stored) if isinstance(stored, float) else stored
    _replace(path, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode())
    words = f"{name} = {pretty(plain)}"
    markup = f'<p class="fl-result"><code>{html.escape(name)}</code> = {html.escape(pretty(plain))}</p>'
    return Html(STYLE + markup, words)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Html:
    """A small table of values; it scrolls by itself where the page is narrow.

    Real numbers of a column whose heading says that they are bounds (:data:`SIDES`) are rounded to their safe side.

    >>> table(["n_users", "epsilon", "at least"], [(1000, 0.123456789, 0.123456789)])
    n_users epsilon at least
    1,000 0.1235 0.1234
    """
    sides = [next((side for word, side in SIDES.items() if word in heading), None) for heading in header]
    cells = [[pretty(_bound(cell, side)) for cell, side in zip_longest(row, sides[: len(row)])] for row in rows]
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
    grid = f'<table class="table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    words = "\n".join(" ".join(row) for row in [list(header), *cells])
    return Html(f'{STYLE}<div class="fl-table">{grid}</div>', words)


Condition = Finding | bool | np.bool_ | None


def check(condition: Condition, sentence: str) -> Html:
    """Show whether a sentence holds for this run.

    >>> check(1 < 2, "one is less than two")
    holds: one is less than two
    """
    return checks((condition, sentence))


def checks(*statements: tuple[Condition, str]) -> Html:
    """Whether sentences of the page hold for this run, as a list; ``statements.json`` of the run keeps them.

    Each sentence holds in the editions of the book: a build of one stops where it does not
    (:class:`CheckError`).  A run with values of one's own shows it with the numbers, beside the book's verdict.
    Where another data set stands in for one that the run lacks, there is no verdict, in a build neither.

    >>> from flamebook.statements import compared
    >>> checks((compared(0.84, ">", 1.0), "the claim exceeds the lower bound"))
    does not hold here: the claim exceeds the lower bound (0.84 against 1; it holds in the book)
    """
    lacking = "; ".join(stand_ins().values())
    told = [(_Unjudged(None, lacking) if lacking else found(condition), sentence) for condition, sentence in statements]
    edition = os.environ.get("FLAMELIB_EDITION", "")
    wrong = [_told(*one) for one in told if one[0].holds is not True and not lacking]
    if edition and wrong:
        raise CheckError(f"edition {edition}: {'; '.join(wrong)}")
    if "FLAMELIB_RUN_FOLDER" in os.environ:
        _append("statements.json", [{"sentence": words, "verdict": one.verdict} for one, words in told])
    lines = "".join(
        f'<p class="fl-check fl-{one.verdict.replace(" ", "-")}">{_MARKS[one.verdict]} {html.escape(text)}</p>'
        for one, text in ((one, _told(one, words) if one.holds is not True else words) for one, words in told)
    )
    return Html(STYLE + lines, "\n".join(_told(*one) for one in told))


def stated(finding: Finding, sentence: str) -> Html:
    """A sentence of the page with its verdict and the numbers that show it; a build of an edition stops if it fails."""
    said = f"{sentence} ({finding.numbers})" if finding.numbers else sentence
    words = f"{'not judged' if stand_ins() else finding.verdict}: {said}"
    if os.environ.get("FLAMELIB_EDITION") and finding.holds is not True and not stand_ins():
        raise CheckError(f"edition {os.environ['FLAMELIB_EDITION']}: {words}")
    if "FLAMELIB_RUN_FOLDER" in os.environ:
        _append("statements.json", [{"sentence": sentence, "verdict": finding.verdict}])
    kind = finding.verdict.replace(" ", "-")
    return Html(f'{STYLE}<p class="fl-check fl-{kind}">{_MARKS[finding.verdict]} {html.escape(said)}</p>', words)


_MARKS = {HOLDS: "\N{CHECK MARK}", FAILS: "\N{BALLOT X}", SILENT: "\N{EN DASH}"}


class _Unjudged(Finding):
    """No verdict, for the data are not those that the sentence is about."""


def _told(finding: Finding, sentence: str) -> str:
    if isinstance(finding, _Unjudged):
        return f"not judged: {sentence} ({finding.numbers})"
    if finding.holds:
        return f"{HOLDS}: {sentence}"
    words = "does not hold here" if finding.holds is False else "says nothing here"
    return f"{words}: {sentence} ({finding.numbers}{'; ' if finding.numbers else ''}it holds in the book)"


def tell(**texts: str) -> None:
    """Words for the page's own text: ``@name@`` in a text, heading or caption of the notebook becomes them.

    They are kept in ``texts.json`` of the run; unlike results they are not shown where they are told.  Where another
    data set stands in for one that the run lacks, a verdict is none.
    """
    for name, text in texts.items():
        if not isinstance(text, str):
            raise DomainError(f"{name} must be a text, got {text!r}")
    if stand_ins():
        texts = {name: UNJUDGED if "verdict" in name else text for name, text in texts.items()}
    path = run_folder() / "texts.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    _replace(path, (json.dumps(known | texts, indent=1, sort_keys=True) + "\n").encode())


UNJUDGED = "not judged without the data"


def _append(name: str, entries: list[Any]) -> None:
    path = run_folder() / name
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    _replace(path, (json.dumps([*known, *entries], indent=1) + "\n").encode())


def note(sentence: str) -> Html:
    """A sentence that the reader should see, such as which data set was really used."""
    return Html(f'{STYLE}<p class="fl-result">{html.escape(sentence)}</p>', sentence)


def of_side(value: Any, name: str) -> Any:
    """A number as the bound that its name says it is."""
    return _bound(value, next((side for word, side in SIDES.items() if word in name), None))


def _bound(value: Any, side: type[AtMost] | type[AtLeast] | None) -> Any:
    plain = isinstance(value, float | np.floating) and not isinstance(value, AtMost | AtLeast)
    return side(value) if side and plain else value


def pretty(value: Any) -> str:
    """Four significant digits for real numbers that need them, thousands apart for whole ones, words as they are.

    Bounds are rounded to their safe side.

    >>> [pretty(x) for x in (697932, 0.000123456, 0.99999999, 0.5, float("inf"), "exact")]
    ['697,932', '0.0001235', '1.000', '0.5', 'inf', 'exact']
    >>> pretty(AtMost(0.000123412)), pretty(AtLeast(0.000123456))
    ('0.0001235', '0.0001234')
    """
    if isinstance(value, AtMost | AtLeast):
        return rounded(float(value), up=isinstance(value, AtMost))
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if not isinstance(value, float | np.floating):
        return str(value)
    short = f"{float(value):.3g}"
    return short if float(short) == value or not math.isfinite(value) else f"{float(value):#.4g}".rstrip(".")


def run_folder() -> Path:
    """Folder of this run's output; the current folder outside a run."""
    return Path(os.environ.get("FLAMELIB_RUN_FOLDER", "."))


@dataclass(frozen=True, slots=True)
class _Picture(Generic[R]):
    record: R
    draw: Draw[R]
    name: str
    size: tuple[float, float]
    legend: bool

    def svg(self, theme: Theme) -> str:
        """Inline SVG without a date; its ids carry the figure's name, for pages hold many figures."""
        text = self._render(theme, "svg", metadata={"Date": None}).decode()
        prefix = f"{self.name}-{theme.name}-"
        text = re.sub(r'\bid="', f'id="{prefix}', text[text.index("<svg") :])
        return re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}", text).strip()

    def png(self) -> bytes:
        return self._render(LIGHT, "png", metadata={"Software": None}, facecolor=LIGHT.page, dpi=200)

    def _render(self, theme: Theme, form: str, **options: Any) -> bytes:
        content = io.BytesIO()
        with look(theme, f"{self.name}-{theme.name}") as pen:
            figure = Figure(figsize=self.size, layout="constrained")
            ax = figure.add_subplot()
            self.draw(ax, self.record, pen)
            _draw_book(ax, self.record, self.name, pen)
            handles, labels = ax.get_legend_handles_labels()
            if self.legend and handles:
                figure.legend(handles, labels, loc="outside lower center", ncols=columns_of(labels, self.size[0]))
            figure.savefig(content, format=form, **options)
        return content.getvalue()


def _draw_book(ax: Axes, record: Record, name: str, pen: Pen) -> None:
    """Behind the curves of an own run those of the book's run, thin, where both are over the same axis and differ."""
    book = _curves_of_the_book(record, name)
    if book is None or not isinstance(record, Curves):
        return
    drawn = [(line.get_xydata(), line.get_color()) for line in ax.get_lines()]
    style: dict[str, Any] = {"linestyle": (0, (3, 2)), "linewidth": 1.1, "zorder": 1}
    shown = False
    for curve, values in record.curves.items():
        points = np.column_stack([record.x, np.where(np.isfinite(values), values, np.nan)])
        # Only what is drawn as it stands can be compared: some drawings scale their curves.
        colours = [colour for line, colour in drawn if np.array_equal(points, line, equal_nan=True)]
        if colours:
            ax.plot(*book[curve], color=colours[0], alpha=0.6, **style)
            shown = True
    if shown:
        ax.plot([], [], color=pen.colour("grey"), label="the book's", **style)


def _curves_of_the_book(record: Record, name: str) -> dict[str, tuple[Reals, Reals]] | None:
    """Points of the curves of the book's figure of this name; ``None`` unless its columns are ours and it differs."""
    path = Path(os.environ.get(BOOK_RUN, "")) / "figures" / f"{name}.csv"
    if BOOK_RUN not in os.environ or not isinstance(record, Curves) or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    if text == record.to_csv() or header != [record.x_name, *record.curves]:
        return None
    try:
        x, *columns = np.array(rows, dtype=float).T
    except ValueError:
        return None
    return {curve: (x, np.where(np.isfinite(y), y, np.nan)) for curve, y in zip(record.curves, columns, strict=True)}


def columns_of(labels: Sequence[str], inches: float) -> int:
    """As many columns of a legend as fit below a figure of this width."""
    widest = max(map(len, labels))
    return max(1, min(len(labels), 3, int(12 * min(inches, 6.2)) // (widest + 9)))


def _on_page(svg: str, theme: Theme) -> str:
    return svg.replace("<svg ", f'<svg style="background:{theme.page}" ', 1) + "\n"


def _variant(theme: str, svg: str, alt: str) -> str:
    return f'<div class="only-{theme}" role="img" aria-label="{html.escape(alt)}">{svg}</div>'


def _card(own: Mapping[str, Any], files: Iterable[str]) -> str:
    run = os.environ.get("FLAMELIB_RUN", "")
    base = f"../files/{run}/figures" if run else "figures"
    links = " \N{MIDDLE DOT} ".join(f'<a href="{base}/{file}" download>{_kind(file)}</a>' for file in files)
    lines = [f"<p>Files: {links}</p>"]
    if own:
        lines.append(f"<p>Computed from: {_listed(own)}</p>")
    if run:
        lines.append(f"<p>Remake it: <code>{html.escape(_command(run))}</code></p>")
        lines += [f"<p>Made without the data: {html.escape(one)}.</p>" for one in stand_ins().values()]
    return f'<details class="fl-card"><summary>Data and provenance</summary>{"".join(lines)}</details>'


def _kind(file: str) -> str:
    kind = file.rpartition(".")[2].upper()
    return f"{kind} (dark)" if file.endswith("-dark.svg") else kind


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"<code>{html.escape(f'{name}={_argument(value)}')}</code>" for name, value in values.items())


def _command(run: str) -> str:
    """The command line of this run, every parameter spelt out."""
    given = json.loads(os.environ.get("FLAMELIB_RUN_PARAMETERS", "{}"))
    return " ".join([f"flamelib run {run}", *(f"-p {name}={_argument(value)}" for name, value in given.items())])


def _argument(value: Any) -> str:
    plain = value.item() if isinstance(value, np.generic) else value
    return f"{plain:g}" if isinstance(plain, float) and float(f"{plain:g}") == plain else str(plain)


def _write_figures(files: Mapping[str, bytes]) -> None:
    folder = run_folder() / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        _replace(folder / file, content)


def _replace(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)
