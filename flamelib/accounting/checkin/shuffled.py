r"""Composition of rounds of shuffled check-in, or of plain shuffling: upper and lower bounds.

**Upper.**  The supremum of the profiles of all pairs of neighbours of a round, bounded by
:mod:`flamelib.accounting.shuffling.analysis`, is the profile of one pair, which dominates the round for all
data sets and all values of the victim, chosen adaptively.  Products of dominating pairs dominate adaptive compositions.
The supremum may be attained at a different data set for every :math:`\alpha`: the pair whose other users all hold one
value does not dominate, not even for binary response, but its profile is so close to the supremum that the upper bound
of many rounds is only slightly above the lower one.

**Lower.**  In each round all other users hold the victim's other value.

Adjacency: replace-one.  Proof: book, chapter on check-in, proposition *Rounds that depend on each other*.

Source: Balle, Bell, Gascon, Nissim 2019; Feldman, McMillan, Talwar 2021; Zhu, Dong, Wang 2022, Theorem 10.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flamelib.accounting.checkin.renyi import shuffled_renyi_epsilon
from flamelib.accounting.composition.dominating_pair import composed_below
from flamelib.accounting.composition.privacy_profile import composed_delta, composed_epsilon
from flamelib.accounting.shuffling.analysis import ROUNDING_FUNCTIONS
from flamelib.accounting.shuffling.brackets import MAX_EPSILON0, RTOL_NOISE, of_law, within_reach
from flamelib.accounting.shuffling.randomizers import analysis, round_curve
from flamelib.core.guarantees import Certified, Gives, RestsOn
from flamelib.core.logspace import MIN_DELTA, sum_above
from flamelib.core.profiles import (
    BUCKETED,
    AnyProfile,
    ClonedProfile,
    GaussianProfile,
    LaplaceProfile,
    Profile,
)
from flamelib.core.search import log_excess
from flamelib.core.statements import states
from flamelib.core.vocabulary import SUPPORTS, VOCABULARY, DomainError, check, one_budget

RTOL_ROUNDS = 0.02  # relative accuracy of composed rounds, as of a delta
RTOL_EPSILON = 2e-3  # relative distance of the epsilon of the largest local budget below the target
MIN_CHECKIN_RATE = 1e-12  # check-in rate below which the lower bound is 0
MAX_ROUNDS = 10**9  # rounds beyond which basic composition is used


def _gives(arguments: Mapping[str, Any]) -> Gives:
    if arguments.get("side") == "lower":
        return Gives.LOWER
    return Gives.VALUE if arguments.get("route") == "thm-3" else Gives.UPPER


def _rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """The bound of Theorem 2 for a fixed number of messages is cited."""
    is_cited = arguments.get("side") != "lower" and arguments.get("route") == "thm-2"
    return RestsOn.CITED if is_cited else RestsOn.PROVEN


@states("checkin", "shuffled", gives=_gives, rests_on=_rests_on,
        item="Section 4 after all rounds, by Theorems 2 (Girgis, Data, Diggavi 2021) and 3, or by dominating pairs",
        words={"route": ("thm-2", "thm-3", "any", "clones", "kary", "laplace", "gaussian", *SUPPORTS)})  # fmt: skip
def checkin_shuffled(
    n_users: int, checkin_rate: float, rounds: int, delta: float, route: str, epsilon0: float | None = None,
    n_buckets: int | None = None, noise_std: float | None = None, side: str = "upper",
) -> Certified:  # fmt: skip
    """Epsilon of shuffled check-in after ``rounds`` rounds (upper or lower; route ``thm-3`` from above is a value).

    The upper bound is at most ``rounds * epsilon0``; its ``uncertainty`` estimates the numerical error.  The lower
    bound is that of data sets in which all other users hold one value: for k-ary response, also used for any
    randomizer, after all rounds; for noise after one round.

    Parameters
    ----------
    checkin_rate
        Probability that a user joins a round; 1 is plain shuffling.
    delta
        Of the composition.
    route
        ``thm-2`` and ``thm-3``: Rényi orders, the latter a conversion of a lower bound on the Rényi divergence.
        By dominating pairs: ``any`` for all epsilon0-LDP randomizers, ``clones`` the same by the clones of 2021,
        ``kary`` and the other randomizers of an alphabet, ``laplace`` and ``gaussian`` for noise on a value in [0, 1].
    epsilon0
        Local budget of a message, needed except for ``gaussian``; above 30 only subsampling amplifies.
    n_buckets
        Size of the alphabet, needed for routes that have one and ignored elsewhere.
    noise_std
        Of ``gaussian``, needed there and ignored elsewhere.

    Source: Liew, Hasegawa, Takahashi 2022, Theorems 2 and 3; by dominating pairs this project's.

    Examples
    --------
    >>> setting = {"epsilon0": 2.0, "n_users": 60_000, "checkin_rate": 0.1, "rounds": 5540, "delta": 1 / 60_000}
    >>> [round(checkin_shuffled(**setting, route="any", side=side), 3) for side in ("lower", "upper")]
    [1.027, 1.093]
    """
    randomizer = _randomizer(route, epsilon0, n_buckets, noise_std)
    if side == "lower":
        return Certified(shuffled_rounds_lower(randomizer, n_users, rounds, None, delta, checkin_rate), 0.0)
    if route in ("thm-2", "thm-3"):
        return shuffled_renyi_epsilon(randomizer.epsilon0, n_users, checkin_rate, rounds, delta, route)
    return shuffled_rounds(randomizer, n_users, rounds, delta=delta, checkin_rate=checkin_rate)


def shuffled_rounds(
    randomizer: Profile, n_users: int, rounds: int, epsilon: float | None = None, delta: float | None = None,
    checkin_rate: float = 1.0,
) -> Certified:  # fmt: skip
    """Guarantee of adaptive rounds of shuffling, replace-one (upper, every data set in every round).

    Exactly one of ``epsilon`` and ``delta`` of the composition is given; the answer is the other.  With
    ``checkin_rate`` 1 all users take part in every round.  Beyond a billion rounds the answer is the smaller of basic
    composition of local budgets and Theorem 2; a delta below 1e-300 counts as 0.  For Gaussian noise the answer is at
    most that of unshuffled messages, and equal to it below a delta of 1e-60.
    """
    epsilon, delta, n_users, rounds, checkin_rate = one_budget(
        epsilon, delta, n_users=n_users, rounds=rounds, checkin_rate=checkin_rate
    ).values()
    unshuffled = analysis(randomizer).unshuffled(rounds, epsilon, delta)
    if not checkin_rate or (unshuffled is not None and not unshuffled):
        return Certified(0.0, 0.0)
    bound = shuffled_history([(randomizer, n_users, checkin_rate, rounds)], epsilon, delta)
    if unshuffled is not None:
        return min(bound, unshuffled)
    if not within_reach(randomizer.epsilon0) and delta is None:
        return Certified(bound, bound)  # unshuffled
    # Numerical share of epsilon from which Theorem 2 is evaluated as well.
    if not delta or (rounds <= MAX_ROUNDS and bound.uncertainty <= 0.1 * bound and within_reach(randomizer.epsilon0)):
        return bound
    return min(bound, shuffled_renyi_epsilon(randomizer.epsilon0, n_users, checkin_rate, rounds, delta, "thm-2"))


#: Identical rounds: randomizer, users, check-in rate, number of rounds.
Stage = tuple[Profile, int, float, int]


def shuffled_history(history: Sequence[Stage], epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Guarantee of adaptive rounds of different parameters, one user in all of them (upper, every data set).

    ``epsilon`` and ``delta`` are of the composition, as for :func:`shuffled_rounds`; the order of rounds is irrelevant.
    """
    small = 1e-9  # delta below which log delta has a relative error of 1e-3
    coarse = 1.0  # relative accuracy of delta where profiles are slow to evaluate
    epsilon, delta = one_budget(epsilon, delta).values()
    history = [(profile, *check(n_users=n, checkin_rate=rate, rounds=r).values()) for profile, n, rate, r in history]
    # By a maximal coupling the outputs of all adaptive rounds agree but for this probability.
    distance = sum(rate * rounds * profile.total_variation for profile, _, rate, rounds in history)
    if distance * (1 + ROUNDING_FUNCTIONS) <= (delta or 0.0):
        return Certified(0.0, 0.0)
    if (total := sum(rounds for *_, rounds in history)) > MAX_ROUNDS:
        return _add_budgets(sum_above(*((rounds, profile.epsilon0) for profile, _, _, rounds in history)), epsilon)
    active = [(profile, n_users, rate, rounds) for profile, n_users, rate, rounds in history if rate > 0]
    parts = [(round_curve(profile, n_users, rate), rounds) for profile, n_users, rate, rounds in active]
    if total == 1:
        if delta is None:
            return composed_delta(parts, epsilon or 0.0)
        return composed_epsilon(parts, delta if delta >= MIN_DELTA else 0.0)
    if any(analysis(profile).is_slow for profile, *_ in active):  # few values
        if delta is None:
            return composed_delta(parts, epsilon or 0.0, coarse)
        # Delta below which no profiles are composed here.
        return composed_epsilon(parts, delta if delta >= 1e-60 else 0.0, coarse)
    rtol = max(1e-2 / math.sqrt(total), 1e-4)  # relative error of the sketch's profiles
    sketch = [(round_curve(profile, n_users, rate, rtol), rounds) for profile, n_users, rate, rounds in active]
    if delta is None:
        found = composed_delta(sketch, epsilon or 0.0, 10 * RTOL_ROUNDS)
        return found if found < small else composed_delta(parts, epsilon or 0.0, RTOL_ROUNDS)
    if MIN_DELTA <= delta < small:
        # Share of delta for underflow; relative accuracy of log delta.
        return composed_epsilon(sketch, delta * (1 - 1e-9), -1e-3 * math.log(delta))
    return composed_epsilon(parts, delta if delta >= MIN_DELTA else 0.0, RTOL_ROUNDS)


def shuffled_rounds_lower(
    randomizer: Profile, n_users: int, rounds: int, epsilon: float | None = None, delta: float | None = None,
    checkin_rate: float = 1.0, equal_inputs: bool = False,
) -> float:  # fmt: skip
    """Guarantee of rounds of shuffled messages for explicit data sets (lower).

    In every round all other users hold one value, the victim's other one or a third; for a table of few users, unless
    ``equal_inputs``, any values.  For noise the bound is that of a
    single round, or that of all rounds after post-processing each message to its half of the range (binary response)
    or, for Gaussian noise, to an interval.  Arguments are those of :func:`shuffled_rounds`; for ``AnyProfile`` the
    larger of binary and ternary response.  At most four million rounds are counted.  Beyond a billion users, some
    millions of outcomes, or for check-in rates below 1e-12, the answer is 0.
    """
    epsilon, delta, n_users, rounds, checkin_rate = one_budget(
        epsilon, delta, n_users=n_users, rounds=rounds, checkin_rate=checkin_rate
    ).values()
    if checkin_rate < MIN_CHECKIN_RATE or checkin_rate * rounds <= (delta or 0.0) or not randomizer.epsilon0:
        return 0.0
    account, composed = analysis(randomizer), 0.0
    laws = account.laws_of_equal_inputs(checkin_rate)
    if (not laws or rounds > 1) and delta != 0:  # else the bound is trivial
        pairs = account.witnesses(n_users, checkin_rate, equal_inputs)
        composed = max([0.0, *(composed_below([(pair, rounds)], epsilon, delta) for pair in pairs)])
    # Not more than the local budget, or P[the user takes part], is lost in a single round.
    if delta is not None and (composed >= account.epsilon0 or delta >= checkin_rate):
        return composed
    asked = n_users, account.epsilon0, epsilon, delta
    return max([composed, *(of_law(law, *asked, upper=False, rtol=RTOL_NOISE) for law in laws)])


def shuffled_history_lower(history: Sequence[Stage], epsilon: float | None = None, delta: float | None = None) -> float:
    """Guarantee of rounds of different parameters for the data sets of :func:`shuffled_rounds_lower` (lower).

    Rounds without a known lower bound are omitted, which can only decrease the answer.
    """
    epsilon, delta = one_budget(epsilon, delta).values()
    history = [(profile, *check(n_users=n, checkin_rate=rate, rounds=r).values()) for profile, n, rate, r in history]
    parts = []
    for profile, n_users, rate, rounds in history:
        if rate >= MIN_CHECKIN_RATE and profile.epsilon0:
            pairs = analysis(profile).witnesses(n_users, rate)
            parts += [(pairs[-1], rounds)] if pairs else []
    if not parts or sum(rate * rounds for _, _, rate, rounds in history) <= (delta or 0.0):
        return 0.0
    return composed_below(parts, epsilon, delta)


def largest_epsilon0(
    n_users: int, checkin_rate: float, rounds: int, epsilon: float, delta: float, route: str = "any",
    n_buckets: int | None = None,
) -> float:  # fmt: skip
    """Largest local budget with which (epsilon, delta) holds after all rounds, rounded down.

    At the answer the certified epsilon is at most ``epsilon``, which is above 0, and within a relative 2e-3 of it; the
    answer is at most 30.  The other arguments are those of :func:`checkin_shuffled`, without its two Rényi routes.
    """
    n_users, rounds, checkin_rate, delta, epsilon = check(
        n_users=n_users, rounds=rounds, checkin_rate=checkin_rate, delta=delta, epsilon=epsilon
    ).values()
    if not epsilon:
        raise DomainError(f"epsilon must be above 0 for a budget, got {epsilon!r}")

    def excess(size: float) -> float:
        randomizer = _randomizer(route, _budget(size), n_buckets)
        achieved = shuffled_rounds(randomizer, n_users, rounds, delta=delta, checkin_rate=checkin_rate)
        return log_excess(achieved, epsilon)

    ends = (min(epsilon / rounds, MAX_EPSILON0) * (1 - 1e-12), MAX_EPSILON0)
    lower, upper = (math.log(2 * math.sinh(end / 2)) for end in ends)
    return min(_budget(_root(excess, lower, upper)), MAX_EPSILON0)


def _add_budgets(total: float, epsilon: float | None) -> Certified:
    """Basic composition of pure budgets of sum ``total``."""
    return Certified(total, total) if epsilon is None else Certified(float(epsilon < total), float(epsilon < total))


def _budget(size: float) -> float:
    """The inverse of ``size = log(2 sinh(epsilon0 / 2))``, in which log epsilon is about linear."""
    return 2 * math.asinh(math.exp(size) / 2)


def _root(excess: Callable[[float], float], lower: float, upper: float) -> float:
    """Lower end of a bracket of the root of an increasing ``excess``, at most 0 at ``lower``."""
    at_lower, at_upper, trial = -math.inf, math.inf, lower
    for _ in range(40):  # evaluations at most
        found = excess(trial)
        if found <= 0:
            lower, at_lower = trial, found
        else:
            upper, at_upper = trial, found
        if at_lower >= -RTOL_EPSILON or upper - lower < RTOL_EPSILON / 10:
            break
        trial = upper if math.isinf(at_upper) and at_lower == -math.inf else _secant(lower, upper, at_lower, at_upper)
    return lower


def _secant(lower: float, upper: float, at_lower: float, at_upper: float) -> float:
    """Secant step to an excess of ``-RTOL_EPSILON / 2``, of slope 1 while one end is unknown; away from the ends."""
    if math.isinf(at_upper):
        return min(lower - at_lower, upper)
    if math.isinf(at_lower):
        return max(upper - at_upper - RTOL_EPSILON, (lower + upper) / 2)
    fraction = (-at_lower - RTOL_EPSILON / 2) / (at_upper - at_lower)
    return lower + min(max(fraction, 0.01), 0.99) * (upper - lower)


#: Randomizer of each route.
_PROFILES: dict[str, Any] = {
    "any": ClonedProfile,
    "laplace": LaplaceProfile,
    "gaussian": GaussianProfile,
    **BUCKETED,
    **dict.fromkeys(("clones", "thm-2", "thm-3"), AnyProfile),
}


def _randomizer(
    route: str, epsilon0: float | None, n_buckets: int | None, noise_std: float | None = None
) -> Profile:  # fmt: skip
    given = {"epsilon0": epsilon0, "n_buckets": n_buckets, "noise_std": noise_std}
    parameters = dict.fromkeys(BUCKETED, ("epsilon0", "n_buckets")) | {"gaussian": ("noise_std",)}
    needed = parameters.get(route, ("epsilon0",))
    for name in needed:
        if given[name] is None:
            raise DomainError(f"{name} is missing for route={route}: {VOCABULARY[name]}")
    if route not in _PROFILES:
        raise DomainError(f"route must be any, clones, kary, laplace, gaussian, {', '.join(SUPPORTS)}, got {route!r}")
    profile: Profile = _PROFILES[route](*(given[name] for name in needed))
    return profile
