"""The picture of a sweep: every result against a swept parameter, one line for each combination of the others."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flamebook.figures.style import LIGHT, look
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

Row = Mapping[str, Any]


def draw(rows: Sequence[Row], swept: Sequence[str], measured: Sequence[str], folder: Path) -> None:
    """Write ``comparison.svg`` and ``comparison.png`` into the folder, a panel for each numeric result.

    Parameters
    ----------
    rows : sequence of mappings
        One for each point: parameters and results by name.
    swept, measured : sequence of str
        Names with several values, and names of results.
    """
    panels = [name for name in measured if any(_number(row.get(name)) is not None for row in rows)]
    columns = 1 if len(panels) < 2 else 2
    lines = -(-max(1, len(panels)) // columns)
    with look(LIGHT, "comparison"):
        figure = Figure(figsize=(5.2 * columns, 0.6 + 3.2 * lines), layout="constrained")
        FigureCanvasAgg(figure)
        axes = [ax for row in figure.subplots(lines, columns, squeeze=False) for ax in row]
        for ax, name in zip(axes, panels, strict=False):
            _panel(ax, rows, swept, name)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        if not panels:
            axes[0].text(0.5, 0.5, "the runs recorded no numbers", ha="center", transform=axes[0].transAxes)
        _legend(figure, axes)
        for form, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            figure.savefig(folder / f"comparison.{form}", format=form, facecolor=LIGHT.page, dpi=150, metadata=metadata)


def _panel(ax: Axes, rows: Sequence[Row], swept: Sequence[str], name: str) -> None:
    across = axis_of(rows, swept)
    others = [parameter for parameter in swept if parameter != across]
    lines: dict[str, list[tuple[Any, float]]] = {}
    for row in rows:
        value = _number(row.get(name))
        if value is not None:
            label = ", ".join(f"{other} = {row[other]}" for other in others)
            lines.setdefault(label, []).append((row[across], value))
    for (label, points), marker in zip(lines.items(), _markers(len(lines)), strict=True):
        ax.plot([x for x, _ in points], [y for _, y in points], marker=marker, label=label or "_")
    ax.set(xlabel=across, ylabel=name)
    if _wide([row[across] for row in rows]):
        ax.set_xscale("log")
    if _wide([value for points in lines.values() for _, value in points]):
        ax.set_yscale("log")


def axis_of(rows: Sequence[Row], swept: Sequence[str]) -> str:
    """The swept parameter that goes along the horizontal axis: a numeric one with the most values.

    >>> axis_of([{"k": 1, "n": 1}, {"k": 1, "n": 2}], ["k", "n"])
    'n'
    """
    return max(swept, key=lambda name: (_number(rows[0][name]) is not None, len({str(row[name]) for row in rows})))


def _markers(count: int) -> list[str]:
    return [("o", "s", "^", "D", "v", "P", "X")[position % 7] for position in range(count)]


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=2)


def _number(value: Any) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def _wide(values: Sequence[Any]) -> bool:
    numbers = [_number(value) for value in values]
    found = [number for number in numbers if number is not None]
    return len(found) == len(values) > 0 and min(found) > 0 and max(found) >= 20 * min(found)
