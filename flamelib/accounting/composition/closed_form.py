"""Composition theorems in closed form, for mechanisms of equal (epsilon, delta).

Compositions may be adaptive, and have the adjacency of the mechanisms.  A ``delta`` is a probability: where a formula
exceeds 1 the answer is 1, a vacuous guarantee.
Standard library only.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from flamelib.core.logspace import above, least_double, product_above
from flamelib.core.statements import states


@dataclass(frozen=True, slots=True)
class Budget:
    """A pair (epsilon, delta) by a formula; ``epsilon`` may be ``inf``, and a ``delta`` of 1 or more is vacuous."""

    epsilon: float
    delta: float


@states("flame", "lem-2", item="Lemma 2, basic composition", gives="upper", rests_on="proven", adjacency="none")
def basic_composition(epsilon: float, times: int) -> float:
    r"""Epsilon of ``times`` pure mechanisms together, :math:`t\varepsilon` (upper).

    Source: Liu et al. 2021, Lemma 2, after Dwork, Rothblum, Vadhan 2010.

    Examples
    --------
    >>> basic_composition(0.25, 10)
    2.5
    """
    return product_above(epsilon, times)


@states("checkin", "strong-drv", item="strong composition of Dwork, Rothblum, Vadhan 2010", gives="upper",
        rests_on="proven", adjacency="none")  # fmt: skip
@states("flame", "lem-3", item="Lemma 3, advanced composition, after Dwork, Rothblum, Vadhan 2010", gives="upper",
        rests_on="proven", adjacency="none")  # fmt: skip
def advanced_composition(epsilon: float, delta: float, times: int, slack_delta: float) -> Budget:
    r"""Budget of ``times`` mechanisms that are each (epsilon, delta)-private (upper).

    .. math:: \Big(\varepsilon\sqrt{2t\log(1/\delta')} + t\varepsilon(e^{\varepsilon}-1),\ t\delta+\delta'\Big).

    The formula is as printed: where :math:`t\varepsilon` of basic composition is smaller, it is not taken.  Epsilon is
    ``inf`` beyond the range of doubles, delta at most 1.

    Parameters
    ----------
    slack_delta
        The :math:`\delta'` that composition adds.

    Source: Liu et al. 2021, Lemma 3, after Dwork, Rothblum, Vadhan 2010.

    Examples
    --------
    >>> round(advanced_composition(0.01, 0.0, 7850, 5e-6).epsilon, 3)
    5.167
    """
    return Budget(advanced_epsilon(epsilon, times, slack_delta), min(1.0, _delta_sum(times, delta, slack_delta)))


def advanced_epsilon(epsilon: float, count: float, slack: float) -> float:
    """The epsilon of :func:`advanced_composition` for a real ``count`` of mechanisms; arguments are not checked.

    A ``slack`` of 0 answers ``inf``, but 0 for an ``epsilon`` of 0.
    """
    if epsilon == 0:
        return 0.0
    if slack == 0:
        return math.inf
    return above(epsilon * math.sqrt(-2 * count * math.log(slack)) + count * epsilon * _expm1_or_inf(epsilon))


def least_epsilon(epsilon: float, count: float, slack: float) -> float:
    r"""The smaller of :math:`t\varepsilon` and :func:`advanced_epsilon`; arguments are not checked."""
    return min(product_above(epsilon, count), advanced_epsilon(epsilon, count, slack))


@states("checkin", "strong-kov", item="strong composition of Kairouz, Oh, Viswanath 2015", gives="upper",
        rests_on="proven", adjacency="none")  # fmt: skip
def kairouz_oh_viswanath(epsilon: float, times: int, slack_delta: float, delta: float = 0.0) -> Budget:
    r"""Budget of ``times`` mechanisms that are each (epsilon, delta)-private, never above the advanced one (upper).

    With :math:`b = t\varepsilon\,\frac{e^{\varepsilon}-1}{e^{\varepsilon}+1}`, epsilon is the least of

    .. math:: t\varepsilon, \qquad b + \varepsilon\sqrt{2t\log\big(e+\sqrt{t}\,\varepsilon/\delta'\big)}, \qquad
              b + \varepsilon\sqrt{2t\log(1/\delta')},

    and delta is :math:`1-(1-\delta)^t(1-\delta')`.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.4; proven in the chapter on FLAME, "Strong composition".

    Examples
    --------
    >>> found = kairouz_oh_viswanath(0.01, 7850, 5e-6)
    >>> round(found.epsilon, 6), f"{found.delta:.6g}"
    (4.748359, '5e-06')
    """
    drift = times * epsilon * math.tanh(epsilon / 2)
    spread = epsilon * math.sqrt(2 * times)
    first = drift + spread * math.sqrt(math.log(math.e + math.sqrt(times) * epsilon / slack_delta))
    second = drift + spread * math.sqrt(-math.log(slack_delta))
    least = min(product_above(times, epsilon), above(first), above(second))
    return Budget(least, _delta_union(delta, times, slack_delta))


def _delta_sum(times: int, delta: float, slack: float) -> float:
    return least_double(times * Fraction(delta) + Fraction(slack))


def _delta_union(delta: float, times: int, slack: float) -> float:
    """``1 - (1 - delta)^times (1 - slack)``, rounded up."""
    if delta in (0, 1):
        return delta or slack
    return min(1.0, above(-math.expm1(times * math.log1p(-delta) + math.log1p(-slack))))


def _expm1_or_inf(exponent: float) -> float:
    try:
        return math.expm1(exponent)
    except OverflowError:
        return math.inf
