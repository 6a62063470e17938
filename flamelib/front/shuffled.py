"""One shuffle of any local randomizer: every user sends one message, and the shuffler forgets the senders.

The document is the privacy blanket (Balle, Bell, Gascon, Nissim 2019).  A *user* sees its own value, the *shuffler* all
messages, the *analyzer* messages in an order that tells nothing.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.accounting.shuffling.accountant import Randomizer, compose, largest_budget, least_noise, lower_bound
from flamelib.core.arrays import Reals, one_per_user
from flamelib.core.profiles import GaussianProfile, TableProfile
from flamelib.core.search import stepped_back
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError, check
from flamelib.front import questions
from flamelib.front.results import Calibrated, Guarantee, guarantee
from flamelib.mechanisms.randomizers import KaryResponse
from flamelib.mechanisms.shuffling import shuffle


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


def _account(protocol: Shuffled, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    return guarantee(*compose(protocol.randomizer, protocol.n_users, rounds, 1.0, epsilon, delta), epsilon, delta)


def _lower(protocol: Shuffled, delta: float | None, epsilon: float | None, rounds: int) -> float:
    return lower_bound(protocol.randomizer, protocol.n_users, rounds, 1.0, epsilon, delta)


def _calibrate(protocol: Shuffled, epsilon: float, delta: float, rounds: int, over: str | None) -> Calibrated:
    randomizer = protocol.randomizer
    sought = over or ("noise_std" if isinstance(randomizer, GaussianProfile) else "epsilon0")
    if isinstance(randomizer, GaussianProfile) and rounds > 1:
        raise DomainError("rounds must be 1 for Gaussian noise, of which no account of more is known here")
    if sought == "n_users":
        return fewest_users(lambda n_users: replace(protocol, n_users=n_users), epsilon, delta, rounds)
    found = sought in ("epsilon0", "noise_std") and hasattr(randomizer, sought)
    if not found or isinstance(randomizer, TableProfile):
        raise DomainError(f"over must be n_users, or a parameter of the randomizer, got {sought!r} for {randomizer!r}")

    at = functools.partial(with_budget, randomizer, sought)
    if sought == "noise_std":
        value = least_noise(protocol.n_users, epsilon, delta)
    else:
        value = largest_budget(at, protocol.n_users, 1.0, rounds, epsilon, delta)

    def with_value(value: float) -> Shuffled:
        return replace(protocol, randomizer=at(value))

    return calibrated(sought, with_value, value, epsilon, delta, rounds, rises=sought == "epsilon0")


def with_budget(randomizer: Any, name: str, value: float) -> Any:
    """The randomizer with another local budget, or other noise."""
    return replace(randomizer, **{name: value})


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
    found = crowd(high)
    return Calibrated("n_users", high, found, questions.account(found, delta=delta, rounds=rounds))


def calibrated(
    name: str, at: Callable[[float], Any], value: float, epsilon: float, delta: float, rounds: int, *,
    rises: bool = True,
) -> Calibrated:  # fmt: skip
    """The answer with the guarantee of its protocol, certified once more; where that exceeds the budget, a step back.

    ``at`` is the protocol for a value of the parameter, with which epsilon ``rises`` or falls.
    """
    certified = functools.cache(lambda value: questions.account(at(value), delta=delta, rounds=rounds))
    value = stepped_back(lambda value: certified(value).epsilon, value, epsilon, rises=rises)
    return Calibrated(name, value, at(value), certified(value))


def messages(randomizer: Any, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    """What the users send."""
    if not hasattr(randomizer, "sample"):
        raise DomainError(f"randomizer must be one that can be drawn from, such as KaryResponse, got {randomizer!r}")
    drawn: NDArray[Any] = randomizer.sample(values, rng)
    return drawn


def _view(protocol: Shuffled, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    for_users, for_shuffler = rng.spawn(2)
    sent = messages(protocol.randomizer, values, for_users)
    one_per_user("values", np.asarray(values), protocol.n_users)
    return shuffle(sent, for_shuffler)


def _run(protocol: Shuffled, values: ArrayLike, rng: np.random.Generator) -> Reals | float:
    return estimated(protocol.randomizer, _view(protocol, values, rng))


def estimated(randomizer: Any, received: NDArray[Any]) -> Reals | float:
    """What the analyzer makes of messages: unbiased counts of values, or an unbiased sum of numbers."""
    if isinstance(randomizer, KaryResponse):
        counts = np.bincount(received, minlength=randomizer.n_buckets)
        return np.asarray((counts - received.size * randomizer.mass / randomizer.n_buckets) / randomizer.kept)
    if hasattr(randomizer, "supported"):
        own, other = randomizer.base * math.exp(randomizer.epsilon0), randomizer.base
        gap = (own - other) * randomizer.shares.alone
        counts = np.asarray(randomizer.supported(received)).sum(axis=0)
        return np.asarray((counts - len(received) * (randomizer.shares.one * own - gap)) / gap)
    if isinstance(randomizer, TableProfile):
        return np.bincount(received, minlength=len(randomizer.table[0])).astype(float)
    return float(received.sum())


questions.answers(Shuffled, account=_account, lower=_lower, calibrate=_calibrate, run=_run, view=_view)
