"""Self check-in over many rounds: epsilon from Rényi divergences of one round, by the document's theorems.

The divergences of the rounds add up (Lemma 1) and are converted at the best whole order from 2 to 3000 (Lemma 2): every
order is valid, so a grid is tried first (all orders to 128, then steps of 1/64), and then the orders around its best
one.  Adjacency: one client's record is replaced, in every round it takes part in.

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
# Rényi orders that are tried first.
ORDER_GRID = np.unique([*range(2, 129), *(int(128 * (1 + 1 / 64) ** i) for i in range(204)), MAX_ORDER]).astype(float)
RTOL_SUMS = 1e-10  # relative error of sums over counts and of round-off, added to every answer
MAX_SEPARATE = 1e6  # mean number of clients up to which counts are summed one by one, or at nodes of smooth panels


def parts_of(schedule: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Check-in rates with their numbers of rounds, each in its domain."""
    max_parts = 64  # rates of a schedule at most
    if not 1 <= len(schedule) <= max_parts:
        raise DomainError(f"schedule must hold 1 to {max_parts} rates with their rounds, got {len(schedule)}")
    return [
        (found["checkin_rate"], found["rounds"]) for found in (check(checkin_rate=r, rounds=t) for r, t in schedule)
    ]


def shuffled_renyi_epsilon(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, route: str
) -> Certified:
    """Epsilon of shuffled check-in after all rounds, any local randomizer (upper with thm-2, a value with thm-3).

    Route ``thm-2`` is Theorem 2 with the true inner rate, never above what the local budget alone gives; ``thm-3`` is
    what the lower Rényi value of Theorem 3 would convert to, which bounds the route and not epsilon.
    """
    given = check(epsilon0=epsilon0, n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, delta=delta)
    epsilon0, n_users, checkin_rate, rounds, delta = given.values()
    if checkin_rate == 0:
        return Certified(0.0, 0.0)
    if route == "thm-3":
        found = _best(
            lambda orders: _each(orders, lambda o: lower_renyi(o, epsilon0, n_users, checkin_rate)), rounds, delta
        )
        return _rounded(found)
    if route != "thm-2":
        raise DomainError(f"route must be one of thm-2, thm-3, got {route!r}")
    terms, pieces = shuffle_terms(epsilon0), many_pieces(n_users, checkin_rate)

    def curve(orders: Reals) -> Reals:
        found = log_excess(orders, bounded(terms, pieces, n_users, np.arange(2.0, orders[-1] + 1)))
        return np.minimum(renyi(orders, found), _each(orders, lambda o: pure_renyi(o, epsilon0)))

    return _rounded(min(product_above(rounds, epsilon0), _best(curve, rounds, delta)))


def distributed_renyi_epsilon(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str
) -> Certified:
    """Epsilon of distributed check-in with Gaussian noise after all rounds, by one of the Rényi routes (upper).

    Routes ``thm-4`` and ``eq-11`` are Theorem 4 and Equation 11 with the true inner rate, the former with counts taken
    together where a million check in or too many counts would matter.  ``rdp-exact``, a bound for one round and a value
    for more, is the divergence of the pair of data sets that is the worst in one round, summed over the counts of
    clients that are likely in every round; the chance of all others is paid for with a half or a 64th of delta.
    ``noise_std`` is that of each client's own noise, its report having norm at most 1.  A delta below 1e-300 counts as
    0.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, noise_std=noise_std, rounds=rounds, delta=delta)
    n_users, checkin_rate, noise_std, rounds, delta = given.values()
    if checkin_rate == 0:
        return Certified(0.0, 0.0)
    if route == "rdp-exact":
        # Shares of delta for counts of clients that are unlikely; the better one is taken.
        return _rounded(
            min(_exact_epsilon(n_users, checkin_rate, noise_std, rounds, delta, share) for share in (1 / 2, 1 / 64))
        )
    if route not in ("thm-4", "eq-11"):
        raise DomainError(f"route must be one of thm-4, eq-11, rdp-exact, got {route!r}")
    terms, leap = gaussian_terms(noise_std), single_divergence(noise_std)
    tried = slacks(n_users * checkin_rate)
    together = many_pieces(n_users, checkin_rate)

    def split(orders: Reals) -> Reals:
        """The best slack moves one way as orders grow: those that are best at both ends, and between."""
        j, ranked = np.arange(2.0, orders[-1] + 1), np.sort(tried)
        ends = log_excess(orders[[0, -1]], bounded(terms, three_way(n_users, checkin_rate, ranked), n_users, j))
        first, last = np.sort(ends.argmin(axis=0)) + np.array([-1, 2])
        near = three_way(n_users, checkin_rate, ranked[max(first, 0) : last])
        return renyi(orders, log_excess(orders, bounded(terms, near, n_users, j)).min(axis=0))

    def taken_together(orders: Reals) -> Reals:
        found = log_excess(orders, bounded(terms, together, n_users, np.arange(2.0, orders[-1] + 1)))
        return np.minimum(renyi(orders, found), split(orders))

    def one_by_one(orders: Reals) -> Reals:
        try:
            log_terms = summed(terms, n_users, checkin_rate, leap, np.arange(2.0, orders[-1] + 1), exact=True)
        except DomainError:  # too many counts matter at such orders
            return taken_together(orders)
        return renyi(orders, log_excess(orders, log_terms))

    if route == "eq-11":
        return _rounded(_best(split, rounds, delta))
    return _rounded(_best(taken_together if n_users * checkin_rate > MAX_SEPARATE else one_by_one, rounds, delta))


def _exact_epsilon(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, share: float
) -> float:
    """By exact moments; a share of delta pays for the rounds in which few or many clients check in.

    Nothing is lost otherwise: a round with such a count may as well publish nothing.
    """
    least, most = quantiles(n_users, checkin_rate, share * delta / rounds / 2)
    leap = single_divergence(noise_std)
    k, log_mass = clients(n_users, checkin_rate, leap, MAX_ORDER, max(least, 1), max(most, 1))

    def divergence(order: int) -> float:
        return float(renyi(np.array(float(order)), np.array(exact_excess(order, k, log_mass, n_users, leap))))

    return _best(lambda orders: _each(orders, divergence), rounds, (1 - share) * delta)


def _each(orders: Reals, value: Callable[[int], float]) -> Reals:
    return np.array([value(int(order)) for order in orders])


def _best(curve: Curve, rounds: int, delta: float) -> float:
    """The least epsilon of the grid, and of orders around its best.

    The grid is left once the rounds alone cost more, unless the bound still falls there, as no divergence does.
    """
    if delta < MIN_DELTA or delta == 1:
        return math.inf if delta < MIN_DELTA else 0.0
    best, at = math.inf, 2.0
    for orders in np.split(ORDER_GRID, np.searchsorted(ORDER_GRID, [17, 33, 65, 129, 257, 513, 1025, 2049])):
        total = rounds * curve(orders)
        found, where = _converted(orders, total, delta)
        best, at = min((best, at), (found, where))
        if total[-1] >= best and total[-1] >= total[-2]:
            break
    near = int(np.searchsorted(ORDER_GRID, at))
    low, high = ORDER_GRID[max(near - 1, 0)], ORDER_GRID[min(near + 1, len(ORDER_GRID) - 1)]
    around = np.unique(np.linspace(low, high, 32).round())  # orders around the best of the grid
    return min(best, _converted(around, rounds * curve(around), delta)[0])


def _converted(orders: Reals, total: Reals, delta: float) -> tuple[float, float]:
    return min((converted(o, d, delta), o) for o, d in zip(orders.tolist(), total.tolist(), strict=True))


def _rounded(epsilon: float) -> Certified:
    return Certified(epsilon * (1 + RTOL_SUMS), epsilon * RTOL_SUMS if epsilon < math.inf else 0.0)
