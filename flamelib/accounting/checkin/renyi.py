"""Self check-in over many rounds: epsilon from Rényi divergences of one round, by the document's theorems.

The divergences of the rounds add up (Lemma 1) and are converted at the best whole order from 2 to 3000 (Lemma 2),
searched on a grid (all orders to 128, then ratios of 1 + 1/64) and then around its minimum.  Adjacency: one client's
record is replaced, in every round.

Source: Liew, Hasegawa, Takahashi 2022, Theorems 2 to 4.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from flamelib.accounting.checkin.closed_form import lower_renyi
from flamelib.accounting.checkin.moments import (
    bounded,
    clients,
    gaussian_terms,
    log_excess,
    many_pieces,
    renyi,
    shuffle_terms,
    single_divergence,
    slacks,
    summed,
    three_way,
)
from flamelib.accounting.checkin.theorems import exact_excess
from flamelib.accounting.composition.renyi import converted, pure_renyi
from flamelib.core.arrays import Reals
from flamelib.core.binomial import quantiles
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import MIN_DELTA, product_above
from flamelib.core.vocabulary import DomainError, check

Curve = Callable[[Reals], Reals]

MAX_ORDER = 3000  # largest Rényi order
# Rényi orders of the first search.
ORDER_GRID = np.unique([*range(2, 129), *(int(128 * (1 + 1 / 64) ** i) for i in range(204)), MAX_ORDER]).astype(float)
RTOL_SUMS = 1e-10  # relative error of sums over counts and of round-off, added to every answer
MAX_SEPARATE = 1e6  # mean number of clients up to which counts are not grouped


def parts_of(schedule: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Check-in rates with their numbers of rounds, validated."""
    max_parts = 64  # rates of a schedule at most
    if not 1 <= len(schedule) <= max_parts:
        raise DomainError(f"schedule must hold 1 to {max_parts} rates with their rounds, got {len(schedule)}")
    return [(part["checkin_rate"], part["rounds"]) for part in (check(checkin_rate=r, rounds=t) for r, t in schedule)]


def shuffled_renyi_epsilon(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, route: str
) -> Certified:
    """Epsilon of shuffled check-in after all rounds, any local randomizer (upper with thm-2, a value with thm-3).

    Route ``thm-2`` is Theorem 2 with the true inner rate, at most ``rounds * epsilon0``; ``thm-3`` converts the lower
    bound of Theorem 3 on the Rényi divergence, which bounds the route and not epsilon.
    """
    checked = check(epsilon0=epsilon0, n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, delta=delta)
    epsilon0, n_users, checkin_rate, rounds, delta = checked.values()
    if checkin_rate == 0:
        return Certified(0.0, 0.0)
    if route == "thm-3":
        epsilon = _least_epsilon(
            lambda orders: _at_orders(orders, lambda o: lower_renyi(o, epsilon0, n_users, checkin_rate)), rounds, delta
        )
        return _certified(epsilon)
    if route != "thm-2":
        raise DomainError(f"route must be one of thm-2, thm-3, got {route!r}")
    terms, pieces = shuffle_terms(epsilon0), many_pieces(n_users, checkin_rate)

    def curve(orders: Reals) -> Reals:
        epsilon = log_excess(orders, bounded(terms, pieces, n_users, np.arange(2.0, orders[-1] + 1)))
        return np.minimum(renyi(orders, epsilon), _at_orders(orders, lambda o: pure_renyi(o, epsilon0)))

    return _certified(min(product_above(rounds, epsilon0), _least_epsilon(curve, rounds, delta)))


def distributed_renyi_epsilon(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str
) -> Certified:
    """Epsilon of distributed check-in with Gaussian noise after all rounds, by one of the Rényi routes (upper).

    Routes ``thm-4`` and ``eq-11`` are Theorem 4 and Equation 11 with the true inner rate; the former groups counts
    if the mean exceeds a million or too many are significant.  ``rdp-exact``, a bound for one round and a value for
    more, is the divergence of the pair of data sets that is the worst in one round, summed over a window of counts of
    clients; the mass outside in any round is charged to a half or a 64th of delta.  ``noise_std`` is that of each
    client's own noise, its report having norm at most 1.  A delta below 1e-300 counts as 0.
    """
    checked = check(n_users=n_users, checkin_rate=checkin_rate, noise_std=noise_std, rounds=rounds, delta=delta)
    n_users, checkin_rate, noise_std, rounds, delta = checked.values()
    if checkin_rate == 0:
        return Certified(0.0, 0.0)
    if route == "rdp-exact":
        # Shares of delta for counts of clients outside the window.
        return _certified(
            min(_exact_epsilon(n_users, checkin_rate, noise_std, rounds, delta, share) for share in (1 / 2, 1 / 64))
        )
    if route not in ("thm-4", "eq-11"):
        raise DomainError(f"route must be one of thm-4, eq-11, rdp-exact, got {route!r}")
    terms, d2 = gaussian_terms(noise_std), single_divergence(noise_std)
    slack_grid = slacks(n_users * checkin_rate)
    pieces = many_pieces(n_users, checkin_rate)

    def split(orders: Reals) -> Reals:
        """The best slack is monotone in the order: minimise between the best slacks of both end orders."""
        j, ascending = np.arange(2.0, orders[-1] + 1), np.sort(slack_grid)
        ends = log_excess(orders[[0, -1]], bounded(terms, three_way(n_users, checkin_rate, ascending), n_users, j))
        lower, upper = np.sort(ends.argmin(axis=0)) + np.array([-1, 2])
        candidates = three_way(n_users, checkin_rate, ascending[max(lower, 0) : upper])
        return renyi(orders, log_excess(orders, bounded(terms, candidates, n_users, j)).min(axis=0))

    def grouped(orders: Reals) -> Reals:
        found = log_excess(orders, bounded(terms, pieces, n_users, np.arange(2.0, orders[-1] + 1)))
        return np.minimum(renyi(orders, found), split(orders))

    def separate(orders: Reals) -> Reals:
        try:
            log_terms = summed(terms, n_users, checkin_rate, d2, np.arange(2.0, orders[-1] + 1), exact=True)
        except DomainError:  # too many significant counts
            return grouped(orders)
        return renyi(orders, log_excess(orders, log_terms))

    if route == "eq-11":
        return _certified(_least_epsilon(split, rounds, delta))
    return _certified(_least_epsilon(grouped if n_users * checkin_rate > MAX_SEPARATE else separate, rounds, delta))


def _exact_epsilon(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, share: float
) -> float:
    """By exact moments of counts in a window; ``share * delta`` covers counts outside in any round."""
    min_clients, max_clients = quantiles(n_users, checkin_rate, share * delta / rounds / 2)
    d2 = single_divergence(noise_std)
    k, log_mass = clients(n_users, checkin_rate, d2, MAX_ORDER, max(min_clients, 1), max(max_clients, 1))

    def divergence(order: int) -> float:
        return float(renyi(np.array(float(order)), np.array(exact_excess(order, k, log_mass, n_users, d2))))

    return _least_epsilon(lambda orders: _at_orders(orders, divergence), rounds, (1 - share) * delta)


def _at_orders(orders: Reals, value: Callable[[int], float]) -> Reals:
    return np.array([value(int(order)) for order in orders])


def _least_epsilon(curve: Curve, rounds: int, delta: float) -> float:
    """Least epsilon over ``ORDER_GRID`` and the orders around its minimiser.

    The search stops once the divergence alone exceeds the best epsilon and is non-decreasing in the order.
    """
    if delta < MIN_DELTA or delta == 1:
        return math.inf if delta < MIN_DELTA else 0.0
    best, best_order = math.inf, 2.0
    for orders in np.split(ORDER_GRID, np.searchsorted(ORDER_GRID, [17, 33, 65, 129, 257, 513, 1025, 2049])):
        total = rounds * curve(orders)
        epsilon, order = _least_converted(orders, total, delta)
        best, best_order = min((best, best_order), (epsilon, order))
        if total[-1] >= best and total[-1] >= total[-2]:
            break
    nearest = int(np.searchsorted(ORDER_GRID, best_order))
    lower, upper = ORDER_GRID[max(nearest - 1, 0)], ORDER_GRID[min(nearest + 1, len(ORDER_GRID) - 1)]
    refined = np.unique(np.linspace(lower, upper, 32).round())  # orders around the best of the grid
    return min(best, _least_converted(refined, rounds * curve(refined), delta)[0])


def _least_converted(orders: Reals, total: Reals, delta: float) -> tuple[float, float]:
    return min((converted(o, d, delta), o) for o, d in zip(orders.tolist(), total.tolist(), strict=True))


def _certified(epsilon: float) -> Certified:
    return Certified(epsilon * (1 + RTOL_SUMS), epsilon * RTOL_SUMS if epsilon < math.inf else 0.0)
