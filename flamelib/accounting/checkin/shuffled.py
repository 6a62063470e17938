r"""Many rounds of shuffled check-in, or of plain shuffling: what the whole costs at most, and what it costs at least.

**Upper.**  The supremum of the profiles of all pairs of neighbours of a round, bounded by
:mod:`flamelib.accounting.checkin.subsampled_shuffle`, is the profile of one pair, which dominates the round whatever
the other users hold and whatever the victim's two values are, both chosen after the earlier rounds have been seen.
Products of dominating pairs dominate adaptive compositions.  The supremum may be taken at another data set for every
:math:`\alpha`, and that matters: the pair whose other users all hold one value does not dominate, not even for binary
response, but the supremum is so close above it that the upper end of many rounds is hardly above the lower one.

**Lower.**  In each round all other users hold the victim's other value; these are data sets like any others.

Adjacency: replace-one.  Proof: book, chapter on check-in, proposition *Rounds that depend on each other*.

Source: Balle, Bell, Gascon, Nissim 2019; Feldman, McMillan, Talwar 2021; Zhu, Dong, Wang 2022, Theorem 10.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flamelib.accounting.checkin.renyi import shuffled_renyi_epsilon
from flamelib.accounting.checkin.subsampled_shuffle import (
    Analyzed,
    equal_cells,
    law_from_below,
    round_curve,
    third_cells,
)
from flamelib.accounting.composition.dominating_pair import DominatingPair, composed_below
from flamelib.accounting.composition.privacy_profile import composed_delta, composed_epsilon
from flamelib.accounting.noise.gaussian import gaussian_mechanism
from flamelib.accounting.shuffling.brackets import MAX_EPSILON0, RTOL_NOISE, of_law, within_reach
from flamelib.accounting.shuffling.equal_inputs import equal_inputs_pair
from flamelib.accounting.shuffling.gaussian_branch_cut import MAX_NOISE_STD
from flamelib.core.guarantees import Certified, Gives, RestsOn
from flamelib.core.logspace import MIN_DELTA, sum_above
from flamelib.core.profiles import (
    BUCKETED,
    AnyProfile,
    ClonedProfile,
    GaussianProfile,
    KaryProfile,
    LaplaceProfile,
    SupportProfile,
)
from flamelib.core.search import log_excess
from flamelib.core.statements import states
from flamelib.core.vocabulary import SUPPORTS, VOCABULARY, DomainError, check, one_budget

RTOL_ROUNDS = 0.02  # relative accuracy of composed rounds, as of a delta
RTOL_EPSILON = 2e-3  # relative distance of the epsilon of the largest local budget below the wanted one
MIN_CHECKIN_RATE = 1e-12  # check-in rate below which the lower bound is 0
ROUNDING_FUNCTIONS = 1e-13  # relative error of a few elementary functions one after the other
MAX_ROUNDS = 10**9  # rounds beyond which budgets are added


def _gives(arguments: Mapping[str, Any]) -> Gives:
    if arguments.get("side") == "lower":
        return Gives.LOWER
    return Gives.VALUE if arguments.get("route") == "thm-3" else Gives.UPPER


def _rests_on(arguments: Mapping[str, Any]) -> RestsOn:
    """Integrals of Gaussian noise are estimated; what Theorem 2 takes for a fixed number of messages is cited."""
    if arguments.get("side") != "lower" and arguments.get("route") == "thm-2":
        return RestsOn.CITED
    return RestsOn.ESTIMATED if arguments.get("route") == "gaussian" else RestsOn.PROVEN


@states("checkin", "shuffled", gives=_gives, rests_on=_rests_on,
        item="Section 4 after all rounds, by Theorems 2 (Girgis, Data, Diggavi 2021) and 3, or by dominating pairs",
        words={"route": ("thm-2", "thm-3", "any", "clones", "kary", "laplace", "gaussian", *SUPPORTS)})  # fmt: skip
def checkin_shuffled(
    n_users: int, checkin_rate: float, rounds: int, delta: float, route: str, epsilon0: float | None = None,
    n_buckets: int | None = None, noise_std: float | None = None, side: str = "upper",
) -> Certified:  # fmt: skip
    """Epsilon of shuffled check-in after ``rounds`` rounds (upper or lower; route ``thm-3`` from above is a value).

    From above it is at most ``rounds * epsilon0``, and the ``uncertainty`` estimates what numerical accounting adds.
    From below it is what data sets lose in which all other users hold one value: for k-ary response, which stands for
    any randomizer as well, after all rounds; for noise after one round.

    Parameters
    ----------
    checkin_rate
        Chance that a user joins a round; 1 is plain shuffling, 0 shows nothing.
    delta
        Of the whole.
    route
        ``thm-2`` and ``thm-3``: Rényi orders, the latter what a lower bound on the Rényi divergence would convert to.
        By dominating pairs: ``any`` for whatever randomizer, ``clones`` the same by the clones of 2021, ``kary`` and
        the other kinds of an alphabet for theirs, ``laplace`` and ``gaussian`` for noise on a value in [0, 1].
    epsilon0
        Local budget of a message, needed except for ``gaussian``; above 30 only the chance to take part counts.
    n_buckets
        Alphabet of the kinds that have one, needed there and ignored elsewhere.
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
    randomizer: Analyzed, n_users: int, rounds: int, epsilon: float | None = None, delta: float | None = None,
    checkin_rate: float = 1.0,
) -> Certified:  # fmt: skip
    """Guarantee of adaptive rounds of shuffling, replace-one (upper, every data set in every round).

    Exactly one of ``epsilon`` and ``delta`` is given, of the whole; the answer is the other one.  With ``checkin_rate``
    1 all users take part in every round.  Beyond a billion rounds the answer is that of local budgets that add, or of
    Theorem 2 where that is less; a delta below 1e-300 counts as 0.  Rounds of Gaussian noise cost no more than if
    messages were seen unshuffled, and below a delta of 1e-60 that cost is the answer.
    """
    epsilon, delta, n_users, rounds, checkin_rate = one_budget(
        epsilon, delta, n_users=n_users, rounds=rounds, checkin_rate=checkin_rate
    ).values()
    seen = None
    if isinstance(randomizer, GaussianProfile) and checkin_rate:
        # What messages that everybody sees would cost is a bound as well.
        seen = gaussian_mechanism(1.0, randomizer.noise_std / math.sqrt(rounds), epsilon, delta)
        if not seen:
            return seen
    found = shuffled_history([(randomizer, n_users, checkin_rate, rounds)], epsilon, delta)
    if isinstance(randomizer, GaussianProfile):
        return found if seen is None else min(found, seen)
    if not within_reach(randomizer.epsilon0) and delta is None:
        return Certified(found, found)  # what unshuffled messages would cost
    # Numerical part of an epsilon from which Theorem 2 is evaluated as well.
    if not delta or (rounds <= MAX_ROUNDS and found.uncertainty <= 0.1 * found and within_reach(randomizer.epsilon0)):
        return found
    return min(found, shuffled_renyi_epsilon(randomizer.epsilon0, n_users, checkin_rate, rounds, delta, "thm-2"))


#: Rounds alike: what a user does to its value, the users who might come, the rate at which they do, how many rounds.
Alike = tuple[Analyzed, int, float, int]


def shuffled_history(history: Sequence[Alike], epsilon: float | None = None, delta: float | None = None) -> Certified:
    """Guarantee of adaptive rounds that differ in every respect, one user in all of them (upper, every data set).

    ``epsilon`` and ``delta`` are of the whole, as for :func:`shuffled_rounds`; the order of rounds does not matter.
    """
    small = 1e-9  # delta below which log delta is right to a thousandth of itself
    coarse = 1.0  # accuracy where values take long, relative, as of a delta
    epsilon, delta = one_budget(epsilon, delta).values()
    history = [(one, *check(n_users=n, checkin_rate=rate, rounds=r).values()) for one, n, rate, r in history]
    if sum(rate * rounds * _apart(one) for one, _, rate, rounds in history) <= (delta or 0.0):
        return Certified(0.0, 0.0)
    if (total := sum(rounds for *_, rounds in history)) > MAX_ROUNDS:
        return _pure(sum_above(*((rounds, one.epsilon0) for one, _, _, rounds in history)), epsilon)
    there = [(one, n_users, rate, rounds) for one, n_users, rate, rounds in history if rate > 0]
    parts = [(round_curve(one, n_users, rate), rounds) for one, n_users, rate, rounds in there]
    if total == 1:
        if delta is None:
            return composed_delta(parts, epsilon or 0.0)
        return composed_epsilon(parts, delta if delta >= MIN_DELTA else 0.0)
    if any(isinstance(one, GaussianProfile) for one, *_ in there):  # its values take long, so that few are asked for
        if delta is None:
            return composed_delta(parts, epsilon or 0.0, coarse)
        # Delta below which no profiles are composed here.
        return composed_epsilon(parts, delta if delta >= 1e-60 else 0.0, coarse)
    rough = max(1e-2 / math.sqrt(total), 1e-4)  # error of the values of the sketch, for one round and at least
    sketch = [(round_curve(one, n_users, rate, rough), rounds) for one, n_users, rate, rounds in there]
    if delta is None:
        found = composed_delta(sketch, epsilon or 0.0, 10 * RTOL_ROUNDS)
        return found if found < small else composed_delta(parts, epsilon or 0.0, RTOL_ROUNDS)
    if MIN_DELTA <= delta < small:
        # Share of delta for what the smallest doubles lose; relative accuracy of log delta.
        return composed_epsilon(sketch, delta * (1 - 1e-9), -1e-3 * math.log(delta))
    return composed_epsilon(parts, delta if delta >= MIN_DELTA else 0.0, RTOL_ROUNDS)


def _apart(randomizer: Analyzed) -> float:
    """Largest total variation between a user's messages (upper); in a round it counts only if the user is there.

    Messages of the two values can be drawn as one with the chance that is left, so that with chance
    ``1 - sum(rate * rounds * apart)`` nothing differs in any round, whatever has been seen before.
    """
    if isinstance(randomizer, GaussianProfile):
        found = math.erf(1 / (2 * math.sqrt(2) * randomizer.noise_std))
    else:
        found = math.tanh(randomizer.epsilon0 / 2)  # of binary response, which is farthest apart
    return found * (1 + ROUNDING_FUNCTIONS)


def shuffled_rounds_lower(
    randomizer: Analyzed, n_users: int, rounds: int, epsilon: float | None = None, delta: float | None = None,
    checkin_rate: float = 1.0,
) -> float:  # fmt: skip
    """What rounds of shuffled messages cost at least (lower).

    In every round all other users hold one value, the victim's other one or a third.  For noise a single round counts,
    or all rounds if of a message only the half in which it lies is read, which makes it binary response, or an
    interval for Gaussian noise.  Arguments are those of :func:`shuffled_rounds`; of ``AnyProfile`` binary and ternary
    response are tried.  Of more than four million rounds as many are counted.  Beyond a billion users, or some millions
    of outcomes to be told apart, or where the victim hardly ever takes part, the answer is 0.
    """
    epsilon, delta, n_users, rounds, checkin_rate = one_budget(
        epsilon, delta, n_users=n_users, rounds=rounds, checkin_rate=checkin_rate
    ).values()
    if checkin_rate < MIN_CHECKIN_RATE or checkin_rate * rounds <= (delta or 0.0) or not randomizer.epsilon0:
        return 0.0
    noisy, together = randomizer if isinstance(randomizer, LaplaceProfile | GaussianProfile) else None, 0.0
    if (not noisy or rounds > 1) and delta != 0:  # else nothing would be told
        cells = _cells_from_below(randomizer, n_users, checkin_rate)
        together = max([0.0, *(composed_below([(found, rounds)], epsilon, delta) for found in cells)])
    if not noisy or (delta is not None and together >= noisy.epsilon0):  # which one round never exceeds
        return together
    if isinstance(noisy, GaussianProfile) and noisy.noise_std > MAX_NOISE_STD:
        return together
    if delta is not None and delta >= checkin_rate:  # the chance that the user is there in a single round
        return together
    held = (1.0,) if isinstance(noisy, GaussianProfile) else (0.0, 1.0)
    laws = [law_from_below(noisy, holds, checkin_rate) for holds in held]
    found = [of_law(law, n_users, noisy.epsilon0, epsilon, delta, upper=False, rtol=RTOL_NOISE) for law in laws]
    return max(together, *found)


def shuffled_history_lower(history: Sequence[Alike], epsilon: float | None = None, delta: float | None = None) -> float:
    """What rounds that differ cost at least, by the data sets of :func:`shuffled_rounds_lower` (lower).

    Rounds for which no lower bound is known are left out, which can only make the answer smaller.
    """
    epsilon, delta = one_budget(epsilon, delta).values()
    history = [(one, *check(n_users=n, checkin_rate=rate, rounds=r).values()) for one, n, rate, r in history]
    chosen = []
    for one, n_users, rate, rounds in history:
        if rate >= MIN_CHECKIN_RATE and one.epsilon0:
            cells = _cells_from_below(one, n_users, rate)
            chosen += [(cells[-1], rounds)] if cells else []
    if not chosen or sum(rate * rounds for _, _, rate, rounds in history) <= (delta or 0.0):
        return 0.0
    return composed_below(chosen, epsilon, delta)


def _cells_from_below(randomizer: Analyzed, n_users: int, rate: float) -> list[DominatingPair]:
    """The outcomes of a round for data sets in which all others hold one value; what loses most comes last.

    All others at the victim's other value, and of k-ary response at a third one; of noise in a coarser view.
    """
    tried: list[KaryProfile | SupportProfile]
    if isinstance(randomizer, LaplaceProfile | GaussianProfile):
        told = _halves(randomizer)
        tried = [KaryProfile(told, 2)] if told else []
    elif isinstance(randomizer, AnyProfile):
        tried = [KaryProfile(randomizer.epsilon0, k) for k in (2, 3)]
    else:
        tried = [randomizer]
    cells = [equal_cells(one, n_users, rate) for one in tried]
    cells += [third_cells(one, n_users, rate) for one in tried if isinstance(one, KaryProfile)]
    cells += [equal_inputs_pair(randomizer, n_users, rate)] if isinstance(randomizer, GaussianProfile) else []
    return [found for found in cells if found]


def _halves(randomizer: LaplaceProfile | GaussianProfile) -> float:
    """Local budget of the half in which a message lies, above or below 1/2: binary response of the values 0 and 1.

    Taken a little too small, which is binary response with more noise.
    """
    if isinstance(randomizer, LaplaceProfile):
        told = math.log1p(2 * math.expm1(randomizer.epsilon0 / 2))
    else:
        apart = 1 / (2 * math.sqrt(2) * randomizer.noise_std)
        wrong = math.erfc(apart)
        told = math.log1p(2 * math.erf(apart) / wrong) if wrong else 0.0
    return told * (1 - ROUNDING_FUNCTIONS)


def largest_epsilon0(
    n_users: int, checkin_rate: float, rounds: int, epsilon: float, delta: float, route: str = "any",
    n_buckets: int | None = None,
) -> float:  # fmt: skip
    """Largest local budget found that keeps ``epsilon`` at ``delta`` after all rounds: never one that exceeds it.

    At the answer the certified epsilon is at most ``epsilon``, which is above 0, and within two thousandths of it; the
    answer is at most 30.  The other arguments are those of :func:`checkin_shuffled`, without its two Rényi routes.
    """
    n_users, rounds, checkin_rate, delta, epsilon = check(
        n_users=n_users, rounds=rounds, checkin_rate=checkin_rate, delta=delta, epsilon=epsilon
    ).values()
    if not epsilon:
        raise DomainError(f"epsilon must be above 0 for a budget, got {epsilon!r}")

    def excess(size: float) -> float:
        randomizer = _randomizer(route, _budget(size), n_buckets)
        found = shuffled_rounds(randomizer, n_users, rounds, delta=delta, checkin_rate=checkin_rate)
        return log_excess(found, epsilon)

    ends = (min(epsilon / rounds, MAX_EPSILON0) * (1 - 1e-12), MAX_EPSILON0)
    low, high = (math.log(2 * math.sinh(end / 2)) for end in ends)
    return min(_budget(_root(excess, low, high)), MAX_EPSILON0)


def _pure(most: float, epsilon: float | None) -> Certified:
    """Budgets that add."""
    return Certified(most, most) if epsilon is None else Certified(float(epsilon < most), float(epsilon < most))


def _budget(size: float) -> float:
    """The budget at which twice the hyperbolic sine of its half has this logarithm: epsilon is about in proportion."""
    return 2 * math.asinh(math.exp(size) / 2)


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """An argument at which the excess is at most 0, and close to it or the end of the search; at ``low`` it is."""
    at_low, at_high, newest = -math.inf, math.inf, low
    for _ in range(40):  # evaluations at most
        found = excess(newest)
        if found <= 0:
            low, at_low = newest, found
        else:
            high, at_high = newest, found
        if at_low >= -RTOL_EPSILON or high - low < RTOL_EPSILON / 10:
            break
        newest = high if math.isinf(at_high) and at_low == -math.inf else _between(low, high, at_low, at_high)
    return low


def _between(low: float, high: float, at_low: float, at_high: float) -> float:
    """Where a line meets its aim, of slope 1 as long as one end is unknown; not too near the ends."""
    if math.isinf(at_high):
        return min(low - at_low, high)
    if math.isinf(at_low):
        return max(high - at_high - RTOL_EPSILON, (low + high) / 2)
    share = (-at_low - RTOL_EPSILON / 2) / (at_high - at_low)
    return low + min(max(share, 0.01), 0.99) * (high - low)


#: What stands for the randomizer of each route.
_KINDS: dict[str, Any] = {
    "any": ClonedProfile,
    "laplace": LaplaceProfile,
    "gaussian": GaussianProfile,
    **BUCKETED,
    **dict.fromkeys(("clones", "thm-2", "thm-3"), AnyProfile),
}


def _randomizer(
    route: str, epsilon0: float | None, n_buckets: int | None, noise_std: float | None = None
) -> Analyzed:  # fmt: skip
    given = {"epsilon0": epsilon0, "n_buckets": n_buckets, "noise_std": noise_std}
    numbers = dict.fromkeys(BUCKETED, ("epsilon0", "n_buckets")) | {"gaussian": ("noise_std",)}
    needed = numbers.get(route, ("epsilon0",))
    for name in needed:
        if given[name] is None:
            raise DomainError(f"{name} is missing for route={route}: {VOCABULARY[name]}")
    if route not in _KINDS:
        raise DomainError(f"route must be any, clones, kary, laplace, gaussian, {', '.join(SUPPORTS)}, got {route!r}")
    found: Analyzed = _KINDS[route](*(given[name] for name in needed))
    return found
