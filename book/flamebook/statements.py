"""What a page says of its numbers: verdicts, bounds rounded to their safe side, names in a sentence.

Standard library only, so that a command that writes no page loads nothing for it.
"""

import json
import math
import os
from collections.abc import Sequence
from typing import Any

from flamelib.front.results import rounded

HOLDS, FAILS, SILENT = "holds", "does not hold", "says nothing"
SENTENCES = (
    "The sentences of this page were written for the book's parameters. Tables, figures and checks are those of this "
    "run, and a check that does not hold marks a sentence that is not true of it."
)
# Sentences on the data sets that the run under way lacks, by the parameters that name them, as JSON.
STAND_INS = "FLAMELIB_RUN_STAND_INS"
BOOK_RUN = "FLAMELIB_BOOK_RUN"  # folder of the book's run, whose curves are drawn behind those of an own run
# Whether a number is rounded up, by what its name says of it; the first that is found counts.
ROUNDED_UP = {
    "at least": False, "lower": False, "given away": False,
    "at most": True, "upper": True, "certified": True, "blanket divergence": True,
}  # fmt: skip


def stand_ins() -> dict[str, str]:
    """What stands in for the data sets that the run under way lacks, in sentences by the parameters' names."""
    told: dict[str, str] = json.loads(os.environ.get(STAND_INS, "{}"))
    return told


def listed(names: Sequence[str], empty: str = "none") -> str:
    """Names in a sentence.

    >>> listed(["one"]), listed(["one", "two", "three"]), listed([])
    ('one', 'one, two and three', 'none')
    """
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0] if names else empty


def at_most(value: float, digits: int = 4) -> str:
    """An upper bound, rounded to its safe side.

    >>> at_most(0.0307389)
    '0.03074'
    """
    return rounded(value, up=True, digits=digits)


def at_least(value: float, digits: int = 4) -> str:
    """A lower bound, rounded to its safe side.

    >>> at_least(0.0307389)
    '0.03073'
    """
    return rounded(value, up=False, digits=digits)


def argument(value: Any) -> str:
    """A parameter's value as the command takes it.

    >>> argument([1.0, 2.5]), argument(True), argument("mnist")
    ('1,2.5', 'true', 'mnist')
    """
    if isinstance(value, list):
        return ",".join(map(argument, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def pretty(value: Any, name: str = "") -> str:
    """Four significant digits for real numbers that need them, thousands apart for whole ones, words as they are.

    A number whose name says that it is a bound (:data:`ROUNDED_UP`) is rounded to its safe side.

    >>> [pretty(x) for x in (697932, 0.000123456, 0.99999999, 0.5, float("inf"), "exact")]
    ['697,932', '0.0001235', '1.000', '0.5', 'inf', 'exact']
    >>> pretty(0.000123412, "certified epsilon"), pretty(0.000123456, "at least")
    ('0.0001235', '0.0001234')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    up = next((up for words, up in ROUNDED_UP.items() if words in name), None)
    if up is not None:
        return rounded(value, up)
    short = f"{value:.3g}"
    return short if float(short) == value or not math.isfinite(value) else f"{value:#.4g}".rstrip(".")
