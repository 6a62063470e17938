r"""Exactly k of d coordinates: a random partition into k blocks, and one coordinate drawn in each.

*The partition.*  Partition the coordinates at random into k blocks of given sizes, and draw one coordinate of each
block uniformly.  The result is a uniform set of k coordinates for any sizes, as its distribution is invariant under
permutations of the coordinates.  So a user of SS-Double who reports exactly k coordinates may draw a data-independent
partition first, into blocks of sizes as equal as possible.

*One block.*  Given the partition and the others' choices, blocks are independent.  Let no bag overflow, with at most c
messages of others that are real and not blanket in each.  Besides these a bag has at least :math:`m = n_p - c` blanket
messages, one of which is replaced by the user's message in the bag that she drew.  Outcomes of s such bags have the
likelihood ratio

.. math:: \frac1{sm}\sum_{i\le sm} r_x(w_i)

to blanket messages alone, so that a block of s bags is *one* shuffle of :math:`sm` messages.

*The others.*  Each of them has a real message that is not blanket in a given bag with probability
:math:`\beta(1-\gamma)`, :math:`\beta = k/d`.  By a union bound over the d bags, the probability that more than c are
real or that a bag is full is charged to delta.

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
    """Each of ``n_users`` reports a random set of ``kept`` of ``dimension`` coordinates, in padded bags.

    With ``drop`` a bag with too many reports keeps ``padded`` of them at random; else its message counts as unshuffled.
    """

    randomizer: KaryProfile | LaplaceProfile
    dimension: int
    kept: int
    n_users: int
    padded: int
    drop: bool = False

    @property
    def rate(self) -> float:
        """Probability that a given coordinate is reported."""
        return self.kept / self.dimension

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """Sizes of the blocks, each with the number of blocks of this size."""
        size, larger = divmod(self.dimension, self.kept)
        return [(size, self.kept - larger), *([(size + 1, larger)] if larger else [])]

    @property
    def full(self) -> float:
        """P[some bag has at least ``padded`` reports of others] (upper)."""
        return self._union_bound(self._log_tail(self.padded, self.rate))

    def room(self, delta: float) -> tuple[int, float]:
        """Least number of blanket messages of a bag, and its failure probability; (0, 1) if that exceeds the budget."""
        last, rate, budget = min(self.n_users, self.padded) - 1, self.rate * self.randomizer.kept, DELTA_CROWDED * delta

        def failure(max_real: int) -> float:
            return self._union_bound(self._log_tail(max_real + 1, rate))

        if self.full >= delta or failure(last) > budget:
            return 0, 1.0
        max_real = least_whole(lambda count: failure(count) <= budget, 0, last)
        return self.padded - max_real, failure(max_real) + self.full

    def block(self, messages: int) -> Coordinate:
        """One shuffle of a real message among ``messages - 1`` blanket messages."""
        return Coordinate(self.randomizer, Others(messages, 1.0, 0.0))

    def _log_tail(self, count: int, rate: float) -> float:
        """``log P[Bin(n_users - 1, rate) >= count]`` (upper)."""
        if count >= self.n_users:
            return -math.inf
        return float(binomial.log_chance(np.array(float(count)), self.n_users - 1, rate, few=False))

    def _union_bound(self, log_probability: float) -> float:
        """``dimension * exp(log_probability)``, at most 1."""
        if log_probability == -math.inf:
            return 0.0
        # Logarithm of a probability below which a double loses digits.
        return math.exp(min(math.log(self.dimension) + max(log_probability, -705.0), 0.0))

    def epsilon(self, delta: float, bound: Bound = "blanket") -> Certified:
        """Epsilon of a vector at ``delta`` (upper): the smaller of the accounts with a secret and a public choice."""
        factor = 2.0  # ratio of blanket messages of a block up to which both accounts are evaluated
        if delta >= 1:
            return Certified(0.0, 0.0)
        blankets, failure = self.room(delta)
        hidden_by, published_by = blankets * (self.dimension // self.kept), self.padded * self.randomizer.mass
        answers = []
        if failure < delta and factor * hidden_by > published_by:
            answers.append(self._hidden_choice(delta - failure, blankets, bound))
        if not answers or hidden_by < factor * published_by:
            answers.append(self._published_choice(max(0.0, delta - (0.0 if self.drop else self.full)), bound))
        return min(answers)

    def _hidden_choice(self, delta: float, blankets: int, bound: Bound) -> Certified:
        parts = [(self.block(size * blankets).curve(bound), count) for size, count in self.blocks]
        # Above this budget epsilon is large and a relative accuracy of 0.5 of delta suffices.
        return composed_epsilon(parts, delta, RTOL_DELTA if self.randomizer.epsilon0 <= 8.0 else 0.5)

    def _published_choice(self, delta: float, bound: Bound) -> Certified:
        coordinate = Coordinate(self.randomizer, all_real(self.randomizer, self.padded))
        return composed_epsilon([(coordinate.curve(bound), self.kept)], delta)
