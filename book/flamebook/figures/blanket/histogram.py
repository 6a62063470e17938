"""Figures of the private histogram: published counts, and their error beside its exact value."""

import math
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from scipy.stats import chi2

from flamebook.figures.blanket.comparisons import as_large
from flamebook.figures.style import Pen
from flamebook.records import Curves, Parameters, columns_csv
from flamebook.statements import Finding, at_most, compared, counted, percent, silent, times
from flamelib.accounting.shuffling.closed_form import histogram_epsilon
from flamelib.core.arrays import Reals
from flamelib.core.profiles import KaryProfile
from flamelib.protocols.blanket import HistogramProtocol, count_variance, private_histogram, run

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
CONFIDENCE = 0.99
BY_CHANCE = 1e-6  # how often a right theory may be told to be wrong
FEW_ERRORS = 10.0  # independent errors from which their mean square tells anything
FEW_MESSAGES = 9.0  # variance of a count of messages below which its law is not near a normal one


@dataclass(frozen=True, slots=True)
class HistogramError:
    """One private histogram, and the error over repeats beside its theory; counts of users, shape (n_buckets,).

    ``freedom`` is how many independent counts err like those of one execution, which add up to a known number.
    """

    names: tuple[str, ...]
    truth: Reals
    estimate: Reals
    measured: Reals
    theory: Reals
    repeats: int
    freedom: float
    parameters: Parameters

    def to_csv(self) -> str:
        """One row a bucket."""
        counts: dict[str, Iterable[object]] = {"bucket": self.names, "true_count": self.truth}
        found = {
            "estimate": self.estimate,
            "measured_standard_deviation": self.measured,
            "exact_standard_deviation": self.theory,
        }
        return columns_csv(counts | found)

    @property
    def pooled_ratio(self) -> float:
        """Measured mean squared error over its exact value, summed over buckets: near 1."""
        return float((self.measured**2).sum() / (self.theory**2).sum())

    @property
    def agreement(self) -> Finding:
        """Whether the pooled ratio is as near to 1 as it is but once in a million times if theory is right."""
        shares = self.theory**2 / (self.theory**2).sum()
        messages = float((shares * self.theory**2).sum()) * (1 - float(self.parameters["blanket_mass"])) ** 2
        total = self.freedom * self.repeats
        if messages < FEW_MESSAGES or total < FEW_ERRORS:
            return silent("there are too few messages or repetitions to tell")
        low, high = chi2.ppf([BY_CHANCE / 2, 1 - BY_CHANCE / 2], total) / total
        return compared(low, "<=", self.pooled_ratio, "<=", high)

    @property
    def interval(self) -> tuple[Reals, Reals]:
        """For each bucket, where a measured deviation falls with probability 99 % if theory is right."""
        low, high = chi2.ppf([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], self.repeats) / self.repeats
        return self.theory * math.sqrt(low), self.theory * math.sqrt(high)


def compute_histogram(values: ArrayLike, protocol: HistogramProtocol, repeats: int, seed: int) -> HistogramError:
    """Run the protocol ``repeats`` times on the same users and compare its error with the exact variance.

    Parameters
    ----------
    values : array of shape (n_users,)
        Buckets 0 to n_buckets - 1.
    protocol : HistogramProtocol
    repeats : int
        Independent executions, at least 1; the first is the one shown.
    seed : int

    Examples
    --------
    >>> record = compute_histogram([0, 1, 1, 2] * 100, HistogramProtocol(400, 3, 0.5), repeats=200, seed=1)
    >>> 0.8 < record.pooled_ratio < 1.2
    True
    """
    buckets = np.asarray(values)
    truth = np.bincount(buckets, minlength=protocol.n_buckets).astype(float)
    generators = np.random.default_rng(seed).spawn(repeats)
    estimates = np.array([run(protocol, buckets, rng) for rng in generators])
    measured = np.sqrt(((estimates - truth) ** 2).mean(axis=0))
    theory = np.sqrt(count_variance(protocol, truth))
    known = protocol.n_buckets <= len(ALPHABET)
    names = tuple(ALPHABET[: protocol.n_buckets]) if known else tuple(map(str, range(protocol.n_buckets)))
    public = {"n_users": protocol.n_users, "n_buckets": protocol.n_buckets, "blanket_mass": protocol.blanket_mass}
    parameters: Parameters = {**public, "repeats": repeats, "seed": seed}
    return HistogramError(names, truth, estimates[0], measured, theory, repeats, _freedom(protocol, truth), parameters)


def _freedom(protocol: HistogramProtocol, truth: Reals) -> float:
    """Degrees of freedom of the squared error of all counts: squared trace of their covariance over that of its square.

    >>> round(_freedom(HistogramProtocol(100, 2, 0.5), np.array([50.0, 50.0])), 12)
    1.0
    """
    stray = protocol.blanket_mass / protocol.n_buckets
    right, others = 1 - protocol.blanket_mass + stray, protocol.n_users - np.add.outer(truth, truth)
    covariance = -(np.add.outer(truth, truth) * right * stray + others * stray**2) / (1 - protocol.blanket_mass) ** 2
    np.fill_diagonal(covariance, count_variance(protocol, truth))
    return 1 / float(((covariance / np.trace(covariance)) ** 2).sum())


def draw_histogram(ax: Axes, record: HistogramError, pen: Pen) -> None:
    """Bars of the true counts; the published estimates as points with two standard deviations."""
    at = np.arange(len(record.names))
    ax.bar(at, record.truth, color=pen.theme.faint, edgecolor=pen.colour("grey"), linewidth=0.5, label="true count")
    marks: dict[str, Any] = {"fmt": "D", "markersize": 3.5, "color": pen.colour("estimate"), "elinewidth": 1.2}
    ax.errorbar(at, record.estimate, yerr=2 * record.theory, label="published, ± 2 standard deviations", **marks)
    _name_buckets(ax, record.names)
    ax.set(ylabel="users", xlabel="bucket")


def draw_histogram_error(ax: Axes, record: HistogramError, pen: Pen) -> None:
    """Measured deviation of each bucket on the band in which theory expects it."""
    at = np.arange(len(record.names))
    low, high = record.interval
    band: dict[str, Any] = {"color": pen.colour("theory"), "linewidth": 0}
    ax.fill_between(at, low, high, alpha=0.22, step="mid", label="99 % band of theory", **band)
    ax.step(at, record.theory, where="mid", color=pen.colour("theory"), label="exact standard deviation")
    ax.plot(
        at,
        record.measured,
        "o",
        markersize=4,
        color=pen.colour("estimate"),
        label=f"measured, {record.repeats} repeats",
    )
    _name_buckets(ax, record.names)
    ax.set(ylabel="standard deviation (users)", xlabel="bucket", ylim=(0, None))


def histogram_costs(
    n_users: int, n_buckets: int, epsilon: float, delta: float
) -> list[tuple[str, float, float, float]]:
    """What one guarantee costs: trust, blanket mass, standard deviation of an average count, and in percent of it.

    Examples
    --------
    >>> [trust for trust, *_ in histogram_costs(100_000, 10, 1.0, 1e-6)]
    ['nobody: local model', 'shuffler: Theorem 3.1', 'shuffler: blanket divergence', 'curator']
    """
    masses = {"nobody: local model": KaryProfile(epsilon, n_buckets).mass}
    if histogram_epsilon(n_users, n_buckets, 1.0, delta) < epsilon <= 1:
        masses["shuffler: Theorem 3.1"] = private_histogram(n_users, n_buckets, epsilon, delta).blanket_mass
    blanket = private_histogram(n_users, n_buckets, epsilon, delta, accounting="blanket")
    masses["shuffler: blanket divergence"] = blanket.blanket_mass
    average = n_users / n_buckets
    found = {
        trust: (mass, float(np.sqrt(count_variance(HistogramProtocol(n_users, n_buckets, mass), average))))
        for trust, mass in masses.items()
    }
    # Replacing one bucket moves two counts by 1 each: Laplace noise of scale 2/epsilon on every count.
    found["curator"] = (0.0, 2 * math.sqrt(2) / epsilon)
    return [(trust, mass, error, 100 * error / average) for trust, (mass, error) in found.items()]


def words_of_costs(costs: Sequence[tuple[str, float, float, float]]) -> dict[str, str]:
    """What the same guarantee costs under one trust and another: the rows of :func:`histogram_costs` compared.

    >>> words_of_costs(histogram_costs(100_000, 10, 1.0, 1e-6))["relative_error"]
    '0.087 %'
    """
    rows = {trust: row for trust, *row in costs}
    mass, error, relative = rows["shuffler: blanket divergence"]
    theorem = rows.get("shuffler: Theorem 3.1")
    return {
        "relative_error": percent(relative / 100),
        "theorem_price": f"It asks for a blanket mass {times(theorem[0] / mass)} that of the certified account"
        if theorem
        else "It says nothing at this budget for this number of users",
        "curator_ratio": as_large(error / rows["curator"][1]),
    }


def words_of_grants(grants: Curves, theorem: float) -> dict[str, str]:
    """What the accounts of one protocol say beside the lower bound; ``theorem`` is the epsilon of Theorem 3.1."""
    best, least = (float(grants.curves[key][0]) for key in ("blanket", "lower"))
    odds = math.exp(float(grants.parameters["epsilon0"]))
    silence = "`inf` means that the theorem is silent: its blanket is too thin for this crowd, or the budget too large."
    return {
        "local_odds": f"{odds:,.0f}" if 100 <= odds < 1e15 else f"{odds:.3g}" if odds > 1.01 else f"{odds:.7g}",
        "theorem_speaks": silence if math.isinf(theorem) else "Here Theorem 3.1 gives a budget.",
        "left_to_gain": f"{percent(best / least - 1)} above it" if least else f"{at_most(best)} above it",
    }


def words_of_counts(record: HistogramError, name: str) -> dict[str, str]:
    """How near the published counts are to the true ones, and what is known of a data set of this name."""
    off = float(np.abs(record.estimate - record.truth).max() / record.truth.max())
    low, high = record.interval
    inside = int(((low <= record.measured) & (record.measured <= high)).sum())
    digits = "The digits $0$ to $9$ are frequent because people were asked to write digits."
    return {
        "farthest": percent(off),
        "inside": f"{inside} of {counted(len(record.names), 'bucket')}",
        "about_digits": digits if name == "emnist-byclass" else "",
    }


def _name_buckets(ax: Axes, names: Sequence[str]) -> None:
    every = max(1, math.ceil(len(names) / 31))
    ax.set_xticks(range(0, len(names), every), names[::every], fontsize=9.5)
    ax.grid(visible=False, axis="x")
