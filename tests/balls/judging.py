"""The second judge: a statement's answer against a ball that was computed by other means.

``@judges(id, ...)`` registers a function of the statement's inputs that answers with the ball of its formula, or of
the truth: a number, or a record of some of its fields.  A statement that takes epsilon or delta is judged by the curve
of its delta alone, for an epsilon bounds what a delta does.  An answer must lie

* on its side of the ball where it is a bound, without any allowance for rounding, and not further from it than
  ``close``,
* in it, but for ``close`` and the uncertainty that the answer tells, where it is exact or a value.

Beside the points that are listed here every row of the ledger that the statement computes is judged, where its ball is
within reach.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from flint import arb

from flamebook.claims.ledger import LOADER
from flamebook.places import ROOT
from flamelib import evaluate
from flamelib.answers import flat, statement

Inputs = Mapping[str, Any]
Enclosed = arb | float | Mapping[str, arb | float]

CLOSE = 1e-12  # relative; a formula in doubles


@dataclass(frozen=True)
class Judge:
    """What encloses a statement's answer, and where it is tried."""

    id: str
    ball: Callable[..., Enclosed]
    points: tuple[Inputs, ...]
    curve: bool
    close: float | None
    ledger: bool
    reach: Callable[[Inputs], bool]
    side: str | None


@dataclass(frozen=True)
class Verdict:
    """One number of an answer, its ball, and on which sides of it the number may lie."""

    what: str
    number: float | int
    ball: arb
    low: arb
    high: arb

    @property
    def holds(self) -> bool:
        return bool(self.low <= arb(self.number) <= self.high) or arb(self.number) == self.low == self.high


JUDGES: dict[tuple[str, str], Judge] = {}  # by statement and name of the ball


def judges(
    key: str, *points: Inputs, curve: bool = False, close: float | None = CLOSE, ledger: bool = True,
    reach: Callable[[Inputs], bool] = lambda _: True, side: str | None = None,
) -> Callable[[Callable[..., Enclosed]], Callable[..., Enclosed]]:  # fmt: skip
    """Register a ball.

    Parameters
    ----------
    key : str
        The statement's id.
    *points : mapping
        Inputs at which it is judged.
    curve : bool
        Whether the statement takes epsilon or delta; the ball is then that of delta at an ``epsilon``.
    close : float or None
        How far an answer may lie from the ball, relative to it; none where the ball is not what the answer aims at.
    ledger : bool
        Whether rows of the ledger are judged too,
    reach : callable
        those of them whose inputs the ball does not take too long for.
    side : {"upper", "lower"}, optional
        Where the answer is a parameter, on which side of the ball it is safe; else the statement says so.
    """

    def register(function: Callable[..., Enclosed]) -> Callable[..., Enclosed]:
        JUDGES[key, function.__name__] = Judge(key, function, points, curve, close, ledger, reach, side)
        return function

    return register


@cache
def ledger_inputs() -> Mapping[str, tuple[Inputs, ...]]:
    """Inputs of the rows that a statement computes from them alone, by its id."""
    found: dict[str, list[Inputs]] = {}
    for path in sorted((ROOT / "data" / "claims").glob("*.yml")):
        for claim in yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)["claims"]:
            for row in claim["rows"]:
                if "compute" in row and row.get("inputs"):
                    known = found.setdefault(row["compute"], [])
                    known += [row["inputs"]] if row["inputs"] not in known else []
    for _, key, inputs in headlines():
        known = found.setdefault(key, [])
        known += [inputs] if inputs not in known else []
    return {key: tuple(inputs) for key, inputs in found.items()}


@cache
def headlines() -> tuple[tuple[str, str, Inputs], ...]:
    """Both ends of every headline of the page on what is unknown: a name, a statement's id or a check, its inputs."""
    found = []
    for one in yaml.load((ROOT / "data" / "brackets.yml").read_text(encoding="utf-8"), Loader=LOADER):
        for side in ("lower", "upper"):
            end = one[side]
            told = end.get("compute") or end["function"]
            found.append((f"{one['name']}, {side}", told, one["inputs"] | end.get("with", {})))
    return tuple(found)


def judges_of(key: str, inputs: Inputs) -> list[Judge]:
    """Those whose ball is within reach at a row's inputs."""
    found = [judge for judge in JUDGES.values() if judge.id == key and judge.ledger]
    return [judge for judge in found if complete(key, inputs) and judge.reach(inputs)]


def cases() -> Iterator[tuple[Judge, Inputs]]:
    """Every judge with each of its points, and with the rows of the ledger that say all that it needs."""
    for judge in JUDGES.values():
        yield from ((judge, point) for point in judge.points)
        for point in ledger_inputs().get(judge.id, ()) if judge.ledger else ():
            if judge in judges_of(judge.id, point):
                yield judge, point


def complete(key: str, inputs: Inputs) -> bool:
    """Whether a row has one set of inputs; others run along an axis."""
    needed = flat(statement(key), inputs.get("randomizer"))
    either = not statement(key).either or "epsilon" in inputs or "delta" in inputs
    return either and all(name in inputs for name, required in needed.items() if required)


def verdicts(judge: Judge, inputs: Inputs) -> list[Verdict]:
    """The numbers of the answer to these inputs with what they are judged by."""
    return list(_judged(judge, inputs, evaluate(judge.id, **inputs)))


def _judged(judge: Judge, inputs: Inputs, reply: Mapping[str, Any]) -> Iterator[Verdict]:
    value, gives = reply["value"], judge.side or reply["gives"]
    doubt = float(reply.get("uncertainty", 0.0))
    if judge.curve and inputs.get("delta") is not None:
        yield _by_curve(judge, inputs, float(value), gives, doubt)
        return
    enclosed = judge.ball(**inputs)
    balls = enclosed if isinstance(enclosed, Mapping) else {"": enclosed}
    for name, ball in balls.items():
        told = value[name] if name else value
        number = told if isinstance(told, int) else float(told)
        if not isinstance(ball, arb):
            yield Verdict(name, number, arb(ball), arb(ball), arb(ball))
            continue
        assert ball.is_finite(), f"the ball of {judge.id} at {dict(inputs)} is not finite"
        yield Verdict(name, number, ball, *_sides(ball, gives, doubt, judge))


def _sides(ball: arb, gives: str, doubt: float, judge: Judge) -> tuple[arb, arb]:
    width = arb("inf") if judge.close is None else abs(ball).upper() * judge.close + doubt
    low = ball.upper() if gives == "upper" else ball.lower() - width
    high = ball.lower() if gives == "lower" else ball.upper() + width
    return low, high


def _by_curve(judge: Judge, inputs: Inputs, epsilon: float, gives: str, doubt: float) -> Verdict:
    """The delta that was asked for, between what the curve says a little before and after the epsilon answered.

    An upper answer keeps to a delta that is no smaller, a lower one to one that is no larger; ``close`` and the doubt
    are the epsilon's here.
    """
    rest = {name: value for name, value in inputs.items() if name != "delta"}

    def at(x: float) -> arb:
        found = judge.ball(**rest, epsilon=max(x, 0.0))
        assert isinstance(found, arb)
        return found

    width = math.inf if judge.close is None else judge.close * epsilon + doubt
    before = arb("inf") if epsilon <= 0 or math.isinf(width) else at(epsilon - width)
    after = arb("-inf") if math.isinf(width) else at(epsilon + width)
    low = at(epsilon) if gives == "upper" else after
    high = before
    if gives == "lower" and epsilon > 0:
        high = at(epsilon)
    told = f"delta at epsilon = {epsilon!r}"
    return Verdict(told, float(inputs["delta"]), at(epsilon), arb(low.upper()), arb(high.lower()))
