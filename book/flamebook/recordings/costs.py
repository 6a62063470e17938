"""Measured once, on an idle core: what a round of FLAME and sealing cost.

The page shows what was recorded, so that it does not change from one making to the next.
"""

import platform
from pathlib import Path
from typing import Any

from flamebook.figures.flame.protocols import RECORDED, Costs, compute_round_cost, compute_sealing_cost
from flamebook.runs.record import Part, Recording, Results

USERS = (250, 500, 1000, 2000)
ENVELOPES = (500, 1000, 2000, 4000)


def parts() -> dict[str, Part]:
    """A round, and sealing."""
    return {
        "round": Part(lambda: _measured(compute_round_cost(USERS))),
        "sealing": Part(lambda: _measured(compute_sealing_cost(ENVELOPES, 1000, 7850, 157, 333))),
    }


def _measured(costs: Costs) -> dict[str, Any]:
    return {"machine": processor(), "costs": costs.to_json()}


def told(results: Results) -> dict[str, Any]:
    """Seconds and the machine."""
    machines = dict.fromkeys(one["machine"] for one in results.values())
    return {"machine": "; ".join(machines), "costs": {what: one["costs"] for what, one in results.items()}}


def processor() -> str:
    """What the processor calls itself, or its kind where it does not say."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


RECORDING = Recording(RECORDED.name, parts, told=told)
