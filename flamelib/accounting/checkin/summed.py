r"""Distributed check-in: clients decide by themselves whether to take part, and their Gaussian noise adds up.

Adjacency: one client's record is replaced; the bounds hold in both directions, for a client that may take part in every
round.  Trust: the server, and whoever else looks, sees the sum of a round and how many sent, not who they are (secure
aggregation over an anonymous channel); every participant adds its own noise as told.  What dominates a round, and the
proof, stand in :mod:`flamelib.accounting.checkin.summed`: a pair of laws that covers both directions at once, so
that the bounds hold for adaptive training.  Beside the worse direction of the pair that occurs, this costs some 3 % of
epsilon in the document's settings.

A client who has checked in may drop out before it sends; with it goes its noise, and the number of senders is what is
seen.  With a known chance of that, the same for all, the rate is :func:`effective_rate`.  Where only a bound is known,
``dropout`` makes the bounds hold for every smaller chance as well, changing as it likes from round to round.  Leaving
drop-outs out of account is no bound: fewer senders bring less noise.

Privacy losses of one round of distributed check-in: a pair that dominates, and a pair that occurs.

Each of n clients checks in with probability :math:`\gamma` by a coin of its own and sends its record, a vector of norm
at most 1, plus noise :math:`N(0, s^2 I)`.  The server sees the sum and the number k of those who checked in, not who
they are.  The two data sets differ in the record of one client, which may move by 2.

**A pair that dominates.**  The number k has the law Bin(n, :math:`\gamma`) in both worlds; condition on it.  The set of
those who are in is uniform, and holds the client with probability :math:`r = k/n`.  A set with the client comes from a
uniform one without it by replacing a uniform member i.  So, with u the client's record minus that of i, v its other
record minus that of i and normal laws of variance :math:`ks^2`, the outputs are means over (set, i) of
:math:`(1-r)N(0)+rN(u)` and :math:`(1-r)N(0)+rN(v)`, shifted alike, and the divergence of means is at most the mean
of the divergences (joint convexity).  For :math:`\alpha\ge1`

.. math:: H_\alpha = \int\big[r N(u) - ((\alpha-1)(1-r)) N(0) - \alpha r N(v)\big]_+ .

One normal law minus others: such an integral does not fall in any inner product of the differences from the first mean
(the lemma of Gram matrices of :mod:`flamelib.accounting.sampling.hidden`).  These are :math:`|u|^2\le4`,
:math:`|u-v|^2\le4` and the product of the two, at most 4: the worst is v = 0 with u of norm 2, which is

.. math:: P_k = (1-\tfrac kn)N(0,ks^2)+\tfrac kn N(2,ks^2), \qquad Q_k = N(0,ks^2).

It is attained by the records (-1, ..., -1, +1) and (-1, ..., -1).  Below 1,
:math:`H_{1/\alpha}(P\Vert Q) = 1-1/\alpha+H_\alpha(Q\Vert P)/\alpha`, and exchanging two neighbors gives neighbors.  So
the largest profile of all is that of :math:`(P_k, Q_k)` above 1 and that of :math:`(Q_k, P_k)` below; as the upper
envelope of profiles it is one, its losses being the positive ones of the former pair, the negative ones of the latter,
and 0 with the rest.  That pair is its own exchange.  It bounds a round whatever the records, even if they depend on all
that was seen before: products of it bound any number of adaptive rounds in both directions.

**Few groups of counts.**  The profile of :math:`(P_k, Q_k)` rises with the rate r (joint convexity) and falls in the
noise (adding noise is processing).  So counts a..b are together dominated by the rate b/n with the noise of a, and they
dominate the rate a/n with the noise of b.  Where there are no more than ``MOST`` likely counts each stands alone.

**A rate that is known within bounds only.**  The numbers of check-ins at rates :math:`\gamma_1\le\gamma\le\gamma_2` can
be drawn with one uniform variable such that :math:`k_1\le k\le k_2`.  By the same monotony the rate :math:`k_2/n` with
the noise of :math:`k_1` (of one client, if :math:`k_1=0`) dominates.  *The largest rate alone is not enough*: with few
check-ins there is less noise, so that a smaller rate can cost more.

Sources: Liew, Hasegawa, Takahashi 2022, Section 4 (the mechanism); Zhu, Dong, Wang 2022 (dominating pairs).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr

from flamelib.accounting.checkin.renyi import distributed_renyi_epsilon
from flamelib.accounting.composition.known_pairs import ROUND, Cells, Parts, both_orders, composed, composed_below
from flamelib.accounting.composition.loss_sums import UNIT
from flamelib.accounting.noise.gaussian import analytic_noise_std
from flamelib.core import binomial
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.binomial import window
from flamelib.core.guarantees import Certified, Gives
from flamelib.core.logspace import probability
from flamelib.core.search import smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

FAINT = 69.0
MOST = 1024
LEAST_RATIO, LARGEST_RATIO, HUGE = 1e-6, 1000.0, 1e70
REACH = 38.6
SPACING = 0.005
TOGETHER = 64
FLOOR = 1e-300
STEEP = 690.0
WIDER = 32 * UNIT
DRIFT = 4e-15


@dataclass(frozen=True, slots=True)
class Groups:
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
            far = losses + np.log1p(np.maximum((rate - 1) * np.exp(-np.maximum(losses, -STEEP)), -1.0)) - np.log(rate)
        return np.asarray(np.where(np.abs(losses) < 1, near, far) / self.ratio[:, None] + self.ratio[:, None] / 2)

    def log_delta(self, epsilon: float) -> float:
        """Logarithm of the profile of one round, rounded up."""
        points = self.points(np.array([epsilon]))[:, 0]
        wrong = np.minimum(UNIT * (128 + 16 * points * (points + self.ratio)), 1.0)
        there, here = log_ndtr(self.ratio - points), log_ndtr(-points)
        left = -np.expm1(np.minimum(self.ratio * (points - self.ratio / 2) + here - there, 0.0)) + wrong
        logs = np.log(self.chance) + np.log(self.rate) + np.minimum(there + wrong + np.log(left), 0.0)
        return min(float(logsumexp(logs)) + len(logs) * UNIT, 0.0)

    def some(self, kept: NDArray[np.bool_] | slice) -> "Groups":
        """A selection."""
        return Groups(self.chance[kept], self.rate[kept], self.ratio[kept])


def counted(
    n_users: int, lowest_rate: float, highest_rate: float, noise_std: float, most: int = MOST, below: bool = False
) -> Groups:
    """Groups of counts that dominate a round at any rate between two, or are dominated by one (the rates being equal).
    """
    few, many = _ends(n_users, lowest_rate, most), _ends(n_users, highest_rate, most)
    under = np.append(binomial.cdf(few, n_users, lowest_rate), binomial.cdf(many, n_users, highest_rate))
    over = np.append(binomial.sf(few, n_users, lowest_rate), binomial.sf(many, n_users, highest_rate))
    order = np.lexsort((np.where(under <= over, under, -over), under > over))
    under, over, is_few = under[order], over[order], order < len(few)
    chance = np.where(under[:-1] > over[:-1], over[:-1] - over[1:], under[1:] - under[:-1])
    slack = (ROUND + DRIFT * math.sqrt(n_users)) * np.minimum(under[1:], over[:-1])
    first = few[np.maximum(np.cumsum(is_few)[:-1] - 1, 0)] + 1
    last = many[np.minimum(np.cumsum(~is_few)[:-1], len(many) - 1)]
    chance = chance - slack if below else chance + slack
    kept = (chance > 0) & (last >= first) & (np.minimum(under[1:], over[:-1]) > 0)
    first, last = first[kept], last[kept]
    share, noisy = (first, last) if below else (last, first)
    with np.errstate(over="ignore"):
        ratio = 2 / (np.sqrt(noisy) * noise_std)
    return Groups(chance[kept], share / n_users, np.clip(ratio, 0 if below else LEAST_RATIO, HUGE))


def _ends(n_users: int, rate: float, most: int) -> Wholes:
    """Last counts of groups, 0 first: all that are likely, or so many in equal steps, then doubling."""
    first, last = window(n_users, rate, FAINT, FAINT)
    first = max(first, 1)
    found = {0, n_users, *np.linspace(first - 1, last, min(last - first + 1, most) + 1).astype(np.int64).tolist()}
    while first > 1:
        first //= 2
        found.add(first)
    while last < n_users:
        last = min(2 * last, n_users)
        found.add(last)
    return np.array(sorted(found))


def distributed_cells(n_users: int, checkin_rate: float, noise_std: float, lowest_rate: float | None = None) -> Cells:
    """Cells of a pair (P, Q) that dominates one round in one direction; rates down to ``lowest_rate``, if given."""
    found = counted(n_users, checkin_rate if lowest_rate is None else lowest_rate, checkin_rate, noise_std)
    quiet = found.ratio > LARGEST_RATIO
    parts = [_disclosing(found.some(quiet)), *(cells for cells, _ in _halves(found.some(~quiet)))]
    rest = max(0.0, 1 - sum(float((part.base + part.gain).sum()) for part in parts))
    return _joined([*parts, Cells(*np.array([[0.0], [0.0], [rest], [0.0], [ROUND / 10]]))])


def occurring_cells(n_users: int, checkin_rate: float, noise_std: float) -> Cells:
    """Cells of a pair that the records (-1, ..., -1, +1) and (-1, ..., -1) dominate: for bounds from below."""
    found = counted(n_users, checkin_rate, checkin_rate, noise_std, below=True)
    halves = _halves(Groups(found.chance, found.rate, np.minimum(found.ratio, LARGEST_RATIO)))
    nobody = float(binomial.pmf(0, n_users, checkin_rate)) * (1 - ROUND)
    nothing = Cells(*np.array([[0.0], [0.0], [nobody], [0.0], [0.0]]))
    return _joined([*(_understated(*half) for half in halves), nothing])


def _understated(cells: Cells, doubt: Reals) -> Cells:
    """Cells whose masses are not too large, each with its mean loss; those of hardly any mass are left out."""
    kept = np.minimum(cells.base, cells.base + cells.gain) > np.maximum(FLOOR, 8 * doubt)
    share = 1 - 4 * doubt[kept] / cells.base[kept]
    base, gain, error = share * cells.base[kept], share * cells.gain[kept], cells.error[kept]
    losses = np.log1p(gain / base)
    return Cells(losses, losses, base, gain, error)


def _disclosing(found: Groups) -> Cells:
    """Hardly any noise: whether the client is in, and with which record, is seen."""
    seen = float(found.chance @ found.rate) * (1 + ROUND) + FLOOR
    with np.errstate(divide="ignore"):
        losses = np.append(np.log1p(-found.rate), math.inf)
    mass = found.chance * found.rate
    return Cells(losses, losses, np.append(found.chance, 0.0), np.append(-mass, seen), ROUND * np.append(mass, 0.0))


def _halves(found: Groups) -> list[tuple[Cells, Reals]]:
    """Cells with losses above 0 and below, and how wrong Q's masses are."""
    return [_half(found, _knots(found, side), side) for side in (1, -1)] if len(found.chance) else []


def _knots(found: Groups, side: int) -> Reals:
    """Losses of one sign, from 0 to where no group has any mass: in equal steps first, in equal ratios then."""
    ends = found.losses(np.minimum(side * REACH + (found.ratio if side > 0 else 0.0), REACH + found.ratio))
    usual = float(found.chance @ np.abs(found.losses(found.ratio / 2 + side)) / found.chance.sum())
    reach = math.asinh(float(np.abs(ends).max()) / usual)
    return side * usual * np.sinh(np.linspace(0, reach, math.ceil(reach / SPACING) + 1))


def _half(found: Groups, knots: Reals, side: int) -> tuple[Cells, Reals]:
    """Cells between losses of one sign, ascending in size, from the tails of all groups; how wrong Q's masses are."""
    base, gain, doubt, error = np.zeros((4, len(knots)))
    for start in range(0, len(found.chance), TOGETHER):
        some = found.some(slice(start, start + TOGETHER))
        points = some.points(knots)
        here, there = ndtr(-side * points), ndtr(side * (some.ratio[:, None] - points))
        far = np.minimum(np.abs(points), 2 * REACH)
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
    low, high = (knots[:-1], knots[1:]) if side > 0 else (knots[1:] * (1 + WIDER), knots[:-1] * (1 - WIDER))
    return Cells(low, high, base, gain, error), doubt


def _joined(parts: list[Cells]) -> Cells:
    """All cells of several lists."""
    names = ("low", "high", "base", "gain", "error")
    return Cells(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


ROUTES = ("thm-4", "eq-11", "rdp-exact", "pld-exact", "pld")
MANY = 2**15
CLOSE = 1e-3
GROUPED = 1e-4
FARTHEST = 21.0
STEPS = 60
MOST_PARTS = 64


def _gives(arguments: Mapping[str, Any]) -> Gives:
    """What occurs need not be the worst that may occur, but in a single round."""
    return Gives.VALUE if arguments.get("route") == "pld-exact" and arguments.get("rounds") != 1 else Gives.UPPER


@states(
    "checkin",
    "distributed",
    item="Section 4, Theorem 4 and Equation 11, composed over rounds; and the exact pair",
    gives=_gives,
    words={"route": ROUTES},
)
def distributed(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str
) -> Certified:
    """Epsilon after all rounds of distributed check-in with Gaussian noise (upper; ``pld-exact`` a value).

    Parameters
    ----------
    checkin_rate : float in [0, 1]
        Chance that a client sends in a round.
    noise_std : float, positive
        Standard deviation of each client's own noise; its record has norm at most 1.
    delta : float in [0, 1]
        Of the whole.
    route : str
        ``thm-4``, ``eq-11``: Rényi bounds of the document, with the true inner rate; ``rdp-exact``: the Rényi
        divergence of the pair of data sets that is the worst as far as is known (for moments that is not proven).
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


def distributed_rounds(
    n_users: int,
    checkin_rate: float,
    noise_std: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
    dropout: float = 0.0,
) -> Certified:
    """Guarantee after ``rounds`` rounds, whatever is sent in the light of earlier rounds (upper, both directions).

    Parameters
    ----------
    n_users, checkin_rate, noise_std, rounds
        As for :func:`distributed`.
    epsilon, delta : float
        Exactly one, of the whole; the answer is the other one.
    dropout : float in [0, 1)
        Those who check in fail to send with this chance *at most*, the same for all.

    Returns
    -------
    Certified
        ``uncertainty`` estimates what grids add; it is on the safe side.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, dropout=dropout)
    lowest = effective_rate(checkin_rate, dropout)
    if given["rounds"] > 1:
        return distributed_schedule(n_users, [(checkin_rate, rounds)], noise_std, epsilon, delta, dropout)
    _check_rest(noise_std, epsilon, delta)
    found = counted(given["n_users"], lowest, given["checkin_rate"], noise_std, MANY)
    if checkin_rate == 0:
        return Certified(0.0, 0.0)
    if delta is None:
        value = probability(found.log_delta(float(epsilon or 0)))
        return Certified(value, GROUPED * value)
    value = smallest_epsilon(found.log_delta, delta, math.inf)
    return Certified(value, GROUPED * value if math.isfinite(value) else 0.0)


def distributed_schedule(
    n_users: int,
    schedule: Sequence[tuple[float, int]],
    noise_std: float,
    epsilon: float | None = None,
    delta: float | None = None,
    dropout: float = 0.0,
) -> Certified:
    """Guarantee where the rate changes over time (upper, both directions).

    Parameters
    ----------
    schedule : sequence of (float in [0, 1], int of at least 1)
        Check-in rates, each with its number of rounds; at most 64.  The order does not matter.
    n_users, noise_std, epsilon, delta, dropout
        As for :func:`distributed_rounds`.
    """
    if not 1 <= len(schedule) <= MOST_PARTS:
        raise DomainError(f"schedule must hold 1 to {MOST_PARTS} rates with their rounds, got {len(schedule)}")
    parts = [tuple(check(checkin_rate=rate, rounds=rounds).values()) for rate, rounds in schedule]
    n_users = check(n_users=n_users)["n_users"]
    _check_rest(noise_std, epsilon, delta)
    cells = [
        (both_orders(distributed_cells(n_users, rate, noise_std, effective_rate(rate, dropout))), rounds)
        for rate, rounds in parts
        if rate > 0
    ]
    return _composed(cells, epsilon, delta)


def _composed(cells: Parts, epsilon: float | None, delta: float | None) -> Certified:
    """Rounds in which somebody may send; losses have no largest one."""
    if not cells or delta == 0:
        return Certified(math.inf if cells else 0.0, 0.0)
    if all(
        float((one.base + one.gain)[np.isfinite(one.high)].sum()) < GROUPED for one, _ in cells
    ):  # hardly any noise, and hardly anybody away
        return Certified(1.0, GROUPED) if delta is None else Certified(math.inf if delta < 1 else 0.0, 0.0)
    return composed(cells, epsilon, delta)


def distributed_rounds_lower(
    n_users: int,
    checkin_rate: float,
    noise_std: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> float:
    """What ``rounds`` rounds cost at least, by records that are all alike but for one opposite (lower).

    Parameters
    ----------
    n_users, checkin_rate, noise_std, rounds, epsilon, delta
        As for :func:`distributed_rounds`.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds)
    _check_rest(noise_std, epsilon, delta)
    cells = occurring_cells(given["n_users"], given["checkin_rate"], noise_std)
    return composed_below([(cells, given["rounds"])], epsilon, delta)


def effective_rate(checkin_rate: float, dropout: float) -> float:
    """The rate at which clients send, if those who check in drop out with a known chance (a value)."""
    given = check(checkin_rate=checkin_rate, dropout=dropout)
    return float(given["checkin_rate"] * (1 - given["dropout"]))


def distributed_noise(
    n_users: int, checkin_rate: float, rounds: int, epsilon: float, delta: float, dropout: float = 0.0
) -> float:
    """Least noise of each client that gives (epsilon, delta): never too small, about a thousandth too large.

    :func:`distributed_rounds` with the answer and ``delta`` gives at most ``epsilon``.

    Parameters
    ----------
    n_users, checkin_rate, rounds, dropout
        As for :func:`distributed_rounds`.
    epsilon : float, above 0
    delta : float in (0, 1)

    Returns
    -------
    float
        Standard deviation; ``inf`` where none will do, 0 where none is needed.
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, epsilon=epsilon, delta=delta)
    if given["epsilon"] == 0 or not 0 < given["delta"] < 1:
        raise DomainError(f"epsilon must be above 0 and delta in (0, 1) for Gaussian noise, got {epsilon} and {delta}")
    if checkin_rate * rounds <= delta:
        return 0.0

    def log_excess(noise: float) -> float:
        found = distributed_rounds(n_users, checkin_rate, noise, rounds, delta=delta, dropout=dropout)
        return math.log(max(found, 1e-300) / epsilon)

    return _least(log_excess, 2 * math.sqrt(rounds * checkin_rate / n_users) * analytic_noise_std(1.0, epsilon, delta))


def _least(log_excess: Callable[[float], float], guess: float) -> float:
    """Least argument found at which a function that falls about like 1/x has a logarithm of at most 0."""
    short, enough, trial, slope = -math.inf, math.inf, math.log(guess), -1.0
    last: tuple[float, float] | None = None
    for _ in range(STEPS):
        value = log_excess(math.exp(trial))
        short, enough = (trial, enough) if value > 0 else (short, trial)
        if enough - short <= CLOSE or abs(trial) > FARTHEST:
            break
        if last is not None and math.isfinite(value - last[1]) and value != last[1]:
            slope = min((value - last[1]) / (trial - last[0]), -0.01)
        last = (trial, value) if math.isfinite(value) else None
        # Aimed a little to the side on which nothing is near yet.
        aim = trial - value / slope
        aim += 0.4 * CLOSE if enough - aim > CLOSE / 2 else -0.4 * CLOSE
        inside = short < aim < enough and abs(aim - trial) < 3
        trial = aim if inside else _halfway(short, enough, trial)
    return math.exp(enough)


def _halfway(short: float, enough: float, here: float) -> float:
    """The middle of the bracket, or a step to its open side."""
    if math.isinf(short) or math.isinf(enough):
        return here + (2.0 if math.isinf(enough) else -2.0)
    return (short + enough) / 2


def _check_rest(noise_std: float, epsilon: float | None, delta: float | None) -> None:
    if (epsilon is None) == (delta is None):
        raise DomainError("exactly one of epsilon and delta must be given")
    check(noise_std=noise_std, **({"epsilon": epsilon} if delta is None else {"delta": delta}))
