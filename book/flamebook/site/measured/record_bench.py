"""The grid of *Defend your epsilon*, recorded: about an hour on a core, a part for each table and budget.

Upper ends and costs are rounded up to five digits, lower ends down, so that none is on the wrong side.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cache, partial
from itertools import product
from math import prod, sqrt
from typing import Any

import numpy as np

from flamebook.places import ROOT
from flamebook.runs import inputs
from flamebook.runs.record import Part, Recording, Results
from flamebook.site.measured.bench_grid import EPSILON, EPSILON0, FARTHEST, REACH, RECORDED, TABLES, Table
from flamelib.core.vocabulary import DomainError
from flamelib.uses.deployments import Refusal, mechanisms, row
from flamelib.uses.local_mechanisms import LOCAL
from flamelib.uses.lower_bounds import bracketed
from flamelib.uses.workload import TASKS, Request, Row

# A hue for each document, so that its mechanisms are seen together.
DRAWN: dict[str, tuple[str, str]] = {
    "local": ("grey", "s"), "local Gaussian": ("grey", "v"), "trusted curator": ("black", "*"),
    "blanket": ("blue", "o"),
    "simple": ("purple", "^"), "double": ("purple", "D"), "topk": ("purple", "o"),
    "random participation": ("green", "P"),
    "shuffled check-in": ("ochre", "s"), "distributed check-in": ("ochre", "v"),
    "cloak, Theorem 1": ("vermillion", "D"), "cloak, Pólya noise": ("vermillion", "o"),
    "cloak, Skellam noise": ("vermillion", "s"), "cloak, no noise": ("vermillion", "x"),
}  # fmt: skip

ABOVE, BELOW = Context(prec=5, rounding=ROUND_CEILING), Context(prec=5, rounding=ROUND_FLOOR)
WORDS = ("document", "trusted", "adjacency", "warning")
GRID = "book/flamebook/site/measured/bench_grid.py"
Columns = dict[str, list[float | None]]


def parts() -> dict[str, Part]:
    """Every table of every mechanism, at one budget each; those of one budget share what they ask for.

    A part depends on its own table, and on no other: one that becomes finer leaves all others as they are.
    """
    read = cache(_read)
    return {
        f"{name}/{budget:g}/{number}": Part(partial(columns, name, table, budget), read, [FARTHEST, asdict(table)])
        for name in mechanisms()
        for budget in _budgets(name)
        for number, table in enumerate(TABLES[name])
    }


def _read() -> dict[str, str]:
    """All that is imported but the tables."""
    found = inputs.of_code(f"import {__name__}", ROOT)
    return {path: digest for path, digest in found.items() if path != GRID}


def _budgets(name: str) -> tuple[float, ...]:
    return EPSILON0 if name in LOCAL else EPSILON


def columns(name: str, table: Table, budget: float) -> Columns:
    """The columns of a table at this budget: a value for every point, the last axis running fastest."""
    *outer, (last, points) = table.axes.items() or [("budget", (budget,))]
    found: Columns = {column: [] for column in table.columns}
    for place in product(*(values for _, values in outer)):
        at = dict(zip((axis for axis, _ in outer), place, strict=True))
        line = (at | {last: point} for point in points)
        for told in (_promises if table.promises else _costs)(name, table, line, budget):
            for column, values in found.items():
                values.append(told.get(column))
    return found


def answered(name: str, request: Request, budget: float) -> Row | Refusal:
    """The library's answer at a local budget, or at a central one."""
    try:
        return row(name, request, **{"epsilon0" if name in LOCAL else "epsilon": budget})
    except DomainError as refusal:
        return Refusal(name, str(refusal))


def _promises(
    name: str, table: Table, line: Iterator[Mapping[str, float]], budget: float
) -> Iterable[Mapping[str, float | None]]:
    """Both ends at requests that become harder.

    What an easier one loses, a harder one loses too, and what a harder one is promised, an easier one is promised too.
    """
    told: list[dict[str, float | None]] = []
    lower, upper, beyond = 0.0, float(FARTHEST), False
    for at in line:
        request = table.request(at)
        found = None if beyond else answered(name, request, budget)
        if not isinstance(found, Row) or (beyond := found.epsilon > FARTHEST):
            told.append({})
            continue
        if "lower" in table.columns:
            lower = max(lower, bracketed(found, request).lower or 0.0)
        told.append({"epsilon": rounded(found.epsilon), "lower": rounded(lower, BELOW)})
    for one in reversed(told):
        if one:
            upper = min(upper, one["epsilon"] or 0.0)
            one["epsilon"] = upper
    return told


def _costs(
    name: str, table: Table, line: Iterator[Mapping[str, float]], budget: float
) -> Iterator[Mapping[str, float | None]]:
    for at in line:
        request = table.request(at)
        found = answered(name, request, budget)
        if isinstance(found, Refusal):
            yield {}
            continue
        costs = {"error": found.error, "bits": found.bits}
        if "absence" in table.columns:
            costs |= {"error": sqrt(max(found.error**2 - request.absence, 0.0)), "absence": sqrt(request.absence)}
        yield {column: rounded(value / power(table, column, request)) for column, value in costs.items()}


def power(table: Table, column: str, request: Request) -> float:
    """What is taken out of a cost."""
    return float(prod(getattr(request, name) ** exponent for name, exponent in table.columns[column].items()))


def rounded(value: float, side: Context = ABOVE) -> float:
    """The next number of five digits on this side.

    >>> rounded(0.12345601), rounded(0.12345601, BELOW), rounded(3.0)
    (0.12346, 0.12345, 3)
    """
    found = float(side.create_decimal(repr(float(value))))
    return int(found) if found.is_integer() else found


def told(results: Results) -> dict[str, Any]:
    """The tables of every mechanism, each column along the axes on which it depends."""
    return {
        "reach": REACH,
        "farthest": FARTHEST,
        "budgets": {"epsilon0": EPSILON0, "epsilon": EPSILON},
        "sampling_rate": Request(2).sampling_rate,
        "unasked": _refused("trusted curator", Request(2), {"epsilon0": 1.0}),
        "mechanisms": [_mechanism(name, results) for name in mechanisms()],
    }


def _refused(name: str, request: Request, budget: Mapping[str, float]) -> str:
    found = row(name, request, **budget)
    return found.reason if isinstance(found, Refusal) else ""


def _mechanism(name: str, results: Results) -> dict[str, Any]:
    asked, (hue, marker) = "epsilon0" if name in LOCAL else "epsilon", DRAWN[name]
    answers = {task: answered(name, Request(1000, 2, task=task), 1.0) for task in TASKS}
    example = next(one for one in answers.values() if isinstance(one, Row))
    about: dict[str, Any] = {"name": name, "asked": asked, "hue": hue, "marker": marker}
    about |= {word: str(getattr(example, word)) for word in WORDS}
    about["refuses"] = {task: one.reason for task, one in answers.items() if isinstance(one, Refusal)}
    kept = [
        [results[f"{name}/{budget:g}/{number}"] for budget in _budgets(name)] for number in range(len(TABLES[name]))
    ]
    return about | {"tables": [_table(*both) for both in zip(TABLES[name], kept, strict=True)]}


def _table(table: Table, kept: list[Columns]) -> dict[str, Any]:
    sizes = {axis: len(points) for axis, points in table.axes.items()} | {"budget": len(kept)}
    found = {}
    for column, powers in table.columns.items():
        values = [value for line in zip(*(one[column] for one in kept), strict=True) for value in line]
        found[column] = compact(values, sizes) | ({"powers": powers} if powers else {})
    about: dict[str, Any] = {"tasks": table.tasks, "dimensions": table.dimensions, "axes": table.axes}
    return about | ({"below": table.below} if table.below else {}) | {"columns": found}


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
