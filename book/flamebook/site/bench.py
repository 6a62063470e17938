"""All mechanisms for one request: what ``flamelib compare`` prints, and what the page of the bench shows.

The command answers any request.  The page cannot compute, so it looks up a grid of requests that
``python -m flamebook.site.record_bench`` has computed by the same functions.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flamebook.places import RESULTS
from flamelib.core.vocabulary import DomainError, check, known
from flamelib.uses.deployments import Refusal, rows, rows_within
from flamelib.uses.requests import TASKS, Request, Row

RECORDED = RESULTS / "bench.json"
REQUESTED = ("task", "n_users", "dimension", "rounds", "delta", "sampling_rate")
BUDGETS = ("epsilon", "epsilon0")

# The grid of the page: every request of these, at each local budget of a report and each central one of a sum.
AXES: dict[str, tuple[Any, ...]] = {
    "task": TASKS,
    "n_users": (100, 1000, 10_000, 100_000, 1_000_000),
    "dimension": (1, 16, 256),
    "rounds": (1, 12, 365),
    "delta": (1e-6, 1e-8),
}
EPSILON0 = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)
EPSILON = (0.1, 0.3, 1.0, 3.0, 10.0)


def compared(given: Mapping[str, Any]) -> tuple[Row | Refusal, ...]:
    """Every mechanism for a request and a budget given by name.

    Parameters
    ----------
    given : mapping
        The fields of :class:`~flamelib.uses.requests.Request`, as numbers or text, of which ``n_users`` is needed; and
        ``epsilon`` (private reports get the largest local budget that keeps it), or ``epsilon0``, or both: then
        private reports get the largest of the budgets ``epsilon0``, written 0.5,1,2, that keeps ``epsilon``.

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
    known(given, dict.fromkeys((*REQUESTED, *BUDGETS)), ["n_users"], "compare")
    numbers = check(**{name: given[name] for name in (*REQUESTED, "epsilon") if name in given and name != "task"})
    epsilon = numbers.pop("epsilon", None)
    request = Request(**numbers, **{name: given[name] for name in given if name == "task"})
    budgets = [check(epsilon0=one)["epsilon0"] for one in str(given.get("epsilon0") or "").split(",") if one]
    if epsilon is not None and budgets:
        return rows_within(request, epsilon, budgets)
    if len(budgets) > 1:
        raise DomainError(f"epsilon0 must be one number where epsilon is not given, got {given['epsilon0']!r}")
    return rows(request, epsilon, budgets[0] if budgets else None)


def script(recorded: Path = RECORDED) -> str:
    """The recorded grid as a script, because a page opened from disk may load scripts and nothing else."""
    table = json.loads(recorded.read_text(encoding="utf-8"))
    return f"flamelibBench.receive({json.dumps(table, separators=(',', ':'), ensure_ascii=False)});\n"
