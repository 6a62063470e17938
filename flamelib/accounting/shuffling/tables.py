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
from collections.abc import Callable

import numpy as np

from flamelib.accounting.composition.dominating_pair import MIN_Q_MASS, DominatingPair
from flamelib.accounting.composition.privacy_profile import PrivacyProfile
from flamelib.accounting.shuffling.analysis import Analysis
from flamelib.accounting.shuffling.any_randomizer import ClonedAnalysis
from flamelib.accounting.shuffling.brackets import answer, of_laws
from flamelib.accounting.shuffling.laws import AtomicLaw
from flamelib.accounting.shuffling.outcomes import (
    MAX_USERS,
    binned,
    enumerated,
    histogram_error,
    histogram_laws,
    window,
)
from flamelib.core import binomial
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import ROUNDING_8
from flamelib.core.profiles import ClonedProfile, TableProfile

AtomsAt = Callable[[float], AtomicLaw]


class TableAnalysis(Analysis):
    """One shuffle by every pair of values, rounds by clones of the table's local budget."""

    def one_round(self, n_users: int, epsilon: float | None, delta: float | None) -> Certified:
        return table_divergence(self.randomizer, n_users, epsilon, delta)

    def from_below(
        self, n_users: int, epsilon: float | None, delta: float | None, equal_inputs: bool = False
    ) -> Certified:
        return table_lower(self.randomizer, n_users, epsilon, delta, equal_inputs)

    @property
    def reduced(self) -> ClonedProfile:
        """Of the local budget rounded up."""
        return ClonedProfile(local_budget(self.randomizer, ROUNDING_8))

    def profile(self, n_users: int, rate: float, error: float) -> PrivacyProfile:
        return ClonedAnalysis(self.reduced).profile(n_users, rate, error)

    def witnesses(self, n_users: int, rate: float, equal_inputs: bool = False) -> list[DominatingPair]:
        return table_cells(self.randomizer, n_users, equal_inputs) if rate == 1 else []


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
    randomizer: TableProfile,
    n_users: int,
    epsilon: float | None = None,
    delta: float | None = None,
    equal_inputs: bool = False,
) -> Certified:
    """Divergence of explicit data sets (lower); the arguments are those of :func:`table_divergence`.

    All others hold one value; for few users, every data set of the others is enumerated but with ``equal_inputs``.
    """
    budget = local_budget(randomizer, -ROUNDING_8)
    if not budget:
        return Certified(0.0, 0.0)
    rows = np.array(randomizer.table)
    rows = rows[:, rows[0] > 0]
    values = range(len(rows))
    small = None if equal_inputs else enumerated(rows, n_users, list(itertools.permutations(values, 2)))
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


def table_cells(randomizer: TableProfile, n_users: int, equal_inputs: bool = False) -> list[DominatingPair]:
    r"""Cells of the most distinguishable pairs for a table of message distributions; none beyond a billion users.

    For few users, over all data sets of the others.  Else all others hold one value, and messages are post-processed to
    the indicator of a likelihood ratio above a threshold.  With its probabilities a, b for the victim's values, c for
    the others', and M the pmf of Bin(n, c),

    .. math:: P - Q = \frac{M(k)}n(a-b)\Big[\frac kc-\frac{n-k}{1-c}\Big],\qquad
              Q = \frac{M(k)}n\Big[\frac{bk}c+\frac{(1-b)(n-k)}{1-c}\Big].
    """
    rows = np.array(randomizer.table)
    rows = rows[:, rows[0] > 0]
    every = itertools.combinations(range(len(rows)), 2)
    pairs = sorted(every, key=lambda pair: -float(_chi_squared(rows[pair[0]], rows[pair[1]])))[:8]  # pairs
    laws = None if equal_inputs else histogram_laws(rows, n_users)
    if laws is not None:
        found = []
        for laws_p, laws_q in ((laws[x], laws[y]) for x, y in pairs):
            both = (laws_p, laws_q), (laws_q, laws_p)
            # Largest squared distance, and largest losses.
            for index in {int(_chi_squared(*both[0]).argmax()), *(int(_log_third_moment(*d).argmax()) for d in both)}:
                p, q = laws_p[index], laws_q[index]
                p, q = (law[(p > MIN_Q_MASS) & (q > MIN_Q_MASS)] for law in (p, q))
                losses = np.log(p / q)
                found.append(DominatingPair(losses, losses, q, p - q, histogram_error(rows, n_users) * (p + q)))
        return found
    splits: list[Reals] = []
    for x, y in pairs if n_users <= MAX_USERS else ():
        order, laws_of = np.argsort(rows[x] / rows[y]), np.stack([rows[x], rows[y], *rows])
        for first in range(1, len(order)):
            masses = np.stack([laws_of[:, order[first:]].sum(axis=1), laws_of[:, order[:first]].sum(axis=1)])
            splits += [masses[:, [0, 1, of]] for of in range(2, len(laws_of))]
    splits.sort(key=lambda split: -((split[0, 0] - split[0, 1]) ** 2) / (split[0, 2] * split[1, 2]))
    return [_split_cells(split, n_users) for split in splits[:4]]  # splits at most


def _chi_squared(p: Reals, q: Reals) -> Reals:
    """Symmetric chi-squared distance ``sum((p - q)^2 / (p + q))``."""
    return np.asarray(((p - q) ** 2 / np.maximum(p + q, MIN_Q_MASS)).sum(axis=-1))


def _log_third_moment(p: Reals, q: Reals) -> Reals:
    """``log sum(p^4 / q^3)``, dominated by the largest losses."""
    logs = np.log(np.maximum(p, MIN_Q_MASS)), np.log(np.maximum(q, MIN_Q_MASS))
    return np.asarray(np.logaddexp.reduce(4 * logs[0] - 3 * logs[1], axis=-1))


def _split_cells(split: Reals, n_users: int) -> DominatingPair:
    """Cells of the count of the rarer of two groups of messages; columns: the victim's values, the others' value."""
    (a, b, c), (not_a, not_b, not_c) = split if split[0, 2] <= split[1, 2] else split[::-1]
    counts = window(n_users, c)
    masses, inside, outside = binomial.pmf(counts, n_users, c) / n_users, counts / c, (n_users - counts) / not_c
    base = b * inside + not_b * outside
    return binned(masses * base, ((a - b) * inside + (not_a - not_b) * outside) / base)
