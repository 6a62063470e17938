r"""Lower bounds for SS-Topk where reports beyond the padding are dropped at random.

In a full bag a user's report replaces another user's of the opposite value, which shifts the count twice as far as in a
bag of dummies.  The data sets fill as many bags as the others can: f of the victim's k coordinates are one of two
disjoint groups, in the first of which :math:`n_p` others hold the smallest value and the victim the largest, in the
second the reverse; her report is kept with probability :math:`s = n_p/(n_p+1)`.  The other c = k - f are as in
:mod:`flamelib.accounting.coordinates.counting`, with the same q.  The statistic is the number of messages above one
half:

.. math::
    N &= \mathrm{Bin}(c(n_p-1), \tfrac12) + \mathrm{Bin}(c, q)
       + \mathrm{Bin}(f(n_p-1), 1-q) + \mathrm{Bin}(f, 1-q+s(2q-1)) + \mathrm{Bin}(fn_p, q), \\
    N' &= \mathrm{Bin}(c(n_p-1), \tfrac12) + \mathrm{Bin}(c, 1-q)
       + \mathrm{Bin}(fn_p, 1-q) + \mathrm{Bin}(f(n_p-1), q) + \mathrm{Bin}(f, q-s(2q-1)).

Pmfs are convolved over windows, all terms positive; the mass outside the windows (Hoeffding's inequality) and round-off
are subtracted.  Adjacency: one user's vector is replaced.  Proof: book, chapter on FLAME, "Counting".
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
RTOL_CONVOLUTION = 1e-10  # relative round-off of a probability after the convolutions


@states(
    "flame", "full-bags", item="SS-Topk with bags that overflow, messages counted", gives="lower", rests_on="proven"
)
def full_bags_lower(
    n_users: int, kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """Guarantee of a round of SS-Topk where reports beyond the padding are dropped at random (lower bound).

    With at most ``padded`` users no bag can overflow, and the answer is that of equal top coordinates.  A fractional
    ``kept`` is rounded down, and the dimension must be at least three times as large; ``kept * padded`` is at most 1e6.

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
    pmfs = _pmfs(full_bags(n_users, kept, padded), math.floor(kept), padded, epsilon0)
    if epsilon is not None:
        return Certified(_delta(*pmfs, epsilon), 2 * RTOL_CONVOLUTION)
    return _epsilon(*pmfs, delta or 0.0)


def full_bags(n_users: int, kept: float, padded: int) -> int:
    """Size of each of two disjoint groups of one user's coordinates that the others can fill (exact)."""
    n_users, kept, padded = check(n_users=n_users, kept=kept, padded=padded).values()
    k = math.floor(kept)
    return min(k, (n_users - 1) * k // (2 * padded)) if n_users > padded else 0


def dropped_lower(
    n_users: int,
    dimension: int,
    kept: float,
    padded: int,
    epsilon0: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> float:
    """Guarantee of a round of SS-Topk where surplus reports are dropped at random, for any parameters (lower bound).

    The larger of :func:`full_bags_lower` and of the bound for bags that at most ``padded`` users fill
    (:func:`~flamelib.accounting.coordinates.likelihood_weighted.weighed_lower`).  The others report as many coordinates
    outside the attacked ones, whose number is reduced if the dimension is too small.

    Examples
    --------
    >>> round(dropped_lower(1000, 7850, 157, 333, 0.5, delta=5.0118723e-6), 3)
    1.797
    >>> dropped_lower(1000, 10, 10, 20, 0.5, delta=1e-4)  # the others fill every bag
    0.0
    """
    k = math.floor(kept)
    attacked = k if n_users <= padded else min(k, dimension - k)
    filled = min(k, (dimension - k) // 2, MAX_CONVOLVED // padded)
    bounds = [0.0]
    if attacked > 0:
        bounds.append(float(weighed_lower(n_users, attacked, padded, epsilon0, epsilon, delta)))
    if filled > 0:
        bounds.append(float(full_bags_lower(n_users, filled, padded, epsilon0, epsilon, delta)))
    return max(bounds)


def _pmfs(full: int, kept: int, padded: int, epsilon0: float) -> tuple[Reals, Reals, float]:
    """Pmfs of N and N' on a common window, and the mass outside."""
    q = 0.5 * math.exp(-epsilon0 / 2)
    p, shift = 1 - q, padded / (padded + 1) * (1 - 2 * q)
    n_blanket, blanket = kept - full, ((kept - full) * (padded - 1), 0.5)
    parts_p = [(full * (padded - 1), q), (full, q + shift), (full * padded, p)]
    parts_q = [(full * padded, q), (full * (padded - 1), p), (full, p - shift)]
    start_p, pmf_p, omitted_p = _convolved([blanket, (n_blanket, p), *parts_p])
    start_q, pmf_q, omitted_q = _convolved([blanket, (n_blanket, q), *parts_q])
    start, end = min(start_p, start_q), max(start_p + len(pmf_p), start_q + len(pmf_q))
    p_values, q_values = np.zeros(end - start), np.zeros(end - start)
    p_values[start_p - start : start_p - start + len(pmf_p)] = pmf_p
    q_values[start_q - start : start_q - start + len(pmf_q)] = pmf_q
    return p_values, q_values, omitted_p + omitted_q


def _convolved(parts: Sequence[tuple[int, float]]) -> tuple[int, Reals, float]:
    """First value and pmf in a window of a sum of independent binomial variables, and a bound on the mass outside."""
    starts, pmfs, omitted = zip(*starmap(_binomial, parts), strict=True)
    # Mass of all probabilities below the smallest doubles.
    return sum(starts), np.asarray(reduce(np.convolve, pmfs)), sum(omitted) + 1e-290


def _binomial(trials: int, p: float) -> tuple[int, Reals, float]:
    """First value and pmf in a window of ``Bin(trials, p)``, and a bound on the mass outside."""
    exponent = 80.0  # minus the logarithm of the mass on each side outside a window, by Hoeffding's inequality
    radius = math.sqrt(exponent * trials / 2)
    lower, upper = max(0, math.floor(trials * p - radius)), min(trials, math.ceil(trials * p + radius))
    omitted = 2 * math.exp(-exponent) if upper - lower < trials else 0.0
    return lower, np.asarray(binomial.pmf(np.arange(lower, upper + 1), trials, p)), omitted


def _delta(pmf_p: Reals, pmf_q: Reals, omitted: float, epsilon: float) -> float:
    """Hockey-stick divergence, less round-off and exp(epsilon) times the mass outside the window."""
    if epsilon >= MAX_EPSILON:
        return 0.0
    growth = math.exp(epsilon)
    positive_part = np.maximum(pmf_p * (1 - RTOL_CONVOLUTION) - growth * (1 + RTOL_CONVOLUTION) * pmf_q, 0.0).sum()
    return max(0.0, float(positive_part) - growth * omitted)


def _epsilon(pmf_p: Reals, pmf_q: Reals, omitted: float, delta: float) -> Certified:
    """Largest epsilon found with ``_delta`` of at least ``delta``."""
    lower, upper = 0.0, MAX_EPSILON
    if _delta(pmf_p, pmf_q, omitted, 0.0) < delta:
        return Certified(0.0, 0.0)
    for _ in range(60):  # bisections
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if _delta(pmf_p, pmf_q, omitted, middle) >= delta > 0 else (lower, middle)
    return Certified(lower, upper - lower)
