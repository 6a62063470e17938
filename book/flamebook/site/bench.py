"""All mechanisms for one request: what the page of the bench shows.

``flamelib compare`` answers any request.  The page cannot compute, so it looks up a grid of requests that
``flamelib record bench`` has computed by the same functions.
"""

import json
from pathlib import Path
from typing import Any

from flamebook.places import RESULTS
from flamelib.uses.requests import TASKS

RECORDED = RESULTS / "bench.json"

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


def script(recorded: Path = RECORDED) -> str:
    """The recorded grid as a script, because a page opened from disk may load scripts and nothing else."""
    table = json.loads(recorded.read_text(encoding="utf-8"))
    return f"flamelibBench.receive({json.dumps(table, separators=(',', ':'), ensure_ascii=False)});\n"
