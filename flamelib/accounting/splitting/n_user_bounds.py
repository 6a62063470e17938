r"""Split-and-mix among many users: how far apart the shuffled shares of two data sets of equal sum can be.

Two independent ways to deal nm messages out to n users, m each, make a bipartite graph of n + n users; c is the number
of its components and :math:`E_n = E[N^{c-1}]-1`.  The total variation distance is at most
:math:`\sqrt{N E_n/(2(N-1))}`.  With :math:`f_k = (km)!/(k!)^2` and
:math:`v(n,k) = f_kf_{n-k}/f_n = \binom nk^2/\binom{nm}{km}`, E has a **recursion**

.. math:: E_n = \sum_{k=1}^{n-1}v(n,k)\Big(\frac{N-1}2+\Big(\frac{k(N+1)}n-1\Big)E_{n-k}\Big), \qquad E_1 = 0,

and for :math:`m\ge3` a **bracket**, sums over colourings of the components in which one colour has most users.  For
two messages the components are cycles, :math:`E_n = \prod_{j=2}^n(1+\frac{N-1}{2j-1})-1`.  As multinomial coefficients
grow with m, E falls.

Logarithms computed from factorials get 64 units of round-off of the largest of them as their slack, which is added on
the safe side and told as the uncertainty; the recursion carries the relative error of the earlier terms along.

Proofs: book, chapter on cloak aggregation, "All at once", with both in "How the bound is computed".
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import UNIT, exp_or_inf, log_expm1, logaddexp, probability
from flamelib.core.search import least_whole
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, honest

RTOL_LOG = 64 * UNIT  # error of a logarithm made of factorials, relative to the largest of them
MAX_USERS_RECURSION = 10_000  # largest number of users of the recursion: more take seconds
MAX_MESSAGES = 100_000  # largest number of messages that is used: more hide no less
N_END_TERMS = 128  # terms of the recursion that are added up from either end


class Ends(NamedTuple):
    """Logarithms between which a number lies."""

    low: float
    high: float

    @property
    def telling(self) -> bool:
        """Whether they are close, or both so large that the distance is bounded by 1 anyway."""
        # Width of a bracket, as a logarithm, that needs no recursion.
        return self.high - self.low <= 1e-9 or self.low > math.log(2)


@states("cloak", "own-3", item="this project: all users, total variation", gives="upper", rests_on="proven",
        adjacency="sum-preserving")  # fmt: skip
def users_distance(modulus: int, n_messages: int, n_users: int) -> Certified:
    r"""Total variation between the shuffled shares of two data sets of equal sum (upper).

    .. math:: \sqrt{\frac{N\,E}{2(N-1)}}, \qquad E = E[N^{c-1}]-1, \quad\text{at most 1}

    Where the bracket leaves E open by more than 1e-9 of itself it is computed by the recursion up to 10,000 users;
    beyond, the upper end of the bracket is the answer.  ``uncertainty`` is how much smaller the formula's value may be.
    Beyond 100,000 messages the answer is that for 100,000, which is larger.  Of several colluding users, subtract their
    number from ``n_users``.

    Source: this project; proven in the chapter on cloak aggregation.

    Examples
    --------
    >>> round(-math.log2(users_distance(2**32, 12, 1000)), 3)
    41.417
    """
    ends = _to_distance(_log_excess(modulus, min(n_messages, MAX_MESSAGES), n_users), modulus)
    high = probability(ends.high)
    return Certified(high, high - math.exp(min(ends.low, 0.0)))


def least_messages(security_bits: float, n_users: int, modulus: int, colluding: int = 0) -> int:
    r"""Messages per user with which data sets of equal sum are within :math:`2^{-\sigma}` (upper, never too few).

    The least number by :func:`users_distance` for ``security_bits`` :math:`\sigma`; refused beyond 100,000.
    """
    security_bits, n_users, modulus, colluding = check(
        security_bits=security_bits, n_users=n_users, modulus=modulus, colluding=colluding
    ).values()
    users, target = honest(n_users, colluding), -security_bits * math.log(2)
    if not _within(target, modulus, MAX_MESSAGES, users):
        raise DomainError(f"security_bits must be within reach of {MAX_MESSAGES:,} messages, got {security_bits}")
    return least_whole(lambda m: _within(target, modulus, m, users), 1, MAX_MESSAGES)


def _within(target: float, modulus: int, n_messages: int, n_users: int) -> bool:
    """Whether the logarithm of the distance is at most the target; the recursion is asked where the bracket is not."""
    ends = _to_distance(_bracket(modulus, n_messages, n_users), modulus)
    if ends.low <= target < ends.high:
        ends = _to_distance(_log_excess(modulus, n_messages, n_users), modulus)
    return ends.high <= target


def _to_distance(excess: Ends, modulus: int) -> Ends:
    shift = math.log(modulus) - math.log(modulus - 1) - math.log(2)
    return Ends((excess.low + shift - RTOL_LOG) / 2, (excess.high + shift + RTOL_LOG) / 2)


def _log_excess(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Logarithm of E by whatever is good enough."""
    if n_messages == 2:
        return _two_messages(modulus, n_users)
    ends = _bracket(modulus, n_messages, n_users)
    if ends.telling or n_users > MAX_USERS_RECURSION:
        return ends
    found = _recursion(modulus, n_messages, n_users)
    return Ends(max(ends.low, found.low), min(ends.high, found.high))


def _two_messages(modulus: int, n_users: int) -> Ends:
    """The graph is made of cycles, and their number a sum of independent coins; E rises with the number of users."""
    coins = 1 / (2 * np.arange(2.0, min(n_users, MAX_USERS_RECURSION) + 1) - 1)
    grown = float(np.log1p(float(modulus - 1) * coins).sum())
    slack = RTOL_LOG * (1 + 4 * grown)
    return Ends(log_expm1(grown) - slack, log_expm1(grown) + slack if n_users <= MAX_USERS_RECURSION else math.inf)


# --- the recursion ---------------------------------------------------------------------------------------------------


def excesses(modulus: int, n_messages: int, n_users: int) -> tuple[Reals, float, float] | None:
    """Logarithms of E up to this number of users, the error of the last and the largest; none if that is too large."""
    log_f, unit = log_coefficients(n_messages, n_users)
    found, worst, error = np.full(n_users + 1, -np.inf), 0.0, 0.0
    for n in range(2, n_users + 1):
        row = _row(n, modulus, log_f, found)
        error = (unit * (row.started + row.size) + worst * row.size + row.left_out) / row.value
        worst = max(worst, error)
        if not 0 <= worst <= 0.01:  # relative error from which on the recursion is given up
            return None
        found[n] = row.top + math.log(row.value)
    return found, error, worst


def log_coefficients(n_messages: int, n_users: int) -> tuple[Reals, float]:
    """Logarithms of f up to this number of users, and the error of a quotient of them."""
    k = np.arange(n_users + 1.0)
    log_f = gammaln(k * n_messages + 1) - 2 * gammaln(k + 1)
    return log_f, RTOL_LOG * (1 + float(gammaln(n_users * n_messages + 1.0)))


def _recursion(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Logarithm of E, one number of users after the other; the upper end is infinite where round-off takes over."""
    found = excesses(modulus, n_messages, n_users)
    if found is None:
        return Ends(-math.inf, math.inf)
    log_excess, error, _ = found
    return Ends(float(log_excess[-1]) - 2 * error, float(log_excess[-1]) + 2 * error)


class _Row(NamedTuple):
    """E at one number of users in units of ``exp(top)``, and what its errors are measured by."""

    top: float
    started: float
    value: float
    size: float
    left_out: float


def _row(n: int, modulus: int, log_f: Reals, found: Reals) -> _Row:
    """The terms near both ends; those between are no larger than the first of them."""
    k = np.arange(1, n)
    if n > 2 * N_END_TERMS + 1:
        k = np.concatenate([k[:N_END_TERMS], k[-N_END_TERMS:]])
    log_v, log_crowd = log_f[k] + log_f[n - k] - log_f[n], math.log(modulus - 1) - math.log(2)
    log_pulled = log_v + found[n - k]
    top = max(float(log_v[0]) + log_crowd, float(log_pulled.max()))
    reach, pulled = k * (float(modulus + 1) / n), np.exp(log_pulled - top)
    started = float(np.exp(log_v + (log_crowd - top)).sum())
    left_out = 0.0
    if len(k) < n - 1:
        largest = max(0.0, float(found[N_END_TERMS:n].max())) + math.log(modulus + 1)
        left_out = exp_or_inf(float(log_v[N_END_TERMS - 1]) + largest + math.log(2 * n) - top)
    return _Row(top, started, started + float((reach - 1) @ pulled), float((reach + 1) @ pulled), left_out)


# --- the bracket -----------------------------------------------------------------------------------------------------


def _bracket(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Logarithms between which that of E lies: pairs of colours, and all other colourings bounded from above."""
    if n_users < 8:  # number of users below which the recursion alone answers
        return Ends(-math.inf, math.inf)
    half, crowd = n_users // 2 + 1, math.log(modulus - 1)
    first = [log_ratio(k, n_messages) for k in range(3)]
    v1, v2, v3 = np.cumsum([first[k] - log_ratio(n_users - 1 - k, n_messages) for k in range(3)]).tolist()
    slack = RTOL_LOG * (3 * first[2] + 3 * log_ratio(n_users - 1, n_messages) + crowd)
    low = crowd + logaddexp(v1, v2) - slack
    one = first[0] - log_ratio(half, n_messages)
    two = one + first[1] - log_ratio(half + 1, n_messages)
    spread = crowd + logaddexp(one, two + math.log(2))
    if n_messages < 3 or spread > 0:
        return Ends(low, math.inf)
    several = 2 * spread - math.log(2) + math.exp(spread)
    pairs = crowd + logaddexp(logaddexp(v1, v2), v3 + math.log(n_users / 2))
    rest = logaddexp(several + 3 * slack, no_majority(modulus, n_messages, n_users, first))
    return Ends(low, logaddexp(pairs + slack, rest))


def no_majority(modulus: int, n_messages: int, n_users: int, first: list[float]) -> float:
    """Logarithm of what colourings without a majority give at most."""
    # Share of the users at whose ratio x is taken: colourings without a majority have almost no mass there.
    log_x = -log_ratio(round(0.26 * n_users), n_messages)
    powers = np.cumsum([ratio + log_x for ratio in first])
    half = n_users // 2
    largest = max(float(powers[2]), log_coefficient(half, n_messages) + half * log_x)
    others = logaddexp(logaddexp(float(powers[0]), float(powers[1])), math.log(n_users / 2) + largest)
    grown = math.log(modulus) + others
    if grown > 0:
        return math.inf
    whole = -n_users * log_x - log_coefficient(n_users, n_messages)
    slack = RTOL_LOG * (abs(n_users * log_x) + 3 * float(gammaln(n_users * n_messages + 1.0)))
    return math.exp(grown) + whole - math.log(modulus) + slack


def log_coefficient(k: int, n_messages: int) -> float:
    r"""Logarithm of :math:`f_k`."""
    return float(gammaln(k * n_messages + 1.0) - 2 * gammaln(k + 1.0))


def log_ratio(k: int, n_messages: int) -> float:
    """Logarithm of :math:`r(k) = f_{k+1}/f_k`."""
    factors = k * n_messages + np.arange(1.0, n_messages + 1)
    return float(np.log(factors).sum()) - 2 * math.log(k + 1)
