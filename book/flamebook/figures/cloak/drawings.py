"""The patent's four drawings, again: who computes what, and one small round through encoder, shuffler and analyzer."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from flamebook.figures.cloak.protocol import Round
from flamebook.figures.style import Pen, draw_arrow, draw_box
from flamebook.records import to_csv


@dataclass(frozen=True, slots=True)
class System:
    """Who computes what, and what is handed on."""

    places: tuple[tuple[str, str, str], ...] = (
        ("clients", "local updater", "encoder"),
        ("shuffler", "permutes all messages", ""),
        ("server", "analyzer", "global updater"),
    )
    handed: tuple[tuple[str, str, str], ...] = (
        ("clients", "shuffler", "messages"),
        ("shuffler", "server", "messages, permuted"),
        ("server", "clients", "the new model"),
    )

    def to_csv(self) -> str:
        """One row an arrow."""
        return to_csv(["sender", "receiver", "what"], self.handed)


def draw_system(ax: Axes, record: System, pen: Pen) -> None:
    """Three places with their programs; the model goes back beneath them."""
    ax.set(xlim=(-1.4, 9.4), ylim=(-2.3, 2.0))
    ax.axis("off")
    for at, (place, *programs) in enumerate(record.places):
        x = 4.0 * at
        ax.text(x, 1.55, place, ha="center", fontsize=12, weight="bold")
        for row, program in enumerate(filter(None, programs)):
            draw_box(ax, pen, (x, 0.7 - 1.1 * row), program, ("vermillion", "grey", "blue")[at])
    for at, (_, _, what) in enumerate(record.handed[:2]):
        draw_arrow(ax, pen, (4.0 * at + 1.15, 0.15), (4.0 * at + 2.75, 0.15))
        ax.text(4.0 * at + 1.95, 0.3, what, ha="center", fontsize=9.5)
    ax.plot([8.0, 8.0, 0.0], [-0.9, -1.7, -1.7], color=pen.theme.ink, linewidth=1.2)
    draw_arrow(ax, pen, (0.0, -1.7), (0.0, -0.85))
    ax.text(4.0, -1.6, record.handed[2][2], ha="center", va="bottom", fontsize=9.5)


def draw_flow(ax: Axes, record: Round, pen: Pen) -> None:
    """From left to right: values, whole numbers, messages, the permuted messages, their sum, the answer."""
    rows = [1.6 * at for at in range(len(record.users))][::-1]
    middle = float(np.mean(rows))
    ax.set(xlim=(-0.6, 10.8), ylim=(-0.8, rows[0] + 1.5))
    ax.axis("off")
    titles = ("value", "scaled", "messages", "permuted", "sum mod $N$", "answer")
    for x, words in zip((0.0, 1.9, 4.0, 6.5, 8.5, 10.2), titles, strict=True):
        ax.text(x, rows[0] + 0.95, words, ha="center", fontsize=9.5, color=pen.colour("grey"))
    for y, (value, whole, _, shares, _) in zip(rows, record.users, strict=True):
        draw_box(ax, pen, (0.0, y), f"{value:g}", "vermillion")
        draw_arrow(ax, pen, (0.5, y), (1.4, y))
        draw_box(ax, pen, (1.9, y), str(whole), "vermillion")
        draw_arrow(ax, pen, (2.35, y), (2.95, y))
        draw_box(ax, pen, (4.0, y), str(shares), "vermillion")
        draw_arrow(ax, pen, (5.05, y), (5.6, middle))
    draw_box(ax, pen, (6.5, middle), _lines([str(one) for one in record.shuffled.tolist()]), "grey")
    draw_arrow(ax, pen, (7.2, middle), (8.0, middle))
    draw_box(ax, pen, (8.5, middle), str(record.total), "blue")
    draw_arrow(ax, pen, (9.0, middle), (9.7, middle))
    draw_box(ax, pen, (10.2, middle), f"{record.clipped:g}", "blue")


def _lines(words: Sequence[str], width: int = 3) -> str:
    return "\n".join("  ".join(words[at : at + width]) for at in range(0, len(words), width))
