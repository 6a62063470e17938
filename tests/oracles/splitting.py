"""Slow and obvious laws of noise in a sum: convolutions of many digits, and series term by term."""

from functools import cache, reduce

from mpmath import mp, mpf


def convolved(left, right):
    """Law of a sum; laws are mappings from whole numbers to masses."""
    total = {}
    for x, p in left.items():
        for y, q in right.items():
            total[x + y] = total.get(x + y, mpf(0)) + p * q
    return total


def two_sided_geometric(decay, reach):
    """All masses within ``reach``; what lies beyond is not there."""
    p = mpf(decay)
    return {x: (1 - p) / (1 + p) * p ** abs(x) for x in range(-reach, reach + 1)}


@cache
def thinned_sum(n_users, decay, rate, reach):
    """The sum of ``n_users`` numbers, each two-sided geometric with chance ``rate`` and else 0."""
    one = {x: mpf(rate) * mass for x, mass in two_sided_geometric(decay, reach).items()}
    one[0] += 1 - mpf(rate)
    return reduce(convolved, [one] * n_users)


@cache
def polya_sum(shares, decay, terms):
    """X - Y for negative binomial X, Y of this many shares of 1, from 0 to half the number of terms."""
    p, r = mpf(decay), mpf(shares)
    mass = [(1 - p) ** r]
    for j in range(terms):
        mass.append(mass[-1] * p * (r + j) / (j + 1))
    return {x: mp.fsum(mass[y] * mass[x + y] for y in range(terms - x)) for x in range(terms // 2)}


def hockey_stick(law, shift, epsilon):
    """Of a law moved by ``shift`` against the law itself, both ways; masses that are not listed are 0."""
    factor = mp.exp(mpf(epsilon))
    places = set(law) | {x + shift for x in law}
    pairs = [(law.get(x - shift, mpf(0)), law.get(x, mpf(0))) for x in places]
    return tuple(mp.fsum(max(a - factor * b, 0) for a, b in side) for side in (pairs, [(b, a) for a, b in pairs]))
