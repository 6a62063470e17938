r"""What weighed messages give away: SS-Topk among users who report the same coordinates, a lower bound.

The victim holds the largest value in all her k coordinates, or the smallest; with her, :math:`n_p` users report them,
as many as fit, and the others hold the largest value.  A message of the value 0 in the place of one of the value 1 has
the likelihood ratio :math:`e^\ell`, :math:`-\varepsilon_0\le\ell\le\varepsilon_0`.  The analyzer gives each message
the whole number nearest to a multiple of

.. math:: -\log\bigl(1+(e^\ell-1)/n_p\bigr)

and adds up all :math:`kn_p` of them.  Every threshold c for that sum gives the lower bounds
:math:`\delta(\varepsilon)\ge P(S\ge c)-e^\varepsilon P(S'\ge c)` and
:math:`\varepsilon(\delta)\ge\log\frac{P(S\ge c)-\delta}{P(S'\ge c)}`.

Laws of sums are powers of Fourier transforms, tilted so that c is the mean; what wraps around (Bernstein's inequality)
and round-off are taken off the answer.  Adjacency: one user's vector is replaced.  Proof: book, chapter on FLAME,
"Weighing".
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

MAX_WEIGHT = 16  # largest weight, a whole number
LOG_OUTSIDE = 40.0  # minus the logarithm of the tilted mass outside the window
MAX_EPSILON = 600.0  # largest epsilon: exponentials beyond come near the largest double
TILT_GRID = np.geomspace(0.05, 40, 20)  # tilts tried first, in units of one over the standard deviation of the sum


class _Tails(NamedTuple):
    """Logarithms of a lower bound on the first chance and of an upper bound on the second; the wider error of both."""

    more: float
    less: float
    width: float


NO_TAILS = _Tails(-math.inf, 0.0, 0.0)  # bounds that hold for every sum


@dataclass(frozen=True)
class Weighing:
    """The sum of weights, all messages of value 1 (first law), or k of them of value 0 (second)."""

    kept: int
    padded: int
    epsilon0: float

    @cached_property
    def letters(self) -> tuple[Wholes, Reals, Reals]:
        """The weights, and their chances for the values 1 and 0."""
        size, local = self.padded, self.epsilon0
        worst, best = -math.log1p(math.expm1(min(local, 700.0)) / size), -math.log1p(math.expm1(-local) / size)
        finest = max(1, min(MAX_WEIGHT, int(7000 / math.sqrt(self.kept * size))))  # deviation of the sum at most, about
        step = max(-worst, best) / finest
        weights = np.arange(round(worst / step), round(best / step) + 1)
        grown = np.maximum(size * np.expm1(-step * (weights[:-1] + 0.5)), math.expm1(-local))
        ratios = np.clip(np.log1p(np.maximum(grown, -1 + 1e-15)), -local, local)  # at the ends of cells, falling
        below, above = 0.5 * np.exp(-(local + ratios) / 2), 0.5 * np.exp(-(local - ratios) / 2)
        ones, zeros = np.concatenate([[0.0], below, [1.0]]), np.concatenate([[1.0], above, [0.0]])
        return weights, np.diff(ones), -np.diff(zeros)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the sum."""
        weights, ones, _ = self.letters
        mean = ones @ weights
        return math.sqrt(self.kept * self.padded * float(ones @ (weights - mean) ** 2))

    def laws(self, tilt: float) -> tuple["_Law", "_Law"] | None:
        """Both laws of the sum under this tilt, about the mean of the first, unless they need too many places."""
        weights, ones, zeros = self.letters
        grown = np.exp(tilt * (weights - weights[-1]))
        moments = float(ones @ grown), float(zeros @ grown)
        tilted = ones * grown / moments[0], zeros * grown / moments[1]
        means = [float(law @ weights) for law in tilted]
        spread = max(float(law @ (weights - mean) ** 2) for law, mean in zip(tilted, means, strict=True))
        few, total, middle = self.kept, self.kept * self.padded, round(means[0])
        start, far = round(total * (means[0] - middle)), LOG_OUTSIDE * float(weights[-1] - weights[0]) / 3
        reach = far + math.sqrt(far**2 + 2 * LOG_OUTSIDE * total * spread) + few * abs(means[1] - means[0]) + 2
        size = 1 << math.ceil(math.log2(2 * reach))
        if size > 2**19:  # points of a distribution at most; a threshold that needs more is passed over
            return None
        one, zero = (np.fft.rfft(np.bincount(np.mod(weights - middle, size), law, size)) for law in tilted)
        shift = tilt * (start + total * (middle - int(weights[-1])))
        found = []
        for swapped in (0, few):
            transform, moduli = _power((one, total - swapped), (zero, swapped))
            chances = np.roll(np.fft.irfft(transform, size), size // 2 - start)
            error = 32 * math.log2(size) * UNIT * total * 2 * moduli / size  # round-off of a transform, per halving
            log_scale = (total - swapped) * math.log(moments[0]) + swapped * math.log(moments[1])
            slack = UNIT * (256 * total + 8 * (abs(log_scale) + abs(shift)))  # round-off of the probability of a cell
            found.append(_Law(chances, error, log_scale - shift, slack))
        return found[0], found[1]

    def tails(self, tilt: float) -> _Tails:
        """Both chances at the threshold that is the mean of the first law under this tilt, which is above 0."""
        laws = self.laws(tilt)
        if laws is None:
            return NO_TAILS
        more, less = laws
        half = len(more.chances) // 2
        fading = np.exp(-tilt * np.arange(half))
        ends = []
        for law, sign in ((more, -1), (less, 1)):
            chance = float(fading @ law.chances[half:])
            doubt = law.error * float(fading.sum()) + 4 * math.exp(-LOG_OUTSIDE)
            if not chance > 2 * doubt:
                return NO_TAILS
            end = math.log(chance + sign * doubt) + law.log_scale + sign * law.slack
            ends.append((end, 4 * doubt / chance + 2 * law.slack))
        return _Tails(min(ends[0][0], 0.0), ends[1][0], max(width for _, width in ends))

    def level(self) -> list[_Tails]:
        """Both chances at each threshold at which both are large, without a tilt."""
        laws = self.laws(0.0)
        if laws is None:
            return []
        more, less = laws
        doubt = max(more.error, less.error) * len(more.chances) + 4 * math.exp(-LOG_OUTSIDE) + more.slack + less.slack
        first, second = (np.cumsum(law.chances[::-1])[::-1] for law in (more, less))
        least = max(1e-3, 2 * doubt)  # least probability for which a sum without a tilt is used
        both = np.flatnonzero((first > least) & (second > least))[:: max(1, int(self.deviation / MAX_WEIGHT))]
        return [
            _Tails(math.log(a - doubt), math.log(b + doubt), 4 * doubt / min(a, b))
            for a, b in zip(first[both], second[both], strict=True)
        ]

    def best(self, gain: Callable[[_Tails], float]) -> tuple[float, _Tails]:
        """The largest gain of the thresholds that are tried, and its chances."""
        tilts = TILT_GRID / self.deviation
        found = [self.tails(float(tilt)) for tilt in tilts]
        gains = [gain(tails) for tails in found]
        top = int(np.argmax(gains))
        low, high = math.log(tilts[max(top - 1, 0)]), math.log(tilts[min(top + 1, len(tilts) - 1)])
        champion = max([(gains[top], found[top]), *((gain(tails), tails) for tails in self.level())], key=_first)
        for _ in range(12):  # steps of golden section to the best tilt
            sides = [low + (1 - GOLDEN) * (high - low), low + GOLDEN * (high - low)]
            tried = [(gain(tails), tails) for tails in (self.tails(math.exp(side)) for side in sides)]
            low, high = (low, sides[1]) if tried[0][0] >= tried[1][0] else (sides[0], high)
            champion = max(champion, *tried, key=_first)
        return champion


@dataclass(frozen=True)
class _Law:
    """Chances of a sum, the threshold in the middle; error of each; logarithms of their scale and of its round-off."""

    chances: Reals
    error: float
    log_scale: float
    slack: float


def _first(found: tuple[float, _Tails]) -> float:
    return found[0]


def _power(*factors: tuple[Complexes, int]) -> tuple[Complexes, float]:
    """Product of powers of transforms, and the sum of its moduli with one factor less of each, which bounds it."""
    product = np.zeros(len(factors[0][0]), complex)
    least, logs = product.real.copy(), product.copy()
    for base, times in factors:
        if times:
            size = np.log(np.maximum(np.abs(base), 1e-300))
            logs += times * (size + 1j * np.angle(base))
            least += (times - 1) * size
    heard = least > -100.0  # minus the logarithm of a transform that is left out
    product[heard] = np.exp(logs[heard])
    return product, float(np.exp(least[heard]).sum())


@states("flame", "weighed", item="SS-Topk, bags that users of one value fill, messages weighed", gives="lower",
        rests_on="proven")  # fmt: skip
@plainly
def weighed_lower(
    n_users: int, kept: float, padded: int, epsilon0: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """What a round of SS-Topk gives away about one user, whatever is claimed for it (lower bound).

    The larger of two attacks: that of equal top coordinates, where messages are counted, and that of this module, if
    there are as many users as ``padded``.  Of a fractional ``kept`` the whole part counts; at most 1e8 messages are
    weighed, in fewer coordinates if need be.

    Source: this project, on Liu et al. 2021, Theorem 4 for SS-Topk.

    Examples
    --------
    >>> round(weighed_lower(1000, 157, 333, 0.5, delta=5.0118723e-6), 3)
    1.286
    >>> round(weighed_lower(100, 157, 333, 0.5, delta=5.0118723e-6), 3)
    1.198
    """
    counted = topk_lower(kept, padded, epsilon0, epsilon, delta)
    whole = math.floor(min(kept, 10**8 // padded))  # messages weighed at most
    if n_users < padded or not whole or delta in (0.0, 1.0) or (epsilon or 0.0) > MAX_EPSILON:
        return counted
    weighing = Weighing(whole, padded, epsilon0)
    if epsilon is None:
        gain, tails = weighing.best(lambda at: _log_ratio(at, delta or 0.0))
        share = math.exp(tails.more)
        found = Certified(max(gain, 0.0), tails.width * (share / (share - (delta or 0.0)) + 1) if gain > 0 else 0.0)
    else:
        gain, tails = weighing.best(lambda at: math.exp(at.more) - math.exp(epsilon + at.less))
        found = Certified(max(gain, 0.0), tails.width * 2 * math.exp(tails.more) if gain > 0 else 0.0)
    return max(found, counted)


def _log_ratio(tails: _Tails, delta: float) -> float:
    spare = math.exp(tails.more) * (1 - 2 * UNIT) - delta
    return math.log(spare) - tails.less - 4 * UNIT if spare > 0 else -math.inf
