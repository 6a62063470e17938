"""FLAME's budgets: as printed, corrected, certified, and what a count gives away, for all three protocols.

A printed budget is the value of a formula.  Certified ones are upper bounds; those of counting are lower bounds.  They
are drawn side by side, and along the local budget, the number of coordinates, and the share that is reported.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache

import numpy as np
from matplotlib.axes import Axes

from flamebook.figures.curves import draw_curves
from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Curves, Parameters, to_csv, words
from flamebook.statements import AtLeast, AtMost, Finding, compared, sided, verdict
from flamelib.accounting.coordinates import counting
from flamelib.accounting.coordinates.certified import account, double_revealed, topk_truncated
from flamelib.accounting.coordinates.full_bags import dropped_lower, full_bags
from flamelib.accounting.coordinates.weighed import weighed_lower
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import VOCABULARY
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame

BOUNDS = ("withdrawn", "bennett", "hoeffding", "blanket")
PROTOCOLS = ("simple", "double", "exactly", "topk")  # the second includes coordinates independently
DELTA = 0.01 / 1000**1.1
LARGEST_EPSILON0 = VOCABULARY["epsilon0"].high


@dataclass(frozen=True, slots=True)
class Setting:
    """Public parameters of one round; those of the paper's Figure 5 by default.

    ``epsilon0`` is the local budget of a coordinate where ``kept`` are reported; SS-Simple spreads the same total over
    all of them.
    """

    dimension: int = 7850
    n_users: int = 1000
    kept: float = 157
    padded: int = 333
    epsilon0: float = 0.5
    delta: float = DELTA

    @property
    def sampling_rate(self) -> float:
        """Share of the coordinates that a user reports."""
        return self.kept / self.dimension

    def budget(self, protocol: str) -> float:
        """Local budget of one reported coordinate."""
        return self.epsilon0 * self.sampling_rate if protocol == "simple" else self.epsilon0

    def noise(self, protocol: str) -> float:
        """Standard deviation of the noise on each coordinate of the published mean, in units of the clip."""
        laplace = LaplaceNoise(self.budget(protocol))
        if protocol == "simple":
            return flame.noise_std(flame.FlameSimple(self.n_users, self.dimension, 1.0, laplace))
        shape = (self.n_users, self.dimension, 1.0, laplace, self.kept, self.padded)
        return flame.noise_std(flame.FlameDouble(*shape, inclusion="independent"))

    def epsilon(self, protocol: str, bound: str = "blanket", route: str = "sound") -> float:
        """Budget of the vector: upper with route ``sound``, else the value of a formula."""
        return _epsilon(self, protocol, bound, route)

    def exactly(self) -> float:
        """Budget of SS-Double with exactly ``kept`` coordinates, a fraction as the next whole number (upper)."""
        given = asdict(self) | {"kept": math.ceil(self.kept), "inclusion": "exact", "overflow": "drop"}
        return float(account(protocol="double", bound="blanket", route="sound", **given))

    def revealed(self) -> float:
        """The same if the coordinates are told to the analyzer, as they had to be before blocks of them (upper)."""
        return float(double_revealed(self.kept, self.padded, self.epsilon0, self.delta))

    def lower(self, protocol: str) -> float:
        """What counting messages gives away; of SS-Topk where no bag overflows (lower)."""
        each, delta = self.budget(protocol), self.delta
        if protocol == "simple":
            return float(counting.simple_lower(self.dimension, self.n_users, each, delta=delta))
        if protocol == "double":
            return float(
                counting.double_lower(
                    self.dimension, self.sampling_rate, self.padded, each, delta=delta, n_users=self.n_users
                )
            )
        if protocol == "exactly":
            shape = (self.n_users, self.dimension, math.floor(self.kept), self.padded)
            return float(counting.exactly_lower(*shape, each, delta=delta)) if self.kept >= 1 else 0.0
        return float(counting.topk_lower(self.kept, self.padded, each, delta=delta))

    def weighed(self) -> float:
        """What weighing messages of SS-Topk gives away where no bag overflows (lower)."""
        return float(weighed_lower(self.n_users, self.kept, self.padded, self.epsilon0, delta=self.delta))


@cache
def _epsilon(setting: Setting, protocol: str, bound: str, route: str) -> float:
    """Remembered, since figures share settings and a certified budget takes seconds."""
    given = asdict(setting) | {"epsilon0": setting.budget(protocol)}
    return float(account(protocol=protocol, bound=bound, route=route, **given))


FIGURE_5 = Setting()
TENTH = Setting(kept=785, padded=666)


# --- the printed numbers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Printed:
    """Budgets that the paper prints, and the same formulas with each bound on one coordinate."""

    names: tuple[str, ...]
    printed: tuple[float, ...]
    values: Mapping[str, tuple[float, ...]]

    @property
    def reproduced(self) -> bool:
        """Whether the withdrawn form gives every printed number, to less than one unit of its last digit."""
        found = zip(self.printed, self.values["withdrawn"], strict=True)
        return all(abs(value - number) < 10.0 ** -_digits(number) for number, value in found)

    def rows(self) -> list[tuple[object, ...]]:
        """One row a number: what it is, as printed, and with each bound."""
        return list(zip(self.names, self.printed, *self.values.values(), strict=True))

    def to_csv(self) -> str:
        """The rows."""
        return to_csv(["budget", "printed", *self.values], self.rows())


def _digits(number: float) -> int:
    return len(f"{number}".partition(".")[2])


CLAIMS = (
    ("SS-Simple", 0.91, FIGURE_5, "simple", "paper"),
    ("SS-Double and SS-Topk", 0.24, FIGURE_5, "double", "paper"),
    ("SS-Topk without sampling", 20.53, FIGURE_5, "topk", "unsampled"),
    ("SS-Double and SS-Topk, a tenth of the coordinates", 2.348, TENTH, "double", "paper"),
)


def compute_printed() -> Printed:
    """The four budgets of the experiments by the paper's formulas (values): each bound on one coordinate.

    The padding of the last, 666, is inferred: no other whole number below the number of users gives the digits.
    """
    values = {
        bound: tuple(setting.epsilon(protocol, bound, route) for _, _, setting, protocol, route in CLAIMS)
        for bound in BOUNDS
    }
    return Printed(tuple(claim[0] for claim in CLAIMS), tuple(claim[1] for claim in CLAIMS), values)


# --- then and now ----------------------------------------------------------------------------------------------------

FORMULAS = ("withdrawn", "bennett", "blanket")  # by the paper's route: values
MARKS = {"withdrawn": "x", "bennett": "D", "blanket": "s", "certified": "o", "certified-before": "o",
         "certified-full": "^", "lower": "|", "lower-before": "1", "lower-full": "2"}  # fmt: skip


def label(protocol: str) -> str:
    """What a row of the comparison is called; SS-Double in the two ways to include coordinates.

    >>> label("double"), label("exactly")
    ('SS-Double, independent', 'SS-Double, exactly k')
    """
    return LOOKS[protocol].label + ", independent" * (protocol == "double")


@dataclass(frozen=True, slots=True)
class ThenAndNow:
    """Budgets of one round: for each protocol, what every generation of accounting says of it."""

    budgets: Mapping[str, Mapping[str, float]]
    parameters: Parameters

    def interval(self, protocol: str) -> tuple[float, float]:
        """Between what the truth lies: the largest lower and the certified upper bound that allows for overflow."""
        found = self.budgets[protocol]
        return max(found[key] for key in ("lower", "lower-full") if key in found), max(
            found[key] for key in ("certified", "certified-full") if key in found
        )

    @property
    def order(self) -> Finding:
        """Whether every lower bound is below the upper bound of the same assumptions."""
        pairs = (
            *(("lower", "certified"), ("lower-full", "certified-full")),
            *(("lower-before", "lower"), ("certified", "certified-before")),
        )
        given = [
            (found[low], found[high])
            for found in self.budgets.values()
            for low, high in pairs
            if {low, high} <= found.keys()
        ]
        lows, highs = np.array(given).T
        return compared(lows, "<=", highs)

    def verdicts(self) -> list[tuple[object, ...]]:
        """For each protocol, and SS-Topk with full bags: the withdrawn form's value between certified bounds."""
        kinds = [(label(name), found, "") for name, found in self.budgets.items()]
        if "topk" in self.budgets:
            kinds.append((f"{LOOKS['topk'].label}, bags overflow", self.budgets["topk"], "-full"))
        return [
            (name, one["withdrawn"], AtLeast(one[f"lower{kind}"]), AtMost(one[f"certified{kind}"]),
             verdict(one["withdrawn"], one[f"lower{kind}"], one[f"certified{kind}"]))
            for name, one, kind in kinds
        ]  # fmt: skip

    def rows(self) -> list[tuple[object, ...]]:
        """One row a kind of budget, a column a protocol."""
        kinds = list(dict.fromkeys(key for found in self.budgets.values() for key in found))
        each = self.budgets.values()
        return [
            (LOOKS[key].label, *(sided(key, found[key], FORMULAS) if key in found else "" for found in each))
            for key in kinds
        ]

    def to_csv(self) -> str:
        """The rows."""
        return to_csv(["budget", *self.budgets], self.rows())


def compute_then_and_now(setting: Setting, protocols: Sequence[str] = PROTOCOLS) -> ThenAndNow:
    """All accounts of these protocols, and what was certified before.

    ``exactly`` is SS-Double with exactly ``kept`` coordinates; for SS-Topk there are also accounts that allow for bags
    with too many reports.
    """
    budgets = {}
    for protocol in protocols:
        family = "double" if protocol == "exactly" else protocol
        found = {bound: setting.epsilon(family, bound, "paper") for bound in FORMULAS}
        if protocol == "exactly":
            found |= {"certified-before": setting.revealed(), "certified": setting.exactly()}
        else:
            found |= {"certified": setting.epsilon(protocol)}
        found |= {"lower": setting.lower(protocol)}
        if protocol == "topk":
            found |= {"lower-before": found["lower"], "lower": setting.weighed()}
            found |= _overflowing(setting, found["lower"], found["certified"])
        budgets[protocol] = found
    return ThenAndNow(budgets, asdict(setting))


def _overflowing(setting: Setting, lower: float, certified: float) -> dict[str, float]:
    """Upper and lower bound where a full bag keeps ``padded`` of its reports at random, from those without."""
    if setting.n_users <= setting.padded:
        return {"certified-full": certified, "lower-full": lower}  # there is room for everybody
    topk = (setting.kept, setting.padded, setting.epsilon0)
    upper = float(topk_truncated(*topk, setting.delta))
    # The data sets of the other lower bound fill no bag, so that it holds here, too.
    full = float(dropped_lower(setting.n_users, setting.dimension, *topk, delta=setting.delta))
    return {"certified-full": upper, "lower-full": max(full, lower)}


def draw_then_and_now(ax: Axes, record: ThenAndNow, pen: Pen) -> None:
    """A line a protocol; the bar is where the truth lies, marks to its left or right promise too much or too little."""
    for row, (protocol, found) in enumerate(record.budgets.items()):
        low, high = record.interval(protocol)
        ax.plot([low, high], [-row, -row], color=pen.colour("lower"), alpha=0.45, linewidth=9, solid_capstyle="butt",
                label="where the truth lies" if row == 0 else None)  # fmt: skip
        for at, (key, value) in enumerate(found.items()):
            bound, _, kind = key.partition("-")
            bounds = bound in ("certified", "lower")
            place = -row if bounds else -row + 0.14 + 0.11 * at
            first = key not in [name for other in list(record.budgets.values())[:row] for name in other]
            ax.plot(value, place, MARKS[key], color=pen.colour(key), markersize=13 if bound == "lower" else 7.5,
                    markerfacecolor=pen.colour(key) if bounds and kind != "before" else "none", markeredgewidth=2,
                    label=LOOKS[key].label if first else None)  # fmt: skip
    names = [label(protocol).replace(", ", ",\n") for protocol in record.budgets]
    ax.set(xscale="log", xlabel=words("epsilon"), yticks=[-row for row in range(len(names))], yticklabels=names)
    ax.set_ylim(-len(names) + 0.6, 0.7)
    ax.grid(visible=False, axis="y")


@dataclass(frozen=True, slots=True)
class Overflow:
    """SS-Topk in some settings: what the paper prints, and what holds with and without room in every bag."""

    names: tuple[str, ...]
    filled: tuple[int, ...]
    budgets: tuple[Mapping[str, float], ...]

    def rows(self) -> list[tuple[object, ...]]:
        """One row a setting."""
        return [
            (name, filled, *(sided(key, value, FORMULAS) for key, value in found.items()))
            for name, filled, found in zip(self.names, self.filled, self.budgets, strict=True)
        ]


def compute_overflow(settings: Sequence[ThenAndNow]) -> Overflow:
    """The part of these records that speaks of overflow, beside the number of bags that others can fill."""
    order = ("withdrawn", "lower", "certified", "lower-full", "certified-full")
    given = [{name: float(value) for name, value in record.parameters.items()} for record in settings]
    names = tuple(
        f"1 coordinate in {one['dimension'] / one['kept']:.4g}, {one['padded']:.0f} in a bag" for one in given
    )
    filled = tuple(2 * full_bags(int(one["n_users"]), one["kept"], int(one["padded"])) for one in given)
    return Overflow(names, filled, tuple({key: record.budgets["topk"][key] for key in order} for record in settings))


def same_noise(setting: Setting) -> list[tuple[object, ...]]:
    r"""SS-Double beside SS-Simple with as much noise: messages of a user, noise, certified budget (rows of a table).

    SS-Simple with the local budget :math:`\varepsilon_l\sqrt{n/n_p}` adds exactly the noise of SS-Double with
    :math:`\varepsilon_l`, and to second order it has the same central budget.
    """
    simple = replace(setting, epsilon0=setting.epsilon0 * (setting.n_users / setting.padded) ** 0.5)
    pairs = (("double", setting, round(setting.kept)), ("simple", simple, setting.dimension))
    return [(LOOKS[name].label, sent, one.noise(name), AtMost(one.epsilon(name))) for name, one, sent in pairs]


def around(setting: Setting, along: str, points: int) -> Reals:
    """Values about that of a setting, by a factor of 5 (``vector_epsilon0``) or 10 (``dimension``) at most.

    Each coordinate keeps a local budget that there can be, and there is one coordinate at least.
    """
    most = LARGEST_EPSILON0 / setting.epsilon0
    if along == "vector_epsilon0":
        factor = min(5.0, most)
        return np.asarray(setting.epsilon0 * setting.kept * factor ** np.linspace(-1, 1, points))
    least = max(1.0, setting.dimension / min(10.0, most))
    return np.unique(np.round(np.geomspace(least, 10.0 * setting.dimension, points)))


def compute_overall(setting: Setting, along: str, values: Sequence[float] | Reals, every: int = 1) -> Curves:
    """Central budgets of SS-Simple and SS-Double with Laplace noise: as printed, certified, given away by a count.

    Parameters
    ----------
    setting : Setting
    along : "vector_epsilon0" or "dimension"
        Local budget of the vector, spread evenly over the reported coordinates; or the number of coordinates, of
        which the same share is reported while the vector's budget stays.
    values : sequence of float
    every : int
        The certified bounds, which take seconds, are computed at every so many values and NaN between.

    Source: Liu et al. 2021, Figures 9 and 10.
    """
    settings = [_moved(setting, along, float(value)) for value in values]
    curves: dict[str, Reals] = {}
    for protocol in ("simple", "double"):
        name = LOOKS[protocol].label
        curves[f"withdrawn:{name}"] = np.array([one.epsilon(protocol, "withdrawn", "paper") for one in settings])
        curves[f"certified:{name}"] = np.array(
            [np.nan if at % every else one.epsilon(protocol) for at, one in enumerate(settings)]
        )
        curves[f"lower:{name}"] = np.array([one.lower(protocol) for one in settings])
    moves = {"vector_epsilon0": ("epsilon0",), "dimension": ("dimension", "kept", "epsilon0")}[along]
    parameters = {name: value for name, value in asdict(setting).items() if name not in moves}
    return Curves(along, "epsilon", np.asarray(values, dtype=float), curves, parameters)


def draw_overall(ax: Axes, record: Curves, pen: Pen) -> None:
    """The curves, each through the points that it has."""
    draw_curves(ax, record, pen)
    for line in ax.get_lines():
        x, y = np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)
        line.set_data(x[np.isfinite(y)], y[np.isfinite(y)])


def _moved(setting: Setting, along: str, value: float) -> Setting:
    if along == "vector_epsilon0":
        return replace(setting, epsilon0=min(value / setting.kept, LARGEST_EPSILON0))
    kept = setting.sampling_rate * value
    return replace(
        setting, dimension=int(value), kept=kept, epsilon0=min(setting.epsilon0 * setting.kept / kept, LARGEST_EPSILON0)
    )


def compute_sampling_rate(setting: Setting, rates: Sequence[float]) -> Curves:
    """Central budget of SS-Double against the share of reported coordinates: Theorem 4 falls below the count.

    Theorem 4 is given the blanket divergence of one coordinate, the best that may stand in it.
    """
    settings = [replace(setting, kept=rate * setting.dimension) for rate in rates]
    curves = {
        "theorem-4": np.array([one.epsilon("double", "blanket", "paper") for one in settings]),
        "certified": np.array([one.epsilon("double") for one in settings]),
        "lower": np.array([one.lower("double") for one in settings]),
    }
    parameters = {name: value for name, value in asdict(setting).items() if name != "kept"}
    return Curves("sampling_rate", "epsilon", np.asarray(rates, dtype=float), curves, parameters)
