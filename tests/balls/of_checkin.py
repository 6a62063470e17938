"""Balls of the statements on check-in: Rényi sums over every count of clients, and what small rounds give away."""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from balls.arithmetic import binomial_law, binomial_start, choose, fitted, gaussian_excess, most, positive
from balls.judging import judges
from balls.of_coordinates import advanced, sampled
from balls.of_sampling import one_sampled
from balls.of_shuffling import clones_ball, clones_closed, histogram_law, table_of
from flint import arb

# --- Rényi divergences -----------------------------------------------------------------------------------------------


@judges("checkin:def-3", {"order": 8, "epsilon": 1.0}, {"order": 2, "epsilon": 1e-6}, {"order": 300, "epsilon": 2.0})
def pure(order: int, epsilon: float) -> arb:
    """The divergence of binary response, from its two probabilities."""
    e = fitted(epsilon).exp()
    p, q = e / (1 + e), 1 / (1 + e)
    return (p**order * q ** (1 - order) + q**order * p ** (1 - order)).log() / (order - 1)


@judges("checkin:lem-1", {"divergence": 0.1, "times": 12345}, {"divergence": 1 / 3, "times": 3})
def summed(divergence: float, times: int) -> arb:
    return fitted(divergence) * times


@judges(
    "checkin:lem-2",
    {"order": 8, "divergence": 0.25, "delta": 1e-5},
    {"order": 2, "divergence": 3.0, "delta": 1e-300},
    {"order": 5000, "divergence": 0.001, "delta": 0.01},
)
def converted(order: int, divergence: float, delta: float) -> arb:
    return epsilon_of(order, fitted(divergence), fitted(delta))


def epsilon_of(order: int, divergence: arb, delta: arb) -> arb:
    cost = -delta.log() + (order - 1) * (1 - arb(1) / order).log() - arb(order).log()
    return positive(divergence + cost / (order - 1))


@judges(
    "checkin:lem-3",
    {"order": 8, "epsilon": 1.0, "delta": 1e-5},
    {"order": 3, "epsilon": 0.1, "delta": 0.01},
    {"order": 40, "epsilon": 2.0, "delta": 1e-9},
    close=1e-9,
)
def least_renyi(order: int, epsilon: float, delta: float) -> arb:
    """The minimum of a convex function, where its slope changes sign."""
    e, d = fitted(epsilon).exp(), fitted(delta)

    def slope(r: arb) -> arb:
        left = (r / (r - d)) ** (order - 1) * (order + (1 - order) * r / (r - d))
        other = (1 - r) / (e - r + d)
        return left - other ** (order - 1) * (order + (1 - order) * other)

    low, high = d, arb(1)
    for _ in range(200):
        middle = arb(((low + high) / 2).mid()) if low > high / 4 else arb((low * high).sqrt().mid())
        middle = middle if low < middle < high else arb(((low + high) / 2).mid())
        found = slope(middle)
        if found < 0:
            low = middle
        elif found > 0:
            high = middle
        else:
            break
    r = low.union(high)
    value = r**order * (r - d) ** (1 - order) + (1 - r) ** order * (e - r + d) ** (1 - order)
    return positive(fitted(epsilon) + value.log() / (order - 1))


@judges(
    "checkin:lem-4",
    {"n_users": 10_000, "checkin_rate": 0.1, "slack": 0.1},
    {"n_users": 50, "checkin_rate": 0.9, "slack": 1},
)
def tails(n_users: int, checkin_rate: float, slack: float) -> dict[str, arb]:
    s = fitted(slack)
    exponent = s**2 * n_users * fitted(checkin_rate)
    return {"lower_tail": (-exponent / 2).exp(), "upper_tail": (-exponent / (2 + s)).exp()}


@judges(
    "checkin:lem-5",
    {"divergence": 4.0, "n_users": 1000, "checkin_rate": 0.125, "slack": 0.5},
    {"divergence": 0.1, "n_users": 64, "checkin_rate": 0.5, "slack": 0.25},
)
def split_mean(divergence: float, n_users: int, checkin_rate: float, slack: float) -> arb:
    d, s, mean = fitted(divergence), fitted(slack), fitted(checkin_rate) * n_users
    kept = ((1 - s) * mean).floor().unique_fmpz()
    assert kept is not None
    return d.exp() * (-(s**2) * mean / 2).exp() + (d / (int(kept) + 1)).exp()


@judges(
    "checkin:rem-4",
    {"order": 8, "checkin_rate": 0.01, "noise_std": 2.0},
    {"order": 2, "checkin_rate": 1e-9, "noise_std": 1.0},
    {"order": 64, "checkin_rate": 0.5, "noise_std": 0.7},
    close=1e-10,
)
def removal(order: int, checkin_rate: float, noise_std: float) -> arb:
    rate, noise = fitted(checkin_rate), fitted(noise_std)
    terms = (
        choose(order, j) * (1 - rate) ** (order - j) * rate**j * (arb(j * (j - 1)) / (2 * noise**2)).exp()
        for j in range(order + 1)
    )
    return sum(terms, arb(0)).log() / (order - 1)


BINARY = (
    {"order": 2, "epsilon0": 1.0, "n_users": 2, "checkin_rate": 0.3},
    {"order": 5, "epsilon0": 0.5, "n_users": 30, "checkin_rate": 0.25},
    {"order": 17, "epsilon0": 2.0, "n_users": 12, "checkin_rate": 0.7},
)


@judges("checkin:thm-1", *({**one, "inner": inner} for one in BINARY for inner in ("exact", "paper")), close=1e-10)
def binary_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float, inner: str) -> arb:
    e, rate = fitted(epsilon0).exp(), fitted(checkin_rate)
    law = binomial_law(n_users, rate)
    total = law[0]
    for k in range(1, n_users + 1):
        inside = arb(k) / n_users if inner == "exact" else rate
        seen = binomial_law(k, 1 / (1 + e))
        ratios = (1 + inside * (arb(c) / k * e + arb(k - c) / k / e - 1) for c in range(k + 1))
        total += law[k] * sum((p * r**order for p, r in zip(seen, ratios, strict=True)), arb(0))
    return total.log() / (order - 1)


@judges("checkin:thm-2", *({**one, "inner": "exact"} for one in BINARY), close=None, ledger=False)
@judges("checkin:thm-3", *BINARY, {**BINARY[1], "slack": 0.5}, close=None, ledger=False)
def binary_response(slack: float | None = None, inner: str = "exact", **others: Any) -> arb:
    """What binary response has bounds what is claimed for every randomizer from both sides."""
    return binary_renyi(inner="exact", **others)


@judges(
    "checkin:thm-3",
    {"order": 4, "epsilon0": 1.0, "n_users": 10**6, "checkin_rate": 0.01, "slack": 0.1},
    {"order": 2, "epsilon0": 0.2, "n_users": 100, "checkin_rate": 0.5},
    close=1e-10,
)
def lower_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float, slack: float | None = None) -> arb:
    e, mean = fitted(epsilon0).exp(), fitted(checkin_rate) * n_users

    def kept(s: arb) -> arb:
        return (1 - (-(s**2) * mean / (2 + s)).exp()) / (1 + s)

    share = kept(fitted(slack)) if slack is not None else most(*(kept(fitted(2 ** (-i / 32))) for i in range(801)))
    gain = share * choose(order, 2) * fitted(checkin_rate) ** 2 * (e - 1) ** 2 / (mean * e)
    return gain.log1p() / (order - 1)


Terms = Callable[[int, arb, arb], arb]


def shuffled_terms(epsilon0: float) -> Terms:
    """The j-th coefficient of k reports times the j-th power of a rate, after Girgis, Data, Diggavi.

    Of a k that is no whole number the whole part counts, but in the number of clones.
    """
    e = fitted(epsilon0).exp()
    wide = e - 1 / e

    def term(j: int, k: arb, rate: arb) -> arb:
        clones = told(((k - 1) / (2 * e)).floor()) + 1
        missed = wide**j * (-(k.floor() - 1) / (8 * e)).exp()
        if j == 2:
            return rate**2 * (4 * (e - 1) ** 2 / (clones * e) + missed)
        spread = j * (arb(j) / 2).gamma() * ((2 * wide**2 / clones).sqrt()) ** j
        return rate**j * (spread + missed)

    return term


def noisy_terms(noise_std: float) -> Terms:
    """The same of k noisy reports, after Wang, Balle, Kasiviswanathan."""
    leap = 4 / fitted(noise_std) ** 2

    def term(j: int, k: arb, rate: arb) -> arb:
        x = leap / k
        if j == 2:
            return rate**2 * (4 * x.expm1()).min(2 * x.exp())
        return rate**j * 2 * (arb(j * (j - 1)) / 2 * x).exp()

    return term


def split(terms: Terms, order: int, n_users: int, rate: arb, slack: arb, exact: bool, whole: bool) -> arb:
    """The moment minus 1 by splitting the count at ``(1 - slack)`` and ``(1 + slack)`` times its mean."""
    mean = n_users * rate
    weights = [(j, choose(order, j)) for j in range(2, order + 1)]

    def at(k: arb, inside: arb) -> arb:
        return sum((weight * terms(j, k, inside) for j, weight in weights), arb(0))

    low = told(((1 - slack) * mean).floor())
    if not exact:
        tail, kept = (-(slack**2) * mean / 2).exp(), arb(low) if whole else (1 - slack) * mean
        return tail * at(arb(1), rate) + at(kept + 1, rate) + (tail if whole else 0)
    high = min(told(((1 + slack) * mean).floor()), n_users)
    law = binomial_law(n_users, rate)
    pieces = [(1, low), (low + 1, high), (high + 1, n_users)]
    found = arb(0)
    for number, (first, last) in enumerate(pieces):
        # The lower tail counts 0 too.
        chance = sum((law[k] for k in range(0 if number == 0 else first, last + 1)), arb(0))
        if last >= first:
            found += chance * at(arb(first), arb(last) / n_users)
    return found


def told(value: arb) -> int:
    found = value.unique_fmpz()
    assert found is not None
    return int(found)


SPLIT = {"n_users": 400, "checkin_rate": 0.25, "slack": 0.5}


@judges(
    "checkin:thm-2",
    *({"order": 4, "epsilon0": 1.0, **SPLIT, "inner": inner} for inner in ("exact", "paper")),
    *({"order": 9, "epsilon0": 0.3, **SPLIT, "slack": 0.57, "inner": inner} for inner in ("exact", "paper")),
    close=1e-9,
    reach=lambda inputs: inputs.get("slack") is not None,
)
def shuffled_renyi(order: int, epsilon0: float, n_users: int, checkin_rate: float, inner: str, slack: float) -> arb:
    terms, exact = shuffled_terms(epsilon0), inner == "exact"
    rate = fitted(checkin_rate)
    return split(terms, order, n_users, rate, fitted(slack), exact, False).log1p() / (order - 1)


@judges(
    "checkin:eq-11",
    *({"order": 4, "noise_std": 1.0, **SPLIT, "inner": inner} for inner in ("exact", "paper")),
    *({"order": 12, "noise_std": 3.0, **SPLIT, "inner": inner} for inner in ("exact", "paper")),
    close=1e-9,
)
def split_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float, inner: str, slack: float) -> arb:
    terms, exact = noisy_terms(noise_std), inner == "exact"
    return split(terms, order, n_users, fitted(checkin_rate), fitted(slack), exact, True).log1p() / (order - 1)


CROWD = {"n_users": 600_000, "checkin_rate": 1e-3, "noise_std": 1.0}
SUMS = (
    {"order": 2, "n_users": 100, "checkin_rate": 0.1, "noise_std": 1.0},
    {"order": 8, "n_users": 300, "checkin_rate": 0.05, "noise_std": 4.0},
    {"order": 20, "n_users": 40, "checkin_rate": 0.5, "noise_std": 0.8},
    {"order": 4, "n_users": 1500, "checkin_rate": 0.4, "noise_std": 1.0},
)


@judges(
    "checkin:thm-4",
    *({**one, "inner": inner} for one in SUMS for inner in ("exact", "paper")),
    {**CROWD, "order": 12, "inner": "paper"},
    {**CROWD, "order": 8, "inner": "exact"},
    close=1e-9,
)
def summed_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float, inner: str) -> arb:
    terms, rate = noisy_terms(noise_std), fitted(checkin_rate)

    def at(k: int, inside: arb) -> arb:
        return sum((choose(order, j) * terms(j, arb(k), inside) for j in range(2, order + 1)), arb(0))

    return over_counts(n_users, rate, lambda k: at(k, arb(k) / n_users if inner == "exact" else rate), at) / (order - 1)


@judges("checkin:rdp-exact", *SUMS, {**CROWD, "order": 2}, {**CROWD, "order": 8}, close=1e-9)
def pair_renyi(order: int, n_users: int, checkin_rate: float, noise_std: float) -> arb:
    leap = 2 / fitted(noise_std) ** 2

    def at(k: int, rate: arb) -> arb:
        return sum(
            (
                choose(order, j) * (1 - rate) ** (order - j) * rate**j * (leap * (j * (j - 1)) / k).expm1()
                for j in range(2, order + 1)
            ),
            arb(0),
        )

    def all_there(k: int, rate: arb) -> arb:
        return (leap * (order * (order - 1)) / k).expm1()

    return over_counts(n_users, fitted(checkin_rate), lambda k: at(k, arb(k) / n_users), all_there) / (order - 1)


def over_counts(n_users: int, rate: arb, moment: Callable[[int], arb], most_beyond: Callable[[int, arb], arb]) -> arb:
    """Logarithm of 1 and the mean of what a moment exceeds 1 by, over the number of clients.

    Far above the mean the counts are left to their chance and to the largest moment of a client who is always there.
    """
    last = min(n_users, 2 * told((n_users * rate).ceil()) + 100)
    total, seen = arb(0), arb(0)
    for k, chance in enumerate(binomial_start(n_users, rate, last)):
        seen += chance
        if k:
            total += chance * moment(k)
    if last < n_users:
        total += (1 - seen) * most_beyond(last, arb(1)) * arb(0, 1)
    return total.log1p()


@judges("checkin:thm-4", *({**one, "inner": "exact"} for one in SUMS[:3]), close=None, ledger=False)
@judges("checkin:eq-11", *({**one, "inner": "exact"} for one in SUMS[:3]), close=None, ledger=False)
def of_the_pair(inner: str, **others: Any) -> arb:
    """The data sets of one vector and its opposite have this much."""
    return pair_renyi(**others)


# --- baselines -------------------------------------------------------------------------------------------------------


def least_where(curve: Callable[[arb], arb], delta: arb, high: float, steps: int = 80) -> arb:
    """Where a falling delta is met: certain at both ends of the ball."""
    low, top = arb(0), arb(high)
    if curve(low) <= delta:
        return low
    for _ in range(steps):
        middle = arb(((low + top) / 2).mid())
        found = curve(middle)
        if found > delta:
            low = middle
        elif found <= delta:
            top = middle
        else:
            break
    return low.union(top)


@judges(
    "checkin:baseline-distributed",
    *(
        {"n_users": 1000, "checkin_rate": 0.1, "noise_std": 1.0, "rounds": 10, "delta": 1e-6, "route": route}
        for route in ("kov", "drv")
    ),
    {"n_users": 300, "checkin_rate": 0.5, "noise_std": 4.0, "rounds": 100, "delta": 1e-5},
    close=1e-9,
    reach=lambda inputs: inputs["n_users"] < 5000,
)
def baseline_distributed(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str = "kov"
) -> arb:
    """The counts between which all rounds lie; the Gaussian mechanism for the least; sampling; composition."""
    law, quarter = binomial_law(n_users, fitted(checkin_rate)), fitted(delta) / 4
    share = quarter / rounds
    below, low = arb(0), 0
    while below + law[low] <= share:
        below += law[low]
        low += 1
    above, high = arb(0), n_users
    while above + law[high] <= share:
        above += law[high]
        high -= 1
    rate = arb(high) / n_users
    shift = 2 / arb(low).sqrt() / fitted(noise_std)
    epsilon = sampled(least_where(lambda at: gaussian_excess(shift, at), share / rate, 100.0), rate)
    return composed(epsilon, rounds, quarter, route)


def composed(epsilon: arb, rounds: int, slack: arb, route: str) -> arb:
    if route == "drv":
        return advanced(epsilon, arb(rounds), slack)
    drift = rounds * epsilon * (epsilon / 2).tanh()
    spread = epsilon * arb(2 * rounds).sqrt()
    first = drift + spread * (arb(1).exp() + arb(rounds).sqrt() * epsilon / slack).log().sqrt()
    return (rounds * epsilon).min(first).min(drift + spread * (-slack.log()).sqrt())


@judges(
    "checkin:baseline-shuffled",
    {"epsilon0": 1.0, "n_users": 10**6, "checkin_rate": 0.001, "rounds": 1000, "delta": 1e-7},
    {"epsilon0": 0.5, "n_users": 10**5, "checkin_rate": 0.1, "rounds": 10, "delta": 1e-6, "route": "closed"},
    close=1e-9,
    reach=lambda inputs: inputs.get("slack_delta") is None and inputs.get("route", "closed") == "closed",
)
def baseline_shuffled(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, route: str = "closed"
) -> arb:
    messages = round(n_users * checkin_rate)
    half = fitted(delta) / 2
    rate = arb(messages) / n_users
    each = fitted(epsilon0)
    allowed = half / rounds / rate
    if each <= (messages / (16 * (2 / allowed).log())).log():
        each = each.min(clones_ball(each, messages, allowed))
    return composed(sampled(each, rate), rounds, half, "kov").min(rounds * fitted(epsilon0))


@judges(
    "checkin:sec-4.1-generic",
    {"epsilon0": 1.0, "n_users": 10**4, "checkin_rate": 0.01, "rounds": 10**3, "delta": 1e-5, "slack_delta": 1e-9},
    close=1e-8,
)
def generic_route(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, slack_delta: float
) -> arb:
    """Over the orders that are tried: every whole one to 64, then steps of an eighth of an octave."""
    messages = round(n_users * checkin_rate)
    each = fitted(epsilon0)
    if epsilon0 <= math.log(messages / (16 * math.log(2 / slack_delta))):
        each = each.min(clones_closed(epsilon0, messages, slack_delta))
    epsilon, failure = sampled(each, fitted(checkin_rate)), fitted(checkin_rate) * fitted(slack_delta)
    orders = (*range(2, 65), *(int(64 * 2 ** (i / 8)) for i in range(1, 45)))
    found = arb("inf")
    for order in orders:
        divergence = least_renyi(order, float(epsilon.mid()), float(failure.mid()))
        found = found.min(epsilon_of(order, rounds * divergence, fitted(delta)))
    return found


# --- one round and two -----------------------------------------------------------------------------------------------


def noisy_round(n_users: int, checkin_rate: float, noise_std: float, epsilon: arb) -> arb:
    """Given the number k of clients: two normal laws, sampled at the rate k / n."""
    law, noise = binomial_law(n_users, fitted(checkin_rate)), fitted(noise_std)
    terms = (
        law[k] * one_sampled(arb(k) / n_users, 2 / (arb(k).sqrt() * noise), epsilon) for k in range(1, n_users + 1)
    )
    return sum(terms, arb(0))


ONCE = (
    {"n_users": 60, "checkin_rate": 0.25, "noise_std": 1.0, "rounds": 1, "delta": 1e-4},
    {"n_users": 20, "checkin_rate": 0.5, "noise_std": 3.0, "rounds": 1, "delta": 1e-3},
)


@judges(
    "checkin:distributed",
    *({**one, "route": route} for one in ONCE for route in ("pld", "pld-exact")),
    close=1e-3,
    ledger=False,
)
def distributed_once(n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str) -> arb:
    return least_where(lambda at: noisy_round(n_users, checkin_rate, noise_std, at), fitted(delta), 60.0)


Law = Sequence[arb]


def shuffled_round(
    n_users: int, checkin_rate: float, epsilon0: float, n_buckets: int, held: tuple[int, ...]
) -> list[arb]:
    """Law of what a round of k-ary response shows; to stay away is one more message."""
    rate = fitted(checkin_rate)
    table = [tuple(rate * chance for chance in column) for column in table_of("kary", epsilon0, n_buckets)]
    law = histogram_law([*table, (1 - rate,) * n_buckets], held)
    assert len(held) == n_users
    return [law[key] for key in sorted(law)]


@cache
def shuffled_pairs(n_users: int, checkin_rate: float, epsilon0: float, n_buckets: int) -> list[tuple[Law, Law]]:
    """Both laws, where all others hold the same of three values, and where they hold two."""
    third = min(2, n_buckets - 1)
    held = {*((x,) * (n_users - 1) for x in (0, 1, third)), (third,) + (1,) * (n_users - 2)}
    found = []
    for others in sorted(held):
        one, two = (shuffled_round(n_users, checkin_rate, epsilon0, n_buckets, (value, *others)) for value in (0, 1))
        found.append((one, two))
    return found
