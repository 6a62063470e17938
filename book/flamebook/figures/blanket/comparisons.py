"""What curves say, in words: who lies above whom, by how much, from which crowd on."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from flamebook.records import LOOKS, Curves
from flamebook.statements import counted, ranked, sided, times
from flamelib.core.arrays import Reals

SAME = 1e-6  # relative difference below which two curves are drawn as one


def as_large(ratio: float) -> str:
    """How one number compares with another, given their ratio.

    >>> as_large(11.2), as_large(1.001), as_large(float("nan"))
    ('11 times as large as', 'about as large as', 'not comparable with')
    """
    if np.isnan(ratio):
        return "not comparable with"
    return "about as large as" if times(ratio) == "once" else f"{times(ratio)} as large as"


def over(one: ArrayLike, other: ArrayLike) -> Reals:
    """Ratios of two curves: NaN where both are 0, infinite where the other one is.

    >>> over([1.0, 0.0, 1.0], [2.0, 0.0, 0.0]).tolist()
    [0.5, nan, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.divide(np.asarray(one, dtype=float), np.asarray(other, dtype=float)))


def span(ratios: ArrayLike) -> str:
    """The least and the largest of several ratios, in words.

    >>> span([1.94, 3.37]), span([2.01, 2.03]), span([2, math.inf]), span([math.nan])
    ('1.9 to 3.4 times', '2 times', '2 to infinitely many times', 'an unknown number of times')
    """
    known = np.asarray(ratios, dtype=float)
    known = known[~np.isnan(known)]
    if not known.size:
        return times(math.nan)
    low, high = (f"{one:.2g} times" if math.isfinite(one) else times(one) for one in (known.min(), known.max()))
    return high if low == high else f"{low.removesuffix(' times')} to {high}"


def side(one: ArrayLike, other: ArrayLike) -> str:
    """Where one curve lies, seen from the other, as the verb of a sentence.

    >>> side([1, 2], [1, 3]), side([2, 2], [1, 3]), side([1, 2], [1, 2])
    ('lies below', 'lies partly above and partly below', 'is the same as')
    """
    a, b = np.broadcast_arrays(np.asarray(one, dtype=float), np.asarray(other, dtype=float))
    told = ~(np.isnan(a) | np.isnan(b))
    if not told.any():
        return "cannot be compared with"
    above, below = (a > b * (1 + SAME))[told].any(), (a < b * (1 - SAME))[told].any()
    if above and below:
        return "lies partly above and partly below"
    return "lies above" if above else "lies below" if below else "is the same as"


def from_on(users: ArrayLike, where: ArrayLike) -> str:
    """For which of some crowds, in growing order, something is so; empty where for none.

    >>> from_on([10, 1000, 20000], [False, True, True]), from_on([10, 1000], [True, False])
    ('from 1,000 users on', 'at 1 of 2 crowds')
    >>> from_on([10, 20], [True, True]), from_on([10, 20], [False, False])
    ('for every crowd of the figure', '')
    """
    crowds, so = np.asarray(users, dtype=float), np.asarray(where, dtype=bool)
    if not so.any():
        return ""
    if so.all():
        return "for every crowd of the figure"
    first = int(so.argmax())
    if so[first:].all():
        return f"from {crowds[first]:,.0f} users on"
    return f"at {so.sum()} of {counted(so.size, 'crowd')}"


def at_the_end(record: Curves) -> str:
    """The curves at the largest number of users, from above; those without a value there are named last.

    >>> at_the_end(Curves("n_users", "epsilon", np.array([10.0, 1000.0]), {"lower": np.array([1.0, 0.25])}))
    'at 1,000 users, from above: lower bound (0.25)'
    """
    is_bound = record.y_name in ("epsilon", "delta")  # else a budget that is allowed, or a ratio
    last = {key: float(values[-1]) for key, values in record.curves.items()}
    named = {_name(key): sided(key, value) if is_bound else value for key, value in last.items()}
    known = {name: value for name, value in named.items() if np.isfinite(value)}
    silent = [name for name in named if name not in known]
    words = f"at {record.x[-1]:,.0f} users, from above: {ranked(known) if known else 'none'}"
    return words + (f"; without a value: {', '.join(silent).removesuffix('.')}" if silent else "")


def best(values: Mapping[str, Reals], names: Sequence[str], one: str, other: str) -> list[str]:
    """Of these names, those for which the curve ``one:name`` ends above ``other:name``."""
    return [name for name in names if values[f"{one}:{name}"][-1] > values[f"{other}:{name}"][-1] * (1 + SAME)]


def _name(key: str) -> str:
    bound, _, kind = key.partition(":")
    return f"{LOOKS[bound].label} for {kind}" if kind else LOOKS[bound].label
