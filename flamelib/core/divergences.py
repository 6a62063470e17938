r"""Distances between discrete laws, and the exact law of a shuffled data set that is small enough to enumerate.

The hockey-stick distance :math:`\mathcal D_{e^\varepsilon}(P \Vert Q) = \sum_y (P(y) - e^\varepsilon Q(y))_+` is the
least delta of one direction.  Everything here is enumerated, without bounds or sampling, and is exact up to rounding.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.vocabulary import DomainError, check

Law = Mapping[Any, float]
Counts = tuple[int, ...]

_LARGEST_ENUMERATION = 2_000_000  # outcomes, which take some seconds


def hockey_stick(left: Law | ArrayLike, right: Law | ArrayLike, epsilon: float) -> float:
    r"""Exact distance :math:`\sum_y (P(y) - e^\varepsilon Q(y))_+` of two discrete laws, up to rounding.

    Both are mappings from outcome to probability, or arrays of one shape.  At epsilon 0 it is the total variation
    distance.
    """
    epsilon = check(epsilon=epsilon)["epsilon"]
    p, q = _as_law("left", left), _as_law("right", right)
    return _beyond(p, q, math.exp(epsilon))


def shuffled_law(table: ArrayLike, inputs: Sequence[int]) -> dict[Counts, float]:
    """Exact law of the shuffler's output: how often each message occurs, as a tuple of counts.

    Row x of ``table`` holds the probabilities of the messages that a user with input x may send; ``inputs`` are the
    users' rows.  More than two million outcomes are refused.
    """
    rows = _as_table(table)
    if not inputs or any(x not in range(len(rows)) for x in inputs):
        raise DomainError(f"inputs must be indices of the {len(rows)} rows of table, one or more, got {list(inputs)!r}")
    _refuse_large(math.comb(len(inputs) + rows.shape[1] - 1, rows.shape[1] - 1))
    law: dict[Counts, float] = {(0,) * rows.shape[1]: 1.0}
    for user in inputs:
        law = _one_more_message(law, rows[user])
    return law


def shuffled_delta(table: ArrayLike, n_users: int, epsilon: float) -> float:
    """Exact delta of shuffled messages under replace-one: the worst data set, pair and direction, all enumerated."""
    return shuffled_deltas(table, n_users, [epsilon])[0]


def shuffled_deltas(table: ArrayLike, n_users: int, epsilon: Sequence[float]) -> list[float]:
    """:func:`shuffled_delta` at several epsilons, the laws enumerated once."""
    n_users = check(n_users=n_users)["n_users"]
    for one in epsilon:
        check(epsilon=one)
    rows = _as_table(table)
    n_inputs, n_messages = rows.shape
    data_sets = n_inputs * math.comb(n_users + n_inputs - 2, n_users - 1)
    _refuse_large(data_sets * math.comb(n_users + n_messages - 1, n_users))
    worst = [0.0] * len(epsilon)
    for others in combinations_with_replacement(range(n_inputs), n_users - 1):
        laws = [shuffled_law(rows, (x, *others)) for x in range(n_inputs)]
        worst = [max(seen, _worst_pair(laws, one)) for seen, one in zip(worst, epsilon, strict=True)]
    return worst


def kary_table(n_buckets: int, epsilon0: float) -> NDArray[np.float64]:
    """Probabilities of k-ary randomized response: row x, column y, shape (n_buckets, n_buckets)."""
    n_buckets, epsilon0 = check(n_buckets=n_buckets, epsilon0=epsilon0).values()
    other = 1 / (math.expm1(epsilon0) + n_buckets)
    table = np.full((n_buckets, n_buckets), other)
    np.fill_diagonal(table, other * math.exp(epsilon0))
    return table


def three_component_clone_pair(
    n_users: int, n_buckets: int, epsilon0: float
) -> tuple[dict[Counts, float], dict[Counts, float]]:
    r"""The two laws of the three-part clone reduction for k-ary response.  **Their distance is no upper bound.**

    With :math:`\alpha = 1/(e^{\varepsilon_0} + k - 1)` every other user is a clone of the one value or of the other
    with probability :math:`\alpha` each, and the replaced user falls outside both with probability
    :math:`1 - (e^{\varepsilon_0} + 1)\alpha`.  Enumeration finds data sets whose distance is larger
    (``n_buckets=3, n_users=4, epsilon0=1, epsilon=0.5``).  For three and more buckets it is a lower bound: the
    distance that is left, after the other buckets are merged, on the data set in which all others hold a third value.
    An outcome is the number of messages that equal the old value, and of those that equal the new one.
    """
    n_users, n_buckets, epsilon0 = check(n_users=n_users, n_buckets=n_buckets, epsilon0=epsilon0).values()
    clone = 1 / (math.expm1(epsilon0) + n_buckets)
    own = clone * math.exp(epsilon0)
    others = _trinomial(n_users - 1, clone)
    before = _add_message(others, (own, clone, max(0.0, 1 - own - clone)))
    return before, {(second, first): mass for (first, second), mass in before.items()}


def _worst_pair(laws: Sequence[Mapping[Counts, float]], epsilon: float) -> float:
    return max(_beyond(p, q, math.exp(epsilon)) for p, q in permutations(laws, 2))


def _beyond(p: Law, q: Law, factor: float) -> float:
    """What the first law has beyond so many times the second one."""
    return math.fsum(max(mass - factor * q.get(outcome, 0.0), 0.0) for outcome, mass in p.items())


def _trinomial(trials: int, each: float) -> dict[Counts, float]:
    """Law of two counts, each hit with probability ``each`` in every trial."""
    neither = 1 - 2 * each
    return {
        (a, b): math.comb(trials, a) * math.comb(trials - a, b) * each ** (a + b) * neither ** (trials - a - b)
        for a in range(trials + 1)
        for b in range(trials + 1 - a)
    }


def _add_message(law: Mapping[Counts, float], hit: tuple[float, float, float]) -> dict[Counts, float]:
    """Law of two counts after one more message: first, second or neither."""
    total: dict[Counts, float] = {}
    for (a, b), mass in law.items():
        for outcome, probability in zip(((a + 1, b), (a, b + 1), (a, b)), hit, strict=True):
            total[outcome] = total.get(outcome, 0.0) + mass * probability
    return total


def _one_more_message(law: Mapping[Counts, float], row: NDArray[np.float64]) -> dict[Counts, float]:
    total: dict[Counts, float] = {}
    for counts, mass in law.items():
        for message, probability in _possible(row):
            outcome = (*counts[:message], counts[message] + 1, *counts[message + 1 :])
            total[outcome] = total.get(outcome, 0.0) + mass * probability
    return total


def _possible(row: NDArray[np.float64]) -> Iterator[tuple[int, float]]:
    return ((message, float(probability)) for message, probability in enumerate(row) if probability > 0)


def _refuse_large(outcomes: int) -> None:
    if outcomes > _LARGEST_ENUMERATION:
        limit = f"at most {_LARGEST_ENUMERATION:,} outcomes to enumerate"
        raise DomainError(f"n_users and the alphabet must leave {limit}, got {outcomes}")


def _as_law(name: str, law: Law | ArrayLike) -> dict[Any, float]:
    pairs = law.items() if isinstance(law, Mapping) else enumerate(np.asarray(law, dtype=float).ravel().tolist())
    known = dict(pairs)
    if not known or any(not 0 <= mass <= 1 for mass in known.values()) or abs(math.fsum(known.values()) - 1) > 1e-9:
        raise DomainError(f"{name} must be probabilities in [0, 1] that sum to 1")
    return known


def _as_table(table: ArrayLike) -> NDArray[np.float64]:
    rows = np.asarray(table, dtype=float)
    laws = rows.ndim == 2 and bool(((rows >= 0) & (rows <= 1)).all() and (np.abs(rows.sum(axis=1) - 1) < 1e-9).all())
    if not laws:
        raise DomainError("table must hold one law per row: probabilities in [0, 1] that sum to 1")
    return rows
