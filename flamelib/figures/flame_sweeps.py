"""FLAME's budgets along one parameter: the local budget, the number of coordinates, the share that is reported."""

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np
from matplotlib.axes import Axes

from flamelib.figures.curves import Curves, Values, draw_curves
from flamelib.figures.flame import Setting
from flamelib.figures.style import LOOKS, Pen


def compute_overall(setting: Setting, along: str, values: Sequence[float], every: int = 1) -> Curves:
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
    curves: dict[str, Values] = {}
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
        return replace(setting, epsilon0=value / setting.kept)
    kept = setting.sampling_rate * value
    return replace(setting, dimension=int(value), kept=kept, epsilon0=setting.epsilon0 * setting.kept / kept)


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
