"""The audit of self check-in: the inner rate, a lemma turned round, small crowds, rare rounds left out, data sets."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom

from flamebook.attacks.checkin import BinaryCheckin, InnerRates
from flamebook.figures.curves import draw_curves
from flamebook.figures.style import Pen
from flamebook.records import Curves, Parameters, columns_csv, words
from flamelib.accounting.checkin.baselines import generic_route
from flamelib.accounting.checkin.moments import clients, renyi, single_divergence
from flamelib.accounting.checkin.shuffled import shuffled_rounds_lower
from flamelib.accounting.checkin.theorems import binary_renyi, exact_excess, exact_renyi, shuffled_renyi, summed_renyi
from flamelib.accounting.composition.renyi import least_renyi, pure_renyi, renyi_to_epsilon
from flamelib.core.arrays import Reals
from flamelib.core.profiles import KaryProfile

HUES = ("blue", "ochre", "purple", "vermillion", "green", "sky")
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


def compute_orders(n_users: int, checkin_rate: float, noise_std: float, at_least: int, orders: Sequence[int]) -> Curves:
    """One round by order: Equation 10 and the exact moments, over all counts of clients and from ``at_least`` on."""
    given = (n_users, checkin_rate, noise_std)
    curves = {
        "eq-10": np.array([summed_renyi(int(order), *given, "paper") for order in orders]),
        "all-counts": np.array([exact_renyi(int(order), *given) for order in orders]),
        "likely-counts": np.array([likely_renyi(int(order), *given, at_least) for order in orders]),
    }
    parameters: Parameters = {
        "n_users": n_users, "checkin_rate": checkin_rate, "noise_std": noise_std, "at_least": at_least
    }  # fmt: skip
    return Curves("order", "renyi", np.asarray(orders, dtype=float), curves, parameters)


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
    def refuted(self) -> bool:
        """Whether the window falls below the pair of data sets somewhere."""
        return bool((self.window < self.exact).any())

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
    exact = [brentq(lambda epsilon, at=delta: _pair_delta(*given, epsilon) - at, 0, 100) for delta in deltas]
    parameters: Parameters = {
        "n_users": n_users, "checkin_rate": checkin_rate, "noise_std": noise_std, "at_least": at_least
    }  # fmt: skip
    return Windowed(np.asarray(deltas, dtype=float), np.array(window), np.array(exact), parameters)


def _pair_delta(n_users: int, checkin_rate: float, noise_std: float, epsilon: float) -> float:
    """Exact delta of one round: all hold one unit vector, or one client its opposite; summed count by count."""
    k = np.arange(1.0, n_users + 1)
    threshold, mean = np.log1p(n_users / k * math.expm1(epsilon)), 2 / (np.sqrt(k) * noise_std)
    over = ndtr(mean / 2 - threshold / mean) - np.exp(threshold + log_ndtr(-mean / 2 - threshold / mean))
    return float(binom.pmf(k, n_users, checkin_rate) @ (k / n_users * np.maximum(over, 0)))


# --- the other clients -----------------------------------------------------------------------------------------------


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
        return float(np.max(worst / equal))

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


def draw(ax: Axes, record: Curves, pen: Pen) -> None:
    """Curves on doubly logarithmic axes."""
    draw_curves(ax, record, pen)


def draw_orders(ax: Axes, record: Curves, pen: Pen) -> None:
    """The same with the orders evenly spaced."""
    draw_curves(ax, record, pen)
    ax.set(xscale="linear", xticks=range(0, int(record.x.max()) + 1, 4))


def draw_inner_rates(ax: Axes, record: InnerRates, pen: Pen) -> None:
    """The curves, and for each attack a bar from what it proves to its estimate."""
    for name, values in record.curves.items():
        ax.plot(record.rates, values, **pen.line(name))
    seen, least = np.array([(a.estimate, a.least) for a in record.attacks]).T
    place = [a.clients.checkin_rate for a in record.attacks]
    ax.errorbar(place, seen, [seen - least, 0 * seen], fmt="o", color=pen.colour("green"), capsize=4,
                label="attack, run")  # fmt: skip
    ax.set(
        yscale="log",
        xlabel=words("checkin_rate"),
        ylabel=rf"Rényi divergence $\varepsilon({record.parameters['order']})$ of a round",
    )
