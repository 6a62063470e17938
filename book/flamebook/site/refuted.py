r"""The page "What does not hold": stories written by hand, every number in them from the ledger.

``book/refuted.md`` is a template of three kinds of words.  ``@story ROW ROW@`` on a line of its own opens the story of
these rows and becomes its verdict; ``@every VERDICT@`` becomes a list of all rows of that verdict.  ``@ROW@`` is the
row's computed value, ``@ROW stated@`` what it is compared with, ``@ROW n_users@`` one of its inputs; ``[0]`` after the
word takes one number of several.  A page that leaves out a refuted row, or tells one that is not, is refused.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from flamebook.claims.ledger import Judged
from flamebook.site.markup import anchor, comparison, verdict
from flamelib.core.vocabulary import DomainError

STORY = re.compile(r"^@story ([^@]+)@$", re.M)
EVERY = re.compile(r"^@every ([a-z-]+)@$", re.M)
NUMBER = re.compile(r"@([a-z]+:[^\s@\[]+)(?: (\w+))?(?:\[(\d+)\])?@")
_SPEAKERS = {
    "document": "the document's statement",
    "reading": "one reading of an unclear passage, or what a reader may take it to mean",
    "elsewhere": "a statement of later literature",
    "this book": "our own statement",
}

_SMALL, _LARGE = Decimal("1e-4"), Decimal("1e9")
_IN_FULL, _DIGITS = 4, 3

Rows = Mapping[str, Judged]


def page(template: str, judged: Iterable[Judged], link: Callable[[str], str]) -> str:
    """The page in MyST.

    Parameters
    ----------
    template : str
    judged : iterable of Judged
        Every row of the ledger.
    link : callable
        From a page to a link in MyST.

    Raises
    ------
    DomainError
        If a story tells a row that is not refuted, a refuted row is told not once, or a word names nothing.
    """
    rows = {row.claim.id: row for row in judged}
    _complete(template, rows)
    text = STORY.sub(lambda found: _head([rows[name] for name in found[1].split()], link), template)
    text = EVERY.sub(lambda found: _list([row for row in rows.values() if row.verdict == found[1]]), text)
    return NUMBER.sub(lambda found: _set(_number(rows, *found.groups()), _in_formula(text, found.start())), text)


def told(template: str) -> list[str]:
    """The rows of all stories, in their order."""
    return [name for found in STORY.findall(template) for name in found.split()]


def _complete(template: str, rows: Rows) -> None:
    stories = Counter(told(template))
    refuted = {name for name, row in rows.items() if row.verdict == "refuted"}
    faults = {
        "refuted, and without a story": refuted - set(stories),
        "told, and not refuted": set(stories) - refuted,
        "told more than once": {name for name, times in stories.items() if times > 1},
    }
    for what, names in faults.items():
        if names:
            raise DomainError(f"book/refuted.md: {what}: {', '.join(sorted(names))}")


def _head(story: list[Judged], link: Callable[[str], str]) -> str:
    who = "; ".join(dict.fromkeys(_SPEAKERS[row.claim.said_by] for row in story))
    where = "; ".join(dict.fromkeys(f"{row.claim.where}, {link(row.claim.page)}" for row in story))
    return f"{verdict('refuted')}: {who}. {where}. Ledger: {', '.join(_row(row) for row in story)}."


def _row(row: Judged) -> str:
    return f"[`{row.claim.id}`](#{anchor(row.claim.id)})"


def _list(rows: Iterable[Judged]) -> str:
    return "\n".join(_item(row, "" if row.value is None else f"*{comparison(row)}* ") for row in rows)


def _item(row: Judged, compared: str) -> str:
    return f"- **{row.claim.where}.** {row.claim.claim} {compared}{row.claim.evidence} ({_row(row)})"


def _number(rows: Rows, name: str, word: str | None, index: str | None) -> str:
    try:
        found = _found(rows[name], word)
        found = found if index is None else found[int(index)]
    except (KeyError, IndexError, TypeError):
        found = None
    if isinstance(found, bool) or not isinstance(found, int | float) or math.isinf(found):
        raise DomainError(f"book/refuted.md: @{name}{f' {word}' if word else ''}@ must name one number, got {found!r}")
    return written(found) if word else written(found, _side(rows[name], int(index or 0)))


def _found(row: Judged, word: str | None) -> Any:
    if word is None:
        return row.value
    return row.claim.stated if word == "stated" else (row.claim.inputs | row.claim.over)[word]


def _side(row: Judged, index: int) -> str:
    """The rounding that takes a computed value towards what was stated, so that no rounding makes a case."""
    if row.claim.relation == "equal":
        return ROUND_HALF_EVEN
    value, stated = (v[index] if isinstance(v, list) else v for v in (row.value, row.claim.stated))
    return ROUND_FLOOR if value is not None and stated is not None and value > stated else ROUND_CEILING


def written(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    r"""A number for a sentence: up to four digits in full, more to three, powers of ten where they are shorter.

    Whole numbers are written out.

    >>> written(16650), written(20.53), written(0.0420777, ROUND_FLOOR), written(33803526.6, ROUND_FLOOR)
    ('16,650', '20.53', '0.0420', '33,800,000')
    >>> written(1e-06), written(1.59107e-08), written(10**12)
    ('$10^{-6}$', '$1.59\\cdot10^{-8}$', '$10^{12}$')
    """
    number = Decimal(repr(value)).normalize()
    if number == number.to_integral_value() and abs(number) < _LARGE:
        return _grouped(number.to_integral_value())
    if len(number.as_tuple().digits) > _IN_FULL:
        number = number.quantize(Decimal(1).scaleb(number.adjusted() + 1 - _DIGITS), rounding)
    if _SMALL <= abs(number) < _LARGE:
        return _grouped(number)
    mantissa, power = number.scaleb(-number.adjusted()), f"10^{{{number.adjusted()}}}"
    return f"${power}$" if mantissa == 1 else rf"${mantissa:f}\cdot{power}$"


def _grouped(number: Decimal) -> str:
    return f"{number:,f}" if abs(number) >= 10_000 else f"{number:f}"


def _in_formula(text: str, place: int) -> bool:
    return text.count("$", text.rfind("\n", 0, place) + 1, place) % 2 == 1


def _set(number: str, in_formula: bool) -> str:
    return number.strip("$").replace(",", "{,}") if in_formula else number
