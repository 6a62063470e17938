"""What the diagrams of parties are drawn with."""

from matplotlib.axes import Axes

from flamelib.figures.style import Pen

Point = tuple[float, float]


def draw_box(ax: Axes, pen: Pen, centre: Point, words: str, key: str) -> None:
    """A party: words in a frame of a colour."""
    frame = {"boxstyle": "round,pad=0.35", "facecolor": pen.theme.page, "edgecolor": pen.colour(key), "linewidth": 1.6}
    ax.text(*centre, words, ha="center", va="center", fontsize=11, bbox=frame)


def draw_arrow(ax: Axes, pen: Pen, start: Point, end: Point) -> None:
    """What is handed from one to another."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": pen.theme.ink, "linewidth": 1.2})
