r"""Rounds of random participation with adaptively chosen angles of gradients: a smaller bound by dynamic programming.

Reveal in every round the number j of other records that the client draws.  With :math:`H_t(\alpha)` the supremum of the
divergence of t rounds over adaptive adversaries,

.. math:: H_t(\alpha) \le \sum_j\mathrm B_j\,\max_c\,E_{P_{j,c}}\big[H_{t-1}(\alpha\,Q_{j,c}/P_{j,c})\big],
          \qquad H_0(\alpha) = (1-\alpha)_+,

c being the cosine between the sum of the other gradients and the differing one.  The divergence of the pair
:math:`(P_{j,c}, Q_{j,c})` is increasing in c for :math:`\alpha > 1` and decreasing below, so that for all c of an
interval the positive losses of its right end and the negative ones of its left end are those of a dominating pair.
With a few intervals for each small j, and all larger j grouped at all angles, this is a maximum over finitely many
sums.

H is represented at the points of a grid in :math:`\log\alpha`, tilted by :math:`\alpha^t` so that its values are of one
order of magnitude; losses are rounded to the same grid by a dominating pair.  Left of the grid H is bounded by 1, right
of it by its last value; the round-off of each Fourier transform is added.  Proof: book, chapter on random
participation, "Rounds with angles that change".
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from flamelib.accounting.composition.dominating_pair import RTOL_MASS, DominatingPair, above, joined
from flamelib.accounting.composition.privacy_loss_distribution import PrivacyLossDistribution, Tilt
from flamelib.accounting.sampling.adaptive_gradients import interval_masses
from flamelib.core import binomial
from flamelib.core.arrays import Reals
from flamelib.core.logspace import UNIT
from flamelib.core.search import least_whole

MIN_DELTA_ANGLES = 1e-10  # least delta for which adaptive angles are computed
DELTA_LOSSES = 1e-4  # share of delta for truncated losses
GRID_WIDTH = 4.0  # half width of the grid, in standard deviations of the tilted sum


def half_cells(p: float, q: float, j: int, ratio: float, cosine: float, side: int) -> DominatingPair:
    """Cells of the pair for this cosine with positive (``side`` 1) or negative (-1) losses only.

    Coordinates are along and across the differing gradient, the distribution without the record centred at 0.
    """
    radius = 8.5  # standard deviations covered
    sine = math.sqrt(max(0.0, 1 - cosine * cosine)) if j else 0.0
    mean_out = -j * ratio * cosine, -j * ratio * sine
    crossing = ratio / 2
    end = max(ratio, mean_out[0]) + radius if side > 0 else min(0.0, mean_out[0]) - radius
    # Cells of at most 0.03 standard deviations along, 0.1 across.
    x = np.linspace(crossing, end, math.ceil(abs(end - crossing) / 0.03) + 1)
    x = np.append(x, math.inf) if side > 0 else np.insert(x[::-1], 0, -math.inf)
    y = np.array([-math.inf, math.inf])
    if sine:
        y = np.linspace(mean_out[1] - radius, radius, math.ceil((2 * radius - mean_out[1]) / 0.1) + 1)
        y = np.concatenate([[-math.inf], y, [math.inf]])
    q_along, p_along, out_along = (interval_masses(x[None, :] - at)[0] for at in (0.0, ratio, mean_out[0]))
    in_across, out_across = (interval_masses(y[None, :] - at)[0] for at in (0.0, mean_out[1]))
    base = p * np.outer(q_along, in_across) + (1 - p) * np.outer(out_along, out_across)
    gain = p * q * np.outer(p_along - q_along, in_across)
    error = RTOL_MASS * p * q * np.outer(p_along + q_along, in_across)
    # Log likelihood ratio of an absent client to a present one without the record, at the ends of cells.
    with np.errstate(invalid="ignore"):
        slopes = (np.where(one == 0, 0.0, one * at) for one, at in zip(mean_out, (x, y), strict=True))
        log_along, log_across = slopes
    shift = (mean_out[0] ** 2 + mean_out[1] ** 2) / 2
    lower = _interval(log_along, np.minimum)[:, None] + _interval(log_across, np.minimum)[None, :] - shift
    upper = _interval(log_along, np.maximum)[:, None] + _interval(log_across, np.maximum)[None, :] - shift
    odds = (1 - p) / p
    with np.errstate(over="ignore"):
        min_share, max_share = q / (1 + odds * np.exp(upper)), q / (1 + odds * np.exp(lower))
    exponent = np.expm1(np.minimum(ratio * x - ratio * ratio / 2, 700.0))
    exponent = np.where(ratio * x - ratio * ratio / 2 > 700, math.inf, exponent)
    left_end, right_end = (exponent[:-1], exponent[1:]) if side > 0 else (exponent[1:], exponent[:-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        low_term, high_term = min_share * left_end[:, None], max_share * right_end[:, None]
        high_term = np.where(np.isnan(high_term), math.inf, high_term)
        losses = np.log1p(np.maximum(low_term, -1.0)), np.log1p(np.maximum(high_term, -1.0))
    ends = losses if side > 0 else losses[::-1]
    return DominatingPair(*(one.ravel() for one in (*ends, base, gain, error)))


def _interval(ends: Reals, which: np.ufunc) -> Reals:
    return np.asarray(which(ends[:-1], ends[1:]))


def interval_cells(p: float, q: float, j: int, ratio: float, cosines: tuple[float, float]) -> DominatingPair:
    """Cells of a dominating pair for all cosines of an interval."""
    cells = joined([half_cells(p, q, j, ratio, cosines[1], 1), half_cells(p, q, j, ratio, cosines[0], -1)])
    lossless = max(0.0, 1 - float((cells.base + cells.gain).sum()))
    lossless_cell = DominatingPair(*np.array([[0.0], [0.0], [lossless], [0.0], [RTOL_MASS / 10]]))
    return joined([cells, lossless_cell])


def fineness(n_records: int, rate: float, ratio: float, rounds: int) -> tuple[int, float] | None:
    """Number of intervals and relative step within a budget of time; ``None`` if none is."""
    max_distance = 8.0  # largest distance of a distribution, in standard deviations
    max_j = max_separate_count(n_records, rate)
    if max_j * ratio > max_distance or ratio > max_distance:
        return None
    for intervals in (8, 4, 2):  # intervals of angles
        # Work is rounds * transforms * points; least step.
        step = max(0.01, rounds**1.5 * 10 * (max_j * intervals + 2) / 1e8)
        if step <= 0.15:  # largest step
            return intervals, step
    return None


def max_separate_count(n_records: int, rate: float) -> int:
    """Greatest number j of other records with its own intervals; larger ones count as all records, at all angles."""
    n = n_records - 1
    # Mass of the grouped numbers.
    return least_whole(lambda j: bool(binomial.sf(j, n, rate) <= 2e-3), 0, n)


def choices(
    p: float, q: float, n_records: int, ratio: float, intervals: int
) -> list[tuple[float, list[DominatingPair]]]:
    """For each number of other records its mass and the cells of each interval of cosines."""
    n = n_records - 1
    max_j = max_separate_count(n_records, q)
    cosines = np.cos(np.linspace(math.pi, 0, intervals + 1)).tolist()
    cosines[0], cosines[-1] = -1.0, 1.0
    parts = []
    for j in range(max_j + 1):
        pairs = list(itertools.pairwise(cosines)) if j else [(-1.0, 1.0)]
        mass = float(binomial.pmf(np.array([j]), n, q)[0]) * (1 + RTOL_MASS)
        parts.append((mass, [interval_cells(p, q, j, ratio, pair) for pair in pairs]))
    if max_j < n:
        parts.append((float(binomial.sf(max_j, n, q)) * (1 + RTOL_MASS), [interval_cells(p, q, n, ratio, (-1.0, 1.0))]))
    return parts


def turned_profile(
    options: Sequence[tuple[float, Sequence[DominatingPair]]],
    rounds: int,
    epsilon: float,
    tilt: Tilt,
    delta: float,
    relative_step: float,
) -> tuple[Reals, Reals]:
    """Grid of epsilons about ``epsilon``, and upper bounds of the delta of ``rounds`` rounds at each.

    The direction is that of the cells.  The accuracy, not the validity, depends on the ``tilt`` of the sum of losses to
    ``epsilon``, on the approximate ``delta`` there, and on the step of ``relative_step`` standard deviations of a
    tilted loss.
    """
    step = relative_step * math.sqrt(tilt.variance / rounds)
    half = math.ceil(GRID_WIDTH * math.sqrt(tilt.variance) / step)
    size = 2 * half + 1
    cropped_mass = DELTA_LOSSES * delta / rounds
    losses = [[_cropped(above(cells, step), cropped_mass) for cells in pairs] for _, pairs in options]
    reach = size + math.ceil(epsilon / rounds / step) + 1
    lower = max(min(int(loss.index[0]) for pairs in losses for loss in pairs), -reach)
    upper = min(max(int(loss.index[-1]) for pairs in losses for loss in pairs), reach)
    points = next_fast_len(size + upper - lower + 1, real=True)
    centres = [round(epsilon / step * done / rounds) for done in range(rounds + 1)]  # of the grid after each round
    shifts = [after - before for before, after in itertools.pairwise(centres)]  # of two values
    least = min(shifts)
    waves, norms, left, right = [], [], [], []
    span = np.arange(-reach, reach + 1)
    for loss in itertools.chain.from_iterable(losses):
        inside = (loss.index >= lower) & (loss.index <= upper)
        masses = loss.masses[inside] * np.exp(tilt.t * loss.losses[inside])
        waves.append(rfft(np.bincount((loss.index[inside] - least) % points, masses), points))
        norms.append(float(masses.sum()))
        sums = np.concatenate([[0.0], np.cumsum(loss.masses)])
        tails = np.concatenate([np.cumsum(loss.masses[::-1])[::-1], [0.0]]) + loss.infinity
        left.append(tails[np.searchsorted(loss.index, span, side="right")] * (1 + RTOL_MASS))
        right.append(sums[np.searchsorted(loss.index, span)] * (1 + RTOL_MASS))
    ends = np.cumsum([0, *map(len, losses)]).tolist()
    groups = [(mass, slice(*pair)) for (mass, _), pair in zip(options, itertools.pairwise(ends), strict=True)]
    transforms, before, after = np.array(waves), np.array(left), np.array(right)
    rounding = 15 * UNIT * math.log2(points) * max(norms)
    offset = epsilon - step * round(epsilon / step)
    # Values are weighted by alpha^t relative to the centre of the grid, so that the weights of a shift are constant.
    around = step * np.arange(-half, half + 1)
    weights = np.exp(tilt.t * around)
    outer = {}
    for shift in set(shifts):
        # From the i-th point losses above i + shift lead to the left of the grid, those size below to its right.
        here = slice(shift + reach, shift + reach + size)
        right_value = after[:, here.start + 1 - size : here.stop + 1 - size] * weights
        edge = int(np.argmax(right_value.any(axis=0))) if right_value.any() else size
        outer[shift] = math.exp(-tilt.t * step * shift), before[:, here] * weights, right_value[:, edge:], edge
    values = -np.expm1(np.minimum(offset + around, 0.0)) * weights * (1 + RTOL_MASS)
    for shift, centre in zip(shifts, centres[1:], strict=True):
        scale, left_value, right_value, edge = outer[shift]
        last_value = values[-1] / weights[-1]
        values *= scale
        integrals = irfft(transforms * rfft(values, points), points)[:, shift - least : shift - least + size]
        integrals += left_value
        integrals[:, edge:] += last_value * right_value
        error = rounding * float(np.linalg.norm(values))
        rtol = UNIT * (64 + 8 * tilt.t * (abs(offset + step * centre) + step * half))
        value = sum(mass * (integrals[rows].max(axis=0) + error) for mass, rows in groups)
        values = np.minimum(value * (1 + rtol), weights)
    epsilons = np.asarray(offset + step * centres[-1] + around, dtype=np.float64)
    return epsilons, np.asarray(np.minimum(values / weights * (1 + RTOL_MASS), 1.0), dtype=np.float64)


def _cropped(loss: PrivacyLossDistribution, tail_mass: float) -> PrivacyLossDistribution:
    """Losses of tail mass at most ``tail_mass`` truncated: the largest to infinity, the smallest raised."""
    cdf, sf = np.cumsum(loss.masses), np.cumsum(loss.masses[::-1])[::-1]
    first = min(int(np.searchsorted(cdf, tail_mass)), len(cdf) - 1)
    last = max(int(np.count_nonzero(sf > tail_mass)), first + 1)
    masses = loss.masses[first:last].copy()
    masses[0] += cdf[first - 1] if first else 0.0
    sf = np.append(sf, 0.0)
    return PrivacyLossDistribution(loss.step, loss.index[first:last], masses, loss.infinity + float(sf[last]), 0.0)
