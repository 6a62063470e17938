r"""Audits: run a protocol on two neighbouring data sets and certify that its epsilon cannot be smaller.

A protocol with (epsilon, delta)-differential privacy satisfies, for every event S of what is seen and neighbours
D, D',

.. math:: \Pr[M(D) \in S] \le e^\varepsilon \Pr[M(D') \in S] + \delta .

One half of the runs chooses the event, the other half bounds its two probabilities by Clopper and Pearson; the two
bounds hold together with the confidence asked for.  The answer is a *lower* bound on epsilon, whatever the statistic;
a poor statistic makes it small, never wrong.  An account that lies below it is wrong, or the code does not do what was
accounted for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from flamelib.core.arrays import Reals, reals
from flamelib.core.vocabulary import DomainError, check

Data = TypeVar("Data")
View = TypeVar("View")
_MOST_EVENTS = 512  # thresholds that are tried on each side


@dataclass(frozen=True, slots=True)
class Event:
    """Runs whose statistic lies at the threshold or beyond it, on one side."""

    threshold: float
    above: bool

    def holds(self, values: Reals) -> NDArray[np.bool_]:
        """Which of these statistics belong to the event."""
        return values >= self.threshold if self.above else values <= self.threshold

    def __str__(self) -> str:
        return f"statistic at {'least' if self.above else 'most'} {self.threshold:g}"


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    ``epsilon`` is a lower bound at ``delta``, at the stated confidence; 0 if nothing was shown.  The ``event`` was
    chosen by runs that are not counted, and held in ``hits`` of ``trials`` runs on the first and on the second data
    set; ``exchanged`` says that it is likelier on the second.
    """

    epsilon: float
    delta: float
    confidence: float
    event: Event
    hits: tuple[int, int]
    trials: int
    exchanged: bool

    def refutes(self, epsilon: float) -> bool:
        """Whether the protocol cannot have this epsilon at the audit's delta."""
        return self.epsilon > epsilon


def audit(
    protocol: Callable[[Data, np.random.Generator], View],
    neighbours: tuple[Data, Data],
    statistic: Callable[[View], float],
    trials: int,
    confidence: float = 0.95,
    *,
    delta: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Audit:
    """Certified lower bound on a protocol's epsilon, from runs on two neighbouring data sets.

    ``protocol`` makes of data and a generator what an observer sees, as a protocol's ``run`` with its record bound
    does; ``statistic`` makes of that a number, large or small where the first data set is likelier.  Whether the two
    data sets are neighbours is the caller's to know.  There are ``trials`` runs on *each* of them, of which half choose
    the event; the bound is valid with probability ``confidence`` over the runs.  Without ``rng`` the answer can be
    repeated.
    """
    trials, confidence, delta = check(trials=trials, confidence=confidence, delta=delta).values()
    if len(neighbours) != 2:
        raise DomainError(f"neighbours must be two data sets, got {len(neighbours)}")
    first, second = (
        reals("statistic", [statistic(protocol(data, own)) for own in generator.spawn(trials)])
        for data, generator in zip(neighbours, (rng or np.random.default_rng(0)).spawn(2), strict=True)
    )
    return certified(first, second, confidence, delta=delta)


def certified(first: ArrayLike, second: ArrayLike, confidence: float = 0.95, *, delta: float = 0.0) -> Audit:
    """Certified lower bound on epsilon from statistics of independent runs made elsewhere, many at once for instance.

    They stand in the order in which they were drawn: the first half chooses the event.
    """
    left, right = reals("first", first), reals("second", second)
    if left.shape != right.shape or left.ndim != 1:
        raise DomainError(f"first and second must be lists of one length, got shapes {left.shape} and {right.shape}")
    _, confidence, delta = check(trials=len(left), confidence=confidence, delta=delta).values()
    half = len(left) // 2
    event, exchanged = _chosen(left[:half], right[:half], confidence, delta)
    held = (left[half:], right[half:])
    hits = (int(event.holds(held[0]).sum()), int(event.holds(held[1]).sum()))
    likelier, other = reversed(hits) if exchanged else hits
    epsilon = float(_least_epsilon(np.array(likelier), np.array(other), len(held[0]), confidence, delta))
    return Audit(max(0.0, epsilon), delta, confidence, event, hits, len(held[0]), exchanged)


def _chosen(left: Reals, right: Reals, confidence: float, delta: float) -> tuple[Event, bool]:
    """The event and the order of the data sets that certify most on these runs."""
    levels = np.unique(np.concatenate([left, right]))
    if len(levels) > _MOST_EVENTS:
        levels = levels[np.linspace(0, len(levels) - 1, _MOST_EVENTS).astype(int)]
    best, found = -math.inf, (Event(float(levels[0]), above=True), False)
    for above in (True, False):
        counts = [_beyond(values, levels, above) for values in (left, right)]
        for exchanged in (False, True):
            likelier, other = counts[::-1] if exchanged else counts
            scores = _least_epsilon(likelier, other, len(left), confidence, delta)
            if scores.max() > best:
                best, found = float(scores.max()), (Event(float(levels[scores.argmax()]), above), exchanged)
    return found


def _beyond(values: Reals, levels: Reals, above: bool) -> Reals:
    """How many values lie at each level or beyond it."""
    ordered = np.sort(values)
    if above:
        return np.asarray(len(values) - np.searchsorted(ordered, levels, side="left"), dtype=float)
    return np.asarray(np.searchsorted(ordered, levels, side="right"), dtype=float)


def _least_epsilon(hits: Reals, others: Reals, trials: int, confidence: float, delta: float) -> Reals:
    """Log of (lower limit - delta) over the upper limit; each limit fails with half of what may fail, or less."""
    fails = (1 - confidence) / 2
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), trials - hits + 1, fails), 0.0)
    high = np.where(others < trials, betaincinv(others + 1, np.maximum(trials - others, 1), 1 - fails), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(low - delta, 0.0)) - np.log(high))
