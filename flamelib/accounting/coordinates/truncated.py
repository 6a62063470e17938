r"""What SS-Topk gives away where bags are full and reports beyond the padding are dropped at random.

A full bag takes a user's report in the place of another user's, which may say the opposite: it moves twice as far as a
bag of dummies.  The data sets fill as many bags as the others can: f of the victim's k coordinates are one of two
disjoint groups, in the first of which :math:`n_p` others hold the smallest value and the victim the largest, in the
second the reverse; her report survives with probability :math:`s = n_p/(n_p+1)`.  The other c = k - f are as in
:mod:`flamelib.accounting.coordinates.counting`, with the same q.  The analyzer counts the messages above one half:

.. math::
    N &= \mathrm{Bin}(c(n_p-1), \tfrac12) + \mathrm{Bin}(c, q)
       + \mathrm{Bin}(f(n_p-1), 1-q) + \mathrm{Bin}(f, 1-q+s(2q-1)) + \mathrm{Bin}(fn_p, q), \\
    N' &= \mathrm{Bin}(c(n_p-1), \tfrac12) + \mathrm{Bin}(c, 1-q)
       + \mathrm{Bin}(fn_p, 1-q) + \mathrm{Bin}(f(n_p-1), q) + \mathrm{Bin}(f, q-s(2q-1)).

Laws are convolved over windows, all terms positive; what the windows leave out (Hoeffding's inequality) and round-off
are taken off the answer.  Adjacency: one user's vector is replaced.  Proof: book, chapter on FLAME, "Counting".
"""

import math
from collections.abc import Sequence
from functools import reduce
from itertools import starmap

import numpy as np

from flamelib.accounting.coordinates.likelihood_weighted import MAX_EPSILON, weighed_lower
from flamelib.core import binomial
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

MAX_CONVOLVED = 10**6  # largest number of messages: convolutions of as many terms take seconds
RTOL_CONVOLUTION = 1e-10  # relative round-off of a probability after the convolutions, at most


@states(
    "flame", "full-bags", item="SS-Topk with bags that overflow, messages counted", gives="lower", rests_on="proven"
)
def full_bags_lower(
    n_users: int, kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """What a round of SS-Topk gives away where reports beyond the padding are dropped at random (lower bound).

    With ``padded`` users or fewer no bag can overflow, and the answer is that of equal top coordinates.  Of a
    fractional ``kept`` the whole part counts, and there must be three times as many coordinates at least; ``kept *
    padded`` may be 1e6 at most.

    Source: this project, on Liu et al. 2021, Algorithm 3 for SS-Topk.

    Examples
    --------
    >>> round(full_bags_lower(1000, 157, 333, 0.5, delta=5.0118723e-6), 3)
    1.797
    >>> round(full_bags_lower(333, 157, 333, 0.5, delta=5.0118723e-6), 3)
    1.198
    """
    if kept * padded > MAX_CONVOLVED:
        raise DomainError(
            f"kept must be at most {MAX_CONVOLVED / padded:g} here ({MAX_CONVOLVED:g} messages), got {kept!r}"
        )
    pair = _laws(full_bags(n_users, kept, padded), math.floor(kept), padded, epsilon0)
    if epsilon is not None:
        return Certified(_delta(*pair, epsilon), 2 * RTOL_CONVOLUTION)
    return _epsilon(*pair, delta or 0.0)


def full_bags(n_users: int, kept: float, padded: int) -> int:
    """Coordinates of one user that the others can fill, in two disjoint groups of as many (exact)."""
    n_users, kept, padded = check(n_users=n_users, kept=kept, padded=padded).values()
    whole = math.floor(kept)
    return min(whole, (n_users - 1) * whole // (2 * padded)) if n_users > padded else 0


def dropped_lower(
    n_users: int,
    dimension: int,
    kept: float,
    padded: int,
    epsilon0: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> float:
    """What a round of SS-Topk gives away where surplus reports are dropped at random, at any size (lower bound).

    The larger of :func:`full_bags_lower` and of the attack on bags that no more than ``padded`` users fill
    (:func:`~flamelib.accounting.coordinates.likelihood_weighted.weighed_lower`).  The others report as many coordinates
    outside those that are attacked; where there are too few, fewer are attacked.

    Examples
    --------
    >>> round(dropped_lower(1000, 7850, 157, 333, 0.5, delta=5.0118723e-6), 3)
    1.797
    >>> dropped_lower(1000, 10, 10, 20, 0.5, delta=1e-4)  # the others fill every bag
    0.0
    """
    whole = math.floor(kept)
    seen = whole if n_users <= padded else min(whole, dimension - whole)
    full = min(whole, (dimension - whole) // 2, MAX_CONVOLVED // padded)
    found = [0.0]
    if seen > 0:
        found.append(float(weighed_lower(n_users, seen, padded, epsilon0, epsilon, delta)))
    if full > 0:
        found.append(float(full_bags_lower(n_users, full, padded, epsilon0, epsilon, delta)))
    return max(found)


def _laws(full: int, kept: int, padded: int, epsilon0: float) -> tuple[Reals, Reals, float]:
    """Both laws of the count on a common window, and what they leave out."""
    below = 0.5 * math.exp(-epsilon0 / 2)
    above, shift = 1 - below, padded / (padded + 1) * (1 - 2 * below)
    same, quiet = kept - full, ((kept - full) * (padded - 1), 0.5)
    with_first = [(full * (padded - 1), below), (full, below + shift), (full * padded, above)]
    with_second = [(full * padded, below), (full * (padded - 1), above), (full, above - shift)]
    first, plus, rest = _sum([quiet, (same, above), *with_first])
    other, minus, more = _sum([quiet, (same, below), *with_second])
    start, end = min(first, other), max(first + len(plus), other + len(minus))
    here, there = np.zeros(end - start), np.zeros(end - start)
    here[first - start : first - start + len(plus)] = plus
    there[other - start : other - start + len(minus)] = minus
    return here, there, rest + more


def _sum(parts: Sequence[tuple[int, float]]) -> tuple[int, Reals, float]:
    """First value and probabilities of a sum of independent binomial variables in a window; mass left out at most."""
    firsts, laws, left_out = zip(*starmap(_binomial, parts), strict=True)
    # Mass of all probabilities below the smallest doubles.
    return sum(firsts), np.asarray(reduce(np.convolve, laws)), sum(left_out) + 1e-290


def _binomial(trials: int, chance: float) -> tuple[int, Reals, float]:
    """First value and probabilities in a window, and the mass left out at most: none where all values are in it."""
    exponent = 80.0  # minus the logarithm of the mass outside a window, each side, by Hoeffding's inequality
    reach = math.sqrt(exponent * trials / 2)
    low, high = max(0, math.floor(trials * chance - reach)), min(trials, math.ceil(trials * chance + reach))
    left_out = 2 * math.exp(-exponent) if high - low < trials else 0.0
    return low, np.asarray(binomial.pmf(np.arange(low, high + 1), trials, chance)), left_out


def _delta(plus: Reals, minus: Reals, rest: float, epsilon: float) -> float:
    """Sum of the positive parts, less round-off and what was left out of the second law."""
    if epsilon >= MAX_EPSILON:
        return 0.0
    growth = math.exp(epsilon)
    gained = np.maximum(plus * (1 - RTOL_CONVOLUTION) - growth * (1 + RTOL_CONVOLUTION) * minus, 0.0).sum()
    return max(0.0, float(gained) - growth * rest)


def _epsilon(plus: Reals, minus: Reals, rest: float, delta: float) -> Certified:
    """Largest epsilon found at which more than ``delta`` is given away."""
    low, high = 0.0, MAX_EPSILON
    if _delta(plus, minus, rest, 0.0) < delta:
        return Certified(0.0, 0.0)
    for _ in range(60):  # halvings: below the round-off of any epsilon
        middle = (low + high) / 2
        low, high = (middle, high) if _delta(plus, minus, rest, middle) >= delta > 0 else (low, middle)
    return Certified(low, high - low)
