"""Slow definitions for the closed forms: high precision, explicit sums, no code shared with the library."""

import itertools
import math

import mpmath as mp


def table_constants(kind, epsilon0, epsilon, n_buckets=None):
    """Blanket mass, range, maximum and second moment of L, from the laws of the randomizers."""
    p, e = mp.exp(mp.mpf(epsilon0)), mp.exp(mp.mpf(epsilon))
    if kind == "kary":
        stays, goes = p / (p + n_buckets - 1), 1 / (p + n_buckets - 1)
        mass, omega = n_buckets * goes, mp.mpf(1) / n_buckets
        values = [(stays - e * goes) / omega, (goes - e * stays) / omega, (goes - e * goes) / omega]
        chances = [omega, omega, 1 - 2 * omega]
        second = sum(c * v**2 for c, v in zip(chances, values, strict=True))
        return mass, values[0] - values[1], values[0], second
    if kind == "laplace":
        half = mp.mpf(epsilon0) / 2
        top, bottom = mp.exp(half) - e * mp.exp(-half), mp.exp(-half) - e * mp.exp(half)
        second = (e**2 + 1) / 3 * (2 * mp.exp(half) + 1 / p) - 2 * e * (2 * mp.exp(-half) - 1 / p)
        return mp.exp(-half), top - bottom, top, second
    second = p * (e**2 + 1) - 2 * e / p**3
    return 1 / p, (e + 1) * (p - 1 / p), p * (1 - e / p**2), second


def laplace_second_moment(epsilon0, epsilon):
    """The integral of L squared against the blanket density, piece by piece."""
    epsilon0, e = mp.mpf(epsilon0), mp.exp(mp.mpf(epsilon))

    def density(center):
        return lambda y: epsilon0 / 2 * mp.exp(-epsilon0 * abs(y - center))

    def integrand(y):
        return (density(0)(y) - e * density(1)(y)) ** 2 / density(mp.mpf(1) / 2)(y)

    return mp.quad(integrand, [-mp.inf, 0, mp.mpf(1) / 2, 1, mp.inf])


def hoeffding_delta(kind, n, epsilon0, epsilon, n_buckets=None):
    """Blanket user by blanket user: binomial weights, one Hoeffding term each."""
    mass, width, _, _ = table_constants(kind, epsilon0, epsilon, n_buckets)
    a = mp.expm1(mp.mpf(epsilon))
    return _averaged(n, mass, lambda m: width**2 / (4 * a) * mp.exp(-2 * m * a**2 / width**2), first=0)


def bennett_delta(kind, n, epsilon0, epsilon, n_buckets=None, withdrawn=False):
    """The same with one Bennett term each; the withdrawn form divides every term by a and m."""
    mass, _, top, second = table_constants(kind, epsilon0, epsilon, n_buckets)
    a = mp.expm1(mp.mpf(epsilon))
    u = a * top / second
    exponent = second / top**2 * ((1 + u) * mp.log(1 + u) - u)

    def term(m):
        return top / mp.log(1 + u) * mp.exp(-m * exponent) / (a * m if withdrawn else 1)

    return _averaged(n, mass, term, first=1)


def _averaged(n, mass, term, first):
    total = mp.mpf(0)
    for m in range(first, n + 1):
        total += mp.binomial(n, m) * mass**m * (1 - mass) ** (n - m) * term(m)
    return total / (mass * n)


def log_hoeffding(kind, n, epsilon0, epsilon, n_buckets=None):
    """Closed form at any number of users, as printed, at 50 digits."""
    mass, width, _, _ = table_constants(kind, epsilon0, epsilon, n_buckets)
    a = mp.expm1(mp.mpf(epsilon))
    return mp.log(width**2 / (4 * a * mass * n)) + n * mp.log1p(-mass * -mp.expm1(-2 * a**2 / width**2))


def log_bennett(kind, n, epsilon0, epsilon, n_buckets=None):
    mass, _, top, second = table_constants(kind, epsilon0, epsilon, n_buckets)
    u = mp.expm1(mp.mpf(epsilon)) * top / second
    x = mp.exp(-second / top**2 * ((1 + u) * mp.log(1 + u) - u))
    bracket = mp.exp(n * mp.log(1 - mass + mass * x)) - mp.exp(n * mp.log(1 - mass))
    return mp.log(top / (mass * n * mp.log(1 + u))) + mp.log(bracket)


def kary_blanket_delta(n, n_buckets, epsilon0, epsilon):
    """Truth behind both inequalities: counts of the two values and of the rest among the blanket users."""
    mass = n_buckets / (math.exp(epsilon0) + n_buckets - 1)
    keep, e = 1 - mass, math.exp(epsilon)
    first = keep * n_buckets + mass * (1 - e)
    second = mass * (1 - e) - keep * n_buckets * e
    rest = mass * (1 - e)
    total = 0.0
    for h1 in range(n + 1):
        for h2 in range(n - h1 + 1):
            for h3 in range((n - h1 - h2 if n_buckets > 2 else 0) + 1):
                idle = n - h1 - h2 - h3
                ways = math.factorial(n) // math.prod(map(math.factorial, (h1, h2, h3, idle)))
                chance = ways * (mass / n_buckets) ** (h1 + h2) * (mass * (1 - 2 / n_buckets)) ** h3 * keep**idle
                total += chance * max(h1 * first + h2 * second + h3 * rest, 0)
    return total / (mass * n)


def one_against_all_equal(n, epsilon0, epsilon):
    """Exact distance under shuffled binary response: all others hold 0, one user holds 0 or 1; both directions."""
    flip = 1 / (1 + math.exp(epsilon0))
    others = [
        math.exp(
            math.lgamma(n)
            - math.lgamma(j + 1)
            - math.lgamma(n - j)
            + j * math.log(flip)
            + (n - 1 - j) * math.log1p(-flip)
        )
        for j in range(n)
    ]

    def ones(chance):
        return [(others[j - 1] if j else 0) * chance + (others[j] if j < n else 0) * (1 - chance) for j in range(n + 1)]

    def beyond(p, q):
        return math.fsum(max(x - math.exp(epsilon) * y, 0) for x, y in zip(p, q, strict=True))

    return max(beyond(ones(1 - flip), ones(flip)), beyond(ones(flip), ones(1 - flip)))


def summation_mse(values, n_levels, mass):
    """Every tuple of messages in turn: the squared error of the unbiased estimate, averaged."""
    laws = []
    for x in values:
        low = math.floor(x * n_levels)
        law = [mass / (n_levels + 1)] * (n_levels + 1)
        law[low] += (1 - mass) * (1 - (x * n_levels - low))
        if low < n_levels:
            law[low + 1] += (1 - mass) * (x * n_levels - low)
        laws.append(law)
    total = 0.0
    for messages in itertools.product(range(n_levels + 1), repeat=len(values)):
        estimate = (sum(messages) / n_levels - len(values) * mass / 2) / (1 - mass)
        chance = math.prod(law[y] for law, y in zip(laws, messages, strict=True))
        total += chance * (estimate - sum(values)) ** 2
    return total


def least_rounding_error(hits):
    """Exact least of E[(X - R(X))^2] given the cells: every message sits at the nearest point of its cell."""
    k = len(hits)
    gaps = [[max(0.0, abs(a - b) / k - 1 / (2 * k)) for b in range(k)] for a in range(k)]
    return sum(hits[a][b] * gaps[a][b] ** 2 for a in range(k) for b in range(k)) / k
