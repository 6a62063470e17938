r"""Composition of rounds of random participation: upper and lower bounds.

*Upper bound*: a pair that dominates every round, for all models and gradients.  Reveal the number j of other records of
the client that are drawn.  The larger data set gives :math:`P_j = (1-p)\mu_0+p(1-q)\mu_1+pq\,\mu_2`, the smaller one
:math:`Q_j = (1-p)\mu_0+p\mu_1`: client absent, present without the record, present with it.  The profile is largest for
*aligned* gradients for :math:`\alpha > 1` and for *opposed* ones below; so the losses of the pair are the positive ones
of the aligned pair, the negative ones of the opposed pair, and 0 with the remaining mass (both cross 0 at :math:`C/2`
only, and the total variation is the same), averaged over j.  It is non-decreasing in j, p, q and C.  Its T-fold product
bounds T rounds, the swapped product bounds them for an added record, and the answer is the larger of both.  For few
rounds of a client with few records :mod:`~flamelib.accounting.sampling.adaptive_angles` is smaller: one pair for each
of a few intervals of angles.  Participation is secret: all rounds in which the client might have joined are composed.
The server's sums are private, and the noise is independent in each round.  Proof: book, chapter on random
participation, "A dominating pair".

*Baselines*.  Poisson sampling of one record at a rate r: :math:`(1-r)N(0)+rN(C)` against :math:`N(0)`, which is p = 1
(OLS) or L = 1 with r = pq (CS).  Public participation (WCS): OLS with probability p, else no loss.

*Lower bound*: a non-adaptive adversary.  All gradients have the largest norm, those of the other records make the same
angle with the differing one's, and the sum is post-processed to boxes of the plane that they span; boxes of nearly
equal loss are merged.  The baselines are attained by one pair.

Source: Hasircioglu, Gunduz 2022, Theorem 4.1 and its proof; Zhu, Dong, Wang 2022, Theorem 10 (dominating pairs).
"""

import math
import sys
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from flamelib.accounting.composition.dominating_pair import (
    RTOL_MASS,
    DominatingPair,
    alike,
    composed,
    composed_below,
    composed_in_order,
    joined,
    tilted,
)
from flamelib.accounting.noise.gaussian import MAX_RATIO, MIN_RATIO, gaussian_mechanism
from flamelib.accounting.sampling.adaptive_angles import MIN_DELTA_ANGLES, choices, fineness, turned_profile
from flamelib.accounting.sampling.adaptive_gradients import interval_masses
from flamelib.accounting.sampling.public_participation import cs, ols, wcs
from flamelib.accounting.sampling.secret_participation import Round, random_participation
from flamelib.core import binomial
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified, Gives
from flamelib.core.logspace import UNIT
from flamelib.core.search import least_whole
from flamelib.core.statements import states
from flamelib.core.vocabulary import check, one_budget, plainly

MAX_SIGMAS = 16.0  # standard deviations, or nats of a loss, beyond which a normal distribution counts as 0
MAX_SIGMAS_FAR = 38.2  # the same for a tiny delta
N_GROUPS = 128  # groups of numbers of other records, bounded by the largest of the group
MASS_OMITTED = 1e-25  # mass omitted from a binomial distribution, or added to a cell
MIN_RATE = 1e-30  # least rate: smaller ones are rounded up
MAX_ALIGNED = 1000  # largest number of records with equal gradients
SCHEMES = ("outer", "wcs", "ols", "cs")


@states("participation", "rounds", item="Sections 4 and 5, composed over rounds by dominating pairs",
        gives=lambda given: Gives(given.get("side", "upper")), rests_on="proven", adjacency="add-remove",
        words={"scheme": SCHEMES})  # fmt: skip
def participation_rounds(
    scheme: str,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
    side: str = "upper",
) -> Certified:
    """Guarantee after ``rounds`` rounds, one record added or removed (upper, both directions).

    ``uncertainty`` estimates the discretisation error; from 4 million rounds on Chernoff's bound is used.  The lower
    bound is that of a non-adaptive adversary: all gradients of the largest norm, those of the other records at one
    angle to the differing one's (the worst found), or only some of this client's records have nonzero gradients.
    Adaptive angles are not covered by the lower bound.

    Parameters
    ----------
    scheme : str
        ``outer``: participation is secret, Theorem 4.1; ``wcs``: participation is public; ``ols``: all join; ``cs``:
        every record is drawn independently, at the product of the rates.
    side : str
        ``upper``, or ``lower``: of the explicit adversary, 0 where there is no bound.
    n_records : int, at least 1
        Records of the client in the larger data set; ignored except by ``outer``.
    noise_std, clip_norm : float, positive
        Deviation of the noise of each coordinate of the sum, and largest 2-norm of a record's contribution to it.

    Source: Hasircioglu, Gunduz 2022, Theorems 4.1, 5.1, 5.2, Corollary 5.3; Zhu, Dong, Wang 2022, Theorem 10.

    Examples
    --------
    >>> f"{participation_rounds('outer', 0.1, 0.1, 5, 1.0, 1.0, 100, epsilon=2.0):.2e}"
    '1.73e-05'
    >>> f"{participation_rounds('cs', 0.1, 0.1, 5, 1.0, 1.0, 1000, delta=1e-5):.2f}"
    '1.83'
    >>> f"{participation_rounds('outer', 0.1, 0.1, 5, 1.0, 1.0, 100, epsilon=2.0, side='lower'):.2e}"
    '2.37e-06'
    """
    args = participation_rate, record_rate, n_records, noise_std, clip_norm
    if side == "lower":
        return _rounds_lower(scheme, args, rounds, epsilon, delta)
    bound = dominated_rounds(scheme, *args, rounds, epsilon, delta)
    if scheme == "outer" and min(n_records, rounds) > 1 and max(participation_rate, record_rate) < 1:
        return min(bound, _by_angles(args, rounds, epsilon, delta, bound))
    return bound


@plainly
def dominated_rounds(
    scheme: str,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:
    """Upper bound of :func:`participation_rounds` by one pair for all angles; arguments are not validated."""
    small = 1e-40  # delta below which the tails of normal distributions matter
    p, q, args = participation_rate, record_rate, (participation_rate, record_rate, n_records, noise_std, clip_norm)
    if rounds == 1 and scheme == "outer":
        return random_participation(scheme, *args, epsilon, delta)
    if rounds == 1:
        return {"wcs": wcs, "ols": ols, "cs": cs}[scheme](p, q, noise_std, clip_norm, epsilon, delta)
    unsampled = _gaussian(rounds, noise_std, clip_norm, epsilon, delta)
    if delta is not None and delta >= _max_total_variation(scheme, p, q, clip_norm / noise_std, rounds) * (1 + 1e-12):
        return Certified(0.0, 0.0)
    # Below this delta masses of cells underflow.
    if (q == 1 and (p == 1 or scheme == "ols")) or (delta is not None and delta < 1e-305):
        return unsampled
    if clip_norm / noise_std > MAX_RATIO:
        return min(unsampled, _disclosed(q if scheme == "ols" else p * q, rounds, epsilon, delta))
    far = delta is not None and delta < small
    best = composed([(round_cells(scheme, *args, reach=MAX_SIGMAS_FAR if far else MAX_SIGMAS), rounds)], epsilon, delta)
    if delta is None and best < small:
        best = composed([(round_cells(scheme, *args, reach=MAX_SIGMAS_FAR), rounds)], epsilon, delta)
    coarse = min(p, q) < MIN_RATE or clip_norm / noise_std < MIN_RATIO
    return min(unsampled, Certified(best, best) if coarse and best < math.inf else best)


def _max_total_variation(scheme: str, p: float, q: float, ratio: float, rounds: int) -> float:
    """Union bound of the total variation over rounds: the distributions differ only if the record is drawn."""
    return rounds * (q if scheme == "ols" else p * q) * math.erf(ratio / math.sqrt(8))


def _by_angles(args: Round, rounds: int, epsilon: float | None, delta: float | None, bound: Certified) -> Certified:
    """The larger of both directions, removal by adaptive angles; ``bound`` where that is not smaller or too slow."""
    p, q, n_records, noise_std, clip_norm = args
    ratio = clip_norm / noise_std
    epsilon_at, delta_at = (epsilon, float(bound)) if epsilon is not None else (float(bound), delta or 0.0)
    grid = fineness(n_records, q, ratio, rounds)
    if grid is None or not (MIN_DELTA_ANGLES <= delta_at < 1 and 0 < epsilon_at < math.inf and min(p, q) >= MIN_RATE):
        return bound
    clamped = p, q, n_records, max(MIN_RATIO, ratio)
    cells, tail_mass = outer_cells(*clamped), 1e-4 * delta_at
    added = composed_in_order([(cells.swapped(), rounds)], tail_mass, epsilon, delta)
    if added >= bound:
        return bound
    options = choices(*clamped, grid[0])
    tilt = tilted([(cells, rounds)], epsilon_at, tail_mass)
    epsilons, deltas = turned_profile(options, rounds, epsilon_at, tilt, delta_at, grid[1])
    if delta is None:
        removed = float(deltas[len(deltas) // 2])
    else:
        removed = float(min(epsilons[(deltas <= delta) & (epsilons >= 0)], default=math.inf))
    return Certified(max(removed, added), bound.uncertainty)


def _gaussian(rounds: int, noise_std: float, clip_norm: float, epsilon: float | None, delta: float | None) -> Certified:
    """The Gaussian mechanism without sampling: exact at rates 1, an upper bound for all schemes."""
    sensitivity = min(clip_norm * math.sqrt(rounds) * (1 + 4 * UNIT), sys.float_info.max)
    return gaussian_mechanism(sensitivity, noise_std, epsilon, delta)


@plainly
def round_cells(
    scheme: str,
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    reach: float = MAX_SIGMAS,
) -> DominatingPair:
    """Cells of a pair that dominates one round; the ratio of clip_norm and noise_std is at most 1000.

    Rates below 1e-30 are rounded up to 1e-30, ratios below 1e-6 to 1e-6.  Beyond ``reach`` standard deviations the loss
    is infinite.
    """
    p, q = max(MIN_RATE, participation_rate), max(MIN_RATE, record_rate)
    ratio = max(MIN_RATIO, clip_norm / noise_std)
    if scheme == "outer":
        return outer_cells(p, q, n_records, ratio, reach)
    return subsampled_cells(p * q if scheme == "cs" else q, ratio, p if scheme == "wcs" else 1.0, reach)


def aligned_rounds_lower(
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> float:
    """Guarantee of ``rounds`` rounds of a client whose gradients are all equal, in the worse direction (lower).

    As further records may have zero gradients, the answer for fewer records is also valid, and may be larger; beyond
    1000 records it is that for 1000.  Exactly one of ``epsilon`` and ``delta`` is given; the answer is the other one, 0
    where there is no bound.
    """
    participation_rate, record_rate, n_records, noise_std = check(
        participation_rate=participation_rate, record_rate=record_rate, n_records=n_records, noise_std=noise_std
    ).values()
    epsilon, delta, clip_norm, rounds = one_budget(epsilon, delta, clip_norm=clip_norm, rounds=rounds).values()
    ratio = min(clip_norm / noise_std, MAX_RATIO)
    cells = aligned_cells(participation_rate, record_rate, min(n_records, MAX_ALIGNED), ratio)
    return composed_below([(cells, rounds)], epsilon, delta)


def _rounds_lower(scheme: str, args: Round, rounds: int, epsilon: float | None, delta: float | None) -> Certified:
    """The largest answer of a few non-adaptive adversaries."""
    p, q, n_records, noise_std, clip_norm = args
    if q == 1 and (p == 1 or scheme == "ols"):
        exact = gaussian_mechanism(clip_norm * math.sqrt(rounds) * (1 - 4 * UNIT), noise_std, epsilon, delta)
        return Certified(max(exact - exact.uncertainty, 0.0) if exact < math.inf else exact, exact.uncertainty)
    ratio = min(clip_norm / noise_std, MAX_RATIO)
    if delta is not None and delta >= _max_total_variation(scheme, p, q, ratio, rounds):
        return Certified(0.0, 0.0)

    def lower(cells: DominatingPair) -> float:
        return composed_below([(cells, rounds)], epsilon, delta)

    if scheme != "outer":
        pair = aligned_cells(1.0, p * q if scheme == "cs" else q, 1, ratio)
        p_join = p if scheme == "wcs" else 1.0
        scaled = replace(pair, base=p_join * pair.base, gain=p_join * pair.gain, error=p_join * pair.error)
        return Certified(lower(joined([scaled, alike((1 - p_join) * (1 - RTOL_MASS))])), 0.0)
    records = min(n_records, MAX_ALIGNED)
    best = max(lower(aligned_cells(p, q, count, ratio)) for count in {1, min(2, records), records})
    if rounds == 1:
        best = max(best, random_participation("aligned", *args, epsilon, delta))
    if records > 1 and p < 1 and ratio <= 30.0:  # largest clip_norm / noise_std with angles
        # Degrees.
        by_angle = {
            angle: lower(turned_cells(p, q, records, ratio, angle)) for angle in (15.0, 30.0, 45.0, 60.0, 75.0, 90.0)
        }
        for turn in (7.5, 3.75):  # degrees to both sides of the best
            peak = max(by_angle, key=lambda angle: by_angle[angle])
            by_angle |= {at: lower(turned_cells(p, q, records, ratio, at)) for at in (peak - turn, peak + turn)}
        best = max(best, *by_angle.values())
    return Certified(best, 0.0)


def _disclosed(rate: float, rounds: int, epsilon: float | None, delta: float | None) -> Certified:
    """Guarantee where a drawn record is disclosed: P[it is drawn in any round]."""
    disclosed = -math.expm1(rounds * math.log1p(-rate)) if rate < 1 else 1.0
    if epsilon is not None:
        return Certified(min(1.0, disclosed * (1 + 1e-12)), disclosed)
    return Certified(0.0 if delta is not None and delta >= disclosed * (1 + 1e-12) else math.inf, 0.0)


# --- losses of one round ----------------------------------------------------------------------------


def outer_cells(
    participation_rate: float, record_rate: float, n_records: int, ratio: float, reach: float = MAX_SIGMAS
) -> DominatingPair:
    """Cells of a pair that dominates one round; ``ratio`` is clip_norm / noise_std, in (0, 1000]."""
    p, q = participation_rate, record_rate
    others, masses = _grouped_counts(n_records, q, ratio, reach) if p < 1 else (np.zeros(1), np.ones(1))
    return _joined_halves([_half(p, q, others[:, None], ratio, side, reach) for side in (1, -1)], masses[:, None])


def subsampled_cells(rate: float, ratio: float, p_join: float = 1.0, reach: float = MAX_SIGMAS) -> DominatingPair:
    """Cells of a record drawn at ``rate`` in rounds with public participation of probability ``p_join``."""
    return _joined_halves([_half(1.0, rate, np.zeros((1, 1)), ratio, side, reach) for side in (1, -1)], p_join)


def aligned_cells(participation_rate: float, record_rate: float, n_records: int, ratio: float) -> DominatingPair:
    """Cells of the pair whose gradients are all equal, at their mean losses: for lower bounds.

    Also a pair of a client with more records, its other gradients being 0.
    """
    p, q, n = participation_rate, record_rate, n_records - 1
    first, last = _window(n, q)
    j = np.arange(first, last + 1)
    pmf = binomial.pmf(j, n, q)
    points = _points(-MAX_SIGMAS, last * ratio + ratio + MAX_SIGMAS)
    parts = [_normal(points, shift * ratio) for shift in range(first, last + 2)]
    masses, shifted = np.array(parts[:-1]), np.array(parts[1:])
    base = (1 - p) * _normal(points, 0.0) + p * (pmf @ masses)
    error = 4 * RTOL_MASS * p * q * (pmf @ (masses + shifted)) + MASS_OMITTED
    gain = p * q * (pmf @ (shifted - masses))
    losses = np.log1p(np.maximum(gain / (base + MASS_OMITTED), -1 + RTOL_MASS))
    return DominatingPair(losses, losses, base + MASS_OMITTED, gain, error)


def turned_cells(
    participation_rate: float, record_rate: float, n_records: int, ratio: float, angle: float
) -> DominatingPair:
    """Cells of the pair whose other gradients make an ``angle`` in degrees with the differing one: for lower bounds."""
    min_mass = 1e-300  # least mass of a box
    p, q, n = participation_rate, record_rate, n_records - 1
    first, last = _window(n, q)
    j = np.arange(first, last + 1)
    pmf, omitted = binomial.pmf(j, n, q), MASS_OMITTED if last - first < n else 0.0
    along, across = ratio * j * math.cos(math.radians(angle)), ratio * j * math.sin(math.radians(angle))
    edges = [_edges(min(0.0, x.min()), max(0.0, x.max()) + shifted) for x, shifted in ((along, ratio), (across, 0.0))]
    across_masses = pmf[:, None] * interval_masses(edges[1] - across[:, None])
    masses, shifted = (interval_masses(edges[0] - along[:, None] - shift).T @ across_masses for shift in (0.0, ratio))
    absent = np.outer(*(interval_masses(x[None, :])[0] for x in edges))
    base, gain = (1 - p) * absent + p * masses + omitted, p * q * (shifted - masses)
    error = 4 * RTOL_MASS * p * q * (masses + shifted) + omitted
    significant = base > min_mass
    losses = np.log1p(np.maximum(gain[significant] / base[significant], -1 + RTOL_MASS))
    rms = math.sqrt(float(base[significant] @ losses**2))
    # Bins of equal width in asinh(loss / rms).
    bins = np.rint(np.arcsinh(losses / max(rms, min_mass)) / 0.01).astype(np.int64)  # bin width
    base, gain, error = (np.bincount(bins - bins.min(), x[significant]).astype(np.float64) for x in (base, gain, error))
    occupied = base > 0
    losses = np.log1p(np.maximum(gain[occupied] / base[occupied], -1 + RTOL_MASS))
    return DominatingPair(losses, losses, base[occupied], gain[occupied], error[occupied])


def _edges(lower: float, upper: float) -> Reals:
    """Ends of the boxes of the plane along one axis."""
    radius = 9.0  # standard deviations around the boxes
    lower, upper = lower - radius, upper + radius
    # Side of a box in standard deviations; largest number of boxes along an axis.
    return np.linspace(lower, upper, min(math.ceil((upper - lower) / 0.05), 700) + 1)


def _grouped_counts(n_records: int, rate: float, ratio: float, reach: float) -> tuple[Reals, Reals]:
    """Numbers of other records drawn, rounded up to ``N_GROUPS`` values, with their masses."""
    n = n_records - 1
    first, last = _window(n, rate)
    last = min(last, math.ceil(reach / ratio) + 1) if n * ratio > reach else last
    counts = np.unique(np.linspace(min(first, last), last, N_GROUPS).astype(np.int64))
    counts = np.append(counts, n) if counts[-1] < n else counts
    cdf, sf = binomial.cdf(counts, n, rate), binomial.sf(counts, n, rate)
    masses = np.where(counts > n * rate, -np.diff(sf, prepend=1.0), np.diff(cdf, prepend=0.0))
    return counts.astype(float), masses * (1 + RTOL_MASS)


def _window(n: int, rate: float) -> tuple[int, int]:
    """Window of Bin(n, rate), without tails of mass ``MASS_OMITTED``."""
    first = least_whole(lambda j: bool(binomial.cdf(j, n, rate) > MASS_OMITTED), 0, n)
    return first, least_whole(lambda j: bool(binomial.sf(j, n, rate) <= MASS_OMITTED), 0, n)


def _half(p: float, q: float, others: Reals, ratio: float, side: int, reach: float) -> tuple[Reals, ...]:
    """Losses at the ends, masses of Q, P's excess, its error, P's mass, right of C/2 (aligned) or left (opposed)."""
    ends = max(ratio / 2, ratio - reach) if side > 0 else -reach, ratio + reach if side > 0 else min(ratio / 2, reach)
    points = np.unique(np.append(_points(*ends), [side * math.inf, ratio / 2]))
    losses = _losses(p, q, others, ratio, side, points)
    mu_1, mu_2 = _normal(points, 0.0), _normal(points, ratio)
    mu_0 = (1 - p) * _normal(points, -side * ratio * others)
    base = p * mu_1 + mu_0
    gain, error = p * q * (mu_2 - mu_1), RTOL_MASS * p * q * (mu_2 + mu_1)
    error[-1 if side > 0 else 0] += 1e-316  # underflow
    gain, error = np.broadcast_to(gain, base.shape), np.broadcast_to(error, base.shape)
    mass = p * q * mu_2 + p * (1 - q) * mu_1 + mu_0
    return losses[:, :-1], losses[:, 1:], base, gain, error, mass


def _losses(p: float, q: float, others: Reals, ratio: float, side: int, points: Reals) -> Reals:
    """Logarithm of :math:`P_j/Q_j`, increasing in the point."""
    exponent = ratio * points - ratio * ratio / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        log_odds_factor = np.where(others > 0, -side * others * ratio * points - (others * ratio) ** 2 / 2, 0.0)
        odds = (1 - p) / p * np.exp(log_odds_factor)
        log_share = math.log(q) - np.log1p(odds)
        change = np.exp(log_share) * np.expm1(np.minimum(exponent, MAX_SIGMAS))
        far = np.logaddexp(np.log(1 - q + odds) - np.log1p(odds), log_share + exponent)
        return np.asarray(np.where((exponent < MAX_SIGMAS) & (change > -0.5), np.log1p(change), far))


def _points(low: float, high: float) -> Reals:
    # Width of a cell in standard deviations of the noise; largest number of cells.
    return np.linspace(low, high, min(math.ceil((high - low) / 0.005), 2**15) + 1)


def _normal(points: Reals, mean: float | Reals) -> Reals:
    """Masses of N(mean, 1) between neighbouring points, each from the nearer tail."""
    sf, cdf = ndtr(mean - points), ndtr(points - mean)
    right = (points >= mean)[..., :-1]
    return np.asarray(np.where(right, sf[..., :-1] - sf[..., 1:], cdf[..., 1:] - cdf[..., :-1]))


def _joined_halves(halves: list[tuple[Reals, ...]], weights: float | Reals) -> DominatingPair:
    """Both halves with these weights, and the remaining mass with loss 0."""
    lower, upper = (np.concatenate([half[i].ravel() for half in halves]) for i in (0, 1))
    base, gain, error, mass = (np.concatenate([(weights * half[i]).ravel() for half in halves]) for i in range(2, 6))
    lossless = max(0.0, 1 - float((base + gain).sum()))
    return DominatingPair(
        *map(np.append, (lower, upper, base, gain, error, mass), (0.0, 0.0, lossless, 0.0, RTOL_MASS / 10, lossless))
    )
