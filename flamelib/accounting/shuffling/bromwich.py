r"""Certified expectation of the positive part of a sum of independent variables, behind every shuffling bound.

S is the sum of n copies of (0 with probability :math:`1-\gamma`, else L); the divergence is the mean of its positive
part over the mean number :math:`\gamma n` of blanket users.  Few combinations of atoms are summed one by one.  Else
the transform :math:`M(s)^n`, :math:`M(s) = 1 + \gamma E[e^{sL}-1]`, is inverted on a vertical line through the saddle
point t,

.. math:: E[S_+] = \frac1\pi \int_0^\infty \mathrm{Re}\,\frac{M(t+iy)^n - N(t+iy)}{(t+iy)^2}\,dy ,

at a cost that depends neither on n nor on the alphabet.  Where nearly every user contributes one value, and not a
positive one, the combinations of few other values are summed, and the rest is bounded.  N is the transform on the event
that no user contributes anything positive, where :math:`S_+ = 0`: it is left out where it is not negligible, so that
rare gains do not drown in it.  Every error has a sign or a bound:

1. *Discretisation.*  By Poisson summation the trapezoid rule with step h returns
   :math:`\sum_j e^{-jtD} E[(S+jD)_+]`, :math:`D = 2\pi/h`: too large, by terms that Chernoff's bound controls.
2. *Cut.*  Independent Gaussian noise of standard deviation :math:`\tau` added to S only raises the expectation and
   multiplies the integrand by :math:`e^{\tau^2 s^2/2}`, so that the part beyond the cut is at most
   :math:`(M(t)^n + N(t)) e^{\tau^2 t^2/2} \frac1\pi \int_{y_0}^\infty y^{-2} e^{-\tau^2y^2/2} dy` (no noise where
   the law's own decay, or for many users the central limit, is enough).  The price of the noise is at most
   :math:`\tau^2` times the density of the noisy sum at 0, which the same sum computes; where it is too high the noise
   is lowered.
3. *Values in equal steps*: one period of the line holds everything.  The sum stops early only by the decay of pairs one
   step apart, which bounds the whole half period; it runs to its end where N is taken off, which decays more slowly.
4. *Quadrature* of a continuous law: ``slip`` of the law.  *Round-off*: bounded term by term; in sums over counts a
   difference of gains and losses is known up to a rounding of their sizes.

The result is a low and a high end of :math:`\log E[S_+]/(\gamma n)`; nothing in it depends on how fast the
integrand happens to decay.  Proofs: book, chapter on the privacy blanket, section on how the blanket divergence is
computed.
"""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from flamelib.accounting.shuffling.laws import AtomicLaw, LossLaw
from flamelib.core.arrays import Complexes, Reals, Wholes
from flamelib.core.logspace import ROUNDING_16, UNIT
from flamelib.core.search import root

RTOL_OMITTED = 1e-9  # relative size of what is left out; also the root of a negligible probability
SMOOTHING = 3e-3  # standard deviation of the smoothing noise at first, in units of 1/t
MAX_SUM_TERMS = 2e6  # terms of a sum at most
TERMS_TO_SAVE = 1e4  # terms from which on a sum with fewer is looked for
RTOL_TIGHT = 6e-7  # relative width of a certified bracket
RTOL_QUICK = 1e-6  # relative size of what a quick sum leaves out
GROWTH_LOST = -0.5  # change of M from which on 1 and it lose digits
MIN_MOMENT = 1e-300  # least M: below it no delta is a double
MAX_UNCOMMON = 1.0  # mean number of uncommon messages at most, for which their combinations are summed
MAX_COMBINATIONS = 20_000  # combinations of uncommon messages that are summed


@dataclass(frozen=True, slots=True)
class Bracket:
    """Lower and upper end of ``log(E[S_+] / (mass n))``."""

    low: float
    high: float


NO_DELTA = Bracket(-math.inf, -math.inf)  # bracket of log delta where delta is 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """Step along the line, noise, where to stop; bounds on what lies beyond, for the expectation and its density."""

    step: float
    noise: float
    cut: float
    beyond: float
    dense: float = 0.0


@dataclass(frozen=True, slots=True)
class _Sums:
    """The trapezoid sum, and bounds on its errors: of either sign, and upwards only."""

    total: float
    either: float
    wrapped: float
    price: float

    @property
    def width(self) -> float:
        return 2 * self.either + self.wrapped + self.price


class _Line:
    """The sum tilted by ``exp(t S)``, t at the saddle point: trapezoid sums along the line, and their errors."""

    def __init__(self, law: LossLaw, n_users: int) -> None:
        self.law, self.n, self.mass = law, n_users, law.mass
        self.values, self.weights = law.points
        self.largest, self.shifts = float(self.values.max()), dict[float, float]()
        self.active, self.passive = _parted(law)
        self.span = _span(law)
        self.t = self._saddle()
        self.moment, log_moment = self._moment(self.t)
        self.log_scale = self.n * log_moment
        tilted = self.mass * self.weights * np.exp(self.t * self.values) / self.moment
        self.spread = float(tilted @ np.abs(self.values))
        self.feet = self._feet(tilted)
        self.width = (self.feet[-1][1] ** 2 * math.pi**2 / 4 + 2 / self.t**2) ** -0.5
        self.nobody = self._nobody()
        self.slack = self._scale_error()
        self.scale = (1 - self.nobody) * self.width / (self.t**2 * math.sqrt(2 * math.pi))

    def _saddle(self) -> float:
        """Where the integrand is least on the points; any t > 0 is valid, this one is efficient."""
        size = self.mass * float(self.weights @ self.values**2)
        low = high = math.log(1 / math.sqrt(self.n * size))
        end = math.log(700 / self.largest)
        while self._slope(low) > 0:
            low -= 1
        while self._slope(high) < 0 and high < end:
            high = min(high + 1, end)
        return math.exp(root(self._slope, low, high, xtol=1e-3) if self._slope(high) > 0 else high)

    def _slope(self, log_t: float) -> float:
        r"""Slope in t of :math:`\log((M^n - N)/t^2)`, with :math:`M^n/N = e^x`."""
        t, n = math.exp(log_t), self.n
        gain, gain_slope = self._tilted(self.active, t)
        idle, idle_slope = self._tilted(self.passive, t)
        idle += self.law.kept
        if gain >= idle * 1e300:  # ratio of the probabilities to contribute and not, beyond double precision
            return n * gain_slope / gain - 2 / t
        x = n * math.log1p(gain / idle)
        x_slope = n * (gain_slope - gain / idle * idle_slope) / (idle + gain)
        return n * idle_slope / idle + x_slope / -math.expm1(-x) - 2 / t

    def _tilted(self, law: LossLaw, t: float) -> tuple[float, float]:
        """``mass E e^{tL}`` over the points of a part, and its slope."""
        values, weights = law.points
        growth = self.mass * weights * np.exp(np.minimum(t * values, 700))
        return float(growth.sum()), float(growth @ values)

    def _feet(self, tilted: Reals) -> list[tuple[float, float]]:
        r"""Stretches of the line from its foot with a Gaussian rate of decay on each, longest first.

        :math:`|M(t+iy)/M(t)|^2 = 1 - 4\sum_{i<j} p_i p_j \sin^2(y(x_i-x_j)/2)` with p the tilted chances of one
        user's contribution x, and :math:`\sin^2 u \ge (2u/\pi)^2` for :math:`|u| \le \pi/2`: so with V the part of the
        variance from pairs at most D apart, its n-th power is below :math:`e^{-2nVy^2/\pi^2}` for
        :math:`|y| \le \pi/D`.
        """
        values, chances = np.append(self.values, 0.0), np.append(tilted, self.law.kept / self.moment)
        order = np.argsort(values)
        values, chances = values[order], chances[order]
        x, span = values - float(chances @ values), float(values[-1] - values[0])
        below = np.stack([np.append(0.0, np.cumsum(chances * x**power)) for power in range(3)])
        lost = 32 * UNIT * len(x) * float(below[2, -1])
        sizes = [size for size in (0.125 * span, 0.25 * span, float(np.abs(values).max())) if size < span]
        parts = []
        for size in (*sizes, span):
            first, last = np.searchsorted(x, x - 1.000001 * size), np.searchsorted(x, x + 1.000001 * size, "right")
            none, one, two = below[:, last] - below[:, first]
            parts.append((size, max(float(chances @ (x * x * none - 2 * x * one + two)) / 2 - lost, 0.0)))
        return [(math.pi / (1.000001 * size), 1.998 / math.pi * math.sqrt(self.n * part)) for size, part in parts]

    def _growth(self, t: float) -> float:
        """``M(t) - 1``: on the points where they stand for the law, else in closed form."""
        if t <= self.law.reach:
            return self.mass * float(self.weights @ np.expm1(t * self.values))
        return self.mass * float(self.law.transform(np.array([t + 0j]))[0].real)

    def _moment(self, t: float) -> tuple[float, float]:
        """``M(t)`` and its logarithm: where it is small, by a sum of positive terms, and not below ``MIN_MOMENT``."""
        growth = self._growth(t)
        if growth > GROWTH_LOST or not isinstance(self.law, AtomicLaw):
            return 1 + growth, math.log1p(growth)
        moment = max(self.law.kept + self._tilted(self.law, t)[0], MIN_MOMENT)
        return moment, math.log(moment)

    def _nobody(self) -> float:
        """Tilted chance that no user contributes anything positive; 0 where it does not count."""
        self.idle = self.law.kept + self._tilted(self.passive, self.t)[0]
        atomic = isinstance(self.active, AtomicLaw)
        self.gain = self._tilted(self.active, self.t)[0] if atomic else self.mass + self._growth(self.t)
        log_share = self.n * math.log1p(-self.gain / self.moment) if self.gain < self.moment else -math.inf
        return math.exp(log_share) if log_share > 2 * math.log(RTOL_OMITTED) else 0.0

    def _powers(self, y: Reals) -> tuple[Complexes, Reals]:
        """``(M(t+iy)/M(t))^n``, less N where that counts; and the size against which its round-off is stated.

        A relative error of M of one moves an n-th power by n times the power of degree n - 1, and the logarithm of a
        small M by once more its inverse.
        """
        fewer = max(self.n - 2, 0)
        if not self.nobody:
            log = _log1p(self.mass * self.law.turn(self.t, y) / self.moment)
            return np.asarray(np.exp(self.n * log)), np.asarray(np.exp(fewer * log.real))
        idle = self.mass * self.passive.turn(self.t, y) / self.idle
        gain = (self.gain + self.mass * self.active.turn(self.t, y)) / self.idle
        log_idle, log_all = _log1p(idle), _log1p(idle + gain)
        alone, together = self.n * log_idle, self.n * log_all
        ratio = self.n * _log1p(gain / np.where(idle == -1, 1, 1 + idle))
        near = (ratio.real < 1) & (idle != -1)
        close = np.exp(alone) * np.expm1(np.where(near, ratio, 0))
        power = self.nobody * np.where(near, close, np.exp(together) - np.exp(alone))
        # Mean number of gains from which one or more is almost certain.
        some = min(self.n * self.gain / self.idle, 4.0)  # of a difference of powers, against the larger one
        return np.asarray(power), self.nobody * some * np.exp(fewer * np.maximum(log_idle.real, log_all.real))

    def quick(self) -> float:
        """Logarithm of the divergence without a certificate, to about 1e-3: one short sum."""
        most, goal = self.most(), RTOL_QUICK * self.scale
        if most < -750.0:  # logarithm of a delta that no double holds
            return most
        total = self._sums(self._early(goal) or self._late(3 * SMOOTHING / self.t, goal)).total
        return self.log_scale + math.log(max(total, 5e-324)) - math.log(self.mass * self.n)

    def bracket(self, close: float) -> Bracket:
        """Certified low and high end of the logarithm of the divergence; passes are made until they are this close."""
        largest = self.most()
        if largest < -750.0:
            return Bracket(-math.inf, largest)
        wanted, steps, goal = self.scale, [], RTOL_OMITTED * close / RTOL_TIGHT
        # Square of the terms at most, times the wanted width, for one of a curve's many brackets.
        most = MAX_SUM_TERMS if close <= RTOL_QUICK else math.sqrt(1e6 / close)
        start = max(SMOOTHING, 0.9 * math.sqrt(close)) / self.t
        plan = self._early(goal * wanted) or self._late(start, goal * wanted, most)
        for _ in range(5):  # sums at most, each with less noise
            sums = self._sums(plan)
            if sums.width <= close * sums.total or self.span:
                break
            wanted = min(wanted, max(sums.total, 1e-9 * wanted))
            steps.append((plan.noise, sums.price))
            plan = self._late(min(start, _lowered(steps, close * wanted / 3)), goal * wanted, most)
            # Share of a bracket's width for which no long sum is worth it.
            lost = sums.price < 0.1 * sums.width  # round-off is all the rest, and stays
            if (len(steps) > 1 and plan.noise >= 0.9 * steps[-1][0]) or (lost and plan.cut > TERMS_TO_SAVE * plan.step):
                break
        return self._ends(sums)

    def most(self) -> float:
        r"""Chernoff's bound :math:`E[S_+] \le E[e^{tS}]/(et)`: enough where no double can hold delta."""
        return self.log_scale - 1 - math.log(self.t * self.mass * self.n) + self.slack

    def _ends(self, sums: _Sums) -> Bracket:
        common, slack = self.log_scale - math.log(self.mass * self.n), self.slack
        low, high = sums.total - sums.either - sums.wrapped - sums.price, sums.total + sums.either
        return Bracket(common + math.log(low) - slack if low > 0 else -math.inf, common + math.log(high) + slack)

    def _scale_error(self) -> float:
        if self.moment < 1 + GROWTH_LOST and isinstance(self.law, AtomicLaw):
            lost = 1.0
        else:
            growth = np.abs(np.expm1(np.minimum(self.t * self.values, 700)))
            lost = self.mass * float(self.weights @ growth) / self.moment
        inputs = self.n * (self.t * self.spread + lost)
        return ROUNDING_16 * (inputs + abs(self.log_scale) + 8) + self._slip(0.0)

    def _slip(self, y: float) -> float:
        """Relative error of ``M(t+iy)^n`` by quadrature, against ``M(t)^n``; the closed forms have none."""
        size = math.hypot(self.t, y)
        return self.n * self.mass * self.law.slip(min(size, self.law.reach)) / self.moment

    def _sums(self, plan: _Plan) -> _Sums:
        block = 2**17  # terms held at once: memory
        count = 2 + math.floor(plan.cut / plan.step)
        total = density = either = doubtful = 0.0
        for start in range(0, count, block):
            y = plan.step * np.arange(start, min(start + block, count), dtype=float)
            s = np.asarray(self.t + 1j * y, complex)
            damping = np.exp(0.5 * (plan.noise * s) ** 2) * (plan.step / math.pi)
            if start == 0:
                damping[0] /= 2
            powers, sizes = self._powers(y)
            damped, kernel = powers * damping, self._kernel(s)
            doubts = self._doubt(y, plan.noise) * sizes * np.abs(damping)
            total += float((damped * kernel).real.sum())
            density += float(damped.real.sum())
            either += float(doubts @ np.abs(kernel))
            doubtful += float(doubts.sum())
        price = plan.noise**2 * (abs(density) + doubtful + plan.dense)
        return _Sums(total, either + plan.beyond, self._aliases(plan.step), price)

    def _doubt(self, y: Reals, noise: float) -> Reals:
        """Relative error of each term: round-off of the sum, the noise and the phases; quadrature."""
        size = np.hypot(self.t, y)
        # 4.0: roundings of the sum.
        phases = 4.0 + y * (max(self.largest, 0.0) + self.n * self.spread) + (noise * size) ** 2
        phases += 2 * self.n * self.mass * (size > self.law.reach)
        near = 14 * self.width
        return np.asarray(ROUNDING_16 * phases + np.where(y <= near, self._slip(near), self._slip(math.inf)))

    def _step(self, goal: float) -> float:
        """Largest step whose wrapped terms are negligible."""
        step: float = min(2 * math.pi * self.t / 30, 2 * math.pi * self.width / 8)
        for _ in range(16):
            if self._aliases(step) <= goal:
                break
            step /= 1.4
        return step

    def _aliases(self, step: float) -> float:
        """Chernoff bound on the wrapped terms, relative to ``M(t)^n``: shifts by D up and down."""
        self.shifts = self.shifts or self._shifted()
        period = 2 * math.pi / step
        bounds = [(other > self.t, self._wrapped(other, period)) for other in self.shifts]
        return min(bound for up, bound in bounds if not up) + min(bound for up, bound in bounds if up)

    def _wrapped(self, other: float, period: float) -> float:
        log_ratio = self.shifts[other]
        if log_ratio == math.inf:
            return math.inf
        gap = period * abs(other - self.t)
        log_bound = log_ratio - gap - 1 - math.log(other)
        return math.exp(min(log_bound, 700.0)) / float(-math.expm1(-gap))

    def _shifted(self) -> dict[float, float]:
        """Logarithm of ``M(other)^n`` over ``M(t)^n`` (upper) for the shifts; closed forms are asked for together."""
        shares = [*(1 - 2.0**-i for i in range(1, 8)), *(1 + 2.0**i for i in range(-8, 4))]
        others = [other for share in shares if (other := self.t * share) * self.largest <= 600]
        far = [other for other in others if other > self.law.reach]
        closed = dict(zip(far, self.law.transform(np.array(far, complex)).real.tolist() if far else (), strict=True))
        found = dict.fromkeys((self.t * share for share in shares), math.inf)
        for other in others:
            log_moment = math.log1p(self.mass * closed[other]) if other in closed else self._moment(other)[1]
            found[other] = self.n * log_moment - self.log_scale + 2 * self.slack
        return found

    def _kernel(self, s: Complexes) -> Complexes:
        """Transform of the positive part; where S is a multiple of ``span``, summed over the line's periods."""
        return np.asarray((self.span / 2 / np.sinh(self.span / 2 * s)) ** 2 if self.span else s**-2)

    def _lattice(self, goal: float) -> _Plan:
        r"""One period of the line holds everything: no noise; the kernel is at most :math:`\pi^2/4y^2`.

        The sum stops early only by the decay of pairs one step apart, which is that of the whole half period; and not
        where N is taken off, which decays more slowly.
        """
        half = math.pi / self.span
        count = math.ceil(half / self._step(goal))
        step = 2 * half / (2 * count + 1)
        decays = [] if self.nobody else self._nearest(goal, half)
        for foot, steep, near in decays:
            if foot >= 0.99999 * half:
                return _Plan(step, 0.0, near, 2.5 * _gauss_tail(steep, near))
        return _Plan(step, 0.0, (count - 0.5) * step, 0.0)

    def _early(self, goal: float) -> _Plan | None:
        """Stop near the foot, where the central limit has done its work, if noise can do the rest of the line."""
        if self.span:
            return self._lattice(goal)
        for foot, steep, near in self._nearest(goal, math.inf):
            if not self.nobody:
                noise = 4 / foot
                while _gauss_tail(noise, foot) > goal:
                    noise *= 1.05
                if noise * self.t > 30:
                    continue  # so much noise costs more than any sum is worth
                lift = math.exp(0.5 * (noise * self.t) ** 2)
                inner, outer = lift * _gauss_tail(steep, near), lift * _gauss_tail(noise, foot)
                return _Plan(self._step(goal), noise, near, inner + outer, inner * near**2 + outer * foot**2)
        return None

    def _nearest(self, goal: float, end: float) -> list[tuple[float, float, float]]:
        """Feet within which their own decay is enough, with the place where it is; those with few terms first."""
        found = [(foot, steep, _fall(steep, goal)) for foot, steep in self.feet]
        enough = [one for one in found if one[2] < min(one[0], end)]
        few = TERMS_TO_SAVE * self._step(goal) if enough else 0.0
        return sorted(enough, key=lambda one: max(one[2], few))

    def _late(self, noise: float, goal: float, most: float = MAX_SUM_TERMS) -> _Plan:
        """Stop where the law's own decay is enough, or where noise is, after this many terms at most."""
        step, far = self._step(goal), _fall(noise, goal)
        fade, log_left = self._fade(goal)
        if fade < far and fade <= most * step:
            return _Plan(step, 0.0, fade, math.exp(log_left) / (math.pi * fade))
        while far > most * step:
            noise, far = 1.3 * noise, _fall(1.3 * noise, goal)
        left = (1 + self.nobody) * math.exp(0.5 * (noise * self.t) ** 2) * _gauss_tail(noise, far)
        return _Plan(step, noise, far, left, left * far**2)

    def _fade(self, goal: float) -> tuple[float, float]:
        """Where the law's own decay makes the rest negligible (``inf`` if it never does), and its logarithm there."""
        atoms, smooth = self.law.decay(self.t)
        if self.nobody or not smooth:
            return math.inf, 0.0
        share = math.exp(math.log(goal * min(self.t, 1.0)) / self.n)
        wanted = share * self.moment - 1 + self.mass * (1 - atoms)
        if wanted <= 0:
            return math.inf, 0.0
        place = self.mass * smooth / wanted
        return place, self.n * math.log((1 - self.mass + self.mass * (atoms + smooth / place)) / self.moment)


def _parted(law: LossLaw) -> tuple[LossLaw, AtomicLaw]:
    """The part of a law that may be positive, and an atomic part that is not (empty for noise)."""
    if not isinstance(law, AtomicLaw):
        return law, AtomicLaw(np.zeros(0), np.zeros(0), law.mass, law.kept)
    gains = law.values > 0
    active, passive = (AtomicLaw(law.values[part], law.weights[part], law.mass, law.kept) for part in (gains, ~gains))
    return active, passive


def _span(law: LossLaw) -> float:
    """Spacing of the lattice that all values lie on, where they are a few equal steps from 0; else 0."""
    sizes = np.unique(np.abs(law.values[law.values != 0])) if isinstance(law, AtomicLaw) else np.zeros(0)
    return float(sizes[0]) if len(sizes) == 1 else 0.0


def _log1p(z: Complexes) -> Complexes:
    """``log(1 + z)`` without cancellation; finite also where 1 + z is 0."""
    squared = np.maximum(2 * z.real + np.abs(z) ** 2, np.nextafter(-1, 0))
    return np.asarray(0.5 * np.log1p(squared) + 1j * np.arctan2(z.imag, 1 + z.real))


def _lowered(steps: list[tuple[float, float]], goal: float) -> float:
    """Noise for a price: it falls with the square of the noise, or with the noise itself where S can be exactly 0."""
    noise, price = steps[-1]
    if not price > goal:
        return noise
    power: float = 2.0
    if len(steps) > 1 and noise < steps[-2][0] and price < steps[-2][1]:
        power = math.log(steps[-2][1] / price) / math.log(steps[-2][0] / noise)
    return float(noise * max((goal / price) ** (1 / min(max(power, 1.0), 2.0)), 1e-3))


def _fall(rate: float, goal: float) -> float:
    """Where the tail of a Gaussian decay of this rate is below the goal."""
    if rate == 0:
        return math.inf
    cut = 4 / rate
    while _gauss_tail(rate, cut) > goal:
        cut *= 1.05
    return cut


def _gauss_tail(rate: float, cut: float) -> float:
    r"""Bound on :math:`\frac1\pi\int_{cut}^\infty y^{-2} e^{-\tau^2y^2/2}\,dy`."""
    return math.exp(-0.5 * (rate * cut) ** 2) / (math.pi * (rate * cut) ** 2 * cut)


def bracket(law: LossLaw, n_users: int, close: float = RTOL_TIGHT) -> Bracket:
    """Certified bracket of the logarithm of the divergence, about ``close`` wide or narrower."""
    if law.points[0].max() <= 0:
        return NO_DELTA
    return _counted(law, n_users) or _Line(law, n_users).bracket(close)


def quick(law: LossLaw, n_users: int) -> float:
    """Uncertified logarithm of the divergence, for finding the place at which to certify."""
    if law.points[0].max() <= 0:
        return -math.inf
    counted = _counted(law, n_users)
    return counted.high if counted else _Line(law, n_users).quick()


def tilt(law: LossLaw, n_users: int) -> float:
    """At which Chernoff's bound is small, for this law and for those like it; 1 where sums over counts are quick."""
    return 1.0 if law.points[0].max() <= 0 or _counted(law, n_users) else _Line(law, n_users).t


def chernoff(law: LossLaw, n_users: int) -> float:
    """Chernoff's upper bound of the logarithm of the divergence; that of the counts where they are few."""
    if law.points[0].max() <= 0:
        return -math.inf
    counted = _counted(law, n_users)
    return counted.high if counted else _Line(law, n_users).most()


def chernoff_at(law: AtomicLaw, n_users: int, t: float) -> float:
    """Chernoff's upper bound at this tilt, which costs next to nothing; infinite where doubles do not hold it."""
    if not 0 < t * law.values.max() < 700:
        return -math.inf if law.values.max() <= 0 else math.inf
    gains = np.expm1(t * law.values)
    growth = law.mass * float(law.weights @ gains)
    moment = law.kept + law.mass * float(law.weights @ np.exp(t * law.values))
    if growth <= GROWTH_LOST and not moment > 0:
        return math.inf
    log_scale = n_users * (math.log1p(growth) if growth > GROWTH_LOST else math.log(moment))
    slack = ROUNDING_16 * (n_users * law.mass * float(law.weights @ np.abs(gains)) + abs(log_scale) + 8)
    return log_scale - 1 - math.log(t * law.mass * n_users) + slack


def _counted(law: LossLaw, n_users: int) -> Bracket | None:
    """Sums over the counts of atoms, where there are few combinations or few that matter."""
    if not isinstance(law, AtomicLaw):
        return None
    # Combinations of atoms that are summed one by one.
    return _enumerated(law, n_users) if _combinations(law, n_users) <= 100_000 else _seldom(law, n_users)


def _cells(law: AtomicLaw) -> tuple[Reals, Reals]:
    """Distinct values with a user's probability of each, "not a blanket user" (value 0) included."""
    values = np.append(law.values, 0.0)
    chances = np.append(law.weights * law.mass, law.kept)
    return values[chances > 0], chances[chances > 0]


def _combinations(law: AtomicLaw, n_users: int) -> float:
    free = len(_cells(law)[0]) - 1
    return math.exp(sum(math.log((n_users + i) / i) for i in range(1, free + 1)))


def _enumerated(law: AtomicLaw, n_users: int) -> Bracket:
    """Sum over all counts of the atoms: positive terms only, the relative error of whose chances is a few roundings."""
    values, chances = _cells(law)
    counts, log_ways = _every(n_users, len(values))
    low, high = _excesses(log_ways + np.log(chances) @ counts, values @ counts, np.abs(values) @ counts)
    error = ROUNDING_16 * (gammaln(n_users + 1) + n_users * np.abs(np.log(chances)).max() + 8)
    scale = math.log(law.mass * n_users)
    return Bracket(low - scale - error, high - scale + error)


def _excesses(logs: Reals, excess: Reals, sizes: Reals) -> tuple[float, float]:
    """Logarithm of a mean of positive parts, from below and from above.

    The difference of gains and losses is known up to a rounding of their sizes, which is taken or added: where they
    cancel, what is left is nothing but that.
    """
    ends = []
    for doubt in (-ROUNDING_16, ROUNDING_16):
        inside = excess + doubt * sizes
        gains = inside > 0
        ends.append(_logsum(logs[gains] + np.log(inside[gains])) if gains.any() else -math.inf)
    return ends[0], ends[1]


@functools.lru_cache(maxsize=4)
def _every(total: int, letters: int) -> tuple[Reals, Reals]:
    """Counts of so many letters, and the logarithm of the number of ways to come by them."""
    counts = histograms(total, letters).T.astype(np.float64)
    return counts, gammaln(total + 1) - gammaln(counts + 1).sum(0)


def _seldom(law: AtomicLaw, n_users: int) -> Bracket | None:
    r"""Sum over the counts of all atoms but the commonest, which is not positive; at most K such messages are sent.

    With q the chance of one and R their number, :math:`S_+ \le l R` for the largest value l, and what is left out is
    :math:`E[S_+; R > K] \le l\,nq\,P[\mathrm{Bin}(n-1,q) \ge K] \le l\,(nq)^{K+1}/K!`.
    None where what is left out counts.
    """
    values, chances = _cells(law)
    common = int(chances.argmax())
    values, chances, usual = np.delete(values, common), np.delete(chances, common), float(values[common])
    mean = n_users * float(chances.sum())
    if mean > MAX_UNCOMMON or usual > 0 or not values.max(initial=0.0) > 0:
        return None
    counts, log_orders = _few(len(values))
    most, possible = int(counts.max()), counts.sum(axis=0) <= n_users
    counts, log_orders = counts[:, possible], log_orders[possible]
    sent = counts.sum(axis=0)
    excess, sizes = (v @ counts + u * (n_users - sent) for v, u in ((values, usual), (np.abs(values), abs(usual))))
    log_falling = np.append(0.0, np.log(np.maximum(n_users - np.arange(most), 1)).cumsum())
    logs = log_falling[sent] - log_orders + np.log(chances) @ counts + (n_users - sent) * math.log1p(-mean / n_users)
    low, high = _excesses(logs, excess, sizes)
    rest = math.log(values.max()) + (most + 1) * math.log(mean) - math.lgamma(most + 1)
    if rest > low + math.log(RTOL_OMITTED):
        return None
    error = ROUNDING_16 * (most * (float(np.abs(np.log(chances)).max()) + math.log(n_users)) + 8)
    scale = math.log(law.mass * n_users)
    return Bracket(low - scale - error, float(np.logaddexp(high, rest)) - scale + error)


@functools.cache
def _few(letters: int) -> tuple[Wholes, Reals]:
    """Counts of so many letters, all up to some total, and the logarithm of the product of their factorials."""
    total = next(
        most for most in itertools.count(1) if math.comb(most + 1 + letters, letters) > MAX_COMBINATIONS or most == 150
    )
    counts = histograms(total, letters + 1)[:, :-1].T
    return counts, gammaln(counts + 1).sum(0)


def histograms(total: int, letters: int) -> Wholes:
    """Every way to write ``total`` as a sum of counts, in order of the number that they are digits of."""
    found = list(itertools.combinations(range(total + letters - 1), letters - 1))
    bars = np.array(found, dtype=np.int64).reshape(len(found), letters - 1)
    ends = np.full((len(bars), 1), total + letters - 1)
    return np.diff(np.hstack([np.full_like(ends, -1), bars, ends]), axis=1) - 1


def _logsum(logs: Reals) -> float:
    top = logs.max()
    return float(top + math.log(np.exp(logs - top).sum()))
