"""Slow answers for padded coordinates and counts: every outcome, mostly in 40 digits; nothing from the library."""

import itertools
import math

import numpy as np
from oracles.shuffling import histogram_law, hockey_stick, kary_blanket_atoms, kary_rows, mp, mpf, positive_part


def mixed(row, chance):
    """Law of a message that is there with this chance, else a dummy (uniform)."""
    return [chance * p + (1 - chance) / len(row) for p in row]


def padded_kary(epsilon0, n_buckets, padded, real, epsilon, first=1, second=1):
    """Exact worst case of one coordinate: ``real - 1`` others of any values, dummies, the victim's two laws."""
    rows, dummy = kary_rows(epsilon0, n_buckets), [mpf(1) / n_buckets] * n_buckets
    worst = mpf(0)
    for held in itertools.combinations_with_replacement(range(n_buckets), real - 1):
        others = [rows[x] for x in held] + [dummy] * (padded - real)
        for x, y in itertools.permutations(range(n_buckets), 2):
            one, two = (histogram_law([mixed(rows[v], c), *others]) for v, c in ((x, mpf(first)), (y, mpf(second))))
            worst = max(worst, hockey_stick(one, two, epsilon))
    return worst


def padded_formula(epsilon0, n_buckets, padded, real, epsilon):
    """The blanket divergence with sure blankets: an explicit average over the number of blanket messages."""
    values, chances, mass = kary_blanket_atoms(epsilon0, n_buckets, epsilon)
    values, chances = values[:3], [chance / mass for chance in chances[:3]]
    keep = [i for i in range(3) if chances[i] > 0]
    total = mpf(0)
    for j in range(real):
        m = 1 + j + padded - real
        chance = mp.binomial(real - 1, j) * mass**j * (1 - mass) ** (real - 1 - j)
        total += chance * positive_part([values[i] for i in keep], [chances[i] for i in keep], m) / m
    return total


def sampled_kary(epsilon0, n_buckets, padded, n_users, rate, epsilon):
    """Exact worst case where everybody reports with chance ``rate``; a coordinate that overflows is published bare.

    An outcome is the histogram, with the number of real messages where it exceeds ``padded``.
    """
    rows, dummy = kary_rows(epsilon0, n_buckets), [mpf(1) / n_buckets] * n_buckets
    rate, worst = mpf(rate), mpf(0)

    def law(victim, held):
        total = {}
        for there in itertools.product((0, 1), repeat=n_users):
            real = [rows[x] for x, here in zip((victim, *held), there, strict=True) if here]
            chance = rate ** len(real) * (1 - rate) ** (n_users - len(real))
            bare = len(real) > padded or sum(there[1:]) >= padded
            messages = real if bare else real + [dummy] * (padded - len(real))
            for histogram, share in histogram_law(messages or [dummy]).items():
                key = (bare, there[1:] if bare else 0, there[0] if bare else 0, histogram)
                total[key] = total.get(key, 0) + chance * share
        return total

    for held in itertools.combinations_with_replacement(range(n_buckets), n_users - 1):
        for x, y in itertools.permutations(range(n_buckets), 2):
            worst = max(worst, hockey_stick(law(x, held), law(y, held), epsilon))
    return worst


def laplace_pair(epsilon0, epsilon, first, second, cells):
    """Values of L at quantiles of the blanket law (equal chances), for Laplace noise, by the densities themselves."""
    u = (np.arange(cells) + 0.5) / cells
    w = 0.5 - np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5)) / epsilon0
    ratio = [np.exp(epsilon0 * (np.abs(w - 0.5) - np.abs(w - x))) for x in (0, 1)]
    return 1 - first + first * ratio[0] - math.exp(epsilon) * (1 - second + second * ratio[1])


def laplace_padded(epsilon0, epsilon, first, second, blankets, cells=4000):
    """``E[(L_1 + ... + L_m)_+] / m`` for m = 1 or 2 by quantiles."""
    values = np.sort(laplace_pair(epsilon0, epsilon, first, second, cells))
    if blankets == 1:
        return float(np.maximum(values, 0).mean())
    sums = np.append(np.cumsum(values[::-1])[::-1], 0.0)
    start = np.searchsorted(values, -values, side="right")
    return float((sums[start] + values * (cells - start)).sum()) / cells**2 / 2


def counts(fair, biased, chance):
    """Law of ``Bin(fair, 1/2) + Bin(biased, chance)`` by convolution, in 40 digits."""
    law = [mpf(1)]
    for p in [mpf(1) / 2] * fair + [mpf(chance)] * biased:
        law = [
            (law[j] * (1 - p) if j < len(law) else mpf(0)) + (law[j - 1] * p if j else mpf(0))
            for j in range(len(law) + 1)
        ]
    return law


def count_delta(fair, biased, chance, epsilon):
    """Hockey-stick of the count against its mirror image, by all counts; the larger of both directions."""
    one, two = counts(fair, biased, chance), counts(fair, biased, 1 - mpf(chance))
    e = mp.exp(mpf(epsilon))
    return max(mp.fsum(max(a - e * b, mpf(0)) for a, b in zip(*pair, strict=True)) for pair in ((one, two), (two, one)))
