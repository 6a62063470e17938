"""The budgets that documents print, beside what the ledger recorded of the same mechanisms from above and below."""

import math
from dataclasses import dataclass

from matplotlib.axes import Axes

from flamebook.claims.ledger import load
from flamebook.claims.record import recorded
from flamebook.figures.style import Pen
from flamebook.records import Parameters, to_csv, words
from flamebook.statements import AtLeast, AtMost, counted, times
from flamelib.core.vocabulary import DomainError

SAMPLED, ALONE = "FLAME: SS-Topk, 2 %, with sampling", "FLAME: SS-Topk, 2 %, shuffling alone"
HEADER = ["guarantee", "printed", "at least", "at most", "so the printed one is"]


@dataclass(frozen=True, slots=True)
class Budget:
    """A printed epsilon and the interval in which the truth lies, at the printed delta.

    Attributes
    ----------
    mechanism : str
    printed : float
    least, most : float
        Certified from below and from above; equal where the epsilon is known exactly.
    """

    mechanism: str
    printed: float
    least: float
    most: float

    @property
    def verdict(self) -> str:
        """In words.

        >>> Budget("SS-Topk", 0.24, 1.286, 1.444).verdict, Budget("SS-Simple", 0.91, 0.09, 0.201).verdict
        ('too small, at least 5.3 times', 'safe, at least 4.5 times too large')
        """
        if self.printed < self.least:
            return f"too small, at least {_down(self.least / self.printed)} times"
        if self.printed >= self.most:
            return f"safe, at least {_down(self.printed / self.most)} times too large"
        return "open: neither proven nor refuted"


def _down(ratio: float) -> float:
    return math.floor(ratio * 10) / 10


@dataclass(frozen=True)
class Budgets:
    """Budgets in the order in which they are drawn, from above."""

    budgets: tuple[Budget, ...]
    parameters: Parameters

    def words(self) -> dict[str, str]:
        """Words for the page: on which side of their bars the crosses lie, and how safe the paper's footnote is."""
        small = sum(one.printed < one.least for one in self.budgets)
        safe = sum(one.printed >= one.most for one in self.budgets)
        named = {one.mechanism: one for one in self.budgets}
        alone = named[ALONE]
        crosses = counted(len(self.budgets), "printed budget")
        return {
            "budgets_alt": f"{crosses} as crosses beside bars of what is certified: {small} left of their bars, "
            f"{len(self.budgets) - small - safe} open, {safe} right of them.",
            "alone_too_large": times(_down(alone.printed / alone.most)),
        }

    def rows(self) -> list[tuple[object, ...]]:
        """For a table, as in ``HEADER``."""
        return [
            (one.mechanism, one.printed, AtLeast(one.least), AtMost(one.most), one.verdict)
            for one in self.budgets
        ]

    def to_csv(self) -> str:
        """One row a budget."""
        return to_csv(HEADER, self.rows())


def draw_budgets(ax: Axes, record: Budgets, pen: Pen) -> None:
    """A bar from the lower to the upper bound under its name, and a cross where the document puts the budget."""
    at = range(len(record.budgets))
    left = min(one.least for one in record.budgets) / 1.6
    for place, one in enumerate(record.budgets):
        nearest = min(max(one.printed, one.least), one.most)
        ax.plot([one.printed, nearest], [place, place], color=pen.theme.ink, linewidth=1.2, linestyle=":")
        ax.plot([one.least, one.most], [place, place], color=pen.colour("sky"), linewidth=7, solid_capstyle="butt")
    bars = {"linestyle": "", "marker": "|", "markersize": 14, "markeredgewidth": 2}
    least = [one.least for one in record.budgets]
    ax.plot(least, at, **pen.line("lower", label="certified lower bound", **bars))
    ax.plot([one.most for one in record.budgets], at, **pen.line("certified", **bars))
    ax.plot([one.printed for one in record.budgets], at, color=pen.colour("vermillion"), linestyle="", marker="X",
            markersize=9, label="printed")  # fmt: skip
    clear = {"facecolor": pen.theme.page, "edgecolor": "none", "pad": 1}
    for place, one in enumerate(record.budgets):  # above the bar, for beside it a phone would show little else
        ax.text(0.015, place - 0.42, one.mechanism, transform=ax.get_yaxis_transform(), va="center", bbox=clear)
    ax.set(xlabel=words("epsilon"), xscale="log", xlim=(left, None), ylim=(len(record.budgets) - 0.6, -0.8), yticks=[])
    ax.set_axisbelow(True)
    ax.grid(visible=False, axis="y")


# A name, the row that states the printed budget, the row of a certified upper bound, and that of a lower one.
ROWS: tuple[tuple[str, str, str, str], ...] = (
    (SAMPLED, "flame:claim-0.24/topk-epsilon", "flame:claim-0.24/topk-upper",
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
    (ALONE, "flame:claim-20.53/guarantee", "flame:claim-0.24/topk-upper",
     "flame:weighed/fiftieth"),
)  # fmt: skip


def compute_budgets() -> Budgets:
    """From the record of the ledger, which a test compares with its computation.

    Examples
    --------
    >>> found = compute_budgets().budgets
    >>> found[0].mechanism, round(found[0].printed, 2), round(found[0].least, 3), round(found[0].most, 3)
    ('FLAME: SS-Topk, 2 %, with sampling', 0.24, 1.286, 1.444)
    """
    stated, found = {claim.id: claim.stated for claim in load()}, recorded()
    budgets = tuple(
        Budget(name, *map(_number, (stated[printed], found[lower][1], found[upper][1])))
        for name, printed, upper, lower in ROWS
    )
    return Budgets(budgets, {"ledger": "data/results/ledger.csv"})


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise DomainError(f"the rows of printed budgets must hold one number each, got {value!r}")
    return float(value)
