r"""Rényi moments of self check-in as sums :math:`M_\lambda - 1 = \sum_{j\ge2}\binom\lambda j A_j`, in logarithms.

Given that k clients check in, a given client is among them with probability r, and every bound of the document has the
form :math:`f_\lambda(k, r) = 1 + \sum_j\binom\lambda j\,a_j(k)\,r^j` with coefficients non-increasing in k.  The true
inner rate is :math:`r = k/n`; the document writes the check-in rate.  All logarithms are of moments minus 1, which
range from 1e-300 to ``exp(1e10)``.  Proofs: book, chapter on check-in, sections on one theorem for both variants and
on each.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from flamelib.accounting.checkin.closed_form import over_variance
from flamelib.core.arrays import Flags, Reals, Wholes
from flamelib.core.binomial import log_between, log_chance, log_pmf, log_tail, window
from flamelib.core.logspace import LOG_OMITTED, log1mexp
from flamelib.core.vocabulary import DomainError, plainly

LogTerms = Callable[[Reals, Reals, Reals], Reals]

MAX_DENSE = 512  # largest count of clients up to which all counts are summed
N_NODES = 12  # nodes of Gauss' rule in a panel: exact for polynomials of a degree below 24
MAX_CHUNK = 2**21  # entries of an array held in memory
MAX_TERMS = 1e8  # terms of a sum beyond which only the significant ones are selected: more take seconds


def shuffle_terms(epsilon0: float) -> LogTerms:
    r"""Logarithms of :math:`a_j(k)\,r^j` for shuffled reports of an epsilon0-LDP randomizer.

    With :math:`\bar k = \lfloor (k-1)/(2e^{\varepsilon_0})\rfloor + 1` and :math:`z = 2\sinh\varepsilon_0`,

    .. math:: a_2 = \frac{4(e^{\varepsilon_0}-1)^2}{\bar k e^{\varepsilon_0}} + z^2e^{-(k-1)/8e^{\varepsilon_0}},\qquad
              a_j = j\Gamma(\tfrac j2)\Big(\frac{2z^2}{\bar k}\Big)^{j/2} + z^je^{-(k-1)/8e^{\varepsilon_0}} .

    Source: Girgis, Data, Diggavi 2021, as used by Liew et al. 2022.
    """
    scale = epsilon0 + log1mexp(2 * epsilon0)
    second = math.log(4) + epsilon0 + 2 * log1mexp(epsilon0)

    def terms(j: Reals, k: Reals, log_rate: Reals) -> Reals:
        clones = np.floor((k - 1) * (math.exp(-epsilon0) / 2)) + 1
        deviation = np.where(j == 2, second, np.log(j) + gammaln(j / 2) + j * (scale + math.log(2) / 2))
        log_failure = j * scale - (np.floor(k) - 1) * (math.exp(-epsilon0) / 8)
        return np.asarray(j * log_rate + np.logaddexp(deviation - j / 2 * np.log(clones), log_failure))

    return terms


def gaussian_terms(noise_std: float) -> LogTerms:
    r"""Logarithms of :math:`a_j(k)\,r^j` for the sum of k reports in the unit ball, each with Gaussian noise.

    .. math:: a_2 = \min\{4(e^{4/k\sigma^2}-1), 2e^{4/k\sigma^2}\},\qquad a_j = 2e^{2j(j-1)/k\sigma^2}.

    Source: Wang, Balle, Kasiviswanathan 2019, Theorem 9, as used by Liew et al. 2022.
    """
    d2 = single_divergence(noise_std)

    def terms(j: Reals, k: Reals, log_rate: Reals) -> Reals:
        x = d2 / k
        second = np.minimum(math.log(4) + log_expm1_of(x), math.log(2) + x)
        return np.asarray(j * log_rate + np.where(j == 2, second, math.log(2) + j * (j - 1) / 2 * x))

    return terms


@plainly
def single_divergence(noise_std: float) -> float:
    r"""The Rényi divergence of order 2 of one noisy report, :math:`4/\sigma^2`."""
    return over_variance(4, noise_std)


def log_expm1_of(x: Reals) -> Reals:
    """``log(exp(x) - 1)`` of an array without overflow or cancellation; ``-inf`` at 0."""
    result = np.array(x)
    small = result < LOG_OMITTED
    with np.errstate(divide="ignore"):
        result[small] += np.log(-np.expm1(-result[small]))
    return result


def log_sum(logs: Reals, axis: int) -> Reals:
    """Logarithm of a sum along an axis, ``-inf`` for nothing."""
    top = logs.max(axis=axis, keepdims=True, initial=-1e300)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - top).sum(axis=axis)) + top.squeeze(axis))


def log_excess(orders: Reals, log_terms: Reals) -> Reals:
    r"""``log sum_j binom(order, j) A_j`` for each order; the terms of j = 2, 3, ... stand on the last axis."""
    j = np.arange(2.0, 2 + log_terms.shape[-1])
    return np.asarray(log_sum(log_terms[..., None, :] + log_binomial(orders[:, None], j), axis=-1))


def log_binomial(order: Reals, j: Reals) -> Reals:
    """Logarithm of a binomial coefficient, ``-inf`` where j exceeds the order."""
    inside = j <= order
    difference = np.where(inside, order - j, 0.0)
    return np.where(inside, gammaln(order + 1) - gammaln(j + 1) - gammaln(difference + 1), -np.inf)


def renyi(orders: Reals, log_excesses: Reals) -> Reals:
    """The Rényi divergence of each order from log(moment - 1)."""
    return np.asarray(np.logaddexp(0.0, log_excesses) / (orders - 1))


class _Pieces(NamedTuple):
    """A partition of the counts 1..n: first and last count of each piece, and (a bound on) the logarithm of its mass.

    The pieces are on the last axis; the count 0 contributes nothing and belongs to no piece.
    """

    firsts: Reals
    lasts: Reals
    log_masses: Reals


def three_way(n_users: int, checkin_rate: float, tried: Reals) -> _Pieces:
    r"""Counts up to :math:`\lfloor(1-\Delta)n\gamma\rfloor`, up to :math:`\lfloor(1+\Delta)n\gamma\rfloor`, beyond.

    Shape (slacks, 3).  The masses are those of the binomial distribution, rounded up.
    """
    lower = np.floor((1 - tried) * n_users * checkin_rate)
    upper = np.minimum(np.floor((1 + tried) * n_users * checkin_rate), n_users)
    log_lower = log_chance(lower, n_users, checkin_rate, few=True)
    log_upper = log_chance(upper + 1, n_users, checkin_rate, few=False)
    firsts = np.stack([np.ones(lower.shape), lower + 1, upper + 1], -1)
    lasts = np.stack([lower, upper, np.full(lower.shape, float(n_users))], -1)
    log_middle = log_between(lower, upper, n_users, checkin_rate)
    return _Pieces(firsts, lasts, np.stack([log_lower, log_middle, log_upper], -1))


@plainly
def many_pieces(n_users: int, checkin_rate: float) -> _Pieces:
    """A fine partition: pieces of equal width about the mean, of ratio 1.1 far from it (upper).

    The mass of a piece about the mean is bounded by its width times the pmf at its count nearest to the mode; far below
    by the cdf at its last count, far above by the survival function at its first.
    """
    log_outside = 36.0  # minus the logarithm of the mass outside the pieces of equal width
    lower, upper = window(n_users, checkin_rate, log_outside, log_outside)
    # Pieces in a standard deviation.
    width = max(1, math.ceil(math.sqrt(n_users * checkin_rate * (1 - checkin_rate)) / 128))
    firsts = np.arange(max(lower, 1.0), upper + 1, width)
    lasts = np.minimum(firsts + width - 1, upper)
    modes = np.clip(math.floor((n_users + 1) * checkin_rate), firsts, lasts)
    log_middle = log_pmf(modes, n_users, checkin_rate) + np.log(lasts - firsts + 1)
    lower_pieces, upper_pieces = _ratios(1, lower - 1), _ratios(upper + 1, n_users)
    log_lower, log_upper = (log_tail(ends, n_users, checkin_rate) for ends in (lower_pieces[1], upper_pieces[0]))
    return _Pieces(
        np.concatenate([lower_pieces[0], firsts, upper_pieces[0]]),
        np.concatenate([lower_pieces[1], lasts, upper_pieces[1]]),
        np.concatenate([log_lower, log_middle, log_upper]),
    )


def _ratios(start: float, stop: float) -> tuple[Reals, Reals]:
    """First and last counts of pieces of ratio 1.1 from ``start`` to ``stop``."""
    if start > stop:
        return np.zeros(0), np.zeros(0)
    count = math.ceil(math.log((stop + 1) / start) / math.log(1.1))
    edges = np.unique(np.floor(np.geomspace(start, stop + 1, count + 1).round(6)))
    return edges[:-1], np.append(edges[1:-1] - 1, stop)


def bounded(terms: LogTerms, pieces: _Pieces, n_users: int, j: Reals) -> Reals:
    r"""Logarithms of a bound on :math:`A_j` with the true inner rate, summed over pieces (upper).

    Since :math:`a_j` is non-increasing and :math:`r_k = k/n` increasing in k:

    .. math:: A_j \le \sum_i \Pr[K \in i]\ a_j(\mathrm{first}_i)\Big(\frac{\mathrm{last}_i}n\Big)^j .
    """
    with np.errstate(divide="ignore"):
        log_rates = np.log(pieces.lasts / n_users)
    return _log_sum_over(pieces.log_masses, pieces.firsts, log_rates, terms, j)


def _log_sum_over(log_masses: Reals, k: Reals, log_rates: Reals, terms: LogTerms, j: Reals) -> Reals:
    """``log sum_k mass(k) a_j(k) r_k^j`` for each j, over the last axis of the rest, in chunks of ``MAX_CHUNK``."""
    step = max(1, MAX_CHUNK // k.size)
    parts = [j[i : i + step] for i in range(0, len(j), step)]
    log_masses, k, log_rates = log_masses[..., None], k[..., None], log_rates[..., None]
    return np.concatenate([log_sum(log_masses + terms(part, k, log_rates), axis=-2) for part in parts], axis=-1)


def split_excess(
    terms: LogTerms, orders: Reals, n_users: int, checkin_rate: float, tried: Reals, *, exact: bool, whole: bool
) -> Reals:
    r"""Logarithms of the moments minus 1, shape (slacks, orders), by a split of the count.

    ``exact`` splits into three with the true inner rate.  Else as printed, with the :math:`e^{-\Delta^2n\gamma/2}` of
    Lemma 4 and the check-in rate inside (a value),

    .. math:: A_j = e^{-\Delta^2n\gamma/2}a_j(1)\gamma^j + a_j\big((1-\Delta)n\gamma+1\big)\gamma^j ;

    ``whole`` takes the whole part of :math:`(1-\Delta)n\gamma` and adds the tail's own mass, as Equation 11 does.
    """
    j = np.arange(2.0, orders[-1] + 1)
    if exact:
        return log_excess(orders, bounded(terms, three_way(n_users, checkin_rate, tried), n_users, j))
    threshold, log_tails = (1 - tried) * n_users * checkin_rate, (-tried * tried * n_users * checkin_rate / 2)[:, None]
    threshold, log_rate = (np.floor(threshold) if whole else threshold)[:, None], np.array(math.log(checkin_rate))
    log_lower, log_upper = log_tails + terms(j, np.array(1.0), log_rate), terms(j, threshold + 1, log_rate)
    log_moments = log_excess(orders, np.logaddexp(log_lower, log_upper))
    return np.logaddexp(log_moments, log_tails) if whole else log_moments


def slacks(mean: float) -> Reals:
    r"""Grid of slacks: multiples of 1/64, and :math:`2^{-i/8}` down to half a standard deviation of the count."""
    steps = max(0, math.ceil(4 * math.log2(4 * mean)))
    return np.concatenate([np.arange(65) / 64, 2.0 ** (-np.arange(9.0, steps + 1) / 8)])


def summed(terms: LogTerms, n_users: int, checkin_rate: float, d2: float, j: Reals, *, exact: bool) -> Reals:
    r"""Logarithms of :math:`A_j = \sum_{k\ge1}\mathrm B(k)\,a_j(k)\,r_k^j` over all k, with relative error 1e-11.

    ``d2`` bounds the exponents :math:`\binom j2\,\mathrm{d2}/k` of the coefficients.
    """
    k, log_mass, log_rates = _log_weights(n_users, checkin_rate, d2, int(j[-1]), exact)
    return _log_sum_over(log_mass, k, log_rates, terms, j)


def summed_excess(terms: LogTerms, n_users: int, checkin_rate: float, d2: float, order: int, *, exact: bool) -> float:
    r"""Logarithm of one moment minus 1 by :func:`summed`; beyond ``MAX_TERMS``, of the significant terms only."""
    j = np.arange(2.0, order + 1)
    k, log_mass, log_rates = _log_weights(n_users, checkin_rate, d2, order, exact)
    log_choose, j_selected = log_binomial(np.array(float(order)), j), np.ones(j.shape, bool)
    if k.size * j.size > MAX_TERMS:
        j_selected, k_selected = significant_terms(log_mass, lambda i, m: log_choose + terms(j, k[i], log_rates[m]))
        k, log_mass, log_rates = k[k_selected], log_mass[k_selected], log_rates[k_selected]
    return float(log_sum(_log_sum_over(log_mass, k, log_rates, terms, j[j_selected]) + log_choose[j_selected], axis=-1))


def significant_terms(log_mass: Reals, log_terms: Callable[[Wholes, Wholes], Reals]) -> tuple[Flags, Flags]:
    """Orders j and counts k whose terms may exceed ``exp(-LOG_OMITTED)`` of the sum.

    ``log_terms(i, m)`` has a column for each j, with coefficients at the i-th and rates at the m-th count: within a
    block of counts coefficients decrease and rates increase, so that its ends bound its terms on both sides.
    """
    edges = np.linspace(0, log_mass.size, 256 + 1).astype(int)  # blocks of counts
    first, last = edges[:-1, None], edges[1:, None] - 1
    log_peaks, sizes = np.maximum.reduceat(log_mass, edges[:-1])[:, None], np.diff(edges)[:, None]
    upper = log_peaks + np.log(sizes) + log_terms(first, last)
    threshold = (log_peaks + log_terms(last, first)).max()
    significant = upper >= threshold - LOG_OMITTED - math.log(upper.size)
    if sizes[significant.any(axis=1)].sum() * significant.any(axis=0).sum() > MAX_TERMS:
        raise DomainError("order must be smaller for so many clients: too many counts would matter")
    return significant.any(axis=0), np.repeat(significant.any(axis=1), sizes[:, 0])


def _log_weights(n_users: int, checkin_rate: float, d2: float, order: int, exact: bool) -> tuple[Reals, Reals, Reals]:
    """Numbers of clients, logarithms of their mass and of the inner rate."""
    k, log_mass = clients(n_users, checkin_rate, d2, order)
    return k, log_mass, np.log(k / n_users) if exact else np.full(k.shape, math.log(checkin_rate))


def clients(
    n_users: int, checkin_rate: float, d2: float, order: int, min_clients: int = 1, max_clients: float = math.inf
) -> tuple[Reals, Reals]:
    r"""Counts k from ``min_clients`` to ``max_clients`` with logarithms of their weights, for moments up to ``order``.

    Up to ``MAX_DENSE`` every k is included, because the smallest dominate large orders.  Above, a panel of width
    :math:`2\sqrt k` has the nodes of Gauss' rule for whole numbers, so that sums of smooth functions keep all their
    digits.  The omitted mass is below ``exp(-LOG_OMITTED)`` of the sum: at the lower end by Bernstein's inequality
    against the largest exponent beyond the dense part; at the upper end because weighting by :math:`k^j` shifts the
    distribution by at most j.
    """
    if checkin_rate == 1:
        return np.array([float(n_users)]), np.array([0.0])
    log_growth = order * (order - 1) / 2 * d2 / max(MAX_DENSE, min_clients)
    lower, upper = window(n_users, checkin_rate, LOG_OMITTED + math.log(n_users) + log_growth, LOG_OMITTED)
    upper = int(min(n_users, upper + order, max_clients))
    start = max(lower, MAX_DENSE + 1, min_clients)
    dense = np.arange(float(min_clients), min(MAX_DENSE, upper) + 1)
    nodes, weights = panels(start, upper, checkin_rate, d2) if start <= upper else (np.zeros(0), np.zeros(0))
    k = np.concatenate([dense, nodes])
    log_mass = log_pmf(k, n_users, checkin_rate) + np.concatenate([np.zeros(len(dense)), np.log(weights)])
    return k, log_mass


def panels(start: int, stop: int, rate: float, d2: float) -> tuple[Reals, Reals]:
    """Nodes and weights for sums over the integers from ``start`` to ``stop``; a panel ends at the kink of a minimum.

    Panels are equal steps of sqrt(k), about two standard deviations of a binomial distribution of mean k each.
    """
    step = max(math.sqrt(1 - rate), N_NODES / 2 / math.sqrt(stop))
    count = math.ceil((math.sqrt(stop + 1) - math.sqrt(start)) / step)
    if count > 20_000:  # panels at most: more take too long
        raise DomainError("order must be smaller for so little noise and so many clients: too many counts would matter")
    edges = np.floor(np.linspace(math.sqrt(start), math.sqrt(stop + 1), count + 1) ** 2)
    minimum = math.floor(min(max(d2 / math.log(2), start), stop)) + 1.0
    edges = np.unique(np.clip(np.concatenate([edges, [start, minimum, stop + 1.0]]), start, stop + 1.0))
    nodes, weights = _gauss(np.diff(edges))
    nodes = edges[:-1, None] + nodes
    valid = weights > 0
    return nodes[valid], weights[valid]


def _gauss(counts: Reals) -> tuple[Reals, Reals]:
    """Gauss nodes and weights on ``0 .. count - 1``, by the Jacobi matrices of discrete Chebyshev polynomials."""
    i = np.arange(1.0, N_NODES)
    steps = np.sqrt(np.maximum(i * i * (counts[:, None] ** 2 - i * i), 0) / (4 * (4 * i * i - 1)))
    jacobi = np.zeros((len(counts), N_NODES, N_NODES))
    jacobi[:, np.arange(N_NODES - 1), np.arange(1, N_NODES)] = steps
    jacobi += jacobi.transpose(0, 2, 1)
    eigenvalues, vectors = np.linalg.eigh(jacobi)
    weights = counts[:, None] * vectors[:, 0, :] ** 2
    return eigenvalues + (counts[:, None] - 1) / 2, np.where(weights > 1e-30, weights, 0.0)
