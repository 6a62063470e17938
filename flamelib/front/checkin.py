"""Self check-in: every user decides alone, with a coin of its own, whether it takes part in a round.

The document is Liew, Hasegawa, Takahashi 2022.  The messages of those who come are shuffled (:class:`Shuffled` inside),
or only their noisy sum is seen (:class:`Summed` inside).  Adjacency: one user's value is replaced.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.accounting.checkin.distributed_noise import (
    distributed_noise,
    distributed_rounds,
    distributed_rounds_lower,
)
from flamelib.accounting.shuffling.accountant import largest_budget
from flamelib.core.arrays import Reals, reals
from flamelib.core.guarantees import Certified, RestsOn
from flamelib.core.vocabulary import DomainError, check, honest, keep
from flamelib.front import questions
from flamelib.front.crowd import honest_part
from flamelib.front.results import Calibrated, Guarantee, guarantee
from flamelib.front.shuffled import (
    Shuffled,
    calibrated,
    fewest_users,
    guaranteed_survey,
    messages,
    rounds_account,
    rounds_lower,
    with_budget,
)
from flamelib.mechanisms.shuffling import shuffle
from flamelib.mechanisms.vectors import clipped_sum
from flamelib.protocols.checkin import draw_clients

# Where nobody is there, any noise keeps the budget.
LEAST_NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class Summed:
    """Every user adds Gaussian noise to a vector of norm at most 1, and only the sum of what is sent is seen.

    Parameters
    ----------
    n_users : int
        Users who may take part, at least 2.
    noise_std : float
        Standard deviation of each user's own noise in every coordinate, above 0.

    Examples
    --------
    >>> from flamelib import Checkin, account
    >>> account(Checkin(Summed(n_users=1000, noise_std=1.0), rate=0.01), delta=1e-6)
    (0.08517, 1e-06)-DP, replace-one; proven
    """

    n_users: int
    noise_std: float

    def __post_init__(self) -> None:
        keep(self, **check(n_users=self.n_users, noise_std=self.noise_std))


@dataclass(frozen=True, slots=True)
class Checkin:
    """A protocol whose users check in to a round by a coin of their own, which nobody else sees.

    Parameters
    ----------
    protocol : Shuffled or Summed
        The protocol that those who come take part in; its ``n_users`` counts all who might come.
    rate : float
        Probability that a user joins a round, in [0, 1].
    colluding : int
        Users who may tell an attacker all they know; the guarantee is that of the others, at least 2.
    dropout : float
        Probability that the message of a user who checked in is lost, in [0, 1), as secret as the check-in itself: what
        counts is ``rate * (1 - dropout)``.  Losses that an attacker may see belong to the ``Shuffled`` inside.

    Examples
    --------
    >>> from flamelib import KaryResponse, Shuffled, account
    >>> survey = Shuffled(KaryResponse(epsilon0=2.0, n_buckets=10), n_users=100_000)
    >>> account(Checkin(survey, rate=0.1), delta=1e-8, rounds=100)
    (0.1027, 1e-08)-DP, replace-one; proven
    """

    protocol: Shuffled | Summed
    rate: float
    colluding: int = 0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.protocol, Shuffled | Summed):
            raise DomainError(f"protocol must be Shuffled or Summed, got {self.protocol!r}")
        rate = float(check(checkin_rate=self.rate)["checkin_rate"])
        keep(self, rate=rate, **check(colluding=self.colluding, dropout=self.dropout))
        honest(self.n_users, self.colluding + getattr(self.protocol, "colluding", 0))

    @property
    def n_users(self) -> int:
        """How many users might join."""
        return self.protocol.n_users

    @property
    def effective_rate(self) -> float:
        """Probability that a user's message arrives."""
        return self.rate * (1 - self.dropout) * (1 - getattr(self.protocol, "dropout", 0.0))


def _account(protocol: Checkin, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    protocol = honest_part(protocol)
    inner = protocol.protocol
    if isinstance(inner, Shuffled):
        return rounds_account(inner, protocol.rate, delta, epsilon, rounds)
    found = distributed_rounds(inner.n_users, protocol.rate, inner.noise_std, rounds, epsilon, delta)
    if delta and math.isinf(found):
        # Too far out for the grid of losses: an equal share of delta for each round, whose epsilons add.
        each = distributed_rounds(inner.n_users, protocol.rate, inner.noise_std, 1, None, delta / rounds)
        found = Certified(rounds * each, rounds * each.uncertainty)
    return guarantee(found, RestsOn.PROVEN, epsilon, delta)


def _lower(protocol: Checkin, delta: float | None, epsilon: float | None, rounds: int) -> float:
    protocol = honest_part(protocol)
    inner = protocol.protocol
    if isinstance(inner, Shuffled):
        return rounds_lower(inner, protocol.rate, delta, epsilon, rounds)
    return distributed_rounds_lower(inner.n_users, protocol.rate, inner.noise_std, rounds, epsilon, delta)


def _calibrate(protocol: Checkin, epsilon: float, delta: float, rounds: int, over: str | None) -> Calibrated:
    inner = protocol.protocol
    if over == "n_users":
        colluding = protocol.colluding + getattr(inner, "colluding", 0)
        return fewest_users(
            lambda n: replace(protocol, protocol=replace(inner, n_users=n)), colluding, epsilon, delta, rounds
        )
    if isinstance(inner, Summed):
        if over not in (None, "noise_std"):
            raise DomainError(f"over must be noise_std or n_users, got {over!r}")
        counted = honest_part(protocol)
        value = distributed_noise(counted.n_users, counted.rate, rounds, epsilon, delta) or LEAST_NOISE

        def with_noise(noise_std: float) -> Checkin:
            return replace(protocol, protocol=replace(inner, noise_std=noise_std))

        return calibrated("noise_std", with_noise, value, epsilon, delta, rounds, rises=False)
    if over not in (None, "epsilon0") or inner.randomizer.calibrated_parameter != "epsilon0":
        raise DomainError(f"over must be epsilon0 (of k-ary, Laplace or any randomizer) or n_users, got {over!r}")
    at = functools.partial(with_budget, inner.randomizer, "epsilon0")
    counted = honest_part(protocol)
    n_users, rest = guaranteed_survey(counted.protocol, rounds, delta)
    value = largest_budget(at, n_users, counted.rate, rounds, epsilon, rest)

    def with_epsilon0(epsilon0: float) -> Checkin:
        return replace(protocol, protocol=replace(inner, randomizer=at(epsilon0)))

    return calibrated("epsilon0", with_epsilon0, value, epsilon, delta, rounds)


def _view(protocol: Checkin, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    """What is left after shuffling, or the one sum, of those who came."""
    try:
        held = np.asarray(values)
    except ValueError:
        raise DomainError("values must be entries of one shape, one for each user") from None
    if held.shape[:1] != (protocol.n_users,):
        raise DomainError(f"values must have one entry for each of {protocol.n_users} users, got shape {held.shape}")
    for_coins, for_users, for_shuffler = rng.spawn(3)
    there = held[draw_clients(protocol.effective_rate, protocol.n_users, for_coins)]
    if isinstance(protocol.protocol, Shuffled):
        return shuffle(messages(protocol.protocol.randomizer, there, for_users), for_shuffler)
    rows = reals("values", there).reshape(len(there), math.prod(held.shape[1:]))
    # The sum of so many users' own noise.
    noise = protocol.protocol.noise_std * math.sqrt(len(rows)) * for_users.standard_normal(rows.shape[1])
    return np.asarray(clipped_sum(rows, 1.0) + noise)


def _run(protocol: Checkin, values: ArrayLike, rng: np.random.Generator) -> Reals | float:
    seen, rate = _view(protocol, values, rng), protocol.effective_rate or 1.0
    if isinstance(protocol.protocol, Summed):
        return np.asarray(seen) / rate
    randomizer: Any = protocol.protocol.randomizer
    estimate: Reals | float = randomizer.estimate(seen)
    return estimate / rate


questions.answers(Checkin, account=_account, lower=_lower, calibrate=_calibrate, run=_run, view=_view)
