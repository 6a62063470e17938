r"""What the page *Defend your epsilon* shows: recorded answers of ``flamelib compare``, read on the safe side.

The page cannot compute, so it looks up a grid of requests that ``flamelib record bench`` has computed by the same
functions.  A request between its points gets the epsilon of the next harder one.  Which one is harder, and why:

``n_users``
    Fewer: messages of users that are alike in both data sets can be made up.  Proven, but for SS-Double, whose bags
    grow with the crowd and may overflow: the grid shows that its certified epsilon can rise, so that it is answered at
    recorded crowds only.
``rounds``, and ``dimension`` of a mean
    More: fewer rounds, or reports, are a part of more.  Proven.  One number stands for itself.
``delta``
    Smaller: a guarantee at one delta is one at every larger delta.  Proven.
``dimension`` of a histogram
    More items, but for a report of the item itself fewer.  Proven, from three items on: all others hold a third item,
    and nothing but messages for the two items in question tells.  Of the others such a message comes with the chance
    :math:`r = 2/(e^{\varepsilon_0}+k-1)`, of the one who differs with :math:`(e^{\varepsilon_0}+1)r/2`.  More
    items are a smaller r: the same, with each of these messages dropped by a coin.  That this is the worst case is the
    reduction to the blanket.

A budget is never between two points: it is chosen among those of the grid.  Sums are tuned to theirs, so that it is
their epsilon.  Errors and bits, which promise nothing, are the largest at the corners of the cell; that errors
are monotone is checked over the grid.
"""

import json
from pathlib import Path
from typing import Any

from flamebook.places import RESULTS
from flamelib.uses.requests import TASKS

RECORDED = RESULTS / "bench.json"

# The grid of the page: every request of these, at each local budget of a report and each central one of a sum.
AXES: dict[str, tuple[Any, ...]] = {
    "task": TASKS,
    "n_users": (100, 1000, 10_000, 100_000, 1_000_000),
    "dimension": (1, 16, 256),
    "rounds": (1, 12, 365),
    "delta": (1e-6, 1e-8),
}
EPSILON0 = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
EPSILON = (0.1, 0.3, 1.0, 3.0, 10.0)

NEEDS = {
    "local": "nobody", "local Gaussian": "nobody", "blanket": "shuffler", "simple": "shuffler", "double": "shuffler",
    "topk": "shuffler", "shuffled check-in": "shuffler", "distributed check-in": "others", "cloak, Theorem 1": "others",
    "cloak, Pólya noise": "others", "cloak, Skellam noise": "others", "cloak, no noise": "others",
    "random participation": "server", "trusted curator": "server",
}  # fmt: skip
"""Whom a mechanism relies on: nobody, a shuffler, the noise of others behind a secure sum or shufflers, the server."""

CITED = frozenset({"cloak, Skellam noise"})
"""Mechanisms whose epsilon rests on a theorem that the book cites; the others are proven."""


def script(recorded: Path = RECORDED) -> str:
    """The recorded grid as a script, because a page opened from disk may load scripts and nothing else."""
    table = json.loads(recorded.read_text(encoding="utf-8"))
    for one in table["mechanisms"]:
        one |= {"needs": NEEDS[one["name"]], "rests_on": "cited" if one["name"] in CITED else "proven"}
    return f"flamelibDefend.receive({json.dumps(table, separators=(',', ':'), ensure_ascii=False)});\n"
