"""Every local randomizer of one budget, as the accounts see it: clones from above, the worst known from below."""

import math

import numpy as np

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.accounting.shuffling.analysis import BlanketAnalysis
from flamelib.accounting.shuffling.discrete import KaryAnalysis, equal_cells, loss_values, third_cells
from flamelib.accounting.shuffling.laws import AtomicLaw
from flamelib.core.guarantees import Certified
from flamelib.core.profiles import ClonedProfile, KaryProfile


class AnyAnalysis(BlanketAnalysis):
    """The generic blanket of the blanket authors, and the answers for every randomizer."""

    @property
    def reduced(self) -> ClonedProfile:
        return ClonedProfile(self.epsilon0)

    def blanket(self, epsilon: float) -> AtomicLaw:
        return clone_blanket(self.epsilon0, epsilon, math.exp(-self.epsilon0), -math.expm1(-self.epsilon0))

    def one_round(self, n_users: int, epsilon: float | None, delta: float | None) -> Certified:
        return ClonedAnalysis(self.reduced).by_blanket(n_users, epsilon, delta)

    def from_below(
        self, n_users: int, epsilon: float | None, delta: float | None, equal_inputs: bool = False
    ) -> Certified:
        """Binary response at its worst data set, and alphabets of k-ary response that stand for every randomizer."""
        asked = n_users, epsilon, delta
        found = [KaryAnalysis(KaryProfile(self.epsilon0, k)).from_below(*asked, equal_inputs) for k in (3, 4, 8)]
        binary = KaryAnalysis(KaryProfile(self.epsilon0, 2))
        alone = binary.from_below(*asked, equal_inputs) if equal_inputs else binary.by_counts(*asked, upper=False)
        return max(alone, *found)

    def witnesses(self, n_users: int, rate: float, equal_inputs: bool = False) -> list[DominatingPair]:
        """Of binary and of ternary response."""
        kinds = [KaryProfile(self.epsilon0, k) for k in (2, 3)]
        found = [pair(one, n_users, rate) for pair in (equal_cells, third_cells) for one in kinds]
        return [pair for pair in found if pair]


class ClonedAnalysis(AnyAnalysis):
    """Clones of binary response, of probability ``2 / (exp(epsilon0) + 1)``."""

    def blanket(self, epsilon: float) -> AtomicLaw:
        return clone_blanket(self.epsilon0, epsilon, 2 / (math.exp(self.epsilon0) + 1), math.tanh(self.epsilon0 / 2))


def clone_blanket(epsilon0: float, epsilon: float, mass: float, kept: float) -> AtomicLaw:
    """Two-point blanket of the clone reduction: ``mass`` is the clone probability, ``kept = 1 - mass``."""
    values = loss_values(epsilon0, epsilon)[:2] / (0.5 * (math.exp(epsilon0) + 1))
    return AtomicLaw(values, np.array([0.5, 0.5]), mass, kept)
