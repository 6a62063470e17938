"""Balls of the rows on splitting into shares: small worlds listed, and the rules' formulas."""

import math
from fractions import Fraction
from itertools import combinations, product

from balls.arithmetic import fitted
from balls.of_splitting import failure, small_world
from balls.rows.recorded import encloses
from flint import arb


@encloses("cloak:alg-1/smaller", "cloak:claim-10/four")
def one_swap(modulus: int, n_messages: int, n_users: int = 2) -> arb:
    others = (0,) * (n_users - 2)
    return small_world(modulus, n_messages, (0, 0, *others), (1, modulus - 1, *others), 0.0)


@encloses("cloak:neigh/reveals")
def sums_are_told(modulus: int, n_messages: int, inputs_a: list[int], inputs_b: list[int]) -> int:
    """All messages add up to the sum of the inputs, so that different sums are distinguished with certainty."""
    assert sum(inputs_a) % modulus != sum(inputs_b) % modulus
    return 1


@encloses("cloak:alg-1/floor-doubles")
def lost_to_rounding(grid: int) -> int:
    """Quotient and product are each the double next to the exact number, here by fractions."""
    found = 0
    for i in range(grid + 1):
        quotient = Fraction(float(Fraction(i, grid)))
        found += math.floor(Fraction(float(quotient * grid))) < i
    return found


@encloses("cloak:alg-2/overflow")
def fits_64_bits(n_users: int, n_messages: int, modulus: int) -> bool:
    """What is lost beyond 64 bits must be whole multiples of the modulus."""
    largest = n_users * n_messages * (modulus - 1)
    lost = (largest + 2**63) // 2**64
    return lost * 2**64 % modulus == 0


@encloses("cloak:lemma-1/pairwise")
def variance_over_independent(n_messages: int, inputs: list[int], target: int, modulus: int) -> Fraction:
    """Of the subsets that are nobody's own, over all ways to split."""
    moments, ways = [0, 0], 0
    for free in product(range(modulus), repeat=2 * (n_messages - 1)):
        shares = [list(free[: n_messages - 1]), list(free[n_messages - 1 :])]
        for own, value in zip(shares, inputs, strict=True):
            own.append((value - sum(own)) % modulus)
        places = [(user, i) for user in (0, 1) for i in range(n_messages)]
        count = sum(
            sum(shares[user][i] for user, i in part) % modulus == target
            for part in combinations(places, n_messages)
            if len({user for user, _ in part}) == 2
        )
        moments = [moments[0] + count, moments[1] + count**2]
        ways += 1
    variance = Fraction(moments[1], ways) - Fraction(moments[0], ways) ** 2
    return variance / ((math.comb(2 * n_messages, n_messages) - 2) * (Fraction(1, modulus) - Fraction(1, modulus**2)))


@encloses("cloak:lemma-1/three")
def others_over_needed(n_messages: int) -> arb:
    return (math.comb(2 * n_messages, n_messages) - 2) / (arb(4) ** n_messages / (2 * arb(n_messages).sqrt()))


@encloses("cloak:thm-2/from-lemma-1")
def least_failure(n_users: int) -> arb:
    """Of a smoothness of almost 1; the first term rises from so many messages on that are tried."""
    found = [failure(n_users**2 * 2**m + 1, m, 1 - fitted(1e-9)) for m in range(4, 80)]
    least = found[0]
    for one in found[1:]:
        least = least.min(one)
    return least


@encloses("cloak:thm-1/tail")
def printed_tail(epsilon: float, delta: float, n_users: int) -> arb:
    """All users add noise, since log(2 / delta) is more than there are."""
    rate = ((2 / fitted(delta)).log() / n_users).min(arb(1))
    return (-rate * n_users).exp() / (fitted(delta) / 2)
