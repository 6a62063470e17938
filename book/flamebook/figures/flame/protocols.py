"""Figures of FLAME's protocols: whom one has to trust, what travels, what happens to one value, what it costs.

Time is measured once and recorded, so that a page is the same whenever it is made.  Sealed rounds are run with somebody
on the way between users and shuffler: what is rejected, and why.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from flamebook.figures.style import Pen, Point, draw_arrow, draw_box
from flamebook.places import RESULTS
from flamebook.records import LOOKS, Parameters, Slope, log_log_slope, to_csv
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms import coordinates, sealing
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame
from flamelib.protocols.flame import FlameDouble, FlameTopk, Reports

BLOCK = 1000  # users whose updates are in memory at once
RECORDED = RESULTS / "flame_costs.json"


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds measured on one machine, and what a straight line through the origin makes of the largest of them.

    Attributes
    ----------
    x_name : str
        What the cost is drawn against.
    measured : mapping from a name to an array of shape (points, 2)
        Rows of size and seconds.
    further : mapping from what it stands for to a size
        Sizes that were not measured and to which the last measured point is extended.
    """

    x_name: str
    measured: Mapping[str, Reals]
    further: Mapping[str, float]
    parameters: Parameters

    def extended(self, name: str) -> Reals:
        """Sizes and seconds that were not measured: seconds per unit of the largest measured size, times the size."""
        size, seconds = self.measured[name][-1]
        return np.array([(other, seconds * other / size) for other in sorted(self.further.values()) if other > size])

    def slope(self, name: str) -> Slope:
        """Exponent of the measured cost on log-log axes; 1 is a straight line."""
        return log_log_slope(*self.measured[name].T)

    def to_csv(self) -> str:
        """One row a point: measured, or extended."""
        rows = [
            (name, *point, how)
            for name in self.measured
            for how, points in (("measured", self.measured[name]), ("extended", self.extended(name)))
            for point in points
        ]
        return to_csv(["what", self.x_name, "seconds", "how"], rows)

    def to_json(self) -> dict[str, Any]:
        """Sizes and seconds, to be recorded."""
        return {
            "x_name": self.x_name,
            "measured": {name: points.tolist() for name, points in self.measured.items()},
            "further": dict(self.further),
            "parameters": dict(self.parameters),
        }


def recorded_costs(what: str) -> Costs:
    """What was measured, and recorded with date and machine, of a ``round`` or of ``sealing``.

    >>> recorded_costs("sealing").slope("seal").exponent > 0.9
    True
    """
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))["costs"]
    if what not in recorded:
        raise DomainError(f"what must be one of {', '.join(recorded)}, got {what!r}")
    found = recorded[what]
    measured = {name: np.array(points) for name, points in found["measured"].items()}
    return Costs(found["x_name"], measured, found["further"], found["parameters"])


def machine() -> str:
    """The machine on which they were measured, and when."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    return f"{recorded['machine']}, {recorded['date']}"


def compute_round_cost(
    users: Sequence[int], dimension: int = 7850, kept: int = 157, epsilon0: float = 0.5, up_to: int = 100_000
) -> Costs:
    """Measured time of a round after local training, against the number of true messages, users times ``kept``.

    Updates come in blocks of a thousand users, so memory does not grow with them; bags hold a third of the users'
    number.  SS-Topk looks at every coordinate of every update to find the largest, whatever ``kept``.

    Parameters
    ----------
    users : sequence of int
        Numbers of users to measure, ascending; 10,000 take about half a second each.
    dimension, kept, epsilon0
        As in the protocols.
    up_to : int
        Number of users up to which the line is extended.
    """
    given = {"dimension": dimension, "kept": kept, "epsilon0": epsilon0}
    block = np.random.default_rng(0).normal(scale=0.01, size=(min(BLOCK, max(users)), dimension))

    def seconds(make: Callable[..., flame.Protocol], n_users: int) -> float:
        protocol = make(n_users, dimension, 0.01, LaplaceNoise(epsilon0), kept, max(2, -(-n_users // 3)))
        return _least_time(lambda: flame.run(protocol, _repeated(block, n_users), np.random.default_rng(0)))

    measured = {
        name: np.array([(n_users * kept, seconds(make, n_users)) for n_users in users], dtype=float)
        for name, make in (("topk", FlameTopk), ("double", FlameDouble))
    }
    return Costs("true messages", measured, {f"{up_to:,} users": up_to * kept}, given)


def compute_sealing_cost(messages: Sequence[int], n_users: int, dimension: int, kept: int, padded: int) -> Costs:
    """Measured time to seal and to open envelopes, extended to all true messages of a round and to all of its bags.

    Parameters
    ----------
    messages : sequence of int
        Numbers of messages to measure, ascending; a thousand take about a tenth of a second.
    n_users, dimension, kept, padded : int
        The round to which the line is extended.
    """
    given = check(n_users=n_users, dimension=dimension, kept=kept, padded=padded)
    key, name = sealing.AnalyzerKey(), sealing.new_round()
    sealed, opened = [], []
    for count in messages:
        places, values = np.arange(count), np.linspace(0, 1, count)
        bags = sealing.seal(key.public, name, places, values)[:, None]
        sealed.append((count, _least_time(partial(sealing.seal, key.public, name, places, values))))
        opened.append((count, _least_time(partial(sealing.open_bags, key, name, bags))))
    further = {"messages of all users": n_users * kept, "with all dummies": dimension * padded}
    return Costs("messages", {"seal": np.array(sealed, float), "open": np.array(opened, float)}, further, given)


def draw_costs(ax: Axes, record: Costs, pen: Pen) -> None:
    """Measured points, filled; the line extended beyond them, dotted, with hollow marks."""
    for name, points in record.measured.items():
        ax.plot(*points.T, **pen.line(name, marker="o", linestyle="-", label=f"{LOOKS[name].label}, measured"))
        line = np.vstack([points[-1:], record.extended(name).reshape(-1, 2)])
        hollow = {"marker": "o", "markerfacecolor": "none", "markevery": range(1, len(line)), "linestyle": ":"}
        ax.plot(*line.T, **pen.line(name, **hollow, label=f"{LOOKS[name].label}, extended"))
    for words, size in record.further.items():
        ax.axvline(size, color=pen.theme.faint, linewidth=1.0, zorder=0)
        ax.text(
            size, 0.02, words, transform=ax.get_xaxis_transform(), rotation=90, ha="right", va="bottom", fontsize=10
        )
    ax.set(xscale="log", yscale="log", xlabel=record.x_name, ylabel="seconds on one core")


def _repeated(block: Reals, n_users: int) -> Iterator[Reals]:
    """The same rows over and over, until there are as many as users."""
    for first in range(0, n_users, len(block)):
        yield block[: n_users - first]


def _least_time(action: Callable[[], object], least: float = 0.2) -> float:
    """Shortest of several runs, of which there are fewer the longer they take."""
    found: list[float] = []
    while not found or (sum(found) < least and len(found) < 5):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return min(found)


@dataclass(frozen=True, slots=True)
class OneValue:
    """The way of one coordinate of one update, in units of the clipping bound: -1 to 1 is what a user can say.

    Attributes
    ----------
    update, clipped, message : float
        Before clipping, after it, and as sent: decoded and mapped back, so that its mean is ``clipped``.
    bag : array of shape (padded,)
        All messages of the coordinate, in the order in which the analyzer gets them.
    kind : tuple of str
        What each message of the bag is, which the analyzer does not know: ``own``, ``user`` or ``dummy``.
    estimate, truth, spread : float
        What the analyzer makes of the bag, what it estimates, and the standard deviation of its noise.
    """

    update: float
    clipped: float
    message: float
    bag: Reals
    kind: tuple[str, ...]
    estimate: float
    truth: float
    spread: float
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a stage, and one a message of the bag."""
        stages = [(stage, getattr(self, stage)) for stage in ("update", "clipped", "message")]
        bag = [(f"bag, {kind}", value) for kind, value in zip(self.kind, self.bag, strict=True)]
        end = [(stage, getattr(self, stage)) for stage in ("estimate", "truth", "spread")]
        return to_csv(["stage", "value"], [*stages, *bag, *end])


def compute_one_value(update: float, n_users: int, padded: int, epsilon0: float, seed: int) -> OneValue:
    """Follow the first coordinate of one user through a round of SS-Topk with one reported coordinate of fifty.

    Parameters
    ----------
    update : float
        The user's coordinate in units of the clipping bound, not zero; its others are zero.
    n_users, padded, epsilon0
        As in the protocol.
    seed : int
        Decides the other users' updates, the noise and the order.
    """
    if not 0 < abs(update) < np.inf:
        raise DomainError(f"update must be a finite number other than 0, got {update!r}")
    protocol = FlameTopk(n_users, 50, 1.0, LaplaceNoise(epsilon0), kept=1, padded=padded)
    for_updates, for_users, for_shuffler = np.random.default_rng(seed).spawn(3)
    rows = np.zeros((n_users, 50))
    rows[np.arange(n_users), for_updates.integers(50, size=n_users)] = for_updates.normal(0.3, 0.6, size=n_users)
    rows[0] = np.eye(50)[0] * update
    reports = flame.user(protocol, rows, for_users)
    shuffled = flame.shuffler(protocol, reports, for_shuffler)
    estimate, _ = flame.analyzer(protocol, shuffled.bags)
    here = reports.places == 0
    sent, bag = reports.messages[here], shuffled.bags[0]
    kind = tuple("own" if one == sent[0] else "user" if one in sent else "dummy" for one in bag)
    if "own" not in kind:
        raise DomainError(f"padded must leave room for the {sent.size} messages of the coordinate, got {padded}")
    clipped = np.clip(rows[:, 0], -1, 1)
    message, whole = (2 * coordinates.decode(protocol.randomizer, found) - 1 for found in (sent[0], bag))
    return OneValue(
        update=update,
        clipped=float(clipped[0]),
        message=float(message),
        bag=whole,
        kind=kind,
        estimate=float(estimate[0]),
        truth=float(clipped[reports.senders[here]].sum() / (n_users / 50)),
        spread=flame.noise_std(protocol),
        parameters={"update": update, "n_users": n_users, "padded": padded, "epsilon0": epsilon0, "seed": seed},
    )


def draw_one_value(ax: Axes, record: OneValue, pen: Pen) -> None:
    """Five columns from left to right: the value, clipped, its message, its bag, the estimate from the bag."""
    path = [record.update, record.clipped, record.message]
    own = record.bag[record.kind.index("own")]
    slots = 3 + np.linspace(-0.38, 0.38, record.bag.size)
    ax.axhspan(-1, 1, color=pen.theme.faint, alpha=0.5, zorder=0, label="what a user can say")
    for kind, key, mark, words in (("dummy", "blanket-part", ".", "dummies"), ("user", "black", "^", "other users")):
        chosen = np.array([one == kind for one in record.kind])
        ax.plot(slots[chosen], record.bag[chosen], mark, color=pen.colour(key), markersize=4.5, label=words)
    ax.plot([0, 1, 2], path, "o-", color=pen.colour("kept"), label="the value on its way")
    ax.plot([2, slots[record.kind.index("own")]], [record.message, own], "o:", color=pen.colour("kept"))
    ax.errorbar(
        4, record.estimate, record.spread, fmt="D", color=pen.colour("estimate"), capsize=4, label="estimate, its noise"
    )
    ax.plot(4.2, record.truth, "o", color=pen.colour("truth"), label="what it estimates")
    stages = ["update", "clipped", "message", f"bag of {record.bag.size}", "estimate"]
    ax.set(xticks=range(5), xticklabels=stages, ylabel="value, in units of the clipping bound")
    ax.grid(visible=False, axis="x")


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


Adversary = Callable[[Reports], Reports]


def changed(reports: Reports) -> Reports:
    """One bit of the first three envelopes is flipped."""
    messages = reports.messages.astype(np.uint8)
    messages[:3, -1] ^= 1
    return replace(reports, messages=messages)


def foreign(reports: Reports) -> Reports:
    """The first three envelopes give way to some that are sealed for another key."""
    messages = reports.messages.copy()
    messages[:3] = sealing.seal(sealing.AnalyzerKey().public, sealing.new_round(), reports.places[:3], [9.0] * 3)
    return replace(reports, messages=messages)


def repeated(reports: Reports) -> Reports:
    """The first three reports come twice."""
    return Reports(*(np.concatenate([part, part[:3]]) for part in (reports.senders, reports.places, reports.messages)))


def copied(reports: Reports) -> Reports:
    """The first sender's envelope for a coordinate is sent in the name of all who report it."""
    messages = reports.messages.copy()
    same = np.flatnonzero(reports.places == reports.places[0])
    messages[same] = messages[0]
    return replace(reports, messages=messages)


ADVERSARIES: tuple[tuple[str, Adversary | None], ...] = (
    ("nobody", None),
    ("a bit flipped in 3 envelopes", changed),
    ("3 envelopes sealed for another key", foreign),
    ("3 reports sent twice", repeated),
    ("1 envelope copied to all reports of its coordinate", copied),
)


def sealed_rounds(
    n_users: int, dimension: int, kept: int, padded: int, epsilon0: float, seed: int
) -> list[list[object]]:
    """One sealed round of SS-Topk against each adversary: messages accepted, messages rejected by reason.

    Every round draws its keys anew, from the operating system; updates and noise come from the seed.
    """
    protocol = flame.FlameTopk(n_users, dimension, 1.0, LaplaceNoise(epsilon0), kept, padded)
    updates = np.random.default_rng(seed).normal(size=(n_users, dimension))
    rows: list[list[object]] = []
    for name, adversary in ADVERSARIES:
        result = flame.run_sealed(protocol, updates, np.random.default_rng(seed), adversary)
        reasons = ", ".join(f"{count} {reason}" for reason, count in result.rejected.items() if count)
        rows.append([name, int(result.received.sum()), reasons or "none"])
    return rows
