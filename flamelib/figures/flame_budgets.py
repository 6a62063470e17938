r"""Accuracy at the budget that a round truly keeps: claimed epsilons, certified ones, and a trusted server beside them.

The experiments compare methods at epsilons that nobody proved.  Here every protocol stands over the certified interval
of its epsilon, and the trusted server, whose epsilon is exact, is drawn along all of them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from flamelib.accounting.coordinates import counting
from flamelib.accounting.coordinates.certified import account, topk_truncated
from flamelib.figures.curves import Parameters, Values, to_csv, words
from flamelib.figures.flame_learning import Gap, Runs, draw_band, named
from flamelib.figures.flame_methods import Setting, claimed_epsilon, dense
from flamelib.figures.flame_tradeoffs import Sweep, compute_sweep
from flamelib.figures.style import Pen
from flamelib.learning.federated import Users

PROTOCOLS = ("topk", "topk:dense", "double", "simple")


@dataclass(frozen=True, slots=True)
class Interval:
    """What is claimed of a round's epsilon, and certified bounds on it from below and above."""

    claimed: float
    lower: float
    upper: float

    @property
    def refuted(self) -> bool:
        """Whether the claim lies below the certified lower bound."""
        return self.claimed < self.lower


def interval(setting: Setting, dimension: int, protocol: str) -> Interval:
    """Claimed epsilon and certified interval of one round.

    SS-Double: both ends for independent inclusion of every coordinate, which its proof needs.  SS-Topk: the upper end
    holds for all data, for a shuffler that keeps ``padded`` of too many messages at random, as ours does.
    """
    if protocol == "topk:dense":
        return interval(dense(setting), dimension, "topk")
    kept, padded, delta = setting.kept(dimension), setting.padded, setting.delta
    rate = kept / dimension
    epsilon0 = setting.epsilon0 * (rate if protocol == "simple" else 1.0)
    if protocol == "topk":
        lower = counting.topk_lower(kept, padded, epsilon0, delta=delta)
        upper: float = topk_truncated(kept, padded, epsilon0, delta)
    else:
        upper = account(
            protocol=protocol, dimension=dimension, kept=kept, n_users=setting.n_users, padded=padded,
            epsilon0=epsilon0, delta=delta, bound="blanket", route="sound",
        )  # fmt: skip
        if protocol == "simple":
            lower = counting.simple_lower(dimension, setting.n_users, epsilon0, delta=delta)
        else:
            lower = counting.double_lower(dimension, rate, padded, epsilon0, delta=delta)
    return Interval(claimed_epsilon(setting, dimension, protocol=protocol), float(lower), float(upper))


@dataclass(frozen=True, slots=True)
class EqualBudget:
    """Accuracy against what a round truly keeps.

    Attributes
    ----------
    server : Sweep
        The trusted server, exactly calibrated, against epsilon: ``dp``, and ``dp:step`` with a longer step.
    finals : mapping from protocol to array of shape (repeats,)
        Percent at the end.
    intervals : mapping from protocol to Interval
    """

    server: Sweep
    finals: Mapping[str, Values]
    intervals: Mapping[str, Interval]

    @property
    def parameters(self) -> Parameters:
        return self.server.parameters

    def server_at(self, epsilon: float, method: str = "dp") -> float:
        """The server's mean accuracy at an epsilon, straight in its logarithm between grid values, level beyond."""
        return float(np.interp(math.log(epsilon), np.log(self.server.x), self.server.mean(method)))

    def lead(self, protocol: str, method: str = "dp") -> float:
        """How far the server at the protocol's *lower* epsilon is ahead of the protocol, in points."""
        return self.server_at(self.intervals[protocol].lower, method) - float(self.finals[protocol].mean())

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: claimed, lower and upper epsilon, accuracy, and the server's at the lower one, both steps."""
        return [
            (
                named(key), one.claimed, one.lower, one.upper, str(Gap.of(self.finals[key])),
                *(f"{self.server_at(one.lower, method):.1f}" for method in self.server.finals),
            )
            for key, one in self.intervals.items()
        ]  # fmt: skip

    def to_csv(self) -> str:
        """One row a method and epsilon."""
        rows: list[tuple[object, ...]] = []
        for key in self.server.finals:
            columns = (self.server.x, self.server.x, self.server.x, self.server.mean(key), self.server.spread(key))
            rows += [(key, *row) for row in zip(*columns, strict=True)]
        for key, one in self.intervals.items():
            gap = Gap.of(self.finals[key])
            rows.append((key, one.claimed, one.lower, one.upper, gap.mean, gap.spread))
        return to_csv(["method", "claimed", "lower", "upper", "mean", "spread"], rows)


def compute_equal_budget(
    users: Users, setting: Setting, epsilons: Iterable[float], runs: Runs, repeats: int, seed: int
) -> EqualBudget:
    """The trusted server at every epsilon, and the three protocols with their accuracies from finished runs.

    Parameters
    ----------
    users : Users
    setting : Setting
    epsilons : iterable of float
        Budgets of a round.
    runs : Runs
        Of the four protocols in this setting.
    repeats, seed : int
        Of the server's runs.
    """
    server = compute_sweep(users, setting, "epsilon", epsilons, repeats, seed)
    intervals = {key: interval(setting, users.model.dimension, key) for key in PROTOCOLS}
    return EqualBudget(server, {key: runs.final(key) for key in PROTOCOLS}, intervals)


def draw_equal_budget(ax: Axes, record: EqualBudget, pen: Pen) -> None:
    """The server's curves; every protocol as a bar over its certified interval, a cross at its claim."""
    ax.set(xscale="log", xlabel=words("epsilon"), ylabel="accuracy at the end (%)")
    for name, finals in record.server.finals.items():
        draw_band(ax, record.server.x, finals, name, list(record.server.finals), pen)
    for key, one in record.intervals.items():
        gap = Gap.of(record.finals[key])
        style = pen.line(key.partition(":")[0], label=named(key), linestyle="-", linewidth=3)
        style |= {"marker": "s"} if ":" in key else {}
        ax.plot([one.lower, one.upper], [gap.mean] * 2, **style)
        ax.errorbar(one.lower, gap.mean, yerr=gap.spread, color=style["color"], capsize=3)
        ax.plot(one.claimed, gap.mean, color=style["color"], marker="x", markersize=9, linestyle="none")
