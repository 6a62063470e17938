"""Drawings of training experiments, for all documents: accuracy against rounds, budgets and other parameters.

A mean never stands without a band of one standard deviation, where there is more than one run.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import NDArray

from flamebook.experiments.checkin import DISTRIBUTED, SHUFFLED, Spent
from flamebook.experiments.flame_grid import Sweep
from flamebook.experiments.runs import Learning, Runs, named
from flamebook.figures.style import Pen
from flamebook.records import DOTTED, words
from flamelib.core.arrays import Reals

MARKERS = ("o", "s", "^", "D", "v")


def draw_learning(ax: Axes, record: Learning, pen: Pen) -> None:
    """Mean accuracy against rounds, in a band of one standard deviation."""
    ax.set(xlabel="rounds", ylabel="accuracy on the test images (%)")
    for name, runs in record.curves.items():
        key, _, kind = name.partition(":")
        style = pen.line(key, label=named(name)) | ({"linestyle": DOTTED, "marker": "x"} if kind else {})
        _band(ax, record.rounds, 100 * runs.mean(axis=0), 100 * _spread(runs), style)
    ax.set_ylim(bottom=0)


def draw_runs(ax: Axes, record: Runs, pen: Pen) -> None:
    """Mean accuracy after every round, one standard deviation to either side."""
    ax.set(xlabel="rounds", ylabel="accuracy on the users' test images (%)")
    for name, runs in record.curves.items():
        draw_band(ax, np.arange(runs.shape[1]), 100 * runs, name, list(record.curves), pen)
    ax.set_ylim(bottom=0)


def draw_sweep(ax: Axes, record: Sweep, pen: Pen) -> None:
    """Mean and standard deviation at each value, on a logarithmic axis that names the values."""
    ax.set(xscale="log", xlabel=words(record.x_name), ylabel="accuracy at the end (%)")
    for name, finals in record.finals.items():
        draw_band(ax, record.x, finals, name, list(record.finals), pen)
    ax.set_xticks(record.x)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def draw_spent(ax: Axes, found: Spent, pen: Pen) -> None:
    """Mean accuracy against epsilon, one curve an accountant."""
    ax.set(
        xlabel=r"central budget $\varepsilon$ after the rounds so far",
        ylabel="accuracy on the test images (%)",
        xscale="log",
    )
    mean = 100 * found.accuracy.mean(axis=0)
    for name, spent in found.epsilon.items():
        ax.plot(spent, mean, **pen.line((SHUFFLED | DISTRIBUTED)[name]))


def draw_band(ax: Axes, x: Reals | NDArray[np.int64], runs: Reals, name: str, names: Sequence[str], pen: Pen) -> None:
    """One curve: the mean of the runs over x, in a band of one standard deviation."""
    key = name.partition(":")[0]
    same = [other for other in names if other.partition(":")[0] == key]
    style = pen.line(key, label=named(name))
    if len(same) > 1:
        style |= {"marker": MARKERS[same.index(name) % len(MARKERS)]}
        style |= {"linestyle": DOTTED} if same.index(name) else {}
    _band(ax, x, runs.mean(axis=0), _spread(runs), style)


def _band(ax: Axes, x: Reals | NDArray[np.int64], mean: Reals, spread: Reals, style: dict[str, Any]) -> None:
    ax.plot(x, mean, **style, markevery=max(1, len(x) // 6))
    ax.fill_between(x, mean - spread, mean + spread, color=style["color"], alpha=0.14, linewidth=0)


def _spread(runs: Reals) -> Reals:
    return np.asarray(runs.std(axis=0, ddof=1) if len(runs) > 1 else np.zeros(runs.shape[1]))
