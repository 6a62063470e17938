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

from flamelib.accounting.composition.known_pairs import ROUND, Cells, above, joined
from flamelib.accounting.composition.loss_sums import Loss, Tilt
from flamelib.accounting.sampling.turned_gradients import interval_masses
from flamelib.core import binomial
from flamelib.core.arrays import Reals
from flamelib.core.logspace import UNIT
from flamelib.core.search import least_whole

REACH, ACROSS, ALONG = 8.5, 0.1, 0.03  # standard deviations covered, and sides of a cell
FEW = 2e-3  # chance of the numbers of other records that are taken together
# Work of a program at most (rounds times transforms times points), the finest step, and the coarsest worth its time.
WORK, FINEST, COARSEST = 1e8, 0.01, 0.15
INTERVALS = 8, 4, 2  # of angles, the first for which there is time
WIDEST, LEAST_DELTA = 8.0, 1e-10  # largest distance of a law told apart, in standard deviations; smallest delta
SPARED = 1e-4  # part of delta that is given to large losses
SPREADS = 4.0  # of the grid to both sides, in standard deviations of the tilted sum


def half_cells(p: float, q: float, j: int, ratio: float, cosine: float, side: int) -> Cells:
    """Cells of the pair for this cosine where the loss is positive (``side`` 1) or negative (-1), others left out.

    Coordinates are those of the differing gradient and across it, in which the law without the record is centred at 0.
    """
    sine = math.sqrt(max(0.0, 1 - cosine * cosine)) if j else 0.0
    out = -j * ratio * cosine, -j * ratio * sine
    middle = ratio / 2
    far = max(ratio, out[0]) + REACH if side > 0 else min(0.0, out[0]) - REACH
    x = np.linspace(middle, far, math.ceil(abs(far - middle) / ALONG) + 1)
    x = np.append(x, math.inf) if side > 0 else np.insert(x[::-1], 0, -math.inf)
    y = np.array([-math.inf, math.inf])
    if sine:
        y = np.linspace(out[1] - REACH, REACH, math.ceil((2 * REACH - out[1]) / ACROSS) + 1)
        y = np.concatenate([[-math.inf], y, [math.inf]])
    here, there, away = (interval_masses(x[None, :] - at)[0] for at in (0.0, ratio, out[0]))
    beside, beyond = (interval_masses(y[None, :] - at)[0] for at in (0.0, out[1]))
    base = p * np.outer(here, beside) + (1 - p) * np.outer(away, beyond)
    gain = p * q * np.outer(there - here, beside)
    error = ROUND * p * q * np.outer(there + here, beside)
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
    return Cells(*(one.ravel() for one in (*ends, base, gain, error)))


def _interval(ends: Reals, which: np.ufunc) -> Reals:
    return np.asarray(which(ends[:-1], ends[1:]))


def interval_cells(p: float, q: float, j: int, ratio: float, cosines: tuple[float, float]) -> Cells:
    """Cells of a pair that dominates, for all cosines of an interval."""
    cells = joined([half_cells(p, q, j, ratio, cosines[1], 1), half_cells(p, q, j, ratio, cosines[0], -1)])
    rest = max(0.0, 1 - float((cells.base + cells.gain).sum()))
    alone = Cells(*np.array([[0.0], [0.0], [rest], [0.0], [ROUND / 10]]))
    return joined([cells, alone])


def fineness(n_records: int, rate: float, ratio: float, rounds: int) -> tuple[int, float] | None:
    """How many intervals and how fine a step there is time for; ``None`` where the program would take too long."""
    last = most_told_apart(n_records, rate)
    if last * ratio > WIDEST or ratio > WIDEST:
        return None
    for intervals in INTERVALS:
        fine = max(FINEST, rounds**1.5 * 10 * (last * intervals + 2) / WORK)
        if fine <= COARSEST:
            return intervals, fine
    return None


def most_told_apart(n_records: int, rate: float) -> int:
    """Greatest number of other records with angles of its own; larger ones count as all, at the worst angles."""
    n = n_records - 1
    return least_whole(lambda j: bool(binomial.sf(j, n, rate) <= FEW), 0, n)


def choices(p: float, q: float, n_records: int, ratio: float, intervals: int) -> list[tuple[float, list[Cells]]]:
    """For each number of other records, with its chance, the cells of each interval of cosines."""
    n = n_records - 1
    last = most_told_apart(n_records, q)
    cuts = np.cos(np.linspace(math.pi, 0, intervals + 1)).tolist()
    cuts[0], cuts[-1] = -1.0, 1.0
    found = []
    for j in range(last + 1):
        pairs = list(itertools.pairwise(cuts)) if j else [(-1.0, 1.0)]
        chance = float(binomial.pmf(np.array([j]), n, q)[0]) * (1 + ROUND)
        found.append((chance, [interval_cells(p, q, j, ratio, pair) for pair in pairs]))
    if last < n:
        found.append((float(binomial.sf(last, n, q)) * (1 + ROUND), [interval_cells(p, q, n, ratio, (-1.0, 1.0))]))
    return found


def turned_profile(
    options: Sequence[tuple[float, Sequence[Cells]]], rounds: int, epsilon: float, tilt: Tilt, delta: float, fine: float
) -> tuple[Reals, Reals]:
    """Some epsilons, the given one in their middle, and upper bounds of the delta of some rounds at each.

    They are in the order of the cells.  How close they are, but not that they are bounds, rests on the ``tilt`` of the
    sum of losses to ``epsilon``, on about the ``delta`` there, and on the step, ``fine`` standard deviations of a
    tilted loss.
    """
    step = fine * math.sqrt(tilt.variance / rounds)
    half = math.ceil(SPREADS * math.sqrt(tilt.variance) / step)
    size = 2 * half + 1
    spared = SPARED * delta / rounds
    laws = [[_cropped(above(cells, step), spared) for cells in some] for _, some in options]
    reach = size + math.ceil(epsilon / rounds / step) + 1
    low = max(min(int(law.index[0]) for some in laws for law in some), -reach)
    high = min(max(int(law.index[-1]) for some in laws for law in some), reach)
    points = next_fast_len(size + high - low + 1, real=True)
    waves, norms, left, right, owners = [], [], [], [], []
    span = np.arange(-reach, reach + 1)
    for owner, some in enumerate(laws):
        for law in some:
            inside = (law.index >= low) & (law.index <= high)
            masses = np.zeros(high - low + 1)
            masses[law.index[inside] - low] = law.masses[inside] * np.exp(tilt.t * law.losses[inside])
            waves.append(rfft(masses, points))
            norms.append(float(masses.sum()))
            sums = np.concatenate([[0.0], np.cumsum(law.masses)])
            tails = np.concatenate([np.cumsum(law.masses[::-1])[::-1], [0.0]]) + law.infinity
            left.append(tails[np.searchsorted(law.index, span, side="right")] * (1 + ROUND))
            right.append(sums[np.searchsorted(law.index, span)] * (1 + ROUND))
            owners.append(owner)
    groups = np.flatnonzero(np.diff(owners, prepend=-1))
    chances = np.array([chance for chance, _ in options])[:, None]
    transforms, before, after = np.array(waves), np.array(left), np.array(right)
    rounding = 15 * UNIT * math.log2(points) * max(norms)
    offset, first = epsilon - step * round(epsilon / step), -half

    def places() -> Reals:
        return np.asarray(offset + step * (first + np.arange(size)), dtype=np.float64)

    at = places()
    values = -np.expm1(np.minimum(at, 0.0)) * np.exp(tilt.t * at) * (1 + ROUND)
    for done in range(1, rounds + 1):
        moved = round(epsilon / step * done / rounds) - half - first
        last = values[-1] * math.exp(-tilt.t * at[-1])
        error = rounding * float(np.linalg.norm(values))
        summed = irfft(transforms * rfft(values, points), points)
        inner = np.take(summed, np.arange(moved - low, moved - low + size) % points, axis=1)
        first += moved
        at = places()
        weights = np.exp(tilt.t * at)
        # From the i-th point losses above i + moved lead to the left of the grid, those size below to its right.
        here = np.arange(moved, moved + size) + reach
        outer = (before[:, here] + last * after[:, here + 1 - size]) * weights
        best = np.maximum.reduceat(inner + error + outer, groups, axis=0)
        wrong = UNIT * (64 + 8 * tilt.t * float(np.abs(at).max()))
        values = np.minimum((chances * best).sum(0) * (1 + wrong), weights)
    return at, np.asarray(np.minimum(values / weights * (1 + ROUND), 1.0), dtype=np.float64)


def _cropped(loss: Loss, spared: float) -> Loss:
    """The largest losses, of this mass at most, as infinite, and the smallest raised."""
    below, beyond = np.cumsum(loss.masses), np.cumsum(loss.masses[::-1])[::-1]
    first = min(int(np.searchsorted(below, spared)), len(below) - 1)
    last = max(int(np.count_nonzero(beyond > spared)), first + 1)
    masses = loss.masses[first:last].copy()
    masses[0] += below[first - 1] if first else 0.0
    beyond = np.append(beyond, 0.0)
    return Loss(loss.step, loss.index[first:last], masses, loss.infinity + float(beyond[last]), 0.0)
