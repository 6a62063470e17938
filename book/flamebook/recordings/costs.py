"""Measure once what a round of FLAME and sealing cost: ``python -m flamebook.recordings.costs``, on an idle core.

The page shows what was recorded, so that it does not change from one making to the next.
"""

import json
import platform
from pathlib import Path

from flamebook.figures.flame.protocols import RECORDED, compute_round_cost, compute_sealing_cost
from flamebook.runs.recorded import how_made, revision

USERS = (250, 500, 1000, 2000)
ENVELOPES = (500, 1000, 2000, 4000)


def record(path: Path = RECORDED) -> None:
    """Measure, and write seconds, date, machine and commit."""
    commit = revision()
    costs = {"round": compute_round_cost(USERS), "sealing": compute_sealing_cost(ENVELOPES, 1000, 7850, 157, 333)}
    told = {what: found.to_json() for what, found in costs.items()}
    whole = how_made("recordings.costs", commit=commit, machine=processor(), costs=told)
    path.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def processor() -> str:
    """What the processor calls itself, or its kind where it does not say."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    record()
