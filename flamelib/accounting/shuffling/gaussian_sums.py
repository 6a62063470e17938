r"""Certified expectation of the positive part of a sum with log-normal tails: sums on two lattices.

Under Gaussian noise the amplification variable L has log-normal tails, so that its moment generating function is
infinite to the right of the imaginary axis.  Let X be what one user adds to S: L, 0 for a message that is not from the
blanket, or the value of absence.  With its *calls* :math:`c(x)=E[(X-x)_+]`, :math:`E f(X)=\int f''(x)\,c(x)\,dx` for
convex f that vanish towards :math:`-\infty`.  So larger convex calls raise :math:`E[S_+]` and smaller ones lower it:
above are the chords of c between the points of a lattice, below are lines from point to point, each below a tangent of
its cell.  Both differ from c by the square of the step, which is fine near 0 and in proportion to X beyond.

*Large values.*  One user in 20 crowds at most has an X above the *cut*.  Given that k users have one,

.. math:: E[S_+] = \sum_k \binom nk E\big[(B_{n-k} + X_1 + \dots + X_k)_+\big],

with B the sum of the others.  Large values and their sums live on a geometric grid: above, every value is split onto
the two points around it; below, all that falls between two points stands at its mean (Jensen).  More than k large
values add at most what Chernoff's bound says.

*The others.*  :math:`G(x) = E[(B+x)_+]` is a trapezoid sum over the frequencies of a lattice variable whose tilt is the
saddle point for an x nearby.  Copies of B one period away are bounded by Chernoff's bound, frequencies that are left
out by the decay of the transform.  Far above, G lies between lines (it is convex, of slope at most 1).

*Ends.*  Values above the top are cut off, :math:`S_+\le(\sum\min(X_i,T))_+ + \sum(X_i-T)_+`; those below the bottom are
moved up (upper bound) or left out (lower bound).

*Round-off.*  Calls that are off by a share of ``RTOL_CALL`` change :math:`E f(X)` by that share of
:math:`\int f'' c`; all other roundings are bounded term by term.  Proof: book, chapter on the privacy blanket, section
on how the blanket divergence is computed.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import erfcx, log_ndtr

from flamelib.accounting.shuffling.bromwich import Bracket, log1p_complex
from flamelib.core.arrays import NODES, WEIGHTS, Complexes, Reals
from flamelib.core.logspace import ROUNDING_32, SMALLEST, UNIT, logaddexp
from flamelib.core.search import root

RTOL = 1e-5  # relative error that one lattice adds, about: its extra variance times half the squared tilt
RTOL_LARGE = 1e-4  # the same at an epsilon above 1, which is insensitive to delta, at least
RTOL_QUICK = 5e-3  # the same for an estimate
MAX_NOISE_STD = 1e6  # largest noise_std in the numerics (larger ones cancel); delta decreases in noise_std
MIN_NOISE_STD = 0.07  # noise_std below which the bound is that of one unshuffled message: shuffling amplifies little
MAX_EXPONENT = 600.0  # exponents beyond it are not exponentiated
MAX_LOG_RATIO = 340.0  # largest log-likelihood ratio: the square of its exponential is a double
MEAN_LARGE = 0.05  # mean number of users with a large value
MAX_LARGE = 60  # number of large values beyond which Chernoff's bound is taken
MIN_CALL = 1e-300  # calls below it lose digits; values whose call is smaller are cut off
LOG_NEGLIGIBLE = 13.0  # minus the logarithm of a negligible term, relative to the sum and to the error asked for
RTOL_CALL = 2.0**-38  # rounding of a call: exponents up to 700, and cancellation by factors up to 40 in Mills' ratios
MIN_GAP = 2.0**-20  # relative distance of coarse points below which slopes lose digits
LATTICE = 64, 1024  # multiples of the step up to which the lattice has all points, at least and at most
MAX_COUNT = 2**20  # frequencies of a sum at most; beyond it, Chernoff's bound is used
MAX_FINE = 600.0  # points of the geometric grid in a factor of e, at most


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
        """Probability of a message that is not from the blanket, without cancellation."""
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
        """Values of X in equal steps of u, as far as the calls are doubles."""
        u = np.linspace(0, min(self.max_u + 28 / self.noise_std, MAX_LOG_RATIO - self.epsilon), 300)
        up, down = self.sizes
        left = -down * np.expm1(u) if self.blanket else up * np.expm1(-u)
        right = self.middle + up * np.expm1(u)
        near = -self.middle * np.geomspace(1e-5, 1, 30)
        x = np.unique(np.concatenate([self.middle + left, right, near, [0.0, self.mean]]))
        return np.asarray(x[np.append(np.diff(x) > MIN_GAP * np.abs(x[1:]), True)])

    def calls(self, x: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """``E[(X-x)_+]``, ``E[(x-X)_+]``, ``P[X > x]`` and ``P[X < x]``; on the tail's side they do not cancel."""
        up, down = self.sizes
        call, put, tail, head = np.empty((4, *x.shape))
        gap = x - self.middle
        here = gap >= 0
        call[here], tail[here] = self._beyond(np.log1p(gap[here] / up), up, 1)
        # The mean of L less its middle, without cancellation.
        offset = -math.expm1(self.epsilon) * self.kept / self.rate
        offset -= 0.0 if self.blanket else math.expm1(-1 / (2 * self.noise_std**2))
        put[here], head[here] = call[here] + gap[here] - offset, 1 - tail[here]
        here, gap = ~here, -gap[~here]
        if self.blanket:
            put[here], head[here] = self._beyond(np.log1p(gap / down), down, 1)
        else:
            inside = gap < up
            found = self._beyond(-np.log1p(-np.where(inside, gap / up, 0.5)), up, -1)
            put[here], head[here] = (np.where(inside, values, 0) for values in found)
        call[here], tail[here] = put[here] + gap + offset, 1 - head[here]
        call, put, tail, head = (self.rate * self.mass * values for values in (call, put, tail, head))
        for value, p in ((0.0, self.kept), (self.mean, 1 - self.rate)):
            call, put = call + p * np.maximum(value - x, 0), put + p * np.maximum(x - value, 0)
            tail, head = tail + p * (value > x), head + p * (value < x)
        return call, put, tail, head

    def _beyond(self, u: Reals, size: float, sign: int) -> tuple[Reals, Reals]:
        """Mean of ``size |exp(sign v) - exp(sign u)|`` over v beyond u on one leg, and the leg's probability there.

        With R Mills' ratio and :math:`z = \\sigma u + \\kappa/\\sigma`, a difference of values of R at distance
        :math:`1/\\sigma`.
        """
        std, slant = self.noise_std, 0.5 if self.blanket else 0.0
        log_height = -1 / (8 * std**2) - math.log(self.mass) if self.blanket else 0.0
        log_density = log_height - math.log(2 * math.pi) / 2 - (slant + std**2 / 2 * u) * u
        z = std * u + slant / std
        call = size * np.exp(log_density + sign * u) * _fall(z - (sign > 0) / std, 1 / std)
        return call, np.exp(log_density) * _mills(z)


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
    """Certified bracket of the log divergence ``log(E[S_+] / (mass n))``, of width about ``5 rtol``, at least 1e-4.

    Where E[S_+] underflows, or noise or epsilon are out of the range of doubles, it has an upper end only.
    """
    high = upper(law, n_users, rtol)
    if _representable(law) != law or law.noise_std < MIN_NOISE_STD:
        return Bracket(-math.inf, high)
    return Bracket(min(_Split(law, n_users, rtol).log_divergence(is_upper=False), high), high)


def upper(law: GaussianLaw, n_users: int, rtol: float) -> float:
    """Upper end of the :func:`bracket`."""
    single = _unshuffled(law)
    if law.noise_std < MIN_NOISE_STD:
        return single
    return min(single, _Split(_representable(law), n_users, rtol).log_divergence(is_upper=True))


def quick(law: GaussianLaw, n_users: int) -> float:
    """Rough upper end, for the search of the epsilon at which to certify."""
    return upper(law, n_users, RTOL_QUICK)


def _representable(law: GaussianLaw) -> GaussianLaw:
    """The distribution at a noise_std that does not cancel and an epsilon at which no likelihood ratio overflows."""
    epsilon = min(law.epsilon, MAX_LOG_RATIO - law.max_u)
    return replace(law, noise_std=min(law.noise_std, MAX_NOISE_STD), epsilon=epsilon)


def _unshuffled(law: GaussianLaw) -> float:
    """Log divergence of one message, sent with probability ``rate``: an upper bound for every n by convexity."""
    shift, half = law.epsilon * law.noise_std, 1 / (2 * law.noise_std)
    first, second = float(log_ndtr(half - shift)), law.epsilon + float(log_ndtr(-half - shift))
    slack = 64 * UNIT * (1 + abs(first))
    remainder = -math.expm1(min(second - first, 0.0)) + slack
    return first + math.log(remainder) + slack + math.log(law.rate)


def _indices(limit: float, fine: int, start: float = 0) -> Reals:
    """Whole numbers from ``start`` to the limit; from ``fine`` on in steps of one part in ``fine``."""
    found = [int(start)]
    while found[-1] < limit:
        found.append(found[-1] + max(1, found[-1] // fine))
    return np.array(found, float)


def _geometric(low: float, high: float, fine: float) -> Reals:
    """Points from low to high in steps of at most one part in ``fine``."""
    return np.geomspace(low, high, 1 + math.ceil(math.log(high / low) * (fine + 1)))


def _kinks(x: Reals, calls: Reals, puts: Reals, mean: float, mass: float, dropped: float = 0.0) -> Reals:
    """Masses at the kinks of a polygon: of puts up to the mean, of calls from there; ``dropped`` lies below."""
    pivot = _pivot(x, mean)
    left, right = np.diff(puts[: pivot + 1]) / np.diff(x[: pivot + 1]), np.diff(calls[pivot:]) / np.diff(x[pivot:])
    return np.concatenate([np.diff(left, prepend=dropped), [right[0] - left[-1] + mass], np.diff(right, append=0.0)])


def _pivot(x: Reals, mean: float) -> int:
    return min(max(int(np.searchsorted(x, mean)), 1), len(x) - 2)


def _lower(left: Reals, right: Reals) -> Reals:
    """Values at all points, by those of one line in every cell at its two ends: the smaller one."""
    return np.concatenate([left[:1], np.minimum(right[:-1], left[1:]), right[-1:]])


@dataclass(frozen=True)
class _Measure:
    """Masses at points, of total mass ``1 - missing``; ``above`` is the call and the tail that were taken off."""

    x: Reals
    masses: Reals
    missing: float
    above: tuple[float, float]

    @cached_property
    def logs(self) -> Reals:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.masses))

    def log_moment(self, t: float) -> float:
        """``log M(t)``."""
        top = t * float(self.x[-1])
        growth = float(self.masses @ np.expm1(t * self.x)) - self.missing if top < MAX_EXPONENT else math.inf
        if abs(growth) < 0.5:
            return math.log1p(growth)
        return _log_sum(self.logs + t * self.x)

    def slack(self, t: float) -> float:
        """Bound on the rounding of ``log M(t)``."""
        log_m, top = self.log_moment(t), t * float(self.x[-1])
        x, scale = t * self.x, math.exp(-min(max(log_m, 0.0), MAX_EXPONENT))
        growth = (
            np.expm1(np.minimum(x, MAX_EXPONENT)) if top < MAX_EXPONENT else np.exp(np.minimum(x - log_m, MAX_EXPONENT))
        )
        scale = scale if top < MAX_EXPONENT else 1.0
        size, curved = float(self.masses @ np.abs(growth)) + self.missing, float(self.masses @ (growth - x * scale))
        taken = math.exp(min(top - log_m, MAX_EXPONENT)) * (t * self.above[0] + self.above[1])
        relative = scale * (ROUNDING_32 * size + RTOL_CALL * max(curved, 0.0)) + RTOL_CALL * taken
        return relative + ROUNDING_32 * (abs(log_m) + top * (top > MAX_EXPONENT))

    def tilted(self, t: float) -> tuple[Reals, float, float]:
        """The law under the tilt, its mean and standard deviation."""
        logs = self.logs + t * self.x
        law = np.exp(logs - logs.max())
        law /= law.sum()
        away = np.where(law > 0, self.x, 0.0)
        mean = float(law @ away)
        return law, mean, math.sqrt(float(law @ (away - mean) ** 2))

    def saddle(self, n_users: int, shift: float) -> float:
        """The tilt t at which t times the mean of the tilted sum plus ``shift`` is 1, to a thousandth."""

        def excess(log_t: float) -> float:
            return math.exp(log_t) * (n_users * self.tilted(math.exp(log_t))[1] + shift) - 1

        low = high = -math.log(n_users * float(self.x[-1]) + shift)
        while excess(high) < 0:
            high += 2
            if high > low + 60:
                return math.exp(low)  # no value is positive: any tilt
        while excess(low) > 0:
            low -= 2
        return math.exp(root(excess, low, high, xtol=1e-3))


class _Split:
    """Cut, top and bottom for a relative error (any choice is valid); the bulk below the cut, at coarse points."""

    def __init__(self, law: GaussianLaw, n_users: int, rtol: float) -> None:
        rtol = max(rtol, RTOL_LARGE) if law.epsilon > 1 else rtol
        self.law, self.n, self.rtol = law, n_users, rtol
        x = law.points()
        calls, puts, tails, heads = law.calls(x)
        gap = (1 - n_users) * law.mean
        # About what one value that is larger than the sum of all others is on average gives.
        call, _, tail, _ = (float(values[0]) for values in law.calls(np.array([gap])))
        floor = max(call * min(n_users, 1 / max(tail, MIN_CALL)), SMALLEST)
        with np.errstate(divide="ignore"):
            log_calls = np.log(n_users * calls)
        share = 0.03 * rtol
        self.bottom = float(x[max(int((n_users * heads > share).argmax()) - 1, 0)])
        first = int(np.searchsorted(x, 0.0, "right"))
        floors = max(self._by_chernoff(x, calls, puts, log_calls) - 10, math.log(floor)), math.log(floor)
        for self.floor in floors:
            end = ((x > 0) & ((log_calls <= math.log(share) + self.floor) | (calls < MIN_CALL))).argmax()
            count = 1 + max(int(end) if end else len(x) - 1, first)
            masses = self._masses(x[:count], calls[:count], puts[:count])
            cut, is_light = self._cut(x[:count], masses, tails[:count])
            if is_light:  # else the floor may be far above the answer
                break
        x, masses, self.top = x[:count], masses[:count], float(x[count - 1])
        self.cut = float(x[cut])
        call, _, tail, _ = (float(values[0]) for values in law.calls(x[cut : cut + 1]))
        self.above, self.mass, self.mean = (call, tail), 1 - tail, law.mean - call - self.cut * tail
        self.bulk = _Measure(x[: cut + 1], masses[: cut + 1], tail, self.above)
        # By the exponent of the power law that the tail resembles.
        power = 1 + law.noise_std**2 * math.log1p(max(gap, self.cut) / law.sizes[0])
        self.fine = min(max(power / math.sqrt(8 * rtol), 16.0), MAX_FINE)

    def _masses(self, x: Reals, calls: Reals, puts: Reals) -> Reals:
        """Masses at coarse points, larger values cut off."""
        return np.maximum(_kinks(x, calls - calls[-1], puts, self.law.mean, 1.0), 0)

    def _by_chernoff(self, x: Reals, calls: Reals, puts: Reals, log_calls: Reals) -> float:
        """About the least bound of ``log E[S_+]``, by values below some x by Chernoff's and those above one by one."""
        low, high = int(np.searchsorted(x, 0.0, "right")) + 2, int((calls > MIN_CALL).sum()) - 1
        least = math.inf
        while high - low > 1:
            end = (low + high) // 2
            masses = self._masses(x[: end + 1], calls[: end + 1], puts[: end + 1])
            bulk = _Measure(x[: end + 1], masses, 0.0, (0.0, 0.0))
            t = bulk.saddle(self.n, 0.0)
            below, beyond = self.n * bulk.log_moment(t) - math.log(t) - 1, float(log_calls[end])
            least = min(least, logaddexp(below, beyond))
            low, high = (low, end) if below > beyond else (end, high)
        return least if least < math.inf else -math.inf

    def _cut(self, x: Reals, masses: Reals, tails: Reals) -> tuple[int, bool]:
        """Where values are rare, and then on to where the tilted law is least; whether one tilt does for all values."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.n * masses)

        def tilted(cut: int) -> Reals:
            t = _Measure(x[: cut + 1], masses[: cut + 1], 0.0, (0.0, 0.0)).saddle(self.n, 0.0)
            found = logs + t * x
            return np.asarray(found - max(found[: cut + 1].max() - math.log(self.n), 0.0))

        used = np.flatnonzero(tilted(len(x) - 1) >= -25)
        if len(used) and used[-1] < len(x) - 1:
            return max(int(used[-1]) + 1, int(np.searchsorted(x, 0.0, "right"))), True
        rare = (x > 0) & (self.n * tails <= MEAN_LARGE)
        cut = int(rare.argmax()) if rare.any() else len(x) - 1
        if self.n * float(tails[x >= 0][0]) <= MEAN_LARGE:
            return cut, False  # all values above 0 are large
        for _ in range(8):
            found = tilted(cut)[cut:]
            stop = (np.diff(found) > 0) | (found[:-1] < -25)
            step = int(stop.argmax()) if stop.any() else len(found) - 1
            if step == 0:
                break
            cut += step
        return cut, False

    def log_divergence(self, is_upper: bool) -> float:
        """``log E[S_+] / (mass n)``: a sum over the number k of large values."""
        rest, total, log_ways = _Rest(self, is_upper), -math.inf, 0.0
        large, masses = self._large(is_upper)
        sums, weights = np.zeros(1), np.ones(1)
        for k in range(self.n + 1):
            least = max(total, self.floor) - LOG_NEGLIGIBLE
            with np.errstate(divide="ignore"):
                found = rest.log_total(sums, log_ways + np.log(weights), k, least)
            if k == 0:  # without large values, not more than the positive parts of all
                found = min(found, math.log(max(self.positive, SMALLEST)))
            total = logaddexp(total, found)
            if k == self.n or not len(large):
                break
            more = min(rest.log_more(large, masses, k), self._log_more(large, masses, k))
            if more < least + 2 or k == MAX_LARGE:
                total = logaddexp(total, more) if is_upper else total
                break
            log_ways += math.log((self.n - k) / (k + 1))
            if k == 0:
                # Sums of several values are on a coarser grid.
                grid = _geometric(self.cut, 64 * self.top, max(self.fine / 12, 24.0))
                one, masses_one = _regrid(large, masses, grid, is_upper)
                sums, weights = large, masses
            else:
                sums, weights = (one, masses_one) if k == 1 else (sums, weights)
                both, products = (sums[:, None] + one).ravel(), (weights[:, None] * masses_one).ravel()
                sums, weights = _regrid(both, products, grid, is_upper)
        beyond = self.n * float(self.law.calls(np.array([self.top]))[0][0])
        if is_upper and beyond:
            total = logaddexp(total, math.log(beyond))
        if not is_upper:
            total = max(total, self._one_alone())
        slack = 2 * MAX_LARGE * RTOL_CALL + ROUNDING_32 * (abs(total) + math.log(self.n))
        return total - math.log(self.law.mass * self.n) + (slack if is_upper else -slack)

    @property
    def positive(self) -> float:
        """Mean of the positive parts of all values that are not large."""
        return self.n * float(self._calls(np.zeros(1))[0][0])

    def _log_more(self, large: Reals, masses: Reals, k: int) -> float:
        """What more than k large values add, by the positive parts of all values: close for heavy tails."""
        mean = self.n * float(masses.sum())
        tail = k * math.log(mean) - math.lgamma(k + 1)  # of k others or more
        return tail + math.log(self.n * float(masses @ large) + self.positive * mean / (k + 1)) + RTOL_CALL

    def _one_alone(self) -> float:
        """Lower bound of ``log E[S_+]`` by one value above the mean of all others, which are not (Jensen)."""
        gap = (1 - self.n) * self.law.mean
        call, _, tail, _ = (float(values[0]) for values in self.law.calls(np.array([gap])))
        below = (self.law.mean - call - gap * tail) / (1 - tail)  # the mean of a value that is not above the gap
        alone = float(self.law.calls(np.array([(1 - self.n) * below]))[0][0])
        return math.log(self.n) + (self.n - 1) * math.log1p(-tail) + math.log(max(alone, SMALLEST))

    def _large(self, is_upper: bool) -> tuple[Reals, Reals]:
        """Values above the cut: spread onto the ends of cells, or at the mean of every cell."""
        if self.top == self.cut:
            return np.array([self.cut])[: self.above[1] > 0], np.array([self.above[1]])[: self.above[1] > 0]
        x = _geometric(self.cut, self.top, self.fine)
        calls, _, tails, _ = self.law.calls(x)
        if is_upper:
            slopes = np.diff(calls) / np.diff(x)
            return x, np.maximum(np.diff(slopes, prepend=-tails[0], append=0.0), 0)
        masses, first = -np.diff(tails), -np.diff(calls + x * tails)
        keep = (masses > 0) & (tails[1:] > MIN_CALL)
        return np.clip(first[keep] / masses[keep], x[:-1][keep], x[1:][keep]), masses[keep]

    def step(self, t: float) -> tuple[float, float]:
        """Step of the lattice for this tilt, and its origin."""
        law, distance = self.law, -self.law.mean
        h = math.sqrt(8 * self.rtol / max(self.n * law.rate * law.mass, 1.0)) / t
        if law.rate == 1 and not law.blanket:
            return h, law.middle
        origin, rarer = (law.mean, law.kept) if 1 - law.rate > law.kept else (0.0, 1 - law.rate)
        if min(rarer, distance) > 0:
            # Both atoms are on the lattice, or the rarer one, spread onto two points, adds little variance.
            h = max(distance / math.ceil(distance / h), min(h, 2 * self.rtol / (self.n * rarer * distance * t * t)))
        return h, origin

    def lattice(self, h: float, origin: float, fine: int, decay: float, is_upper: bool) -> tuple[Reals, Reals, float]:
        """Points as multiples of the step, contiguous up to ``fine``, their masses, and what is left out below."""
        right = _indices(max((self.cut - origin) / h, 2), fine)
        bottom = (origin - min(self.bottom, self.law.mean)) / h
        left = _indices(max(min(bottom, decay / h), 3), fine)
        left = np.append(left[:-1], _indices(bottom, 12, left[-1]))
        index = np.unique(np.concatenate([-left, right]))
        return (self._above if is_upper else self._below)(index, h, origin)

    def _calls(self, x: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Those of the bulk."""
        call, tail = self.above
        calls, puts, tails, heads = self.law.calls(x)
        beyond = x >= self.cut
        calls = np.where(beyond, 0, np.maximum(calls - call - tail * (self.cut - x), 0))
        return calls, puts, np.where(beyond, 0, np.maximum(tails - tail, 0)), heads

    def _above(self, index: Reals, h: float, origin: float) -> tuple[Reals, Reals, float]:
        """Masses of chords."""
        x = origin + h * index
        calls, puts, *_ = self._calls(x)
        masses = _kinks(x, calls, puts, self.law.mean, self.mass)
        return index[masses > 0], masses[masses > 0], 0.0

    def _below(self, index: Reals, h: float, origin: float) -> tuple[Reals, Reals, float]:
        """Masses below one tangent in every cell, at its middle, or at its end where it would become negative."""
        x = origin + h * index
        middle = (x[1:] + x[:-1]) / 2
        ends, middles = self._calls(x), self._calls(middle)
        negative = middles[0] < middles[2] * (x[1:] - middle)
        call, put, tail, head = (np.where(negative, end[1:], mid) for end, mid in zip(ends, middles, strict=True))
        at = np.where(negative, x[1:], middle)
        right, left = x[1:] - at, at - x[:-1]
        calls, puts = _lower(call + tail * left, call - tail * right), _lower(put - head * left, put + head * right)
        pivot, dropped = _pivot(x, self.law.mean), float(ends[3][0])
        forward = self.mean - self.mass * x
        puts[pivot:], calls[:pivot] = calls[pivot:] - forward[pivot:], puts[:pivot] + forward[:pivot]
        while True:
            masses = _kinks(x, calls, puts, self.law.mean, self.mass, dropped)
            if masses.min() >= 0:
                return index[masses > 0], masses[masses > 0], dropped
            if (masses >= 0).sum() < 3:
                return index[:1], np.array([self.mass - dropped]), dropped
            # A concave corner lies above the line between its neighbours.
            index, x, calls, puts = (values[masses >= 0] for values in (index, x, calls, puts))


def _regrid(x: Reals, masses: Reals, grid: Reals, is_upper: bool) -> tuple[Reals, Reals]:
    """A spread onto the grid of the same mean, or in every cell all of the mass at its mean."""
    cell = np.clip(np.searchsorted(grid, x, "right") - 1, 0, len(grid) - 2)
    if is_upper:
        share = masses * (x - grid[cell]) / (grid[cell + 1] - grid[cell])
        found = np.bincount(cell, masses - share, len(grid)) + np.bincount(cell + 1, share, len(grid))
        return grid[found > 0], np.asarray(found[found > 0], float)
    found, moment = (np.asarray(np.bincount(cell, one), float) for one in (masses, masses * x))
    keep = np.flatnonzero(found > 0)
    means = np.clip(moment[keep] / found[keep], grid[keep], np.append(grid, math.inf)[keep + 1])
    return means, np.asarray(found[keep], float)


class _Rest:
    """The sum of all values that are not large: bounds of :math:`G(x) = E[(B+x)_+]` under a tilt for every x."""

    def __init__(self, split: _Split, is_upper: bool) -> None:
        self.split, self.n, self.is_upper = split, split.n, is_upper
        self.tilts: list[_Tilt] = []
        self.ratios: Reals | None = None

    def log_total(self, x: Reals, logs: Reals, k: int, least: float) -> float:
        """``log sum(exp(logs) G(x))`` with n - k values, x ascending; what is surely below ``least`` is bounded."""
        m, total, start, which = self.n - k, -math.inf, 0, 0
        if m == 0:
            return _log_sum(logs + np.log(np.maximum(x, SMALLEST)))
        t, log_powers = self.rough
        rough = logs + (m / self.n * log_powers - 1 - np.log(t) + t * x[:, None]).min(axis=1)
        used = rough > least - math.log(max(len(x), 1))
        if self.is_upper:
            total = _log_sum(rough[~used])
        x, logs = x[used], logs[used]
        while start < len(x):
            tilt = self._tilt(which, float(x[0]))
            here = slice(start, int(np.searchsorted(x, tilt.end, "right")))
            bounds = logs[here] + tilt.chernoff(x[here], m)
            used = bounds > least - math.log(len(x))
            if used.any():
                total = logaddexp(total, _log_sum(logs[here][used] + tilt.log_calls(x[here][used], m, self.is_upper)))
            if self.is_upper:
                total = logaddexp(total, _log_sum(bounds[~used]))
            start, which = max(start, here.stop), which + 1
            if start < len(x):
                lines = self._line(tilt, x[start:], m)
                if lines is not None:
                    return logaddexp(total, _log_sum(logs[start:] + lines))
        return total

    def _line(self, tilt: "_Tilt", x: Reals, m: int) -> Reals | None:
        """Log of the mean of B + x, plus (upper) what G exceeds it by at the end of a tilt; None if that is much."""
        power = (m - 1) * math.log1p(-self.split.above[1])

        def line(x: Reals | float) -> Reals | float:
            return self.split.mass * x + m * self.split.mean

        at_end = float(tilt.log_calls(np.array([tilt.end]), m, True)[0]) - power
        excess = math.exp(min(at_end, MAX_EXPONENT)) - line(tilt.end)
        rounding = 2 * ROUNDING_32 * (x + m * abs(self.split.mean))
        if not excess < self.split.rtol / 3 * line(tilt.end):
            return None
        return np.asarray(power + np.log(line(x) + (max(excess, 0.0) + rounding if self.is_upper else -rounding)))

    def _tilt(self, which: int, first: float) -> "_Tilt":
        """The first tilt is the saddle point at the first x, each further one that of an x beyond the one before."""
        if which == len(self.tilts):
            self.tilts.append(_Tilt(self, self.tilts[-1].next if self.tilts else first))
        return self.tilts[which]

    @cached_property
    def rough(self) -> tuple[Reals, Reals]:
        """Tilts over many orders of magnitude, and bounds of ``n log M`` there."""
        t = self.split.bulk.saddle(self.n, 0.0) * 1.5 ** -np.arange(80.0)
        return t, np.array([self.log_power(one) for one in t])

    def log_power(self, t: float) -> float:
        """Upper bound of ``n log M(t)``, by the chords between the coarse points."""
        return self.n * (self.split.bulk.log_moment(t) + self.split.bulk.slack(t))

    def log_more(self, large: Reals, masses: Reals, k: int) -> float:
        """Chernoff's bound of what more than k large values add, by the best of several tilts."""
        t, log_powers = (values[self.rough[0] * large[-1] < MAX_EXPONENT] for values in self.rough)
        if self.ratios is None:
            moments = np.array([float(masses @ np.exp(one * large)) for one in t])
            self.ratios = np.log(self.n * moments) - log_powers / self.n
        share = np.exp(np.minimum(self.ratios, MAX_EXPONENT)) / (k + 2)  # of two successive terms, at most
        best = log_powers - 1 - np.log(t) + (k + 1) * self.ratios - math.lgamma(k + 2)
        best = best - np.log1p(-np.minimum(share, 0.99)) + ROUNDING_32 * np.abs(best)
        return float(best[share < 0.99].min(initial=math.inf))


class _Tilt:
    """A tilt, the saddle point of one x; Chernoff's bound by the coarse points, whose chords lie above."""

    def __init__(self, rest: _Rest, centre: float) -> None:
        bulk, n, self.rest = rest.split.bulk, rest.n, rest
        t = self.t = bulk.saddle(n, centre)
        _, mean, std = bulk.tilted(t)
        self.spread = math.sqrt(n) * std
        # Below the end, the tilt is nearly right.
        self.end = max(centre + 3 * self.spread, 3 / t - n * mean, 1 / t)
        self.log_power = rest.log_power(t)
        # G(x) is about x at most: the tilt is far from right where its bound is far above.
        for _ in range(60):
            if self.log_power + t * self.end - math.log(t) < math.log(self.end) + 10 or self.end < 1.01 * centre:
                break
            self.end = centre + (self.end - centre) / 2
        self.next = self.end + min(2 * self.spread + 2 / t, 2 * (self.end - centre))

    def chernoff(self, x: Reals, m: int) -> Reals:
        """Bound of ``log G(x)`` with m values."""
        return np.asarray(m / self.rest.n * self.log_power + self.t * x - 1 - math.log(self.t))

    def log_calls(self, x: Reals, m: int, is_upper: bool) -> Reals:
        """Upper or lower bound of ``log G(x)`` with m values."""
        found = self.line.log_calls(x, m, is_upper)
        return np.minimum(found, self.chernoff(x, m)) if is_upper else found

    @cached_property
    def line(self) -> "_Line":
        return _Line(self.rest, self.t)


class _Line:
    """The transform of the tilted law of one value, at the frequencies of a period of the sum."""

    def __init__(self, rest: _Rest, t: float) -> None:
        self.n, split = rest.n, rest.split
        self.decay = LOG_NEGLIGIBLE - math.log(split.rtol)  # minus the logarithm of a negligible transform
        self.wave: tuple[int, Complexes, float, float] = 0, np.zeros(0, complex), 0.0, 0.0
        std = split.bulk.tilted(t)[2]
        self.h, self.origin = split.step(t)
        self.count, lost = 0, math.inf
        # Where most values share a cell, the lower lattice loses a part of the mean.
        while not self.count or (lost > split.rtol and self.count < MAX_COUNT // 16 and std / self.h < 500):
            self.h /= 4 if self.count else 1
            self.fine = int(min(max(std / self.h, LATTICE[0]), LATTICE[1]))
            self.x, masses, dropped = split.lattice(self.h, self.origin, self.fine, 50 / t, rest.is_upper)
            lost = self.n * t * (split.mean - float(masses @ (self.origin + self.h * self.x)))
            self.step = t * self.h  # the tilt in units of the lattice
            self.measure = _Measure(self.x, masses, split.above[1] + dropped, (split.above[0] / self.h, split.above[1]))
            self.law, self.mean, spread = self.measure.tilted(self.step)
            self.spread = math.sqrt(self.n) * spread
            self.period = next_fast_len(math.ceil(16 * self.spread + 2 * self.decay / self.step), real=True)
            self.count = math.ceil(min(self._cutoff() / (2 * math.pi), 0.5) * self.period)
        self.log_m, self.slack = self.measure.log_moment(self.step), self.measure.slack(self.step)

    @cached_property
    def transform(self) -> tuple[Reals, Complexes, Reals, bool]:
        """Frequencies, logarithms of the tilted transform times a phase, their errors, whether all of a period."""
        x, law, period = self.x, self.law, self.period
        if self.count >= period // 2:
            parts = np.where(x == 0, 0.0, law)
            growth = np.conj(rfft(np.bincount((x % period).astype(np.int64), parts, period))) - parts.sum()
            error = np.full(period // 2 + 1, _fft_error(period, float(parts.sum())) + ROUNDING_32)
            return 2 * math.pi / period * np.arange(period // 2 + 1), log1p_complex(growth), error, True
        y, away = 2 * math.pi / period * np.arange(self.count), x - self.mean
        # With e the exponential of i y x less 1, e(y + z) is e(y) e(z) + e(y) + e(z).
        first = _exp_less_one(np.outer(y[: math.isqrt(self.count) + 1], away))
        later = _exp_less_one(np.outer(y[:: len(first)], away))
        growth = (first @ (later * law).T + (first @ law)[:, None] + later @ law).T.ravel()[: self.count]
        error = 2 * ROUNDING_32 * (np.abs(growth) + y * float(law @ np.abs(away)))
        return y, log1p_complex(growth), error, False

    def _cutoff(self) -> float:
        """Frequency beyond which the n-th power of the transform is below ``exp(-decay)``; 2 pi if there is none.

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
        reach = np.minimum(math.pi / 2 / low, 1e100)
        first, last = np.searchsorted(x, centre - reach), np.searchsorted(x, centre + reach, "right")
        away = np.clip(x - centre, -1e100, 1e100)
        sums = [np.append(0.0, np.cumsum(law * away**power)) for power in range(3)]
        m0, m1, m2 = (one[last] - one[first] for one in sums)
        pairs = np.maximum(m0 * m2 - m1**2 - len(x) * ROUNDING_32 * sums[2][-1], 0)
        below = np.log(np.maximum(1 - (2 / math.pi * low[:-1]) ** 2 * pairs[1:], SMALLEST)) / 2
        above = high >= low[-1]
        y, decay = np.append(low, high[above]), np.concatenate([below, logs[~above][-1:], logs[above]])
        slow = np.flatnonzero(self.n * decay > -self.decay)
        return 2 * math.pi if len(slow) and slow[-1] == len(y) - 1 else float(y[slow[-1] + 1] if len(slow) else y[0])

    def log_calls(self, x: Reals, m: int, is_upper: bool) -> Reals:
        """Upper or lower bound of ``log G(x)`` with m values; linear between whole numbers x."""
        if self.count > MAX_COUNT:
            return np.full(len(x), math.inf if is_upper else -math.inf)
        y, is_all = self.transform[0], self.transform[3]
        t, at = self.step, (x + m * self.origin) / self.h
        low = np.floor(at)
        share = at - low
        wave, error, per_distance = self._wave(m)
        if is_all:
            values = [wave.real[(points % self.period).astype(np.int64)] for points in (low, low + 1)]
        else:
            places, block = low + m * self.mean, math.isqrt(len(y)) + 1
            first, later = (np.exp(1j * np.outer(places, one)) for one in (y[:block], y[::block]))
            waves = (np.append(one, np.zeros(block * later.shape[1] - len(y))) for one in (wave, wave * np.exp(1j * y)))
            values = [2 / self.period * ((first @ one.reshape(-1, block).T) * later).sum(axis=1).real for one in waves]
            error += per_distance * (m * abs(self.mean) + float(np.abs(low).max()))
        # In units of exp(t x).
        value = (1 - share) * values[0] * np.exp(-t * share) + share * values[1] * np.exp(t * (1 - share))
        error *= math.exp(t)
        sign = 1 if is_upper else -1
        if not is_upper:
            value = value - self._aliases(at, m)
        value = np.where(np.isnan(value), math.inf if is_upper else 0.0, value)
        log_unit = m * self.log_m + t * at + math.log(self.h)
        slack = m * self.slack + ROUNDING_32 * (np.abs(log_unit) + m * abs(self.log_m) + t * np.abs(at) + 8)
        return np.asarray(log_unit + np.log(np.maximum(value + sign * error, SMALLEST)) + sign * slack)

    def _wave(self, m: int) -> tuple[Complexes, float, float]:
        """The integrand for m values, or all sums; the error, and that by the distance of a point."""
        if m != self.wave[0]:
            y, logs, errors, is_all = self.transform
            kernel = 1 / (4 * np.sinh((self.step + 1j * y) / 2) ** 2)
            wave = np.exp(m * logs) * kernel
            size = np.abs(kernel) * np.exp((m - 1) * logs.real)
            error = 2 / self.period * float(size @ (m * errors + 8 * ROUNDING_32))
            if is_all:
                error += _fft_error(self.period, 2 / self.period * float(np.abs(wave).sum()))
                self.wave = m, irfft(wave, self.period), error, 0.0
            else:
                wave[0] /= 2
                # The kernel is at most pi^2 / 4 y^2 beyond the last frequency, its integral pi^2 / 4 y.
                error += math.exp(-self.decay * m / self.n) * math.pi / (4 * y[-1])
                self.wave = m, wave, error, 4 / self.period * ROUNDING_32 * float(size @ y)
        return self.wave[1:]

    def _aliases(self, x: Reals, m: int) -> Reals:
        """Chernoff's bound of copies of B one or more periods away, which are added to the sum."""
        total, centre = np.zeros(len(x)), x + m * self.mean
        for sign in (1, -1):
            best = np.full(len(x), MAX_EXPONENT)
            for deviations in (8, 4, 2, 1):
                shift = sign * min(deviations / max(self.spread, SMALLEST), self.step / 2)
                moment = self.measure.log_moment(self.step + shift) - self.log_m - shift * self.mean
                moment += self.measure.slack(self.step + shift) + self.slack
                bound = m * moment + shift * centre - abs(shift) * self.period - 1 - math.log(self.step + shift)
                best = np.minimum(best, bound - math.log(-math.expm1(-abs(shift) * self.period)))
            total += np.exp(best)
        return total


def _fft_error(period: int, size: float) -> float:
    """Rounding of a transform of terms with this sum of moduli."""
    return 5 * UNIT * math.log2(period) * size


def _exp_less_one(phase: Reals) -> Complexes:
    """``exp(i phase) - 1`` without cancellation."""
    sine = np.sin(phase / 2)
    return np.asarray(2 * sine * (1j * np.cos(phase / 2) - sine))


def _log_sum(logs: Reals) -> float:
    top = float(logs.max(initial=-math.inf))
    return top + math.log(float(np.exp(logs - top).sum())) if top > -math.inf else top
