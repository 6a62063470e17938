"""Self check-in: Rényi privacy by the document's theorems, as printed and with the true inner rate.

Clients check in independently; the server observes their number K, not their identities.  Adjacency: one client's
record is replaced.  An answer is the Rényi divergence of one round at one order.  ``inner`` is the probability of a
given client to be among K = k: ``paper`` takes the check-in rate, as the document does (a value, no bound: for small k
below the truth), ``exact`` takes k/n.  Proofs: book, chapter on check-in, Theorems 1, 2 and 4, Equation 11.

Source: Liew, Hasegawa, Takahashi 2022.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import xlog1py, xlogy

from flamelib.accounting.checkin.moments import (
    MAX_CHUNK,
    MAX_DENSE,
    MAX_TERMS,
    LogTerms,
    clients,
    gaussian_terms,
    log_binomial,
    log_expm1_of,
    log_sum,
    renyi,
    shuffle_terms,
    significant_terms,
    single_divergence,
    slacks,
    split_excess,
    summed_excess,
)
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.binomial import log_pmf
from flamelib.core.guarantees import Gives, RestsOn, weakest
from flamelib.core.logspace import LOG_OMITTED, ROUNDING, log_expm1
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError


def _gives(arguments: Mapping[str, Any]) -> Gives:
    return Gives.UPPER if arguments.get("inner") == "exact" else Gives.VALUE


def _exact_rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """Beyond ``MAX_DENSE`` counts are summed in panels, whose error is measured."""
    return RestsOn.ESTIMATED if arguments["n_users"] > MAX_DENSE else RestsOn.PROVEN


def _summed_rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """The bounds for a fixed number of reports are cited."""
    return weakest(RestsOn.CITED, _exact_rests_on(arguments))


@states("checkin", "thm-2", item="Theorem 2, Equation 7, shuffled reports, after Girgis, Data, Diggavi 2021",
        gives=_gives, rests_on="cited")  # fmt: skip
def shuffled_renyi(
    order: int, epsilon0: float, n_users: int, checkin_rate: float, inner: str, slack: float | None = None
) -> float:
    r"""Rényi divergence of one shuffled round, any epsilon0-LDP randomizer (upper if ``inner`` is exact, else a value).

    With the terms of :func:`~flamelib.accounting.checkin.moments.shuffle_terms`: for ``paper`` the tail
    :math:`e^{-\Delta^2n\gamma/2}` times those of one client, plus those of :math:`k = (1-\Delta)n\gamma+1` clients,
    not rounded except in the tail of the number of clones, which takes its floor; for ``exact`` the split into three of
    :func:`~flamelib.accounting.checkin.moments.three_way`.

    Parameters
    ----------
    slack
        If left out, the answer is the least value over the multiples of 1/64 and :math:`2^{-i/8}` down to half a
        deviation of the count.

    Source: Liew, Hasegawa, Takahashi 2022, Theorem 2, with its exponentials restored.

    Examples
    --------
    >>> one = {"order": 64, "epsilon0": 1.0, "n_users": 10**6, "checkin_rate": 0.01}
    >>> [f"{shuffled_renyi(**one, inner=inner):.4e}" for inner in ("paper", "exact")]
    ['8.9431e-06', '1.0205e-05']
    """
    return _least_over_slacks(shuffle_terms(epsilon0), order, n_users, checkin_rate, inner, slack)


@states("checkin", "eq-11", item="Equation 11, noisy sums, split in two, after Wang, Balle, Kasiviswanathan 2019",
        gives=_gives, rests_on="cited")  # fmt: skip
def split_renyi(
    order: int, n_users: int, checkin_rate: float, noise_std: float, inner: str, slack: float | None = None
) -> float:
    """Rényi divergence of one noisy sum by splitting the count (upper if ``inner`` is exact, else a value).

    As :func:`shuffled_renyi`, with the terms of :func:`~flamelib.accounting.checkin.moments.gaussian_terms`.  The
    printed form takes the moment of one client, not the moment minus 1.

    Parameters
    ----------
    noise_std
        Standard deviation of each client's own noise; its report has norm at most 1.
    slack
        If left out, the answer is the least value over the same grid.

    Source: Liew, Hasegawa, Takahashi 2022, Equation 11.

    Examples
    --------
    >>> one = {"order": 8, "n_users": 600_000, "checkin_rate": 1e-3, "noise_std": 1.0}
    >>> [f"{split_renyi(**one, inner=inner):.4e}" for inner in ("paper", "exact")]
    ['2.3406e-07', '4.4332e-07']
    """
    return _least_over_slacks(gaussian_terms(noise_std), order, n_users, checkin_rate, inner, slack, whole=True)


@states("checkin", "thm-4", item="Theorem 4, Equation 10, noisy sums, after Wang, Balle, Kasiviswanathan 2019",
        gives=_gives, rests_on=_summed_rests_on)  # fmt: skip
def summed_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float, inner: str) -> float:
    r"""Rényi divergence of one noisy sum over all counts of clients (upper if ``inner`` is exact, else a value).

    .. math:: \frac1{\lambda-1}\log\Big(1+\sum_{k=1}^n\binom nk\gamma^k(1-\gamma)^{n-k}\sum_{j=2}^\lambda
              \binom\lambda j r_k^j\,a_j(k)\Big)

    with the coefficients of :func:`~flamelib.accounting.checkin.moments.gaussian_terms` and :math:`r_k = \gamma` or
    :math:`k/n`.  The term of k = 0, which the document omits, is the 1.  The relative error is 1e-10; the smallest
    counts, which dominate large orders, are all included.

    Parameters
    ----------
    noise_std
        Standard deviation of each client's own noise; its report has norm at most 1.

    Source: Liew, Hasegawa, Takahashi 2022, Theorem 4.

    Examples
    --------
    >>> one = {"n_users": 600_000, "checkin_rate": 1e-3, "noise_std": 1.0, "inner": "paper"}
    >>> [f"{summed_renyi(order, **one):.3e}" for order in (19, 20)]
    ['3.649e-07', '1.507e+00']
    """
    if checkin_rate == 0:
        return 0.0
    terms, d2 = gaussian_terms(noise_std), single_divergence(noise_std)
    log_excess = summed_excess(terms, n_users, checkin_rate, d2, order, exact=inner == "exact")
    divergence = float(renyi(np.array(float(order)), np.array(log_excess)))
    # Relative error of a sum over panels of counts.
    return _rounded_up(divergence, order, inner, 1e-10 if n_users > MAX_DENSE else 0.0)


@states("checkin", "rdp-exact", item="Theorem 4, for the pair of data sets that is the worst for budgets",
        gives="value")  # fmt: skip
def exact_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float) -> float:
    r"""Rényi divergence of one noisy sum, for the worst known pair of data sets (value).

    .. math:: \frac1{\lambda-1}\log\sum_{k=0}^n\binom nk\gamma^k(1-\gamma)^{n-k}\sum_{j=0}^\lambda\binom\lambda j
              \Big(1-\frac kn\Big)^{\lambda-j}\Big(\frac kn\Big)^je^{2j(j-1)/k\sigma^2}

    All records are one unit vector, except that in one of the data sets one record is its negative.  For hockey-stick
    divergences this pair is proven to be the worst (:mod:`~flamelib.accounting.checkin.distributed_noise`).  For Rényi
    divergences no worse one is known: exact for the pair, a lower bound of the supremum.

    Parameters
    ----------
    noise_std
        Standard deviation of each client's own noise; its report has norm at most 1.

    Source: this project, after Liew, Hasegawa, Takahashi 2022, Theorem 4.

    Examples
    --------
    >>> f"{exact_renyi(2, 600_000, 1e-3, 1.0):.2e}"
    '6.69e-09'
    """
    if checkin_rate == 0:
        return 0.0
    d2 = single_divergence(noise_std)
    log_excess = exact_excess(order, *clients(n_users, checkin_rate, d2, order), n_users, d2)
    return float(renyi(np.array(float(order)), np.array(log_excess)))


def windowed_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float, least_clients: int) -> float:
    """The sum of :func:`exact_renyi` over counts of at least ``least_clients`` (value: below the truth).

    Small counts have a small probability but a large moment; this is the result of omitting them without charging their
    mass to delta.

    Parameters
    ----------
    noise_std
        Standard deviation of each client's own noise; its report has norm at most 1.
    least_clients
        Least count of clients of the sum.

    Examples
    --------
    >>> given = (22, 600_000, 1e-3, 1.0)
    >>> f"{exact_renyi(*given):.2g}, {windowed_renyi(*given, 400):.2g}"
    '1.8, 7.4e-08'
    """
    if checkin_rate == 0:
        return 0.0
    d2 = single_divergence(noise_std)
    k, log_mass = clients(n_users, checkin_rate, d2, order, least_clients)
    return float(renyi(np.array(float(order)), np.array(exact_excess(order, k, log_mass, n_users, d2))))


def exact_excess(order: int, k: Reals, log_mass: Reals, n_users: int, d2: float) -> float:
    """``log sum_k mass(k) (exact moment of k clients - 1)``, of positive terms only.

    Terms j below ``exp(-LOG_OMITTED)`` of the sum for every count are omitted; beyond ``MAX_TERMS``, counts as well.
    """
    j = np.arange(2.0, order + 1)
    log_choose = log_binomial(np.array(float(order)), j)

    def log_terms(lower: Wholes, upper: Wholes) -> Reals:
        """Upper bound of the terms of the counts in between; with the two exchanged, a lower bound."""
        log_shares = xlogy(j, k[upper] / n_users) + xlog1py(order - j, -k[lower] / n_users)
        return np.asarray(log_choose + log_shares + log_expm1_of(j * (j - 1) / 2 * (d2 / k[lower])))

    first, last = np.array(0), np.array(len(k) - 1)
    selected = log_terms(first, last) >= log_terms(last, first).max() - LOG_OMITTED
    j, log_choose = j[selected], log_choose[selected]
    if k.size * j.size > MAX_TERMS:
        selected, k_selected = significant_terms(log_mass, log_terms)
        j, log_choose, k, log_mass = j[selected], log_choose[selected], k[k_selected], log_mass[k_selected]
    x = d2 / k
    step, moments = max(1, MAX_CHUNK // len(j)), []
    with np.errstate(divide="ignore"):
        log_rate, log_rest = np.log(k / n_users), np.where(k < n_users, np.log1p(-k / n_users), -1e300)
    for i in range(0, len(k), step):
        lower = np.s_[i : i + step, None]
        logs = log_choose + j * log_rate[lower] + (order - j) * log_rest[lower]
        moments.append(log_sum(logs + log_expm1_of(j * (j - 1) / 2 * x[lower]), axis=1))
    return float(log_sum(log_mass + np.concatenate(moments), axis=0))


@states("checkin", "thm-1", item="Theorem 1, Equation 5, executed for binary response", gives=lambda arguments: (
    Gives.EXACT if arguments.get("inner") == "exact" else Gives.VALUE), rests_on="proven")  # fmt: skip
def binary_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float, inner: str) -> float:
    r"""Rényi divergence of shuffled binary response, all others equal (exact for this pair if ``inner`` is exact).

    Data sets :math:`(0,\dots,0,1)` against :math:`(0,\dots,0)`; k clients report c ones, with
    :math:`c \sim \mathrm{Bin}(k, \frac1{1+e^{\varepsilon_0}})`:

    .. math:: \frac1{\lambda-1}\log\sum_k\mathrm B(k)\,E\Big(1+r_k\Big(\frac cke^{\varepsilon_0}
              +\frac{k-c}ke^{-\varepsilon_0}-1\Big)\Big)^\lambda .

    With :math:`r_k = k/n` the theorem holds with equality: a lower limit of every bound for all randomizers; with
    :math:`r_k = \gamma`, as in the theorem's proof (``paper``: a value), two clients are a counterexample.

    Source: Liew, Hasegawa, Takahashi 2022, Theorem 1.

    Examples
    --------
    >>> [round(binary_renyi(2, 1.0, 2, 0.3, inner), 5) for inner in ("exact", "paper")]
    [0.15094, 0.04445]
    """
    max_users = 2000  # users of a sum over all counts of clients and of ones
    if n_users > max_users:
        raise DomainError(f"n_users must be a whole number in [2, {max_users}] for this sum, got {n_users}")
    if checkin_rate == 0:
        return 0.0
    k = np.arange(1.0, n_users + 1)
    rates = k / n_users if inner == "exact" else np.full(k.shape, checkin_rate)
    logs = [_log_binary_excess(order, epsilon0, int(i), float(r)) for i, r in zip(k, rates, strict=True)]
    return float(renyi(np.array(float(order)), log_sum(log_pmf(k, n_users, checkin_rate) + np.array(logs), axis=0)))


def _log_binary_excess(order: int, epsilon0: float, k: int, rate: float) -> float:
    """``log(moment - 1)`` for k clients; the mean of the likelihood ratio is 1."""
    c = np.arange(k + 1.0)
    log_mass = log_pmf(c, k, 1 / (1 + math.exp(epsilon0)))
    ratio_minus_1 = rate * (c / k * math.expm1(epsilon0) + (k - c) / k * math.expm1(-epsilon0))
    ratio = 1 - rate + rate * (c / k * math.exp(epsilon0) + (k - c) / k * math.exp(-epsilon0))
    log_power = order * np.where(np.abs(ratio_minus_1) < 0.5, np.log1p(np.maximum(ratio_minus_1, -0.5)), np.log(ratio))
    if log_power.max() > 30.0:  # logarithm of a moment from which the 1 is below its rounding
        return log_expm1(max(0.0, float(log_sum(log_mass + log_power, axis=0))))
    excess = float(np.exp(log_mass) @ _second_order_remainder(order, ratio_minus_1, log_power))
    return math.log(excess) if excess > 0 else -math.inf


def _second_order_remainder(order: int, x: Reals, log_power: Reals) -> Reals:
    """``(1 + x)^order - 1 - order x``, by its series where this cancels."""
    series = np.ones(x.shape)
    for i in range(14, 2, -1):  # terms of the series
        series = 1 + (order - i + 1) * x / i * series
    small = np.abs(order * x) < 0.1  # (1 + x)^order by its series
    return np.where(small, order * (order - 1) / 2 * x * x * series, np.expm1(log_power) - order * x)


def _least_over_slacks(
    terms: LogTerms, order: int, n_users: int, checkin_rate: float, inner: str, slack: float | None,
    *, whole: bool = False,
) -> float:  # fmt: skip
    """The least Rényi value over the grid of slacks."""
    if checkin_rate == 0:
        return 0.0
    slack_grid = slacks(n_users * checkin_rate) if slack is None else np.array([slack])
    orders = np.array([float(order)])
    log_moments = split_excess(terms, orders, n_users, checkin_rate, slack_grid, exact=inner == "exact", whole=whole)
    return _rounded_up(float(renyi(orders, log_moments).min()), order, inner)


def _rounded_up(value: float, order: int, inner: str, rtol: float = 0.0) -> float:
    """An upper answer, raised by the error of its logarithms; a value unchanged."""
    if inner != "exact" or not 0 < value < math.inf:
        return value
    return value * (1 + rtol + 4 * ROUNDING * (1 + math.lgamma(order + 1) + abs(math.log((order - 1) * value))))
