"""Measured once, on an idle core: what a round of FLAME and sealing cost.

The page shows what was recorded, so that it does not change from one making to the next.
"""

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from flamebook.places import RESULTS
from flamebook.records import Parameters
from flamebook.runs.record import Part, Recording, Results
from flamelib.core.arrays import Reals
from flamelib.core.vocabulary import check
from flamelib.mechanisms import sealing
from flamelib.mechanisms.randomizers import LaplaceNoise
from flamelib.protocols import flame
from flamelib.protocols.flame import FlameDouble, FlameTopk

RECORDED = RESULTS / "flame_costs.json"
USERS = (250, 500, 1000, 2000)
ENVELOPES = (500, 1000, 2000, 4000)
BLOCK = 1000  # users whose updates are in memory at once


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds measured on one machine.

    Attributes
    ----------
    x_name : str
        What the cost is drawn against.
    measured : mapping from a name to a list of sizes and seconds
    further : mapping from what it stands for to a size
        Sizes that were not measured and to which the page extends the largest measured one.
    """

    x_name: str
    measured: Mapping[str, Sequence[tuple[float, float]]]
    further: Mapping[str, float]
    parameters: Parameters


def compute_round_cost(
    users: Sequence[int], dimension: int = 7850, kept: int = 157, epsilon0: float = 0.5, up_to: int = 100_000
) -> Costs:
    """Measured time of a round after local training, against the number of true messages, users times ``kept``.

    Updates come in blocks of a thousand users, so memory does not grow with them; bags hold a third of the users'
    number.  SS-Topk looks at every coordinate of every update to find the largest, whatever ``kept``.

    Parameters
    ----------
    users : sequence of int
        Numbers of users to measure, ascending; 10,000 take about half a second each.
    dimension, kept, epsilon0
        As in the protocols.
    up_to : int
        Number of users up to which the line is extended.
    """
    given = {"dimension": dimension, "kept": kept, "epsilon0": epsilon0}
    block = np.random.default_rng(0).normal(scale=0.01, size=(min(BLOCK, max(users)), dimension))

    def seconds(make: Callable[..., flame.Protocol], n_users: int) -> float:
        protocol = make(n_users, dimension, 0.01, LaplaceNoise(epsilon0), kept, max(2, -(-n_users // 3)))
        return _least_time(lambda: flame.run(protocol, _repeated(block, n_users), np.random.default_rng(0)))

    measured = {
        name: [(float(n_users * kept), seconds(make, n_users)) for n_users in users]
        for name, make in (("topk", FlameTopk), ("double", FlameDouble))
    }
    return Costs("true messages", measured, {f"{up_to:,} users": up_to * kept}, given)


def compute_sealing_cost(messages: Sequence[int], n_users: int, dimension: int, kept: int, padded: int) -> Costs:
    """Measured time to seal and to open envelopes, extended to all true messages of a round and to all of its bags.

    Parameters
    ----------
    messages : sequence of int
        Numbers of messages to measure, ascending; a thousand take about a tenth of a second.
    n_users, dimension, kept, padded : int
        The round to which the line is extended.
    """
    given = check(n_users=n_users, dimension=dimension, kept=kept, padded=padded)
    key, name = sealing.AnalyzerKey(), sealing.new_round()
    sealed, opened = [], []
    for count in messages:
        places, values = np.arange(count), np.linspace(0, 1, count)
        bags = sealing.seal(key.public, name, places, values)[:, None]
        sealed.append((float(count), _least_time(partial(sealing.seal, key.public, name, places, values))))
        opened.append((float(count), _least_time(partial(sealing.open_bags, key, name, bags))))
    further = {"messages of all users": n_users * kept, "with all dummies": dimension * padded}
    return Costs("messages", {"seal": sealed, "open": opened}, further, given)


def _repeated(block: Reals, n_users: int) -> Iterator[Reals]:
    """The same rows over and over, until there are as many as users."""
    for first in range(0, n_users, len(block)):
        yield block[: n_users - first]


def _least_time(action: Callable[[], object], least: float = 0.2) -> float:
    """Shortest of several runs, of which there are fewer the longer they take."""
    found: list[float] = []
    while not found or (sum(found) < least and len(found) < 5):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return min(found)


def parts() -> dict[str, Part]:
    """A round, and sealing."""
    return {
        "round": Part(lambda: _measured(compute_round_cost(USERS))),
        "sealing": Part(lambda: _measured(compute_sealing_cost(ENVELOPES, 1000, 7850, 157, 333))),
    }


def _measured(costs: Costs) -> dict[str, Any]:
    return {"machine": processor(), "costs": asdict(costs)}


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
