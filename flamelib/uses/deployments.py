r"""One request, every mechanism of the five documents: what each promises, its error, and what it costs.

A *request* is a published mean.  Each of ``n_users`` users holds a vector of ``dimension`` coordinates: values in
[0, 1] (task ``mean``), or one item of a list, a 1 among zeros (task ``histogram``).  The mean over the users is
published in each of ``rounds`` rounds, and the budget is that of all rounds together, for a user whose vectors are
replaced in every one of them.  So that numbers can be compared, the *error* is the same for all: the root of the mean
squared error of the published mean of one round, averaged over coordinates, for users whose values make it largest
(random rounding and absent users included, each with the values that are worst for it).

Every epsilon comes from an account of the library.  Beside it stands what the document claims for the same parameters,
where it claims anything.  A mechanism that cannot serve a request is refused, with the reason.  Budgets of different
adjacency are never comparable as numbers; such rows carry a warning.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from flamelib.core import workers
from flamelib.core.search import greatest
from flamelib.core.vocabulary import DomainError, check, known, meant, read
from flamelib.uses.central_mechanisms import CENTRAL
from flamelib.uses.local_mechanisms import LOCAL
from flamelib.uses.lower_bounds import bracketed
from flamelib.uses.workload import Request, Row

REQUESTED = ("task", "n_users", "dimension", "rounds", "delta", "sampling_rate")
TAKEN = (*REQUESTED, "epsilon", "epsilon0", "mechanism")
_STEEPNESS = 3.4  # epsilon over epsilon0 and sqrt(d T / n) in shuffling, about: where the search starts
_ONE_REPORT, _SAMPLED = ("topk", "shuffled check-in"), ("double", "shuffled check-in")
_LARGEST_START, _LARGEST_BUDGET = 4.0, 700.0  # local budgets: of the first trial, and of any, where exp is still finite


@dataclass(frozen=True, slots=True)
class Refusal:
    """A mechanism that cannot serve a request, and why."""

    mechanism: str
    reason: str


def mechanisms() -> tuple[str, ...]:
    """Names of all mechanisms, those with a local budget first."""
    return (*LOCAL, *CENTRAL)


def row(name: str, request: Request, epsilon: float | None = None, epsilon0: float | None = None) -> Row | Refusal:
    """One mechanism at a local budget, or tuned so that its certified epsilon is what is asked for.

    Exactly one of both budgets is given.  For a central ``epsilon`` the answer's is never above it (upper), and at
    least 98 % of it where a local budget is searched for, unless it jumps there.  ``epsilon0`` is the budget of one
    report.
    """
    asked = _checked(name, epsilon, epsilon0)
    try:
        if name in CENTRAL:
            if epsilon is None:
                return Refusal(name, "nothing that one user sends is private by itself: ask for a central epsilon")
            return CENTRAL[name](request, asked)
        return LOCAL[name](request, asked if epsilon is None else _local_budget(name, request, asked))
    except DomainError as error:
        return Refusal(name, str(error))


def _checked(name: str, epsilon: float | None, epsilon0: float | None) -> float:
    """The one budget that is asked for, of a mechanism that there is."""
    if name not in (*LOCAL, *CENTRAL):
        listed = "; ".join(mechanisms())
        raise DomainError(f"mechanism must be one of {listed}, got {name!r}{meant(name, mechanisms())}")
    if (epsilon is None) == (epsilon0 is None):
        raise DomainError("exactly one of epsilon and epsilon0 must be given")
    asked: float = check(epsilon0=epsilon0)["epsilon0"] if epsilon is None else check(epsilon=epsilon)["epsilon"]
    if asked == 0:
        raise DomainError("epsilon must be a number above 0, got 0")
    return asked


def rows(
    request: Request, epsilon: float | None = None, epsilon0: float | None = None, names: Iterable[str] | None = None
) -> tuple[Row | Refusal, ...]:
    """Every mechanism, or those named, as in :func:`row`."""
    return tuple(row(name, request, epsilon, epsilon0) for name in (mechanisms() if names is None else names))


def compared(given: Mapping[str, Any], jobs: int = 1) -> Iterator[Row | Refusal]:
    """Every mechanism for a request and a budget given by name, one after the other as they are found.

    Parameters
    ----------
    given : mapping
        The fields of :class:`~flamelib.uses.workload.Request`, as numbers or text, of which ``n_users`` is needed; and
        ``epsilon`` (private reports get the largest local budget that keeps it), or ``epsilon0``, or both: then
        private reports get the largest of the budgets ``epsilon0``, written 0.5,1,2, that keeps ``epsilon``.  With
        ``mechanism``, one of :func:`mechanisms`, it alone answers.
    jobs : int
        Processes; a search for a local budget takes seconds.

    Raises
    ------
    DomainError
        If a name is unknown or a value outside its domain.

    Examples
    --------
    >>> found = compared({"n_users": "1e3", "dimension": 20, "epsilon0": "1e-9"})
    >>> [one.mechanism for one in found if isinstance(one, Row)]
    ['local', 'blanket', 'simple', 'double', 'shuffled check-in']
    """
    known(given, dict.fromkeys(TAKEN), ["n_users"], "compare")
    numbers = read(**{name: given[name] for name in (*REQUESTED, "epsilon") if name in given and name != "task"})
    epsilon = numbers.pop("epsilon", None)
    request = Request(**numbers, **{name: given[name] for name in given if name == "task"})
    budgets = [read(epsilon0=one)["epsilon0"] for one in str(given.get("epsilon0") or "").split(",") if one]
    if epsilon is None and len(budgets) > 1:
        raise DomainError(f"epsilon0 must be one number where epsilon is not given, got {given['epsilon0']!r}")
    asked = (given["mechanism"],) if "mechanism" in given else mechanisms()
    _checked(asked[0], epsilon, None if epsilon is not None or not budgets else budgets[0])
    answer = partial(_bracket, request=request, epsilon=epsilon, budgets=sorted(set(budgets)))
    return map(answer, asked) if jobs == 1 or epsilon is None else _side_by_side(answer, asked, jobs)


def _bracket(name: str, request: Request, epsilon: float | None, budgets: Sequence[float]) -> Row | Refusal:
    """One mechanism with its lower end as well."""
    if epsilon is None:
        found = row(name, request, epsilon0=budgets[0])
    elif budgets and name in LOCAL:
        found = _within(name, request, epsilon, budgets)
    else:
        found = row(name, request, epsilon)
    return found if isinstance(found, Refusal) else bracketed(found, request)


def _side_by_side(answer: Callable[[str], Row | Refusal], asked: Sequence[str], jobs: int) -> Iterator[Row | Refusal]:
    with workers.pool(jobs) as pool:
        yield from pool.map(answer, asked)


def _within(name: str, request: Request, epsilon: float, tried: Sequence[float]) -> Row | Refusal:
    for budget in reversed(tried):
        found = row(name, request, epsilon0=budget)
        if isinstance(found, Refusal) or found.epsilon <= epsilon:
            return found
    listed = ", ".join(f"{budget:g}" for budget in tried)
    return Refusal(name, f"no local budget of {listed} keeps epsilon {epsilon:g}: ask without a list of them")


def _local_budget(name: str, request: Request, epsilon: float) -> float:
    """The largest local budget found whose certified epsilon is not above this."""
    reports = 1 if name in _ONE_REPORT else request.dimension
    there = min(2 * request.sampling_rate, 1.0) if name in _SAMPLED else 1.0
    share = _STEEPNESS * math.sqrt(there * reports * request.rounds / request.n_users)
    start = epsilon if name == "local" else min(epsilon / share, _LARGEST_START)
    return greatest(lambda epsilon0: LOCAL[name](request, epsilon0).epsilon, epsilon, start, _LARGEST_BUDGET)
