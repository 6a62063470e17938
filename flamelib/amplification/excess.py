"""Certified expectation of the positive part of a sum: the number behind every shuffling bound.

With S the sum of n independent copies of (0 with probability one minus the blanket mass, else L), the divergence is
the mean of the positive part of S over the mean number of blanket users.  Few combinations of atoms are summed one
by one; everything else is inverted (:mod:`flamelib.amplification.inversion`).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from flamelib.amplification.inversion import CLOSE, Line
from flamelib.amplification.tilted import ROUNDING
from flamelib.laws import AtomicLaw, LossLaw, Real

UNIT = 2.0**-53
ENUMERABLE = 100_000


@dataclass(frozen=True, slots=True)
class Bracket:
    """Lower and upper end of ``log(E[S_+] / (mass n))``."""

    low: float
    high: float


NOTHING = Bracket(-math.inf, -math.inf)


def bracket(law: LossLaw, n_users: int, close: float = CLOSE) -> Bracket:
    """Certified bracket of the logarithm of the divergence, about ``close`` wide or narrower."""
    if law.points[0].max() <= 0:
        return NOTHING
    if isinstance(law, AtomicLaw) and _combinations(law, n_users) <= ENUMERABLE:
        return _enumerated(law, n_users)
    return Bracket(*Line(law, n_users).bracket(close))


def quick(law: LossLaw, n_users: int) -> float:
    """Uncertified logarithm of the divergence, for finding the place at which to certify."""
    if law.points[0].max() <= 0:
        return -math.inf
    if isinstance(law, AtomicLaw) and _combinations(law, n_users) <= ENUMERABLE:
        return _enumerated(law, n_users).high
    return Line(law, n_users).quick()


def _cells(law: AtomicLaw) -> tuple[Real, Real]:
    """Distinct values with a user's probability of each, "not a blanket user" (value 0) included."""
    values = np.append(law.values, 0.0)
    chances = np.append(law.weights * law.mass, law.kept)
    return values[chances > 0], chances[chances > 0]


def _combinations(law: AtomicLaw, n_users: int) -> float:
    free = len(_cells(law)[0]) - 1
    return math.exp(sum(math.log((n_users + i) / i) for i in range(1, free + 1)))


def _enumerated(law: AtomicLaw, n_users: int) -> Bracket:
    """Sum over all counts of the atoms: positive terms only, so the relative error is a few roundings."""
    values, chances = _cells(law)
    counts = np.indices((n_users + 1,) * (len(values) - 1)).reshape(len(values) - 1, -1)
    counts = counts[:, counts.sum(0) <= n_users]
    counts = np.vstack([counts, n_users - counts.sum(0)])
    excess = values @ counts
    counts, excess = counts[:, excess > 0], excess[excess > 0]
    if not len(excess):
        return NOTHING
    logs = gammaln(n_users + 1) - gammaln(counts + 1).sum(0) + np.log(chances) @ counts + np.log(excess)
    total = _logsum(logs) - math.log(law.mass * n_users)
    error = ROUNDING * (gammaln(n_users + 1) + n_users * np.abs(np.log(chances)).max() + 8)
    return Bracket(total - error, total + error)


def _logsum(logs: Real) -> float:
    top = logs.max()
    return float(top + math.log(np.exp(logs - top).sum()))
