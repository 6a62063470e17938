r"""Slow, exact sums for the ledger's checks: coins of a protocol, every outcome, every count of blanket messages.

With :mod:`flamelib.core.divergences` this is the truth that the claims are held against.  Nothing here knows a
bound or imports one.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.core.divergences import hockey_stick, three_component_clone_pair


def replacement_table(n_buckets: int, blanket_mass: float, replacements: Sequence[int]) -> list[list[float]]:
    """Keep the input, or with probability ``blanket_mass`` draw one of ``replacements`` uniformly."""
    drawn = [blanket_mass * replacements.count(y) / len(replacements) for y in range(n_buckets)]
    return [[(1 - blanket_mass) * (x == y) + drawn[y] for y in range(n_buckets)] for x in range(n_buckets)]


def binomial_law(trials: int, chance: float) -> NDArray[np.float64]:
    """Probabilities of 0..trials successes, from log-gamma: about 1e-11 relative for 10,000 trials."""
    hits = np.arange(trials + 1)
    factorials = np.array([math.lgamma(i + 1) for i in range(trials + 1)])
    logs = factorials[-1] - factorials - factorials[::-1]
    law: NDArray[np.float64] = np.exp(logs + hits * math.log(chance) + (trials - hits) * math.log1p(-chance))
    return law


def binary_delta(n_users: int, epsilon0: float, epsilon: float, ones: int) -> float:
    """Exact delta of shuffled binary response when ``ones`` of the other users hold 1; the worse direction.

    One data set is a lower bound on the delta of the protocol, so it is enough to refute an upper bound.
    """
    truth = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    others = np.convolve(binomial_law(ones, truth), binomial_law(n_users - 1 - ones, 1 - truth))
    alone, extra = np.append(others, 0.0), np.insert(others, 0, 0.0)
    laws = [truth * extra + (1 - truth) * alone, (1 - truth) * extra + truth * alone]
    return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) for p, q in (laws, laws[::-1]))


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Every way to write ``total`` as ``parts`` counts.

    >>> list(compositions(2, 2))
    [(0, 2), (1, 1), (2, 0)]
    """
    if parts == 1:
        yield (total,)
        return
    for head in range(total + 1):
        for tail in compositions(total - head, parts - 1):
            yield (head, *tail)


def blanket_sum(table: ArrayLike, n_users: int, epsilon: float, pair: tuple[int, int] = (0, 1)) -> float:
    """``E[(L_1 + ... + L_M)_+] / (mass n)``, M binomial, by every histogram of blanket messages."""
    rows = np.asarray(table, dtype=float)
    shared = rows.min(axis=0).tolist()
    mass = math.fsum(shared)
    gain = ((rows[pair[0]] - math.exp(epsilon) * rows[pair[1]]) * mass / shared).tolist()
    total = 0.0
    for counts in compositions(n_users, len(shared) + 1):
        ways = math.factorial(n_users) / math.prod(math.factorial(c) for c in counts)
        weight = ways * (1 - mass) ** counts[-1] * math.prod(s**c for s, c in zip(shared, counts[:-1], strict=True))
        total += weight * max(math.fsum(c * g for c, g in zip(counts[:-1], gain, strict=True)), 0.0)
    return total / (mass * n_users)


def three_part_clones(n_buckets: int, n_users: int, epsilon0: float, epsilon: float) -> float:
    """Distance of the clone pair with a third part, which is claimed to bound shuffled k-ary response."""
    before, after = three_component_clone_pair(n_users, n_buckets, epsilon0)
    return hockey_stick(before, after, epsilon)
