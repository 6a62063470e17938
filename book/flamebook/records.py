"""Tables as text, and what each bound is called and how it looks in all figures.

Nothing here draws, so that claims, attacks and experiments can share it; the looks stand in ``looks.csv``, the hues in
:mod:`flamebook.figures.style`.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Parameters = Mapping[str, float | str]

Dash = str | tuple[float, tuple[float, ...]]  # of a line: a name, or an offset and the lengths of strokes and gaps


def to_csv(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Comma-separated text with every digit of every number.

    >>> to_csv(["n_users", "epsilon"], [(1000, 0.1)])
    'n_users,epsilon\\n1000,0.1\\n'
    """
    return lines_csv([header, *([_plain(cell) for cell in row] for row in rows)])


def lines_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows as comma-separated text, numbers as Python writes them.

    >>> lines_csv([["n_users", "epsilon"], (10, 1.0)])
    'n_users,epsilon\\n10,1.0\\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def columns_csv(columns: Mapping[str, Iterable[object]]) -> str:
    """The same from columns of one length, by name.

    >>> columns_csv({"n_users": [1000, 2000], "epsilon": [0.1, 0.05]})
    'n_users,epsilon\\n1000,0.1\\n2000,0.05\\n'
    """
    return to_csv(list(columns), zip(*columns.values(), strict=True))


def _plain(cell: object) -> object:
    value = cell.item() if isinstance(cell, np.generic) else cell
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


# --- what bounds and protocols are called ----------------------------------------------------------------------------

SOLID: Dash = "-"
_DASHES: dict[str, Dash] = {
    "solid": SOLID, "dashed": (0, (6, 2)), "dotted": (0, (1.2, 1.6)), "dashdot": (0, (7, 2, 1.5, 2)),
    "dashdotdot": (0, (7, 2, 1.5, 2, 1.5, 2)),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """How one bound or protocol is drawn, and what it is called."""

    label: str
    hue: str
    dash: Dash
    marker: str
    width: float


def _looks() -> dict[str, Look]:
    with Path(__file__).with_name("looks.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    return {
        one["key"]: Look(one["label"], one["hue"], _DASHES[one["dash"]], one["marker"], float(one["width"]))
        for one in found
    }


LOOKS = _looks()
