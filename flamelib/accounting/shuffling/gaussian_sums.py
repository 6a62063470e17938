r"""Certified expectation of the positive part of a sum with log-normal tails: sums on two lattices.

Under Gaussian noise the amplification variable L has log-normal tails, so that no line is free of poles and cuts.  Let
X be what one user adds to S: L, 0 for a message that is not from the blanket, or what absence adds.  With its calls
:math:`c(x)=E[(X-x)_+]`, :math:`E f(X)=\int f''(x)\,c(x)\,dx` for convex f that vanish towards :math:`-\infty`.  So
larger convex calls raise :math:`E[S_+]` and smaller ones lower it: above are the chords of c between points of a
lattice, below are the lines from point to point that lie below the tangents at the middle of every cell.  Both differ
from c by the square of the step, which is fine near 0 and in proportion to X beyond.

*Large values.*  At most one user in 20 crowds has an X above the *cut*.  Given that k users have one,

.. math:: E[S_+] = \sum_k \binom nk E\big[(B_{n-k} + X_1 + \dots + X_k)_+\big],

with B the sum of the others.  Sums of large values live on a geometric lattice: above every value is split onto the two
points around it, below all that falls between two points stands at its mean (Jensen).  More than k large values add at
most what Chernoff's bound says.

*The others.*  :math:`G(x) = E[(B+x)_+]` is a trapezoid sum over the frequencies of a lattice variable, whose tilt is the
saddle point for an x nearby.  Its errors are bounded: copies of B one period away by Chernoff's bound, frequencies that
are left out by the decay of the transform, round-off term by term.  Far above, G is bounded by lines (it is convex, of
slope at most 1).

*Ends.*  Values above the top are cut off, :math:`S_+\le(\sum\min(X_i,T))_+ + \sum(X_i-T)_+`; below the bottom they are
moved up (upper bound) or left out (lower bound).  Proof: book, chapter on the privacy blanket, section on how the
blanket divergence is computed.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import erfcx, log_ndtr

from flamelib.accounting.shuffling.bromwich import Bracket
from flamelib.core.arrays import NODES, WEIGHTS, Complexes, Reals
from flamelib.core.logspace import ROUNDING_32, SMALLEST, UNIT, logaddexp
from flamelib.core.search import root

RTOL = 1e-4  # extra variance of a lattice times half the squared tilt: its relative error
RTOL_QUICK = 5e-3  # the same for an uncertified value
MAX_NOISE_STD = 1e6  # largest noise_std in the numerics (larger ones cancel); delta decreases in noise_std
MIN_NOISE_STD = 0.07  # noise_std below which the bound is that of one unshuffled message
MEAN_LARGE = 0.05  # mean number of users with a large value
MIN_CALL = 1e-300  # calls below are not computed
LOG_NEGLIGIBLE = 13.0  # minus the logarithm of a negligible term, relative to the sum
LOG_WAVE = 34.0  # minus the logarithm of a negligible transform
RTOL_CALL = 2.0**-38  # rounding of a call


@dataclass(frozen=True)
class GaussianLaw:
    """Gaussian noise on [0, 1], inputs 0 and 1; reference the blanket, or else a user who holds 1.

    Of the values held by all other users, 1 maximises the divergence for inputs in this order (on grids of values, two
    to a million users): its likelihood ratio has the heaviest tail.  Absence, of probability ``1 - rate``, is an atom
    at ``-mass * expm1(epsilon)``.
    """

    noise_std: float
    epsilon: float
    blanket: bool
    rate: float = 1.0

    @cached_property
    def mass(self) -> float:
        return math.erfc(1 / (2 * math.sqrt(2) * self.noise_std)) if self.blanket else 1.0

    @cached_property
    def kept(self) -> float:
        """Probability of a non-blanket message, without cancellation."""
        return self.rate * math.erf(1 / (2 * math.sqrt(2) * self.noise_std)) if self.blanket else 0.0

    @property
    def mean(self) -> float:
        """Of X, and the value of absence."""
        return -self.mass * math.expm1(self.epsilon)

    @property
    def middle(self) -> float:
        """The value of L at ``u = 0``, u being the log-likelihood ratio of the inputs up to a shift and its sign."""
        return self.mean if self.blanket else math.expm1(-1 / (2 * self.noise_std**2)) - math.expm1(self.epsilon)

    @property
    def sizes(self) -> tuple[float, float]:
        """Sizes P of the two legs ``L = middle + P expm1(u)`` and ``L = middle - P expm1(u)`` (``+ P expm1(-u)``)."""
        up = self.mass if self.blanket else math.exp(-1 / (2 * self.noise_std**2))
        return up, self.mass * math.exp(self.epsilon) if self.blanket else up

    @property
    def max_u(self) -> float:
        """A u beyond which the mass under either input is negligible."""
        return (0.5 if self.blanket else 1.0) / self.noise_std**2 + 10 / self.noise_std

    def points(self) -> Reals:
        """Values of X in equal steps of u."""
        u = np.linspace(0, min(self.max_u + 28 / self.noise_std, 690.0 - self.epsilon), 300)
        up, down = self.sizes
        left = -down * np.expm1(u) if self.blanket else up * np.expm1(-u)
        right = self.middle + up * np.expm1(u)
        near = -self.middle * np.geomspace(1e-3, 1, 20)
        return np.unique(np.concatenate([self.middle + left, right, near, [0.0, self.mean]]))

    def calls(self, x: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """``E[(L-x)_+]``, ``E[(x-L)_+]``, ``P[L > x]`` and ``P[L < x]``, times the probability of a blanket message.

        On the tail's side they do not cancel.
        """
        up, down = self.sizes
        call, put, tail, head = np.empty((4, *x.shape))
        gap = x - self.middle
        here = gap >= 0
        call[here], tail[here] = self._beyond(np.log1p(gap[here] / up), up, 1)
        put[here], head[here] = call[here] + x[here] - self.mean / self.mass, 1 - tail[here]
        here, gap = ~here, -gap[~here]
        if self.blanket:
            put[here], head[here] = self._beyond(np.log1p(gap / down), down, 1)
        else:
            inside = gap < up
            found = self._beyond(-np.log1p(-np.where(inside, gap / up, 0.5)), up, -1)
            put[here], head[here] = (np.where(inside, values, 0) for values in found)
        call[here], tail[here] = put[here] - x[here] + self.mean / self.mass, 1 - head[here]
        there = self.rate * self.mass
        return there * call, there * put, there * tail, there * head

    @property
    def atoms(self) -> list[tuple[float, float]]:
        """Values of X other than L, neither of them positive, and their probabilities."""
        return [(value, p) for value, p in ((0.0, self.kept), (self.mean, 1 - self.rate)) if p]

    def _beyond(self, u: Reals, size: float, sign: int) -> tuple[Reals, Reals]:
        """Mean of ``size |exp(sign v) - exp(sign u)|`` over v beyond u on one leg, and the leg's probability there.

        With R Mills' ratio and :math:`z = \\sigma u + \\kappa/\\sigma`, a difference of values of R at distance
        :math:`1/\\sigma`.
        """
        std, slant = self.noise_std, 0.5 if self.blanket else 0.0
        log_height = -1 / (8 * std**2) - math.log(self.mass) if self.blanket else 0.0
        density = np.exp(log_height - (slant + std**2 / 2 * u) * u) / math.sqrt(2 * math.pi)
        z = std * u + slant / std
        return size * density * np.exp(sign * u) * _fall(z - (sign > 0) / std, 1 / std), density * _mills(z)


def _mills(z: Reals) -> Reals:
    """Mills' ratio of the normal distribution."""
    return np.asarray(math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2)))


def _fall(z: Reals, step: float) -> Reals:
    """Decrease of Mills' ratio from z to z + step: for small steps the integral of its slope ``1 - z R(z)``."""
    if step > 1:
        return _mills(z) - _mills(z + step)
    places = z[:, None] + step / 2 * (NODES + 1)
    return np.asarray(step / 2 * ((1 - places * _mills(places)) @ WEIGHTS))


def bracket(law: GaussianLaw, n_users: int, rtol: float = RTOL) -> Bracket:
    """Certified bracket of the log divergence ``log(E[S_+] / (mass n))``, of width about ``5 rtol``.

    Where E[S_+] underflows, the upper bound is that of a smaller epsilon, or of one unshuffled message.
    """
    single = _unshuffled(law)
    if law.noise_std < MIN_NOISE_STD:
        return Bracket(-math.inf, single)
    near = _representable(law)
    if near != law:
        return Bracket(-math.inf, min(single, bracket(near, n_users, rtol).high))
    split = _split(law, n_users, rtol)
    if split is None:
        return Bracket(-math.inf, single)
    low, high = (split.log_divergence(upper) for upper in (False, True))
    return Bracket(min(low, single), min(high, single))


def quick(law: GaussianLaw, n_users: int) -> float:
    """Uncertified log divergence, for the search of the epsilon at which to certify."""
    single = _unshuffled(law)
    split = None if law.noise_std < MIN_NOISE_STD else _split(_representable(law), n_users, RTOL_QUICK)
    return min(single, split.log_divergence(upper=True)) if split else single


def _representable(law: GaussianLaw) -> GaussianLaw:
    """The distribution at a noise_std that does not cancel and an epsilon at which no likelihood ratio overflows."""
    return replace(law, noise_std=min(law.noise_std, MAX_NOISE_STD), epsilon=min(law.epsilon, 600.0 - law.max_u))


def _unshuffled(law: GaussianLaw) -> float:
    """Log divergence of one message, sent with probability ``rate``: an upper bound for every n by convexity."""
    shift, half = law.epsilon * law.noise_std, 1 / (2 * law.noise_std)
    first, second = float(log_ndtr(half - shift)), law.epsilon + float(log_ndtr(-half - shift))
    slack = 64 * UNIT * (1 + abs(first))
    remainder = -math.expm1(min(second - first, 0.0)) + slack
    return first + math.log(remainder) + slack + math.log(law.rate)


def _split(law: GaussianLaw, n_users: int, rtol: float) -> "_Split | None":
    """The cut and the top for this relative error; any choice is valid.  None where no call above 0 is computed."""
    x = law.points()
    calls, puts, tails, heads = law.calls(x)
    gap = -n_users * law.mean
    # About what one value that is larger than the sum of all others is on average gives.
    one = law.calls(np.array([gap + law.mean]))
    floor = float(one[0][0]) * min(n_users, 1 / max(float(one[2][0]), MIN_CALL))
    negligible = (x > 0) & (n_users * calls <= 0.03 * rtol * floor)
    count = 1 + min(int(negligible.argmax()) if negligible.any() else len(x), int(np.flatnonzero(calls > MIN_CALL)[-1]))
    x, tails = x[:count], tails[:count]
    if x[-1] <= 0:
        return None
    pivot = min(max(int(np.searchsorted(x, law.middle)), 1), count - 2)
    masses = np.maximum(_masses(x, calls[:count] - calls[count - 1], puts[:count], pivot, law.rate * law.mass, 0.0), 0)
    for value, probability in law.atoms:
        masses[np.searchsorted(x, value)] += probability
    rare = (x > 0) & (n_users * tails <= MEAN_LARGE)
    cut = int(rare.argmax()) if rare.any() else count - 1
    cut = max(cut, int(np.searchsorted(x, 0.0, "right")))
    with np.errstate(divide="ignore"):
        logs = np.log(n_users * masses)
    few = n_users * float(tails[x >= 0][0]) <= MEAN_LARGE  # values above 0: all of them are large
    for _ in range(0 if few else 8):
        t = _saddle(x[: cut + 1], masses[: cut + 1], n_users, 0.0)
        # Raised to where the tilted law is least.
        tilted = logs + t * x
        tilted = tilted[cut:] - max(tilted[: cut + 1].max() - math.log(n_users), 0.0)
        stop = (np.diff(tilted) > 0) | (tilted[:-1] < -25)
        step = int(stop.argmax()) if stop.any() else len(tilted) - 1
        if step == 0:
            break
        cut += step
    bottom = float(x[max(int((n_users * heads > 0.03 * rtol).argmax()) - 1, 0)])
    # By the exponent of the power law that the tail resembles.
    power = 1 + law.noise_std**2 * math.log1p(max(gap, float(x[cut])) / law.sizes[0])
    fine = min(max(power / math.sqrt(8 * rtol), 16.0), 600.0)
    bulk = x[: cut + 1], masses[: cut + 1]
    return _Split(law, n_users, rtol, bulk, bottom, float(x[-1]), fine, math.log(max(floor, SMALLEST)))


def _indices(limit: float, fine: int, start: float = 0) -> Reals:
    """Whole numbers from ``start`` to the limit; from ``fine`` on in steps of one part in ``fine``."""
    found = [int(start)]
    while found[-1] < limit:
        found.append(found[-1] + max(1, found[-1] // fine))
    return np.array(found, float)


def _geometric(low: float, high: float, fine: float) -> Reals:
    """Points from low to high in steps of at most one part in ``fine``."""
    return np.geomspace(low, high, 1 + math.ceil(math.log(high / low) * (fine + 1)))


def _masses(x: Reals, calls: Reals, puts: Reals, pivot: int, mass: float, dropped: float) -> Reals:
    """Masses at the kinks of a convex polygon: of puts up to the pivot, of calls from there; ``dropped`` lies below."""
    left, right = np.diff(puts[: pivot + 1]) / np.diff(x[: pivot + 1]), np.diff(calls[pivot:]) / np.diff(x[pivot:])
    return np.concatenate([np.diff(left, prepend=dropped), [right[0] - left[-1] + mass], np.diff(right, append=0.0)])


def _saddle(x: Reals, masses: Reals, n_users: int, shift: float) -> float:
    """The tilt t at which t times the mean of the tilted sum plus ``shift`` is 1, to a thousandth."""

    def excess(log_t: float) -> float:
        tilted = masses * np.exp(math.exp(log_t) * (x - x[-1]))
        return math.exp(log_t) * (n_users * float(tilted @ x) / float(tilted.sum()) + shift) - 1

    low = high = -math.log(n_users * float(x[-1]) + shift)
    while excess(high) < 0:
        high += 2
    while excess(low) > 0:
        low -= 2
    return math.exp(root(excess, low, high, xtol=1e-3))


@dataclass(frozen=True)
class _Split:
    """Bulk (points and masses up to the cut, for tilts only) and ends; ``floor`` is about log E[S_+] at least."""

    law: GaussianLaw
    n: int
    rtol: float
    bulk: tuple[Reals, Reals]
    bottom: float
    top: float
    fine: float
    floor: float

    @property
    def cut(self) -> float:
        return float(self.bulk[0][-1])

    @cached_property
    def above(self) -> tuple[float, float, float]:
        """``E[(X-cut)_+]``, ``P[X > cut]`` and ``E[X; X > cut]``."""
        call, _, tail, _ = (float(values[0]) for values in self.law.calls(np.array([self.cut])))
        return call, tail, call + self.cut * tail

    def log_divergence(self, upper: bool) -> float:
        """``log E[S_+] / (mass n)``: a sum over the number k of large values."""
        rest, total, log_ways = _Rest(self, upper), -math.inf, 0.0
        large, masses = self._large(upper)
        beyond = self.n * float(self.law.calls(np.array([self.top]))[0][0])
        sums, weights = np.zeros(1), np.ones(1)
        for k in range(self.n + 1):
            with np.errstate(divide="ignore"):
                logs = log_ways + np.log(weights)
            found = rest.log_total(sums, logs, k, max(total, self.floor) - LOG_NEGLIGIBLE)
            if k == 0:  # without large values, not more than the positive parts of all
                found = min(found, math.log(max(self.n * float(self._calls(np.zeros(1))[0][0]), SMALLEST)))
            total = logaddexp(total, found)
            if k == self.n or not len(large):
                break
            more = rest.log_more(large, masses, k)
            if more < max(total, self.floor) - LOG_NEGLIGIBLE + 2 or k == 60:
                total = logaddexp(total, more) if upper else total
                break
            log_ways += math.log((self.n - k) / (k + 1))
            if k == 0:
                # Sums of several values are on a coarser lattice.
                grid = _geometric(self.cut, 64 * self.top, max(self.fine / 8, 12))
                one, masses_one = _regrid(large, masses, grid, upper)
                sums, weights = large, masses
            else:
                sums, weights = (one, masses_one) if k == 1 else (sums, weights)
                both, products = (sums[:, None] + one).ravel(), (weights[:, None] * masses_one).ravel()
                sums, weights = _regrid(both, products, grid, upper)
        if upper and beyond:
            total = logaddexp(total, math.log(beyond))
        return total - math.log(self.law.mass * self.n)

    def _large(self, upper: bool) -> tuple[Reals, Reals]:
        """Values above the cut: spread onto the ends of cells, or at the mean of every cell."""
        if self.top == self.cut:
            return np.array([self.cut]), np.array([self.above[1]])
        x = _geometric(self.cut, self.top, self.fine)
        calls, _, tails, _ = self.law.calls(x)
        if upper:
            slopes = np.diff(calls) / np.diff(x)
            masses = np.maximum(np.diff(slopes, prepend=-tails[0], append=0.0), 0)
            return x, masses
        masses, first = -np.diff(tails), -np.diff(calls + x * tails)
        keep = masses > 0
        return np.clip(first[keep] / masses[keep], x[:-1][keep], x[1:][keep]), masses[keep]

    def lattice(self, t: float, upper: bool) -> tuple[float, float, Reals, Reals, float, int]:
        """Step for this tilt, origin, points as multiples of the step, masses of the bulk, what is left out below, contiguous points."""
        law = self.law
        h = math.sqrt(8 * self.rtol / max(self.n * law.rate * law.mass, 1.0)) / t
        origin, rarer = 0.0, min(1 - law.rate, law.kept) if law.kept else 0.0
        if law.rate < 1 and law.mean < 0:  # who is absent stands on the lattice
            if -law.mean < h and self.n * rarer * -law.mean * t < self.rtol / 2:
                origin = law.mean if 1 - law.rate > law.kept else 0.0
            else:
                h = -law.mean / math.ceil(-law.mean / h)
        x, masses = self.bulk
        tilted = masses * np.exp(t * (x - x[-1]))
        away = np.where(tilted > 0, x, 0.0)
        tilted /= tilted.sum()
        std = math.sqrt(float(tilted @ (away - tilted @ away) ** 2))
        fine = int(min(max(std / h, 64), 1024))
        right = _indices(max((self.cut - origin) / h, 2), fine)
        bottom = origin - min(self.bottom, law.mean)
        left = _indices(max(min(bottom / h, 50 / (t * h)), 3), fine)
        left = np.append(left[:-1], _indices(bottom / h, 12, left[-1]))
        places = [side((value - origin) / h) for value, _ in law.atoms for side in (round, math.floor, math.ceil)]
        index = np.unique(np.concatenate([-left, right, places]))
        return h, origin, *(self._above if upper else self._below)(index, h, origin), fine

    def _calls(self, x: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Those of the bulk."""
        call, tail, _ = self.above
        calls, puts, tails, heads = self.law.calls(x)
        beyond = x >= self.cut
        calls = np.where(beyond, 0, np.maximum(calls - call - tail * (self.cut - x), 0))
        return calls, puts, np.where(beyond, 0, np.maximum(tails - tail, 0)), heads

    def _above(self, index: Reals, h: float, origin: float) -> tuple[Reals, Reals, float]:
        """Masses of chords."""
        calls, puts, *_ = self._calls(origin + h * index)
        masses = _masses(index, calls / h, puts / h, self._pivot(origin + h * index), self._mass, 0.0)
        self._add_atoms(index, masses, h, origin, up=True)
        return index[masses > 0], masses[masses > 0], 0.0

    @property
    def _mass(self) -> float:
        """Probability of a blanket message below the cut."""
        return self.law.rate * self.law.mass - self.above[1]

    def _add_atoms(self, index: Reals, masses: Reals, h: float, origin: float, up: bool) -> None:
        """Atoms that are not on the lattice are moved to one side."""
        for value, probability in self.law.atoms:
            exact = (value - origin) / h
            at = round(exact)
            if abs(at - exact) > 1e-9:
                at = math.ceil(exact) if up else math.floor(exact)
            masses[int(np.searchsorted(index, at))] += probability

    def _below(self, index: Reals, h: float, origin: float) -> tuple[Reals, Reals, float]:
        """Masses below the tangents at the middles of all cells: at a point the lower one of two."""
        x, half = origin + h * index, h * np.diff(index) / 2
        pivot = self._pivot(x)
        call, put, tail, head = self._calls(x)
        calls, puts, tails, heads = self._calls((x[1:] + x[:-1]) / 2)
        dropped = float(head[0])
        # Where the tangent at the middle becomes negative, that at the end.
        bad = calls < tails * half
        right, left = (
            np.where(bad, call[1:], calls - tails * half),
            np.where(bad, call[1:] + 2 * tail[1:] * half, calls + tails * half),
        )
        calls = np.concatenate([left[:1], np.minimum(right[:-1], left[1:]), right[-1:]])
        bad = puts < heads * half
        left, right = (
            np.where(bad, put[:-1], puts - heads * half),
            np.where(bad, put[:-1] + 2 * head[:-1] * half, puts + heads * half),
        )
        puts = np.concatenate([left[:1], np.minimum(right[:-1], left[1:]), right[-1:]])
        forward = self.law.rate * self.law.mean - self.above[2] - self._mass * x
        puts[pivot:], calls[:pivot] = calls[pivot:] - forward[pivot:], puts[:pivot] + forward[:pivot]
        kept = np.arange(len(x))
        while True:
            at = min(max(int(np.searchsorted(kept, pivot)), 1), len(kept) - 2)
            masses = _masses(index[kept], calls[kept] / h, puts[kept] / h, at, self._mass, dropped)
            if masses.min() >= 0:
                break
            # A concave corner lies above the line between its neighbours.
            kept = kept[masses >= 0]
        found = np.zeros(len(x))
        found[kept] = masses
        self._add_atoms(index, found, h, origin, up=False)
        return index[found > 0], found[found > 0], dropped

    def _pivot(self, x: Reals) -> int:
        return min(max(int(np.searchsorted(x, self.law.middle)), 1), len(x) - 2)


def _regrid(x: Reals, masses: Reals, grid: Reals, upper: bool) -> tuple[Reals, Reals]:
    """A spread onto the grid of the same mean, or in every cell all of the mass at its mean."""
    cell = np.clip(np.searchsorted(grid, x, "right") - 1, 0, len(grid) - 2)
    if upper:
        share = masses * (x - grid[cell]) / (grid[cell + 1] - grid[cell])
        found = np.bincount(cell, masses - share, len(grid)) + np.bincount(cell + 1, share, len(grid))
        return grid[found > 0], found[found > 0]
    found, moment = np.bincount(cell, masses), np.bincount(cell, masses * x)
    keep = np.flatnonzero(found > 0)
    return np.clip(moment[keep] / found[keep], grid[keep], np.append(grid, math.inf)[keep + 1]), found[keep]


class _Rest:
    """The sum of all values that are not large: bounds of :math:`G(x) = E[(B+x)_+]` under a tilt for every x."""

    def __init__(self, split: _Split, upper: bool) -> None:
        self.split, self.n, self.upper, self.missing = split, split.n, upper, split.above[1]
        self.tilts: list[_Tilt] = []
        self.ratios: tuple[Reals, Reals, Reals] | None = None

    def log_total(self, x: Reals, logs: Reals, k: int, least: float) -> float:
        """``log sum(exp(logs) G(x))`` with n - k values, x ascending; what is surely below ``least`` is bounded."""
        m, total, start, which = self.n - k, -math.inf, 0, 0
        if m == 0:
            return _log_sum(logs + np.log(np.maximum(x, SMALLEST)))
        if not len(x):
            return -math.inf
        t, log_powers = self.rough
        rough = logs + (m / self.n * log_powers - 1 - np.log(t) + t * x[:, None]).min(axis=1)
        used = rough > least - math.log(len(x))
        if self.upper and not used.all():
            total = _log_sum(rough[~used])
        x, logs = x[used], logs[used]
        while start < len(x):
            tilt = self._tilt(which, float(x[0]))
            here = slice(start, int(np.searchsorted(x, tilt.end, "right")))
            bounds = logs[here] + tilt.chernoff(x[here], m)
            used = bounds > least - math.log(len(x))
            if used.any():
                total = logaddexp(total, _log_sum(logs[here][used] + tilt.log_calls(x[here][used], m, self.upper)))
            if self.upper and not used.all():
                total = logaddexp(total, _log_sum(bounds[~used]))
            start, which = max(start, here.stop), which + 1
            if start < len(x) and tilt.t * tilt.spread < 1:
                lines = self._lines(tilt, x[start:], m)
                if lines is not None:
                    return logaddexp(total, _log_sum(logs[start:] + lines))
        return total

    def _lines(self, tilt: "_Tilt", x: Reals, m: int) -> Reals | None:
        """Log of the line of the largest slope from the end of a tilt, or of a chord prolonged; None if these differ."""
        end, log_mass, step = np.array([tilt.end]), m * math.log1p(-self.missing), tilt.spread / 4
        at_end, certain = (float(tilt.log_calls(end, m, upper)[0]) for upper in (self.upper, False))
        before = float(tilt.log_calls(end - step, m, True)[0])
        if before >= certain:
            return None
        slope = certain + math.log(-math.expm1(before - certain)) - math.log(step)
        if slope < log_mass - self.split.rtol / 3:
            return None
        return np.asarray(
            np.logaddexp(at_end, (log_mass if self.upper else slope) + np.log(np.maximum(x - tilt.end, SMALLEST)))
        )

    def _tilt(self, which: int, first: float) -> "_Tilt":
        """The first tilt is the saddle point at the first x, each further one that of an x beyond the one before."""
        if which == len(self.tilts):
            self.tilts.append(_Tilt(self, self.tilts[-1].next if self.tilts else first))
        return self.tilts[which]

    @cached_property
    def rough(self) -> tuple[Reals, Reals]:
        """Tilts over many orders of magnitude, and bounds of ``n log M`` there."""
        t = _saddle(*self.split.bulk, self.n, 0.0) * 1.5 ** -np.arange(80.0)
        return t, np.array([self.log_power(one) for one in t])

    def log_power(self, t: float) -> float:
        """Upper bound of ``n log M(t)``, by the coarse points."""
        x, masses = self.split.bulk
        top = t * float(x[-1])
        growth = float(masses @ np.expm1(t * x)) - self.missing if top < 30 else math.inf
        if abs(growth) < 0.5:
            sizes = float(masses @ np.abs(np.expm1(t * x)))
            return self.n * (math.log1p(growth) + 300 * UNIT * (1 + sizes))
        log_moment = top + math.log(float(masses @ np.exp(t * x - top)))
        return self.n * (log_moment + 300 * UNIT * (1 + abs(log_moment) + top))

    def log_more(self, large: Reals, masses: Reals, k: int) -> float:
        """Chernoff's bound of what more than k large values add, by the best of several tilts."""
        best = math.inf
        if self.ratios is None:
            t, log_powers = (one[self.rough[0] * large[-1] < 600] for one in self.rough)
            moments = np.array([float(masses @ np.exp(one * large)) for one in t])
            self.ratios = t, log_powers, np.log(self.n * moments) - log_powers / self.n
        for t, log_power, log_ratio in zip(*(one.tolist() for one in self.ratios), strict=True):
            share = math.exp(min(log_ratio, 600.0)) / (k + 2)  # of two successive terms, at most
            if share < 1:
                first = (k + 1) * log_ratio - math.lgamma(k + 2) - math.log1p(-share)
                best = min(best, log_power - 1 - math.log(t) + first)
        return best


class _Tilt:
    """A tilt, the saddle point of one x; Chernoff's bound by the coarse points, whose chords lie above."""

    def __init__(self, rest: _Rest, centre: float) -> None:
        x, masses = rest.split.bulk
        n, self.rest = rest.n, rest
        t = self.t = _saddle(x, masses, n, centre)
        law = masses * np.exp(t * (x - x[-1]))
        law /= law.sum()
        away = np.where(law > 0, x, 0.0)
        mean = float(law @ away)
        self.spread = math.sqrt(n * float(law @ (away - mean) ** 2))
        # Below the end, the tilt is nearly right.
        self.end = max(centre + 3 * self.spread, 3 / t - n * mean)
        self.next = self.end + 2 * self.spread + 2 / t
        self.log_power = rest.log_power(t)

    def chernoff(self, x: Reals, m: int) -> Reals:
        """Bound of ``log G(x)`` with m values."""
        return np.asarray(m / self.rest.n * self.log_power + self.t * x - 1 - math.log(self.t))

    def log_calls(self, x: Reals, m: int, upper: bool) -> Reals:
        """Upper or lower bound of ``log G(x)`` with m values."""
        found = self.line.log_calls(x, m, upper)
        return np.minimum(found, self.chernoff(x, m)) if upper else found

    @cached_property
    def line(self) -> "_Line":
        return _Line(self.rest, self.t)


class _Line:
    """The transform of the tilted law of one value, at the frequencies of a period of the sum."""

    def __init__(self, rest: _Rest, t: float) -> None:
        n = self.n = rest.n
        self.h, self.origin, self.x, self.masses, dropped, self.fine = rest.split.lattice(t, rest.upper)
        self.missing = rest.missing + dropped
        self.waves: dict[int, tuple[Complexes, float, float]] = {}
        self.step = t * self.h  # the tilt in units of the lattice
        self.log_m = self.log_moment(self.step)
        law = self.masses * np.exp(self.step * (self.x - self.x[-1]))
        self.law = law / law.sum()
        away = np.where(law > 0, self.x, 0.0)
        self.mean = float(self.law @ away)
        self.spread = math.sqrt(n * float(self.law @ (away - self.mean) ** 2))
        growth = np.expm1(np.minimum(self.step * self.x, 600.0))
        rounding = float(self.masses @ np.abs(growth)) + self.missing
        curved = float(self.masses @ (growth - self.step * self.x))
        relative = n * (ROUNDING_32 * rounding + RTOL_CALL * max(curved, 0.0)) / math.exp(min(self.log_m, 600.0))
        self.slack = relative + ROUNDING_32 * (abs(n * self.log_m) + 8)

    def log_moment(self, t: float) -> float:
        """``log M(t)``, the probability of large values left out; ``inf`` on overflow."""
        top = t * float(self.x[-1])
        if top < 600:
            growth = float(self.masses @ np.expm1(t * self.x)) - self.missing
            if abs(growth) < 0.5:
                return math.log1p(growth)
        return top + math.log(float(self.masses @ np.exp(t * self.x - top)))

    @cached_property
    def period(self) -> int:
        return next_fast_len(math.ceil(16 * self.spread + 60 / self.step), real=True)

    @cached_property
    def transform(self) -> tuple[Reals, Complexes, Reals, float, bool]:
        """Frequencies, logarithms of the tilted transform times a phase, their errors, a bound beyond, whether all."""
        x, law, period = self.x, self.law, self.period
        count = math.ceil(self._cutoff() * period / (2 * math.pi))
        if count >= period // 2:
            y = 2 * math.pi / period * np.arange(period // 2 + 1)
            parts = np.where(x == 0, 0.0, law)
            growth = np.conj(rfft(np.bincount((x % period).astype(np.int64), parts, period)))
            growth -= parts.sum()
            error = np.full(
                len(y), 5 * UNIT * math.log2(period) * float(np.linalg.norm(parts)) + ROUNDING_32 * float(parts.sum())
            )
            return y, _log1p(growth), error, 0.0, True
        y = 2 * math.pi / period * np.arange(count)
        growth = np.zeros(count, complex)
        away = x - self.mean
        block = max(32, int(1e5 / len(x)))  # frequencies at once
        for first in range(0, count, block):
            half = np.outer(y[first : first + block], away) / 2
            sine = np.sin(half)
            growth[first : first + block] = 2 * (1j * ((sine * np.cos(half)) @ law) - (sine * sine) @ law)
        error = ROUNDING_32 * (np.abs(growth) + y * float(law @ np.abs(away)))
        return y, _log1p(growth), error, math.exp(-LOG_WAVE + 2), False

    def _cutoff(self) -> float:
        """Frequency beyond which the n-th power of the transform is below ``exp(-LOG_WAVE)``; 2 pi if there is none.

        Above the first frequency of two, by the transform of the points near 0; below, as in
        :mod:`flamelib.accounting.shuffling.bromwich`, by the variance of pairs of points at most pi / y apart.
        """
        x, law, near = self.x, self.law, np.abs(self.x) <= self.fine
        size = 2 ** math.ceil(math.log2(64 * self.fine))
        folded = np.bincount((x[near] % size).astype(np.int64), law[near], size)
        moduli = np.abs(rfft(folded)) + math.pi / size * float(law[near] @ np.abs(x[near])) + ROUNDING_32
        high = 2 * math.pi / size * np.arange(size // 2)
        logs = np.log(np.minimum(1 - folded.sum() + np.maximum(moduli[1:], moduli[:-1]), 1.0))
        low = math.pi / (2 * self.fine) * 1.2 ** -np.arange(100)[::-1]
        centre = x[int(np.searchsorted(np.cumsum(law), 0.5))]
        first, last = (
            np.searchsorted(x, centre - math.pi / 2 / low),
            np.searchsorted(x, centre + math.pi / 2 / low, "right"),
        )
        sums = [np.append(0.0, np.cumsum(law * (x - centre) ** power)) for power in range(3)]
        m0, m1, m2 = (one[last] - one[first] for one in sums)
        pairs = np.maximum(m0 * m2 - m1**2, 0)
        below = np.log(np.maximum(1 - (2 / math.pi * low[:-1]) ** 2 * pairs[1:], SMALLEST)) / 2
        above = high >= low[-1]
        y, decay = np.append(low[:-1], high[above]), np.append(below, logs[above])
        y[len(low) - 1 :] = np.append(low[-1], y[len(low) :])
        slow = np.flatnonzero(self.n * decay > -LOG_WAVE)
        return 2 * math.pi if len(slow) and slow[-1] == len(y) - 1 else float(y[slow[-1] + 1] if len(slow) else y[0])

    def log_calls(self, x: Reals, m: int, upper: bool) -> Reals:
        """Upper or lower bound of ``log G(x)`` with m values; linear between whole numbers x."""
        y, *_, is_all = self.transform
        t, at = self.step, (x + m * self.origin) / self.h
        low = np.floor(at)
        share = at - low
        wave, error, per_distance = self._wave(m)
        if is_all:
            values = [wave.real[(points % self.period).astype(np.int64)] for points in (low, low + 1)]
        else:
            phase = np.outer(low + m * self.mean, y)
            cosine, sine = np.cos(phase), np.sin(phase)
            turned = wave * np.exp(1j * y)
            values = [2 / self.period * (cosine @ one.real - sine @ one.imag) for one in (wave, turned)]
            error += per_distance * (m * abs(self.mean) + float(np.abs(low).max()))
        # In units of exp(t x).
        value = (1 - share) * values[0] * np.exp(-t * share) + share * values[1] * np.exp(t * (1 - share))
        error *= math.exp(t) if share.any() else 1.0
        sign = 1 if upper else -1
        if not upper:
            value = value - self._aliases(at, m)
        value = np.where(np.isnan(value), math.inf if upper else 0.0, value)
        return np.asarray(
            m * self.log_m
            + t * at
            + math.log(self.h)
            + np.log(np.maximum(value + sign * error, SMALLEST))
            + sign * self.slack
        )

    def _wave(self, m: int) -> tuple[Complexes, float, float]:
        """The integrand for m values, or all sums; the error, and that by the distance of a point."""
        if m not in self.waves:
            y, logs, errors, beyond, is_all = self.transform
            kernel = 1 / (4 * np.sinh((self.step + 1j * y) / 2) ** 2)
            wave = np.exp(m * logs) * kernel
            size = np.abs(kernel) * np.exp(max(m - 1, 0) * logs.real)
            if is_all:
                norm = 5 * UNIT * math.log2(self.period) * 1.5 * float(np.linalg.norm(wave)) / math.sqrt(self.period)
                found = irfft(wave, self.period), m * float(errors[0]) * float(size.max()) + norm, 0.0
            else:
                wave[0] /= 2
                error = 2 / self.period * float(size @ (m * errors + 8 * ROUNDING_32)) + beyond * float(
                    np.abs(kernel[-1])
                )
                found = wave, error, 2 / self.period * ROUNDING_32 * float(size @ y)
            self.waves = {m: found}
        return self.waves[m]

    def _aliases(self, x: Reals, m: int) -> Reals:
        """Chernoff's bound of copies of B one or more periods away, which are added to the sum."""
        total, centre = np.zeros(len(x)), x + m * self.mean
        size = min(8 / max(self.spread, SMALLEST), self.step / 2)
        for shift in (size, -size):
            moment = self.log_moment(self.step + shift) - self.log_m - shift * self.mean
            log_bound = m * moment + shift * centre - abs(shift) * self.period - 1 - math.log(self.step + shift)
            total += np.exp(np.minimum(log_bound, 600.0)) / -math.expm1(-abs(shift) * self.period)
        return total


def _log1p(z: Complexes) -> Complexes:
    """``log(1 + z)`` without cancellation; finite also where 1 + z is 0."""
    squared = np.maximum(2 * z.real + np.abs(z) ** 2, np.nextafter(-1, 0))
    return np.asarray(0.5 * np.log1p(squared) + 1j * np.arctan2(z.imag, 1 + z.real))


def _log_sum(logs: Reals) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum())) if top > -math.inf else top
