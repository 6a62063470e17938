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
