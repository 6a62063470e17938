"""One shuffle of any local randomizer: every user sends one message, and the shuffler forgets the senders.

The document is the privacy blanket (Balle, Bell, Gascon, Nissim 2019).  A *user* sees its own value, the *shuffler* all
messages, the *analyzer* messages in an order that tells nothing.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.accounting.shuffling.accountant import (
    compose,
    largest_budget,
    least_noise,
    lower_bound,
)
from flamelib.accounting.shuffling.randomizers import analysis
from flamelib.core.arrays import Reals, one_per_user
from flamelib.core.guarantees import RestsOn
from flamelib.core.profiles import Profile
from flamelib.core.search import stepped_back
from flamelib.core.vocabulary import LARGEST_WHOLE, DomainError, check, honest, keep
from flamelib.front import crowd, questions
from flamelib.front.crowd import honest_part
from flamelib.front.results import Calibrated, Guarantee, guarantee
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
    colluding : int
        How many of them may tell the analyzer all they know; the guarantee is that of the others, at least 2.
    dropout : float
        Probability of every message to be lost before it is shuffled, in [0, 1); the analyzer may know which.

    Examples
    --------
    >>> from flamelib import KaryResponse, account
    >>> account(Shuffled(KaryResponse(epsilon0=1.0, n_buckets=2), n_users=10_000), delta=1e-6).epsilon < 0.0357
    True
    >>> account(Shuffled(KaryResponse(1.0, 2), n_users=10_000, colluding=1000, dropout=0.1), delta=1e-6)
    (0.04049, 1e-06)-DP, replace-one; proven
    """

    randomizer: Profile
    n_users: int
    colluding: int = 0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        analysis(self.randomizer)  # refuses what is none
        keep(self, **check(n_users=self.n_users, colluding=self.colluding, dropout=self.dropout))
        honest(self.n_users, self.colluding)


def _account(protocol: Shuffled, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    return rounds_account(honest_part(protocol), 1.0, delta, epsilon, rounds)


def rounds_account(survey: Shuffled, rate: float, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    """The guarantee of rounds with check-in at this rate (1: without)."""

    def bound(n_users: int, epsilon: float | None, delta: float | None) -> float:
        return compose(survey.randomizer, n_users, rounds, rate, epsilon, delta)

    found = crowd.upper(bound, survey.n_users, survey.dropout, rounds, epsilon, delta, survey.randomizer.epsilon0)
    return guarantee(found, RestsOn.PROVEN, epsilon, delta)


def _lower(protocol: Shuffled, delta: float | None, epsilon: float | None, rounds: int) -> float:
    return rounds_lower(honest_part(protocol), 1.0, delta, epsilon, rounds)


def rounds_lower(survey: Shuffled, rate: float, delta: float | None, epsilon: float | None, rounds: int) -> float:
    """What is certainly lost in rounds with check-in at this rate (1: without)."""

    def bound(n_users: int, epsilon: float | None, delta: float | None, equal_inputs: bool = False) -> float:
        return lower_bound(survey.randomizer, n_users, rounds, rate, epsilon, delta, equal_inputs)

    if not survey.dropout:
        return bound(survey.n_users, epsilon, delta)
    # Where the analyzer does not look who is there, a lost message is that of a user who did not check in.
    rarer = rate * (1 - survey.dropout)
    unseen = lower_bound(survey.randomizer, survey.n_users, rounds, rarer, epsilon, delta)
    return max(unseen, crowd.lower(bound, survey.n_users, survey.dropout, rounds, epsilon, delta))


def _calibrate(protocol: Shuffled, epsilon: float, delta: float, rounds: int, over: str | None) -> Calibrated:
    randomizer = protocol.randomizer
    sought = over or randomizer.calibrated_parameter
    if randomizer.calibrated_parameter == "noise_std" and rounds > 1:
        raise DomainError("rounds must be 1 for Gaussian noise, of which no account of more is known here")
    if sought == "n_users":
        return fewest_users(lambda n: replace(protocol, n_users=n), protocol.colluding, epsilon, delta, rounds)
    if sought is None or sought != randomizer.calibrated_parameter:
        raise DomainError(f"over must be n_users, or a parameter of the randomizer, got {sought!r} for {randomizer!r}")

    at = functools.partial(with_budget, randomizer, sought)
    n_users, rest = guaranteed_survey(protocol, rounds, delta)
    if sought == "noise_std":
        value = least_noise(n_users, epsilon, rest)
    else:
        value = largest_budget(at, n_users, 1.0, rounds, epsilon, rest)

    def with_value(value: float) -> Shuffled:
        return replace(protocol, randomizer=at(value))

    return calibrated(sought, with_value, value, epsilon, delta, rounds, rises=sought == "epsilon0")


def guaranteed_survey(survey: Shuffled, rounds: int, delta: float) -> tuple[int, float]:
    """Honest users who are there in all rounds but for a part of delta, and the rest of delta."""
    survey = honest_part(survey)
    counted, rest = crowd.guaranteed_crowd(survey.n_users, survey.dropout, rounds, delta)
    if not rest > 0:
        raise DomainError(f"delta must be above the probability that nobody else's message arrives, got {delta!r}")
    return counted, rest


def with_budget(randomizer: Any, name: str, value: float) -> Any:
    """The randomizer with another local budget, or other noise."""
    return replace(randomizer, **{name: value})


def fewest_users(crowd: Callable[[int], Any], colluding: int, epsilon: float, delta: float, rounds: int) -> Calibrated:
    """The smallest crowd, found by halving, that keeps a budget, so many of them colluding."""

    def keeps(n_users: int) -> bool:
        return questions.account(crowd(n_users), delta=delta, rounds=rounds).epsilon <= epsilon

    low, high = 1 + colluding, 2 + colluding
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
    if protocol.dropout:
        sent = sent[for_shuffler.random(protocol.n_users) >= protocol.dropout]
    return shuffle(sent, for_shuffler)


def _run(protocol: Shuffled, values: ArrayLike, rng: np.random.Generator) -> Reals | float:
    seen, randomizer = _view(protocol, values, rng), cast("Any", protocol.randomizer)
    estimate: Reals | float = randomizer.estimate(seen)
    return estimate / (1 - protocol.dropout)


questions.answers(Shuffled, account=_account, lower=_lower, calibrate=_calibrate, run=_run, view=_view)
