"""Numbers held by their logarithms: differences, sums and the way back; standard library only."""

import math

# More than a logarithm made of a few functions of doubles is wrong, and than each of their values is, relatively.
MARGIN, ROUNDING = 1e-12, 2.0**-51
UNIT = 2.0**-53  # unit round-off of doubles
SMALLEST = math.ulp(0.0)


def log1mexp(gap: float) -> float:
    """``log(1 - exp(-gap))`` for ``gap >= 0``, accurate at both ends; ``-inf`` at 0.

    Parameters
    ----------
    gap : float
        At least 0; ``inf`` is allowed.
    """
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


def added_up(*logarithms: float) -> float:
    """The sum of logarithms, rounded up by what each of them may be wrong."""
    return math.fsum(logarithms) + MARGIN + ROUNDING * sum(map(abs, logarithms))
