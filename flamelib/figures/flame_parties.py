"""FLAME's diagrams: whom one has to trust in three models of learning, and what travels in one round."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from flamelib.figures.curves import to_csv
from flamelib.figures.diagrams import Point, draw_arrow, draw_box
from flamelib.figures.style import Pen


@dataclass(frozen=True, slots=True)
class Trust:
    """Three models: who receives what from whom, and behind which party its guarantee begins.

    ``wall`` is the number of parties, counted from the users, that have to be trusted with something.
    """

    models: tuple[tuple[str, tuple[str, ...], int, str], ...] = (
        ("curator model: DP-FL", ("users", "analyzer", "observer"), 2, "central budget"),
        ("local model: LDP-FL", ("users", "analyzer", "observer"), 1, "local budget"),
        ("shuffle model: FLAME", ("users", "shuffler", "analyzer", "observer"), 2, "central budget"),
    )

    def to_csv(self) -> str:
        """One row a party of each model: whether it stands inside the boundary, and the budget that holds outside."""
        rows = [
            (model, party, "inside" if at < wall else "outside", budget)
            for model, parties, wall, budget in self.models
            for at, party in enumerate(parties)
        ]
        return to_csv(["model", "party", "boundary", "budget outside"], rows)


SENT = {
    ("users", "analyzer"): "updates",
    ("users", "shuffler"): "sealed",
    ("shuffler", "analyzer"): "bags",
    ("analyzer", "observer"): "model",
}


def draw_trust(ax: Axes, record: Trust, pen: Pen) -> None:
    """A row a model; the dotted wall is the trust boundary, and outside it stands the budget that holds there."""
    ax.set(xlim=(-0.8, 10.5), ylim=(-0.9, 7.3))
    ax.axis("off")
    for row, (model, parties, wall, budget) in enumerate(record.models):
        base = 5.4 - 2.6 * row
        ax.text(-0.65, base + 1.05, model, fontsize=12, weight="bold")
        places = [9.4 * at / (len(parties) - 1) for at in range(len(parties))]
        for at, (place, party) in enumerate(zip(places, parties, strict=True)):
            key = "grey" if at == 0 else "vermillion" if at < wall else "blue"
            draw_box(ax, pen, (place, base), party, key)
        for start, end, pair in zip(places, places[1:], pairwise(parties), strict=False):
            draw_arrow(ax, pen, (start + (0.95 if start else 0.65), base), (end - 0.95, base))
            ax.text((start + end) / 2 - 0.15 * (not start), base + 0.18, _sent(model, pair), ha="center", fontsize=9.5)
        edge = (places[wall - 1] + places[wall]) / 2
        for low, high in ((base - 0.85, base - 0.15), (base + 0.6, base + 0.95)):
            ax.plot([edge, edge], [low, high], linestyle=":", color=pen.colour("lower"), linewidth=2)
        ax.text(edge + 0.15, base - 0.8, f"{budget} \N{RIGHTWARDS ARROW}", color=pen.colour("lower"), fontsize=10.5)


def _sent(model: str, pair: tuple[str, str]) -> str:
    return "noisy updates" if model.startswith("local") and pair[0] == "users" else SENT[pair]


@dataclass(frozen=True, slots=True)
class Round:
    """What each party of a round hands on."""

    steps: tuple[tuple[str, str, str, str], ...] = (
        ("1", "analyzer", "users", "model, key"),
        ("2", "users", "shuffler", "sender, coordinate, sealed value"),
        ("3", "shuffler", "analyzer", "one bag a coordinate, padded and permuted"),
        ("4", "analyzer", "observer", "next model"),
    )
    bags: tuple[str, ...] = ("duudd", "dddud", "udduu")

    def to_csv(self) -> str:
        """One row an arrow."""
        return to_csv(["step", "sender", "receiver", "what"], self.steps)


def draw_round(ax: Axes, record: Round, pen: Pen) -> None:
    """Users, shuffler with its bags, analyzer and observer from left to right; below, the way back of the model."""
    ax.set(xlim=(-1.1, 11.6), ylim=(-2.1, 4.3))
    ax.axis("off")
    for user in range(3):
        draw_box(ax, pen, (0, 2.6 - 1.3 * user), f"user {user + 1}", "grey")
        draw_arrow(ax, pen, (0.85, 2.6 - 1.3 * user), (2.55, 1.3))
    ax.add_patch(Rectangle((2.6, -0.5), 3.1, 3.6, facecolor="none", edgecolor=pen.colour("vermillion"), linewidth=1.6))
    ax.text(4.15, 3.25, "shuffler", ha="center", fontsize=11)
    for row, bag in enumerate(record.bags):
        _bag(ax, pen, (2.85, 2.2 - 1.1 * row), bag, f"{row + 1}")
    draw_arrow(ax, pen, (5.8, 1.3), (7.5, 1.3))
    draw_box(ax, pen, (8.35, 1.3), "analyzer", "blue")
    draw_arrow(ax, pen, (9.2, 1.3), (9.95, 1.3))
    draw_box(ax, pen, (10.8, 1.3), "observer", "blue")
    ax.plot([8.35, 8.35, 0], [0.85, -1.2, -1.2], color=pen.theme.ink, linewidth=1.2)
    draw_arrow(ax, pen, (0, -1.2), (0, -0.45))
    for place, (number, _, _, what) in zip(
        ((4.15, -1.05), (0.75, 3.5), (7.65, 1.85), (10.3, 1.85)), record.steps, strict=True
    ):
        ax.text(*place, f"{number}. {_folded(what)}", ha="center", fontsize=9.5)
    for left, key, words in (
        (2.3, "kept", "envelope of a user"),
        (5.6, "blanket-part", "dummy, sealed like the rest"),
    ):
        ax.add_patch(Rectangle((left, -1.95), 0.28, 0.28, **_square(pen, key)))
        ax.text(left + 0.42, -1.94, words, fontsize=9.5)


def _folded(what: str) -> str:
    return what.replace(", ", ",\n", 1) if len(what) > 20 else what


def _bag(ax: Axes, pen: Pen, corner: Point, bag: str, name: str) -> None:
    """A row of envelopes: those that users sent, and dummies."""
    ax.text(corner[0], corner[1] + 0.1, name, fontsize=9.5, va="center")
    for at, kind in enumerate(bag):
        key = "blanket-part" if kind == "d" else "kept"
        ax.add_patch(Rectangle((corner[0] + 0.35 + 0.45 * at, corner[1] - 0.06), 0.34, 0.34, **_square(pen, key)))


def _square(pen: Pen, key: str) -> dict[str, Any]:
    return {"facecolor": pen.colour(key), "edgecolor": pen.theme.ink, "linewidth": 0.6, "hatch": "//" * (key == "kept")}
