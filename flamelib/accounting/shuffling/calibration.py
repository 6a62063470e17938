"""From a guarantee to the noise it needs: least blanket mass, and the rounding that goes with it."""

import functools
import math
from collections.abc import Callable

from flamelib.accounting.shuffling.accuracy import SummationPlan, summation_mse_bound, summation_worst_mse
from flamelib.accounting.shuffling.closed_form import kary_epsilon0
from flamelib.accounting.shuffling.numerical import blanket_divergence
from flamelib.core.profiles import KaryProfile
from flamelib.core.search import smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

LOUD, MUTE = 0.2, 0.8  # masses between which more levels are tried, as the mass is not in proportion to them
MOST_LEVELS = 2**40  # far beyond any number of levels that is the best


def least_blanket_mass(n_users: int, n_buckets: int, epsilon: float, delta: float) -> float:
    r"""Least mass found at which the certified blanket divergence keeps (epsilon, delta), read both ways.

    At this mass the divergence at ``epsilon`` is at most ``delta``, and the epsilon certified at ``delta`` is at
    most ``epsilon``; so the answer errs towards more noise.  The mass :math:`k / (e^\varepsilon + k - 1)`, whose
    local budget is ``epsilon``, always does and is never exceeded.  Epsilon is above 0, delta below 1.
    Adjacency: replace-one.
    """
    given = check(n_users=n_users, n_buckets=n_buckets, epsilon=epsilon, delta=delta)
    if given["epsilon"] == 0 or given["delta"] == 1:
        raise DomainError(f"epsilon must be above 0 and delta below 1 for a protocol, got {epsilon} and {delta}")

    def profile(mass: float) -> KaryProfile:
        return KaryProfile(kary_epsilon0(n_buckets, mass), n_buckets)

    def log_delta(mass: float) -> float:
        found = float(blanket_divergence(profile(mass), n_users, epsilon=epsilon)) if mass else 1.0
        return math.log(found) if found > 0 else -math.inf

    local = n_buckets / (math.expm1(min(epsilon, 700.0)) + n_buckets)
    mass, step = smallest_epsilon(log_delta, delta, at_most=local), 1e-10
    while mass < local and blanket_divergence(profile(mass), n_users, delta=delta) > epsilon:
        mass, step = min(local, mass * (1 + step)), 4 * step  # the search for epsilon ends a rounding above it
    return mass


@states("blanket", "own-sum", item="Theorem 4.1's protocol by the certified divergence, this project", gives="value",
        rests_on="proven", adjacency="replace-one")  # fmt: skip
def certified_summation_plan(n_users: int, epsilon: float, delta: float) -> SummationPlan:
    r"""A number of levels, the least blanket mass found that keeps (epsilon, delta), and the worst-case error (exact).

    As ``blanket:thm-4.1``, for every epsilon above 0 and delta below 1, with the certified blanket divergence of
    ``blanket:lem-reduction`` in the place of :math:`14\log(2/\delta)/\varepsilon^2` and :math:`27/\varepsilon`: the
    mass errs towards more noise.  The levels are those of the least error, were the mass in proportion to the
    alphabet; it nearly is, so the mass is found for one number of levels, the error scanned over all, and both repeated
    until they agree.  Where the mass is between 0.2 and 0.8 it grows less than the alphabet, and more levels are tried
    as long as they help.

    Source: this project, on Balle, Bell, Gascon, Nissim 2019, Theorem 4.1.

    Examples
    --------
    >>> found = certified_summation_plan(100, 1.0, 1e-6)
    >>> found.n_levels, round(found.blanket_mass, 4), round(found.mse, 2)
    (2, 0.4109, 37.74)
    """
    levels, previous, mass = 1, 0, 1.0
    for _ in range(4):
        previous, mass = levels, least_blanket_mass(n_users, levels + 1, epsilon, delta)
        share = mass / (levels + 1)
        worst_mse = functools.partial(_worst_mse, n_users, share)
        levels = _least(worst_mse, min(max(math.ceil(1 / share) - 2, 1), MOST_LEVELS))
        if levels == previous:
            break
    best = _plan(n_users, previous, mass)
    while LOUD < best.blanket_mass < MUTE:
        more = best.n_levels + 1
        other = _plan(n_users, more, least_blanket_mass(n_users, more + 1, epsilon, delta))
        if other.mse >= best.mse:
            break
        best = other
    return best


def _plan(n_users: int, n_levels: int, mass: float) -> SummationPlan:
    worst, bound = (error(n_users, n_levels, mass) for error in (summation_worst_mse, summation_mse_bound))
    return SummationPlan(n_levels, mass, worst, bound)


def _worst_mse(n_users: int, share: float, levels: int) -> float:
    return summation_worst_mse(n_users, levels, (levels + 1) * share)


def _least(error: Callable[[int], float], most: int) -> int:
    """Where an error that falls and then rises is least on 1..most: small numbers one by one, the others by thirds."""
    low, high = 1, most
    while high - low > 8:
        third = (high - low) // 3
        low, high = (low, high - third) if error(low + third) <= error(high - third) else (low + third, high)
    candidates: list[int] = sorted({*range(1, min(most, 64) + 1), *range(low, high + 1)})
    return min(candidates, key=error)
