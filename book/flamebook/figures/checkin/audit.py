"""The audit of self check-in: the inner rate, a lemma turned round, small crowds, rare rounds left out, data sets."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr
from scipy.stats import binom

from flamebook.attacks.checkin import ALIKE, BinaryCheckin, InnerRates
from flamebook.figures.curves import draw_positive
from flamebook.figures.style import Pen
from flamebook.records import Curves, Parameters, columns_csv, words
from flamebook.statements import Finding, against, at_least, compared, counted, either, every, percent, silent, times
from flamelib.accounting.checkin.baselines import generic_route
from flamelib.accounting.checkin.moments import clients, renyi, single_divergence
from flamelib.accounting.checkin.shuffled import shuffled_rounds_lower
from flamelib.accounting.checkin.theorems import binary_renyi, exact_excess, exact_renyi, shuffled_renyi, summed_renyi
from flamelib.accounting.composition.renyi import least_renyi, pure_renyi, renyi_to_epsilon
from flamelib.core.arrays import Reals
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import DomainError

HUES = ("blue", "ochre", "purple", "vermillion", "green", "sky")
MOST_NAMED = 4  # curves that a sentence names one after another
FAR = 2.0  # a ratio from which on a moment is told to have jumped
DASHES = ("-", (0, (6, 2)), (0, (7, 2, 1.5, 2)), (0, (1.2, 1.6)), (0, (7, 2, 1.5, 2, 1.5, 2)))

# --- Lemma 3 ---------------------------------------------------------------------------------------------------------


def compute_lemma(order: int, epsilon: float, deltas: Sequence[float]) -> Curves:
    """What Lemma 3 gives against delta, and the divergence of binary response, which is private at every delta."""
    curves = {
        "response": np.full(len(deltas), pure_renyi(order, epsilon)),
        "lemma-3": np.array([least_renyi(order, epsilon, float(delta)) for delta in deltas]),
    }
    return Curves("delta", "renyi", np.asarray(deltas, dtype=float), curves, {"order": order, "epsilon": epsilon})


@dataclass(frozen=True, slots=True)
class Leaks:
    """Mechanisms that leak with a probability: divergence against how much, and what Lemma 3 gives for all of them.

    Attributes
    ----------
    budgets : array of shape (points,)
        Local budget of what leaks.
    curves : mapping from the probability to an array of shape (points,)
    levels : mapping from the same to Lemma 3's value
    """

    budgets: Reals
    curves: Mapping[float, Reals]
    levels: Mapping[float, float]
    parameters: Parameters

    @property
    def finding(self) -> Finding:
        """Whether every leak has at last a larger divergence than Lemma 3 gives."""
        return every(*(compared(values[-1], ">", self.levels[delta]) for delta, values in self.curves.items()))

    def to_csv(self) -> str:
        """One row a budget."""
        leaks = {f"leaks with {delta:g}": values for delta, values in self.curves.items()}
        return columns_csv({"budget": self.budgets, **leaks})


def compute_leaks(order: int, deltas: Sequence[float], budgets: Sequence[float]) -> Leaks:
    r"""With probability delta a bit is shown through binary response, else nothing: (0, delta)-private at any budget.

    Examples
    --------
    >>> found = compute_leaks(8, [1e-5], [1.0, 30.0])
    >>> [round(float(x), 3) for x in found.curves[1e-5]], f"{found.levels[1e-5]:.1e}"
    ([0.001, 28.355], '1.6e-09')
    """
    curves = {delta: np.array([_leak(order, delta, float(budget)) for budget in budgets]) for delta in deltas}
    levels = {delta: least_renyi(order, 0.0, delta) for delta in deltas}
    return Leaks(np.asarray(budgets, dtype=float), curves, levels, {"order": order})


def _leak(order: int, delta: float, budget: float) -> float:
    shown = (order - 1) * pure_renyi(order, budget)
    return float(np.logaddexp(math.log1p(-delta), math.log(delta) + shown)) / (order - 1)


def draw_leaks(ax: Axes, record: Leaks, pen: Pen) -> None:
    """A curve a probability, and what the lemma gives as a thin line of the same colour and dash."""
    for hue, dash, (delta, values) in zip(HUES, cycle(DASHES), record.curves.items(), strict=False):
        style: dict[str, Any] = {"color": pen.colour(hue), "linestyle": dash}
        ax.plot(record.budgets, values, **style, label=f"leaks with chance {delta:g}")
        ax.axhline(record.levels[delta], **style, linewidth=1.1, label=f"Lemma 3 at {delta:g}")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="budget of what leaks",
        ylabel=rf"Rényi divergence $\varepsilon({record.parameters['order']})$",
    )


def compute_route(n_users: int, checkin_rate: float, epsilon0: float, rounds: int, choices: Sequence[float]) -> Curves:
    """Epsilon by the route through Lemma 3 against its failure probability of a round, and what is lost at least."""
    given = (epsilon0, n_users, checkin_rate, rounds, 1 / n_users)
    least = shuffled_rounds_lower(
        KaryProfile(epsilon0, 2), n_users, rounds, delta=1 / n_users, checkin_rate=checkin_rate
    )  # fmt: skip
    curves = {
        "generic": np.array([generic_route(*given, float(choice)) for choice in choices]),
        "lower": np.full(len(choices), least),
    }
    parameters: Parameters = {
        "n_users": n_users, "checkin_rate": checkin_rate, "epsilon0": epsilon0, "rounds": rounds
    }  # fmt: skip
    return Curves("slack_delta", "total_epsilon", np.asarray(choices, dtype=float), curves, parameters)


# --- small crowds ----------------------------------------------------------------------------------------------------

FEW = ((2, 2), (2, 8), (4, 3), (8, 2))  # clients and order
FEW_HEADER = ("clients", "order", "exact", "with k/n", "with gamma")


def few_rows(checkin_rate: float, epsilon0: float) -> list[tuple[float, ...]]:
    """For a table, as in ``FEW_HEADER``: the divergence of few clients, and Theorem 1 with either inner rate."""
    crowds = [(BinaryCheckin(n_users, checkin_rate, epsilon0), order) for n_users, order in FEW]
    return [
        (one.n_users, order, one.renyi(order), one.by_theorem(order, "exact"), one.by_theorem(order, "paper"))
        for one, order in crowds
    ]


def compute_small_crowds(n_users: int, epsilon0: float, order: int, rates: Sequence[float]) -> Curves:
    """Theorem 2 against the check-in rate with both inner rates, and the exact divergence of binary response."""
    given = (order, epsilon0, n_users)
    curves = {
        "thm-2": np.array([shuffled_renyi(*given, float(rate), "exact") for rate in rates]),
        "exact-response": np.array([binary_renyi(*given, float(rate), "exact") for rate in rates]),
        "thm-2-paper": np.array([shuffled_renyi(*given, float(rate), "paper") for rate in rates]),
    }
    parameters: Parameters = {"n_users": n_users, "epsilon0": epsilon0, "order": order}
    return Curves("checkin_rate", "renyi", np.asarray(rates, dtype=float), curves, parameters)


# --- rare rounds -----------------------------------------------------------------------------------------------------


def repaired(record: Curves) -> Finding:
    """Whether Theorem 2 with k/n is nowhere below the exact divergence of binary response."""
    return compared((1 + ALIKE) * record.curves["thm-2"], ">=", record.curves["exact-response"])


def small_crowds_alt(record: Curves) -> str:
    """The same curves for those who cannot see them."""
    below = below_words(record, "thm-2-paper", "exact-response")
    never = either(repaired(record), "never does", "does somewhere")
    return f"Theorem 2 as printed lies below the exact curve of binary response {below}; the repaired form {never}."


def compute_orders(n_users: int, checkin_rate: float, noise_std: float, at_least: int, orders: Sequence[int]) -> Curves:
    """One round by order: Equation 10 and the exact moments, over all counts of clients and from ``at_least`` on."""
    given = (n_users, checkin_rate, noise_std)
    curves = {
        "eq-10": np.array([_or_nan(summed_renyi, int(order), *given, "paper") for order in orders]),
        "all-counts": np.array([_or_nan(exact_renyi, int(order), *given) for order in orders]),
        "likely-counts": np.array([_or_nan(likely_renyi, int(order), *given, at_least) for order in orders]),
    }
    parameters: Parameters = {
        "n_users": n_users, "checkin_rate": checkin_rate, "noise_std": noise_std, "at_least": at_least
    }  # fmt: skip
    return Curves("order", "renyi", np.asarray(orders, dtype=float), curves, parameters)


def _or_nan(divergence: Callable[..., float], *arguments: object) -> float:
    """NaN where too many counts would matter for a sum."""
    try:
        return divergence(*arguments)
    except DomainError:
        return math.nan


def jump(record: Curves) -> str:
    """From which order on the sum over all counts is far above that over the likely ones, as a sentence."""
    orders, least = record.x.astype(int), record.parameters["at_least"]
    full, window = record.curves["all-counts"], record.curves["likely-counts"]
    part = f"the sum without rounds of fewer than {least} clients"
    if not (told := np.isfinite(full) & np.isfinite(window)).any():
        return "Nothing could be computed here: too many counts would matter."
    far = np.flatnonzero(told & (full > FAR * window))
    if not len(far):
        near = told & (window > 0)
        gap = percent(float(np.max(full[near] / window[near], initial=1.0)) - 1)
        return f"Up to order {orders[told][-1]} {part} differs from the exact one by {gap} at most."
    ratio = times(float(full[far[0]] / window[far[0]]))
    return f"At order {orders[far[0]]} the exact divergence is {ratio} that of {part}."


def likely_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float, at_least: int) -> float:
    """The exact sum without rounds of fewer than ``at_least`` clients, which is below the truth.

    Examples
    --------
    >>> given = (22, 600_000, 1e-3, 1.0)
    >>> f"{exact_renyi(*given):.2g}, {likely_renyi(*given, 400):.2g}"
    '1.8, 7.4e-08'
    """
    leap = single_divergence(noise_std)
    k, log_mass = clients(n_users, checkin_rate, leap, order, at_least)
    return float(renyi(np.array(float(order)), np.array(exact_excess(order, k, log_mass, n_users, leap))))


@dataclass(frozen=True, slots=True)
class Windowed:
    """One round at several failure probabilities: epsilon by a window of counts, and what a pair of data sets loses."""

    delta: Reals
    window: Reals
    exact: Reals
    parameters: Parameters

    @property
    def finding(self) -> Finding:
        """Whether the window falls below the pair of data sets somewhere: at the delta where it is the furthest."""
        at = int(np.argmin(self.window - self.exact))
        return compared(self.window[at], "<", self.exact[at])

    def words(self) -> str:
        """At how many failure probabilities the window falls below."""
        below = int((self.window < self.exact).sum())
        return f"at {below or 'none'} of the {counted(len(self.delta), 'value')} of $\\delta$"

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: delta, by the window, exact."""
        return list(zip(self.delta, self.window, self.exact, strict=True))


def compute_windowed(
    n_users: int, checkin_rate: float, noise_std: float, at_least: int, deltas: Sequence[float]
) -> Windowed:
    """The sum over rounds of ``at_least`` clients, converted at the best order to 600, and the exact epsilon of a pair.

    Examples
    --------
    >>> found = compute_windowed(200, 0.05, 0.5, 3, [1e-8])
    >>> round(float(found.window[0]), 2), round(float(found.exact[0]), 2)
    (8.38, 12.13)
    """
    given = (n_users, checkin_rate, noise_std)
    orders = [*range(2, 64), *range(64, 600, 16)]
    curve = {order: likely_renyi(order, *given, at_least) for order in orders}
    window = [renyi_to_epsilon(lambda order: curve[int(order)], delta, orders) for delta in deltas]
    exact = [_pair_epsilon(*given, delta) for delta in deltas]
    parameters: Parameters = {
        "n_users": n_users, "checkin_rate": checkin_rate, "noise_std": noise_std, "at_least": at_least
    }  # fmt: skip
    return Windowed(np.asarray(deltas, dtype=float), np.array(window), np.array(exact), parameters)


def _pair_epsilon(n_users: int, checkin_rate: float, noise_std: float, delta: float) -> float:
    """Where the profile of the pair meets ``delta``; 0 where it is below from the start."""

    def excess(epsilon: float) -> float:
        return _pair_delta(n_users, checkin_rate, noise_std, epsilon) - delta

    end = 100.0
    while excess(end) > 0:
        end *= 2
    return float(brentq(excess, 0, end)) if excess(0.0) > 0 else 0.0


def _pair_delta(n_users: int, checkin_rate: float, noise_std: float, epsilon: float) -> float:
    """Exact delta of one round: all hold one unit vector, or one client its opposite; summed count by count."""
    k = np.arange(1.0, n_users + 1)
    mean = 2 / (np.sqrt(k) * noise_std)
    threshold = np.maximum(epsilon + np.log(n_users / k) + np.log1p((k / n_users - 1) * math.exp(-epsilon)), 0.0)
    with np.errstate(over="ignore"):
        place = threshold / mean
        near, far = place - mean / 2, place + mean / 2
        # exp(threshold) is the ratio of the densities at these two places.
        over = ndtr(-near) - np.exp(-near * near / 2) * erfcx(far / math.sqrt(2)) / 2
    return float(binom.pmf(k, n_users, checkin_rate) @ (k / n_users * np.maximum(over, 0)))


# --- the other clients -----------------------------------------------------------------------------------------------


DATA_SETS_HEADER = (
    *("users", "rate", "delta at epsilon 0: others equal", "others mixed"),
    "largest ratio of the worst to equal ones",
)


@dataclass(frozen=True, slots=True)
class DataSets:
    """Delta against epsilon of one shuffled round for every number of others that hold 1."""

    epsilon: Reals
    curves: Mapping[int, Reals]
    parameters: Parameters

    @property
    def gain(self) -> float:
        """Largest ratio of the worst data set to the two in which all others hold one value."""
        equal = np.maximum(self.curves[0], self.curves[max(self.curves)])
        worst = np.max(list(self.curves.values()), axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.nanmax(np.where(equal > 0, worst / equal, np.nan), initial=1.0))

    @property
    def finding(self) -> Finding:
        """Whether some data set is worse than equal others; silent where numbers of this length do not tell."""
        if abs(self.gain - 1) <= ALIKE:
            return silent("the data sets are equally far apart, to all digits")
        return compared(self.gain, ">", 1)

    @property
    def mixed(self) -> tuple[float, float]:
        """Delta at epsilon 0 of the worst data set, and of others that are all equal."""
        return max(float(values[0]) for values in self.curves.values()), float(self.curves[0][0])

    def row(self) -> tuple[object, ...]:
        """For a table, as in ``DATA_SETS_HEADER``."""
        mixed, equal = self.mixed
        return (self.parameters["n_users"], self.parameters["checkin_rate"], equal, mixed, self.gain)

    def words(self) -> str:
        """How far apart the two data sets are with mixed others, and with equal ones."""
        mixed, equal = self.mixed
        if mixed <= equal * (1 + ALIKE):
            return "here by less than the digits of $\\delta$ show"
        return f"$\\delta$ at $\\varepsilon=0$ is {against(mixed, equal)} if they hold the same"

    def highest(self) -> str:
        """How many of the others hold 1 where the curve is the highest, as epsilon grows."""
        values = np.array(list(self.curves.values()))
        if (values.min(axis=0) >= (1 - ALIKE) * values.max(axis=0)).all():
            return "no single one, for all agree to the last digit"
        best = [int(np.flatnonzero(column >= (1 - ALIKE) * column.max())[0]) for column in values.T]
        shown = [str(list(self.curves)[at]) for at, _ in groupby(best)]
        first = f"that of {shown[0]} others who hold 1"
        if len(shown) > MOST_NAMED:
            return f"first {first}, changes {len(shown) - 1} times, and is that of {shown[-1]} at last"
        return f"always {first}" if len(shown) == 1 else f"first {first}, then that of {', then of '.join(shown[1:])}"

    def to_csv(self) -> str:
        """One row an epsilon."""
        return columns_csv({"epsilon": self.epsilon} | {f"{k} others hold 1": one for k, one in self.curves.items()})


def compute_data_sets(clients: BinaryCheckin, points: int) -> DataSets:
    """Exact profiles by listing, from epsilon 0 to nine tenths of the local budget.

    Examples
    --------
    Three users, all there, epsilon 0: the other two hold the same value, or not.

    >>> found = compute_data_sets(BinaryCheckin(3, 1.0, 1.0), 2)
    >>> [round(float(values[0]), 4) for values in found.curves.values()]
    [0.247, 0.2804, 0.247]
    """
    epsilon = np.linspace(0, 0.9 * clients.epsilon0, points)
    others = clients.n_users - 1
    curves = {
        ones: np.array([clients.profile([1] * ones + [0] * (others - ones), float(e)) for e in epsilon])
        for ones in range(others + 1)
    }
    given: Parameters = {"n_users": clients.n_users, "checkin_rate": clients.checkin_rate, "epsilon0": clients.epsilon0}
    return DataSets(epsilon, curves, given)


def draw_data_sets(ax: Axes, record: DataSets, pen: Pen) -> None:
    """A curve for each number of others that hold 1."""
    for hue, dash, (ones, values) in zip(cycle(HUES), cycle(DASHES), record.curves.items(), strict=False):
        ax.plot(record.epsilon, values, color=pen.colour(hue), linestyle=dash, label=f"{ones} of the others hold 1")
    ax.set(yscale="log", xlabel=words("epsilon"), ylabel=words("delta"))


def draw_orders(ax: Axes, record: Curves, pen: Pen) -> None:
    """Curves on a logarithmic axis, with the orders evenly spaced."""
    draw_positive(ax, record, pen)
    ax.set(xscale="linear", xticks=range(0, int(record.x.max()) + 1, 4))


def draw_inner_rates(ax: Axes, record: InnerRates, pen: Pen) -> None:
    """The curves, and for each attack a bar from what it proves to its estimate."""
    for name, values in record.curves.items():
        ax.plot(record.rates, np.where(values > 0, values, np.nan), **pen.line(name))
    told = [a for a in record.attacks if 0 < a.estimate < math.inf]
    seen, least = np.array([(a.estimate, a.least) for a in told]).reshape(-1, 2).T
    place = [a.clients.checkin_rate for a in told]
    ax.errorbar(place, seen, [seen - least, 0 * seen], fmt="o", color=pen.colour("green"), capsize=4,
                label="attack, run")  # fmt: skip
    ax.set(
        yscale="log",
        xlabel=words("checkin_rate"),
        ylabel=rf"Rényi divergence $\varepsilon({record.parameters['order']})$ of a round",
    )


# --- words -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A statement of the document that something is a bound, what it gives in one case, and what occurs there."""

    statement: str
    where: str
    claimed: float
    found: float
    instead: str

    def row(self) -> tuple[object, ...]:
        """For a table: statement, what this case says of it, the numbers, what is true instead.

        >>> Case("a sum is a bound", "two", 0.1, 0.2, "").row()[1:3], Case("it is one", "two", 0.2, 0.1, "").row()[1]
        (('refuted', 'two: 0.2 against 0.1'), 'not by this case')
        """
        verdict = either(compared(self.claimed, "<", self.found * (1 - ALIKE)), "refuted", "not by this case", "silent")
        return self.statement, verdict, f"{self.where}: {against(self.found, self.claimed)}", self.instead


def cases(
    two: BinaryCheckin, order: int, crowd: Curves, lemma: Curves, orders: Curves, data_sets: DataSets
) -> list[Case]:
    """The statements that this audit speaks of, each in its smallest case."""
    mixed, equal = data_sets.mixed
    return [
        Case("Theorem 1 with the rate of its proof", "two clients", two.by_theorem(order, "paper"), two.renyi(order),
             "rate k/n, an equality"),
        Case("Theorem 2 as printed, any size", "ten clients", crowd.curves["thm-2-paper"][0],
             crowd.curves["exact-response"][0], "a split in three with k/n"),
        Case("Lemma 3 bounds a divergence", "binary response", lemma.curves["lemma-3"][0],
             lemma.curves["response"][0], "it is the least possible, not the largest"),
        Case("rare rounds may be left out", "order 40", orders.curves["likely-counts"][-1],
             orders.curves["all-counts"][-1], "pay for them in delta"),
        Case("all others equal is the worst case", "three users", equal, mixed, "the worst data set at each epsilon"),
    ]  # fmt: skip


def below_words(record: Curves, one: str, other: str) -> str:
    """At how many check-in rates of a figure a curve lies below another, and up to which."""
    below = np.flatnonzero(record.curves[one] < record.curves[other] * (1 - ALIKE))
    points = f"of the {counted(len(record.x), 'point')} of the figure"
    return f"at {len(below)} {points}, up to a rate of {record.x[below[-1]]:.2g}" if len(below) else f"at none {points}"


def inner_words(rows: Sequence[Sequence[float]]) -> str:
    """In how many cases (clients, order, exact, with k/n, with gamma) the last value is below the exact one."""
    below = sum(row[4] < row[2] * (1 - ALIKE) for row in rows)
    return f"{'all' if below == len(rows) else below or 'none'} of these {counted(len(rows), 'case')}"


def route_words(record: Curves) -> str:
    """What the route through Lemma 3 gives along its choice, beside what is lost at least."""
    generic, least = record.curves["generic"], float(record.curves["lower"][0])
    ends = f"from {generic[0]:.3g} at the smallest choice to {generic[-1]:.3g} at the largest"
    if not least > 0:
        return f"{ends}; no lower bound could be had to set beside it"
    below = int((generic < least).sum())
    share = "all along" if below == len(generic) else f"at {below or 'none'} of {counted(len(generic), 'point')}"
    return f"{ends}, {share} below the {at_least(least)} that binary response *certainly* loses"
