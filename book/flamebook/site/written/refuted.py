r"""The page "What does not hold": stories written by hand, every number in them from the ledger.

``book/refuted.md`` is a template of few kinds of words.  ``@story ROW ROW@`` under a heading opens the story of these
rows, its weightiest first, and becomes what is said of them; ``@weights@`` becomes the table of weights, ``@list@`` the
list of all stories, ``@every VERDICT SPEAKER@`` a list of all rows of that verdict that this speaker states.  ``@ROW@``
is the row's computed value, ``@ROW stated@`` what it is compared with, ``@ROW n_users@`` one of its inputs; ``[0]``
after the word takes one number of several.  A page that leaves out a refuted row, tells one that is not, or tells one
in another section than its own, is refused.

A story is a *finding*, and findings are what this page and the front page count.  A story whose formulas only our copy
of a document has lost stands in the section :data:`WAITS` and is counted against nobody.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from itertools import groupby
from typing import Any

from flamebook.claims.ledger import WEIGHTS, Judged
from flamebook.site.written.markup import anchor, comparison, given, verdict
from flamelib.core.vocabulary import DomainError

STORY = re.compile(r"^### (.+)\n\n@story ([^@]+)@$", re.M)
SECTION = re.compile(r"^## (.+)$", re.M)
EVERY = re.compile(r"^@every ([a-z-]+) (document|reading|elsewhere)@$", re.M)
NUMBER = re.compile(r"@([a-z]+:[^\s@\[]+)(?: (\w+))?(?:\[(\d+)\])?@")
_SPEAKERS = {
    "document": "the document's statement",
    "reading": "one reading of an unclear passage, or what a reader may take it to mean",
    "elsewhere": "a statement of later literature",
    "this book": "our own statement",
}

NAMES = {
    "blanket": "the privacy blanket",
    "flame": "FLAME",
    "participation": "random participation",
    "checkin": "self check-in",
    "cloak": "cloak aggregation",
}
WEIGHS = {
    "budget broken": "privacy that is promised, by a number or in words, is not there",
    "bound wrong": "a stated bound, rate or comparison is false; no promised budget is shown broken by it",
    "proof gap": "a step of a proof fails; what it was to prove may stand",
    "reading only": "one reading of an unclear passage fails; another may be meant",
    "slip of notation": "the printed line is wrong, and what is meant is clear and right",
}
WAITS = "waits for the print"  # the section of stories about formulas that our copy has lost

_SMALL, _LARGE = Decimal("1e-4"), Decimal("1e9")
_IN_FULL, _DIGITS = 4, 3

Rows = Mapping[str, Judged]


@dataclass(frozen=True, slots=True)
class Finding:
    """A story with its rows, the weightiest first."""

    title: str
    section: str
    rows: tuple[Judged, ...]

    @property
    def weight(self) -> str:
        """That of its first row."""
        return str(self.rows[0].claim.weight)

    @property
    def said_by(self) -> str:
        """Whose statement its first row is."""
        return self.rows[0].claim.said_by

    @property
    def waits(self) -> bool:
        """Whether all its formulas are restored, because our copy has lost them."""
        return all(row.claim.reconstructed for row in self.rows)


def findings(template: str, judged: Iterable[Judged]) -> list[Finding]:
    """Every story, in the order of the page."""
    rows = {row.claim.id: row for row in judged}
    return [
        Finding(title, section.lower(), tuple(rows[name] for name in names.split()))
        for section, text in _pairs(SECTION.split(template))
        for title, names in STORY.findall(text)
    ]


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
    found = findings(template, rows.values())
    text = template.replace("@weights@", _weights(found)).replace("@list@", _contents(found))
    text = STORY.sub(lambda word: _head(word[1], [rows[name] for name in word[2].split()], link), text)
    said = {key: [r for r in rows.values() if (r.verdict, r.claim.said_by) == key] for key in EVERY.findall(text)}
    text = EVERY.sub(lambda word: "\n".join(map(_item, said[word.groups()])), text)
    return NUMBER.sub(lambda found: _set(_number(rows, *found.groups()), text, found.start()), text)


def told(template: str) -> list[str]:
    """The rows of all stories, in their order."""
    return [name for _, names in STORY.findall(template) for name in names.split()]


def _complete(template: str, rows: Rows) -> None:
    stories = Counter(told(template))
    refuted = {name for name, row in rows.items() if row.verdict == "refuted"}
    faults = {
        "refuted, and without a story": refuted - set(stories),
        "told, and not refuted": set(stories) - refuted,
        "told more than once": {name for name, times in stories.items() if times > 1},
    }
    if not any(faults.values()):
        found = findings(template, rows.values())
        faults["of another weight than its section"] = {
            one.title for one in found if one.section != (WAITS if one.waits else one.weight)
        }
        faults["whose first row is not its weightiest"] = {
            one.title for one in found if any(_place(row) < _place(one.rows[0]) for row in one.rows)
        }
    for what, names in faults.items():
        if names:
            raise DomainError(f"book/refuted.md: {what}: {', '.join(sorted(names))}")


def _pairs(parts: list[str]) -> Iterable[tuple[str, str]]:
    return zip(parts[1::2], parts[2::2], strict=True)


def _place(row: Judged) -> int:
    return WEIGHTS.index(row.claim.weight) if row.claim.weight else len(WEIGHTS)


def _weights(found: Iterable[Finding]) -> str:
    """Each weight with what it means, and how many findings have it, by whose statement fails."""
    number = Counter((WAITS if one.waits else one.weight, one.said_by) for one in found)
    lines = ["| weight | what it means | the documents' own | readings | others' |", "|---|---|--:|--:|--:|"]
    for name, means in {**WEIGHS, WAITS: "what fails is a formula that we restored; it counts against nobody"}.items():
        others = number[name, "elsewhere"] + number[name, "this book"]
        lines.append(f"| {name} | {means} | {number[name, 'document']} | {number[name, 'reading']} | {others} |")
    return "\n".join(lines)


def _contents(found: Iterable[Finding]) -> str:
    """Every story by its title, under its section, with its document and a mark where a formula was lost."""
    lines = []
    for section, stories in groupby(found, lambda one: one.section):
        lines += [f"**{section.capitalize()}**", ""]
        for one in stories:
            mark = ", *reconstructed*" if any(row.claim.reconstructed for row in one.rows) else ""
            label, document = _label(list(one.rows)), NAMES[one.rows[0].claim.document]
            lines.append(f"- [{one.title}](#{label}) ({document}{mark})")
        lines.append("")
    return "\n".join(lines).rstrip()


def _label(story: list[Judged]) -> str:
    return anchor(story[0].claim.id).replace("claim-", "story-", 1)


def _head(title: str, story: list[Judged], link: Callable[[str], str]) -> str:
    lines = [
        *(f"({_label(story)})=", f"### {title}", "", _said(story, link)),
        *("", "::::{dropdown} Rows of the ledger, with their inputs", ""),
        *(
            f"- {_row(row)} ({row.claim.weight}): {row.claim.claim} {comparison(row)} {given(row.claim)}"
            for row in story
        ),
        "::::",
    ]
    return "\n".join(lines)


def _said(story: list[Judged], link: Callable[[str], str]) -> str:
    """Verdict and weight, whose statement it is, where it stands, and how its first row is recomputed."""
    who = "; ".join(dict.fromkeys(_SPEAKERS[row.claim.said_by] for row in story))
    where = "; ".join(dict.fromkeys(f"{row.claim.where}, {link(row.claim.page)}" for row in story))
    mark = " *Reconstructed.*" if any(row.claim.reconstructed for row in story) else ""
    first = story[0].claim
    return f"{verdict('refuted')}, {first.weight}: {who}. {where}.{mark} Recompute: `flamelib check {first.id}`."


def _row(row: Judged) -> str:
    return f"[`{row.claim.id}`](#{anchor(row.claim.id)})"


def _item(row: Judged) -> str:
    compared = "" if row.value is None else f"*{comparison(row)}* "
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


def _set(number: str, text: str, place: int) -> str:
    """The number as it stands at this place of the text, in a formula or not."""
    in_formula = text.count("$", text.rfind("\n", 0, place) + 1, place) % 2 == 1
    return number.strip("$").replace(",", "{,}") if in_formula else number
