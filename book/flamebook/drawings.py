"""Drawings of protocols: who hands what to whom, and who looks on."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flamebook.page import BLUE, GREEN, GREY, INK, PAGE, VERMILLION

Point = tuple[float, float]


def parties() -> Figure:
    """The local and the shuffle model; a dotted line where the adversary looks, and the budget that holds there."""
    fig, ax = plt.subplots(figsize=(6.2, 3.6))
    ax.set(xlim=(0, 10.2), ylim=(-0.5, 6.6))
    ax.axis("off")
    for base, model, wall, budget in ((3.6, "local", 3.2, "local"), (0.0, "shuffle", 7.2, "central")):
        ax.text(0.1, base + 2.55, f"{model} model", fontsize=12, weight="bold")
        for row in range(3):
            box(ax, (1.0, base + 0.8 * row + 0.2), f"user {3 - row}", GREY)
            arrow(ax, (1.95, base + 0.8 * row + 0.2), (4.4, base + 1.0) if base == 0 else (8.1, base + 0.7 + 0.3 * row))
        if base == 0:
            box(ax, (5.35, base + 1.0), "shuffler", BLUE)
            arrow(ax, (6.3, base + 1.0), (8.1, base + 1.0))
        box(ax, (9.1, base + 1.0), "analyzer", VERMILLION)
        ax.plot([wall, wall], [base - 0.15, base + 2.1], ":", color=GREEN)
        ax.text(wall, base + 2.25, f"{budget} budget", color=GREEN, ha="center", fontsize=10.5)
    return fig


def box(ax: Axes, centre: Point, words: str, colour: str) -> None:
    """A party: words in a frame of a colour."""
    frame = {"boxstyle": "round,pad=0.35", "facecolor": PAGE, "edgecolor": colour, "linewidth": 1.6}
    ax.text(*centre, words, ha="center", va="center", fontsize=11, bbox=frame)


def arrow(ax: Axes, start: Point, end: Point) -> None:
    """What is handed from one to another."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 1.2})
