r"""Claims about privacy that no registered function states: each a named function of the inputs in a row.

A check answers ``True`` or ``False``, or a number that the ledger compares.  The truth comes from
:mod:`flamelib.core.divergences` and :mod:`flamelib.companion.enumeration`; the library's bound, where a claim is
about one, stands on the other side.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flamelib.accounting.shuffling import closed_form
from flamelib.companion import enumeration
from flamelib.companion.evaluate import PROFILES, answer
from flamelib.core.divergences import kary_table, shuffled_delta, shuffled_law
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


def _worst_binary(n_users: int, epsilon0: float, epsilon: float) -> float:
    return max(enumeration.binary_delta(n_users, epsilon0, epsilon, ones) for ones in range((n_users + 1) // 2))


def theorem_delta(n_users: int, epsilon: float, delta: float) -> float:
    """Exact delta at ``epsilon`` of binary response with the blanket mass that Theorem 3.1 asks for."""
    mass = closed_form.histogram_blanket_mass(n_users, 2, epsilon, delta)
    return _worst_binary(n_users, math.log(2 / mass - 1), epsilon)


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
    inputs: dict[str, Any] = {
        "n_buckets": n_buckets,
        "n_users": n_users,
        "epsilon0": epsilon0,
        "epsilon": epsilon,
    }
    return evaluate(bound, {"randomizer": "kary", **inputs}) / kary_truth(**inputs)


def binary_all_equal(n_users: int, epsilon0: float, epsilon: float) -> float:
    """Exact delta of shuffled binary response on the data set in which all the others hold 0."""
    return enumeration.binary_delta(n_users, epsilon0, epsilon, ones=0)
