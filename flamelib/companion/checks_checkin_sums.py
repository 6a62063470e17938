r"""Claims about a round of distributed check-in, whose noisy vectors are summed.

Truth is a mixture of normal laws over all sets of clients, listed and integrated.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from flamelib.companion.checks import evaluate

Real = NDArray[np.float64]
Gain = Callable[[Real, Real], Real]

STEP = 0.01
REACH = 14.0


def sums_over_listed(order: int, n_users: int, checkin_rate: float, noise_std: float) -> float:
    """The registered exact divergence over that of clients who are all alike but one, all sets of clients listed."""
    k, chances = _counts(n_users, checkin_rate)
    records = _worlds([-1.0] * (n_users - 1))
    moments = [_given(int(i), records, noise_std, lambda p, q: q * (p / q) ** order) for i in k]
    found = math.log(binom.pmf(0, n_users, checkin_rate) + float(chances @ moments)) / (order - 1)
    return evaluate("checkin:rdp-exact", _noisy(n_users, checkin_rate, noise_std) | {"order": order}) / found


def records_over_pair(n_users: int, checkin_rate: float, noise_std: float, epsilon: float, seed: int) -> float:
    """Delta of a round with random records on [-1, 1] over that with records all alike but one, all sets listed."""
    k, chances = _counts(n_users, checkin_rate)
    factor = math.exp(epsilon)

    def delta(others: Sequence[float]) -> float:
        records = _worlds(others)
        parts = [_given(int(i), records, noise_std, lambda p, q: np.maximum(p - factor * q, 0.0)) for i in k]
        return float(chances @ parts)

    return delta(np.random.default_rng(seed).uniform(-1, 1, n_users - 1).tolist()) / delta([-1.0] * (n_users - 1))


def kept_over_asked(n_users: int, checkin_rate: float, noise_std: float, delta: float) -> float:
    """Delta of one round at the epsilon answered for ``delta``, over that delta, all sets listed."""
    given = _noisy(n_users, checkin_rate, noise_std) | {"delta": delta, "rounds": 1, "route": "pld-exact"}
    factor = math.exp(evaluate("checkin:distributed", given))
    k, chances = _counts(n_users, checkin_rate)
    records = _worlds([-1.0] * (n_users - 1))
    parts = [_given(int(i), records, noise_std, lambda p, q: np.maximum(p - factor * q, 0.0)) for i in k]
    return float(chances @ parts) / delta


def _worlds(others: Sequence[float]) -> tuple[list[float], list[float]]:
    return [*others, 1.0], [*others, -1.0]


def _given(k: int, worlds: tuple[Sequence[float], Sequence[float]], noise_std: float, of: Gain) -> float:
    """Sum of a function of both densities of the noisy sum, given that ``k`` clients check in."""
    noise = math.sqrt(k) * noise_std
    x = np.arange(-(k + REACH * noise), k + REACH * noise, STEP * noise)
    p, q = (_mean_density(x, [sum(part) for part in combinations(records, k)], noise) for records in worlds)
    return float(of(p, q).sum()) * STEP * noise


def _mean_density(x: Real, places: Sequence[float], noise: float) -> Real:
    return np.asarray(np.mean([norm.pdf(x, place, noise) for place in places], axis=0))


def largest_over_pair(order: int, rate: float, noise_std: float, points: int) -> float:
    """Largest divergence over records on a grid of [-1, 1] (one common, two differing) over that of the pair.

    ``rate`` is that of the differing record, ``noise_std`` the deviation of the sum.
    """
    x = np.arange(-REACH * noise_std - 3 * order, REACH * noise_std + 3 * order, STEP * noise_std)

    def moment(common: float, one: float, other: float) -> float:
        near, left, right = (norm.logpdf(x, place, noise_std) for place in (common, one, other))
        p, q = (np.logaddexp(np.log1p(-rate) + near, math.log(rate) + own) for own in (left, right))
        return float(np.exp(order * p + (1 - order) * q).sum())

    grid = np.linspace(-1, 1, points)
    return max(moment(*records) for records in product(grid, grid, grid)) / moment(-1.0, 1.0, -1.0)


def sum_over(compute: str, order: int, n_users: int, checkin_rate: float, noise_std: float, **words: str) -> float:
    """The exact divergence of noisy sums over a registered bound."""
    given = _noisy(n_users, checkin_rate, noise_std) | {"order": order}
    return evaluate("checkin:rdp-exact", given) / evaluate(compute, given | words)


def split_over_sum(order: int, n_users: int, checkin_rate: float, noise_std: float) -> float:
    """Equation 11 over Equation 10, both as printed."""
    given = _noisy(n_users, checkin_rate, noise_std) | {"order": order, "inner": "paper"}
    return evaluate("checkin:eq-11", given) / evaluate("checkin:thm-4", given)


def moment_without_nobody(order: int, n_users: int, checkin_rate: float, noise_std: float) -> float:
    """Theorem 4's moment as printed, without the rounds in which nobody checks in."""
    given = _noisy(n_users, checkin_rate, noise_std) | {"order": order, "inner": "paper"}
    whole = math.exp((order - 1) * evaluate("checkin:thm-4", given))
    return whole - float(binom.pmf(0, n_users, checkin_rate))


def _noisy(n_users: int, checkin_rate: float, noise_std: float) -> dict[str, Any]:
    return {"n_users": n_users, "checkin_rate": checkin_rate, "noise_std": noise_std}


def removal_over_reading(order: int, others: int, rate: float, noise_std: float) -> float:
    """Moment of a round with a client, who brings its own noise, over that without, as the removal reading has it.

    The reading gives both the noise of the ``others``; ``rate`` is that of the client.
    """
    chances = binom.pmf(np.arange(order + 1), order, rate)
    noise = others * noise_std**2

    def moment(wide: float) -> float:
        return float(chances @ [_power(j, wide, noise) for j in range(order + 1)])

    return moment(noise + noise_std**2) / moment(noise)


def _power(j: int, wide: float, narrow: float) -> float:
    """Mean of the j-th power of the ratio of N(1, wide) to N(0, narrow), under the latter; by completing the square."""
    left = j / wide + (1 - j) / narrow
    if left <= 0:
        return math.inf
    exponent = j * j / wide**2 / left / 2 - j / wide / 2
    return math.exp(exponent + ((j - 1) * math.log(narrow) - j * math.log(wide) - math.log(left)) / 2)


def _counts(n_users: int, checkin_rate: float) -> tuple[Real, Real]:
    """Every number of clients that may check in, from 1, and its chance."""
    k = np.arange(1.0, n_users + 1)
    return k, np.asarray(binom.pmf(k, n_users, checkin_rate))
