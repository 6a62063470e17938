"""What a page says of its numbers: statements with their verdict, and words that are computed from results.

A notebook states what is true of the book's edition, and anybody may run it with other values.  So a statement is a
:class:`Finding`: it holds, it does not (with the numbers that show it), or it says nothing at these values.  Words that
depend on results are made here as well, so that a sentence is true on every page that it stands on.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from flamelib.core.vocabulary import DomainError
from flamelib.front.results import rounded

HOLDS, FAILS, SILENT = "holds", "does not hold", "says nothing"
RELATIONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal}
# Sentences on the data sets that the run under way lacks, by the parameters that name them, as JSON.
STAND_INS = "FLAMELIB_RUN_STAND_INS"
DIGITS = (4, 7, 10, 13, 17)  # of two numbers: as few as tell them apart


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a statement holds at the values of this run, and what shows it.

    Attributes
    ----------
    holds : bool or None
        ``None`` where the statement says nothing at these values.
    numbers : str
        The numbers that are compared, or the reason why there are none.
    """

    holds: bool | None
    numbers: str = ""

    @property
    def verdict(self) -> str:
        """``holds``, ``does not hold`` or ``says nothing``."""
        return SILENT if self.holds is None else HOLDS if self.holds else FAILS


def stand_ins() -> dict[str, str]:
    """What stands in for the data sets that the run under way lacks, in sentences by the parameters' names."""
    told: dict[str, str] = json.loads(os.environ.get(STAND_INS, "{}"))
    return told


def found(condition: "Finding | bool | np.bool_ | None") -> Finding:
    """A finding from a truth value, or itself."""
    return condition if isinstance(condition, Finding) else Finding(None if condition is None else bool(condition))


def silent(reason: str) -> Finding:
    """The statement says nothing at these values, for this reason."""
    return Finding(None, reason)


def compared(*parts: ArrayLike | str) -> Finding:
    """Numbers in a relation, or a chain of relations: ``compared(low, "<=", value, "<=", high)``.

    Arrays are compared entry by entry; the worst pair is told.  Pairs with a NaN say nothing and are left out.

    Parameters
    ----------
    *parts
        Numbers or arrays that broadcast, and between each two of them one of ``<``, ``<=``, ``>``, ``>=``, ``==``.

    Examples
    --------
    >>> compared([1, 2], "<=", [1, 3])
    Finding(holds=True, numbers='')
    >>> compared(0.84, ">", 1.0)
    Finding(holds=False, numbers='0.84 against 1')
    >>> compared(float("nan"), "<", 1.0).verdict
    'says nothing'
    """
    if len(parts) < 3 or len(parts) % 2 == 0 or any(sign not in RELATIONS for sign in map(str, parts[1::2])):
        raise DomainError(f"parts must be numbers with one of {', '.join(RELATIONS)} between them, got {parts!r}")
    pairs = [_pair(parts[at], str(parts[at + 1]), parts[at + 2]) for at in range(0, len(parts) - 2, 2)]
    failing = [pair for pair in pairs if pair.holds is False]
    if failing:
        return failing[0]
    return pairs[0] if any(pair.holds is None for pair in pairs) else Finding(True)


def _pair(left: ArrayLike, sign: str, right: ArrayLike) -> Finding:
    a, b = np.broadcast_arrays(np.asarray(left, dtype=float), np.asarray(right, dtype=float))
    told = ~(np.isnan(a) | np.isnan(b))
    if not told.any():
        return silent("there is no number to compare")
    wrong = told & ~RELATIONS[sign](a, b)
    if not wrong.any():
        return Finding(True)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(wrong, np.nan_to_num(np.abs(a - b) / np.maximum(np.abs(b), 1e-300), nan=0.0), -1.0)
    at = np.unravel_index(int(apart.argmax()), apart.shape)
    return Finding(False, against(float(a[at]), float(b[at])))


def against(left: float, right: float) -> str:
    """Two numbers with as many digits as tell them apart.

    >>> against(0.84, 1.0), against(3.34e-8, 3.3400001e-8)
    ('0.84 against 1', '3.34e-08 against 3.3400001e-08')
    """
    texts = [(f"{left:.{digits}g}", f"{right:.{digits}g}") for digits in DIGITS]
    one, other = next((pair for pair in texts if pair[0] != pair[1]), texts[0])
    return f"{one} against {other}"


def every(*conditions: "Finding | bool | np.bool_ | None") -> Finding:
    """Several findings as one: the first that fails, else the first that says nothing, else it holds."""
    findings = [found(one) for one in conditions]
    worst = [one for wanted in (False, None) for one in findings if one.holds is wanted]
    return worst[0] if worst else Finding(True)


def listed(names: Sequence[str], empty: str = "none") -> str:
    """Names in a sentence.

    >>> listed(["one"]), listed(["one", "two", "three"]), listed([])
    ('one', 'one, two and three', 'none')
    """
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0] if names else empty


class AtMost(float):
    """An upper bound, which a table shows rounded up; a file keeps its digits."""


class AtLeast(float):
    """A lower bound, which a table shows rounded down."""


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
