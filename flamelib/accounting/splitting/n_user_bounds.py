r"""Split-and-mix of n users: total variation between the shuffled shares of two data sets of equal sum.

Two independent assignments of nm messages to n users, m each, make a bipartite graph of n + n users; c is the number of
its components and :math:`E_n = E[N^{c-1}]-1`.  The total variation distance is at most
:math:`\sqrt{N E_n/(2(N-1))}`.  With :math:`f_k = (km)!/(k!)^2` and
:math:`v(n,k) = f_kf_{n-k}/f_n = \binom nk^2/\binom{nm}{km}`, E has a **recursion**

.. math:: E_n = \sum_{k=1}^{n-1}v(n,k)\Big(\frac{N-1}2+\Big(\frac{k(N+1)}n-1\Big)E_{n-k}\Big), \qquad E_1 = 0,

and for :math:`m\ge3` a **bracket**, sums over colourings of the components in which one colour has the majority of
users.  For two messages the components are cycles, :math:`E_n = \prod_{j=2}^n(1+\frac{N-1}{2j-1})-1`.  E is
non-increasing in m.

Logarithms computed from factorials have an error of 64 ulps of the largest of them, which is added on the safe side and
reported as the uncertainty; the recursion propagates the relative error of its earlier terms.

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
MAX_MESSAGES = 100_000  # largest number of messages evaluated: E is non-increasing
N_END_TERMS = 128  # terms of the recursion summed at either end


class Ends(NamedTuple):
    """Lower and upper bound of a logarithm."""

    low: float
    high: float

    @property
    def conclusive(self) -> bool:
        """Whether the bracket is narrow, or so high that the distance is bounded by 1 anyway."""
        return self.high - self.low <= 1e-9 or self.low > math.log(2)


@states("cloak", "own-3", item="this project: all users, total variation", gives="upper", rests_on="proven",
        adjacency="sum-preserving")  # fmt: skip
def users_distance(modulus: int, n_messages: int, n_users: int) -> Certified:
    r"""Total variation between the shuffled shares of two data sets of equal sum (upper).

    .. math:: \sqrt{\frac{N\,E}{2(N-1)}}, \qquad E = E[N^{c-1}]-1, \quad\text{at most 1}

    Where the relative width of the bracket exceeds 1e-9, E is computed by the recursion up to 10,000 users; beyond, the
    upper end of the bracket is the answer.  ``uncertainty`` bounds the distance to the formula's value.  Beyond 100,000
    messages the answer is that for 100,000, which is larger.  Subtract the number of colluding users from ``n_users``.

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
    """Whether log distance <= target, by the recursion where the bracket is inconclusive."""
    ends = _to_distance(_bracket(modulus, n_messages, n_users), modulus)
    if ends.low <= target < ends.high:
        ends = _to_distance(_log_excess(modulus, n_messages, n_users), modulus)
    return ends.high <= target


def _to_distance(excess: Ends, modulus: int) -> Ends:
    shift = math.log(modulus) - math.log(modulus - 1) - math.log(2)
    return Ends((excess.low + shift - RTOL_LOG) / 2, (excess.high + shift + RTOL_LOG) / 2)


def _log_excess(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Bounds of log E: closed form for two messages, the bracket if conclusive, else the recursion."""
    if n_messages == 2:
        return _two_messages(modulus, n_users)
    ends = _bracket(modulus, n_messages, n_users)
    if ends.conclusive or n_users > MAX_USERS_RECURSION:
        return ends
    recursion = _recursion(modulus, n_messages, n_users)
    return Ends(max(ends.low, recursion.low), min(ends.high, recursion.high))


def _two_messages(modulus: int, n_users: int) -> Ends:
    """Components are cycles, their number a sum of independent Bernoulli variables; E is increasing in n."""
    odds = 1 / (2 * np.arange(2.0, min(n_users, MAX_USERS_RECURSION) + 1) - 1)
    total = float(np.log1p(float(modulus - 1) * odds).sum())
    slack = RTOL_LOG * (1 + 4 * total)
    return Ends(log_expm1(total) - slack, log_expm1(total) + slack if n_users <= MAX_USERS_RECURSION else math.inf)


# --- the recursion ---------------------------------------------------------------------------------------------------


def excesses(modulus: int, n_messages: int, n_users: int) -> tuple[Reals, float, float] | None:
    """log E_1, ..., log E_n, the error of the last and the largest error; ``None`` if the latter exceeds 0.01."""
    log_f, unit = log_coefficients(n_messages, n_users)
    log_excess, max_error, error = np.full(n_users + 1, -np.inf), 0.0, 0.0
    for n in range(2, n_users + 1):
        row = _row(n, modulus, log_f, log_excess)
        error = (unit * (row.base_sum + row.size) + max_error * row.size + row.omitted) / row.value
        max_error = max(max_error, error)
        if not 0 <= max_error <= 0.01:
            return None
        log_excess[n] = row.top + math.log(row.value)
    return log_excess, error, max_error


def log_coefficients(n_messages: int, n_users: int) -> tuple[Reals, float]:
    """log f_0, ..., log f_n, and the error of the logarithm of a quotient."""
    k = np.arange(n_users + 1.0)
    log_f = gammaln(k * n_messages + 1) - 2 * gammaln(k + 1)
    return log_f, RTOL_LOG * (1 + float(gammaln(n_users * n_messages + 1.0)))


def _recursion(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Bounds of log E by the recursion; infinite where round-off dominates."""
    result = excesses(modulus, n_messages, n_users)
    if result is None:
        return Ends(-math.inf, math.inf)
    log_excess, error, _ = result
    return Ends(float(log_excess[-1]) - 2 * error, float(log_excess[-1]) + 2 * error)


class _Row(NamedTuple):
    """E_n and the sums that bound its errors, in units of ``exp(top)``."""

    top: float
    base_sum: float
    value: float
    size: float
    omitted: float


def _row(n: int, modulus: int, log_f: Reals, log_excess: Reals) -> _Row:
    """Sum of the terms near both ends; the omitted ones are bounded by the first of them."""
    k = np.arange(1, n)
    if n > 2 * N_END_TERMS + 1:
        k = np.concatenate([k[:N_END_TERMS], k[-N_END_TERMS:]])
    log_v, log_colours = log_f[k] + log_f[n - k] - log_f[n], math.log(modulus - 1) - math.log(2)
    log_terms = log_v + log_excess[n - k]
    top = max(float(log_v[0]) + log_colours, float(log_terms.max()))
    weights, terms = k * (float(modulus + 1) / n), np.exp(log_terms - top)
    base_sum = float(np.exp(log_v + (log_colours - top)).sum())
    omitted = 0.0
    if len(k) < n - 1:
        largest = max(0.0, float(log_excess[N_END_TERMS:n].max())) + math.log(modulus + 1)
        omitted = exp_or_inf(float(log_v[N_END_TERMS - 1]) + largest + math.log(2 * n) - top)
    return _Row(top, base_sum, base_sum + float((weights - 1) @ terms), float((weights + 1) @ terms), omitted)


# --- the bracket -----------------------------------------------------------------------------------------------------


def _bracket(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Bounds of log E: two colours with at most three users of one, and an upper bound for all other colourings."""
    if n_users < 8:  # number of users below which the recursion alone answers
        return Ends(-math.inf, math.inf)
    half, log_colours = n_users // 2 + 1, math.log(modulus - 1)
    first = [log_ratio(k, n_messages) for k in range(3)]
    v1, v2, v3 = np.cumsum([first[k] - log_ratio(n_users - 1 - k, n_messages) for k in range(3)]).tolist()
    slack = RTOL_LOG * (3 * first[2] + 3 * log_ratio(n_users - 1, n_messages) + log_colours)
    low = log_colours + logaddexp(v1, v2) - slack
    one = first[0] - log_ratio(half, n_messages)
    two = one + first[1] - log_ratio(half + 1, n_messages)
    spread = log_colours + logaddexp(one, two + math.log(2))
    if n_messages < 3 or spread > 0:
        return Ends(low, math.inf)
    log_others = 2 * spread - math.log(2) + math.exp(spread)
    pairs = log_colours + logaddexp(logaddexp(v1, v2), v3 + math.log(n_users / 2))
    log_rest = logaddexp(log_others + 3 * slack, no_majority(modulus, n_messages, n_users, first))
    return Ends(low, logaddexp(pairs + slack, log_rest))


def no_majority(modulus: int, n_messages: int, n_users: int, first: list[float]) -> float:
    """Logarithm of the contribution of colourings without a majority (upper)."""
    # x at the ratio of 0.26 n users, where the generating function has almost no mass.
    log_x = -log_ratio(round(0.26 * n_users), n_messages)
    powers = np.cumsum([ratio + log_x for ratio in first])
    half = n_users // 2
    largest = max(float(powers[2]), log_coefficient(half, n_messages) + half * log_x)
    others = logaddexp(logaddexp(float(powers[0]), float(powers[1])), math.log(n_users / 2) + largest)
    log_sum = math.log(modulus) + others
    if log_sum > 0:
        return math.inf
    log_total = -n_users * log_x - log_coefficient(n_users, n_messages)
    slack = RTOL_LOG * (abs(n_users * log_x) + 3 * float(gammaln(n_users * n_messages + 1.0)))
    return math.exp(log_sum) + log_total - math.log(modulus) + slack


def log_coefficient(k: int, n_messages: int) -> float:
    r"""Logarithm of :math:`f_k`."""
    return float(gammaln(k * n_messages + 1.0) - 2 * gammaln(k + 1.0))


def log_ratio(k: int, n_messages: int) -> float:
    """Logarithm of :math:`r(k) = f_{k+1}/f_k`."""
    factors = k * n_messages + np.arange(1.0, n_messages + 1)
    return float(np.log(factors).sum()) - 2 * math.log(k + 1)
