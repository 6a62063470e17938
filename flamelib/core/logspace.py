"""Numbers held by their logarithms: differences, sums and the way back; standard library only."""

import math
from fractions import Fraction

# More than a logarithm made of a few functions of doubles is wrong, and than each of their values is, relatively.
MARGIN, ROUNDING = 1e-12, 2.0**-51
UNIT = 2.0**-53  # unit round-off of doubles
SMALLEST = math.ulp(0.0)  # the smallest positive double
ROUNDING_8, ROUNDING_16, ROUNDING_32 = 8 * UNIT, 16 * UNIT, 32 * UNIT  # relative error of so many roundings
MAX_EXPONENT = 700.0  # largest exponent of which exponentials are taken: they are doubles, with room for factors
MAX_SQUARED = 1e150  # largest number whose square is a double
MIN_DELTA = 1e-300  # least positive delta; a smaller one counts as 0
LOG_OMITTED = 45.0  # minus the logarithm of what is left out of a sum or an integral, relative to the rest
LOG_NORMAL_PEAK = -math.log(2 * math.pi) / 2  # logarithm of the standard normal density at 0


def log1mexp(gap: float) -> float:
    """``log(1 - exp(-gap))`` for ``gap >= 0``, infinite ones too, accurate at both ends; ``-inf`` at 0."""
    if gap == 0:
        return -math.inf
    return math.log(-math.expm1(-gap)) if gap < math.log(2) else math.log1p(-math.exp(-gap))


def log_expm1(exponent: float) -> float:
    """``log(exp(exponent) - 1)`` for ``exponent >= 0``, without overflow; ``-inf`` at 0."""
    return exponent + log1mexp(exponent)


def logaddexp(left: float, right: float) -> float:
    """``log(exp(left) + exp(right))`` without overflow; ``-inf`` stands for zero."""
    high, low = (left, right) if left >= right else (right, left)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def exp_or_inf(exponent: float) -> float:
    """``exp(exponent)``, or ``inf`` where a double cannot hold it."""
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf


def probability(log_value: float) -> float:
    """The probability with this logarithm, rounded up where it leaves the range of doubles.

    An upper bound that is positive stays positive: below the smallest positive double the answer is
    that double, and 0 is answered for ``-inf`` alone.  Above 1 the answer is 1.
    """
    if log_value == -math.inf:
        return 0.0
    return max(math.exp(min(log_value, 0.0)), SMALLEST)


def least_double(exact: Fraction) -> float:
    """The least double that is not below an exact number; ``inf`` beyond the largest."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def product_above(*factors: float) -> float:
    """The least double that is not below a product of non-negative numbers, any of which may be ``inf``."""
    if math.inf in factors:
        return math.inf
    return least_double(math.prod(map(Fraction, factors), start=Fraction(1)))


def product_below(*factors: float) -> float:
    """The largest double that is not above a product of finite non-negative numbers."""
    return -least_double(-math.prod(map(Fraction, factors), start=Fraction(1)))


def sum_above(*products: tuple[int, float]) -> float:
    """The least double that is not below the sum of these numbers, each taken so many times; one may be ``inf``."""
    if any(math.isinf(value) for _, value in products):
        return math.inf
    return least_double(sum((times * Fraction(value) for times, value in products), Fraction(0)))


def above(value: float, roundings: int = 32) -> float:
    """A non-negative result of so many roundings to nearest, raised by the most that they can have lost; 0 stays 0."""
    return math.nextafter(value * (1 + 2 * roundings * UNIT), math.inf) if value > 0 else value


def below(value: float, roundings: int = 32) -> float:
    """The same result, lowered by the most that the roundings can have added."""
    return math.nextafter(value * (1 - 2 * roundings * UNIT), 0.0) if value > 0 else value


def added_up(*logarithms: float) -> float:
    """The sum of logarithms, raised by the error that each of them may have (upper)."""
    return math.fsum(logarithms) + MARGIN + ROUNDING * sum(map(abs, logarithms))
