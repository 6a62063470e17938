r"""Randomizers with an alphabet of values, as the accounts see them: k-ary response, and messages that support values.

*Count by count.*  For binary response the supremum :math:`\delta_m` over the data sets of m users is known
(:mod:`flamelib.accounting.shuffling.exact_binary`), and

.. math:: H_\alpha(P\Vert Q) \le \sum_m \binom nm\gamma^m(1-\gamma)^{n-m}\,\tfrac mn\,
    \delta_m\big(\log(1+\tfrac nm(\alpha-1))\big),

evaluated in blocks of m and from chords, upper bounds with a relative error of about 0.01 in epsilon.

Proofs: book, chapter on check-in, section on rounds without Rényi orders, for the blocks.
"""

import functools
import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Self

import numpy as np

from flamelib.accounting.composition.dominating_pair import DominatingPair
from flamelib.accounting.composition.privacy_profile import Delta
from flamelib.accounting.shuffling import exact_binary
from flamelib.accounting.shuffling.analysis import RTOL_VALUES, BlanketAnalysis, minimum, unshuffled
from flamelib.accounting.shuffling.brackets import BracketAt, LawAt, answer, divergence, within_reach
from flamelib.accounting.shuffling.laws import AtomicLaw
from flamelib.accounting.shuffling.outcomes import MAX_USERS, binned, enumerated, window
from flamelib.core import binomial
from flamelib.core.arrays import Flags, Reals
from flamelib.core.guarantees import Certified
from flamelib.core.logspace import probability
from flamelib.core.profiles import KaryProfile, SupportProfile

COARSE_DELTA = 1e-15  # delta below which blocks of counts are coarse
MAX_OUTCOMES = 8_000_000  # outcomes beyond which there is no lower bound
SIZES = ("size", "range")  # what may depend on the local budget in the design of a randomizer


class DiscreteAnalysis(BlanketAnalysis):
    """What all of them have in common."""

    @property
    @abstractmethod
    def laws_of_others(self) -> tuple[LawAt, ...]:
        """The distribution of L for each value that all other users may hold."""

    @abstractmethod
    def triples(self) -> list[Reals]:
        """Distributions of the message for the pair and a third value, for each kind of triple."""

    def from_below(
        self, n_users: int, epsilon: float | None, delta: float | None, equal_inputs: bool = False
    ) -> Certified:
        noisier = self.noisier() if delta != 0 else self
        if noisier is not self:
            return noisier.from_below(n_users, epsilon, delta, equal_inputs)
        small = self._enumerated(n_users) if within_reach(self.epsilon0) and not equal_inputs else None
        if small:
            return answer(small, lambda at: small(at).high, self.epsilon0, epsilon, delta, upper=False)
        law = self.others(n_users, epsilon, delta)
        found = self.of_law(law, n_users, epsilon, delta, upper=False)
        if delta is None or not 0 < found < self.epsilon0:
            return found
        there = self.others(n_users, float(found), None)  # the worst value may differ at this epsilon
        return found if there is law else max(found, self.of_law(there, n_users, None, delta, upper=False))

    def others(self, n_users: int, epsilon: float | None, delta: float | None) -> LawAt:
        at = self.estimated_epsilon(n_users, epsilon, delta)
        if at is None:
            return self.blanket
        # In the far tail an estimate cannot rank the few values.
        laws = self.laws_of_others
        rough = [divergence(law, n_users, 1e-3)(at) for law in laws]
        least = max(one.low for one in rough)
        laws = tuple(law for law, one in zip(laws, rough, strict=True) if one.high >= least)
        return max(laws, key=lambda law: divergence(law, n_users)(at).low) if len(laws) > 1 else laws[0]

    def _enumerated(self, n_users: int) -> BracketAt | None:
        """Bracket over all data sets of few users with values in the pair and a third one."""
        found = [enumerated(rows, n_users, [(0, 1), (1, 0)]) for rows in self.triples()]
        brackets = [one for one in found if one]
        return (lambda at: max((one(at) for one in brackets), key=lambda one: one.low)) if brackets else None

    def witnesses(self, n_users: int, rate: float, equal_inputs: bool = False) -> list[DominatingPair]:
        found = equal_cells(self.randomizer, n_users, rate)
        return [found] if found else []


class KaryAnalysis(DiscreteAnalysis):
    """K-ary response; binary response by its worst data sets."""

    def blanket(self, epsilon: float) -> AtomicLaw:
        return kary_blanket(self.randomizer, epsilon)

    @functools.cached_property
    def laws_of_others(self) -> tuple[LawAt, ...]:
        held = ("first", "second", "third")[: self.randomizer.n_buckets]
        return tuple(functools.partial(kary_others, self.randomizer, holds=holds) for holds in held)

    def triples(self) -> list[Reals]:
        """Uninformative messages are one letter."""
        k, p = self.randomizer.n_buckets, math.exp(self.epsilon0)
        values = min(k, 3)
        rows = np.ones((values, values)) + math.expm1(self.epsilon0) * np.eye(values)
        return [np.hstack([rows, np.full((values, 1), k - values)][: 1 + (k > values)]) / (p + (k - 1))]

    @property
    def is_binary(self) -> bool:
        return bool(self.randomizer.n_buckets == 2)

    def one_round(self, n_users: int, epsilon: float | None, delta: float | None) -> Certified:
        if not self.is_binary:
            return self.by_blanket(n_users, epsilon, delta)
        found = self.by_counts(n_users, epsilon, delta)
        if found.uncertainty <= 1e-4 * found:  # else the blanket bound is evaluated, too
            return found
        above = self.by_blanket(n_users, epsilon, delta)
        return found if found <= above else Certified(above, found.uncertainty - (found - above))

    def by_counts(self, n_users: int, epsilon: float | None, delta: float | None, upper: bool = True) -> Certified:
        """Binary response at its worst data set."""
        worst = functools.partial(exact_binary.worst, self.epsilon0, n_users)
        at_the_end = functools.partial(exact_binary.at_the_end, self.epsilon0, n_users)
        return answer(worst, at_the_end, self.epsilon0, epsilon, delta, upper=upper)

    def delta(self, n_users: int, rate: float, error: float) -> Delta:
        by_blanket = super().delta
        if not self.is_binary:
            return by_blanket(n_users, rate, error)
        # Least mean number of participants for the account count by count: a larger rate where few join.
        larger_rate = max(rate, min(600 / n_users, 1.0))
        if larger_rate < 1:
            bounds = [checkin_profile(self.epsilon0, n_users, larger_rate)]
        else:
            bounds = [lambda epsilon: probability(exact_binary.ceiling(self.epsilon0, n_users, epsilon))]
        # Distance of chords from which the blanket is evaluated as well.
        if larger_rate > rate or (rate < 1 and _knot_step(self.epsilon0, n_users * rate) > 0.02):
            bounds.append(by_blanket(n_users, rate, error))
        profile = minimum(*bounds)
        if rate < 1:
            other = by_blanket(n_users, rate, error)
            profile = _second_if_small(profile, other) if error > RTOL_VALUES else _minimum_if_small(profile, other)
        return profile

    def witnesses(self, n_users: int, rate: float, equal_inputs: bool = False) -> list[DominatingPair]:
        third = third_cells(self.randomizer, n_users, rate)
        return super().witnesses(n_users, rate) + ([third] if third else [])


class SupportAnalysis(DiscreteAnalysis):
    """Messages that support values."""

    def blanket(self, epsilon: float) -> AtomicLaw:
        return support_blanket(self.randomizer, epsilon)

    @property
    def _kinds(self) -> range:
        """Kinds of triples of values."""
        return range(len(self.randomizer.shares.triples) if self.randomizer.n_buckets > 2 else 1)

    @functools.cached_property
    def laws_of_others(self) -> tuple[LawAt, ...]:
        third = [(2, kind) for kind in self._kinds] if self.randomizer.n_buckets > 2 else []
        held = [(0, 0), (1, 0), *third]
        return tuple(functools.partial(support_others, self.randomizer, holds=z, kind=kind) for z, kind in held)

    def triples(self) -> list[Reals]:
        return [_three_supports(self.randomizer, kind) for kind in self._kinds]

    def noisier(self) -> Self:
        """Only if the size or range, which may depend on the budget, stays the same."""
        found = super().noisier()
        sizes = (getattr(found.randomizer, name, None) == getattr(self.randomizer, name, None) for name in SIZES)
        return found if all(sizes) else self


# --- Distributions of L, and of messages ----------------------------------------------------------------------------


def kary_blanket(profile: KaryProfile, epsilon: float) -> AtomicLaw:
    """K-ary response against its blanket: the atoms of both values of the pair, and of any third bucket."""
    k, mass = profile.n_buckets, profile.mass
    values = mass * loss_values(profile.epsilon0, epsilon)
    return AtomicLaw(values, np.array([1, 1, k - 2]) / k, mass, profile.kept)


def kary_others(profile: KaryProfile, epsilon: float, holds: str) -> AtomicLaw:
    """Reference: all other users hold the ``first`` value, the ``second`` or a ``third`` one."""
    p, k = math.exp(profile.epsilon0), profile.n_buckets
    base = 1 / (math.expm1(profile.epsilon0) + k)
    plus, minus, none = loss_values(profile.epsilon0, epsilon)
    if holds == "first":
        values, probs = [plus / p, minus, none], [p, 1, k - 2]
    elif holds == "second":
        values, probs = [plus, minus / p, none], [1, p, k - 2]
    else:
        values, probs = [plus, minus, none, none / p], [1, 1, k - 3, p]
    return AtomicLaw(np.array(values), base * np.array(probs), 1.0, 0.0)


def loss_values(epsilon0: float, epsilon: float) -> Reals:
    """``(p - e, 1 - e p, 1 - e)`` for ``p = exp(epsilon0)``, ``e = exp(epsilon)``, without cancellation."""
    first = math.exp(epsilon) * math.expm1(epsilon0 - epsilon)
    return np.array([first, -math.expm1(epsilon + epsilon0), -math.expm1(epsilon)])


def support_blanket(profile: SupportProfile, epsilon: float) -> AtomicLaw:
    """Messages that support values against their blanket: one of the pair alone, both but not all, neither or all."""
    p, (_, neither, alone, two, everything, _) = math.exp(profile.epsilon0), profile.shares
    plus, minus, none = loss_values(profile.epsilon0, epsilon)
    probs = np.array([alone, alone, two - everything, neither + p * everything]) / profile.lift
    values = profile.mass * np.array([plus, minus, p * none, none])
    return AtomicLaw(values[probs > 0], probs[probs > 0], profile.mass, profile.kept)


def _classes(profile: SupportProfile, kind: int) -> tuple[Reals, Flags]:
    """Base probabilities by supported subset of three values, or of two: shapes (classes,) and (classes, values)."""
    shares = profile.shares
    ways = shares.triples[kind] if profile.n_buckets > 2 else (shares.none, shares.alone, shares.two)
    flags = np.array(list(itertools.product((False, True), repeat=len(ways) - 1)))
    probs = np.array(ways)[flags.sum(axis=1)]
    return probs[probs > 0], flags[probs > 0]


def support_others(profile: SupportProfile, epsilon: float, holds: int, kind: int = 0) -> AtomicLaw:
    """Reference: all other users hold the first value (0), the second (1) or a third one (2), by kind of triple."""
    p = math.exp(profile.epsilon0)
    plus, minus, none = loss_values(profile.epsilon0, epsilon)
    probs, flags = _classes(profile, kind)
    first, second = flags[:, 0], flags[:, 1]
    values = np.where(first & second, p * none, np.where(first, plus, np.where(second, minus, none)))
    ratio = np.where(flags[:, holds], p, 1.0)
    return AtomicLaw(values / ratio, profile.base * probs * ratio, 1.0, 0.0)


def _three_supports(randomizer: SupportProfile, kind: int) -> Reals:
    """Distributions of messages for three values; all three and none supported are the same likelihood ratio."""
    probs, flags = _classes(randomizer, kind)
    ratios = np.where(flags.T, math.exp(randomizer.epsilon0), 1.0)
    rows = randomizer.base * probs * ratios
    is_uninformative = flags.all(axis=1) | ~flags.any(axis=1)
    return np.hstack([rows[:, ~is_uninformative], rows[:, is_uninformative].sum(axis=1, keepdims=True)])


# --- Rounds with check-in --------------------------------------------------------------------------------------------


def checkin_profile(epsilon0: float, n_users: int, checkin_rate: float) -> Delta:
    """Upper bound of the profiles of all pairs of neighbours under binary response, in both directions, count by count.

    Intended for a mean of at least some hundred participants; the rate lies in (0, 1).
    """
    blocks = list(_blocks(epsilon0, n_users, checkin_rate))

    def profile(epsilon: float) -> float:
        growth = math.expm1(epsilon)
        parts = (
            sum(mass * fraction * delta(math.log1p(growth / fraction)) for fraction, mass in endpoints)
            for endpoints, delta in blocks
        )
        return min((1 + 1e-9) * sum(parts), 1.0)  # round-off of the binomial probabilities

    return profile


def _blocks(epsilon0: float, n: int, rate: float) -> Iterator[tuple[list[tuple[float, float]], Delta]]:
    """Blocks of numbers m of messages: m / n and mass of both end points, and an upper bound of the block's profiles.

    The lowest block counts as unshuffled, all others by the worst data sets of their least m.
    """
    spread = math.sqrt(n * rate * (1 - rate))
    # First counts of blocks, in standard deviations from the mean.
    firsts = [1] + [min(max(math.ceil(n * rate + end * spread), 1), n) for end in (-9.0, -4.0, -2.0, 0.0, 2.0, 9.0)]
    for i, (first, last) in enumerate(zip(firsts, [*(first - 1 for first in firsts[1:]), n], strict=True)):
        if last >= first:
            delta = _chords(epsilon0, first) if i else unshuffled(epsilon0, 1.0)
            yield list(zip((first / n, last / n), _endpoint_masses(n, rate, first, last), strict=True)), delta


def _endpoint_masses(n: int, rate: float, first: int, last: int) -> tuple[float, float]:
    """The binomial mass of ``first..last``, moved to its two end points with the same mean."""
    mass, moment = _mass(n, rate, first, last), n * rate * _mass(n - 1, rate, first - 1, last - 1)
    if first == last:
        return mass, 0.0
    upper_mass = min(max((moment - first * mass) / (last - first), 0.0), mass)
    return mass - upper_mass, upper_mass


def _mass(n: int, rate: float, first: int, last: int) -> float:
    if first > n * rate:
        return float(binomial.sf(first - 1, n, rate) - binomial.sf(last, n, rate))
    return float(binomial.cdf(last, n, rate) - binomial.cdf(first - 1, n, rate))


def _knot_step(epsilon0: float, n_users: float) -> float:
    """Distance of the knots of chords: a fraction of the width of the profile."""
    return 2 * math.sinh(epsilon0 / 2) / math.sqrt(n_users) / 6.0  # chords in the width of a profile


def _chords(epsilon0: float, n_users: int) -> Delta:
    """Worst data sets of plain shuffling, interpolated by chords, which lie above the convex profile."""
    step = min(_knot_step(epsilon0, n_users), epsilon0)

    @functools.cache
    def knot(i: int) -> float:
        return probability(exact_binary.ceiling(epsilon0, n_users, i * step))

    def delta(epsilon: float) -> float:
        i = math.floor(epsilon / step)
        weight = math.expm1(epsilon - i * step) / math.expm1(step)
        return (1 - weight) * knot(i) + weight * knot(i + 1) if epsilon < epsilon0 else 0.0

    return delta


def _second_if_small(first: Delta, second: Delta) -> Delta:
    """The second bound where it is below ``COARSE_DELTA``, else the smaller of both."""
    return functools.cache(
        lambda epsilon: delta if (delta := second(epsilon)) < COARSE_DELTA else min(delta, first(epsilon))
    )


def _minimum_if_small(first: Delta, second: Delta) -> Delta:
    """The smaller of two bounds, the second evaluated only where the first is at most ``COARSE_DELTA``."""
    return functools.cache(
        lambda epsilon: delta if (delta := first(epsilon)) > COARSE_DELTA else min(delta, second(epsilon))
    )


def equal_cells(
    randomizer: KaryProfile | SupportProfile, n_users: int, checkin_rate: float = 1.0
) -> DominatingPair | None:
    r"""Cells of the pair whose other users all hold the victim's other value (``None`` beyond ``MAX_OUTCOMES``).

    With a and b of n reports of the victim's two values, :math:`p=e^{\varepsilon_0}` and M their multinomial
    probability,

    .. math:: Q = M(a,b),\qquad P - Q = \frac{M(a,b)}n\Big[(p-1)\,a - (1-\tfrac1p)\,b\Big].

    Outcomes of nearly equal loss are merged and the tails omitted: post-processing, for lower bounds only.
    :func:`third_cells` has others who hold neither.
    """
    p, p_either = math.exp(randomizer.epsilon0), checkin_rate * randomizer.telling
    total = window(n_users, p_either)
    last_window = window(int(total[-1]), 1 / (p + 1))
    ones = np.arange(window(int(total[0]), 1 / (p + 1))[0], last_window[-1] + 1)
    if len(ones) * len(total) > MAX_OUTCOMES or n_users > MAX_USERS:
        return None
    masses = binomial.pmf(total, n_users, p_either)[:, None] * binomial.pmf(ones, total[:, None], 1 / (p + 1))
    excess = ((p - 1) * ones - (1 - 1 / p) * (total[:, None] - ones)) / n_users
    return binned(masses.ravel(), excess.ravel())


def third_cells(randomizer: KaryProfile, n_users: int, checkin_rate: float = 1.0) -> DominatingPair | None:
    r"""Cells of the pair whose other users all hold a third value (``None`` for two buckets).

    With a and b reports of the victim's two values, :math:`p=e^{\varepsilon_0}`, and M their multinomial probability
    if all n users hold the third value,

    .. math:: P - Q = \frac{M(a,b)}n(p-1)(a-b),\qquad
              Q = M(a,b)\Big[1 + \frac{(p-1)\,b - (1-\frac1p)\,\varrho\,(n-a-b)}n\Big],

    where a report of neither value is that of the third one with probability :math:`\varrho`; their number is ignored.
    """
    p, k = math.exp(randomizer.epsilon0), randomizer.n_buckets
    p_each = checkin_rate / (p + k - 1)
    total = window(n_users, 2 * p_each)
    ones = np.arange(window(int(total[0]), 0.5)[0], window(int(total[-1]), 0.5)[-1] + 1)
    if k < 3 or len(ones) * len(total) > MAX_OUTCOMES or n_users > MAX_USERS:
        return None
    masses = binomial.pmf(total, n_users, 2 * p_each)[:, None] * binomial.pmf(ones, total[:, None], 0.5)
    rho = p_each * p / (1 - 2 * p_each)
    others = total[:, None] - ones
    q_ratio = 1 + ((p - 1) * others - (1 - 1 / p) * rho * (n_users - total[:, None])) / n_users
    valid = (others >= 0) & (q_ratio > 0)
    excess = (p - 1) * (ones - others)[valid] / n_users / q_ratio[valid]
    return binned((masses * q_ratio)[valid], excess)
