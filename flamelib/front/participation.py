"""Random participation: clients decide by their own coins, and draw some of their own records; nobody knows who joined.

The document is Hasircioglu, Gunduz 2022.  Adjacency: one record is added or removed.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from flamelib.accounting.sampling.rounds import dominated_rounds, participation_rounds
from flamelib.accounting.sampling.secret_participation import (
    participation_noise,
    random_participation,
    random_participation_add,
)
from flamelib.core.arrays import Reals
from flamelib.core.guarantees import Adjacency, RestsOn
from flamelib.core.search import close_below
from flamelib.core.vocabulary import DomainError
from flamelib.front import questions
from flamelib.front.results import Calibrated, Guarantee, guarantee
from flamelib.front.shuffled import calibrated
from flamelib.protocols.participation import Participation, run

# Noise is sought between these multiples of the clipping norm.
QUIETEST, LOUDEST = 1e-3, 1e6
# The search ends when epsilon is within this of the one asked for, relative.
NEAR = 1e-4


def _public(protocol: Participation) -> tuple[float, float, int, float, float]:
    p = protocol
    return p.participation_rate, p.record_rate, p.n_records, p.noise_std, p.clip_norm


def _account(protocol: Participation, delta: float | None, epsilon: float | None, rounds: int) -> Guarantee:
    given = _public(protocol)
    if rounds == 1:
        # Both directions, a record removed and one added.
        found = max(
            random_participation("outer", *given, epsilon, delta), random_participation_add(*given, epsilon, delta)
        )
    else:
        found = participation_rounds("outer", *given, rounds, epsilon, delta)
    return guarantee(found, RestsOn.PROVEN, epsilon, delta, Adjacency.ADD_REMOVE)


def _lower(protocol: Participation, delta: float | None, epsilon: float | None, rounds: int) -> float:
    given = _public(protocol)
    return participation_rounds("outer", *given, rounds, epsilon, delta, side="lower")


def _calibrate(protocol: Participation, epsilon: float, delta: float, rounds: int, over: str | None) -> Calibrated:
    if over not in (None, "noise_std"):
        raise DomainError(f"over must be noise_std, got {over!r}")
    rates = protocol.participation_rate, protocol.record_rate, protocol.n_records
    if rounds == 1:
        value = participation_noise("outer", *rates, protocol.clip_norm, epsilon, delta)
    else:
        value = protocol.clip_norm / close_below(
            lambda part: dominated_rounds("outer", *_public(_with(protocol, part)), rounds, None, delta),
            epsilon, 1 / LOUDEST, 1 / QUIETEST, NEAR, "epsilon",
        )  # fmt: skip

    def at(noise_std: float) -> Participation:
        return replace(protocol, noise_std=noise_std)

    value = max(value, QUIETEST * protocol.clip_norm)
    return calibrated("noise_std", at, value, epsilon, delta, rounds, rises=False)


def _with(protocol: Participation, part: float) -> Participation:
    """The protocol whose noise has the clipping norm divided by this number as its standard deviation."""
    return replace(protocol, noise_std=protocol.clip_norm / part)


def _run(protocol: Participation, values: Sequence[ArrayLike], rng: np.random.Generator) -> Reals:
    return run(protocol, values, rng)


questions.answers(Participation, account=_account, lower=_lower, calibrate=_calibrate, run=_run, view=_run)
