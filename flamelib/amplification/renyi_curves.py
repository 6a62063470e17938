r"""From Rényi curves at every real order to epsilon and delta after many rounds, shuffled shares included.

A curve is the Rényi divergence of one round as a function of the order; rounds add up, adaptive ones included, and the
best of many orders is taken.

*Split-and-mix.*  Where the sum is computed by shuffled shares, the shares of two inputs of one coordinate with equal
sums are at most :math:`2^{-\sigma}` apart in total variation.  So the view of T rounds of d coordinates is at most
:math:`\eta=Td2^{-\sigma}` away from what a simulator that is told the noisy sums alone would draw (replace one
coordinate of one round after the other, what is chosen adaptively being computed from what went before).  If the
noisy sums are :math:`(\varepsilon,\delta)`-private,

.. math:: \Pr[V\in S] \le \Pr[\hat V\in S]+\eta \le e^\varepsilon\Pr[\hat V'\in S]+\delta+\eta
          \le e^\varepsilon\Pr[V'\in S]+\delta+(1+e^\varepsilon)\eta .

Standard library only.
"""

import math
from collections.abc import Callable

from flamelib.core.logspace import MARGIN, log_expm1, logaddexp
from flamelib.core.search import GOLDEN, smallest_epsilon
from flamelib.renyi import converted

Curve = Callable[[float], float]

STEP = 10 ** (1 / 16)
ORDERS = tuple(1 + STEP**i for i in range(-48, 145))
SECTIONS, SCAN = 32, 32


def curve_epsilon(curve: Curve, rounds: int, delta: float, log_eta: float = -math.inf) -> float:
    """Least epsilon found for all rounds of a mechanism with this Rényi curve, shares of that distance added (upper).

    Parameters
    ----------
    curve : callable
        Rényi divergence of one round at every real order above 1.
    rounds : int, at least 1
    delta : float in [0, 1]
    log_eta : float
        Natural logarithm of the total variation distance of the shares of all rounds, ``-inf`` for none.

    Examples
    --------
    >>> round(curve_epsilon(lambda order: order / 200, 1, 1e-5), 4)
    0.3753
    """
    if delta == 0 or delta == 1:
        return math.inf if delta == 0 else 0.0
    alone = _least(lambda order: converted(order, rounds * curve(order), delta))
    spare = math.log(delta) - log_eta
    if log_eta == -math.inf or not (math.isfinite(alone) and spare > math.log(2)):
        return alone * (1 + MARGIN) if log_eta == -math.inf else math.inf

    def log_delta(epsilon: float) -> float:
        return log_with_shares(curve_log_delta(curve, rounds, epsilon), epsilon, log_eta)

    low = _valley(log_delta, math.log(delta), alone, log_expm1(spare))
    return smallest_epsilon(log_delta, delta, low, at_least=alone) if log_delta(low) <= math.log(delta) else math.inf


def curve_log_delta(curve: Curve, rounds: int, epsilon: float) -> float:
    r"""Logarithm of the least delta found at ``epsilon`` of all rounds of a mechanism with this Rényi curve (upper).

    .. math:: \min_\lambda\ (\lambda-1)\,(D_\lambda-\varepsilon) + (\lambda-1)\log(\lambda-1) - \lambda\log\lambda ,

    a convex function of the order.

    Source: Canonne, Kamath, Steinke 2020, Proposition 12.

    Examples
    --------
    >>> round(math.exp(curve_log_delta(lambda order: order / 200, 1, 0.3753)) * 1e5, 3)
    0.998
    """

    def at(order: float) -> float:
        total = rounds * curve(order) * (1 + MARGIN)
        return (order - 1) * (total - epsilon + math.log1p(-1 / order)) - math.log(order) + MARGIN

    return min(_least(at), 0.0)


def log_with_shares(log_delta: float, epsilon: float, log_eta: float) -> float:
    r"""Logarithm of :math:`\delta+(1+e^\varepsilon)\eta`, never too small.

    Examples
    --------
    >>> round(math.exp(log_with_shares(math.log(1e-6), 0.0, math.log(1e-7))) * 1e6, 6)
    1.2
    """
    return logaddexp(log_delta, logaddexp(0.0, epsilon) + log_eta) + MARGIN


def _least(value: Callable[[float], float]) -> float:
    """Least value found over orders, of a quasi-convex function: on a grid, then by golden section around its best."""
    best = min(ORDERS, key=value)
    return min(value(best), value(_bottom(value, 1 + (best - 1) / STEP, 1 + (best - 1) * STEP)))


def _valley(value: Callable[[float], float], target: float, low: float, high: float) -> float:
    """The first argument of a scan not above the target; else the bottom of the valley around the lowest."""
    width = max(0.0, high - low) / SCAN
    found = [(value(low), low)]
    while found[-1][0] > target and len(found) <= SCAN:
        at = low + len(found) * width
        found.append((value(at), at))
    if found[-1][0] <= target:
        return found[-1][1]
    best = min(found)[1]
    return _bottom(value, max(low, best - width), best + width)


def _bottom(value: Callable[[float], float], low: float, high: float) -> float:
    """The least of a function that falls and then rises, by golden section."""
    for _ in range(SECTIONS):
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        low, high = (low, right) if value(left) <= value(right) else (left, high)
    return (low + high) / 2
