"""What is asked of a mechanism, and what it answers: a published mean, with its budget, error, cost and trust."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from flamelib.core.guarantees import Adjacency, RestsOn
from flamelib.core.vocabulary import DomainError, check, keep

TASKS = ("mean", "histogram")
REAL_BITS = 64  # a number is sent as a double


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be published, about whom, and how often.

    ``dimension`` is that of a user's vector, or the number of items of the list; ``delta``, in (0, 1), that of all
    rounds together.  ``sampling_rate`` is the probability that a user takes part in a round, where the mechanism draws
    lots for users, or, in SS-Double, that it reports a coordinate.
    """

    n_users: int
    dimension: int = 1
    rounds: int = 1
    delta: float = 1e-6
    task: str = "mean"
    sampling_rate: float = 0.1

    def __post_init__(self) -> None:
        keep(self, **check(n_users=self.n_users, dimension=self.dimension, rounds=self.rounds))
        keep(self, **check(sampling_rate=self.sampling_rate, delta=self.delta))
        if not 0 < self.delta < 1:
            raise DomainError(f"delta must be a number in (0, 1), got {self.delta!r}")
        if self.task not in TASKS:
            raise DomainError(f"task must be one of {', '.join(TASKS)}, got {self.task!r}")
        if self.task == "histogram" and self.dimension < 2:
            raise DomainError(f"dimension must be a whole number of at least 2 for a histogram, got {self.dimension}")

    @property
    def moved(self) -> tuple[float, int]:
        """Largest change of a user's vector, in the 2-norm and in the 1-norm."""
        return (math.sqrt(self.dimension), self.dimension) if self.task == "mean" else (math.sqrt(2), 2)

    @property
    def radius(self) -> float:
        """Radius of a ball that holds every vector, centred at one half for values and at 0 for items."""
        return math.sqrt(self.dimension) / 2 if self.task == "mean" else 1.0

    @property
    def parts(self) -> int:
        """How many numbers one user can change in all rounds; the budget is split among that many."""
        return self.moved[1] * self.rounds

    @property
    def absence(self) -> float:
        """Largest variance that absent users can add to the mean, averaged over coordinates."""
        rate = self.sampling_rate
        return self.radius**2 / self.dimension * (1 - rate) / (rate * self.n_users)


@dataclass(frozen=True, slots=True)
class Row:
    """What a mechanism yields for a request.

    ``epsilon`` is that of an account of the library, at the request's delta (upper); ``claimed`` that of the document's
    formula for the same parameters, if it has one.  The ``error`` is the root mean squared error of a coordinate of the
    mean; ``messages`` and ``bits`` are those of a user who takes part in a round.  ``trusted`` says who must follow the
    protocol, or keep secret what it sees; ``warning`` says why epsilon is not comparable with that of other rows.
    ``parameters`` are what the account was called with, beside the request.  ``lower`` is what explicit data sets lose,
    where that is known and was asked for (:mod:`flamelib.uses.lower_bounds`); ``rests_on`` speaks of ``epsilon``.
    """

    mechanism: str
    document: str
    epsilon: float
    claimed: float | None
    error: float
    messages: float
    bits: float
    trusted: str
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    warning: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    lower: float | None = None
    rests_on: RestsOn = RestsOn.PROVEN


Maker = Callable[[Request, float], Row]


def finite(claimed: float) -> float | None:
    """A claim, or none where the document's formula is silent."""
    return claimed if math.isfinite(claimed) else None
