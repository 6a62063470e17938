"""Whole vectors of FLAME, enumerated: every choice of coordinates, every report dropped, every outcome of every bag."""

import functools
import itertools
import math

import numpy as np


def response(epsilon0, n_buckets):
    """Rows of k-ary response: the law of the message for each value."""
    top, low = math.exp(epsilon0), 1.0
    rows = np.full((n_buckets, n_buckets), low)
    np.fill_diagonal(rows, top)
    return rows / (top + n_buckets - 1)


def histogram(rows, places):
    """Law of the histogram of independent messages with these laws, as a vector over all histograms of ``places``."""
    law = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        after = {}
        for counts, chance in law.items():
            for letter, share in enumerate(row):
                key = (*counts[:letter], counts[letter] + 1, *counts[letter + 1 :])
                after[key] = after.get(key, 0.0) + chance * share
        law = after
    every = itertools.product(range(places + 1), repeat=len(rows[0]))
    return np.array([law.get(counts, 0.0) for counts in every if sum(counts) == places])


def bag(values, rows, places):
    """Law of a bag that these reports reach: filled with uniform letters, or a uniform part of the reports kept."""
    table = [list(row) for row in rows]
    dummy = [1 / len(rows)] * len(rows)
    if len(values) <= places:
        return histogram([table[value] for value in values] + [dummy] * (places - len(values)), places)
    kept = list(itertools.combinations(values, places))
    return sum(histogram([table[value] for value in some], places) for some in kept) / len(kept)


def vector_law(held, choices, padded, rows):
    """Law of all bags: ``held`` has a vector for each user, ``choices`` the sets of coordinates with their chances."""
    dimension, rows = len(held[0]), tuple(map(tuple, rows))
    one = functools.cache(lambda values: bag(values, rows, padded))
    total = 0.0
    for sets in itertools.product(choices, repeat=len(held)):
        chance = math.prod(share for _, share in sets)
        laws = [
            one(tuple(sorted(vector[j] for vector, (chosen, _) in zip(held, sets, strict=True) if j in chosen)))
            for j in range(dimension)
        ]
        total = total + chance * functools.reduce(np.multiply.outer, laws).ravel()
    return total


def exactly(dimension, kept):
    """Every set of so many coordinates, all alike."""
    sets = list(itertools.combinations(range(dimension), kept))
    return [(chosen, 1 / len(sets)) for chosen in sets]


def independently(dimension, rate):
    """Every set, each coordinate with this chance by itself."""
    every = [s for size in range(dimension + 1) for s in itertools.combinations(range(dimension), size)]
    return [(chosen, rate ** len(chosen) * (1 - rate) ** (dimension - len(chosen))) for chosen in every]


def worst_pairs(dimension, n_buckets, n_users, choices, padded, epsilon0):
    """Laws of neighbours: every vector of the victim against every other one, beside others who all agree or oppose."""
    rows = response(epsilon0, n_buckets)
    vectors = list(itertools.product(range(n_buckets), repeat=dimension))
    crowds = [(one,) * (n_users - 1) for one in vectors] if n_users > 1 else [()]
    if n_users > 2:
        crowds += [((0,) * dimension, *(((1,) * dimension,) * (n_users - 2)))]
    for crowd in crowds:
        laws = [vector_law((mine, *crowd), choices, padded, rows) for mine in vectors]
        yield from itertools.permutations(laws, 2)


def worst_deltas(pairs, epsilons):
    """Largest divergence of any of the pairs, in the order given, at each epsilon."""
    pairs = list(pairs)
    return [max(float(np.maximum(p - math.exp(e) * q, 0).sum()) for p, q in pairs) for e in epsilons]
