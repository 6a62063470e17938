r"""Shuffled Gaussian noise between two sums on a lattice, proved but for round-off and 1e-5 of the upper end.

X is what a user adds to S: L with probability ``mass``, 0 if its message is its own, ``-mass (e^eps - 1)`` if it is
absent.  With the call function :math:`c(x)=E[(X-x)_+]`, :math:`E f(X)=\int f''(x)\,c(x)\,dx` for convex f that vanish
towards minus infinity, so that a larger convex c raises :math:`E[S_+]`, and a smaller one lowers it:

* above: straight lines between the calls at the points of a lattice;
* below: lines from point to point, each parallel to a tangent that it does not cross.

Truncation at T: :math:`S_+\le(\sum\min(X_i,T))_+ + \sum(X_i-T)_+`, and from below the last term is left out.
The sum of n lattice variables is one Fourier transform of the tilted law.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
TOUCHING = np.arange(1, 16, 2) / 16  # where tangents touch, between two points


class Calls:
    """The law of X by its calls, in terms of Mills' ratio, without cancellation."""

    def __init__(self, noise_std, epsilon, blanket, rate=1.0):
        self.s, self.rate, self.blanket, self.growth = noise_std, rate, blanket, math.exp(epsilon)
        half = 1 / (2 * math.sqrt(2) * noise_std)
        self.mass, own = (math.erfc(half), math.erf(half)) if blanket else (1.0, 0.0)
        self.own = rate * own
        self.mean = -self.mass * math.expm1(epsilon)
        self.up = self.mass if blanket else math.exp(-1 / (2 * noise_std**2))  # L = middle + up (e^u - 1)
        self.middle = self.mean if blanket else self.up - self.growth
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
        call[~above] = 1 - self.growth - x[~above] + np.where(inside, put, 0)
        tail[~above] = 1 - np.where(inside, self.density(u, k) * self.mills(s * u + k / s), 0)
        absent, own = 1 - self.rate, self.own
        call = self.rate * self.mass * call + own * np.maximum(-x, 0) + absent * np.maximum(self.mean - x, 0)
        return call, self.rate * self.mass * tail + own * (x < 0) + absent * (x < self.mean)


def log_divergence(n_users, noise_std, epsilon, blanket, rate, std, top, bottom, fineness=24):
    """Lower and upper bound on ``log(E[S_+] / (mass n))``; ``std`` sets the step, X is cut off at both ends."""
    law = Calls(noise_std, epsilon, blanket, rate)
    step = std / fineness
    if -law.mean > step:  # a user who is absent stands on the lattice
        step = -law.mean / round(-law.mean / step)
    index = np.concatenate([-_indices(bottom / step)[:0:-1], _indices(top / step)])
    x = step * index
    calls = law.of(x)[0]
    beyond = calls[-1]
    over, under = _log_sum(index, _masses(x, calls - beyond), n_users), _log_sum(index, _below(law, x, beyond), n_users)
    scale = math.log(step) - math.log(law.mass * n_users)
    return under + scale, np.logaddexp(over + scale, math.log(max(beyond, 1e-320) / law.mass))


def _indices(limit):
    found = [0]
    while found[-1] < limit:
        found.append(found[-1] + max(1, found[-1] // 128))
    return np.array(found)


def _masses(x, calls):
    return np.diff(np.concatenate([[-1.0], np.diff(calls) / np.diff(x), [0.0]]))


def _below(law, x, beyond):
    width = np.diff(x)
    touching = (x[:-1, None] + width[:, None] * TOUCHING).ravel()
    calls, tails = law.of(touching)
    tangents = list(zip(touching, -tails, calls - beyond + tails * touching, strict=True))
    values, value, slope, at = [], law.mean - beyond - x[0], -1.0, 0
    for place, step in zip(x, [*width, 0.0], strict=True):
        values.append(value)
        while at < len(tangents):
            touch, fall, intercept = tangents[at]
            allowed = fall * place + intercept >= value
            if not allowed and touch > place:
                break
            slope, at = max(slope, fall) if allowed else slope, at + 1
        value += slope * step
        if value <= 0:  # the last atom is moved down to this point
            break
    found = np.zeros(len(x))
    found[: len(values)] = np.array(values) - values[-1]
    return _masses(x, found)


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
