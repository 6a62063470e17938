"""Shares of two users: divergences between two pairs of inputs with equal sum, by exact variances of subset sums.

The likelihood of two users' shuffled shares is proportional to the number of m-subsets that add up to the first input,
whose mean and variance are known exactly for every modulus, also for shares that are not distinct or smooth.  Proofs:
book, chapter on cloak aggregation, "Two users".  Standard library only.
"""

import math

from flamelib.core.logspace import added_up, log_expm1, logaddexp, probability
from flamelib.core.statements import states
from flamelib.core.vocabulary import plainly


@states("cloak", "own-1", item="this project: two users, total variation", gives="upper", rests_on="proven",
        adjacency="sum-preserving")  # fmt: skip
def two_user_distance(modulus: int, n_messages: int) -> float:
    r"""Total variation between the shuffled shares of two pairs of inputs with equal sum (upper).

    .. math:: \sqrt{N/C_m} \text{ for every modulus}, \qquad \sqrt{3N/(4C_m)} \text{ for an odd one}, \qquad
              C_m = \binom{2m}m

    for :math:`m\ge2`, at most 1; ``inf`` for a single message, which is not private.

    Source: this project, by the exact variance of the number of subsets with a given sum.

    Examples
    --------
    >>> round(two_user_distance(3, 4), 5), round(two_user_distance(4, 4), 5)
    (0.17928, 0.23905)
    """
    if n_messages < 2:
        return math.inf
    log_factor = math.log(0.75) if modulus % 2 else 0.0
    return probability(added_up(math.log(modulus), log_factor, -_log_central_binomial(n_messages)) / 2)


@states("cloak", "own-2", item="this project: two users, hockey-stick, every modulus", gives="upper", rests_on="proven",
        adjacency="sum-preserving")  # fmt: skip
def two_user_delta(modulus: int, n_messages: int, epsilon: float) -> float:
    r"""Delta between the shuffled shares of two pairs of inputs with equal sum (upper).

    .. math:: \frac{2(N-1)(1+e^{2\varepsilon})+4e^\varepsilon}{4(e^\varepsilon-1)\,C_m}, \qquad C_m = \binom{2m}m

    for :math:`m\ge2` and :math:`\varepsilon>0`, at most 1; else ``inf``.  Beyond
    :math:`e^\varepsilon = 1+\sqrt{2+2/(N-1)}`, where the formula is increasing, the answer is the value at that point.
    Messages need not be smooth or distinct.

    Source: this project, by :math:`(u)_+\le(u-Eu)^2/(4|Eu|)` and exact variances.

    Examples
    --------
    >>> f"{two_user_delta(30_000_001, 27, 0.1):.4e}"
    '1.6273e-07'
    """
    found = log_two_user_delta(modulus, n_messages, epsilon)
    return probability(found) if found < math.inf else math.inf


@plainly
def log_two_user_delta(modulus: int, n_messages: int, epsilon: float) -> float:
    """Logarithm of :func:`two_user_delta` for a modulus of any size; may exceed 0."""
    if n_messages < 2 or epsilon == 0:
        return math.inf
    epsilon = min(epsilon, math.log1p(math.sqrt(2 + 2 / (modulus - 1))))
    terms = math.log(2 * modulus - 2), math.log(2) + math.log(modulus - 1) + 2 * epsilon
    numerator = logaddexp(logaddexp(*terms), math.log(4) + epsilon)
    return added_up(numerator, -math.log(4), -log_expm1(epsilon), -_log_central_binomial(n_messages))


@states("cloak", "own-5", item="this project: two users, hockey-stick, by the second moment alone", gives="upper",
        rests_on="proven", adjacency="sum-preserving")  # fmt: skip
def second_moment_delta(modulus: int, n_messages: int, epsilon: float) -> float:
    r"""Delta between the shuffled shares of two pairs of inputs with equal sum, never above ``cloak:own-2`` (upper).

    .. math:: \frac{\sqrt{V+a^2}-a}2, \qquad a = e^\varepsilon-1, \quad
              V = \frac{c+2(N-1)e^{2\varepsilon}+4e^\varepsilon}{C_m}, \quad C_m = \binom{2m}m,

    with :math:`c = N-2` for an odd modulus and :math:`2(N-1)` for any other, for :math:`m\ge2` and every epsilon, at
    most 1; else ``inf``.  At 0 it is ``cloak:own-1``; beyond the epsilon at which it is least, the answer is that least
    value.

    Source: this project, by :math:`E|U|\le\sqrt{E U^2}` and exact variances.

    Examples
    --------
    >>> round(second_moment_delta(3, 2, 0.1), 4), f"{second_moment_delta(30_000_001, 27, 0.1):.4e}"
    (0.6048, '1.2610e-07')
    """
    if n_messages < 2:
        return math.inf
    log_subsets, twice = _log_central_binomial(n_messages), 2 * (modulus - 1)
    # exp(600) is finite; far beyond it the bound is 1.
    if math.log(twice) > log_subsets + 600.0:
        return 1.0
    c, inverse = modulus - 2 if modulus % 2 else twice, math.exp(-log_subsets)
    quadratic, linear = 1 + math.exp(math.log(twice) - log_subsets), 4 * inverse - 2
    constant = c / twice + (4 - 4 * inverse) / twice
    minimiser = (math.sqrt(linear * linear + 4 * quadratic * constant) - linear) / (2 * quadratic)
    epsilon = min(epsilon, math.log(max(minimiser, 1.0)))
    terms = math.log(c) if c else -math.inf, math.log(twice) + 2 * epsilon
    root = (logaddexp(logaddexp(*terms), math.log(4) + epsilon) - log_subsets) / 2
    log_gap = log_expm1(epsilon)
    top = max(root, log_gap)
    gap = math.exp(log_gap - top)
    log_denominator = top + math.log(math.hypot(math.exp(root - top), gap) + gap)
    return probability(added_up(2 * root, -math.log(2), -log_denominator))


def _log_central_binomial(n_messages: int) -> float:
    r"""Natural logarithm of :math:`\binom{2m}m` to some ulps, for m of any size.

    Beyond 512 by :math:`m\ln4-\frac12\ln(\pi m)-\frac1{8m}+\frac1{192m^3}`, whose remainder is below
    :math:`1/(640m^5)`.
    """
    if n_messages <= 512:  # messages up to which the binomial coefficient is computed itself
        return math.log(math.comb(2 * n_messages, n_messages))
    correction = (1 / 24 / n_messages**2 - 1) / (8 * n_messages)
    return math.fsum([n_messages * math.log(4), -math.log(math.pi * n_messages) / 2, correction])
