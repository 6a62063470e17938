"""The second judge of the ledger: rows that a named check computes, against balls that share no code with it.

``@encloses(id, ...)`` registers a function of a row's inputs that answers with the ball of its number, with a whole
number or a fraction, or with whether a property holds.  Two things are asked of it:

* it contains the number that is recorded, to the digits that are; where the check is itself a bound on the ball's
  number, from the ``side`` that it is on,
* it excludes what the document says where the row's verdict is that this is refuted, or contradicted by its tolerance,
  and nothing but what it says otherwise.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import yaml
from flint import arb, fmpq

from flamebook.claims.ledger import LOADER
from flamebook.claims.record import recorded
from flamebook.places import ROOT

Number = arb | int | float | Fraction | bool
DIGITS = 1e-6  # relative; numbers are recorded with seven digits
ROUND_OFF = 1e-12  # of a recorded number that is 0 but for rounding


@dataclass(frozen=True)
class Enclosure:
    """What encloses a row's number, and whether the recorded one may be below it or above."""

    row: str
    ball: Callable[..., Number]
    side: str


@dataclass(frozen=True)
class Found:
    """A ball, the number that is recorded, and what the row says of it."""

    ball: Number
    number: float | bool
    stated: float | None
    relation: str
    tolerance: float
    side: str

    @property
    def contains(self) -> bool:
        """Whether the recorded number is on its side of the ball, or in it."""
        if isinstance(self.ball, bool) or isinstance(self.number, bool):
            return self.ball is self.number
        ball, number = exact(self.ball), arb(self.number)
        if not number.is_finite():
            return bool(ball == number)
        room = abs(number) * DIGITS + ROUND_OFF * (self.side == "exact")
        low = arb("-inf") if self.side == "lower" else ball.lower() - room
        high = arb("inf") if self.side == "upper" else ball.upper() + room
        return bool(low <= number <= high)

    @property
    def agrees(self) -> bool | None:
        """Whether the ball is certainly what the row says, or certainly not; nothing where it cannot tell."""
        if isinstance(self.ball, bool):
            return self.ball
        ball = exact(self.ball)
        assert self.stated is not None
        stated = arb(self.stated)
        room = self.tolerance * (abs(stated) if self.stated else 1)
        below, above = ball <= stated + room, ball >= stated - room
        holds = {"at-most": below, "at-least": above, "equal": below and above}[self.relation]
        too_large, too_small = ball > stated + room, ball < stated - room
        fails = {"at-most": too_large, "at-least": too_small, "equal": too_large or too_small}[self.relation]
        return True if holds else False if fails else None


ENCLOSURES: dict[str, Enclosure] = {}


def encloses(*rows: str, side: str = "exact") -> Callable[[Callable[..., Number]], Callable[..., Number]]:
    """Register the ball of some rows; ``side`` is ``lower`` where the recorded number is certified from below."""

    def register(function: Callable[..., Number]) -> Callable[..., Number]:
        for row in rows:
            ENCLOSURES[row] = Enclosure(row, function, side)
        return function

    return register


def exact(number: Number) -> arb:
    if isinstance(number, Fraction):
        return arb(fmpq(number.numerator, number.denominator))
    return number if isinstance(number, arb) else arb(number)


@cache
def ledger() -> Mapping[str, Mapping[str, Any]]:
    """Every row by its id, as it is in the files."""
    return {
        f"{group['item']}/{row['id']}": row
        for path in sorted((ROOT / "data" / "claims").glob("*.yml"))
        for group in yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)["claims"]
        for row in group["rows"]
    }


def judged(one: Enclosure) -> Iterator[Found]:
    """The numbers of a row, one by one."""
    row, (_, value) = ledger()[one.row], recorded()[one.row]
    inputs, over = dict(row.get("inputs") or {}), row.get("over") or {}
    places = [{name: at} for name, values in over.items() for at in values] or [{}]
    numbers = value if isinstance(value, list) else [value]
    said = row.get("paper", row.get("reference"))
    stated = said if isinstance(said, list) else [said] * len(places)
    for place, number, claim in zip(places, numbers, stated, strict=True):
        assert number is not None, f"{one.row} has no number"
        ball = one.ball(**inputs, **place)
        yield Found(ball, number, claim, row["relation"], row.get("tolerance", 1e-6), one.side)
