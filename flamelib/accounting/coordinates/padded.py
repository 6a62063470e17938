r"""One coordinate after padding: a message among real messages and dummies, shuffled together.

The shuffler of FLAME fills every coordinate up to :math:`n_p` messages with dummies from the blanket law
:math:`\omega`.  A real message is a blanket message for the one in question with probability :math:`\gamma`, a dummy
surely.

*The pair.*  In the two data sets her message has the laws :math:`(1-a)\omega + a\mu_x` and
:math:`(1-b)\omega + b\mu_{x'}`: :math:`a = b = 1` is real against real, (1, 0) and (0, 1) are real against dummy, and
:math:`a = b = \beta` is a coordinate that every user reports with chance :math:`\beta`, independently.  With m - 1
blanket messages beside hers the divergence is

.. math:: D(m) = \tfrac1m E\Big[\Big(\sum_{i\le m} L_i\Big)_+\Big], \qquad
          L = (1-a+a\,r_x) - e^{\varepsilon}(1-b+b\,r_{x'}),

r being the likelihood ratio to :math:`\omega`, and the inputs 0 and 1 are the worst.

*The others.*  D falls with m.  So if the number of others that are real and not blanket is stochastically below
:math:`\mathrm{Bin}(n_p-1, 1-g)`, the divergence is at most that of :math:`n_p` messages of blanket mass g
(:class:`Others`); an event on which this fails counts with the divergence of her message in clear.

All are upper bounds.  Adjacency: one user's value is replaced.  Proofs: book, chapter on FLAME, lemma "Padding" and
"How many of the others are real".
"""

import functools
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from flamelib.accounting.composition.privacy_profile import Delta, PrivacyProfile
from flamelib.accounting.shuffling import bromwich
from flamelib.accounting.shuffling.brackets import locally, within_reach
from flamelib.accounting.shuffling.closed_form import phi_over_square
from flamelib.accounting.shuffling.laws import AtomicLaw, LossLaw, PaddedLaplaceLaw
from flamelib.core import binomial
from flamelib.core.logspace import above, log1mexp
from flamelib.core.profiles import KaryProfile, LaplaceProfile
from flamelib.core.search import least_whole

_Padded = KaryProfile | LaplaceProfile
Bound = Literal["bennett", "hoeffding", "blanket"]

TAIL_MASS = 1e-20  # probability set aside for more reports than are compared


@dataclass(frozen=True, slots=True)
class Others:
    """All messages, and the chance that one of the others ignores its value (``mass``, else ``kept``).

    This holds up to an event of probability ``rest``, on which nothing hides the message in question, and one of
    probability ``full``, on which there are so many real ones that of all of them this many are kept at random.
    """

    messages: int
    mass: float
    kept: float
    rest: float = 0.0
    full: float = 0.0


def all_real(randomizer: _Padded, padded: int) -> Others:
    """No dummy among the messages: the worst case when nobody knows how many there are."""
    return Others(padded, randomizer.mass, randomizer.kept)


def sampled(
    randomizer: _Padded, padded: int, n_users: int, sampling_rate: float, rest: float = TAIL_MASS, drop: bool = False
) -> Others:
    """Every other user reports with chance ``sampling_rate``; about ``rest`` is set aside where users are many.

    Where the others may be more than the places, their number is compared up to ``most`` only, by the likelihood ratio.
    A bag that is full without the message counts as laid bare, or with ``drop`` as one that keeps some at random.
    """
    safe = 1 + 1e-9  # relative error of SciPy's binomial tails and of the odds, with room
    chance, others = sampling_rate * randomizer.kept, n_users - 1
    if others < padded:
        return _spread(padded, math.log1p(-chance) * others if chance < 1 else -math.inf)
    overflow = min(safe * float(binomial.sf(padded - 1, others, sampling_rate)), 1.0)
    bare, full = (0.0, overflow) if drop else (overflow, 0.0)
    far = -math.log(rest)
    most = math.ceil(min(others * chance + math.sqrt(2 * far * others * chance) + far / 1.5, padded - 1))
    most = least_whole(lambda count: bool(binomial.sf(count, others, chance) <= rest), 0, most)
    worst = all_real(randomizer, padded)
    if chance >= 1:
        return Others(padded, worst.mass, worst.kept, bare, full)
    odds = safe * chance / (1 - chance) * (n_users - most) / (padded - most)
    if odds / (1 + odds) >= worst.kept:
        return Others(padded, worst.mass, worst.kept, bare, full)
    rest = bare + safe * float(binomial.sf(most, others, chance))
    return Others(padded, 1 / (1 + odds), odds / (1 + odds), min(rest, 1.0), full)


def _spread(padded: int, log_none: float) -> Others:
    """As many others as there are places, with this logarithm of the chance that all of them are blanket."""
    log_mass = log_none / (padded - 1)
    return Others(padded, math.exp(log_mass), -math.expm1(log_mass))


RTOL_CURVE = 1e-4  # relative width of the inversion's bracket for a curve


def _top(randomizer: _Padded) -> float:
    """Largest value of a likelihood ratio against the blanket, less 1."""
    if isinstance(randomizer, KaryProfile):
        return randomizer.kept * (randomizer.n_buckets - 1)
    return math.expm1(randomizer.epsilon0 / 2)


def moments(randomizer: _Padded) -> tuple[float, float]:
    """Variance of a likelihood ratio against the blanket under it, and minus the covariance of two extreme ones."""
    kept = randomizer.kept
    if isinstance(randomizer, KaryProfile):
        return kept**2 * (randomizer.n_buckets - 1), kept**2
    half = randomizer.epsilon0 / 2
    return kept**2 * (2 * math.exp(half) + 1) / 3, kept**2


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A message that is there with chance ``first`` against one of another value that is there with chance ``second``.

    Others with a ``rest`` stand for independent choices of whom to hear, and go with ``first == second``.
    """

    randomizer: _Padded
    others: Others
    first: float = 1.0
    second: float = 1.0

    @property
    def most(self) -> float:
        """From this epsilon on the divergence is 0: logarithm of the largest ratio of the two laws of the message."""
        kept, mass = self.randomizer.kept, self.randomizer.mass
        lost = self.second * kept
        log_least = math.log1p(-lost) if lost < 0.5 else math.log(1 - self.second + self.second * mass)
        return math.log1p(self.first * _top(self.randomizer)) - log_least

    @property
    def scale(self) -> float:
        """The larger chance to be there: L is in proportion to it where both are the same."""
        return max(self.first, self.second)

    @property
    def swapped(self) -> "Coordinate":
        """The other direction."""
        return Coordinate(self.randomizer, self.others, self.second, self.first)

    def law(self, epsilon: float) -> LossLaw:
        """The law of ``L / scale``; the blanket's mass is that of the other messages."""
        others, gain, loss = self.others, self.first / self.scale, math.exp(epsilon) * self.second / self.scale
        growth = math.expm1(epsilon) / self.scale
        if isinstance(self.randomizer, LaplaceProfile):
            return PaddedLaplaceLaw(self.randomizer.epsilon0, epsilon, 0.5, others.mass, gain, loss, growth)
        top, kept, k = _top(self.randomizer), self.randomizer.kept, self.randomizer.n_buckets
        values = np.array([gain * top + loss * kept, -gain * kept - loss * top, (loss - gain) * kept])
        return AtomicLaw(values - growth, np.array([1, 1, k - 2]) / k, others.mass, others.kept)

    def delta(self, epsilon: float, bound: Bound) -> float:
        """Upper bound on the divergence at ``epsilon``."""
        hidden, clear = 0.0, self.clear(epsilon)
        if epsilon < self.most:
            local = above(math.exp(locally(max(self.most, self.swapped.most))(epsilon).high), 2)
            hidden = min(local, clear, math.exp(min(self._log_delta(epsilon, bound), 0.0)))
        hidden += self.others.rest * clear
        # Share of a divergence below which a full bag counts as laid bare.
        if self.others.full * clear <= 1e-9 * hidden:
            return hidden + self.others.full * clear
        shown = self.scale * Coordinate(self.randomizer, all_real(self.randomizer, self.others.messages)).delta(
            epsilon, bound
        )
        return min(hidden + self.others.full * shown, shown)

    def clear(self, epsilon: float) -> float:
        """Upper bound on the divergence of the message by itself, and of whether it is there, where chances agree."""
        both = self.first == self.second
        if isinstance(self.randomizer, LaplaceProfile):
            reach = self.randomizer.epsilon0 / (1 if both else 2)
            found = -math.expm1(min(epsilon - reach, 0.0) / 2)
        else:
            k, kept, growth = self.randomizer.n_buckets, self.randomizer.kept, math.expm1(min(epsilon, 700.0))
            low = (1 - kept) / k
            found = kept - growth * low if both else (_top(self.randomizer) - growth) / k
            if self.first < self.second:
                found = (k - 1) / k * (kept - growth * (1 - kept))
        return self.scale * max(found, 0.0)

    def _log_delta(self, epsilon: float, bound: Bound) -> float:
        if not within_reach(self.randomizer.epsilon0):
            return math.inf
        blankets = self.others.messages * self.others.mass
        # Larger budgets with fewer blanket messages: the inversion is slow and gains nothing.
        if bound == "blanket" and self.randomizer.epsilon0 > 8.0 and blankets < 10.0:
            return min(self._log_delta(epsilon, "bennett"), self._log_delta(epsilon, "hoeffding"))
        if bound == "blanket":
            return bromwich.bracket(self.law(epsilon), self.others.messages, RTOL_CURVE).high + math.log(self.scale)
        return self._tail(epsilon, bound) + math.log(self.scale) if epsilon > 0 else math.inf

    def _tail(self, epsilon: float, bound: Bound) -> float:
        """Hoeffding's or Bennett's inequality for every number of blanket messages, averaged; of ``L / scale``."""
        gain, loss = self.first / self.scale, math.exp(epsilon) * self.second / self.scale
        growth = math.expm1(epsilon) / self.scale
        top, kept = _top(self.randomizer), self.randomizer.kept
        high, spread = gain * top + loss * kept - growth, (gain + loss) * (top + kept)
        n, mass = self.others.messages, self.others.mass
        if bound == "hoeffding":
            power = n * math.log1p(mass * math.expm1(-2 * (growth / spread) ** 2))
            return math.log(spread / (4 * mass * n)) + math.log(spread / growth) + power
        variance, cross = moments(self.randomizer)
        square = (gain**2 + loss**2) * variance + 2 * gain * loss * cross + growth**2
        u = growth * high / square
        decay = growth**2 / square * phi_over_square(u)
        power = n * math.log1p(mass * math.expm1(-decay))
        none = log1mexp(-n * math.log(self.others.kept) + power) if self.others.kept else 0.0
        return math.log(high / (mass * n * math.log1p(u))) + power + none

    def curve(self, bound: Bound = "blanket") -> PrivacyProfile:
        """The certified profile, for composition."""

        @functools.cache
        def forward(epsilon: float) -> float:
            return self.delta(epsilon, bound)

        @functools.cache
        def backward(epsilon: float) -> float:
            return self.swapped.delta(epsilon, bound)

        most = self.randomizer.epsilon0 if self.others.rest or self.others.full else max(self.most, self.swapped.most)
        other: Delta | None = None if self.first == self.second else backward
        return PrivacyProfile(forward, other, most, error=RTOL_CURVE if bound == "blanket" else 0.0)
