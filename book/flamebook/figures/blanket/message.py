"""Figures of one message: what a randomizer may send for a value, and the blanket under it."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from flamebook.figures.style import Pen, draw_arrow, draw_box
from flamebook.records import Curves, Parameters, columns_csv, to_csv
from flamelib.core.arrays import Reals
from flamelib.mechanisms.randomizers import KaryResponse, LaplaceNoise


@dataclass(frozen=True, slots=True)
class MessageLaw:
    """Probability of each message of k-ary response: the part that was kept and the part from the blanket."""

    value: int
    kept: Reals
    blanket: Reals
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a message."""
        return columns_csv({"message": range(len(self.kept)), "kept": self.kept, "blanket": self.blanket})


def compute_kary_message(n_buckets: int, epsilon0: float, value: int) -> MessageLaw:
    """What one message of a user with this bucket can be, split into kept value and blanket."""
    response, messages = KaryResponse(epsilon0, n_buckets), np.arange(n_buckets)
    blanket = response.mass * np.exp(response.blanket_log_pmf(messages))
    kept = np.exp(response.log_pmf(messages, value)) - blanket
    return MessageLaw(value, kept, blanket, {"n_buckets": n_buckets, "epsilon0": epsilon0, "value": value})


def draw_kary_message(ax: Axes, record: MessageLaw, pen: Pen) -> None:
    """Stacked bars: the blanket under everything, the kept value on one message."""
    messages = range(len(record.kept))
    ax.bar(messages, record.blanket, color=pen.colour("blanket-part"), label="blanket: says nothing")
    ax.bar(messages, record.kept, bottom=record.blanket, color=pen.colour("kept"), hatch="//", label="kept value")
    ax.set(xlabel=f"message of a user whose value is {record.value}", ylabel="probability", xticks=list(messages))
    ax.grid(visible=False, axis="x")


def compute_laplace_message(epsilon0: float, points: int = 401) -> Curves:
    """Densities of the message for the inputs 0 and 1, and the part under both, which is the blanket."""
    noise, message = LaplaceNoise(epsilon0), np.linspace(-1.5, 2.5, points)
    curves = {
        "kept:input 0": np.exp(noise.log_pdf(message, 0.0)),
        "kept:input 1": np.exp(noise.log_pdf(message, 1.0)),
        "blanket-part": noise.mass * np.exp(noise.blanket_log_pdf(message)),
    }
    return Curves("message", "density", message, curves, {"epsilon0": epsilon0})


def draw_laplace_message(ax: Axes, record: Curves, pen: Pen) -> None:
    """Two peaks, and the tent under both of them."""
    blanket = record.curves["blanket-part"]
    ax.fill_between(record.x, blanket, color=pen.colour("blanket-part"), alpha=0.35, label="blanket: under every input")
    for name, dash, words in (("kept:input 0", "-", "user's value 0"), ("kept:input 1", "--", "user's value 1")):
        ax.plot(record.x, record.curves[name], color=pen.colour("kept"), linestyle=dash, label=words)
    ax.set(xlabel="message", ylabel="density", ylim=(0, None))


@dataclass(frozen=True, slots=True)
class Parties:
    """Who hands what to whom, in the local and in the shuffle model."""

    steps: tuple[tuple[str, str, str, str], ...] = (
        ("local", "user", "analyzer", "message, with its sender"),
        ("shuffle", "user", "shuffler", "message, with its sender"),
        ("shuffle", "shuffler", "analyzer", "all messages, in random order"),
    )

    def to_csv(self) -> str:
        """One row an arrow."""
        return to_csv(["model", "sender", "receiver", "what"], self.steps)


def draw_parties(ax: Axes, record: Parties, pen: Pen) -> None:
    """Two rows of boxes; a dotted line where the adversary looks, and the budget that holds there."""
    ax.set(xlim=(0, 10.2), ylim=(-0.5, 6.6))
    ax.axis("off")
    for base, model in ((3.6, "local"), (0.0, "shuffle")):
        shuffled = any(step[0] == model and step[2] == "shuffler" for step in record.steps)
        ax.text(0.1, base + 2.55, f"{model} model", fontsize=12, weight="bold")
        for row in range(3):
            draw_box(ax, pen, (1.0, base + 0.8 * row + 0.2), f"user {3 - row}", "grey")
            end = (4.4, base + 1.0) if shuffled else (8.1, base + 0.7 + 0.3 * row)
            draw_arrow(ax, pen, (1.95, base + 0.8 * row + 0.2), end)
        if shuffled:
            draw_box(ax, pen, (5.35, base + 1.0), "shuffler", "blanket-part")
            draw_arrow(ax, pen, (6.3, base + 1.0), (8.1, base + 1.0))
        draw_box(ax, pen, (9.1, base + 1.0), "analyzer", "kept")
        wall, budget = (7.2, "central") if shuffled else (3.2, "local")
        ax.plot([wall, wall], [base - 0.15, base + 2.1], linestyle=":", color=pen.colour("lower"))
        ax.text(wall, base + 2.25, f"{budget} budget", color=pen.colour("lower"), ha="center", fontsize=10.5)
