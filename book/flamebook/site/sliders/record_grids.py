"""The grids of numerical bounds, ten minutes on one idle core: :mod:`flamebook.site.sliders.grids` reads them."""

from functools import partial
from itertools import product
from typing import Any, NamedTuple

from flamebook.places import ROOT
from flamebook.runs import inputs
from flamebook.runs.record import Part, Recording
from flamebook.runs.recorded import revision
from flamebook.site.sliders.grids import RECORDED, grids
from flamelib.answers import answer
from flamelib.core.statements import homes


class Grid(NamedTuple):
    """A statement, the inputs that all its points share, and the values of the others, the last fastest."""

    statement: str
    inputs: dict[str, Any]
    axes: dict[str, tuple[float, ...]]
    answers: str = "epsilon"


_BUDGETS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8)
_USERS = (100, 300, 1000, 3000, 10**4, 30_000, 10**5, 300_000, 10**6, 10**7, 10**8, 10**9)
_ANY = {"epsilon0": _BUDGETS, "n_users": _USERS, "delta": (1e-9, 1e-6, 1e-4)}
_NOISE = (0.5, 1, 2, 4)
_ROUNDS = (1, 100, 1000, 10_000)
_FEW = {"epsilon0": (0.5, 1, 2, 4), "n_users": (1000, 10**4, 10**5, 10**6, 10**7, 10**8), "delta": (1e-9, 1e-6)}
_JOINING = {"participation_rate": (0.01, 0.1, 1), "record_rate": (0.01, 0.1, 1)}
_SENDING = {
    "n_users": (1000, 10**4, 10**5, 10**6),
    "checkin_rate": (0.001, 0.01, 0.1, 1),
    "noise_std": _NOISE,
    "rounds": _ROUNDS,
    "delta": (1e-9, 1e-6),
}
_KEPT = (1, 3, 10, 30, 50, 100, 157, 300, 785)
_VECTORS = {"epsilon0": (0.2, 0.5, 1, 2), "kept": _KEPT, "padded": (333, 10_000), "delta": (1e-6,)}
_TOPK, _DOUBLE = ({"protocol": name, "dimension": 7850, "n_users": 1000} for name in ("topk", "double"))
_SOUND, _PAPER = {"bound": "blanket", "route": "sound"}, {"bound": "bennett", "route": "paper"}
GRIDS: dict[str, Grid] = {
    "clones": Grid("clones:2021", {}, _ANY),
    "binary": Grid("shuffle:exact-binary", {}, _ANY),
    "binary-lower": Grid("shuffle:lower", {"randomizer": "kary", "n_buckets": 2}, _ANY),
    "laplace": Grid("blanket:lem-reduction", {"randomizer": "laplace"}, _FEW),
    "kary": Grid("blanket:lem-reduction", {"randomizer": "kary"}, _FEW | {"n_buckets": (10, 100)}),
    "topk": Grid("flame:account", _TOPK | _SOUND, _VECTORS),
    "topk-printed": Grid("flame:account", _TOPK | _PAPER, _VECTORS),
    "topk-lower": Grid("flame:topk-lower", {}, _VECTORS),
    "double": Grid("flame:account", _DOUBLE | _SOUND, _VECTORS),
    "participation": Grid(
        "participation:rounds",
        {"scheme": "outer", "clip_norm": 1},
        _JOINING | {"n_records": (1, 2, 20), "noise_std": _NOISE, "rounds": _ROUNDS, "delta": (1e-9, 1e-6)},
    ),
    "participation-lower": Grid(
        "participation:thm-4.1",
        {"reading": "aligned", "clip_norm": 1},
        _JOINING | {"n_records": (1, 2), "noise_std": _NOISE, "delta": (1e-9, 1e-6)},
    ),
    "distributed": Grid("checkin:distributed", {"route": "pld"}, _SENDING),
    "distributed-theorem": Grid("checkin:distributed", {"route": "thm-4"}, _SENDING),
    "shuffled": Grid(
        "checkin:shuffled",
        {"route": "clones"},
        {
            "epsilon0": (1, 2, 4),
            "n_users": (10**4, 30_000, 10**5, 300_000, 10**6),
            "checkin_rate": (0.01, 0.1, 1),
            "rounds": (100, 1000, 10**5),
            "delta": (1e-6,),
        },
    ),
    "shares": Grid(
        "cloak:own-3",
        {},
        {
            "modulus": (2**16, 2**32, 2**64),
            "n_messages": (4, 6, 8, 12, 16, 24, 32),
            "n_users": (100, 1000, 10**4, 10**5, 10**6),
        },
        "distance",
    ),
}


def parts() -> dict[str, Part]:
    """Every grid; its statement is found by its id, so the module that states it is named among the imports."""
    homed, found = homes(), dict[str, Part]()
    for key, grid in GRIDS.items():
        code = f"import flamelib.answers, {homed[grid.statement]}"
        found[key] = Part(partial(computed, grid), partial(inputs.of_code, code, ROOT), grid)
    return found


def computed(grid: Grid) -> dict[str, Any]:
    """A grid with its answers: inputs and axes, what is given by which source, the values, and the commit.

    Examples
    --------
    >>> found = computed(Grid("flame:lem-2", {"epsilon": 0.5}, {"times": (1, 2)}))
    >>> found["values"], found["gives"]
    ([0.5, 1.0], 'upper')
    """
    points = product(*grid.axes.values())
    answers = [answer(grid.statement, grid.inputs | dict(zip(grid.axes, point, strict=True))) for point in points]
    sides, [source] = ({found[name] for found in answers} for name in ("gives", "source"))
    [gives] = sides - {"exact"} or sides  # what is exact at some points only is a bound of the others' side
    told = {"statement": grid.statement, "gives": gives, "source": source, "answers": grid.answers}
    told |= {"inputs": grid.inputs, "axes": grid.axes, "values": [found["value"] for found in answers]}
    return told | {"commit": revision()}


RECORDING = Recording(RECORDED.name, parts, told=lambda results: {"grids": results}, taken_apart=grids)
