"""Numbers as balls: a midpoint and a radius that holds every rounding, by Arb; nothing of the library is used here.

A double and a whole number are exact; whatever is computed from them encloses the truth.  A comparison is true only
where it holds for every number of the balls.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flint import acb, arb, arb_poly, ctx, fmpz

BITS = 160  # of a midpoint

ctx.prec = BITS


def fitted(number: float) -> arb:
    """A double or a whole number, exactly."""
    return arb(number)


def most(*balls: arb) -> arb:
    """The largest of some numbers."""
    found = balls[0]
    for one in balls[1:]:
        found = found.max(one)
    return found


def positive(ball: arb) -> arb:
    """The positive part."""
    return ball.max(arb(0))


def choose(n: int, k: int) -> arb:
    """A binomial coefficient."""
    return arb(fmpz.bin_uiui(n, k)) if 0 <= k <= n else arb(0)


def binomial_law(n: int, chance: arb) -> list[arb]:
    """Probabilities of 0 to n successes, each from the one before."""
    return list(binomial_start(n, chance, n))


def binomial_start(n: int, chance: arb, last: int) -> Iterator[arb]:
    """The same of 0 to ``last`` successes."""
    missed = 1 - chance
    if not missed > 0:
        yield from [arb(0)] * n
        yield arb(1)
        return
    term, odds = missed**n, chance / missed
    for k in range(last + 1):
        yield term
        term = term * (n - k) / (k + 1) * odds


def multiplied(one: Sequence[arb], other: Sequence[arb]) -> list[arb]:
    """The same by fast multiplication: an absolute error, relative to the largest of the probabilities."""
    product = arb_poly(list(one)) * arb_poly(list(other))
    return [product[i] for i in range(len(one) + len(other) - 1)]


def hockey_stick(first: Sequence[arb], second: Sequence[arb], epsilon: arb) -> arb:
    """What the first law exceeds ``exp(epsilon)`` times the second by."""
    return sum((positive(p - epsilon.exp() * q) for p, q in zip(first, second, strict=True)), arb(0))


def both_ways(first: Sequence[arb], second: Sequence[arb], epsilon: arb) -> arb:
    """The larger of the two directions."""
    return most(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))


def normal_below(x: arb) -> arb:
    """Chance that a standard normal number is at most x."""
    return (-x / arb(2).sqrt()).erfc() / 2


def gaussian_excess(shift: arb, epsilon: arb) -> arb:
    """Hockey-stick divergence of two normal laws of variance 1 that are ``shift`` apart."""
    return normal_below(shift / 2 - epsilon / shift) - epsilon.exp() * normal_below(-shift / 2 - epsilon / shift)


def integral(function: Callable[[Any, bool], Any], low: arb, high: arb, bits: int = 100) -> arb:
    """Integral of a function of a complex ball, which must not be finite where it is not analytic, if that is asked."""
    return acb.integral(function, acb(low), acb(high), rel_tol=arb(2) ** -bits, abs_tol=arb(2) ** -(bits + 20)).real


def harmonic(count: int) -> arb:
    """1 + 1/2 + ... + 1/count."""
    return sum((arb(1) / i for i in range(1, count + 1)), arb(0))
