"""Cloak aggregation: every user cuts its value into random shares, which are shuffled and added up.

The document is Ghazi, Pagh, Velingker 2019 (US20220374542A1).  With noise in the sum, neighbours differ in one user's
value; without noise, the guarantee is for data sets of equal sum only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from flamelib.accounting.noise.whole_numbers import LARGEST_VARIANCE
from flamelib.accounting.splitting.parameter_search import Plan, plans
from flamelib.core.guarantees import Adjacency, RestsOn
from flamelib.core.search import largest
from flamelib.core.vocabulary import DomainError, check, keep
from flamelib.front import questions
from flamelib.front.results import Calibrated, Guarantee, guarantee
from flamelib.front.shuffled import calibrated
from flamelib.mechanisms.integers.modular import Residues
from flamelib.mechanisms.integers.noise import PolyaShare, SkellamShare, TruncatedLaplace
from flamelib.mechanisms.integers.randomness import Simulation
from flamelib.protocols import cloak

# No delta below exp(-RAREST) is looked for.
RAREST = 690.0
# Decays of noise between which one is sought, as distances from 1.
LOUDEST, QUIETEST = 1e-9, 1 - 1e-9


@dataclass(frozen=True, slots=True)
class Cloak(cloak.CloakProtocol):
    """A private sum in shares, with parameters of your own or, by :meth:`plan`, the cheapest ones for a budget.

    Parameters
    ----------
    n_users, modulus, scale, n_messages : int
        Number of users, modulus of the shares (above ``n_users * scale``), grid steps of a value in [0, 1], and shares
        of each value.
    rounding : {"floor", "random", "grid"}
    noise : law of whole numbers, optional
        Law of what a user adds before it splits its value, such as ``PolyaShare(n_users, decay)``.
    noise_rate : float
        Probability that a user adds noise at all, in (0, 1].
    colluding : int
        Users who may tell an attacker all they know; the guarantee is that of the others.  Those who may drop out
        before they send count among them: they take their noise with them.

    Examples
    --------
    >>> from flamelib import account
    >>> account(Cloak.plan(n_users=1000, epsilon=1.0, delta=1e-6, error=1.5), delta=1e-6)
    (1, 1e-06)-DP, replace-one; proven
    """

    colluding: int = 0

    def __post_init__(self) -> None:
        cloak.CloakProtocol.__post_init__(self)
        keep(self, **check(colluding=self.colluding))

    @classmethod
    def plan(cls, n_users: int, epsilon: float, delta: float, error: float, colluding: int = 0) -> Self:
        """The cheapest protocol that hides one user's value at this budget with this mean error of the sum.

        Parameters
        ----------
        n_users : int
        epsilon, delta : float
            The budget, for the change of one user's value.
        error : float
            Bound on the mean absolute error of the sum of values in [0, 1].
        colluding : int
            Users who may tell an attacker all they know.
        """
        found = [plan for plan in plans(n_users, epsilon, delta, error, colluding) if plan.noise != "none"]
        if not found:
            raise DomainError(f"error must be one that some plan reaches with (epsilon, delta) here, got {error!r}")
        best = found[0]
        noise = _law(best, n_users)
        shape = (n_users, best.modulus, best.scale, best.n_messages, best.rounding)
        return cls(*shape, noise, best.noise_rate, colluding)


def _law(plan: Plan, n_users: int) -> cloak.Noise:
    if plan.noise == "truncated Laplace":
        return TruncatedLaplace(plan.modulus, plan.decay)
    return PolyaShare(n_users - plan.colluding, plan.decay)


def _rests_on(protocol: Cloak) -> RestsOn:
    """Skellam noise too large to be summed is accounted for by its Rényi divergence (Agarwal, Kairouz, Liu 2021)."""
    noise = protocol.noise
    if not isinstance(noise, SkellamShare):
        return RestsOn.PROVEN
    honest = protocol.n_users - protocol.colluding
    return RestsOn.CITED if noise.variance * honest / noise.n_users > LARGEST_VARIANCE else RestsOn.PROVEN


def _once(protocol: Cloak, delta: float) -> float:
    """Epsilon for the change of one user's value; infinite where the shares alone tell more than delta."""
    if delta == 1:
        return 0.0
    try:
        one = cloak.account(protocol, delta, protocol.colluding).one_user
    except DomainError:
        return math.inf
    return one.epsilon if one else math.inf


def _least_delta(epsilon_at: Callable[[float], float], epsilon: float) -> float:
    if epsilon_at(0.5) > epsilon:
        return 1.0

    def log_epsilon(size: float) -> float:
        return math.log(max(epsilon_at(math.exp(-size)), 5e-324))

    return min(math.nextafter(math.exp(-largest(log_epsilon, epsilon, math.log(2), RAREST)), 2), 1.0)


def _account(protocol: Cloak, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    if protocol.noise is None:
        return _equal_sums(protocol, delta, epsilon, rounds)
    # Rounds add up: a share of the budget for each.
    if delta is not None:
        found = rounds * _once(protocol, delta / rounds)
    else:
        found = rounds * _least_delta(lambda at: _once(protocol, at), float(epsilon or 0.0) / rounds)
    return guarantee(found, _rests_on(protocol), epsilon, delta)


def _equal_sums(protocol: Cloak, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    """Without noise: data sets of equal scaled sums, by the distance of what the shuffler sends."""
    alike = cloak.account(protocol, 0.5, protocol.colluding).equal_sums
    found = min(rounds * alike.delta, 1.0) if alike else 1.0
    if delta is not None:
        found = 0.0 if found <= delta else math.inf
    return guarantee(found, RestsOn.PROVEN, epsilon, delta, Adjacency.SUM_PRESERVING)


def _lower(protocol: Cloak, delta: float | None, epsilon: float | None, rounds: int) -> float:
    """Nothing is claimed: what is known from below of shares holds in small worlds only."""
    return 0.0


def _calibrate(protocol: Cloak, epsilon: float, delta: float, rounds: int, over: str | None) -> Calibrated:
    noise = protocol.noise
    if over not in (None, "decay") or not isinstance(noise, PolyaShare | TruncatedLaplace):
        raise DomainError(f"over must be decay, of Pólya or truncated Laplace noise, got {over!r} with noise {noise!r}")

    def log_epsilon(distance: float) -> float:
        found = rounds * _once(_with(protocol, 1 - distance), delta / rounds)
        return math.log(max(found, 5e-324))

    distance = largest(log_epsilon, epsilon, LOUDEST, QUIETEST)
    found = calibrated("decay", lambda apart: _with(protocol, 1 - apart), distance, epsilon, delta, rounds)
    return replace(found, value=1 - found.value)


def _with(protocol: Cloak, decay: float) -> Cloak:
    return replace(protocol, noise=replace(protocol.noise, decay=decay))  # type: ignore[type-var]


def _view(protocol: Cloak, values: ArrayLike, rng: np.random.Generator) -> Residues:
    """All shares of all users, shuffled."""
    randomness = Simulation(rng)
    return cloak.shuffler(cloak.pool(cloak.encode(protocol, values, randomness)), randomness)


def _run(protocol: Cloak, values: ArrayLike, rng: np.random.Generator) -> float:
    """The estimated sum of the values; with noise as it is, without bias, so that it may lie outside [0, n_users]."""
    if protocol.noise is None:
        return cloak.run(protocol, values, Simulation(rng))
    return float(cloak.analyze_centred(protocol, cloak.total(protocol, _view(protocol, values, rng))))


questions.answers(Cloak, searched=True, account=_account, lower=_lower, calibrate=_calibrate, run=_run, view=_view)
