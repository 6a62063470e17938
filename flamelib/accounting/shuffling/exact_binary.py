r"""Exact divergence of shuffled binary randomized response, and the search for its worst data set.

With m ones among the other n-1 users the count T of reported ones, other users only, is
Bin(m, 1-q) + Bin(n-1-m, q), :math:`q = 1/(1+e^{\varepsilon_0})`, and the divergence is

.. math:: D(m) = \max_j\ \alpha P(T = j-1) - (\beta-\alpha) P(T \ge j),\qquad
          \alpha = q(e^{\varepsilon_0}-e^{\varepsilon}),\ \beta = q(e^{\varepsilon_0+\varepsilon}-1):

the best test is a threshold, the one at which the law of T tilted by :math:`\beta/\alpha` has its mode.  All m in one
direction are all m in both.  Point probabilities and tails come from a contour integral on the circle through the tilt,
at a cost that does not depend on n.

Up to ``EXHAUSTIVE`` users every m is tried.  Above, the maximum E(m) over real thresholds is a smooth envelope that is
never below D(m): the best D found so far rules out every stretch of m whose envelope is lower; what is left is cut
finer and, once short, tried in full.  Where very many m are left, the rest is the width of the bracket.  That the
envelope has no other top between the places that are tried is seen, not proven.  Where T takes few values there is no
such envelope, but a bound: without m - a of the ones and b - m of the zeros the others hide less, so that D(m), for
every m from a to b, is at most D(a) of b - a fewer users.

Why: book, chapter on the privacy blanket, section on how the blanket divergence is computed.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from flamelib.accounting.shuffling.inversion import NOTHING, ROUNDING, Bracket
from flamelib.core.arrays import Reals, Wholes

EXHAUSTIVE = 1500  # numbers of ones that are all tried
COVER, SPLIT = 256, 1024  # stretches of numbers of ones: of the quick ceiling, and at first where T is narrow
NARROW = 6.0  # standard deviation of T below which there is no smooth envelope
ROUNDS = 8  # of cutting finer
ENOUGH = 1e-7  # width of the bracket, of the logarithm of the divergence


def worst(epsilon0: float, n_users: int, epsilon: float) -> Bracket:
    """Bracket of the logarithm of the divergence, maximized over the other users and both directions."""
    if epsilon >= epsilon0:
        return NOTHING
    pair = Pair(epsilon0, n_users, epsilon)
    if n_users <= EXHAUSTIVE:
        return pair.best_of(np.arange(n_users))
    return pair.covered() if pair.is_narrow else pair.searched()


def ceiling(epsilon0: float, n_users: int, epsilon: float) -> float:
    """Upper end of the same by dropping users, and by nothing else: about that of 1 % fewer users, and quick."""
    if epsilon >= epsilon0 or n_users <= COVER:
        return worst(epsilon0, n_users, epsilon).high
    width = -(-n_users // COVER)
    starts = np.minimum(np.arange(0, n_users, width), n_users - width)
    return Pair(epsilon0, n_users - width + 1, epsilon).best_of(starts).high


def at_the_end(epsilon0: float, n_users: int, epsilon: float) -> float:
    """Logarithm of the divergence when all other users hold the same value."""
    if epsilon >= epsilon0:
        return -math.inf
    return Pair(epsilon0, n_users, epsilon).best_of(np.array([0, n_users - 1])).high


@dataclass(frozen=True)
class Pair:
    """The two values in question, for every number m of ones among the other users."""

    epsilon0: float
    n_users: int
    epsilon: float

    @cached_property
    def odds(self) -> float:
        """``log(beta / alpha)`` without cancellation."""
        epsilon0, epsilon = self.epsilon0, self.epsilon
        return math.log(math.expm1(epsilon0 + epsilon)) - epsilon - math.log(math.expm1(epsilon0 - epsilon))

    def tilted(self, ones: Wholes, tilt: float) -> tuple[Reals, Reals]:
        """Mean and standard deviation of T tilted by ``exp(tilt * T)``."""
        up, down = (1 / (1 + math.exp(-tilt - sign * self.epsilon0)) for sign in (1, -1))
        zeros = self.n_users - 1 - ones
        return ones * up + zeros * down, np.sqrt(ones * up * (1 - up) + zeros * down * (1 - down))

    def best_of(self, ones: Wholes) -> Bracket:
        """The largest D(m) among these m."""
        logs, error = self.divergence(ones)
        return Bracket(float(logs.max()) - error, float(logs.max()) + error)

    def divergence(self, ones: Wholes) -> tuple[Reals, float]:
        """Logarithm of D(m), and the error: the tilted mode is the tilted mean, rounded down or up."""
        below = np.minimum(np.floor(self.tilted(ones, self.odds)[0]), self.n_users - 2)
        logs, error = self.log_divergence(ones, below, np.array([0.0, 1.0]))
        return np.asarray(logs.max(0)), error

    @property
    def is_narrow(self) -> bool:
        """Whether T takes so few values that there is no smooth envelope."""
        return bool(self.tilted(np.array([0, self.n_users - 1]), self.odds)[1].min() < NARROW)

    def covered(self) -> Bracket:
        """Branch and bound over m by dropping users: see the module."""
        width, low = -(-self.n_users // SPLIT), -math.inf
        starts = np.minimum(np.arange(0, self.n_users, width), self.n_users - width)
        for _ in range(2 * ROUNDS):
            low = max(low, self.best_of(starts).low)
            logs, error = replace(self, n_users=self.n_users - width + 1).divergence(starts)
            high = max(low, float(logs.max()) + error)
            starts = starts[logs + error >= low]
            if width == 1 or high - low <= ENOUGH or len(starts) > SPLIT:
                break
            half = -(-width // 2)
            starts, width = np.unique(np.concatenate([starts, starts + width - half])), half
        return Bracket(low, high)

    def searched(self) -> Bracket:
        """Branch and bound over m by the envelope: see the module."""
        ones, low = self.places(), -math.inf
        for _ in range(ROUNDS):
            envelope, offset, error = self.envelope(ones)
            top = int(envelope.argmax())
            low = max(low, self.best_of(self.aligned(int(ones[top]), float(offset[top]))).low)
            high = float(envelope[top]) + error
            left = _stretches(ones, envelope, low)
            size = sum(stop - start for start, stop in left)
            if high - low <= ENOUGH or size <= EXHAUSTIVE or 8 * len(left) > EXHAUSTIVE:
                break
            ones = np.unique(np.concatenate([np.linspace(*stretch, 9).astype(np.int64) for stretch in left]))
        if size > 4 * EXHAUSTIVE:
            return Bracket(low, max(high, low + 2 * error))
        found = self.best_of(np.unique(np.concatenate([np.arange(start, stop + 1) for start, stop in left])))
        return Bracket(max(low, found.low), max(low + 2 * error, found.high))

    def places(self) -> Wholes:
        """Some numbers of ones, closer to each other towards the ends."""
        last = self.n_users - 1
        near = 2 ** np.arange(int(math.log2(self.n_users / 50)))
        return np.unique(np.concatenate([[0], near, np.linspace(0, last, 40).astype(np.int64), last - near, [last]]))

    def envelope(self, ones: Wholes) -> tuple[Reals, Reals, float]:
        """Largest divergence over real thresholds, where it is (from the tilted mean), and the error."""
        mean = self.tilted(ones, self.odds)[0]
        best, offsets = np.zeros(len(ones)), np.linspace(-1, 1, 17)
        for spread in (0.125, 0.02, 0.02):
            logs, error = self.log_divergence(ones, mean + best, offsets)
            middle = np.clip(logs.argmax(0), 1, len(logs) - 2)
            left, here, right = (np.take_along_axis(logs, (middle + k)[None], 0)[0] for k in (-1, 0, 1))
            bend = 2 * here - left - right
            lean = np.clip(0.5 * (right - left) / np.maximum(bend, 1e-300), -1, 1)
            best = best + offsets[middle] + spread * lean
            peak = np.maximum(logs.max(0), here + 0.5 * lean * (right - left) - 0.5 * lean**2 * bend)
            offsets = np.array([-0.02, 0.0, 0.02])
        return peak, best, error

    def aligned(self, top: int, offset: float) -> Wholes:
        """Numbers of ones around the top whose ideal threshold is nearly whole."""
        chosen = []
        for radius in (50, 1000, 30_000):
            ones = np.arange(max(top - radius, 0), min(top + radius, self.n_users - 1) + 1)
            ideal = self.tilted(ones, self.odds)[0] + offset
            chosen.append(ones[np.argsort(np.abs(ideal - np.round(ideal)), kind="stable")[:100]])
        return np.unique(np.concatenate(chosen))

    def log_divergence(self, ones: Wholes, center: Reals, offsets: Reals) -> tuple[Reals, float]:
        """Logarithm of ``alpha P(T = mode) - (beta - alpha) P(T > mode)``, and a bound on its error.

        One column per m, one row per offset of the mode from its center.  Laws of different width are summed apart.
        """
        logs, error = np.empty((len(offsets), len(ones))), 0.0
        octave = np.floor(0.5 * np.log2(np.maximum(self.tilted(ones, self.odds)[1], 0.5)))
        for group in np.unique(octave):
            here = octave == group
            logs[:, here], doubt = self._contour(ones[here], center[here], offsets)
            error = max(error, doubt)
        return logs, error

    def _contour(self, ones: Wholes, center: Reals, offsets: Reals) -> tuple[Reals, float]:
        tilt = max(self.odds, 1 / max(float(self.tilted(ones, self.odds)[1].max()), 1.0))
        spread = np.maximum(self.tilted(ones, tilt)[1], 0.5)
        angle, weight = _angles(float(spread.min()), float(spread.max()))
        q = 1 / (1 + math.exp(self.epsilon0))
        log_scale, turns = _transform(q, self.n_users, ones, tilt, angle)
        tail_factor = np.exp(-1j * angle) / -np.expm1(-(tilt + 1j * angle))
        gained = q * math.exp(self.epsilon) * math.expm1(self.epsilon0 - self.epsilon)
        lost = math.expm1(self.epsilon) * math.exp(-tilt)
        factor = (weight * (gained - lost * tail_factor))[:, None] * np.exp(-1j * np.outer(angle, offsets))
        value = (turns * np.exp(-1j * np.outer(center, angle))) @ factor
        logs = np.log(np.maximum(value.real, 1e-320)).T + log_scale - tilt * (center + offsets[:, None])
        return logs, _rounding(self.n_users, tilt, spread, float(np.abs(log_scale).max()))


def _stretches(ones: Wholes, envelope: Reals, low: float) -> list[tuple[int, int]]:
    """Stretches between neighboring m where the envelope reaches ``low``, and those beside its top."""
    reached = envelope >= low
    reached[int(envelope.argmax())] = True
    inside = reached[1:] | reached[:-1]
    return [(int(ones[i]), int(ones[i + 1])) for i in np.flatnonzero(inside)]


def _rounding(n_users: int, tilt: float, spread: Reals, log_scale: float) -> float:
    """Round-off of the logarithm: of the phases, times the cancellation between gain and loss, and of the scale."""
    cancelled = 1 + 2 / min(1.0, tilt * float(spread.max())) ** 2
    return ROUNDING * (cancelled * (14 * n_users / float(spread.min()) + 200) + log_scale)


def _angles(narrow: float, wide: float) -> tuple[Reals, Reals]:
    """Half circle of angles with trapezoid weights over pi; cut at 14 standard deviations of the narrowest law."""
    step = 0.15 / wide
    if 14 / narrow < math.pi:
        angle = np.arange(0, 14 / narrow, step)
        weight = np.full(len(angle), step / math.pi)
    else:
        count = math.ceil(math.pi / step) + 32
        angle = np.linspace(0, math.pi, count + 1)
        weight = np.full(count + 1, 1 / count)
        weight[-1] /= 2
    weight[0] /= 2
    return angle, weight


def _transform(q: float, n_users: int, ones: Wholes, tilt: float, angle: Reals) -> tuple[Reals, NDArray[np.complex128]]:
    """``log G(r)`` per m and ``G(r e^{i angle}) / G(r)``, shape (m, angles)."""
    log_scale, phase = np.zeros(len(ones)), np.zeros((len(ones), len(angle)), complex)
    for chance, count in ((1 - q, ones), (q, n_users - 1 - ones)):
        log_scale = log_scale + count * math.log1p(chance * math.expm1(tilt))
        tilted = chance * math.exp(tilt) / (1 + chance * math.expm1(tilt))
        turn = tilted * np.expm1(1j * angle)
        squared = 2 * turn.real + np.abs(turn) ** 2
        small = np.log(np.maximum(np.abs(1 + turn), 1e-150))
        size = np.where(squared > -0.5, 0.5 * np.log1p(np.maximum(squared, -0.5)), small)
        phase += np.outer(count, size + 1j * np.arctan2(turn.imag, 1 + turn.real))
    return log_scale, np.exp(phase)
