"""The page "How much is still unknown": for each headline both bounds, widest first, and those of earlier years."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from flamebook.claims.ledger import CHECKS
from flamebook.places import DATA
from flamebook.records import lines_csv
from flamebook.statements import at_least, at_most
from flamelib import answers
from flamelib.core import workers
from flamelib.core.statements import DOCUMENTS
from flamelib.core.vocabulary import DomainError

BRACKETS = DATA / "brackets.yml"
NEEDED = ("name", "document", "page", "measure", "inputs", "lower", "upper", "closes")
SIDE = ("compute", "function", "with", "field", "also")
HEAD = """\
(sec-unknown)=
# How much is still unknown

A quantity is known when its certified lower bound meets its certified upper bound. This page lists the headlines of the
book, those with the widest gap first. For each of them it says how far apart the two bounds are, which upper bounds
were known in earlier years for the same inputs, and what would close the gap. Every number is computed when the book is
built; upper bounds are rounded up and lower bounds down.

"""
DRAWN = """\
In the drawing each line runs from the certified lower bound, at its left end, to the largest upper bound. The filled
dot is the smallest upper bound today, and hollow dots are the upper bounds of earlier years. Where only a filled dot is
seen at the left edge, the gap is closed.

"""


@dataclass(frozen=True, slots=True)
class Side:
    """One end of a bracket: where it is computed, from which inputs, what came out, and where else the book has it."""

    source: str
    inputs: Mapping[str, Any]
    value: float
    also: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Earlier(Side):
    """A bound from above that stood before: of which year, by whom."""

    year: int
    by: str


@dataclass(frozen=True, slots=True)
class Bracket:
    """What is certified of one quantity from both sides."""

    name: str
    document: str
    page: str
    measure: str
    closes: str
    lower: Side
    upper: Side
    before: tuple[Earlier, ...]

    @property
    def ratio(self) -> float:
        """The upper end over the lower one; 1 is closed."""
        return self.upper.value / self.lower.value if self.lower.value > 0 else math.inf


def brackets(path: Path = BRACKETS, jobs: int = 1) -> list[Bracket]:
    """Every bracket with both ends computed, the widest first.

    Raises
    ------
    DomainError
        One sentence that names the bracket and the field.
    """
    rows = [_checked(row, path.name) for row in yaml.safe_load(path.read_text(encoding="utf-8"))]
    if jobs == 1:
        found = [_computed(row) for row in rows]
    else:
        with workers.pool(jobs) as pool:
            found = list(pool.map(_computed, rows))
    return sorted(found, key=lambda one: -one.ratio)


def _checked(row: dict[str, Any], file: str) -> dict[str, Any]:
    def require(condition: bool, what: str) -> None:
        if not condition:
            raise DomainError(f"{file}: {row.get('name', '?')} {what}")

    require(set(NEEDED) <= set(row) <= {*NEEDED, "before"}, f"needs {', '.join(NEEDED)}, and may have before")
    require(row["document"] in DOCUMENTS, f"document must be one of {', '.join(DOCUMENTS)}")
    for end in (row["lower"], row["upper"], *row.get("before", ())):
        extra = {"year", "by"} & set(end)
        require(set(end) - extra <= set(SIDE), f"has an end with a field other than {', '.join(SIDE)}")
        require(("compute" in end) != ("function" in end), "has an end that needs compute or function, one of the two")
        module = end.get("function", CHECKS[0]).partition(":")[0]
        require(module in CHECKS, f"has an end whose function does not lie in {' or '.join(CHECKS)}")
    return row


def _computed(row: Mapping[str, Any]) -> Bracket:
    def value(end: Mapping[str, Any]) -> dict[str, Any]:
        inputs = row["inputs"] | end.get("with", {})
        source = end.get("compute") or end["function"]
        return {"source": source, "inputs": inputs, "value": _value(end, inputs), "also": tuple(end.get("also", ()))}

    before = tuple(Earlier(**value(end), year=end["year"], by=end["by"]) for end in row.get("before", ()))
    words = {name: row[name] for name in ("name", "document", "page", "measure", "closes")}
    return Bracket(**words, lower=Side(**value(row["lower"])), upper=Side(**value(row["upper"])), before=before)


def _value(end: Mapping[str, Any], inputs: Mapping[str, Any]) -> float:
    if "compute" in end:
        found = answers.answer(end["compute"], inputs)["value"]
    else:
        module, _, name = end["function"].partition(":")
        found = getattr(import_module(module), name)(**inputs)
    return float(found[end["field"]] if "field" in end else found)


# --- the page --------------------------------------------------------------------------------------


def page(found: Sequence[Bracket], link: Callable[[str], str]) -> str:
    """The page in MyST."""
    close = sum(one.ratio < 1.1 for one in found)
    told = f"For {close} of {len(found)} quantities the upper bound exceeds the lower one by less than a tenth."
    downloads = (
        "Download: {download}`brackets.json <generated/brackets.json>`, "
        "{download}`brackets.csv <generated/brackets.csv>`: ids, inputs, both ends and their ratio."
    )
    parts = [HEAD, told, "", DRAWN, "```{raw} html", drawing(found), "```", "", downloads, ""]
    return "\n".join([*parts, *(line for one in found for line in _section(one, link))])


def _section(one: Bracket, link: Callable[[str], str]) -> list[str]:
    rows = [
        f"| {earlier.year} | {_whom(earlier.by)} | at most {at_most(earlier.value)} |"
        for earlier in sorted(one.before, key=lambda earlier: (earlier.year, -earlier.value))
    ]
    rows += [f"| today | from above, `{one.upper.source}` | at most {at_most(one.upper.value)} |"]
    rows += [f"| today | from below, `{one.lower.source}` | at least {at_least(one.lower.value)} |"]
    return [
        f"## {one.name}",
        "",
        f"{DOCUMENTS[one.document]}: {link(one.page)}. The {one.measure} at {_inputs(one)} is known "
        f"{_how_well(one.ratio)}.",
        "",
        *("| when | by whom | bound |", "|---|---|---|", *rows),
        "",
        f"**What would close it.** {one.closes}",
        "",
    ]


def _how_well(ratio: float) -> str:
    """Of two ends, by their ratio.

    >>> _how_well(1.0), _how_well(1.0651)
    ('exactly, up to rounding', 'within a factor of 1.066')
    """
    told = at_most(ratio)
    return "exactly, up to rounding" if told == "1" else f"within a factor of {told}"


def _whom(by: str) -> str:
    return by if " " in by else f"{{cite:t}}`{by}`"


def _inputs(one: Bracket) -> str:
    """What both ends are computed from; words that belong to one end only are left to the file."""
    both = [name for name in one.upper.inputs if one.lower.inputs.get(name) == one.upper.inputs[name]]
    return ", ".join(f"`{name}={_plain(one.upper.inputs[name])}`" for name in both)


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def drawing(found: Sequence[Bracket]) -> str:
    """Every bracket as a line on one axis: how many times the certified lower end, in powers of ten."""
    largest = math.log10(max(ratio for one in found for ratio in _ratios(one)))

    def across(ratio: float) -> str:
        return f"{100 * math.log10(ratio) / largest:.2f}%"

    lines = [_line(one, across) for one in found]
    powers = [10**power for power in range(math.floor(largest) + 1)]
    axis = "".join(f'<span style="left:{across(power)}">{power:,}×</span>' for power in powers)
    told = "How many times its lower end each upper end is; the numbers follow in the sections below."
    return "\n".join(
        [f'<div class="fl-brackets" role="img" aria-label="{told}">', *lines, f'<p class="axis">{axis}</p>', "</div>"]
    )


def _ratios(one: Bracket) -> list[float]:
    return [end.value / one.lower.value for end in (one.upper, *one.before)]


def _line(one: Bracket, across: Callable[[float], str]) -> str:
    today, *then = _ratios(one)
    dots = "".join(f'<i class="then" style="left:{across(ratio)}"></i>' for ratio in then)
    bar = f'<b style="width:{across(max(today, *then, 1.0))}"></b>{dots}<i style="left:{across(today)}"></i>'
    return f'<p><span>{escape(one.name)}</span><span class="track">{bar}</span></p>'


# --- the lists -------------------------------------------------------------------------------------


def as_json(found: Sequence[Bracket]) -> str:
    """Every bracket with ids, inputs, both ends and their ratio."""
    return json.dumps([_record(one) for one in found], indent=1, ensure_ascii=False) + "\n"


def as_csv(found: Sequence[Bracket]) -> str:
    """One row a bracket; full digits."""
    names = ("name", "document", "measure", "lower_id", "lower_inputs", "lower", "upper_id", "upper_inputs", "upper")
    rows = []
    for one in found:
        ends = (cell for end in (one.lower, one.upper) for cell in (end.source, json.dumps(end.inputs), end.value))
        rows.append([one.name, one.document, one.measure, *ends, one.ratio])
    return lines_csv([(*names, "ratio"), *rows])


def _record(one: Bracket) -> dict[str, Any]:
    def end(side: Side) -> dict[str, Any]:
        return {"id": side.source, "inputs": dict(side.inputs), "value": side.value}

    before = [end(earlier) | {"year": earlier.year, "by": earlier.by} for earlier in one.before]
    words = {"name": one.name, "document": one.document, "measure": one.measure, "closes": one.closes}
    return words | {"lower": end(one.lower), "upper": end(one.upper), "ratio": one.ratio, "before": before}
