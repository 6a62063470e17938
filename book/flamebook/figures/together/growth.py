"""What a run and an account cost as crowds, rounds and vectors grow: recorded points, their power laws, one crowd more.

The points are those of :mod:`flamebook.recordings.growth`; nothing here measures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from flamebook.figures.style import Pen
from flamebook.records import DASHED, Parameters, Slope, log_log_slope, to_csv, words
from flamebook.runs import recorded
from flamebook.statements import Finding, compared
from flamelib.core.vocabulary import DomainError

TABLE = "growth.csv"
SMALLEST = "shuffled answers"  # whose runs the page begins with
DRAWN = {
    "shuffled answers": ("blue", "o"), "shuffled Laplace": ("blue", "s"),
    "SS-Simple": ("purple", "^"), "SS-Double": ("purple", "D"), "SS-Topk": ("purple", "o"),
    "random participation": ("green", "P"),
    "shuffled check-in": ("ochre", "s"), "distributed check-in": ("ochre", "v"),
    "cloak": ("vermillion", "o"),
}  # fmt: skip
FLOOR = {"seconds": 1e-3, "megabytes": 8.0}  # what is smaller is not told from the process itself
LAST = 4  # points that a power law is fitted to: a decade and a half
FLAT = 0.15  # an exponent no larger than this is no growth
NAMES = {"dimension": "coordinates"}
WHY = {"time": "the next point takes too long", "memory": "the next point takes too much memory", "": "no end was met"}


@dataclass(frozen=True, slots=True)
class Ladder:
    """The points of one protocol, question and axis that ended by themselves, from the smallest up.

    Attributes
    ----------
    ended : str
        Why no larger one was tried: ``time``, ``memory``, the sentence of a refusal, or empty.
    """

    protocol: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    megabytes: tuple[float, ...]
    ended: str

    def cost(self, what: str) -> tuple[float, ...]:
        """Seconds or megabytes."""
        return self.seconds if what == "seconds" else self.megabytes

    def _told(self, what: str) -> list[tuple[int, float]]:
        """The last points that are told from nothing, at least two; none where the very last is not."""
        points = [one for one in zip(self.sizes, self.cost(what), strict=True) if one[1] > 0]
        if not points or points[-1][1] <= FLOOR[what]:
            return []
        last = [one for one in points if one[1] > FLOOR[what]][-LAST:]
        return last if last[1:] else points[-2:]

    def slope(self, what: str) -> Slope | None:
        """Exponent over these points; none where there are fewer than two.  Of two the error is not known."""
        last = self._told(what)
        if len(last) == 2:
            (small, low), (large, high) = last
            return Slope(math.log(high / low) / math.log(large / small), math.nan)
        return log_log_slope(*zip(*last, strict=True)) if last[2:] else None

    def grows(self, what: str) -> bool:
        """Whether a power law is seen; otherwise the cost counts as constant."""
        slope = self.slope(what)
        return slope is not None and slope.exponent > FLAT

    def at(self, what: str, size: int) -> float:
        """The cost at a size: that of the last point, along its power law; the largest measured where none is seen."""
        slope = self.slope(what)
        if slope is None or not self.grows(what):
            return max(*self.cost(what), FLOOR[what])
        return float(self.cost(what)[-1] * (size / self.sizes[-1]) ** slope.exponent)

    def exponent(self, what: str) -> str:
        """The exponent in words."""
        slope = self.slope(what)
        if slope is None or not self.grows(what):
            return "flat"
        return f"{slope.exponent:.2f} (two points)" if math.isnan(slope.standard_error) else str(slope)


@dataclass(frozen=True, slots=True)
class Growth:
    """The ladders of one question along one axis, and the size that they are extended to."""

    question: str
    axis: str
    what: str
    ladders: tuple[Ladder, ...]
    size: int

    @property
    def parameters(self) -> Parameters:
        """The size that the lines are extended to."""
        return {self.axis: self.size}

    def to_csv(self) -> str:
        """One row a point that was measured, and one for each extension."""
        rows = [
            (one.protocol, size, cost, "measured")
            for one in self.ladders
            for size, cost in zip(one.sizes, one.cost(self.what), strict=True)
        ]
        rows += [(one.protocol, self.size, one.at(self.what, self.size), "extended") for one in self.ladders]
        return to_csv(["protocol", self.axis, self.what, "how"], rows)

    @property
    def in_words(self) -> str:
        """For those who do not see the figure: the exponents."""
        return ", ".join(f"{one.protocol} {one.exponent(self.what)}" for one in self.ladders)

    def ranked(self) -> list[Ladder]:
        """From the cheapest at the size to the dearest."""
        return sorted(self.ladders, key=lambda one: one.at(self.what, self.size))


def read(question: str, axis: str, what: str = "seconds", size: int | None = None) -> Growth:
    """The recorded ladders of a question along an axis.

    Parameters
    ----------
    question : {"run", "account"}
    axis : {"users", "rounds", "dimension"}
    what : {"seconds", "megabytes"}
    size : int, optional
        What the ladders are extended to; the largest that was measured if left out.
    """
    found = recorded.grouped(TABLE, lambda row: (row["question"], row["axis"], row["protocol"]))
    ladders = tuple(_ladder(name, found[question, axis, name]) for name in DRAWN if (question, axis, name) in found)
    if not ladders:
        raise DomainError(f"axis must be one that was recorded, got {axis!r}")
    return Growth(question, axis, what, ladders, size or max(one.sizes[-1] for one in ladders))


def _ladder(protocol: str, rows: Sequence[recorded.Row]) -> Ladder:
    done = [row for row in rows if row["seconds"] and not row["ended"]]
    sizes = tuple(int(row["size"]) for row in done)
    seconds, megabytes = (tuple(float(row[name]) for row in done) for name in ("seconds", "megabytes"))
    return Ladder(protocol, sizes, seconds, megabytes, rows[-1]["ended"])


def draw(ax: Axes, record: Growth, pen: Pen) -> None:
    """Measured points joined by a line, their extension dashed."""
    for one in record.ladders:
        hue, marker = DRAWN[one.protocol]
        points = [
            (size, cost)
            for size, cost in zip(one.sizes, one.cost(record.what), strict=True)
            if cost > FLOOR[record.what]
        ]
        if not points:
            continue
        style: dict[str, Any] = {"color": pen.theme.hues[hue], "linewidth": 1.5}
        ax.plot(*zip(*points, strict=True), marker=marker, markersize=5, label=one.protocol, **style)
        if record.size > one.sizes[-1]:
            ends = [points[-1], (record.size, one.at(record.what, record.size))]
            ax.plot(*zip(*ends, strict=True), linestyle=DASHED, alpha=0.7, **style)
    label = "seconds of one core" if record.what == "seconds" else "megabytes"
    axis = words({"users": "n_users"}.get(record.axis, record.axis))
    ax.set(xscale="log", yscale="log", xlabel=axis, ylabel=label)


def about() -> dict[str, str]:
    """How the record came about, for the text of the page."""
    found = recorded.provenance(TABLE)
    standing = f"{found['standing']['users']:,} users, {found['standing']['dimension']:,} coordinates or buckets"
    limits = {name: f"{limit:,}" for name, limit in found["limits"].items()}
    return limits | {"date": found["date"], "machine": found["machine"], "standing": f"{standing} and one round"}


def told(size: int) -> dict[str, str]:
    """What the dearest and the cheapest run take at a crowd, and from which exponent on a cost grows."""
    order = read("run", "users", size=size).ranked()
    fastest, slowest = (f"{duration(one.at('seconds', size))} ({one.protocol})" for one in (order[0], order[-1]))
    return {"fastest": fastest, "slowest": slowest, "flat": str(FLAT)}


def grow_at_most(record: Growth, exponent: float) -> Finding:
    """Whether every fitted exponent is at most this."""
    found = [slope.exponent for one in record.ladders if (slope := one.slope(record.what))]
    return compared(max(found, default=math.nan), "<=", exponent)


def smallest(size: int) -> dict[str, str]:
    """Two measured runs of one protocol, the exponent between them, and what it makes of a larger crowd."""
    one = next(ladder for ladder in read("run", "users").ladders if ladder.protocol == SMALLEST)
    (small, took), *_, (large, longer) = list(zip(one.sizes, one.seconds, strict=True))[-3:]
    slope = math.log(longer / took) / math.log(large / small)
    words = {"protocol": SMALLEST, "small": f"{small:,}", "large": f"{large:,}", "slope": f"{slope:.2f}"}
    words |= {"small_time": duration(took), "large_time": duration(longer)}
    words |= {"more": f"{large / small:.3g}", "longer": f"{longer / took:.3g}"}
    return words | {"then": duration(longer * (size / large) ** slope)}


def header(axis: str, size: int) -> list[str]:
    """Of a table of :func:`rows`, whose last columns are extended to a size."""
    then = f"for {size:,} {NAMES.get(axis, axis)}"
    return ["protocol", "measured up to", "time there", "exponent of time", f"time {then}", "exponent of memory",
            f"memory {then}"]  # fmt: skip


def rows(question: str, axis: str, size: int) -> list[tuple[str, ...]]:
    """For a table below :func:`header`: what was measured, how it grows, and what it comes to at a size."""
    return [
        (
            one.protocol,
            f"{one.sizes[-1]:,}",
            duration(one.seconds[-1]),
            one.exponent("seconds"),
            duration(one.at("seconds", size)),
            one.exponent("megabytes"),
            memory(one.at("megabytes", size)),
        )
        for one in read(question, axis, size=size).ranked()
    ]


def ends() -> list[tuple[str, str, str, str]]:
    """For a table: where each ladder ended before its last point, and why."""
    axes = [(question, axis) for question in ("run", "account") for axis in ("users", "rounds", "dimension")]
    return [
        (one.protocol, question, f"{one.sizes[-1]:,} {NAMES.get(axis, axis)}", WHY.get(one.ended, one.ended))
        for question, axis in axes
        if (question, axis) != ("run", "rounds")
        for one in read(question, axis).ladders
        if one.ended
    ]


def duration(seconds: float) -> str:
    """A time in two digits and the unit that suits it.

    >>> [duration(seconds) for seconds in (0.0002, 0.0123, 7.21, 300, 30000, 4e6, 5e8)]
    ['below 1 ms', '12 ms', '7.2 s', '5 min', '8.3 h', '46 days', '16 years']
    """
    if seconds < FLOOR["seconds"]:
        return "below 1 ms"
    units = (("years", 31557600.0), ("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3))
    return _in(seconds, units)


def memory(megabytes: float) -> str:
    """Memory in two digits and the unit that suits it.

    >>> memory(3.0), memory(242.0), memory(24_000), memory(2.4e6)
    ('below 8 MB', '240 MB', '24 GB', '2.4 TB')
    """
    if megabytes <= FLOOR["megabytes"]:
        return f"below {FLOOR['megabytes']:.0f} MB"
    return _in(megabytes, (("PB", 1e9), ("TB", 1e6), ("GB", 1e3), ("MB", 1.0)))


def _in(value: float, units: Sequence[tuple[str, float]]) -> str:
    unit, worth = next((one for one in units if value >= one[1]), units[-1])
    digits = 1 - math.floor(math.log10(value / worth))
    return f"{round(value / worth, digits):,g} {unit}"
