r"""Shuffling a randomizer that is given by its table: every pair of values is tried.

A row is the law of the message for one value.  The blanket is :math:`\gamma\omega(y) = \min_z \mu_z(y)`, and for each
ordered pair of values :math:`L = (\mu_x - e^\varepsilon\mu_{x'})/\omega` has finitely many values, so that the sums of
the blanket reduction are certified as for k-ary response.  Pairs whose laws are equal are computed once, and pairs
whose Chernoff bound is below what another pair loses are passed over.

From below all others hold one value, every one of them; and where there are few users, every data set of the others is
enumerated, with every multiset of messages.

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
    if delta is not None and delta >= _alone(rows):
        return Certified(0.0, 0.0)
    blanket = rows.min(axis=0)
    seen = blanket > 0
    # A difference that may cancel: the more messages are no blanket, the less is hidden.
    mass, kept = float(blanket.sum()), float((rows[0] - blanket).sum()) + ROUNDING_8
    laws = _laws(rows[:, seen] / (blanket[seen] / mass), blanket[seen] / mass, mass, kept, ROUNDING_8)
    return of_laws(_by_size(laws), n_users, local_budget(randomizer, ROUNDING_8), epsilon, delta)


def _alone(rows: Reals) -> float:
    """The largest total variation of two messages that nobody hides, rounded up: no shuffling adds to it."""
    most = max(np.maximum(rows - row, 0.0).sum(axis=1).max() for row in rows)
    return float(most + rows.shape[1] * ROUNDING_8)


def table_lower(
    randomizer: TableProfile, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    """What explicit data sets lose, the worst pair among them (lower); asked as :func:`table_divergence` is.

    All others hold one value; where there are few users, every data set of the others is tried.
    """
    most = local_budget(randomizer, -ROUNDING_8)
    if not most:
        return Certified(0.0, 0.0)
    rows = np.array(randomizer.table)
    rows = rows[:, rows[0] > 0]
    values = range(len(rows))
    small = enumerated(rows, n_users, list(itertools.permutations(values, 2)))
    if small:
        return answer(small, lambda at: small(at).high, most, epsilon, delta, upper=False)
    laws = [
        _law(rows[one] / rows[others], rows[other] / rows[others], rows[others], 1.0, 0.0, -ROUNDING_8)
        for others, *pair in _largest(rows)
        for one, other in (pair, reversed(pair))
    ]
    return of_laws(laws, n_users, most, epsilon, delta, upper=False)


def local_budget(randomizer: TableProfile, slip: float) -> float:
    """The local budget, moved by more than what the rounding of rows, ratio and logarithm has done to it."""
    return max(randomizer.epsilon0 * (1 + slip) + slip, 0.0)


def enumerated(rows: Reals, n_users: int, pairs: Pairs) -> BracketAt | None:
    """Bracket of log delta over all data sets of the others and these ordered pairs of values in question.

    ``rows``, of shape (values, letters), are the laws of the message; the others hold any of these values.  ``None``
    where there are too many data sets and multisets of messages.
    """
    laws = histogram_laws(rows, n_users)
    if laws is None:
        return None
    error = histogram_error(rows, n_users)
    faint = 5e-324 * 2 * n_users * rows.shape[1] * laws.shape[-1]  # of products below the smallest doubles

    def bracket(epsilon: float) -> Bracket:
        growth = math.exp(epsilon)

        def end(slip: float) -> float:
            gains = (laws[x] * (1 + slip) - growth * (1 - slip) * laws[other] for x, other in pairs)
            found = max(float(np.maximum(gain, 0).sum(axis=1).max()) for gain in gains)
            found += math.copysign(faint * growth, slip) if found > 0 else 0.0
            return math.log(found) + slip if found > 0 else -math.inf

        return Bracket(end(-error), end(error))

    return bracket


def histogram_error(rows: Reals, n_users: int) -> float:
    """The relative error of the chances of :func:`histogram_laws`, but for those near the smallest doubles."""
    return float(ROUNDING_16 * n_users * (rows.shape[1] + 4))


def histogram_laws(rows: Reals, n_users: int) -> Reals | None:
    """Chances of every multiset of messages: of which value the one in question is, by data set of the others.

    ``None`` where there are too many data sets and multisets of messages.
    """
    values, letters = rows.shape
    data_sets = math.comb(n_users + values - 2, values - 1)
    chances = math.comb(n_users + letters - 1, letters - 1) * data_sets * values
    # Probabilities of multisets of messages, over all data sets, at most.
    if chances > 1_000_000 or (n_users + 1) ** letters > 2**62:
        return None
    laws, held = np.ones((1, 1)), np.zeros(1, dtype=np.int64)
    before = np.zeros((1, letters), dtype=np.int64)
    for total in range(1, n_users + 1):
        counts = histograms(total, letters)
        steps = [_places(before, counts - step, n_users + 1) for step in np.eye(letters, dtype=np.int64)]
        padded = np.hstack([laws, np.zeros((len(laws), 1))])
        if total == n_users:
            return np.stack([sum(row[c] * padded[:, step] for c, step in enumerate(steps)) for row in rows])
        # A data set is a sequence that does not fall: another value of at least the last one is appended.
        parents = np.repeat(np.arange(len(laws)), values - held)
        held = np.concatenate([np.arange(last, values) for last in held])
        laws = sum(rows[held, c][:, None] * padded[parents][:, step] for c, step in enumerate(steps))
        before = counts
    raise AssertionError


def _places(table: Wholes, wanted: Wholes, base: int) -> Wholes:
    """Where rows stand in a table in order; one past its end for those with a negative entry."""
    digits = base ** np.arange(table.shape[1] - 1, -1, -1, dtype=np.int64)
    found = np.searchsorted(table @ digits, wanted @ digits)
    return np.where(wanted.min(axis=1) < 0, len(table), found)


def _laws(ratios: Reals, weights: Reals, mass: float, kept: float, slip: float) -> list[AtomsAt]:
    """A law for each ordered pair of values, those that are equal to the last digit once."""
    found: dict[bytes, AtomsAt] = {}
    for first, second in itertools.permutations(ratios, 2):
        order = np.lexsort((weights, second, first))
        atoms = np.stack([first, second, weights])[:, order].tobytes()
        found.setdefault(atoms, _law(first, second, weights, mass, kept, slip))
    return list(found.values())


def _largest(rows: Reals) -> list[tuple[int, int, int]]:
    """What the others hold and two values in question, of the largest variances at 0: each variance once."""
    most = 64  # data sets and pairs that are tried from below
    one, other = np.triu_indices(len(rows), 1)
    found: dict[float, tuple[int, int, int]] = {}
    for others in range(len(rows)):
        excess = rows / rows[others] - 1
        products = excess * rows[others] @ excess.T
        own = np.diag(products)
        variances = own[one] + own[other] - 2 * products[one, other]
        # Digits of the logarithm of a variance by which data sets are distinguished.
        seen, first = np.unique(np.round(np.log(np.maximum(variances, 1e-300)), 9), return_index=True)
        for size, at in zip(seen[-most // 2 :].tolist(), first[-most // 2 :].tolist(), strict=True):
            found.setdefault(size, (others, int(one[at]), int(other[at])))
    return [found[size] for size in sorted(found, reverse=True)[: most // 2]]


def _law(first: Reals, second: Reals, weights: Reals, mass: float, kept: float, slip: float) -> AtomsAt:
    """A value is a difference that may cancel: it is moved to the safe side by what its rounding may be."""

    def at(epsilon: float) -> AtomicLaw:
        second_grown = math.exp(epsilon) * second
        return AtomicLaw(first - second_grown + slip * (first + second_grown), weights, mass, kept)

    return at


def _by_size(laws: list[AtomsAt]) -> list[AtomsAt]:
    """Those of the largest variance at 0 first: mostly the worst."""

    def size(law: AtomsAt) -> float:
        values, weights = law(0.0).points
        return -float(weights @ values**2)

    return sorted(laws, key=size)
