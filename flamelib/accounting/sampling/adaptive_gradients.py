r"""Lower bounds of random participation for gradients of any directions, by post-processing to rectangles.

For given gradients the published sum is a mixture of normal distributions: :math:`\mu_0` (the client is absent),
:math:`\mu_1` (it joins with probability p, the differing record is not drawn), :math:`\mu_2` (it is drawn, with
probability q), with and without that record.  With :math:`\alpha=e^\varepsilon`

.. math::
    P - \alpha Q &= pq\,\mu_2 - (\alpha-1)(1-p)\,\mu_0 - p(\alpha-1+q)\,\mu_1, \\
    Q - \alpha P &= p(1-\alpha(1-q))\,\mu_1 - (\alpha-1)(1-p)\,\mu_0 - \alpha pq\,\mu_2 .

The index of the box that contains the sum is post-processing, so the positive parts of these differences, summed over
boxes, are at most the divergence.  Masses of boxes are products of normal probabilities, contracted axis by axis.
Adjacency: one record of one client is added or removed.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from flamelib.core import binomial
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check

MAX_BOXES = 2**20  # boxes at most: some seconds
MIN_ATOM = 1e-30  # components of less mass are subtracted
MAX_GRADIENT_RATIO = 30.0  # largest ratio of clip_norm to noise_std: a larger one counts as this, by post-processing
MAX_RECORDS = 10_000  # records of equal gradients at most


@dataclass(frozen=True, slots=True)
class Draws:
    """Sums of the other records' drawn gradients, with ``probabilities``, and the differing record's ``gradient``.

    In units of the noise; arrays of shape (draws,), (draws, dimensions) and (dimensions,).
    """

    probabilities: Reals
    sums: Reals
    gradient: Reals


def equal_draws(n_records: int, record_rate: float, ratio: float, angle: float) -> Draws:
    """All gradients of norm ``ratio`` to the noise, the other records' at ``angle`` degrees to the differing one's."""
    if n_records > MAX_RECORDS:
        raise DomainError(f"n_records must be a whole number in [1, {MAX_RECORDS}] here, got {n_records!r}")
    counts = np.arange(n_records, dtype=float)
    # Exact at 0 and 180 degrees, where rounding would add a dimension.
    radians = math.radians(angle)
    direction = np.array([math.cos(radians), math.sin(radians) if 0 < angle < 180 else 0.0])
    pmf = binomial.pmf(counts, n_records - 1, record_rate)
    return Draws(pmf, ratio * counts[:, None] * direction, np.array([ratio, 0.0]))


def subset_draws(gradients: ArrayLike, record_rate: float) -> Draws:
    """All subsets of given gradients, in units of the noise; the first is the differing record's.

    ``gradients`` has the shape (records, dimensions), at most 12 and 3 of them.
    """
    max_records = 12  # records at most, all of whose subsets are listed
    array = np.asarray(gradients, dtype=float)
    if array.ndim != 2 or not 1 <= len(array) <= max_records or not 1 <= array.shape[1] <= 3:
        raise DomainError(f"gradients must be 1 to {max_records} rows of 1 to 3 numbers, got shape {array.shape}")
    rate, others = check(record_rate=record_rate)["record_rate"], len(array) - 1
    drawn = np.array(list(product((0, 1), repeat=others)), dtype=float).reshape(-1, others)
    count = drawn.sum(axis=1)
    return Draws(rate**count * (1 - rate) ** (others - count), drawn @ array[1:], array[0])


def draws_delta(
    draws: Draws, participation_rate: float, record_rate: float, epsilon: float, add: bool, boxes: int = MAX_BOXES
) -> Certified:
    """Divergence of the output for these gradients with and without the differing record (lower bound).

    ``add``: the data set *without* the record comes first.  Fewer ``boxes`` are faster and less accurate.  The
    ``uncertainty`` estimates the distance to the divergence: the gain of the last bisection of boxes, and the answer
    times ten times the square of their side in standard deviations.
    """
    checked = check(participation_rate=participation_rate, record_rate=record_rate, epsilon=epsilon)
    p, q, growth = checked["participation_rate"], checked["record_rate"], math.expm1(min(epsilon, 700.0))
    shifted = draws.sums + draws.gradient
    if add:
        gain = p * (q - growth * (1 - q))
        parts = [(gain, draws.sums), ((1 + growth) * p * q, shifted)]
    else:
        parts = [(p * q, shifted), (p * (growth + q), draws.sums)]
    if parts[0][0] <= 0 or epsilon > 700:
        return Certified(0.0, 0.0)
    (gain, centres), (cost, others) = parts
    absent = np.zeros((1, draws.gradient.size))
    costs = np.append(cost * draws.probabilities, growth * (1 - p))
    return _positive_part((gain * draws.probabilities, centres), (costs, np.vstack([others, absent])), boxes)


@states("participation", "turned-gradients",
        item="one round for gradients of the other records turned by an angle (this project)", gives="lower",
        rests_on="proven", adjacency="add-remove")  # fmt: skip
def turned_gradients(
    participation_rate: float,
    record_rate: float,
    n_records: int,
    noise_std: float,
    clip_norm: float,
    angle: float,
    epsilon: float,
) -> Certified:
    """Delta of one round for an explicit data set, the larger of both directions (lower bound).

    All gradients have the largest norm, in the unit of the noise on the sum; those of the other records, 10,000 at
    most, make an ``angle`` with the differing one's.  At 0 degrees this is the ``aligned`` reading of Theorem 4.1;
    elsewhere it can be larger.  Answers below about 1e-17 of the sampling rate are 0.

    Source: this project, on Hasircioglu, Gunduz 2022, Theorem 4.1.

    Examples
    --------
    >>> f"{turned_gradients(0.1, 0.1, 10, 1.0, 1.0, 30, 0.1):.3e}"
    '6.175e-04'
    """
    ratio = min(clip_norm / noise_std, MAX_GRADIENT_RATIO)
    draws = equal_draws(n_records, record_rate, ratio, angle)
    directions = (draws_delta(draws, participation_rate, record_rate, epsilon, add) for add in (False, True))
    return max(directions)


# --- boxes -----------------------------------------------------------------------------------------------------------


def _positive_part(gain: tuple[Reals, Reals], cost: tuple[Reals, Reals], most: int) -> Certified:
    """Sum over boxes of the positive part of the difference of two normal mixtures, less rounding."""
    rounding = 1e-12  # relative round-off of the mass of a box, at most
    (gains, centres), (costs, others) = gain, cost
    significant, charged = gains > MIN_ATOM, costs > MIN_ATOM
    omitted = float(costs[~charged].sum())
    plus, minus = centres[significant], others[charged]
    axes = [i for i in range(centres.shape[1]) if significant.any() and np.ptp(np.append(plus[:, i], minus[:, i])) > 0]
    if not axes:
        return Certified(max(0.0, float(gains.sum() - costs.sum()) * (1 - rounding)), 0.0)
    knots = [_edges(plus[:, i], len(axes), most) for i in axes]
    weights = np.append(gains[significant] * (1 - rounding), -costs[charged] * (1 + rounding))
    boxes = _boxes(weights, np.vstack([plus, minus])[:, axes], knots)
    coarse = float(np.maximum(_merged(boxes), 0.0).sum())
    fine = float(np.maximum(boxes, 0.0, out=boxes).sum()) * (1 - rounding)
    side = max(float(ends[1] - ends[0]) for ends in knots)
    return Certified(max(0.0, fine - omitted), max(0.0, fine - coarse) + 10 * side**2 * fine + omitted)


def _edges(centres: Reals, dimensions: int, boxes: int) -> Reals:
    """Ends of an even number of intervals around the centres of the gain."""
    radius = 9.0  # standard deviations around the outermost centres
    lower, upper = float(centres.min()) - radius, float(centres.max()) + radius
    # Side of a box in standard deviations, unless this exceeds the number of boxes.
    half_count, width = int(boxes ** (1 / dimensions)) // 2, 0.02 ** (1.5 if dimensions == 1 else 1.0)
    return np.linspace(lower, upper, 2 * min(half_count, math.ceil((upper - lower) / width / 2)) + 1)


def _boxes(weights: Reals, centres: Reals, knots: list[Reals]) -> Reals:
    """Mass of every box under a weighted sum of standard normal distributions."""
    # Entries of an array in memory.
    if len(knots) == 1 and len(weights) * len(knots[0]) > 2**24:
        return _intervals(weights, centres[:, 0], knots[0])
    *front, last = (interval_masses(ends - centres[:, axis, None]) for axis, ends in enumerate(knots))
    table = weights[:, None]
    for masses in front:
        table = (table[:, :, None] * masses[:, None, :]).reshape(len(weights), -1)
    return np.asarray(table.T @ last).reshape([len(ends) - 1 for ends in knots])


def _intervals(weights: Reals, centres: Reals, ends: Reals) -> Reals:
    """Mass of every interval, component by component within 40 standard deviations."""
    radius = 40.0  # standard deviations beyond which no double holds a probability
    total = np.zeros(len(ends) - 1)
    bounds = np.searchsorted(ends, [centres - radius, centres + radius])
    for weight, centre, first, last in zip(weights, centres, *bounds, strict=True):
        total[first : max(last - 1, first)] += weight * interval_masses(ends[None, first:last] - centre)[0]
    return total


def interval_masses(ends: Reals) -> Reals:
    """Normal probabilities between neighbouring ends, as differences of the smaller tails."""
    tails = ndtr(-np.abs(ends))
    left, right = tails[:, :-1], tails[:, 1:]
    around = (ends[:, :-1] < 0) & (ends[:, 1:] > 0)
    return np.asarray(np.where(around, 1 - left - right, np.abs(right - left)))


def _merged(boxes: Reals) -> Reals:
    """Boxes of twice the side."""
    shape = [size for length in boxes.shape for size in (length // 2, 2)]
    return np.asarray(boxes.reshape(shape).sum(axis=tuple(range(1, 2 * boxes.ndim, 2))))
