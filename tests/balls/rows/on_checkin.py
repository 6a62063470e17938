"""Balls of the rows on self check-in: rounds of few clients, their moments, and formulas over them."""

import math
from itertools import pairwise
from typing import Any

from balls.arithmetic import both_ways, fitted, most
from balls.of_checkin import (
    binary_renyi,
    generic_route,
    least_renyi,
    least_where,
    pair_renyi,
    pure,
    shuffled_round,
    shuffled_terms,
    split,
    summed_renyi,
)
from balls.of_coordinates import threshold_epsilon
from balls.of_rounds import normal_rounds
from balls.of_shuffling import log_choose
from balls.rows.recorded import encloses
from flint import arb


@encloses("checkin:lem-3/leak")
def leaked(order: int, delta: float) -> float:
    """An outcome that only one value sends, with some chance: every divergence of an order above 1 is infinite."""
    assert order > 1 and delta > 0  # noqa: PT018, both are of the row
    return float("inf")


@encloses("checkin:lem-3/pure")
def over_equation_4(order: int, epsilon: float, delta: float) -> arb:
    return pure(order, epsilon) / least_renyi(order, epsilon, delta)


def listed_renyi(order: int, n_users: int, checkin_rate: float, epsilon0: float) -> arb:
    """Divergence of one round of binary response, all others equal, from the law of what is seen; the larger order."""
    one, two = (shuffled_round(n_users, checkin_rate, epsilon0, 2, (value, *(0,) * (n_users - 1))) for value in (0, 1))
    found = []
    for p, q in ((one, two), (two, one)):
        total = sum((a**order * b ** (1 - order) for a, b in zip(p, q, strict=True)), arb(0))
        found.append(total.log() / (order - 1))
    return most(*found)


@encloses("checkin:thm-1/inner-two", "checkin:thm-1/inner-four")
def theorem_1_over(order: int, n_users: int, checkin_rate: float, epsilon0: float, inner: str) -> arb:
    over = binary_renyi(order, epsilon0, n_users, checkin_rate, inner)
    return over / listed_renyi(order, n_users, checkin_rate, epsilon0)


@encloses("checkin:thm-4/inner-small")
def noisy_over(compute: str, inner: str, **sizes: Any) -> arb:
    assert compute == "checkin:thm-4"
    return pair_renyi(**sizes) / summed_renyi(inner=inner, **sizes)


@encloses("checkin:thm-4/nobody")
def without_nobody(order: int, n_users: int, checkin_rate: float, noise_std: float) -> arb:
    whole = ((order - 1) * summed_renyi(order, n_users, checkin_rate, noise_std, "paper")).exp()
    return whole - (1 - fitted(checkin_rate)) ** n_users


@encloses("checkin:shuffled/all-equal")
def over_all_alike(n_users: int, checkin_rate: float, epsilon0: float, epsilon: float) -> arb:
    """The largest delta over what the others hold, over that where they hold the same."""
    found = []
    for ones in range(n_users):
        others = (1,) * ones + (0,) * (n_users - 1 - ones)
        laws = [shuffled_round(n_users, checkin_rate, epsilon0, 2, (value, *others)) for value in (0, 1)]
        found.append(both_ways(*laws, fitted(epsilon)))
    return most(*found) / most(found[0], found[-1])


@encloses("checkin:rem-4/own-noise")
def over_removal(order: int, others: int, rate: float, noise_std: float) -> float:
    """With the client's own noise a normal law is wider, and a high power of the ratio has no mean.

    The exponent of x^2 in the mean of the j-th power of N(1, wide) over N(0, narrow) is -(j / wide - (j - 1) / narrow)
    / 2, which must be negative.
    """
    narrow = others * fitted(noise_std) ** 2
    wide = narrow + fitted(noise_std) ** 2
    assert rate > 0
    assert order * narrow <= (order - 1) * wide
    return float("inf")


@encloses("checkin:thm-2/rounds-of-ten", "checkin:thm-2/rounds-of-hundred")
def order_two_over(compute: str, n_users: int, checkin_rate: float, epsilon0: float, inner: str) -> arb:
    """Binary response has log(1 + rate / n (e - 2 + 1/e)) at order 2; the least over the slacks that are tried."""
    assert (compute, inner) == ("checkin:thm-2", "paper")
    e, rate, mean = fitted(epsilon0).exp(), fitted(checkin_rate), n_users * checkin_rate
    slacks = [arb(i) / 64 for i in range(65)]
    slacks += [arb(2) ** (-arb(i) / 8) for i in range(9, 1 + max(0, math.ceil(4 * math.log2(4 * mean))))]
    terms = shuffled_terms(epsilon0)
    found = split(terms, 2, n_users, rate, slacks[0], False, False)
    for slack in slacks[1:]:
        found = found.min(split(terms, 2, n_users, rate, slack, False, False))
    return (rate / n_users * (e - 2 + 1 / e)).log1p() / found.log1p()


@encloses("checkin:sec-4.1-generic/below-truth", side="lower")
def generic_over_counted(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, slack_delta: float
) -> arb:
    """Over what the number of ones of all rounds gives away, the others holding 0: no more than all the views do."""
    rate, lie = fitted(checkin_rate), 1 / (1 + fitted(epsilon0).exp())
    others = ((n_users - 1) * rounds, rate * lie)
    lost = threshold_epsilon(others, rounds, (rate * (1 - lie), rate * lie), delta)
    return generic_route(epsilon0, n_users, checkin_rate, rounds, delta, slack_delta) / lost


def blocks(n_users: int, rate: arb, parts: int) -> tuple[list[tuple[arb, int, int]], arb]:
    """Numbers of clients in blocks, with their chances, and what is left beyond six deviations."""
    mean, spread = n_users * float(rate.mid()), math.sqrt(n_users * float(rate.mid()))
    edges = [int(mean + spread * (12 * i / parts - 6)) for i in range(parts + 1)]
    first, chances = edges[0], []
    here = (log_choose(n_users, first) + first * rate.log() + (n_users - first) * (1 - rate).log()).exp()
    for k in range(first, edges[-1]):
        chances.append(here)
        here = here * rate / (1 - rate) * (n_users - k) / (k + 1)
    found = [(sum(chances[a - first : b - first], arb(0)), a, b - 1) for a, b in pairwise(edges)]
    return found, 1 - sum(chances, arb(0))


def noisy_epsilon(n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, above: bool) -> arb:
    """Clients who are all alike but one; of a block of counts the mildest is taken, or the worst.

    More clients sample more and make more noise.  The fewest sample and the most make noise, or the other way round: a
    smaller rate is a client's message left out now and then, and more noise is noise added, which both tell less.  What
    is beyond the blocks tells nothing, or all.
    """
    found, beyond = blocks(n_users, fitted(checkin_rate), 8)
    parts = []
    for chance, fewest, greatest in found:
        sampled, noisy = (greatest, fewest) if above else (fewest, greatest)
        parts.append((chance, arb(sampled) / n_users, 2 / (arb(noisy).sqrt() * fitted(noise_std))))
    told = arb(0) if above else abs(beyond)
    pairs = normal_rounds(parts, told, rounds, 2.0**-8, 1.0)
    return least_where(lambda at: most(*(one.delta(at, above) for one in pairs)), fitted(delta), 1.0, steps=24)


@encloses("checkin:distributed/dropout", side="upper")
def with_dropouts(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, dropout: float
) -> arb:
    """What is certainly lost where only some of the clients' reports arrive, over what all of them lose at most."""
    given = {"n_users": n_users, "noise_std": noise_std, "rounds": rounds, "delta": delta}
    lost = noisy_epsilon(checkin_rate=checkin_rate * (1 - dropout), above=False, **given)
    return lost / noisy_epsilon(checkin_rate=checkin_rate, above=True, **given)
