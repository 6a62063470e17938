r"""Many rounds of random participation: what the whole training costs, and what it costs at least.

*From above*: a pair that dominates every round, whatever the model and whatever the gradients at it.  Reveal how many
other records j of the client are drawn.  The larger data set gives :math:`P_j = (1-p)\mu_0+p(1-q)\mu_1+pq\,\mu_2`, the
smaller one :math:`Q_j = (1-p)\mu_0+p\mu_1`: client out, in without the record, in with it.  The profile is largest for
*aligned* gradients above :math:`\alpha = 1` and for *opposed* ones below; so the losses of the pair are the positive
ones of the aligned pair, the negative ones of the opposed pair, and 0 with the rest (both cross 0 at :math:`C/2` only,
and the total variation is the same), averaged over j.  A larger j, p, q or C raises it.  Its T-fold product bounds T
rounds, the exchanged product bounds them for an added record, and the answer is the larger of both.  For few rounds of
a client with few records :mod:`~flamelib.accounting.sampling.adaptive_angles` is smaller: one pair for each of a few
intervals of angles.  No round is announced to be one of the client's own: every round counts in which it might have
joined.  The server shows its sums to nobody, and the noise is fresh in each round.  Proof: book, chapter on random
participation, "A dominating pair".

*Baselines*.  A record drawn at a rate r, all else known: :math:`(1-r)N(0)+rN(C)` against :math:`N(0)`, which is
p = 1 (OLS) or L = 1 with r = pq (CS).  Participants known (WCS): that of OLS with chance p, else no loss.

*From below*: what one adversary does in every round, a pair of data sets like any other.  All gradients have the
largest norm, those of the other records make the same angle with the differing one's, and the sum is seen in boxes of
the plane that they span; boxes of about the same loss count as one.  For the baselines, which one pair attains, it is
that pair.

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
MAX_SIGMAS_FAR = 38.2  # the same for a delta that is small beside that
N_GROUPS = 128  # groups of numbers of other records; in a group the largest stands for all
MASS_OMITTED = 1e-25  # mass that is left out of a binomial distribution, or added to a cell, at most
MIN_RATE = 1e-30  # least rate: a smaller one counts as this, which protects less
MAX_ALIGNED = 1000  # records of the client at most whose gradients are all equal
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

    ``uncertainty`` estimates what the grid of losses adds; 4 million rounds and more are left to Chernoff's bound.
    From below the adversary keeps to one choice in every round: all gradients of the largest norm, those of the other
    records at one angle to the differing one's (the worst found), or only some of this client's records have gradients
    that are not 0.  Nothing is known of an adversary who turns them from round to round.

    Parameters
    ----------
    scheme : str
        ``outer``: nobody knows who joins, Theorem 4.1; ``wcs``: who joins is known; ``ols``: all join; ``cs``: every
        record is drawn on its own, at the product of the rates.
    side : str
        ``upper``, or ``lower``: what the explicit adversary is certain to cause, 0 where nothing can be said.
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
    one = participation_rate, record_rate, n_records, noise_std, clip_norm
    if side == "lower":
        return _rounds_lower(scheme, one, rounds, epsilon, delta)
    found = dominated_rounds(scheme, *one, rounds, epsilon, delta)
    if scheme == "outer" and min(n_records, rounds) > 1 and max(participation_rate, record_rate) < 1:
        return min(found, _turned(one, rounds, epsilon, delta, found))
    return found


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
    """As :func:`participation_rounds` from above by one pair for all angles, in less time; arguments are trusted."""
    small = 1e-40  # delta for which the tails of normal distributions count
    p, q, one = participation_rate, record_rate, (participation_rate, record_rate, n_records, noise_std, clip_norm)
    if rounds == 1 and scheme == "outer":
        return random_participation(scheme, *one, epsilon, delta)
    if rounds == 1:
        return {"wcs": wcs, "ols": ols, "cs": cs}[scheme](p, q, noise_std, clip_norm, epsilon, delta)
    always = _always(rounds, noise_std, clip_norm, epsilon, delta)
    if delta is not None and delta >= _told(scheme, p, q, clip_norm / noise_std, rounds) * (1 + 1e-12):
        return Certified(0.0, 0.0)
    # A smaller delta is lost in cells that doubles no longer hold.
    if (q == 1 and (p == 1 or scheme == "ols")) or (delta is not None and delta < 1e-305):
        return always
    if clip_norm / noise_std > MAX_RATIO:
        return min(always, _disclosed(q if scheme == "ols" else p * q, rounds, epsilon, delta))
    far = delta is not None and delta < small
    found = composed([(round_cells(scheme, *one, reach=MAX_SIGMAS_FAR if far else MAX_SIGMAS), rounds)], epsilon, delta)
    if delta is None and found < small:
        found = composed([(round_cells(scheme, *one, reach=MAX_SIGMAS_FAR), rounds)], epsilon, delta)
    coarse = min(p, q) < MIN_RATE or clip_norm / noise_std < MIN_RATIO
    return min(always, Certified(found, found) if coarse and found < math.inf else found)


def _told(scheme: str, p: float, q: float, ratio: float, rounds: int) -> float:
    """The chance to tell at all, in any round, at most: only a record that is drawn moves the sum."""
    return rounds * (q if scheme == "ols" else p * q) * math.erf(ratio / math.sqrt(8))


def _turned(one: Round, rounds: int, epsilon: float | None, delta: float | None, found: Certified) -> Certified:
    """The larger of both directions, a record removed by the program over angles; what was found where it is no use."""
    p, q, n_records, noise_std, clip_norm = one
    ratio = clip_norm / noise_std
    at, near = (epsilon, float(found)) if epsilon is not None else (float(found), delta or 0.0)
    plan = fineness(n_records, q, ratio, rounds)
    if plan is None or not (MIN_DELTA_ANGLES <= near < 1 and 0 < at < math.inf and min(p, q) >= MIN_RATE):
        return found
    public = p, q, n_records, max(MIN_RATIO, ratio)
    cells, spared = outer_cells(*public), 1e-4 * near
    added = composed_in_order([(cells.swapped(), rounds)], spared, epsilon, delta)
    if added >= found:
        return found
    options = choices(*public, plan[0])
    tilt = tilted([(cells, rounds)], at, spared)
    places, values = turned_profile(options, rounds, at, tilt, near, plan[1])
    if delta is None:
        removed = float(values[len(values) // 2])
    else:
        removed = float(min(places[(values <= delta) & (places >= 0)], default=math.inf))
    return Certified(max(removed, added), found.uncertainty)


def _always(rounds: int, noise_std: float, clip_norm: float, epsilon: float | None, delta: float | None) -> Certified:
    """The record drawn in every round: a Gaussian mechanism, exact at the rates 1 and above every other account."""
    longer = min(clip_norm * math.sqrt(rounds) * (1 + 4 * UNIT), sys.float_info.max)
    return gaussian_mechanism(longer, noise_std, epsilon, delta)


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

    Rates below 1e-30 count as 1e-30, ratios below 1e-6 as 1e-6, which protects less.  Beyond ``reach`` standard
    deviations a record counts as seen.
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
    """What ``rounds`` rounds cost at least, by a client whose gradients are all equal, in its worse direction (lower).

    A client may have more records whose gradients are 0: the answer for fewer records holds as well, and may be the
    larger one; beyond 1000 records it is that for 1000.  Exactly one of ``epsilon`` and ``delta`` is given; the answer
    is the other one, 0 where nothing can be said.
    """
    participation_rate, record_rate, n_records, noise_std = check(
        participation_rate=participation_rate, record_rate=record_rate, n_records=n_records, noise_std=noise_std
    ).values()
    epsilon, delta, clip_norm, rounds = one_budget(epsilon, delta, clip_norm=clip_norm, rounds=rounds).values()
    ratio = min(clip_norm / noise_std, MAX_RATIO)
    cells = aligned_cells(participation_rate, record_rate, min(n_records, MAX_ALIGNED), ratio)
    return composed_below([(cells, rounds)], epsilon, delta)


def _rounds_lower(scheme: str, one: Round, rounds: int, epsilon: float | None, delta: float | None) -> Certified:
    """The largest answer of a few adversaries, each the same in every round."""
    p, q, n_records, noise_std, clip_norm = one
    if q == 1 and (p == 1 or scheme == "ols"):
        known = gaussian_mechanism(clip_norm * math.sqrt(rounds) * (1 - 4 * UNIT), noise_std, epsilon, delta)
        return Certified(max(known - known.uncertainty, 0.0) if known < math.inf else known, known.uncertainty)
    ratio = min(clip_norm / noise_std, MAX_RATIO)
    if delta is not None and delta >= _told(scheme, p, q, ratio, rounds):
        return Certified(0.0, 0.0)

    def least(cells: DominatingPair) -> float:
        return composed_below([(cells, rounds)], epsilon, delta)

    if scheme != "outer":
        seen = aligned_cells(1.0, p * q if scheme == "cs" else q, 1, ratio)
        joins = p if scheme == "wcs" else 1.0
        scaled = replace(seen, base=joins * seen.base, gain=joins * seen.gain, error=joins * seen.error)
        return Certified(least(joined([scaled, alike((1 - joins) * (1 - RTOL_MASS))])), 0.0)
    most = min(n_records, MAX_ALIGNED)
    found = max(least(aligned_cells(p, q, some, ratio)) for some in {1, min(2, most), most})
    if rounds == 1:
        found = max(found, random_participation("aligned", *one, epsilon, delta))
    if most > 1 and p < 1 and ratio <= 30.0:  # ratio of clip_norm to noise_std beyond which gradients are not turned
        # Degrees.
        turned = {
            angle: least(turned_cells(p, q, most, ratio, angle)) for angle in (15.0, 30.0, 45.0, 60.0, 75.0, 90.0)
        }
        for turn in (7.5, 3.75):  # degrees to both sides of the best
            best = max(turned, key=lambda angle: turned[angle])
            turned |= {at: least(turned_cells(p, q, most, ratio, at)) for at in (best - turn, best + turn)}
        found = max(found, *turned.values())
    return Certified(found, 0.0)


def _disclosed(rate: float, rounds: int, epsilon: float | None, delta: float | None) -> Certified:
    """A record that is drawn is as good as seen: so it is in one round at least."""
    seen = -math.expm1(rounds * math.log1p(-rate)) if rate < 1 else 1.0
    if epsilon is not None:
        return Certified(min(1.0, seen * (1 + 1e-12)), seen)
    return Certified(0.0 if delta is not None and delta >= seen * (1 + 1e-12) else math.inf, 0.0)


# --- losses of one round ----------------------------------------------------------------------------


def outer_cells(
    participation_rate: float, record_rate: float, n_records: int, ratio: float, reach: float = MAX_SIGMAS
) -> DominatingPair:
    """Cells of a pair that dominates one round; ``ratio`` is clip_norm / noise_std, in (0, 1000]."""
    p, q = participation_rate, record_rate
    others, chances = _others(n_records, q, ratio, reach) if p < 1 else (np.zeros(1), np.ones(1))
    return _together([_half(p, q, others[:, None], ratio, side, reach) for side in (1, -1)], chances[:, None])


def subsampled_cells(rate: float, ratio: float, joins: float = 1.0, reach: float = MAX_SIGMAS) -> DominatingPair:
    """Cells of a record drawn at a rate in the rounds that its client joins, with this chance and in the open."""
    return _together([_half(1.0, rate, np.zeros((1, 1)), ratio, side, reach) for side in (1, -1)], joins)


def aligned_cells(participation_rate: float, record_rate: float, n_records: int, ratio: float) -> DominatingPair:
    """Cells of the pair whose gradients are all equal, with their mean losses: for bounds from below.

    A client with more records has this pair as well, its other gradients being 0.
    """
    p, q, n = participation_rate, record_rate, n_records - 1
    first, last = _window(n, q)
    drawn = np.arange(first, last + 1)
    chances = binomial.pmf(drawn, n, q)
    points = _points(-MAX_SIGMAS, last * ratio + ratio + MAX_SIGMAS)
    parts = [_normal(points, shift * ratio) for shift in range(first, last + 2)]
    now, more = np.array(parts[:-1]), np.array(parts[1:])
    base = (1 - p) * _normal(points, 0.0) + p * (chances @ now)
    rounding = 4 * RTOL_MASS * p * q * (chances @ (now + more)) + MASS_OMITTED
    gain = p * q * (chances @ (more - now))
    losses = np.log1p(np.maximum(gain / (base + MASS_OMITTED), -1 + RTOL_MASS))
    return DominatingPair(losses, losses, base + MASS_OMITTED, gain, rounding)


def turned_cells(
    participation_rate: float, record_rate: float, n_records: int, ratio: float, angle: float
) -> DominatingPair:
    """Cells of the pair whose other gradients make an ``angle`` in degrees with the differing one: from below only."""
    min_mass = 1e-300  # least mass of a box
    p, q, n = participation_rate, record_rate, n_records - 1
    first, last = _window(n, q)
    drawn = np.arange(first, last + 1)
    chances, left_out = binomial.pmf(drawn, n, q), MASS_OMITTED if last - first < n else 0.0
    along, across = ratio * drawn * math.cos(math.radians(angle)), ratio * drawn * math.sin(math.radians(angle))
    ends = [_edges(min(0.0, one.min()), max(0.0, one.max()) + more) for one, more in ((along, ratio), (across, 0.0))]
    beside = chances[:, None] * interval_masses(ends[1] - across[:, None])
    now, more = (interval_masses(ends[0] - along[:, None] - moved).T @ beside for moved in (0.0, ratio))
    away = np.outer(*(interval_masses(one[None, :])[0] for one in ends))
    base, gain = (1 - p) * away + p * now + left_out, p * q * (more - now)
    error = 4 * RTOL_MASS * p * q * (now + more) + left_out
    kept = base > min_mass
    losses = np.log1p(np.maximum(gain[kept] / base[kept], -1 + RTOL_MASS))
    spread = math.sqrt(float(base[kept] @ losses**2))
    # As fine as the losses are on the whole, and relatively as fine far out.
    place = np.rint(np.arcsinh(losses / max(spread, min_mass)) / 0.01).astype(np.int64)  # step of the grid of losses
    base, gain, error = (np.bincount(place - place.min(), one[kept]).astype(np.float64) for one in (base, gain, error))
    filled = base > 0
    losses = np.log1p(np.maximum(gain[filled] / base[filled], -1 + RTOL_MASS))
    return DominatingPair(losses, losses, base[filled], gain[filled], error[filled])


def _edges(low: float, high: float) -> Reals:
    """Ends of the boxes of the plane along one axis."""
    reach = 9.0  # standard deviations around the boxes
    low, high = low - reach, high + reach
    # Side of a box, in standard deviations, and boxes along an axis at most.
    return np.linspace(low, high, min(math.ceil((high - low) / 0.05), 700) + 1)


def _others(n_records: int, rate: float, ratio: float, reach: float) -> tuple[Reals, Reals]:
    """Numbers of other records drawn, rounded up to a few, with their chances; far from the rest all are alike."""
    n = n_records - 1
    first, last = _window(n, rate)
    last = min(last, math.ceil(reach / ratio) + 1) if n * ratio > reach else last
    ends = np.unique(np.linspace(min(first, last), last, N_GROUPS).astype(np.int64))
    ends = np.append(ends, n) if ends[-1] < n else ends
    below, beyond = binomial.cdf(ends, n, rate), binomial.sf(ends, n, rate)
    chances = np.where(ends > n * rate, -np.diff(beyond, prepend=1.0), np.diff(below, prepend=0.0))
    return ends.astype(float), chances * (1 + RTOL_MASS)


def _window(n: int, rate: float) -> tuple[int, int]:
    """Where all but a negligible part of a binomial law lies."""
    first = least_whole(lambda drawn: bool(binomial.cdf(drawn, n, rate) > MASS_OMITTED), 0, n)
    return first, least_whole(lambda drawn: bool(binomial.sf(drawn, n, rate) <= MASS_OMITTED), 0, n)


def _half(p: float, q: float, others: Reals, ratio: float, side: int, reach: float) -> tuple[Reals, ...]:
    """Losses at the ends, masses of Q, P's excess, its error, P's mass, right of C/2 (aligned) or left (opposed)."""
    ends = max(ratio / 2, ratio - reach) if side > 0 else -reach, ratio + reach if side > 0 else min(ratio / 2, reach)
    points = np.unique(np.append(_points(*ends), [side * math.inf, ratio / 2]))
    losses = _losses(p, q, others, ratio, side, points)
    here, there = _normal(points, 0.0), _normal(points, ratio)
    away = (1 - p) * _normal(points, -side * ratio * others)
    base = p * here + away
    gain, error = p * q * (there - here), RTOL_MASS * p * q * (there + here)
    error[-1 if side > 0 else 0] += 1e-316  # mass that doubles lose at their lower end, at most
    gain, error = np.broadcast_to(gain, base.shape), np.broadcast_to(error, base.shape)
    mass = p * q * there + p * (1 - q) * here + away
    return losses[:, :-1], losses[:, 1:], base, gain, error, mass


def _losses(p: float, q: float, others: Reals, ratio: float, side: int, points: Reals) -> Reals:
    """Logarithm of :math:`P_j/Q_j`, which rises from point to point."""
    exponent = ratio * points - ratio * ratio / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        away = np.where(others > 0, -side * others * ratio * points - (others * ratio) ** 2 / 2, 0.0)
        odds = (1 - p) / p * np.exp(away)
        log_share = math.log(q) - np.log1p(odds)
        change = np.exp(log_share) * np.expm1(np.minimum(exponent, MAX_SIGMAS))
        far = np.logaddexp(np.log(1 - q + odds) - np.log1p(odds), log_share + exponent)
        return np.asarray(np.where((exponent < MAX_SIGMAS) & (change > -0.5), np.log1p(change), far))


def _points(low: float, high: float) -> Reals:
    # Width of a cell, in standard deviations of the noise, and cells of one half at most, which are wider then.
    return np.linspace(low, high, min(math.ceil((high - low) / 0.005), 2**15) + 1)


def _normal(points: Reals, mean: float | Reals) -> Reals:
    """Masses of a normal law between neighbours, each from the tail in which it lies."""
    beyond, below = ndtr(mean - points), ndtr(points - mean)
    right = (points >= mean)[..., :-1]
    return np.asarray(np.where(right, beyond[..., :-1] - beyond[..., 1:], below[..., 1:] - below[..., :-1]))


def _together(halves: list[tuple[Reals, ...]], chances: float | Reals) -> DominatingPair:
    """Both halves with these chances, and what is left without a loss."""
    low, high = (np.concatenate([half[i].ravel() for half in halves]) for i in (0, 1))
    base, gain, error, mass = (np.concatenate([(chances * half[i]).ravel() for half in halves]) for i in range(2, 6))
    rest = max(0.0, 1 - float((base + gain).sum()))
    return DominatingPair(
        *map(np.append, (low, high, base, gain, error, mass), (0.0, 0.0, rest, 0.0, RTOL_MASS / 10, rest))
    )
