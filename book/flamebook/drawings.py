"""Drawings of protocols: who hands what to whom, and who looks on."""

from collections.abc import Sequence
from itertools import pairwise

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

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


def trust(models: Sequence[tuple[str, Sequence[str], int, str]]) -> Figure:
    """A row a model: its parties, the dotted wall behind so many of them, and the budget that holds outside."""
    fig, ax = plt.subplots(figsize=(6.6, 5.2))
    ax.set(xlim=(-0.8, 10.5), ylim=(-0.9, 7.3))
    ax.axis("off")
    for row, (model, names, wall, budget) in enumerate(models):
        base = 5.4 - 2.6 * row
        ax.text(-0.65, base + 1.05, model, fontsize=12, weight="bold")
        places = [9.4 * at / (len(names) - 1) for at in range(len(names))]
        for at, (place, party) in enumerate(zip(places, names, strict=True)):
            box(ax, (place, base), party, GREY if at == 0 else VERMILLION if at < wall else BLUE)
        for start, end, (one, other) in zip(places, places[1:], pairwise(names), strict=False):
            arrow(ax, (start + (0.95 if start else 0.65), base), (end - 0.95, base))
            sent = "noisy updates" if model.startswith("local") and one == "users" else SENT[one, other]
            ax.text((start + end) / 2 - 0.15 * (not start), base + 0.18, sent, ha="center", fontsize=9.5)
        edge = (places[wall - 1] + places[wall]) / 2
        for low, high in ((base - 0.85, base - 0.15), (base + 0.6, base + 0.95)):
            ax.plot([edge, edge], [low, high], ":", color=GREEN)
        ax.text(edge + 0.15, base - 0.8, f"{budget} \N{RIGHTWARDS ARROW}", color=GREEN, fontsize=10.5)
    return fig


SENT = {
    ("users", "analyzer"): "updates",
    ("users", "shuffler"): "sealed",
    ("shuffler", "analyzer"): "bags",
    ("analyzer", "observer"): "model",
}


def flame_round(steps: Sequence[str]) -> Figure:
    """Three users, a shuffler with its bags, analyzer and observer; below, the way back of the model.

    ``steps`` are what is handed on: model, reports, bags, next model.
    """
    fig, ax = plt.subplots(figsize=(7, 4))
    ax.set(xlim=(-1.1, 11.6), ylim=(-2.1, 4.3))
    ax.axis("off")
    for user in range(3):
        box(ax, (0, 2.6 - 1.3 * user), f"user {user + 1}", GREY)
        arrow(ax, (0.85, 2.6 - 1.3 * user), (2.55, 1.3))
    ax.add_patch(Rectangle((2.6, -0.5), 3.1, 3.6, facecolor="none", edgecolor=VERMILLION, linewidth=1.6))
    ax.text(4.15, 3.25, "shuffler", ha="center", fontsize=11)
    for row, bag in enumerate(("duudd", "dddud", "udduu")):  # u of a user, d a dummy
        ax.text(2.85, 2.3 - 1.1 * row, f"{row + 1}", fontsize=9.5, va="center")
        for at, kind in enumerate(bag):
            _envelope(ax, (3.2 + 0.45 * at, 2.14 - 1.1 * row), 0.34, dummy=kind == "d")
    arrow(ax, (5.8, 1.3), (7.5, 1.3))
    box(ax, (8.35, 1.3), "analyzer", BLUE)
    arrow(ax, (9.2, 1.3), (9.95, 1.3))
    box(ax, (10.8, 1.3), "observer", BLUE)
    ax.plot([8.35, 8.35, 0], [0.85, -1.2, -1.2], color=INK, linewidth=1.2)
    arrow(ax, (0, -1.2), (0, -0.45))
    for at, (place, what) in enumerate(
        zip(((4.15, -1.05), (0.75, 3.5), (7.65, 1.85), (10.3, 1.85)), steps, strict=True)
    ):
        words = what.replace(", ", ",\n", 1) if len(what) > 20 else what
        ax.text(*place, f"{at + 1}. {words}", ha="center", fontsize=9.5)
    for left, dummy, words in ((2.3, False, "envelope of a user"), (5.6, True, "dummy, sealed like the rest")):
        _envelope(ax, (left, -1.95), 0.28, dummy)
        ax.text(left + 0.42, -1.94, words, fontsize=9.5)
    return fig


def _envelope(ax: Axes, corner: Point, side: float, dummy: bool) -> None:
    colour, hatch = (BLUE, "") if dummy else (VERMILLION, "//")
    ax.add_patch(Rectangle(corner, side, side, facecolor=colour, hatch=hatch, edgecolor=INK, linewidth=0.6))


CLOAK_PLACES = {
    "clients": ("local updater", "encoder"),
    "shuffler": ("permutes all messages",),
    "server": ("analyzer", "global updater"),
}
CLOAK_HANDED = {
    "sender": ("clients", "shuffler", "server"),
    "receiver": ("shuffler", "server", "clients"),
    "what": ("messages", "messages, permuted", "the new model"),
}


def cloak_system() -> Figure:
    """The patent's FIG. 1: three places with their programs; the model goes back beneath them."""
    fig, ax = plt.subplots(figsize=(7.2, 3.2))
    ax.set(xlim=(-1.4, 9.4), ylim=(-2.3, 2.0))
    ax.axis("off")
    for at, (place, programs) in enumerate(CLOAK_PLACES.items()):
        ax.text(4.0 * at, 1.55, place, ha="center", fontsize=12, weight="bold")
        for row, program in enumerate(programs):
            box(ax, (4.0 * at, 0.7 - 1.1 * row), program, (VERMILLION, GREY, BLUE)[at])
    for at, what in enumerate(CLOAK_HANDED["what"][:2]):
        arrow(ax, (4.0 * at + 1.15, 0.15), (4.0 * at + 2.75, 0.15))
        ax.text(4.0 * at + 1.95, 0.3, what, ha="center", fontsize=9.5)
    ax.plot([8.0, 8.0, 0.0], [-0.9, -1.7, -1.7], color=INK, linewidth=1.2)
    arrow(ax, (0.0, -1.7), (0.0, -0.85))
    ax.text(4.0, -1.6, CLOAK_HANDED["what"][2], ha="center", va="bottom", fontsize=9.5)
    return fig


def cloak_flow(users: pd.DataFrame, shuffled: Sequence[int], total: int, answer: float) -> Figure:
    """From left to right: values, whole numbers, messages, the permuted messages, their sum, the answer.

    Parameters
    ----------
    users : frame
        A row for each user, with columns ``value``, ``scaled`` and ``messages``.
    shuffled : sequence of int
        All messages in the order of the shuffler.
    total : int
        Their sum.
    answer : float
        What it is read as.
    """
    rows = [1.6 * at for at in range(len(users))][::-1]
    middle = sum(rows) / len(rows)
    fig, ax = plt.subplots(figsize=(8.4, 3.8))
    ax.set(xlim=(-0.6, 10.8), ylim=(-0.8, rows[0] + 1.5))
    ax.axis("off")
    titles = ("value", "scaled", "messages", "permuted", "sum mod $N$", "answer")
    for x, words in zip((0.0, 1.9, 4.0, 6.5, 8.5, 10.2), titles, strict=True):
        ax.text(x, rows[0] + 0.95, words, ha="center", fontsize=9.5, color=GREY)
    for y, value, whole, messages in zip(rows, users["value"], users["scaled"], users["messages"], strict=True):
        box(ax, (0.0, y), f"{value:g}", VERMILLION)
        arrow(ax, (0.5, y), (1.4, y))
        box(ax, (1.9, y), str(whole), VERMILLION)
        arrow(ax, (2.35, y), (2.95, y))
        box(ax, (4.0, y), messages, VERMILLION)
        arrow(ax, (5.05, y), (5.6, middle))
    bag = [str(one) for one in shuffled]
    box(ax, (6.5, middle), "\n".join("  ".join(bag[at : at + 3]) for at in range(0, len(bag), 3)), GREY)
    arrow(ax, (7.2, middle), (8.0, middle))
    box(ax, (8.5, middle), str(total), BLUE)
    arrow(ax, (9.0, middle), (9.7, middle))
    box(ax, (10.2, middle), f"{answer:g}", BLUE)
    return fig
