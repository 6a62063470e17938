"""Claims about the privacy blanket that no registered function states: each a named function of the inputs in a row.

A check answers ``True`` or ``False``, or a number that the ledger compares.  The truth comes from
:mod:`flamelib.core.divergences` and :mod:`flamebook.claims.truth`; the library's bound, where a claim is
about one, stands on the other side.  Blankets and the amplification variable L are computed by tables and quadrature
(Simpson's rule on pieces on which the integrand is smooth, least densities by a brute search over inputs), with no
closed form of the library.
"""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flamebook.claims import truth as enumeration
from flamelib.accounting.shuffling import closed_form
from flamelib.answers import PROFILES, answer
from flamelib.core.divergences import kary_table, shuffled_delta, shuffled_law
from flamelib.core.profiles import KaryProfile
from flamelib.core.vocabulary import DomainError

ROUND_OFF = 1e-12


def evaluate(compute: str, inputs: dict[str, Any], field: str | None = None) -> float:
    """A registered answer as a float, or one field of it."""
    value = answer(compute, inputs)["value"]
    return float(value if field is None else value[field])


def slope(
    compute: str,
    along: str,
    start: float,
    stop: float,
    fixed: dict[str, Any],
    against: str = "log",
    field: str | None = None,
    factor: float = 1.0,
) -> float:
    """Least-squares slope of the logarithm of a registered answer, times ``factor``.

    ``against`` says what stands on the other axis: ``log`` of the parameter, the parameter itself
    (``plain``), or ``log log 1/delta`` (``tail``).  Nine geometric points, nine arithmetic ones for ``plain``.
    """
    scales: dict[str, Callable[[float], float]] = {
        "log": math.log,
        "plain": float,
        "tail": lambda delta: math.log(math.log(1 / delta)),
    }
    points = np.linspace(start, stop, 9) if against == "plain" else np.geomspace(start, stop, 9)
    values = [evaluate(compute, {**fixed, along: float(f"{x:.3g}")}, field) for x in points]
    axis = [scales[against](float(f"{x:.3g}")) for x in points]
    return factor * float(np.polyfit(axis, np.log(values), 1)[0])


def named_over_one(epsilon0: float, n_buckets: int, n_users: int, epsilon: float) -> float:
    """Divergence of all messages of randomized response, each with its sender, over that of the one that differs."""
    table = kary_table(n_buckets, epsilon0)
    others = [
        reduce(np.multiply.outer, [table[x] for x in rest]) for rest in product(range(n_buckets), repeat=n_users - 1)
    ]
    pairs = [(table[x], table[y]) for x, y in permutations(range(n_buckets), 2)]
    gained = math.exp(epsilon)
    whole = max(np.maximum(np.multiply.outer(a - gained * b, rest), 0).sum() for a, b in pairs for rest in others)
    return float(whole / max(np.maximum(a - gained * b, 0).sum() for a, b in pairs))


def shuffled_over_counted(epsilon0: float, n_buckets: int, n_users: int, epsilon: float) -> float:
    """Divergence of messages in uniformly random order over that of how often each occurs; the worst data set."""
    table = kary_table(n_buckets, epsilon0)

    def in_order(inputs: Sequence[int]) -> NDArray[np.float64]:
        law = reduce(np.multiply.outer, [table[x] for x in inputs])
        return np.asarray(np.mean([law.transpose(order) for order in permutations(range(n_users))], axis=0))

    data = list(product(range(n_buckets), repeat=n_users - 1))
    laws = {(x, *rest): in_order((x, *rest)) for x in range(n_buckets) for rest in data}
    worst = max(
        np.maximum(laws[x, *rest] - math.exp(epsilon) * laws[y, *rest], 0).sum()
        for x, y in permutations(range(n_buckets), 2) for rest in data
    )  # fmt: skip
    return float(worst / shuffled_delta(table, n_users, epsilon))


def ratio(over: str, under: str, inputs: dict[str, Any], randomizer: dict[str, Any] | None = None) -> float:
    """One registered answer divided by another; ``randomizer`` adds inputs that only the first one takes."""
    return evaluate(over, {**inputs, **(randomizer or {})}) / evaluate(under, inputs)


def largest_budget(
    bound: str, randomizer: str, n_users: int, epsilon: float, delta: float, n_buckets: int | None = None
) -> float:
    """Largest local budget for which a registered bound still gives (epsilon, delta); 0 if there is none."""

    def profile(epsilon0: float) -> Any:
        extra = {} if n_buckets is None else {"n_buckets": n_buckets}
        return PROFILES[randomizer](epsilon0=epsilon0, **extra)

    named = {"hoeffding": closed_form.hoeffding, "bennett": closed_form.bennett}
    return float(closed_form.largest_epsilon0(named[bound], profile, n_users, epsilon, delta))


def largest_budget_inverse_square(bound: str, n_users: int, epsilon: float) -> float:
    """The same at ``delta = n_users ** -2`` for the k-ary randomizer with ``k`` the whole cube root of ``n_users``."""
    n_buckets = max(k for k in range(2, n_users) if k**3 <= n_users) if n_users < 2**20 else round(n_users ** (1 / 3))
    return largest_budget(bound, "kary", n_users, epsilon, n_users**-2.0, n_buckets)


def generic_bennett_over_hoeffding(n_users: int, epsilon0: float, delta: float) -> float:
    """Generic Bennett epsilon over generic Hoeffding epsilon."""
    inputs = {"randomizer": "any", "epsilon0": epsilon0, "n_users": n_users, "delta": delta}
    return ratio("blanket:lem-bennett", "blanket:lem-hoeffding", inputs)


def hoeffding_over_erlingsson(n_users: int, epsilon0: float, delta: float) -> float:
    """Generic Hoeffding epsilon over the one of Erlingsson et al."""
    inputs = {"epsilon0": epsilon0, "n_users": n_users, "delta": delta}
    return ratio("blanket:lem-hoeffding", "blanket:erlingsson", inputs, {"randomizer": "any"})


def bennett_over_hoeffding_budget(n_users: int, n_buckets: int, epsilon: float, delta: float) -> float:
    """Largest k-ary budget that the Bennett bound allows over the one that the Hoeffding bound allows."""
    bennett, hoeffding = (
        largest_budget(bound, "kary", n_users, epsilon, delta, n_buckets) for bound in ("bennett", "hoeffding")
    )
    return bennett / hoeffding


def generic_fails(n_users: int, epsilon: float, delta: float) -> bool:
    """Whether the generic Bennett bound reaches (epsilon, delta) for no local budget above epsilon itself."""
    return largest_budget("bennett", "any", n_users, epsilon, delta) <= epsilon * (1 + 1e-9)


# --- Algorithm 1 and Theorem 3.1 ------------------------------------------------------------------


def coin_tree_is_kary(n_buckets: int, blanket_mass: float) -> bool:
    """Whether keeping or redrawing the input is k-ary response with budget ``log(1 - k + k / mass)``."""
    tree = enumeration.replacement_table(n_buckets, blanket_mass, range(n_buckets))
    response = kary_table(n_buckets, math.log(1 - n_buckets + n_buckets / blanket_mass))
    return bool(np.allclose(tree, response, rtol=ROUND_OFF, atol=0))


def local_budget(n_buckets: int, blanket_mass: float, replacements: Sequence[int]) -> float:
    """Largest log-likelihood ratio of "keep, or draw one of ``replacements``"; ``inf`` if a message tells its input."""
    table = enumeration.replacement_table(n_buckets, blanket_mass, replacements)
    columns = [sorted(column) for column in zip(*table, strict=True)]
    return max(math.log(c[-1] / c[0]) if c[0] else math.inf for c in columns if c[-1])


def local_budget_is_finite(n_buckets: int, blanket_mass: float, replacements: Sequence[int]) -> bool:
    """Whether that randomizer is locally private at all."""
    return math.isfinite(local_budget(n_buckets, blanket_mass, replacements))


def count_bias(n_buckets: int, blanket_mass: float, values: Sequence[int]) -> float:
    """Largest bias of a debiased count over all buckets, by every outcome."""
    table = enumeration.replacement_table(n_buckets, blanket_mass, range(n_buckets))
    law = shuffled_law(table, values)
    mean = [math.fsum(weight * counts[y] for counts, weight in law.items()) for y in range(n_buckets)]
    noise = len(values) * blanket_mass / n_buckets
    return max(abs((m - noise) / (1 - blanket_mass) - list(values).count(y)) for y, m in enumerate(mean))


def theorem_delta(n_users: int, epsilon: float, delta: float) -> float:
    """Exact delta at ``epsilon`` of binary response with the blanket mass that Theorem 3.1 asks for."""
    mass = closed_form.histogram_blanket_mass(n_users, 2, epsilon, delta)
    budget, most = math.log(2 / mass - 1), (n_users + 1) // 2
    return max(enumeration.binary_delta(n_users, budget, epsilon, ones) for ones in range(most))


def smallest_population(n_buckets: int, epsilon: float, delta: float) -> int:
    """Least number of users for which Theorem 3.1 has an admissible blanket mass."""
    low, high = 2, 2**40
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _admissible(middle, n_buckets, epsilon, delta) else (middle + 1, high)
    return low


def _admissible(n_users: int, n_buckets: int, epsilon: float, delta: float) -> bool:
    try:
        closed_form.histogram_blanket_mass(n_users, n_buckets, epsilon, delta)
    except DomainError:
        return False
    return True


def second_branch_is_silent(delta: float) -> bool:
    """Whether the first branch of Theorem 3.1 decides at this delta for every epsilon up to 1."""
    grid = [i / 100 for i in range(1, 101)]
    first = [14 * 2 * math.log(2 / delta) / ((10**9 - 1) * epsilon**2) for epsilon in grid]
    both = [closed_form.histogram_blanket_mass(10**9, 2, epsilon, delta) for epsilon in grid]
    return all(math.isclose(a, b, rel_tol=ROUND_OFF) for a, b in zip(first, both, strict=True))


def chernoff_constants_hold(points: int) -> bool:
    """Whether both Chernoff exponents reach ``c epsilon^2 / 14`` at ``c = 27 / epsilon``, on a grid of (0, 1]."""
    for epsilon in np.linspace(1 / points, 1, points):
        below = (1 - math.exp(-epsilon / 2)) ** 2 / 2
        above = (math.expm1(epsilon / 2) - epsilon / 27) ** 2 / 3
        if min(below, above) < epsilon**2 / 14:
            return False
    return True


# --- the reduction and what surrounds it -----------------------------------------------------------


def reduction_over_enumeration(n_buckets: int, n_users: int, epsilon0: float, epsilon: float) -> float:
    """The registered blanket divergence divided by the same expectation summed over every histogram."""
    inputs = {"n_buckets": n_buckets, "n_users": n_users, "epsilon0": epsilon0, "epsilon": epsilon}
    truth = enumeration.blanket_sum(kary_table(n_buckets, epsilon0), n_users, epsilon)
    return evaluate("blanket:lem-reduction", {"randomizer": "kary", **inputs}) / truth


def kary_truth(n_buckets: int, n_users: int, epsilon0: float, epsilon: float) -> float:
    """Exact delta of shuffled k-ary response: every data set, every pair, both directions."""
    return shuffled_delta(kary_table(n_buckets, epsilon0), n_users, epsilon)


def bound_over_truth(bound: str, n_buckets: int, n_users: int, epsilon0: float, epsilon: float) -> float:
    """A registered k-ary bound on delta divided by the exact delta; at least 1 for a valid bound."""
    inputs = {"randomizer": "kary", "n_buckets": n_buckets, "n_users": n_users, "epsilon0": epsilon0}
    return evaluate(bound, inputs | {"epsilon": epsilon}) / kary_truth(n_buckets, n_users, epsilon0, epsilon)


def binary_all_equal(n_users: int, epsilon0: float, epsilon: float) -> float:
    """Exact delta of shuffled binary response on the data set in which all the others hold 0."""
    return enumeration.binary_delta(n_users, epsilon0, epsilon, ones=0)


def kary_splits(n_buckets: int, epsilon0: float) -> bool:
    """Whether every row is mass times the blanket plus a non-negative rest, with mass in [exp(-epsilon0), 1]."""
    table = kary_table(n_buckets, epsilon0)
    shared = table.min(axis=0)
    mass = KaryProfile(epsilon0, n_buckets).mass
    rest = (table - shared) / (1 - mass)
    return bool(
        math.isclose(shared.sum(), mass, rel_tol=1e-12)
        and math.exp(-epsilon0) <= mass <= 1
        and rest.min() >= 0
        and np.allclose(rest.sum(axis=1), 1, rtol=1e-9)
    )


def overlap(kind: str, scale: float, width: int | None = None) -> float:
    """Integral (or sum) of the pointwise least density over all inputs, by brute force.

    ``scale`` is the local budget of ``laplace`` and ``discrete-laplace``, the standard deviation of
    ``gaussian`` and ``discrete-gaussian``.
    """
    if width is not None:
        reach = np.arange(-4000.0, 4001.0)
        rows = [_shape(kind, scale / width if "laplace" in kind else scale, reach - x) for x in range(width + 1)]
        return float(np.min([row / row.sum() for row in rows], axis=0).sum())
    half = 40 / scale if kind == "laplace" else 40 * scale
    points = np.linspace(0.5 - half, 0.5, 400_001)
    least = np.min([_shape(kind, scale, points - x) for x in np.linspace(0, 1, 11)], axis=0)
    norm = scale / 2 if kind == "laplace" else 1 / (scale * math.sqrt(2 * math.pi))
    return 2 * norm * _simpson(least, points)


def _shape(kind: str, scale: float, distance: NDArray[np.float64]) -> NDArray[np.float64]:
    exponent = -scale * np.abs(distance) if "laplace" in kind else -0.5 * (distance / scale) ** 2
    return np.asarray(np.exp(exponent), dtype=np.float64)


def _simpson(values: NDArray[np.float64], points: NDArray[np.float64]) -> float:
    step = (points[-1] - points[0]) / (len(points) - 1)
    return float(step / 3 * (values[0] + values[-1] + 4 * values[1:-1:2].sum() + 2 * values[2:-1:2].sum()))


def laplace_blanket_is_laplace(epsilon0: float) -> bool:
    """Whether the least Laplace density over inputs is mass times the density for the input one half."""
    points = np.linspace(-3, 4, 1401)
    least = np.min([_shape("laplace", epsilon0, points - x) for x in np.linspace(0, 1, 101)], axis=0)
    return bool(np.allclose(least, math.exp(-epsilon0 / 2) * _shape("laplace", epsilon0, points - 0.5), rtol=1e-9))


# --- the variable L --------------------------------------------------------------------------------


def gain(what: str, epsilon0: float, epsilon: float, n_buckets: int | None = None) -> float:
    """``mean``, ``second`` moment, ``largest`` value or ``range`` of L; Laplace noise where ``n_buckets`` is not given.

    k-ary: every message.  Laplace, inputs 0 and 1: Simpson's rule on the three smooth pieces.
    """
    law = _laplace_gain(epsilon0, epsilon) if n_buckets is None else _kary_gain(n_buckets, epsilon0, epsilon)
    weights, gains = law
    if what in ("mean", "second"):
        return float(weights @ (gains if what == "mean" else gains**2))
    return float(gains.max() if what == "largest" else gains.max() - gains.min())


def _kary_gain(n_buckets: int, epsilon0: float, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table = kary_table(n_buckets, epsilon0)
    blanket = table.min(axis=0) / table.min(axis=0).sum()
    return blanket, (table[0] - math.exp(epsilon) * table[1]) / blanket


def _laplace_gain(epsilon0: float, epsilon: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    far = 60 / epsilon0
    points = np.concatenate([np.linspace(a, b, 20_001) for a, b in ((-far, 0), (0, 1), (1, 1 + far))])
    density = [epsilon0 / 2 * _shape("laplace", epsilon0, points - x) for x in (0.0, 0.5, 1.0)]
    simpson = np.array([1, *[4, 2] * 9_999, 4, 1]) / 3
    steps = np.repeat([far, 1.0, far], 20_001) / 20_000
    return np.tile(simpson, 3) * steps * density[1], (density[0] - math.exp(epsilon) * density[2]) / density[1]


def gain_within(epsilon0: float, epsilon: float, n_buckets: int, tight: bool) -> bool:
    """Whether L of k-ary response stays in the generic interval, or in the ``tight`` one of the ratio's range."""
    _, gains = _kary_gain(n_buckets, epsilon0, epsilon)
    mass = KaryProfile(epsilon0, n_buckets).mass
    power, goal = math.exp(epsilon0), math.exp(epsilon)
    low, high = mass / power * (1 - goal * power**2), mass * power * (1 - goal / power**2)
    if tight:
        low, high = max(low, mass * (1 - goal * power)), min(high, mass * (power - goal))
    return bool(gains.min() >= low - 1e-9 and gains.max() <= high + 1e-9)
