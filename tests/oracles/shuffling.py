"""Slow, obvious answers to hold the library against; nothing here comes from it.

Small cases are sums over every outcome, in 40 digits; large ones an inversion in 40 digits on another contour.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
from mpmath import mp, mpf
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import binom


def kary_rows(epsilon0, n_buckets):
    """Laws of the message, one row per input: shape (n_buckets, n_buckets)."""
    p = mp.exp(mpf(epsilon0))
    return [[(p if x == y else 1) / (p + n_buckets - 1) for y in range(n_buckets)] for x in range(n_buckets)]


def histograms(total, parts):
    """Every way to write ``total`` as ``parts`` counts."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def histogram_law(rows):
    """Law of the histogram of independent messages, one row of probabilities per user."""
    law = {(0,) * len(rows[0]): mpf(1)}
    for row in rows:
        grown = {}
        for counts, chance in law.items():
            for bucket, step in enumerate(row):
                key = (*counts[:bucket], counts[bucket] + 1, *counts[bucket + 1 :])
                grown[key] = grown.get(key, 0) + chance * step
        law = grown
    return law


def hockey_stick(first, second, epsilon):
    return mp.fsum(max(chance - mp.exp(mpf(epsilon)) * second.get(key, 0), mpf(0)) for key, chance in first.items())


def shuffled(rows, others, pair, epsilon):
    """Exact divergence of the shuffled messages when the other users hold ``others``."""
    rest = [rows[x] for x in others]
    return hockey_stick(histogram_law([rows[pair[0]], *rest]), histogram_law([rows[pair[1]], *rest]), epsilon)


def positive_part(values, chances, n_users):
    """``E[(X_1 + ... + X_n)_+]`` for independent atomic X, by every histogram of the atoms."""
    total = mpf(0)
    for counts in histograms(n_users, len(values)):
        excess = mp.fsum(c * v for c, v in zip(counts, values, strict=True))
        if excess > 0:
            ways = math.factorial(n_users) // math.prod(math.factorial(c) for c in counts)
            total += ways * mp.fprod(p**c for p, c in zip(chances, counts, strict=True)) * excess
    return total


def kary_blanket_atoms(epsilon0, n_buckets, epsilon):
    """Values and chances of one user's contribution (blanket or not), and the blanket mass."""
    p, e = mp.exp(mpf(epsilon0)), mp.exp(mpf(epsilon))
    low = 1 / (p + n_buckets - 1)
    mass = n_buckets * low
    values = [mass * (p - e), mass * (1 - e * p), mass * (1 - e), mpf(0)]
    return values, [low, low, (n_buckets - 2) * low, 1 - mass], mass


def kary_blanket(epsilon0, n_buckets, n_users, epsilon):
    """Blanket divergence of k-ary response by the explicit sum over (h1, h2, h3)."""
    values, chances, mass = kary_blanket_atoms(epsilon0, n_buckets, epsilon)
    keep = [i for i, chance in enumerate(chances) if chance > 0]
    return positive_part([values[i] for i in keep], [chances[i] for i in keep], n_users) / (mass * n_users)


def kary_others(epsilon0, n_buckets, n_users, epsilon):
    """Exact divergence when all others hold one value, worst value: by every histogram."""
    rows = kary_rows(epsilon0, n_buckets)
    return max(shuffled(rows, [z] * (n_users - 1), (0, 1), epsilon) for z in range(min(3, n_buckets)))


def contour(values, chances, n_users, points=1500, shift=1.15):
    """``E[S_+]`` by inversion in 40 digits, on a line to the right of the saddle point, out to 40 widths."""
    pairs = [(mpf(v), mpf(c)) for v, c in zip(values, chances, strict=True) if c > 0]

    def moments(t):
        terms = [c * mp.exp(t * v) for v, c in pairs]
        total = mp.fsum(terms)
        mean = mp.fsum(x * v for x, (v, _) in zip(terms, pairs, strict=True)) / total
        return mean, mp.fsum(x * v * v for x, (v, _) in zip(terms, pairs, strict=True)) / total - mean**2

    low = high = mpf(1) / mp.sqrt(n_users * mp.fsum(c * v * v for v, c in pairs))
    while n_users * moments(high)[0] < 2 / high:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if n_users * moments(middle)[0] < 2 / middle else (low, middle)
    t = low * shift
    width = 1 / mp.sqrt(n_users * moments(t)[1] + 2 / t**2)
    step = 40 * width / points

    def term(i):
        s = mp.mpc(t, i * step)
        growth = mp.fsum(c * mp.expm1(s * v) for v, c in pairs)
        return mp.re(mp.exp(n_users * mp.log(1 + growth)) / s**2)

    return step / mp.pi * (term(0) / 2 + mp.fsum(term(i) for i in range(1, points)))


def kary_blanket_far(epsilon0, n_buckets, n_users, epsilon, points=1500):
    values, chances, mass = kary_blanket_atoms(epsilon0, n_buckets, epsilon)
    return contour(values, chances, n_users, points) / (mass * n_users)


def binary_in_whole_numbers(odds, ratio, n_users):
    """For every number of ones among the others the divergence in both directions: every count, in fractions.

    ``odds`` and ``ratio`` are the fractions that stand for the exponentials of the local budget and of epsilon.
    """
    a, b, r, s = odds.numerator, odds.denominator, ratio.numerator, ratio.denominator
    others = [math.comb(n_users - 1, i) * a ** (n_users - 1 - i) * b**i for i in range(n_users)]
    whole, found = s * (a + b) ** n_users, []
    for _ in range(n_users):
        alone, extra = [*others, 0], [0, *others]
        one, zero = ([u * x + v * y for x, y in zip(alone, extra, strict=True)] for u, v in ((b, a), (a, b)))
        found.append(
            tuple(
                Fraction(sum(max(s * x - r * y, 0) for x, y in zip(first, second, strict=True)), whole)
                for first, second in ((one, zero), (zero, one))
            )
        )
        # One zero less, one one more.
        quotient, before = [], 0
        for x in others[:-1]:
            before = (x - b * before) // a
            quotient.append(before)
        others = [b * x + a * y for x, y in zip([*quotient, 0], [0, *quotient], strict=True)]
    return found


def binary_equal(epsilon0, n_users, epsilon):
    """Exact shuffled binary response when all others hold 0, in 40 digits, by the tail of one binomial."""
    p, e, others = mp.exp(mpf(epsilon0)), mp.exp(mpf(epsilon)), n_users - 1
    q = 1 / (1 + p)
    best = mpf(0)
    gain, loss = (1 - q) - e * q, e * (1 - q) - q
    for chance in (q, 1 - q):
        odds = chance / (1 - chance)
        # P(T = j-1) gain - P(T = j) loss >= 0 for the message counts j that speak for the first data set.
        ratio = loss / gain
        start = int(mp.floor(n_users * ratio * odds / (1 + ratio * odds)))
        start = min(max(start, 0), others)
        point = mp.exp(
            mp.loggamma(n_users)
            - mp.loggamma(start + 1)
            - mp.loggamma(n_users - start)
            + start * mp.log(chance)
            + (others - start) * mp.log(1 - chance)
        )
        tail, term = mpf(0), point
        for j in range(start + 1, others + 1):
            term *= odds * (n_users - j) / j
            tail += term
            if term < tail * mpf(10) ** -25:
                break
        best = max(best, gain * point - (loss - gain) * tail)
    return best


def binary_all(epsilon0, n_users, epsilon):
    """Divergence for every count m of ones, one direction, in double precision; accurate to 1e-12 of its largest terms.

    The law of the count is grown from m = 0 by one user at a time: divide out a zero, multiply in a one.
    """
    q = 1 / (1 + math.exp(epsilon0))
    found = []
    for ones in range(n_users):
        left = binom.pmf(np.arange(ones + 1), ones, 1 - q)
        right = binom.pmf(np.arange(n_users - ones), n_users - 1 - ones, q)
        others = np.convolve(left, right)
        alone, extra = np.append(others, 0.0), np.insert(others, 0, 0.0)
        first, second = (1 - q) * extra + q * alone, q * extra + (1 - q) * alone
        found.append(float(np.maximum(first - math.exp(epsilon) * second, 0).sum()))
    return np.array(found)


def laplace_cdf(w, epsilon0, center):
    gap = epsilon0 * abs(w - center)
    return 0.5 * math.exp(-gap) if w < center else 1 - 0.5 * math.exp(-gap)


def laplace_loss(w, epsilon0, epsilon, center):
    """Likelihood ratio of a user at 0 less ``exp(epsilon)`` times that of a user at 1, against one at ``center``."""
    first, second = (math.exp(epsilon0 * (abs(w - center) - abs(w - end))) for end in (0, 1))
    return first - math.exp(epsilon) * second


def laplace_positive(level, epsilon0, epsilon, center):
    """``E(L + level)_+`` by three distribution functions at the message where the loss crosses ``-level``."""
    if laplace_loss(0, epsilon0, epsilon, center) + level <= 0:
        return 0.0
    if laplace_loss(1, epsilon0, epsilon, center) + level >= 0:
        return 1 - math.exp(epsilon) + level
    w = brentq(lambda v: laplace_loss(v, epsilon0, epsilon, center) + level, 0, 1, xtol=1e-15, rtol=1e-14)
    at_0, at_1, here = (laplace_cdf(w, epsilon0, place) for place in (0, 1, center))
    return at_0 - math.exp(epsilon) * at_1 + level * here


def laplace_two(epsilon0, epsilon, center, mass):
    """Blanket divergence (``mass`` 1: exact divergence, the other user at ``center``) for two users, by quadrature."""
    ends = [laplace_loss(w, epsilon0, epsilon, center) for w in (0, 1)]
    middle = laplace_loss(center, epsilon0, epsilon, center)

    def crossing(target):
        inside = ends[1] < target < ends[0]
        return [brentq(lambda w: laplace_loss(w, epsilon0, epsilon, center) - target, 0, 1)] if inside else []

    kinks = sorted({0.0, 1.0, center, *(w for value in (*ends, middle) for w in crossing(-value))})
    both = 0.5 * math.exp(-epsilon0 * center) * laplace_positive(ends[0], epsilon0, epsilon, center)
    both += 0.5 * math.exp(-epsilon0 * (1 - center)) * laplace_positive(ends[1], epsilon0, epsilon, center)
    for low, high in itertools.pairwise(kinks):
        both += quad(
            lambda w: (
                epsilon0
                / 2
                * math.exp(-epsilon0 * abs(w - center))
                * laplace_positive(laplace_loss(w, epsilon0, epsilon, center), epsilon0, epsilon, center)
            ),
            low,
            high,
            epsabs=0,
            epsrel=1e-12,
        )[0]
    one = laplace_positive(0, epsilon0, epsilon, center)
    return (2 * mass * (1 - mass) * one + mass**2 * both) / (2 * mass)


def gaussian_at_least(noise_std, n_users, epsilon, rate=1.0):
    r"""Logarithm of a delta that all others at 1 exceed: by convexity, each of them replaced by its mean.

    ``E[S_+] >= E[(L_1 + (n-1) E L)_+]``, where the loss of a user who is there is log-normal: the price of a call.
    """
    spread = 1 / noise_std
    log_strike = np.logaddexp(math.log(n_users) + math.log(math.expm1(epsilon)), 0.0) if epsilon else 0.0
    first = spread / 2 - log_strike / spread
    kept, paid = log_ndtr(first), log_strike + log_ndtr(first - spread)
    if not rate or paid - kept > -1e-9:  # nobody is there, or the digits have cancelled
        return -math.inf
    return math.log(rate / n_users) + kept + math.log(-math.expm1(paid - kept))
