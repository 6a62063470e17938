r"""FLAME's ratios: local over central budget, index privacy against reported coordinates, bounds over their rates.

Source: Liu, Cao, Chen, Guo, Yoshikawa 2021, Figures 3 and 4, Corollaries 2 and 3.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from matplotlib.axes import Axes

from flamebook.figures.curves import draw_curves
from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Curves, Parameters, Rates, Slope, columns_csv, log_log_slope, words
from flamelib.accounting.composition.closed_form import least_epsilon
from flamelib.accounting.coordinates import index_privacy, printed
from flamelib.accounting.sampling.closed_form import sampled_epsilon
from flamelib.accounting.shuffling import closed_form
from flamelib.core.arrays import Reals
from flamelib.core.profiles import AnyProfile
from flamelib.core.vocabulary import check

# --- Figure 3 --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RatioSetting:
    """What the caption of Figure 3 leaves out, inferred: the paper's other settings, at which both ratios appear.

    Of these only ``dimension`` is printed.  Other choices give the printed digits too.
    """

    dimension: int = 75755
    n_users: int = 5000
    n_buckets: int = 2
    kept: float = 1515.1
    padded: int = 1666
    delta: float = 0.01 / 5000**1.1

    def simple(self, epsilon0: float) -> float:
        """Ratio of SS-Simple; 0 where Lemma 1 is silent."""
        return printed.simple_ratio(self.dimension, self.n_users, self.n_buckets, epsilon0, self.delta)

    def double(self, epsilon0: float) -> float:
        """Ratio of SS-Double by Theorems 3 and 4 as printed; 0 where they are silent."""
        return printed.double_ratio(self.dimension, self.kept, self.padded, self.n_buckets, epsilon0, self.delta)

    def hidden(self, epsilon0: float) -> float:
        """The same with all coordinates counted; 0 where Theorem 3 is silent."""
        each, rate = self.delta / (self.dimension + 1), self.kept / self.dimension
        one = printed.padded_kary(self.n_buckets, epsilon0, self.padded, rate, each).epsilon
        return self.kept * epsilon0 / least_epsilon(one, self.dimension, each)

    def unshuffled(self, epsilon0: float) -> float:
        """The ratio that the better composition of ``kept`` local budgets gives by itself, without a shuffler."""
        return self.kept * epsilon0 / least_epsilon(epsilon0, self.kept, self.delta)


PRINTED = {"simple": 2.55, "double": 137.36}
INFERRED_EPSILON0 = 0.8


def compute_ratio(setting: RatioSetting, epsilon0: Reals) -> Curves:
    """Local over central budget against the local budget of a coordinate (values); NaN where a theorem is silent."""
    curves = {
        "simple": [setting.simple(float(e)) for e in epsilon0],
        "double": [setting.double(float(e)) for e in epsilon0],
        "double-hidden": [setting.hidden(float(e)) for e in epsilon0],
        "unshuffled": [setting.unshuffled(float(e)) for e in epsilon0],
    }
    silent = {name: np.where(np.array(values) > 0, values, np.nan) for name, values in curves.items()}
    return Curves("epsilon0", "local budget / central budget", epsilon0, silent, asdict(setting))


def draw_ratio(ax: Axes, record: Curves, pen: Pen) -> None:
    """The curves, and the two printed ratios where the inferred parameters put them."""
    draw_curves(ax, record, pen)
    ax.axhline(1, color=pen.theme.faint, linewidth=1, zorder=0)
    for at, value in enumerate(PRINTED.values()):
        label = None if at else "printed, place inferred"
        ax.plot(INFERRED_EPSILON0, value, "*", color=pen.colour("black"), markersize=15, zorder=4, label=label)
    ax.set(xscale="linear", xlim=(0, None))


# --- Figure 4 --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Region:
    """Multiples that give an index privacy: from ``least`` to ``most``, for each share of reported coordinates."""

    index_privacy: Reals
    least: Mapping[float, Reals]
    most: Mapping[float, int]
    parameters: Parameters

    def to_csv(self) -> str:
        """One row an index privacy; for each rate the least multiples (empty beyond 1 / rate) and the most."""
        columns: dict[str, Iterable[object]] = {"index_privacy": self.index_privacy}
        for rate, least in self.least.items():
            columns |= {f"least at {rate:g}": least, f"most at {rate:g}": [self.most[rate]] * least.size}
        return columns_csv(columns)


def compute_region(rates: Sequence[float], points: int) -> Region:
    """Definition 3's least multiples and Algorithm 4's most, up to the weakest index privacy, 1 / rate."""
    grid = np.geomspace(1, 1 / min(rates), points)
    least, most = {}, {}
    for rate in rates:
        found = [index_privacy.multiples_range(rate, float(ratio)) for ratio in grid]
        least[rate] = np.array([one.least if ratio <= 1 / rate * (1 + 1e-9) else math.nan for ratio, one in
                                zip(grid, found, strict=True)])  # fmt: skip
        most[rate] = found[0].most
    return Region(grid, least, most, {"sampling_rate": ", ".join(f"{rate:g}" for rate in rates)})


def draw_region(ax: Axes, record: Region, pen: Pen) -> None:
    """A shaded region for each rate, and the point of the paper's experiments."""
    looks = zip(record.least.items(), ("blue", "vermillion", "green"), ("//", "..", "\\\\"), strict=False)
    for (rate, least), hue, hatch in looks:
        label = rf"$\beta$ = 1/{1 / rate:g}"
        ax.fill_between(record.index_privacy, least, record.most[rate], facecolor=pen.colour(hue), alpha=0.15)
        ax.fill_between(record.index_privacy, least, record.most[rate], facecolor="none", edgecolor=pen.colour(hue),
                        hatch=hatch, linewidth=0, alpha=0.5)  # fmt: skip
        ax.plot(record.index_privacy, least, color=pen.colour(hue), label=f"least multiples, {label}")
        valid = np.isfinite(least)
        top = np.full(int(valid.sum()), record.most[rate])
        ax.plot(
            record.index_privacy[valid], top, color=pen.colour(hue), linestyle=":", label=f"all coordinates, {label}"
        )
    ax.plot(3.125, 16, "*", color=pen.colour("black"), markersize=14, label="the experiments' claim")
    ax.set(xscale="log", yscale="log", xlabel=words("index_privacy"), ylabel="multiples $l$", ylim=(0.8, None))


def index_rows(n_users: int, dimension: int, kept: int, multiples: Sequence[int]) -> list[tuple[object, ...]]:
    """For each number of multiples: messages expected in a bag, index privacy, and the ratio for the whole list.

    The last is posterior over prior of the set of all true coordinates, given the reported ones.  Numbers of multiples
    that there are too few coordinates for are left out.
    """
    check(n_users=n_users, dimension=dimension, kept=kept)
    rows: list[tuple[object, ...]] = []
    for count in (one for one in multiples if one == 1 or one * kept <= dimension):
        found = index_privacy.strongest_index_privacy(2 * dimension, 2 * count * kept, kept / dimension)
        whole = _log_choices(dimension, kept) - _log_choices(count * kept, kept)
        rows.append((count, count * n_users * kept / dimension, found.index_privacy, f"10^{whole / math.log(10):.0f}"))
    return rows


def _log_choices(of: int, chosen: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(chosen + 1) - math.lgamma(of - chosen + 1)


# --- Corollaries 2 and 3 ---------------------------------------------------------------------------------------------


def compute_rates(
    dimension: int, sampling_rate: float, epsilon0: float, delta: float, messages: Sequence[int]
) -> Rates:
    """Generic Bennett bound, composed as the paper does, over Corollary 2 and Corollary 3, against the size of a bag.

    Parameters
    ----------
    dimension : int
    sampling_rate : float
        Of SS-Double.
    epsilon0 : float
        Local budget of one reported coordinate, in both protocols.
    delta : float
        Of the vector.
    messages : sequence of int
        Messages in a bag, three sizes or more.
    """
    bounds, rates = {}, {}
    for name, rate, count in (
        ("simple", 1.0, float(dimension)),
        ("double", sampling_rate, 2 * sampling_rate * dimension),
    ):
        bounds[name] = np.array([_generic(epsilon0, int(m), delta / (count + 1), rate, count) for m in messages])
    rates["simple"] = [printed.simple_rate(epsilon0, dimension, int(m), delta) for m in messages]
    rates["double"] = [printed.double_rate(epsilon0, dimension, sampling_rate, int(m), delta) for m in messages]
    curves = {name: bounds[name] / np.array(rates[name]) for name in bounds}
    x = np.asarray(messages, dtype=float)
    given = {"dimension": dimension, "sampling_rate": sampling_rate, "epsilon0": epsilon0, "delta": delta}
    scaled = Curves("messages in a bag", "budget / rate of the corollary", x, curves, given)
    return Rates(scaled, {name: _slope(x, values) for name, values in bounds.items()})


def _slope(x: Reals, values: Reals) -> Slope:
    """The slope; NaN where a bound is 0 or infinite, and has none."""
    return log_log_slope(x, values) if (np.isfinite(values) & (values > 0)).all() else Slope(math.nan, math.nan)


def slope_rows(record: Rates) -> list[tuple[str, str]]:
    """For a table: each bound with its slope in the number of messages."""
    found = [(LOOKS[name].label, slope) for name, slope in record.slopes.items()]
    return [(name, "none" if math.isnan(slope.exponent) else str(slope)) for name, slope in found]


def _generic(epsilon0: float, messages: int, delta: float, rate: float, count: float) -> float:
    inner = closed_form.bennett(AnyProfile(epsilon0), messages, delta=min(1.0, delta / rate))
    return least_epsilon(sampled_epsilon(inner, rate), count, delta)
