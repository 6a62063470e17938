r"""Many rounds of shuffled check-in, or of plain shuffling: the cost of the whole training, and what it costs at least.

**Upper.**  The supremum of the profiles of all pairs of neighbors of a round, bounded by
:mod:`flamelib.accounting.checkin.one_round`, is the profile of one pair, which dominates the round whatever the other
users hold and whatever the victim's two values are, both chosen after the earlier rounds have been seen.  Products of
dominating pairs dominate adaptive compositions.  The supremum may be taken at another data set for every
:math:`\alpha`, and that matters: the pair whose other users all hold one value does not dominate, not even for binary
response, but the supremum is so close above it that the upper end of many rounds is hardly above the lower one.

**Lower.**  In each round all other users hold the victim's other value: data sets like any others.

Adjacency: replace-one.  Proof: book, chapter on check-in, proposition *Rounds that depend on each other*.

Source: Balle, Bell, Gascon, Nissim 2019; Feldman, McMillan, Talwar 2021; Zhu, Dong, Wang 2022, Theorem 10.
"""

import math
from collections.abc import Callable, Sequence

from flamelib.accounting.checkin.one_round import Analyzed, equal_cells, round_curve
from flamelib.accounting.checkin.renyi import one_budget, parts_of, shuffled_renyi_epsilon
from flamelib.accounting.composition.curves import Curve, composed_delta, composed_epsilon
from flamelib.accounting.composition.known_pairs import composed_below
from flamelib.accounting.shuffling.brackets import within_reach
from flamelib.core.guarantees import Certified, Gives
from flamelib.core.profiles import AnyProfile, KaryProfile, LaplaceProfile
from flamelib.core.search import smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import VOCABULARY, DomainError, check

ACCURACY = 0.02  # of composed rounds: relative error, as of a delta
SHORT = 2e-3  # how far the epsilon of the largest local budget may stay below the wanted one, relatively
STEPS = 40  # evaluations of a search at most
HARDEST = 30.0  # largest local budget that is looked for: beyond it only the chance to be there counts
DOUBTFUL = 0.1  # part of an epsilon that numbers may have added, from which Theorem 2 is asked as well
LEAST_DELTA = 1e-300  # a smaller delta counts as 0
# A smaller delta than this is answered with its logarithm right to about this part of itself; of delta a part pays for
# what the smallest doubles lose.
SMALL, SMALL_PART, SMALLEST_DOUBLES = 1e-9, 1e-3, 1e-9
ROUGH, LEAST_ROUGH = 1e-2, 1e-4  # error of the values that it is answered from, for one round and at least
RAREST = 1e-12  # at a smaller check-in rate the lower bound is 0
LONGEST = 10**9  # more rounds are answered by budgets that add


@states("checkin", "shuffled", item="Section 4 after all rounds, by Theorems 2 and 3, or by dominating pairs",
        gives=lambda arguments: Gives.VALUE if arguments.get("route") == "thm-3" else Gives.UPPER,
        words={"route": ("thm-2", "thm-3", "clones", "kary", "laplace")})  # fmt: skip
def checkin_shuffled(
    epsilon0: float, n_users: int, checkin_rate: float, rounds: int, delta: float, route: str,
    n_buckets: int | None = None,
) -> Certified:  # fmt: skip
    """Epsilon of shuffled check-in after ``rounds`` rounds (upper; with route ``thm-3`` a value and no bound).

    At most ``rounds * epsilon0``; the ``uncertainty`` of the answer estimates what is lost in numbers.

    Parameters
    ----------
    epsilon0
        Local budget of a message; beyond 30 only the chance to be there counts.
    checkin_rate
        Chance that a user joins a round; 1 is plain shuffling, 0 shows nothing.
    delta
        Of the whole.
    route
        ``thm-2`` and ``thm-3``: Rényi orders, the latter what a lower bound on the Rényi divergence would convert to.
        By dominating pairs: ``clones`` for any randomizer, ``kary`` for k-ary response, ``laplace`` for Laplace noise.
    n_buckets
        Alphabet of ``kary``, needed there and ignored else.

    Source: Liew, Hasegawa, Takahashi 2022, Theorems 2 and 3; by dominating pairs this project's.

    Examples
    --------
    >>> setting = {"epsilon0": 2.0, "n_users": 60_000, "checkin_rate": 0.1, "rounds": 5540, "delta": 1 / 60_000}
    >>> round(checkin_shuffled(**setting, route="clones"), 3)
    1.496
    """
    if route in ("thm-2", "thm-3"):
        return shuffled_renyi_epsilon(epsilon0, n_users, checkin_rate, rounds, delta, route)
    randomizer = _randomizer(route, epsilon0, n_buckets)
    return shuffled_rounds(randomizer, n_users, rounds, delta=delta, checkin_rate=checkin_rate)


def shuffled_rounds(
    randomizer: Analyzed, n_users: int, rounds: int, epsilon: float | None = None, delta: float | None = None,
    checkin_rate: float = 1.0,
) -> Certified:  # fmt: skip
    """Guarantee of adaptive rounds of shuffling, replace-one (upper, every data set in every round).

    Exactly one of ``epsilon`` and ``delta`` is given, of the whole; the answer is the other one.  All users are there
    at ``checkin_rate`` 1.  Beyond a billion rounds the answer is that of local budgets that add, or of Theorem 2 where
    that is less; a delta below 1e-300 counts as 0.
    """
    found = shuffled_schedule(randomizer, n_users, [(checkin_rate, rounds)], epsilon, delta)
    if not delta or (rounds <= LONGEST and found.uncertainty <= DOUBTFUL * found and within_reach(randomizer.epsilon0)):
        return found
    return min(found, shuffled_renyi_epsilon(randomizer.epsilon0, n_users, checkin_rate, rounds, delta, "thm-2"))


def shuffled_schedule(
    randomizer: Analyzed, n_users: int, schedule: Sequence[tuple[float, int]], epsilon: float | None = None,
    delta: float | None = None,
) -> Certified:  # fmt: skip
    """Guarantee of adaptive rounds whose check-in rate changes over time (upper, every data set in every round).

    A rate may be larger than it is: messages that are missing can be dropped from what is seen, so that where users
    drop out with a chance that is not known, the rate at which they check in is a bound.

    Parameters
    ----------
    schedule : sequence of (float in [0, 1], int of at least 1)
        Check-in rates, each with its number of rounds; at most 64.  The order does not matter.
    randomizer, n_users, epsilon, delta
        As for :func:`shuffled_rounds`.
    """
    one_budget(epsilon, delta, n_users=n_users)
    schedule = parts_of(schedule)
    if sum(rate * rounds for rate, rounds in schedule) <= (delta or 0.0):  # perhaps she is never there
        return Certified(0.0, 0.0)
    if (total := sum(rounds for _, rounds in schedule)) > LONGEST:
        return _pure(total * randomizer.epsilon0, epsilon)
    there = [(rate, rounds) for rate, rounds in schedule if rate > 0]
    parts = [(round_curve(randomizer, n_users, rate), rounds) for rate, rounds in there]
    if total == 1:
        return _single(parts[0][0], epsilon, delta)
    rough = max(ROUGH / math.sqrt(total), LEAST_ROUGH)
    sketch = [(round_curve(randomizer, n_users, rate, rough), rounds) for rate, rounds in there]
    if delta is None:
        found = composed_delta(sketch, epsilon or 0.0, 10 * ACCURACY)
        return found if found < SMALL else composed_delta(parts, epsilon or 0.0, ACCURACY)
    if LEAST_DELTA <= delta < SMALL:
        return composed_epsilon(sketch, delta * (1 - SMALLEST_DOUBLES), -SMALL_PART * math.log(delta))
    return composed_epsilon(parts, delta if delta >= LEAST_DELTA else 0.0, ACCURACY)


def shuffled_rounds_lower(
    randomizer: KaryProfile, n_users: int, rounds: int, epsilon: float | None = None, delta: float | None = None,
    checkin_rate: float = 1.0,
) -> float:  # fmt: skip
    """What rounds of shuffled k-ary response cost at least: all other users hold the victim's other value (lower).

    Arguments are those of :func:`shuffled_rounds`.  Binary response stands for the best that can be said of
    ``AnyProfile``.  Beyond a billion users, or some millions of outcomes to be told apart, or where she is hardly ever
    there, the answer is 0.
    """
    one_budget(epsilon, delta, n_users=n_users, rounds=rounds, checkin_rate=checkin_rate)
    if checkin_rate < RAREST or checkin_rate * rounds <= (delta or 0.0):
        return 0.0
    cells = equal_cells(randomizer, n_users, checkin_rate)
    return composed_below([(cells, rounds)], epsilon, delta) if cells else 0.0


def largest_epsilon0(
    n_users: int, checkin_rate: float, rounds: int, epsilon: float, delta: float, route: str = "clones",
    n_buckets: int | None = None,
) -> float:  # fmt: skip
    """Largest local budget found that keeps ``epsilon`` at ``delta`` after all rounds: never one that exceeds it.

    The budget at which the certified epsilon is at most ``epsilon``, which is above 0, and within two thousandths of
    it; 30 at most.  The other arguments are those of :func:`checkin_shuffled`, without its two Rényi routes.
    """
    check(n_users=n_users, rounds=rounds, checkin_rate=checkin_rate, delta=delta, epsilon=epsilon)
    if not epsilon:
        raise DomainError(f"epsilon must be above 0 for a budget, got {epsilon!r}")

    def excess(size: float) -> float:
        randomizer = _randomizer(route, _budget(size), n_buckets)
        found = shuffled_rounds(randomizer, n_users, rounds, delta=delta, checkin_rate=checkin_rate)
        return math.log(found / epsilon) if found else -math.inf

    ends = (min(epsilon / rounds, HARDEST) * (1 - 1e-12), HARDEST)
    low, high = (math.log(2 * math.sinh(end / 2)) for end in ends)
    return min(_budget(_root(excess, low, high)), HARDEST)


def _single(curve: Curve, epsilon: float | None, delta: float | None) -> Certified:
    """One round needs no composing."""
    if delta is None:
        found = curve.forward(epsilon or 0.0) if (epsilon or 0.0) < curve.at_most else 0.0
    else:
        kept = delta if delta >= LEAST_DELTA else 0.0
        found = smallest_epsilon(lambda at: math.log(max(curve.forward(at), 5e-324)), kept, curve.at_most)
    return Certified(found, curve.error * found)


def _pure(most: float, epsilon: float | None) -> Certified:
    """Budgets that add."""
    return Certified(most, most) if epsilon is None else Certified(float(epsilon < most), float(epsilon < most))


def _budget(size: float) -> float:
    """The budget at which twice the hyperbolic sine of its half has this logarithm: epsilon is about in proportion."""
    return 2 * math.asinh(math.exp(size) / 2)


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """An argument at which the excess is at most 0, and close to it or the end of the search; at ``low`` it is."""
    at_low, at_high, newest = -math.inf, math.inf, low
    for _ in range(STEPS):
        found = excess(newest)
        if found <= 0:
            low, at_low = newest, found
        else:
            high, at_high = newest, found
        if at_low >= -SHORT or high - low < SHORT / 10:
            break
        newest = high if math.isinf(at_high) and at_low == -math.inf else _between(low, high, at_low, at_high)
    return low


def _between(low: float, high: float, at_low: float, at_high: float) -> float:
    """Where a line meets its aim, of slope 1 as long as one end is unknown; not too near the ends."""
    if math.isinf(at_high):
        return min(low - at_low, high)
    if math.isinf(at_low):
        return max(high - at_high - SHORT, (low + high) / 2)
    share = (-at_low - SHORT / 2) / (at_high - at_low)
    return low + min(max(share, 0.01), 0.99) * (high - low)


def _randomizer(route: str, epsilon0: float, n_buckets: int | None) -> Analyzed:
    if route == "kary" and n_buckets is None:
        raise DomainError(f"n_buckets is missing for route=kary: {VOCABULARY['n_buckets']}")
    match route:
        case "clones":
            return AnyProfile(epsilon0)
        case "laplace":
            return LaplaceProfile(epsilon0)
        case "kary" if n_buckets is not None:
            return KaryProfile(epsilon0, n_buckets)
    raise DomainError(f"route must be one of clones, kary, laplace, got {route!r}")
