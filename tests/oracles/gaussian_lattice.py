r"""Shuffled Gaussian noise between two sums on a lattice, proved but for round-off.

Where large values decide, 1e-5 of the upper end is left out.

X is what a user adds to S: L with probability ``mass``, 0 if its message is its own, ``-mass (e^eps - 1)`` if it is
absent.  With the call function :math:`c(x)=E[(X-x)_+]`, :math:`E f(X)=\int f''(x)\,c(x)\,dx` for convex f that vanish
towards minus infinity, so that a larger convex c raises :math:`E[S_+]`, and a smaller one lowers it:

* above: straight lines between the calls at the points of a lattice;
* below: lines from point to point, each below the tangent at the middle between them.

Truncation at T: :math:`S_+\le(\sum\min(X_i,T))_+ + \sum(X_i-T)_+`, and from below the last term is left out.
The sum of n lattice variables is one Fourier transform of the tilted law.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx

MAX_TILT = 8  # product of tilt and standard deviation at which the step is made for the tolerance
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


class Calls:
    """The law of X by its calls, in terms of Mills' ratio, without cancellation."""

    def __init__(self, noise_std, epsilon, blanket, rate=1.0):
        self.s, self.rate, self.blanket, self.growth = noise_std, rate, blanket, math.exp(epsilon)
        half = 1 / (2 * math.sqrt(2) * noise_std)
        self.mass, own = (math.erfc(half), math.erf(half)) if blanket else (1.0, 0.0)
        self.own = rate * own
        self.mean = -self.mass * math.expm1(epsilon)
        self.up = self.mass if blanket else math.exp(-1 / (2 * noise_std**2))  # L = middle + up (e^u - 1)
        self.middle = self.mean if blanket else math.expm1(-1 / (2 * noise_std**2)) - math.expm1(epsilon)
        self.slant = 0.5 if blanket else 0.0  # the density of u is exp(-slant u - s^2 u^2 / 2), up to a factor
        self.log_height = -1 / (8 * noise_std**2) - math.log(self.mass) if blanket else 0.0

    def density(self, u, slant):
        return np.exp(self.log_height - (slant + self.s**2 / 2 * u) * u) / math.sqrt(2 * math.pi)

    def mills(self, z):
        return math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))

    def fall(self, z):
        """R(z) - R(z + 1/s), whose derivative by z is z R(z) - 1."""
        if self.s < 1:
            return self.mills(z) - self.mills(z + 1 / self.s)
        places = z[:, None] + (NODES + 1) / (2 * self.s)
        return (1 - places * self.mills(places)) @ WEIGHTS / (2 * self.s)

    def of(self, x):
        """E[(X - x)_+] and P[X > x]."""
        above, s, k = x >= self.middle, self.s, self.slant
        call, tail = np.empty(x.shape), np.empty(x.shape)
        u = np.log1p((x[above] - self.middle) / self.up)
        call[above] = self.up * self.density(u, k - 1) * self.fall(s * u + (k - 1) / s)
        tail[above] = self.density(u, k) * self.mills(s * u + k / s)
        away = self.middle - x[~above]
        if self.blanket:
            u = np.log1p(away / (self.mass * self.growth))
            put = self.mass * self.growth * self.density(u, -0.5) * self.fall(s * u - 0.5 / s)
        else:
            u = -np.log1p(-np.where(away < self.up, away / self.up, 0.5))
            put = self.up * self.density(u, 1.0) * self.fall(s * u)
        inside = self.blanket | (away < self.up)
        call[~above] = self.mean / self.mass - x[~above] + np.where(inside, put, 0)
        tail[~above] = 1 - np.where(inside, self.density(u, k) * self.mills(s * u + k / s), 0)
        absent, own = 1 - self.rate, self.own
        call = self.rate * self.mass * call + own * np.maximum(-x, 0) + absent * np.maximum(self.mean - x, 0)
        return call, self.rate * self.mass * tail + own * (x < 0) + absent * (x < self.mean)


def log_divergence(n_users, noise_std, epsilon, blanket, rate, std, top, bottom, fineness=24):
    """Lower and upper bound on ``log(E[S_+] / (mass n))``; ``std`` sets the step, X is cut off at both ends."""
    law = Calls(noise_std, epsilon, blanket, rate)
    index, over, under, step, beyond = _laws(law, std / fineness, top, bottom, 128)
    over, under = (_log_sum(index, masses, n_users) for masses in (over, under))
    scale = math.log(step) - math.log(law.mass * n_users)
    return under + scale, np.logaddexp(over + scale, math.log(max(beyond, 1e-320) / law.mass))


def light_tails(n_users, noise_std, epsilon, blanket, rate, rtol=1e-5):
    """The same to about ``rtol`` for any number of users, where one tilt does: no large value decides alone.

    The extra variance of a lattice, at most a sixth of the squared step for each message, adds t^2 / 2 times it.
    """
    law, fineness = Calls(noise_std, epsilon, blanket, rate), MAX_TILT / math.sqrt(12 * rtol)
    std = law.up * math.sqrt(math.expm1(noise_std**-2))  # of one message, about
    top, bottom = (law.up * math.expm1(wide / noise_std) * law.growth - law.mean for wide in (20, 12))
    index, over, under, step, beyond = _laws(law, std / fineness, top, bottom, fineness)
    mean, raised = law.mean - beyond, law.of(step * index[:1])[0][0] - beyond + step * index[0]
    low, high = _light_sum(index, under, mean / step, n_users)[0], _light_sum(index, over, raised / step, n_users)[1]
    scale = math.log(step) - math.log(law.mass * n_users)
    return low + scale, np.logaddexp(high + scale, math.log(max(beyond, 1e-320) / law.mass))


def _light_sum(index, masses, mean, n_users):
    """Lower and upper end of log E[S_+], from the frequencies up to 80 inverse deviations of S, under one tilt."""

    def moment(t):
        """M(t) - 1 and the slope of log M, without cancellation."""
        growth = t * mean + masses @ (np.expm1(t * index) - t * index)
        return growth, (mean + masses @ (index * np.expm1(t * index))) / (1 + growth)

    low = high = 1 / math.sqrt(n_users * (masses @ index**2))
    while n_users * high * moment(high)[1] < 1:
        high *= 2
    while n_users * low * moment(low)[1] > 1:
        low /= 2
    t = brentq(lambda t: n_users * t * moment(t)[1] - 1, low, high, rtol=1e-3)
    growth, slope = moment(t)
    tilted = masses * np.exp(t * index) / (1 + growth)
    spread = math.sqrt(n_users * (tilted @ (index - slope) ** 2))
    period = math.ceil(20 * spread + 80 / t)
    y = 2 * math.pi / period * np.arange(math.ceil(80 / spread * period / (2 * math.pi)))
    phase = np.outer(y, index - slope)
    real, imaginary = (np.cos(phase) - 1) @ tilted, np.sin(phase) @ tilted
    power = n_users * (np.log1p(2 * real + real**2 + imaginary**2) / 2 + 1j * np.arctan2(imaginary, 1 + real))
    terms = (np.exp(power + 1j * y * n_users * slope) / (4 * np.sinh((t + 1j * y) / 2) ** 2)).real
    total = (2 * terms.sum() - terms[0]) / period
    # By Chernoff's bound at the tilts t - a and t + a, the sum is that far from 0; s_+ exp(-ts) is less than 1 / 2t.
    logs = [n_users * (math.log1p(moment(t + a)[0]) - math.log1p(growth)) for a in (-10 / spread, 10 / spread)]
    far = sum(math.exp(min(one - 5 * period / spread, 0)) for one in logs) + t * period * math.exp(-t * period / 2)
    error = (far + _higher(index, tilted, 2 * math.pi / period * len(y), n_users)) / t
    ends = max(total - error, 1e-320), total + error
    return [n_users * math.log1p(growth) + math.log(end) for end in ends]


def _higher(index, law, y, n_users):
    """Bound of the transform at frequencies from y to pi: shares of the law are uniform on successive points.

    The transform of L points is at most ``1 - y^2 (L^2 - 1) / (6 pi^2)`` up to pi / L, and 0.66 beyond.
    """
    lost = [0.0]
    for length in (16, 64, 256, 1024):
        shares = [law[(side * index > 1) & (side * index <= 1 + length)] for side in (-1, 1)]
        least = min(0.34, y**2 * (length**2 - 1) / (6 * math.pi**2))
        lost.append(least * length * sum(max(one.min(), 0) for one in shares if len(one) == length))
    return (1 - max(lost)) ** n_users


def _laws(law, step, top, bottom, fineness):
    """Points, as multiples of the step, the masses above and below, the step, and the call where X is cut off."""
    if -law.mean > step:  # a user who is absent stands on the lattice
        step = -law.mean / round(-law.mean / step)
    index = np.concatenate([-_indices(bottom / step, fineness)[:0:-1], _indices(top / step, fineness)])
    x = step * index
    calls = law.of(x)[0]
    return index, _masses(x, calls - calls[-1]), _below(law, x, calls[-1]), step, calls[-1]


def _indices(limit, fineness):
    found = [0]
    while found[-1] < limit:
        found.append(found[-1] + max(1, int(found[-1] / fineness)))
    return np.array(found)


def _masses(x, calls):
    return np.diff(np.concatenate([[-1.0], np.diff(calls) / np.diff(x), [0.0]]))


def _below(law, x, beyond):
    """Of the tangents at the midpoints of two neighbouring cells the lower one, at the point between them."""
    middle, half = (x[1:] + x[:-1]) / 2, np.diff(x) / 2
    calls, tails = law.of(middle)
    ends = calls - beyond - tails * half
    start = min(law.mean - beyond - x[0], ends[0] + 2 * tails[0] * half[0])
    values = np.concatenate([[start], np.minimum(ends[:-1], (ends + 2 * tails * half)[1:]), [0.0]])
    values[max(int((np.append(values[1:], 0.0) <= 0).argmax()), 1) :] = 0  # the last atom is moved down
    found, points = np.zeros(len(x)), np.arange(len(x))
    while (masses := _masses(x[points], values[points])).min() < 0:
        points = points[masses >= 0]  # a concave corner lies above the line between its neighbours
    found[points] = masses
    return found


def _log_sum(index, masses, n_users):
    """log E[S_+] of n variables with these masses, in units of the step: a sum over the number k of large ones.

    One law cannot be tilted so that many small values and one large one both matter; for every k it can.
    """
    index, masses = index[masses > 0], masses[masses > 0]
    above = np.maximum(1 - np.cumsum(masses), 0)
    cut = index[int((n_users * above < 0.05).argmax())]  # larger values are large: one user in twenty crowds has one
    parts = [(index[one], np.log(masses[one])) for one in (index <= cut, index > cut)]
    total = -math.inf
    for k in range(n_users + 1 if len(parts[1][0]) else 1):
        ways = math.lgamma(n_users + 1) - math.lgamma(k + 1) - math.lgamma(n_users - k + 1)
        counts = [(part, count) for part, count in zip(parts, (n_users - k, k), strict=True) if count]
        t = _tilt(counts)
        tilted = [(part[0], *_tilted(part, t), count) for part, count in counts]
        log_mass = ways + sum(count * mass for _, mass, *_, count in tilted)
        if log_mass - 1 - math.log(t) < total - 12:  # Chernoff's bound on all that follows, about
            break
        total = np.logaddexp(total, log_mass + math.log(_positive_part(tilted, t)))
    return total


def _tilted(part, t):
    """Logarithm of the mass, the law, its mean and variance under the tilt."""
    index, logs = part
    logs = logs + t * index
    law = np.exp(logs - logs.max())
    law /= (mass := law.sum())
    mean = law @ index
    return logs.max() + math.log(mass), law, mean, law @ (index - mean) ** 2


def _tilt(counts):
    """The tilt at which Chernoff's bound is least: t times the mean of the sum is 1."""

    def excess(t):
        return t * sum(count * _tilted(part, t)[2] for part, count in counts) - 1

    high = 1e-7
    while excess(high) < 0:
        high *= 2
    low = high / 2
    while excess(low) > 0:
        low /= 2
    return brentq(excess, low, high, rtol=1e-6)


def _positive_part(tilted, t):
    """Mean of ``s_+ exp(-t s)`` under the tilted law of the sum, by one Fourier transform."""
    mean = sum(count * one for *_, one, _, count in tilted)
    spread = math.sqrt(sum(count * variance for *_, variance, count in tilted))
    size = 2 ** math.ceil(math.log2(20 * spread + 64))
    wave = np.ones(size // 2 + 1, dtype=complex)
    for index, _, law, _, _, count in tilted:
        one = np.fft.rfft(np.bincount(index % size, law, size))
        wave *= np.abs(one) ** count * np.exp(1j * count * np.angle(one))
    first = round(mean) - size // 2
    sums = np.maximum(first + np.arange(size), 0)
    return np.roll(np.fft.irfft(wave, size), -(first % size)) @ (sums * np.exp(-t * sums))
