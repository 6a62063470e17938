"""Figures of the private sum: error against the number of users under four kinds of trust."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from flamebook.figures.style import Pen
from flamebook.records import LOOKS, Curves, Parameters, Slope, log_log_slope, whole_grid, words
from flamebook.statements import Finding, compared, either, every, silent
from flamelib.accounting.shuffling.accuracy import SummationPlan, summation_lower, summation_mse, summation_plan
from flamelib.accounting.shuffling.calibration import certified_summation_plan
from flamelib.accounting.shuffling.closed_form import blankets_needed, cheu
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols.blanket import SummationProtocol, private_sum, run

# The exponent of n for large crowds, as text.
ASYMPTOTIC = {
    "curator": "0",
    "blanket-protocol": "1/6",
    "theorem-protocol": "1/6",
    "cheu": "1/2",
    "local": "1/2",
}
SILENT = "silent"
MOST_LEVELS = 2**20  # rounding to so many costs nothing that shows
FEW_MESSAGES = 9.0  # expected messages of pure noise below which an error is not near normal
FEW_USERS = 30  # the same for rounding, or noise of each user
FEW_EXECUTIONS = 100  # at all sizes together, from which a mean squared error tells anything


@dataclass(frozen=True, slots=True)
class SummationError:
    """Root mean squared error of a private sum against the number of users, one curve a trust model.

    Attributes
    ----------
    measured : Curves
        Over repeats on real values; NaN where a protocol has no parameters for so few users, or at this budget.
    exact : mapping from curve to array of shape (points,)
        The same by exact formulas, on the very same values.
    normal : mapping from curve to array of shape (points,)
        Where the error has nearly a normal law (the curator's has a Laplace law).
    lower : array of shape (points,)
        No one-message protocol with this guarantee does better in its worst case.
    repeats : int
    """

    measured: Curves
    exact: Mapping[str, Reals]
    normal: Mapping[str, NDArray[np.bool_]]
    lower: Reals
    repeats: int

    def agrees(self, key: str) -> Finding:
        """Whether the measured slope is within five standard errors of the slope of the exact formula."""
        measured, expected, told = self.slopes.get(key), self.exact_slopes.get(key), self.normal[key]
        if measured is None or expected is None:
            return silent("there are too few crowds for a slope")
        if self.repeats < 10 or not told.all():
            return silent("there are too few executions or users to tell")
        u = np.log(self.measured.x)
        error = self._relative_error(key) / 2 / math.sqrt(float(((u - u.mean()) ** 2).sum()))
        return compared(abs(measured.exponent - expected.exponent), "<", 5 * error)

    def plausible(self, key: str) -> Finding:
        """Whether the measured mean squared errors, as a whole, are within five standard errors of the exact ones."""
        told = self.normal[key] & np.isfinite(self.measured.curves[key])
        if not np.isfinite(self.measured.curves[key]).any():
            return silent("the protocol has no parameters here")
        if told.sum() * self.repeats < FEW_EXECUTIONS:
            return silent("there are too few executions or users to tell")
        ratios = (self.measured.curves[key][told] / self.exact[key][told]) ** 2
        return compared(abs(float(ratios.mean()) - 1), "<", 5 * self._relative_error(key) / math.sqrt(len(ratios)))

    @property
    def all_plausible(self) -> Finding:
        """Whether all errors of which something can be told are plausible."""
        return _told(map(self.plausible, ASYMPTOTIC))

    @property
    def all_agree(self) -> Finding:
        """Whether all slopes of which something can be told agree."""
        return _told(map(self.agrees, ASYMPTOTIC))

    @property
    def slopes_of_old_answers(self) -> Finding:
        """Whether the exact error does not grow with a curator and grows like a square root without anybody."""
        slopes = self.exact_slopes
        if not {"curator", "local"} <= set(slopes):
            return silent("there are too few crowds for a slope")
        flat = compared(slopes["curator"].exponent, "<", 0.01)
        return every(flat, compared(abs(slopes["local"].exponent - 0.5), "<", 1e-9))

    def _relative_error(self, key: str) -> float:
        """Of one measured mean squared error: a squared error has relative variance 2 if Gaussian, 5 if Laplace."""
        return math.sqrt((5 if key == "curator" else 2) / self.repeats)

    @property
    def parameters(self) -> Parameters:
        return self.measured.parameters

    @property
    def slopes(self) -> Mapping[str, Slope]:
        """Measured exponents of n, with standard errors, of the curves that have three points or more."""
        return slopes_of(self.measured)

    @property
    def exact_slopes(self) -> Mapping[str, Slope]:
        """The same of the exact formulas."""
        return slopes_of(replace(self.measured, curves=self.exact))

    def rows(self) -> list[tuple[object, ...]]:
        """For a table: model, exponent for large crowds, that of the exact formula, and the measured one."""
        none = "too few crowds"
        exact = {key: f"{slope.exponent:.3f}" for key, slope in self.exact_slopes.items()}
        return [
            (LOOKS[key].label, theory, exact.get(key, none), str(self.slopes.get(key, none)))
            for key, theory in ASYMPTOTIC.items()
        ]

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
        In growing order; where a theorem is silent its protocol has no error (NaN).
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
    curves, exact, normal = (
        {key: np.array([one[part][key] for one in found]) for key in found[0][part]} for part in (0, 1, 2)
    )
    lower = np.array([math.sqrt(summation_lower(int(n), epsilon, delta)) for n in n_users])
    parameters: Parameters = {"epsilon": epsilon, "delta": delta, "repeats": repeats, "seed": seed}
    measured = Curves("n_users", "standard_deviation", np.asarray(n_users, float), curves, parameters)
    return SummationError(measured, exact, normal, lower, repeats)


def draw_summation(ax: Axes, record: SummationError, pen: Pen) -> None:
    """Measured errors with their slopes, the lower bound under them."""
    measured, slopes = record.measured, record.slopes
    ax.set(xscale="log", yscale="log", xlabel=words(measured.x_name), ylabel="error of the sum (users)")
    for key, values in measured.curves.items():
        slope = f"slope {slopes[key]}" if key in slopes else "no slope" if np.isfinite(values).any() else SILENT
        style = pen.line(key, label=f"{LOOKS[key].label}: {slope}")
        ax.errorbar(measured.x, values, yerr=2 * values / math.sqrt(2 * record.repeats), capsize=2, **style)
    ax.plot(measured.x, record.lower, **pen.line("lower", label="lower bound, one message (worst case)"))


def asymptotic_crowds(epsilon: float, delta: float, points: int = 13) -> NDArray[np.int64]:
    """Crowds over six decades, or as many as there are, in which Theorem 4.1 shows its asymptote.

    >>> asymptotic_crowds(1.0, 1e-6)[[0, -1]].tolist()
    [2031212, 2031212083393]
    """
    start = min(blankets_needed(2, epsilon, delta) * 5e3, LARGEST_WHOLE / 100)
    return whole_grid(start, min(start * 1e6, LARGEST_WHOLE), points)


def compute_summation_theory(n_users: Sequence[int], epsilon: float, delta: float) -> Curves:
    """Worst-case standard deviation of the private sum: bound and exact value of the theorem's plan, the exact value of
    the plan by the certified blanket divergence, and the lower bound.
    """
    plans = [summation_plan(int(n), epsilon, delta) for n in n_users]
    curves = {
        "theorem": np.sqrt([plan.mse_bound for plan in plans]),
        "theorem-protocol": np.sqrt([plan.mse for plan in plans]),
        "blanket-protocol": np.sqrt([certified_summation_plan(int(n), epsilon, delta).mse for n in n_users]),
        "lower": np.sqrt([summation_lower(int(n), epsilon, delta) for n in n_users]),
    }
    parameters: Parameters = {"epsilon": epsilon, "delta": delta}
    return Curves("n_users", "standard_deviation", np.asarray(n_users, float), curves, parameters)


def draw_summation_theory(ax: Axes, record: Curves, pen: Pen) -> None:
    """Four lines of one slope."""
    ax.set(xscale="log", yscale="log", xlabel=words("n_users"), ylabel="worst-case error (users)")
    named = {
        "theorem": "bound of Theorem 4.1",
        "theorem-protocol": "exact, its protocol",
        "blanket-protocol": "exact, certified account",
        "lower": "lower bound (Theorem 4.2)",
    }
    slopes = slopes_of(record)
    for key, label in named.items():
        slope = f": slope {slopes[key].exponent:.3f}" if key in slopes else ""
        ax.plot(record.x, record.curves[key], **pen.line(key, marker="", label=label + slope))


def lean_sum(n_users: int, epsilon: float, delta: float) -> SummationProtocol:
    """The summation protocol with the blanket mass that the certified blanket divergence asks for.

    With ``c`` blanket messages needed per letter, about ``(n / c) ** (1 / 3)`` levels balance rounding and noise.
    """
    trial = private_sum(n_users, epsilon, delta, n_levels=6, accounting="blanket")
    needed = trial.blanket_mass * n_users / trial.n_buckets
    n_levels = min(max(1, round((n_users / needed) ** (1 / 3))), MOST_LEVELS)
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


def plan_rows(n_users: Sequence[int], epsilon: float, delta: float) -> list[tuple[object, ...]]:
    """For a table: users, levels, blanket mass, exact worst-case error, bound of Theorem 4.1, lower bound.

    >>> [row[1] for row in plan_rows([20, 100_000], 1.0, 1e-6)]
    ['silent', 9]
    """
    return [
        (
            n,
            *((plan.n_levels, plan.blanket_mass, plan.mse**0.5, plan.mse_bound**0.5) if plan else (SILENT,) * 4),
            summation_lower(n, epsilon, delta) ** 0.5,
        )
        for n, plan in ((n, _plan(n, epsilon, delta)) for n in n_users)
    ]


def words_of_summation(record: SummationError) -> dict[str, str]:
    """How heavy the blanket of the theorem is, and whether the measured exponents follow the exact ones."""
    parameters, crowds = record.parameters, record.measured.x
    plans = {n: _plan(int(n), float(parameters["epsilon"]), float(parameters["delta"])) for n in crowds}
    masses = [f"{plan.blanket_mass:.2g} among {n:,.0f} users" for n, plan in plans.items() if plan]
    ends = dict.fromkeys((*masses[:1], *masses[-1:]))
    return {
        "mass_story": f"Moreover, the mass of Theorem 3.1 falls as the crowd grows: it is {' and '.join(ends)}, "
        "so that the factor $1/(1-\\gamma)^2$ falls while $n^{1/6}$ rises."
        if ends
        else "Theorem 3.1 says nothing for these crowds at this budget.",
        "measured_follows": either(
            record.all_agree,
            "and the measurement follows them",
            "though the measurement does not follow them everywhere",
            "but more executions or crowds would be needed to tell whether the measurement follows them",
        ),
    }


def _plan(n_users: int, epsilon: float, delta: float) -> SummationPlan | None:
    """The plan of Theorem 4.1, or none where it is silent."""
    try:
        return summation_plan(n_users, epsilon, delta)
    except DomainError:
        return None


def _told(findings: Iterable[Finding]) -> Finding:
    """All findings as one, without those that say nothing unless all do."""
    known = list(findings)
    return every(*([one for one in known if one.holds is not None] or known))


def slopes_of(record: Curves) -> dict[str, Slope]:
    """Exponents of the curves that have three points or more, all others left out."""
    told = {key: np.isfinite(values) & (values > 0) for key, values in record.curves.items()}
    enough = {key: where for key, where in told.items() if where.sum() > 2}
    return {key: log_log_slope(record.x[where], record.curves[key][where]) for key, where in enough.items()}


def _protocols(n_users: int, epsilon: float, delta: float) -> dict[str, SummationProtocol | None]:
    """Each one-message protocol with its parameters at this guarantee, where its theorem has any."""
    plan = _plan(n_users, epsilon, delta)
    try:
        one_bit = SummationProtocol(n_users, 1, one_bit_mass(n_users, epsilon, delta))
    except DomainError:
        one_bit = None
    return {
        "cheu": one_bit,
        "theorem-protocol": SummationProtocol(n_users, plan.n_levels, plan.blanket_mass) if plan else None,
        "blanket-protocol": lean_sum(n_users, epsilon, delta),
    }


def _errors(
    values: Reals, n_users: int, epsilon: float, delta: float, repeats: int, rng: np.random.Generator
) -> tuple[dict[str, float], dict[str, float], dict[str, bool]]:
    """Measured and exact root mean squared error of each protocol on users drawn from the values; whose are normal."""
    users = rng.choice(values, n_users, replace=n_users > len(values))
    true_sum, local = math.fsum(users), LaplaceNoise(epsilon)
    protocols = _protocols(n_users, epsilon, delta)
    estimates = {
        "local": np.array([local.sample(users, rng).sum() for _ in range(repeats)]),
        **{
            key: np.array([run(one, users, rng) if one else math.nan for _ in range(repeats)])
            for key, one in protocols.items()
        },
        # Replacing one value in [0, 1] moves the sum by at most 1: Laplace noise of scale 1/epsilon.
        "curator": true_sum + rng.laplace(scale=1 / epsilon, size=repeats),
    }
    measured = {key: math.sqrt(float(((found - true_sum) ** 2).mean())) for key, found in estimates.items()}
    known, laplace = users.tolist(), math.sqrt(2) / epsilon
    exact = {
        key: math.sqrt(summation_mse(known, one.n_levels, one.blanket_mass)) if one else math.nan
        for key, one in protocols.items()
    }
    many = n_users >= FEW_USERS
    noise = {key: n_users * one.blanket_mass if one else 0.0 for key, one in protocols.items()}
    normal = {key: many and count >= FEW_MESSAGES for key, count in noise.items()} | {"local": many, "curator": True}
    return measured, exact | {"local": laplace * math.sqrt(n_users), "curator": laplace}, normal
