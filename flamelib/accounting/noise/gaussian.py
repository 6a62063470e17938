r"""The Gaussian mechanism, exactly: delta, epsilon, and the noise that a guarantee needs; standard library only.

With :math:`\mu = \Delta/\sigma`, :math:`x = \varepsilon/\mu - \mu/2`, :math:`y = x + \mu` and Mills' ratio
:math:`M(t) = \Phi(-t)/\varphi(t) = \int_0^\infty e^{-tu-u^2/2}du`, as :math:`e^\varepsilon\varphi(y) = \varphi(x)`,

.. math:: \delta = \Phi(-x) - e^\varepsilon\,\Phi(-y) = \varphi(x)\,(M(x) - M(y))
          = \varphi(x) \int_0^\infty e^{-xu-u^2/2}\,(1 - e^{-\mu u})\,du .

The difference is taken where it does not cancel, elsewhere the integral, all of whose terms are positive; x is
computed from the inputs in exact arithmetic and rounded once.  So the logarithm of delta is right to ``MARGIN`` down
to the smallest double.  Proof: book, chapter on random participation, Theorem 2.4.
"""

import math
import sys
from collections.abc import Callable
from fractions import Fraction

from flamelib.core.guarantees import Certified
from flamelib.core.logspace import LOG_NORMAL_PEAK, MARGIN, MAX_SQUARED, probability
from flamelib.core.search import WIDTH, smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check, plainly

MIN_RATIO = 1e-6  # least ratio of sensitivity to noise_std: a smaller one is bounded by this
MAX_RATIO = 1000.0  # largest ratio of sensitivity to noise_std
TRAPEZOID_STEP = 1 / 8  # step of the trapezoid rule, whose error falls exponentially in it: below round-off
# Nodes of the trapezoid rule; the integrand is below round-off beyond.
TRAPEZOID_GRID = tuple(TRAPEZOID_STEP * i for i in range(-36, 30))


@states("participation", "thm-2.4", item="Theorem 2.4, Equation 2 (Balle, Wang 2018), the Gaussian mechanism",
        gives="exact", rests_on="proven", adjacency="add-remove")  # fmt: skip
def gaussian_mechanism(
    sensitivity: float, noise_std: float, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Guarantee of Gaussian noise on a vector that one record moves by at most ``sensitivity`` in the 2-norm (exact).

    .. math:: \delta = \Phi\Big(\frac{\Delta}{2\sigma} - \frac{\varepsilon\sigma}{\Delta}\Big)
              - e^\varepsilon\,\Phi\Big(-\frac{\Delta}{2\sigma} - \frac{\varepsilon\sigma}{\Delta}\Big)

    Both directions of a pair give this value, and it holds under every adjacency whose pairs are that far apart;
    add-remove is the document's.  Rounded up by less than 4e-12 of itself; a delta below the smallest double is
    answered by that double, and delta 0 by an infinite epsilon.

    Parameters
    ----------
    noise_std : float, positive
        Standard deviation of the noise of each coordinate, in the unit of ``sensitivity``.

    Source: Balle, Wang 2018, Theorem 8; Hasircioglu, Gunduz 2022, Theorem 2.4.

    Examples
    --------
    >>> f"{gaussian_mechanism(1.0, 2.0, epsilon=1.0):.9f}"
    '0.006829595'
    >>> f"{gaussian_mechanism(1.0, 2.0, delta=1e-6):.6f}"
    '2.254085'
    """
    if epsilon is None:
        return _epsilon(sensitivity, noise_std, 1.0 if delta is None else delta)
    value = log_delta(sensitivity, noise_std, epsilon)
    high = probability(value + MARGIN)
    return Certified(high, 2 * MARGIN * high + math.ulp(high))


def log_delta(sensitivity: float, noise_std: float, epsilon: float) -> float:
    """Natural logarithm of the exact delta at ``epsilon``, within 1e-12 where delta is a double; never ``-inf``."""
    given = check(sensitivity=sensitivity, noise_std=noise_std, epsilon=epsilon)
    return _log_delta(given["sensitivity"], given["noise_std"], given["epsilon"])[0]


@plainly
def analytic_noise_std(sensitivity: float, epsilon: float, delta: float) -> float:
    r"""Least noise that gives (epsilon, delta), never too small and 1e-11 of itself too large at most (upper side).

    Needs a delta in (0, 1).  The search ends where :math:`\delta \le \Phi(-x) \le e^{-x^2/2}`, or total variation, is
    small enough for certain.  The answer is in the unit of ``sensitivity``.
    """
    given = check(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    if not 0 < given["delta"] < 1:
        raise DomainError(f"delta must be a number in (0, 1) for Gaussian noise, got {delta!r}")
    unit, target = given["sensitivity"], math.log(given["delta"])
    tail = math.sqrt(-2 * target)
    ratio = max(2 * epsilon / (tail + math.sqrt(tail * tail + 2 * epsilon)), math.sqrt(2 * math.pi) * delta)
    return _least(lambda std: _log_delta(unit, std, epsilon)[0] if std else 0.0, delta, unit / ratio)


@plainly
def classical_noise_std(sensitivity: float, epsilon: float, delta: float) -> float:
    r"""Noise of the classical formula :math:`\sigma = \Delta\sqrt{2\log(1.25/\delta)}/\varepsilon` (a value).

    Its proof needs :math:`\varepsilon \le 1`; beyond, the noise can be too little for the guarantee.

    Source: Dwork, Roth 2014, Theorem A.1; used in Liu et al. 2021 for every epsilon.
    """
    given = check(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    if given["epsilon"] == 0 or not 0 < given["delta"] < 1:
        raise DomainError(f"epsilon must be above 0 and delta in (0, 1) for Gaussian noise, got {epsilon} and {delta}")
    return float(given["sensitivity"]) * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _epsilon(sensitivity: float, noise_std: float, delta: float) -> Certified:
    if delta in (0.0, 1.0):
        return Certified(math.inf if delta == 0 else 0.0, 0.0)
    ratio = _rounded(Fraction(sensitivity) / Fraction(noise_std))
    reach = ratio * ratio / 2 + ratio * math.sqrt(-2 * math.log(delta))
    found = _least(lambda epsilon: _log_delta(sensitivity, noise_std, epsilon)[0], delta, reach)
    if math.isinf(found):
        return Certified(found, 0.0)
    value, log_slope = _log_delta(sensitivity, noise_std, found)
    error = 2 * MARGIN * math.exp(min(value - log_slope, 700.0)) + 2 * WIDTH * found
    return Certified(found, min(error, found))


def _least(value: Callable[[float], float], delta: float, reach: float) -> float:
    """Least argument in [0, reach] with ``value + MARGIN <= log(delta)``, which holds at ``reach``."""
    at_most = reach * (1 + 1e-9)
    if math.isinf(at_most):
        return math.inf
    share = smallest_epsilon(lambda t: value(t * at_most) + MARGIN, delta, at_most=1.0)
    return share * at_most


def _log_delta(sensitivity: float, noise_std: float, epsilon: float) -> tuple[float, float]:
    r"""Logarithms of delta, and of :math:`e^\varepsilon\Phi(-y)`, its slope with the sign turned."""
    lowest = -sys.float_info.max  # in place of an underflowing logarithm
    scale = Fraction(noise_std) / Fraction(sensitivity)
    middle, half = Fraction(epsilon) * scale, 1 / (2 * scale)
    x, y, ratio = _rounded(middle - half), _rounded(middle + half), _rounded(2 * half)
    if x > MAX_SQUARED:
        return lowest, lowest
    log_density = LOG_NORMAL_PEAK - x * x / 2
    mills_y = _mills(y)
    slope = log_density + math.log(mills_y) if mills_y > 0 else lowest
    if x < -0.5:
        return math.log1p(-math.erfc(-x / math.sqrt(2)) / 2 - math.exp(slope)), slope
    mills_x = _mills(x)
    if mills_y <= mills_x / 2:
        return log_density + math.log(mills_x - mills_y), slope
    return log_density + math.log(sensitivity) - math.log(noise_std) + math.log(_mean(x, ratio)), slope


def _rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _mills(t: float) -> float:
    """Mills' ratio for ``t >= -0.5``: from the error function, or eight terms of its asymptotic series."""
    if t < 25:
        return math.sqrt(math.pi / 2) * math.exp(t * t / 2) * math.erfc(t / math.sqrt(2))
    total = 1.0
    for odd in range(15, 0, -2):
        total = 1 - odd / t / t * total
    return total / t


def _mean(x: float, ratio: float) -> float:
    """``(M(x) - M(x + ratio)) / ratio`` by the trapezoid rule under ``u = exp(t - exp(-t))``, in units of 1/x."""
    unit, total = 1 / max(1.0, x), 0.0
    for t in TRAPEZOID_GRID:
        decay = math.exp(-t)
        u = unit * math.exp(t - decay)
        z = ratio * u
        ratio_z = -math.expm1(-z) / z if z > 0 else 1.0
        total += u * u * (1 + decay) * math.exp(-(x + u / 2) * u) * ratio_z
    return TRAPEZOID_STEP * total
