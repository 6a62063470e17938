"""The cheapest parameters of split-and-mix by each known theorem, for a budget and an error that are asked for.

Two promises are kept apart by their adjacency.  Where the sum itself may be known, nothing is added and everything
else is hidden; where one user's value must be hidden, users add noise.  A vector is aggregated coordinate by
coordinate, each with its own shuffle; an even share of the budget goes to each of them.
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

    The noise is ``none``, ``truncated Laplace`` (of some users, see ``noise_rate``) or ``Pólya`` (shares of all users
    who do not collude).  As many as ``colluding`` users may join whoever reads the output of the shuffler; the shuffler
    may not.
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
class _Wish:
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


_Messages = Callable[[_Wish, int, int], int]
"""Messages for a modulus and a scale, behind Pólya noise that keeps epsilon."""


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
    r"""Parameters by each theorem that can keep the budget at this error, cheapest first (value, every one valid).

    Without noise, rounding down to a grid of :math:`k = \lceil n/\alpha\rceil` steps: rule T2, the same by
    ``cloak:own-2``, and total variation of :math:`\delta/d` by ``cloak:best-1`` and ``cloak:own-3``.  With noise: rule
    T1, the same by ``cloak:own-2``, and Pólya noise on randomly rounded values by ``cloak:best-1`` and ``cloak:own-3``,
    where :math:`\delta = d(1+e^\varepsilon)2^{-\sigma}`, and by ``cloak:own-6``, whose shares add :math:`\delta/d` for
    each coordinate; there the sum wraps around with a chance of :math:`\min(2^{-40}, 2^{-20}\alpha/n)` at most, which
    adds at most n times as much to the error.  The error bounds the mean absolute one, in each coordinate; a theorem
    that cannot keep the budget at it, or for so few users, has no plan.

    Source: this project, by the theorems named.

    Examples
    --------
    >>> [(plan.theorem, plan.noise, plan.n_messages, plan.bits) for plan in plans(1000, 1.0, 1e-6, 1.5)][:2]
    [('cloak:own-6', 'Pólya', 6, 96), ('cloak:own-3', 'Pólya', 8, 128)]
    """
    positive_budget(epsilon, delta)
    honest(n_users, colluding)
    wish = _Wish(n_users, epsilon, delta, error, colluding, dimension)
    positive_budget(*wish.each[:2])
    found = []
    for make in MAKERS:
        with suppress(DomainError):  # its theorem is silent
            found += [plan for plan in [make(wish)] if plan]
    return tuple(sorted(found, key=lambda plan: plan.bits))


def _chained(theorem: str, make: Callable[..., ExactRule], wish: _Wish) -> Plan:
    rule = make(*wish.each, wish.error, wish.colluding)
    return _without_noise(wish, theorem, rule.scale, rule.modulus, rule.n_messages)


def _distant(theorem: str, messages: Callable[[_Wish, float, int], int], wish: _Wish) -> Plan:
    """Total variation of an even share of delta, on the coarsest grid."""
    scale = grid_scale(wish.n_users, wish.error)
    modulus = wish.n_users * scale + 1
    security = max(MARGIN, (math.log2(wish.dimension) - math.log2(wish.delta)) * (1 + MARGIN))
    return _without_noise(wish, theorem, scale, modulus, messages(wish, security, modulus))


def _by_best(wish: _Wish, security: float, modulus: int) -> int:
    return messages_needed(security, honest(wish.n_users, wish.colluding), math.log2(modulus))


def _by_own(wish: _Wish, security: float, modulus: int) -> int:
    return least_messages(security, wish.n_users, modulus, wish.colluding)


def _secure(by: Callable[[_Wish, float, int], int]) -> _Messages:
    """Messages whose distance, of either sum that a change may lead to, is an even share of delta."""

    def messages(wish: _Wish, modulus: int, _scale: int) -> int:
        return by(wish, security_needed(wish.epsilon, wish.delta, wish.dimension), modulus)

    return messages


def _behind(wish: _Wish, modulus: int, scale: int) -> int:
    crowd = honest(wish.n_users, wish.colluding)
    return least_messages_behind(wish.delta / wish.dimension * (1 - MARGIN), crowd, modulus, scale)


def _without_noise(wish: _Wish, theorem: str, scale: int, modulus: int, n_messages: int) -> Plan:
    bits = wish.dimension * n_messages * modulus_bits(modulus)
    shape = (n_messages, modulus, scale, "floor", "none", 0.0, 0.0)
    return Plan(theorem, Adjacency.SUM_PRESERVING, *shape, bits, wish.n_users / scale, wish.colluding)


def _thinned(theorem: str, make: Callable[..., NoisyRule], wish: _Wish) -> Plan | None:
    epsilon, delta, n = wish.each
    for_noise, noise_rate = noise_shares(epsilon, delta, honest(n, wish.colluding))

    def total(k: int) -> float:
        decay = noise_decay(k, for_noise)
        noise = thinned_error(least_odd(3 * n * k + 1), k, for_noise / k, decay, noise_rate, n)
        return (noise + n / k) * (1 + MARGIN)

    scale = _least_scale(total, wish.error)
    if scale is None:
        return None
    found = make(epsilon, delta, n, scale, wish.colluding)
    shape = (found.n_messages, found.modulus, scale, "floor", "truncated Laplace", found.decay, found.noise_rate)
    error = found.noise_bound + found.rounding_bound
    return Plan(theorem, Adjacency.REPLACE_ONE, *shape, wish.dimension * found.bits, error, wish.colluding)


def _shared(theorem: str, messages: _Messages, wish: _Wish) -> Plan | None:
    """Pólya noise, randomly rounded values, and a modulus that just holds their sum."""
    n, epsilon, crowd = wish.n_users, wish.epsilon / wish.dimension, honest(wish.n_users, wish.colluding)
    # Largest probability that a sum wraps around: by itself, and as a share of the error.
    wrapped = min(2.0**-40, 2.0**-20 * wish.error / n)

    def total(k: int) -> float:
        return crowded_error(shared_noise(k, epsilon), n, crowd) + random_rounding_std(n, k) + n * wrapped

    scale = _least_scale(total, wish.error)
    if scale is None:
        return None
    decay = noise_decay(scale, epsilon)
    modulus = n * scale + 2 * crowded_reach(decay, wrapped, n / crowd)
    n_messages = messages(wish, modulus, scale)
    shape = (n_messages, modulus, scale, "random", "Pólya", decay, 1.0)
    bits = wish.dimension * n_messages * modulus_bits(modulus)
    return Plan(theorem, Adjacency.REPLACE_ONE, *shape, bits, total(scale), wish.colluding)


def _least_scale(total: Callable[[int], float], error: float) -> int | None:
    """The least grid on which a falling error is as asked; none where no grid is fine enough."""
    high = 1
    while total(high) > error:
        high *= 2
        if high > LARGEST_MODULUS:
            return None
    return least_whole(lambda k: total(k) <= error, high // 2 + 1, high)


MAKERS: tuple[Callable[[_Wish], Plan | None], ...] = (
    partial(_chained, "cloak:thm-2", exact_rule),
    partial(_chained, "cloak:own-2", sharp_exact_rule),
    partial(_distant, "cloak:best-1", _by_best),
    partial(_distant, "cloak:own-3", _by_own),
    partial(_thinned, "cloak:thm-1", noisy_rule),
    partial(_thinned, "cloak:own-2", sharp_noisy_rule),
    partial(_shared, "cloak:best-1", _secure(_by_best)),
    partial(_shared, "cloak:own-3", _secure(_by_own)),
    partial(_shared, "cloak:own-6", _behind),
)


@dataclass(frozen=True, slots=True)
class SumPlan:
    """A sum by split-and-mix with Pólya noise: parameters, chance of a wrong reading, and errors in units of values.

    The analyzer reads a residue above ``modulus - reach - 1`` as that minus ``modulus``.
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
    r"""Parameters of a private sum: random rounding, Pólya shares, the smallest modulus, signed reading (upper).

    The grid has :math:`k=\lceil\varepsilon\sqrt n\rceil` steps, so that rounding adds less than the noise, and
    :math:`N=nk+2\tau+1` for the least :math:`\tau` that noise exceeds with a chance of at most ``wraparound``, nobody
    dropping out.  The sum keeps epsilon at a delta of :math:`(1+e^\varepsilon)2^{-\sigma}`, :math:`\sigma` being
    ``security_bits``, so long as no more than ``colluding`` users tell their noise or drop out; at least 19 users must
    do neither.

    Source: Balle, Bell, Gascon, Nissim 2020.
    """
    given = check(n_users=n_users, epsilon=epsilon, wraparound=wraparound, security_bits=security_bits)
    crowd = honest(n_users, colluding)
    steps = check(scale=scale or max(1, math.ceil(given["epsilon"] * math.sqrt(n_users))))["scale"]
    noise = shared_noise(steps, given["epsilon"])
    most = ThinnedNoise(-(-n_users // crowd), noise.decay, 1.0)
    reach = least_whole_beyond(lambda at: outside(most, at) <= wraparound, 0)
    modulus = n_users * steps + 2 * reach + 1
    n_messages = messages_needed(security_bits, crowd, math.log2(modulus))
    bits, error = n_messages * modulus_bits(modulus), crowded_error(noise, n_users, crowd)
    rounding = random_rounding_std(n_users, steps)
    return SumPlan(steps, noise.decay, reach, modulus, n_messages, bits, outside(most, reach), error, rounding)


def outside(noise: Noise, reach: int) -> float:
    """Chance that noise is larger than ``reach`` in absolute value (upper)."""
    return probability(math.log(2) + noise.log_above(reach + 1) + noise.error(reach + 1)) + math.exp(noise.log_lost)
