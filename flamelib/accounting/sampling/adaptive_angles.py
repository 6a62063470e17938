r"""Rounds of random participation against gradients that turn: a smaller bound, by a program over angles.

Reveal in every round the other records j that the client draws.  With :math:`H_t(\alpha)` the largest divergence of t
rounds, the adversary free to choose anew in each,

.. math:: H_t(\alpha) \le \sum_j\mathrm B_j\,\max_c\,E_{P_{j,c}}\big[H_{t-1}(\alpha\,Q_{j,c}/P_{j,c})\big],
          \qquad H_0(\alpha) = (1-\alpha)_+,

c being the cosine between the sum of the other gradients and the differing one.  The divergence of the pair
:math:`(P_{j,c}, Q_{j,c})` rises in c above :math:`\alpha = 1` and falls below, so that for all c of an interval the
positive losses of its right end and the negative ones of its left end are those of a pair that dominates.  With a few
intervals for each j up to some number, and all larger j together at all angles, a maximum over finitely many sums is
left.

The program holds H at the points of a grid in :math:`\log\alpha`, tilted by :math:`\alpha^t` so that all its values are
of one size; losses lie on the same grid, rounded by a pair that dominates.  Left of the grid H counts as 1, right of it
as at its last point; the round-off of each Fourier transform is added.  Proof: book, chapter on random participation,
"Rounds of turned gradients".
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
DELTA_LOSSES = 1e-4  # share of delta for large losses
GRID_WIDTH = 4.0  # half width of the grid, in standard deviations of the tilted sum


def half_cells(p: float, q: float, j: int, ratio: float, cosine: float, side: int) -> DominatingPair:
    """Cells of the pair for this cosine where the loss is positive (``side`` 1) or negative (-1), others left out.

    Coordinates are those of the differing gradient and across it, in which the law without the record is centred at 0.
    """
    reach = 8.5  # standard deviations covered
    sine = math.sqrt(max(0.0, 1 - cosine * cosine)) if j else 0.0
    out = -j * ratio * cosine, -j * ratio * sine
    middle = ratio / 2
    far = max(ratio, out[0]) + reach if side > 0 else min(0.0, out[0]) - reach
    # Side of a cell along, in standard deviations.
    x = np.linspace(middle, far, math.ceil(abs(far - middle) / 0.03) + 1)
    x = np.append(x, math.inf) if side > 0 else np.insert(x[::-1], 0, -math.inf)
    y = np.array([-math.inf, math.inf])
    if sine:
        # Side of a cell across, in standard deviations.
        y = np.linspace(out[1] - reach, reach, math.ceil((2 * reach - out[1]) / 0.1) + 1)
        y = np.concatenate([[-math.inf], y, [math.inf]])
    here, there, away = (interval_masses(x[None, :] - at)[0] for at in (0.0, ratio, out[0]))
    beside, beyond = (interval_masses(y[None, :] - at)[0] for at in (0.0, out[1]))
    base = p * np.outer(here, beside) + (1 - p) * np.outer(away, beyond)
    gain = p * q * np.outer(there - here, beside)
    error = RTOL_MASS * p * q * np.outer(there + here, beside)
    # The logarithm of the law of a client that is out against that of one in without the record, at its ends.
    with np.errstate(invalid="ignore"):
        slopes = (np.where(one == 0, 0.0, one * at) for one, at in zip(out, (x, y), strict=True))
        first, second = slopes
    shift = (out[0] ** 2 + out[1] ** 2) / 2
    low = _interval(first, np.minimum)[:, None] + _interval(second, np.minimum)[None, :] - shift
    high = _interval(first, np.maximum)[:, None] + _interval(second, np.maximum)[None, :] - shift
    odds = (1 - p) / p
    with np.errstate(over="ignore"):
        least, most = q / (1 + odds * np.exp(high)), q / (1 + odds * np.exp(low))
    exponent = np.expm1(np.minimum(ratio * x - ratio * ratio / 2, 700.0))
    exponent = np.where(ratio * x - ratio * ratio / 2 > 700, math.inf, exponent)
    near, far_end = (exponent[:-1], exponent[1:]) if side > 0 else (exponent[1:], exponent[:-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        small, large = least * near[:, None], most * far_end[:, None]
        large = np.where(np.isnan(large), math.inf, large)
        losses = np.log1p(np.maximum(small, -1.0)), np.log1p(np.maximum(large, -1.0))
    ends = losses if side > 0 else losses[::-1]
    return DominatingPair(*(one.ravel() for one in (*ends, base, gain, error)))


def _interval(ends: Reals, which: np.ufunc) -> Reals:
    return np.asarray(which(ends[:-1], ends[1:]))


def interval_cells(p: float, q: float, j: int, ratio: float, cosines: tuple[float, float]) -> DominatingPair:
    """Cells of a pair that dominates, for all cosines of an interval."""
    cells = joined([half_cells(p, q, j, ratio, cosines[1], 1), half_cells(p, q, j, ratio, cosines[0], -1)])
    rest = max(0.0, 1 - float((cells.base + cells.gain).sum()))
    alone = DominatingPair(*np.array([[0.0], [0.0], [rest], [0.0], [RTOL_MASS / 10]]))
    return joined([cells, alone])


def fineness(n_records: int, rate: float, ratio: float, rounds: int) -> tuple[int, float] | None:
    """How many intervals and how fine a step there is time for; ``None`` where the program would take too long."""
    widest = 8.0  # largest distance of a distribution, in standard deviations
    last = most_told_apart(n_records, rate)
    if last * ratio > widest or ratio > widest:
        return None
    for intervals in (8, 4, 2):  # intervals of angles, the first for which there is time
        # Work at most: rounds times transforms times points; and the finest step.
        fine = max(0.01, rounds**1.5 * 10 * (last * intervals + 2) / 1e8)
        if fine <= 0.15:  # coarsest step that is worth its time
            return intervals, fine
    return None


def most_told_apart(n_records: int, rate: float) -> int:
    """Greatest number of other records with angles of its own; larger ones count as all, at the worst angles."""
    n = n_records - 1
    # Probability of the numbers of other records that are taken together.
    return least_whole(lambda j: bool(binomial.sf(j, n, rate) <= 2e-3), 0, n)


def choices(
    p: float, q: float, n_records: int, ratio: float, intervals: int
) -> list[tuple[float, list[DominatingPair]]]:
    """For each number of other records, with its chance, the cells of each interval of cosines."""
    n = n_records - 1
    last = most_told_apart(n_records, q)
    cuts = np.cos(np.linspace(math.pi, 0, intervals + 1)).tolist()
    cuts[0], cuts[-1] = -1.0, 1.0
    found = []
    for j in range(last + 1):
        pairs = list(itertools.pairwise(cuts)) if j else [(-1.0, 1.0)]
        chance = float(binomial.pmf(np.array([j]), n, q)[0]) * (1 + RTOL_MASS)
        found.append((chance, [interval_cells(p, q, j, ratio, pair) for pair in pairs]))
    if last < n:
        found.append((float(binomial.sf(last, n, q)) * (1 + RTOL_MASS), [interval_cells(p, q, n, ratio, (-1.0, 1.0))]))
    return found


def turned_profile(
    options: Sequence[tuple[float, Sequence[DominatingPair]]],
    rounds: int,
    epsilon: float,
    tilt: Tilt,
    delta: float,
    fine: float,
) -> tuple[Reals, Reals]:
    """Some epsilons, the given one in their middle, and upper bounds of the delta of some rounds at each.

    They are in the order of the cells.  How close they are, but not that they are bounds, rests on the ``tilt`` of the
    sum of losses to ``epsilon``, on about the ``delta`` there, and on the step, ``fine`` standard deviations of a
    tilted loss.
    """
    step = fine * math.sqrt(tilt.variance / rounds)
    half = math.ceil(GRID_WIDTH * math.sqrt(tilt.variance) / step)
    size = 2 * half + 1
    spared = DELTA_LOSSES * delta / rounds
    laws = [[_cropped(above(cells, step), spared) for cells in some] for _, some in options]
    reach = size + math.ceil(epsilon / rounds / step) + 1
    low = max(min(int(law.index[0]) for some in laws for law in some), -reach)
    high = min(max(int(law.index[-1]) for some in laws for law in some), reach)
    points = next_fast_len(size + high - low + 1, real=True)
    centres = [round(epsilon / step * done / rounds) for done in range(rounds + 1)]  # of the grid after each round
    moves = [after - before for before, after in itertools.pairwise(centres)]  # two neighbouring numbers
    least = min(moves)
    waves, norms, left, right = [], [], [], []
    span = np.arange(-reach, reach + 1)
    for law in itertools.chain.from_iterable(laws):
        inside = (law.index >= low) & (law.index <= high)
        masses = law.masses[inside] * np.exp(tilt.t * law.losses[inside])
        waves.append(rfft(np.bincount((law.index[inside] - least) % points, masses), points))
        norms.append(float(masses.sum()))
        sums = np.concatenate([[0.0], np.cumsum(law.masses)])
        tails = np.concatenate([np.cumsum(law.masses[::-1])[::-1], [0.0]]) + law.infinity
        left.append(tails[np.searchsorted(law.index, span, side="right")] * (1 + RTOL_MASS))
        right.append(sums[np.searchsorted(law.index, span)] * (1 + RTOL_MASS))
    ends = np.cumsum([0, *map(len, laws)]).tolist()
    groups = [(chance, slice(*pair)) for (chance, _), pair in zip(options, itertools.pairwise(ends), strict=True)]
    transforms, before, after = np.array(waves), np.array(left), np.array(right)
    rounding = 15 * UNIT * math.log2(points) * max(norms)
    offset = epsilon - step * round(epsilon / step)
    # Values are multiplied by alpha^t relative to the middle of the grid, so that a move has the same weights anywhere.
    around = step * np.arange(-half, half + 1)
    weights = np.exp(tilt.t * around)
    outer = {}
    for moved in set(moves):
        # From the i-th point losses above i + moved lead to the left of the grid, those size below to its right.
        here = slice(moved + reach, moved + reach + size)
        beyond = after[:, here.start + 1 - size : here.stop + 1 - size] * weights
        edge = int(np.argmax(beyond.any(axis=0))) if beyond.any() else size
        outer[moved] = math.exp(-tilt.t * step * moved), before[:, here] * weights, beyond[:, edge:], edge
    values = -np.expm1(np.minimum(offset + around, 0.0)) * weights * (1 + RTOL_MASS)
    for moved, centre in zip(moves, centres[1:], strict=True):
        scale, lost, beyond, edge = outer[moved]
        last = values[-1] / weights[-1]
        values *= scale
        found = irfft(transforms * rfft(values, points), points)[:, moved - least : moved - least + size]
        found += lost
        found[:, edge:] += last * beyond
        error = rounding * float(np.linalg.norm(values))
        wrong = UNIT * (64 + 8 * tilt.t * (abs(offset + step * centre) + step * half))
        best = sum(chance * (found[rows].max(axis=0) + error) for chance, rows in groups)
        values = np.minimum(best * (1 + wrong), weights)
    at = np.asarray(offset + step * centres[-1] + around, dtype=np.float64)
    return at, np.asarray(np.minimum(values / weights * (1 + RTOL_MASS), 1.0), dtype=np.float64)


def _cropped(loss: PrivacyLossDistribution, spared: float) -> PrivacyLossDistribution:
    """The largest losses, of this mass at most, as infinite, and the smallest raised."""
    below, beyond = np.cumsum(loss.masses), np.cumsum(loss.masses[::-1])[::-1]
    first = min(int(np.searchsorted(below, spared)), len(below) - 1)
    last = max(int(np.count_nonzero(beyond > spared)), first + 1)
    masses = loss.masses[first:last].copy()
    masses[0] += below[first - 1] if first else 0.0
    beyond = np.append(beyond, 0.0)
    return PrivacyLossDistribution(loss.step, loss.index[first:last], masses, loss.infinity + float(beyond[last]), 0.0)
