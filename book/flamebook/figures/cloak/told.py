"""Words for what curves show: where each begins and ends, and where it passes a level."""

import math

import numpy as np

from flamebook.records import LOOKS, Curves


def number(value: float) -> str:
    """Three digits of a number, written out where that is short.

    >>> [number(value) for value in (1.789e9, 63.246, 0.0004567, 3.2e15, math.inf)]
    ['1,790,000,000', '63.2', '0.000457', '3.2e+15', 'infinity']
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "infinity"
    short = float(f"{value:.3g}")
    return f"{short:,.0f}" if 1000 <= short < 1e15 else f"{short:g}"


def ends(record: Curves, *names: str) -> str:
    """The label of each curve with its first and its last known value; all curves, if none is named.

    >>> curves = {"rule-t1": np.array([2.0, 8000.0]), "local": np.array([np.nan, np.nan])}
    >>> ends(Curves("n_users", "bits", np.array([10.0, 20.0]), curves))
    'rule T1 from 2 to 8,000'
    """
    found = []
    for name in names or record.curves:
        key, _, kind = name.partition(":")
        values = record.curves[name][np.isfinite(record.curves[name])]
        if len(values):
            label = f"{LOOKS[key].label}{f', {kind}' if kind else ''}"
            first, last = number(values[0]), number(values[-1])
            found.append(f"{label} {f'from {first} to {last}' if first != last else f'at {last}'}")
    return "; ".join(found) or "nothing"


def first_at_most(record: Curves, name: str, level: float) -> float:
    """The first place where a curve is no higher than this; NaN where there is none.

    >>> record = Curves("n_messages", "distance", np.array([2.0, 4.0, 6.0]), {"own-1": np.array([1.0, 0.5, 0.1])})
    >>> first_at_most(record, "own-1", 0.5), first_at_most(record, "own-1", 0.01)
    (4.0, nan)
    """
    below = np.flatnonzero(record.curves[name] <= level)
    return float(record.x[below[0]]) if len(below) else math.nan
