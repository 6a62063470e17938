r"""Communication and error of a private sum: cloak aggregation and other protocols.

Errors are absolute errors of an unnormalised sum of values in [0, 1] at the same (epsilon, delta): the mean where it is
known, otherwise a bound on it or a standard deviation.  A vector costs its dimension times as much, each coordinate
with this budget and this error.  Standard library only.

``cmp-t1``
    Rule T1; its bound on the mean error of the noise.
``cmp-t2``
    Rule T2, the sum itself unprotected; rounding, below n/k.
``cmp-ikos``
    Split-and-mix with :math:`N=3nk+1` and Pólya noise; mean error :math:`1/(k\sinh(\varepsilon/k))`, the decay being
    rounded up to a double.
``cmp-bon``
    Cryptographic aggregation of Bonawitz et al. 2017: nothing is shuffled, the sum is exact, and a user sends
    :math:`2n\cdot256+(5n-4)\,256+d\lceil\log_2(n(2^b-1)+1)\rceil` bits.
``cmp-blanket``
    One message by Theorem 4.1 of Balle et al. 2019 (``blanket:thm-4.1``); standard deviation.
``cmp-rec``
    The recursive protocol of Balle et al. 2020 with the parameters of the paper; standard deviation.
``cmp-central``, ``cmp-local``
    A trusted curator with Laplace noise, mean error :math:`1/\varepsilon`; Laplace noise of every user, standard
    deviation :math:`\sqrt{2n}/\varepsilon`.  A real number counts 64 bits.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from flamelib.accounting.shuffling.accuracy import summation_plan
from flamelib.accounting.shuffling.closed_form import blankets_needed
from flamelib.accounting.splitting.lemmas import modulus_bits
from flamelib.accounting.splitting.theorem_parameters import (
    default_scale,
    exact_rule,
    mix_rule,
    noisy_rule,
    positive_budget,
)
from flamelib.core.statements import states
from flamelib.core.vocabulary import VOCABULARY, DomainError

KEY_BITS = SHARE_BITS = 256  # of a public key and of a share of a key, as Bonawitz et al. count them
REAL_BITS = 64  # of a real number, a double
PROTOCOLS = tuple(word for word in VOCABULARY["protocol"].choices if word.startswith("cmp-"))
# Protocols of the vocabulary without a known cost.
NO_COST = {
    "cmp-cheu": "the constant of its error",
    "cmp-gmpv": "the constant of its number of messages",
    "cmp-gkm": "how near its number of messages is to 1",
    "cmp-pure": "the constant of its number of messages",
    "cmp-vec": "the constant of its number of messages",
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Messages and bits of one user, and the error of the sum; 0 messages for protocols without a shuffler."""

    messages: int
    bits: int
    error: float


@dataclass(frozen=True, slots=True)
class _Setting:
    n_users: int
    epsilon: float
    delta: float
    scale: int | None
    error: float | None
    dimension: int
    input_bits: int


@states("cloak", "cost", item="Section 8, costs, with the published formulas of the others", gives="value",
        adjacency="none", words={"protocol": PROTOCOLS})  # fmt: skip
def cost(
    protocol: str,
    n_users: int,
    epsilon: float,
    delta: float,
    scale: int | None = None,
    error: float | None = None,
    dimension: int = 1,
    input_bits: int = 16,  # bits of an input in the case that Bonawitz et al. measure
) -> Cost:
    """Messages and bits per user, and the error of the sum, of a protocol of the module's list (value).

    Refused for a protocol whose published cost has unknown constants, and outside the regime of a formula.

    Parameters
    ----------
    scale : int, optional
        Steps of the grid of the first three; ``10 * n_users`` where left out.
    error : float, optional
        Rounding error of ``cmp-t2``; ``n_users / scale`` where left out.
    input_bits : int from 1 to 64
        Bits b of an input of ``cmp-bon``; 16 where left out.

    Source: Ghazi, Pagh, Velingker 2019; Bonawitz et al. 2017; Balle, Bell, Gascon, Nissim 2019 and 2020.

    Examples
    --------
    >>> cost("cmp-ikos", 10_000, 1.0, 1e-6).bits, cost("cmp-t1", 10_000, 1.0, 1e-6).bits
    (288, 1890)
    >>> round(cost("cmp-bon", 2**10, 1.0, 1e-6, dimension=2**20).bits / (16 * 2**20), 2)
    1.73
    """
    if protocol in NO_COST:
        raise DomainError(f"protocol must be one whose cost is known, not {protocol}: {NO_COST[protocol]} is unknown")
    positive_budget(epsilon, delta)
    return COSTS[protocol](_Setting(n_users, epsilon, delta, scale, error, dimension, input_bits))


def _rule_t1(at: _Setting) -> Cost:
    rule = noisy_rule(at.epsilon, at.delta, at.n_users, at.scale)
    return Cost(at.dimension * rule.n_messages, at.dimension * rule.bits, rule.noise_bound)


def _rule_t2(at: _Setting) -> Cost:
    error = at.n_users / default_scale(at.n_users, at.scale) if at.error is None else at.error
    rule = exact_rule(at.epsilon, at.delta, at.n_users, error)
    return Cost(at.dimension * rule.n_messages, at.dimension * rule.bits, at.n_users / rule.scale)


def _split_and_mix(at: _Setting) -> Cost:
    rule = mix_rule(at.epsilon, at.delta, at.n_users, at.scale)
    return Cost(at.dimension * rule.n_messages, at.dimension * rule.bits, rule.mean_error)


def _bonawitz(at: _Setting) -> Cost:
    masked = at.dimension * modulus_bits(at.n_users * (2**at.input_bits - 1) + 1)
    return Cost(0, 2 * at.n_users * KEY_BITS + (5 * at.n_users - 4) * SHARE_BITS + masked, 0.0)


def _blanket(at: _Setting) -> Cost:
    plan = summation_plan(at.n_users, at.epsilon, at.delta)
    return Cost(at.dimension, at.dimension * modulus_bits(plan.n_levels + 1), math.sqrt(plan.mse))


def _recursive(at: _Setting) -> Cost:
    """Each message encodes the remainder of the previous ones on its levels, the last one with both end points."""
    m = max(1, round(math.log(math.log2(at.n_users), 3)))
    max_level = (at.n_users - 1) / (blankets_needed(2, at.epsilon / m, at.delta / m) / 2)
    base = ((3**m - 1) * at.n_users * at.epsilon**2 / m**3) ** (3 ** (-m - 1))
    levels = [min(math.ceil(base ** (3**j)), math.floor(max_level)) for j in range(1, m + 1)]
    if not 1 <= min(levels) <= levels[-1] < levels[-1] + 1 < max_level:
        raise DomainError(f"n_users must be larger for the recursive protocol at this budget, got {at.n_users}")
    mse = at.n_users / 4 / math.prod(levels) ** 2
    for j, p in enumerate(levels, 1):
        values = p + (j == m)
        mass = values / max_level
        spread = mass * (values**2 - 1) / 12 + (values - 1) ** 2 * mass * (1 - mass) / 4
        mse += at.n_users * spread / (1 - mass) ** 2 / math.prod(levels[:j]) ** 2
    return Cost(at.dimension * m, at.dimension * sum(modulus_bits(p + 1) for p in levels), math.sqrt(mse))


def _central(at: _Setting) -> Cost:
    return Cost(at.dimension, at.dimension * REAL_BITS, 1 / at.epsilon)


def _local(at: _Setting) -> Cost:
    return Cost(at.dimension, at.dimension * REAL_BITS, math.sqrt(2 * at.n_users) / at.epsilon)


COSTS: dict[str, Callable[[_Setting], Cost]] = {
    "cmp-t1": _rule_t1,
    "cmp-t2": _rule_t2,
    "cmp-bon": _bonawitz,
    "cmp-blanket": _blanket,
    "cmp-rec": _recursive,
    "cmp-ikos": _split_and_mix,
    "cmp-central": _central,
    "cmp-local": _local,
}
