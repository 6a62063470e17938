"""The audit of random participation, drawn: the reading ``inner``, turned gradients, and a search for worse ones."""

import numpy as np
from matplotlib.axes import Axes

from flamebook.attacks.gradients import Angles, Search
from flamebook.attacks.participation import InnerCurve
from flamebook.figures.style import Pen
from flamebook.records import words

HUES = ("blue", "ochre", "purple", "vermillion")


def draw_angles(ax: Axes, record: Angles, pen: Pen) -> None:
    """A curve a size, with marks of its own, and the upper bound as a thin line of the same colour."""
    for hue, marker, (name, values) in zip(HUES, "osD^", record.curves.items(), strict=False):
        ax.plot(record.angles, values, color=pen.colour(hue), label=name, marker=marker, markevery=2)
        ax.axhline(record.levels[name], color=pen.colour(hue), linewidth=1.2, linestyle=(0, (6, 2)))
    low = min(float(values[0]) for values in record.curves.values()) / 2 if record.scale == "log" else 0.0
    ax.set_ylim(low, (1.5 if low else 1.1) * max(record.levels.values()))
    ax.set(
        yscale=record.scale,
        xlabel="angle of the other gradients (degrees)",
        ylabel=record.ylabel,
        xticks=range(0, 181, 30),
    )


def draw_search(ax: Axes, record: Search, pen: Pen) -> None:
    """A mark a start and direction: how much of the bound the worst configuration reached, against the size."""
    spread = np.linspace(-0.3, 0.3, len(record.records))
    for column, key, mark, name in ((0, "outer", "o", "remove direction"), (1, "add", "^", "add direction")):
        ax.plot(record.records + spread, record.ratios[:, column], mark, color=pen.colour(key), alpha=0.6, markersize=5,
                label=name)  # fmt: skip
    ax.axhline(1.0, color=pen.theme.ink, linewidth=1.2, linestyle=(0, (1.2, 1.6)), label="the bound")
    ax.set(xlabel="records of the client", ylabel="divergence found / certified bound", ylim=(0, 1.08))


def draw_inner_curve(ax: Axes, record: InnerCurve, pen: Pen) -> None:
    """The curves, and the attacks with their intervals; what is not above zero is cut at the lower edge."""
    floor = float(record.curves["inner"].min()) / 2
    for name, values in record.curves.items():
        ax.plot(record.epsilon, values, **pen.line(name))
    low, high = np.array([one.interval for one in record.attacks]).T
    seen = np.array([one.estimate for one in record.attacks])
    reach = np.array([seen - np.maximum(low, floor), high - seen])
    ax.errorbar([one.epsilon for one in record.attacks], np.maximum(seen, floor), np.maximum(reach, 0), fmt="o",
                color=pen.colour("green"), capsize=4, label="attack, run")  # fmt: skip
    ax.set(yscale="log", ylim=(floor, None), xlabel=words("round_epsilon"), ylabel=words("round_delta"))
