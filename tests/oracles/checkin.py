"""Self check-in by its definitions: many digits, explicit sums, every outcome listed; no code of the library."""

import itertools
from collections import defaultdict

from mpmath import mp, mpf


def binomial(n, rate):
    """All probabilities of a binomial law, from products."""
    rate = mpf(rate)
    return [mp.binomial(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(n + 1)]


def renyi(first, second, order):
    """Divergence of two laws given as mappings from outcome to probability."""
    assert set(first) <= set(second)
    return mp.log(mp.fsum(p**order * second[x] ** (1 - order) for x, p in first.items() if p > 0)) / (order - 1)


# --- one noisy sum, and shuffled reports, given the number of clients -----------------------------------


def gaussian_excess(order, k, rate, std):
    """Moment minus 1 of a noisy sum of k clients, sampled at a rate: the general theorem with its constants put in."""
    rate, d = mpf(rate), lambda j: 2 * j / (k * mpf(std) ** 2)
    found = rate**2 * mp.binomial(order, 2) * min(4 * (mp.exp(d(2)) - 1), 2 * mp.exp(d(2)))
    return found + mp.fsum(2 * rate**j * mp.binomial(order, j) * mp.exp((j - 1) * d(j)) for j in range(3, order + 1))


def exact_gaussian_excess(order, k, rate, std):
    """Moment minus 1 of the mixture against the single Gaussian, multiplied out."""
    rate = mpf(rate)
    growth = 2 / (k * mpf(std) ** 2)
    return (
        mp.fsum(
            mp.binomial(order, j) * (1 - rate) ** (order - j) * rate**j * mp.exp(growth * j * (j - 1))
            for j in range(order + 1)
        )
        - 1
    )


def shuffle_excess(order, k, rate, epsilon0):
    """Moment minus 1 of k shuffled reports at a rate, term by term as printed."""
    e, r = mp.exp(mpf(epsilon0)), mpf(rate)
    bar = mp.floor((k - 1) / (2 * e)) + 1
    z = (e**2 - 1) / e
    found = 4 * mp.binomial(order, 2) * r**2 * (e - 1) ** 2 / (bar * e)
    found += mp.fsum(
        mp.binomial(order, j) * r**j * j * mp.gamma(mpf(j) / 2) * (2 * (e**2 - 1) ** 2 / (bar * e**2)) ** (mpf(j) / 2)
        for j in range(3, order + 1)
    )
    return found + ((1 + r * z) ** order - 1 - order * r * z) * mp.exp(-(k - 1) / (8 * e))


def over_counts(excess, n, rate, inner):
    """Mean over the number of clients; nobody adds nothing."""
    chances = binomial(n, rate)
    return mp.fsum(b * excess(k, mpf(k) / n if inner == "exact" else rate) for k, b in enumerate(chances) if k)


# --- printed bounds ---------------------------------------------------------------------------------------


def three_way(excess, n, rate, slack):
    """The repaired split with the exact mass of each part; that of no client at all goes with the first."""
    low, high = int(mp.floor((1 - mpf(slack)) * n * rate)), min(n, int(mp.floor((1 + mpf(slack)) * n * rate)))
    chances = binomial(n, rate)
    found = mpf(0)
    for first, last, mass in ((1, low, chances[: low + 1]), (low + 1, high, chances[low + 1 : high + 1])):
        found += mp.fsum(mass) * (excess(first, mpf(last) / n) if last >= first else 0)
    return found + (mp.fsum(chances[high + 1 :]) * excess(high + 1, mpf(1)) if high < n else 0)


# --- everything listed ------------------------------------------------------------------------------------


def shuffled_answers(data, epsilon0, rate):
    """Law of (number of clients, number of ones) when those who check in answer by binary response and are shuffled."""
    stays, found = mp.exp(mpf(epsilon0)) / (1 + mp.exp(mpf(epsilon0))), defaultdict(lambda: mpf(0))
    for coins in itertools.product((0, 1), repeat=len(data)):
        here = [bit for bit, coin in zip(data, coins, strict=True) if coin]
        chance = mpf(rate) ** len(here) * (1 - mpf(rate)) ** (len(data) - len(here))
        for said in itertools.product((0, 1), repeat=len(here)):
            same = sum(a == b for a, b in zip(said, here, strict=True))
            found[len(here), sum(said)] += chance * stays**same * (1 - stays) ** (len(here) - same)
    return dict(found)


def worst_binary(order, epsilon0, n, rate):
    """Largest divergence over all data sets of bits that differ in one place, both ways."""
    worst = mpf(0)
    for others in range(n):
        data = (1,) * others + (0,) * (n - 1 - others)
        one, two = (shuffled_answers((*data, bit), epsilon0, rate) for bit in (0, 1))
        worst = max(worst, renyi(one, two, order), renyi(two, one, order))
    return worst


def noisy_sums(data, other, order, rate, std):
    """Divergence of the (number of clients, noisy sum) of two data sets of numbers in [-1, 1], by quadrature."""
    found = (1 - mpf(rate)) ** len(data)
    for k in range(1, len(data) + 1):
        means = [[sum(c) for c in itertools.combinations(values, k)] for values in (data, other)]
        chance, wide = mpf(rate) ** k * (1 - mpf(rate)) ** (len(data) - k), mpf(std) * mp.sqrt(k)

        def integrand(x, means=means, wide=wide):
            p, q = (mp.fsum(mp.npdf(x, m, wide) for m in some) for some in means)
            return p**order * q ** (1 - order)

        ends = sorted({m for some in means for m in some})
        reach = (2 * order + 12) * wide + 2 * order
        found += chance * mp.quad(integrand, [ends[0] - reach, *ends, ends[-1] + reach])
    return mp.log(found) / (order - 1)


def exact_delta(n, rate, noise, epsilon, swapped=False):
    """One round of (-1, ..., -1, +1) against (-1, ..., -1), or the other way round: by tails, given the count."""
    total, alpha = mpf(0), mp.e ** mpf(epsilon)
    for k in range(1, n + 1):
        r, sigma = mpf(k) / n, mp.sqrt(k) * noise
        chance = mp.binomial(n, k) * mpf(rate) ** k * (1 - mpf(rate)) ** (n - k)
        if swapped and 1 - alpha * (1 - r) <= 0:
            continue
        share = (1 / alpha - 1 + r) / r if swapped else (alpha - 1 + r) / r
        cut = 1 + sigma**2 * mp.log(share) / 2
        sign = -1 if swapped else 1
        here, there = (mp.ncdf(sign * (mean - cut) / sigma) for mean in (0, 2))
        larger = (1 - r) * here + r * there
        total += chance * ((here - alpha * larger) if swapped else (larger - alpha * here))
    return total
