"""Means of positive parts of sums of independent variables with few values: multinomial counts, one by one.

At epsilon 0 the shuffled divergence of most randomizers is :func:`at_zero`: a user adds 1, -1 or 0, and the first two
with the same probability.  Written down from the definitions of the randomizers; nothing of the library.
"""

import math

import numpy as np
from mpmath import mp, mpf

DIGITS = 40
FADED, FARTHEST = 1e-17, 4000  # what is left at the end of a line, and points on it
WINDOW, AROUND = 12.0, 25  # standard deviations, and counts more, within which counts are added up


def up_less_down(n, w):
    """Mean of ``(a - b)_+`` for (a, b) multinomial(n; w, w): of m steps that are made, then over m."""
    with mp.workdps(DIGITS):
        w = mpf(w)
        made = 2 * w
        odds, chance, total, half = made / (1 - made), (1 - made) ** n, mpf(0), mpf(0)
        for m in range(min(n, int(n * made + 30 * mp.sqrt(n * made) + 60)) + 1):
            if m % 2:  # half the mean distance of m fair steps, which an even step leaves as it is
                half = mpf(1) / 2 if m == 1 else half * m / (m - 1)
            total += chance * half
            chance *= odds * (n - m) / (m + 1)
        return total


def rare(kind, epsilon0, k):
    """Probability that a user who holds neither of two values speaks for the first of them and not for the second.

    For ``any`` it is that of the clones of binary response.
    """
    with mp.workdps(DIGITS):
        p = mp.exp(mpf(epsilon0))
        if kind == "kary":
            return 1 / (p + k - 1)
        if kind == "any":
            return 1 / (p + 1)
        if kind == "rappor":
            return 1 / (mp.sqrt(p) + 1) ** 2
        if kind == "oue":
            return 1 / (p + 1) / 2
        if kind == "subset":
            size = max(round(k / (math.exp(epsilon0) + 1)), 1)
            with_it, without = mp.binomial(k - 1, size - 1), mp.binomial(k - 1, size)
            return mp.binomial(k - 2, size - 1) / (p * with_it + without)
        if kind == "hadamard":
            return 1 / (p + 1) / 2
        if kind == "local-hash":
            g = max(round(math.exp(epsilon0) + 1), 2)
            return mpf(g - 1) / g / (p + g - 1)
        raise ValueError(kind)


def at_zero(kind, epsilon0, k, n):
    """The blanket's divergence at epsilon 0, of k-ary response with k > 2 the exact one as well."""
    with mp.workdps(DIGITS):
        return mp.expm1(mpf(epsilon0)) / n * up_less_down(n, rare(kind, epsilon0, k))


def positive_part(values, chances, n):
    """Mean of the positive part of a sum of n independent variables, to about 16 digits however small it is.

    Counts of each value within so many standard deviations of their mean after the tilt at which the sum is about 0;
    their tilted probabilities against the largest, in 40 digits and from there in extended doubles.
    """
    with mp.workdps(DIGITS):
        values, chances = [mpf(v) for v in values], [mpf(c) for c in chances]
        tilt = _tilt(values, chances, n)
        tilted = [c * mp.exp(tilt * v) for v, c in zip(values, chances, strict=True)]
        whole = mp.fsum(tilted)
        usual = max(range(len(values)), key=lambda i: tilted[i])
        order = [i for i in range(len(values)) if i != usual] + [usual]
        middles = [round(float(n * tilted[i] / whole)) for i in order[:-1]]
        middles.append(n - sum(middles))
        windows, weights, top = [], [], mp.loggamma(n + 1)
        for i, middle in zip(order, middles, strict=True):
            share = float(tilted[i] / whole)
            reach = int(WINDOW * math.sqrt(n * share * (1 - share))) + AROUND
            reach = reach if i != usual else len(order) * reach + AROUND * len(order) ** 2
            window = range(max(middle - reach, 0), min(middle + reach, n) + 1)
            rate, peak = n * tilted[i] / whole, min(max(middle, window[0]), window[-1])
            top += peak * mp.log(rate) - mp.loggamma(peak + 1)
            windows.append(window)
            weights.append(_terms(window, np.longdouble(mp.nstr(rate, 30)), peak))
        exact = [np.longdouble(mp.nstr(values[i], 30)) for i in order]
        total = _added(windows, weights, exact, n, np.longdouble(mp.nstr(tilt, 30)))
        return mp.exp(top) * (whole / n) ** n * mpf(str(total))


def _tilt(values, chances, n):
    """Where the mean of the tilted sum is 2 over the tilt."""
    low = high = 1 / mp.sqrt(n * mp.fsum(c * v * v for v, c in zip(values, chances, strict=True)))

    def excess(t):
        terms = [c * mp.exp(t * v) for v, c in zip(values, chances, strict=True)]
        return n * mp.fsum(x * v for x, v in zip(terms, values, strict=True)) / mp.fsum(terms) - 2 / t

    while excess(low) > 0:
        low /= 2
    for _ in range(200):
        if excess(high) > 0:
            break
        high *= 2
    for _ in range(40):
        middle = mp.sqrt(low * high)
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return low


def _terms(window, rate, peak):
    """``rate^k / k!`` in units of its value at the peak, by recurrence from there; in extended doubles."""
    above, below = (
        np.arange(*ends, dtype=np.longdouble) for ends in ((peak + 1, window[-1] + 1), (window[0] + 1, peak + 1))
    )
    return np.concatenate([np.cumprod((below / rate)[::-1])[::-1], [np.longdouble(1)], np.cumprod(rate / above)])


def _added(windows, weights, values, n, tilt):
    """Sum over all counts but the last, which is what is left of n; one loop, the rest at once."""
    grids = np.meshgrid(*[np.arange(w[0], w[-1] + 1) for w in windows[1:-1]], indexing="ij") if len(windows) > 2 else []
    shape = grids[0].shape if grids else ()
    inner, seen, excess = np.ones(shape, np.longdouble), np.zeros(shape, np.int64), np.zeros(shape, np.longdouble)
    for grid, weight, window, value in zip(grids, weights[1:-1], windows[1:-1], values[1:-1], strict=True):
        inner, seen, excess = inner * weight[grid - window[0]], seen + grid, excess + value * grid
    total, last = np.longdouble(0), windows[-1]
    for first, weight in zip(windows[0], weights[0], strict=True):
        left = n - first - seen
        inside = (left >= last[0]) & (left <= last[-1])
        gain = values[0] * first + excess + values[-1] * left
        inside &= gain > 0
        if np.any(inside):
            rest = weights[-1][np.where(inside, left, last[0]) - last[0]]
            gain = np.where(inside, gain, 0)
            total += weight * (inner * rest * gain * np.exp(-tilt * gain)).sum()
    return total


def on_a_line(growth, n, spread, top, nothing=0.0, fine=1.0):
    """Mean of the positive part by inversion in extended doubles, where the n-th power fades along a line; else None.

    ``growth(s)`` is the mean of ``e^{sx} - 1`` for one variable x with largest value ``top``; ``spread`` is about its
    standard deviation.  The line runs right of the saddle point, as far as anything is left but ``nothing``, the
    probability that x is 0; in steps so ``fine``.  No noise, no bound.
    """
    wide = np.longdouble

    def log_height(t):
        return n * float(np.log1p(growth(np.array([t], dtype=np.clongdouble))[0].real)) - 2 * math.log(t)

    grid = np.exp(np.linspace(math.log(0.05 / (math.sqrt(n) * spread)), math.log(600 / top), 60))
    t = min(grid, key=log_height)
    for share in (0.2, 0.05):
        t = min(t * np.exp(np.linspace(-1, 1, 9) * share), key=log_height)
    bend = (log_height(1.02 * t) - 2 * log_height(t) + log_height(0.98 * t)) / (0.02 * t) ** 2
    t = 1.1 * t
    width = min(1 / math.sqrt(bend), t)
    step, far = min(2 * math.pi * t / 45, 2 * math.pi * width / 16) / fine, 14.0
    base = np.log1p(growth(np.array([t], np.clongdouble))[0].real)
    never = np.exp(n * (np.log(wide(nothing)) - base)) if nothing else wide(0)

    def powers(y):
        s = np.asarray(wide(t) + 1j * np.asarray(y, wide), np.clongdouble)
        return (np.exp(n * (np.log1p(growth(s)) - base)) - never) / s**2

    while np.abs(powers(far * width * np.array([0.8, 0.9, 1.0, 1.1]))).max() * far * width > FADED / t**2 * width:
        far *= 1.5
        if far * width > FARTHEST * step:
            return None
    y = wide(step) * np.arange(math.ceil(far * width / step) + 1)
    power = np.concatenate([powers(part) for part in np.array_split(y, 1 + len(y) // 300)])
    total = (power.real.sum() - power[0].real / 2) * wide(step) / wide(math.pi)
    with mp.workdps(DIGITS):
        return mp.exp(n * mpf(str(base))) * mpf(str(total))


def of_values(values, chances):
    """The growth of :func:`on_a_line` for a few values."""
    values = np.array([mp.nstr(v, 30) for v in values], dtype=np.longdouble)
    chances = np.array([mp.nstr(c, 30) for c in chances], dtype=np.longdouble)
    return lambda s: np.expm1(np.multiply.outer(s, values)) @ chances


def of_laplace(epsilon0, epsilon, center, mass, panels=None):
    """The same for Laplace noise on [0, 1], inputs 0 and 1 in question, against a user at ``center``.

    Integrated over the message: atoms at both ends, and panels in between.
    """
    places, weights = (np.asarray(one, np.longdouble) for one in np.polynomial.legendre.leggauss(24))
    edges = [np.linspace(a, b, (panels or 8) + 1) for a, b in ((0.0, center), (center, 1.0)) if b > a]
    half = np.concatenate([np.diff(one) / 2 for one in edges])[:, None]
    middle = np.concatenate([one[:-1] for one in edges])[:, None] + half
    w = np.asarray(middle + half * places, np.longdouble).ravel()
    e0, e = np.longdouble(epsilon0), np.exp(np.longdouble(epsilon))
    chance = ((half * weights).ravel() * e0 / 2) * np.exp(-e0 * np.abs(w - center))
    w = np.concatenate([w, [np.longdouble(0), np.longdouble(1)]])
    chance = np.concatenate([chance, np.exp(-e0 * np.array([center, 1 - center], np.longdouble)) / 2])
    loss = np.exp(e0 * (np.abs(w - center) - w)) - e * np.exp(e0 * (np.abs(w - center) - (1 - w)))
    return lambda s: np.expm1(np.multiply.outer(s, loss)) @ (np.longdouble(mass) * chance)
