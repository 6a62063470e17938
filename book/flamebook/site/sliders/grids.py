r"""Numerical bounds read off recorded grids, always on the safe side; standard library only.

``data/results/certified.json`` holds what the library answered at the points of a few grids
(:mod:`flamebook.site.sliders.record_grids`).  Nothing is interpolated: an input between two points is answered by the
point at which the worst case W, over all data sets, can only be worse for an upper bound, and only be milder for a
lower one.  Where W moves with an input, and why:

``delta``
    Falls: a guarantee at one delta is one at every larger delta.
``epsilon0``
    Rises.  A budget is kept by whoever keeps a smaller one.  K-ary response of a smaller budget is that of a larger
    one, mixed with uniform messages; Laplace noise of scale :math:`1/\varepsilon_0` is that of scale
    :math:`1/\varepsilon_0'` plus, but with chance :math:`(\varepsilon_0/\varepsilon_0')^2`, Laplace noise of scale
    :math:`1/\varepsilon_0`.  Either is done to each message alone, so before the shuffler as well as after it.
``n_users``, ``padded``
    Fall: messages of users that are alike in both data sets can be made up and shuffled in, or added to a sum.
``rounds``
    Rises: fewer rounds are a part of more.
``noise_std``
    Falls: noise can be added, for it is known how many sent some.
``participation_rate``, ``record_rate``, ``n_records``
    Rise.  With a smaller participation rate a round is, by a coin, that of the larger one or one without the client, in
    which both data sets are alike.  The dominating pair of
    :func:`flamelib.accounting.sampling.secret_participation.random_participation` rises with the record rate: given how
    many other records were drawn it is, by a coin, the pair of the larger rate or a measure against itself; it rises
    with their number by the Gram-matrix lemma, and that number rises with the rate and with the records.  A client with
    more records may have some whose gradients are 0.
``checkin_rate`` of shuffled reports
    Rises: messages can be dropped from what is seen.
``kept``
    Rises: data sets may differ in fewer coordinates.
``modulus``, ``n_messages``
    By the formula of :mod:`flamelib.accounting.splitting.n_user_bounds`: E falls with the messages, and
    :math:`\tfrac N2\,E[1+N+\dots+N^{c-2}]`, the square of the distance, rises with the modulus.

Of the inputs in :data:`UNORDERED` no such thing is known, or the contrary: more senders bring more noise as well as
more privacy by sampling; which of the messages in a bag are those of one user who reports fewer at random cannot be
told, so that none can be dropped; and three users with three shares each, modulus 2, are bounded by more than two users
are.  These are answered at the points of the grid only.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from flamebook.places import RESULTS
from flamelib.core.vocabulary import DomainError

RECORDED = RESULTS / "certified.json"
FALLING = frozenset({"delta", "n_users", "padded", "noise_std", "n_messages"})
# Inputs of a grid in which no order of the bound is known.
UNORDERED: dict[str, str] = {
    "kary": "n_buckets",
    "participation-lower": "record_rate",
    "distributed": "checkin_rate",
    "distributed-theorem": "checkin_rate",
    "shares": "n_users",
    "double": "kept",
}


@cache
def grids() -> dict[str, Any]:
    """The recorded grids by their keys: statement, inputs of all points, axes, values (the last axis fastest)."""
    found: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))["grids"]
    return found


def certified(key: str, inputs: Mapping[str, float]) -> dict[str, Any]:
    """The recorded bound that holds at these inputs, and the point of the grid at which it was computed.

    Parameters
    ----------
    key : str
        A key of :func:`grids`.
    inputs : mapping
        A number for every axis of the grid.

    Returns
    -------
    dict
        ``value``; ``gives``; ``source``; ``at``, the point, and ``off``, whether it is another than the inputs';
        ``command``, which answers the very value.

    Raises
    ------
    DomainError
        If the grid has no point on the safe side.

    Examples
    --------
    >>> found = certified("clones", {"epsilon0": 0.9, "n_users": 12_345, "delta": 1e-6})
    >>> found["command"]
    'flamelib evaluate clones:2021 epsilon0=1 n_users=10000 delta=1e-06'
    >>> round(found["value"], 4)
    0.053
    """
    grid = grids()[key]
    at = {name: _safe(key, name, tuple(axis), inputs[name]) for name, axis in grid["axes"].items()}
    index = 0
    for name, axis in grid["axes"].items():
        index = index * len(axis) + axis.index(at[name])
    value = grid["values"][index]
    words = " ".join(f"{name}={given}" for name, given in (grid["inputs"] | at).items())
    off = any(at[name] != inputs[name] for name in at)
    return {
        "value": value[grid["answers"]] if isinstance(value, dict) else value,
        # What is exact at another point is a bound here.
        "gives": "upper" if grid["gives"] == "exact" and off else grid["gives"],
        "source": grid["source"],
        "at": at,
        "off": off,
        "command": f"flamelib evaluate {grid['statement']} {words}",
    }


def towards(key: str, name: str) -> int:
    """Whether an axis is rounded up (1) or down (-1) to a point, or not at all (0).

    >>> towards("clones", "n_users"), towards("binary-lower", "n_users"), towards("shares", "n_users")
    (-1, 1, 0)
    """
    if UNORDERED.get(key) == name:
        return 0
    worse = -1 if name in FALLING else 1
    return -worse if grids()[key]["gives"] == "lower" else worse


def _safe(key: str, name: str, axis: tuple[float, ...], value: float) -> float:
    """The nearest point of the axis on the safe side."""
    direction = towards(key, name)
    points = [point for point in axis if direction * (point - value) >= 0 and (direction or point == value)]
    if points:
        return min(points, key=lambda point: abs(point - value))
    if direction:
        bound = f"at most {max(axis):g}" if direction > 0 else f"at least {min(axis):g}"
        raise DomainError(f"{name} must be {bound} on the recorded grid, got {value:g}")
    listed = ", ".join(f"{point:g}" for point in axis)
    raise DomainError(f"{name} must be one of {listed} (in between no order is known), got {value:g}")
