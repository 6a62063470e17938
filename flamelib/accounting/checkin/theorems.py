"""Self check-in: Rényi privacy by the document's theorems, as printed and with the true rate inside.

Every client checks in by its own coin; the server sees how many did, not who.  Adjacency: one client's record is
replaced.  An answer is the Rényi divergence of one round at one order.  ``inner`` says with which rate a client is
among k that check in: ``paper`` takes the check-in rate, as the document does (a value, no bound: where few check in
it falls below the truth), ``exact`` takes k/n.  Proofs: book, chapter on check-in, Theorems 1, 2 and 4, Equation 11.

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
    mattering,
    renyi,
    shuffle_terms,
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
    """More counts than are all summed are summed in panels, whose error is measured."""
    return RestsOn.ESTIMATED if arguments["n_users"] > MAX_DENSE else RestsOn.PROVEN


def _summed_rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """What is known of a fixed number of reports is cited."""
    return weakest(RestsOn.CITED, _exact_rests_on(arguments))


@states("checkin", "thm-2", item="Theorem 2, Equation 7, shuffled reports, after Girgis, Data, Diggavi 2021",
        gives=_gives, rests_on="cited")  # fmt: skip
def shuffled_renyi(
    order: int, epsilon0: float, n_users: int, checkin_rate: float, inner: str, slack: float | None = None
) -> float:
    r"""Rényi divergence of one shuffled round, any epsilon0-LDP randomizer (upper if ``inner`` is exact, else a value).

    With the terms of :func:`~flamelib.accounting.checkin.moments.shuffle_terms`: for ``paper`` the tail
    :math:`e^{-\Delta^2n\gamma/2}` times those of one client, plus those of :math:`k = (1-\Delta)n\gamma+1` clients,
    where the fraction is kept except in the chance that too few are clones, which takes its whole part; for ``exact``
    the split into three of :func:`~flamelib.accounting.checkin.moments.three_way`.

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
    return _least(shuffle_terms(epsilon0), order, n_users, checkin_rate, inner, slack)


@states("checkin", "eq-11", item="Equation 11, noisy sums, split in two, after Wang, Balle, Kasiviswanathan 2019",
        gives=_gives, rests_on="cited")  # fmt: skip
def split_renyi(
    order: int, n_users: int, checkin_rate: float, noise_std: float, inner: str, slack: float | None = None
) -> float:
    """Rényi divergence of one noisy sum by splitting the count (upper if ``inner`` is exact, else a value).

    As :func:`shuffled_renyi`, with the terms of :func:`~flamelib.accounting.checkin.moments.gaussian_terms`.  The
    printed form counts the whole moment of one client, not what exceeds 1.

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
    return _least(gaussian_terms(noise_std), order, n_users, checkin_rate, inner, slack, whole=True)


@states("checkin", "thm-4", item="Theorem 4, Equation 10, noisy sums, after Wang, Balle, Kasiviswanathan 2019",
        gives=_gives, rests_on=_summed_rests_on)  # fmt: skip
def summed_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float, inner: str) -> float:
    r"""Rényi divergence of one noisy sum over all counts of clients (upper if ``inner`` is exact, else a value).

    .. math:: \frac1{\lambda-1}\log\Big(1+\sum_{k=1}^n\binom nk\gamma^k(1-\gamma)^{n-k}\sum_{j=2}^\lambda
              \binom\lambda j r_k^j\,a_j(k)\Big)

    with the coefficients of :func:`~flamelib.accounting.checkin.moments.gaussian_terms` and :math:`r_k = \gamma` or
    :math:`k/n`.  The term of k = 0, which the document leaves out, is the 1.  Right to 1e-10 of itself; the smallest
    counts, which decide large orders, are all there.

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
    terms, leap = gaussian_terms(noise_std), single_divergence(noise_std)
    found = summed_excess(terms, n_users, checkin_rate, leap, order, exact=inner == "exact")
    divergence = float(renyi(np.array(float(order)), np.array(found)))
    # Relative error of a sum over panels of counts.
    return _raised(divergence, order, inner, 1e-10 if n_users > MAX_DENSE else 0.0)


@states("checkin", "rdp-exact", item="Theorem 4, for the pair of data sets that is the worst for budgets",
        gives="value")  # fmt: skip
def exact_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float) -> float:
    r"""Rényi divergence of one noisy sum, for the worst pair of data sets that is known (value).

    .. math:: \frac1{\lambda-1}\log\sum_{k=0}^n\binom nk\gamma^k(1-\gamma)^{n-k}\sum_{j=0}^\lambda\binom\lambda j
              \Big(1-\frac kn\Big)^{\lambda-j}\Big(\frac kn\Big)^je^{2j(j-1)/k\sigma^2}

    The data sets hold one unit vector everywhere but, in one of the two, its opposite in one place.  For budgets this
    pair is proven to be the worst (:mod:`~flamelib.accounting.checkin.distributed_noise`).  For moments no worse one
    was found, so that this is exact for the pair, at most the worst moment, and no bound.

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
    leap = single_divergence(noise_std)
    found = exact_excess(order, *clients(n_users, checkin_rate, leap, order), n_users, leap)
    return float(renyi(np.array(float(order)), np.array(found)))


def windowed_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float, least_clients: int) -> float:
    """The sum of :func:`exact_renyi` without rounds of fewer clients (value: it falls below the truth).

    That rounds with few clients hardly ever happen does not make their part of a moment small; this is what a program
    gives that leaves them out and does not pay for it in delta.

    Parameters
    ----------
    noise_std
        Standard deviation of each client's own noise; its report has norm at most 1.
    least_clients
        Counts of clients from this one on are summed.

    Examples
    --------
    >>> given = (22, 600_000, 1e-3, 1.0)
    >>> f"{exact_renyi(*given):.2g}, {windowed_renyi(*given, 400):.2g}"
    '1.8, 7.4e-08'
    """
    if checkin_rate == 0:
        return 0.0
    leap = single_divergence(noise_std)
    k, log_mass = clients(n_users, checkin_rate, leap, order, least_clients)
    return float(renyi(np.array(float(order)), np.array(exact_excess(order, k, log_mass, n_users, leap))))


def exact_excess(order: int, k: Reals, log_mass: Reals, n_users: int, leap: float) -> float:
    """Logarithm of the sum of masses and exact moments of k clients minus 1: all is positive, nothing cancels.

    Summands of j that are ``exp(-LOG_OMITTED)`` of the rest for every count are passed over; of very many, counts too.
    """
    j = np.arange(2.0, order + 1)
    log_choose = log_binomial(np.array(float(order)), j)

    def between(few: Wholes, many: Wholes) -> Reals:
        """Of the counts between these two places, at most; with the two exchanged, at least."""
        shares = xlogy(j, k[many] / n_users) + xlog1py(order - j, -k[few] / n_users)
        return np.asarray(log_choose + shares + log_expm1_of(j * (j - 1) / 2 * (leap / k[few])))

    first, last = np.array(0), np.array(len(k) - 1)
    kept = between(first, last) >= between(last, first).max() - LOG_OMITTED
    j, log_choose = j[kept], log_choose[kept]
    if k.size * j.size > MAX_TERMS:
        kept, some = mattering(log_mass, between)
        j, log_choose, k, log_mass = j[kept], log_choose[kept], k[some], log_mass[some]
    x = leap / k
    step, moments = max(1, MAX_CHUNK // len(j)), []
    with np.errstate(divide="ignore"):
        log_in, log_out = np.log(k / n_users), np.where(k < n_users, np.log1p(-k / n_users), -1e300)
    for i in range(0, len(k), step):
        few = np.s_[i : i + step, None]
        logs = log_choose + j * log_in[few] + (order - j) * log_out[few]
        moments.append(log_sum(logs + log_expm1_of(j * (j - 1) / 2 * x[few]), axis=1))
    return float(log_sum(log_mass + np.concatenate(moments), axis=0))


@states("checkin", "thm-1", item="Theorem 1, Equation 5, executed for binary response", gives=lambda arguments: (
    Gives.EXACT if arguments.get("inner") == "exact" else Gives.VALUE), rests_on="proven")  # fmt: skip
def binary_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float, inner: str) -> float:
    r"""Rényi divergence of shuffled binary response, all others equal (exact for this pair if ``inner`` is exact).

    Data sets :math:`(0,\dots,0,1)` against :math:`(0,\dots,0)`; among k clients c ones are seen, with
    :math:`c \sim \mathrm{Bin}(k, \frac1{1+e^{\varepsilon_0}})`:

    .. math:: \frac1{\lambda-1}\log\sum_k\mathrm B(k)\,E\Big(1+r_k\Big(\frac cke^{\varepsilon_0}
              +\frac{k-c}ke^{-\varepsilon_0}-1\Big)\Big)^\lambda .

    With :math:`r_k = k/n` this is the theorem with equality, so that no bound for every randomizer may fall below it;
    with :math:`r_k = \gamma`, as in the theorem's proof (``paper``: a value), two clients are enough to refute it.

    Source: Liew, Hasegawa, Takahashi 2022, Theorem 1.

    Examples
    --------
    >>> [round(binary_renyi(2, 1.0, 2, 0.3, inner), 5) for inner in ("exact", "paper")]
    [0.15094, 0.04445]
    """
    max_users = 2000  # users at most of a sum over all counts of clients and of ones
    if n_users > max_users:
        raise DomainError(f"n_users must be a whole number in [2, {max_users}] for this sum, got {n_users}")
    if checkin_rate == 0:
        return 0.0
    k = np.arange(1.0, n_users + 1)
    rates = k / n_users if inner == "exact" else np.full(k.shape, checkin_rate)
    found = [_log_binary_excess(order, epsilon0, int(i), float(r)) for i, r in zip(k, rates, strict=True)]
    return float(renyi(np.array(float(order)), log_sum(log_pmf(k, n_users, checkin_rate) + np.array(found), axis=0)))


def _log_binary_excess(order: int, epsilon0: float, k: int, rate: float) -> float:
    """Logarithm of the moment of k clients, minus 1; the mean of the likelihood ratio is 1."""
    ones = np.arange(k + 1.0)
    log_chance = log_pmf(ones, k, 1 / (1 + math.exp(epsilon0)))
    grown = rate * (ones / k * math.expm1(epsilon0) + (k - ones) / k * math.expm1(-epsilon0))
    ratio = 1 - rate + rate * (ones / k * math.exp(epsilon0) + (k - ones) / k * math.exp(-epsilon0))
    log_power = order * np.where(np.abs(grown) < 0.5, np.log1p(np.maximum(grown, -0.5)), np.log(ratio))
    if log_power.max() > 30.0:  # logarithm of a power of the likelihood ratio from which its 1 does not count
        return log_expm1(max(0.0, float(log_sum(log_chance + log_power, axis=0))))
    excess = float(np.exp(log_chance) @ _beyond_linear(order, grown, log_power))
    return math.log(excess) if excess > 0 else -math.inf


def _beyond_linear(order: int, x: Reals, log_power: Reals) -> Reals:
    """``(1 + x)^order - 1 - order x``, its series where that would cancel."""
    series = np.ones(x.shape)
    for i in range(14, 2, -1):  # terms of the series for all digits
        series = 1 + (order - i + 1) * x / i * series
    near = np.abs(order * x) < 0.1  # (1 + x)^order by its series
    return np.where(near, order * (order - 1) / 2 * x * x * series, np.expm1(log_power) - order * x)


def _least(
    terms: LogTerms, order: int, n_users: int, checkin_rate: float, inner: str, slack: float | None,
    *, whole: bool = False,
) -> float:  # fmt: skip
    """The least Rényi value over the slacks."""
    if checkin_rate == 0:
        return 0.0
    tried = slacks(n_users * checkin_rate) if slack is None else np.array([slack])
    orders = np.array([float(order)])
    found = split_excess(terms, orders, n_users, checkin_rate, tried, exact=inner == "exact", whole=whole)
    return _raised(float(renyi(orders, found).min()), order, inner)


def _raised(found: float, order: int, inner: str, wrong: float = 0.0) -> float:
    """An upper answer, raised by what its logarithms may be wrong by; a value as it is."""
    if inner != "exact" or not 0 < found < math.inf:
        return found
    return found * (1 + wrong + 4 * ROUNDING * (1 + math.lgamma(order + 1) + abs(math.log((order - 1) * found))))
