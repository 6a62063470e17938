r"""Tails of sums of the amplification variable: the logarithm of delta as a function of epsilon.

Each curve is for epsilon in (0, epsilon0] and may exceed 0.  What does not depend on epsilon is computed once, so
that a search over a curve costs microseconds.  Standard library only.
"""

import math
from collections.abc import Callable

from flamelib.amplification.loss_variable import LossShape
from flamelib.core.logspace import log1mexp, log_expm1

LogDelta = Callable[[float], float]


def hoeffding_curve(shape: LossShape, n_users: int) -> LogDelta:
    """Hoeffding's inequality for every number of blanket users, averaged."""
    mass, spread = shape.mass, shape.spread
    scale = 2 * math.log(spread) - math.log(4) - shape.log_mass - math.log(n_users)

    def log_delta(epsilon: float) -> float:
        growth = math.expm1(epsilon)
        ratio = math.tanh(epsilon / 2) / spread  # a / b
        power = n_users * math.log1p(mass * math.expm1(-2 * ratio * ratio))
        return scale + 2 * math.log(growth + 2) - math.log(growth) + power

    return log_delta


def bennett_curve(shape: LossShape, n_users: int) -> LogDelta:
    """Bennett's inequality for every number of blanket users, averaged."""
    mass, odds = shape.mass, shape.odds
    scale = -shape.log_mass - math.log(n_users)

    def log_delta(epsilon: float) -> float:
        log_front, decay = _bennett_parts(shape, epsilon)
        power = n_users * math.log1p(mass * math.expm1(-decay))
        return scale + log_front + power + log1mexp(n_users * math.log1p(math.exp(-decay) * odds))

    return log_delta


def _bennett_parts(shape: LossShape, epsilon: float) -> tuple[float, float]:
    """Logarithm of ``b_+ / log(1 + a b_+ / c)``, and minus the logarithm of ``x``."""
    log_a = log_expm1(epsilon)
    log_c = shape.log_second_moment(epsilon, log_a)
    u = math.exp(log_a + shape.log_high(epsilon) - log_c)
    stretch = u / math.log1p(u) if u > 0 else 1.0
    return log_c - log_a + math.log(stretch), math.exp(2 * log_a - log_c) * phi_over_square(u)


def phi_over_square(u: float) -> float:
    """``((1 + u) log(1 + u) - u) / u^2``, by its series near 0 where the difference cancels."""
    if u > 0.03:
        return ((1 + u) * math.log1p(u) - u) / (u * u)
    total = 0.0
    for degree in range(12, 1, -1):
        total = 1 / (degree * (degree - 1)) - u * total
    return total


def withdrawn_curve(shape: LossShape, n_users: int) -> LogDelta:
    """The form before the correction: every term divided by ``a m`` (no bound)."""
    mass, odds = shape.mass, shape.odds
    scale = -shape.log_mass - math.log(n_users)

    def log_delta(epsilon: float) -> float:
        log_front, decay = _bennett_parts(shape, epsilon)
        power = n_users * math.log1p(mass * math.expm1(-decay))
        inverse = math.log(_mean_inverse(n_users, math.exp(-decay) * odds))
        return scale + log_front - log_expm1(epsilon) + power + inverse

    return log_delta


def _mean_inverse(n: int, odds: float) -> float:
    r"""``E[1/M; M >= 1]`` for a binomial M of n trials with these odds of success.

    Few trials: the sum of :math:`(w^i - w^n)/(n-i)` with :math:`w = 1/(1+\text{odds})`, from the integral of
    :math:`((1+t)^n - 1)/t`.  Many successes: Waring's series of inverse rising factorials, whose error is below
    ``1e-17``.  Else the probabilities themselves, by their recurrence.
    """
    chance = odds / (1 + odds) if odds < 1e300 else 1.0
    if n <= 1000:
        rate = min(math.log1p(odds), 1000.0)
        return math.fsum(-math.exp(-i * rate) * math.expm1((i - n) * rate) / (n - i) for i in range(n))
    if n * chance > 200:
        term, total = 1 / ((n + 1) * chance), 0.0
        for j in range(1, 15):
            total += term
            term *= j / ((n + j + 1) * chance)
        return total
    weight, total, m = n * odds * math.exp(-n * math.log1p(odds)), 0.0, 1
    while m <= n * chance or weight > 1e-18 * total:
        total += weight / m
        weight *= (n - m) / (m + 1) * odds
        m += 1
    return total
