"""From a guarantee to the noise it needs: least blanket mass, and the rounding that goes with it."""

import functools
import math
from collections.abc import Callable

from flamelib.accounting.shuffling.accuracy import summation_worst_mse
from flamelib.accounting.shuffling.closed_form import kary_epsilon0
from flamelib.accounting.shuffling.numerical import blanket_divergence
from flamelib.core.profiles import KaryProfile
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import DomainError, check

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


def best_levels(n_users: int, epsilon: float, delta: float) -> int:
    """Levels of least worst-case error of the private sum, were the mass in proportion to the alphabet.

    It nearly is, so the mass is found for one number of levels, the error scanned over all, and both repeated until
    they agree.  For a few hundred users the answer can be one off the best, at a cost of some thousandths.
    """
    levels, previous = 1, 0
    for _ in range(4):
        if levels == previous:
            break
        share, previous = least_blanket_mass(n_users, levels + 1, epsilon, delta) / (levels + 1), levels
        worst_mse = functools.partial(_worst_mse, n_users, share)
        levels = _least(worst_mse, min(max(math.ceil(1 / share) - 2, 1), MOST_LEVELS))
    return levels


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
