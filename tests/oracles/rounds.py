"""Rounds of explicit pairs of laws, as a referee would check them: densities on a grid, sums of losses by tilted FFTs.

No code is shared with the library.  Sums of Gaussian densities over a grid of points are right to many digits, and
losses are rounded down and up to a fine grid, so that each answer is a pair of ends with the truth between them.
"""

import math

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import gammaln, ndtr, xlogy

Law = tuple[np.ndarray, np.ndarray]  # losses log(p/q), and P's masses

SIDE, REACH = 0.08, 9.0  # of the grid of points, in standard deviations


def turned(p, q, n_records, mu, degrees, side=SIDE) -> tuple[Law, Law]:
    """Losses of a client's sum with and without its first record, both directions; others make an angle with it."""
    n, turn = n_records - 1, math.radians(degrees)
    flat = n == 0 or math.sin(turn) < 1e-9
    chances = [math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1)]
    along = [mu * j * math.cos(turn) for j in range(n + 1)]
    across = [0.0 if flat else mu * j * math.sin(turn) for j in range(n + 1)]
    side = side / 8 if flat else side
    x = np.arange(min(along) - REACH, max(along) + mu + REACH, side)
    y = np.zeros(1) if flat else np.arange(-REACH, max(across) + REACH, side)

    def normal(at, mean):
        return np.exp(-((at - mean) ** 2) / 2) * (side / math.sqrt(2 * math.pi))

    def law(means):
        weight = [np.ones(1) if flat else normal(y, b) for _, b in means]
        return sum(c * np.outer(normal(x, a), w) for c, (a, _), w in zip(chances, means, weight, strict=True))

    out = np.outer(normal(x, 0.0), np.ones(1) if flat else normal(y, 0.0))
    without = law([(a, b) for a, b in zip(along, across, strict=True)])
    drawn = law([(a + mu, b) for a, b in zip(along, across, strict=True)])
    base = (1 - p) * out + p * without
    more = p * q * (drawn - without)
    return of_masses((base + more).ravel(), base.ravel()), of_masses(base.ravel(), (base + more).ravel())


def turned_delta(p, q, n_records, mu, degrees, epsilon, add=False):
    """Delta of one such round, one direction, to ten digits: in closed form along the differing record's gradient
    between the places where P - e^epsilon Q changes its sign, and by the trapezoidal rule across it."""
    n, turn, alpha = n_records - 1, math.radians(degrees), math.exp(epsilon)
    chances = np.array([math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1)])
    along = mu * np.arange(n + 1) * math.cos(turn)
    across = mu * np.arange(n + 1) * (math.sin(turn) if 0 < degrees < 180 else 0.0)
    without, drawn = (1 - alpha * (1 - q), -alpha * q) if add else (1 - q - alpha, q)
    centres, beside = np.concatenate([along, along + mu, [0.0]]), np.concatenate([across, across, [0.0]])
    weights = np.concatenate([p * without * chances, p * drawn * chances, [(1 - p) * (1 - alpha)]])
    y = np.arange(-REACH, across.max() + REACH, SIDE / 2)
    parts = weights[:, None] * np.exp(-((y - beside[:, None]) ** 2) / 2) * SIDE / math.sqrt(8 * math.pi)
    parts = parts if across.any() else weights[:, None]
    x = np.arange(centres.min() - 2 * REACH, centres.max() + 2 * REACH, SIDE / 4)

    def values(at):
        logs = centres[:, None] * at - centres[:, None] ** 2 / 2
        return np.exp(logs - logs.max(0))

    def between(low, high):
        left, right = low - centres[:, None], high - centres[:, None]
        return np.where(left + right > 0, ndtr(-left) - ndtr(-right), ndtr(right) - ndtr(left))

    over = parts.T @ values(x) > 0
    found = float((parts.T @ between(x[:-1], x[1:]) * (over[:, :-1] & over[:, 1:])).sum())
    row, cell = np.nonzero(over[:, :-1] != over[:, 1:])
    starts, low, high, part = over[row, cell], x[cell], x[cell + 1], parts[:, row]
    inner, outer = low, high
    for _ in range(50):
        middle = (inner + outer) / 2
        same = ((part * values(middle)).sum(0) > 0) == starts
        inner, outer = np.where(same, middle, inner), np.where(same, outer, middle)
    return found + float((part * np.where(starts, between(low, inner), between(inner, high))).sum())


def of_masses(one, other) -> Law:
    kept = (one > 1e-280) & (other > 1e-280)
    return np.log(one[kept]) - np.log(other[kept]), one[kept]


def summed(parts, epsilon, step) -> tuple[float, float]:
    """Ends of delta of independent rounds, ``(law, times)`` each, the laws' losses being those of P against Q."""
    return tuple(_delta([(np.floor, law, times) for law, times in parts], epsilon, step, up) for up in (False, True))


def _delta(parts, epsilon, step, up):
    laws = []
    for _, (losses, masses), times in parts:
        index = (np.ceil if up else np.floor)(losses / step).astype(np.int64)
        first = int(index.min())
        laws.append((first, np.bincount(index - first, masses), times))
    tilt = _tilt(laws, epsilon, step)
    # A window of the tilted sum about epsilon, wide enough for all of it to be seen.
    spread = math.sqrt(sum(times * _moments(law, first, step, tilt)[2] for first, law, times in laws))
    size = 1 << math.ceil(math.log2(max(40 * spread / step, 2 * max(len(law) for _, law, _ in laws), 64)))
    start = round(epsilon / step) - size // 2
    wave, log_mass, origin = np.ones(size // 2 + 1, complex), 0.0, 0
    for first, law, times in laws:
        total, _, _ = _moments(law, first, step, tilt)
        grown = law * np.exp(tilt * step * (first + np.arange(len(law))) - total)
        wave *= np.fft.rfft(np.bincount(np.arange(len(law)) % size, grown, size)) ** times
        log_mass, origin = log_mass + times * total, origin + times * first
    sums = np.roll(np.fft.irfft(wave, size), origin - start)
    losses = step * (start + np.arange(size))
    over = losses > epsilon
    seen = np.maximum(sums[over], 0) * -np.expm1(epsilon - losses[over])
    return float(np.exp(log_mass - tilt * losses[over]) @ seen)


def _moments(law, first, step, tilt):
    losses = step * (first + np.arange(len(law)))
    with np.errstate(divide="ignore"):
        logs = np.log(law) + tilt * losses
    total = float(np.logaddexp.reduce(logs))
    share = np.exp(logs - total)
    mean = float(share @ losses)
    return total, mean, float(share @ (losses - mean) ** 2)


def _tilt(laws, epsilon, step):
    low, high = 0.0, 1.0

    def mean(t):
        return sum(times * _moments(law, first, step, t)[1] for first, law, times in laws)

    if mean(0.0) >= epsilon:
        return 0.0
    while mean(high) < epsilon and high < 1e4:
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < epsilon else (low, middle)
    return high


def adaptive(choices, rounds, epsilon, step):
    """Delta of an adversary who chooses the law of each round after the last one (from below): a program backwards."""
    half = math.ceil(max(float(np.abs(law[0]).max()) for law in choices) / step) + 1
    reach = math.ceil(epsilon / step) + math.ceil(3 / step)
    at = epsilon + step * np.arange(-reach, reach + 1)
    laws = []
    for losses, masses in choices:
        index = np.floor(losses / step).astype(np.int64)
        laws.append(np.bincount(index + half, masses, 2 * half + 1))
    value = np.maximum(-np.expm1(at), 0.0)
    for _ in range(rounds):
        # Left of the grid the value is at least that at its end; right of it at least 0.
        padded = np.concatenate([np.full(half, value[0]), value, np.zeros(half)])
        value = np.max([fftconvolve(padded, law, "valid") for law in laws], axis=0)
    return float(value[reach])


def shuffled(rows, held, one, other, n_users, rate) -> tuple[Law, Law]:
    """Losses of a histogram of the messages of those who come, all others holding one value; both directions.

    ``rows`` are the laws of the messages, of two or three letters.
    """
    letters, n = len(rows[0]), n_users - 1
    counts = np.stack(np.meshgrid(*[np.arange(n_users + 1)] * letters, indexing="ij"))
    there = counts.sum(0)

    def others(moved):
        at = counts - np.array(moved).reshape(-1, *[1] * letters)
        left = n - at.sum(0)
        fits = (at >= 0).all(0) & (left >= 0)
        logs = math.lgamma(n + 1) - gammaln(np.maximum(at, 0) + 1).sum(0) - gammaln(np.maximum(left, 0) + 1)
        for letter in range(letters):
            logs = logs + xlogy(np.maximum(at[letter], 0), rate * rows[held][letter])
        logs = logs + xlogy(np.maximum(left, 0), 1 - rate)
        return np.where(fits, np.exp(logs), 0.0)

    with np.errstate(divide="ignore"):
        nobody = (1 - rate) * others([0] * letters)
        units = [others([int(i == letter) for i in range(letters)]) for letter in range(letters)]
    laws = [nobody + rate * sum(p * unit for p, unit in zip(rows[x], units, strict=True)) for x in (one, other)]
    seen = there <= n_users
    p, q = (law[seen] for law in laws)
    return of_masses(p, q), of_masses(q, p)


def noisy_sum(n_users, rate, noise_std) -> tuple[Law, Law]:
    """Losses of the number of those who come and of their noisy sum, where one record alone may be opposite."""
    found = []
    for k in range(n_users + 1):
        chance = math.comb(n_users, k) * rate**k * (1 - rate) ** (n_users - k)
        if k == 0 or chance < 1e-300:
            found.append((np.array([chance]), np.array([chance])))
            continue
        shift, share = 2 / (math.sqrt(k) * noise_std), k / n_users
        x = np.arange(-REACH - 1, shift + REACH + 1, SIDE / 4)
        base, moved = (np.exp(-((x - at) ** 2) / 2) * (SIDE / 4 / math.sqrt(2 * math.pi)) for at in (0.0, shift))
        found.append((chance * ((1 - share) * base + share * moved), chance * base))
    p, q = (np.concatenate(laws) for laws in zip(*found, strict=True))
    return of_masses(p, q), of_masses(q, p)
