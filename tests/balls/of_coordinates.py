"""Balls of FLAME's statements: composition, one coordinate, all of them, index privacy, attacks that count."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

from balls import of_shuffling as shuffling
from balls.arithmetic import binomial_law, fitted, hockey_stick, most, multiplied
from balls.judging import judges
from flint import arb, fmpq


def least_composed(epsilon: arb, times: arb, slack: arb) -> arb:
    """The smaller of basic and advanced composition."""
    return (epsilon * times).min(advanced(epsilon, times, slack))


def advanced(epsilon: arb, times: arb, slack: arb) -> arb:
    return epsilon * (-2 * times * slack.log()).sqrt() + times * epsilon * epsilon.expm1()


def sampled(epsilon: arb, rate: arb) -> arb:
    return (rate * epsilon.expm1()).log1p()


@judges(
    "flame:lem-2", {"epsilon": 0.1, "times": 7850}, {"epsilon": 1 / 3, "times": 3}, {"epsilon": 1e-9, "times": 10**9}
)
def basic(epsilon: float, times: int) -> arb:
    return fitted(epsilon) * times


STRONG = (
    {"epsilon": 0.01, "delta": 1e-9, "times": 7850, "slack_delta": 5e-6},
    {"epsilon": 1.5, "delta": 0, "times": 3, "slack_delta": 1e-3},
    {"epsilon": 1e-5, "delta": 1e-12, "times": 10**6, "slack_delta": 1e-9},
)


@judges("flame:lem-3", *STRONG)
@judges("checkin:strong-drv", *STRONG)
def strong(epsilon: float, delta: float, times: int, slack_delta: float) -> dict[str, arb]:
    slack = fitted(slack_delta)
    return {"epsilon": advanced(fitted(epsilon), arb(times), slack), "delta": times * fitted(delta) + slack}


@judges("checkin:strong-kov", *STRONG)
def stronger(epsilon: float, delta: float, times: int, slack_delta: float) -> dict[str, arb]:
    e, slack = fitted(epsilon), fitted(slack_delta)
    drift = times * e * e.expm1() / (e.exp() + 1)
    spread = e * arb(2 * times).sqrt()
    first = drift + spread * (arb(1).exp() + arb(times).sqrt() * e / slack).log().sqrt()
    second = drift + spread * (-slack.log()).sqrt()
    return {"epsilon": (times * e).min(first).min(second), "delta": 1 - (1 - fitted(delta)) ** times * (1 - slack)}


@judges(
    "flame:lem-4",
    {"epsilon": 1.0, "delta": 1e-6, "sampled": 20, "population": 1000},
    {"epsilon": 5.0, "delta": 1e-9, "sampled": 999, "population": 1000},
)
def without_replacement(epsilon: float, delta: float, sampled: int, population: int) -> dict[str, arb]:
    rate = arb(sampled) / population
    return {"epsilon": (rate * fitted(epsilon).expm1()).log1p(), "delta": rate * fitted(delta)}


@judges(
    "flame:lem-1",
    {"n_users": 1000, "n_buckets": 2, "epsilon0": 0.01, "delta": 5.011872336e-6 / 7851},
    {"n_users": 10**6, "n_buckets": 100, "epsilon0": 3.0, "delta": 1e-8},
    {"n_users": 10**4, "n_buckets": 10, "epsilon0": 0.5, "delta": 0.9},
)
def shuffled_kary(n_users: int, n_buckets: int, epsilon0: float, delta: float) -> arb | float:
    c = (n_users - 1) / (fitted(epsilon0).exp() + (n_buckets - 1))
    found = most((14 * (2 / fitted(delta)).log() / c).sqrt(), 27 / c)
    return found if found <= 1 else math.inf


@judges(
    "flame:thm-1",
    {"dimension": 7850, "epsilon": 0.001, "delta": 6e-10},
    {"dimension": 3, "epsilon": 1.0, "delta": 1e-3},
)
def simple_vector(dimension: int, epsilon: float, delta: float) -> dict[str, arb]:
    d = arb(dimension)
    return {"epsilon": least_composed(fitted(epsilon), d, fitted(delta)), "delta": (d + 1) * fitted(delta)}


@judges(
    "flame:thm-3",
    {"n_buckets": 2, "epsilon0": 0.8, "padded": 1666, "sampling_rate": 0.02, "delta": 1e-9},
    {"n_buckets": 11, "epsilon0": 2.0, "padded": 100_000, "sampling_rate": 0.1, "delta": 1e-7},
)
def padded_coordinate(
    n_buckets: int, epsilon0: float, padded: int, sampling_rate: float, delta: float
) -> dict[str, arb | float]:
    rate = fitted(sampling_rate)
    spread = 14 * (2 * rate / fitted(delta)).log() * (fitted(epsilon0).exp() + (n_buckets - 1))
    before = (spread / (padded - 1)).sqrt()
    if before > 1:
        return {"epsilon_unsampled": math.inf, "epsilon": math.inf}
    return {"epsilon_unsampled": before, "epsilon": sampled(before, rate)}


@judges("flame:thm-4", {"kept": 157, "epsilon": 0.0022, "delta": 1e-8}, {"kept": 2.5, "epsilon": 0.9, "delta": 1e-3})
def double_vector(kept: float, epsilon: float, delta: float) -> dict[str, arb]:
    times = 2 * fitted(kept)
    return {"epsilon": least_composed(fitted(epsilon), times, fitted(delta)), "delta": (times + 1) * fitted(delta)}


@judges(
    "flame:def-3",
    {"sampling_rate": 0.02, "index_privacy": 3.125},
    {"sampling_rate": 0.02, "index_privacy": 50},
    {"sampling_rate": 0.3, "index_privacy": 1},
)
def multiples(sampling_rate: float, index_privacy: float) -> arb:
    rate, ratio = fitted(sampling_rate), fitted(index_privacy)
    return most(1 / (ratio * rate), ratio / (ratio - 1 + rate))


@judges(
    "flame:thm-5",
    {"n_users": 1000, "padded": 333, "sampling_rate": 0.02},
    {"n_users": 1000, "padded": 39, "sampling_rate": 0.02},
    {"n_users": 12345, "padded": 4567, "sampling_rate": 0.0625},
)
def index_privacy(n_users: int, padded: int, sampling_rate: float) -> dict[str, arb | float]:
    rate = Fraction(sampling_rate)
    # A rate such as 0.02 is meant as the decimal that it is written as.
    reached = math.floor(padded / (n_users * Fraction(str(sampling_rate))))
    if reached == 1:
        return {"multiples": 1, "index_privacy": math.inf}
    exact = arb(fmpq(rate.numerator, rate.denominator))
    return {"multiples": reached, "index_privacy": most(arb(1), 1 / (reached * exact))}


def counted(fair: int, biased: int, chance: arb, ratio: arb) -> arb:
    """Hockey-stick divergence of ``Bin(fair, 1/2) + Bin(biased, chance)`` from the same with the other chance.

    The likelihood ratio rises, so that the best set is a tail; the tail of a sum is a mean over the few.
    """
    law, above = binomial_law(fair, arb(1) / 2), [arb(0)] * (fair + 2)
    for k in range(fair, -1, -1):
        above[k] = above[k + 1] + law[k]
    few, other = binomial_law(biased, chance), binomial_law(biased, 1 - chance)

    def at(threshold: int) -> arb:
        tails = [above[min(max(threshold - i, 0), fair + 1)] for i in range(biased + 1)]
        more, less = (sum((p * tail for p, tail in zip(law, tails, strict=True)), arb(0)) for law in (few, other))
        return more - ratio * less

    low, high = (fair + biased) // 2, fair + biased
    while high - low > 2:
        third = (high - low) // 3
        left, right = low + third, high - third
        low, high = (left, high) if at(left) < at(right) else (low, right)
    return most(arb(0), *(at(threshold) for threshold in range(low, high + 1)))


@judges(
    "flame:topk-lower",
    {"kept": 2, "padded": 5, "epsilon0": 1.0, "epsilon": 0.3},
    {"kept": 5, "padded": 20, "epsilon0": 0.5, "epsilon": 0.5},
    {"kept": 3, "padded": 12, "epsilon0": 2.0, "delta": 1e-3},
    curve=True,
    close=1e-9,
    reach=lambda inputs: inputs["kept"] * inputs["padded"] <= 100_000,
)
def counting(kept: float, padded: int, epsilon0: float, epsilon: float) -> arb:
    users = math.floor(kept)
    chance = 1 - (-fitted(epsilon0) / 2).exp() / 2
    return counted(users * (padded - 1), users, chance, fitted(epsilon).exp())


@judges(
    "flame:weighed",
    {"n_users": 2, "kept": 1, "padded": 2, "epsilon0": 1.0, "epsilon": 0.2},
    {"n_users": 7, "kept": 1, "padded": 2, "epsilon0": 2.0, "epsilon": 0.5},
    {"n_users": 2, "kept": 1, "padded": 2, "epsilon0": 0.5, "delta": 0.05},
    curve=True,
    close=None,
    reach=lambda inputs: (inputs["kept"], inputs["padded"]) == (1, 2),
)
def both_messages(n_users: int, kept: float, padded: int, epsilon0: float, epsilon: float) -> arb:
    """All that two messages of one bag give away, E[(1 - e^epsilon (Z + Z') / 2)_+] with Z the ratio of the two laws.

    Z is e^-epsilon0 from 1 on, e^epsilon0 up to 0, and falls between, while the density rises: cells from both sides.
    """
    cells, budget = 4000, fitted(epsilon0)
    low, high, least = (-budget).exp(), budget.exp(), 2 * (-fitted(epsilon)).exp()

    def ratio(at: arb) -> arb:
        return (budget * (1 - 2 * at)).exp()

    def room(limit: arb) -> arb:
        """E[(limit - Z)_+]: the atom at 1, what lies between, the atom at 0."""
        if not limit > low:
            return arb(0)
        found = (limit - low) / 2
        start = max(arb(0), (1 - limit.log() / budget) / 2)  # from here on Z is below the limit
        found += limit * (1 - (budget * (start - 1)).exp()) / 2 - ((-budget * start).exp() - low) / 2
        return found + max(arb(0), limit - high) * low / 2

    def inner(at: arb) -> arb:
        return room(least - ratio(at))

    weights = [
        ((budget * (arb(k + 1) / cells - 1)).exp() - (budget * (arb(k) / cells - 1)).exp()) / 2 for k in range(cells)
    ]
    sums = [sum((weight * inner(arb(k + end) / cells) for k, weight in enumerate(weights)), arb(0)) for end in (0, 1)]
    atoms = room(least - low) / 2 + room(least - high) * low / 2
    return (atoms + sums[0].union(sums[1])) * fitted(epsilon).exp() / 2


@judges(
    "flame:full-bags",
    {"n_users": 10, "kept": 2, "padded": 3, "epsilon0": 1.0, "epsilon": 0.3},
    {"n_users": 40, "kept": 5, "padded": 6, "epsilon0": 0.5, "epsilon": 0.2},
    {"n_users": 40, "kept": 5, "padded": 6, "epsilon0": 0.5, "delta": 0.01},
    curve=True,
    close=1e-8,
    reach=lambda inputs: inputs["kept"] * inputs["padded"] <= 1000,
)
def full_bags(n_users: int, kept: float, padded: int, epsilon0: float, epsilon: float) -> arb:
    """Messages above one half, of which the others fill as many bags as they can with the opposite of the victim's."""
    users = math.floor(kept)
    full = min(users, (n_users - 1) * users // (2 * padded)) if n_users > padded else 0
    low = (-fitted(epsilon0) / 2).exp() / 2
    high, moved = 1 - low, arb(padded) / (padded + 1) * (1 - 2 * low)
    apart, quiet = users - full, [((users - full) * (padded - 1), arb(1) / 2)]
    first = [*quiet, (apart, high), (full * (padded - 1), low), (full, low + moved), (full * padded, high)]
    other = [*quiet, (apart, low), (full * padded, low), (full * (padded - 1), high), (full, high - moved)]
    one, two = (reduce(multiplied, (binomial_law(n, chance) for n, chance in parts)) for parts in (first, other))
    return hockey_stick(one, two, fitted(epsilon))


@judges(
    "flame:account",
    {"protocol": "simple", "dimension": 50, "n_users": 1000, "epsilon0": 0.2, "delta": 1e-5, "bound": "hoeffding",
     "route": "paper"},
    {"protocol": "double", "dimension": 40, "kept": 4, "padded": 500, "n_users": 1000, "epsilon0": 0.5, "delta": 1e-5,
     "bound": "bennett", "route": "paper"},
    close=1e-10,
    reach=lambda inputs: inputs["route"] != "sound" and inputs["bound"] != "blanket",
)  # fmt: skip
def vector(
    protocol: str, dimension: int, n_users: int, epsilon0: float, delta: float, bound: str, route: str,
    kept: float = 0, padded: int = 0, inclusion: str = "independent", overflow: str = "none",
) -> arb:  # fmt: skip
    """The printed routes, with one coordinate's bound in closed form; its epsilon is found by bisection."""
    count = arb(dimension) if protocol == "simple" else 2 * fitted(kept)
    rate = fitted(kept) / dimension if route == "paper" and protocol != "simple" else arb(1)
    share = fitted(delta) / (count + 1)
    messages = n_users if protocol == "simple" else padded
    curve = {"hoeffding": shuffling.hoeffding, "bennett": shuffling.bennett, "withdrawn": shuffling.withdrawn}[bound]
    one = shuffling.least_epsilon(
        lambda epsilon: curve(randomizer="laplace", epsilon0=epsilon0, n_users=messages, epsilon=epsilon),
        share / rate,
        epsilon0,
    )
    return least_composed(sampled(one, rate), count, share)


@judges(
    "flame:account",
    {"protocol": "topk", "dimension": 50, "n_users": 100, "kept": 5, "padded": 20, "epsilon0": 0.5, "delta": 1e-3,
     "bound": "blanket", "route": "sound"},
    {"protocol": "topk", "dimension": 50, "n_users": 100, "kept": 10, "padded": 100, "epsilon0": 0.3, "delta": 1e-5,
     "bound": "bennett", "route": "sound"},
    close=None,
    ledger=False,
)  # fmt: skip
def attacked(kept: float, padded: int, epsilon0: float, delta: float, **others: object) -> arb:
    """What is certified is not less than what counting messages gives away."""
    low, high = 0.0, 10.0
    while low < (middle := (low + high) / 2) < high and high - low > 1e-6:
        found = counting(kept, padded, epsilon0, middle)
        low, high = (middle, high) if found > fitted(delta) else (low, middle)
    return arb(low).union(arb(high))


# --- many messages counted --------------------------------------------------------------------------------------------


def window(n: int, chance: arb, below: float = 12, above: float = 12) -> tuple[int, list[arb]]:
    """The first count, and the chances from there on, of a binomial law but for its far ends.

    In halves of the square root of n, beyond which Hoeffding's bound leaves exp(-x^2 / 2): of 12 that is e^-72.
    """
    mean, spread = n * float(chance.mid()), math.sqrt(n) / 2
    low, high = max(0, int(mean - below * spread)), min(n, int(mean + above * spread) + 1)
    term = (shuffling.log_choose(n, low) + low * chance.log() + (n - low) * (1 - chance).log()).exp()
    law, odds = [], chance / (1 - chance)
    for k in range(low, high + 1):
        law.append(term)
        term = term * odds * (n - k) / (k + 1)
    return low, law


def upper_tails(law: Sequence[arb], beyond: arb) -> list[arb]:
    found = [beyond]
    for chance in reversed(law):
        found.append(found[-1] + chance)
    return found[::-1]


def counted_epsilon(fair: int, biased: int, epsilon0: float, delta: float, chance: arb | None = None) -> arb:
    """Messages above one half: fair ones, and the victim's, which are so with one chance or the other."""
    chance = 1 - (-fitted(epsilon0) / 2).exp() / 2 if chance is None else chance
    return threshold_epsilon((fair, arb(1) / 2), biased, (chance, 1 - chance), delta)


def threshold_epsilon(crowd: tuple[int, arb], own: int, chances: tuple[arb, arb], delta: float) -> arb:
    """The largest epsilon that a threshold of a count gives: log((P(N >= c) - delta) / P(N' >= c)).

    The count is that of a crowd and of one's own, the same in number, with two chances.
    """
    size, chance = crowd
    middle, spread = size * float(chance.mid()), math.sqrt(size * float((chance * (1 - chance)).mid()))
    apart = own * float((chances[0] - chances[1]).mid())
    halves = math.sqrt(size) / 2 / spread  # Hoeffding's deviations are wider than those of a rare event
    reach = 12 + 2 * apart / spread / halves  # to the thresholds, and from them to what the other law needs
    first, law = window(size, chance, 6, reach)
    left_out = 2 * (-(fitted(reach) ** 2) / 2).exp() * arb(0, 1)
    tails = upper_tails(law, left_out)

    def at(threshold: int, few: Sequence[tuple[int, list[arb]]], missing: arb) -> arb:
        sums = []
        for start, part in few:
            places = [threshold - start - i - first for i in range(len(part))]
            assert places[-1] >= 0 or first == 0
            terms = (p * tails[min(max(place, 0), len(law))] for p, place in zip(part, places, strict=True))
            sums.append(sum(terms, missing))
        more, less = sums
        return ((more - fitted(delta)) / less).log() if more > fitted(delta) else arb("-inf")

    rough = [window(own, one, 6, 6) for one in chances]
    low = int(middle + own * float(chances[0].mid()) + spread)
    high = low + int(7 * spread)
    while high - low > 2:
        third = (high - low) // 3
        left, right = at(low + third, rough, arb(0)), at(high - third, rough, arb(0))
        rising = left < right and right.is_finite()
        low, high = (low + third, high) if rising else (low, high - third)
    wide = [window(own, one, reach, reach) for one in chances]
    return max((at(c, wide, left_out) for c in range(low, high + 1)), key=lambda ball: float(ball.mid()))


@judges(
    "flame:account",
    close=None,
    reach=lambda inputs: (
        inputs["route"] == "sound" and (inputs["protocol"] != "double" or inputs.get("inclusion") == "exact")
    ),
)
def never_below_the_count(
    protocol: str, epsilon0: float, delta: float, n_users: int, dimension: int = 0, kept: int = 0, padded: int = 0,
    **others: object,
) -> arb:  # fmt: skip
    """All messages above one half counted, of all coordinates or, for SS-Topk, of those that all users report."""
    biased = dimension if protocol == "simple" else int(kept)
    fair = {"simple": dimension * (n_users - 1), "topk": biased * (padded - 1), "double": dimension * padded - biased}
    return counted_epsilon(fair[protocol], biased, epsilon0, delta)
