"""Accounting of shuffled surveys: one round or a composition, with or without random check-in, by randomizer.

One round of all users by :mod:`flamelib.accounting.shuffling`, compositions and random
check-in by :mod:`flamelib.accounting.checkin.shuffled`.  Adjacency: one user's value is replaced, in every round.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flamelib.accounting.checkin.shuffled import largest_epsilon0, shuffled_rounds, shuffled_rounds_lower
from flamelib.accounting.shuffling.brackets import MAX_EPSILON0
from flamelib.accounting.shuffling.gaussian_sums import MAX_NOISE_STD
from flamelib.accounting.shuffling.randomizers import analysis
from flamelib.core.guarantees import ARITHMETIC, Certified, Gives
from flamelib.core.profiles import (
    BUCKETED,
    AnyProfile,
    GaussianProfile,
    KaryProfile,
    LaplaceProfile,
    Profile,
    TableProfile,
)
from flamelib.core.search import largest, stepped_back
from flamelib.core.statements import states
from flamelib.core.vocabulary import SUPPORTS, VOCABULARY, DomainError


def compose(
    randomizer: Profile, n_users: int, rounds: int, rate: float, epsilon: float | None, delta: float | None
) -> Certified:
    """Composition of rounds with check-in probability ``rate`` (upper)."""
    if not randomizer.epsilon0:
        return Certified(0.0, 0.0)  # messages do not depend on the value
    account = analysis(randomizer)
    if rounds == 1 and rate == 1:
        return account.one_round(n_users, epsilon, delta)
    found = shuffled_rounds(account.reduced, n_users, rounds, epsilon, delta, rate)
    if rounds == 1 and account.reduced != randomizer:
        # Dropping messages is a post-processing of the round of all users.
        found = min(found, account.one_round(n_users, epsilon, delta))
    return found


def lower_bound(
    randomizer: Profile, n_users: int, rounds: int, rate: float, epsilon: float | None, delta: float | None,
    equal_inputs: bool = False,
) -> Certified:  # fmt: skip
    """Divergence of explicit data sets (lower), with ``equal_inputs`` of those whose other users hold one value."""
    found = Certified(0.0, 0.0)
    if not randomizer.epsilon0:
        return found
    if rate == 1:  # one round is a post-processing of all rounds
        found = analysis(randomizer).from_below(n_users, epsilon, delta, equal_inputs)
    if rounds > 1 or rate < 1:
        composed = shuffled_rounds_lower(randomizer, n_users, rounds, epsilon, delta, rate, equal_inputs)
        found = max(found, Certified(composed, 0.0))
    return found


@states("shuffle", "table", item="a randomizer given by its table, worst pair of values; rounds by dominating pairs",
        gives=lambda arguments: Gives(arguments["side"]), rests_on="proven")  # fmt: skip
def table_account(
    table: tuple[tuple[float, ...], ...], n_users: int, side: str, epsilon: float | None = None,
    delta: float | None = None, rounds: int = 1,
) -> Certified:  # fmt: skip
    """Guarantee of a shuffled randomizer given by its table (upper), or divergence of explicit data sets (lower).

    The upper bound is the worst certified blanket divergence over all ordered pairs of values; after several rounds it
    is the bound for every randomizer with the table's local budget.  For the lower bound all others hold one value,
    maximum over it and over the pair; for few users, every data set is enumerated.  Over several rounds a few
    pairs of largest divergence are composed, with the same data set in every round.

    Parameters
    ----------
    table
        Row x is the distribution of the message for the value x; rows sum to 1 within 1e-12, and a message that one
        value may send, every value may.

    Source: the reduction of Balle, Bell, Gascon, Nissim 2019, for each pair of values.

    Examples
    --------
    >>> coin = ((0.75, 0.25), (0.25, 0.75))
    >>> f"{table_account(coin, 1000, 'upper', delta=1e-6):.4f} {table_account(coin, 1000, 'lower', delta=1e-6):.4f}"
    '0.1683 0.1421'
    """
    randomizer = TableProfile(table)
    if side == "lower":
        return lower_bound(randomizer, n_users, rounds, 1.0, epsilon, delta)
    return compose(randomizer, n_users, rounds, 1.0, epsilon, delta)


@states("shuffle", "rappor-sums", item="one-hot vectors of flipped bits, whose sums are seen: two binary responses",
        gives=lambda arguments: Gives(arguments["side"]), rests_on="proven")  # fmt: skip
def rappor_sums(
    epsilon0: float, n_users: int, side: str, epsilon: float | None = None, delta: float | None = None, rounds: int = 1
) -> Certified:
    """Guarantee of the sum of one-hot vectors of RAPPOR, bit by bit (upper), or lower bound of it (lower).

    Every user flips each bit of its one-hot vector with probability ``1 / (exp(epsilon0 / 2) + 1)``, and the sum of
    each bit over the users is observed, as in secure aggregation of vectors.  Replacing a value flips two bits; given
    the values of the others, their two sums are independent, and each is a shuffled binary response of budget
    ``epsilon0 / 2``.  So the upper bound is that of two rounds of it, for every data set.  For the lower one
    all others hold the value that is replaced; beyond a billion users it is 0.  The vectors' length does not matter.

    Proof: book, chapter on check-in, proposition *One-hot vectors that are added up*.

    Source: this project; the mechanism is symmetric RAPPOR (Erlingsson, Pihur, Korolova 2014).

    Examples
    --------
    >>> [f"{rappor_sums(14.0, 100_000, side, delta=1e-9):.4f}" for side in ("lower", "upper")]
    ['0.9504', '0.9530']
    """
    bit = KaryProfile(epsilon0 / 2, 2)
    if side == "lower":
        if n_users > 10**9:  # too slow beyond
            return Certified(0.0, 0.0)
        return Certified(shuffled_rounds_lower(bit, n_users, 2 * rounds, epsilon, delta), 0.0)
    return shuffled_rounds(bit, n_users, 2 * rounds, epsilon, delta)


@dataclass(frozen=True, slots=True)
class Budget:
    """The largest local budget."""

    epsilon0: float


@dataclass(frozen=True, slots=True)
class Noise:
    """The smallest standard deviation of noise."""

    noise_std: float


@states("shuffle", "calibrate", item="the largest local budget, or the least noise, that keeps a central budget",
        gives="upper", rests_on="proven", assumes=ARITHMETIC,
        words={"randomizer": ("kary", "laplace", "any", "gaussian", *SUPPORTS)})  # fmt: skip
def shuffle_calibrate(
    randomizer: str, n_users: int, epsilon: float, delta: float, n_buckets: int | None = None, rounds: int = 1,
    checkin_rate: float = 1.0,
) -> Budget | Noise:  # fmt: skip
    """Largest local budget (never too large), or least Gaussian noise (never too small), that keeps (epsilon, delta).

    At the answer the certified account keeps the budget, to the last digit.  For one round the answer is within 1e-7 of
    the best such answer (Gaussian noise: about 1e-5, the width of its bracket), for many rounds within two thousandths.
    A local budget of ``epsilon`` needs no shuffling in one round, and 30 is the largest.

    Parameters
    ----------
    randomizer
        The kind alone: its local budget, or noise, is the answer.
    epsilon, delta
        The central budget, of all rounds together; both are above 0.
    n_buckets
        Alphabet of ``kary`` and its like, needed there and refused elsewhere.

    Source: this project.

    Examples
    --------
    >>> shuffle_calibrate("kary", 100_000, 0.3, 1e-8, n_buckets=10).epsilon0 > 4
    True
    """
    if not epsilon or not delta:
        raise DomainError(f"epsilon and delta must be above 0 for a calibration, got {epsilon!r} and {delta!r}")
    if (n_buckets is None) == (randomizer in BUCKETED):
        needed = "is missing" if n_buckets is None else "is not a parameter"
        raise DomainError(f"n_buckets {needed} for randomizer={randomizer}: {VOCABULARY['n_buckets']}")
    if randomizer == "gaussian":
        if rounds > 1 or checkin_rate < 1:
            raise DomainError("rounds and checkin_rate must be 1 for Gaussian noise, of which no account is known here")
        return Noise(least_noise(n_users, epsilon, delta))
    return Budget(largest_budget(kind_of(randomizer, n_buckets), n_users, checkin_rate, rounds, epsilon, delta))


def kind_of(kind: str, n_buckets: int | None) -> Callable[[float], Any]:
    """The randomizer of this kind for a local budget."""
    if kind in BUCKETED:
        return lambda epsilon0: BUCKETED[kind](epsilon0, n_buckets)
    return {"laplace": LaplaceProfile, "any": AnyProfile}[kind]


def largest_budget(
    at: Callable[[float], Any], n_users: int, rate: float, rounds: int, epsilon: float, delta: float
) -> float:
    """The largest local budget of a family of randomizers, by the route that belongs to it."""
    if rounds == 1 and rate == 1:
        value = largest_parameter(at, n_users, epsilon, delta, min(epsilon, MAX_EPSILON0), MAX_EPSILON0)
        return stepped_back(lambda budget: analysis(at(budget)).one_round(n_users, None, delta), value, epsilon)
    example = at(1.0)
    buckets = getattr(example, "n_buckets", None)
    epsilon0 = largest_epsilon0(n_users, rate, rounds, epsilon, delta, example.kind, buckets)
    return min(epsilon0, MAX_EPSILON0)


def least_noise(n_users: int, epsilon: float, delta: float) -> float:
    """The least standard deviation of Gaussian noise on values in [0, 1] that keeps a budget after one shuffle."""

    def at(part: float) -> GaussianProfile:
        return GaussianProfile(1 / part)

    value = 1 / largest_parameter(at, n_users, epsilon, delta, 1 / MAX_NOISE_STD, MAX_NOISE_STD)
    return stepped_back(
        lambda noise: analysis(GaussianProfile(noise)).one_round(n_users, None, delta), value, epsilon, rises=False
    )


def largest_parameter(
    at: Callable[[float], Any], n_users: int, epsilon: float, delta: float, low: float, high: float
) -> float:
    """The largest parameter of one round at which delta is kept, on the safe side."""

    def log_delta(value: float) -> float:
        return math.log(max(analysis(at(value)).one_round(n_users, epsilon, None), 5e-324))

    return largest(log_delta, delta, low, high)
