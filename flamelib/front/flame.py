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
from flamelib.core.logspace import UNIT
from flamelib.core.profiles import LaplaceProfile
from flamelib.core.search import close_below
from flamelib.core.vocabulary import DomainError, honest
from flamelib.front import questions
from flamelib.front.crowd import guaranteed_crowd
from flamelib.front.results import Calibrated, Guarantee, guarantee
from flamelib.front.shuffled import calibrated
from flamelib.front.trade_off import Profile, gaussian_deltas
from flamelib.protocols import flame
from flamelib.protocols.flame import FlameDouble, FlameSimple, FlameTopk

Protocol = FlameSimple | FlameDouble | FlameTopk
# No delta below exp(-RAREST) is looked for.
RAREST = 690.0
# Nor one so near to 1 that it promises nothing.
LEAST_SIZE = 1e-9
# A delta near which the profile is looked at for total variation.
TV_DELTA = 1e-3
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
    epsilon0, size, sound = _local(protocol), protocol.dimension * rounds, ("blanket", "sound")
    if isinstance(protocol, FlameSimple):
        crowd = honest(protocol.n_users, protocol.colluding)
        counted, rest = guaranteed_crowd(crowd, protocol.dropout, rounds, delta)
        return vector_bounds.account("simple", size, counted, epsilon0, rest, *sound) if rest > 0 else size * epsilon0
    shape, public = (protocol.kept * rounds, protocol.padded), (size, protocol.n_users, epsilon0, delta, *sound)
    if isinstance(protocol, FlameTopk):
        # Dummies stand in for lost reports, and hide no less; of a bag, each colluding user knows one message at most.
        return vector_bounds.account("topk", *public, shape[0], honest(protocol.padded, protocol.colluding))
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
    if not epsilon:  # kept by no composition; total variation is bounded by every point of the profile
        typical = epsilon_at(TV_DELTA)
        nearby = gaussian_deltas(typical, TV_DELTA, 8) if typical else [TV_DELTA]
        return Profile(lambda: [(epsilon_at(delta), delta) for delta in nearby]).advantage
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
    if not isinstance(protocol, FlameDouble):
        return _lower_arrived(protocol, epsilon0, delta, epsilon, rounds)
    if protocol.inclusion == "exact":
        shape = (size, int(protocol.kept) * rounds, protocol.padded)
        return counting.exactly_lower(protocol.n_users, *shape, epsilon0, epsilon, delta)
    rate = protocol.kept / protocol.dimension
    return counting.double_lower(size, rate, protocol.padded, epsilon0, epsilon, delta, n_users=protocol.n_users)


def _lower_arrived(
    protocol: FlameSimple | FlameTopk, epsilon0: float, delta: float | None, epsilon: float | None, rounds: int
) -> float:
    """Of SS-Simple and SS-Topk, what is lost if the victim's reports arrive in every round."""
    arrives = (1 - protocol.dropout) ** rounds * (1 - 8 * rounds * UNIT * (protocol.dropout > 0))
    if delta is not None and delta >= arrives:
        return 0.0
    crowd = honest(protocol.n_users, protocol.colluding)
    asked = (epsilon0, epsilon, None if delta is None else delta / arrives)
    if isinstance(protocol, FlameSimple):
        # Messages of others who hold one half are as fair as dummies, or fewer.
        found = counting.simple_lower(protocol.dimension * rounds, crowd, *asked)
    else:
        # The weighted count is of data in which no bag has a dummy.
        full = 2 if protocol.dropout else crowd
        bag = honest(protocol.padded, protocol.colluding)
        found = likelihood_weighted.weighed_lower(full, protocol.kept * rounds, bag, *asked)
    return found if delta is not None else arrives * found


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
    if protocol.dropout:
        return flame.analyzer(protocol, _view(protocol, values, rng))[0] / (1 - protocol.dropout)
    return flame.run(protocol, values, rng).estimate


def _view(protocol: Protocol, values: ArrayLike, rng: np.random.Generator) -> NDArray[Any]:
    """The bags that the analyzer opens, shape (dimension, padded)."""
    for_users, for_shuffler = rng.spawn(2)
    sent = flame.user(protocol, values, for_users)
    if protocol.dropout:
        there = for_shuffler.random(protocol.n_users)[sent.senders] >= protocol.dropout
        sent = flame.Reports(sent.senders[there], sent.places[there], sent.messages[there])
    return flame.shuffler(protocol, sent, for_shuffler).bags


questions.answers(
    FlameSimple, FlameDouble, FlameTopk,
    searched=True, account=_account, lower=_lower, calibrate=_calibrate, run=_run, view=_view,
)  # fmt: skip
