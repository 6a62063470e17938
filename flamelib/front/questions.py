"""The questions: what a protocol guarantees, between which bounds, which parameter keeps a budget, and one run of it.

Each is one function, and the type of the protocol's record says which file of this folder answers it.  Every check of
an argument happens before any work.  This module needs the standard library only; the code that answers is loaded with
the record.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from flamelib.core.guarantees import CROSSED, RestsOn, bracketed_ends
from flamelib.core.vocabulary import DomainError, check, one_budget
from flamelib.front.results import Bounds, Calibrated, Guarantee
from flamelib.front.trade_off import Point, Profile, gaussian_deltas

# Of a privacy profile: points between epsilon 0 and that of the first of these deltas at which it is finite.
PROFILE_STEPS, PROFILE_HALVINGS, PROFILE_DELTAS = 16, 6, (1e-12, 1e-9, 1e-6, 1e-3)
_KNOWN = "Shuffled, Checkin, Rounds, Participation, FlameSimple, FlameDouble, FlameTopk, Cloak"
# Type of a record to the functions of its file by question; each file of this folder adds its own.
_ANSWERS: dict[type, dict[str, Callable[..., Any]]] = {}
_ASKED_BY_DELTA: set[type] = set()


def account(protocol: Any, *, delta: float | None = None, epsilon: float | None = None, rounds: int = 1) -> Guarantee:
    """What a protocol guarantees: the smallest epsilon at ``delta``, or delta at ``epsilon``, that can be certified.

    The answer is never too small: it is an upper bound for every pair of neighbouring data sets, also where data are
    chosen in the light of earlier rounds.  It says for which adjacency it holds, and what it rests on.

    Parameters
    ----------
    protocol : record
        ``Shuffled``, ``Checkin``, ``Rounds`` of them, ``Participation``, ``FlameSimple``, ``FlameDouble``,
        ``FlameTopk`` or ``Cloak``.
    delta, epsilon : float
        Exactly one of them: delta in [0, 1], epsilon at least 0.  The answer has both.
    rounds : int
        How often the protocol is run on the same people, at least 1.

    Returns
    -------
    Guarantee
        ``.epsilon``, ``.delta``, ``.adjacency``, ``.rests_on``, ``.uncertainty``; and what an attacker can reach,
        ``.trade_off(alpha)``, ``.advantage``, ``.gdp``, for which the account is asked at more points.

    Raises
    ------
    DomainError
        If an argument lies outside its domain, before any work.

    Examples
    --------
    >>> from flamelib import KaryResponse, Shuffled
    >>> account(Shuffled(KaryResponse(epsilon0=2.0, n_buckets=10), n_users=100_000), delta=1e-8)
    (0.03074, 1e-08)-DP, replace-one; proven
    """
    given = _given(delta, epsilon, rounds)
    found: Guarantee = _ask("account", protocol, *given)
    return replace(found, profile=Profile(partial(_points, protocol, given[-1], found.epsilon, found.delta)))


def bounds(protocol: Any, *, delta: float | None = None, epsilon: float | None = None, rounds: int = 1) -> Bounds:
    """Two numbers between which the true epsilon (or, with ``epsilon`` given, the true delta) lies.

    The lower end is what explicit data sets lose, the upper end is that of :func:`account`.

    Parameters
    ----------
    protocol, delta, epsilon, rounds
        As for :func:`account`.

    Returns
    -------
    Bounds
        ``.lower`` and ``.upper``; ``lower, upper = bounds(...)`` works as well.  Should the certified ends contradict
        each other, which would be a fault of this library, it warns of it, and the bracket holds both ends with their
        uncertainty and is ``estimated``.

    Examples
    --------
    >>> from flamelib import KaryResponse, Shuffled
    >>> bounds(Shuffled(KaryResponse(epsilon0=2.0, n_buckets=10), n_users=100_000), delta=1e-8, rounds=100)
    epsilon between 0.3421 and 0.3422, replace-one; proven
    """
    given = _given(delta, epsilon, rounds)
    most: Guarantee = _ask("account", protocol, *given)
    asked = "delta" if delta is None else "epsilon"
    upper: float = getattr(most, asked)
    least = max(float(_ask("lower", protocol, *given)), 0.0)
    lower, upper, sure = bracketed_ends(least, upper, most.uncertainty, f"{protocol!r}")
    rests_on = most.rests_on if sure else RestsOn.ESTIMATED
    condition = "; ".join(filter(None, (most.condition, "" if sure else CROSSED)))
    return Bounds(lower, min(upper, 1.0) if asked == "delta" else upper, asked, most.adjacency, rests_on, condition)


def calibrate(protocol: Any, *, epsilon: float, delta: float, rounds: int = 1, over: str | None = None) -> Calibrated:
    """The value of one parameter that keeps a budget after all rounds, on the safe side; the others stay.

    Parameters
    ----------
    protocol : record
        As for :func:`account`; the value of the parameter that is sought is ignored.
    epsilon : float
        Above 0.
    delta : float
        In (0, 1).
    rounds : int
        At least 1.
    over : str, optional
        The parameter that is sought.  Left out, it is ``epsilon0`` (the largest) or ``noise_std`` (the smallest),
        whichever the protocol has; ``n_users`` asks for the smallest crowd, where more people help.

    Returns
    -------
    Calibrated
        The value under the parameter's own name, such as ``.epsilon0``; ``.protocol`` and ``.guarantee``.

    Examples
    --------
    >>> from flamelib import LaplaceNoise, Shuffled
    >>> calibrate(Shuffled(LaplaceNoise(1.0), n_users=10_000), epsilon=0.1, delta=1e-6)
    epsilon0 = 2.07644: (0.1, 1e-06)-DP, replace-one; proven
    """
    given = _given(delta, None, rounds)
    if not check(epsilon=epsilon)["epsilon"] > 0 or not 0 < given[0] < 1:  # type: ignore[operator]
        raise DomainError(f"epsilon must be above 0 and delta in (0, 1) for a budget, got {epsilon!r} and {delta!r}")
    found: Calibrated = _ask("calibrate", protocol, float(epsilon), float(delta), rounds, over)
    return found


def run(protocol: Any, values: Any, rng: Any) -> Any:
    """One run of a protocol: what its analyzer publishes about the values.

    Parameters
    ----------
    protocol : record
        As for :func:`account`.
    values : array_like
        The users' values: one number each for ``Shuffled``, ``Checkin`` and ``Cloak``, a row each for FLAME, a table
        of gradients each for ``Participation``.
    rng : numpy.random.Generator or int
        A generator, or the seed of one.  Every party gets a generator of its own, spawned from it.

    Examples
    --------
    >>> import numpy as np
    >>> from flamelib import KaryResponse, Shuffled
    >>> survey = Shuffled(KaryResponse(epsilon0=2.0, n_buckets=3), n_users=1000)
    >>> run(survey, np.arange(1000) % 3, np.random.default_rng(0)).round()
    array([342., 312., 346.])
    """
    return _ask("run", protocol, _unmasked(values), _generator(rng))


def view(protocol: Any, values: Any, rng: Any) -> Any:
    """One run of a protocol: what an observer sees behind the shuffler, or in the server's output."""
    return _ask("view", protocol, _unmasked(values), _generator(rng))


def _points(protocol: Any, rounds: int, epsilon: float, delta: float) -> list[Point]:
    """Certified points of the privacy profile, about equally far apart in epsilon."""

    def at_delta(delta: float) -> Point:
        return _ask("account", protocol, delta, None, rounds).epsilon, delta

    def at_epsilon(epsilon: float) -> Point:
        return epsilon, _ask("account", protocol, None, epsilon, rounds).delta

    last = next((found for found in map(at_delta, PROFILE_DELTAS) if found[0] < math.inf), (math.inf, 1.0))
    points = [(epsilon, delta), last]
    if 0 < last[0] < math.inf:
        points.append(at_epsilon(0.0))
        if type(protocol) in _ASKED_BY_DELTA:
            points += map(at_delta, gaussian_deltas(*last, PROFILE_STEPS))
        else:
            # Equal steps for a Gaussian shape; halves of the first for a narrow one with long tails.
            steps = [*range(1, PROFILE_STEPS), *(2.0**-halving for halving in range(1, PROFILE_HALVINGS + 1))]
            points += (at_epsilon(last[0] * step / PROFILE_STEPS) for step in steps)
    return points


def _unmasked(values: Any) -> Any:
    from flamelib.core.arrays import no_mask

    no_mask("values", values)
    return values


def _generator(rng: Any) -> Any:
    import numpy as np

    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(check(seed=rng)["seed"])


def _given(delta: float | None, epsilon: float | None, rounds: int) -> tuple[float | None, float | None, int]:
    checked = one_budget(epsilon, delta, rounds=rounds)
    return checked.get("delta"), checked.get("epsilon"), checked["rounds"]


def answers(*records: type, searched: bool = False, **functions: Callable[..., Any]) -> None:
    """Say what answers for records of these types: ``account``, ``lower``, ``calibrate``, ``run`` or ``view``.

    ``searched``: delta at an epsilon is found by asking for epsilon many times.
    """
    _ANSWERS.update(dict.fromkeys(records, functions))
    _ASKED_BY_DELTA.update(records if searched else ())


def _ask(question: str, protocol: Any, *given: Any) -> Any:
    if type(protocol) not in _ANSWERS:  # one that was unpickled, say, may have come without its file of this folder
        for module in ("shuffled", "checkin", "rounds", "participation", "flame", "cloak"):
            import_module(f"{__package__}.{module}")
    for kind in type(protocol).__mro__:
        if question in _ANSWERS.get(kind, {}):
            return _ANSWERS[kind][question](protocol, *given)
    raise DomainError(f"protocol must be one of {_KNOWN}, got {protocol!r}")
