"""Self check-in in closed form: tails of the number of clients, the lower bound, and the variant of removal.

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
    """Bounds on the chance that far fewer, and that far more, clients check in than expected."""

    lower_tail: float
    upper_tail: float


@states("checkin", "lem-4", item="Lemma 4, Chernoff's bound", gives="upper", rests_on="proven", adjacency="none")
def count_tails(n_users: int, checkin_rate: float, slack: float) -> Tails:
    r"""Chances that at most (1 - slack), and at least (1 + slack), times the mean number check in (upper).

    .. math:: e^{-\Delta^2n\gamma/2}, \qquad e^{-\Delta^2n\gamma/(2+\Delta)}

    Source: Liew, Hasegawa, Takahashi 2022, Lemma 4.

    Examples
    --------
    >>> found = count_tails(10_000, 0.1, 0.1)
    >>> round(found.lower_tail, 9), round(found.upper_tail, 9)
    (0.006737947, 0.008549309)
    """
    exponent = slack * slack * n_users * checkin_rate
    lower, upper = (above(probability(-exponent / by * (1 - 2 * ROUNDING)), 2) for by in (2, 2 + slack))
    return Tails(min(lower, 1.0), min(upper, 1.0))


@states("checkin", "lem-5", item="Lemma 5, for the function exp(divergence / k)", gives="upper", rests_on="proven",
        adjacency="none")  # fmt: skip
def split_mean(divergence: float, n_users: int, checkin_rate: float, slack: float) -> float:
    r"""Mean of :math:`f(k) = e^{D/k}`, :math:`f(0) = 1`, over the number of clients, by splitting it (upper).

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
    first = divergence - exponent + 2 * ROUNDING * (divergence + exponent)
    kept = math.floor((1 - Fraction(slack)) * n_users * Fraction(checkin_rate)) + 1
    return above(exp_or_inf(first) + exp_or_inf(divergence / kept * (1 + ROUNDING)), 4)


@states("checkin", "thm-3", item="Theorem 3, Equation 8, shuffled reports", gives="lower", rests_on="proven")
def lower_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float, slack: float | None = None) -> float:
    r"""Rényi divergence of one shuffled round of binary response is at least this (lower).

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
    kept = _most_kept(mean) if slack is None else _kept(mean, slack)
    return _lower(order, epsilon0, n_users, checkin_rate, kept)


def sharper_lower_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float) -> float:
    r"""As :func:`lower_renyi` without a split, because :math:`\sum_k\mathrm B(k)(k/n)^2/k = \gamma/n` (lower).

    .. math:: \frac1{\lambda-1}\log\Big(1+\binom\lambda2\frac{\gamma(e^{\varepsilon_0}-1)^2}{ne^{\varepsilon_0}}\Big)

    Binary response itself has this divergence at order 2.
    """
    given = check(order=order, epsilon0=epsilon0, n_users=n_users, checkin_rate=checkin_rate)
    return _lower(**given, kept=1.0)


@states("checkin", "rem-4", item="Remark 4, removal, for a fixed total of noise, after Mironov, Talwar, Zhang 2019",
        gives="upper", rests_on="cited", adjacency="add-remove")  # fmt: skip
def removal_renyi(order: int, checkin_rate: float, noise_std: float) -> float:
    r"""Rényi divergence of one noisy sum when a client is added or removed and the number of clients is hidden (upper).

    .. math:: \frac1{\lambda-1}\log\sum_{j=0}^\lambda\binom\lambda j(1-\gamma)^{\lambda-j}\gamma^je^{j(j-1)/2\sigma^2}

    The noise of the sum is the server's, the same whoever checks in: the Gaussian mechanism under Poisson sampling.
    Noise that each client brings along would come and go with the client, and no such formula holds.

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
    absent = math.log1p(-checkin_rate) if checkin_rate < 1 else -math.inf
    logs = [
        _log_binomial(order, j) + j * math.log(checkin_rate) + log_expm1(j * (j - 1) / 2 * growth)
        + ((order - j) * absent if j < order else 0.0)
        for j in range(2, order + 1)
    ]  # fmt: skip
    top = max(logs)
    if top == -math.inf:
        return 0.0
    size = math.lgamma(order + 1) - order * math.log(checkin_rate) - (order * absent if checkin_rate < 1 else 0.0)
    doubt = 4 * ROUNDING * (size + order * order * growth + order)
    rest = math.log(math.fsum(math.exp(one - top) for one in logs))
    return above(logaddexp(0.0, top + rest + doubt) / (order - 1), 4)


def over_variance(squared: float, noise_std: float) -> float:
    """A squared distance over the variance of noise; refused where moments would leave the range of doubles."""
    min_noise_std = 1e-100  # least standard deviation: moments of less leave the range of doubles
    if noise_std < min_noise_std:
        raise DomainError(f"noise_std must be a number of at least {min_noise_std:g} for a moment, got {noise_std!r}")
    return squared / noise_std / noise_std


def _log_binomial(order: int, j: int) -> float:
    return math.lgamma(order + 1) - math.lgamma(j + 1) - math.lgamma(order - j + 1)


def _kept(mean: float, slack: float) -> float:
    """What a split at this slack keeps of the bound without one."""
    return -math.expm1(-slack * slack * mean / (2 + slack)) / (1 + slack)


@lru_cache(maxsize=8)
def _most_kept(mean: float) -> float:
    return max(_kept(mean, 2 ** (-i / 32)) for i in range(801))


def _lower(order: int, epsilon0: float, n_users: int, checkin_rate: float, kept: float) -> float:
    if kept == 0 or checkin_rate == 0:
        return 0.0
    spread = epsilon0 + 2 * log1mexp(epsilon0)
    weight = kept * order * (order - 1) / 2 * checkin_rate / n_users
    if weight == 0:
        return 0.0
    doubt = 4 * ROUNDING * (1 + abs(math.log(weight)) + epsilon0 + abs(spread - epsilon0))
    return below(logaddexp(0.0, math.log(weight) + spread - doubt) / (order - 1), 4)
