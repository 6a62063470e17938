r"""Skellam noise for integer vectors, over many rounds; standard library only.

A vector of ``dimension`` integers is released with independent noise on every coordinate; replacing one member
moves it by at most ``sensitivity_2`` in the 2-norm and ``sensitivity_1`` in the 1-norm, in units of the grid.  Rényi
divergences of one round are added over rounds, adaptive ones included, and converted at the best of many real orders:
:math:`(\lambda-1)D_\lambda` is convex and 0 at :math:`\lambda=1`, so that the chord of a bound at whole orders bounds
it between them.  All answers are upper bounds.

*Split-and-mix.*  Where sums are computed by shuffled shares, those of one coordinate are :math:`2^{-\sigma}` apart in
total variation, those of T rounds of d coordinates :math:`\eta=Td2^{-\sigma}` from a function of the noisy sums alone
(by a hybrid argument over coordinates and rounds), and delta grows by :math:`(1+e^\varepsilon)\eta`.
Proof: book, chapter on cloak aggregation, theorem "Transfer" and "Vectors and learning".
"""

import math
from collections.abc import Callable

from flamelib.accounting.composition.renyi import converted
from flamelib.core.logspace import MARGIN, log_expm1, logaddexp
from flamelib.core.search import GOLDEN, smallest_epsilon
from flamelib.core.vocabulary import check

_Curve = Callable[[float], float]

ORDER_RATIO = 10 ** (1 / 16)  # ratio of neighbouring orders less 1: sixteen a decade, from 1 + 1e-3 to 1 + 1e9
REAL_ORDERS = tuple(1 + ORDER_RATIO**i for i in range(-48, 145))  # Rényi orders that are tried first
REJECTION = math.exp(-0.5)  # default probability that a vector is rounded again: more trials, a smaller norm


def vector_epsilon(
    dimension: int,
    sensitivity_2: float,
    variance: float,
    rounds: int,
    delta: float,
    sensitivity_1: float | None = None,
    security_bits: float | None = None,
) -> float:
    r"""Epsilon of Skellam noise on whole numbers after all rounds (upper, as cited); ``inf`` where none will do.

    ``variance`` is that of the noise of one coordinate of the sum.  Of the 1-norm no more than
    :math:`\min(\sqrt d\,\Delta_2,\Delta_2^2)` counts, which holds for every vector of d whole numbers.  With
    ``security_bits``, the :math:`\sigma` of one coordinate, the leakage of the shuffled shares of split-and-mix beside
    the sums is added.

    Source: Agarwal, Kairouz, Liu 2021, Corollary 3.6; Canonne, Kamath, Steinke 2020 (conversion).
    """
    given = check(dimension=dimension, sensitivity_2=sensitivity_2, variance=variance, rounds=rounds, delta=delta)
    dimension, sensitivity_2, variance, rounds, delta = given.values()
    curve = _curve(sensitivity_2, variance, _norm_1(sensitivity_2, sensitivity_1, dimension))
    return curve_epsilon(curve, rounds, delta, _log_distance(dimension, rounds, security_bits))


def least_variance(
    dimension: int,
    sensitivity_2: float,
    rounds: int,
    epsilon: float,
    delta: float,
    sensitivity_1: float | None = None,
    security_bits: float | None = None,
) -> float:
    """Least variance of Skellam noise with which :func:`vector_epsilon` keeps epsilon and delta: never too small.

    It is that of one coordinate of the sum, and ``inf`` where no noise is enough.  Delta is counted at epsilon itself;
    where the shares cost much of it there, less noise may keep a smaller epsilon.
    """
    max_variance = 1e300  # largest variance that is tried
    given = check(dimension=dimension, sensitivity_2=sensitivity_2, rounds=rounds, epsilon=epsilon, delta=delta)
    dimension, sensitivity_2, rounds, epsilon, delta = given.values()
    norm_1 = _norm_1(sensitivity_2, sensitivity_1, dimension)
    log_eta = _log_distance(dimension, rounds, security_bits)
    if delta == 1:
        return 0.0

    def log_delta(variance: float) -> float:
        if variance == 0:
            return 0.0
        curve = _curve(sensitivity_2, variance, norm_1)
        return _log_with_shares(curve_log_delta(curve, rounds, epsilon), epsilon, log_eta)

    reach = max(sensitivity_2 * sensitivity_2 * rounds, 1 / max_variance)
    while reach < max_variance and not (delta and log_delta(reach) <= math.log(delta)):
        reach *= 16
    return smallest_epsilon(log_delta, delta, reach) if reach < max_variance else math.inf


def rounded_norm(dimension: int, clip_norm: float, rejection: float = REJECTION) -> float:
    r"""Largest 2-norm of a vector of norm ``clip_norm`` after conditional random rounding (upper, as cited).

    .. math:: \min\Big\{\sqrt d + c,\ \sqrt{c^2+\tfrac d4+\sqrt{2\ln(1/\beta)}\,\big(c+\tfrac12\sqrt d\big)}\Big\}

    for :math:`c` = ``clip_norm`` in units of the grid.  Every coordinate is rounded up or down at random, without bias,
    and the whole vector once more while it is longer than this, which has a probability of at most :math:`\beta` =
    ``rejection`` (0: never). The sensitivity is this where a member is added or removed, twice as much where it is
    replaced.

    Source: Kairouz, Liu, Steinke 2021, The Distributed Discrete Gaussian Mechanism, conditional rounding.
    """
    given = check(dimension=dimension, clip_norm=clip_norm, rejection=rejection)
    root, norm = math.sqrt(given["dimension"]), given["clip_norm"]
    if given["rejection"] == 0:
        return float(norm + root) * (1 + MARGIN)
    spread = math.sqrt(-2 * math.log(given["rejection"])) * (norm + root / 2)
    return float(min(norm + root, math.hypot(norm, root / 2, math.sqrt(spread)))) * (1 + MARGIN)


def _log_distance(dimension: int, rounds: int, security_bits: float | None) -> float:
    """``log(T d 2^-sigma)``; ``-inf`` where no shares are sent."""
    if security_bits is None:
        return -math.inf
    bits = float(check(security_bits=security_bits)["security_bits"])
    return math.log(dimension) + math.log(rounds) - bits * math.log(2)


def _norm_1(sensitivity_2: float, sensitivity_1: float | None, dimension: int | None) -> float:
    """Least bound on the 1-norm of an integer vector of sensitivities."""
    bounds = [sensitivity_2 * sensitivity_2]
    bounds += [check(sensitivity_1=sensitivity_1)["sensitivity_1"]] if sensitivity_1 is not None else []
    bounds += [math.sqrt(check(dimension=dimension)["dimension"]) * sensitivity_2] if dimension is not None else []
    return min(bounds)


def _curve(sensitivity_2: float, variance: float, norm_1: float) -> _Curve:
    r"""Rényi divergence of Skellam noise on a vector of whole numbers, at every real order (upper, as cited).

    .. math:: \frac{\lambda\Delta_2^2}{2\mu} + \min\Big\{\frac{(2\lambda-1)\Delta_2^2+6\Delta_1}{4\mu^2},\
              \frac{3\Delta_1}{2\mu}\Big\}

    at whole orders, for the variance :math:`\mu` of the noise of one coordinate of the sum; chords between them.  Both
    directions are the same, the noise being symmetric.

    Source: Agarwal, Kairouz, Liu 2021, The Skellam Mechanism for Differentially Private Federated Learning,
    Theorem 3.5 and Corollary 3.6.
    """
    ratio = sensitivity_2 / math.sqrt(variance)
    square, first = ratio * ratio, norm_1 / variance

    def whole(order: float) -> float:
        more = min(((2 * order - 1) * square + 6 * first) / (4 * variance), 1.5 * first)
        return (order * square / 2 + more) * (1 + MARGIN)

    def at(order: float) -> float:
        low = math.floor(order)
        if low == order:
            return whole(order)
        part = order - low
        below = (low - 1) * whole(low) if low > 1 else 0.0
        return ((1 - part) * below + part * low * whole(low + 1)) / (order - 1)

    return at


# --- from a Rényi curve to epsilon and delta -------------------------------------------------------


def curve_epsilon(curve: _Curve, rounds: int, delta: float, log_eta: float = -math.inf) -> float:
    """Least epsilon found for all rounds of a mechanism with this Rényi curve (upper).

    ``curve`` is the divergence of one round at every real order above 1, ``log_eta`` the logarithm of the total
    variation distance of the shares of all rounds, ``-inf`` for none.
    """
    if delta == 0 or delta == 1:
        return math.inf if delta == 0 else 0.0
    alone = _least(lambda order: converted(order, rounds * curve(order), delta))
    spare = math.log(delta) - log_eta
    if log_eta == -math.inf or not (math.isfinite(alone) and spare > math.log(2)):
        return alone * (1 + MARGIN) if log_eta == -math.inf else math.inf

    def log_delta(epsilon: float) -> float:
        return _log_with_shares(curve_log_delta(curve, rounds, epsilon), epsilon, log_eta)

    low = _scan_minimum(log_delta, math.log(delta), alone, log_expm1(spare))
    return smallest_epsilon(log_delta, delta, low, at_least=alone) if log_delta(low) <= math.log(delta) else math.inf


def curve_log_delta(curve: _Curve, rounds: int, epsilon: float) -> float:
    r"""Logarithm of the least delta found at ``epsilon`` of all rounds of a mechanism with this Rényi curve (upper).

    .. math:: \min_\lambda\ (\lambda-1)\,(D_\lambda-\varepsilon) + (\lambda-1)\log(\lambda-1) - \lambda\log\lambda ,

    a convex function of the order.

    Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """

    def at(order: float) -> float:
        total = rounds * curve(order) * (1 + MARGIN)
        return (order - 1) * (total - epsilon + math.log1p(-1 / order)) - math.log(order) + MARGIN

    return min(_least(at), 0.0)


def _log_with_shares(log_delta: float, epsilon: float, log_eta: float) -> float:
    r"""Logarithm of :math:`\delta+(1+e^\varepsilon)\eta`, never too small."""
    return logaddexp(log_delta, logaddexp(0.0, epsilon) + log_eta) + MARGIN


def _least(value: Callable[[float], float]) -> float:
    """Least value found over orders, of a quasi-convex function: on a grid, then by golden section around its best."""
    best = min(REAL_ORDERS, key=value)
    return min(value(best), value(_golden_section(value, 1 + (best - 1) / ORDER_RATIO, 1 + (best - 1) * ORDER_RATIO)))


def _scan_minimum(value: Callable[[float], float], target: float, low: float, high: float) -> float:
    """First point of a scan with a value at most ``target``; else the minimum around the lowest point."""
    count = 32  # points of the scan
    width = max(0.0, high - low) / count
    found = [(value(low), low)]
    while found[-1][0] > target and len(found) <= count:
        at = low + len(found) * width
        found.append((value(at), at))
    if found[-1][0] <= target:
        return found[-1][1]
    best = min(found)[1]
    return _golden_section(value, max(low, best - width), best + width)


def _golden_section(value: Callable[[float], float], low: float, high: float) -> float:
    """Minimum of a unimodal function, by golden section."""
    for _ in range(32):  # golden sections, which shorten an interval to 2e-7 of itself
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        low, high = (low, right) if value(left) <= value(right) else (left, high)
    return (low + high) / 2
