r"""What a count gives away: lower bounds for FLAME's protocols by the simplest of attacks, exact to round-off.

The victim holds the largest value in all her coordinates, or the smallest; Laplace noise carries her message above one
half with probability :math:`q = 1-\tfrac12e^{-\varepsilon_0/2}` or :math:`1-q`.  All other messages of these
coordinates, of dummies or of users who hold one half, are above it with probability one half.  The analyzer counts
those above one half, m of which are fair and k biased:

.. math:: N = \mathrm{Bin}(m, \tfrac12) + \mathrm{Bin}(k, q) \quad\text{against}\quad
          N' = \mathrm{Bin}(m, \tfrac12) + \mathrm{Bin}(k, 1-q).

The likelihood ratio is monotone, a binomial law being log-concave, so the best test is a threshold; *every* threshold c
gives the lower bounds :math:`\delta(\varepsilon) \ge P(N\ge c) - e^{\varepsilon}P(N'\ge c)` and
:math:`\varepsilon(\delta) \ge \log\frac{P(N\ge c)-\delta}{P(N'\ge c)}`.

Probabilities come from the deviance form and are summed over windows, positive terms only; what the windows leave out
(Hoeffding's inequality) and round-off are taken off the answer.  Where there are more than ten billion messages the
analyzer looks at fewer coordinates, which can only make the bound smaller.  Adjacency: one user's vector is replaced.

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

MAX_FAIR_WIDE = 10**8  # largest number of fair messages listed over the wide window
SUM_BLOCK = 1024  # terms summed at a time: round-off grows with the number of blocks
UNDERFLOW = 1e-295  # largest error of all probabilities near the smallest doubles together
MAX_COUNTED = 10**10  # largest number of messages that are counted


@dataclass(frozen=True)
class Count:
    """``Bin(fair, 1/2) + Bin(biased, chance)`` against the same with the other chance, ``1 - chance``."""

    fair: int
    biased: int
    chance: float
    other: float

    @cached_property
    def exponent(self) -> float:
        """Hoeffding's exponent: a window leaves out at most its exponential on each side."""
        return 690.0 if self.fair <= MAX_FAIR_WIDE else 92.0

    @cached_property
    def few(self) -> tuple[int, Reals]:
        """First count and probabilities of the biased messages."""
        low, high = _window(self.biased, self.chance, self.exponent)
        return low, _pmf(low, high, self.biased, self.chance, self.other)

    @cached_property
    def many(self) -> tuple[int, Reals, Reals]:
        """First count, probabilities and upper tails of the fair messages; one more of each beyond both ends."""
        low, high = _window(self.fair, 0.5, self.exponent)
        pmf = _pmf(low, high, self.fair, 0.5, 0.5)
        tails = _tails(pmf)
        return low - 1, np.concatenate([[0.0], pmf, [0.0]]), np.concatenate([tails[:1], tails, [0.0]])

    @property
    def rounding(self) -> float:
        """Relative error of a probability: of the deviances, of the chance, of the sums."""
        spread = math.sqrt(self.exponent * self.biased)
        return UNIT * (8 * self.exponent + 8 * spread + 4 * SUM_BLOCK + 2 * len(self.many[1]) / SUM_BLOCK)

    def pair(self, threshold: int, tails: bool = True) -> tuple[float, float]:
        """Chances of both laws to be at or above the threshold, or exactly there."""
        first, chances = self.few
        start, pmf, above = self.many
        table, steps = above if tails else pmf, np.arange(len(chances))
        with_more, with_less = threshold - first - steps - start, threshold - self.biased + first + steps - start
        more, less = (table[np.clip(places, 0, len(table) - 1)] for places in (with_more, with_less))
        return float(np.sum(chances * more)), float(np.sum(chances * less))

    def best_threshold(self, ratio: float) -> int:
        """The least count at which the likelihood ratio exceeds a ratio of at least 1."""

        def above(place: int) -> bool:
            more, less = self.pair(place, tails=False)
            return less <= 0 or more > ratio * less

        return least_whole(above, (self.fair + self.biased) // 2 + 1, self.fair + self.biased)

    def bounds(self, threshold: int) -> tuple[float, float]:
        """Lower bound of the first tail, upper bound of the second."""
        more, less = self.pair(threshold)
        return more * (1 - self.rounding) - UNDERFLOW, less * (1 + self.rounding) + UNDERFLOW + 4 * math.exp(
            -self.exponent
        )

    def delta(self, epsilon: float) -> Certified:
        """Lower bound of delta at ``epsilon``, with its width."""
        if epsilon > MAX_EXPONENT:
            return Certified(0.0, 0.0)
        ratio = math.exp(epsilon)
        more, less = self.bounds(self.best_threshold(ratio))
        width = 2 * self.rounding * (more + ratio * less) + 8 * ratio * math.exp(-self.exponent)
        return Certified(max(more - ratio * less * (1 + 4 * UNIT), 0.0), width)

    def epsilon(self, delta: float) -> Certified:
        """Lower bound of epsilon at ``delta``, with its width."""
        low = (self.fair + self.biased) // 2
        high = least_whole(lambda at: self.bounds(at)[0] <= delta, low + 1, self.fair + self.biased + 1) - 1
        best = _peak(lambda place: self._log_ratio(place, delta), low, max(low, high))
        more, less = self.bounds(best)
        if not more > delta:
            return Certified(0.0, 0.0)
        width = 2 * self.rounding * (more / (more - delta) + 1) + 8 * math.exp(-self.exponent) / less
        return Certified(max(self._log_ratio(best, delta), 0.0), width)

    def _log_ratio(self, threshold: int, delta: float) -> float:
        more, less = self.bounds(threshold)
        spare = more * (1 - 2 * UNIT) - delta
        return math.log(spare / less) - 4 * UNIT if spare > 0 else -math.inf


def _peak(at: Callable[[int], float], low: int, high: int) -> int:
    """A place of [low, high] where a function that rises and then falls is largest: golden sections."""
    left, right = high - int(GOLDEN * (high - low)), low + int(GOLDEN * (high - low))
    at_left, at_right = at(left), at(right)
    while high - low > 3 and left < right:
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - int(GOLDEN * (high - low))
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + int(GOLDEN * (high - low))
            at_right = at(right)
    return max(range(low, high + 1), key=at)


def _window(trials: int, chance: float, exponent: float) -> tuple[int, int]:
    """Counts outside of which a binomial law has at most twice ``exp(-exponent)``."""
    reach, mean = math.sqrt(exponent * trials / 2) + 1, trials * chance
    return max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach))


def _pmf(low: int, high: int, trials: int, chance: float, other: float) -> Reals:
    """Binomial probabilities of the counts from ``low`` to ``high``, in the deviance form (0 near 1e-308)."""
    hits = np.arange(low, high + 1, dtype=float)
    misses = trials - hits
    with np.errstate(divide="ignore", invalid="ignore"):
        log = _stirling(float(trials)) - _stirling(hits) - _stirling(misses)
        log -= _deviance(hits, trials * chance) + _deviance(misses, trials * other)
        log -= 0.5 * np.log(2 * math.pi * hits * (misses / trials))
    log[misses == 0] = trials * math.log(chance)
    log[hits == 0] = trials * math.log(other)
    return np.asarray(np.exp(np.maximum(log, -745)))


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
    near = (x - mean) * v + 2 * x * v * total
    return np.asarray(np.where(np.abs(v) < 0.1, near, x * np.log(x / mean) + mean - x))


def _tails(pmf: Reals) -> Reals:
    """Sums from each place to the end, in blocks so that round-off stays small."""
    size = -(-len(pmf) // SUM_BLOCK) * SUM_BLOCK
    blocks = np.append(np.zeros(size - len(pmf)), pmf)[::-1].reshape(-1, SUM_BLOCK)
    before = np.append(0.0, np.cumsum(blocks.sum(1))[:-1])
    sums = (before[:, None] + np.cumsum(blocks, axis=1)).ravel()[::-1]
    return np.asarray(np.minimum(sums[size - len(pmf) :], 1.0))


@states("flame", "topk-lower", item="SS-Topk, the same top coordinates with opposite signs, messages counted",
        gives="lower", rests_on="proven")  # fmt: skip
def topk_lower(
    kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """What one round of SS-Topk gives away about one user, whatever is claimed for it (lower bound).

    The victim's top coordinates are the same in both data sets, with all values at one end or at the other: k messages
    are biased and :math:`k(n_p-1)` fair (of a fractional ``kept`` the whole part: the attack may leave coordinates
    out). The others report other coordinates, of which there must be as many, or hold one half in these and are no more
    than fit into a bag.

    Source: this project, on Liu et al. 2021, Theorem 4 for SS-Topk.

    Examples
    --------
    >>> round(topk_lower(157, 333, 0.5, epsilon=0.2379), 5), round(topk_lower(157, 333, 0.5, delta=5.0118723e-6), 3)
    (0.04208, 1.198)
    """
    whole = _whole(kept, padded)
    return _answer(Count(whole * (padded - 1), whole, *_chances(epsilon0)), epsilon, delta)


@plainly
def disjoint_lower(
    kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """As :func:`topk_lower` for two disjoint sets of top coordinates, real against dummy (lower bound).

    All values are large on the first set in one data set, small on the second set in the other; messages are counted
    on both: k are biased and :math:`k(2n_p-1)` fair.
    """
    _given(epsilon, delta, kept=kept, padded=padded, epsilon0=epsilon0)
    whole = _whole(kept, 2 * padded)
    return _answer(Count(whole * (2 * padded - 1), whole, *_chances(epsilon0)), epsilon, delta)


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
    r"""What a round of SS-Double gives away with independent inclusion of coordinates (lower bound).

    Each of the victim's d coordinates is at one end or at the other and reported with probability :math:`\beta`, else a
    dummy stands for it: above one half with probability :math:`\tfrac12\pm\beta(q-\tfrac12)`.  All others hold one
    half.  Exactly one of ``epsilon`` and ``delta`` is given.

    With ``n_users``, a bag with too many reports keeps ``padded`` of them at random.  The others' reports look like
    dummies, so the count is that of a rate :math:`\beta E\min(1, n_p/(M+1))`, M the others' reports of a coordinate.
    Without it no bag overflows.

    Examples
    --------
    >>> round(double_lower(7850, 0.02, 333, 0.5, delta=5.0118723e-6, n_users=1000), 4)
    0.1435
    >>> round(double_lower(7850, 0.02, 20, 0.5, delta=5.0118723e-6, n_users=1000), 4)
    0.5956
    >>> round(double_lower(7850, 0.02, 20, 0.5, delta=5.0118723e-6), 4)
    0.6581
    """
    given = _given(epsilon, delta, dimension=dimension, sampling_rate=sampling_rate, padded=padded, epsilon0=epsilon0)
    whole = _whole(given["dimension"], padded)
    lost = 0.0 if n_users is None else _lost(n_users, sampling_rate, padded)
    rate = sampling_rate * (1 - lost)
    if rate <= 0:
        return Certified(0.0, 0.0)
    below = 0.5 * (1 - rate) + rate * _chances(epsilon0)[1]  # positive terms: a small sum keeps its digits
    return _answer(Count(whole * (padded - 1), whole, 1 - below, below), epsilon, delta)


def _lost(n_users: int, rate: float, padded: int) -> float:
    """Probability that a report finds no place among those of the others, who report at this rate (upper bound)."""
    n_users = check(n_users=n_users)["n_users"]
    if padded >= n_users:
        return 0.0
    # Counts beyond a full bag that are listed; more are taken for certain losses.
    last = min(n_users - 1, padded + 10**6)
    others = np.arange(padded, last + 1, dtype=float)
    chances = np.exp(binomial.log_pmf(others, n_users - 1, rate))
    lost = float(chances @ (1 - padded / (others + 1))) + float(binomial.sf(last, n_users - 1, rate))
    return min(1.0, lost * (1 + 1e-10) + UNDERFLOW)  # relative error of the sum, at most


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
    r"""What a round of SS-Double gives away with exactly ``kept`` of the coordinates of every user (lower bound).

    All messages of all bags are counted, and all others hold one half: k are biased and :math:`dn_p-k` fair.  That one
    of the victim's bags is full is granted as a failure.  Exactly one of ``epsilon`` and ``delta`` is given.  For more
    than ten billion messages the answer is 0.
    """
    whole = check(n_users=n_users, dimension=dimension, kept=kept, padded=padded)
    _given(epsilon, delta, epsilon0=epsilon0)
    n_users, dimension, padded = whole["n_users"], whole["dimension"], whole["padded"]
    if whole["kept"] > dimension or whole["kept"] != int(whole["kept"]):
        raise DomainError(f"kept must be a whole number in [1, {dimension}], at most dimension, got {kept!r}")
    messages = dimension * padded
    if messages > MAX_COUNTED:
        return Certified(0.0, 0.0)
    tail = binomial.log_chance(np.array(float(padded)), n_users - 1, kept / dimension, few=False)
    full = kept * math.exp(min(float(tail), 0.0)) + (UNDERFLOW if n_users > padded else 0.0)
    count = Count(messages - int(kept), int(kept), *_chances(epsilon0))
    found = _answer(count, epsilon, delta)
    if not full:
        return found
    granted = full * (1 + math.exp(min(found if epsilon is None else epsilon, MAX_EXPONENT)))
    if epsilon is not None:
        return Certified(max(found - granted, 0.0), found.uncertainty)
    return _answer(count, None, (delta or 0.0) + granted) if granted < 1 - (delta or 0.0) else Certified(0.0, 0.0)


@plainly
def simple_lower(
    dimension: int, n_users: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """What a round of SS-Simple gives away while all others hold one half everywhere (lower bound).

    Exactly one of ``epsilon`` and ``delta`` is given; the answer is the other one.
    """
    given = _given(epsilon, delta, dimension=dimension, n_users=n_users, epsilon0=epsilon0)
    whole = _whole(given["dimension"], n_users)
    return _answer(Count(whole * (n_users - 1), whole, *_chances(epsilon0)), epsilon, delta)


def _given(epsilon: float | None, delta: float | None, **named: float) -> dict[str, float]:
    if (epsilon is None) == (delta is None):
        raise DomainError("exactly one of epsilon and delta must be given")
    return check(**named, **({"epsilon": epsilon} if delta is None else {"delta": delta}))


def _whole(coordinates: float, messages: int) -> int:
    """Coordinates to look at: all of them, as long as their messages can be counted."""
    return math.floor(min(coordinates, MAX_COUNTED // messages))


def _chances(epsilon0: float) -> tuple[float, float]:
    """Chances that a message of the largest value is above one half, and that it is not."""
    below = 0.5 * math.exp(-epsilon0 / 2)
    return 1 - below, below


def _answer(count: Count, epsilon: float | None, delta: float | None) -> Certified:
    if not count.biased:
        return Certified(0.0, 0.0)
    if epsilon is not None:
        return count.delta(epsilon)
    return count.epsilon(delta or 0.0)
