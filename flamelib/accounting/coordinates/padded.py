r"""One coordinate after padding: a message among real messages and dummies, shuffled together.

The shuffler of FLAME fills every coordinate up to :math:`n_p` messages with dummies from the blanket distribution
:math:`\omega`.  A real message of another user is a blanket message with probability :math:`\gamma`, a dummy always.

*The pair.*  In the two data sets the victim's message has the distributions :math:`(1-a)\omega + a\mu_x` and
:math:`(1-b)\omega + b\mu_{x'}`: :math:`a = b = 1` is real against real, (1, 0) and (0, 1) are real against dummy, and
:math:`a = b = \beta` is a coordinate that every user reports independently with probability :math:`\beta`.  With m - 1
other blanket messages the divergence is

.. math:: D(m) = \tfrac1m E\Big[\Big(\sum_{i\le m} L_i\Big)_+\Big], \qquad
          L = (1-a+a\,r_x) - e^{\varepsilon}(1-b+b\,r_{x'}),

r being the likelihood ratio to :math:`\omega`, and the inputs 0 and 1 are the worst.

*The others.*  D is non-increasing in m.  So if the number of others that are real and not blanket is stochastically
dominated by :math:`\mathrm{Bin}(n_p-1, 1-g)`, the divergence is at most that of :math:`n_p` messages of blanket mass g
(:class:`Others`); an event on which this fails contributes its probability times the divergence without shuffling.

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
from flamelib.accounting.shuffling.laplace import PaddedLaplaceLaw
from flamelib.accounting.shuffling.laws import AtomicLaw, LossLaw
from flamelib.core import binomial
from flamelib.core.logspace import above, log1mexp
from flamelib.core.profiles import KaryProfile, LaplaceProfile
from flamelib.core.search import least_whole

_Padded = KaryProfile | LaplaceProfile
Bound = Literal["bennett", "hoeffding", "blanket"]

TAIL_MASS = 1e-20  # tail probability of the number of reports


@dataclass(frozen=True, slots=True)
class Others:
    """Number of messages, and probability ``mass`` that another one is blanket (``kept`` is 1 - mass).

    This holds up to an event of probability ``rest``, on which the victim's message is unshuffled, and one of
    probability ``full``, on which a full bag keeps ``messages`` real messages at random.
    """

    messages: int
    mass: float
    kept: float
    rest: float = 0.0
    full: float = 0.0


def all_real(randomizer: _Padded, padded: int) -> Others:
    """No dummies: the worst case of an unknown number of real messages."""
    return Others(padded, randomizer.mass, randomizer.kept)


def sampled(
    randomizer: _Padded, padded: int, n_users: int, sampling_rate: float, rest: float = TAIL_MASS, drop: bool = False
) -> Others:
    """Every other user reports with probability ``sampling_rate``; a tail of about ``rest`` is charged to delta.

    Where the others may overflow the bag, their number is dominated up to ``max_real`` only, by the likelihood ratio.
    A bag that is full of others' messages counts as unshuffled, or with ``drop`` as one that keeps some at random.
    """
    inflation = 1 + 1e-9  # bound of the relative error of SciPy's binomial tails and of the odds
    p_real, others = sampling_rate * randomizer.kept, n_users - 1
    if others < padded:
        return _spread(padded, math.log1p(-p_real) * others if p_real < 1 else -math.inf)
    overflow = min(inflation * float(binomial.sf(padded - 1, others, sampling_rate)), 1.0)
    exposed, full = (0.0, overflow) if drop else (overflow, 0.0)
    nats = -math.log(rest)
    max_real = math.ceil(min(others * p_real + math.sqrt(2 * nats * others * p_real) + nats / 1.5, padded - 1))
    max_real = least_whole(lambda count: bool(binomial.sf(count, others, p_real) <= rest), 0, max_real)
    all_others_real = all_real(randomizer, padded)
    if p_real >= 1:
        return Others(padded, all_others_real.mass, all_others_real.kept, exposed, full)
    odds = inflation * p_real / (1 - p_real) * (n_users - max_real) / (padded - max_real)
    if odds / (1 + odds) >= all_others_real.kept:
        return Others(padded, all_others_real.mass, all_others_real.kept, exposed, full)
    rest = exposed + inflation * float(binomial.sf(max_real, others, p_real))
    return Others(padded, 1 / (1 + odds), odds / (1 + odds), min(rest, 1.0), full)


def _spread(padded: int, log_none: float) -> Others:
    """``padded - 1`` others, with this logarithm of the probability that all of them are blanket."""
    log_mass = log_none / (padded - 1)
    return Others(padded, math.exp(log_mass), -math.expm1(log_mass))


RTOL_CURVE = 1e-4  # relative width of the inversion's bracket for a curve


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A message that is real with probability ``first`` against one of another value, real with probability ``second``.

    Others with a ``rest`` are those of an independent choice of coordinates and require ``first == second``.
    """

    randomizer: _Padded
    others: Others
    first: float = 1.0
    second: float = 1.0

    @property
    def most(self) -> float:
        """Largest privacy loss of the unshuffled message, from which on the divergence is 0."""
        kept, mass = self.randomizer.kept, self.randomizer.mass
        kept_second = self.second * kept
        log_least = math.log1p(-kept_second) if kept_second < 0.5 else math.log(1 - self.second + self.second * mass)
        return math.log1p(self.first * self.randomizer.max_excess) - log_least

    @property
    def scale(self) -> float:
        """The larger probability; L is proportional to it where both are equal."""
        return max(self.first, self.second)

    @property
    def swapped(self) -> "Coordinate":
        """The other direction."""
        return Coordinate(self.randomizer, self.others, self.second, self.first)

    def law(self, epsilon: float) -> LossLaw:
        """The distribution of ``L / scale``; the blanket's mass is that of the other messages."""
        others, gain, loss = self.others, self.first / self.scale, math.exp(epsilon) * self.second / self.scale
        growth = math.expm1(epsilon) / self.scale
        if isinstance(self.randomizer, LaplaceProfile):
            return PaddedLaplaceLaw(self.randomizer.epsilon0, epsilon, 0.5, others.mass, gain, loss, growth)
        max_excess, kept, k = self.randomizer.max_excess, self.randomizer.kept, self.randomizer.n_buckets
        values = np.array([gain * max_excess + loss * kept, -gain * kept - loss * max_excess, (loss - gain) * kept])
        return AtomicLaw(values - growth, np.array([1, 1, k - 2]) / k, others.mass, others.kept)

    def delta(self, epsilon: float, bound: Bound) -> float:
        """Upper bound on the divergence at ``epsilon``."""
        shuffled, unshuffled = 0.0, self.clear(epsilon)
        if epsilon < self.most:
            local = above(math.exp(locally(max(self.most, self.swapped.most))(epsilon).high), 2)
            shuffled = min(local, unshuffled, math.exp(min(self._log_delta(epsilon, bound), 0.0)))
        shuffled += self.others.rest * unshuffled
        # Share of a divergence below which a full bag counts as unshuffled.
        if self.others.full * unshuffled <= 1e-9 * shuffled:
            return shuffled + self.others.full * unshuffled
        full_bag = self.scale * Coordinate(self.randomizer, all_real(self.randomizer, self.others.messages)).delta(
            epsilon, bound
        )
        return min(shuffled + self.others.full * full_bag, full_bag)

    def clear(self, epsilon: float) -> float:
        """Upper bound on the divergence of the unshuffled message, and of its presence if probabilities agree."""
        same = self.first == self.second
        if isinstance(self.randomizer, LaplaceProfile):
            max_epsilon = self.randomizer.epsilon0 / (1 if same else 2)
            divergence = -math.expm1(min(epsilon - max_epsilon, 0.0) / 2)
        else:
            k, kept, growth = self.randomizer.n_buckets, self.randomizer.kept, math.expm1(min(epsilon, 700.0))
            lower = (1 - kept) / k
            divergence = kept - growth * lower if same else (self.randomizer.max_excess - growth) / k
            if self.first < self.second:
                divergence = (k - 1) / k * (kept - growth * (1 - kept))
        return self.scale * max(divergence, 0.0)

    def _log_delta(self, epsilon: float, bound: Bound) -> float:
        if not within_reach(self.randomizer.epsilon0):
            return math.inf
        blankets = self.others.messages * self.others.mass
        # For large budgets with few blanket messages the inversion is slow and not smaller.
        if bound == "blanket" and self.randomizer.epsilon0 > 8.0 and blankets < 10.0:
            return min(self._log_delta(epsilon, "bennett"), self._log_delta(epsilon, "hoeffding"))
        if bound == "blanket":
            return bromwich.bracket(self.law(epsilon), self.others.messages, RTOL_CURVE).high + math.log(self.scale)
        return self._tail(epsilon, bound) + math.log(self.scale) if epsilon > 0 else math.inf

    def _tail(self, epsilon: float, bound: Bound) -> float:
        """Hoeffding's or Bennett's inequality for every number of blanket messages, averaged; of ``L / scale``."""
        gain, loss = self.first / self.scale, math.exp(epsilon) * self.second / self.scale
        growth = math.expm1(epsilon) / self.scale
        max_excess, kept = self.randomizer.max_excess, self.randomizer.kept
        upper, width = gain * max_excess + loss * kept - growth, (gain + loss) * (max_excess + kept)
        n, mass = self.others.messages, self.others.mass
        if bound == "hoeffding":
            power = n * math.log1p(mass * math.expm1(-2 * (growth / width) ** 2))
            return math.log(width / (4 * mass * n)) + math.log(width / growth) + power
        variance, cross = self.randomizer.excess_moments
        second_moment = (gain**2 + loss**2) * variance + 2 * gain * loss * cross + growth**2
        u = growth * upper / second_moment
        decay = growth**2 / second_moment * phi_over_square(u)
        power = n * math.log1p(mass * math.expm1(-decay))
        log_some = log1mexp(-n * math.log(self.others.kept) + power) if self.others.kept else 0.0
        return math.log(upper / (mass * n * math.log1p(u))) + power + log_some

    def curve(self, bound: Bound = "blanket") -> PrivacyProfile:
        """The certified profile, for composition."""

        @functools.cache
        def forward(epsilon: float) -> float:
            return self.delta(epsilon, bound)

        @functools.cache
        def backward(epsilon: float) -> float:
            return self.swapped.delta(epsilon, bound)

        most = self.randomizer.epsilon0 if self.others.rest or self.others.full else max(self.most, self.swapped.most)
        reverse: Delta | None = None if self.first == self.second else backward
        return PrivacyProfile(forward, reverse, most, error=RTOL_CURVE if bound == "blanket" else 0.0)
