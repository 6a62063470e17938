r"""Distributed check-in: each client participates independently, and the Gaussian noise of the participants adds up.

Each of n clients checks in independently with probability :math:`\gamma` and sends its record, a vector of norm at most
1, plus noise :math:`N(0, s^2 I)`.  The output of a round is the sum and the number k of participants.  Adjacency: one
client's record is replaced (sensitivity 2); the bounds hold in both directions, for a client that may participate in
every round.

**Dominating pair.**  Given :math:`k \sim \mathrm{Bin}(n, \gamma)`, the worst records are those of the pair
(-1, ..., -1, +1) and (-1, ..., -1):

.. math:: P_k = (1-\tfrac kn)N(0,ks^2)+\tfrac kn N(2,ks^2), \qquad Q_k = N(0,ks^2).

The supremum of all profiles is that of :math:`(P_k, Q_k)` for :math:`\alpha \ge 1` and that of :math:`(Q_k, P_k)` for
:math:`\alpha < 1`.  It is the profile of a symmetric pair, whose products bound any number of adaptive rounds in both
directions.  Compared with the worse direction of :math:`(P_k, Q_k)` itself this costs some 3 % of epsilon in the
document's settings.

**Groups of counts.**  The profile increases in the rate k/n and decreases in the noise, so that counts a..b together
are dominated by the rate b/n with the noise of a, and dominate the rate a/n with the noise of b.  An interval of rates
is treated in the same way: the counts at both ends are coupled by one uniform variable.  *The largest rate alone is
not enough*: fewer check-ins mean less noise, so that a smaller rate can cost more.  So ``dropout``, a bound on the
probability that a client who checked in fails to send, makes the bounds hold for every smaller probability as well,
chosen adaptively in each round; a known probability gives :func:`effective_rate`.

Proofs: book, chapter on check-in, propositions *The pair of distributed check-in*, *Rounds that depend on each other*
and *Counts taken together*.

Source: Liew, Hasegawa, Takahashi 2022, Section 4 (the mechanism); Zhu, Dong, Wang 2022 (dominating pairs).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr

from flamelib.accounting.checkin.renyi import distributed_renyi_epsilon, parts_of
from flamelib.accounting.composition.dominating_pair import (
    RTOL_MASS,
    DominatingPair,
    Parts,
    alike,
    both_orders,
    composed,
    composed_below,
    joined,
)
from flamelib.accounting.noise.gaussian import MAX_RATIO, MIN_RATIO, analytic_noise_std
from flamelib.core import binomial
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.binomial import window
from flamelib.core.guarantees import Certified, Gives, RestsOn
from flamelib.core.logspace import ROUNDING_32, UNIT, probability
from flamelib.core.search import log_excess, smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, one_budget, plainly

MAX_GROUPS = 1024  # groups of counts for many rounds
RTOL_GROUPS = 1e-4  # relative increase of a single round by groups; also a probability that counts as 0
MAX_NORMAL = 38.6  # standard deviations beyond which the normal tail underflows
MIN_MASS = 1e-300  # least mass of a cell from below, and added to the mass that is disclosed


@dataclass(frozen=True, slots=True)
class _Groups:
    """Groups of counts: the mass of each, the client's rate k/n in it, and sensitivity 2 over the noise of the sum."""

    mass: Reals
    rate: Reals
    ratio: Reals

    def losses(self, points: float | Reals) -> Reals:
        """Privacy loss log(P/Q) of each group at ``points``, in standard deviations above Q's mean."""
        exponent = self.ratio * (points - self.ratio / 2)
        with np.errstate(divide="ignore", over="ignore"):
            small = np.log1p(self.rate * np.expm1(np.clip(exponent, -0.5, 0.5)))
            return np.where(
                np.abs(exponent) < 0.5, small, np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + exponent)
            )

    def points(self, losses: float | Reals) -> Reals:
        """The inverse of :meth:`losses`; ``-inf`` where every loss is larger."""
        rate = self.rate[:, None]
        with np.errstate(divide="ignore"):
            small = np.log1p(np.maximum(np.expm1(np.clip(losses, -1.0, 1.0)) / rate, -1.0))
            # exp(690) is finite.
            large = losses + np.log1p(np.maximum((rate - 1) * np.exp(-np.maximum(losses, -690.0)), -1.0)) - np.log(rate)
        return np.asarray(np.where(np.abs(losses) < 1, small, large) / self.ratio[:, None] + self.ratio[:, None] / 2)

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of delta of one round at ``epsilon``, rounded up."""
        points = self.points(np.array([epsilon]))[:, 0]
        error = np.minimum(UNIT * (128 + 16 * points * (points + self.ratio)), 1.0)
        log_p_tail, log_q_tail = log_ndtr(self.ratio - points), log_ndtr(-points)
        fraction = -np.expm1(np.minimum(self.ratio * (points - self.ratio / 2) + log_q_tail - log_p_tail, 0.0)) + error
        logs = np.log(self.mass) + np.log(self.rate) + np.minimum(log_p_tail + error + np.log(fraction), 0.0)
        return min(float(logsumexp(logs)) + len(logs) * UNIT, 0.0)

    def select(self, selected: NDArray[np.bool_] | slice) -> "_Groups":
        """The selected groups."""
        return _Groups(self.mass[selected], self.rate[selected], self.ratio[selected])


def counted(
    n_users: int,
    lowest_rate: float,
    highest_rate: float,
    noise_std: float,
    most: int = MAX_GROUPS,
    below: bool = False,
) -> _Groups:
    """Groups of counts that dominate a round at any rate in between, or (``below``, one rate) are dominated by it."""
    lower_ends, upper_ends = _ends(n_users, lowest_rate, most), _ends(n_users, highest_rate, most)
    cdf = np.append(binomial.cdf(lower_ends, n_users, lowest_rate), binomial.cdf(upper_ends, n_users, highest_rate))
    sf = np.append(binomial.sf(lower_ends, n_users, lowest_rate), binomial.sf(upper_ends, n_users, highest_rate))
    order = np.lexsort((np.where(cdf <= sf, cdf, -sf), cdf > sf))
    cdf, sf, is_lower = cdf[order], sf[order], order < len(lower_ends)
    mass = np.where(cdf[:-1] > sf[:-1], sf[:-1] - sf[1:], cdf[1:] - cdf[:-1])
    # Relative error of binomial tails, in units of the root of n.
    error = (RTOL_MASS + 4e-15 * math.sqrt(n_users)) * np.minimum(cdf[1:], sf[:-1])
    first = lower_ends[np.maximum(np.cumsum(is_lower)[:-1] - 1, 0)] + 1
    last = upper_ends[np.minimum(np.cumsum(~is_lower)[:-1], len(upper_ends) - 1)]
    mass = mass - error if below else mass + error
    valid = (mass > 0) & (last >= first) & (np.minimum(cdf[1:], sf[:-1]) > 0)
    first, last = first[valid], last[valid]
    rate_count, noise_count = (first, last) if below else (last, first)
    with np.errstate(over="ignore"):
        ratio = 2 / (np.sqrt(noise_count) * noise_std)
    # At most 1e70: no double need hold more.
    return _Groups(mass[valid], rate_count / n_users, np.clip(ratio, 0 if below else MIN_RATIO, 1e70))


def _ends(n_users: int, rate: float, most: int) -> Wholes:
    """Last counts of the groups, from 0: up to ``most`` equal steps over the window of the mass, then doubling."""
    log_tail_mass = 69.0  # minus the logarithm of the mass outside the window
    first, last = window(n_users, rate, log_tail_mass, log_tail_mass)
    first = max(first, 1)
    ends = {0, n_users, *np.linspace(first - 1, last, min(last - first + 1, most) + 1).astype(np.int64).tolist()}
    while first > 1:
        first //= 2
        ends.add(first)
    while last < n_users:
        last = min(2 * last, n_users)
        ends.add(last)
    return np.array(sorted(ends))


@plainly
def distributed_cells(
    n_users: int, checkin_rate: float, noise_std: float, lowest_rate: float | None = None
) -> DominatingPair:
    """Cells of a pair (P, Q) that dominates one round in one direction; rates down to ``lowest_rate``, if given."""
    groups = counted(n_users, checkin_rate if lowest_rate is None else lowest_rate, checkin_rate, noise_std)
    low_noise = groups.ratio > MAX_RATIO
    parts = [_noiseless_cells(groups.select(low_noise)), *(cells for cells, _ in _halves(groups.select(~low_noise)))]
    lossless_mass = max(0.0, 1 - sum(float((part.base + part.gain).sum()) for part in parts))
    return joined([*parts, alike(lossless_mass, RTOL_MASS / 10)])


@plainly
def occurring_cells(n_users: int, checkin_rate: float, noise_std: float) -> DominatingPair:
    """Cells of a pair that the records (-1, ..., -1, +1) and (-1, ..., -1) dominate: for lower bounds."""
    groups = counted(n_users, checkin_rate, checkin_rate, noise_std, below=True)
    halves = _halves(_Groups(groups.mass, groups.rate, np.minimum(groups.ratio, MAX_RATIO)))
    no_client_mass = float(binomial.pmf(0, n_users, checkin_rate)) * (1 - RTOL_MASS)
    return joined([*(_mean_loss_cells(*half) for half in halves), alike(no_client_mass)])


def _mean_loss_cells(cells: DominatingPair, base_error: Reals) -> DominatingPair:
    """Cells with masses rounded down, each at its mean loss; negligible cells are omitted."""
    selected = np.minimum(cells.base, cells.base + cells.gain) > np.maximum(MIN_MASS, 8 * base_error)
    fraction = 1 - 4 * base_error[selected] / cells.base[selected]
    base, gain, error = fraction * cells.base[selected], fraction * cells.gain[selected], cells.error[selected]
    losses = np.log1p(gain / base)
    return DominatingPair(losses, losses, base, gain, error)


def _noiseless_cells(groups: _Groups) -> DominatingPair:
    """Cells for negligible noise, where participation and record of the client are revealed."""
    disclosed = float(groups.mass @ groups.rate) * (1 + RTOL_MASS) + MIN_MASS
    with np.errstate(divide="ignore"):
        losses = np.append(np.log1p(-groups.rate), math.inf)
    mass = groups.mass * groups.rate
    return DominatingPair(
        losses, losses, np.append(groups.mass, 0.0), np.append(-mass, disclosed), RTOL_MASS * np.append(mass, 0.0)
    )


def _halves(groups: _Groups) -> list[tuple[DominatingPair, Reals]]:
    """Cells of positive and of negative losses, each with the error of Q's masses."""
    return [_half(groups, _loss_grid(groups, side), side) for side in (1, -1)] if len(groups.mass) else []


def _loss_grid(groups: _Groups, side: int) -> Reals:
    """Grid of losses of one sign up to the largest: equal steps of asinh(loss / typical_loss)."""
    ends = groups.losses(np.minimum(side * MAX_NORMAL + (groups.ratio if side > 0 else 0.0), MAX_NORMAL + groups.ratio))
    typical_loss = float(groups.mass @ np.abs(groups.losses(groups.ratio / 2 + side)) / groups.mass.sum())
    reach = math.asinh(float(np.abs(ends).max()) / typical_loss)
    # Step of the grid.
    return side * typical_loss * np.sinh(np.linspace(0, reach, math.ceil(reach / 0.005) + 1))


def _half(groups: _Groups, grid: Reals, side: int) -> tuple[DominatingPair, Reals]:
    """Cells between neighbours of a grid of losses of one sign, summed over all groups, and the error of Q's masses."""
    block = 64  # groups processed at a time: memory
    base, gain, base_error, error = np.zeros((4, len(grid)))
    for start in range(0, len(groups.mass), block):
        selection = groups.select(slice(start, start + block))
        points = selection.points(grid)
        q_tail, p_tail = ndtr(-side * points), ndtr(side * (selection.ratio[:, None] - points))
        clipped = np.minimum(np.abs(points), 2 * MAX_NORMAL)
        rtol = UNIT * (128 + 16 * clipped * (clipped + selection.ratio[:, None]))
        base += selection.mass @ q_tail
        gain += (selection.mass * selection.rate) @ (p_tail - q_tail)
        base_error += selection.mass @ (rtol * q_tail)
        error += (selection.mass * selection.rate) @ (rtol * (p_tail + q_tail))
    base, gain, base_error, error = base[:-1] - base[1:], gain[:-1] - gain[1:], 2 * base_error[:-1], 2 * error[:-1]
    # Q's masses are rounded to the safe side, which changes P's by as much, or by a factor of the loss where small.
    small = np.expm1(np.minimum(np.abs(grid[1:]), 1.0))
    base = np.maximum(base + np.where((small < 1) | (side < 0), 1, -1) * base_error, 0.0)
    error += 2 * base_error * np.minimum(small, 1.0)
    lower, upper = (grid[:-1], grid[1:]) if side > 0 else (grid[1:] * (1 + ROUNDING_32), grid[:-1] * (1 - ROUNDING_32))
    return DominatingPair(lower, upper, base, gain, error), base_error


def _gives(arguments: Mapping[str, Any]) -> Gives:
    """The exact pair is proven to be the worst in a single round only."""
    is_exact_pair = arguments.get("route") in ("pld-exact", "rdp-exact")
    return Gives.VALUE if is_exact_pair and arguments.get("rounds") != 1 else Gives.UPPER


def _rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """The error of panels of counts and of a grid of losses is measured; the terms of Equation 11 are cited."""
    if arguments.get("route") in ("thm-4", "rdp-exact"):
        return RestsOn.ESTIMATED
    return RestsOn.CITED if arguments.get("route") == "eq-11" else RestsOn.PROVEN


@states("checkin", "distributed", gives=_gives, rests_on=_rests_on,
        item="Section 4, Theorem 4 and Equation 11 (Wang, Balle, Kasiviswanathan 2019), composed over rounds; and the "
        "exact pair",
        words={"route": ("thm-4", "eq-11", "rdp-exact", "pld-exact", "pld")})  # fmt: skip
def distributed(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str
) -> Certified:
    """Epsilon after all rounds of distributed check-in with Gaussian noise (upper; the two exact routes are values).

    The exact routes are values for more rounds than one.  The true epsilon does not increase with ``n_users``, but an
    answer may increase slightly, because the counts that are charged to delta or grouped are whole numbers.

    Parameters
    ----------
    checkin_rate
        Probability that a client sends in a round.
    noise_std
        Standard deviation of each client's own noise; its record has norm at most 1.
    delta
        Of the whole.
    route
        ``thm-4``, ``eq-11``: Rényi bounds of the document, with the true inner rate; ``rdp-exact``: the Rényi
        divergence of the pair of data sets that is the worst in one round (not proven for moments of many rounds).
        By privacy losses: ``pld-exact``, the records (-1, ..., -1, +1) against (-1, ..., -1) in every
        round, the worse direction, rounded up: the worst records of one round, but no bound for all records of many;
        ``pld``, which is one: :func:`distributed_rounds`.

    Source: Liew, Hasegawa, Takahashi 2022, Section 4.

    Examples
    --------
    >>> [f"{distributed(200, 0.1, 1.0, 100, 1e-6, route):.3f}" for route in ("pld-exact", "pld")]
    ['2.309', '2.476']
    """
    if route == "pld" or (route == "pld-exact" and rounds == 1):
        return distributed_rounds(n_users, checkin_rate, noise_std, rounds, delta=delta)
    if route == "pld-exact":
        return _composed_rounds(
            [(distributed_cells(n_users, checkin_rate, noise_std), rounds)] * bool(checkin_rate), None, delta
        )
    return distributed_renyi_epsilon(n_users, checkin_rate, noise_std, rounds, delta, route)


@plainly
def distributed_rounds(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, epsilon: float | None = None,
    delta: float | None = None, dropout: float = 0.0,
) -> Certified:  # fmt: skip
    """Guarantee after ``rounds`` adaptive rounds (upper, both directions).

    Exactly one of ``epsilon`` and ``delta`` of the composition is given; the answer is the other.  Its ``uncertainty``
    estimates the discretisation error, which is on the safe side.  A client who checks in fails to send with
    probability *at most* ``dropout``, the same for all.  ``noise_std`` is that of each client's own noise, its record
    having norm at most 1.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, dropout=dropout)
    lowest_rate = effective_rate(checkin_rate, dropout)
    if given["rounds"] > 1:
        return distributed_schedule(n_users, [(checkin_rate, rounds)], noise_std, epsilon, delta, dropout)
    epsilon, delta, noise_std = one_budget(epsilon, delta, noise_std=noise_std).values()
    # Groups of counts for a single round.
    groups = counted(given["n_users"], lowest_rate, given["checkin_rate"], noise_std, 2**15)
    if checkin_rate == 0:
        return Certified(0.0, 0.0)
    if delta is None:
        value = probability(groups.log_delta(float(epsilon or 0)))
        return Certified(value, RTOL_GROUPS * value)
    value = smallest_epsilon(groups.log_delta, delta, math.inf)
    return Certified(value, RTOL_GROUPS * value if math.isfinite(value) else 0.0)


def distributed_schedule(
    n_users: int, schedule: Sequence[tuple[float, int]], noise_std: float, epsilon: float | None = None,
    delta: float | None = None, dropout: float = 0.0,
) -> Certified:  # fmt: skip
    """Guarantee for a schedule of check-in rates (upper, both directions).

    The ``schedule`` holds up to 64 check-in rates, each with its number of rounds, in any order; the rest is as for
    :func:`distributed_rounds`.
    """
    n_users = check(n_users=n_users)["n_users"]
    epsilon, delta, noise_std = one_budget(epsilon, delta, noise_std=noise_std).values()
    cells = [
        (both_orders(distributed_cells(n_users, rate, noise_std, effective_rate(rate, dropout))), rounds)
        for rate, rounds in parts_of(schedule)
        if rate > 0
    ]
    return _composed_rounds(cells, epsilon, delta)


def _composed_rounds(cells: Parts, epsilon: float | None, delta: float | None) -> Certified:
    """Composition of the rounds of positive rate; privacy losses are unbounded."""
    if not cells or delta == 0:
        return Certified(math.inf if cells else 0.0, 0.0)
    # Negligible noise and almost certain participation.
    if all(float((pair.base + pair.gain)[np.isfinite(pair.high)].sum()) < RTOL_GROUPS for pair, _ in cells):
        return Certified(1.0, RTOL_GROUPS) if delta is None else Certified(math.inf if delta < 1 else 0.0, 0.0)
    return composed(cells, epsilon, delta)


@plainly
def distributed_rounds_lower(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, epsilon: float | None = None,
    delta: float | None = None,
) -> float:  # fmt: skip
    """Guarantee after ``rounds`` rounds of the records (-1, ..., -1, +1) against (-1, ..., -1) (lower).

    Arguments are those of :func:`distributed_rounds`.
    """
    checked = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds)
    epsilon, delta, noise_std = one_budget(epsilon, delta, noise_std=noise_std).values()
    if checkin_rate * rounds <= (delta or 0.0):  # P[the client ever sends] <= delta
        return 0.0
    cells = occurring_cells(checked["n_users"], checked["checkin_rate"], noise_std)
    return composed_below([(cells, checked["rounds"])], epsilon, delta)


def effective_rate(checkin_rate: float, dropout: float) -> float:
    """The rate at which clients send, if those who check in drop out with a known probability (a value)."""
    given = check(checkin_rate=checkin_rate, dropout=dropout)
    return float(given["checkin_rate"] * (1 - given["dropout"]))


@plainly
def distributed_noise(
    n_users: int, checkin_rate: float, rounds: int, epsilon: float, delta: float, dropout: float = 0.0
) -> float:
    """Least noise of each client that gives (epsilon, delta), rounded up by about a relative 1e-3.

    :func:`distributed_rounds` with the answer and ``delta`` gives at most ``epsilon``, which is above 0, delta being in
    (0, 1).  The answer is ``inf`` where no noise suffices, 0 where none is needed.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, epsilon=epsilon, delta=delta)
    if given["epsilon"] == 0 or not 0 < given["delta"] < 1:
        raise DomainError(f"epsilon must be above 0 and delta in (0, 1) for Gaussian noise, got {epsilon} and {delta}")
    if checkin_rate * rounds <= delta:
        return 0.0

    def excess(noise: float) -> float:
        achieved = distributed_rounds(n_users, checkin_rate, noise, rounds, delta=delta, dropout=dropout)
        return log_excess(achieved, epsilon)

    return _solve(excess, 2 * math.sqrt(rounds * checkin_rate / n_users) * analytic_noise_std(1.0, epsilon, delta))


def _solve(log_excess: Callable[[float], float], guess: float) -> float:
    """Upper end of a bracket of the root x of ``log_excess``, whose slope in log x is about -1."""
    atol = 1e-3  # width of the bracket of log noise_std
    lower, upper, trial, slope = -math.inf, math.inf, math.log(guess), -1.0
    previous: tuple[float, float] | None = None
    for _ in range(60):  # evaluations at most
        value = log_excess(math.exp(trial))
        lower, upper = (trial, upper) if value > 0 else (lower, trial)
        if upper - lower <= atol or abs(trial) > 21.0:  # largest logarithm of the noise, up or down
            break
        if previous is not None and math.isfinite(value - previous[1]) and value != previous[1]:
            slope = min((value - previous[1]) / (trial - previous[0]), -0.01)
        previous = (trial, value) if math.isfinite(value) else None
        # Offset towards the end of the bracket that is farther away.
        proposal = trial - value / slope
        proposal += 0.4 * atol if upper - proposal > atol / 2 else -0.4 * atol
        inside = lower < proposal < upper and abs(proposal - trial) < 3
        trial = proposal if inside else _halfway(lower, upper, trial)
    return math.exp(upper)


def _halfway(lower: float, upper: float, current: float) -> float:
    """The midpoint of the bracket, or a step towards its infinite end."""
    if math.isinf(lower) or math.isinf(upper):
        return current + (2.0 if math.isinf(upper) else -2.0)
    return (lower + upper) / 2
