"""All mechanisms on common axes: error against the certified epsilon, and bits against the number of users."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from matplotlib.axes import Axes

from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Parameters, columns_csv, to_csv, words
from flamebook.statements import AtMost, Finding, compared, ranked, silent
from flamelib.accounting.splitting.costs import cost
from flamelib.uses.deployments import Refusal, row
from flamelib.uses.reports import LOCAL
from flamelib.uses.requests import Request, Row
from flamelib.uses.sums import CENTRAL

Key = tuple[str, str]
# A hue for each document, so that its mechanisms are seen together.
DRAWN: dict[str, Key] = {
    "local": ("grey", "s"), "local Gaussian": ("grey", "v"), "trusted curator": ("black", "*"),
    "blanket": ("blue", "o"),
    "simple": ("purple", "^"), "double": ("purple", "D"), "topk": ("purple", "o"),
    "random participation": ("green", "P"),
    "shuffled check-in": ("ochre", "s"), "distributed check-in": ("ochre", "v"),
    "cloak, Theorem 1": ("vermillion", "D"), "cloak, Pólya noise": ("vermillion", "o"),
    "cloak, Skellam noise": ("vermillion", "s"), "cloak, no noise": ("vermillion", "x"),
}  # fmt: skip
FLAME = {name: LOOKS[name] for name in ("simple", "double", "topk")}
CLOAKS = ("cloak, Theorem 1", "cloak, Pólya noise", "cloak, Skellam noise")
HEADER = ["mechanism", "certified", "claimed", "error", "messages", "bits", "who must be trusted", "neighbours"]
AGGREGATION = "secure aggregation (Bonawitz et al.)"


@dataclass(frozen=True)
class Crossing:
    """Rows of every mechanism at several budgets, and why the others have none."""

    found: tuple[Row, ...]
    refused: tuple[Refusal, ...]
    parameters: Parameters

    def series(self, name: str) -> list[Row]:
        """The rows of one mechanism, by their certified epsilon."""
        return sorted((one for one in self.found if one.mechanism == name), key=lambda one: one.epsilon)

    @property
    def names(self) -> list[str]:
        """Mechanisms that have rows."""
        return [name for name in DRAWN if any(one.mechanism == name for one in self.found)]

    def best(self, name: str) -> Row | None:
        """The row of a mechanism that errs least; none where it cannot serve."""
        return min(self.series(name), key=lambda one: one.error, default=None)

    def errs_less(self, *names: str, times: float = 1.0) -> Finding:
        """Whether each mechanism errs less than the next one, by more than this factor."""
        found = {name: self.best(name) for name in names}
        errors = [one.error for one in found.values() if one]
        if len(errors) < len(names):
            return silent(f"{next(name for name, one in found.items() if one is None)} does not serve this request")
        if times == 1:
            return compared(errors[:-1], "<", errors[1:])
        return compared([more / less if less else math.inf for less, more in pairwise(errors)], ">", times)

    @property
    def largest_claim(self) -> float:
        """A comparable row's claimed epsilon over the certified one, the largest; NaN where nothing is claimed."""
        ratios = [one.claimed / one.epsilon for one in self.found if one.claimed and one.epsilon and not one.warning]
        return max(ratios, default=math.nan)

    @property
    def errors_in_order(self) -> str:
        """The mechanisms in the order of their least errors."""
        return f"from above: {ranked({name: one.error for name in self.names if (one := self.best(name))})}"

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: one row each, as in ``HEADER``."""
        return [_cells(one) for one in self.found]

    def to_csv(self) -> str:
        """All rows."""
        return to_csv(HEADER, self.rows())


def _named(mechanism: str) -> str:
    """As in a legend: the protocols of FLAME by their own names.

    >>> _named("simple"), _named("blanket")
    ('SS-Simple', 'blanket')
    """
    return FLAME[mechanism].label if mechanism in FLAME else mechanism


def _cells(one: Row) -> tuple[object, ...]:
    claimed = "none" if one.claimed is None else one.claimed
    adjacency = f"{one.adjacency} (not comparable)" if one.warning else str(one.adjacency)
    return (
        _named(one.mechanism),
        AtMost(one.epsilon),
        claimed,
        one.error,
        one.messages,
        one.bits,
        one.trusted,
        adjacency,
    )


def refused_rows(record: Crossing) -> list[tuple[object, ...]]:
    """For a table: who cannot serve, and why."""
    return [(_named(one.mechanism), one.reason) for one in record.refused]


def compute_rows(request: Request, epsilon: float, names: Iterable[str]) -> Crossing:
    """The mechanisms named, each tuned to one certified epsilon.

    Parameters
    ----------
    request : Request
    epsilon : float, positive
    names : iterable of str
        Of mechanisms.
    """
    return _crossing([row(name, request, epsilon) for name in names], request, {"epsilon": epsilon})


def compute_crossing(request: Request, budgets: Sequence[float]) -> Crossing:
    """Every mechanism at every budget: the local one of a report where there is one, the central one elsewhere.

    Nothing is searched for, so that the certified epsilons of shuffled reports are what they come out as.

    Parameters
    ----------
    request : Request
    budgets : sequence of float
    """
    local = [row(name, request, epsilon0=budget) for name in LOCAL for budget in budgets]
    central = [row(name, request, budget) for name in CENTRAL for budget in budgets]
    return _crossing([*local, *central], request, {"epsilon0": ", ".join(f"{budget:g}" for budget in budgets)})


def _crossing(found: Sequence[Row | Refusal], request: Request, told: Parameters) -> Crossing:
    refused = {one.mechanism: one for one in found if isinstance(one, Refusal)}
    rows = tuple(one for one in found if isinstance(one, Row))
    names = ("n_users", "dimension", "rounds", "delta", "task", "sampling_rate")
    return Crossing(rows, tuple(refused.values()), {**{name: getattr(request, name) for name in names}, **told})


def draw_errors(ax: Axes, record: Crossing, pen: Pen) -> None:
    """One line a mechanism; open ends where budgets of another adjacency are compared for want of better."""
    for name in record.names:
        hue, marker = DRAWN[name]
        points = record.series(name)
        shown = [one for one in points if one.error > 0]
        dash = ":" if any(one.warning for one in points) else "-"
        ax.plot(
            [one.epsilon for one in shown], [one.error for one in shown], color=pen.theme.hues[hue], marker=marker,
            linestyle=dash, linewidth=1.5, markersize=6, label=_named(name),
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel=words("epsilon"), ylabel="root mean squared error of the mean")


@dataclass(frozen=True)
class Bits:
    """Bits that a user sends for one number, against the number of users."""

    n_users: tuple[int, ...]
    bits: dict[str, tuple[float, ...]]
    parameters: Parameters

    @property
    def in_words(self) -> str:
        """The bits of each way to add up, for the smallest and the largest crowd."""
        ends = {name: [bits[at] for at in (0, -1) if math.isfinite(bits[at])] for name, bits in self.bits.items()}
        told = [f"{name} from {bits[0]:,.0f} to {bits[-1]:,.0f}" for name, bits in ends.items() if len(bits) > 1]
        crowds = f"from {self.n_users[0]:,} to {self.n_users[-1]:,} users"
        return f"{crowds}: {'; '.join(told) or 'no mechanism serves both'}"

    def to_csv(self) -> str:
        """One row a number of users."""
        return columns_csv({"n_users": self.n_users, **self.bits})


def compute_bits(request: Request, epsilon: float, n_users: Iterable[int]) -> Bits:
    """Cloak aggregation and secure aggregation with their parameters at every size; nan where a rule has none.

    Parameters
    ----------
    request : Request
        Its number of users is replaced.
    epsilon : float
    n_users : iterable of int
    """
    sizes = tuple(n_users)
    found: dict[str, tuple[float, ...]] = {
        name: tuple(_bits(row(name, replace(request, n_users=n), epsilon)) for n in sizes) for name in CLOAKS
    }
    found[AGGREGATION] = tuple(
        float(cost("cmp-bon", n, epsilon, request.delta, dimension=request.dimension).bits) for n in sizes
    )
    return Bits(sizes, found, {"epsilon": epsilon, "delta": request.delta, "dimension": request.dimension})


def _bits(one: Row | Refusal) -> float:
    return one.bits if isinstance(one, Row) else math.nan


def draw_bits(ax: Axes, record: Bits, pen: Pen) -> None:
    """One line a way to add up; 64 bits, those of a number in the open, for comparison."""
    for name, bits in record.bits.items():
        hue, marker = DRAWN.get(name, ("black", "P"))
        ax.plot(record.n_users, bits, color=pen.theme.hues[hue], marker=marker, linewidth=1.5, label=name)
    ax.axhline(64, color=pen.theme.faint, linewidth=2, label="a real number in the open")
    ax.set(xscale="log", yscale="log", xlabel=words("n_users"), ylabel="bits of a user")
