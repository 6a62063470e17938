r"""Rényi moments of self check-in as sums :math:`M_\lambda - 1 = \sum_{j\ge2}\binom\lambda j A_j`, in logarithms.

Given that k clients check in, the client in question is among them with a rate r, and every bound of the document has
the form :math:`f_\lambda(k, r) = 1 + \sum_j\binom\lambda j\,a_j(k)\,r^j` with coefficients that fall in k.  The true
rate is :math:`r = k/n`; the document writes the check-in rate.  All logarithms are of what exceeds 1, which may be
1e-300 or ``exp(1e10)``.  Proofs: book, chapter on check-in, sections on one theorem for both variants and on each.
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

MAX_DENSE = 512  # largest count of clients up to which every count is summed by itself
N_NODES = 12  # nodes of Gauss' rule in a panel: polynomials of a degree below 24 are summed exactly
MAX_CHUNK = 2**21  # numbers held at once: memory
MAX_TERMS = 1e8  # terms of a sum, beyond which those are selected that matter: more take seconds


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
        spread = np.where(j == 2, second, np.log(j) + gammaln(j / 2) + j * (scale + math.log(2) / 2))
        missed = j * scale - (np.floor(k) - 1) * (math.exp(-epsilon0) / 8)
        return np.asarray(j * log_rate + np.logaddexp(spread - j / 2 * np.log(clones), missed))

    return terms


def gaussian_terms(noise_std: float) -> LogTerms:
    r"""Logarithms of :math:`a_j(k)\,r^j` for the sum of k reports in the unit ball, each with Gaussian noise.

    .. math:: a_2 = \min\{4(e^{4/k\sigma^2}-1), 2e^{4/k\sigma^2}\},\qquad a_j = 2e^{2j(j-1)/k\sigma^2}.

    Source: Wang, Balle, Kasiviswanathan 2019, Theorem 9, as used by Liew et al. 2022.
    """
    leap = single_divergence(noise_std)

    def terms(j: Reals, k: Reals, log_rate: Reals) -> Reals:
        x = leap / k
        second = np.minimum(math.log(4) + log_expm1_of(x), math.log(2) + x)
        return np.asarray(j * log_rate + np.where(j == 2, second, math.log(2) + j * (j - 1) / 2 * x))

    return terms


@plainly
def single_divergence(noise_std: float) -> float:
    r"""The Rényi divergence of order 2 of one noisy report, :math:`4/\sigma^2`."""
    return over_variance(4, noise_std)


def log_expm1_of(x: Reals) -> Reals:
    """``log(exp(x) - 1)`` of an array without overflow or cancellation; ``-inf`` at 0."""
    found = np.array(x)
    near = found < LOG_OMITTED
    with np.errstate(divide="ignore"):
        found[near] += np.log(-np.expm1(-found[near]))
    return found


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
    rest = np.where(inside, order - j, 0.0)
    return np.where(inside, gammaln(order + 1) - gammaln(j + 1) - gammaln(rest + 1), -np.inf)


def renyi(orders: Reals, log_excesses: Reals) -> Reals:
    """The Rényi divergence of each order from the logarithm of its moment minus 1."""
    return np.asarray(np.logaddexp(0.0, log_excesses) / (orders - 1))


class _Pieces(NamedTuple):
    """A split of the number of clients: first and last count of each piece, and (a bound on) the logarithm of its mass.

    The pieces stand on the last axis; no client at all adds nothing and belongs to no piece.
    """

    firsts: Reals
    lasts: Reals
    log_masses: Reals


def three_way(n_users: int, checkin_rate: float, tried: Reals) -> _Pieces:
    r"""Counts up to :math:`\lfloor(1-\Delta)n\gamma\rfloor`, up to :math:`\lfloor(1+\Delta)n\gamma\rfloor`, beyond.

    Shape (slacks, 3).  The chances are those of the binomial law, rounded up.
    """
    low = np.floor((1 - tried) * n_users * checkin_rate)
    high = np.minimum(np.floor((1 + tried) * n_users * checkin_rate), n_users)
    below = log_chance(low, n_users, checkin_rate, few=True)
    above = log_chance(high + 1, n_users, checkin_rate, few=False)
    firsts = np.stack([np.ones(low.shape), low + 1, high + 1], -1)
    lasts = np.stack([low, high, np.full(low.shape, float(n_users))], -1)
    middle = log_between(low, high, n_users, checkin_rate)
    return _Pieces(firsts, lasts, np.stack([below, middle, above], -1))


@plainly
def many_pieces(n_users: int, checkin_rate: float) -> _Pieces:
    """A fine split: narrow pieces about the mean, and pieces that grow by a tenth far from it (upper).

    A piece about the mean weighs at most its width times the probability of its count nearest to the mode; one far
    below has the mass of all counts up to its last, one far above that of all from its first on.
    """
    log_outside = 36.0  # minus the logarithm of the mass outside the fine pieces
    low, high = window(n_users, checkin_rate, log_outside, log_outside)
    # Pieces in a standard deviation.
    width = max(1, math.ceil(math.sqrt(n_users * checkin_rate * (1 - checkin_rate)) / 128))
    firsts = np.arange(max(low, 1.0), high + 1, width)
    lasts = np.minimum(firsts + width - 1, high)
    nearest = np.clip(math.floor((n_users + 1) * checkin_rate), firsts, lasts)
    middle = log_pmf(nearest, n_users, checkin_rate) + np.log(lasts - firsts + 1)
    below, above = _ratios(1, low - 1), _ratios(high + 1, n_users)
    few, many = (log_tail(ends, n_users, checkin_rate) for ends in (below[1], above[0]))
    return _Pieces(
        np.concatenate([below[0], firsts, above[0]]),
        np.concatenate([below[1], lasts, above[1]]),
        np.concatenate([few, middle, many]),
    )


def _ratios(start: float, stop: float) -> tuple[Reals, Reals]:
    """First and last counts of pieces from ``start`` to ``stop`` that grow by a tenth."""
    if start > stop:
        return np.zeros(0), np.zeros(0)
    count = math.ceil(math.log((stop + 1) / start) / math.log(1.1))
    edges = np.unique(np.floor(np.geomspace(start, stop + 1, count + 1).round(6)))
    return edges[:-1], np.append(edges[1:-1] - 1, stop)


def bounded(terms: LogTerms, pieces: _Pieces, n_users: int, j: Reals) -> Reals:
    r"""Logarithms of a bound on :math:`A_j` with the true inner rate, the pieces summed up (upper).

    Coefficients fall as the count grows, and their weight grows with the rate:

    .. math:: A_j \le \sum_i \Pr[K \in i]\ a_j(\mathrm{first}_i)\Big(\frac{\mathrm{last}_i}n\Big)^j .
    """
    with np.errstate(divide="ignore"):
        log_rates = np.log(pieces.lasts / n_users)
    return _log_sum_over(pieces.log_masses, pieces.firsts, log_rates, terms, j)


def _log_sum_over(log_masses: Reals, k: Reals, log_rates: Reals, terms: LogTerms, j: Reals) -> Reals:
    """``log sum_k mass(k) a_j(k) r_k^j`` for each j, over the last axis of the rest, in bearable chunks."""
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
    kept, log_tails = (1 - tried) * n_users * checkin_rate, (-tried * tried * n_users * checkin_rate / 2)[:, None]
    kept, log_rate = (np.floor(kept) if whole else kept)[:, None], np.array(math.log(checkin_rate))
    few, many = log_tails + terms(j, np.array(1.0), log_rate), terms(j, kept + 1, log_rate)
    found = log_excess(orders, np.logaddexp(few, many))
    return np.logaddexp(found, log_tails) if whole else found


def slacks(mean: float) -> Reals:
    r"""The slacks that are tried: multiples of 1/64, and :math:`2^{-i/8}` down to half a deviation of the count."""
    steps = max(0, math.ceil(4 * math.log2(4 * mean)))
    return np.concatenate([np.arange(65) / 64, 2.0 ** (-np.arange(9.0, steps + 1) / 8)])


def summed(terms: LogTerms, n_users: int, checkin_rate: float, leap: float, j: Reals, *, exact: bool) -> Reals:
    r"""Logarithms of :math:`A_j = \sum_{k\ge1}\mathrm B(k)\,a_j(k)\,r_k^j`, right to 1e-11; every k counts.

    ``leap`` bounds the exponents :math:`\binom j2\,\mathrm{leap}/k` of the coefficients.
    """
    k, log_mass, log_rates = _weighed(n_users, checkin_rate, leap, int(j[-1]), exact)
    return _log_sum_over(log_mass, k, log_rates, terms, j)


def summed_excess(terms: LogTerms, n_users: int, checkin_rate: float, leap: float, order: int, *, exact: bool) -> float:
    r"""Logarithm of one moment minus 1 by :func:`summed`.

    Of very many terms those are added up that matter.
    """
    j = np.arange(2.0, order + 1)
    k, log_mass, log_rates = _weighed(n_users, checkin_rate, leap, order, exact)
    log_choose, kept = log_binomial(np.array(float(order)), j), np.ones(j.shape, bool)
    if k.size * j.size > MAX_TERMS:
        kept, some = mattering(log_mass, lambda few, many: log_choose + terms(j, k[few], log_rates[many]))
        k, log_mass, log_rates = k[some], log_mass[some], log_rates[some]
    return float(log_sum(_log_sum_over(log_mass, k, log_rates, terms, j[kept]) + log_choose[kept], axis=-1))


def mattering(log_mass: Reals, log_terms: Callable[[Wholes, Wholes], Reals]) -> tuple[Flags, Flags]:
    """Which orders j and which counts of very many have terms that may be ``exp(-LOG_OMITTED)`` of the rest.

    ``log_terms`` has a column for each j and is asked for a count at which coefficients are taken and one for rates: in
    a block of counts the former fall and the latter grow, so that its ends bound its terms from both sides.
    """
    edges = np.linspace(0, log_mass.size, 256 + 1).astype(int)  # blocks of counts
    first, last = edges[:-1, None], edges[1:, None] - 1
    tops, sizes = np.maximum.reduceat(log_mass, edges[:-1])[:, None], np.diff(edges)[:, None]
    most = tops + np.log(sizes) + log_terms(first, last)
    least = (tops + log_terms(last, first)).max()
    matters = most >= least - LOG_OMITTED - math.log(most.size)
    if sizes[matters.any(axis=1)].sum() * matters.any(axis=0).sum() > MAX_TERMS:
        raise DomainError("order must be smaller for so many clients: too many counts would matter")
    return matters.any(axis=0), np.repeat(matters.any(axis=1), sizes[:, 0])


def _weighed(n_users: int, checkin_rate: float, leap: float, order: int, exact: bool) -> tuple[Reals, Reals, Reals]:
    """Numbers of clients, logarithms of their mass and of the inner rate."""
    k, log_mass = clients(n_users, checkin_rate, leap, order)
    return k, log_mass, np.log(k / n_users) if exact else np.full(k.shape, math.log(checkin_rate))


def clients(
    n_users: int, checkin_rate: float, leap: float, order: int, least: int = 1, most: float = math.inf
) -> tuple[Reals, Reals]:
    r"""Numbers k of clients, from ``least`` to ``most``, with logarithms of their mass, to sum moments up to an order.

    Up to ``MAX_DENSE`` every k is there, because the smallest decide large orders.  Above, a panel of width
    :math:`2\sqrt k` has the nodes of Gauss' rule for whole numbers, so that sums of smooth functions keep all their
    digits.  What is left out weighs less than ``exp(-LOG_OMITTED)`` of the rest: below, by Bernstein's inequality
    against the largest exponent beyond the dense part; above, because weighting by :math:`k^j` shifts the law by j at
    most.
    """
    if checkin_rate == 1:
        return np.array([float(n_users)]), np.array([0.0])
    growth = order * (order - 1) / 2 * leap / max(MAX_DENSE, least)
    low, high = window(n_users, checkin_rate, LOG_OMITTED + math.log(n_users) + growth, LOG_OMITTED)
    high = int(min(n_users, high + order, most))
    start = max(low, MAX_DENSE + 1, least)
    dense = np.arange(float(least), min(MAX_DENSE, high) + 1)
    nodes, weights = panels(start, high, checkin_rate, leap) if start <= high else (np.zeros(0), np.zeros(0))
    k = np.concatenate([dense, nodes])
    log_mass = log_pmf(k, n_users, checkin_rate) + np.concatenate([np.zeros(len(dense)), np.log(weights)])
    return k, log_mass


def panels(start: int, stop: int, rate: float, leap: float) -> tuple[Reals, Reals]:
    """Nodes and weights for sums over the whole numbers from ``start`` to ``stop``; a panel ends where a minimum bends.

    Panels are equal steps of the root of k: each is about twice as wide as a binomial law of that mean.
    """
    step = max(math.sqrt(1 - rate), N_NODES / 2 / math.sqrt(stop))
    count = math.ceil((math.sqrt(stop + 1) - math.sqrt(start)) / step)
    if count > 20_000:  # panels at most: more take too long
        raise DomainError("order must be smaller for so little noise and so many clients: too many counts would matter")
    edges = np.floor(np.linspace(math.sqrt(start), math.sqrt(stop + 1), count + 1) ** 2)
    bend = math.floor(min(max(leap / math.log(2), start), stop)) + 1.0
    edges = np.unique(np.clip(np.concatenate([edges, [start, bend, stop + 1.0]]), start, stop + 1.0))
    nodes, weights = _gauss(np.diff(edges))
    nodes = edges[:-1, None] + nodes
    kept = weights > 0
    return nodes[kept], weights[kept]


def _gauss(counts: Reals) -> tuple[Reals, Reals]:
    """Nodes and weights on ``0 .. count - 1`` for each count: by the recurrence of discrete Chebyshev polynomials."""
    i = np.arange(1.0, N_NODES)
    steps = np.sqrt(np.maximum(i * i * (counts[:, None] ** 2 - i * i), 0) / (4 * (4 * i * i - 1)))
    jacobi = np.zeros((len(counts), N_NODES, N_NODES))
    jacobi[:, np.arange(N_NODES - 1), np.arange(1, N_NODES)] = steps
    jacobi += jacobi.transpose(0, 2, 1)
    places, vectors = np.linalg.eigh(jacobi)
    weights = counts[:, None] * vectors[:, 0, :] ** 2
    return places + (counts[:, None] - 1) / 2, np.where(weights > 1e-30, weights, 0.0)
