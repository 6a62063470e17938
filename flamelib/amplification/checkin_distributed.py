r"""Distributed check-in: clients decide by themselves whether to take part, and their Gaussian noise adds up.

Adjacency: one client's record is replaced; the bounds hold in both directions, for a client that may take part in every
round.  Trust: the server, and whoever else looks, sees the sum of a round and how many sent, not who they are (secure
aggregation over an anonymous channel); every participant adds its own noise as told.  What dominates a round, and the
proof, stand in :mod:`flamelib.amplification.checkin_losses`: a pair of laws that covers both directions at once, so
that the bounds hold for adaptive training.  Beside the worse direction of the pair that occurs, this costs some 3 % of
epsilon in the document's settings.

A client who has checked in may drop out before it sends; with it goes its noise, and the number of senders is what is
seen.  With a known chance of that, the same for all, the rate is :func:`effective_rate`.  Where only a bound is known,
``dropout`` makes the bounds hold for every smaller chance as well, changing as it likes from round to round.  Leaving
drop-outs out of account is no bound: fewer senders bring less noise.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flamelib.amplification.checkin_losses import counted, distributed_cells, occurring_cells
from flamelib.amplification.checkin_renyi import distributed_renyi_epsilon
from flamelib.amplification.gaussian_mechanism import analytic_noise_std
from flamelib.core.guarantees import Certified, Gives
from flamelib.core.logspace import probability
from flamelib.core.search import smallest_epsilon
from flamelib.core.statements import states
from flamelib.core.vocabulary import DomainError, check
from flamelib.loss_cells import Parts, composed, composed_below
from flamelib.loss_grids import both_orders

ROUTES = ("thm-4", "eq-11", "rdp-exact", "pld-exact", "pld")
MANY = 2**15
CLOSE = 1e-3
GROUPED = 1e-4
FARTHEST = 21.0
STEPS = 60
MOST_PARTS = 64


def _gives(arguments: Mapping[str, Any]) -> Gives:
    """What occurs need not be the worst that may occur, but in a single round."""
    return Gives.VALUE if arguments.get("route") == "pld-exact" and arguments.get("rounds") != 1 else Gives.UPPER


@states(
    "checkin",
    "distributed",
    item="Section 4, Theorem 4 and Equation 11, composed over rounds; and the exact pair",
    gives=_gives,
    words={"route": ROUTES},
)
def distributed(
    n_users: int, checkin_rate: float, noise_std: float, rounds: int, delta: float, route: str
) -> Certified:
    """Epsilon after all rounds of distributed check-in with Gaussian noise (upper; ``pld-exact`` a value).

    Parameters
    ----------
    n_users : int, at least 2
    checkin_rate : float in [0, 1]
        Chance that a client sends in a round.
    noise_std : float, positive
        Standard deviation of each client's own noise; its record has norm at most 1.
    rounds : int, at least 1
    delta : float in [0, 1]
        Of the whole.
    route : str
        ``thm-4``, ``eq-11``: Rényi bounds of the document, with the true inner rate; ``rdp-exact``: the Rényi
        divergence of the pair of data sets that is the worst as far as is known (for moments that is not proven).
        By privacy losses: ``pld-exact``, the records (-1, ..., -1, +1) against (-1, ..., -1) in every
        round, the worse direction, rounded up: the worst records of one round, but no bound for all records of many;
        ``pld``, which is one: :func:`distributed_rounds`.

    Source: Liew, Hasegawa, Takahashi 2022, Section 4.

    Examples
    --------
    >>> [f"{distributed(200, 0.1, 1.0, 100, 1e-6, route):.3f}" for route in ("pld-exact", "pld")]
    ['2.309', '2.476']
    """
    if route == "pld" or (route == "pld-exact" and rounds == 1):
        return distributed_rounds(n_users, checkin_rate, noise_std, rounds, delta=delta)
    if route == "pld-exact":
        return _composed(
            [(distributed_cells(n_users, checkin_rate, noise_std), rounds)] * bool(checkin_rate), None, delta
        )
    return distributed_renyi_epsilon(n_users, checkin_rate, noise_std, rounds, delta, route)


def distributed_rounds(
    n_users: int,
    checkin_rate: float,
    noise_std: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
    dropout: float = 0.0,
) -> Certified:
    """Guarantee after ``rounds`` rounds, whatever is sent in the light of earlier rounds (upper, both directions).

    Parameters
    ----------
    n_users, checkin_rate, noise_std, rounds
        As for :func:`distributed`.
    epsilon, delta : float
        Exactly one, of the whole; the answer is the other one.
    dropout : float in [0, 1)
        Those who check in fail to send with this chance *at most*, the same for all.

    Returns
    -------
    Certified
        ``uncertainty`` estimates what grids add; it is on the safe side.

    Examples
    --------
    >>> f"{distributed_rounds(200, 0.1, 1.0, 1, epsilon=0.5):.4e}"
    '9.8445e-08'
    >>> f"{distributed_rounds(600_000, 1e-3, 1.0, 1000, delta=1e-8):.4f}"
    '0.0111'
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, dropout=dropout)
    lowest = effective_rate(checkin_rate, dropout)
    if given["rounds"] > 1:
        return distributed_schedule(n_users, [(checkin_rate, rounds)], noise_std, epsilon, delta, dropout)
    _check_rest(noise_std, epsilon, delta)
    found = counted(given["n_users"], lowest, given["checkin_rate"], noise_std, MANY)
    if checkin_rate == 0:
        return Certified(0.0, 0.0)
    if delta is None:
        value = probability(found.log_delta(float(epsilon or 0)))
        return Certified(value, GROUPED * value)
    value = smallest_epsilon(found.log_delta, delta, math.inf)
    return Certified(value, GROUPED * value if math.isfinite(value) else 0.0)


def distributed_schedule(
    n_users: int,
    schedule: Sequence[tuple[float, int]],
    noise_std: float,
    epsilon: float | None = None,
    delta: float | None = None,
    dropout: float = 0.0,
) -> Certified:
    """Guarantee where the rate changes over time (upper, both directions).

    Parameters
    ----------
    schedule : sequence of (float in [0, 1], int of at least 1)
        Check-in rates, each with its number of rounds; at most 64.  The order does not matter.
    n_users, noise_std, epsilon, delta, dropout
        As for :func:`distributed_rounds`.

    Examples
    --------
    >>> f"{distributed_schedule(200, [(0.1, 50), (0.05, 50)], 1.0, delta=1e-6):.3f}"
    '2.261'
    """
    if not 1 <= len(schedule) <= MOST_PARTS:
        raise DomainError(f"schedule must hold 1 to {MOST_PARTS} rates with their rounds, got {len(schedule)}")
    parts = [tuple(check(checkin_rate=rate, rounds=rounds).values()) for rate, rounds in schedule]
    n_users = check(n_users=n_users)["n_users"]
    _check_rest(noise_std, epsilon, delta)
    cells = [
        (both_orders(distributed_cells(n_users, rate, noise_std, effective_rate(rate, dropout))), rounds)
        for rate, rounds in parts
        if rate > 0
    ]
    return _composed(cells, epsilon, delta)


def _composed(cells: Parts, epsilon: float | None, delta: float | None) -> Certified:
    """Rounds in which somebody may send; losses have no largest one."""
    if not cells or delta == 0:
        return Certified(math.inf if cells else 0.0, 0.0)
    if all(
        float((one.base + one.gain)[np.isfinite(one.high)].sum()) < GROUPED for one, _ in cells
    ):  # hardly any noise, and hardly anybody away
        return Certified(1.0, GROUPED) if delta is None else Certified(math.inf if delta < 1 else 0.0, 0.0)
    return composed(cells, epsilon, delta)


def distributed_rounds_lower(
    n_users: int,
    checkin_rate: float,
    noise_std: float,
    rounds: int,
    epsilon: float | None = None,
    delta: float | None = None,
) -> float:
    """What ``rounds`` rounds cost at least, by records that are all alike but for one opposite (lower).

    Parameters
    ----------
    n_users, checkin_rate, noise_std, rounds, epsilon, delta
        As for :func:`distributed_rounds`.

    Examples
    --------
    >>> f"{distributed_rounds_lower(600_000, 1e-3, 1.0, 1000, delta=1e-8):.4f}"
    '0.0108'
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds)
    _check_rest(noise_std, epsilon, delta)
    cells = occurring_cells(given["n_users"], given["checkin_rate"], noise_std)
    return composed_below([(cells, given["rounds"])], epsilon, delta)


def effective_rate(checkin_rate: float, dropout: float) -> float:
    """The rate at which clients send, if those who check in drop out with a known chance (a value).

    Examples
    --------
    >>> effective_rate(0.5, 0.5)
    0.25
    """
    given = check(checkin_rate=checkin_rate, dropout=dropout)
    return float(given["checkin_rate"] * (1 - given["dropout"]))


def distributed_noise(
    n_users: int, checkin_rate: float, rounds: int, epsilon: float, delta: float, dropout: float = 0.0
) -> float:
    """Least noise of each client that gives (epsilon, delta): never too small, about a thousandth too large.

    :func:`distributed_rounds` with the answer and ``delta`` gives at most ``epsilon``.

    Parameters
    ----------
    n_users, checkin_rate, rounds, dropout
        As for :func:`distributed_rounds`.
    epsilon : float, above 0
    delta : float in (0, 1)

    Returns
    -------
    float
        Standard deviation; ``inf`` where none will do, 0 where none is needed.

    Examples
    --------
    >>> noise = distributed_noise(200, 0.1, 100, 1.0, 1e-6)
    >>> bool(0.999 < distributed_rounds(200, 0.1, noise, 100, delta=1e-6) <= 1)
    True
    """
    given = check(n_users=n_users, checkin_rate=checkin_rate, rounds=rounds, epsilon=epsilon, delta=delta)
    if given["epsilon"] == 0 or not 0 < given["delta"] < 1:
        raise DomainError(f"epsilon must be above 0 and delta in (0, 1) for Gaussian noise, got {epsilon} and {delta}")
    if checkin_rate * rounds <= delta:
        return 0.0

    def log_excess(noise: float) -> float:
        found = distributed_rounds(n_users, checkin_rate, noise, rounds, delta=delta, dropout=dropout)
        return math.log(max(found, 1e-300) / epsilon)

    return _least(log_excess, 2 * math.sqrt(rounds * checkin_rate / n_users) * analytic_noise_std(1.0, epsilon, delta))


def _least(log_excess: Callable[[float], float], guess: float) -> float:
    """Least argument found at which a function that falls about like 1/x has a logarithm of at most 0."""
    short, enough, trial, slope = -math.inf, math.inf, math.log(guess), -1.0
    last: tuple[float, float] | None = None
    for _ in range(STEPS):
        value = log_excess(math.exp(trial))
        short, enough = (trial, enough) if value > 0 else (short, trial)
        if enough - short <= CLOSE or abs(trial) > FARTHEST:
            break
        if last is not None and math.isfinite(value - last[1]) and value != last[1]:
            slope = min((value - last[1]) / (trial - last[0]), -0.01)
        last = (trial, value) if math.isfinite(value) else None
        # Aimed a little to the side on which nothing is near yet.
        aim = trial - value / slope
        aim += 0.4 * CLOSE if enough - aim > CLOSE / 2 else -0.4 * CLOSE
        inside = short < aim < enough and abs(aim - trial) < 3
        trial = aim if inside else _halfway(short, enough, trial)
    return math.exp(enough)


def _halfway(short: float, enough: float, here: float) -> float:
    """The middle of the bracket, or a step to its open side."""
    if math.isinf(short) or math.isinf(enough):
        return here + (2.0 if math.isinf(enough) else -2.0)
    return (short + enough) / 2


def _check_rest(noise_std: float, epsilon: float | None, delta: float | None) -> None:
    if (epsilon is None) == (delta is None):
        raise DomainError("exactly one of epsilon and delta must be given")
    check(noise_std=noise_std, **({"epsilon": epsilon} if delta is None else {"delta": delta}))
