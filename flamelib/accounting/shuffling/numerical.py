"""Numerical shuffling bounds, certified: blanket, clones, all others equal, exact binary response.

Every answer comes from a bracket (:mod:`flamelib.accounting.shuffling.bromwich`,
:mod:`flamelib.accounting.shuffling.exact_binary`): upper bounds return its upper end, lower bounds its lower end, and a
search ends at a point where the certified end, not an estimate, meets the target.  The ``uncertainty`` is the width of
the numerical error.  Adjacency is replace-one throughout; both orders of the two values are covered.  Proofs: book,
chapter on the privacy blanket.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.shuffling import exact_binary as binary
from flamelib.accounting.shuffling.brackets import (
    MAX_EPSILON0,
    RTOL_NOISE,
    BracketAt,
    LawAt,
    answer,
    divergence,
    estimate,
    of_law,
    within_reach,
)
from flamelib.accounting.shuffling.bromwich import RTOL_TIGHT
from flamelib.accounting.shuffling.gaussian_branch_cut import MAX_NOISE_STD, GaussianLaw
from flamelib.accounting.shuffling.laws import (
    LaplaceLaw,
    blanket_law,
    kary_others,
    support_classes,
    support_others,
)
from flamelib.accounting.shuffling.tables import enumerated
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Certified, Gives, RestsOn
from flamelib.core.profiles import (
    AnyProfile,
    ClonedProfile,
    GaussianProfile,
    HashingProfile,
    KaryProfile,
    LaplaceProfile,
    SubsetProfile,
    SupportProfile,
)
from flamelib.core.search import smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import SUPPORTS

Analyzed = KaryProfile | SupportProfile | LaplaceProfile | GaussianProfile


def _rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """The error of Gaussian noise's quadrature is estimated."""
    return RestsOn.ESTIMATED if isinstance(arguments.get("randomizer"), GaussianProfile) else RestsOn.PROVEN


def _exact_gives(arguments: Mapping[str, Any]) -> Gives:
    """Exact up to 1e9 users; beyond, counts lose digits and the blanket bound may be the answer."""
    return Gives.EXACT if arguments["n_users"] <= 10**9 else Gives.UPPER


@states("blanket", "lem-reduction", item="Section 5, reduction to a sum of independent variables, worst pair of values",
        gives="upper", rests_on=_rests_on, randomizers=("kary", "laplace", "gaussian", *SUPPORTS))  # fmt: skip
def blanket_divergence(
    randomizer: Analyzed, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Tightest guarantee the blanket decomposition gives after shuffling (upper bound).

    .. math:: \delta = \frac{1}{\gamma n} E\Big[\Big(\sum_{i=1}^{M} L_i\Big)_+\Big],\quad M \sim \mathrm{Bin}(n,\gamma),

    for the worst pair of inputs, 0 and 1, never below the true value of the formula and at most 1e-6 (relative, in
    delta) above it where ``uncertainty`` does not say otherwise; epsilon is at most the local budget.  For k-ary
    response and Laplace noise the error is bounded; for Gaussian noise the quadrature's part of it is estimated,
    generously (:mod:`flamelib.accounting.shuffling.gaussian_branch_cut`).

    Parameters
    ----------
    randomizer
        K-ary response, or Laplace or Gaussian noise on a value in [0, 1].

    Source: Balle, Bell, Gascon, Nissim 2019, Section 5; the worst pair is proved in the book, *The worst pair*.

    Examples
    --------
    >>> f"{blanket_divergence(KaryProfile(4.0, 10), 10**8, epsilon=0.0046):.6e}"
    '1.188828e-10'
    """
    found = of_law(_blanket_law(randomizer), n_users, randomizer.epsilon0, epsilon, delta)
    if isinstance(randomizer, GaussianProfile) and math.isinf(found) and delta:
        return gaussian_mechanism(1.0, randomizer.noise_std, None, delta)  # of one unshuffled message
    return found


@states("shuffle", "lower", item="exact divergence when all other users hold one value, worst such value",
        gives="lower", rests_on=_rests_on, randomizers=("kary", "laplace", "gaussian", *SUPPORTS))  # fmt: skip
def all_equal(
    randomizer: Analyzed, n_users: int, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Divergence of the shuffled output on explicit data sets (lower bound).

    If all other users hold z, the divergence is :math:`\frac1n E[(\sum_{i=1}^n L_i)_+]` exactly, with L taken
    under :math:`\mu_z` instead of the blanket; the answer is the largest over z of the certified lower ends, never
    above the truth for the worst pair of neighbouring data sets.  Where few users send k-ary responses, every data set
    is enumerated in which the others hold the two values in question and a third one.  A local budget above 30 counts
    as 30 where noise that is added to the messages makes it that.

    Source: the reduction of Balle, Bell, Gascon, Nissim 2019 with nothing revealed.

    Examples
    --------
    >>> f"{all_equal(KaryProfile(1.0, 2), 10_000, delta=1e-6):.5f}"
    '0.03566'
    """
    randomizer = _with_more_noise(randomizer) if delta != 0 else randomizer
    if isinstance(randomizer, KaryProfile | SupportProfile) and within_reach(randomizer.epsilon0):
        small = _enumerated(randomizer, n_users)
        if small:
            return answer(small, lambda at: small(at).high, randomizer.epsilon0, epsilon, delta, upper=False)
    if isinstance(randomizer, GaussianProfile) and randomizer.noise_std > MAX_NOISE_STD:
        return Certified(0.0, 0.0)
    law = _worst_others(randomizer, n_users, epsilon, delta)
    is_hard = isinstance(randomizer, LaplaceProfile) and randomizer.epsilon0 > 10.0
    found = of_law(
        law, n_users, randomizer.epsilon0, epsilon, delta, upper=False, rtol=RTOL_NOISE if is_hard else RTOL_TIGHT
    )
    if delta is None or not isinstance(randomizer, KaryProfile | SupportProfile) or not 0 < found < randomizer.epsilon0:
        return found
    there = _worst_others(randomizer, n_users, float(found), None)  # the worst value may differ at this epsilon
    return found if there is law else max(found, of_law(there, n_users, randomizer.epsilon0, None, delta, upper=False))


@states(
    "clones", "2021", item="Hiding Among the Clones, reduction to three-valued counts", gives="upper", rests_on="proven"
)
def clones_2021(epsilon0: float, n_users: int, epsilon: float | None = None, delta: float | None = None) -> Certified:
    r"""Guarantee after shuffling any local randomizers with budget ``epsilon0`` (upper bound), epsilon at most that.

    Each other user is a clone of the affected one with probability :math:`e^{-\varepsilon_0}`; the pair is that of
    binary response hidden among the clones, which is the blanket formula with that mass.

    Source: Feldman, McMillan, Talwar 2021, Theorem 3.2.

    Examples
    --------
    >>> f"{clones_2021(1.0, 10_000, delta=1e-6):.4f}"
    '0.0530'
    """
    return of_law(blanket_law(AnyProfile(epsilon0)), n_users, epsilon0, epsilon, delta)


@states("clones", "2023", gives="upper", rests_on="proven", randomizers=("kary", "laplace", *SUPPORTS),
        item="Stronger Privacy Amplification by Shuffling, clone probability 2/(e^epsilon0 + 1), within its erratum",
        )  # fmt: skip
def clones_2023(
    randomizer: KaryProfile | SupportProfile | LaplaceProfile, n_users: int, epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:  # fmt: skip
    r"""Guarantee after shuffling, by clones of probability :math:`2/(e^{\varepsilon_0}+1)` (upper bound).

    Valid where :math:`\mu_x + \mu_{x'} \le (e^{\varepsilon_0}+1) \inf_z \mu_z` pointwise for the pair that matters,
    which not every randomizer satisfies (erratum of 2023).  K-ary response has it for every pair.  Laplace noise on [0,
    1] has it for the end points, whose blanket divergence is the largest of all pairs and below the clone value.  For
    all others the bound is that of :func:`any_randomizer`.  Epsilon is at most the local budget.

    Source: Feldman, McMillan, Talwar 2023, with its erratum.

    Examples
    --------
    >>> f"{clones_2023(KaryProfile(1.0, 2), 10_000, delta=1e-6):.5f}"
    '0.04321'
    """
    return of_law(blanket_law(ClonedProfile(randomizer.epsilon0)), n_users, randomizer.epsilon0, epsilon, delta)


@states("shuffle", "exact-binary", item="binary randomized response, worst data sets, both directions",
        gives=_exact_gives, rests_on="proven")  # fmt: skip
def exact_binary(epsilon0: float, n_users: int, epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Exact guarantee of shuffled binary response: worst other users, worst direction (upper above 1e9 users).

    The worst data set is not always "all others equal": the count of ones among the others shifts the threshold
    of the best test against the lattice of counts, and a better alignment can win (by 19 % at n = 20,
    epsilon0 = 3, epsilon = 0.06; mostly by less than 1 % from n = 100 on).  The search over that count, which misses
    nothing, is described in :mod:`flamelib.accounting.shuffling.exact_binary`; the remaining doubt is the
    ``uncertainty``, added upwards.  Epsilon is at most ``epsilon0``.

    Source: this project; the divergence is that of two sums of independent bits; book, *The worst data set, certified*.

    Examples
    --------
    >>> f"{exact_binary(1.0, 12, epsilon=0.3):.5f}"
    '0.03909'
    """
    worst = functools.partial(binary.worst, epsilon0, n_users)
    found = answer(worst, functools.partial(binary.at_the_end, epsilon0, n_users), epsilon0, epsilon, delta)
    if found.uncertainty <= 1e-4 * found:  # else the blanket bound is evaluated, too
        return found
    above = blanket_divergence(KaryProfile(epsilon0, 2), n_users, epsilon, delta)
    return found if found <= above else Certified(above, found.uncertainty - (found - above))


@states("shuffle", "any", item="every local randomizer of one budget: clones of probability 2/(e^epsilon0 + 1), "
        "and from below the worst of k-ary responses",
        gives=lambda arguments: Gives(arguments["side"]), rests_on="proven")  # fmt: skip
def any_randomizer(
    epsilon0: float, n_users: int, side: str, epsilon: float | None = None, delta: float | None = None
) -> Certified:
    r"""Guarantee after shuffling the messages of one randomizer of budget ``epsilon0``: any (upper), some (lower).

    Upper: for the pair of values in question
    :math:`\inf_z\mu_z\ge e^{-\varepsilon_0}\max(\mu_x,\mu_{x'})` is a blanket, whose amplification variable is in
    convex order below that of binary response: a reduction to clones of probability
    :math:`2/(e^{\varepsilon_0}+1)`.

    Lower: the larger of binary response at its worst data set and of k-ary response whose other users hold a third
    value (the latter wins from about :math:`\varepsilon_0=\log 2` on).

    Source: this project; the blanket reduction is of Balle, Bell, Gascon, Nissim 2019.

    Examples
    --------
    >>> f"{any_randomizer(1.0, 10_000, 'upper', delta=1e-6):.4f} {any_randomizer(1.0, 10_000, 'lower', delta=1e-6):.4f}"
    '0.0432 0.0380'
    """
    if side == "upper":
        return of_law(blanket_law(ClonedProfile(epsilon0)), n_users, epsilon0, epsilon, delta)
    worst = functools.partial(binary.worst, epsilon0, n_users)
    at_the_end = functools.partial(binary.at_the_end, epsilon0, n_users)
    found = answer(worst, at_the_end, epsilon0, epsilon, delta, upper=False)
    # Alphabets of k-ary response that stand for every randomizer.
    return max(found, *(all_equal(KaryProfile(epsilon0, k), n_users, epsilon, delta) for k in (3, 4, 8)))


def _with_more_noise(randomizer: Analyzed) -> Analyzed:
    """The randomizer at ``MAX_EPSILON0``, where that is a post-processing of it: a lower bound.

    K-ary response and its like: mixture with uniform messages; unary encodings: flipped bits; Laplace noise: an added
    independent variable.  A size or range that depends on the budget must be the same.
    """
    if randomizer.epsilon0 <= MAX_EPSILON0 or isinstance(randomizer, GaussianProfile):
        return randomizer
    quieted = replace(randomizer, epsilon0=MAX_EPSILON0)
    sized = isinstance(quieted, SubsetProfile) and quieted.size != randomizer.size  # type: ignore[union-attr]
    return randomizer if sized or isinstance(randomizer, HashingProfile) else quieted


def _three_values(randomizer: KaryProfile) -> Reals:
    """Distributions of the message for the pair and a third value; uninformative messages are one letter."""
    k, p = randomizer.n_buckets, math.exp(randomizer.epsilon0)
    values = min(k, 3)
    rows = np.ones((values, values)) + math.expm1(randomizer.epsilon0) * np.eye(values)
    return np.hstack([rows, np.full((values, 1), k - values)][: 1 + (k > values)]) / (p + (k - 1))


def _enumerated(randomizer: KaryProfile | SupportProfile, n_users: int) -> BracketAt | None:
    """Bracket over all data sets of few users with values in the pair and a third one, for each kind of triple."""
    if isinstance(randomizer, KaryProfile):
        return enumerated(_three_values(randomizer), n_users, [(0, 1), (1, 0)])
    found = [enumerated(_three_supports(randomizer, c), n_users, [(0, 1), (1, 0)]) for c in range(_kinds(randomizer))]
    brackets = [one for one in found if one]
    return (lambda at: max((one(at) for one in brackets), key=lambda one: one.low)) if brackets else None


def _three_supports(randomizer: SupportProfile, kind: int) -> Reals:
    """The same for messages that support values; all three and none are the same likelihood ratio."""
    probs, flags = support_classes(randomizer, kind)
    ratios = np.where(flags.T, math.exp(randomizer.epsilon0), 1.0)
    rows = randomizer.base * probs * ratios
    is_uninformative = flags.all(axis=1) | ~flags.any(axis=1)
    return np.hstack([rows[:, ~is_uninformative], rows[:, is_uninformative].sum(axis=1, keepdims=True)])


def _blanket_law(randomizer: Analyzed) -> LawAt:
    if isinstance(randomizer, GaussianProfile):
        return lambda at: GaussianLaw(
            min(randomizer.noise_std, MAX_NOISE_STD), at, blanket=True
        )  # delta decreases in noise_std
    return blanket_law(randomizer)


def _others_law(randomizer: LaplaceProfile, holds: float) -> LawAt:
    return lambda at: LaplaceLaw(randomizer.epsilon0, at, holds, 1.0)


def _kinds(randomizer: SupportProfile) -> int:
    """Number of kinds of triples of values."""
    return len(randomizer.shares.triples) if randomizer.n_buckets > 2 else 1


def _others(randomizer: SupportProfile) -> list[tuple[int, int]]:
    """Value of the other users, and the kind of triple."""
    third = [(2, kind) for kind in range(_kinds(randomizer))] if randomizer.n_buckets > 2 else []
    return [(0, 0), (1, 0), *third]


@functools.lru_cache(maxsize=16)
def _laws_of_others(randomizer: KaryProfile | SupportProfile) -> tuple[LawAt, ...]:
    """Distribution of L for each value of the other users."""
    if isinstance(randomizer, KaryProfile):
        held = ("first", "second", "third")[: randomizer.n_buckets]
        return tuple(functools.partial(kary_others, randomizer, holds=holds) for holds in held)
    return tuple(functools.partial(support_others, randomizer, holds=z, kind=k) for z, k in _others(randomizer))


def _worst_others(randomizer: Analyzed, n_users: int, epsilon: float | None, delta: float | None) -> LawAt:
    """Distribution of L for the other users' value of largest divergence found (any value is a lower bound)."""
    if isinstance(randomizer, GaussianProfile):
        return lambda at: GaussianLaw(randomizer.noise_std, at, blanket=False)
    if not within_reach(randomizer.epsilon0) or (epsilon or 0.0) >= randomizer.epsilon0:
        return _blanket_law(randomizer)  # the answer does not depend on it
    if delta is not None:
        epsilon = smallest_epsilon(estimate(_blanket_law(randomizer), n_users), delta or 1e-300, randomizer.epsilon0)
    at = min(epsilon or 0.0, (1 - 1e-6) * randomizer.epsilon0)

    if isinstance(randomizer, KaryProfile | SupportProfile):
        # In the far tail the estimate cannot rank the few values.
        laws = _laws_of_others(randomizer)
        rough = [divergence(law, n_users, 1e-3)(at) for law in laws]
        least = max(one.low for one in rough)
        laws = tuple(law for law, one in zip(laws, rough, strict=True) if one.high >= least)
        return max(laws, key=lambda law: divergence(law, n_users)(at).low) if len(laws) > 1 else laws[0]

    @functools.cache
    def log_delta(holds: float) -> float:
        return estimate(_others_law(randomizer, holds), n_users)(at)

    best, step = max((i / 8 for i in range(9)), key=log_delta), 1 / 8
    while step > 1e-4:
        step /= 2
        best = max((best, max(best - step, 0.0), min(best + step, 1.0)), key=log_delta)
    return _others_law(randomizer, best)
