r"""What the shuffling accounts ask of a local randomizer: one class a kind.

Each of n users joins a round independently with probability :math:`\gamma`; the messages of those who joined are
shuffled, and their number is public.  Rate 1 is plain shuffling.  One user's value x is replaced by x'; its
participation has the same distribution in both data sets.  Adjacency: replace-one.

*One sum.*  Another user who joins draws its message from the blanket :math:`\omega` with probability g.  With
:math:`r=\mu_x/\omega`, :math:`r'=\mu_{x'}/\omega` and :math:`\alpha=e^\varepsilon`,

.. math:: H_\alpha(P\Vert Q) \le \frac1n E\Big[\Big(\sum_{i=1}^n L_i\Big)_+\Big],\qquad L=\begin{cases}
    1-\alpha&\text{with }1-\gamma\\ 0&\text{with }\gamma(1-g)\\ (r-\alpha r')/g&\text{with }\gamma g:\end{cases}

the sum of plain shuffling with one more atom.  For any randomizer of budget :math:`\varepsilon_0` clones take the place
of the blanket.  If all other users hold x', equality holds with the blanket :math:`\mu_{x'}` and g = 1.

*Monotonicity.*  By post-processing (dropping messages at random, adding users with public values) profiles are
non-decreasing in the rate and non-increasing in the number of users.

Proofs: book, chapter on the privacy blanket, and chapter on check-in, section on rounds without Rényi orders.

Source: Balle, Bell, Gascon, Nissim 2019, Section 5, with users who may be absent; Balle, Barthe, Gaboardi 2018
(subsampling); Feldman, McMillan, Talwar 2021.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.accounting.composition.privacy_profile import Delta, PrivacyProfile
from flamelib.accounting.shuffling import bromwich
from flamelib.accounting.shuffling.brackets import MAX_EPSILON0, LawAt, estimate, locally, of_law, within_reach
from flamelib.accounting.shuffling.gaussian_sums import GaussianLaw
from flamelib.accounting.shuffling.laws import AtomicLaw, LossLaw
from flamelib.core.arrays import Complexes, Reals
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import above, probability
from flamelib.core.search import smallest_epsilon

RTOL_VALUES = 1e-5  # relative error of the values of a profile
ROUNDING_FUNCTIONS = 1e-13  # relative error of a few nested elementary functions


class Analysis(ABC):
    """A local randomizer, as the accounts of shuffling see it.

    Answers are delta at ``epsilon`` or epsilon at ``delta``, of which one is given.
    """

    #: Whether a value of the profile takes long.
    is_slow: ClassVar[bool] = False

    def __init__(self, randomizer: Any) -> None:
        self.randomizer = randomizer
        self.epsilon0: float = randomizer.epsilon0

    @abstractmethod
    def one_round(self, n_users: int, epsilon: float | None, delta: float | None) -> Certified:
        """Of one shuffle of all users (upper)."""

    def from_below(
        self, n_users: int, epsilon: float | None, delta: float | None, equal_inputs: bool = False
    ) -> Certified:
        """Of one shuffle for explicit data sets (lower): with ``equal_inputs``, all other users hold one value."""
        return Certified(0.0, 0.0)

    @property
    def reduced(self) -> Any:
        """The randomizer whose rounds are accounted for: this one, or one to which it is reduced."""
        return self.randomizer

    @abstractmethod
    def profile(self, n_users: int, rate: float, error: float) -> PrivacyProfile:
        """Upper bound of the profiles of a round, both directions of all pairs, of about this relative error."""

    def unshuffled(self, rounds: int, epsilon: float | None, delta: float | None) -> Certified | None:
        """Of rounds without a shuffler (upper), where that is not the composition of local budgets."""
        return None

    def witnesses(self, n_users: int, rate: float, equal_inputs: bool = False) -> list[DominatingPair]:
        """Pairs of a round for explicit data sets (lower), as :meth:`from_below`; the largest losses last."""
        return []

    def laws_of_equal_inputs(self, rate: float) -> list[LawAt]:
        """Distributions of L where every other user who joins holds one value, for bounds of a single round."""
        return []


class BlanketAnalysis(Analysis):
    """A randomizer with a distribution of L, for the worst pair of values, against its blanket."""

    #: Relative width of brackets of delta from below.
    rtol_lower: float = bromwich.RTOL_TIGHT

    @abstractmethod
    def blanket(self, epsilon: float) -> LossLaw | GaussianLaw:
        """The distribution of L at this epsilon, against the blanket."""

    def of_law(
        self, law: LawAt, n_users: int, epsilon: float | None, delta: float | None, upper: bool = True
    ) -> Certified:
        """The answer for n messages of this distribution."""
        rtol = bromwich.RTOL_TIGHT if upper else self.rtol_lower
        return of_law(law, n_users, self.epsilon0, epsilon, delta, upper=upper, rtol=rtol)

    def by_blanket(self, n_users: int, epsilon: float | None, delta: float | None) -> Certified:
        """Of one shuffle, by the blanket (upper)."""
        return self.of_law(self.blanket, n_users, epsilon, delta)

    def one_round(self, n_users: int, epsilon: float | None, delta: float | None) -> Certified:
        return self.by_blanket(n_users, epsilon, delta)

    def others(self, n_users: int, epsilon: float | None, delta: float | None) -> LawAt | None:
        """The distribution of L where all other users hold the value of largest divergence found (any is valid)."""
        return None

    def from_below(
        self, n_users: int, epsilon: float | None, delta: float | None, equal_inputs: bool = False
    ) -> Certified:
        noisier = self.noisier() if delta != 0 else self
        law = noisier.others(n_users, epsilon, delta)
        return noisier.of_law(law, n_users, epsilon, delta, upper=False) if law else Certified(0.0, 0.0)

    def noisier(self) -> Self:
        """That of a post-processing of a local budget of ``MAX_EPSILON0``, if this one is larger and there is one."""
        return type(self)(replace(self.randomizer, epsilon0=MAX_EPSILON0)) if self.epsilon0 > MAX_EPSILON0 else self

    def estimated_epsilon(self, n_users: int, epsilon: float | None, delta: float | None) -> float | None:
        """About the epsilon of the answer, at which data sets are compared; ``None`` where they need not be."""
        if not within_reach(self.epsilon0) or (epsilon or 0.0) >= self.epsilon0:
            return None
        if delta is not None:
            epsilon = smallest_epsilon(estimate(self.blanket, n_users), delta or 1e-300, self.epsilon0)
        return min(epsilon or 0.0, (1 - 1e-6) * self.epsilon0)

    def profile(self, n_users: int, rate: float, error: float) -> PrivacyProfile:
        if not within_reach(self.epsilon0):
            return PrivacyProfile(unshuffled(self.epsilon0, rate), at_most=self.epsilon0)
        return PrivacyProfile(self.delta(n_users, rate, error), at_most=self.epsilon0, error=error)

    def delta(self, n_users: int, rate: float, error: float) -> Delta:
        """By the blanket or clones; where these are too few, at a larger rate, or without shuffling."""
        mass = self.blanket(0.0).mass
        enough = self.min_blankets(mass)
        raised = max(rate, min(enough / (n_users * mass), 1.0))
        bounds = []
        if raised * n_users * mass >= enough * (1 - 1e-9):
            bounds.append(_one_sum(self.blanket, n_users, raised, error))
        return minimum(*bounds) if raised == rate and bounds else minimum(*bounds, unshuffled(self.epsilon0, rate))

    def min_blankets(self, mass: float) -> float:
        """Least mean number of blanket messages for the sums, which few large values make long."""
        return 10.0 if self.epsilon0 > 8.0 else 1e-3 * mass


def rounded_down(value: float) -> float:
    """A few nested elementary functions, less their rounding."""
    return value * (1 - ROUNDING_FUNCTIONS)


@dataclass(frozen=True)
class _SubsampledLaw:
    """Mixture of the distribution ``law`` of L with weight ``rate`` and an atom at ``absent`` for absent users."""

    law: LossLaw
    rate: float
    absent: float

    @property
    def mass(self) -> float:
        return 1 - self.kept

    @property
    def kept(self) -> float:
        return self.rate * self.law.kept

    @property
    def present_mass(self) -> float:
        """Conditional probability of presence, given that L is not the atom at 0."""
        return self.rate * self.law.mass / self.mass

    @property
    def absent_mass(self) -> float:
        return (1 - self.rate) / self.mass

    @property
    def reach(self) -> float:
        return self.law.reach

    @functools.cached_property
    def points(self) -> tuple[Reals, Reals]:
        values, weights = self.law.points
        return np.append(values, self.absent), np.append(self.present_mass * weights, self.absent_mass)

    def transform(self, s: Complexes) -> Complexes:
        return np.asarray(self.present_mass * self.law.transform(s) + self.absent_mass * np.expm1(s * self.absent))

    def increment(self, t: float, y: Reals) -> Complexes:
        atom = AtomicLaw(np.array([self.absent]), np.array([self.absent_mass]), 1.0, 0.0)
        return np.asarray(self.present_mass * self.law.increment(t, y) + atom.increment(t, y))

    def decay(self, t: float) -> tuple[float, float]:
        atoms, smooth = self.law.decay(t)
        return self.present_mass * atoms + self.absent_mass * math.exp(t * self.absent), self.present_mass * smooth

    def quadrature_error(self, size: float) -> float:
        return self.present_mass * self.law.quadrature_error(size)


def minimum(*profiles: Delta) -> Delta:
    """Pointwise minimum of upper bounds."""
    return functools.cache(lambda epsilon: min(profile(epsilon) for profile in profiles))


def unshuffled(epsilon0: float, rate: float) -> Delta:
    """The profile of an unshuffled message sent with probability ``rate``."""
    return lambda epsilon: min(above(rate * math.exp(locally(epsilon0)(epsilon).high), 4), 1.0)


def _one_sum(law: Callable[[float], Any], n_users: int, rate: float, error: float) -> Delta:
    """The bound *One sum* of the module; L is in units of 1 / (blanket mass)."""

    def delta(epsilon: float) -> float:
        present = law(epsilon)
        mixed = subsampled(present, rate, -present.mass * math.expm1(epsilon))
        return probability(bromwich.bracket(mixed, n_users, error).high + math.log(mixed.mass / present.mass))

    return delta


def subsampled(law: LossLaw, rate: float, absent: float) -> LossLaw:
    """The distribution of L of a user who is absent with probability ``1 - rate``; atomic laws stay atomic."""
    if rate == 1:
        return law
    mixed = _SubsampledLaw(law, rate, absent)
    return AtomicLaw(*mixed.points, mixed.mass, mixed.kept) if isinstance(law, AtomicLaw) else mixed
