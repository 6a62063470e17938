r"""Lower bounds for FLAME's protocols by a threshold test on the number of messages above one half.

The victim holds the largest value in all her coordinates, or the smallest; a Laplace message is then above one half
with probability :math:`q = 1-\tfrac12e^{-\varepsilon_0/2}` or :math:`1-q`.  All other messages of these coordinates, of
dummies or of users who hold one half, are above it with probability one half.  The statistic is the number of messages
above one half, m of which are fair and k biased:

.. math:: N = \mathrm{Bin}(m, \tfrac12) + \mathrm{Bin}(k, q) \quad\text{against}\quad
          N' = \mathrm{Bin}(m, \tfrac12) + \mathrm{Bin}(k, 1-q).

The likelihood ratio is monotone, as binomial distributions are log-concave, so the best test is a threshold; *every*
threshold c gives the lower bounds :math:`\delta(\varepsilon) \ge P(N\ge c) - e^{\varepsilon}P(N'\ge c)` and
:math:`\varepsilon(\delta) \ge \log\frac{P(N\ge c)-\delta}{P(N'\ge c)}`.

Probabilities are computed in the deviance form and summed over windows, positive terms only; the mass outside the
windows (Hoeffding's inequality) and round-off are subtracted.  Beyond ten billion messages fewer coordinates are
counted, which can only decrease the bound.  Adjacency: one user's vector is replaced.

Proof: book, chapter on FLAME, proposition "Counting".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from flamelib.core import binomial
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import MAX_EXPONENT, UNIT
from flamelib.core.search import GOLDEN, least_whole
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, plainly

MAX_FAIR_WIDE = 10**8  # largest number of fair messages for the wide window
SUM_BLOCK = 1024  # terms of a block of a sum: round-off grows with the number of blocks
UNDERFLOW = 1e-295  # total error of underflowing probabilities
MAX_COUNTED = 10**10  # largest number of messages that are counted


@dataclass(frozen=True)
class Count:
    """``Bin(fair, 1/2) + Bin(biased, q)`` against ``Bin(fair, 1/2) + Bin(biased, 1 - q)``; ``complement`` is 1 - q."""

    fair: int
    biased: int
    q: float
    complement: float

    @cached_property
    def exponent(self) -> float:
        """Hoeffding's exponent: the mass outside a window is at most ``exp(-exponent)`` on each side."""
        return 690.0 if self.fair <= MAX_FAIR_WIDE else 92.0

    @cached_property
    def biased_pmf(self) -> tuple[int, Reals]:
        """First count and pmf of the biased messages."""
        lower, upper = _window(self.biased, self.q, self.exponent)
        return lower, _pmf(lower, upper, self.biased, self.q, self.complement)

    @cached_property
    def fair_pmf(self) -> tuple[int, Reals, Reals]:
        """First count, pmf and upper tails of the fair messages, padded by one entry on both sides."""
        lower, upper = _window(self.fair, 0.5, self.exponent)
        pmf = _pmf(lower, upper, self.fair, 0.5, 0.5)
        tails = _survival_function(pmf)
        return lower - 1, np.concatenate([[0.0], pmf, [0.0]]), np.concatenate([tails[:1], tails, [0.0]])

    @property
    def rounding(self) -> float:
        """Relative error of a probability: of the deviances, of q, of the sums."""
        spread = math.sqrt(self.exponent * self.biased)
        return UNIT * (8 * self.exponent + 8 * spread + 4 * SUM_BLOCK + 2 * len(self.fair_pmf[1]) / SUM_BLOCK)

    def probabilities(self, threshold: int, tails: bool = True) -> tuple[float, float]:
        """``P[N >= threshold]`` and ``P[N' >= threshold]``, or with ``tails=False`` both pmfs at the threshold."""
        low, biased_pmf = self.biased_pmf
        start, pmf, sf = self.fair_pmf
        table, steps = sf if tails else pmf, np.arange(len(biased_pmf))
        first_indices, second_indices = threshold - low - steps - start, threshold - self.biased + low + steps - start
        first, second = (table[np.clip(indices, 0, len(table) - 1)] for indices in (first_indices, second_indices))
        return float(np.sum(biased_pmf * first)), float(np.sum(biased_pmf * second))

    def best_threshold(self, ratio: float) -> int:
        """The least count whose likelihood ratio exceeds ``ratio``, which is at least 1."""

        def above(c: int) -> bool:
            first, second = self.probabilities(c, tails=False)
            return second <= 0 or first > ratio * second

        return least_whole(above, (self.fair + self.biased) // 2 + 1, self.fair + self.biased)

    def bounds(self, threshold: int) -> tuple[float, float]:
        """Lower bound of ``P[N >= threshold]``, upper bound of ``P[N' >= threshold]``."""
        first, second = self.probabilities(threshold)
        return first * (1 - self.rounding) - UNDERFLOW, second * (1 + self.rounding) + UNDERFLOW + 4 * math.exp(
            -self.exponent
        )

    def delta(self, epsilon: float) -> Certified:
        """Lower bound of delta at ``epsilon``, with its uncertainty."""
        if epsilon > MAX_EXPONENT:
            return Certified(0.0, 0.0)
        ratio = math.exp(epsilon)
        first, second = self.bounds(self.best_threshold(ratio))
        uncertainty = 2 * self.rounding * (first + ratio * second) + 8 * ratio * math.exp(-self.exponent)
        return Certified(max(first - ratio * second * (1 + 4 * UNIT), 0.0), uncertainty)

    def epsilon(self, delta: float) -> Certified:
        """Lower bound of epsilon at ``delta``, with its uncertainty."""
        lower = (self.fair + self.biased) // 2
        upper = least_whole(lambda c: self.bounds(c)[0] <= delta, lower + 1, self.fair + self.biased + 1) - 1
        threshold = _argmax_unimodal(lambda place: self._log_ratio(place, delta), lower, max(lower, upper))
        first, second = self.bounds(threshold)
        if not first > delta:
            return Certified(0.0, 0.0)
        uncertainty = 2 * self.rounding * (first / (first - delta) + 1) + 8 * math.exp(-self.exponent) / second
        return Certified(max(self._log_ratio(threshold, delta), 0.0), uncertainty)

    def _log_ratio(self, threshold: int, delta: float) -> float:
        first, second = self.bounds(threshold)
        numerator = first * (1 - 2 * UNIT) - delta
        return math.log(numerator / second) - 4 * UNIT if numerator > 0 else -math.inf


def _argmax_unimodal(f: Callable[[int], float], lower: int, upper: int) -> int:
    """Maximiser of a unimodal function over the integers of [lower, upper], by golden section."""
    left, right = upper - int(GOLDEN * (upper - lower)), lower + int(GOLDEN * (upper - lower))
    f_left, f_right = f(left), f(right)
    while upper - lower > 3 and left < right:
        if f_left >= f_right:
            upper, right, f_right = right, left, f_left
            left = upper - int(GOLDEN * (upper - lower))
            f_left = f(left)
        else:
            lower, left, f_left = left, right, f_right
            right = lower + int(GOLDEN * (upper - lower))
            f_right = f(right)
    return max(range(lower, upper + 1), key=f)


def _window(trials: int, p: float, exponent: float) -> tuple[int, int]:
    """Counts outside of which ``Bin(trials, p)`` has mass at most ``2 exp(-exponent)``."""
    radius, mean = math.sqrt(exponent * trials / 2) + 1, trials * p
    return max(0, math.floor(mean - radius)), min(trials, math.ceil(mean + radius))


def _pmf(lower: int, upper: int, trials: int, p: float, complement: float) -> Reals:
    """Binomial pmf of the counts from ``lower`` to ``upper``, in the deviance form (0 near 1e-308)."""
    successes = np.arange(lower, upper + 1, dtype=float)
    failures = trials - successes
    with np.errstate(divide="ignore", invalid="ignore"):
        log_pmf = _stirling(float(trials)) - _stirling(successes) - _stirling(failures)
        log_pmf -= _deviance(successes, trials * p) + _deviance(failures, trials * complement)
        log_pmf -= 0.5 * np.log(2 * math.pi * successes * (failures / trials))
    log_pmf[failures == 0] = trials * math.log(p)
    log_pmf[successes == 0] = trials * math.log(complement)
    return np.asarray(np.exp(np.maximum(log_pmf, -745)))


def _stirling(count: Reals | float) -> Reals:
    """``log(count!)`` less Stirling's formula; the series above 15 has an error below 1e-16."""
    x = np.maximum(np.asarray(count, dtype=float), 0.5)
    square = x * x
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / x
    exact = gammaln(x + 1) - (x + 0.5) * np.log(x) + x - 0.5 * math.log(2 * math.pi)
    return np.asarray(np.where(x > 15, series, exact))


def _deviance(x: Reals, mean: float) -> Reals:
    """``x log(x / mean) + mean - x`` without cancellation, by the series of the logarithm where the two are close."""
    v = (x - mean) / (x + mean)
    square, total = v * v, np.zeros_like(x)
    for j in range(10, 0, -1):
        total = square * (1 / (2 * j + 1) + total)
    series = (x - mean) * v + 2 * x * v * total
    return np.asarray(np.where(np.abs(v) < 0.1, series, x * np.log(x / mean) + mean - x))


def _survival_function(pmf: Reals) -> Reals:
    """Sums from each index to the end, in blocks so that round-off stays small."""
    size = -(-len(pmf) // SUM_BLOCK) * SUM_BLOCK
    blocks = np.append(np.zeros(size - len(pmf)), pmf)[::-1].reshape(-1, SUM_BLOCK)
    offsets = np.append(0.0, np.cumsum(blocks.sum(1))[:-1])
    sums = (offsets[:, None] + np.cumsum(blocks, axis=1)).ravel()[::-1]
    return np.asarray(np.minimum(sums[size - len(pmf) :], 1.0))


@states("flame", "topk-lower", item="SS-Topk, the same top coordinates with opposite signs, messages counted",
        gives="lower", rests_on="proven")  # fmt: skip
def topk_lower(
    kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """Guarantee of one round of SS-Topk for one user (lower bound).

    The victim's top coordinates are the same in both data sets, with all values at one end or at the other: k messages
    are biased and :math:`k(n_p-1)` fair, k being the floor of ``kept``.  The others report other coordinates, of which
    there must be as many, or hold one half in these and do not overflow a bag.

    Source: this project, on Liu et al. 2021, Theorem 4 for SS-Topk.

    Examples
    --------
    >>> round(topk_lower(157, 333, 0.5, epsilon=0.2379), 5), round(topk_lower(157, 333, 0.5, delta=5.0118723e-6), 3)
    (0.04208, 1.198)
    """
    n_biased = _countable_coordinates(kept, padded)
    return _answer(Count(n_biased * (padded - 1), n_biased, *_report_probabilities(epsilon0)), epsilon, delta)


@plainly
def disjoint_lower(
    kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """As :func:`topk_lower` for two disjoint sets of top coordinates, real against dummy (lower bound).

    All values are large on the first set in one data set, small on the second set in the other; the messages of both
    sets are counted: k are biased and :math:`k(2n_p-1)` fair.
    """
    _check(epsilon, delta, kept=kept, padded=padded, epsilon0=epsilon0)
    n_biased = _countable_coordinates(kept, 2 * padded)
    return _answer(Count(n_biased * (2 * padded - 1), n_biased, *_report_probabilities(epsilon0)), epsilon, delta)


@plainly
def double_lower(
    dimension: int,
    sampling_rate: float,
    padded: int,
    epsilon0: float,
    epsilon: float | None = None,
    delta: float | None = None,
    n_users: int | None = None,
) -> Certified:
    r"""Guarantee of a round of SS-Double with independent inclusion of coordinates (lower bound).

    Each of the victim's d coordinates is at one end or at the other and reported with probability :math:`\beta`, else
    replaced by a dummy: above one half with probability :math:`\tfrac12\pm\beta(q-\tfrac12)`.  All others hold one
    half.  Exactly one of ``epsilon`` and ``delta`` is given.

    With ``n_users``, a bag with too many reports keeps ``padded`` of them at random.  The others' reports are
    distributed like dummies, so the count is that of a rate :math:`\beta E\min(1, n_p/(M+1))`, M the others' reports of
    a coordinate.  Without it no bag overflows.

    Examples
    --------
    >>> round(double_lower(7850, 0.02, 333, 0.5, delta=5.0118723e-6, n_users=1000), 4)
    0.1435
    >>> round(double_lower(7850, 0.02, 20, 0.5, delta=5.0118723e-6, n_users=1000), 4)
    0.5956
    >>> round(double_lower(7850, 0.02, 20, 0.5, delta=5.0118723e-6), 4)
    0.6581
    """
    given = _check(epsilon, delta, dimension=dimension, sampling_rate=sampling_rate, padded=padded, epsilon0=epsilon0)
    n_biased = _countable_coordinates(given["dimension"], padded)
    loss = 0.0 if n_users is None else _overflow_loss(n_users, sampling_rate, padded)
    rate = sampling_rate * (1 - loss)
    if rate <= 0:
        return Certified(0.0, 0.0)
    below = 0.5 * (1 - rate) + rate * _report_probabilities(epsilon0)[1]
    return _answer(Count(n_biased * (padded - 1), n_biased, 1 - below, below), epsilon, delta)


def _overflow_loss(n_users: int, rate: float, padded: int) -> float:
    r"""``E max(0, 1 - padded / (M + 1))`` for M ~ Bin(n_users - 1, rate): drop probability (upper)."""
    n_users = check(n_users=n_users)["n_users"]
    if padded >= n_users:
        return 0.0
    # Beyond this many counts above a full bag a report counts as dropped.
    last = min(n_users - 1, padded + 10**6)
    counts = np.arange(padded, last + 1, dtype=float)
    pmf = np.exp(binomial.log_pmf(counts, n_users - 1, rate))
    loss = float(pmf @ (1 - padded / (counts + 1))) + float(binomial.sf(last, n_users - 1, rate))
    return min(1.0, loss * (1 + 1e-10) + UNDERFLOW)  # relative error of the sum, at most


@plainly
def exactly_lower(
    n_users: int,
    dimension: int,
    kept: int,
    padded: int,
    epsilon0: float,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    r"""Guarantee of a round of SS-Double with exactly ``kept`` coordinates of every user (lower bound).

    All messages of all bags are counted, and all others hold one half: k are biased and :math:`dn_p-k` fair.  The
    probability that one of the victim's bags is full is subtracted.  Exactly one of ``epsilon`` and ``delta`` is given.
    For more than ten billion messages the answer is 0.
    """
    checked = check(n_users=n_users, dimension=dimension, kept=kept, padded=padded)
    _check(epsilon, delta, epsilon0=epsilon0)
    n_users, dimension, padded = checked["n_users"], checked["dimension"], checked["padded"]
    if checked["kept"] > dimension or checked["kept"] != int(checked["kept"]):
        raise DomainError(f"kept must be a whole number in [1, {dimension}], at most dimension, got {kept!r}")
    messages = dimension * padded
    if messages > MAX_COUNTED:
        return Certified(0.0, 0.0)
    log_tail = binomial.log_chance(np.array(float(padded)), n_users - 1, kept / dimension, few=False)
    overflow = kept * math.exp(min(float(log_tail), 0.0)) + (UNDERFLOW if n_users > padded else 0.0)
    count = Count(messages - int(kept), int(kept), *_report_probabilities(epsilon0))
    bound = _answer(count, epsilon, delta)
    if not overflow:
        return bound
    slack = overflow * (1 + math.exp(min(bound if epsilon is None else epsilon, MAX_EXPONENT)))
    if epsilon is not None:
        return Certified(max(bound - slack, 0.0), bound.uncertainty)
    return _answer(count, None, (delta or 0.0) + slack) if slack < 1 - (delta or 0.0) else Certified(0.0, 0.0)


@plainly
def simple_lower(
    dimension: int, n_users: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """Guarantee of a round of SS-Simple where all others hold one half in every coordinate (lower bound).

    Exactly one of ``epsilon`` and ``delta`` is given; the answer is the other one.
    """
    given = _check(epsilon, delta, dimension=dimension, n_users=n_users, epsilon0=epsilon0)
    n_biased = _countable_coordinates(given["dimension"], n_users)
    return _answer(Count(n_biased * (n_users - 1), n_biased, *_report_probabilities(epsilon0)), epsilon, delta)


def _check(epsilon: float | None, delta: float | None, **named: float) -> dict[str, float]:
    if (epsilon is None) == (delta is None):
        raise DomainError("exactly one of epsilon and delta must be given")
    return check(**named, **({"epsilon": epsilon} if delta is None else {"delta": delta}))


def _countable_coordinates(coordinates: float, messages: int) -> int:
    """Coordinates whose messages are counted: at most ``MAX_COUNTED`` messages."""
    return math.floor(min(coordinates, MAX_COUNTED // messages))


def _report_probabilities(epsilon0: float) -> tuple[float, float]:
    """Probabilities q and 1 - q of a message of the largest value to be above one half or not."""
    below = 0.5 * math.exp(-epsilon0 / 2)
    return 1 - below, below


def _answer(count: Count, epsilon: float | None, delta: float | None) -> Certified:
    if not count.biased:
        return Certified(0.0, 0.0)
    if epsilon is not None:
        return count.delta(epsilon)
    return count.epsilon(delta or 0.0)
