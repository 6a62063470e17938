"""The reading ``inner`` of Theorem 4.1: one measure against a mixture over the other records drawn, one crossing.

A term of :mod:`~flamelib.amplification.participation_terms` whose far component is itself a mixture.
"""

import math

import numpy as np

from flamelib.amplification.participation_terms import (
    EDGE,
    EPS,
    FAINTEST,
    Pair,
    crossing,
    gap,
    log_certain,
    log_rare,
    mills,
)
from flamelib.core.binomial import log_pmf, tilted_window
from flamelib.laws import Real

DEPTH = 60.0


def inner(pair: Pair, n: int, rate: float) -> tuple[float, float]:
    """Logarithm of the divergence from the mixture, and its error.

    Examples
    --------
    >>> value, error = inner(Pair(1.0, 0.0, 0.0, 0.0, 1.0), 0, 0.5)
    >>> f"{math.exp(value):.9f}", error < 1e-13
    ('0.078281843', True)
    """
    if pair.far == -math.inf:
        y, j, shares = np.zeros(1), np.zeros(1), np.ones(1)
    else:
        y = crossing(lambda at: _far(pair, n, rate, float(at[0]))[:2])
        j, shares = _far(pair, n, rate, float(y[0]))[2:]
    place = pair.place(y)
    z, deep = np.full(j.shape, max(place[0], EDGE)), np.full(j.shape, min(place[0], EDGE))
    if place[0] < EDGE:
        value = log_certain(deep[:1], y, mills(deep[:1] + pair.ratio), shares @ mills(deep + (j + 1) * pair.ratio))
    else:
        near = gap(z[:1], np.full(1, pair.ratio))
        value = log_rare(z[:1], y, near, shares @ gap(z, (j + 1) * pair.ratio))
    mean = float(shares @ (j + 1))
    blur = pair.far_error + mean * pair.near_error + 64 * EPS * (1 + mean * (pair.near + mean * pair.ratio**2))
    return float(value[0]), float(pair.error(place, y, -np.expm1(-y) * blur)[0])


def _far(pair: Pair, n: int, rate: float, y: float) -> tuple[Real, Real, Real, Real]:
    """Logarithm of the far components against the near one, its slope in y; the counts and their shares."""
    slope, curvature = -(pair.near + y) - pair.ratio**2 / 2, pair.ratio**2
    j, stride = tilted_window(n, rate, slope, curvature, DEPTH)
    logs = log_pmf(j, n, rate) + (slope - curvature * j / 2) * j + math.log(stride)
    top = logs.max()
    sizes = np.exp(logs - top)
    shares = sizes / sizes.sum()
    level = max(pair.far - pair.near + top + math.log(sizes.sum()), FAINTEST)
    return np.full(1, level), -np.atleast_1d(shares @ j), j, shares
