"""The page "How far the numbers move": every headline of a notebook with a seed, at five seeds, from the record.

A headline is what a notebook records by :func:`flamebook.figures.present.record_result`.
"""

import csv
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from flamebook.figures.present import pretty
from flamebook.places import RESULTS

TABLE = RESULTS / "spread.csv"
STEP, RUNS = 1000, 5
COLUMNS = ("value", *(f"value_{STEP * k}" for k in range(1, RUNS)))
HEADER = ("notebook", "headline", "drawn", "seed", *COLUMNS, "mean", "std", "range", "relative")
REACH = 0.25
WRITTEN = {
    "ss topk": "SS-Topk", "ss double": "SS-Double", "ss simple": "SS-Simple", "flame": "FLAME",
    "checkin": "check-in", "check in": "check-in", "duchi": "Duchi et al.", "privunit2": "PrivUnit2",
}  # fmt: skip

_HEAD = f"""\
# How far the numbers move

A page that draws random numbers draws them from one seed, and another seed gives other numbers.
Every notebook that has a seed was therefore run {RUNS} times, at the sizes of the pages: with its own seed, and with
those {STEP}, {2 * STEP}, {3 * STEP} and {4 * STEP} above it, which share no random number and no hash function with it.
Here is what became of the numbers that the notebooks record: the value with the page's own seed; the mean of all
{RUNS} with their standard deviation, which is repeated in percent of the mean; the smallest and the largest. The last
column shows the {RUNS} values, the page's own filled, on a line from {REACH:.0%} below the mean to {REACH:.0%} above
it; what lies beyond is drawn at its end. Percents and lines are left out where the spread exceeds the mean.

Every check that a page makes of itself (the lines with a tick) held at every one of these seeds, or its notebook
would not be in this record. Some compare with a 95 % confidence interval: one seed in twenty, or fewer, would fail
them with nothing wrong. `flamelib record spread` makes it anew, the values are in
`data/results/spread.csv`.
"""

_ALWAYS = """\
## What comes out the same

The seed goes into what these are computed from, and they were equal at all seeds: an attack that never fails, a count
that stays at 0, or a number that takes nothing random from the object it is read from.
"""

_NEVER = """\
## What no seed can move

No random number goes into these: they follow from formulas and exact counts, or are read from recorded runs, which
have seeds and spreads of their own. They were equal at all seeds, as they must be.
"""


@dataclass(frozen=True, slots=True)
class Headline:
    """One recorded number or word of a notebook at several seeds, the page's own first.

    Attributes
    ----------
    drawn : bool
        Whether the seed goes into what it is computed from.

    Examples
    --------
    >>> one = Headline("page", "share", True, 1, (0.5, 0.4, 0.6))
    >>> one.moves, one.mean, round(one.std, 3), round(one.range, 3), f"{one.relative:.0%}"
    (True, 0.5, 0.1, 0.2, '20%')
    """

    notebook: str
    name: str
    drawn: bool
    seed: int
    values: tuple[int | float | str, ...]

    @property
    def moves(self) -> bool:
        """Whether some value differs from the first, by more than the last digits of a floating-point number."""
        if self.numbers:
            return self.range > 1e-12 * max(abs(value) for value in self.numbers)
        return len(set(self.values)) > 1

    @property
    def numbers(self) -> list[int | float]:
        """The values where all are finite numbers; none otherwise."""
        found = [value for value in self.values if not isinstance(value, str)]
        return found if len(found) == len(self.values) else []

    @property
    def mean(self) -> float:
        """Mean of the values; NaN for words, as the following."""
        return statistics.fmean(self.numbers) if self.numbers else math.nan

    @property
    def std(self) -> float:
        """Sample standard deviation."""
        return statistics.stdev(self.numbers) if self.numbers else math.nan

    @property
    def range(self) -> float:
        """Largest less smallest."""
        return max(self.numbers) - min(self.numbers) if self.numbers else math.nan

    @property
    def relative(self) -> float:
        """Standard deviation over the size of the mean; NaN where the mean is 0."""
        return self.std / abs(self.mean) if self.mean else math.nan

    def row(self) -> tuple[object, ...]:
        """For the record, as its header says; what is NaN is left out."""
        measured = (self.mean, self.std, self.range, self.relative)
        whose = (self.notebook, self.name, "yes" if self.drawn else "no", self.seed)
        return (*whose, *self.values, *("" if math.isnan(value) else value for value in measured))


def recorded(table: Path = TABLE) -> list[Headline]:
    """The record; empty where there is none."""
    if not table.is_file():
        return []
    with table.open(encoding="utf-8", newline="") as file:
        return [_read(row) for row in csv.DictReader(file)]


def _read(row: Mapping[str, str]) -> Headline:
    values = tuple(_value(row[column]) for column in COLUMNS)
    return Headline(row["notebook"], row["headline"], row["drawn"] == "yes", int(row["seed"]), values)


def _value(text: str) -> int | float | str:
    """A number as it was written, a word otherwise.

    >>> _value("3"), _value("0.5"), _value("inf"), _value("4 of 5")
    (3, 0.5, 'inf', '4 of 5')
    """
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text) if math.isfinite(float(text)) else text
    except ValueError:
        return text


def page(headlines: Iterable[Headline]) -> str:
    """The page in MyST: what moves, notebook by notebook, then what does not."""
    known = list(headlines)
    moving = [one for one in known if one.moves]
    parts = [_HEAD, *(_moving(name, rows) for name, rows in groupby(moving, attrgetter("notebook")))]
    still = [(text, [one for one in known if not one.moves and one.drawn is drawn]) for text, drawn in _STILL]
    return "\n".join([*parts, *("\n".join([text, _still(rows)]) for text, rows in still if rows)])


_STILL = ((_ALWAYS, True), (_NEVER, False))


# --- the tables ----------------------------------------------------------------------------------------------------


def _moving(notebook: str, headlines: Iterable[Headline]) -> str:
    """The headlines of one notebook that move."""
    columns = ("number", "on the page", "mean, standard deviation", "from", "to", "values")
    head = [f"| {' | '.join(columns)} |", "|---|--:|--:|--:|--:|---|"]
    rows = [f"| {_words(one.name)} | {' | '.join(_cells(one))} |" for one in headlines]
    return "\n".join([f"## {{doc}}`{_words(notebook)} <../notebooks/{notebook}>`", "", *head, *rows, ""])


def _words(name: str) -> str:
    """A name in code as words, with proper names as they are written.

    >>> _words("certified_ss_topk"), _words("checkin_audit"), _words("measured_slope")
    ('certified SS-Topk', 'check-in audit', 'measured slope')
    """
    words = f" {name.replace('_', ' ')} "
    for plain, written in WRITTEN.items():
        words = words.replace(f" {plain} ", f" {written} ")
    return words.strip()


def _cells(one: Headline) -> list[str]:
    if not one.numbers:
        return [str(one.values[0]), "; ".join(sorted({str(value) for value in one.values})), *3 * [""]]
    value, mean, std, low, high = (
        shown(number, one.mean, one.std)
        for number in (one.numbers[0], one.mean, one.std, min(one.numbers), max(one.numbers))
    )
    relative = f" ({100 * one.relative:.2g}%)" if one.relative < 1 else ""
    return [value, f"{mean}\u00a0±\u00a0{std}{relative}", low, high, _strip(one)]


def shown(number: float, mean: float, std: float) -> str:
    """A number as far as its spread lets digits count: two digits of the standard deviation, one power of ten for all.

    >>> shown(93.14159, 93.0, 0.13), shown(4.2291e-4, 4.2e-4, 2.1e-6), shown(1234.5, 1200.0, 50.0), shown(3, 3.2, 0.8)
    ('93.14', '4.229e−4', '1,234', '3')
    """
    if isinstance(number, int):
        return f"{number:,}"
    power = math.floor(math.log10(abs(mean))) if mean and not 1e-3 <= abs(mean) < 1e6 else 0
    digits = max(0, 1 - math.floor(math.log10(std / 10.0**power)))
    text = f"{number / 10.0**power:,.{digits}f}" + (f"e{power}" if power else "")
    return text.replace("-", "\N{MINUS SIGN}")


def _strip(one: Headline) -> str:
    """The values on a line from the mean less to the mean plus a share of itself."""
    if not one.relative < 1:
        return ""
    places = [45 + 40 * min(1.0, max(-1.0, (x / one.mean - 1) / REACH)) for x in one.numbers]
    marks = [f'<circle cx="{x:.1f}" cy="8" r="4"{_FILLED if k == 0 else ""}/>' for k, x in enumerate(places)]
    return (
        '<svg width="90" height="16" viewBox="0 0 90 16" fill="none" stroke="currentColor" aria-hidden="true">'
        f'<path d="M2 8H88M45 2V14" stroke-opacity="0.4"/>{"".join(reversed(marks))}</svg>'
    )


_FILLED = ' fill="currentColor"'


def _still(headlines: Iterable[Headline]) -> str:
    """The headlines that do not move, one folded table a notebook."""
    return "\n".join(_folded(name, list(rows)) for name, rows in groupby(headlines, attrgetter("notebook")))


def _folded(notebook: str, headlines: list[Headline]) -> str:
    rows = [f"| {_words(one.name)} | {pretty(one.values[0])} |" for one in headlines]
    head = ["| number | value |", "|---|--:|"]
    return "\n".join([f":::{{dropdown}} {_words(notebook)}: {len(rows)}", "", *head, *rows, ":::", ""])
