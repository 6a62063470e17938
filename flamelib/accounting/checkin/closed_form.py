"""Self check-in in closed form: Chernoff tails of the number of clients, the Rényi lower bound, add/remove adjacency.

Adjacency: one client's record is replaced, or for :func:`removal_renyi` removed.  Standard library only: the same
source runs in a browser.  Proofs: book, chapter on check-in, Lemmas 4 and 5, Theorem 3, Remark 4.

Source: Liew, Hasegawa, Takahashi 2022.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flamelib.core.logspace import ROUNDING, above, below, exp_or_inf, log1mexp, log_expm1, logaddexp, probability
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check


@dataclass(frozen=True, slots=True)
class Tails:
    r"""Upper bounds on P[K <= (1 - slack) E K] and P[K >= (1 + slack) E K], K the number of clients."""

    lower_tail: float
    upper_tail: float


@states("checkin", "lem-4", item="Lemma 4, Chernoff's bound", gives="upper", rests_on="proven", adjacency="none")
def count_tails(n_users: int, checkin_rate: float, slack: float) -> Tails:
    r"""Upper bounds on P[K <= (1 - slack) E K] and P[K >= (1 + slack) E K], K the number of clients (upper).

    .. math:: e^{-\Delta^2n\gamma/2}, \qquad e^{-\Delta^2n\gamma/(2+\Delta)}

    Source: Liew, Hasegawa, Takahashi 2022, Lemma 4.

    Examples
    --------
    >>> found = count_tails(10_000, 0.1, 0.1)
    >>> round(found.lower_tail, 9), round(found.upper_tail, 9)
    (0.006737947, 0.008549309)
    """
    exponent = slack * slack * n_users * checkin_rate
    lower, upper = (above(probability(-exponent / divisor * (1 - 2 * ROUNDING)), 2) for divisor in (2, 2 + slack))
    return Tails(min(lower, 1.0), min(upper, 1.0))


@states("checkin", "lem-5", item="Lemma 5, for the function exp(divergence / k)", gives="upper", rests_on="proven",
        adjacency="none")  # fmt: skip
def split_mean(divergence: float, n_users: int, checkin_rate: float, slack: float) -> float:
    r"""Mean of :math:`f(K) = e^{D/K}`, :math:`f(0) = 1`, over the number K of clients, split at a threshold (upper).

    .. math:: E f(K) \le f(1)\,e^{-\Delta^2n\gamma/2} + f\big(\lfloor(1-\Delta)n\gamma\rfloor+1\big)

    The lemma holds for every f that does not increase from k = 1 on; D, the ``divergence``, is that of a single client.
    The answer is ``inf`` beyond the range of doubles.

    Source: Liew, Hasegawa, Takahashi 2022, Lemma 5.

    Examples
    --------
    >>> round(split_mean(4.0, 10_000, 0.1, 0.2), 9)
    1.00500636
    """
    exponent = slack * slack * n_users * checkin_rate / 2
    log_first = divergence - exponent + 2 * ROUNDING * (divergence + exponent)
    threshold = math.floor((1 - Fraction(slack)) * n_users * Fraction(checkin_rate)) + 1
    return above(exp_or_inf(log_first) + exp_or_inf(divergence / threshold * (1 + ROUNDING)), 4)


@states("checkin", "thm-3", item="Theorem 3, Equation 8, shuffled reports", gives="lower", rests_on="proven")
def lower_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float, slack: float | None = None) -> float:
    r"""Rényi divergence of one shuffled round of binary response (lower).

    .. math:: \frac1{\lambda-1}\log\Big(1+\big(1-e^{-\Delta^2n\gamma/(2+\Delta)}\big)\binom\lambda2\gamma^2
              \frac{(e^{\varepsilon_0}-1)^2}{(1+\Delta)n\gamma e^{\varepsilon_0}}\Big)

    Parameters
    ----------
    slack
        If left out, the answer is the greatest value over :math:`2^{-i/32}`, i from 0 to 800.

    Source: Liew, Hasegawa, Takahashi 2022, Theorem 3.

    Examples
    --------
    >>> f"{lower_renyi(2, 1.0, 10**6, 0.01):.4e}", f"{sharper_lower_renyi(2, 1.0, 10**6, 0.01):.4e}"
    ('1.0469e-08', '1.0862e-08')
    """
    mean = n_users * checkin_rate
    factor = _best_split_factor(mean) if slack is None else _split_factor(mean, slack)
    return _renyi_lower_bound(order, epsilon0, n_users, checkin_rate, factor)


def sharper_lower_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float) -> float:
    r"""As :func:`lower_renyi` without a split, because :math:`\sum_k\mathrm B(k)(k/n)^2/k = \gamma/n` (lower).

    .. math:: \frac1{\lambda-1}\log\Big(1+\binom\lambda2\frac{\gamma(e^{\varepsilon_0}-1)^2}{ne^{\varepsilon_0}}\Big)

    Binary response itself has this divergence at order 2.
    """
    given = check(order=order, epsilon0=epsilon0, n_users=n_users, checkin_rate=checkin_rate)
    return _renyi_lower_bound(**given, factor=1.0)


@states("checkin", "rem-4", item="Remark 4, removal, for a fixed total of noise, after Mironov, Talwar, Zhang 2019",
        gives="upper", rests_on="proven", adjacency="add-remove")  # fmt: skip
def removal_renyi(order: int, checkin_rate: float, noise_std: float) -> float:
    r"""Rényi divergence of one noisy sum when a client is added or removed and the number of clients is hidden (upper).

    .. math:: \frac1{\lambda-1}\log\sum_{j=0}^\lambda\binom\lambda j(1-\gamma)^{\lambda-j}\gamma^je^{j(j-1)/2\sigma^2}

    The server adds the noise, independently of who checks in: the Poisson-subsampled Gaussian mechanism.  The formula
    does not hold if each client adds its own noise.  Proof, for both directions: book, chapter on random participation,
    "Poisson sampling in Rényi orders".

    Parameters
    ----------
    noise_std
        Standard deviation of the noise of the whole sum; a report has norm at most 1.

    Source: Liew, Hasegawa, Takahashi 2022, Remark 4; Mironov, Talwar, Zhang 2019.

    Examples
    --------
    >>> f"{removal_renyi(8, 0.01, 2.0):.5e}"
    '1.15756e-04'
    """
    if checkin_rate == 0:
        return 0.0
    growth = over_variance(1, noise_std)
    log_absent = math.log1p(-checkin_rate) if checkin_rate < 1 else -math.inf
    logs = [
        _log_binomial(order, j) + j * math.log(checkin_rate) + log_expm1(j * (j - 1) / 2 * growth)
        + ((order - j) * log_absent if j < order else 0.0)
        for j in range(2, order + 1)
    ]  # fmt: skip
    top = max(logs)
    if top == -math.inf:
        return 0.0
    size = math.lgamma(order + 1) - order * math.log(checkin_rate) - (order * log_absent if checkin_rate < 1 else 0.0)
    rounding = 4 * ROUNDING * (size + order * order * growth + order)
    log_sum = math.log(math.fsum(math.exp(log - top) for log in logs))
    return above(logaddexp(0.0, top + log_sum + rounding) / (order - 1), 4)


def over_variance(squared: float, noise_std: float) -> float:
    """``squared / noise_std**2``; refused where moments would overflow."""
    min_noise_std = 1e-100  # least standard deviation: moments of less overflow
    if noise_std < min_noise_std:
        raise DomainError(f"noise_std must be a number of at least {min_noise_std:g} for a moment, got {noise_std!r}")
    return squared / noise_std / noise_std


def _log_binomial(order: int, j: int) -> float:
    return math.lgamma(order + 1) - math.lgamma(j + 1) - math.lgamma(order - j + 1)


def _split_factor(mean: float, slack: float) -> float:
    r"""The factor :math:`(1-e^{-\Delta^2n\gamma/(2+\Delta)})/(1+\Delta)` by which a split weakens the bound."""
    return -math.expm1(-slack * slack * mean / (2 + slack)) / (1 + slack)


@lru_cache(maxsize=8)
def _best_split_factor(mean: float) -> float:
    return max(_split_factor(mean, 2 ** (-i / 32)) for i in range(801))


def _renyi_lower_bound(order: int, epsilon0: float, n_users: int, checkin_rate: float, factor: float) -> float:
    if factor == 0 or checkin_rate == 0:
        return 0.0
    log_variance = epsilon0 + 2 * log1mexp(epsilon0)
    weight = factor * order * (order - 1) / 2 * checkin_rate / n_users
    if weight == 0:
        return 0.0
    rounding = 4 * ROUNDING * (1 + abs(math.log(weight)) + epsilon0 + abs(log_variance - epsilon0))
    return below(logaddexp(0.0, math.log(weight) + log_variance - rounding) / (order - 1), 4)
