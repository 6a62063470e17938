r"""Exact accounting of Skellam noise on an integer of known sensitivity.

Its distribution is log-concave, so the set on which the likelihood ratio of a shift exceeds :math:`e^\varepsilon` is a
half-line, and delta a difference of tails, increasing in the shift (:mod:`flamelib.accounting.noise.sums`).  Vectors
are compositions of one pair for each coordinate, by :func:`flamelib.accounting.composition.dominating_pair.composed`
where the shift of every coordinate is known, as for sketches.

Skellam probabilities have the ratios :math:`r_x = I_{x+1}(\mu)/I_x(\mu)` with :math:`r_{x-1} = 1/(2x/\mu + r_x)`, a
downward recursion that is independent of its start.  Masses are tabulated up to a tail mass; beyond, those of Q are
bounded from below, an upper bound of delta:
:math:`-\ln r_x \le \operatorname{arsinh}\frac{x+1}\mu` (Amos 1974), at most its integral from x + 1 to x + 2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.accounting.noise.sum_laws import LOG_LOST
from flamelib.accounting.noise.sums import log_delta
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import MAX_EXPONENT, UNIT, probability
from flamelib.core.search import smallest_epsilon
from flamelib.core.vocabulary import DomainError, check

LARGEST_VARIANCE = 1e8  # largest variance: 2e5 tabulated masses


@dataclass(frozen=True, eq=False)
class WholeNoise:
    """A symmetric log-concave distribution on the integers, by the logarithms of its masses at 0, 1, 2, ...

    The mass beyond the table is at most ``exp(log_lost)``; logarithms decrease there by at most the increase of the
    convex function ``fall``.
    """

    logs: Reals
    log_lost: float
    fall: Callable[[int], float]
    concave: ClassVar[bool] = True
    decay: ClassVar[float] = 0.0

    @property
    def log_atom(self) -> float:
        """``log P(W = 0)``."""
        return float(self.logs[0])

    def log_mass(self, x: int) -> float:
        """``log P(W = x)``; beyond the table, a lower bound."""
        last = len(self.logs) - 1
        return float(self.logs[min(x, last)]) - (self.fall(x) - self.fall(last) if x > last else 0.0)

    def log_above(self, x: int) -> float:
        """``log P(W >= x)`` of the tabulated masses."""
        return float(self._tails[x]) if x < len(self.logs) else -math.inf

    def error(self, x: int) -> float:
        """A bound on the round-off of a logarithm."""
        return UNIT * (64 + 4 * math.sqrt(len(self.logs)) - 4 * self.log_mass(x))

    @cached_property
    def _tails(self) -> Reals:
        # Where masses underflow, sums of logarithms.
        held = 1e-280  # smallest sum in doubles
        sums, logs = _running_sums(np.exp(self.logs[::-1])), np.logaddexp.accumulate(self.logs[::-1])
        return np.where(sums > held, np.log(np.maximum(sums, held)), logs)[::-1]

    def cells(self, shift: int) -> DominatingPair:
        """The pair (noise + ``shift``, noise), one cell for each outcome.

        Outcomes in only one of the tables are distinguishing.
        """
        last = len(self.logs) - 1
        if not 1 <= shift <= last // 2:
            raise DomainError(f"shift must be a whole number in [1, {last // 2}] for this noise, got {shift}")
        outcomes = np.arange(shift - last, last + 1)
        log_q, log_p = self.logs[np.abs(outcomes)], self.logs[np.abs(outcomes - shift)]
        losses, width = log_p - log_q, 2 * self.error(last)
        base, p_mass = np.exp(log_q), np.exp(log_p)
        # For losses beyond the largest exponential the base is negligible.
        gain = np.where(losses < MAX_EXPONENT, base * np.expm1(np.minimum(losses, MAX_EXPONENT)), p_mass)
        disjoint = math.exp(self.log_above(last + 1 - shift)) + 2 * math.exp(self.log_lost)
        rows = (losses - width, losses + width, base, gain, 2 * width * (base + p_mass))
        ends = ([-math.inf, math.inf], [-math.inf, math.inf], [disjoint, 0.0], [-disjoint, disjoint], [0.0, 0.0])
        return DominatingPair(*(np.append(row, end) for row, end in zip(rows, ends, strict=True)))


def skellam_noise(variance: float) -> WholeNoise:
    """Skellam noise of a variance in [1e-100, 1e8], a difference of two Poisson numbers (exact up to round-off).

    Source: Agarwal, Kairouz, Liu 2021.
    """
    variance = check(variance=variance)["variance"]
    last = _reach(variance)
    ratio, ratios = 0.0, np.empty(last)
    # last + 64 steps of the recursion before the tabulated ratios.
    for x in range(2 * last + 64, 0, -1):
        ratio = 1 / (2 * x / variance + ratio)
        if x <= last:
            ratios[x - 1] = ratio

    def fall(x: int) -> float:
        return (x + 1) * math.asinh((x + 1) / variance) - (x + 1) ** 2 / (math.hypot(x + 1, variance) + variance)

    return _normalised(np.append(0.0, _running_sums(np.log(ratios))), fall)


def shift_budget(noise: WholeNoise, shift: int, epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Guarantee of this noise on an integer of sensitivity ``shift`` (upper).

    Exactly one of ``epsilon`` and ``delta`` is given; the answer is the other one.
    """
    if (epsilon is None) == (delta is None):
        raise DomainError("exactly one of epsilon and delta must be given")
    if delta is not None:
        target = check(delta=delta)["delta"]
        return Certified(smallest_epsilon(lambda at: log_delta(noise, shift, at), target, math.inf), 0.0)
    found = probability(log_delta(noise, shift, check(epsilon=epsilon)["epsilon"]))
    return Certified(found, min(found, 16 * noise.error(shift)))


def _reach(variance: float) -> int:
    """Quantile of the noise at tail mass ``exp(-LOG_LOST)``, by Bernstein's inequality."""
    min_variance = 1e-100  # least variance whose ratios of masses are doubles
    if not min_variance <= variance <= LARGEST_VARIANCE:
        ends = f"[{min_variance:g}, {LARGEST_VARIANCE:g}]"
        raise DomainError(f"variance must be in {ends} for exact masses, got {variance:g}")
    third = (LOG_LOST + 1) / 3
    return math.ceil(third + math.sqrt(third * third + 2 * (LOG_LOST + 1) * variance))


def _running_sums(terms: Reals) -> Reals:
    """Compensated running sums."""
    sums = np.cumsum(terms)
    before = np.append(0.0, sums[:-1])
    added = sums - before
    return np.asarray(sums + np.cumsum((before - (sums - added)) + (terms - added)))


def _normalised(logs: Reals, fall: Callable[[int], float]) -> WholeNoise:
    total = 1 + 2 * float(np.exp(logs[1:]).sum())
    return WholeNoise(logs - math.log(total), math.log(2) - LOG_LOST, fall)
