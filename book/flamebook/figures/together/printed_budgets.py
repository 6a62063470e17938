"""The budgets that documents print, beside what the ledger recorded of the same mechanisms from above and below."""

import math

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from flamebook.claims.ledger import load
from flamebook.claims.record import recorded
from flamebook.page import INK, LOOK, PAGE, SKY, VERMILLION
from flamelib.core.vocabulary import DomainError

# A name, the row that states the printed budget, the row of a certified upper bound, and that of a lower one.
ROWS: tuple[tuple[str, str, str, str], ...] = (
    ("FLAME: SS-Topk, 2 %, with sampling", "flame:claim-0.24/topk-epsilon", "flame:claim-0.24/topk-upper",
     "flame:weighed/fiftieth"),
    ("FLAME: baseline DP-FL, 20.53", "flame:claim-20.53/printed", "flame:claim-20.53/dp-fl-exact",
     "flame:claim-20.53/dp-fl-exact"),
    ("FLAME: SS-Topk, 10 %", "flame:claim-2.348/topk-guarantee", "flame:claim-2.348/topk-guarantee",
     "flame:weighed/tenth"),
    ("FLAME: baseline DP-FL, 0.24", "flame:claim-0.24/dp-fl", "flame:claim-0.24/dp-fl-exact",
     "flame:claim-0.24/dp-fl-exact"),
    ("FLAME: SS-Double, 2 %", "flame:claim-0.24/double-subset", "flame:claim-0.24/double-subset",
     "flame:claim-0.24/subset-lower"),
    ("FLAME: SS-Double, 10 %", "flame:claim-2.348/double-subset", "flame:claim-2.348/double-subset",
     "flame:claim-2.348/subset-lower"),
    ("FLAME: SS-Simple", "flame:claim-0.91/guarantee", "flame:account/simple", "flame:claim-0.91/lower"),
    ("FLAME: SS-Topk, 2 %, shuffling alone", "flame:claim-20.53/guarantee", "flame:claim-0.24/topk-upper",
     "flame:weighed/fiftieth"),
)  # fmt: skip


def of_the_ledger() -> pd.DataFrame:
    """A printed epsilon and the interval in which the truth lies, at the printed delta, from the record of the ledger.

    Both ends are equal where the epsilon is known exactly.  A test compares the record with its computation.

    Examples
    --------
    >>> [round(float(one), 3) for one in of_the_ledger().iloc[0, 1:4]]
    [0.24, 1.286, 1.444]
    """
    stated, found = {claim.id: claim.stated for claim in load()}, recorded()
    rows = [
        (name, _number(stated[printed]), _number(found[lower][1]), _number(found[upper][1]))
        for name, printed, upper, lower in ROWS
    ]
    frame = pd.DataFrame(rows, columns=["guarantee", "printed", "at least", "at most"])
    frame["so the printed one is"] = [verdict(*numbers) for _, *numbers in rows]
    return frame


def verdict(printed: float, least: float, most: float) -> str:
    """In words.

    >>> verdict(0.24, 1.286, 1.444), verdict(0.91, 0.09, 0.201)
    ('too small, at least 5.3 times', 'safe, at least 4.5 times too large')
    """
    if printed < least:
        return f"too small, at least {_down(least / printed)} times"
    if printed >= most:
        return f"safe, at least {_down(printed / most)} times too large"
    return "open: neither proven nor refuted"


def draw(budgets: pd.DataFrame) -> Figure:
    """A bar from the lower to the upper bound under its name, and a cross where the document puts the budget."""
    names, printed, least, most = (budgets[name].to_numpy() for name in budgets.columns[:4])
    fig, ax = plt.subplots(figsize=(5.4, 6))
    at = np.arange(len(budgets))
    ax.hlines(at, printed, np.clip(printed, least, most), color=INK, lw=1.2, ls=":")
    ax.hlines(at, least, most, color=SKY, lw=7)
    bars = {"linestyle": "", "marker": "|", "markersize": 14, "markeredgewidth": 2}
    ax.plot(least, at, **LOOK["lower"] | bars | {"label": "certified lower bound"})
    ax.plot(most, at, **LOOK["certified"] | bars)
    ax.plot(printed, at, color=VERMILLION, ls="", marker="X", ms=9, label="printed")
    clear = {"facecolor": PAGE, "edgecolor": "none", "pad": 1}
    for place, name in enumerate(names):  # above the bar, for beside it a phone would show little else
        ax.text(0.015, place - 0.42, name, transform=ax.get_yaxis_transform(), va="center", bbox=clear)
    ax.set(xlabel=r"central budget $\varepsilon$", xscale="log", xlim=(least.min() / 1.6, None))
    ax.set(ylim=(len(budgets) - 0.6, -0.8), yticks=[])
    ax.set_axisbelow(True)
    ax.grid(visible=False, axis="y")
    return fig


def _down(ratio: float) -> float:
    return math.floor(ratio * 10) / 10


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise DomainError(f"the rows of printed budgets must hold one number each, got {value!r}")
    return float(value)
