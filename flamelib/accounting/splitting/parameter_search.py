"""The cheapest parameters of split-and-mix by each known theorem, for a given budget and error.

Two guarantees differ by their adjacency.  Sum-preserving: the sum is public and no noise is added; replace-one: users
add noise.  A vector is aggregated coordinate by coordinate, each with its own shuffle and an equal share of the budget.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from flamelib.accounting.noise.discrete_laplace import (
    crowded_error,
    crowded_reach,
    noise_decay,
    random_rounding_std,
    shared_noise,
    thinned_error,
)
from flamelib.accounting.noise.sum_laws import Noise, ThinnedNoise
from flamelib.accounting.splitting.lemmas import messages_needed, modulus_bits
from flamelib.accounting.splitting.n_user_bounds import least_messages
from flamelib.accounting.splitting.pairwise_swaps import least_messages_behind
from flamelib.accounting.splitting.theorem_parameters import (
    ExactRule,
    NoisyRule,
    exact_rule,
    grid_scale,
    least_odd,
    noise_shares,
    noisy_rule,
    positive_budget,
    security_needed,
    sharp_exact_rule,
    sharp_noisy_rule,
)
from flamelib.core.guarantees import Adjacency
from flamelib.core.logspace import MARGIN, probability
from flamelib.core.search import least_whole, least_whole_beyond
from flamelib.core.statements import states
from flamelib.core.vocabulary import LARGEST_MODULUS, DomainError, check, honest, plainly


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters that one theorem allows; bits of a user, mean error of the sum of each coordinate.

    The noise is ``none``, ``truncated Laplace`` (of some users, see ``noise_rate``) or ``Pólya`` (of all honest users).
    Up to ``colluding`` users may collude with the analyzer; the shuffler is trusted.
    """

    theorem: str
    adjacency: Adjacency
    n_messages: int
    modulus: int
    scale: int
    rounding: str
    noise: str
    decay: float
    noise_rate: float
    bits: int
    error: float
    colluding: int


@dataclass(frozen=True, slots=True)
class _Task:
    n_users: int
    epsilon: float
    delta: float
    error: float
    colluding: int
    dimension: int

    @property
    def each(self) -> tuple[float, float, int]:
        """Epsilon and delta of one coordinate, and the number of users."""
        return self.epsilon / self.dimension, self.delta / self.dimension, self.n_users


_Messages = Callable[[_Task, int, int], int]
"""Number of messages for a modulus and a scale, with Pólya noise of the task's epsilon."""


@states(
    "cloak",
    "plan",
    item="the cheapest parameters by each theorem, that of Balle, Bell, Gascon, Nissim 2020 among them",
    gives="value",
    adjacency="none",
)
def plans(
    n_users: int, epsilon: float, delta: float, error: float, colluding: int = 0, dimension: int = 1
) -> tuple[Plan, ...]:
    r"""Parameters by each theorem that attains the budget at this error, cheapest first (value, each one valid).

    Without noise, rounding down to a grid of :math:`k = \lceil n/\alpha\rceil` steps: rule T2, the same by
    ``cloak:own-2``, and total variation of :math:`\delta/d` by ``cloak:best-1`` and ``cloak:own-3``.  With noise: rule
    T1, the same by ``cloak:own-2``, and Pólya noise on randomly rounded values by ``cloak:best-1`` and ``cloak:own-3``,
    where :math:`\delta = d(1+e^\varepsilon)2^{-\sigma}`, and by ``cloak:own-6``, whose shares add :math:`\delta/d` for
    each coordinate; there the sum wraps around with probability at most :math:`\min(2^{-40}, 2^{-20}\alpha/n)`, which
    adds at most n times as much to the error.  The error bounds the mean absolute error of each coordinate; a theorem
    that does not attain the budget has no plan.

    Source: this project, by the theorems named.

    Examples
    --------
    >>> [(plan.theorem, plan.noise, plan.n_messages, plan.bits) for plan in plans(1000, 1.0, 1e-6, 1.5)][:2]
    [('cloak:own-6', 'Pólya', 6, 96), ('cloak:own-3', 'Pólya', 8, 128)]
    """
    positive_budget(epsilon, delta)
    honest(n_users, colluding)
    task = _Task(n_users, epsilon, delta, error, colluding, dimension)
    positive_budget(*task.each[:2])
    result = []
    for search in SEARCHES:
        with suppress(DomainError):  # outside the theorem's regime
            result += [plan for plan in [search(task)] if plan]
    return tuple(sorted(result, key=lambda plan: plan.bits))


def _by_swaps(theorem: str, rule_of: Callable[..., ExactRule], task: _Task) -> Plan:
    rule = rule_of(*task.each, task.error, task.colluding)
    return _without_noise(task, theorem, rule.scale, rule.modulus, rule.n_messages)


def _by_total_variation(theorem: str, messages: Callable[[_Task, float, int], int], task: _Task) -> Plan:
    """Total variation of delta / dimension, on the coarsest grid."""
    scale = grid_scale(task.n_users, task.error)
    modulus = task.n_users * scale + 1
    security = max(MARGIN, (math.log2(task.dimension) - math.log2(task.delta)) * (1 + MARGIN))
    return _without_noise(task, theorem, scale, modulus, messages(task, security, modulus))


def _messages_best_1(task: _Task, security: float, modulus: int) -> int:
    return messages_needed(security, honest(task.n_users, task.colluding), math.log2(modulus))


def _messages_own_3(task: _Task, security: float, modulus: int) -> int:
    return least_messages(security, task.n_users, modulus, task.colluding)


def _at_security(least: Callable[[_Task, float, int], int]) -> _Messages:
    """Messages with total variation delta / dimension / (1 + e^epsilon), for both sums of a pair of neighbours."""

    def messages(task: _Task, modulus: int, _scale: int) -> int:
        return least(task, security_needed(task.epsilon, task.delta, task.dimension), modulus)

    return messages


def _messages_own_6(task: _Task, modulus: int, scale: int) -> int:
    n_honest = honest(task.n_users, task.colluding)
    return least_messages_behind(task.delta / task.dimension * (1 - MARGIN), n_honest, modulus, scale)


def _without_noise(task: _Task, theorem: str, scale: int, modulus: int, n_messages: int) -> Plan:
    bits = task.dimension * n_messages * modulus_bits(modulus)
    shape = (n_messages, modulus, scale, "floor", "none", 0.0, 0.0)
    return Plan(theorem, Adjacency.SUM_PRESERVING, *shape, bits, task.n_users / scale, task.colluding)


def _truncated_laplace(theorem: str, rule_of: Callable[..., NoisyRule], task: _Task) -> Plan | None:
    epsilon, delta, n = task.each
    noise_epsilon, noise_rate = noise_shares(epsilon, delta, honest(n, task.colluding))

    def total(k: int) -> float:
        decay = noise_decay(k, noise_epsilon)
        noise = thinned_error(least_odd(3 * n * k + 1), k, noise_epsilon / k, decay, noise_rate, n)
        return (noise + n / k) * (1 + MARGIN)

    scale = _least_scale(total, task.error)
    if scale is None:
        return None
    rule = rule_of(epsilon, delta, n, scale, task.colluding)
    shape = (rule.n_messages, rule.modulus, scale, "floor", "truncated Laplace", rule.decay, rule.noise_rate)
    error = rule.noise_bound + rule.rounding_bound
    return Plan(theorem, Adjacency.REPLACE_ONE, *shape, task.dimension * rule.bits, error, task.colluding)


def _polya(theorem: str, messages: _Messages, task: _Task) -> Plan | None:
    """Pólya noise, randomly rounded values, and the least modulus for their sum."""
    n, epsilon, n_honest = task.n_users, task.epsilon / task.dimension, honest(task.n_users, task.colluding)
    # Largest probability that a sum wraps around: by itself, and as a share of the error.
    wraparound = min(2.0**-40, 2.0**-20 * task.error / n)

    def total(k: int) -> float:
        return crowded_error(shared_noise(k, epsilon), n, n_honest) + random_rounding_std(n, k) + n * wraparound

    scale = _least_scale(total, task.error)
    if scale is None:
        return None
    decay = noise_decay(scale, epsilon)
    modulus = n * scale + 2 * crowded_reach(decay, wraparound, n / n_honest)
    n_messages = messages(task, modulus, scale)
    shape = (n_messages, modulus, scale, "random", "Pólya", decay, 1.0)
    bits = task.dimension * n_messages * modulus_bits(modulus)
    return Plan(theorem, Adjacency.REPLACE_ONE, *shape, bits, total(scale), task.colluding)


def _least_scale(total: Callable[[int], float], error: float) -> int | None:
    """The least scale k with ``total(k) <= error``, ``None`` beyond ``LARGEST_MODULUS``; total is decreasing."""
    high = 1
    while total(high) > error:
        high *= 2
        if high > LARGEST_MODULUS:
            return None
    return least_whole(lambda k: total(k) <= error, high // 2 + 1, high)


SEARCHES: tuple[Callable[[_Task], Plan | None], ...] = (
    partial(_by_swaps, "cloak:thm-2", exact_rule),
    partial(_by_swaps, "cloak:own-2", sharp_exact_rule),
    partial(_by_total_variation, "cloak:best-1", _messages_best_1),
    partial(_by_total_variation, "cloak:own-3", _messages_own_3),
    partial(_truncated_laplace, "cloak:thm-1", noisy_rule),
    partial(_truncated_laplace, "cloak:own-2", sharp_noisy_rule),
    partial(_polya, "cloak:best-1", _at_security(_messages_best_1)),
    partial(_polya, "cloak:own-3", _at_security(_messages_own_3)),
    partial(_polya, "cloak:own-6", _messages_own_6),
)


@dataclass(frozen=True, slots=True)
class SumPlan:
    """A sum by split-and-mix with Pólya noise: parameters, wraparound probability, and errors in units of values.

    The analyzer decodes a residue above ``modulus - reach - 1`` as that minus ``modulus``.
    """

    scale: int
    decay: float
    reach: int
    modulus: int
    n_messages: int
    bits: int
    overflow: float
    noise_error: float
    rounding_std: float


@plainly
def recommended(
    n_users: int, epsilon: float, wraparound: float, security_bits: float, colluding: int = 0, scale: int | None = None
) -> SumPlan:
    r"""Parameters of a private sum: random rounding, Pólya noise, the smallest modulus, signed decoding (upper).

    The grid has :math:`k=\lceil\varepsilon\sqrt n\rceil` steps, so that rounding adds less than the noise, and
    :math:`N=nk+2\tau+1` for the least :math:`\tau` that noise exceeds with probability at most ``wraparound``, without
    dropouts.  The sum is (epsilon, :math:`(1+e^\varepsilon)2^{-\sigma}`)-private, :math:`\sigma` being
    ``security_bits``, if at most ``colluding`` users reveal their noise or drop out; at least 19 users must do neither.

    Source: Balle, Bell, Gascon, Nissim 2020.
    """
    checked = check(n_users=n_users, epsilon=epsilon, wraparound=wraparound, security_bits=security_bits)
    n_honest = honest(n_users, colluding)
    steps = check(scale=scale or max(1, math.ceil(checked["epsilon"] * math.sqrt(n_users))))["scale"]
    noise = shared_noise(steps, checked["epsilon"])
    worst_noise = ThinnedNoise(-(-n_users // n_honest), noise.decay, 1.0)
    reach = least_whole_beyond(lambda at: outside(worst_noise, at) <= wraparound, 0)
    modulus = n_users * steps + 2 * reach + 1
    n_messages = messages_needed(security_bits, n_honest, math.log2(modulus))
    bits, error = n_messages * modulus_bits(modulus), crowded_error(noise, n_users, n_honest)
    rounding = random_rounding_std(n_users, steps)
    return SumPlan(steps, noise.decay, reach, modulus, n_messages, bits, outside(worst_noise, reach), error, rounding)


def outside(noise: Noise, reach: int) -> float:
    """``P[abs(noise) > reach]`` (upper)."""
    return probability(math.log(2) + noise.log_above(reach + 1) + noise.error(reach + 1)) + math.exp(noise.log_lost)
