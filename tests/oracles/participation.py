"""Random participation by its definitions: actual mixtures of Gaussians, many digits; shares no code with the library.

Everything is one-dimensional, in units of the noise: ``mu`` is the clipping norm.
"""

import math

from mpmath import mp, mpf

Mixture = list[tuple[mpf, mpf]]


def tail(x):
    """Mass of a standard normal law beyond x."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def binomial(n, q):
    """All probabilities of a binomial law, from products."""
    q = mpf(q)
    return [mp.binomial(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1)]


def before(epsilon, rate):
    """Alpha before sampling at a rate."""
    return 1 + mp.expm1(mpf(epsilon)) / mpf(rate)


def gaussian(mu, alpha):
    """Divergence of two Gaussians, the printed formula."""
    mu, alpha = mpf(mu), mpf(alpha)
    cut = mp.log(alpha) / mu + mu / 2
    return tail(cut - mu) - alpha * tail(cut)


def sampled(known, hidden, mu, epsilon):
    """Delta of the Gaussian mechanism sampled at a known and at a hidden rate."""
    return mpf(known) * mpf(hidden) * gaussian(mu, before(epsilon, hidden))


def density(mixture, x):
    return sum(w * mp.npdf(x, m, 1) for w, m in mixture)


def larger(p, q, n_records, mu) -> tuple[Mixture, Mixture]:
    """Outputs with and without the record when all gradients of the client are equal."""
    p, mu = mpf(p), mpf(mu)
    many, few = binomial(n_records, q), binomial(n_records - 1, q)
    with_it = [(p * w, k * mu) for k, w in enumerate(many)] + [(1 - p, mpf(0))]
    without = [(p * w, k * mu) for k, w in enumerate(few)] + [(1 - p, mpf(0))]
    return with_it, without


def given_count(p, q, j, mu, sign=1) -> tuple[Mixture, Mixture]:
    """The same when j others are drawn for certain, and the record points their way, or against them."""
    p, q, mu = mpf(p), mpf(q), mpf(mu)
    with_it = [(1 - p, mpf(0)), (p * (1 - q), j * mu), (p * q, (j + sign) * mu)]
    return with_it, [(1 - p, mpf(0)), (p, j * mu)]


def divergence(one: Mixture, other: Mixture, alpha, steps=600):
    """Positive part of ``one - alpha other``: its zeros by scanning and halving, its mass from the error function.

    The mass is flat in the zeros, so that these are found in doubles.
    """
    parts = [(float(w), float(m)) for w, m in one] + [(-float(alpha * w), float(m)) for w, m in other]

    def excess(x):
        return sum(w * math.exp(-((x - m) ** 2) / 2) for w, m in parts)

    means = [m for _, m in parts]
    grid = [min(means) - 15 + (max(means) - min(means) + 30) * i / steps for i in range(steps + 1)]
    signs = [excess(x) > 0 for x in grid]
    edges = [mp.ninf] if signs[0] else []
    for left, right, was, now in zip(grid, grid[1:], signs, signs[1:], strict=False):
        if was != now:
            edges.append(halved(excess, left, right, 50))
    edges += [mp.inf] if signs[-1] else []
    mass = mpf(0)
    for left, right in zip(edges[::2], edges[1::2], strict=True):
        for mixture, factor in ((one, 1), (other, -alpha)):
            mass += factor * sum(w * (tail(left - m) - tail(right - m)) for w, m in mixture)
    return mass


def halved(function, left, right, steps=None):
    """A zero between two signs."""
    rising = function(right) > 0
    for _ in range(steps or mp.prec + 20):
        middle = (left + right) / 2
        left, right = (left, middle) if (function(middle) > 0) == rising else (middle, right)
    return (left + right) / 2


def one_against(alpha_parts: Mixture):
    """``N(0)`` against weighted Gaussians, all to its left or at it: positive right of one crossing."""
    mu = min((-m for w, m in alpha_parts if w > 0 and m < 0), default=mpf(1))
    if sum(w for w, m in alpha_parts if m == 0) >= 1:
        return mpf(0)

    def excess(x):
        return 1 - sum(w * mp.exp(m * x - m * m / 2) for w, m in alpha_parts)

    reach = mp.log(1 + sum(w for w, _ in alpha_parts)) / mu + 100 / mu
    low, high = -reach, reach
    cut = halved(excess, low, high)
    return tail(cut) - sum(w * tail(cut - m) for w, m in alpha_parts)


def outer_term(p, q, j, mu, epsilon):
    p, mu, alpha = mpf(p), mpf(mu), before(epsilon, mpf(p) * mpf(q))
    c0 = (1 - p) * (1 - 1 / alpha)
    return one_against([(alpha * (1 - c0), -mu), (alpha * c0, -(j + 1) * mu)])


def outer(p, q, n_records, mu, epsilon):
    """Larger data set first, the number of others given away."""
    chances = binomial(n_records - 1, q)
    return mpf(p) * mpf(q) * sum(b * outer_term(p, q, j, mu, epsilon) for j, b in enumerate(chances))


def add_term(p, q, j, mu, epsilon):
    p, q, mu = mpf(p), mpf(q), mpf(mu)
    alpha = before(epsilon, p * q)
    a0, a1 = (1 - p) * (1 - 1 / alpha), p * (1 - q) * (1 - 1 / alpha)
    return one_against([(alpha * a1, mpf(0)), (alpha * (1 - a0 - a1), -mu), (alpha * a0, -j * mu)])


def add(p, q, n_records, mu, epsilon):
    """Smaller data set first, likewise."""
    chances = binomial(n_records - 1, q)
    return mpf(p) * mpf(q) * sum(b * add_term(p, q, j, mu, epsilon) for j, b in enumerate(chances))


def inner(p, q, n_records, mu, epsilon):
    """One mixture inside the second measure."""
    p, mu, alpha = mpf(p), mpf(mu), before(epsilon, mpf(p) * mpf(q))
    c0 = (1 - p) * (1 - 1 / alpha)
    chances = binomial(n_records - 1, q)
    far = [(alpha * c0 * b, -(j + 1) * mu) for j, b in enumerate(chances)]
    return p * mpf(q) * one_against([(alpha * (1 - c0), -mu), *far])


def aligned(p, q, n_records, mu, epsilon):
    """The exact divergence of the pair with equal gradients, one crossing."""
    one, other = larger(p, q, n_records, mu)
    alpha = mp.exp(mpf(epsilon))

    def excess(x):
        return density(one, x) - alpha * density(other, x)

    mu = mpf(mu)
    reach = n_records * mu + mp.log(before(epsilon, mpf(p) * mpf(q))) / mu + 2
    cut = halved(excess, -1 - reach, reach)
    return sum(w * tail(cut - m) for w, m in one) - alpha * sum(w * tail(cut - m) for w, m in other)
