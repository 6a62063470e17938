r"""Shuffling a randomizer given by its table: maximum over all pairs of values.

Row z is the distribution :math:`\mu_z` of the message.  The blanket is :math:`\gamma\omega(y) = \min_z \mu_z(y)`.  For
each ordered pair of values :math:`L = (\mu_x - e^\varepsilon\mu_{x'})/\omega` has finitely many values, and the sums of
the blanket reduction are certified as for k-ary response.  Pairs with equal distributions are computed once, and pairs
with a Chernoff bound below the divergence of another pair are skipped.

Lower bounds: all other users hold one value, maximum over it; for few users every data set of the others is enumerated,
with every multiset of messages.

Source: the reduction of Balle, Bell, Gascon, Nissim 2019, Section 5, for each pair.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from flamelib.accounting.shuffling.brackets import BracketAt, answer, of_laws
from flamelib.accounting.shuffling.bromwich import Bracket, histograms
from flamelib.accounting.shuffling.laws import AtomicLaw
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import ROUNDING_8, ROUNDING_16
from flamelib.core.profiles import TableProfile

AtomsAt = Callable[[float], AtomicLaw]
Pairs = Sequence[tuple[int, int]]


def table_divergence(
    randomizer: TableProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """Tightest guarantee that the blanket decomposition gives for the worst pair of values (upper).

    Exactly one of ``epsilon`` and ``delta`` is given; the answer is the other one, epsilon at most the local budget.
    """
    if not randomizer.epsilon0:
        return Certified(0.0, 0.0)
    rows = np.array(randomizer.table)
    if delta is not None and delta >= _total_variation(rows):
        return Certified(0.0, 0.0)
    blanket = rows.min(axis=0)
    support = blanket > 0
    # Against cancellation: a larger non-blanket mass is an upper bound.
    mass, kept = float(blanket.sum()), float((rows[0] - blanket).sum()) + ROUNDING_8
    laws = _laws(rows[:, support] / (blanket[support] / mass), blanket[support] / mass, mass, kept, ROUNDING_8)
    return of_laws(_by_variance(laws), n_users, local_budget(randomizer, ROUNDING_8), epsilon, delta)


def _total_variation(rows: Reals) -> float:
    """Largest total variation of two unshuffled messages, rounded up: an upper bound after shuffling."""
    largest = max(np.maximum(rows - row, 0.0).sum(axis=1).max() for row in rows)
    return float(largest + rows.shape[1] * ROUNDING_8)


def table_lower(
    randomizer: TableProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """Divergence of explicit data sets (lower); the arguments are those of :func:`table_divergence`.

    All others hold one value; for few users, every data set of the others is enumerated.
    """
    budget = local_budget(randomizer, -ROUNDING_8)
    if not budget:
        return Certified(0.0, 0.0)
    rows = np.array(randomizer.table)
    rows = rows[:, rows[0] > 0]
    values = range(len(rows))
    small = enumerated(rows, n_users, list(itertools.permutations(values, 2)))
    if small:
        return answer(small, lambda at: small(at).high, budget, epsilon, delta, upper=False)
    laws = [
        _law(rows[one] / rows[others], rows[other] / rows[others], rows[others], 1.0, 0.0, -ROUNDING_8)
        for others, *pair in _largest_variances(rows)
        for one, other in (pair, reversed(pair))
    ]
    return of_laws(laws, n_users, budget, epsilon, delta, upper=False)


def local_budget(randomizer: TableProfile, shift: float) -> float:
    """The local budget, shifted by more than the rounding of rows, ratio and logarithm."""
    return max(randomizer.epsilon0 * (1 + shift) + shift, 0.0)


def enumerated(rows: Reals, n_users: int, pairs: Pairs) -> BracketAt | None:
    """Bracket of log delta, maximum over all data sets of the others and these ordered pairs of values.

    ``rows``, of shape (values, letters), are the distributions of the message; the others hold any of these values.
    ``None`` where there are too many data sets and multisets of messages.
    """
    laws = histogram_laws(rows, n_users)
    if laws is None:
        return None
    error = histogram_error(rows, n_users)
    underflow = 5e-324 * 2 * n_users * rows.shape[1] * laws.shape[-1]  # underflow of products

    def bracket(epsilon: float) -> Bracket:
        exp_epsilon = math.exp(epsilon)

        def end(shift: float) -> float:
            gains = (laws[x] * (1 + shift) - exp_epsilon * (1 - shift) * laws[other] for x, other in pairs)
            found = max(float(np.maximum(gain, 0).sum(axis=1).max()) for gain in gains)
            found += math.copysign(underflow * exp_epsilon, shift) if found > 0 else 0.0
            return math.log(found) + shift if found > 0 else -math.inf

        return Bracket(end(-error), end(error))

    return bracket


def histogram_error(rows: Reals, n_users: int) -> float:
    """Relative error of the probabilities of :func:`histogram_laws`, but for underflow."""
    return float(ROUNDING_16 * n_users * (rows.shape[1] + 4))


def histogram_laws(rows: Reals, n_users: int) -> Reals | None:
    """Probabilities of every multiset of messages, by the replaced value and the data set of the others.

    ``None`` where there are too many data sets and multisets of messages.
    """
    values, letters = rows.shape
    data_sets = math.comb(n_users + values - 2, values - 1)
    size = math.comb(n_users + letters - 1, letters - 1) * data_sets * values
    if size > 1_000_000 or (n_users + 1) ** letters > 2**62:
        return None
    laws, held = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    previous = np.zeros((1, letters), dtype=np.int64)
    for total in range(1, n_users + 1):
        counts = histograms(total, letters)
        steps = [_row_indices(previous, counts - step, n_users + 1) for step in np.eye(letters, dtype=np.int64)]
        padded = np.hstack([laws, np.zeros((len(laws), 1))])
        if total == n_users:
            return np.stack([sum(row[c] * padded[:, step] for c, step in enumerate(steps)) for row in rows])
        # A data set is a nondecreasing sequence: a value of at least the last one is appended.
        parents = np.repeat(np.arange(len(laws)), values - held)
        held = np.concatenate([np.arange(last, values) for last in held])
        laws = sum(rows[held, c][:, None] * padded[parents][:, step] for c, step in enumerate(steps))
        previous = counts
    raise AssertionError


def _row_indices(table: Wholes, rows: Wholes, base: int) -> Wholes:
    """Indices of rows in a sorted table; its length for rows with a negative entry."""
    digits = base ** np.arange(table.shape[1] - 1, -1, -1, dtype=np.int64)
    found = np.searchsorted(table @ digits, rows @ digits)
    return np.where(rows.min(axis=1) < 0, len(table), found)


def _laws(ratios: Reals, weights: Reals, mass: float, kept: float, shift: float) -> list[AtomsAt]:
    """Distribution of L for each ordered pair of values, without duplicates."""
    unique: dict[bytes, AtomsAt] = {}
    for first, second in itertools.permutations(ratios, 2):
        order = np.lexsort((weights, second, first))
        atoms = np.stack([first, second, weights])[:, order].tobytes()
        unique.setdefault(atoms, _law(first, second, weights, mass, kept, shift))
    return list(unique.values())


def _largest_variances(rows: Reals) -> list[tuple[int, int, int]]:
    """Triples (value of the others, pair of values) of the largest distinct variances of L at epsilon 0."""
    most = 64  # data sets and pairs of the lower bound, at most
    one, other = np.triu_indices(len(rows), 1)
    found: dict[float, tuple[int, int, int]] = {}
    for others in range(len(rows)):
        excess = rows / rows[others] - 1
        products = excess * rows[others] @ excess.T
        own = np.diag(products)
        variances = own[one] + own[other] - 2 * products[one, other]
        distinct, first = np.unique(np.round(np.log(np.maximum(variances, 1e-300)), 9), return_index=True)
        for size, at in zip(distinct[-most // 2 :].tolist(), first[-most // 2 :].tolist(), strict=True):
            found.setdefault(size, (others, int(one[at]), int(other[at])))
    return [found[size] for size in sorted(found, reverse=True)[: most // 2]]


def _law(first: Reals, second: Reals, weights: Reals, mass: float, kept: float, shift: float) -> AtomsAt:
    """Distribution of L by epsilon; its values, subject to cancellation, are shifted by their rounding (``shift``)."""

    def at(epsilon: float) -> AtomicLaw:
        second_grown = math.exp(epsilon) * second
        return AtomicLaw(first - second_grown + shift * (first + second_grown), weights, mass, kept)

    return at


def _by_variance(laws: list[AtomsAt]) -> list[AtomsAt]:
    """By decreasing variance at epsilon 0: mostly by decreasing divergence."""

    def variance(law: AtomsAt) -> float:
        values, weights = law(0.0).points
        return -float(weights @ values**2)

    return sorted(laws, key=variance)
