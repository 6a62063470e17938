"""Named curves on log-log axes."""


import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Curves, words

MARKERS = {"any randomizer": "", "2-ary": "o", "100-ary": "s", "Laplace": "^"}


def draw_curves(ax: Axes, record: Curves, pen: Pen) -> None:
    """The curves on double logarithmic axes, values that are not finite left out; level ones if all are 0."""
    some = any((np.isfinite(values) & (values > 0)).any() for values in record.curves.values())
    ax.set(xscale="log", yscale="log" if some else "linear")
    ax.set(xlabel=words(record.x_name), ylabel=words(record.y_name))
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
