r"""The logarithm of delta for one round of random participation, with its error: every reading, either direction.

A client of L records draws :math:`j\sim\mathrm{Bin}(L-1,q)` of the others.  With :math:`A = (e^{\varepsilon'}-1)/(pq)`
and the terms D of :mod:`~flamelib.amplification.participation_terms`,

* larger data set first: :math:`e^{\nu} = 1+pA`, :math:`e^{\lambda} = (1-p)A`, far component at :math:`(j+1)\mu`;
* smaller one first: :math:`\kappa = 1-p(1-q)A`, :math:`e^{\nu} = e^{\varepsilon'}/\kappa`,
  :math:`e^{\lambda} = (1-p)A/\kappa`, far component at :math:`j\mu`, everything times :math:`\kappa`.

D does not fall in j, and beyond some j the far component is negligible.
"""

import math
from typing import NamedTuple

import numpy as np

from flamelib.amplification.participation_aligned import aligned
from flamelib.amplification.participation_inner import inner
from flamelib.amplification.participation_terms import EPS, Logs, Pair, log_sum, pair_terms
from flamelib.amplification.sampling import unsampled_epsilon
from flamelib.core.binomial import MOST, log_pmf, window
from flamelib.core.logspace import exp_or_inf, log1mexp, log_expm1
from flamelib.laws import Real

BELOW = 40.0
POWERS = 2.0 ** np.arange(0, 12.5, 0.5)
LARGEST, SMALLEST, FAINTEST, SEPARATE = 1e130, 1e-300, 1e-100, 1e4
FURTHEST = 1e100
CLEAR = 1e-10
DOWN = 1 - 2.0**-51


class Estimate(NamedTuple):
    """Logarithm of a delta and how far it may be from the truth."""

    log: float
    error: float

    @property
    def high(self) -> float:
        """Never below the truth."""
        return self.log + self.error


def outer_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Larger data set first, the number of other records given away: an upper bound when its error is added.

    Parameters
    ----------
    p, q : float in (0, 1]
        Participation and record rate.
    n_records : int, at least 1
    ratio : float, at least 0
        Clipping norm over the noise's standard deviation; may be ``inf``.
    epsilon : float, at least 0
        After amplification.

    Examples
    --------
    >>> f"{math.exp(outer_estimate(0.1, 0.1, 2, 1.0, 0.1).log):.4e}"
    '1.8386e-04'
    """
    return _scaled(p, q, averaged(_pair(p, q, ratio, epsilon), n_records - 1, q, 1) if ratio < LARGEST else CERTAIN)


def add_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Smaller data set first: an upper bound when its error is added; arguments as of :func:`outer_estimate`.

    Examples
    --------
    >>> f"{math.exp(add_estimate(0.1, 0.1, 2, 1.0, 1e-3).log):.4e}"
    '3.1941e-03'
    """
    if ratio >= LARGEST:
        return _scaled(p, q, CERTAIN)
    if epsilon >= certain_epsilon(p, q, n_records):
        return NOTHING
    epsilon = min(epsilon, FURTHEST)
    lost = exp_or_inf(log_expm1(epsilon)) / q * (1 - q) if q < 1 else 0.0
    kept = max(1 - lost, 0.0) + 8 * EPS
    log_kept, error = math.log(kept), 16 * EPS * (1 + 1 / kept)
    far = _log_odds(p) + log_expm1(epsilon) - math.log(q) - log_kept
    near = epsilon - log_kept
    pair = Pair(near, far, error, error + 1.5 * EPS * _size(p, q, epsilon), max(ratio, SMALLEST))
    found = averaged(pair, n_records - 1, q, 0)
    add = _scaled(p, q, Estimate(found.log + log_kept, found.error + error))
    if add.error <= CLEAR:
        return add
    removed = outer_estimate(p, q, n_records, ratio, epsilon)
    if add.high <= removed.high:
        return add
    # Never the larger direction: where the record is about to be lost, rounding alone says otherwise.
    doubt = max(min(add.error, 32.0), removed.error)
    return Estimate(removed.high - doubt, doubt)


def certain_epsilon(p: float, q: float, n_records: int) -> float:
    """An epsilon that the smaller data set is sure of: the larger one draws the record in no more than this share.

    Examples
    --------
    >>> certain_epsilon(0.5, 0.5, 2) >= math.log(2)
    True
    """
    rate = p * q if n_records == 1 else q
    return -math.log1p(-rate) * (1 + 16 * EPS) if rate < 1 else math.inf


def inner_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """Larger data set first, one mixture inside the second measure: no bound; arguments as before.

    Examples
    --------
    >>> f"{math.exp(inner_estimate(0.1, 0.1, 2, 1.0, 0.1).log):.4e}"
    '8.9985e-05'
    """
    pair = _pair(p, q, min(ratio, LARGEST), epsilon)
    return _scaled(p, q, Estimate(*inner(pair, n_records - 1, q)))


def aligned_estimate(p: float, q: float, n_records: int, ratio: float, epsilon: float) -> Estimate:
    """All gradients of the client equal, larger data set first: a lower bound, at most ``error`` below the truth.

    Examples
    --------
    >>> f"{math.exp(aligned_estimate(0.1, 0.1, 2, 1.0, 0.1).log):.4e}"
    '1.7382e-04'
    """
    if ratio < FAINTEST or epsilon > FURTHEST:
        return NOTHING
    # A smaller ratio has less to give away, and from here on hardly less.
    enough = SEPARATE + 4 * math.sqrt(unsampled_epsilon(epsilon, q))
    pair = _pair(p, q, min(ratio * DOWN, enough), epsilon)
    low, width = aligned(pair, n_records - 1, q)
    if low == -math.inf:
        return NOTHING
    found = _scaled(p, q, Estimate(low, 0.0))
    return Estimate(found.log - found.error, width + 2 * found.error)


def averaged(pair: Pair, n: int, rate: float, offset: int) -> Estimate:
    """Logarithm of the binomial mean of the terms whose far component is at ``(j + offset) mu``.

    Counts outside the window have a share below rounding: few come rarely, and many cost at most the limit.
    """
    limit = _log_terms(pair.alone, np.ones(1))
    top, top_error = float(limit.values[0]), float(limit.errors[0])
    settled = _settled(pair, top) - offset
    some = np.unique(np.minimum(np.floor(np.append(0.0, max(n * rate, 1.0) * POWERS)), n))
    least = float((_log_terms(pair, some + offset).values + log_pmf(some, n, rate)).max())
    first, last = window(n, rate, BELOW, BELOW + top - least) if least > -math.inf else (0, n)
    if first >= settled or last - first > MOST:
        low = float(_log_terms(pair, np.array([float(first + offset)])).values[0]) if first < settled else top
        return Estimate((top + low) / 2, (top - low) / 2 + top_error + 4 * EPS)
    j = np.arange(first, last + 1, dtype=float)
    terms = Logs(np.full(j.shape, top), np.full(j.shape, top_error))
    open_end = j < settled
    found = _log_terms(pair, j[open_end] + offset)
    terms.values[open_end], terms.errors[open_end] = found.values, found.errors
    weights = log_pmf(j, n, rate)
    log, cost = log_sum(weights + terms.values, terms.errors - 24 * EPS * weights)
    return Estimate(log, cost + 64 * EPS)


NOTHING, CERTAIN = Estimate(-math.inf, 0.0), Estimate(0.0, 0.0)


def _log_terms(pair: Pair, k: Real) -> Logs:
    """The terms, ``k = 0`` included, where the far component lies on the one that is measured."""
    found = pair_terms(pair, np.maximum(k, 1.0))
    if k.size and k[0] == 0:
        found.values[0], found.errors[0] = -math.inf, 0.0
        if pair.far < 0:
            kept = log1mexp(-pair.far)
            error = pair.near_error + pair.far_error * (1 + math.exp(pair.far - kept)) + EPS
            alone = Pair(pair.near - kept, -math.inf, error, 0.0, pair.ratio)
            rest = pair_terms(alone, np.ones(1))
            found.values[0], found.errors[0] = rest.values[0] + kept, rest.errors[0] + error
    return found


def _settled(pair: Pair, top: float) -> float:
    """A k from which on the far component takes less than ``exp(-BELOW)`` of the term."""
    room = pair.far - top + BELOW
    if room <= 0:
        return 0.0
    return (math.sqrt(2 * room) - float(pair.place(np.zeros(1))[0])) / pair.ratio


def _pair(p: float, q: float, ratio: float, epsilon: float) -> Pair:
    epsilon = min(epsilon, FURTHEST)
    near = unsampled_epsilon(epsilon, q)
    far = _log_odds(p) + log_expm1(epsilon) - math.log(q)
    return Pair(near, far, 2 * EPS * near, 1.5 * EPS * _size(p, q, epsilon), max(ratio, SMALLEST))


def _log_odds(p: float) -> float:
    """``log((1 - p) / p)``."""
    return math.log1p(-p) - math.log(p) if p < 1 else -math.inf


def _size(p: float, q: float, epsilon: float) -> float:
    """Size of the logarithms that the far component's is the sum of."""
    logs = log_expm1(epsilon), math.log(p), math.log(q), math.log1p(-p) if p < 1 else 0.0
    return 1 + sum(abs(x) for x in logs if math.isfinite(x))


def _scaled(p: float, q: float, found: Estimate) -> Estimate:
    rate = math.log(p) + math.log(q)
    return Estimate(found.log + rate, found.error + EPS * (4 + abs(rate)))
