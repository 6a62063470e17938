"""Balls of the rows on FLAME: counts of messages, numbers of indices, padded bags, and what a formula comes to."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations, pairwise
from typing import Any

from balls.arithmetic import binomial_law, choose, fitted, gaussian_excess, hockey_stick, multiplied, positive
from balls.of_coordinates import counted_epsilon, sampled, window
from balls.of_shuffling import hidden, mass_of
from balls.rows.on_blanket import best_sum, cell_error
from balls.rows.recorded import encloses
from flint import arb

# --- counting --------------------------------------------------------------------------------------------------------


@encloses("flame:claim-0.24/topk-disjoint", "flame:claim-0.91/lower", "flame:claim-0.24/subset-lower", side="lower")
def certainly_lost(protocol: str, epsilon0: float, delta: float, **sizes: int) -> arb:
    if protocol == "simple":
        fair, biased = sizes["dimension"] * (sizes["n_users"] - 1), sizes["dimension"]
    elif protocol == "disjoint":
        fair, biased = sizes["kept"] * (2 * sizes["padded"] - 1), sizes["kept"]
    else:
        fair, biased = sizes["dimension"] * sizes["padded"] - sizes["kept"], sizes["kept"]
    return counted_epsilon(fair, biased, epsilon0, delta)


@encloses("flame:claim-0.24/boost", side="lower")
def subset(dimension: int, kept: int, padded: int, epsilon0: float, delta: float) -> arb:
    return counted_epsilon(kept * (-(-dimension * padded // kept) - 1), kept, epsilon0, delta)


@encloses("flame:thm-4/own-numbers", side="lower")
def own_numbers(dimension: int, kept: int, padded: int, epsilon0: float, delta: float) -> arb:
    """Binary response in 50 of all coordinates, at the delta of the vector."""
    stays = 1 / (1 + (-fitted(epsilon0)).exp())
    return counted_epsilon(dimension * padded - kept, kept, epsilon0, (2 * kept + 1) * delta, stays)


@encloses("flame:cor-2/every-dimension", side="lower")
def growth(n_users: int, epsilon0: float, delta: float, start: float, stop: float) -> arb:
    """Slope against the dimension of what is certainly lost over what the corollary puts into its O."""
    points = [int(start), int(math.sqrt(start * stop)), int(stop)]
    ratios = []
    for d in points:
        lost = counted_epsilon(d * (n_users - 1), d, epsilon0, delta)
        ratios.append(lost / (fitted(epsilon0) * fitted(epsilon0).exp() * (d / fitted(delta)).log() * arb(d).sqrt()))
    return slope(points, ratios)


def slope(points: Sequence[float], values: Sequence[arb]) -> arb:
    """Of a line through logarithms, by least squares."""
    x, y = [fitted(point).log() for point in points], [value.log() for value in values]
    mean = sum(x, arb(0)) / len(x)
    over = sum(((a - mean) * b for a, b in zip(x, y, strict=True)), arb(0))
    return over / sum(((a - mean) ** 2 for a in x), arb(0))


@encloses("flame:alg-2/whole-messages", side="lower")
def best_of_all(kept: int, vectors: int, epsilon0: float, epsilon: float) -> arb:
    """The largest number of entries above one half of all messages, of which one is the user's."""
    chance = 1 - (-fitted(epsilon0) / 2).exp() / 2
    below = []
    for one in (arb(1) / 2, chance, 1 - chance):
        total, sums = arb(0), []
        for p in binomial_law(kept, one):
            total += p
            sums.append(total)
        below.append(sums)
    laws = []
    for own in below[1:]:
        most_at = [a ** (vectors - 1) * b for a, b in zip(below[0], own, strict=True)]
        laws.append([most_at[0], *(b - a for a, b in pairwise(most_at))])
    return hockey_stick(laws[0], laws[1], fitted(epsilon))


@encloses("flame:full-bags/tenth", side="lower")
def full_bags(n_users: int, kept: int, padded: int, epsilon0: float, epsilon: float) -> arb:
    """As in :mod:`balls.of_coordinates`, of laws without their far ends, which count with their chance."""
    full = (n_users - 1) * kept // (2 * padded) if n_users > padded else 0
    full = min(kept, full)
    low = (-fitted(epsilon0) / 2).exp() / 2
    high, moved, apart = 1 - low, arb(padded) / (padded + 1) * (1 - 2 * low), kept - full
    quiet = (apart * (padded - 1), arb(1) / 2)
    sides = [
        [quiet, (apart, high), (full * (padded - 1), low), (full, low + moved), (full * padded, high)],
        [quiet, (apart, low), (full * padded, low), (full * (padded - 1), high), (full, high - moved)],
    ]
    laws, starts = [], []
    for parts in sides:
        windows = [window(n, chance) for n, chance in parts if n]
        starts.append(sum(start for start, _ in windows))
        laws.append(reduce(multiplied, (law for _, law in windows)))
    first = min(starts)
    last = max(start + len(law) for start, law in zip(starts, laws, strict=True))
    one, two = (
        [arb(0)] * (start - first) + law + [arb(0)] * (last - start - len(law))
        for start, law in zip(starts, laws, strict=True)
    )
    missing = sum((1 - sum(law, arb(0)) for law in (one, two)), arb(0))
    return hockey_stick(one, two, fitted(epsilon)) + abs(missing) * (1 + fitted(epsilon).exp()) * arb(0, 1)


# --- definitions -----------------------------------------------------------------------------------------------------


@encloses("flame:fig-1/no-trusted-party")
def told_sender(epsilon0: float, epsilon: float) -> arb:
    """Two Laplace densities a unit apart, rate epsilon0: their ratio falls to e^epsilon at a place between."""
    rate, e = fitted(epsilon0), fitted(epsilon)
    place = (1 - e / rate) / 2
    near, far = 1 - (-rate * place).exp() / 2, (-rate * (1 - place)).exp() / 2
    return near - e.exp() * far


@encloses("flame:def-2/single-outputs")
def spread_thin(outcomes: int, epsilon: float, delta: float) -> int:
    """Each label has a chance of at most delta, and all of them together are never seen of the other value."""
    assert arb(1) / outcomes <= fitted(delta)
    return 1


@encloses("flame:def-3/joint")
def sets_told(dimension: int, kept: int, multiples: int) -> arb:
    return choose(dimension, kept) / choose(kept * multiples, kept)


@encloses("flame:eq-1/unbiased")
def no_bias(values: list[float], n_levels: int, blanket_mass: float, lowest: int) -> bool:
    """The mean of a replacement against the b / 2 that is taken off for it."""
    drawn = range(lowest, n_levels + 1)
    return len(values) * Fraction(blanket_mass) * (Fraction(sum(drawn), len(drawn)) - Fraction(n_levels, 2)) == 0


@encloses("flame:lem-1/lower-condition")
def mass_where_it_begins(n_users: int, n_buckets: int, delta: float) -> arb:
    level = 14 * (2 / fitted(delta)).log()
    begins = (level * (n_buckets - 1) / (n_users - 1)).sqrt()
    return n_buckets * positive((level / begins**2).max(27 / begins)) / (n_users - 1)


@encloses("flame:alg-4/top-after-mapping")
def same_coordinates(update: list[float], kept: int, clip_norm: float) -> bool:
    values = [Fraction(str(value)) for value in update]
    mapped = [(value + Fraction(clip_norm)) / (2 * Fraction(clip_norm)) for value in values]

    def top(of: list[Fraction]) -> list[int]:
        return sorted(sorted(range(len(of)), key=lambda i: -abs(of[i]))[:kept])

    return top(values) == top(mapped)


# --- padding ---------------------------------------------------------------------------------------------------------


@encloses("flame:alg-3/top-choice-fits")
def all_alike(n_users: int, dimension: int, kept: int, padded: int) -> int:
    return max(0, n_users - padded)


@encloses("flame:alg-3/whole-vectors-always")
def whole_vectors(dimension: int, kept: int, n_users: int, padded: int) -> bool:
    return (dimension * padded - n_users * kept) % kept == 0


@encloses("flame:alg-3/filling")
def always_filled(missing: list[int], kept: int) -> bool:
    """Whether no order of choices ends with fewer coordinates that lack some than a dummy vector has."""
    places = [i for i, count in enumerate(missing) if count]
    if not places:
        return True
    if len(places) < kept:
        return False
    return all(
        always_filled([count - (i in part) for i, count in enumerate(missing)], kept)
        for part in combinations(places, kept)
    )


@encloses("flame:thm-5/room")
def overflows(n_users: int, rate: float, padded: int) -> arb:
    return sum(binomial_law(n_users, fitted(rate))[padded + 1 :], arb(0))


@encloses("flame:prop-1/with-dummies")
def deviation_growth(along: str, start: float, stop: float, fixed: dict[str, Any], share: float) -> arb:
    """Slope of the deviation of a padded sum, half of whose messages are dummies, uniform on the levels."""
    assert along == "padded"
    points = [start * (stop / start) ** (i / 6) for i in range(7)]
    found = []
    for point in points:
        padded, users = int(point), int(share * int(point))
        levels, mass, _ = best_sum(padded, **fixed)
        dummies = (padded - users) * arb(levels + 2) / (12 * levels * (1 - mass) ** 2)
        found.append((users * cell_error(1, levels, mass) + dummies).sqrt())
    return slope(points, found)


# --- index privacy ---------------------------------------------------------------------------------------------------


@encloses("flame:prop-2/strongest-fits")
def report_fits(dimension: int, kept: int) -> bool:
    return -(-dimension // kept) * kept <= dimension


@encloses("flame:prop-2/weakest")
def both_inequalities(dimension: int, kept: int, multiples: int, index_privacy: int) -> bool:
    """A reported index is a true one with chance 1 / l; before the report it was with chance k / d."""
    after, before, most = Fraction(1, multiples), Fraction(kept, dimension), Fraction(index_privacy)
    return after <= most * before and 1 - after >= (1 - before) / most


# --- Theorems 3 and 4, baselines -------------------------------------------------------------------------------------


@encloses("flame:thm-3/always-reported")
def surely_reported(padded: int, epsilon0: float, sampling_rate: float, delta: float) -> arb:
    """Delta of binary response among fair bits, at the epsilon that sampling would leave of its blanket's."""
    mass, allowed = mass_of("kary", epsilon0, 2), fitted(delta) / fitted(sampling_rate)
    low, high = 0.0, epsilon0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if hidden(epsilon0, mass, padded, middle) > allowed else (low, middle)
    epsilon = sampled(arb(low).union(arb(high)), fitted(sampling_rate))
    stays = 1 / (1 + (-fitted(epsilon0)).exp())
    law = [arb(0), *binomial_law(padded - 1, arb(1) / 2), arb(0)]
    one, two = ([c * law[k] + (1 - c) * law[k + 1] for k in range(padded + 1)] for c in (stays, 1 - stays))
    return hockey_stick(one, two, epsilon)


@encloses("flame:thm-4/double-count")
def one_of_many(dimension: int, epsilon0: float, padded: int) -> arb:
    """One coordinate of all is reported; of every other only fair bits are there.

    Coordinates fall into kinds by how many ones they show, and the likelihood of a kind is that of one bit more.
    """
    stays = 1 / (1 + (-fitted(epsilon0)).exp())
    fair = [choose(padded, k) / arb(2) ** padded for k in range(padded + 1)]
    law = [arb(0), *(choose(padded - 1, k) / arb(2) ** (padded - 1) for k in range(padded)), arb(0)]
    gains = [
        [(c * law[k] + (1 - c) * law[k + 1]) / fair[k] / dimension for k in range(padded + 1)]
        for c in (stays, 1 - stays)
    ]
    grown = (2 * sampled(fitted(epsilon0), arb(1) / dimension)).exp()
    worth = [a - grown * b for a, b in zip(*gains, strict=True)]

    def over(kind: int, left: int, total: arb, weight: arb) -> arb:
        if kind == padded:
            return weight * fair[kind] ** left * positive(total + left * worth[kind])
        found = arb(0)
        for count in range(left + 1):
            ways = weight * choose(left, count) * fair[kind] ** count
            found += over(kind + 1, left - count, total + count * worth[kind], ways)
        return found

    return over(0, dimension, arb(0), arb(1))


@encloses("flame:claim-20.53/dp-fl")
def classical(epsilon: float, delta: float, answers: str) -> arb:
    """Delta at the epsilon for which the noise sqrt(2 log(1.25 / delta)) / epsilon was chosen."""
    assert answers == "delta"
    noise = (2 * (arb(5) / 4 / fitted(delta)).log()).sqrt() / fitted(epsilon)
    return gaussian_excess(1 / noise, fitted(epsilon))
