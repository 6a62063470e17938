"""Gaussian noise on a value in [0, 1], as the accounts see it."""

import functools
import math
from typing import Self

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.accounting.composition.privacy_profile import PrivacyProfile
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.shuffling import gaussian_sums
from flamelib.accounting.shuffling.analysis import RTOL_VALUES, BlanketAnalysis, rounded_down
from flamelib.accounting.shuffling.brackets import LawAt
from flamelib.accounting.shuffling.discrete import KaryAnalysis
from flamelib.accounting.shuffling.equal_inputs import equal_inputs_pair
from flamelib.accounting.shuffling.gaussian_sums import MAX_NOISE_STD, GaussianLaw
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import probability
from flamelib.core.profiles import KaryProfile


class GaussianAnalysis(BlanketAnalysis):
    """By its blanket, which is no Gaussian."""

    is_slow = True

    def blanket(self, epsilon: float) -> GaussianLaw:
        return GaussianLaw(min(self.randomizer.noise_std, MAX_NOISE_STD), epsilon, True)  # delta decreases in noise_std

    def others(self, n_users: int, epsilon: float | None, delta: float | None) -> LawAt:
        return lambda at: GaussianLaw(self.randomizer.noise_std, at, False)

    def noisier(self) -> Self:
        return self

    def by_blanket(self, n_users: int, epsilon: float | None, delta: float | None) -> Certified:
        found = super().by_blanket(n_users, epsilon, delta)
        if math.isinf(found) and delta:
            return gaussian_mechanism(1.0, self.randomizer.noise_std, None, delta)  # of one unshuffled message
        return found

    def from_below(
        self, n_users: int, epsilon: float | None, delta: float | None, equal_inputs: bool = False
    ) -> Certified:
        if self.randomizer.noise_std > MAX_NOISE_STD:
            return Certified(0.0, 0.0)
        return super().from_below(n_users, epsilon, delta)

    def unshuffled(self, rounds: int, epsilon: float | None, delta: float | None) -> Certified:
        return gaussian_mechanism(1.0, self.randomizer.noise_std / math.sqrt(rounds), epsilon, delta)

    def profile(self, n_users: int, rate: float, error: float) -> PrivacyProfile:
        @functools.cache
        def delta(epsilon: float) -> float:
            law = GaussianLaw(self.randomizer.noise_std, epsilon, True, rate)
            return probability(gaussian_sums.upper(law, n_users, RTOL_VALUES))

        return PrivacyProfile(delta, error=error)

    def witnesses(self, n_users: int, rate: float, equal_inputs: bool = False) -> list[DominatingPair]:
        """Of the indicator of a message above 1/2, binary response of the values 0 and 1; of intervals of messages."""
        z = 1 / (2 * math.sqrt(2) * self.randomizer.noise_std)
        overlap = math.erfc(z)
        budget = rounded_down(math.log1p(2 * math.erf(z) / overlap)) if overlap else 0.0
        found = KaryAnalysis(KaryProfile(budget, 2)).witnesses(n_users, rate) if budget else []
        intervals = equal_inputs_pair(self.randomizer, n_users, rate)
        return found + ([intervals] if intervals else [])

    def laws_of_equal_inputs(self, rate: float) -> list[LawAt]:
        """All others hold 1."""
        if self.randomizer.noise_std > MAX_NOISE_STD:
            return []
        return [lambda epsilon: GaussianLaw(self.randomizer.noise_std, epsilon, False, rate)]
