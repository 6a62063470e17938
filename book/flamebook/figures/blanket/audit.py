"""Figures of what does not hold: clones in three parts, and an alphabet that is one message short."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from flamebook.figures.blanket.comparisons import SAME
from flamebook.figures.curves import draw_curves
from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Curves, Parameters, to_csv, words
from flamebook.statements import Finding, compared, counted, every, times
from flamelib.accounting.shuffling.numerical import blanket_divergence, clones_2021, clones_2023
from flamelib.core.arrays import Reals
from flamelib.core.divergences import (
    hockey_stick,
    kary_table,
    shuffled_delta,
    shuffled_deltas,
    three_component_clone_pair,
)
from flamelib.core.profiles import KaryProfile

CLAIMED = ("three-component", "blanket", "clones-2023", "clones-2021")


@dataclass(frozen=True, slots=True)
class Case:
    """One small data set size that can be enumerated."""

    n_buckets: int
    n_users: int
    epsilon0: float
    epsilon: float

    def __str__(self) -> str:
        return f"k={self.n_buckets}, n={self.n_users}\nlocal {self.epsilon0:g}, central {self.epsilon:g}"


CASES = (Case(3, 4, 1.0, 0.5), Case(4, 3, 1.0, 0.5), Case(4, 5, 1.0, 0.3))


@dataclass(frozen=True, slots=True)
class CloneValues:
    """Delta of each account for k-ary response, and the truth by enumeration of all data sets."""

    cases: tuple[Case, ...]
    truth: Reals
    claimed: Mapping[str, Reals]
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a case."""
        rows = (
            (
                case.n_buckets,
                case.n_users,
                case.epsilon0,
                case.epsilon,
                self.truth[i],
                *(v[i] for v in self.claimed.values()),
            )
            for i, case in enumerate(self.cases)
        )
        return to_csv(["n_buckets", "n_users", "epsilon0", "epsilon", "truth", *self.claimed], rows)

    @property
    def refuted(self) -> NDArray[np.bool_]:
        """Cases in which the three-part value lies below the truth by more than rounding."""
        return self.claimed["three-component"] < self.truth * (1 - 1e-9)


def compute_clone_values(cases: Sequence[Case] = CASES) -> CloneValues:
    """Truth and claims for each case, both directions and every data set enumerated.

    Examples
    --------
    >>> compute_clone_values(CASES[:1]).refuted.tolist()
    [True]
    """
    claims = [_claims(case) for case in cases]
    claimed = {key: np.array([claim[key] for claim in claims]) for key in CLAIMED}
    truth = [shuffled_delta(kary_table(case.n_buckets, case.epsilon0), case.n_users, case.epsilon) for case in cases]
    return CloneValues(tuple(cases), np.array(truth), claimed, {})


def draw_clone_values(ax: Axes, record: CloneValues, pen: Pen) -> None:
    """Bars of the claim over the truth: a bar below the line is a claim that fails."""
    width = 0.8 / len(record.claimed)
    for place, (key, values) in enumerate(record.claimed.items()):
        at = np.arange(len(record.cases)) + (place - (len(record.claimed) - 1) / 2) * width
        excess = 100 * (values / record.truth - 1)
        hatch = "///" if key == "three-component" else "..." if key == "clones-2021" else ""
        bars = ax.bar(
            at, excess, width * 0.92, color=pen.colour(key), edgecolor=pen.theme.ink, hatch=hatch, linewidth=0.6
        )
        bars.set_label(LOOKS[key].label)
        ax.bar_label(bars, [f"{x:+.2g}" if abs(x) < 10 else f"{x:+.0f}" for x in excess], fontsize=9.5, padding=2)
    ax.axhline(0, **pen.line("truth", label="truth, enumerated", marker=""))
    ax.set_yscale("symlog", linthresh=1)
    ax.set(
        xlabel="letters $k$, users $n$, budgets",
        ylabel="above the truth (%)",
        xticks=range(len(record.cases)),
        ylim=(-6, 300),
    )
    ax.set_xticklabels([str(case) for case in record.cases], fontsize=10)
    ax.set_yticks([-1, 0, 1, 10, 100], ["-1", "0", "1", "10", "100"])
    ax.grid(visible=False, axis="x")


def compute_clone_scan(n_users: int, n_buckets: int, epsilon0: float, epsilon: Reals) -> Curves:
    """Delta of the three-part clones and of the bounds over the true delta, along epsilon; below 1 is a failure."""
    truth = np.array(shuffled_deltas(kary_table(n_buckets, epsilon0), n_users, epsilon.tolist()))
    claims = [_claims(Case(n_buckets, n_users, epsilon0, float(e))) for e in epsilon]
    curves = {key: np.array([claim[key] for claim in claims]) / truth for key in CLAIMED[:3]}
    parameters: Parameters = {"n_users": n_users, "n_buckets": n_buckets, "epsilon0": epsilon0}
    return Curves("epsilon", "delta over true delta", epsilon, curves, parameters)


def draw_clone_scan(ax: Axes, record: Curves, pen: Pen) -> None:
    """Ratios to the truth on plain axes, the region of failure shaded."""
    draw_curves(ax, record, pen)
    low = min(0.95, float(np.min(record.curves["three-component"])) - 0.02)
    ax.axhspan(low, 1, color=pen.colour("three-component"), alpha=0.14, linewidth=0, label="below the truth")
    ax.axhline(1, **pen.line("truth", marker=""))
    ax.set(
        xscale="linear",
        yscale="linear",
        ylim=(low, None),
        xlabel=words("epsilon"),
        ylabel=r"claimed $\delta$ / true $\delta$",
    )


def words_of_scan(record: Curves) -> dict[str, str]:
    """Whether the three-part clones fall below the truth on the scan, where and by how much.

    >>> words_of_scan(compute_clone_scan(4, 3, 1.0, np.array([0.2, 0.85])))["scan_alt"]
    'the three-part clones lie below one at 1 of 2 points'
    """
    ratio = record.curves["three-component"]
    below, most = int((ratio < 1 - SAME).sum()), 1 / float(ratio.min())
    return {
        "scan_objective": f"and by a factor of {most:.2g} in another" if below else "and not at all in another",
        "scan_story": f"there the truth is up to {times(most)} what the formula allows"
        if below
        else "at the values of this run the formula is nowhere below the truth",
        "scan_alt": f"the three-part clones lie below one at {below} of {counted(len(ratio), 'point')}",
    }


def two_parts_hold(values: CloneValues, scan: Curves) -> Finding:
    """Whether clones in two parts and the blanket divergence are never below the truth, but for rounding."""
    kinds = [compared(values.truth * (1 - SAME), "<=", values.claimed[key]) for key in CLAIMED[1:]]
    return every(*kinds, *(compared(1 - SAME, "<=", scan.curves[key]) for key in CLAIMED[1:3]))


def level_table(n_levels: int, blanket_mass: float, lowest: int) -> NDArray[np.float64]:
    """Law of a message in {0..n_levels}, one row a value, when the blanket is uniform on {lowest..n_levels}.

    >>> level_table(2, 0.3, 0)[0].round(3).tolist(), level_table(2, 0.3, 1)[0].round(3).tolist()
    ([0.8, 0.1, 0.1], [0.7, 0.15, 0.15])
    """
    blanket = np.zeros(n_levels + 1)
    blanket[lowest:] = blanket_mass / (n_levels + 1 - lowest)
    return (1 - blanket_mass) * np.eye(n_levels + 1) + blanket


def compute_alphabets(n_users: int, n_levels: int, blanket_mass: float, epsilon: Reals) -> Curves:
    """True delta of shuffled levels, enumerated, with the blanket on {0..k} and on {1..k}."""
    curves = {
        key: np.array(shuffled_deltas(level_table(n_levels, blanket_mass, lowest), n_users, epsilon.tolist()))
        for key, lowest in (("right-alphabet", 0), ("wrong-alphabet", 1))
    }
    parameters: Parameters = {"n_users": n_users, "n_levels": n_levels, "blanket_mass": blanket_mass}
    return Curves("epsilon", "delta", epsilon, curves, parameters)


def draw_alphabets(ax: Axes, record: Curves, pen: Pen) -> None:
    """One curve falls, the other never leaves its floor."""
    draw_curves(ax, record, pen)
    ax.set(xscale="linear", yscale="linear", ylim=(0, None), ylabel=r"true $\delta$")


def bias_of_alphabet(n_users: int, n_levels: int, blanket_mass: float, lowest: int) -> float:
    """Exact bias of the estimated sum (in users' values) when messages are debiased as if uniform on {0..k}.

    >>> round(bias_of_alphabet(1000, 5, 0.2, lowest=1), 9), bias_of_alphabet(1000, 5, 0.2, lowest=0)
    (25.0, 0.0)
    """
    table, levels = level_table(n_levels, blanket_mass, lowest), np.arange(n_levels + 1)
    mean = math.fsum(table[0] * levels) / n_levels
    return n_users * (mean - blanket_mass / 2) / (1 - blanket_mass)


def _claims(case: Case) -> dict[str, float]:
    k, n, epsilon0, epsilon = case.n_buckets, case.n_users, case.epsilon0, case.epsilon
    profile = KaryProfile(epsilon0, k)
    return {
        "three-component": hockey_stick(*three_component_clone_pair(n, k, epsilon0), epsilon),
        "blanket": float(blanket_divergence(profile, n, epsilon=epsilon)),
        "clones-2023": float(clones_2023(profile, n, epsilon=epsilon)),
        "clones-2021": float(clones_2021(epsilon0, n, epsilon=epsilon)),
    }
