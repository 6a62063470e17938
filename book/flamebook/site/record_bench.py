"""The grid of the bench: twelve minutes on two cores.

Numbers are rounded up to six digits, so that no epsilon is too small.  A column holds its values along those axes on
which they depend, the last one running fastest.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from decimal import ROUND_CEILING, Context
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from flamebook.figures.together.crossing import DRAWN
from flamebook.runs.record import Part, Recording, Results
from flamebook.site.bench import AXES, EPSILON, EPSILON0, RECORDED
from flamelib.core.vocabulary import DomainError
from flamelib.uses.deployments import Refusal, mechanisms, row
from flamelib.uses.reports import LOCAL
from flamelib.uses.requests import Request, Row

DIGITS = Context(prec=6, rounding=ROUND_CEILING)
NUMBERS = ("epsilon", "claimed", "error", "messages", "bits")
WORDS = ("document", "trusted", "adjacency", "warning")
Answers = list[dict[str, Any]]


def parts() -> dict[str, Part]:
    """All requests of so many users."""
    return {f"n_users={n_users}": Part(partial(_answers, n_users)) for n_users in AXES["n_users"]}


def _answers(n_users: int) -> Answers:
    """All requests of so many users, on all cores: what those at one budget share is asked for once."""
    budgets = [*(("epsilon0", size) for size in EPSILON0), *(("epsilon", size) for size in EPSILON)]
    with ProcessPoolExecutor() as pool:
        return [one for found in pool.map(partial(_at, n_users), budgets) for one in found]


def _at(n_users: int, budget: tuple[str, float]) -> Answers:
    kind, size = budget
    names = [name for name in mechanisms() if (name in LOCAL) == (kind == "epsilon0")]
    requests = [point for point in product(*AXES.values()) if point[1] == n_users]
    return [
        {"mechanism": name, "at": [*point, size]} | shown(answered(name, point, kind, size))
        for point in requests
        for name in names
    ]


def answered(name: str, point: tuple[Any, ...], kind: str, size: float) -> Row | Refusal:
    """The library's answer at a point of :data:`~flamebook.site.bench.AXES`."""
    try:
        return row(name, Request(**dict(zip(AXES, point, strict=True))), **{kind: size})
    except DomainError as refusal:
        return Refusal(name, str(refusal))


def shown(found: Row | Refusal) -> dict[str, Any]:
    """What the page shows of an answer: numbers and words, or the reason of a refusal."""
    if isinstance(found, Refusal):
        return {"reason": found.reason}
    numbers = {field: upwards(getattr(found, field)) for field in NUMBERS}
    return numbers | {word: str(getattr(found, word)) for word in WORDS}


def told(results: Results) -> dict[str, Any]:
    """The grid as columns, one set for each mechanism."""
    found = {(one["mechanism"], *one["at"]): one for answers in results.values() for one in answers}
    reasons = sorted({one["reason"] for one in found.values() if "reason" in one})
    return {
        "axes": AXES,
        "budgets": {"epsilon0": EPSILON0, "epsilon": EPSILON},
        "sampling_rate": Request(2).sampling_rate,
        "unasked": _unasked(),
        "reasons": reasons,
        "mechanisms": [_mechanism(name, found, reasons) for name in mechanisms()],
    }


def _unasked() -> str:
    """What a sum says when it is asked for a local budget."""
    found = row("trusted curator", Request(2), epsilon0=1.0)
    return found.reason if isinstance(found, Refusal) else ""


def _mechanism(name: str, found: Mapping[tuple[Any, ...], dict[str, Any]], reasons: list[str]) -> dict[str, Any]:
    kind = "epsilon0" if name in LOCAL else "epsilon"
    axes = {**AXES, "budget": EPSILON0 if kind == "epsilon0" else EPSILON}
    answers = [found[name, *point] for point in product(*axes.values())]
    example = next(one for one in answers if "reason" not in one)

    def column(values: Iterable[Any]) -> dict[str, Any]:
        return compact(list(values), {axis: len(places) for axis, places in axes.items()})

    hue, marker = DRAWN[name]
    about = {"name": name, "asked": kind, "hue": hue, "marker": marker} | {word: example[word] for word in WORDS}
    numbers = {field: column(one.get(field) for one in answers) for field in NUMBERS}
    reason = column(reasons.index(one["reason"]) if "reason" in one else None for one in answers)
    return about | numbers | {"reason": reason}


def upwards(value: float | None) -> float | None:
    """The least number of six digits that is not below this one.

    >>> upwards(0.12345601), upwards(3.0), upwards(None)
    (0.123457, 3, None)
    """
    if value is None:
        return None
    rounded = float(DIGITS.create_decimal(repr(float(value))))
    return int(rounded) if rounded.is_integer() else rounded


def compact(values: list[Any], sizes: Mapping[str, int]) -> dict[str, Any]:
    """Values on a grid, without the axes along which they never change.

    >>> compact([1, 2, 1, 2], {"rounds": 2, "budget": 2})
    {'along': ['budget'], 'values': [1, 2]}
    """
    whole = np.empty(len(values), dtype=object)
    whole[:] = values
    whole = whole.reshape(tuple(sizes.values()))
    along = list(sizes)
    for axis in reversed(range(len(along))):
        first = np.take(whole, [0], axis)
        if (whole == first).all():
            whole = first.squeeze(axis)
            del along[axis]
    return {"along": along, "values": whole.ravel().tolist()}


RECORDING = Recording(RECORDED.name, parts, told=told, indent=None)
