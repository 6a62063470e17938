"""The record behind most figures: named curves over one axis; and the slope of a curve on log-log axes."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike, NDArray

from flamebook.figures.style import LOOKS, Pen
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError

Parameters = Mapping[str, float | str]

MARKERS = {"any randomizer": "", "2-ary": "o", "100-ary": "s", "Laplace": "^"}
WORDS = {
    "n_users": r"users $n$",
    "epsilon": r"central budget $\varepsilon$",
    "epsilon0": r"local budget $\varepsilon_0$",
    "delta": r"$\delta$",
    "promised": r"budget promised by the theorem, $\varepsilon$",
    "standard_deviation": "standard deviation of the sum (users)",
    "ratio": "upper bound / lower bound",
    "sampling_rate": r"share of coordinates reported, $\beta$",
    "padded": r"messages of a coordinate after padding, $n_p$",
    "server_step": "step, in units of the honest mean",
    "vector_epsilon0": r"local budget of the vector, $\varepsilon_l$",
    "dimension": r"coordinates $d$",
    "index_privacy": r"index privacy $\nu$",
    "multiples": r"reported coordinates for each true one, $l$",
    "round_epsilon": r"$\varepsilon'$ of one round",
    "round_delta": r"$\delta'$ of one round",
    "total_epsilon": r"central budget $\varepsilon$ after all rounds",
    "noise_std": r"noise $\sigma$ on the sum, $C=1$",
    "record_rate": r"record rate $q$, with $pq$ fixed",
    "rounds": "rounds $T$",
    "window": "slots of the window, or rounds",
    "checkin_rate": r"check-in rate $\gamma$",
    "slack_delta": "failure probability chosen for a round",
    "clip_norm": r"clip of an update, $c$",
    "scale": r"steps of the grid, $k$",
    "log2_modulus": r"bits of a message, $\log_2 N$",
    "columns": "counters in a row, $w$",
    "rows": "counters, $K$",
    "n_messages": "messages of a user, $m$",
    "distance": r"total variation, or $\delta$",
    "bits": "bits of a user",
    "megabytes": "megabytes at the shuffler",
    "error": "error of the sum (users)",
    "order": r"Rényi order $\lambda$",
    "renyi": r"Rényi divergence $\varepsilon(\lambda)$",
}


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves over a common axis; NaN or infinity marks where a statement is silent.

    Attributes
    ----------
    x_name, y_name : str
        Column name of the axis, and what the curves hold (both with units where there are any).
    x : array of shape (points,)
    curves : mapping from name to an array of shape (points,)
        A name is a key of :data:`flamebook.figures.style.LOOKS`, or such a key, a colon and what tells apart curves
        of one look: ``"hoeffding"``, ``"hoeffding:2-ary"``.
    parameters : mapping
        What the curves were computed from.
    """

    x_name: str
    y_name: str
    x: Reals
    curves: Mapping[str, Reals]
    parameters: Parameters = field(default_factory=dict)

    def to_csv(self) -> str:
        """One row a point; the first line names the columns."""
        return to_csv([self.x_name, *self.curves], zip(self.x, *self.curves.values(), strict=True))


def to_csv(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Comma-separated text with every digit of every number.

    >>> to_csv(["n_users", "epsilon"], [(1000, 0.1)])
    'n_users,epsilon\\n1000,0.1\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return text.getvalue()


def _plain(cell: object) -> object:
    value = cell.item() if isinstance(cell, np.generic) else cell
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def whole_grid(low: float, high: float, points: int) -> NDArray[np.int64]:
    """Whole numbers in geometric progression, ends included, without repeats.

    >>> whole_grid(100, 1000, 3).tolist()
    [100, 316, 1000]
    """
    if not 0 < low < high < math.inf or points < 2:
        raise DomainError(f"a grid needs 0 < low < high and 2 points or more, got {low}, {high}, {points}")
    return np.unique(np.round(np.geomspace(low, high, points)).astype(np.int64))


def draw_curves(ax: Axes, record: Curves, pen: Pen) -> None:
    """The curves on double logarithmic axes, values that are not finite left out."""
    ax.set(xscale="log", yscale="log", xlabel=words(record.x_name), ylabel=words(record.y_name))
    kinds = list(dict.fromkeys(name.partition(":")[2] for name in record.curves))
    for name, values in record.curves.items():
        key, _, kind = name.partition(":")
        label = LOOKS[key].label + (f", {kind}" if kind else "")
        style = pen.line(key, label=label)
        if len(kinds) > 1:
            marker = MARKERS.get(kind, "osD^v"[kinds.index(kind) % 5])
            style |= {"marker": marker, "markevery": max(1, len(record.x) // 8)}
        ax.plot(record.x, np.where(np.isfinite(values), values, np.nan), **style)
    name_decades(ax)


def name_decades(ax: Axes) -> None:
    """Plain numbers at 1, 2, 5 on a logarithmic axis that spans less than two decades, powers of ten elsewhere."""
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "log":
            axis.set_minor_formatter(NullFormatter())
        if axis.get_scale() == "log" and high < 100 * low:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def words(name: str) -> str:
    """Axis label of a column: its symbol and what it is."""
    return WORDS.get(name, name.replace("_", " "))


@dataclass(frozen=True, slots=True)
class Slope:
    """Exponent of a power law fitted on log-log axes, with its standard error."""

    exponent: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.exponent:.3f} \N{PLUS-MINUS SIGN} {self.standard_error:.3f}"


def log_log_slope(x: ArrayLike, y: ArrayLike) -> Slope:
    """Ordinary least squares of log y on log x; the standard error is that of independent, equal residuals.

    Parameters
    ----------
    x, y : array of shape (points,)
        Positive and finite, three points or more, not all at one x.

    Examples
    --------
    >>> slope = log_log_slope([1, 10, 100, 1000], [2, 20, 200, 2000])
    >>> round(slope.exponent, 12), slope.standard_error < 1e-12
    (1.0, True)
    """
    u, v = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    usable = np.isfinite(u) & np.isfinite(v) & (u > 0) & (v > 0) if u.shape == v.shape else np.zeros(1, dtype=bool)
    if u.size < 3 or not usable.all() or np.ptp(u) == 0:
        raise DomainError("x and y must be positive and finite, three points or more, not all at one x")
    u, v = np.log(u), np.log(v)
    centred = u - u.mean()
    spread = float(centred @ centred)
    exponent = float(centred @ v) / spread
    residuals = v - v.mean() - exponent * centred
    return Slope(exponent, math.sqrt(float(residuals @ residuals) / (u.size - 2) / spread))


@dataclass(frozen=True, slots=True)
class Rates:
    """Bounds over the rates that corollaries name for them; slopes of the bounds, by their names or parameters."""

    scaled: Curves
    slopes: Mapping[Any, Slope]

    @property
    def parameters(self) -> Parameters:
        return self.scaled.parameters

    def to_csv(self) -> str:
        """The scaled curves."""
        return self.scaled.to_csv()


def draw_rates(ax: Axes, record: Rates, pen: Pen) -> None:
    """Where a line is level the rate is right; its height is the constant that the corollary leaves out."""
    draw_curves(ax, record.scaled, pen)
    ax.set(yscale="linear", ylim=(0, None))
