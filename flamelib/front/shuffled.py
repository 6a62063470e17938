"""One shuffle of any local randomizer: every user sends one message, the shuffler forgets the senders.

The document is the privacy blanket (Balle, Bell, Gascon, Nissim 2019).  A *user* sees its own value, the *shuffler* all
messages, the *analyzer* messages in an order that tells nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.accounting.checkin.shuffled import largest_epsilon0, shuffled_rounds, shuffled_rounds_lower
from flamelib.accounting.shuffling.exact_binary import EXHAUSTIVE
from flamelib.accounting.shuffling.numerical import all_equal, blanket_divergence, clones_2021, exact_binary
from flamelib.accounting.shuffling.tables import table_divergence, table_lower
from flamelib.core.arrays import Reals, one_per_user
from flamelib.core.guarantees import Adjacency, Certified, RestsOn
from flamelib.core.profiles import AnyProfile, GaussianProfile, KaryProfile, LaplaceProfile, TableProfile
from flamelib.core.search import largest
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError, check
from flamelib.front import questions
from flamelib.front.results import Calibrated, Guarantee
from flamelib.mechanisms.randomizers import KaryResponse
from flamelib.mechanisms.shuffling import shuffle

Randomizer = KaryProfile | LaplaceProfile | GaussianProfile | TableProfile | AnyProfile

# Largest local budget that is tried: a shuffled message of more says all but everything.
HARDEST = 30.0
# Noise is sought between one over this and this, for values in [0, 1].
LOUDEST = 1e6
# How far apart, relatively, two searches for one epsilon may end.
APART = 1e-6


@dataclass(frozen=True, slots=True)
class Shuffled:
    """Every user sends its randomized value, and the messages are shuffled: a survey, a histogram, a sum.

    Parameters
    ----------
    randomizer : KaryResponse, LaplaceNoise, GaussianNoise, TableRandomizer or AnyRandomizer
        What a user does to its value.  ``AnyRandomizer(epsilon0)`` stands for every one with that local budget.
    n_users : int
        Users whose messages are shuffled together, at least 2.

    Examples
    --------
    >>> from flamelib import KaryResponse, account
    >>> account(Shuffled(KaryResponse(epsilon0=1.0, n_buckets=2), n_users=10_000), delta=1e-6).epsilon < 0.0357
    True
    """

    randomizer: Randomizer
    n_users: int

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, Randomizer):
            raise DomainError(f"randomizer must be a local randomizer such as KaryResponse, got {self.randomizer!r}")
        object.__setattr__(self, "n_users", check(n_users=self.n_users)["n_users"])


def once(randomizer: Randomizer, n_users: int, epsilon: float | None, delta: float | None) -> tuple[Certified, RestsOn]:
    """One round, and what its account rests on (upper)."""
    match randomizer:
        case AnyProfile():
            return clones_2021(randomizer.epsilon0, n_users, epsilon, delta), RestsOn.PROVEN
        case TableProfile() if not randomizer.epsilon0:
            return Certified(0.0, 0.0), RestsOn.PROVEN
        case TableProfile():
            return table_divergence(randomizer, n_users, epsilon, delta), RestsOn.PROVEN
        case KaryProfile(n_buckets=2):
            searched = RestsOn.PROVEN if n_users <= EXHAUSTIVE else RestsOn.ESTIMATED
            return exact_binary(randomizer.epsilon0, n_users, epsilon, delta), searched
        case GaussianProfile():
            return blanket_divergence(randomizer, n_users, epsilon, delta), RestsOn.ESTIMATED
    return blanket_divergence(randomizer, n_users, epsilon, delta), RestsOn.PROVEN


def many(
    randomizer: Randomizer, n_users: int, rounds: int, rate: float, epsilon: float | None, delta: float | None
) -> tuple[Certified, RestsOn]:
    """Rounds in which users join with a chance, and what their account rests on (upper)."""
    if rounds == 1 and rate == 1:
        return once(randomizer, n_users, epsilon, delta)
    if isinstance(randomizer, GaussianProfile):
        raise DomainError("rounds and rate must be 1 for Gaussian noise, of which no account of more is known here")
    if not isinstance(randomizer, TableProfile):
        return shuffled_rounds(randomizer, n_users, rounds, epsilon, delta, rate), RestsOn.PROVEN
    if not randomizer.epsilon0:
        return Certified(0.0, 0.0), RestsOn.PROVEN  # all values send alike
    found = shuffled_rounds(AnyProfile(randomizer.epsilon0), n_users, rounds, epsilon, delta, rate)
    if rounds == 1:
        # Who stays away only drops a message, which everybody could do to the round of all.
        return min(found, table_divergence(randomizer, n_users, epsilon, delta)), RestsOn.PROVEN
    return found, RestsOn.PROVEN


def at_least(
    randomizer: Randomizer, n_users: int, rounds: int, rate: float, epsilon: float | None, delta: float | None
) -> float:
    """What explicit data sets lose (lower)."""
    match randomizer:
        case AnyProfile():
            alike: Randomizer = KaryProfile(randomizer.epsilon0, 2)
        case _:
            alike = randomizer
    found = 0.0
    if not alike.epsilon0:
        return found
    if rate == 1 and isinstance(alike, TableProfile):
        found = table_lower(alike, n_users, epsilon, delta)
    elif rate == 1 and not isinstance(alike, TableProfile | AnyProfile):
        found = all_equal(alike, n_users, epsilon, delta)
    if isinstance(alike, KaryProfile) and (rounds > 1 or rate < 1):
        found = max(found, shuffled_rounds_lower(alike, n_users, rounds, epsilon, delta, rate))
    return found


def guarantee(found: Certified, rests_on: RestsOn, epsilon: float | None, delta: float | None) -> Guarantee:
    """A replace-one guarantee from the number that was asked for."""
    if delta is None:
        return Guarantee(
            float(epsilon or 0.0), min(float(found), 1.0), Adjacency.REPLACE_ONE, rests_on, found.uncertainty
        )
    return Guarantee(float(found), delta, Adjacency.REPLACE_ONE, rests_on, found.uncertainty)


@questions.answers_account(Shuffled)
def _account(protocol: Shuffled, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    return guarantee(*many(protocol.randomizer, protocol.n_users, rounds, 1.0, epsilon, delta), epsilon, delta)


@questions.answers_lower(Shuffled)
def _lower(protocol: Shuffled, delta: float | None, epsilon: float | None, rounds: int) -> float:
    return at_least(protocol.randomizer, protocol.n_users, rounds, 1.0, epsilon, delta)


@questions.answers_calibrate(Shuffled)
def _calibrate(protocol: Shuffled, epsilon: float, delta: float, rounds: int, over: str | None) -> Calibrated:
    randomizer = protocol.randomizer
    sought = over or ("noise_std" if isinstance(randomizer, GaussianProfile) else "epsilon0")
    if isinstance(randomizer, GaussianProfile) and rounds > 1:
        raise DomainError("rounds must be 1 for Gaussian noise, of which no account of more is known here")
    if sought == "n_users":
        return fewest_users(lambda n_users: replace(protocol, n_users=n_users), epsilon, delta, rounds)
    if (
        isinstance(randomizer, TableProfile)
        or sought not in ("epsilon0", "noise_std")
        or not hasattr(randomizer, sought)
    ):
        raise DomainError(f"over must be n_users, or a parameter of the randomizer, got {sought!r} for {randomizer!r}")

    def at(value: float) -> Shuffled:
        return replace(protocol, randomizer=with_budget(randomizer, sought, value))

    if sought == "noise_std":
        value = 1 / _largest(lambda part: at(1 / part), epsilon, delta, 1 / LOUDEST, LOUDEST)
    elif rounds == 1:
        value = _largest(at, epsilon, delta, min(epsilon, HARDEST), HARDEST)
    else:
        value = longest_budget(randomizer, protocol.n_users, 1.0, rounds, epsilon, delta)
    return calibrated(sought, value, at(value), epsilon, delta, rounds)


def with_budget(randomizer: Any, name: str, value: float) -> Any:
    """The randomizer with another local budget, or other noise."""
    return replace(randomizer, **{name: value})


def longest_budget(
    randomizer: Randomizer, n_users: int, rate: float, rounds: int, epsilon: float, delta: float
) -> float:
    """The largest local budget for many rounds, by the route that belongs to the randomizer."""
    route = {"any": "clones"}.get(randomizer.kind, randomizer.kind)
    return largest_epsilon0(n_users, rate, rounds, epsilon, delta, route, getattr(randomizer, "n_buckets", None))


def _largest(at: Callable[[float], Shuffled], epsilon: float, delta: float, low: float, high: float) -> float:
    """The largest value of a parameter of one round at which delta is kept, on the safe side."""

    def log_delta(value: float) -> float:
        changed = at(value)
        return math.log(max(once(changed.randomizer, changed.n_users, epsilon, None)[0], 5e-324))

    return largest(log_delta, delta, low, high)


def fewest_users(crowd: Callable[[int], Any], epsilon: float, delta: float, rounds: int) -> Calibrated:
    """The smallest crowd, found by halving, that keeps a budget."""

    def keeps(n_users: int) -> bool:
        return questions.account(crowd(n_users), delta=delta, rounds=rounds).epsilon <= epsilon

    low, high = 1, 2
    while not keeps(high):
        low, high = high, 4 * high
        if high > LARGEST_WHOLE:
            raise DomainError(f"epsilon must be one that some crowd keeps, got {epsilon!r} at delta = {delta!r}")
    while high - low > 1:
        middle = round(math.sqrt(low * high)) if high > 2 * low + 2 else (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return calibrated("n_users", high, crowd(high), epsilon, delta, rounds)


def calibrated(name: str, value: float, protocol: Any, epsilon: float, delta: float, rounds: int) -> Calibrated:
    """The answer, with the guarantee that the protocol then has: what was asked for, once more certified."""
    found = questions.account(protocol, delta=delta, rounds=rounds)
    # Two searches may end a rounding apart; what is further off does not keep the budget.
    if found.epsilon > epsilon * (1 + APART):
        raise DomainError(
            f"epsilon must be one that some {name} within reach keeps, got {epsilon!r} at delta = {delta!r}"
        )
    return Calibrated(name, value, protocol, replace(found, epsilon=min(found.epsilon, epsilon)))


def messages(randomizer: Any, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    """What the users send."""
    if not hasattr(randomizer, "sample"):
        raise DomainError(f"randomizer must be one that can be drawn from, such as KaryResponse, got {randomizer!r}")
    drawn: NDArray[Any] = randomizer.sample(values, rng)
    return drawn


@questions.answers_view(Shuffled)
def _view(protocol: Shuffled, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    for_users, for_shuffler = rng.spawn(2)
    sent = messages(protocol.randomizer, values, for_users)
    one_per_user("values", sent, protocol.n_users)
    return shuffle(sent, for_shuffler)


@questions.answers_run(Shuffled)
def _run(protocol: Shuffled, values: ArrayLike, rng: np.random.Generator) -> Reals | float:
    return estimated(protocol.randomizer, _view(protocol, values, rng))


def estimated(randomizer: Any, received: NDArray[Any]) -> Reals | float:
    """What the analyzer makes of messages: unbiased counts of values, or an unbiased sum of numbers."""
    if isinstance(randomizer, KaryResponse):
        counts = np.bincount(received, minlength=randomizer.n_buckets)
        return np.asarray((counts - received.size * randomizer.mass / randomizer.n_buckets) / randomizer.kept)
    if isinstance(randomizer, TableProfile):
        return np.bincount(received, minlength=len(randomizer.table[0])).astype(float)
    return float(received.sum())
