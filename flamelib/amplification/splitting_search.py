r"""How rules for split-and-mix are found: budgets that have one, smooth shares, the first number of messages to serve.

Ceilings are taken of exact fractions; what is rounded is rounded so that the budget is kept.  Standard library only.
"""

import math
from collections.abc import Callable
from itertools import count

from flamelib.amplification.splitting import LEAST_MESSAGES, log_ratio
from flamelib.core.logspace import MARGIN
from flamelib.core.vocabulary import DomainError, check

KEPT = 1 - 4 * MARGIN
LARGEST_EPSILON = 700.0
LEAST_SMOOTHNESS = 1e-300


def positive_budget(epsilon: float, delta: float) -> None:
    """Refuse budgets for which a rule has no parameters."""
    check(epsilon=epsilon, delta=delta)
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise DomainError(f"epsilon must be a number in (0, {LARGEST_EPSILON:g}] for this rule, got {epsilon!r}")
    if delta == 0:
        raise DomainError("delta must be a number in (0, 1] for this rule, got 0")


def least_odd(least: int) -> int:
    """The smallest odd whole number of at least this.

    Examples
    --------
    >>> least_odd(4), least_odd(5)
    (5, 5)
    """
    return least | 1


def smoothness_of(leak: float) -> float:
    r"""The smoothness :math:`\gamma` with :math:`\ln\frac{1+\gamma}{1-\gamma}` = ``leak``, not above it.

    Examples
    --------
    >>> round(smoothness_of(math.log(3)), 9)
    0.5
    """
    found = min(math.tanh(leak * KEPT / 2), math.nextafter(1.0, 0.0))
    while found > 0 and log_ratio(found) > leak * (KEPT + MARGIN):
        found = math.nextafter(found, 0.0)
    if found < LEAST_SMOOTHNESS:
        raise DomainError(
            f"epsilon must be so large that shares have a smoothness of {LEAST_SMOOTHNESS:g}, not {found:g}"
        )
    return found


def too_few(modulus: int, smoothness: float, log_allowed: float) -> int:
    """A number of messages, four at least, below which Lemma 1 fails too often even for this modulus.

    Examples
    --------
    >>> too_few(2**32 + 1, 0.1, -20.0)
    51
    """
    bits = (math.log(18) + 2 * (math.log(modulus) - math.log(smoothness)) - log_allowed) / math.log(4)
    return max(LEAST_MESSAGES, math.floor(bits))


def first_number(
    modulus: Callable[[int], int], holds: Callable[[int, int], bool], start: Callable[[int], int] = lambda _: 2
) -> tuple[int, int]:
    """The first number of messages that serves, and its modulus, from a start that the least modulus allows.

    Examples
    --------
    >>> first_number(lambda m: 10 * m, lambda m, modulus: m * modulus > 200)
    (5, 50)
    """
    return next((m, size) for m in count(start(modulus(2))) for size in (modulus(m),) if holds(m, size))
