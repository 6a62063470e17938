"""Attacks on too few messages: groups of shuffled messages that add up to a value, and what they prove.

The messages of a user add up to a number in {0, ..., k} modulo N; others do so by chance only.  Who sees the shuffled
messages lists all groups of m that could be a user's.  A message that stands in one group only proves that group, for
its true group is always listed; the messages of a proven group are taken out, which proves others.  Nothing is guessed.

Data sets of equal sum are told apart by counting the groups that messages can form: with fewer messages than that, most
are; with as many as a theorem asks for, none.
"""

import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from flamebook.attacks.shortcuts import Recovery
from flamelib.core.arrays import Reals, Wholes
from flamelib.core.vocabulary import DomainError, check
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols.cloak import CloakProtocol, pool, split

MOST_MESSAGES = 4
MOST_GROUPS = 8_000_000


def groups(messages: Wholes, n_messages: int, modulus: int, scale: int) -> Wholes:
    """All sets of ``n_messages`` messages that add up to values in {0, ..., scale} in every coordinate.

    Parameters
    ----------
    messages : array of int, shape (messages, dimension)
        Residues; the first coordinate finds the sets, by a sorted join of two halves, the others thin them out.
    n_messages : int, 2 to 4
    modulus, scale : int

    Returns
    -------
    array of int, shape (sets, n_messages)
        Places of the messages, ascending.

    Raises
    ------
    DomainError
        For more messages of a user, or if more than ``MOST_GROUPS`` candidates would have to be listed.

    Examples
    --------
    >>> sorted(groups(np.array([[5], [9], [96], [40]]), 2, 101, 4).tolist())
    [[0, 2], [1, 2]]
    """
    if not 2 <= n_messages <= MOST_MESSAGES:
        raise DomainError(
            f"n_messages must be a whole number in [2, {MOST_MESSAGES}] for this attack, got {n_messages!r}"
        )
    count = len(messages)
    left, right = _subsets(count, (n_messages + 1) // 2), _subsets(count, n_messages // 2)
    first, second = (messages[half, 0].sum(axis=1) % modulus for half in (left, right))
    one, other = _join(first, second, modulus, scale)
    ascending = left[one, -1] < right[other, 0]
    found = np.hstack([left[one[ascending]], right[other[ascending]]])
    fits: NDArray[np.bool_] = (messages[found].sum(axis=1) % modulus <= scale).all(axis=1)
    return found[fits]


def _subsets(count: int, size: int) -> Wholes:
    if math.comb(count, size) > MOST_GROUPS:
        raise DomainError(f"messages must be fewer: {count} have more than {MOST_GROUPS} pairs")
    return np.column_stack(np.triu_indices(count, 1)) if size == 2 else np.arange(count)[:, None]


def _join(first: Wholes, second: Wholes, modulus: int, scale: int) -> tuple[Wholes, Wholes]:
    """All pairs of places whose sum is in {0, ..., scale} modulo N: a window of the sorted second list for each."""
    order = np.argsort(second)
    twice = np.concatenate([second[order], second[order] + modulus])
    rising = np.argsort(-first % modulus)  # lookups in order are much faster
    low = -first[rising] % modulus
    start = np.searchsorted(twice, low)
    lengths = np.searchsorted(twice, low + scale, side="right") - start
    total = int(lengths.sum())
    if total > MOST_GROUPS:
        raise DomainError(f"modulus must be larger: {total} candidates are more than {MOST_GROUPS}")
    within = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(rising, lengths), order[(np.repeat(start, lengths) + within) % len(second)]


def proven(found: Wholes, count: int) -> Wholes:
    """Those of the groups that are certainly a user's, given that every user's group is among them.

    Examples
    --------
    Messages 0 and 5 stand in one pair each; once these are taken out, messages 2 and 3 have one left.

    >>> proven(np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]), 6).tolist()
    [[0, 1], [4, 5], [2, 3]]
    """
    sure = [found[:0]]
    while len(found):
        alone = np.bincount(found.ravel(), minlength=count) == 1
        new = found[alone[found].any(axis=1)]
        if not len(new):
            break
        sure.append(new)
        used = np.zeros(count, dtype=bool)
        used[new] = True
        found = found[~used[found].any(axis=1)]
    return np.concatenate(sure)


def compute_vectors(protocol: CloakProtocol, dimension: int, together: bool, repeats: int, seed: int) -> Recovery:
    """Rounds in which every user splits a random vector, shuffled as units or coordinate by coordinate, and attacked.

    What is recovered has no name: the attack finds which vectors there are.

    Parameters
    ----------
    protocol : CloakProtocol
        Of each coordinate, without noise.
    dimension : int
    together : bool
        Whether the shuffler permutes whole share vectors (or the seeds that stand for them), not single messages.
    repeats, seed : int

    Examples
    --------
    >>> small = CloakProtocol(20, 3 * 20 * 2**8 + 1, 2**8, 3)
    >>> [compute_vectors(small, 3, together, 4, seed=1).share for together in (True, False)]
    [1.0, 0.0]
    """
    check(dimension=dimension, repeats=repeats, seed=seed)
    rngs = np.random.default_rng(seed).spawn(repeats)
    hits, marked, wrong = zip(*(_attack_vectors(protocol, dimension, together, rng) for rng in rngs), strict=True)
    return Recovery(protocol.n_users, hits, sum(marked), sum(wrong))


def _attack_vectors(
    p: CloakProtocol, dimension: int, together: bool, rng: np.random.Generator
) -> tuple[int, bool, int]:
    values = rng.integers(0, p.scale + 1, size=(p.n_users, dimension))
    messages = pool(split(p, values, Simulation(rng))).T
    seen = rng.permutation(messages) if together else rng.permuted(messages, axis=0)
    sure = proven(groups(seen, p.n_messages, p.modulus, p.scale), len(seen))
    said = Counter(map(tuple, (seen[sure].sum(axis=1) % p.modulus).tolist()))
    held = Counter(map(tuple, values.tolist()))
    hits = (said & held).total()
    return hits, tuple(values[0].tolist()) in said, said.total() - hits


def chance_groups(protocol: CloakProtocol, dimension: int) -> float:
    """Expected number of groups that fit by chance, if all groups that are no user's were independent of values.

    >>> round(chance_groups(CloakProtocol(100, 2**31 - 1, 2**16, 3), 1))
    136
    """
    p = protocol
    return math.comb(p.n_users * p.n_messages, p.n_messages) * ((p.scale + 1) / p.modulus) ** dimension


def closing_chance(protocol: CloakProtocol) -> float:
    """About the chance that a closing share, told from the others, fits one set of others only: no elimination.

    >>> round(closing_chance(CloakProtocol(100, 2**31 - 1, 2**16, 3)), 3)
    0.545
    """
    p = protocol
    return math.exp(
        math.comb(p.n_users * (p.n_messages - 1), p.n_messages - 1) * math.log1p(-(p.scale + 1) / p.modulus)
    )


def ambiguity(n_users: int, n_messages: int, modulus: int, scale: int, dimension: int = 1) -> float:
    r"""Upper bound, by counting, on what two data sets of equal sum have in common on average: its base-2 logarithm.

    A data set can have given rise to a view if the :math:`nm` messages fall into groups with its values as sums.
    There are :math:`M = (nm)!/(m!)^n` ways to group them.  With :math:`r = ((k+1)/N)^d` and :math:`c` components of
    the graph that joins users to groups,

    .. math:: E_{x'}\bigl[1 - \mathrm{TV}(P_x, P_{x'})\bigr]
              \le M r^{n-1} E\bigl[r^{1-c}\bigr] \Bigl(\frac{nk+1}{(k+1)^n}\Bigr)^d

    for every data set :math:`x` and :math:`x'` uniform among all with sum :math:`s`, the most frequent one.

    Parameters
    ----------
    n_users : int
    n_messages : int, at least 2
    modulus, scale : int
    dimension : int
        Coordinates that are shuffled together.

    Examples
    --------
    >>> ambiguity(1000, 4, 2**40, 10**4) < -2000 < 0 < ambiguity(1000, 5, 2**40, 10**4)
    True
    """
    given = check(n_users=n_users, n_messages=n_messages, modulus=modulus, scale=scale, dimension=dimension)
    n, m = given["n_users"], given["n_messages"]
    groupings = math.lgamma(n * m + 1) - n * math.lgamma(m + 1)
    rare = dimension * (math.log(scale + 1) - math.log(modulus))
    data_sets = dimension * (n * math.log(scale + 1) - math.log(n * scale + 1))
    return float(groupings + (n - 1) * rare + _components(n, m, -rare) - data_sets) / math.log(2)


def _components(n: int, m: int, log_weight: float) -> float:
    """Logarithm of E[w^(c - 1)], c the components of a random m-regular bipartite multigraph on n + n vertices.

    The component of the first vertex has i of n vertices on either side; the rest is a graph of the same kind.
    """
    log_orders = gammaln(m * np.arange(n + 1.0) + 1)
    log_factorials = gammaln(np.arange(n + 1.0) + 1)
    connected, moments = np.zeros(n + 1), np.zeros(n + 1)
    for j in range(1, n + 1):
        i = np.arange(1, j + 1)
        chosen = 2 * (log_factorials[j] - log_factorials[i] - log_factorials[j - i]) + np.log(i / j)
        part = chosen + log_orders[i] + log_orders[j - i] - log_orders[j]
        connected[j] = math.log(-math.expm1(_log_sum(part[:-1] + connected[1:j])))
        moments[j] = log_weight + _log_sum(part + connected[i] + moments[j - i])
    return float(moments[n]) - log_weight


def _log_sum(logs: Reals) -> float:
    if not len(logs):
        return -math.inf
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def messages_by_counting(n_users: int, modulus: int, scale: int, dimension: int = 1) -> int:
    """Smallest number of messages that counting leaves open: with fewer, most pairs of data sets are told apart.

    Examples
    --------
    >>> messages_by_counting(1000, 2**40, 10**4)
    5
    """
    low, high = 1, 2
    while ambiguity(n_users, high, modulus, scale, dimension) < 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ambiguity(n_users, middle, modulus, scale, dimension) < 0 else (low, middle)
    return high
