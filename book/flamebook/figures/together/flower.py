"""What was learned in Flower and what it cost, round by round."""

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from flamebook.figures.style import Pen
from flamebook.records import Curves, words


def draw_rounds(ax: Axes, record: Curves, pen: Pen) -> None:
    """A line for each curve, 0 in sight, a tick for whole rounds."""
    for name, values in record.curves.items():
        ax.plot(record.x, values, **pen.line(name))
    ax.set(xlabel=words(record.x_name), ylabel=words(record.y_name))
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))  # an accuracy from shares may lie below 0
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
