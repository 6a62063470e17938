"""Accuracy against epsilon: one model at each level of noise, and where each accountant puts it."""

from matplotlib.axes import Axes

from flamebook.experiments.training import BOUNDS, Trained
from flamebook.figures.curves import name_decades
from flamebook.figures.style import Pen
from flamebook.records import words


def draw_training(ax: Axes, record: Trained, pen: Pen) -> None:
    """A line for each accountant; what belongs to one model lies at one height."""
    accuracy = [100 * value for value in record.accuracy]
    for height, *ends in zip(accuracy, *(record.spent[name] for name in BOUNDS), strict=True):
        ax.plot([min(ends), max(ends)], [height, height], color=pen.theme.faint, linewidth=1, label="_one model")
    for name in BOUNDS:
        ax.plot(record.spent[name], accuracy, **pen.line(f"opacus-{name}"))
    ax.set(xscale="log", xlabel=words("total_epsilon"), ylabel="accuracy on the test images (%)")
    name_decades(ax)
