r"""Lower bound for SS-Topk by a likelihood-weighted count, among users who report the same coordinates.

The victim holds the largest value in all her k coordinates, or the smallest; with her, :math:`n_p` users report them,
which fills the bags, and the others hold the largest value.  A message of the value 0 has the likelihood ratio
:math:`e^\ell` to one of the value 1, :math:`-\varepsilon_0\le\ell\le\varepsilon_0`.  The weight of a message is the
score

.. math:: -\log\bigl(1+(e^\ell-1)/n_p\bigr)

rounded to a lattice, and the statistic S is the sum of all :math:`kn_p` weights.  Every threshold c gives the lower
bounds :math:`\delta(\varepsilon)\ge P(S\ge c)-e^\varepsilon P(S'\ge c)` and
:math:`\varepsilon(\delta)\ge\log\frac{P(S\ge c)-\delta}{P(S'\ge c)}`.

Pmfs of sums are powers of Fourier transforms, tilted so that c is the mean; aliasing (Bernstein's inequality) and
round-off are subtracted.  Adjacency: one user's vector is replaced.  Proof: book, chapter on FLAME,
"Weighted counts".
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from flamelib.accounting.coordinates.counting import topk_lower
from flamelib.core.arrays import Complexes, Reals, Wholes
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import UNIT
from flamelib.core.search import GOLDEN
from flamelib.core.statements import states
from flamelib.core.vocabulary import plainly

MAX_WEIGHT = 16  # largest weight, in lattice steps
LOG_OUTSIDE = 40.0  # minus the logarithm of the tilted mass outside the window
MAX_EPSILON = 600.0  # largest epsilon: exponentials beyond come near the largest double
TILT_GRID = np.geomspace(0.05, 40, 20)  # grid of tilts, in units of 1 / (standard deviation of the sum)


class _Tails(NamedTuple):
    """Logarithms of a lower bound on P(S >= c) and of an upper bound on P(S' >= c); the larger error of both."""

    log_p: float
    log_q: float
    width: float


NO_TAILS = _Tails(-math.inf, 0.0, 0.0)  # trivial bounds


@dataclass(frozen=True)
class Weighing:
    """The sum of weights of ``kept * padded`` messages of value 1 (S), or with k of them of value 0 (S')."""

    kept: int
    padded: int
    epsilon0: float

    @cached_property
    def alphabet(self) -> tuple[Wholes, Reals, Reals]:
        """The weights, and their pmfs for the values 1 and 0."""
        n, epsilon0 = self.padded, self.epsilon0
        min_score, max_score = -math.log1p(math.expm1(min(epsilon0, 700.0)) / n), -math.log1p(math.expm1(-epsilon0) / n)
        max_weight = max(1, min(MAX_WEIGHT, int(7000 / math.sqrt(self.kept * n))))  # deviation of S
        step = max(-min_score, max_score) / max_weight
        weights = np.arange(round(min_score / step), round(max_score / step) + 1)
        excess = np.maximum(n * np.expm1(-step * (weights[:-1] + 0.5)), math.expm1(-epsilon0))
        ratios = np.clip(np.log1p(np.maximum(excess, -1 + 1e-15)), -epsilon0, epsilon0)  # at the ends of cells, falling
        cdf_one, cdf_zero = 0.5 * np.exp(-(epsilon0 + ratios) / 2), 0.5 * np.exp(-(epsilon0 - ratios) / 2)
        edges_one, edges_zero = np.concatenate([[0.0], cdf_one, [1.0]]), np.concatenate([[1.0], cdf_zero, [0.0]])
        return weights, np.diff(edges_one), -np.diff(edges_zero)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the sum."""
        weights, pmf, _ = self.alphabet
        mean = pmf @ weights
        return math.sqrt(self.kept * self.padded * float(pmf @ (weights - mean) ** 2))

    def laws(self, tilt: float) -> tuple["_TiltedSum", "_TiltedSum"] | None:
        """Tilted pmfs of S and S' about the mean of S, ``None`` if their window is too large."""
        weights, pmf_one, pmf_zero = self.alphabet
        factors = np.exp(tilt * (weights - weights[-1]))
        moments = float(pmf_one @ factors), float(pmf_zero @ factors)
        tilted_pmfs = pmf_one * factors / moments[0], pmf_zero * factors / moments[1]
        means = [float(law @ weights) for law in tilted_pmfs]
        spread = max(float(law @ (weights - mean) ** 2) for law, mean in zip(tilted_pmfs, means, strict=True))
        k, n, centre = self.kept, self.kept * self.padded, round(means[0])
        start, radius = round(n * (means[0] - centre)), LOG_OUTSIDE * float(weights[-1] - weights[0]) / 3
        half_width = radius + math.sqrt(radius**2 + 2 * LOG_OUTSIDE * n * spread) + k * abs(means[1] - means[0]) + 2
        size = 1 << math.ceil(math.log2(2 * half_width))
        if size > 2**19:  # points of a window
            return None
        fft_one, fft_zero = (np.fft.rfft(np.bincount(np.mod(weights - centre, size), law, size)) for law in tilted_pmfs)
        shift = tilt * (start + n * (centre - int(weights[-1])))
        sums = []
        for swapped in (0, k):
            transform, moduli = _power((fft_one, n - swapped), (fft_zero, swapped))
            masses = np.roll(np.fft.irfft(transform, size), size // 2 - start)
            error = 32 * math.log2(size) * UNIT * n * 2 * moduli / size  # round-off of a transform, per halving
            log_scale = (n - swapped) * math.log(moments[0]) + swapped * math.log(moments[1])
            log_error = UNIT * (256 * n + 8 * (abs(log_scale) + abs(shift)))  # round-off of the probability of a cell
            sums.append(_TiltedSum(masses, error, log_scale - shift, log_error))
        return sums[0], sums[1]

    def tails(self, tilt: float) -> _Tails:
        """Both tails at the mean of S under the positive tilt."""
        laws = self.laws(tilt)
        if laws is None:
            return NO_TAILS
        p, q = laws
        half = len(p.masses) // 2
        decay = np.exp(-tilt * np.arange(half))
        bounds = []
        for law, sign in ((p, -1), (q, 1)):
            mass = float(decay @ law.masses[half:])
            error = law.error * float(decay.sum()) + 4 * math.exp(-LOG_OUTSIDE)
            if not mass > 2 * error:
                return NO_TAILS
            bound = math.log(mass + sign * error) + law.log_scale + sign * law.slack
            bounds.append((bound, 4 * error / mass + 2 * law.slack))
        return _Tails(min(bounds[0][0], 0.0), bounds[1][0], max(width for _, width in bounds))

    def untilted(self) -> list[_Tails]:
        """Both tails without a tilt, at each threshold where both are large."""
        laws = self.laws(0.0)
        if laws is None:
            return []
        p, q = laws
        error = max(p.error, q.error) * len(p.masses) + 4 * math.exp(-LOG_OUTSIDE) + p.slack + q.slack
        sf_p, sf_q = (np.cumsum(law.masses[::-1])[::-1] for law in (p, q))
        least = max(1e-3, 2 * error)  # least probability for which a sum without a tilt is used
        thresholds = np.flatnonzero((sf_p > least) & (sf_q > least))[:: max(1, int(self.deviation / MAX_WEIGHT))]
        return [
            _Tails(math.log(a - error), math.log(b + error), 4 * error / min(a, b))
            for a, b in zip(sf_p[thresholds], sf_q[thresholds], strict=True)
        ]

    def best(self, gain: Callable[[_Tails], float]) -> tuple[float, _Tails]:
        """The largest gain over the thresholds of all tilts, and its tails."""
        tilts = TILT_GRID / self.deviation
        tails_at = [self.tails(float(tilt)) for tilt in tilts]
        gains = [gain(tails) for tails in tails_at]
        argmax = int(np.argmax(gains))
        lower, upper = math.log(tilts[max(argmax - 1, 0)]), math.log(tilts[min(argmax + 1, len(tilts) - 1)])
        best = max([(gains[argmax], tails_at[argmax]), *((gain(tails), tails) for tails in self.untilted())], key=_gain)
        for _ in range(12):  # steps of golden section
            trials = [lower + (1 - GOLDEN) * (upper - lower), lower + GOLDEN * (upper - lower)]
            candidates = [(gain(tails), tails) for tails in (self.tails(math.exp(trial)) for trial in trials)]
            lower, upper = (lower, trials[1]) if candidates[0][0] >= candidates[1][0] else (trials[0], upper)
            best = max(best, *candidates, key=_gain)
        return best


@dataclass(frozen=True)
class _TiltedSum:
    """Tilted masses of a sum, the threshold in the middle; error of each; logarithm of their scale, its round-off."""

    masses: Reals
    error: float
    log_scale: float
    slack: float


def _gain(found: tuple[float, _Tails]) -> float:
    return found[0]


def _power(*factors: tuple[Complexes, int]) -> tuple[Complexes, float]:
    """Product of powers of transforms, and the sum of its moduli with one factor less of each, for its error."""
    product = np.zeros(len(factors[0][0]), complex)
    log_moduli, logs = product.real.copy(), product.copy()
    for base, times in factors:
        if times:
            log_size = np.log(np.maximum(np.abs(base), 1e-300))
            logs += times * (log_size + 1j * np.angle(base))
            log_moduli += (times - 1) * log_size
    kept = log_moduli > -100.0  # smaller transforms are omitted
    product[kept] = np.exp(logs[kept])
    return product, float(np.exp(log_moduli[kept]).sum())


@states("flame", "weighed", item="SS-Topk, bags that users of one value fill, messages weighed", gives="lower",
        rests_on="proven")  # fmt: skip
@plainly
def weighed_lower(
    n_users: int, kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """Guarantee of a round of SS-Topk for one user (lower bound).

    The larger of the unweighted count for equal top coordinates and of the weighted one of this module, the latter for
    at least ``padded`` users.  A fractional ``kept`` is rounded down; at most 1e8 messages are weighted, in fewer
    coordinates if necessary.

    Source: this project, on Liu et al. 2021, Theorem 4 for SS-Topk.

    Examples
    --------
    >>> round(weighed_lower(1000, 157, 333, 0.5, delta=5.0118723e-6), 3)
    1.286
    >>> round(weighed_lower(100, 157, 333, 0.5, delta=5.0118723e-6), 3)
    1.198
    """
    counted = topk_lower(kept, padded, epsilon0, epsilon, delta)
    k = math.floor(min(kept, 10**8 // padded))  # messages at most
    if n_users < padded or not k or delta in (0.0, 1.0) or (epsilon or 0.0) > MAX_EPSILON:
        return counted
    weighing = Weighing(k, padded, epsilon0)
    if epsilon is None:
        gain, tails = weighing.best(lambda at: _log_ratio(at, delta or 0.0))
        p = math.exp(tails.log_p)
        bound = Certified(max(gain, 0.0), tails.width * (p / (p - (delta or 0.0)) + 1) if gain > 0 else 0.0)
    else:
        gain, tails = weighing.best(lambda at: math.exp(at.log_p) - math.exp(epsilon + at.log_q))
        bound = Certified(max(gain, 0.0), tails.width * 2 * math.exp(tails.log_p) if gain > 0 else 0.0)
    return max(bound, counted)


def _log_ratio(tails: _Tails, delta: float) -> float:
    numerator = math.exp(tails.log_p) * (1 - 2 * UNIT) - delta
    return math.log(numerator) - tails.log_q - 4 * UNIT if numerator > 0 else -math.inf
