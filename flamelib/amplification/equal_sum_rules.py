r"""Parameters of split-and-mix that hide everything but the sum: rule T2 and its sharper relative.

The sum of the rounded values itself is not protected; errors come from rounding alone.  Each rule answers the first
number of messages that its bound allows, with factors of 60 digits.  Standard library only.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

from flamelib.amplification.splitting import honest, log_failure, log_ratio
from flamelib.amplification.splitting_messages import modulus_bits
from flamelib.amplification.splitting_pairs import log_two_user_delta
from flamelib.amplification.splitting_search import first_number, least_odd, positive_budget, smoothness_of, too_few
from flamelib.core.logspace import MARGIN
from flamelib.core.statements import states
from flamelib.core.vocabulary import check


@dataclass(frozen=True, slots=True)
class ExactRule:
    """Parameters that hide everything but the sum of the rounded values."""

    n_messages: int
    modulus: int
    scale: int
    smoothness: float
    bits: int


@states("cloak", "thm-2", item="Theorem 2, by Lemma 6 with explicit constants (rule T2)", gives="upper",
        adjacency="sum-preserving")  # fmt: skip
def exact_rule(epsilon: float, delta: float, n_users: int, error: float, colluding: int = 0) -> ExactRule:
    r"""Parameters without noise with which data sets of equal sum are (epsilon, delta)-close (upper).

    With :math:`t = n-|C|-1`, :math:`\gamma = \tanh\frac\varepsilon{2t}` and
    :math:`T = \frac{e^\varepsilon-1}{e^{\varepsilon/t}-1}`: :math:`k = \lceil n/\alpha\rceil`; for m = 4, 5, ... N is
    the smallest odd whole number of at least :math:`nk+1` and :math:`4m^2T/\delta`; the first m with
    :math:`\gamma>6\sqrt m/4^m` and :math:`\eta\,T\le\delta` serves.

    Parameters
    ----------
    epsilon : float in (0, 700]
    delta : float in (0, 1]
    n_users : int, at least 2
    error : float, positive
        The α that rounding may cost: k is the least whole number whose n/k, as a double, is not above it.
    colluding : int, from 0 to n_users - 2

    Raises
    ------
    DomainError
        Where ``epsilon`` or ``delta`` is 0, or ``epsilon`` above 700.

    Source: Ghazi, Pagh, Velingker 2019, Theorem 2 and Lemma 6.

    Examples
    --------
    >>> exact_rule(1.0, 1e-6, 100, 0.01).n_messages, exact_rule(1.0, 1e-6, 1000, 1e-3).bits
    (67, 3496)
    """
    swaps, scale, smoothness = _chain(epsilon, delta, n_users, error, colluding)
    chained = together(epsilon, swaps)
    log_allowed, quarter = math.log(delta) - float(chained.ln()) - 4 * MARGIN, Fraction(delta) / 4 / Fraction(chained)
    n_messages, modulus = first_number(
        lambda m: least_odd(max(n_users * scale + 1, math.ceil(m * m / quarter))),
        lambda m, modulus: log_failure(modulus, m, smoothness) <= log_allowed,
        lambda least: too_few(least, smoothness, log_allowed),
    )
    return ExactRule(n_messages, modulus, scale, smoothness, n_messages * modulus_bits(modulus))


def sharp_exact_rule(epsilon: float, delta: float, n_users: int, error: float, colluding: int = 0) -> ExactRule:
    r"""As :func:`exact_rule`, with ``cloak:own-2`` for each swap in place of Lemma 5 (upper).

    N is :math:`nk+1`, of either parity, and shares may repeat.

    Examples
    --------
    >>> found = sharp_exact_rule(1.0, 1e-6, 100, 0.01)
    >>> found.n_messages, found.modulus, found.bits
    (29, 1000001, 580)
    """
    swaps, scale, smoothness = _chain(epsilon, delta, n_users, error, colluding)
    log_allowed = math.log(delta) - float(together(epsilon, swaps).ln()) - 4 * MARGIN
    n_messages, modulus = first_number(
        lambda _: n_users * scale + 1,
        lambda m, modulus: log_two_user_delta(modulus, m, log_ratio(smoothness)) <= log_allowed,
    )
    return ExactRule(n_messages, modulus, scale, smoothness, n_messages * modulus_bits(modulus))


def grid_scale(n_users: int, error: float) -> int:
    r"""The least k whose n/k, as a double, is not above ``error``.

    Examples
    --------
    >>> grid_scale(3, 0.3), grid_scale(100, 0.01), grid_scale(7, 1e300)
    (10, 10000, 1)
    """
    check(n_users=n_users, error=error)
    if error >= n_users:
        return 1
    # What is below the middle between two doubles is rounded down; the middle itself may be rounded up.
    scale = math.ceil(2 * n_users / (Fraction(error) + Fraction(math.nextafter(error, math.inf))))
    return scale if n_users / scale <= error else scale + 1


def together(epsilon: float, swaps: int) -> Decimal:
    r"""The :math:`T = (e^\varepsilon-1)/(e^{\varepsilon/t}-1)` that t swaps cost a delta, to 60 digits.

    Examples
    --------
    >>> round(float(together(1.0, 99)), 6)
    169.252206
    """
    step = Decimal(epsilon) / swaps
    digits = Context(prec=60 + 2 * max(0, -step.adjusted()), traps=[])
    step = digits.divide(Decimal(epsilon), swaps)
    grown, once = (digits.subtract(digits.exp(power), 1) for power in (Decimal(epsilon), step))
    return digits.divide(grown, once)


def _chain(epsilon: float, delta: float, n_users: int, error: float, colluding: int) -> tuple[int, int, float]:
    """Swaps, scale and smoothness of the rules for data sets of equal sum."""
    positive_budget(epsilon, delta)
    swaps = honest(n_users, colluding) - 1
    return swaps, grid_scale(n_users, error), smoothness_of(epsilon / swaps)
