r"""Distributed check-in: clients decide by themselves whether to take part, and their Gaussian noise adds up.

Each of n clients checks in with probability :math:`\gamma` by a coin of its own and sends its record, a vector of norm
at most 1, plus noise :math:`N(0, s^2 I)`.  Whoever looks sees the sum of a round and the number k of those who sent,
not who they are.  Adjacency: one client's record is replaced, and may move by 2; the bounds hold in both directions,
for a client that may take part in every round.

**A pair that dominates.**  Given k, of the chance Bin(n, :math:`\gamma`), the worst records are those of the pair
(-1, ..., -1, +1) and (-1, ..., -1):

.. math:: P_k = (1-\tfrac kn)N(0,ks^2)+\tfrac kn N(2,ks^2), \qquad Q_k = N(0,ks^2).

The largest profile of all is that of :math:`(P_k, Q_k)` above 1 and that of :math:`(Q_k, P_k)` below.  It is the
profile of a pair that stays the same when its two laws are exchanged, and products of that pair bound any number of
adaptive rounds in both directions.  Beside the worse direction of the pair that occurs this costs some 3 % of epsilon
in the document's settings.

**Few groups of counts.**  The profile rises with the rate k/n and falls in the noise, so that counts a..b are together
dominated by the rate b/n with the noise of a, and dominate the rate a/n with the noise of b.  A rate that is known
within bounds only is treated in the same way: the counts at both ends are drawn with one uniform variable.  *The
largest rate alone is not enough*: with few check-ins there is less noise, so that a smaller rate can cost more.  So
``dropout``, a bound on the chance that a client who checked in never sends, makes the bounds hold for every smaller
chance as well, changing as it likes from round to round; a known chance gives :func:`effective_rate`.

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
MAX_NORMAL = 38.6  # standard deviations beyond which the normal distribution has no mass that a double holds
MIN_MASS = 1e-300  # least mass of a cell from below, and added to the mass that is disclosed


@dataclass(frozen=True, slots=True)
class _Groups:
    """Counts taken together: the chance of each group, the client's rate in it, and 2 over the noise of the sum."""

    chance: Reals
    rate: Reals
    ratio: Reals

    def losses(self, points: float | Reals) -> Reals:
        """Logarithm of P/Q of each group where the noise is this many standard deviations above Q's mean."""
        exponent = self.ratio * (points - self.ratio / 2)
        with np.errstate(divide="ignore", over="ignore"):
            near = np.log1p(self.rate * np.expm1(np.clip(exponent, -0.5, 0.5)))
            return np.where(
                np.abs(exponent) < 0.5, near, np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + exponent)
            )

    def points(self, losses: float | Reals) -> Reals:
        """Where the loss is this, ``-inf`` where it is always larger: the inverse of :meth:`losses`."""
        rate = self.rate[:, None]
        with np.errstate(divide="ignore"):
            near = np.log1p(np.maximum(np.expm1(np.clip(losses, -1.0, 1.0)) / rate, -1.0))
            # Exponent whose exponential is a double.
            far = losses + np.log1p(np.maximum((rate - 1) * np.exp(-np.maximum(losses, -690.0)), -1.0)) - np.log(rate)
        return np.asarray(np.where(np.abs(losses) < 1, near, far) / self.ratio[:, None] + self.ratio[:, None] / 2)

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of the profile of one round, rounded up."""
        points = self.points(np.array([epsilon]))[:, 0]
        wrong = np.minimum(UNIT * (128 + 16 * points * (points + self.ratio)), 1.0)
        there, here = log_ndtr(self.ratio - points), log_ndtr(-points)
        left = -np.expm1(np.minimum(self.ratio * (points - self.ratio / 2) + here - there, 0.0)) + wrong
        logs = np.log(self.chance) + np.log(self.rate) + np.minimum(there + wrong + np.log(left), 0.0)
        return min(float(logsumexp(logs)) + len(logs) * UNIT, 0.0)

    def some(self, kept: NDArray[np.bool_] | slice) -> "_Groups":
        """A selection."""
        return _Groups(self.chance[kept], self.rate[kept], self.ratio[kept])


def counted(
    n_users: int,
    lowest_rate: float,
    highest_rate: float,
    noise_std: float,
    most: int = MAX_GROUPS,
    below: bool = False,
) -> _Groups:
    """Groups of counts that dominate a round at any rate between two, or are dominated by one (both rates equal)."""
    few, many = _ends(n_users, lowest_rate, most), _ends(n_users, highest_rate, most)
    under = np.append(binomial.cdf(few, n_users, lowest_rate), binomial.cdf(many, n_users, highest_rate))
    over = np.append(binomial.sf(few, n_users, lowest_rate), binomial.sf(many, n_users, highest_rate))
    order = np.lexsort((np.where(under <= over, under, -over), under > over))
    under, over, is_few = under[order], over[order], order < len(few)
    chance = np.where(under[:-1] > over[:-1], over[:-1] - over[1:], under[1:] - under[:-1])
    # Relative error of binomial tails, in units of the root of n.
    slack = (RTOL_MASS + 4e-15 * math.sqrt(n_users)) * np.minimum(under[1:], over[:-1])
    first = few[np.maximum(np.cumsum(is_few)[:-1] - 1, 0)] + 1
    last = many[np.minimum(np.cumsum(~is_few)[:-1], len(many) - 1)]
    chance = chance - slack if below else chance + slack
    kept = (chance > 0) & (last >= first) & (np.minimum(under[1:], over[:-1]) > 0)
    first, last = first[kept], last[kept]
    share, noisy = (first, last) if below else (last, first)
    with np.errstate(over="ignore"):
        ratio = 2 / (np.sqrt(noisy) * noise_std)
    # At most 1e70: no double need hold more.
    return _Groups(chance[kept], share / n_users, np.clip(ratio, 0 if below else MIN_RATIO, 1e70))


def _ends(n_users: int, rate: float, most: int) -> Wholes:
    """Last counts of groups, 0 first: all that are likely, or so many in equal steps, then doubling."""
    log_tail_mass = 69.0  # minus the logarithm of the mass of counts that are only grouped by doubling
    first, last = window(n_users, rate, log_tail_mass, log_tail_mass)
    first = max(first, 1)
    found = {0, n_users, *np.linspace(first - 1, last, min(last - first + 1, most) + 1).astype(np.int64).tolist()}
    while first > 1:
        first //= 2
        found.add(first)
    while last < n_users:
        last = min(2 * last, n_users)
        found.add(last)
    return np.array(sorted(found))


@plainly
def distributed_cells(
    n_users: int, checkin_rate: float, noise_std: float, lowest_rate: float | None = None
) -> DominatingPair:
    """Cells of a pair (P, Q) that dominates one round in one direction; rates down to ``lowest_rate``, if given."""
    found = counted(n_users, checkin_rate if lowest_rate is None else lowest_rate, checkin_rate, noise_std)
    quiet = found.ratio > MAX_RATIO
    parts = [_disclosing(found.some(quiet)), *(cells for cells, _ in _halves(found.some(~quiet)))]
    rest = max(0.0, 1 - sum(float((part.base + part.gain).sum()) for part in parts))
    return joined([*parts, alike(rest, RTOL_MASS / 10)])


@plainly
def occurring_cells(n_users: int, checkin_rate: float, noise_std: float) -> DominatingPair:
    """Cells of a pair that the records (-1, ..., -1, +1) and (-1, ..., -1) dominate: for bounds from below."""
    found = counted(n_users, checkin_rate, checkin_rate, noise_std, below=True)
    halves = _halves(_Groups(found.chance, found.rate, np.minimum(found.ratio, MAX_RATIO)))
    nobody = float(binomial.pmf(0, n_users, checkin_rate)) * (1 - RTOL_MASS)
    return joined([*(_understated(*half) for half in halves), alike(nobody)])


def _understated(cells: DominatingPair, doubt: Reals) -> DominatingPair:
    """Cells whose masses are not too large, each with its mean loss; those of hardly any mass are left out."""
    kept = np.minimum(cells.base, cells.base + cells.gain) > np.maximum(MIN_MASS, 8 * doubt)
    share = 1 - 4 * doubt[kept] / cells.base[kept]
    base, gain, error = share * cells.base[kept], share * cells.gain[kept], cells.error[kept]
    losses = np.log1p(gain / base)
    return DominatingPair(losses, losses, base, gain, error)


def _disclosing(found: _Groups) -> DominatingPair:
    """Hardly any noise: whether the client is in, and with which record, is seen."""
    seen = float(found.chance @ found.rate) * (1 + RTOL_MASS) + MIN_MASS
    with np.errstate(divide="ignore"):
        losses = np.append(np.log1p(-found.rate), math.inf)
    mass = found.chance * found.rate
    return DominatingPair(
        losses, losses, np.append(found.chance, 0.0), np.append(-mass, seen), RTOL_MASS * np.append(mass, 0.0)
    )


def _halves(found: _Groups) -> list[tuple[DominatingPair, Reals]]:
    """Cells with losses above 0 and below, and how wrong Q's masses are."""
    return [_half(found, _knots(found, side), side) for side in (1, -1)] if len(found.chance) else []


def _knots(found: _Groups, side: int) -> Reals:
    """Losses of one sign, from 0 to where no group has any mass: in equal steps first, in equal ratios then."""
    ends = found.losses(np.minimum(side * MAX_NORMAL + (found.ratio if side > 0 else 0.0), MAX_NORMAL + found.ratio))
    usual = float(found.chance @ np.abs(found.losses(found.ratio / 2 + side)) / found.chance.sum())
    reach = math.asinh(float(np.abs(ends).max()) / usual)
    # Step of the grid of losses, of the inverse hyperbolic sine of a loss in usual ones.
    return side * usual * np.sinh(np.linspace(0, reach, math.ceil(reach / 0.005) + 1))


def _half(found: _Groups, knots: Reals, side: int) -> tuple[DominatingPair, Reals]:
    """Cells between losses of one sign, ascending in size, from the tails of all groups; how wrong Q's masses are."""
    block = 64  # groups processed at a time: memory
    base, gain, doubt, error = np.zeros((4, len(knots)))
    for start in range(0, len(found.chance), block):
        some = found.some(slice(start, start + block))
        points = some.points(knots)
        here, there = ndtr(-side * points), ndtr(side * (some.ratio[:, None] - points))
        far = np.minimum(np.abs(points), 2 * MAX_NORMAL)
        wrong = UNIT * (128 + 16 * far * (far + some.ratio[:, None]))
        base += some.chance @ here
        gain += (some.chance * some.rate) @ (there - here)
        doubt += some.chance @ (wrong * here)
        error += (some.chance * some.rate) @ (wrong * (there + here))
    base, gain, doubt, error = base[:-1] - base[1:], gain[:-1] - gain[1:], 2 * doubt[:-1], 2 * error[:-1]
    # Masses of Q are on the safe side; what is lost by that in P's is as much, or as the loss where that is small.
    small = np.expm1(np.minimum(np.abs(knots[1:]), 1.0))
    base = np.maximum(base + np.where((small < 1) | (side < 0), 1, -1) * doubt, 0.0)
    error += 2 * doubt * np.minimum(small, 1.0)
    low, high = (knots[:-1], knots[1:]) if side > 0 else (knots[1:] * (1 + ROUNDING_32), knots[:-1] * (1 - ROUNDING_32))
    return DominatingPair(low, high, base, gain, error), doubt


def _gives(arguments: Mapping[str, Any]) -> Gives:
    """What occurs need not be the worst that may occur, but in a single round."""
    occurs = arguments.get("route") in ("pld-exact", "rdp-exact")
    return Gives.VALUE if occurs and arguments.get("rounds") != 1 else Gives.UPPER


def _rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """What sums of moments by panels and a grid of losses add is measured; the terms of Equation 11 are cited."""
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

    The exact routes are values for more rounds than one.  More users hide no less, but an answer may rise a little with
    ``n_users``: counts of clients are whole numbers, and those that are paid for in delta, or taken together, change by
    one at a time.

    Parameters
    ----------
    checkin_rate
        Chance that a client sends in a round.
    noise_std
        Standard deviation of each client's own noise; its record has norm at most 1.
    delta
        Of the whole.
    route
        ``thm-4``, ``eq-11``: Rényi bounds of the document, with the true inner rate; ``rdp-exact``: the Rényi
        divergence of the pair of data sets that is the worst in one round (for moments of many that is not proven).
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
        return _composed(
            [(distributed_cells(n_users, checkin_rate, noise_std), rounds)] * bool(checkin_rate), None, delta
        )
    return distributed_renyi_epsilon(n_users, checkin_rate, noise_std, rounds, delta, route)


@plainly
def distributed_rounds(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, epsilon: float | None = None,
    delta: float | None = None, dropout: float = 0.0,
) -> Certified:  # fmt: skip
    """Guarantee after ``rounds`` rounds, whatever is sent in the light of earlier rounds (upper, both directions).

    Exactly one of ``epsilon`` and ``delta`` is given, of the whole; the answer is the other one.  Its ``uncertainty``
    estimates what grids add on the safe side.  Clients who check in fail to send with a chance of *at most*
    ``dropout``, which is the same for all.  ``noise_std`` is that of each client's own noise, its record having norm at
    most 1.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, dropout=dropout)
    lowest = effective_rate(checkin_rate, dropout)
    if given["rounds"] > 1:
        return distributed_schedule(n_users, [(checkin_rate, rounds)], noise_std, epsilon, delta, dropout)
    epsilon, delta, noise_std = one_budget(epsilon, delta, noise_std=noise_std).values()
    # Groups of counts for a single round.
    found = counted(given["n_users"], lowest, given["checkin_rate"], noise_std, 2**15)
    if checkin_rate == 0:
        return Certified(0.0, 0.0)
    if delta is None:
        value = probability(found.log_delta(float(epsilon or 0)))
        return Certified(value, RTOL_GROUPS * value)
    value = smallest_epsilon(found.log_delta, delta, math.inf)
    return Certified(value, RTOL_GROUPS * value if math.isfinite(value) else 0.0)


def distributed_schedule(
    n_users: int, schedule: Sequence[tuple[float, int]], noise_std: float, epsilon: float | None = None,
    delta: float | None = None, dropout: float = 0.0,
) -> Certified:  # fmt: skip
    """Guarantee where the rate changes over time (upper, both directions).

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
    return _composed(cells, epsilon, delta)


def _composed(cells: Parts, epsilon: float | None, delta: float | None) -> Certified:
    """Rounds in which somebody may send; losses have no largest one."""
    if not cells or delta == 0:
        return Certified(math.inf if cells else 0.0, 0.0)
    # Hardly any noise, and hardly anybody away.
    if all(float((one.base + one.gain)[np.isfinite(one.high)].sum()) < RTOL_GROUPS for one, _ in cells):
        return Certified(1.0, RTOL_GROUPS) if delta is None else Certified(math.inf if delta < 1 else 0.0, 0.0)
    return composed(cells, epsilon, delta)


@plainly
def distributed_rounds_lower(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, epsilon: float | None = None,
    delta: float | None = None,
) -> float:  # fmt: skip
    """What ``rounds`` rounds cost at least, by records that are all alike but for one opposite (lower).

    Arguments are those of :func:`distributed_rounds`.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds)
    epsilon, delta, noise_std = one_budget(epsilon, delta, noise_std=noise_std).values()
    if checkin_rate * rounds <= (delta or 0.0):  # perhaps she is never there
        return 0.0
    cells = occurring_cells(given["n_users"], given["checkin_rate"], noise_std)
    return composed_below([(cells, given["rounds"])], epsilon, delta)


def effective_rate(checkin_rate: float, dropout: float) -> float:
    """The rate at which clients send, if those who check in drop out with a known chance (a value)."""
    given = check(checkin_rate=checkin_rate, dropout=dropout)
    return float(given["checkin_rate"] * (1 - given["dropout"]))


@plainly
def distributed_noise(
    n_users: int, checkin_rate: float, rounds: int, epsilon: float, delta: float, dropout: float = 0.0
) -> float:
    """Least noise of each client that gives (epsilon, delta): never too small, about a thousandth too large.

    :func:`distributed_rounds` with the answer and ``delta`` gives at most ``epsilon``, which is above 0, delta being in
    (0, 1).  The answer is ``inf`` where no noise will do, 0 where none is needed.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, epsilon=epsilon, delta=delta)
    if given["epsilon"] == 0 or not 0 < given["delta"] < 1:
        raise DomainError(f"epsilon must be above 0 and delta in (0, 1) for Gaussian noise, got {epsilon} and {delta}")
    if checkin_rate * rounds <= delta:
        return 0.0

    def excess(noise: float) -> float:
        found = distributed_rounds(n_users, checkin_rate, noise, rounds, delta=delta, dropout=dropout)
        return log_excess(found, epsilon)

    return _least(excess, 2 * math.sqrt(rounds * checkin_rate / n_users) * analytic_noise_std(1.0, epsilon, delta))


def _least(log_excess: Callable[[float], float], guess: float) -> float:
    """Least argument found at which a function that falls about like 1/x has a logarithm of at most 0."""
    atol = 1e-3  # width of the bracket of log noise_std
    short, enough, trial, slope = -math.inf, math.inf, math.log(guess), -1.0
    last: tuple[float, float] | None = None
    for _ in range(60):  # evaluations at most
        value = log_excess(math.exp(trial))
        short, enough = (trial, enough) if value > 0 else (short, trial)
        if enough - short <= atol or abs(trial) > 21.0:  # largest logarithm of the noise, up or down
            break
        if last is not None and math.isfinite(value - last[1]) and value != last[1]:
            slope = min((value - last[1]) / (trial - last[0]), -0.01)
        last = (trial, value) if math.isfinite(value) else None
        # Aimed a little to the side on which nothing is near yet.
        aim = trial - value / slope
        aim += 0.4 * atol if enough - aim > atol / 2 else -0.4 * atol
        inside = short < aim < enough and abs(aim - trial) < 3
        trial = aim if inside else _halfway(short, enough, trial)
    return math.exp(enough)


def _halfway(short: float, enough: float, here: float) -> float:
    """The middle of the bracket, or a step to its open side."""
    if math.isinf(short) or math.isinf(enough):
        return here + (2.0 if math.isinf(enough) else -2.0)
    return (short + enough) / 2
