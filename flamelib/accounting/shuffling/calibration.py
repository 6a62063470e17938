"""Calibration: the least blanket mass of a guarantee, and the number of levels of its summation protocol."""

import functools
import math
from collections.abc import Callable

from flamelib.accounting.shuffling.accuracy import SummationPlan, summation_mse_bound, summation_worst_mse
from flamelib.accounting.shuffling.brackets import MAX_EPSILON0, answer, estimate
from flamelib.accounting.shuffling.bromwich import RTOL_TIGHT, Bracket, bracket
from flamelib.accounting.shuffling.closed_form import kary_epsilon0
from flamelib.accounting.shuffling.discrete import KaryAnalysis
from flamelib.core.guarantees import Certified
from flamelib.core.profiles import KaryProfile
from flamelib.core.search import smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

MAX_LEVELS = 2**40  # number of levels, at most


def least_blanket_mass(n_users: int, n_buckets: int, epsilon: float, delta: float) -> float:
    r"""Least mass found at which the certified blanket divergence keeps (epsilon, delta), in delta and in epsilon.

    At this mass the divergence at ``epsilon`` is at most ``delta``, and the epsilon certified at ``delta`` is at
    most ``epsilon``; so the answer errs towards more noise.  The mass :math:`k / (e^\varepsilon + k - 1)`, whose
    local budget is ``epsilon``, always does and is never exceeded.  Where epsilon is below a tenth of
    :math:`\delta^2`, or a thousandth of delta, every digit of delta takes ten times as long as elsewhere and epsilon is
    insensitive to it: there the relative width of the bracket of delta is 1e-5, and only delta is checked.  Epsilon is
    above 0, delta below 1.
    Adjacency: replace-one.
    """
    n_users, n_buckets, epsilon, delta = check(
        n_users=n_users, n_buckets=n_buckets, epsilon=epsilon, delta=delta
    ).values()
    return _certified_mass(n_users, n_buckets, _least_mass(n_users, n_buckets, epsilon, delta), epsilon, delta)


def _least_mass(n_users: int, n_buckets: int, epsilon: float, delta: float) -> float:
    """The least mass found at which the divergence at ``epsilon`` is at most ``delta``."""
    if epsilon == 0 or delta == 1:
        raise DomainError(f"epsilon must be above 0 and delta below 1 for a protocol, got {epsilon} and {delta}")

    def log_delta(mass: float) -> float:
        found = _divergence(n_users, n_buckets, mass, epsilon, delta) if mass else 1.0
        return math.log(found) if found > 0 else -math.inf

    local = _local_mass(n_buckets, epsilon)
    least = n_buckets / (math.expm1(MAX_EPSILON0) + n_buckets) * (1 + 1e-12)  # that of MAX_EPSILON0
    start = least if delta > 0 and least < local and log_delta(least) <= math.log(delta) else 0.0
    return smallest_epsilon(log_delta, delta, at_most=local, at_least=start)


def _certified_mass(n_users: int, n_buckets: int, mass: float, epsilon: float, delta: float) -> float:
    """The mass, increased until the epsilon certified at ``delta`` is at most ``epsilon``."""
    local, step = _local_mass(n_buckets, epsilon), 1e-10
    if _is_flat(epsilon, delta):
        return mass
    while mass < local and _certified(n_users, n_buckets, mass, None, delta) > epsilon:
        mass, step = min(local, mass * (1 + step)), 4 * step
    return mass


def _local_mass(n_buckets: int, epsilon: float) -> float:
    """The mass whose local budget is ``epsilon``."""
    return n_buckets / (math.expm1(min(epsilon, 700.0)) + n_buckets)


@states("blanket", "own-sum", item="Theorem 4.1's protocol by the certified divergence, this project", gives="value",
        adjacency="replace-one")  # fmt: skip
def certified_summation_plan(n_users: int, epsilon: float, delta: float) -> SummationPlan:
    r"""The best number of levels, the least blanket mass found that keeps (epsilon, delta), and the worst-case error.

    As ``blanket:thm-4.1``, for every epsilon above 0 and delta below 1, with the certified blanket divergence of
    ``blanket:lem-reduction`` in the place of :math:`14\log(2/\delta)/\varepsilon^2` and :math:`27/\varepsilon`: the
    mass errs towards more noise.  The levels are those of the least error, were the mass in proportion to the
    alphabet; it nearly is, so the mass is found for one number of levels, the error scanned over all, and both repeated
    until they agree.  Where these are at most 32, no other number of levels is better: at a given mass a larger
    alphabet spreads the amplification variable, so that the least mass grows with the levels; and the error at k levels
    falls with k at a given mass, and grows with the mass.  So levels a to b have at least the error of b levels with
    the mass of a, and any number of them at least n times :math:`(\gamma/3-\gamma^2/4)/(1-\gamma)^2`; what that does
    not exclude is tried.

    Source: this project, on Balle, Bell, Gascon, Nissim 2019, Theorem 4.1.

    Examples
    --------
    >>> found = certified_summation_plan(100, 1.0, 1e-6)
    >>> found.n_levels, round(found.blanket_mass, 4), round(found.mse, 2)
    (2, 0.4109, 37.74)
    """
    levels, previous, plans = 1, 0, []
    for _ in range(4):
        previous, mass = levels, _least_mass(n_users, levels + 1, epsilon, delta)
        plans.append(_plan(n_users, previous, mass))
        share = mass / (levels + 1)
        worst_mse = functools.partial(_worst_mse, n_users, share)
        levels = _argmin(worst_mse, min(max(math.ceil(1 / share) - 2, 1), MAX_LEVELS))
        if levels == previous or (len(plans) > 1 and levels <= 24):
            break
    best = plans[-1]
    if previous <= 32:  # optimality is verified up to 32 levels
        best = _optimal(_extrapolated(plans, n_users, epsilon, delta), n_users, epsilon, delta)
    mass = _certified_mass(n_users, best.n_levels + 1, best.blanket_mass, epsilon, delta)
    return _plan(n_users, best.n_levels, mass)


def _is_flat(epsilon: float, delta: float) -> bool:
    # Epsilon is insensitive to the mass where it is far below delta.
    return epsilon < max(0.1 * delta * delta, 1e-3 * delta)


def _divergence(n_users: int, n_buckets: int, mass: float, epsilon: float, delta: float) -> float:
    """The certified blanket divergence at ``epsilon`` (upper)."""
    rtol = 1e-5 if _is_flat(epsilon, delta) else RTOL_TIGHT  # width of the bracket of log delta there
    return float(_certified(n_users, n_buckets, mass, epsilon, delta, rtol))


def _certified(
    n_users: int, n_buckets: int, mass: float, epsilon: float | None, delta: float, rtol: float = RTOL_TIGHT
) -> Certified:
    """Value of ``blanket:lem-reduction``, no more accurate than the comparison with the target requires."""
    profile = KaryProfile(kary_epsilon0(n_buckets, mass), n_buckets)
    law, target = KaryAnalysis(profile).blanket, math.log(delta) if delta else -math.inf

    def certified(at: float) -> Bracket:
        found = bracket(law(at), n_users, 1e-3)  # initial width of the bracket of log delta
        margin = 4.0 * (found.high - found.low)  # distance to the target, in widths, of a decided comparison
        is_clear = found.low - margin > target or found.high + margin < target or found.high == -math.inf
        return found if is_clear else bracket(law(at), n_users, rtol)

    wanted = delta if epsilon is None else None
    return answer(certified, estimate(law, n_users), profile.epsilon0, epsilon, wanted)


def _extrapolated(plans: list[SummationPlan], n_users: int, epsilon: float, delta: float) -> SummationPlan:
    """Improved plan, by extrapolating the mass as a power of the alphabet size."""
    previous, best = ([*plans[-1:], *plans])[-2:]
    while best.n_levels != previous.n_levels:
        alphabets, masses = ((best.n_levels + 1, previous.n_levels + 1), (best.blanket_mass, previous.blanket_mass))
        power = max(math.log(masses[0] / masses[1]) / math.log(alphabets[0] / alphabets[1]), 0.05)

        def error(levels: int, share: float = masses[0] / alphabets[0] ** power, power: float = power) -> float:
            return summation_worst_mse(n_users, levels, share * (levels + 1) ** power)

        most = alphabets[0] * (0.999 / masses[0]) ** (1 / power)
        levels = _argmin(error, max(min(int(most) - 1, MAX_LEVELS), 1))
        if levels == best.n_levels:
            break
        found = _plan(n_users, levels, _least_mass(n_users, levels + 1, epsilon, delta))
        if found.mse >= best.mse:
            break
        previous, best = best, found
    return best


def _optimal(best: SummationPlan, n_users: int, epsilon: float, delta: float) -> SummationPlan:
    """Optimal plan over all numbers of levels, by branch and bound from a good one."""

    def excluded(first: int, error: Callable[[float], float]) -> bool:
        """Whether the mass at which this increasing error equals the best one is too small for ``first`` levels."""
        mass = _mass_of(error, best.mse / n_users)
        return mass == 0 or _divergence(n_users, first + 1, mass, epsilon, delta) > delta

    end = 2 * best.n_levels
    while not excluded(end, _least_error):
        end *= 2
    intervals = [(best.n_levels + 1, end), (1, best.n_levels - 1)]
    while intervals:
        first, last = intervals.pop()
        if first > last or excluded(first, functools.partial(_error_of_user, last)):
            continue
        if first == last:
            found = _plan(n_users, first, _least_mass(n_users, first + 1, epsilon, delta))
            best = min(best, found, key=lambda plan: plan.mse)
        else:
            middle = (first + last) // 2
            intervals += [(middle + 1, last), (first, middle)]
    return best


def _mass_of(error: Callable[[float], float], target: float) -> float:
    """Mass at which an increasing error reaches a target (upper bound); 0 where it is never below."""
    tiny = 1e-300  # least mass
    if error(tiny) >= target:
        return 0.0
    low, high = tiny, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if error(middle) < target else (low, middle)
    return high


def _error_of_user(levels: int, mass: float) -> float:
    return summation_worst_mse(2, levels, mass) / 2


def _least_error(mass: float) -> float:
    """Least error per user at any number of levels with at least this mass."""
    return (mass / 3 - mass * mass / 4) / (1 - mass) ** 2


def _plan(n_users: int, n_levels: int, mass: float) -> SummationPlan:
    worst, bound = (error(n_users, n_levels, mass) for error in (summation_worst_mse, summation_mse_bound))
    return SummationPlan(n_levels, mass, worst, bound)


def _worst_mse(n_users: int, share: float, levels: int) -> float:
    return summation_worst_mse(n_users, levels, (levels + 1) * share)


def _argmin(error: Callable[[int], float], most: int) -> int:
    """Argmin on 1..most of an error that falls and then rises: exhaustive for small numbers, else ternary search."""
    low, high = 1, most
    while high - low > 8:
        third = (high - low) // 3
        low, high = (low, high - third) if error(low + third) <= error(high - third) else (low + third, high)
    candidates: list[int] = sorted({*range(1, min(most, 64) + 1), *range(low, high + 1)})
    return min(candidates, key=error)
