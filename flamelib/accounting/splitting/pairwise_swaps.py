r"""Split-and-mix where few users differ: what one swap of two users tells, and one user's value behind Pólya shares.

A swap can be seen only where its two users lie in different components of the graph of two ways to deal the messages
out, on either side of it; with i users in a component, that has the chance :math:`1-\sum\frac{i(i-1)}{n(n-1)}` on each
side.  So one of n users in a crowd is some n/2 times better hidden than all of them together.  Up to 128 users the
second moment is computed by the component of the first user; for more it is bounded by the largest component.
Proofs: book, chapter on cloak aggregation, "One swap among all".
"""

import math

import numpy as np

from flamelib.accounting.splitting import n_user_bounds
from flamelib.accounting.splitting.n_user_bounds import Ends
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import MARGIN, logaddexp, probability
from flamelib.core.search import least_whole
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError

MAX_LISTED = 128  # largest number of users whose components are all listed
MAX_OUTSIDE = MAX_LISTED // 2  # largest number of users outside the largest component that is summed
LOG_WEIGHT_GRID = tuple(math.log(2) * j for j in range(1, 41))  # grid of log s


@states("cloak", "own-4", item="this project: all users, total variation of one swap", gives="upper",
        rests_on="proven", adjacency="sum-preserving")  # fmt: skip
def swap_distance(modulus: int, n_messages: int, n_users: int) -> Certified:
    r"""Total variation between the shuffled shares of two data sets of equal sum that differ in two users (upper).

    .. math:: \frac12\sqrt{2\,E\Big[N^{c-1}\Big(1-\sum\frac{i(i-1)}{n(n-1)}\Big)^2\Big]}, \quad\text{at most 1},

    over the components of the random graph of ``cloak:own-3``, c of them, with i users of either side each.  Data sets
    t swaps apart are within t times as much.  ``uncertainty`` is how much smaller the formula's value may be; where
    the bound for many users is silent, the answer is that for 128 of them, the others' shares being given away.

    Source: this project; proven in the chapter on cloak aggregation.

    Examples
    --------
    >>> f"{swap_distance(30_000_001, 8, 1000):.4e}"
    '3.8040e-10'
    """
    if n_messages == 1:
        return Certified(1.0, 0.0)
    n_messages = min(n_messages, n_user_bounds.MAX_MESSAGES)
    few = _by_components(modulus, n_messages, min(n_users, MAX_LISTED))
    many = _by_largest(modulus, n_messages, n_users) if n_users > MAX_LISTED else few
    low, high = many.low, min(few.high, many.high)
    return Certified(_distance(high), _distance(high) - _distance(min(low, high)))


@states("cloak", "own-6", item="this project: one user's value behind Pólya shares of all", gives="upper",
        rests_on="proven", adjacency="replace-one")  # fmt: skip
def shares_delta(modulus: int, n_messages: int, n_users: int, scale: int) -> Certified:
    r"""What shuffled shares add to the delta of a sum with Pólya noise, one user's value being changed (upper).

    .. math:: \big(H_{\lfloor k/2\rfloor}+H_{\lceil k/2\rceil}\big)\,\tau, \qquad H_d = \sum_{t\le d}\tfrac1t,

    at most 1, for the :math:`\tau` of ``cloak:own-4`` and a value that moves by up to the ``scale`` k.  The shares of
    all users together make two-sided geometric noise, and the change of one value changes the noise of few users.  Of
    several colluding users, subtract their number from ``n_users``, in the shape of the noise too.

    Source: this project; proven in the chapter on cloak aggregation.

    Examples
    --------
    >>> f"{shares_delta(2**16, 7, 1000, 32):.2e}"
    '6.07e-09'
    """
    one = swap_distance(modulus, n_messages, n_users)
    swaps = (_harmonic(scale // 2) + _harmonic(scale - scale // 2)) * (1 + MARGIN)
    return Certified(min(1.0, swaps * one), min(1.0, swaps * one.uncertainty))


def least_messages_behind(delta: float, n_users: int, modulus: int, scale: int) -> int:
    """Messages per user with which :func:`shares_delta` is at most delta (upper, never too few)."""

    def hidden(n_messages: int) -> bool:
        return shares_delta(modulus, n_messages, n_users, scale) <= delta

    low = high = 2
    while not hidden(high):
        if high == n_user_bounds.MAX_MESSAGES:
            raise DomainError(f"delta must be within reach of {n_user_bounds.MAX_MESSAGES:,} messages, got {delta}")
        low, high = high + 1, min(2 * high, n_user_bounds.MAX_MESSAGES)
    return least_whole(hidden, low, high)


def _harmonic(count: int) -> float:
    r"""The sum of :math:`1, \frac12, \dots`, from above."""
    return math.log(count) + 0.5772156649015329 + 0.5 / count if count else 0.0  # Euler's constant


def _distance(log_moment: float) -> float:
    return probability((log_moment - math.log(2) + MARGIN) / 2)


def _by_components(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Logarithm of the moment, by the component of the first user and whether the second is in another one."""
    found = n_user_bounds.excesses(modulus, n_messages, n_users)
    if found is None:
        return Ends(-math.inf, math.inf)
    log_excess, _, error = found
    k = np.arange(n_users + 1.0)
    log_f, unit = n_user_bounds.log_coefficients(n_messages, n_users)
    colored, log_modulus = np.logaddexp(0.0, log_excess), math.log(modulus)
    connected, apart = np.ones(n_users + 1), np.full(n_users + 1, -np.inf)
    for n in range(2, n_users + 1):
        i = k[1:n]
        log_v = log_f[1:n] + log_f[n - 1 : 0 : -1] - log_f[n]
        connected[n] = max(1 - float(np.exp(log_v) @ (connected[1:n] * i / n)), 0.0)
        left, rest = np.log(i / n * (n - i) / (n - 1)), colored[n - 1 : 0 : -1]
        with np.errstate(divide="ignore"):
            first = log_modulus + log_v + left + np.log(connected[1:n])
            neither = np.log((n - i) * (n - i - 1) / n / (n - 1)) + apart[n - 1 : 0 : -1]
        apart[n] = _log_sum(first + rest)
    log_moment = _log_sum(first + np.logaddexp(math.log(2) + left + rest, neither))
    slack = 4 * error + 16 * n_users * unit
    return Ends(log_moment - slack, log_moment + slack)


def _by_largest(modulus: int, n_messages: int, n_users: int) -> Ends:
    """The same from above by the users outside the largest component, and without one of more than half of them."""
    found = n_user_bounds.excesses(modulus, n_messages, MAX_OUTSIDE) if n_messages > 2 else None
    if found is None:
        return Ends(-math.inf, math.inf)
    log_excess, _, error = found
    half, log_modulus = n_users // 2 + 1, math.log(modulus)
    first = [n_user_bounds.log_ratio(b, n_messages) for b in range(MAX_OUTSIDE)]
    log_v = np.cumsum([first[b] - n_user_bounds.log_ratio(n_users - 1 - b, n_messages) for b in range(MAX_OUTSIDE)])
    b = np.arange(1.0, MAX_OUTSIDE + 1)
    seen = b * (2 * float(n_users) - b - 1) / n_users / (n_users - 1)
    terms = log_modulus + log_v + np.logaddexp(0.0, log_excess[1:]) + 2 * np.log(seen)
    slack = 2 * error + n_user_bounds.RTOL_LOG * (
        MAX_OUTSIDE * (first[-1] + n_user_bounds.log_ratio(n_users - 1, n_messages)) + log_modulus
    )
    more = _many_outside(modulus, n_messages, n_users, first, half)
    none = n_user_bounds.no_majority(modulus, n_messages, n_users, first[:3])
    return Ends(float(terms[0]) - slack, logaddexp(_log_sum(terms) + slack, logaddexp(more, none)))


def _many_outside(modulus: int, n_messages: int, n_users: int, first: list[float], half: int) -> float:
    """Logarithm of what largest components with more than ``MAX_OUTSIDE`` users outside give, each counted s times."""
    u = np.cumsum([first[a] - n_user_bounds.log_ratio(half + a, n_messages) for a in range(3)])
    largest = n_users // 2
    parts = [n_user_bounds.log_coefficient(size, n_messages) for size in (largest, half, largest + half)]
    log_u = np.append(u, parts[0] + parts[1] - parts[2] + 2 * n_user_bounds.RTOL_LOG * parts[2])
    slack = 3 * n_user_bounds.RTOL_LOG * (first[2] + n_user_bounds.log_ratio(half + 2, n_messages))
    bounds = [math.inf]
    for log_s in LOG_WEIGHT_GRID:
        one, two, three, last = (log_u + np.array([1.0, 2.0, 3.0, largest]) * log_s).tolist()
        grown = math.log(modulus) + slack + logaddexp(logaddexp(one, two), math.log(largest) + max(three, last))
        if grown < math.log(MAX_OUTSIDE):
            bounds.append(math.exp(grown) - (MAX_OUTSIDE + 1) * log_s)
    return min(bounds)


def _log_sum(logs: Reals) -> float:
    return float(np.logaddexp.reduce(logs))
