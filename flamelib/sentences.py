"""What a person reads of an answer, where a program reads JSON: sentences, with bounds rounded to their safe side."""

import math
from collections.abc import Mapping
from typing import Any

from flamelib.answers import statement
from flamelib.core.guarantees import Adjacency
from flamelib.front.results import Bounds, Calibrated, Guarantee, rounded

DIRECTIONS = {"upper": "an upper bound", "lower": "a lower bound", "exact": "exact", "value": "a value, no guarantee"}
CHANGES = {
    Adjacency.REPLACE_ONE: "Replacing one user's data",
    Adjacency.ADD_REMOVE: "Adding or removing one record",
    Adjacency.SUM_PRESERVING: "Replacing the data by others of the same sum",
}


def of_statement(reply: Mapping[str, Any]) -> str:
    """The answer of a statement: value, direction, adjacency, what it rests on, and the source, in one sentence.

    Examples
    --------
    >>> from flamelib.answers import answer
    >>> of_statement(answer("flame:lem-2", {"epsilon": 0.1, "times": 3})).partition(" (")[0]
    '0.3001, an upper bound; proven'
    """
    value, gives, inputs = reply["value"], reply["gives"], reply["inputs"]
    rows = value if isinstance(value, list) else []
    found = "the rows below" if rows else _shown(value, gives)
    if not isinstance(value, list | Mapping):
        of_delta = statement(reply["id"]).either and "epsilon" in inputs
        found = ("delta " if of_delta else "epsilon " if "delta" in inputs.keys() - {"epsilon"} else "") + found
    found += f", {DIRECTIONS[gives]}"
    found += f", {reply['adjacency']}" if reply["adjacency"] != Adjacency.NONE else ""
    found += f"; {reply['rests_on']}" if "rests_on" in reply else ""
    found += f", assuming {reply['assumes']}" if "assumes" in reply else ""
    found += f", a numerical error of {rounded(reply['uncertainty'])} included" if "uncertainty" in reply else ""
    return "\n".join([f"{found} ({reply['id']}: {reply['source']})", *(f"  {_shown(row)}" for row in rows)])


def _shown(value: Any, gives: str = "") -> str:
    """A bound rounded to its safe side, every digit of other numbers."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_shown(part)}" for name, part in value.items())
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, float) and gives in ("upper", "lower"):
        return rounded(value, up=gives == "upper")
    return str(value)


def of_protocol(found: Guarantee | Bounds | Calibrated) -> str:
    """What ``account``, ``bounds`` or ``calibrate`` answers: the answer as it prints, and in plain words.

    Examples
    --------
    >>> from flamelib.core.guarantees import RestsOn
    >>> print(of_protocol(Guarantee(0.5, 1e-8, Adjacency.REPLACE_ONE, RestsOn.CITED)))
    (0.5, 1e-08)-DP, replace-one; cited
    Replacing one user's data makes any event at most 1.649 times as probable, plus 1e-08.
    """
    lines, kept = [repr(found)], found.guarantee if isinstance(found, Calibrated) else found
    if isinstance(kept, Bounds):
        least, most = rounded(kept.lower, up=False), rounded(kept.upper)
        lines.append(f"Some neighbouring data sets have {kept.asked} {least} or more; none have more than {most}.")
    elif kept.epsilon < math.inf and kept.delta < 1:
        odds = rounded(math.exp(kept.epsilon)) if kept.epsilon < 700 else "inf"
        change = f"{CHANGES[kept.adjacency]} makes any event at most {odds} times as probable"
        lines.append(f"{change}, plus {rounded(kept.delta)}.")
    else:
        lines.append("This promises nothing.")
    return "\n".join([*lines, *([f"Assumed: {kept.assumes}."] if kept.assumes else [])])


def of_deployment(found: Any) -> str:
    """What a deployment guarantees: the range, the odds, what it rests on, and the questions that it leaves open."""
    ends = [f"at most {rounded(found.upper)}"]
    if found.lower is not None:
        ends = [rounded(found.lower, up=False), rounded(found.upper)]
    without = (
        "" if found.alone is None else f"; without that trust epsilon is at most {rounded(found.alone)} at delta 0"
    )
    lines = [
        f"{found.name or 'deployment'}: epsilon {' to '.join(dict.fromkeys(ends))} at delta {rounded(found.delta)}",
        f"protects: {found.unit}; adjacency: {found.adjacency}",
        f"odds: those of a guess about it grow at most {rounded(found.odds)} times",
        f"rests on: {found.rests_on}; {found.because}",
        f"trusted: {found.trust}{without}",
        *([] if found.said is None else [f"published: epsilon {found.said}"]),
    ]
    return "\n".join([*lines, *(f"left open: {question}" for question in found.unstated)])
