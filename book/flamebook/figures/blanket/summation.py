"""Figures of the private sum: error against the number of users under four kinds of trust."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Curves, Parameters, Slope, log_log_slope, words
from flamelib.accounting.shuffling.accuracy import summation_lower, summation_mse, summation_plan
from flamelib.accounting.shuffling.closed_form import cheu
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import DomainError
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols.blanket import SummationProtocol, private_sum, run


@dataclass(frozen=True, slots=True)
class SummationError:
    """Root mean squared error of a private sum against the number of users, one curve a trust model.

    Attributes
    ----------
    measured : Curves
        Over repeats on real values.
    exact : mapping from curve to array of shape (points,)
        The same by exact formulas, on the very same values.
    lower : array of shape (points,)
        No one-message protocol with this guarantee does better in its worst case.
    repeats : int
    """

    measured: Curves
    exact: Mapping[str, Reals]
    lower: Reals
    repeats: int

    def slope_error(self, key: str) -> float:
        """Standard error of a measured slope that follows from the number of repeats alone."""
        u = np.log(self.measured.x)
        return self._relative_error(key) / 2 / math.sqrt(float(((u - u.mean()) ** 2).sum()))

    def agrees(self, key: str) -> bool:
        """Whether the measured slope is within five standard errors of the slope of the exact formula."""
        expected = log_log_slope(self.measured.x, self.exact[key]).exponent
        return abs(self.slopes[key].exponent - expected) < 5 * self.slope_error(key)

    def plausible(self, key: str) -> bool:
        """Whether the measured mean squared errors, as a whole, are within five standard errors of the exact ones."""
        ratios = (self.measured.curves[key] / self.exact[key]) ** 2
        return abs(float(ratios.mean()) - 1) < 5 * self._relative_error(key) / math.sqrt(len(ratios))

    def _relative_error(self, key: str) -> float:
        """Of one measured mean squared error: a squared error has relative variance 2 if Gaussian, 5 if Laplace."""
        return math.sqrt((5 if key == "curator" else 2) / self.repeats)

    @property
    def parameters(self) -> Parameters:
        return self.measured.parameters

    @property
    def slopes(self) -> Mapping[str, Slope]:
        """Measured exponents of n, with standard errors."""
        return {key: log_log_slope(self.measured.x, values) for key, values in self.measured.curves.items()}

    def to_csv(self) -> str:
        """One row a number of users."""
        measured = self.measured
        exact = {f"{key}-exact": values for key, values in self.exact.items()}
        curves = {**measured.curves, **exact, "lower": self.lower}
        return Curves(measured.x_name, measured.y_name, measured.x, curves).to_csv()


def compute_summation(
    values: ArrayLike, n_users: Sequence[int], epsilon: float, delta: float, repeats: int, seed: int
) -> SummationError:
    """Root mean squared error over repeats for growing numbers of users with these values.

    Users are drawn from ``values`` without repetition where there are enough, else with repetition, once for
    each number of users; the protocols all see the same users.

    Parameters
    ----------
    values : array of numbers in [0, 1]
    n_users : sequence of int
        At least three, each so large that Theorem 3.1 speaks.
    epsilon, delta : float
        The guarantee; curator and local model get ``epsilon`` and no delta.
    repeats : int
        Executions of each protocol at each number of users.
    seed : int
    """
    generators = np.random.default_rng(seed).spawn(len(n_users))
    found = [
        _errors(np.asarray(values, float), int(n), epsilon, delta, repeats, rng)
        for n, rng in zip(n_users, generators, strict=True)
    ]
    curves, exact = ({key: np.array([one[part][key] for one in found]) for key in found[0][part]} for part in (0, 1))
    lower = np.array([math.sqrt(summation_lower(int(n), epsilon, delta)) for n in n_users])
    parameters: Parameters = {"epsilon": epsilon, "delta": delta, "repeats": repeats, "seed": seed}
    measured = Curves("n_users", "standard_deviation", np.asarray(n_users, float), curves, parameters)
    return SummationError(measured, exact, lower, repeats)


def draw_summation(ax: Axes, record: SummationError, pen: Pen) -> None:
    """Measured errors with their slopes, the lower bound under them."""
    measured, slopes = record.measured, record.slopes
    ax.set(xscale="log", yscale="log", xlabel=words(measured.x_name), ylabel="error of the sum (users)")
    for key, values in measured.curves.items():
        style = pen.line(key, label=f"{LOOKS[key].label}: slope {slopes[key]}")
        ax.errorbar(measured.x, values, yerr=2 * values / math.sqrt(2 * record.repeats), capsize=2, **style)
    ax.plot(measured.x, record.lower, **pen.line("lower", label="lower bound, one message (worst case)"))


def compute_summation_theory(n_users: Sequence[int], epsilon: float, delta: float) -> Curves:
    """Worst-case standard deviation of the private sum: its exact value, the theorem's bound and the lower bound."""
    plans = [summation_plan(int(n), epsilon, delta) for n in n_users]
    curves = {
        "theorem": np.sqrt([plan.mse_bound for plan in plans]),
        "theorem-protocol": np.sqrt([plan.mse for plan in plans]),
        "lower": np.sqrt([summation_lower(int(n), epsilon, delta) for n in n_users]),
    }
    parameters: Parameters = {"epsilon": epsilon, "delta": delta}
    return Curves("n_users", "standard_deviation", np.asarray(n_users, float), curves, parameters)


def draw_summation_theory(ax: Axes, record: Curves, pen: Pen) -> None:
    """Three lines of one slope."""
    ax.set(xscale="log", yscale="log", xlabel=words("n_users"), ylabel="worst-case error (users)")
    named = {
        "theorem": "bound of Theorem 4.1",
        "theorem-protocol": "exact, best whole k",
        "lower": "lower bound (Theorem 4.2)",
    }
    for key, label in named.items():
        slope = log_log_slope(record.x, record.curves[key])
        ax.plot(record.x, record.curves[key], **pen.line(key, marker="", label=f"{label}: slope {slope.exponent:.3f}"))


def lean_sum(n_users: int, epsilon: float, delta: float) -> SummationProtocol:
    """The summation protocol with the blanket mass that the certified blanket divergence asks for.

    With ``c`` blanket messages needed per letter, about ``(n / c) ** (1 / 3)`` levels balance rounding and noise.
    """
    trial = private_sum(n_users, epsilon, delta, n_levels=6, accounting="blanket")
    needed = trial.blanket_mass * n_users / trial.n_buckets
    n_levels = max(1, round((n_users / needed) ** (1 / 3)))
    return private_sum(n_users, epsilon, delta, n_levels=n_levels, accounting="blanket")


def one_bit_mass(n_users: int, epsilon: float, delta: float) -> float:
    """Least blanket mass, on a fine grid, with which Cheu's bound for one bit a user gives (epsilon, delta).

    >>> cheu(one_bit_mass(100_000, 1.0, 1e-6), 100_000, 1e-6) <= 1.0
    True
    """
    masses = np.geomspace(1e-9, 1 - 1e-9, 4001)
    found = next((float(mass) for mass in masses if cheu(float(mass), n_users, delta) <= epsilon), None)
    if found is None:
        raise DomainError(f"n_users must be larger for one private bit a user at epsilon {epsilon:g}, got {n_users}")
    return found


def _errors(
    values: Reals, n_users: int, epsilon: float, delta: float, repeats: int, rng: np.random.Generator
) -> tuple[dict[str, float], dict[str, float]]:
    """Measured and exact root mean squared error of each protocol on users drawn from the values."""
    users = rng.choice(values, n_users, replace=n_users > len(values))
    true_sum, local = math.fsum(users), LaplaceNoise(epsilon)
    protocols = {
        "cheu": SummationProtocol(n_users, 1, one_bit_mass(n_users, epsilon, delta)),
        "theorem-protocol": private_sum(n_users, epsilon, delta),
        "blanket-protocol": lean_sum(n_users, epsilon, delta),
    }
    estimates = {
        "local": np.array([local.sample(users, rng).sum() for _ in range(repeats)]),
        **{key: np.array([run(one, users, rng) for _ in range(repeats)]) for key, one in protocols.items()},
        # Replacing one value in [0, 1] moves the sum by at most 1: Laplace noise of scale 1/epsilon.
        "curator": true_sum + rng.laplace(scale=1 / epsilon, size=repeats),
    }
    measured = {key: math.sqrt(float(((found - true_sum) ** 2).mean())) for key, found in estimates.items()}
    known = users.tolist()
    exact = {key: math.sqrt(summation_mse(known, one.n_levels, one.blanket_mass)) for key, one in protocols.items()}
    laplace = math.sqrt(2) / epsilon
    return measured, exact | {"local": laplace * math.sqrt(n_users), "curator": laplace}
