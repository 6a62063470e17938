r"""Split-and-mix where few users differ: total variation of one swap of two users, and of one value with Pólya noise.

A swap changes the distribution only if its two users are in different components of the graph of two assignments of
messages, on both sides; with i users in a component, this has probability :math:`1-\sum\frac{i(i-1)}{n(n-1)}` on each
side, so that the distance is smaller by a factor of some n/2 than for all users.  Up to 128 users the second moment is
computed by the component of the first user; for more it is bounded by the largest component.
Proofs: book, chapter on cloak aggregation, "One swap among all users".
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

MAX_LISTED = 128  # largest number of users for the exact sum over components
MAX_OUTSIDE = MAX_LISTED // 2  # largest number of users outside the largest component that is summed
LOG_WEIGHT_GRID = tuple(math.log(2) * j for j in range(1, 41))  # grid of the Chernoff weight log s


@states("cloak", "own-4", item="this project: all users, total variation of one swap", gives="upper",
        rests_on="proven", adjacency="sum-preserving")  # fmt: skip
def swap_distance(modulus: int, n_messages: int, n_users: int) -> Certified:
    r"""Total variation between the shuffled shares of two data sets of equal sum that differ in two users (upper).

    .. math:: \frac12\sqrt{2\,E\Big[N^{c-1}\Big(1-\sum\frac{i(i-1)}{n(n-1)}\Big)^2\Big]}, \quad\text{at most 1},

    over the c components of the random graph of ``cloak:own-3``, with i users of either side each.  For data sets t
    swaps apart, t times as much.  ``uncertainty`` bounds the distance to the formula's value; where the bound for many
    users fails, the answer is that for 128 of them, the others' shares being revealed.

    Source: this project; proven in the chapter on cloak aggregation.

    Examples
    --------
    >>> f"{swap_distance(30_000_001, 8, 1000):.4e}"
    '3.8040e-10'
    """
    if n_messages == 1:
        return Certified(1.0, 0.0)
    n_messages = min(n_messages, n_user_bounds.MAX_MESSAGES)
    by_components = _by_components(modulus, n_messages, min(n_users, MAX_LISTED))
    by_largest = _by_largest(modulus, n_messages, n_users) if n_users > MAX_LISTED else by_components
    lower, upper = by_largest.low, min(by_components.high, by_largest.high)
    return Certified(_distance(upper), _distance(upper) - _distance(min(lower, upper)))


@states("cloak", "own-6", item="this project: one user's value behind Pólya shares of all", gives="upper",
        rests_on="proven", adjacency="replace-one")  # fmt: skip
def shares_delta(modulus: int, n_messages: int, n_users: int, scale: int) -> Certified:
    r"""Delta that shuffled shares add to that of a sum with Pólya noise, one user's value being replaced (upper).

    .. math:: \big(H_{\lfloor k/2\rfloor}+H_{\lceil k/2\rceil}\big)\,\tau, \qquad H_d = \sum_{t\le d}\tfrac1t,

    at most 1, for the :math:`\tau` of ``cloak:own-4`` and a value that changes by up to the ``scale`` k.  The noise of
    all users is two-sided geometric in total, and the change of one value is coupled to that of few users' noise.
    Subtract the number of colluding users from ``n_users``, also in the shape of the noise.

    Source: this project; proven in the chapter on cloak aggregation.

    Examples
    --------
    >>> f"{shares_delta(2**16, 7, 1000, 32):.2e}"
    '6.07e-09'
    """
    swap = swap_distance(modulus, n_messages, n_users)
    swaps = (_harmonic(scale // 2) + _harmonic(scale - scale // 2)) * (1 + MARGIN)
    return Certified(min(1.0, swaps * swap), min(1.0, swaps * swap.uncertainty))


def least_messages_behind(delta: float, n_users: int, modulus: int, scale: int) -> int:
    """Messages per user with which :func:`shares_delta` is at most delta (upper, never too few)."""

    def sufficient(n_messages: int) -> bool:
        return shares_delta(modulus, n_messages, n_users, scale) <= delta

    lower = upper = 2
    while not sufficient(upper):
        if upper == n_user_bounds.MAX_MESSAGES:
            raise DomainError(f"delta must be within reach of {n_user_bounds.MAX_MESSAGES:,} messages, got {delta}")
        lower, upper = upper + 1, min(2 * upper, n_user_bounds.MAX_MESSAGES)
    return least_whole(sufficient, lower, upper)


def _harmonic(count: int) -> float:
    r"""Harmonic number :math:`1 + \frac12 + \dots` (upper)."""
    return math.log(count) + 0.5772156649015329 + 0.5 / count if count else 0.0  # Euler's constant


def _distance(log_moment: float) -> float:
    return probability((log_moment - math.log(2) + MARGIN) / 2)


def _by_components(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Bounds of the logarithm of the moment, by the component of the first user and that of the second."""
    result = n_user_bounds.excesses(modulus, n_messages, n_users)
    if result is None:
        return Ends(-math.inf, math.inf)
    log_excess, _, error = result
    k = np.arange(n_users + 1.0)
    log_f, unit = n_user_bounds.log_coefficients(n_messages, n_users)
    log_coloured, log_modulus = np.logaddexp(0.0, log_excess), math.log(modulus)
    connected, apart = np.ones(n_users + 1), np.full(n_users + 1, -np.inf)
    for n in range(2, n_users + 1):
        i = k[1:n]
        log_v = log_f[1:n] + log_f[n - 1 : 0 : -1] - log_f[n]
        connected[n] = max(1 - float(np.exp(log_v) @ (connected[1:n] * i / n)), 0.0)
        log_split, log_coloured_rest = np.log(i / n * (n - i) / (n - 1)), log_coloured[n - 1 : 0 : -1]
        with np.errstate(divide="ignore"):
            first = log_modulus + log_v + log_split + np.log(connected[1:n])
            neither = np.log((n - i) * (n - i - 1) / n / (n - 1)) + apart[n - 1 : 0 : -1]
        apart[n] = _log_sum(first + log_coloured_rest)
    log_moment = _log_sum(first + np.logaddexp(math.log(2) + log_split + log_coloured_rest, neither))
    slack = 4 * error + 16 * n_users * unit
    return Ends(log_moment - slack, log_moment + slack)


def _by_largest(modulus: int, n_messages: int, n_users: int) -> Ends:
    """Bounds of the logarithm of the moment by the number of users outside the largest component."""
    result = n_user_bounds.excesses(modulus, n_messages, MAX_OUTSIDE) if n_messages > 2 else None
    if result is None:
        return Ends(-math.inf, math.inf)
    log_excess, _, error = result
    half, log_modulus = n_users // 2 + 1, math.log(modulus)
    first = [n_user_bounds.log_ratio(b, n_messages) for b in range(MAX_OUTSIDE)]
    log_v = np.cumsum([first[b] - n_user_bounds.log_ratio(n_users - 1 - b, n_messages) for b in range(MAX_OUTSIDE)])
    b = np.arange(1.0, MAX_OUTSIDE + 1)
    visible = b * (2 * float(n_users) - b - 1) / n_users / (n_users - 1)
    terms = log_modulus + log_v + np.logaddexp(0.0, log_excess[1:]) + 2 * np.log(visible)
    slack = 2 * error + n_user_bounds.RTOL_LOG * (
        MAX_OUTSIDE * (first[-1] + n_user_bounds.log_ratio(n_users - 1, n_messages)) + log_modulus
    )
    outside = _many_outside(modulus, n_messages, n_users, first, half)
    none = n_user_bounds.no_majority(modulus, n_messages, n_users, first[:3])
    return Ends(float(terms[0]) - slack, logaddexp(_log_sum(terms) + slack, logaddexp(outside, none)))


def _many_outside(modulus: int, n_messages: int, n_users: int, first: list[float], half: int) -> float:
    """Log contribution of more than ``MAX_OUTSIDE`` users outside, by Chernoff's bound with weights s (upper)."""
    u = np.cumsum([first[a] - n_user_bounds.log_ratio(half + a, n_messages) for a in range(3)])
    largest = n_users // 2
    parts = [n_user_bounds.log_coefficient(size, n_messages) for size in (largest, half, largest + half)]
    log_u = np.append(u, parts[0] + parts[1] - parts[2] + 2 * n_user_bounds.RTOL_LOG * parts[2])
    slack = 3 * n_user_bounds.RTOL_LOG * (first[2] + n_user_bounds.log_ratio(half + 2, n_messages))
    bounds = [math.inf]
    for log_s in LOG_WEIGHT_GRID:
        one, two, three, last = (log_u + np.array([1.0, 2.0, 3.0, largest]) * log_s).tolist()
        log_sum = math.log(modulus) + slack + logaddexp(logaddexp(one, two), math.log(largest) + max(three, last))
        if log_sum < math.log(MAX_OUTSIDE):
            bounds.append(math.exp(log_sum) - (MAX_OUTSIDE + 1) * log_s)
    return min(bounds)


def _log_sum(logs: Reals) -> float:
    return float(np.logaddexp.reduce(logs))
