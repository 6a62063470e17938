r"""Certified expectation of the positive part of a sum of independent variables, behind every shuffling bound.

S is the sum of n i.i.d. terms (0 with probability :math:`1-\gamma`, else L); the divergence is
:math:`E[S_+]/(\gamma n)`, :math:`\gamma n` being the mean number of blanket users.  If the multisets of atoms are few,
they are enumerated.  Else the moment generating function :math:`M(s)^n`, :math:`M(s) = 1 + \gamma E[e^{sL}-1]`, is
inverted on a Bromwich contour, the vertical line through the saddle point t,

.. math:: E[S_+] = \frac1\pi \int_0^\infty \mathrm{Re}\,\frac{M(t+iy)^n - N(t+iy)}{(t+iy)^2}\,dy ,

at a cost that depends neither on n nor on the alphabet.  Where the most probable atom is not positive and nearly
certain, the multisets of few other atoms are enumerated, and the remaining mass is bounded.  N is the transform on the
event :math:`\max_i L_i \le 0`, where :math:`S_+ = 0`: where it is not negligible it is subtracted, against
cancellation.  Every error has a sign or a bound:

1. *Aliasing.*  By Poisson summation the trapezoid rule with step h returns
   :math:`\sum_j e^{-jtD} E[(S+jD)_+]`, :math:`D = 2\pi/h`: too large, by terms that the Chernoff bound controls.
2. *Cutoff.*  Independent Gaussian noise of standard deviation :math:`\tau` added to S only raises the expectation and
   multiplies the integrand by :math:`e^{\tau^2 s^2/2}`, so that the tail beyond the cutoff is at most
   :math:`(M(t)^n + N(t)) e^{\tau^2 t^2/2} \frac1\pi \int_{y_0}^\infty y^{-2} e^{-\tau^2y^2/2} dy` (no noise where
   the decay of M, or for many users that of :math:`M^n`, is enough).  Its bias is at most :math:`\tau^2` times the
   density of the smoothed sum at 0, which the same trapezoid sum computes; where it is too large :math:`\tau` is
   reduced.
3. *Lattice distributions*: the integrand is periodic, one period is the integral.  The sum is truncated by the decay of
   pairs one step apart, which bounds the whole half period; not where N, which decays more slowly, is subtracted.
4. *Quadrature* of a continuous distribution: its ``quadrature_error``.  *Round-off*: bounded term by term; for
   multisets the rounding of positive and negative parts is bounded relative to their absolute values.

The result is a lower and an upper bound of :math:`\log E[S_+]/(\gamma n)`; validity does not depend on how fast the
integrand decays.  Proofs: book, chapter on the privacy blanket, section on how the blanket divergence is
computed.
"""

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from flamelib.accounting.shuffling.laws import AtomicLaw, LossLaw
from flamelib.core.arrays import Complexes, Reals, Wholes, log_sum
from flamelib.core.logspace import ROUNDING_16, UNIT
from flamelib.core.search import root

RTOL_OMITTED = 1e-9  # omitted mass relative to E[S_+]; its square: a negligible probability
SMOOTHING = 3e-3  # initial standard deviation of the smoothing noise, in units of 1/t
MAX_SUM_TERMS = 2e6  # terms of a trapezoid sum, at most
TERMS_TO_SAVE = 1e4  # number of terms above which truncation with fewer terms is preferred
RTOL_TIGHT = 6e-7  # relative width of a certified bracket
RTOL_QUICK = 1e-6  # relative truncation error of an uncertified sum
GROWTH_LOST = -0.5  # M - 1 below which 1 + (M - 1) cancels
MIN_MOMENT = 1e-300  # lower bound of M: below it delta underflows
MAX_UNCOMMON = 1.0  # mean number of messages other than the mode, at most, for which multisets are enumerated
MAX_COMBINATIONS = 20_000  # enumerated multisets of messages other than the mode


@dataclass(frozen=True, slots=True)
class Bracket:
    """Lower and upper bound of ``log(E[S_+] / (mass n))``."""

    low: float
    high: float


NO_DELTA = Bracket(-math.inf, -math.inf)  # log delta where delta is 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """Trapezoid step, standard deviation of the noise, cutoff; tail bounds for the expectation and the density."""

    step: float
    noise: float
    cut: float
    tail: float
    density_tail: float = 0.0


@dataclass(frozen=True, slots=True)
class _Sums:
    """Trapezoid sum, its two-sided error, and its upward biases by aliasing and by smoothing."""

    total: float
    error: float
    aliased: float
    bias: float

    @property
    def width(self) -> float:
        return 2 * self.error + self.aliased + self.bias


class _Contour:
    """S under the tilt ``exp(t S)``, t at the saddle point: trapezoid sums on the vertical line, and their errors."""

    def __init__(self, law: LossLaw, n_users: int) -> None:
        self.law, self.n, self.mass = law, n_users, law.mass
        self.values, self.weights = law.points
        self.max_loss, self.log_ratios = float(self.values.max()), dict[float, float]()
        self.gains, self.losses = _signed_parts(law)
        self.spacing = _lattice_spacing(law)
        self.t = self._saddle()
        self.moment, log_moment = self._moment(self.t)
        self.log_scale = self.n * log_moment
        tilted = self.mass * self.weights * np.exp(self.t * self.values) / self.moment
        self.mean_abs = float(tilted @ np.abs(self.values))
        self.decays = self._decays(tilted)
        self.width = (self.decays[-1][1] ** 2 * math.pi**2 / 4 + 2 / self.t**2) ** -0.5
        self.null_mass = self._null_mass()
        self.log_error = self._scale_error()
        self.scale = (1 - self.null_mass) * self.width / (self.t**2 * math.sqrt(2 * math.pi))

    def _saddle(self) -> float:
        """Saddle point: the real t > 0 at which the integrand is least.  Any t > 0 is valid."""
        second_moment = self.mass * float(self.weights @ self.values**2)
        low = high = math.log(1 / math.sqrt(self.n * second_moment))
        limit = math.log(700 / self.max_loss)
        while self._slope(low) > 0:
            low -= 1
        while self._slope(high) < 0 and high < limit:
            high = min(high + 1, limit)
        return math.exp(root(self._slope, low, high, xtol=1e-3) if self._slope(high) > 0 else high)

    def _slope(self, log_t: float) -> float:
        r"""Slope in t of :math:`\log((M^n - N)/t^2)`, with :math:`M^n/N = e^x`."""
        t, n = math.exp(log_t), self.n
        gain, gain_slope = self._tilted(self.gains, t)
        loss, loss_slope = self._tilted(self.losses, t)
        loss += self.law.kept
        if gain >= loss * 1e300:  # the loss part is below double precision
            return n * gain_slope / gain - 2 / t
        x = n * math.log1p(gain / loss)
        x_slope = n * (gain_slope - gain / loss * loss_slope) / (loss + gain)
        return n * loss_slope / loss + x_slope / -math.expm1(-x) - 2 / t

    def _tilted(self, law: LossLaw, t: float) -> tuple[float, float]:
        """``mass E e^{tL}`` over the points of a part, and its derivative."""
        values, weights = law.points
        weighted = self.mass * weights * np.exp(np.minimum(t * values, 700))
        return float(weighted.sum()), float(weighted @ values)

    def _decays(self, tilted: Reals) -> list[tuple[float, float]]:
        r"""Pairs (radius, rate): ``M^n`` decays like ``exp(-(rate y)^2 / 2)`` up to that radius; widest first.

        :math:`|M(t+iy)/M(t)|^2 = 1 - 4\sum_{i<j} p_i p_j \sin^2(y(x_i-x_j)/2)` with p the tilted probabilities of one
        user's term x, and :math:`\sin^2 u \ge (2u/\pi)^2` for :math:`|u| \le \pi/2`: so with V the part of the
        variance from pairs at most D apart, its n-th power is below :math:`e^{-2nVy^2/\pi^2}` for
        :math:`|y| \le \pi/D`.
        """
        values, probs = np.append(self.values, 0.0), np.append(tilted, self.law.kept / self.moment)
        order = np.argsort(values)
        values, probs = values[order], probs[order]
        x, span = values - float(probs @ values), float(values[-1] - values[0])
        moments = np.stack([np.append(0.0, np.cumsum(probs * x**power)) for power in range(3)])
        roundoff = 32 * UNIT * len(x) * float(moments[2, -1])
        gaps = [gap for gap in (0.125 * span, 0.25 * span, float(np.abs(values).max())) if gap < span]
        parts = []
        for gap in (*gaps, span):
            first, last = np.searchsorted(x, x - 1.000001 * gap), np.searchsorted(x, x + 1.000001 * gap, "right")
            m0, m1, m2 = moments[:, last] - moments[:, first]
            parts.append((gap, max(float(probs @ (x * x * m0 - 2 * x * m1 + m2)) / 2 - roundoff, 0.0)))
        return [(math.pi / (1.000001 * gap), 1.998 / math.pi * math.sqrt(self.n * var)) for gap, var in parts]

    def _growth(self, t: float) -> float:
        """``M(t) - 1``: by quadrature up to ``reach``, else in closed form."""
        if t <= self.law.reach:
            return self.mass * float(self.weights @ np.expm1(t * self.values))
        return self.mass * float(self.law.transform(np.array([t + 0j]))[0].real)

    def _moment(self, t: float) -> tuple[float, float]:
        """``M(t)`` and its logarithm: where it is small, by a sum of positive terms, at least ``MIN_MOMENT``."""
        growth = self._growth(t)
        if growth > GROWTH_LOST or not isinstance(self.law, AtomicLaw):
            return 1 + growth, math.log1p(growth)
        moment = max(self.law.kept + self._tilted(self.law, t)[0], MIN_MOMENT)
        return moment, math.log(moment)

    def _null_mass(self) -> float:
        """Tilted probability N(t) / M(t)^n that no term is positive; 0 where it is negligible."""
        self.loss = self.law.kept + self._tilted(self.losses, self.t)[0]
        atomic = isinstance(self.gains, AtomicLaw)
        self.gain = self._tilted(self.gains, self.t)[0] if atomic else self.mass + self._growth(self.t)
        log_null = self.n * math.log1p(-self.gain / self.moment) if self.gain < self.moment else -math.inf
        return math.exp(log_null) if log_null > 2 * math.log(RTOL_OMITTED) else 0.0

    def _powers(self, y: Reals) -> tuple[Complexes, Reals]:
        """``(M(t+iy)/M(t))^n``, minus ``N/M(t)^n`` unless negligible; and the modulus that multiplies the round-off.

        An error e of M changes ``M^n`` by ``n M^(n-1) e``, and by ``1/M`` as much through the logarithm of a small M.
        """
        degree = max(self.n - 2, 0)
        if not self.null_mass:
            log = log1p_complex(self.mass * self.law.increment(self.t, y) / self.moment)
            return np.asarray(np.exp(self.n * log)), np.asarray(np.exp(degree * log.real))
        loss = self.mass * self.losses.increment(self.t, y) / self.loss
        gain = (self.gain + self.mass * self.gains.increment(self.t, y)) / self.loss
        log_loss, log_all = log1p_complex(loss), log1p_complex(loss + gain)
        null_power, full_power = self.n * log_loss, self.n * log_all
        ratio = self.n * log1p_complex(gain / np.where(loss == -1, 1, 1 + loss))
        is_small = (ratio.real < 1) & (loss != -1)
        small = np.exp(null_power) * np.expm1(np.where(is_small, ratio, 0))
        power = self.null_mass * np.where(is_small, small, np.exp(full_power) - np.exp(null_power))
        # Derivative of a difference of powers, relative to the larger power.
        slope = min(self.n * self.gain / self.loss, 4.0)
        return np.asarray(power), self.null_mass * slope * np.exp(degree * np.maximum(log_loss.real, log_all.real))

    def quick(self) -> float:
        """Uncertified log divergence, to about 1e-3, by one short sum."""
        upper, goal = self.chernoff(), RTOL_QUICK * self.scale
        if upper < -750.0:  # delta underflows
            return upper
        total = self._sums(self._early(goal) or self._late(3 * SMOOTHING / self.t, goal)).total
        return self.log_scale + math.log(max(total, 5e-324)) - math.log(self.mass * self.n)

    def bracket(self, rtol: float) -> Bracket:
        """Certified bracket of the log divergence; the smoothing is reduced until its width is ``rtol``."""
        upper = self.chernoff()
        if upper < -750.0:
            return Bracket(-math.inf, upper)
        scale, steps, goal = self.scale, [], RTOL_OMITTED * rtol / RTOL_TIGHT
        # Fewer terms for the wide brackets of a curve.
        terms = MAX_SUM_TERMS if rtol <= RTOL_QUICK else math.sqrt(1e6 / rtol)
        noise = max(SMOOTHING, 0.9 * math.sqrt(rtol)) / self.t
        plan = self._early(goal * scale) or self._late(noise, goal * scale, terms)
        for _ in range(5):  # trapezoid sums, at most
            sums = self._sums(plan)
            if sums.width <= rtol * sums.total or self.spacing:
                break
            scale = min(scale, max(sums.total, 1e-9 * scale))
            steps.append((plan.noise, sums.bias))
            plan = self._late(min(noise, _reduced_noise(steps, rtol * scale / 3)), goal * scale, terms)
            done = sums.bias < 0.1 * sums.width  # the width is round-off: no longer sum reduces it
            if (len(steps) > 1 and plan.noise >= 0.9 * steps[-1][0]) or (done and plan.cut > TERMS_TO_SAVE * plan.step):
                break
        return self._ends(sums)

    def chernoff(self) -> float:
        r"""Chernoff bound :math:`E[S_+] \le E[e^{tS}]/(et)` of the log divergence."""
        return self.log_scale - 1 - math.log(self.t * self.mass * self.n) + self.log_error

    def _ends(self, sums: _Sums) -> Bracket:
        log_unit, slack = self.log_scale - math.log(self.mass * self.n), self.log_error
        low, high = sums.total - sums.error - sums.aliased - sums.bias, sums.total + sums.error
        return Bracket(log_unit + math.log(low) - slack if low > 0 else -math.inf, log_unit + math.log(high) + slack)

    def _scale_error(self) -> float:
        if self.moment < 1 + GROWTH_LOST and isinstance(self.law, AtomicLaw):
            cancellation = 1.0
        else:
            growth = np.abs(np.expm1(np.minimum(self.t * self.values, 700)))
            cancellation = self.mass * float(self.weights @ growth) / self.moment
        input_error = self.n * (self.t * self.mean_abs + cancellation)
        return ROUNDING_16 * (input_error + abs(self.log_scale) + 8) + self._quad_error(0.0)

    def _quad_error(self, y: float) -> float:
        """Quadrature error of ``M(t+iy)^n`` relative to ``M(t)^n``; closed forms have none."""
        size = math.hypot(self.t, y)
        return self.n * self.mass * self.law.quadrature_error(min(size, self.law.reach)) / self.moment

    def _sums(self, plan: _Plan) -> _Sums:
        block = 2**17  # terms in memory at once
        count = 2 + math.floor(plan.cut / plan.step)
        total = density = error = density_error = 0.0
        for start in range(0, count, block):
            y = plan.step * np.arange(start, min(start + block, count), dtype=float)
            s = np.asarray(self.t + 1j * y, complex)
            damping = np.exp(0.5 * (plan.noise * s) ** 2) * (plan.step / math.pi)
            if start == 0:
                damping[0] /= 2
            powers, sizes = self._powers(y)
            damped, kernel = powers * damping, self._kernel(s)
            errors = self._errors(y, plan.noise) * sizes * np.abs(damping)
            total += float((damped * kernel).real.sum())
            density += float(damped.real.sum())
            error += float(errors @ np.abs(kernel))
            density_error += float(errors.sum())
        bias = plan.noise**2 * (abs(density) + density_error + plan.density_tail)
        return _Sums(total, error + plan.tail, self._aliases(plan.step), bias)

    def _errors(self, y: Reals, noise: float) -> Reals:
        """Relative error of each term: round-off of sum, damping and phases; quadrature."""
        size = np.hypot(self.t, y)
        # 4.0: roundings of the sum.
        phases = 4.0 + y * (max(self.max_loss, 0.0) + self.n * self.mean_abs) + (noise * size) ** 2
        phases += 2 * self.n * self.mass * (size > self.law.reach)
        cut = 14 * self.width
        return np.asarray(ROUNDING_16 * phases + np.where(y <= cut, self._quad_error(cut), self._quad_error(math.inf)))

    def _step(self, goal: float) -> float:
        """Largest step whose aliases are at most ``goal``."""
        step: float = min(2 * math.pi * self.t / 30, 2 * math.pi * self.width / 8)
        for _ in range(16):
            if self._aliases(step) <= goal:
                break
            step /= 1.4
        return step

    def _aliases(self, step: float) -> float:
        """Chernoff bound on the aliases, relative to ``M(t)^n``: shifts by multiples of D up and down."""
        self.log_ratios = self.log_ratios or self._log_ratios()
        period = 2 * math.pi / step
        bounds = [(tilt > self.t, self._alias(tilt, period)) for tilt in self.log_ratios]
        return min(bound for up, bound in bounds if not up) + min(bound for up, bound in bounds if up)

    def _alias(self, tilt: float, period: float) -> float:
        log_ratio = self.log_ratios[tilt]
        if log_ratio == math.inf:
            return math.inf
        exponent = period * abs(tilt - self.t)
        log_bound = log_ratio - exponent - 1 - math.log(tilt)
        return math.exp(min(log_bound, 700.0)) / float(-math.expm1(-exponent))

    def _log_ratios(self) -> dict[float, float]:
        """``log(M(tilt)^n / M(t)^n)`` (upper bound) by tilt; one call of the closed form for all beyond ``reach``."""
        shares = [*(1 - 2.0**-i for i in range(1, 8)), *(1 + 2.0**i for i in range(-8, 4))]
        tilts = [tilt for share in shares if (tilt := self.t * share) * self.max_loss <= 600]
        far = [tilt for tilt in tilts if tilt > self.law.reach]
        closed = dict(zip(far, self.law.transform(np.array(far, complex)).real.tolist() if far else (), strict=True))
        found = dict.fromkeys((self.t * share for share in shares), math.inf)
        for tilt in tilts:
            log_moment = math.log1p(self.mass * closed[tilt]) if tilt in closed else self._moment(tilt)[1]
            found[tilt] = self.n * log_moment - self.log_scale + 2 * self.log_error
        return found

    def _kernel(self, s: Complexes) -> Complexes:
        """Transform of the positive part; on a lattice, summed over the periods of the line."""
        return np.asarray((self.spacing / 2 / np.sinh(self.spacing / 2 * s)) ** 2 if self.spacing else s**-2)

    def _lattice(self, goal: float) -> _Plan:
        r"""Lattice distribution: one period, no noise; the kernel is at most :math:`\pi^2/4y^2`.

        Truncated only by the decay of pairs one step apart, which bounds the whole half period; not where N, which
        decays more slowly, is subtracted.
        """
        half = math.pi / self.spacing
        count = math.ceil(half / self._step(goal))
        step = 2 * half / (2 * count + 1)
        decays = [] if self.null_mass else self._cutoffs(goal, half)
        for radius, rate, cut in decays:
            if radius >= 0.99999 * half:
                return _Plan(step, 0.0, cut, 2.5 * _gauss_tail(rate, cut))
        return _Plan(step, 0.0, (count - 0.5) * step, 0.0)

    def _early(self, goal: float) -> _Plan | None:
        """Truncation by the Gaussian decay of ``M^n`` inside its radius; noise bounds the tail beyond the radius."""
        if self.spacing:
            return self._lattice(goal)
        for radius, rate, cut in self._cutoffs(goal, math.inf):
            if not self.null_mass:
                noise = 4 / radius
                while _gauss_tail(noise, radius) > goal:
                    noise *= 1.05
                if noise * self.t > 30:
                    continue  # the bias of the noise exceeds the gain
                lift = math.exp(0.5 * (noise * self.t) ** 2)
                inner, outer = lift * _gauss_tail(rate, cut), lift * _gauss_tail(noise, radius)
                return _Plan(self._step(goal), noise, cut, inner + outer, inner * cut**2 + outer * radius**2)
        return None

    def _cutoffs(self, goal: float, limit: float) -> list[tuple[float, float, float]]:
        """Triples (radius, rate, cutoff) with the tail beyond the cutoff at most ``goal``; few terms first."""
        bounds = [(radius, rate, _cutoff(rate, goal)) for radius, rate in self.decays]
        valid = [bound for bound in bounds if bound[2] < min(bound[0], limit)]
        free = TERMS_TO_SAVE * self._step(goal) if valid else 0.0
        return sorted(valid, key=lambda bound: max(bound[2], free))

    def _late(self, noise: float, goal: float, terms: float = MAX_SUM_TERMS) -> _Plan:
        """Truncation by the decay of M, or else by the decay of the noise, ``terms`` of them at most."""
        step, cut = self._step(goal), _cutoff(noise, goal)
        decay_cut, log_tail = self._fade(goal)
        if decay_cut < cut and decay_cut <= terms * step:
            return _Plan(step, 0.0, decay_cut, math.exp(log_tail) / (math.pi * decay_cut))
        while cut > terms * step:
            noise, cut = 1.3 * noise, _cutoff(1.3 * noise, goal)
        tail = (1 + self.null_mass) * math.exp(0.5 * (noise * self.t) ** 2) * _gauss_tail(noise, cut)
        return _Plan(step, noise, cut, tail, tail * cut**2)

    def _fade(self, goal: float) -> tuple[float, float]:
        """Cutoff by the decay of M (``inf`` if there is none), and the logarithm of the integrand there."""
        atoms, smooth = self.law.decay(self.t)
        if self.null_mass or not smooth:
            return math.inf, 0.0
        root_goal = math.exp(math.log(goal * min(self.t, 1.0)) / self.n)
        allowed = root_goal * self.moment - 1 + self.mass * (1 - atoms)
        if allowed <= 0:
            return math.inf, 0.0
        cut = self.mass * smooth / allowed
        return cut, self.n * math.log((1 - self.mass + self.mass * (atoms + smooth / cut)) / self.moment)


def _signed_parts(law: LossLaw) -> tuple[LossLaw, AtomicLaw]:
    """The part L > 0 of a distribution (all of a continuous one), and the atoms L <= 0."""
    if not isinstance(law, AtomicLaw):
        return law, AtomicLaw(np.zeros(0), np.zeros(0), law.mass, law.kept)
    mask = law.values > 0
    gains, losses = (AtomicLaw(law.values[part], law.weights[part], law.mass, law.kept) for part in (mask, ~mask))
    return gains, losses


def _lattice_spacing(law: LossLaw) -> float:
    """Lattice spacing where all nonzero atoms are of equal modulus; else 0."""
    moduli = np.unique(np.abs(law.values[law.values != 0])) if isinstance(law, AtomicLaw) else np.zeros(0)
    return float(moduli[0]) if len(moduli) == 1 else 0.0


def log1p_complex(z: Complexes) -> Complexes:
    """``log(1 + z)`` without cancellation; finite also where 1 + z is 0."""
    squared = np.maximum(2 * z.real + np.abs(z) ** 2, np.nextafter(-1, 0))
    return np.asarray(0.5 * np.log1p(squared) + 1j * np.arctan2(z.imag, 1 + z.real))


def _reduced_noise(history: list[tuple[float, float]], goal: float) -> float:
    """Noise with a bias of ``goal``: the bias is O(noise^2), or O(noise) where P(S = 0) > 0."""
    noise, bias = history[-1]
    if not bias > goal:
        return noise
    power: float = 2.0
    if len(history) > 1 and noise < history[-2][0] and bias < history[-2][1]:
        power = math.log(history[-2][1] / bias) / math.log(history[-2][0] / noise)
    return float(noise * max((goal / bias) ** (1 / min(max(power, 1.0), 2.0)), 1e-3))


def _cutoff(rate: float, goal: float) -> float:
    """Cutoff beyond which the Gaussian tail of this rate is at most ``goal``."""
    if rate == 0:
        return math.inf
    cut = 4 / rate
    while _gauss_tail(rate, cut) > goal:
        cut *= 1.05
    return cut


def _gauss_tail(rate: float, cut: float) -> float:
    r"""Bound on :math:`\frac1\pi\int_{cut}^\infty y^{-2} e^{-\tau^2y^2/2}\,dy`."""
    return math.exp(-0.5 * (rate * cut) ** 2) / (math.pi * (rate * cut) ** 2 * cut)


def bracket(law: LossLaw, n_users: int, rtol: float = RTOL_TIGHT) -> Bracket:
    """Certified bracket of the log divergence, of width about ``rtol`` or less."""
    if law.points[0].max() <= 0:
        return NO_DELTA
    return _by_multisets(law, n_users) or _Contour(law, n_users).bracket(rtol)


def quick(law: LossLaw, n_users: int) -> float:
    """Uncertified log divergence, for the search of the epsilon at which to certify."""
    if law.points[0].max() <= 0:
        return -math.inf
    enumerated = _by_multisets(law, n_users)
    return enumerated.high if enumerated else _Contour(law, n_users).quick()


def tilt(law: LossLaw, n_users: int) -> float:
    """Tilt of a small Chernoff bound, for this distribution and similar ones; 1 where multisets are enumerated."""
    return 1.0 if law.points[0].max() <= 0 or _by_multisets(law, n_users) else _Contour(law, n_users).t


def chernoff(law: LossLaw, n_users: int) -> float:
    """Chernoff upper bound of the log divergence; that of the enumeration where multisets are few."""
    if law.points[0].max() <= 0:
        return -math.inf
    enumerated = _by_multisets(law, n_users)
    return enumerated.high if enumerated else _Contour(law, n_users).chernoff()


def chernoff_at(law: AtomicLaw, n_users: int, t: float) -> float:
    """Chernoff upper bound of the log divergence at this tilt; ``inf`` on overflow."""
    if not 0 < t * law.values.max() < 700:
        return -math.inf if law.values.max() <= 0 else math.inf
    increments = np.expm1(t * law.values)
    growth = law.mass * float(law.weights @ increments)
    moment = law.kept + law.mass * float(law.weights @ np.exp(t * law.values))
    if growth <= GROWTH_LOST and not moment > 0:
        return math.inf
    log_scale = n_users * (math.log1p(growth) if growth > GROWTH_LOST else math.log(moment))
    slack = ROUNDING_16 * (n_users * law.mass * float(law.weights @ np.abs(increments)) + abs(log_scale) + 8)
    return log_scale - 1 - math.log(t * law.mass * n_users) + slack


def _by_multisets(law: LossLaw, n_users: int) -> Bracket | None:
    """Bracket by enumeration of multisets, where they are few or few of them have any mass."""
    if not isinstance(law, AtomicLaw):
        return None
    # Multisets, at most, that are all enumerated.
    return _enumerated(law, n_users) if _combinations(law, n_users) <= 100_000 else _rare_multisets(law, n_users)


def _atoms(law: AtomicLaw) -> tuple[Reals, Reals]:
    """Values and probabilities of one user's term, 0 for "not a blanket user" included."""
    values = np.append(law.values, 0.0)
    probs = np.append(law.weights * law.mass, law.kept)
    return values[probs > 0], probs[probs > 0]


def _combinations(law: AtomicLaw, n_users: int) -> float:
    free = len(_atoms(law)[0]) - 1
    return math.exp(sum(math.log((n_users + i) / i) for i in range(1, free + 1)))


def _enumerated(law: AtomicLaw, n_users: int) -> Bracket:
    """Sum over all multisets of atoms: positive terms, whose probabilities have a relative error of a few roundings."""
    values, probs = _atoms(law)
    counts, log_coefs = _multisets(n_users, len(values))
    low, high = _log_excess(log_coefs + np.log(probs) @ counts, values @ counts, np.abs(values) @ counts)
    error = ROUNDING_16 * (gammaln(n_users + 1) + n_users * np.abs(np.log(probs)).max() + 8)
    scale = math.log(law.mass * n_users)
    return Bracket(low - scale - error, high - scale + error)


def _log_excess(logs: Reals, excess: Reals, sizes: Reals) -> tuple[float, float]:
    """Lower and upper bound of ``log sum(exp(logs) excess_+)``.

    The round-off of the excess is bounded relative to ``sizes``, the sums of absolute values, against cancellation.
    """
    ends = []
    for rounding in (-ROUNDING_16, ROUNDING_16):
        shifted = excess + rounding * sizes
        positive = shifted > 0
        ends.append(log_sum(logs[positive] + np.log(shifted[positive])) if positive.any() else -math.inf)
    return ends[0], ends[1]


@functools.lru_cache(maxsize=4)
def _multisets(total: int, letters: int) -> tuple[Reals, Reals]:
    """Count vectors of this total, and the logarithms of their multinomial coefficients."""
    counts = histograms(total, letters).T.astype(np.float64)
    return counts, gammaln(total + 1) - gammaln(counts + 1).sum(0)


def _rare_multisets(law: AtomicLaw, n_users: int) -> Bracket | None:
    r"""Sum over the multisets of at most K atoms other than the mode, which is not positive.

    With q the probability of such an atom, R their number and l the largest value, :math:`S_+ \le l R`; omitted is
    :math:`E[S_+; R > K] \le l\,nq\,P[\mathrm{Bin}(n-1,q) \ge K] \le l\,(nq)^{K+1}/K!`.
    None where that is not negligible.
    """
    values, probs = _atoms(law)
    mode = int(probs.argmax())
    values, probs, modal = np.delete(values, mode), np.delete(probs, mode), float(values[mode])
    mean = n_users * float(probs.sum())
    if mean > MAX_UNCOMMON or modal > 0 or not values.max(initial=0.0) > 0:
        return None
    counts, log_facts = _small_multisets(len(values))
    most, valid = int(counts.max()), counts.sum(axis=0) <= n_users
    counts, log_facts = counts[:, valid], log_facts[valid]
    total = counts.sum(axis=0)
    excess, sizes = (v @ counts + u * (n_users - total) for v, u in ((values, modal), (np.abs(values), abs(modal))))
    log_falling = np.append(0.0, np.log(np.maximum(n_users - np.arange(most), 1)).cumsum())
    logs = log_falling[total] - log_facts + np.log(probs) @ counts + (n_users - total) * math.log1p(-mean / n_users)
    low, high = _log_excess(logs, excess, sizes)
    omitted = math.log(values.max()) + (most + 1) * math.log(mean) - math.lgamma(most + 1)
    if omitted > low + math.log(RTOL_OMITTED):
        return None
    error = ROUNDING_16 * (most * (float(np.abs(np.log(probs)).max()) + math.log(n_users)) + 8)
    scale = math.log(law.mass * n_users)
    return Bracket(low - scale - error, float(np.logaddexp(high, omitted)) - scale + error)


@functools.cache
def _small_multisets(letters: int) -> tuple[Wholes, Reals]:
    """Count vectors of every total up to a maximum, and the logarithms of the products of their factorials."""
    total = next(
        top for top in itertools.count(1) if math.comb(top + 1 + letters, letters) > MAX_COMBINATIONS or top == 150
    )
    counts = histograms(total, letters + 1)[:, :-1].T
    return counts, gammaln(counts + 1).sum(0)


def histograms(total: int, letters: int) -> Wholes:
    """Count vectors of this total over ``letters`` letters, in lexicographic order."""
    positions = list(itertools.combinations(range(total + letters - 1), letters - 1))
    bars = np.array(positions, dtype=np.int64).reshape(len(positions), letters - 1)
    ends = np.full((len(bars), 1), total + letters - 1)
    return np.diff(np.hstack([np.full_like(ends, -1), bars, ends]), axis=1) - 1
