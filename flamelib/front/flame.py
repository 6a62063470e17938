"""FLAME: a vector from each user, a shuffled and padded bag of messages for each coordinate.

The document is Liu, Cao, Chen, Guo, Yoshikawa 2021.  Adjacency: one user's whole vector is replaced.  A user who takes
part in several rounds changes that many times as many coordinates, and is accounted for accordingly.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flamelib.accounting.coordinates import counting, likelihood_weighted, vector_bounds
from flamelib.accounting.coordinates.fixed_size_subsets import Subsets
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import RestsOn
from flamelib.core.profiles import LaplaceProfile
from flamelib.core.search import close_below
from flamelib.core.vocabulary import DomainError
from flamelib.front import questions
from flamelib.front.results import Calibrated, Guarantee, guarantee
from flamelib.front.shuffled import calibrated
from flamelib.protocols import flame
from flamelib.protocols.flame import FlameDouble, FlameSimple, FlameTopk

Protocol = FlameSimple | FlameDouble | FlameTopk
# No delta below exp(-RAREST) is looked for.
RAREST = 690.0
# Nor one so near to 1 that it promises nothing.
LEAST_SIZE = 1e-9
# Local budgets between which one is sought.
MILDEST, HARDEST = 1e-6, 30.0
# How much a local budget is raised to see how fast epsilon rises.
SLIGHT = 1.01
# Searches end when epsilon is within this of the one asked for, relative; roughly where it promises nothing any more.
NEAR, ROUGH, HOPELESS = 1e-4, 1e-2, 20.0


def _local(protocol: Protocol) -> float:
    if not isinstance(protocol.randomizer, LaplaceProfile):
        raise DomainError(f"randomizer must be LaplaceNoise to be accounted for, got {protocol.randomizer!r}")
    return protocol.randomizer.epsilon0


@functools.lru_cache(maxsize=4)
def _epsilon(protocol: Protocol, delta: float, rounds: int) -> float:
    """The smallest epsilon that can be certified for a whole vector, all rounds together."""
    epsilon0, size = _local(protocol), protocol.dimension * rounds
    public = (size, protocol.n_users, epsilon0, delta, "blanket", "sound")
    if isinstance(protocol, FlameSimple):
        return vector_bounds.account("simple", *public)
    shape = (protocol.kept * rounds, protocol.padded)
    if isinstance(protocol, FlameTopk):
        return vector_bounds.account("topk", *public, *shape)
    return vector_bounds.account("double", *public, *shape, inclusion=protocol.inclusion, overflow="drop")


def _gaussian(protocol: Protocol, delta: float, rounds: int) -> float:
    """About this epsilon, at once: a guess from which to search.  Messages that are no blanket hide nothing."""
    mass = protocol.randomizer.mass
    public = (protocol.dimension * rounds, max(round(protocol.n_users * mass), 2), _local(protocol), delta)
    if isinstance(protocol, FlameSimple):
        return vector_bounds.central_limit("simple", *public)
    share = min(protocol.n_users * protocol.kept / protocol.dimension / protocol.padded, 1.0)
    name = "topk" if isinstance(protocol, FlameTopk) else "double"
    if isinstance(protocol, FlameDouble) and protocol.inclusion == "exact":
        shape = (protocol.dimension * rounds, int(protocol.kept) * rounds, protocol.n_users, protocol.padded)
        if not Subsets(protocol.randomizer, *shape, drop=True).room(delta)[0]:
            name = "topk"  # nothing hides the choice: its coordinates count one by one
    hiding = max(round(protocol.padded * (1 - (share if name == "double" else 1.0) * (1 - mass))), 2)
    return vector_bounds.central_limit(name, *public, protocol.kept * rounds, hiding)


def _least_delta(epsilon_at: Callable[[float], float], epsilon: float) -> float:
    """The smallest delta at which epsilon is kept, on the safe side."""
    if epsilon_at(math.exp(-LEAST_SIZE)) > epsilon:
        return 1.0
    rarity = close_below(lambda size: epsilon_at(math.exp(-size)), epsilon, LEAST_SIZE, RAREST, NEAR)
    return min(math.nextafter(math.exp(-rarity), 2), 1.0)


def _account(protocol: Protocol, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    # Bags of SS-Double may overflow, and keep a part of their reports at random: that is counted.
    condition = vector_bounds.NO_OVERFLOW if isinstance(protocol, FlameTopk) else ""
    if delta is not None:
        found = _epsilon(protocol, delta, rounds)
    else:
        found = _least_delta(lambda at: _epsilon(protocol, at, rounds), float(epsilon or 0.0))
    return guarantee(found, RestsOn.PROVEN, epsilon, delta, condition=condition)


def _lower(protocol: Protocol, delta: float | None, epsilon: float | None, rounds: int) -> float:
    epsilon0, size = _local(protocol), protocol.dimension * rounds
    if isinstance(protocol, FlameSimple):
        return counting.simple_lower(size, protocol.n_users, epsilon0, epsilon, delta)
    if isinstance(protocol, FlameTopk):
        given = (protocol.kept * rounds, protocol.padded, epsilon0, epsilon, delta)
        return likelihood_weighted.weighed_lower(protocol.n_users, *given)
    if protocol.inclusion == "exact":
        shape = (size, int(protocol.kept) * rounds, protocol.padded)
        return counting.exactly_lower(protocol.n_users, *shape, epsilon0, epsilon, delta)
    rate = protocol.kept / protocol.dimension
    return counting.double_lower(size, rate, protocol.padded, epsilon0, epsilon, delta, n_users=protocol.n_users)


def _calibrate(protocol: Protocol, epsilon: float, delta: float, rounds: int, over: str | None) -> Calibrated:
    if over not in (None, "epsilon0"):
        raise DomainError(f"over must be epsilon0, got {over!r}")

    def kept(epsilon0: float) -> float:
        return _epsilon(_with(protocol, epsilon0), delta, rounds)

    def about(epsilon0: float) -> float:
        return _gaussian(_with(protocol, epsilon0), delta, rounds)

    guess = close_below(about, epsilon, MILDEST, HARDEST, 0.01) if about(MILDEST) <= epsilon else MILDEST
    nearby = about(guess) and about(SLIGHT * guess)
    slope = math.log(nearby / about(guess)) / math.log(SLIGHT) if nearby else 1.0
    near = NEAR if epsilon <= HOPELESS else ROUGH
    value = close_below(kept, epsilon, MILDEST, HARDEST, near, "epsilon", start=guess, slope=slope)
    return calibrated("epsilon0", functools.partial(_with, protocol), value, epsilon, delta, rounds)


def _with(protocol: Protocol, epsilon0: float) -> Protocol:
    return replace(protocol, randomizer=replace(protocol.randomizer, epsilon0=epsilon0))


def _run(protocol: Protocol, values: ArrayLike, rng: np.random.Generator) -> Reals:
    """The estimated mean update, shape (dimension,)."""
    return flame.run(protocol, values, rng).estimate


def _view(protocol: Protocol, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    """The bags that the analyzer opens, shape (dimension, padded)."""
    for_users, for_shuffler = rng.spawn(2)
    return flame.shuffler(protocol, flame.user(protocol, values, for_users), for_shuffler).bags


questions.answers(
    FlameSimple, FlameDouble, FlameTopk, account=_account, lower=_lower, calibrate=_calibrate, run=_run, view=_view
)
