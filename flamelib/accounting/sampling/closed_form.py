r"""Amplification by sampling, in closed form.

A mechanism that is run on a random subset of the data has a smaller epsilon and delta.  Standard library only.
"""

import math
from fractions import Fraction

from flamelib.accounting.composition.closed_form import Budget
from flamelib.core.logspace import ROUNDING, above, least_double, log_expm1, logaddexp, product_above
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check


@states(
    "flame", "lem-4", item="Lemma 4, amplification by subsampling without replacement", gives="upper", rests_on="proven"
)
def sampled_without_replacement(epsilon: float, delta: float, sampled: int, population: int) -> Budget:
    r"""Budget of an (epsilon, delta)-private mechanism run on ``sampled`` of ``population`` members (upper).

    .. math:: \Big(\log\big(1+\tfrac mn(e^{\varepsilon}-1)\big),\ \tfrac mn\delta\Big).

    Subsets are uniform; one member's value is replaced, before sampling and after; the sizes are fixed and public.
    Tight over all mechanisms.

    Source: Liu et al. 2021, Lemma 4, after Balle, Barthe, Gaboardi 2018.

    Examples
    --------
    >>> found = sampled_without_replacement(1.0, 1e-6, 20, 1000)
    >>> round(found.epsilon, 9), found.delta
    (0.033788327, 2e-08)
    """
    if sampled > population:
        raise DomainError(f"sampled must be a whole number in [1, {population}], at most population, got {sampled}")
    rate = sampled / population
    return Budget(sampled_epsilon(epsilon, rate), least_double(Fraction(sampled, population) * Fraction(delta)))


@states("participation", "thm-2.5", item="Theorem 2.5, Poisson sampling", gives="upper", rests_on="proven",
        adjacency="add-remove")  # fmt: skip
def poisson_sampled(epsilon: float, delta: float, sampling_rate: float) -> Budget:
    r"""Budget of an (epsilon, delta)-private mechanism under Poisson sampling (upper).

    .. math:: \Big(\log\big(1+r(e^{\varepsilon}-1)\big),\ r\delta\Big).

    Adjacency: one member is added or removed, before sampling and after; members are drawn independently.

    Source: Balle, Barthe, Gaboardi 2018, Theorem 8; Hasircioglu, Gunduz 2022, Theorem 2.5.

    Examples
    --------
    >>> found = poisson_sampled(1.0, 1e-6, 0.02)
    >>> round(found.epsilon, 9), found.delta
    (0.033788327, 2e-08)
    """
    return Budget(sampled_epsilon(epsilon, sampling_rate), product_above(sampling_rate, delta))


def added_epsilon(epsilon: float, sampling_rate: float) -> float:
    r"""Epsilon after sampling at a rate when the smaller data set comes first, at most ``-log(1 - rate)``.

    .. math:: -\log\big(1-\beta(1-e^{-\varepsilon})\big)
    """
    epsilon, sampling_rate = check(epsilon=epsilon, sampling_rate=sampling_rate).values()
    loss = sampling_rate * -math.expm1(-epsilon)
    if loss < 0.5:
        return -math.log1p(-loss)
    rest = math.log1p(-sampling_rate) if sampling_rate < 1 else -math.inf
    return -logaddexp(rest, math.log(sampling_rate) - epsilon)


def unsampled_epsilon(epsilon: float, *sampling_rates: float) -> float:
    r"""Inverse of :func:`sampled_epsilon` at the product of some rates.

    .. math:: \log\big(1+(e^{\varepsilon}-1)/(r_1r_2\cdots)\big)
    """
    epsilon = check(epsilon=epsilon)["epsilon"]
    # Beyond 709 the exponential overflows.
    growth = math.expm1(epsilon) if epsilon < 709.0 else math.inf
    for rate in sampling_rates:
        growth /= check(sampling_rate=rate)["sampling_rate"]
    if growth < math.inf:
        return math.log1p(growth)
    return logaddexp(0.0, log_expm1(epsilon) - math.fsum(map(math.log, sampling_rates)))


def sampled_epsilon(epsilon: float, sampling_rate: float) -> float:
    r"""Epsilon after sampling at a rate: :math:`\log(1+\beta(e^{\varepsilon}-1))`, without overflow or cancellation."""
    epsilon, sampling_rate = check(epsilon=epsilon, sampling_rate=sampling_rate).values()
    if epsilon < 709.0:
        return min(epsilon, above(math.log1p(product_above(sampling_rate, math.expm1(epsilon))), 8))
    # log(beta e^epsilon + 1 - beta), the greater of the two summands set apart.
    log_main = epsilon + math.log(sampling_rate)
    log_rest = math.log1p(-sampling_rate) if sampling_rate < 1 else -math.inf
    rounding = ROUNDING * (epsilon - math.log(sampling_rate))
    return min(epsilon, max(log_main, log_rest) + math.log1p(math.exp(-abs(log_main - log_rest))) + rounding)
