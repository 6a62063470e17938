r"""Exactly k of d coordinates: a random partition into k blocks, and one pick in each.

*The partition.*  Cut the coordinates at random into k blocks whose sizes are given, and pick one coordinate of each
block, uniformly.  What is picked is a uniform set of k coordinates, whatever the sizes are: its law does not change
when coordinates are renamed.  So a user of SS-Double who reports exactly k coordinates may be thought to draw a
partition first, without looking at data, and blocks are as equal as they can be.

*One block.*  Given the partition and all that the others do, blocks are independent.  Let every bag have room for the
user's message, and at most c messages of others that are real and not blanket.  Without these a bag keeps
:math:`m = n_p - c` blanket messages or more, and in the bag that the user picked her message takes the place of one of
them.  Outcomes of s such bags have the density

.. math:: \frac1{sm}\sum_{i\le sm} r_x(w_i)

to that of blanket messages alone, so that a block of s bags is *one* shuffle of :math:`sm` messages.

*The others.*  Each of them has a real message that is not blanket in a given bag with chance :math:`\beta(1-\gamma)`,
:math:`\beta = k/d`.  That c is not enough for some of the d bags, or that some bag is full, is set aside.

All are upper bounds.  Adjacency: one user's whole vector is replaced.  Proof: book, chapter on FLAME, proposition
"Exactly k coordinates".
"""

import math
from dataclasses import dataclass

import numpy as np

from flamelib.accounting.composition.privacy_profile import RTOL_DELTA, composed_epsilon
from flamelib.accounting.coordinates.padded import Bound, Coordinate, Others, all_real
from flamelib.core import binomial
from flamelib.core.guarantees import Certified
from flamelib.core.profiles import KaryProfile, LaplaceProfile
from flamelib.core.search import least_whole

DELTA_CROWDED = 0.01  # share of delta for a bag with many messages that are real and not blanket


@dataclass(frozen=True, slots=True)
class Subsets:
    """Every one of ``n_users`` reports a random set of ``kept`` of ``dimension`` coordinates, in padded bags.

    ``drop`` says that a bag with too many reports keeps ``padded`` of them at random; else it counts as laid bare.
    """

    randomizer: KaryProfile | LaplaceProfile
    dimension: int
    kept: int
    n_users: int
    padded: int
    drop: bool = False

    @property
    def rate(self) -> float:
        """Chance that a given coordinate is reported."""
        return self.kept / self.dimension

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Sizes of the blocks, each with the number of blocks of this size."""
        size, larger = divmod(self.dimension, self.kept)
        return [(size, self.kept - larger), *([(size + 1, larger)] if larger else [])]

    @property
    def full(self) -> float:
        """Chance that some bag has no room for one more report (upper)."""
        return self._somewhere(self._log_tail(self.padded, self.rate))

    def room(self, delta: float) -> tuple[int, float]:
        """Blanket messages that every bag has, and the chance that this fails; none where it cannot be spared."""
        last, rate, spared = min(self.n_users, self.padded) - 1, self.rate * self.randomizer.kept, DELTA_CROWDED * delta

        def crowded(most: int) -> float:
            return self._somewhere(self._log_tail(most + 1, rate))

        if self.full >= delta or crowded(last) > spared:
            return 0, 1.0
        most = least_whole(lambda count: crowded(count) <= spared, 0, last)
        return self.padded - most, crowded(most) + self.full

    def block(self, messages: int) -> Coordinate:
        """One shuffle of so many messages, of which all but the one in question are blanket."""
        return Coordinate(self.randomizer, Others(messages, 1.0, 0.0))

    def _log_tail(self, count: int, rate: float) -> float:
        """Logarithm of the chance that so many others or more do what each does at this rate (upper)."""
        if count >= self.n_users:
            return -math.inf
        return float(binomial.log_chance(np.array(float(count)), self.n_users - 1, rate, few=False))

    def _somewhere(self, log_chance: float) -> float:
        """The chance of that in any of the bags."""
        if log_chance == -math.inf:
            return 0.0
        # Logarithm of a probability below which a double loses digits.
        return math.exp(min(math.log(self.dimension) + max(log_chance, -705.0), 0.0))

    def epsilon(self, delta: float, bound: Bound = "blanket") -> Certified:
        """Epsilon of a whole vector at ``delta`` (upper): the choice hidden, or published where that is better."""
        factor = 2.0  # ratio of the messages that hide a block up to which both accounts are made
        if delta >= 1:
            return Certified(0.0, 0.0)
        blankets, missed = self.room(delta)
        each, bare = blankets * (self.dimension // self.kept), self.padded * self.randomizer.mass
        found = []
        if missed < delta and factor * each > bare:
            found.append(self._hidden(delta - missed, blankets, bound))
        if not found or each < factor * bare:
            found.append(self._published(max(0.0, delta - (0.0 if self.drop else self.full)), bound))
        return min(found)

    def _hidden(self, delta: float, blankets: int, bound: Bound) -> Certified:
        parts = [(self.block(size * blankets).curve(bound), count) for size, count in self.blocks]
        # Above this budget epsilon is large, and half of its delta is accuracy enough.
        return composed_epsilon(parts, delta, RTOL_DELTA if self.randomizer.epsilon0 <= 8.0 else 0.5)

    def _published(self, delta: float, bound: Bound) -> Certified:
        bare = Coordinate(self.randomizer, all_real(self.randomizer, self.padded))
        return composed_epsilon([(bare.curve(bound), self.kept)], delta)
